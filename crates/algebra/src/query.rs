//! A query in logical form: result form, root operator, variables.

use crate::{Node, Pattern, Slot, Variable};

/// Result form of a query.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Form {
    /// Solutions with these columns.
    Select(Vec<Variable>),
    /// Boolean: whether there is a solution.
    Ask,
    /// Statements instantiated from each solution. Template variables with numbers above those of
    /// `Query::root`, which no solution binds, are blank nodes, fresh for each solution.
    Construct {
        /// The template.
        statements: Vec<Pattern>,
        /// Triple terms of the template, by the variable that stands for each; nested ones before those that
        /// contain them.
        triples: Vec<TripleTemplate>,
    },
    /// A description of these resources for each solution.
    Describe(Vec<Slot>),
}

/// A triple term over variables and terms.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TripleTemplate {
    /// The variable that represents the triple term in the template.
    pub variable: Variable,
    /// Subject, predicate, object.
    pub parts: [Slot; 3],
}

/// A query in logical form.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Query {
    /// Result form.
    pub form: Form,
    /// Root operator.
    pub root: Node,
    /// The name of each variable, without `?`; empty for variables that the text does not name.
    pub variables: Vec<String>,
    /// Parameters: variables that the caller binds at each execution.
    pub parameters: Vec<Variable>,
}

//! A whole query.

use crate::{Node, Pattern, Slot, Variable};

/// What a query gives back.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Form {
    /// Solutions with these columns.
    Select(Vec<Variable>),
    /// Whether there is a solution.
    Ask,
    /// Statements made from each solution. Variables above `Query::root`'s own that the template
    /// mentions and no solution binds are blank nodes, new for each solution.
    Construct {
        /// The statements.
        statements: Vec<Pattern>,
        /// What variables of the statements stand for; those inside others come first.
        triples: Vec<TripleTemplate>,
    },
    /// A description of these resources for each solution.
    Describe(Vec<Slot>),
}

/// A triple term whose parts are variables or terms.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TripleTemplate {
    /// What stands for it elsewhere.
    pub variable: Variable,
    /// Subject, predicate, object.
    pub parts: [Slot; 3],
}

/// A query in logical form.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Query {
    /// What it gives back.
    pub form: Form,
    /// Its solutions.
    pub root: Node,
    /// The name of each variable, without `?`; empty for those that the text does not name.
    pub variables: Vec<String>,
    /// Variables whose values the caller gives with each execution.
    pub parameters: Vec<Variable>,
}

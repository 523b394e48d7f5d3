//! Warnings about queries and updates: names and graphs that the database does not have, values of another
//! datatype, variables that are never bound, invalid `REGEX` patterns.
//!
//! The standards allow all of these, and they make answers empty. So they are not errors, and are only
//! computed when an answer is empty (or is a count of 0); the caller decides. A variable that is never bound
//! is reported with any answer, since `ORDER BY ?misspelt` leaves the rows in another order than intended.
//! # Cost
//! One dictionary lookup for each name of the query, some microseconds. For an unknown name, the names of at
//! most [`CANDIDATES_MAX`] predicates or classes are read and compared: below 10 ms. Unbound variables need
//! no lookup.

mod values;

use crate::database::Database;
use crate::gremlin::text::Statement;
use crate::gremlin::{Bytecode, GremlinScript, Instruction, Value};
use crate::query::prepared::Prepared;
use crate::{Constraint, QueryOptions, Transaction};
use oxrdf::{Literal, NamedNode, NamedNodeRef, Term};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use values::{Matching, Values};
use vervet_algebra::{
    Expression, Form, Function, GraphSlot, Node, Operation, Path, Quads, Query, Slot, TemplateTerm, Variable,
};
use vervet_model::vocab::{KEY_NAMESPACE, LABEL_NAMESPACE, RDF_TYPE, is_iri, name_iri};
use vervet_model::{Direction, Id, Result};
use vervet_snapshot::{EntryFilter, Snapshot};

/// The maximum number of candidates for a "did you mean" suggestion.
const CANDIDATES_MAX: usize = 4096;

/// The maximum numbers of unbound and of bound variables of a query that are compared with each other.
const NAMES_COMPARED_MAX: usize = 256;

/// The maximum number of characters of a pattern in a warning.
const PATTERN_SHOWN_MAX: usize = 200;

/// The maximum number of warnings about one query.
const WARNINGS_MAX: usize = 16;

/// A part of a query that cannot match anything.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Warning {
    /// One line, like the message of an error.
    pub message: String,
    /// The suggested name.
    pub hint: Option<String>,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

impl Prepared {
    /// The parts of the query that cannot match anything in the current graph, for display with an empty
    /// answer.
    ///
    /// ```
    /// use vervet::{Database, Format};
    ///
    /// # fn main() -> vervet::Result<()> {
    /// let db = Database::in_memory();
    /// db.load_text(Format::Turtle, "<urn:a> <http://example.org/name> 'Ann' .")?;
    /// let query = db.prepare("SELECT ?n ?m { ?s <http://example.org/nam> ?n }")?;
    /// let warnings: Vec<String> = query.warnings()?.iter().map(ToString::to_string).collect();
    /// assert_eq!(
    ///     warnings,
    ///     [
    /// "no statement has the predicate <http://example.org/nam>; did you mean <http://example.org/name>?",
    ///         "nothing binds ?m",
    ///     ]
    /// );
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Damaged data.
    pub fn warnings(&self) -> Result<Vec<Warning>> {
        let published = self.database().published();
        let mut search = UnknownNameSearch::new(&published.version);
        search.query(self.query())?;
        Ok(search.warnings)
    }

    /// Whether the answer has a row even without matches: a group without keys, such as a count.
    #[must_use]
    pub fn always_has_a_row(&self) -> bool {
        let mut node = &self.query().root;
        loop {
            node = match node {
                Node::Group { keys, .. } => return keys.is_empty(),
                Node::Filter { input, .. }
                | Node::Extend { input, .. }
                | Node::Project { input, .. }
                | Node::Distinct(input)
                | Node::Reduced(input)
                | Node::OrderBy { input, .. }
                | Node::Slice { input, .. } => input,
                _ => return false,
            };
        }
    }

    /// [`Prepared::warnings`] if they may explain an answer with this number of rows; else only those about
    /// variables that are never bound.
    ///
    /// # Errors
    /// Damaged data.
    pub fn warnings_after(&self, rows: u64) -> Result<Vec<Warning>> {
        // The row of an ASK does not imply a match: its value may be `false`.
        if rows == 0 || rows == 1 && (self.is_truth_value() || self.always_has_a_row()) {
            self.warnings()
        } else {
            let published = self.database().published();
            let mut search =
                UnknownNameSearch { checks_names: false, ..UnknownNameSearch::new(&published.version) };
            search.query(self.query())?;
            Ok(search.warnings)
        }
    }
}

impl Database {
    /// The names in patterns and deletions of an update that the current graph does not have, for display
    /// with an update that changed nothing.
    ///
    /// # Errors
    /// As [`Database::update`] for an invalid request; damaged data.
    pub fn update_warnings(&self, text: &str, options: &QueryOptions) -> Result<Vec<Warning>> {
        let update = crate::update::parse(text, options)?;
        let published = self.published();
        let mut search = UnknownNameSearch::new(&published.version);
        for operation in &update.operations {
            match operation {
                Operation::DeleteData(quads) => search.deletions(quads)?,
                Operation::Modify(modify) => {
                    let mut query = modify.solutions.clone();
                    // The pattern was valid for this dataset when the update ran.
                    if modify.dataset.restrict(&mut query.root).is_ok() {
                        search.bound.clear();
                        search.query(&query)?;
                    }
                    search.deletions(&modify.delete)?;
                }
                _ => {}
            }
        }
        Ok(search.warnings)
    }

    /// The class and the properties of a constraint that the current graph does not have: the constraint
    /// holds, and probably has a misspelt name.
    ///
    /// # Errors
    /// Damaged data.
    pub fn constraint_warnings(&self, constraint: &Constraint) -> Result<Vec<Warning>> {
        let published = self.published();
        let mut search = UnknownNameSearch::new(&published.version);
        search.class(constraint.class())?;
        constraint.properties().iter().try_for_each(|property| search.predicate(property))?;
        Ok(search.warnings)
    }

    /// Labels and keys of a Gremlin script that the current graph does not have, for display with an empty
    /// result or a single 0. A script that writes has no warnings.
    ///
    /// # Errors
    /// Damaged data.
    pub fn gremlin_warnings(&self, script: &GremlinScript) -> Result<Vec<Warning>> {
        if script.mutates() {
            return Ok(Vec::new());
        }
        of_script(&self.published().version, script)
    }
}

impl Transaction {
    /// [`Database::gremlin_warnings`] for the graph that this transaction sees. The lookups do not enter the
    /// read set.
    ///
    /// # Errors
    /// Damaged data.
    pub fn gremlin_warnings(&self, script: &GremlinScript) -> Result<Vec<Warning>> {
        if script.mutates() {
            return Ok(Vec::new());
        }
        of_script(self.inner.version()?, script)
    }
}

fn of_script(snapshot: &dyn Snapshot, script: &GremlinScript) -> Result<Vec<Warning>> {
    let mut search = UnknownNameSearch::new(snapshot);
    for statement in script.statements() {
        if let Statement::Traversal { bytecode, .. } = statement {
            search.traversal(bytecode)?;
        }
    }
    Ok(search.warnings)
}

/// A search for unknown names, and its warnings.
struct UnknownNameSearch<'s> {
    snapshot: &'s dyn Snapshot,
    /// Whether names are looked up; otherwise only variables are checked.
    checks_names: bool,
    /// Whether the expression is inside of an odd number of negations.
    is_negated: bool,
    /// Whether the pattern removes solutions (`MINUS`, `NOT EXISTS`): a name that the data do not have is
    /// then probably meant, unless they have a similar one.
    is_removing: bool,
    warnings: Vec<Warning>,
    known: BTreeSet<String>,
    bound: Vec<Variable>,
    /// Variables in expressions and projections; those out of scope are constants of the algebra.
    used: BTreeSet<usize>,
    /// Whether an expression has the constant `false`: the algebra has it for `BOUND` of a variable out of
    /// scope.
    has_false: bool,
    /// Whether an expression has any other variable out of scope.
    has_unbound: bool,
    /// The predicates whose values a variable has, by the number of the variable.
    values_of: BTreeMap<usize, Vec<NamedNode>>,
    /// Names that a traversal gives to values: labels of `as`, keys of `project`. `by` may mean them.
    own_names: BTreeSet<String>,
}

impl<'s> UnknownNameSearch<'s> {
    fn new(snapshot: &'s dyn Snapshot) -> Self {
        Self {
            snapshot,
            checks_names: true,
            is_negated: false,
            is_removing: false,
            warnings: Vec::new(),
            known: BTreeSet::new(),
            bound: Vec::new(),
            used: BTreeSet::new(),
            has_false: false,
            has_unbound: false,
            values_of: BTreeMap::new(),
            own_names: BTreeSet::new(),
        }
    }

    fn warn(&mut self, message: String, hint: Option<String>) {
        if self.warnings.len() < WARNINGS_MAX && !self.warnings.iter().any(|one| one.message == message) {
            self.warnings.push(Warning { message, hint });
        }
    }

    fn query(&mut self, query: &Query) -> Result<()> {
        self.bound.extend(&query.parameters);
        self.node(&query.root)?;
        match &query.form {
            Form::Select(columns) => self.used.extend(columns.iter().map(|column| column.index())),
            Form::Construct { statements, .. } => {
                let variables = statements.iter().flat_map(|statement| statement.variables());
                self.used.extend(variables.map(|variable| variable.index()));
            }
            Form::Describe(slots) => {
                self.used.extend(slots.iter().filter_map(|slot| slot.variable()).map(|one| one.index()));
            }
            Form::Ask => {}
        }
        // A scope may have a variable of the same name.
        let bound = self.bound.iter().filter_map(|variable| query.variables.get(variable.index()));
        let mut names: Vec<&str> = bound.map(String::as_str).filter(|name| !name.is_empty()).collect();
        let mut bound = BTreeSet::new();
        names.retain(|name| bound.insert(*name));
        names.truncate(NAMES_COMPARED_MAX);
        // `!BOUND(?x)` of a variable that nothing binds is true on purpose, unless its name is misspelt.
        let is_only_tested = |at: usize| self.has_false && !self.has_unbound && !self.used.contains(&at);
        let mut known = BTreeSet::new();
        let unbound = query.variables.iter().map(String::as_str).enumerate();
        let unbound = unbound.filter(|(_, name)| !name.is_empty() && !bound.contains(name));
        let mut warnings = Vec::new();
        for (at, name) in unbound.filter(|(_, name)| known.insert(*name)).take(NAMES_COMPARED_MAX) {
            let near = vervet_model::nearest(name, names.iter().copied());
            if near.is_some() || !is_only_tested(at) {
                warnings.push((name, near));
            }
            if warnings.len() >= WARNINGS_MAX {
                break;
            }
        }
        for (name, near) in warnings {
            self.warn(format!("nothing binds ?{name}"), near.map(|near| format!("did you mean ?{near}?")));
        }
        Ok(())
    }

    /// Checks a pattern that removes solutions.
    fn removing(&mut self, node: &Node) -> Result<()> {
        let before = std::mem::replace(&mut self.is_removing, true);
        let result = self.node(node);
        self.is_removing = before;
        result
    }

    /// Warns of a name that the data do not have; `near`: a similar one.
    fn unknown_name(&mut self, message: String, near: Option<String>) {
        if near.is_some() || !self.is_removing {
            self.warn(message, near.map(|near| format!("did you mean {}?", shown(&near))));
        }
    }

    fn node(&mut self, node: &Node) -> Result<()> {
        match node {
            Node::Minus { left, right } => {
                self.node(left)?;
                return self.removing(right);
            }
            Node::Patterns(patterns) => {
                for pattern in patterns {
                    self.bound.extend(pattern.variables());
                    self.graph(&pattern.graph)?;
                    let Slot::Constant(Term::NamedNode(predicate)) = &pattern.predicate else { continue };
                    match &pattern.object {
                        Slot::Constant(Term::NamedNode(class)) if predicate.as_str() == RDF_TYPE => {
                            self.class(class)?
                        }
                        _ => self.predicate(predicate)?,
                    }
                    match &pattern.object {
                        Slot::Constant(Term::Literal(literal)) => {
                            self.value(predicate.as_str(), literal, Matching::Term)?;
                        }
                        Slot::Variable(variable) => {
                            self.values_of.entry(variable.index()).or_default().push(predicate.clone());
                        }
                        Slot::Constant(_) => {}
                    }
                }
            }
            Node::Project { variables, .. } => self.used.extend(variables.iter().map(|one| one.index())),
            Node::Path(path) => {
                self.bound.extend(path.variables());
                path.graphs.iter().try_for_each(|graph| self.graph(graph))?;
                self.path(&path.path)?;
            }
            // Names in a service belong to another endpoint.
            Node::Service(service) => self.bound.extend(service.bound()),
            Node::Extend { variable, .. } => self.bound.push(*variable),
            Node::Values { variables, .. } => self.bound.extend(variables),
            Node::Group { aggregates, .. } => {
                self.bound.extend(aggregates.iter().map(|(variable, _)| *variable))
            }
            _ => {}
        }
        let mut result = Ok(());
        node.for_each_child(&mut |child| {
            if result.is_ok() {
                result = self.node(child);
            }
        });
        result?;
        let mut result = Ok(());
        node.for_each_expression(&mut |expression| {
            if result.is_ok() {
                result = self.expression(expression);
            }
        });
        result
    }

    fn path(&mut self, path: &Path) -> Result<()> {
        match path {
            Path::Predicate(predicate) => self.predicate(predicate),
            Path::Except(_) => Ok(()),
            Path::Inverse(path) | Path::ZeroOrOne(path) | Path::ZeroOrMore(path) | Path::OneOrMore(path) => {
                self.path(path)
            }
            Path::Sequence(parts) | Path::Alternative(parts) => {
                parts.iter().try_for_each(|part| self.path(part))
            }
        }
    }

    fn expression(&mut self, expression: &Expression) -> Result<()> {
        if let Expression::Call(Function::Regex | Function::Replace, arguments) = expression
            && self.checks_names
        {
            let is_regex = matches!(expression, Expression::Call(Function::Regex, _));
            let text = |at: usize| match arguments.get(at) {
                Some(Expression::Constant(Term::Literal(literal))) => Some(literal.value()),
                _ => None,
            };
            let flags = text(if is_regex { 2 } else { 3 }).unwrap_or_default();
            if let Some(pattern) = text(1)
                && let Some(reason) = vervet_expression::regex_error(pattern, flags, !is_regex)
            {
                let hint = "patterns and flags are those of XPath: docs/sparql.md".to_owned();
                let start: String = pattern.chars().take(PATTERN_SHOWN_MAX).collect();
                let (pattern, more) = (&start, if start.len() < pattern.len() { "…" } else { "" });
                self.warn(
                    format!(
                        "the regular expression {pattern:?}{more} with the flags {flags:?} is an error: {reason}"
                    ),
                    Some(hint),
                );
            }
        }
        match expression {
            Expression::Constant(Term::Literal(literal)) if *literal == Literal::from(false) => {
                self.has_false = true;
            }
            Expression::Unbound => self.has_unbound = true,
            Expression::Variable(variable) => {
                self.used.insert(variable.index());
            }
            Expression::Not(inner) => {
                self.is_negated = !self.is_negated;
                let result = self.expression(inner);
                self.is_negated = !self.is_negated;
                return result;
            }
            // A value of another datatype is not equal, which is what a negated comparison asks for.
            Expression::Equal(a, b) if !self.is_negated => match (&**a, &**b) {
                (Expression::Variable(variable), Expression::Constant(Term::Literal(literal)))
                | (Expression::Constant(Term::Literal(literal)), Expression::Variable(variable)) => {
                    self.equality(*variable, literal)?;
                }
                _ => {}
            },
            Expression::In(a, all) if !self.is_negated => {
                if let Expression::Variable(variable) = &**a {
                    for one in all {
                        if let Expression::Constant(Term::Literal(literal)) = one {
                            self.equality(*variable, literal)?;
                        }
                    }
                }
            }
            _ => {}
        }
        let mut result = Ok(());
        if let Expression::Exists(exists) = expression {
            return match self.is_negated {
                true => self.removing(&exists.pattern),
                false => self.node(&exists.pattern),
            };
        }
        expression.for_each_child(&mut |child| {
            if result.is_ok() {
                result = self.expression(child);
            }
        });
        result
    }

    /// Warns if no statement with the predicate has this value, but one has it in another datatype.
    fn value(&mut self, predicate: &str, literal: &Literal, matching: Matching) -> Result<()> {
        if !self.checks_names {
            return Ok(());
        }
        let Some(id) = self.id_of(predicate)? else { return Ok(()) };
        let values = Values { snapshot: self.snapshot, predicate: id };
        if let Some(other) = values.other_datatype(literal.as_ref(), matching)? {
            let [wanted, found] =
                [literal, &other].map(|literal| values::shown(literal.as_ref(), matching, shown));
            let predicate = shown(predicate);
            match matching {
                Matching::Term => self.warn(
                    format!("no statement has {predicate} with the value {wanted}"),
                    Some(format!("did you mean {found}?")),
                ),
                // Another number may be equal, so only the value that is there is certain.
                Matching::Value => self
                    .warn(format!("{predicate} has the value {found}, which is not equal to {wanted}"), None),
            }
        }
        Ok(())
    }

    /// Checks `?variable = literal`, where the variable has the values of one predicate.
    fn equality(&mut self, variable: Variable, literal: &Literal) -> Result<()> {
        match self.values_of.get(&variable.index()).map(Vec::as_slice) {
            Some([predicate]) => {
                let predicate = predicate.clone();
                self.value(predicate.as_str(), literal, Matching::Value)
            }
            _ => Ok(()),
        }
    }

    fn id_of(&self, iri: &str) -> Result<Option<Id>> {
        self.snapshot.lookup(NamedNodeRef::new_unchecked(iri).into())
    }

    fn is_predicate(&self, iri: &str) -> Result<bool> {
        Ok(match self.id_of(iri)? {
            Some(id) => self.snapshot.segment(id, Direction::Out)?.is_some(),
            None => false,
        })
    }

    fn is_class(&self, iri: &str) -> Result<bool> {
        let (Some(id), Some(types)) = (self.id_of(iri)?, self.snapshot.type_predicate()) else {
            return Ok(false);
        };
        let Some(segment) = self.snapshot.segment(types, Direction::In)? else { return Ok(false) };
        let mut degrees = Vec::new();
        segment.degrees(&[id], EntryFilter::ANY_GRAPH, &mut degrees)?;
        Ok(degrees.iter().any(|degree| *degree > 0))
    }

    fn predicate(&mut self, predicate: &NamedNode) -> Result<()> {
        let iri = predicate.as_str();
        if !self.checks_names || !self.known.insert(iri.to_owned()) || self.is_predicate(iri)? {
            return Ok(());
        }
        let near = self.near_predicate(iri)?;
        self.unknown_name(format!("no statement has the predicate {}", shown(iri)), near);
        Ok(())
    }

    fn class(&mut self, class: &NamedNode) -> Result<()> {
        let iri = class.as_str();
        if !self.checks_names || !self.known.insert(iri.to_owned()) || self.is_class(iri)? {
            return Ok(());
        }
        let near = self.near_class(iri)?;
        self.unknown_name(format!("nothing has the type {}", shown(iri)), near);
        Ok(())
    }

    /// Checks the graph of a pattern.
    fn graph(&mut self, graph: &GraphSlot) -> Result<()> {
        let GraphSlot::Named(graph) = graph else { return Ok(()) };
        let iri = graph.as_str();
        // A graph and a predicate may have one IRI.
        if !self.checks_names || !self.known.insert(format!("<{iri}>")) {
            return Ok(());
        }
        let graphs = self.snapshot.graphs();
        if self.id_of(iri)?.is_some_and(|id| graphs.iter().any(|(graph, _)| *graph == id)) {
            return Ok(());
        }
        let ids: Vec<Id> = graphs.iter().take(CANDIDATES_MAX).map(|(id, _)| *id).collect();
        let near = self.near(iri, &ids)?;
        self.unknown_name(format!("no statement is in the graph {}", shown(iri)), near);
        Ok(())
    }

    /// Checks the constant predicates, classes and graphs of statements to delete.
    fn deletions(&mut self, quads: &Quads) -> Result<()> {
        let constant = |at: u32| match quads.terms.get(at as usize) {
            Some(TemplateTerm::Constant(Term::NamedNode(node))) => Some(node),
            _ => None,
        };
        for quad in &quads.quads {
            if let Some(graph) = quad.graph.and_then(constant) {
                self.graph(&GraphSlot::Named(graph.clone()))?;
            }
            let Some(predicate) = constant(quad.predicate) else { continue };
            match constant(quad.object) {
                Some(class) if predicate.as_str() == RDF_TYPE => self.class(class)?,
                _ => self.predicate(predicate)?,
            }
        }
        Ok(())
    }

    /// The existing predicate most similar to an unknown one, if any is similar.
    fn near_predicate(&self, iri: &str) -> Result<Option<String>> {
        let ids: Vec<Id> =
            self.snapshot.predicates().iter().take(CANDIDATES_MAX).map(|(id, _)| *id).collect();
        self.near(iri, &ids)
    }

    fn near_class(&self, iri: &str) -> Result<Option<String>> {
        let mut ids = Vec::new();
        if let Some(types) = self.snapshot.type_predicate()
            && let Some(segment) = self.snapshot.segment(types, Direction::In)?
        {
            segment.keys(Id::UNBOUND, CANDIDATES_MAX, &mut ids)?;
        }
        self.near(iri, &ids)
    }

    /// The IRI among those of `ids` whose local name is most similar to that of `iri`.
    fn near(&self, iri: &str, ids: &[Id]) -> Result<Option<String>> {
        let (mut names, mut scratch) = (Vec::with_capacity(ids.len()), String::new());
        for id in ids.iter().filter(|id| id.is_vertex()) {
            let mut name = String::new();
            self.snapshot.read_term(*id, &mut scratch, &mut |parts| parts.write_str(&mut name))?;
            names.push(name);
        }
        // The same namespace comes first: of equally similar names the first wins.
        let (namespace, local) = split(iri);
        names.sort_by_key(|name| split(name).0 != namespace);
        let near = vervet_model::nearest(local, names.iter().map(|name| split(name).1)).map(str::to_owned);
        Ok(near.and_then(|near| names.into_iter().find(|name| split(name).1 == near)))
    }

    fn traversal(&mut self, bytecode: &Bytecode) -> Result<()> {
        bytecode.steps.iter().try_for_each(|step| self.step(step))
    }

    fn step(&mut self, step: &Instruction) -> Result<()> {
        let texts: Vec<&str> = step.arguments.iter().map_while(Value::as_text).collect();
        match &*step.name {
            "as" | "project" | "select" | "group" | "groupCount" => {
                self.own_names.extend(texts.iter().map(|name| (*name).to_owned()));
            }
            "by" => match texts.first() {
                Some(key) if !self.own_names.contains(*key) => self.key("key", key)?,
                _ => {}
            },
            "hasLabel" => texts.iter().try_for_each(|label| self.label(label))?,
            "has" if step.arguments.len() == 3 => {
                texts.first().map_or(Ok(()), |label| self.label(label))?;
                texts.get(1).map_or(Ok(()), |key| self.key("key", key))?;
                self.has(texts.get(1).copied(), step.arguments.get(2))?;
            }
            "has" => {
                texts.first().map_or(Ok(()), |key| self.key("key", key))?;
                self.has(texts.first().copied(), step.arguments.get(1))?;
            }
            "values" | "valueMap" | "properties" | "propertyMap" | "elementMap" => {
                texts.iter().try_for_each(|key| self.key("key", key))?;
            }
            "out" | "in" | "both" | "outE" | "inE" | "bothE" => {
                texts.iter().try_for_each(|label| self.key("edge label", label))?;
            }
            _ => {}
        }
        for argument in &step.arguments {
            if let Value::Traversal(nested) = argument {
                self.traversal(nested)?;
            }
        }
        Ok(())
    }

    /// Checks the value of a step `has(key, value)`.
    fn has(&mut self, key: Option<&str>, value: Option<&Value>) -> Result<()> {
        match (key, value.and_then(values::literal_of)) {
            (Some(key), Some(literal)) => self.value(&iri_of(KEY_NAMESPACE, key), &literal, Matching::Value),
            _ => Ok(()),
        }
    }

    /// Checks a label of vertices or, behind `E()`, of edges.
    fn label(&mut self, label: &str) -> Result<()> {
        // Several labels are written as `A::B`.
        for label in label.split("::").filter(|label| !label.is_empty()) {
            let [class, predicate] =
                [LABEL_NAMESPACE, KEY_NAMESPACE].map(|namespace| iri_of(namespace, label));
            // The label of a vertex without a type.
            let is_default = label == "vertex";
            if !self.known.insert(class.clone())
                || is_default
                || self.is_class(&class)?
                || self.is_predicate(&predicate)?
            {
                continue;
            }
            let near = match self.near_class(&class)? {
                None => self.near_predicate(&predicate)?,
                near => near,
            };
            let near = near.map(|near| format!("did you mean \"{}\"?", name_of(&near)));
            self.warn(format!("nothing has the label \"{label}\""), near);
        }
        Ok(())
    }

    fn key(&mut self, what: &str, key: &str) -> Result<()> {
        let iri = iri_of(KEY_NAMESPACE, key);
        if !self.known.insert(iri.clone()) || self.is_predicate(&iri)? {
            return Ok(());
        }
        let near = self.near_predicate(&iri)?.map(|near| format!("did you mean \"{}\"?", name_of(&near)));
        self.warn(format!("nothing has the {what} \"{key}\""), near);
        Ok(())
    }
}

/// The IRI that a Gremlin name maps to.
fn iri_of(namespace: &str, name: &str) -> String {
    if is_iri(name) { name.to_owned() } else { name_iri(namespace, name) }
}

/// The Gremlin name of an IRI: a label or a key.
fn name_of(iri: &str) -> String {
    let name = |namespace| vervet_model::vocab::iri_name(namespace, iri);
    name(KEY_NAMESPACE).or_else(|| name(LABEL_NAMESPACE)).unwrap_or_else(|| iri.to_owned())
}

/// Namespace and local name of an IRI.
fn split(iri: &str) -> (&str, &str) {
    let at = iri.rfind(['#', '/', ':']).map_or(0, |at| at + 1);
    iri.split_at(at)
}

/// An IRI, shortened with a well-known prefix if there is one.
fn shown(iri: &str) -> String {
    let known = vervet_sparql::well_known_prefixes().iter();
    let short = known.filter_map(|(prefix, namespace)| {
        let local = iri.strip_prefix(namespace)?;
        let is_plain =
            !local.is_empty() && local.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        is_plain.then(|| format!("{prefix}:{local}"))
    });
    short.min_by_key(String::len).unwrap_or_else(|| format!("<{iri}>"))
}

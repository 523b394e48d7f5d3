//! Translation of the first steps of a traversal to a query of the algebra, which kernels run.
//!
//! # Shape
//! `V().hasLabel("person").out("knows").out("knows").dedup().count()` is a join of patterns with a distinct
//! and a count above it. [`translate`] takes the longest prefix that has such an equivalent; the other steps
//! consume the rows of the query. The prefix may contain walks along named edges, tests of labels and
//! properties, `where` and `not` of walks, `where(eq("a"))` of vertices (`labels.rs`), `repeat` with a fixed
//! number of rounds (`repeat.rs`), `repeat(both("knows").dedup()).emit().times(3)`, `dedup`, `order` by keys
//! of vertices, `limit`, `count`, `groupCount`, `group` into counts and lists (`gather.rs`), `unfold` after
//! these with tests, `project`, `order` of the entries (`entries.rs`), `as` and `select` of a label.
//! # Invariants
//! Only steps with equal semantics in both languages are translated. [`TranslatedPrefix::is_applicable`]
//! checks the conditions that depend on the graph (a key with several values per vertex, a name that is both
//! a key and an edge label, values that the two languages order differently, language-tagged strings, named
//! graphs); if it fails, the steps run one by one.
//! # Cost
//! All rows are gathered before the next step sees the first: 8 bytes for each needed column.
//! # Source
//! J. Chen et al., "Grasper", SoCC 2019, §4.3: decomposition, reordering, push-down; here by the planner.

mod entries;
mod gather;
mod labels;
pub(crate) mod prefix;
mod repeat;

use crate::context::Settings;
use crate::graph::ids::{is_of_one_vertex, vertex_name};
use crate::graph::literal::literal;
use crate::modulated::Modulated;
use crate::semantic::predicate;
use oxrdf::{NamedNode, Term};
use prefix::{Entries, OutputObject, QueryOutput, Requirements, TranslatedPrefix};
use std::sync::Arc;
use vervet_algebra::{Comparator, Exists, Expression, Form, GraphSlot, Node, Pattern, Query, Slot, Variable};
use vervet_gremlin::{Bytecode, Comparison, Instruction, P, T, Token, Value};
use vervet_model::vocab::{KEY_NAMESPACE, LABEL_NAMESPACE, RDF_TYPE, VERTEX_NAMESPACE, is_iri, name_iri};

/// Maximum number of patterns of one query.
const PATTERNS_MAX: usize = 24;

/// The current object of the traverser.
#[derive(Clone)]
enum CurrentObject {
    Start,
    Vertex(Variable),
    /// An edge; the index of its pattern, and its ends.
    Edge {
        pattern: usize,
        source: Variable,
        target: Variable,
        from: Variable,
    },
    Value(Variable),
}

#[derive(Clone)]
struct Builder {
    variables: usize,
    patterns: Vec<Pattern>,
    /// Walks along edges in both directions.
    unions: Vec<Node>,
    filters: Vec<Expression>,
    /// Start vertices.
    start: Option<(Variable, Vec<Term>)>,
    /// Input of the patterns: distinct vertices.
    base: Option<Node>,
    /// Whether the vertices of `base` are known to exist.
    base_exists: bool,
    /// A complete query, to which no pattern can be joined.
    closed: Option<Node>,
    object: CurrentObject,
    path: Vec<(Variable, Vec<Arc<str>>)>,
    requirements: Requirements,
    names: Vec<Arc<str>>,
    /// Variables of single-valued keys, by vertex and key.
    known: Vec<(Variable, Arc<str>, Variable)>,
    walks: usize,
    /// Whether translation pays off for any number of walks.
    is_profitable: bool,
    output: QueryOutput,
    /// Whether values are distinct as terms but possibly equal as values: two languages, two types.
    distinct_terms: bool,
    entries: Option<Entries>,
    keep_paths: bool,
    /// Whether traversers carry a sack.
    has_sack: bool,
    /// Whether an unproductive `by` yields null.
    productive: bool,
}

/// Translates the longest possible prefix and returns its length. `None`: translation does not pay off.
pub(crate) fn translate(steps: &[Modulated<'_>], settings: &Settings) -> Option<(TranslatedPrefix, usize)> {
    if settings.no_bulk || !may_be_profitable(steps) {
        return None;
    }
    let mut builder = Builder {
        variables: 0,
        patterns: Vec::new(),
        unions: Vec::new(),
        filters: Vec::new(),
        start: None,
        base: None,
        base_exists: false,
        closed: None,
        object: CurrentObject::Start,
        path: Vec::new(),
        requirements: Requirements::default(),
        names: Vec::new(),
        known: Vec::new(),
        walks: 0,
        is_profitable: false,
        output: QueryOutput::Objects,
        distinct_terms: false,
        entries: None,
        keep_paths: settings.paths,
        has_sack: settings.sack.is_some(),
        productive: settings.productive,
    };
    let mut best: Option<(Builder, usize)> = None;
    for (i, step) in steps.iter().enumerate() {
        if builder.step(step).is_none() || builder.patterns.len() + builder.unions.len() > PATTERNS_MAX {
            break;
        }
        if builder.distinct_terms {
            // The step itself merges terms that are one value.
            best = Some((builder.clone(), i));
            break;
        }
        if builder.ends().is_some() {
            best = Some((builder.clone(), i + 1));
        }
        if builder.output != QueryOutput::Objects {
            if let Some(more) = builder.entries(&steps[i + 1..]) {
                best = Some((builder, i + 1 + more));
            }
            break;
        }
    }
    let (builder, taken) = best?;
    // Few steps from given vertices run faster as steps: there is nothing to plan.
    let is_profitable = builder.is_profitable || builder.walks >= if builder.start.is_some() { 2 } else { 1 };
    (is_profitable && taken > 1).then(|| builder.finish()).flatten().map(|prefix| (prefix, taken))
}

/// Cheap precheck of whether translation can pay off. Most light traversals have too few steps, and a trial
/// translation costs half as much as running them.
fn may_be_profitable(steps: &[Modulated<'_>]) -> bool {
    let from_given = steps.first().is_some_and(|step| !step.arguments().is_empty());
    let mut walks = 0;
    for step in steps {
        match step.name() {
            "out" | "in" | "both" | "outE" | "inE" => walks += 1,
            "repeat" | "dedup" | "order" | "group" | "groupCount" | "count" => return true,
            _ => {}
        }
    }
    walks >= if from_given { 2 } else { 1 }
}

fn iri(namespace: &str, name: &str) -> NamedNode {
    NamedNode::new_unchecked(if is_iri(name) { name.to_owned() } else { name_iri(namespace, name) })
}

impl Builder {
    fn fresh(&mut self) -> Option<Variable> {
        let variable = Variable(u16::try_from(self.variables).ok()?);
        self.variables += 1;
        Some(variable)
    }

    fn pattern(&self, subject: Variable, predicate: NamedNode, object: Slot, parallel: bool) -> Pattern {
        Pattern {
            subject: Slot::Variable(subject),
            predicate: Slot::Constant(predicate.into()),
            object,
            graph: GraphSlot::Any,
            edge: None,
            parallel,
        }
    }

    /// Translates one step; `None`: the prefix ends before it.
    fn step(&mut self, step: &Modulated<'_>) -> Option<()> {
        match (step.name(), &self.closed) {
            ("order", None) => return self.order(step),
            ("groupCount", None) => return self.group_count(step),
            ("group", None) => return self.group(step),
            _ => {}
        }
        if !step.bys.is_empty()
            || !step.withs.is_empty()
            || !step.options.is_empty()
            || step.from.is_some()
            || step.to.is_some()
        {
            return None;
        }
        if self.closed.is_some() && !matches!(step.name(), "limit" | "range" | "skip" | "count" | "identity")
        {
            return None;
        }
        if step.name() == "repeat" {
            return self.repeat(step);
        }
        let before = self.current();
        self.instruction(step.instruction)?;
        let after = self.current();
        match (step.name(), after) {
            // An object of the path, whatever its label.
            (
                "V" | "out" | "in" | "both" | "inV" | "outV" | "otherV" | "values" | "select",
                Some(variable),
            ) => {
                self.path.push((variable, step.labels.clone()));
            }
            _ if step.labels.is_empty() => {}
            // Two vertices that are equal share one variable from here on.
            (name, Some(variable)) if before == after || name == "where" => {
                let (_, labels) = self.path.last_mut().filter(|(last, _)| *last == variable)?;
                labels.extend(step.labels.iter().cloned());
            }
            _ => return None,
        }
        Some(())
    }

    fn current(&self) -> Option<Variable> {
        match self.object {
            CurrentObject::Vertex(variable) | CurrentObject::Value(variable) => Some(variable),
            CurrentObject::Start | CurrentObject::Edge { .. } => None,
        }
    }

    /// The current object, if columns can represent it.
    fn ends(&self) -> Option<OutputObject> {
        match self.object {
            CurrentObject::Vertex(one) | CurrentObject::Value(one) => Some(OutputObject::One(one)),
            CurrentObject::Edge { pattern, source, target, .. } => {
                let pattern = self.patterns.get(pattern)?;
                let Some(Slot::Variable(edge)) = pattern.edge else { return None };
                let of =
                    |key: &&Arc<str>| pattern.predicate == Slot::Constant(iri(KEY_NAMESPACE, key).into());
                let label = self.requirements.edge_keys.iter().find(of)?.clone();
                Some(OutputObject::Edge { edge, source, target, label })
            }
            CurrentObject::Start => None,
        }
    }

    /// Whether no later step needs earlier objects of the path.
    fn needs_no_path(&self) -> bool {
        !self.keep_paths && !self.has_sack && self.path.iter().all(|(_, labels)| labels.is_empty())
    }

    /// Makes the distinct vertices of `base` the input of later patterns.
    fn rebase(&mut self, base: Node, current: Variable) {
        // Given ids are not necessarily vertices: the graph may lack them.
        self.base_exists = self.walks > 0 || self.start.is_none() || !self.patterns.is_empty();
        self.base = Some(base);
        self.start = None;
        self.unions.clear();
        self.patterns.clear();
        self.filters.clear();
        self.known.clear();
        self.object = CurrentObject::Vertex(current);
        self.path = vec![(current, Vec::new())];
        self.is_profitable = true;
    }

    /// Edges with a label between two vertices, one solution per edge.
    fn walk(&self, step: &str, label: &str, from: Variable, to: Variable) -> Node {
        let pattern = |source, target| {
            Node::Patterns(vec![self.pattern(
                source,
                iri(KEY_NAMESPACE, label),
                Slot::Variable(target),
                true,
            )])
        };
        match step {
            "out" => pattern(from, to),
            "in" => pattern(to, from),
            _ => Node::Union(vec![pattern(from, to), pattern(to, from)]),
        }
    }

    /// The existing variable for the value of a single-valued key.
    fn known_value(&self, subject: Variable, key: &str) -> Option<Variable> {
        let known = self.known.iter().find(|(vertex, known, _)| *vertex == subject && **known == *key);
        known.map(|(.., value)| *value)
    }

    /// The variable for the value of a single-valued key, created if needed.
    fn single(&mut self, subject: Variable, key: &Arc<str>) -> Option<Variable> {
        if let Some(value) = self.known_value(subject, key) {
            return Some(value);
        }
        let value = self.fresh()?;
        self.requirements.single_keys.push(key.clone());
        self.patterns.push(self.pattern(subject, iri(KEY_NAMESPACE, key), Slot::Variable(value), false));
        self.known.push((subject, key.clone(), value));
        Some(value)
    }

    fn instruction(&mut self, step: &Instruction) -> Option<()> {
        match (&*step.name, step.arguments.as_slice()) {
            ("identity", []) => Some(()),
            ("V", ids) if matches!(self.object, CurrentObject::Start) => self.start_vertices(ids),
            ("out" | "in" | "both", [Value::String(label)]) => {
                let CurrentObject::Vertex(from) = self.object else { return None };
                let to = self.fresh()?;
                match &*step.name {
                    "out" => self.edges(label, from, to),
                    "in" => self.edges(label, to, from),
                    _ => {
                        self.requirements.edge_keys.push(label.clone());
                        self.unions.push(self.walk("both", label, from, to));
                        self.walks += 1;
                    }
                }
                self.object = CurrentObject::Vertex(to);
                Some(())
            }
            ("outE" | "inE", [Value::String(label)]) if !self.keep_paths => {
                let CurrentObject::Vertex(from) = self.object else { return None };
                let to = self.fresh()?;
                let (source, target) = if &*step.name == "outE" { (from, to) } else { (to, from) };
                self.edges(label, source, target);
                self.object = CurrentObject::Edge { pattern: self.patterns.len() - 1, source, target, from };
                Some(())
            }
            ("inV" | "outV" | "otherV", []) => {
                let CurrentObject::Edge { source, target, from, .. } = self.object else { return None };
                self.object = CurrentObject::Vertex(match &*step.name {
                    "inV" => target,
                    "outV" => source,
                    _ if from == source => target,
                    _ => source,
                });
                Some(())
            }
            ("hasId", [Value::P(test)]) => self.has_id(test),
            ("hasLabel", [Value::String(label)])
            | ("has", [Value::Token(Token::T(T::Label)), Value::String(label)]) => self.has_label(label),
            ("has", [Value::String(label), Value::String(key), test]) => {
                self.has_label(label)?;
                self.has(key, test)
            }
            ("has", [Value::String(key), test]) => self.has(key, test),
            ("values", [Value::String(key)]) => self.values(key),
            ("where" | "filter", [Value::Traversal(traversal)]) => {
                let exists = self.exists(traversal)?;
                self.filters.push(exists);
                Some(())
            }
            ("where", [Value::P(test)]) => self.compare_labelled(None, test),
            ("where", [Value::String(label), Value::P(test)]) => self.compare_labelled(Some(label), test),
            ("not", [Value::Traversal(traversal)]) => {
                let exists = self.exists(traversal)?;
                self.filters.push(Expression::Not(Box::new(exists)));
                Some(())
            }
            ("select", [Value::String(label)]) => {
                self.object = self.labelled(label)?;
                Some(())
            }
            ("dedup", []) => self.dedup(),
            ("limit", [count]) => self.slice(0, Some(count.as_integer()?)),
            ("skip", [from]) => self.slice(from.as_integer()?, None),
            ("range", [from, to]) => {
                let (from, to) = (from.as_integer()?, to.as_integer()?);
                self.slice(from, if to == -1 { None } else { Some(to.checked_sub(from)?) })
            }
            ("count", []) => {
                // Statistics or kernels answer this; steps would visit each vertex.
                let is_profitable = self.is_profitable || self.is_of_vertices();
                let count = self.count_of(Vec::new())?;
                self.is_profitable = is_profitable;
                self.path = vec![(count, Vec::new())];
                self.output = QueryOutput::Count;
                Some(())
            }
            _ => None,
        }
    }

    /// `V()`, with ids or without.
    fn start_vertices(&mut self, ids: &[Value]) -> Option<()> {
        let variable = self.fresh()?;
        if !ids.is_empty() {
            let mut terms = Vec::new();
            for id in ids {
                if matches!(id, Value::Null | Value::Vertex(_) | Value::List(_)) {
                    return None;
                }
                let name = vertex_name(id).ok().filter(|name| !name.starts_with("_:"))?;
                terms.push(iri(VERTEX_NAMESPACE, &name).into());
            }
            self.start = Some((variable, terms));
        }
        self.object = CurrentObject::Vertex(variable);
        Some(())
    }

    /// A walk along the edges with a label.
    fn edges(&mut self, label: &Arc<str>, source: Variable, target: Variable) {
        self.requirements.edge_keys.push(label.clone());
        let pattern = self.pattern(source, iri(KEY_NAMESPACE, label), Slot::Variable(target), true);
        self.patterns.push(pattern);
        self.walks += 1;
    }

    /// A test of the id that only one vertex can have.
    fn has_id(&mut self, test: &P) -> Option<()> {
        let CurrentObject::Vertex(vertex) = self.object else { return None };
        let P::Compare(comparison @ (Comparison::Eq | Comparison::Neq), Value::String(id)) = test else {
            return None;
        };
        if !is_of_one_vertex(id) {
            return None;
        }
        let id = Expression::Constant(iri(VERTEX_NAMESPACE, id).into());
        let same = Expression::SameTerm(Box::new(Expression::Variable(vertex)), Box::new(id));
        self.filters.push(match comparison {
            Comparison::Eq => same,
            _ => Expression::Not(Box::new(same)),
        });
        Some(())
    }

    /// A test of the label.
    fn has_label(&mut self, label: &Arc<str>) -> Option<()> {
        let CurrentObject::Vertex(vertex) = self.object else { return None };
        if &**label == "vertex" || label.contains("::") {
            return None;
        }
        let predicate = NamedNode::new_unchecked(RDF_TYPE);
        let object = Slot::Constant(iri(LABEL_NAMESPACE, label).into());
        self.patterns.push(self.pattern(vertex, predicate, object, false));
        Some(())
    }

    /// The values of a key.
    fn values(&mut self, key: &Arc<str>) -> Option<()> {
        let CurrentObject::Vertex(vertex) = self.object else { return None };
        self.requirements.value_keys.push(key.clone());
        if let Some(value) = self.known_value(vertex, key) {
            self.object = CurrentObject::Value(value);
            return Some(());
        }
        let value = self.fresh()?;
        self.patterns.push(self.pattern(vertex, iri(KEY_NAMESPACE, key), Slot::Variable(value), true));
        self.object = CurrentObject::Value(value);
        Some(())
    }

    fn dedup(&mut self) -> Option<()> {
        let current = self.current()?;
        if self.keep_paths || self.path.iter().any(|(_, labels)| !labels.is_empty()) {
            return None;
        }
        if !self.is_bound() {
            // `V()` alone has each vertex once, and no pattern whose solutions could be distinct.
            return self.filters.is_empty().then_some(());
        }
        let found = distinct(self.node(), current);
        let is_profitable = self.is_profitable;
        if let (CurrentObject::Vertex(_), false) = (&self.object, self.has_sack) {
            self.rebase(found, current);
            self.is_profitable = is_profitable;
        } else {
            self.closed = Some(found);
            self.path = vec![(current, Vec::new())];
            self.distinct_terms = matches!(self.object, CurrentObject::Value(_));
        }
        Some(())
    }

    /// A test of a property.
    fn has(&mut self, key: &Arc<str>, test: &Value) -> Option<()> {
        let subject = match self.object {
            CurrentObject::Vertex(vertex) => vertex,
            CurrentObject::Edge { pattern, .. } => {
                // Only edges with an identity have properties.
                let known = self.patterns.get(pattern)?.edge.clone();
                match known {
                    Some(Slot::Variable(edge)) => edge,
                    _ => {
                        let edge = self.fresh()?;
                        self.patterns.get_mut(pattern)?.edge = Some(Slot::Variable(edge));
                        edge
                    }
                }
            }
            _ => return None,
        };
        let test = predicate(test);
        let predicate = iri(KEY_NAMESPACE, key);
        if let P::Compare(Comparison::Eq, value @ (Value::String(_) | Value::Boolean(_))) = &test {
            self.requirements.value_keys.push(key.clone());
            self.requirements.compared.push((key.clone(), value.clone()));
            let object = Slot::Constant(literal(value).ok()?.into());
            self.patterns.push(self.pattern(subject, predicate, object, false));
            return Some(());
        }
        let value = self.single(subject, key)?;
        self.filters.push(condition(&test, value)?);
        self.compare(key, &test)
    }

    /// Records the strings that a key is compared with. `None`: the test needs an order of strings, which
    /// SPARQL defines for plain strings only.
    fn compare(&mut self, key: &Arc<str>, test: &P) -> Option<()> {
        let is_text = |value: &Value| matches!(value, Value::String(_));
        if let P::Compare(_, value) | P::Inside(value, _) | P::Between(value, _) = test
            && value.is_number()
        {
            self.requirements.number_keys.push(key.clone());
        }
        let texts: &[Value] = match test {
            P::And(parts) => return parts.iter().try_for_each(|part| self.compare(key, part)),
            P::Within(values) | P::Without(values) if values.iter().any(Value::is_number) => {
                self.requirements.number_keys.push(key.clone());
                values
            }
            P::Compare(Comparison::Eq | Comparison::Neq, value) => std::slice::from_ref(value),
            P::Within(values) => values,
            P::Compare(_, value) if is_text(value) => return None,
            P::Inside(low, high) | P::Between(low, high) if is_text(low) || is_text(high) => return None,
            _ => &[],
        };
        let texts = texts.iter().filter(|value| is_text(value));
        self.requirements.compared.extend(texts.map(|text| (key.clone(), text.clone())));
        Some(())
    }

    /// An existence condition for a walk.
    fn exists(&mut self, traversal: &Bytecode) -> Option<Expression> {
        let (vertex, steps) = match (&self.object, traversal.steps.split_first()) {
            (&CurrentObject::Vertex(vertex), _) => (vertex, traversal.steps.as_slice()),
            // From an edge: the walk starts at its ends.
            (&CurrentObject::Edge { source, target, .. }, Some((end, rest))) if end.arguments.is_empty() => {
                match &*end.name {
                    "outV" => (source, rest),
                    "inV" => (target, rest),
                    _ => return None,
                }
            }
            _ => return None,
        };
        let mut inner = Self {
            object: CurrentObject::Vertex(vertex),
            patterns: Vec::new(),
            unions: Vec::new(),
            filters: Vec::new(),
            start: None,
            base: None,
            base_exists: false,
            closed: None,
            path: Vec::new(),
            known: Vec::new(),
            ..self.clone()
        };
        for instruction in steps {
            if !matches!(
                &*instruction.name,
                "out"
                    | "in"
                    | "both"
                    | "outE"
                    | "inE"
                    | "inV"
                    | "outV"
                    | "has"
                    | "hasLabel"
                    | "hasId"
                    | "values"
            ) {
                return None;
            }
            inner.instruction(instruction)?;
        }
        if inner.patterns.is_empty() && inner.unions.is_empty() {
            return None;
        }
        self.variables = inner.variables;
        self.requirements.edge_keys.clone_from(&inner.requirements.edge_keys);
        self.requirements.single_keys.clone_from(&inner.requirements.single_keys);
        self.requirements.value_keys.clone_from(&inner.requirements.value_keys);
        self.requirements.compared.clone_from(&inner.requirements.compared);
        self.requirements.number_keys.clone_from(&inner.requirements.number_keys);
        let pattern = inner.node();
        Some(Expression::Exists(Box::new(Exists { pattern, outer: vec![vertex] })))
    }

    /// Whether a pattern binds the current vertex. A query with filters must bind it before it is closed: a
    /// later walk is not part of it.
    fn is_bound(&self) -> bool {
        self.base.is_some() || self.start.is_some() || !self.patterns.is_empty() || !self.unions.is_empty()
    }

    /// The query of the steps translated so far.
    fn node(&self) -> Node {
        if let Some(closed) = &self.closed {
            return closed.clone();
        }
        let mut node = Node::Patterns(self.patterns.clone());
        let mut parts: Vec<Node> = self.base.iter().cloned().collect();
        if let Some((variable, terms)) = &self.start {
            let rows = terms.iter().map(|term| vec![Some(term.clone())]).collect();
            parts.push(Node::Values { variables: vec![*variable], rows });
        }
        parts.extend(self.unions.iter().cloned());
        if !parts.is_empty() {
            if !self.patterns.is_empty() {
                parts.push(node);
            }
            node = if parts.len() == 1 { parts.remove(0) } else { Node::Join(parts) };
        }
        if let Some(condition) = match self.filters.as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            many => Some(Expression::And(many.to_vec())),
        } {
            node = Node::Filter { input: Box::new(node), condition };
        }
        node
    }

    fn finish(self) -> Option<TranslatedPrefix> {
        let current = self.ends()?;
        let mut wanted = match &current {
            OutputObject::One(current) => vec![*current],
            OutputObject::Edge { edge, source, target, .. } => vec![*edge, *source, *target],
        };
        let columns = self.entries.iter().flat_map(|entries| &entries.columns);
        for column in columns.map(|(column, _)| *column).chain(self.output.key()) {
            if !wanted.contains(&column) {
                wanted.push(column);
            }
        }
        for (variable, labels) in &self.path {
            if (self.keep_paths || !labels.is_empty()) && !wanted.contains(variable) {
                wanted.push(*variable);
            }
        }
        let path = match self.keep_paths {
            true => self.path.clone(),
            false => self.path.iter().filter(|(_, labels)| !labels.is_empty()).cloned().collect(),
        };
        let query = Query {
            form: Form::Select(wanted),
            root: self.node(),
            variables: vec![String::new(); self.variables],
            parameters: Vec::new(),
        };
        let labels_alone = self.walks == 0 && self.start.is_none() && self.base.is_none();
        let requirements = Requirements { labels_alone, ..self.requirements };
        Some(TranslatedPrefix {
            query,
            path,
            current,
            output: self.output,
            entries: self.entries,
            requirements,
            names: self.names,
        })
    }
}

/// The distinct values of a variable.
fn distinct(input: Node, variable: Variable) -> Node {
    Node::Distinct(Box::new(Node::Project { input: Box::new(input), variables: vec![variable] }))
}

/// A predicate as a condition on a variable; `None`: the algebra has no equivalent.
fn condition(test: &P, variable: Variable) -> Option<Expression> {
    let value = || Box::new(Expression::Variable(variable));
    let constant = |value: &Value| {
        let comparable = value.is_number() || matches!(value, Value::String(_) | Value::Boolean(_));
        let finite = !matches!(value, Value::Double(n) if !n.is_finite())
            && !matches!(value, Value::Float(n) if !n.is_finite());
        (comparable && finite)
            .then(|| literal(value).ok())
            .flatten()
            .map(|l| Box::new(Expression::Constant(l.into())))
    };
    let compare =
        |comparator, other: &Value| Some(Expression::Compare(comparator, value(), constant(other)?));
    Some(match test {
        P::Compare(Comparison::Eq, other) => Expression::Equal(value(), constant(other)?),
        // In Gremlin, values of other types are unequal; in the algebra the comparison would be an error.
        P::Compare(Comparison::Neq, other @ Value::String(_)) => {
            Expression::Not(Box::new(Expression::SameTerm(value(), constant(other)?)))
        }
        P::Compare(Comparison::Neq, _) => return None,
        P::Compare(Comparison::Lt, other) => compare(Comparator::Less, other)?,
        P::Compare(Comparison::Lte, other) => compare(Comparator::LessOrEqual, other)?,
        P::Compare(Comparison::Gt, other) => compare(Comparator::Greater, other)?,
        P::Compare(Comparison::Gte, other) => compare(Comparator::GreaterOrEqual, other)?,
        P::Inside(low, high) => {
            Expression::And(vec![compare(Comparator::Greater, low)?, compare(Comparator::Less, high)?])
        }
        P::Between(low, high) => {
            Expression::And(vec![compare(Comparator::GreaterOrEqual, low)?, compare(Comparator::Less, high)?])
        }
        P::Within(values) if values.iter().all(|value| matches!(value, Value::String(_))) => {
            let values = values.iter().map(|value| Some(*constant(value)?));
            Expression::In(value(), values.collect::<Option<_>>()?)
        }
        P::And(parts) => {
            Expression::And(parts.iter().map(|part| condition(part, variable)).collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

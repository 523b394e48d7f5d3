//! Source steps: `V`, `E`, `inject`.
//!
//! # Shape
//! `V` and `E` list elements by id, label, property value, property key, or all. `V` and `E` absorb the `has`
//! steps after them as conditions; the most selective condition is answered by an index.

use crate::compile::Compiler;
use crate::condition::Condition;
use crate::context::Context;
use crate::graph::read::{
    edge_predicates, edge_value, is_of_one_type, is_vertex, labels_of, objects_equal, vertex_value,
};
use crate::graph::scan::{EdgeScan, KeyScan, ObjectScan, VertexScan, edge_count};
use crate::graph::{ids, literal};
use crate::modulated::Modulated;
use crate::step::{Input, Step};
use crate::traverser::{Traverser, is_start};
use std::collections::VecDeque;
use std::sync::Arc;
use vervet_gremlin::{Comparison, P, Value};
use vervet_model::{Direction, Error, Id, Result, Tag};

pub(crate) fn build(step: &Modulated<'_>, first: bool, compiler: &mut Compiler) -> Result<Box<dyn Step>> {
    let arguments = step.arguments();
    Ok(match step.name() {
        "inject" => Box::new(Inject {
            values: arguments.to_vec(),
            at: 0,
            behind: first && compiler.is_nested(),
            input: VecDeque::new(),
        }),
        name => {
            let mut wanted = Vec::new();
            for argument in arguments {
                match argument {
                    // A single list argument is the list of ids; null matches nothing.
                    Value::List(values) => wanted.extend(values.iter().cloned()),
                    Value::Set(values) => wanted.extend(values.iter().cloned()),
                    value => wanted.push(value.clone()),
                }
            }
            let mut conditions = Vec::new();
            if let Some(strategy) = match name {
                "V" => compiler.strategies.vertices.clone(),
                _ => compiler.strategies.edges.clone(),
            } {
                conditions.push(Condition::Traversal(compiler.strategy_test(&strategy)?));
            }
            if name == "E"
                && !compiler.strategies.free_edges
                && let Some(strategy) = compiler.strategies.vertices.clone()
            {
                let test = Condition::Traversal(compiler.strategy_test(&strategy)?);
                conditions.push(Condition::Ends(Box::new(test)));
            }
            Box::new(Elements {
                vertices: name == "V",
                by_id: (!arguments.is_empty()).then_some(wanted),
                conditions,
                state: State::New,
                from: None,
                ready: VecDeque::new(),
            })
        }
    })
}

#[derive(Clone)]
struct Inject {
    values: Vec<Value>,
    at: usize,
    /// Whether the values follow the input (in a nested traversal).
    behind: bool,
    input: VecDeque<Traverser>,
}

impl Step for Inject {
    fn next(&mut self, input: &mut Input<'_>, context: &mut Context<'_>) -> Result<Option<Traverser>> {
        // The source provides one initial traverser, which is dropped. In the middle of a traversal the
        // values precede the input.
        if self.at == 0
            && let Some(first) = input.next(context)?
            && !matches!(&first.value, Value::Token(_) if is_start(&first.value))
        {
            self.input.push_back(first);
        }
        if self.behind
            && let Some(first) = self.input.pop_front()
        {
            return Ok(Some(first));
        }
        if let Some(value) = self.values.get(self.at) {
            self.at += 1;
            let mut traverser = Traverser::new(value.clone());
            traverser.sack = context.settings.sack.clone().map(Box::new);
            if context.settings.paths {
                traverser.extend_path(&Vec::new().into(), &context.memory)?;
            }
            return Ok(Some(traverser));
        }
        self.at = self.at.max(1);
        match self.input.pop_front() {
            Some(waiting) => Ok(Some(waiting)),
            None => input.next(context),
        }
    }

    fn reset(&mut self) {
        self.at = 0;
        self.input.clear();
    }

    fn moves(&self) -> bool {
        // New traversers have their path; passed traversers keep theirs.
        false
    }
}

/// The `V` and `E` steps.
#[derive(Clone)]
struct Elements {
    vertices: bool,
    by_id: Option<Vec<Value>>,
    conditions: Vec<Condition>,
    state: State,
    from: Option<Traverser>,
    ready: VecDeque<Value>,
}

#[derive(Clone)]
enum State {
    /// Not listed yet for this traverser.
    New,
    /// All elements are in `ready`.
    Listed,
    Vertices(VertexScan),
    Edges(EdgeScan),
    /// Scan by a required key.
    Keyed(KeyScan),
    /// Scan by a required label or value.
    Having(ObjectScan),
}

impl Elements {
    /// Starts the scan for one traverser.
    fn begin(&mut self, context: &mut Context<'_>) -> Result<State> {
        let Self { vertices, by_id, conditions, ready, .. } = self;
        let vertices = *vertices;
        if let Some(wanted) = by_id {
            context.read(|snapshot, names| {
                ready.clear();
                for id in wanted.iter() {
                    if vertices {
                        let found = match id {
                            Value::Vertex(vertex) if vertex.key != 0 => Some(Id::from_bits(vertex.key)),
                            Value::Vertex(vertex) => ids::find_vertex(snapshot, vertex.id())?,
                            id => ids::find_vertex(snapshot, id)?,
                        };
                        if let Some(found) = found
                            && is_vertex(snapshot, names, found)?
                        {
                            ready.push_back(vertex_value(found.bits()));
                        }
                    } else {
                        let found = match id {
                            Value::Edge(edge) if edge.key.is_known() => Some(edge.key),
                            Value::Edge(edge) => ids::find_edge(snapshot, names, edge.id())?,
                            id => ids::find_edge(snapshot, names, id)?,
                        };
                        ready.extend(found.map(edge_value));
                    }
                }
                Ok(())
            })?;
            return Ok(State::Listed);
        }
        let tag = if vertices { Tag::Vertex } else { Tag::Edge };
        // An equality on an indexed key, else a label.
        for condition in conditions.iter() {
            if let Condition::Property(key, P::Compare(Comparison::Eq, value)) = condition
                && literal::is_indexed(value)
                && !context.names.computed.has(key)
            {
                let found = context.read(|snapshot, names| objects_equal(snapshot, names, key, value))?;
                return Ok(found.map_or(State::Listed, |(predicate, objects)| {
                    State::Having(ObjectScan::new(predicate, objects, tag))
                }));
            }
        }
        for condition in conditions.iter() {
            let Condition::Label(labels) = condition else { continue };
            if !vertices {
                let only = context.read(|snapshot, names| edge_predicates(snapshot, names, labels))?;
                return Ok(State::Edges(EdgeScan::new(Some(only))));
            }
            // Indexes exclude the default label and joined labels.
            if labels.iter().all(|label| is_of_one_type(label)) {
                let found = context.read(|snapshot, names| labels_of(snapshot, names, labels))?;
                return Ok(found.map_or(State::Listed, |(types, labels)| {
                    State::Having(ObjectScan::new(types, labels, tag))
                }));
            }
        }
        let rarest = rarest_key(conditions, context)?;
        Ok(match rarest {
            Some(None) => State::Listed,
            Some(Some(predicate)) => State::Keyed(KeyScan::new(predicate, tag)),
            None if vertices => State::Vertices(VertexScan::default()),
            None => State::Edges(EdgeScan::new(None)),
        })
    }

    /// Lists the next elements, possibly none; `false`: the scan is complete.
    fn next_batch(&mut self, context: &mut Context<'_>) -> Result<bool> {
        let Self { state, ready, .. } = self;
        match state {
            State::New | State::Listed => Ok(false),
            State::Vertices(scan) => {
                let mut found = Vec::new();
                let more = context.read(|snapshot, names| scan.next_batch(snapshot, names, &mut found))?;
                ready.extend(found.into_iter().map(|id| vertex_value(id.bits())));
                Ok(more)
            }
            State::Keyed(_) | State::Having(_) => {
                let vertices = self.vertices;
                context.read(|snapshot, names| {
                    let mut found = Vec::new();
                    let more = match state {
                        State::Keyed(scan) => scan.next_batch(snapshot, &mut found)?,
                        State::Having(scan) => scan.next_batch(snapshot, &mut found)?,
                        _ => false,
                    };
                    names.ahead.found(found.iter().copied());
                    for id in found {
                        if vertices {
                            ready.push_back(vertex_value(id.bits()));
                        } else {
                            ready.extend(ids::known_edge(snapshot, id)?.map(edge_value));
                        }
                    }
                    Ok(more)
                })
            }
            State::Edges(scan) => {
                let mut found = Vec::new();
                let more = context.read(|snapshot, names| scan.next_batch(snapshot, names, &mut found))?;
                ready.extend(found.into_iter().map(edge_value));
                Ok(more)
            }
        }
    }
}

/// The required key with the fewest elements; `Some(None)`: a required key that no element has; `None`: no
/// key is required.
fn rarest_key(conditions: &[Condition], context: &mut Context<'_>) -> Result<Option<Option<Id>>> {
    let mut rarest: Option<(u64, Option<Id>)> = None;
    for condition in conditions {
        let (Condition::Key(key) | Condition::Property(key, _) | Condition::PropertyTraversal(key, _)) =
            condition
        else {
            continue;
        };
        if context.names.computed.has(key) {
            continue;
        }
        let found = context.read(|snapshot, names| {
            let Some(predicate) = names.key(snapshot, key)? else { return Ok((0, None)) };
            let segment = snapshot.segment(predicate, Direction::Out)?;
            Ok((segment.map_or(0, |segment| segment.statistics().keys), Some(predicate)))
        })?;
        if rarest.is_none_or(|(keys, _)| found.0 < keys) {
            rarest = Some(found);
        }
    }
    Ok(rarest.map(|(_, predicate)| predicate))
}

impl Step for Elements {
    fn next(&mut self, input: &mut Input<'_>, context: &mut Context<'_>) -> Result<Option<Traverser>> {
        loop {
            while let (Some(from), Some(value)) = (&self.from, self.ready.pop_front()) {
                context.tick()?;
                let next = from.at(value);
                let mut passes = true;
                for condition in &mut self.conditions {
                    if !condition.test(&next, context)? {
                        passes = false;
                        break;
                    }
                }
                if passes {
                    return Ok(Some(next));
                }
            }
            if self.from.is_some() {
                // A chunk may be empty.
                context.tick()?;
                if self.next_batch(context)? {
                    continue;
                }
            }
            let Some(traverser) = input.next(context)? else {
                self.from = None;
                return Ok(None);
            };
            self.state = self.begin(context)?;
            self.from = Some(traverser);
        }
    }

    fn reset(&mut self) {
        self.state = State::New;
        self.from = None;
        self.ready.clear();
    }

    fn moves(&self) -> bool {
        true
    }

    fn absorb(&mut self, filter: Condition) -> Option<Condition> {
        self.conditions.push(filter);
        None
    }

    fn count(&self) -> Option<Box<dyn Step>> {
        if self.vertices || self.by_id.is_some() {
            return None;
        }
        let labels = match self.conditions.as_slice() {
            [] => None,
            [Condition::Label(labels)] => Some(labels.clone()),
            _ => return None,
        };
        Some(Box::new(EdgeCount { labels }))
    }
}

/// The number of edges, optionally with one of these labels.
#[derive(Clone)]
struct EdgeCount {
    labels: Option<Vec<Arc<str>>>,
}

impl Step for EdgeCount {
    fn next(&mut self, input: &mut Input<'_>, context: &mut Context<'_>) -> Result<Option<Traverser>> {
        if input.next(context)?.is_none() {
            return Ok(None);
        }
        let control = context.control;
        let count = context.read(|snapshot, names| {
            let only = match &self.labels {
                Some(labels) => Some(edge_predicates(snapshot, names, labels)?),
                None => None,
            };
            edge_count(snapshot, names, only.as_deref(), &mut || control.check())
        })?;
        let count = i64::try_from(count).map_err(|_| Error::internal("a graph has more edges than ids"))?;
        Ok(Some(Traverser::new(Value::Long(count))))
    }

    fn moves(&self) -> bool {
        true
    }
}

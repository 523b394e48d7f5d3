//! Walk steps between vertices and edges: `out`, `inE`, `otherV`, ….

use super::make;
use crate::bulk::Bulk;
use crate::compile::Compiler;
use crate::condition::Condition;
use crate::context::Context;
use crate::fusion::{EdgeWalkPart, FusedStep};
use crate::graph::read::{edge_value, edges, is_of_one_type, neighbours, retain_labelled, vertex_value};
use crate::memory::Reservation;
use crate::modulated::Modulated;
use crate::step::{Input, Step};
use crate::traverser::Traverser;
use std::sync::Arc;
use vervet_gremlin::{Direction, Token, Value};
use vervet_model::{Error, ErrorKind, Id, Result};

/// Neighbours listed between two limit checks.
const NEIGHBOURS_TOGETHER: usize = 1 << 9;
/// Accounted size of an edge key.
const EDGE_BYTES: u64 = 40;

pub(crate) fn build(step: &Modulated<'_>, compiler: &mut Compiler) -> Result<Box<dyn Step>> {
    let labels = step.texts();
    // Null is a label without edges.
    let nothing = labels.is_empty()
        && !step.arguments().is_empty()
        && step.arguments().iter().all(|argument| matches!(argument, Value::Null));
    let direction = step.arguments().iter().find_map(|argument| match argument {
        Value::Token(Token::Direction(direction)) => Some(*direction),
        _ => None,
    });
    let ends = match step.name() {
        "out" | "outE" | "outV" => Direction::Out,
        "in" | "inE" | "inV" => Direction::In,
        "to" | "toE" | "toV" => direction.unwrap_or(Direction::Both),
        _ => Direction::Both,
    };
    Ok(match step.name() {
        "out" | "in" | "both" | "to" => vertices(ends, labels, nothing, compiler)?,
        "outE" | "inE" | "bothE" | "toE" => incident(ends, labels, nothing, compiler)?,
        "outV" | "inV" | "bothV" | "toV" => endpoints(ends, compiler)?,
        _ => other(compiler)?,
    })
}

/// The conditions of `SubgraphStrategy` on vertices and edges.
fn conditions(compiler: &mut Compiler) -> Result<(Option<Condition>, Option<Condition>)> {
    let (vertices, edges) = (compiler.strategies.vertices.clone(), compiler.strategies.edges.clone());
    let mut of = |traversal: Option<vervet_gremlin::Bytecode>| -> Result<Option<Condition>> {
        let Some(traversal) = traversal else { return Ok(None) };
        Ok(Some(Condition::Traversal(compiler.strategy_test(&traversal)?)))
    };
    Ok((of(vertices)?, of(edges)?))
}

fn expected(what: &str, value: &Value, name: &str) -> Error {
    let message = format!("{name} needs {what}, found a {}", value.type_name());
    Error::new(ErrorKind::Query, message)
}

fn vertices(
    ends: Direction,
    labels: Vec<Arc<str>>,
    nothing: bool,
    compiler: &mut Compiler,
) -> Result<Box<dyn Step>> {
    let (vertex_test, edge_test) = conditions(compiler)?;
    if vertex_test.is_none() && edge_test.is_none() {
        return Ok(Box::new(Neighbours {
            ends,
            labels,
            nothing,
            types: Vec::new(),
            from: None,
            found: Vec::new(),
            next: 0,
            held: Reservation::default(),
        }));
    }
    let (mut vertex_test, mut edge_test) = (vertex_test, edge_test);
    Ok(make::flat_map(move |traverser, context, out| {
        let Value::Vertex(vertex) = &traverser.value else {
            return Err(expected("a vertex", &traverser.value, "a step to neighbours"));
        };
        if nothing {
            return Ok(());
        }
        let mut found = Vec::new();
        let (memory, mut held) = (context.memory.clone(), Reservation::default());
        for ends in single(ends) {
            context.read(|snapshot, names| {
                edges(snapshot, names, vertex.key, *ends, &labels, &mut |edge| {
                    found.push((edge, *ends));
                    held.add(EDGE_BYTES, &memory)?;
                    memory.control.work(8)
                })
            })?;
        }
        for (edge, ends) in found {
            let other = if ends == Direction::Out { edge.target } else { edge.source };
            if let Some(test) = &mut edge_test
                && !test.test(&traverser.at(edge_value(edge)), context)?
            {
                continue;
            }
            let other = vertex_value(other);
            if let Some(test) = &mut vertex_test
                && !test.test(&traverser.at(other.clone()), context)?
            {
                continue;
            }
            out.push_back(other);
        }
        Ok(())
    }))
}

/// A walk to neighbours, with fused `hasLabel` filters.
#[derive(Clone)]
struct Neighbours {
    ends: Direction,
    labels: Vec<Arc<str>>,
    nothing: bool,
    /// Fused label filters: each list must contain a label of the neighbour.
    types: Vec<Vec<Arc<str>>>,
    from: Option<Traverser>,
    found: Vec<Id>,
    next: usize,
    /// Counts `found`.
    held: Reservation,
}

impl Neighbours {
    /// Lists neighbours. Labels are tested in a batch, unless reads are recorded.
    fn list(&mut self, vertex: u64, context: &mut Context<'_>) -> Result<()> {
        let tracks_read_set = context.host.tracks_read_set();
        let (found, types) = (&mut self.found, if tracks_read_set { &[][..] } else { &self.types });
        let (ends, labels) = (self.ends, &self.labels);
        let (memory, held) = (context.memory.clone(), &mut self.held);
        context.read(|snapshot, names| {
            found.clear();
            neighbours(snapshot, names, vertex, ends, labels, &mut |key| {
                found.push(Id::from_bits(key));
                if found.len().is_multiple_of(NEIGHBOURS_TOGETHER) {
                    memory.control.work(8 * NEIGHBOURS_TOGETHER)?;
                    held.set(8 * found.len() as u64, &memory)?;
                }
                Ok(())
            })?;
            types.iter().try_for_each(|labels| retain_labelled(snapshot, names, labels, found))
        })
    }

    fn passes(&self, vertex: Id, context: &mut Context<'_>) -> Result<bool> {
        if self.types.is_empty() || !context.host.tracks_read_set() {
            return Ok(true);
        }
        context.read(|snapshot, names| {
            let mut one = vec![vertex];
            self.types.iter().try_for_each(|labels| retain_labelled(snapshot, names, labels, &mut one))?;
            Ok(!one.is_empty())
        })
    }
}

impl Step for Neighbours {
    fn next(&mut self, input: &mut Input<'_>, context: &mut Context<'_>) -> Result<Option<Traverser>> {
        loop {
            while let (Some(from), Some(&vertex)) = (&self.from, self.found.get(self.next)) {
                self.next += 1;
                if self.passes(vertex, context)? {
                    return Ok(Some(from.at(vertex_value(vertex.bits()))));
                }
            }
            let Some(traverser) = input.next(context)? else { return Ok(None) };
            let Value::Vertex(vertex) = &traverser.value else {
                return Err(expected("a vertex", &traverser.value, "a step to neighbours"));
            };
            self.found.clear();
            self.held.clear();
            self.next = 0;
            if !self.nothing {
                self.list(vertex.key, context)?;
            }
            self.from = Some(traverser);
        }
    }

    fn reset(&mut self) {
        self.from = None;
        self.found.clear();
        self.held.clear();
        self.next = 0;
    }

    fn moves(&self) -> bool {
        true
    }

    fn absorb(&mut self, filter: Condition) -> Option<Condition> {
        match filter {
            Condition::Label(labels) if labels.iter().all(|label| is_of_one_type(label)) => {
                self.types.push(labels);
                None
            }
            filter => Some(filter),
        }
    }

    fn fused_steps(&self) -> Option<Vec<FusedStep>> {
        if self.nothing {
            return None;
        }
        let walk = FusedStep::Walk { ends: self.ends, labels: self.labels.clone() };
        Some([walk].into_iter().chain(self.types.iter().cloned().map(FusedStep::Labelled)).collect())
    }
}

/// A step to edges, or from edges to their ends, with its parameters.
#[derive(Clone)]
struct EdgeStep {
    step: Box<dyn Step>,
    ends: Direction,
    /// The labels of a step to edges; `None`: a step from edges.
    labels: Option<Vec<Arc<str>>>,
}

impl Step for EdgeStep {
    fn next(&mut self, input: &mut Input<'_>, context: &mut Context<'_>) -> Result<Option<Traverser>> {
        self.step.next(input, context)
    }

    fn reset(&mut self) {
        self.step.reset();
    }

    fn moves(&self) -> bool {
        self.step.moves()
    }

    fn edge_walk_part(&self) -> Option<EdgeWalkPart<'_>> {
        Some(match &self.labels {
            Some(labels) => EdgeWalkPart::Edges { ends: self.ends, labels },
            None => EdgeWalkPart::Ends(self.ends),
        })
    }
}

fn single(ends: Direction) -> &'static [Direction] {
    match ends {
        Direction::Out => &[Direction::Out],
        Direction::In => &[Direction::In],
        Direction::Both => &[Direction::Out, Direction::In],
    }
}

fn incident(
    ends: Direction,
    labels: Vec<Arc<str>>,
    nothing: bool,
    compiler: &mut Compiler,
) -> Result<Box<dyn Step>> {
    let (mut vertex_test, mut edge_test) = conditions(compiler)?;
    let free_edges = compiler.strategies.free_edges;
    let all_labels = labels.clone();
    let step = make::flat_map(move |traverser, context, out| {
        let Value::Vertex(vertex) = &traverser.value else {
            return Err(expected("a vertex", &traverser.value, "a step to edges"));
        };
        if nothing {
            return Ok(());
        }
        if vertex_test.is_none() && edge_test.is_none() {
            let memory = context.memory.clone();
            return context.read(|snapshot, names| {
                out.clear();
                edges(snapshot, names, vertex.key, ends, &labels, &mut |edge| {
                    out.push(edge_value(edge), Bulk::ONE, &memory)
                })
            });
        }
        let mut found = Vec::new();
        let (memory, mut held) = (context.memory.clone(), Reservation::default());
        context.read(|snapshot, names| {
            found.clear();
            edges(snapshot, names, vertex.key, ends, &labels, &mut |edge| {
                found.push(edge);
                held.add(EDGE_BYTES, &memory)?;
                memory.control.work(8)
            })
        })?;
        'edges: for edge in found {
            if let Some(test) = &mut edge_test
                && !test.test(&traverser.at(edge_value(edge)), context)?
            {
                continue;
            }
            if let Some(test) = vertex_test.as_mut().filter(|_| !free_edges) {
                // An edge is visible only if both ends are.
                for end in [edge.source, edge.target] {
                    if !test.test(&traverser.at(vertex_value(end)), context)? {
                        continue 'edges;
                    }
                }
            }
            out.push_back(edge_value(edge));
        }
        Ok(())
    });
    Ok(if nothing { step } else { Box::new(EdgeStep { step, ends, labels: Some(all_labels) }) })
}

fn endpoints(ends: Direction, compiler: &mut Compiler) -> Result<Box<dyn Step>> {
    let (mut vertex_test, _) = conditions(compiler)?;
    let step = make::flat_map(move |traverser, context, out| {
        let Value::Edge(edge) = &traverser.value else {
            return Err(expected("an edge", &traverser.value, "a step to the ends of an edge"));
        };
        for ends in single(ends) {
            let key = if *ends == Direction::Out { edge.key.source } else { edge.key.target };
            let vertex = vertex_value(key);
            if let Some(test) = &mut vertex_test
                && !test.test(&traverser.at(vertex.clone()), context)?
            {
                continue;
            }
            out.push_back(vertex);
        }
        Ok(())
    });
    Ok(Box::new(EdgeStep { step, ends, labels: None }))
}

fn other(compiler: &mut Compiler) -> Result<Box<dyn Step>> {
    let (mut vertex_test, _) = conditions(compiler)?;
    Ok(make::flat_map(move |traverser, context, out| {
        let Value::Edge(edge) = &traverser.value else {
            return Err(expected("an edge", &traverser.value, "otherV()"));
        };
        // The vertex before this edge in the path.
        let from = traverser.backwards().find_map(|(value, _)| match value {
            Value::Vertex(vertex) => Some(vertex.key),
            _ => None,
        });
        let other = if from == Some(edge.key.source) { edge.key.target } else { edge.key.source };
        let vertex = vertex_value(other);
        if let Some(test) = &mut vertex_test
            && !test.test(&traverser.at(vertex.clone()), context)?
        {
            return Ok(());
        }
        out.push_back(vertex);
        Ok(())
    }))
}

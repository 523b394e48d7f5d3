//! Edge selection and limits of graph algorithms.

use crate::compile::Compiler;
use crate::context::Context;
use crate::graph::read::vertex_value;
use crate::memory::Reservation;
use crate::outputs::Outputs;
use crate::step::Pipeline;
use crate::traverser::{Traverser, start_value};
use std::sync::Arc;
use vervet_graph::algorithm::{Follow, Network, ResourceLimits};
use vervet_gremlin::{Bytecode, Direction, EdgeKey, Instruction, Token, Value};
use vervet_model::{Error, ErrorKind, Id, Result};

/// See the header of this file.
#[derive(Clone)]
pub(super) enum Arcs {
    /// Edges with one of these labels (empty: any label).
    Labels(Follow, Vec<Arc<str>>),
    /// Edges that a traversal returns for a vertex, and a traversal that returns all vertices.
    Traversal { edges: Pipeline, vertices: Pipeline },
}

pub(super) fn follow(direction: Direction) -> Follow {
    match direction {
        Direction::Out => Follow::Out,
        Direction::In => Follow::In,
        Direction::Both => Follow::Both,
    }
}

impl Arcs {
    /// Edges with these labels that strategies leave visible.
    pub(super) fn new(follow: Follow, labels: Vec<Arc<str>>, compiler: &mut Compiler) -> Result<Self> {
        if compiler.strategies.is_plain() {
            return Ok(Self::Labels(follow, labels));
        }
        let name = match follow {
            Follow::Out => "outE",
            Follow::In => "inE",
            Follow::Both => "bothE",
        };
        let labels = labels.into_iter().map(Value::String).collect();
        Self::walked(&Bytecode { source: Vec::new(), steps: vec![Instruction::new(name, labels)] }, compiler)
    }

    /// Edges that a traversal returns for a vertex.
    pub(super) fn of_traversal(traversal: &Bytecode, compiler: &mut Compiler) -> Result<Self> {
        if let ([], [one]) = (traversal.source.as_slice(), traversal.steps.as_slice())
            && let Some((follow, labels)) = named(one)
        {
            return Self::new(follow, labels, compiler);
        }
        Self::walked(traversal, compiler)
    }

    fn walked(traversal: &Bytecode, compiler: &mut Compiler) -> Result<Self> {
        let all = Bytecode { source: Vec::new(), steps: vec![Instruction::new("V", Vec::new())] };
        Ok(Self::Traversal { edges: compiler.nested(traversal)?, vertices: compiler.nested(&all)? })
    }

    /// All vertices, with arcs along the selected edges.
    pub(super) fn network(&mut self, context: &mut Context<'_>) -> Result<Network> {
        let limits = limits(context);
        let (edges, vertices) = match self {
            Self::Labels(follow, labels) => {
                return context.read(|snapshot, _| Network::read(snapshot, labels, *follow, &limits));
            }
            Self::Traversal { edges, vertices } => (edges, vertices),
        };
        let (mut all, mut held): (Vec<Id>, Reservation) = (Vec::new(), Reservation::default());
        vertices.reset();
        vertices.start(Traverser::new(start_value()), context)?;
        while let Some(next) = vertices.next(context)? {
            if let Value::Vertex(vertex) = next.value {
                held.add(8, &context.memory)?;
                all.push(Id::from_bits(vertex.key));
            }
        }
        all.sort_unstable();
        all.dedup();
        let mut arcs = Vec::new();
        for (number, vertex) in (0_u32..).zip(&all) {
            for edge in of_vertex(edges, vertex.bits(), context)? {
                let other = Id::from_bits(other_end(edge, vertex.bits()));
                // A strategy hides an end that is not among the vertices.
                if let Some(target) =
                    all.binary_search(&other).ok().and_then(|place| u32::try_from(place).ok())
                {
                    held.add(8, &context.memory)?;
                    arcs.push([number, target]);
                }
            }
        }
        Network::new(all, &arcs, &limits)
    }
}

/// The labels of a traversal such as `outE("knows")`.
fn named(step: &Instruction) -> Option<(Follow, Vec<Arc<str>>)> {
    let (follow, labels) = match (&*step.name, step.arguments.as_slice()) {
        ("outE", labels) => (Follow::Out, labels),
        ("inE", labels) => (Follow::In, labels),
        ("bothE", labels) => (Follow::Both, labels),
        ("toE", [Value::Token(Token::Direction(direction)), labels @ ..]) => (follow(*direction), labels),
        _ => return None,
    };
    let labels: Option<Vec<Arc<str>>> = labels
        .iter()
        .map(|label| match label {
            Value::String(label) => Some(label.clone()),
            _ => None,
        })
        .collect();
    Some((follow, labels?))
}

/// The other end of an edge.
pub(super) fn other_end(edge: EdgeKey, vertex: u64) -> u64 {
    if edge.target == vertex { edge.source } else { edge.target }
}

/// An initial traverser for a traversal in an option.
pub(super) fn beginning(value: Value, context: &Context<'_>) -> Result<Traverser> {
    let mut traverser = Traverser::new(value);
    if context.settings.paths || context.settings.labels {
        traverser.extend_path(&Vec::new().into(), &context.memory)?;
    }
    Ok(traverser)
}

/// The edges that a traversal returns for a vertex.
pub(super) fn of_vertex(
    edges: &mut Pipeline,
    vertex: u64,
    context: &mut Context<'_>,
) -> Result<Vec<EdgeKey>> {
    let start = beginning(vertex_value(vertex), context)?;
    let (mut found, mut all) = (Vec::new(), Outputs::default());
    edges.all(&start, &mut all, context)?;
    // Repeated edges count once: algorithms ignore multiplicities.
    while let Some((value, _)) = all.pop() {
        match value {
            Value::Edge(edge) => found.push(edge.key),
            other => {
                let message =
                    format!("the edges of an algorithm must be edges, found a {}", other.type_name());
                return Err(Error::new(ErrorKind::Query, message).with_hint("such as __.outE(\"knows\")"));
            }
        }
    }
    Ok(found)
}

/// The limits of an algorithm.
pub(super) fn limits<'c>(context: &Context<'c>) -> ResourceLimits<'c> {
    ResourceLimits { control: context.control, threads: context.host.threads() }
}

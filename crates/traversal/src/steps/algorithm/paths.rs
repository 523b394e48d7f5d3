//! `shortestPath`: all shortest paths from the current vertices.

use super::edges::{Arcs, beginning, limits, of_vertex, other_end};
use super::options::Options;
use crate::compile::Compiler;
use crate::context::Context;
use crate::graph::read::{edge_value, values, vertex_value};
use crate::memory::Reservation;
use crate::modulated::Modulated;
use crate::queue::Queue;
use crate::semantic::to_f64;
use crate::step::{Input, Pipeline, Step};
use crate::traverser::Traverser;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use vervet_graph::algorithm::{ArcSource, Follow, PathOptions, SegmentArcs, ShortestPaths, WeightedArc};
use vervet_graph::{Edge, Vertex};
use vervet_gremlin::{EdgeKey, Path, Value};
use vervet_model::{Error, ErrorKind, Id, Result};

pub(super) fn build(step: &Modulated<'_>, compiler: &mut Compiler) -> Result<Box<dyn Step>> {
    let known = ["target", "edges", "distance", "maxDistance", "includeEdges"];
    let options = Options::of(step, "ShortestPath", &known)?;
    let target = match options.get("target") {
        None => None,
        Some(Some(Value::Traversal(traversal))) => Some(compiler.nested(traversal)?),
        Some(_) => return options.wrong("target", "a Traversal"),
    };
    let distance = match options.get("distance") {
        None => Distance::Arcs,
        Some(Some(Value::String(key))) => Distance::Key(key.clone()),
        Some(Some(Value::Traversal(traversal))) => Distance::Traversal(compiler.nested(traversal)?),
        Some(_) => return options.wrong("distance", "a Traversal or a property name"),
    };
    let distance_max = match options.get("maxDistance") {
        None => f64::INFINITY,
        Some(value) => match value.and_then(to_f64).filter(|number| !number.is_nan()) {
            Some(number) => number,
            None => return options.wrong("maxDistance", "a Number"),
        },
    };
    let edges = match options.get("includeEdges") {
        None => false,
        Some(None) => true,
        Some(Some(Value::Boolean(on))) => *on,
        Some(_) => return options.wrong("includeEdges", "a Boolean"),
    };
    let arcs = options.arcs(Follow::Both, compiler)?;
    let weighted = !matches!(distance, Distance::Arcs);
    let options = PathOptions { weighted, distance_max, edges };
    Ok(Box::new(Paths { arcs, distance, target, options, ready: Queue::default() }))
}

/// The length of an edge.
#[derive(Clone)]
enum Distance {
    /// 1 per edge.
    Arcs,
    /// The value of this key; 0 if missing.
    Key(Arc<str>),
    /// The first result of a traversal; 0 if there is none.
    Traversal(Pipeline),
}

#[derive(Clone)]
struct Paths {
    arcs: Arcs,
    distance: Distance,
    target: Option<Pipeline>,
    options: PathOptions,
    ready: Queue,
}

impl Paths {
    /// Finds the shortest paths of all traversers.
    fn find(&mut self, from: Vec<Traverser>, context: &mut Context<'_>) -> Result<()> {
        let Self { arcs, distance, target, options, ready } = self;
        let limits = limits(context);
        let include = options.edges;
        let steps = Steps { context, arcs, distance, edges: include };
        let mut search = ShortestPaths::new(steps, *options, limits);
        let mut known: FxHashMap<Id, bool> = FxHashMap::default();
        for traverser in from {
            let Value::Vertex(source) = &traverser.value else {
                let message =
                    format!("shortestPath() begins at vertices, found a {}", traverser.value.type_name());
                return Err(Error::new(ErrorKind::Query, message));
            };
            let mut is_target = |steps: &mut Steps<'_, '_>, vertex: Id| -> Result<bool> {
                let Some(target) = target else { return Ok(true) };
                if let Some(known) = known.get(&vertex) {
                    return Ok(*known);
                }
                let start = beginning(vertex_value(vertex.bits()), steps.context)?;
                let passes = target.test(&start, steps.context)?;
                known.insert(vertex, passes);
                Ok(passes)
            };
            search.from(Id::from_bits(source.key), &mut is_target, &mut |steps, found| {
                let mut objects = Vec::with_capacity(found.vertices.len() + found.edges.len());
                for (i, vertex) in found.vertices.iter().enumerate() {
                    if let Some(edge) = i.checked_sub(1).and_then(|i| found.edges.get(i)).filter(|_| include)
                    {
                        objects.push(edge_value(key_of(edge)));
                    }
                    objects.push(vertex_value(vertex.bits()));
                }
                let labels = vec![Vec::new(); objects.len()];
                let path = Value::Path(Arc::new(Path { objects, labels }));
                ready.push(traverser.at(path), &steps.context.memory)
            })?;
        }
        Ok(())
    }
}

impl Step for Paths {
    fn next(&mut self, input: &mut Input<'_>, context: &mut Context<'_>) -> Result<Option<Traverser>> {
        if self.ready.is_empty() {
            let (mut all, mut held) = (Vec::new(), Reservation::default());
            while let Some(traverser) = input.next(context)? {
                held.add_traverser(&traverser, &context.memory)?;
                all.push(traverser);
            }
            self.find(all, context)?;
        }
        Ok(self.ready.pop())
    }

    fn reset(&mut self) {
        self.ready.clear();
    }

    fn moves(&self) -> bool {
        true
    }
}

fn key_of(edge: &Edge) -> EdgeKey {
    EdgeKey {
        edge: edge.id().map_or(0, Id::bits),
        source: edge.source.id().bits(),
        label: edge.label_id().bits(),
        target: edge.target.id().bits(),
    }
}

/// The arcs of vertices, from segments where possible.
struct Steps<'s, 'c> {
    context: &'s mut Context<'c>,
    arcs: &'s mut Arcs,
    distance: &'s mut Distance,
    edges: bool,
}

impl Steps<'_, '_> {
    fn length(&mut self, edge: EdgeKey) -> Result<f64> {
        let found = match self.distance {
            Distance::Arcs => return Ok(1.0),
            Distance::Key(key) => {
                let (element, keys) = (edge_value(edge), [key.clone()]);
                self.context.read(|snapshot, names| {
                    let mut first = None;
                    values(snapshot, names, &element, &keys, &mut |value| {
                        first.get_or_insert(value);
                    })?;
                    Ok(first)
                })?
            }
            Distance::Traversal(traversal) => {
                let start = beginning(edge_value(edge), self.context)?;
                traversal.first(&start, self.context)?
            }
        };
        let Some(value) = found else { return Ok(0.0) };
        to_f64(&value).ok_or_else(|| {
            let message = format!("the distance of an edge must be a number, found a {}", value.type_name());
            Error::new(ErrorKind::Query, message)
        })
    }
}

impl ArcSource for Steps<'_, '_> {
    fn arcs(&mut self, vertices: &[Id], add: &mut dyn FnMut(usize, WeightedArc)) -> Result<()> {
        let key = match self.distance {
            Distance::Arcs => Some(None),
            Distance::Key(key) => Some(Some(key.clone())),
            Distance::Traversal(_) => None,
        };
        if let (Arcs::Labels(follow, labels), Some(key)) = (&*self.arcs, key) {
            let edges = self.edges;
            return self.context.read(|snapshot, _| {
                SegmentArcs::new(snapshot, labels, *follow, key.as_deref(), edges)?.arcs(vertices, add)
            });
        }
        for (row, vertex) in vertices.iter().enumerate() {
            let found = match self.arcs {
                Arcs::Traversal { edges, .. } => of_vertex(edges, vertex.bits(), self.context)?,
                Arcs::Labels(follow, labels) => {
                    let ends = match follow {
                        Follow::Out => vervet_gremlin::Direction::Out,
                        Follow::In => vervet_gremlin::Direction::In,
                        Follow::Both => vervet_gremlin::Direction::Both,
                    };
                    let control = self.context.control;
                    self.context.read(|snapshot, names| {
                        let mut found = Vec::new();
                        let add = &mut |edge| {
                            found.push(edge);
                            control.work(8)
                        };
                        crate::graph::read::edges(snapshot, names, vertex.bits(), ends, labels, add)?;
                        Ok(found)
                    })?
                }
            };
            for edge in found {
                let distance = self.length(edge)?;
                let to = Id::from_bits(other_end(edge, vertex.bits()));
                let ends = [edge.source, edge.target].map(|end| Vertex::from_id(Id::from_bits(end)));
                if let [Some(source), Some(target)] = ends {
                    let id = Id::from_bits(edge.edge);
                    let edge = Edge::from_ids(source, Id::from_bits(edge.label), target, id);
                    add(row, WeightedArc { to, edge, distance });
                }
            }
        }
        Ok(())
    }
}

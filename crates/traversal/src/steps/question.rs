//! Whether anything comes of a traversal: what `choose`, `where`, `filter`, `not`, `and` and `or` ask of each
//! traverser.
//!
//! # Shape
//! The steps of the traversal, asked for one result. If they are walks along named edges that end at one
//! known vertex (`both("knows").both("knows").hasId(person)`), the vertices of which the answer is yes are
//! found once, from that vertex backwards; what is left for each traverser is one look-up in a set.
//! # Cost
//! The set may have [`VERTICES_MIN`] vertices and [`VERTICES_EACH`] for each traverser that has asked. If
//! that is too few, traversers are answered by walking from them, and the set is tried again when four times
//! as many have asked.
//! # Invariants
//! A change of the graph makes the set anew. Who remembers what is read (a serializable transaction that may
//! be in conflict with others) goes forwards only, and so does a set of more than [`VERTICES_MAX`] vertices.
//! # Source
//! The planner does the same for queries, as a semi-join; J. Chen et al., "Grasper", SoCC 2019, §4.3,
//! decomposes such walks.

use super::chain::{Link, links_of_all};
use super::has::is_of_one_vertex;
use crate::compile::{Compiler, Modulated};
use crate::context::Context;
use crate::graph::ids::find_vertex;
use crate::graph::read::neighbours;
use crate::memory::Held;
use crate::step::Pipeline;
use crate::traverser::Traverser;
use rustc_hash::FxHashSet;
use std::rc::Rc;
use std::sync::Arc;
use vervet_gremlin::{Bytecode, Direction, Value};
use vervet_model::Result;

/// Vertices of a set, on the way to it too, for the first traverser.
const VERTICES_MIN: usize = 1 << 10;
/// For each that has asked since.
const VERTICES_EACH: usize = 1 << 6;
/// Vertices of any set.
const VERTICES_MAX: usize = 1 << 18;

/// See the header of this file.
#[derive(Clone)]
pub(crate) struct Question {
    steps: Pipeline,
    end: Option<End>,
    asked: usize,
}

/// The vertex where the walks end.
#[derive(Clone)]
struct End {
    id: Value,
    /// From there, the last walk first.
    walks: Vec<(Direction, Vec<Arc<str>>)>,
    from: Option<Found>,
}

/// The vertices from which the walks lead there; `None`: too many for so many traversers. As of so many
/// changes of the graph.
#[derive(Clone)]
struct Found {
    changes: u64,
    asked: usize,
    vertices: Option<Rc<FxHashSet<u64>>>,
    /// Counts the vertices for as long as they are here.
    _held: Held,
}

impl Question {
    pub(crate) fn new(traversal: &Bytecode, compiler: &mut Compiler) -> Result<Self> {
        let steps = compiler.nested(traversal)?;
        Ok(Self::about(traversal, steps, compiler))
    }

    /// The same of all arguments of a step; what is no traversal is answered with yes.
    pub(crate) fn of_all(step: &Modulated<'_>, compiler: &mut Compiler) -> Result<Vec<Self>> {
        let all = compiler.traversals(step.instruction)?;
        let of = |(steps, argument): (Pipeline, &Value)| match argument {
            Value::Traversal(traversal) => Self::about(traversal, steps, compiler),
            _ => Self::of_steps(steps),
        };
        Ok(all.into_iter().zip(step.arguments()).map(of).collect())
    }

    /// A question about a traversal, of which these are the steps.
    pub(crate) fn about(traversal: &Bytecode, steps: Pipeline, compiler: &Compiler) -> Self {
        let end = if compiler.strategies.is_plain() { end_of(traversal) } else { None };
        Self { end, ..Self::of_steps(steps) }
    }

    /// A question of these steps.
    pub(crate) fn of_steps(steps: Pipeline) -> Self {
        Self { steps, end: None, asked: 0 }
    }

    /// The traversal as a chain, if it is one that is better walked from here.
    pub(crate) fn links(&mut self) -> Option<Vec<Link>> {
        if self.end.is_some() { None } else { links_of_all(&mut self.steps.nodes) }
    }

    /// The answer for a traverser.
    pub(crate) fn test(&mut self, traverser: &Traverser, context: &mut Context<'_>) -> Result<bool> {
        if let (Some(end), Value::Vertex(vertex)) = (&mut self.end, &traverser.value)
            && !context.host.remembers_reads()
        {
            self.asked = self.asked.saturating_add(1);
            if let Some(vertices) = end.vertices(self.asked, context)? {
                return Ok(vertices.contains(&vertex.key));
            }
        }
        self.steps.test(traverser, context)
    }
}

impl End {
    fn vertices(&mut self, asked: usize, context: &mut Context<'_>) -> Result<Option<Rc<FxHashSet<u64>>>> {
        let changes = context.host.changes();
        if let Some(found) = &self.from
            && found.changes == changes
            && (found.vertices.is_some() || asked < 4 * found.asked)
        {
            return Ok(found.vertices.clone());
        }
        let most = (VERTICES_MIN + asked.saturating_mul(VERTICES_EACH)).min(VERTICES_MAX);
        self.from = None;
        let vertices = self.walk(most, context)?.map(Rc::new);
        let mut held = Held::default();
        held.add(vertices.as_ref().map_or(0, |all| 16 * all.len() as u64), &context.memory)?;
        self.from = Some(Found { changes, asked, vertices: vertices.clone(), _held: held });
        Ok(vertices)
    }

    fn walk(&self, most: usize, context: &mut Context<'_>) -> Result<Option<FxHashSet<u64>>> {
        let end = context.read(|snapshot, _| find_vertex(snapshot, &self.id))?;
        let mut reached: FxHashSet<u64> = end.map(vervet_model::Id::bits).into_iter().collect();
        for (ends, labels) in &self.walks {
            let mut next = FxHashSet::default();
            for &vertex in &reached {
                let control = context.control;
                context.read(|snapshot, names| {
                    neighbours(snapshot, names, vertex, *ends, labels, &mut |key| {
                        next.insert(key);
                        control.work(1)
                    })
                })?;
                context.tick()?;
                if next.len() > most {
                    return Ok(None);
                }
            }
            reached = next;
        }
        Ok(Some(reached))
    }
}

/// The end of a traversal that is walks to one vertex.
fn end_of(traversal: &Bytecode) -> Option<End> {
    let (last, walks) = traversal.steps.split_last()?;
    let ("hasId", [id @ Value::String(text)]) = (&*last.name, last.arguments.as_slice()) else { return None };
    if walks.is_empty() || !is_of_one_vertex(text) {
        return None;
    }
    let reversed = |step: &vervet_gremlin::Instruction| {
        let ends = match &*step.name {
            "out" => Direction::In,
            "in" => Direction::Out,
            "both" => Direction::Both,
            _ => return None,
        };
        let label = |argument: &Value| match argument {
            Value::String(label) => Some(label.clone()),
            _ => None,
        };
        let labels: Vec<Arc<str>> = step.arguments.iter().map(label).collect::<Option<_>>()?;
        Some((ends, labels))
    };
    let walks = walks.iter().rev().map(reversed).collect::<Option<_>>()?;
    Some(End { id: id.clone(), walks, from: None })
}

//! Existence tests: whether a nested traversal has a result for a traverser, for `choose`, `where`, `filter`,
//! `not`, `and` and `or`.
//!
//! # Shape
//! By default the nested steps run until their first result. If they are walks along named edges that end at
//! one known vertex (`both("knows").both("knows").hasId(person)`), the test becomes a semi-join: a backward
//! search from that vertex computes the set of matching vertices once, and each traverser costs one set
//! look-up.
//! # Cost
//! The search may visit [`VERTICES_MIN`] vertices, plus [`VERTICES_EACH`] for each tested traverser. If it
//! exceeds this budget, traversers are tested by forward walks, and the search is retried after four times as
//! many tests.
//! # Invariants
//! A change of the graph invalidates the set. With recorded reads (a serializable transaction that may
//! conflict with others), and for sets of more than [`VERTICES_MAX`] vertices, only forward walks are used.
//! # Source
//! The planner does the same for queries, as a semi-join; J. Chen et al., "Grasper", SoCC 2019, §4.3,
//! decomposes such walks.

use crate::compile::Compiler;
use crate::context::Context;
use crate::fusion::FusedStep;
use crate::graph::ids::{find_vertex, is_of_one_vertex};
use crate::graph::read::neighbours;
use crate::memory::Reservation;
use crate::modulated::Modulated;
use crate::step::Pipeline;
use crate::traverser::Traverser;
use rustc_hash::FxHashSet;
use std::rc::Rc;
use std::sync::Arc;
use vervet_gremlin::{Bytecode, Direction, Value};
use vervet_model::Result;

/// Vertex budget of the search for the first traverser, including intermediate vertices.
const VERTICES_MIN: usize = 1 << 10;
/// Additional budget per tested traverser.
const VERTICES_EACH: usize = 1 << 6;
/// Maximum number of vertices of a set.
const VERTICES_MAX: usize = 1 << 18;

/// See the header of this file.
#[derive(Clone)]
pub(crate) struct SubqueryFilter {
    steps: Pipeline,
    end: Option<EndVertex>,
    tests: usize,
}

/// The known end vertex of the walks.
#[derive(Clone)]
struct EndVertex {
    id: Value,
    /// The walks from the end vertex, in reverse order.
    walks: Vec<(Direction, Vec<Arc<str>>)>,
    from: Option<MatchingVertices>,
}

/// The set of matching vertices, for one version of the graph; `None`: the budget was exceeded.
#[derive(Clone)]
struct MatchingVertices {
    changes: u64,
    tests: usize,
    vertices: Option<Rc<FxHashSet<u64>>>,
    /// Counts the set during its lifetime.
    _held: Reservation,
}

impl SubqueryFilter {
    pub(crate) fn new(traversal: &Bytecode, compiler: &mut Compiler) -> Result<Self> {
        let steps = compiler.nested(traversal)?;
        Ok(Self::of_traversal(traversal, steps, compiler))
    }

    /// The tests of all arguments of a step; an argument that is not a traversal always passes.
    pub(crate) fn of_all(step: &Modulated<'_>, compiler: &mut Compiler) -> Result<Vec<Self>> {
        let all = compiler.traversals(step.instruction)?;
        let of = |(steps, argument): (Pipeline, &Value)| match argument {
            Value::Traversal(traversal) => Self::of_traversal(traversal, steps, compiler),
            _ => Self::of_steps(steps),
        };
        Ok(all.into_iter().zip(step.arguments()).map(of).collect())
    }

    /// The test of a traversal compiled to `steps`.
    pub(crate) fn of_traversal(traversal: &Bytecode, steps: Pipeline, compiler: &Compiler) -> Self {
        let end = if compiler.strategies.is_plain() { end_of(traversal) } else { None };
        Self { end, ..Self::of_steps(steps) }
    }

    /// The test of a pipeline.
    pub(crate) fn of_steps(steps: Pipeline) -> Self {
        Self { steps, end: None, tests: 0 }
    }

    /// The traversal as a fused pipeline, unless a backward search is possible.
    pub(crate) fn fused_steps(&self) -> Option<Vec<FusedStep>> {
        if self.end.is_some() { None } else { self.steps.fused_steps() }
    }

    /// Tests a traverser.
    pub(crate) fn test(&mut self, traverser: &Traverser, context: &mut Context<'_>) -> Result<bool> {
        if let (Some(end), Value::Vertex(vertex)) = (&mut self.end, &traverser.value)
            && !context.host.tracks_read_set()
        {
            self.tests = self.tests.saturating_add(1);
            if let Some(vertices) = end.vertices(self.tests, context)? {
                return Ok(vertices.contains(&vertex.key));
            }
        }
        self.steps.test(traverser, context)
    }
}

impl EndVertex {
    fn vertices(&mut self, tests: usize, context: &mut Context<'_>) -> Result<Option<Rc<FxHashSet<u64>>>> {
        let changes = context.host.changes();
        if let Some(found) = &self.from
            && found.changes == changes
            && (found.vertices.is_some() || tests < 4 * found.tests)
        {
            return Ok(found.vertices.clone());
        }
        let budget = (VERTICES_MIN + tests.saturating_mul(VERTICES_EACH)).min(VERTICES_MAX);
        self.from = None;
        let vertices = self.walk(budget, context)?.map(Rc::new);
        let mut held = Reservation::default();
        held.add(vertices.as_ref().map_or(0, |all| 16 * all.len() as u64), &context.memory)?;
        self.from = Some(MatchingVertices { changes, tests, vertices: vertices.clone(), _held: held });
        Ok(vertices)
    }

    fn walk(&self, budget: usize, context: &mut Context<'_>) -> Result<Option<FxHashSet<u64>>> {
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
                if next.len() > budget {
                    return Ok(None);
                }
            }
            reached = next;
        }
        Ok(Some(reached))
    }
}

/// The known end of a traversal that consists of walks to one vertex.
fn end_of(traversal: &Bytecode) -> Option<EndVertex> {
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
    Some(EndVertex { id: id.clone(), walks, from: None })
}

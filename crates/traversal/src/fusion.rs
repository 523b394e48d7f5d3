//! Descriptions of steps, by which other steps absorb, fuse or replace them without their concrete types.
//!
//! # Shape
//! [`Test`] is a pure filter. [`FusedStep`] is the form of a walk or a filter in a fused pipeline, which
//! `steps/fused.rs` executes. [`EdgeWalkPart`] is the part of a step in `outE(…).has(…).inV()`.

use crate::context::Context;
use crate::traverser::Traverser;
use std::sync::Arc;
use vervet_gremlin::{Direction, P};
use vervet_model::Result;

/// A pure filter.
pub(crate) trait Test: TestClone {
    fn test(&mut self, traverser: &Traverser, context: &mut Context<'_>) -> Result<bool>;

    /// The filter as fused steps; `None`: it has no such form.
    fn fused_steps(&self) -> Option<Vec<FusedStep>> {
        None
    }

    /// The part of the filter in a walk along edges; `None`: it has none.
    fn edge_walk_part(&self) -> Option<EdgeWalkPart<'_>> {
        None
    }
}

/// Clones boxed filters without their concrete type.
pub(crate) trait TestClone {
    fn boxed(&self) -> Box<dyn Test>;
}

impl<T: Test + Clone + 'static> TestClone for T {
    fn boxed(&self) -> Box<dyn Test> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Test> {
    fn clone(&self) -> Self {
        (**self).boxed()
    }
}

/// A fused step of a fused pipeline.
#[derive(Clone)]
pub(crate) enum FusedStep {
    /// A walk to neighbours.
    Walk { ends: Direction, labels: Vec<Arc<str>> },
    /// A walk along edges whose properties satisfy tests.
    FilteredWalk { ends: Direction, labels: Vec<Arc<str>>, tests: Vec<(Arc<str>, P)> },
    /// A filter: one of these labels.
    Labelled(Vec<Arc<str>>),
    /// A filter: that many of these fused pipelines have a result.
    Exists { branches: Vec<Vec<FusedStep>>, connective: Connective },
    /// A filter: a value of this key satisfies the predicate.
    Property(Arc<str>, P),
    /// A filter that tests ids one by one.
    Test(Box<dyn Test>),
}

/// Number of traversals that must have a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Connective {
    All,
    Any,
    None,
}

/// The part of a step in a walk along edges: `outE("knows").has("since", 2010).inV()`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EdgeWalkPart<'s> {
    /// The step to edges with these labels (empty: any label).
    Edges { ends: Direction, labels: &'s [Arc<str>] },
    /// A filter: a value of this key satisfies the predicate.
    Property(&'s Arc<str>, &'s P),
    /// The step from edges to these ends.
    Ends(Direction),
}

//! The `Step` trait, and pipelines of steps with pull-based execution.
//!
//! # Shape
//! A pipeline is a list of steps. A pull of the last step pulls from the step before it when it needs input,
//! so evaluation is lazy; barriers consume their whole input at once. Nested traversals are pipelines inside
//! steps: a step puts a traverser in and pulls the results.
//! # Invariants
//! 1. A step that outputs a new object is `moves()`: the pipeline appends its output to the path.
//! 2. `reset` restores the initial state of a pipeline. State across a whole traversal (`dedup` in a
//!    `repeat`) lasts until `reset`.

use crate::condition::Condition;
use crate::context::Context;
use crate::fusion::{EdgeWalkPart, FusedStep, Test};
use crate::outputs::Outputs;
use crate::queue::Queue;
use crate::traverser::{Labels, Traverser};
use std::sync::Arc;
use vervet_algebra::Query;
use vervet_gremlin::Value;
use vervet_model::Result;

/// A step of a running traversal.
pub(crate) trait Step: StepClone {
    /// The next traverser. `None`: the input is exhausted; a later call may return more if the input has
    /// received more.
    fn next(&mut self, input: &mut Input<'_>, context: &mut Context<'_>) -> Result<Option<Traverser>>;

    /// Restores the initial state.
    fn reset(&mut self) {}

    /// Whether the outputs are new objects of the path.
    fn moves(&self) -> bool;

    /// Takes over a filter of its outputs, before it has run. Returns a filter that it cannot test.
    fn absorb(&mut self, filter: Condition) -> Option<Condition> {
        Some(filter)
    }

    /// The step as fused steps; `None`: it has no such form.
    fn fused_steps(&self) -> Option<Vec<FusedStep>> {
        None
    }

    /// Whether the step is a fused pipeline.
    fn is_fused_pipeline(&self) -> bool {
        false
    }

    /// The part of the step in a walk along edges; `None`: it has none.
    fn edge_walk_part(&self) -> Option<EdgeWalkPart<'_>> {
        None
    }

    /// A step that outputs the number of the outputs without a list of them, if there is one.
    fn count(&self) -> Option<Box<dyn Step>> {
        None
    }

    /// The query that kernels run for the step.
    fn query(&self) -> Option<&Query> {
        None
    }
}

/// Clones boxed steps without their concrete type.
pub(crate) trait StepClone {
    fn boxed(&self) -> Box<dyn Step>;
}

impl<S: Step + Clone + 'static> StepClone for S {
    fn boxed(&self) -> Box<dyn Step> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Step> {
    fn clone(&self) -> Self {
        (**self).boxed()
    }
}

/// A step in a pipeline.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) step: Box<dyn Step>,
    pub(crate) labels: Labels,
    pub(crate) moves: bool,
    /// The text of its instruction, for `explain` and `profile`.
    pub(crate) text: Arc<str>,
    /// Output counters, while the traversal is profiled.
    pub(crate) meter: Option<Box<Meter>>,
}

/// Output counts and time of a step.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meter {
    pub(crate) traversers: u64,
    pub(crate) elements: u128,
    /// Inclusive of the steps before it.
    pub(crate) nanoseconds: u64,
}

/// The input of a step: the steps before it.
pub(crate) struct Input<'a> {
    nodes: &'a mut [Node],
    starts: &'a mut Queue,
}

impl Input<'_> {
    /// The next traverser of the input.
    pub(crate) fn next(&mut self, context: &mut Context<'_>) -> Result<Option<Traverser>> {
        context.tick()?;
        let Some((last, before)) = self.nodes.split_last_mut() else { return Ok(self.starts.pop()) };
        let mut input = Input { nodes: before, starts: self.starts };
        last.next(&mut input, context)
    }
}

impl Node {
    fn next(&mut self, input: &mut Input<'_>, context: &mut Context<'_>) -> Result<Option<Traverser>> {
        let started = self.meter.is_some().then(std::time::Instant::now);
        let next = self.step.next(input, context)?;
        if let (Some(meter), Some(started)) = (&mut self.meter, started) {
            meter.nanoseconds += u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
            if let Some(next) = &next {
                meter.traversers += 1;
                meter.elements += next.bulk.wide();
            }
        }
        let Some(mut next) = next else { return Ok(None) };
        if self.moves {
            crate::size::check(&next.value, context.control)?;
            if context.settings.paths || (context.settings.labels && !self.labels.is_empty()) {
                next.extend_path(&self.labels, &context.memory)?;
            }
        } else if !self.labels.is_empty() && (context.settings.paths || context.settings.labels) {
            if context.settings.paths {
                next.label_path(&self.labels, &context.memory)?;
            } else {
                // Without whole paths, the last object of the path may be an older one.
                next.extend_path(&self.labels, &context.memory)?;
            }
        }
        Ok(Some(next))
    }
}

/// A sequence of steps, with the input of the first.
#[derive(Clone, Default)]
pub(crate) struct Pipeline {
    pub(crate) nodes: Vec<Node>,
    starts: Queue,
}

impl Pipeline {
    pub(crate) fn new(nodes: Vec<Node>) -> Self {
        Self { nodes, starts: Queue::default() }
    }

    /// Adds an input traverser.
    ///
    /// # Errors
    /// The memory cap; cancellation.
    pub(crate) fn start(&mut self, traverser: Traverser, context: &Context<'_>) -> Result<()> {
        self.starts.push(traverser, &context.memory)
    }

    pub(crate) fn reset(&mut self) {
        self.starts.clear();
        for node in &mut self.nodes {
            node.step.reset();
        }
    }

    /// The next output traverser.
    pub(crate) fn next(&mut self, context: &mut Context<'_>) -> Result<Option<Traverser>> {
        Input { nodes: &mut self.nodes, starts: &mut self.starts }.next(context)
    }

    /// The first result for a single traverser; `None` if there is none.
    pub(crate) fn first(
        &mut self,
        traverser: &Traverser,
        context: &mut Context<'_>,
    ) -> Result<Option<Value>> {
        self.reset();
        self.start(traverser.single(), context)?;
        Ok(self.next(context)?.map(|traverser| traverser.value))
    }

    /// Appends all results for a single traverser, with their multiplicities.
    pub(crate) fn all(
        &mut self,
        traverser: &Traverser,
        out: &mut Outputs,
        context: &mut Context<'_>,
    ) -> Result<()> {
        self.reset();
        self.start(traverser.single(), context)?;
        while let Some(next) = self.next(context)? {
            out.push(next.value, next.bulk, &context.memory)?;
        }
        Ok(())
    }

    /// Whether a traverser has a result.
    pub(crate) fn test(&mut self, traverser: &Traverser, context: &mut Context<'_>) -> Result<bool> {
        self.reset();
        self.start(traverser.single(), context)?;
        Ok(self.next(context)?.is_some())
    }

    /// The steps as fused steps; `None`: a step has no such form.
    pub(crate) fn fused_steps(&self) -> Option<Vec<FusedStep>> {
        let mut all = Vec::new();
        for node in &self.nodes {
            if !node.labels.is_empty() {
                return None;
            }
            all.extend(node.step.fused_steps()?);
        }
        (!all.is_empty()).then_some(all)
    }
}

/// Whether a traverser has a result.
impl Test for Pipeline {
    fn test(&mut self, traverser: &Traverser, context: &mut Context<'_>) -> Result<bool> {
        Self::test(self, traverser, context)
    }
}

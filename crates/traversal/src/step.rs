//! Steps and how they hang together.
//!
//! # Shape
//! A pipeline is a list of steps. The last one is asked for a traverser; each step asks the one before it
//! when it needs another. So nothing runs that no answer needs, and steps that need all of their input
//! (barriers) take it all at once. Nested traversals are pipelines inside steps; they are given a traverser
//! and asked for what comes of it.
//! # Invariants
//! 1. A step whose output is another value than its input is `moves()`: its output is put at the end of the
//!    path.
//! 2. After `reset` a pipeline is as if it had never run. What a step counts over a whole traversal (`dedup`
//!    in a `repeat`) is kept as long as nobody resets it.

use crate::context::Context;
use crate::memory::Queue;
use crate::steps::make::Outputs;
use crate::traverser::{Labels, Traverser};
use std::any::Any;
use std::sync::Arc;
use vervet_gremlin::Value;
use vervet_model::Result;

/// A step of a running traversal.
pub(crate) trait Step: StepClone {
    /// The next traverser, or none: the input has ended, and nothing more comes unless the input gets more.
    fn next(&mut self, input: &mut Input<'_>, context: &mut Context<'_>) -> Result<Option<Traverser>>;

    /// Forgets everything since it was made.
    fn reset(&mut self) {}

    /// Whether its outputs are new objects of the path.
    fn moves(&self) -> bool;
}

/// Steps can be copied although nobody knows what they are.
pub(crate) trait StepClone {
    fn boxed(&self) -> Box<dyn Step>;
    fn as_any(&mut self) -> &mut dyn Any;
}

impl<S: Step + Clone + 'static> StepClone for S {
    fn boxed(&self) -> Box<dyn Step> {
        Box::new(self.clone())
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

impl Clone for Box<dyn Step> {
    fn clone(&self) -> Self {
        (**self).boxed()
    }
}

/// A step at its place.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) step: Box<dyn Step>,
    pub(crate) labels: Labels,
    pub(crate) moves: bool,
    /// The instruction that it was made of, for `explain` and `profile`.
    pub(crate) text: Arc<str>,
    /// Traversers that came out, and those weighted by bulk; kept while profiled.
    pub(crate) meter: Option<Box<Meter>>,
}

/// What came out of a step, and how long that took.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meter {
    pub(crate) traversers: u64,
    pub(crate) elements: u128,
    /// With that of the steps before it.
    pub(crate) nanoseconds: u64,
}

/// The steps before a step.
pub(crate) struct Input<'a> {
    nodes: &'a mut [Node],
    starts: &'a mut Queue,
}

impl Input<'_> {
    /// The next traverser of the steps before.
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
                // Without whole paths the last object of the path may be another one.
                next.extend_path(&self.labels, &context.memory)?;
            }
        }
        Ok(Some(next))
    }
}

/// Steps in a row, with what was put into the first.
#[derive(Clone, Default)]
pub(crate) struct Pipeline {
    pub(crate) nodes: Vec<Node>,
    starts: Queue,
}

impl Pipeline {
    pub(crate) fn new(nodes: Vec<Node>) -> Self {
        Self { nodes, starts: Queue::default() }
    }

    /// Puts a traverser in.
    ///
    /// # Errors
    /// Over the memory cap; cancellation.
    pub(crate) fn start(&mut self, traverser: Traverser, context: &Context<'_>) -> Result<()> {
        self.starts.push(traverser, &context.memory)
    }

    pub(crate) fn reset(&mut self) {
        self.starts.clear();
        for node in &mut self.nodes {
            node.step.reset();
        }
    }

    /// The next traverser that comes out.
    pub(crate) fn next(&mut self, context: &mut Context<'_>) -> Result<Option<Traverser>> {
        Input { nodes: &mut self.nodes, starts: &mut self.starts }.next(context)
    }

    /// The first value that comes of one traverser, alone; `None`: nothing comes of it.
    pub(crate) fn first(
        &mut self,
        traverser: &Traverser,
        context: &mut Context<'_>,
    ) -> Result<Option<Value>> {
        self.reset();
        self.start(traverser.single(), context)?;
        Ok(self.next(context)?.map(|traverser| traverser.value))
    }

    /// Appends all values that come of one traverser, alone; each with how often it comes.
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

    /// Whether anything comes of one traverser.
    pub(crate) fn test(&mut self, traverser: &Traverser, context: &mut Context<'_>) -> Result<bool> {
        self.reset();
        self.start(traverser.single(), context)?;
        Ok(self.next(context)?.is_some())
    }
}

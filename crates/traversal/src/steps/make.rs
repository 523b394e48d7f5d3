//! Steps built from closures.
//!
//! A closure is cloned with its step, so each clone owns its captured state.

use crate::context::Context;
use crate::fusion::{EdgeWalkPart, FusedStep, Test};
use crate::memory::Reservation;
use crate::outputs::Outputs;
use crate::queue::Queue;
use crate::step::{Input, Step};
use crate::traverser::Traverser;
use std::collections::VecDeque;
use vervet_gremlin::Value;
use vervet_model::Result;

/// A step with at most one value per traverser.
pub(crate) fn map(
    of: impl FnMut(&Traverser, &mut Context<'_>) -> Result<Option<Value>> + Clone + 'static,
) -> Box<dyn Step> {
    Box::new(Map { of })
}

/// A step with any number of values per traverser.
pub(crate) fn flat_map(
    of: impl FnMut(&Traverser, &mut Context<'_>, &mut Outputs) -> Result<()> + Clone + 'static,
) -> Box<dyn Step> {
    Box::new(FlatMap { of, from: None, outputs: Outputs::default() })
}

/// A step with any number of traversers per traverser.
pub(crate) fn flat_map_traversers(
    of: impl FnMut(Traverser, &mut Context<'_>, &mut Queue) -> Result<()> + Clone + 'static,
) -> Box<dyn Step> {
    Box::new(FlatMapTraversers { of, ready: Queue::default() })
}

/// A step that passes the traversers that satisfy a test.
pub(crate) fn filter(
    passes: impl FnMut(&Traverser, &mut Context<'_>) -> Result<bool> + Clone + 'static,
) -> Box<dyn Step> {
    Box::new(Filter { passes })
}

/// As [`filter`], for a test with a description for fusion.
pub(crate) fn test<T: Test + Clone + 'static>(test: T) -> Box<dyn Step> {
    Box::new(TestFilter(test))
}

/// A step that passes every traverser, possibly changed, with the same path.
pub(crate) fn with_each(
    change: impl FnMut(Traverser, &mut Context<'_>) -> Result<Option<Traverser>> + Clone + 'static,
) -> Box<dyn Step> {
    Box::new(WithEach { change })
}

/// A step that reduces all traversers to one value. The [`Reservation`] argument of `add` counts the growth
/// of the state.
pub(crate) fn reduce<S: Clone + Default + 'static>(
    add: impl FnMut(&mut S, Traverser, &mut Reservation, &mut Context<'_>) -> Result<()> + Clone + 'static,
    finish: impl FnMut(S, &mut Context<'_>) -> Result<Option<Value>> + Clone + 'static,
) -> Box<dyn Step> {
    Box::new(Reduce { add, finish, state: S::default(), held: Reservation::default(), done: false })
}

/// A barrier that maps all traversers to other traversers.
pub(crate) fn barrier(
    of: impl FnMut(Vec<Traverser>, &mut Context<'_>) -> Result<Vec<Traverser>> + Clone + 'static,
) -> Box<dyn Step> {
    Box::new(Barrier { of, ready: VecDeque::new(), held: Reservation::default() })
}

/// The identity step.
pub(crate) fn identity() -> impl Step + Clone {
    WithEach { change: |traverser, _: &mut Context<'_>| Ok(Some(traverser)) }
}

/// A step that replaces each value by a constant.
pub(crate) fn constant(value: Value) -> impl Step + Clone {
    Map { of: move |_: &Traverser, _: &mut Context<'_>| Ok(Some(value.clone())) }
}

#[derive(Clone)]
struct Map<F> {
    of: F,
}

impl<F> Step for Map<F>
where
    F: FnMut(&Traverser, &mut Context<'_>) -> Result<Option<Value>> + Clone + 'static,
{
    fn next(&mut self, input: &mut Input<'_>, context: &mut Context<'_>) -> Result<Option<Traverser>> {
        while let Some(mut traverser) = input.next(context)? {
            if let Some(value) = (self.of)(&traverser, context)? {
                traverser.value = value;
                return Ok(Some(traverser));
            }
        }
        Ok(None)
    }

    fn moves(&self) -> bool {
        true
    }
}

#[derive(Clone)]
struct FlatMap<F> {
    of: F,
    from: Option<Traverser>,
    outputs: Outputs,
}

impl<F> Step for FlatMap<F>
where
    F: FnMut(&Traverser, &mut Context<'_>, &mut Outputs) -> Result<()> + Clone + 'static,
{
    fn next(&mut self, input: &mut Input<'_>, context: &mut Context<'_>) -> Result<Option<Traverser>> {
        loop {
            if let (Some(from), Some((value, bulk))) = (&self.from, self.outputs.pop()) {
                let mut next = from.at(value);
                match bulk.minus(1) {
                    None => {}
                    // Without bulking, equal values are output one by one.
                    Some(others) if context.settings.no_bulk => {
                        self.outputs.put_back(next.value.clone(), others);
                    }
                    Some(_) => next.bulk = from.bulk.times(bulk)?,
                }
                return Ok(Some(next));
            }
            let Some(traverser) = input.next(context)? else { return Ok(None) };
            self.outputs.clear();
            (self.of)(&traverser, context, &mut self.outputs)?;
            self.outputs.count(&context.memory)?;
            self.from = Some(traverser);
        }
    }

    fn reset(&mut self) {
        self.from = None;
        self.outputs.clear();
    }

    fn moves(&self) -> bool {
        true
    }
}

#[derive(Clone)]
struct FlatMapTraversers<F> {
    of: F,
    ready: Queue,
}

impl<F> Step for FlatMapTraversers<F>
where
    F: FnMut(Traverser, &mut Context<'_>, &mut Queue) -> Result<()> + Clone + 'static,
{
    fn next(&mut self, input: &mut Input<'_>, context: &mut Context<'_>) -> Result<Option<Traverser>> {
        loop {
            if let Some(next) = self.ready.pop() {
                return Ok(Some(next));
            }
            let Some(traverser) = input.next(context)? else { return Ok(None) };
            (self.of)(traverser, context, &mut self.ready)?;
        }
    }

    fn reset(&mut self) {
        self.ready.clear();
    }

    fn moves(&self) -> bool {
        true
    }
}

#[derive(Clone)]
struct Filter<F> {
    passes: F,
}

impl<F> Step for Filter<F>
where
    F: FnMut(&Traverser, &mut Context<'_>) -> Result<bool> + Clone + 'static,
{
    fn next(&mut self, input: &mut Input<'_>, context: &mut Context<'_>) -> Result<Option<Traverser>> {
        while let Some(traverser) = input.next(context)? {
            if (self.passes)(&traverser, context)? {
                return Ok(Some(traverser));
            }
        }
        Ok(None)
    }

    fn moves(&self) -> bool {
        false
    }
}

/// See [`test`].
#[derive(Clone)]
struct TestFilter<T>(T);

impl<T: Test + Clone + 'static> Step for TestFilter<T> {
    fn next(&mut self, input: &mut Input<'_>, context: &mut Context<'_>) -> Result<Option<Traverser>> {
        while let Some(traverser) = input.next(context)? {
            if self.0.test(&traverser, context)? {
                return Ok(Some(traverser));
            }
        }
        Ok(None)
    }

    fn moves(&self) -> bool {
        false
    }

    fn fused_steps(&self) -> Option<Vec<FusedStep>> {
        self.0.fused_steps()
    }

    fn edge_walk_part(&self) -> Option<EdgeWalkPart<'_>> {
        self.0.edge_walk_part()
    }
}

#[derive(Clone)]
struct WithEach<F> {
    change: F,
}

impl<F> Step for WithEach<F>
where
    F: FnMut(Traverser, &mut Context<'_>) -> Result<Option<Traverser>> + Clone + 'static,
{
    fn next(&mut self, input: &mut Input<'_>, context: &mut Context<'_>) -> Result<Option<Traverser>> {
        while let Some(traverser) = input.next(context)? {
            if let Some(changed) = (self.change)(traverser, context)? {
                return Ok(Some(changed));
            }
        }
        Ok(None)
    }

    fn moves(&self) -> bool {
        false
    }
}

#[derive(Clone)]
struct Reduce<S, A, F> {
    add: A,
    finish: F,
    state: S,
    held: Reservation,
    done: bool,
}

impl<S, A, F> Step for Reduce<S, A, F>
where
    S: Clone + Default + 'static,
    A: FnMut(&mut S, Traverser, &mut Reservation, &mut Context<'_>) -> Result<()> + Clone + 'static,
    F: FnMut(S, &mut Context<'_>) -> Result<Option<Value>> + Clone + 'static,
{
    fn next(&mut self, input: &mut Input<'_>, context: &mut Context<'_>) -> Result<Option<Traverser>> {
        let mut any = false;
        while let Some(traverser) = input.next(context)? {
            any = true;
            (self.add)(&mut self.state, traverser, &mut self.held, context)?;
        }
        // A later pull has a result only if more input has arrived: the next round of a loop.
        if self.done && !any {
            return Ok(None);
        }
        self.done = true;
        let value = (self.finish)(std::mem::take(&mut self.state), context)?;
        // The step that keeps the value counts it from here on.
        self.held.clear();
        Ok(value.map(|value| {
            let mut traverser = Traverser::new(value);
            traverser.sack = context.settings.sack.clone().map(Box::new);
            traverser
        }))
    }

    fn reset(&mut self) {
        self.state = S::default();
        self.held.clear();
        self.done = false;
    }

    fn moves(&self) -> bool {
        true
    }
}

#[derive(Clone)]
struct Barrier<F> {
    of: F,
    ready: VecDeque<Traverser>,
    /// Counts buffered input until all of it is output.
    held: Reservation,
}

impl<F> Step for Barrier<F>
where
    F: FnMut(Vec<Traverser>, &mut Context<'_>) -> Result<Vec<Traverser>> + Clone + 'static,
{
    fn next(&mut self, input: &mut Input<'_>, context: &mut Context<'_>) -> Result<Option<Traverser>> {
        if self.ready.is_empty() {
            self.held.clear();
            let mut all = Vec::new();
            while let Some(traverser) = input.next(context)? {
                self.held.add_traverser(&traverser, &context.memory)?;
                all.push(traverser);
            }
            if !all.is_empty() {
                self.ready = (self.of)(all, context)?.into();
            }
        }
        Ok(self.ready.pop_front())
    }

    fn reset(&mut self) {
        self.ready.clear();
        self.held.clear();
    }

    fn moves(&self) -> bool {
        false
    }
}

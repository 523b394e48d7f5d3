//! `repeat` with `until`, `emit`, `times`.
//!
//! # Shape
//! Breadth-first execution: all traversers of one round go through the body together, so equal traversers
//! merge their bulks, and a long walk costs as many traversers as there are distinct vertices. The number of
//! input traversers that start together grows: few at first, for a later `limit`, and soon all that can
//! merge.
//! # Source
//! J. Chen et al., "Grasper", SoCC 2019 (frontier of a loop); TinkerPop's bulking.

use super::make;
use super::transform::BulkQueue;
use crate::analysis::gathers;
use crate::compile::Compiler;
use crate::context::Context;
use crate::error::query_error;
use crate::modulated::Modulated;
use crate::queue::Queue;
use crate::semantic::predicate;
use crate::step::{Input, Pipeline, Step};
use crate::traverser::{Loop, Traverser};
use std::rc::Rc;
use std::sync::Arc;
use vervet_gremlin::{Instruction, Value};
use vervet_model::Result;

/// The condition of `until` or `emit`.
#[derive(Clone)]
enum When {
    Always,
    Rounds(u32),
    Test(Pipeline),
}

impl When {
    fn holds(&mut self, traverser: &Traverser, context: &mut Context<'_>) -> Result<bool> {
        match self {
            Self::Always => Ok(true),
            Self::Rounds(rounds) => Ok(traverser.loops(None).unwrap_or(0) >= *rounds),
            Self::Test(test) => test.test(traverser, context),
        }
    }
}

pub(crate) fn build(step: &Modulated<'_>, compiler: &mut Compiler) -> Result<Box<dyn Step>> {
    let (mut until, mut until_first, mut emit, mut emit_first) = (None, false, None, false);
    for (first, modulators) in [(true, &step.before), (false, &step.after)] {
        for modulator in modulators {
            let when = when(modulator, compiler)?;
            if &*modulator.name == "emit" {
                (emit, emit_first) = (Some(when), first);
            } else {
                (until, until_first) = (Some(when), first);
            }
        }
    }
    let (name, body) = match step.arguments() {
        [Value::Traversal(body)] => (None, body),
        [Value::String(name), Value::Traversal(body)] => (Some(name.clone()), body),
        _ => return Err(query_error("repeat() needs a traversal")),
    };
    if body.steps.first().is_some_and(|step| &*step.name == "inject") {
        return Err(query_error("The parent of inject()-step can not be repeat()-step"));
    }
    compiler.loops += 1;
    let body = compiler.nested(body);
    compiler.loops -= 1;
    Ok(Box::new(Repeat {
        gathers: step.arguments().iter().any(gathers),
        body: body?,
        name,
        until,
        until_first,
        emit,
        emit_first,
        line: BulkQueue::default(),
        ready: Queue::default(),
        window: 1,
    }))
}

fn when(modulator: &Instruction, compiler: &mut Compiler) -> Result<When> {
    Ok(match modulator.arguments.as_slice() {
        [] => When::Always,
        [Value::Traversal(test)] => When::Test(compiler.nested(test)?),
        [Value::P(_)] if &*modulator.name != "times" => {
            let test = predicate(&modulator.arguments[0]);
            let step = make::filter(move |traverser, context| {
                crate::semantic::passes(&test, &traverser.value, context.control)
            });
            When::Test(Pipeline::new(vec![compiler.node(step)]))
        }
        [rounds] if &*modulator.name == "times" => {
            let rounds = rounds.as_integer().unwrap_or(0);
            When::Rounds(u32::try_from(rounds.max(0)).unwrap_or(u32::MAX))
        }
        _ => {
            let message = format!("{}() does not take these arguments", modulator.name);
            return Err(query_error(message));
        }
    })
}

#[derive(Clone)]
struct Repeat {
    body: Pipeline,
    /// Whether the body is a barrier.
    gathers: bool,
    name: Option<Arc<str>>,
    until: Option<When>,
    until_first: bool,
    emit: Option<When>,
    emit_first: bool,
    /// Traversers waiting for the next round.
    line: BulkQueue,
    /// Output traversers.
    ready: Queue,
    /// Number of traversers that start together, if traversers can merge.
    window: usize,
}

const WINDOW_MAX: usize = 4096;

impl Repeat {
    fn enter(&self, traverser: &mut Traverser) {
        let outer = traverser.loops.take();
        traverser.loops = Some(Rc::new(Loop { name: self.name.clone(), count: 0, outer }));
    }

    fn until(&mut self, first: bool, traverser: &Traverser, context: &mut Context<'_>) -> Result<bool> {
        match &mut self.until {
            Some(until) if self.until_first == first => until.holds(traverser, context),
            _ => Ok(false),
        }
    }

    fn should_emit(&mut self, first: bool, traverser: &Traverser, context: &mut Context<'_>) -> Result<bool> {
        match &mut self.emit {
            Some(emit) if self.emit_first == first => emit.holds(traverser, context),
            _ => Ok(false),
        }
    }

    /// A traverser at the start of a round.
    fn start_round(&mut self, traverser: Traverser, context: &mut Context<'_>) -> Result<()> {
        if self.until(true, &traverser, context)? {
            return self.output(traverser, context);
        }
        if self.should_emit(true, &traverser, context)? {
            self.output(traverser.clone(), context)?;
        }
        self.line.push(traverser, &context.memory)
    }

    /// A traverser at the end of a round.
    fn end(&mut self, mut traverser: Traverser, context: &mut Context<'_>) -> Result<()> {
        if let Some(inner) = &traverser.loops {
            let mut inner = inner.as_ref().clone();
            inner.count = inner.count.saturating_add(1);
            traverser.loops = Some(Rc::new(inner));
        }
        if self.until(false, &traverser, context)? {
            return self.output(traverser, context);
        }
        if self.should_emit(false, &traverser, context)? {
            self.output(traverser.clone(), context)?;
        }
        self.start_round(traverser, context)
    }

    /// A traverser that leaves the loop or is emitted.
    fn output(&mut self, mut traverser: Traverser, context: &Context<'_>) -> Result<()> {
        traverser.loops = traverser.loops.take().and_then(|inner| inner.outer.clone());
        self.ready.push(traverser, &context.memory)
    }
}

impl Step for Repeat {
    fn next(&mut self, input: &mut Input<'_>, context: &mut Context<'_>) -> Result<Option<Traverser>> {
        loop {
            context.tick()?;
            if let Some(out) = self.ready.pop() {
                return Ok(Some(out));
            }
            if let Some(through) = self.body.next(context)? {
                self.end(through, context)?;
                continue;
            }
            if self.gathers {
                while let Some(mut traverser) = input.next(context)? {
                    self.enter(&mut traverser);
                    self.start_round(traverser, context)?;
                }
                if !self.ready.is_empty() {
                    continue;
                }
            }
            if !self.line.is_empty() {
                let round = self.line.peek().and_then(|first| first.loops(None));
                while self.line.peek().is_some_and(|next| next.loops(None) == round) {
                    if let Some(next) = self.line.pop() {
                        self.body.start(next, context)?;
                    }
                }
                continue;
            }
            for taken in 0..self.window {
                let Some(mut traverser) = input.next(context)? else {
                    if taken == 0 {
                        return Ok(None);
                    }
                    break;
                };
                let alone = traverser.path.is_some() || traverser.sack.is_some();
                self.enter(&mut traverser);
                self.start_round(traverser, context)?;
                if alone {
                    break;
                }
            }
            self.window = (self.window * 4).min(WINDOW_MAX);
        }
    }

    fn reset(&mut self) {
        self.body.reset();
        self.ready.clear();
        self.line.clear();
        self.window = 1;
    }

    fn moves(&self) -> bool {
        false
    }
}

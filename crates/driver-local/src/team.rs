//! Team: the threads that run one cut pipeline, and the channel that collects their rows.
//!
//! # Shape
//! A *member* is a copy of the body with its own limits; a thread takes an idle one or creates one. In a
//! *round* all members take morsels from the same rows of the head. The calling thread, which alone runs the
//! tail, also takes morsels; between its own batches it receives those of the helpers from the channel.
//! # Cost
//! A batch is moved through the channel, not copied: one allocation for each column, and some 200 ns.

use crate::pool::{Again, Pool, Scope};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, TryRecvError, TrySendError, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use vervet_kernel::parallel::{Morsels, Partial, Worker};
use vervet_kernel::plan::{Pipeline, StepProfile};
use vervet_kernel::{Batch, Control, Cut, Flow, Run};
use vervet_model::{Error, Result};

/// Channel capacity in batches for each thread.
const BATCHES_WAITING: usize = 2;

/// Time slice of a helper for one query while other queries wait for helpers.
const TURN: Duration = Duration::from_millis(10);

/// When helpers are called.
#[derive(Clone, Copy)]
pub(crate) struct Calls {
    /// Time that the calling thread works alone before it calls helpers.
    pub(crate) after: Duration,
    /// Time that it then waits for them: zero, except in tests that need helpers in a small query.
    pub(crate) wait: Duration,
}

/// Consumer of rows.
pub(crate) type Sink<'s> = dyn FnMut(&mut Batch) -> Result<Flow> + 's;

/// Stop signal of a team, with the first error.
#[derive(Default)]
pub(crate) struct Halt {
    /// Seen by [`Control::check`] of all members.
    pub(crate) flag: AtomicBool,
    error: Mutex<Option<Error>>,
}

impl Halt {
    /// Stops all members without an error.
    fn stop(&self) {
        self.flag.store(true, Relaxed);
    }

    /// Stops all members with an error. Keeps the first one: later errors only report that another thread has
    /// stopped.
    fn fail(&self, error: Error) {
        let mut first = lock(&self.error);
        if !self.flag.swap(true, Relaxed) {
            *first = Some(error);
        }
    }

    /// Whether the signal is set.
    pub(crate) fn is_set(&self) -> bool {
        self.flag.load(Relaxed)
    }

    fn outcome(&self) -> Result<()> {
        lock(&self.error).take().map_or(Ok(()), Err)
    }
}

/// A copy of source and body, and its run.
struct Member<'a> {
    worker: Worker<'a>,
    run: Run<'a>,
}

/// The threads that run one pipeline.
pub(crate) struct Team<'a> {
    pub(crate) pool: &'a Pool,
    pub(crate) pipeline: &'a Pipeline,
    pub(crate) cut: &'a Cut,
    /// The run, with the state shared by the copies.
    pub(crate) run: Run<'a>,
    /// Limits of each thread.
    pub(crate) controls: &'a [Control<'a>],
    pub(crate) halt: &'a Halt,
    pub(crate) calls: Calls,
    idle: Mutex<Vec<Member<'a>>>,
    /// Number of members created so far.
    made: AtomicUsize,
}

impl<'a> Team<'a> {
    pub(crate) fn new(
        pool: &'a Pool,
        (pipeline, cut): (&'a Pipeline, &'a Cut),
        run: Run<'a>,
        controls: &'a [Control<'a>],
        halt: &'a Halt,
        calls: Calls,
    ) -> Self {
        let (idle, made) = (Mutex::default(), AtomicUsize::new(0));
        Self { pool, pipeline, cut, run, controls, halt, calls, idle, made }
    }

    /// Runs rows of the head through all copies, and their output through `tail`. [`Flow::Done`]: the tail
    /// needs no more rows.
    pub(crate) fn round(&self, rows: &Batch, tail: &mut Sink<'_>) -> Result<Flow> {
        let morsels = Morsels::new(self.pipeline, self.cut, rows, self.controls.len(), &self.run)?;
        let (sender, receiver) = sync_channel(BATCHES_WAITING * self.controls.len());
        // `None`: the round has ended, and a late helper returns.
        let entrance = Mutex::new(Some(sender));
        let work = || {
            let Some(sender) = lock(&entrance).clone() else { return Again::No };
            self.help(&morsels, &mut |batch| {
                let batch = std::mem::replace(batch, Batch::new(self.run.variables()));
                let batch = match sender.try_send(batch) {
                    Ok(()) => return Ok(Flow::More),
                    Err(TrySendError::Full(batch)) => batch,
                    // The receiver is dropped when no more rows are needed.
                    Err(TrySendError::Disconnected(_)) => return Ok(Flow::Done),
                };
                self.run.control().leave();
                Ok(if sender.send(batch).is_ok() { Flow::More } else { Flow::Done })
            })
        };
        self.pool
            .scope(&work, |scope| {
                // If the tail or the sink panics, helpers must stop before the scope waits for them.
                let _stop = StopOnPanic(self.halt);
                let mut tail = Tail { push: tail, receiver, halt: self.halt, is_done: false };
                let flow = self.lead(&morsels, scope, &mut tail);
                *lock(&entrance) = None;
                match flow {
                    Ok(()) => tail.take_rest(self.run.control()),
                    Err(error) => self.halt.fail(error),
                }
                Ok(if tail.is_done { Flow::Done } else { Flow::More })
            })
            .and_then(|flow| self.halt.outcome().map(|()| flow))
    }

    /// The part of the calling thread in a round.
    fn lead(&self, morsels: &Morsels<'_>, scope: &Scope<'_>, tail: &mut Tail<'_>) -> Result<()> {
        let Some(mut member) = self.member()? else { return Err(no_member()) };
        let begun = Instant::now();
        let mut called = false;
        loop {
            if !called && begun.elapsed() >= self.calls.after {
                called = true;
                scope.call(self.controls.len() - 1);
                self.wait_for_helpers();
            }
            let taken = member.worker.take(morsels, &member.run, &mut |batch| {
                tail.push(batch)?;
                tail.take_waiting()
            })?;
            if taken.is_none() || tail.take_waiting()? == Flow::Done {
                break;
            }
        }
        lock(&self.idle).push(member);
        Ok(())
    }

    /// Waits until all members exist, at most for `calls.wait`.
    fn wait_for_helpers(&self) {
        let begun = Instant::now();
        while self.made.load(Relaxed) < self.controls.len() && begun.elapsed() < self.calls.wait {
            std::thread::yield_now();
        }
    }

    /// The part of a helper in a round.
    fn help(&self, morsels: &Morsels<'_>, sink: &mut Sink<'_>) -> Again {
        let work = || -> Result<Again> {
            let Some(mut member) = self.member()? else { return Ok(Again::No) };
            let begun = Instant::now();
            let mut again = Again::No;
            while !self.halt.flag.load(Relaxed)
                && member.worker.take(morsels, &member.run, sink)? == Some(Flow::More)
            {
                if self.pool.is_wanted() && begun.elapsed() >= TURN {
                    again = Again::Yes;
                    break;
                }
            }
            lock(&self.idle).push(member);
            Ok(again)
        };
        // A panic can leave only the member inconsistent, and unwinding drops it.
        let done = catch_unwind(AssertUnwindSafe(work));
        self.run.control().leave();
        match done {
            Ok(Ok(again)) => again,
            Ok(Err(error)) => {
                self.halt.fail(error);
                Again::No
            }
            Err(panic) => {
                self.halt.fail(panicked(&*panic));
                Again::No
            }
        }
    }

    /// A copy for this thread; `None` if each thread of the query has one.
    fn member(&self) -> Result<Option<Member<'a>>> {
        if let Some(member) = lock(&self.idle).pop() {
            return Ok(Some(member));
        }
        let Some(control) = self.controls.get(self.made.fetch_add(1, Relaxed)) else { return Ok(None) };
        let run = self.run.with_control(control);
        Ok(Some(Member { worker: Worker::new(self.pipeline, self.cut, &run)?, run }))
    }

    /// The partial states of the folds of all copies, finished in parallel on the threads of the query, since
    /// an order sorts only here.
    pub(crate) fn partials(&self) -> Result<Vec<Partial<'a>>> {
        let helpers = lock(&self.idle).len().saturating_sub(1);
        let (gathered, asked) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
        let ask_next = || -> Result<bool> {
            let member = lock(&self.idle).pop();
            let Some(mut member) = member else { return Ok(false) };
            let partial = member.worker.partial(&member.run)?;
            lock(&gathered).push(partial);
            lock(&asked).push(member);
            Ok(true)
        };
        let work = || {
            loop {
                match catch_unwind(AssertUnwindSafe(ask_next)) {
                    Ok(Ok(true)) => continue,
                    Ok(Ok(false)) => {}
                    Ok(Err(error)) => self.halt.fail(error),
                    Err(panic) => self.halt.fail(panicked(&*panic)),
                }
                self.run.control().leave();
                return Again::No;
            }
        };
        self.pool.scope(&work, |scope| {
            scope.call(helpers);
            work();
        });
        self.halt.outcome()?;
        *lock(&self.idle) = asked.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(gathered.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds the counters of all copies to the profiles of the steps; `figures` starts at the source.
    pub(crate) fn add_figures(&self, figures: &mut [StepProfile]) {
        for member in &*lock(&self.idle) {
            member.worker.add_figures(figures);
        }
    }
}

/// The tail of the pipeline on the calling thread, and the channel that feeds it.
struct Tail<'t> {
    push: &'t mut Sink<'t>,
    receiver: Receiver<Batch>,
    halt: &'t Halt,
    is_done: bool,
}

impl Tail<'_> {
    fn push(&mut self, batch: &mut Batch) -> Result<Flow> {
        if !self.is_done && (self.push)(batch)? == Flow::Done {
            self.is_done = true;
            self.halt.stop();
        }
        Ok(self.flow())
    }

    fn flow(&self) -> Flow {
        if self.is_done { Flow::Done } else { Flow::More }
    }

    /// Processes the batches received so far, without blocking.
    fn take_waiting(&mut self) -> Result<Flow> {
        while !self.is_done {
            match self.receiver.try_recv() {
                Ok(mut batch) => self.push(&mut batch)?,
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
            };
        }
        Ok(self.flow())
    }

    /// Processes the remaining batches; returns when the last helper has left.
    fn take_rest(&mut self, control: &Control<'_>) {
        while !self.is_done {
            let batch = match self.receiver.try_recv() {
                Err(TryRecvError::Empty) => {
                    control.leave();
                    self.receiver.recv().ok()
                }
                received => received.ok(),
            };
            let Some(mut batch) = batch else { return };
            if let Err(error) = self.push(&mut batch) {
                self.halt.fail(error);
                return;
            }
        }
    }
}

/// Stops all members if the calling thread panics.
struct StopOnPanic<'h>(&'h Halt);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}

fn no_member() -> Error {
    Error::internal("no copy of the pipeline is left for the calling thread")
}

/// The error for a panic of a thread.
fn panicked(panic: &(dyn std::any::Any + Send)) -> Error {
    let message = (panic.downcast_ref::<&str>().copied())
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    Error::internal(format!("a thread of the query panicked: {message}"))
}

/// The guarded data is consistent after each change, so a panic elsewhere does not corrupt it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

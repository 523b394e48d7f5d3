//! Pipeline executor: the threads that run one cut pipeline, and the channel that collects their rows.
//!
//! # Shape
//! A *copy* is an instance of the body with its own limits. A thread takes an idle copy or creates one. In a
//! *round* all copies take morsels from the same rows of the head. The calling thread takes morsels too, and
//! alone runs the tail: between its own batches it receives those of the helpers from the channel.
//! # Cost
//! A batch is moved through the channel, not copied: one allocation for each column, and some 200 ns.

use crate::pool::{Pool, Requeue, Scope};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, TryRecvError, TrySendError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use vervet_expression::Evaluator;
use vervet_kernel::parallel::{Morsels, Partial, Worker};
use vervet_kernel::plan::{Pipeline, StepProfile};
use vervet_kernel::{Batch, Control, Flow, PipelineCut, Run};
use vervet_model::{Error, Result, lock};

/// Channel capacity in batches for each thread.
const BATCHES_WAITING: usize = 2;

/// Time slice of a helper for one query while other queries wait for helpers.
const TIME_SLICE: Duration = Duration::from_millis(10);

/// When helpers are called.
#[derive(Clone, Copy)]
pub(crate) struct WakePolicy {
    /// Time that the calling thread works alone before it calls helpers.
    pub(crate) after: Duration,
    /// Time that it then waits for them: zero, except in tests that need helpers in a small query.
    pub(crate) wait: Duration,
}

/// Consumer of rows.
pub(crate) type Sink<'s> = dyn FnMut(&mut Batch) -> Result<Flow> + 's;

/// Stop signal of a pipeline, with the first error.
#[derive(Default)]
pub(crate) struct AbortState {
    /// Seen by [`Control::check`] of all copies.
    pub(crate) flag: AtomicBool,
    error: Mutex<Option<Error>>,
}

impl AbortState {
    /// Stops all copies without an error.
    fn stop(&self) {
        self.flag.store(true, Relaxed);
    }

    /// Stops all copies with an error. Keeps the first one: later errors only report that another thread has
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
struct PipelineCopy<'a> {
    worker: Worker<'a>,
    run: Run<'a>,
}

/// The threads that run one pipeline.
pub(crate) struct PipelineExecutor<'a> {
    pub(crate) pool: &'a Pool,
    pub(crate) pipeline: &'a Pipeline,
    pub(crate) cut: &'a PipelineCut,
    /// The run, with the state shared by the copies.
    pub(crate) run: Run<'a>,
    /// Limits of each thread, and the evaluator that checks them.
    pub(crate) threads: &'a [(&'a Control<'a>, &'a Evaluator<'a>)],
    pub(crate) abort: &'a AbortState,
    pub(crate) wake_policy: WakePolicy,
    idle: Mutex<Vec<PipelineCopy<'a>>>,
    /// Number of copies created so far.
    created: AtomicUsize,
}

impl<'a> PipelineExecutor<'a> {
    pub(crate) fn new(
        pool: &'a Pool,
        (pipeline, cut): (&'a Pipeline, &'a PipelineCut),
        run: Run<'a>,
        threads: &'a [(&'a Control<'a>, &'a Evaluator<'a>)],
        abort: &'a AbortState,
        wake_policy: WakePolicy,
    ) -> Self {
        let (idle, created) = (Mutex::default(), AtomicUsize::new(0));
        Self { pool, pipeline, cut, run, threads, abort, wake_policy, idle, created }
    }

    /// Runs rows of the head through all copies, and their output through `tail`. [`Flow::Done`]: the tail
    /// needs no more rows.
    pub(crate) fn run_round(&self, rows: &Batch, tail: &mut Sink<'_>) -> Result<Flow> {
        let morsels = Morsels::new(self.pipeline, self.cut, rows, self.threads.len(), &self.run)?;
        let (sender, receiver) = sync_channel(BATCHES_WAITING * self.threads.len());
        // `None`: the round has ended, and a late helper returns.
        let open_sender = Mutex::new(Some(sender));
        let work = || {
            let Some(sender) = lock(&open_sender).clone() else { return Requeue::No };
            self.run_helper(&morsels, &mut |batch| {
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
                let _stop = StopOnPanic(self.abort);
                let mut tail = TailConsumer { push: tail, receiver, abort: self.abort, is_done: false };
                let flow = self.run_coordinator(&morsels, scope, &mut tail);
                *lock(&open_sender) = None;
                let flow = flow.and_then(|()| {
                    tail.take_rest(self.run.control());
                    self.take_returned(&morsels, &mut tail)
                });
                if let Err(error) = flow {
                    self.abort.fail(error);
                }
                Ok(if tail.is_done { Flow::Done } else { Flow::More })
            })
            .and_then(|flow| self.abort.outcome().map(|()| flow))
    }

    /// The part of the calling thread in a round.
    fn run_coordinator(
        &self,
        morsels: &Morsels<'_>,
        scope: &Scope<'_>,
        tail: &mut TailConsumer<'_>,
    ) -> Result<()> {
        let Some(mut copy) = self.copy()? else { return Err(no_copy()) };
        let begun = Instant::now();
        let mut called = false;
        loop {
            if !called && begun.elapsed() >= self.wake_policy.after {
                called = true;
                scope.call(self.threads.len() - 1);
                self.wait_for_helpers();
            }
            if !take(&mut copy, morsels, tail)? {
                break;
            }
        }
        lock(&self.idle).push(copy);
        Ok(())
    }

    /// Takes what helpers have returned after this thread had seen that no morsel is left: one that gives way
    /// to another query takes none of it. All helpers have left.
    fn take_returned(&self, morsels: &Morsels<'_>, tail: &mut TailConsumer<'_>) -> Result<()> {
        if self.abort.is_set() {
            return Ok(());
        }
        let Some(mut copy) = self.copy()? else { return Err(no_copy()) };
        while take(&mut copy, morsels, tail)? {}
        lock(&self.idle).push(copy);
        Ok(())
    }

    /// Waits until all copies exist, at most for `wake_policy.wait`.
    fn wait_for_helpers(&self) {
        let begun = Instant::now();
        while self.created.load(Relaxed) < self.threads.len() && begun.elapsed() < self.wake_policy.wait {
            std::thread::yield_now();
        }
    }

    /// The part of a helper in a round.
    fn run_helper(&self, morsels: &Morsels<'_>, sink: &mut Sink<'_>) -> Requeue {
        let work = || -> Result<Requeue> {
            let _limits = self.run.control().enter();
            let Some(mut copy) = self.copy()? else { return Ok(Requeue::No) };
            let begun = Instant::now();
            let mut requeue = Requeue::No;
            while !self.abort.flag.load(Relaxed)
                && copy.worker.take(morsels, &copy.run, sink)? == Some(Flow::More)
            {
                if self.pool.is_wanted() && begun.elapsed() >= TIME_SLICE {
                    requeue = Requeue::Yes;
                    break;
                }
            }
            lock(&self.idle).push(copy);
            Ok(requeue)
        };
        // A panic can leave only the copy inconsistent, and unwinding drops it.
        let done = catch_unwind(AssertUnwindSafe(work));
        self.run.control().leave();
        match done {
            Ok(Ok(requeue)) => requeue,
            Ok(Err(error)) => {
                self.abort.fail(error);
                Requeue::No
            }
            Err(panic) => {
                self.abort.fail(panicked(&*panic));
                Requeue::No
            }
        }
    }

    /// A copy for this thread; `None` if each thread of the query has one.
    fn copy(&self) -> Result<Option<PipelineCopy<'a>>> {
        if let Some(copy) = lock(&self.idle).pop() {
            return Ok(Some(copy));
        }
        let thread = self.threads.get(self.created.fetch_add(1, Relaxed));
        let Some(&(control, evaluator)) = thread else { return Ok(None) };
        let run = self.run.for_thread(control, evaluator);
        Ok(Some(PipelineCopy { worker: Worker::new(self.pipeline, self.cut, &run)?, run }))
    }

    /// The partial states of the folds of all copies, finished in parallel on the threads of the query, since
    /// an order sorts only here.
    pub(crate) fn partials(&self) -> Result<Vec<Partial<'a>>> {
        let helpers = lock(&self.idle).len().saturating_sub(1);
        let (gathered, finished) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
        let finish_next = || -> Result<bool> {
            let copy = lock(&self.idle).pop();
            let Some(mut copy) = copy else { return Ok(false) };
            let partial = copy.worker.partial(&copy.run)?;
            lock(&gathered).push(partial);
            lock(&finished).push(copy);
            Ok(true)
        };
        let work = || {
            loop {
                match catch_unwind(AssertUnwindSafe(finish_next)) {
                    Ok(Ok(true)) => continue,
                    Ok(Ok(false)) => {}
                    Ok(Err(error)) => self.abort.fail(error),
                    Err(panic) => self.abort.fail(panicked(&*panic)),
                }
                self.run.control().leave();
                return Requeue::No;
            }
        };
        self.pool.scope(&work, |scope| {
            scope.call(helpers);
            work();
        });
        self.abort.outcome()?;
        *lock(&self.idle) = finished.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(gathered.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds the counters of all copies to the profiles of the steps; `figures` starts at the source.
    pub(crate) fn add_figures(&self, figures: &mut [StepProfile]) {
        for copy in &*lock(&self.idle) {
            copy.worker.add_figures(figures);
        }
    }
}

/// Takes a morsel on the calling thread, and what helpers have sent; `false`: no morsel is left, or no more
/// rows are needed.
fn take(copy: &mut PipelineCopy<'_>, morsels: &Morsels<'_>, tail: &mut TailConsumer<'_>) -> Result<bool> {
    let taken = copy.worker.take(morsels, &copy.run, &mut |batch| {
        tail.push(batch)?;
        tail.take_waiting()
    })?;
    Ok(taken.is_some() && tail.take_waiting()? == Flow::More)
}

/// The tail of the pipeline on the calling thread, and the channel that feeds it.
struct TailConsumer<'t> {
    push: &'t mut Sink<'t>,
    receiver: Receiver<Batch>,
    abort: &'t AbortState,
    is_done: bool,
}

impl TailConsumer<'_> {
    fn push(&mut self, batch: &mut Batch) -> Result<Flow> {
        if !self.is_done && (self.push)(batch)? == Flow::Done {
            self.is_done = true;
            self.abort.stop();
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
                self.abort.fail(error);
                return;
            }
        }
    }
}

/// Stops all copies if the calling thread panics.
struct StopOnPanic<'h>(&'h AbortState);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}

fn no_copy() -> Error {
    Error::internal("no copy of the pipeline is left for the calling thread")
}

/// The error for a panic of a thread.
fn panicked(panic: &(dyn std::any::Any + Send)) -> Error {
    let message = (panic.downcast_ref::<&str>().copied())
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    Error::internal(format!("a thread of the query panicked: {message}"))
}

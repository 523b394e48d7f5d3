//! Runs the engine's work for a Python call: without the interpreter lock, and so that Ctrl-C ends it.
//!
//! Python delivers signals to its main thread only, when that thread asks for them. Work on the main thread
//! therefore begins in place, since most queries take microseconds, but with a short time budget. Work that
//! exceeds it is undone and starts again on another thread, while the main thread checks for signals. On
//! other threads work runs in place.
//! # Invariants
//! Work that fails has no effect, so it can run again.

use crate::error::raised;
use pyo3::prelude::*;
use std::cell::Cell;
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::{Builder, scope};
use std::time::{Duration, Instant};
use vervet::{CancelToken, Error, ErrorKind, Result};
use vervet_model::lock;

/// The time budget of work in place on the main thread. Long enough that few queries run twice, short enough
/// that Ctrl-C is not late.
const IN_PLACE_MAX: Duration = Duration::from_millis(20);

/// The interval of checks for signals.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// Stack of the worker: that of a main thread, which the nesting limits of parsers assume.
const STACK_BYTES: usize = 8 << 20;

/// Tokens of the work under way on one database.
#[derive(Debug, Default)]
pub(crate) struct Running(Mutex<Vec<CancelToken>>);

impl Running {
    /// Cancels all work under way; returns its number.
    pub(crate) fn cancel_all(&self) -> usize {
        let tokens = lock(&self.0);
        tokens.iter().for_each(CancelToken::cancel);
        tokens.len()
    }

    /// Registers work until the guard is dropped.
    fn begin(&self) -> Registered<'_> {
        let token = CancelToken::new();
        lock(&self.0).push(token.clone());
        Registered { running: self, token }
    }
}

struct Registered<'r> {
    running: &'r Running,
    token: CancelToken,
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        let own = |token: &CancelToken| std::ptr::eq(token.as_atomic(), self.token.as_atomic());
        lock(&self.running.0).retain(|token| !own(token));
    }
}

/// The limits of one attempt.
#[derive(Debug)]
pub(crate) struct Attempt {
    /// The time budget of the attempt; it counts from `started`.
    pub timeout: Option<Duration>,
    pub started: Instant,
    pub cancel: CancelToken,
    /// Whether the attempt is to fail with [`ErrorKind::Deadline`] before heavy work.
    pub is_short: bool,
}

/// Runs `work` without the interpreter lock. It may run twice.
///
/// # Errors
/// Errors of `work`; the exception of a signal handler, such as `KeyboardInterrupt`.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    running: &Running,
    timeout: Option<Duration>,
    work: impl Fn(&Attempt) -> Result<T> + Sync,
) -> PyResult<T> {
    if !on_main_thread(py)? {
        return run_in_place(py, running, timeout, &work);
    }
    let started = Instant::now();
    let may_repeat = timeout.is_none_or(|timeout| timeout > IN_PLACE_MAX);
    let short = if may_repeat { Some(IN_PLACE_MAX) } else { timeout };
    let first = py.detach(|| {
        let registered = running.begin();
        work(&Attempt { timeout: short, started, cancel: registered.token.clone(), is_short: may_repeat })
    });
    match first {
        Err(error) if may_repeat && error.kind() == ErrorKind::Deadline => {
            run_beside(py, running, timeout, started, None, &work)
        }
        done => done.map_err(|error| raised(&error)),
    }
}

/// Runs `work`, which may not run twice, without the interpreter lock.
///
/// # Errors
/// As [`run`].
pub(crate) fn run_once<T: Send>(
    py: Python<'_>,
    running: &Running,
    timeout: Option<Duration>,
    work: impl Fn(&Attempt) -> Result<T> + Sync,
) -> PyResult<T> {
    match on_main_thread(py)? {
        true => run_beside(py, running, timeout, Instant::now(), None, &work),
        false => run_in_place(py, running, timeout, &work),
    }
}

/// Runs `work`, which may not run twice, on another thread, and calls `tick` meanwhile, every 50 ms. An
/// exception of `tick` cancels the work.
///
/// # Errors
/// As [`run`]; exceptions of `tick`.
pub(crate) fn run_watched<T: Send>(
    py: Python<'_>,
    running: &Running,
    tick: Tick<'_>,
    work: impl Fn(&Attempt) -> Result<T> + Sync,
) -> PyResult<T> {
    run_beside(py, running, None, Instant::now(), Some(tick), &work)
}

fn run_in_place<T: Send>(
    py: Python<'_>,
    running: &Running,
    timeout: Option<Duration>,
    work: &(impl Fn(&Attempt) -> Result<T> + Sync),
) -> PyResult<T> {
    py.detach(|| {
        let registered = running.begin();
        let cancel = registered.token.clone();
        work(&Attempt { timeout, started: Instant::now(), cancel, is_short: false })
    })
    .map_err(|error| raised(&error))
}

/// Called while work runs.
type Tick<'t> = &'t (dyn Fn(Python<'_>) -> PyResult<()> + Sync);

/// Runs `work` on another thread while this one checks for signals.
fn run_beside<T: Send>(
    py: Python<'_>,
    running: &Running,
    timeout: Option<Duration>,
    started: Instant,
    tick: Option<Tick<'_>>,
    work: &(impl Fn(&Attempt) -> Result<T> + Sync),
) -> PyResult<T> {
    py.detach(|| {
        scope(|scope| {
            let registered = running.begin();
            let cancel = registered.token.clone();
            let (sender, receiver) = channel();
            let body = move || {
                let done = work(&Attempt { timeout, started, cancel, is_short: false });
                // The receiver waits for it.
                let _ = sender.send(done);
            };
            let worker = Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, body);
            let worker = worker.map_err(|error| raised(&Error::io("start a thread", &error)))?;
            let mut interrupted = None;
            loop {
                match receiver.recv_timeout(SIGNALS_EVERY) {
                    Ok(done) => {
                        return match interrupted {
                            Some(interrupt) => Err(interrupt),
                            None => done.map_err(|error| raised(&error)),
                        };
                    }
                    Err(RecvTimeoutError::Timeout) => {
                        if interrupted.is_some() {
                            continue;
                        }
                        let check = |py: Python<'_>| {
                            py.check_signals()?;
                            tick.map_or(Ok(()), |tick| tick(py))
                        };
                        if let Err(interrupt) = Python::attach(check) {
                            registered.token.cancel();
                            interrupted = Some(interrupt);
                        }
                    }
                    Err(RecvTimeoutError::Disconnected) => match worker.join() {
                        Err(panic) => std::panic::resume_unwind(panic),
                        Ok(()) => return Err(raised(&Error::internal("a worker ended without a result"))),
                    },
                }
            }
        })
    })
}

thread_local! {
    static IS_MAIN: Cell<Option<bool>> = const { Cell::new(None) };
}

/// Whether this is the main thread of the interpreter.
fn on_main_thread(py: Python<'_>) -> PyResult<bool> {
    if let Some(is_main) = IS_MAIN.get() {
        return Ok(is_main);
    }
    let threading = py.import("threading")?;
    let main = threading.call_method0("main_thread")?.getattr("ident")?;
    let is_main = threading.call_method0("get_ident")?.eq(main)?;
    IS_MAIN.set(Some(is_main));
    Ok(is_main)
}

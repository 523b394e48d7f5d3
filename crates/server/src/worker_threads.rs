//! Threads on which requests work: those for light ones, which wait for the next, and one for each heavy one,
//! behind all others in line for the processor.
//!
//! Heavy queries take whole cores for seconds. Where there are more of them than cores, the threads that
//! answer light ones would stand in one line with theirs at every wake-up.
//!
//! # Shape
//! On Linux a thread can be nicer than its process, and whatever it starts is as nice: here the helpers of
//! the query. It cannot be less nice again, so a thread that has *stepped back* ends with its request.
//! Elsewhere all threads are alike.
//!
//! * [`heavy`]: a thread that steps back before it begins.
//! * [`light`]: the thread that became idle last, or a new one; it steps back at the moment the gate of the
//!   driver takes its request for heavy ([`vervet::on_heavy`]), so a wrong estimate costs others 1 to 2 ms.
//!   An idle one ends after [`IDLE_TIMEOUT`]. There are as many as there are places (`state`), at most.
//!
//! When a heavy query has ended, the allocator is asked within [`RELEASE_DELAY`] to give back what it left:
//! glibc keeps much of it in each of its arenas otherwise, and there are eight of those for each core.
//! # Cost
//! 30 to 50 µs for a new thread.
//! # Why not those of tokio
//! Its threads for blocking work are kept and used again, so none of them may step back.

use crate::reply::{Failure, Outcome};
use crate::state::State;
use hyper::StatusCode;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use vervet_model::Error;

/// Room for the recursion of parsers and planners, whose limits of nesting are made for the main thread's.
pub(crate) const STACK_BYTES: usize = 8 << 20;

/// How soon memory goes back; not at once, as that takes milliseconds where much is in pieces.
const RELEASE_DELAY: Duration = Duration::from_secs(1);

/// How long a thread waits for the next light request.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);

thread_local! {
    static HAS_LOWERED_PRIORITY: Cell<bool> = const { Cell::new(false) };
}

/// Has `work` done on a thread for heavy requests, and waits for what it tells first.
///
/// # Errors
/// 503: the system gives no threads. A panic in `work`.
pub(crate) async fn heavy<T: Send + 'static>(
    state: &Arc<State>,
    work: impl FnOnce(oneshot::Sender<T>) + Send + 'static,
) -> Outcome<T> {
    let (sender, receiver) = oneshot::channel();
    let (handle, state) = (Handle::current(), Arc::clone(state));
    start("vervet-heavy", move || {
        let _entered = handle.enter();
        let _after = ReleaseMemory(state);
        lower_priority();
        work(sender);
    })?;
    receive(receiver).await
}

/// Has `work` done on a thread for light requests, and waits for what it tells first.
///
/// # Errors
/// As [`heavy`].
pub(crate) async fn light<T: Send + 'static>(
    state: &Arc<State>,
    work: impl FnOnce(oneshot::Sender<T>) + Send + 'static,
) -> Outcome<T> {
    let (sender, receiver) = oneshot::channel();
    let (handle, work_state) = (Handle::current(), Arc::clone(state));
    state.threads.run(Box::new(move || {
        let _entered = handle.enter();
        // A panic drops the sender, so the receiver reports an error.
        let _ = catch_unwind(AssertUnwindSafe(|| work(sender)));
        if HAS_LOWERED_PRIORITY.get() {
            drop(ReleaseMemory(work_state));
        }
    }))?;
    receive(receiver).await
}

async fn receive<T>(receiver: oneshot::Receiver<T>) -> Outcome<T> {
    receiver.await.map_err(|_| Error::internal("a request ended without an answer").into())
}

type WorkItem = Box<dyn FnOnce() + Send>;

/// The threads that wait for light requests.
#[derive(Debug, Default)]
pub(crate) struct WorkerThreads {
    idle: Mutex<Vec<IdleThread>>,
    numbers: AtomicU64,
}

#[derive(Debug)]
struct IdleThread {
    number: u64,
    work_items: SyncSender<WorkItem>,
}

impl WorkerThreads {
    fn run(self: &Arc<Self>, work_item: WorkItem) -> Outcome<()> {
        // The last one: what it needs is more likely in a cache.
        let idle = lock(&self.idle).pop();
        let work_item = match idle {
            None => work_item,
            Some(idle) => match idle.work_items.send(work_item) {
                Ok(()) => return Ok(()),
                Err(refused) => refused.0,
            },
        };
        let threads = Arc::clone(self);
        start("vervet-light", move || {
            vervet::on_heavy(lower_priority);
            threads.work(work_item);
        })
    }

    /// What a thread does: a job, and those that come while it is idle.
    fn work(&self, first: WorkItem) {
        let (sender, work_items) = sync_channel(1);
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let mut work_item = first;
        loop {
            work_item();
            if HAS_LOWERED_PRIORITY.get() {
                return;
            }
            lock(&self.idle).push(IdleThread { number, work_items: sender.clone() });
            work_item = match work_items.recv_timeout(IDLE_TIMEOUT) {
                Ok(work_item) => work_item,
                Err(_) => {
                    let mut idle = lock(&self.idle);
                    if let Some(at) = idle.iter().position(|idle| idle.number == number) {
                        idle.swap_remove(at);
                        return;
                    }
                    drop(idle);
                    // `run` has removed this thread from the list, and sends a job.
                    let Ok(work_item) = work_items.recv() else { return };
                    work_item
                }
            };
        }
    }
}

fn start(name: &str, work: impl FnOnce() + Send + 'static) -> Outcome<()> {
    let started = Builder::new().name(name.to_owned()).stack_size(STACK_BYTES).spawn(work);
    started.map(drop).map_err(|error| {
        let message = format!("there is no thread for this request: {error}");
        Failure::new(StatusCode::SERVICE_UNAVAILABLE, message).hint("try again later")
    })
}

/// Makes this thread one that others go before.
fn lower_priority() {
    // One that may not is as all others, which is slower for them and not wrong.
    #[cfg(target_os = "linux")]
    {
        let _ = rustix::process::nice(10);
        HAS_LOWERED_PRIORITY.set(true);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has memory released when a query has ended, also by a panic.
struct ReleaseMemory(Arc<State>);

impl Drop for ReleaseMemory {
    fn drop(&mut self) {
        if self.0.releases.swap(true, Ordering::AcqRel) {
            return;
        }
        let state = Arc::clone(&self.0);
        // By an ordinary thread: it holds locks of the allocator meanwhile.
        tokio::spawn(async move {
            tokio::time::sleep(RELEASE_DELAY).await;
            state.releases.store(false, Ordering::Release);
            let _ = tokio::task::spawn_blocking(vervet_env::release_free_memory).await;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, channel};
    use std::thread::{ThreadId, current};
    use std::time::Instant;

    /// Runs a job that steps back or not; receives its thread once it has ended.
    fn run(threads: &Arc<WorkerThreads>, lowers_priority: bool) -> Receiver<ThreadId> {
        let (sender, receiver) = channel();
        let done = threads.run(Box::new(move || {
            if lowers_priority {
                lower_priority();
            }
            sender.send(current().id()).unwrap();
        }));
        assert!(done.is_ok());
        receiver
    }

    fn wait_for_idle(threads: &WorkerThreads, count: usize) {
        let begin = Instant::now();
        while lock(&threads.idle).len() != count {
            assert!(begin.elapsed() < Duration::from_secs(30), "{} idle threads", lock(&threads.idle).len());
            std::thread::yield_now();
        }
    }

    #[test]
    fn an_idle_thread_takes_the_next_request() {
        let threads = Arc::default();
        let first = run(&threads, false).recv().unwrap();
        wait_for_idle(&threads, 1);
        assert_eq!(run(&threads, false).recv().unwrap(), first);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_thread_with_lowered_priority_takes_no_further_request() {
        let threads = Arc::default();
        let before = rustix::process::nice(0).unwrap();
        let first = run(&threads, true).recv().unwrap();
        let second = run(&threads, false).recv().unwrap();
        assert_ne!(first, second);
        wait_for_idle(&threads, 1);
        let (sender, receiver) = channel();
        let nice = move || sender.send((current().id(), rustix::process::nice(0).unwrap())).unwrap();
        assert!(threads.run(Box::new(nice)).is_ok());
        assert_eq!(receiver.recv().unwrap(), (second, before), "an ordinary one");
    }
}

//! Worker threads: a pool for light requests, and one thread with lower priority for each heavy request.
//!
//! A heavy query occupies whole processors for seconds. If all threads had the same priority, threads of
//! light requests would compete with heavy ones at every wake-up.
//!
//! # Shape
//! On Linux the nice value is a property of a thread, inherited by the threads that it starts (the helpers of
//! a query). An unprivileged thread cannot decrease it again, so a thread that has lowered its priority ends
//! with its request. On other systems priorities do not change.
//!
//! * [`heavy`]: a new thread, which lowers its priority before it starts.
//! * [`light`]: the most recently idle thread, or a new one, with short time slices
//!   ([`LIGHT_TIME_SLICE`]). It lowers its priority as soon as the driver's gate classifies its request as
//!   heavy ([`vervet::on_heavy`]), so a wrong estimate delays other requests by 1 to 2 ms. An idle thread
//!   ends after [`IDLE_TIMEOUT`]. Permits (`state`) bound the number of threads.
//!
//! Within [`RELEASE_DELAY`] of the end of a heavy query, free memory is returned to the operating system:
//! glibc otherwise keeps much of it in its arenas, eight for each processor.
//! # Cost
//! 30 to 50 µs for a new thread.
//! # Why not tokio's blocking threads
//! They are reused, so their priority must not change.

use crate::http::reply::{Failure, Outcome};
use hyper::StatusCode;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::Builder;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use vervet_model::{Error, lock};

/// The stack size: the nesting limits of parsers and planners assume that of a main thread.
pub(crate) const STACK_BYTES: usize = 8 << 20;

/// The delay before free memory is returned. Returning fragmented memory takes milliseconds, so consecutive
/// queries share one return.
const RELEASE_DELAY: Duration = Duration::from_secs(1);

/// The time slices of I/O threads and of threads of light requests: the shortest that Linux has. A thread
/// that wakes up with shorter slices preempts one of a heavy request at once; otherwise it waits for the
/// next timer tick, up to 4 ms, unless the heavy one yields. In a typical second of the siege
/// (`examples/load`) the 99th percentile of light requests is 3.3 ms without them, and 1.8 to 2.9 ms with
/// them (Linux 6.18, 2026-11-24).
const LIGHT_TIME_SLICE: Duration = Duration::from_micros(100);

/// The idle time after which a pool thread ends.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);

thread_local! {
    static HAS_LOWERED_PRIORITY: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work` on a new thread with lower priority; returns the value that it sends.
///
/// # Errors
/// 503 if the system cannot create the thread; an internal error if `work` panics.
pub(crate) async fn heavy<T: Send + 'static>(
    threads: &Arc<WorkerThreads>,
    work: impl FnOnce(oneshot::Sender<T>) + Send + 'static,
) -> Outcome<T> {
    let (sender, receiver) = oneshot::channel();
    let (handle, pool) = (Handle::current(), Arc::clone(threads));
    start("vervet-heavy", move || {
        let _entered = handle.enter();
        let _after = ReleaseMemory(pool);
        lower_priority();
        work(sender);
    })?;
    receive(receiver).await
}

/// Runs `work` on a pool thread; returns the value that it sends.
///
/// # Errors
/// As [`heavy`].
pub(crate) async fn light<T: Send + 'static>(
    threads: &Arc<WorkerThreads>,
    work: impl FnOnce(oneshot::Sender<T>) + Send + 'static,
) -> Outcome<T> {
    let (sender, receiver) = oneshot::channel();
    let (handle, pool) = (Handle::current(), Arc::clone(threads));
    threads.run(Box::new(move || {
        let _entered = handle.enter();
        // A panic drops the sender, so the receiver reports an error.
        let _ = catch_unwind(AssertUnwindSafe(|| work(sender)));
        if HAS_LOWERED_PRIORITY.get() {
            drop(ReleaseMemory(pool));
        }
    }))?;
    receive(receiver).await
}

async fn receive<T>(receiver: oneshot::Receiver<T>) -> Outcome<T> {
    receiver.await.map_err(|_| Error::internal("a request ended without an answer").into())
}

type WorkItem = Box<dyn FnOnce() + Send>;

/// The pool of threads for light requests.
#[derive(Debug, Default)]
pub(crate) struct WorkerThreads {
    idle: Mutex<Vec<IdleThread>>,
    numbers: AtomicU64,
    /// Whether a return of free memory to the operating system is scheduled.
    is_release_scheduled: AtomicBool,
}

#[derive(Debug)]
struct IdleThread {
    number: u64,
    work_items: SyncSender<WorkItem>,
}

impl WorkerThreads {
    fn run(self: &Arc<Self>, work_item: WorkItem) -> Outcome<()> {
        // The most recently idle thread: its data is most likely still in a cache.
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
            shorten_time_slices();
            threads.work(work_item);
        })
    }

    /// The main loop of a pool thread: `first`, and items that arrive while it is idle.
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
                    // `run` has removed this thread from the list, and is about to send an item.
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
        let message = format!("could not start a thread for this request: {error}");
        Failure::new(StatusCode::SERVICE_UNAVAILABLE, message).hint("try again later")
    })
}

/// Requests short time slices for the calling thread, which serves light requests.
pub(crate) fn shorten_time_slices() {
    vervet_env::request_time_slice(Some(LIGHT_TIME_SLICE));
}

/// Whether the calling thread has lowered its priority.
pub(crate) fn has_lowered_priority() -> bool {
    HAS_LOWERED_PRIORITY.get()
}

/// Lowers the priority of the calling thread, and restores its time slices.
pub(crate) fn lower_priority() {
    // Failure is ignored: the thread keeps its priority, which affects only latency.
    #[cfg(target_os = "linux")]
    {
        vervet_env::request_time_slice(None);
        let _ = rustix::process::nice(10);
        HAS_LOWERED_PRIORITY.set(true);
    }
}

/// Schedules the return of free memory on drop, also after a panic.
struct ReleaseMemory(Arc<WorkerThreads>);

impl Drop for ReleaseMemory {
    fn drop(&mut self) {
        if self.0.is_release_scheduled.swap(true, Ordering::AcqRel) {
            return;
        }
        let threads = Arc::clone(&self.0);
        // On a thread of normal priority, since it holds allocator locks.
        tokio::spawn(async move {
            tokio::time::sleep(RELEASE_DELAY).await;
            threads.is_release_scheduled.store(false, Ordering::Release);
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

    /// Runs an item that may lower the priority of its thread; receives the id of that thread.
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
        assert_eq!(receiver.recv().unwrap(), (second, before), "the pool thread has normal priority");
    }
}

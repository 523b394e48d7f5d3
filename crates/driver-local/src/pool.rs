//! Thread pool of helpers for heavy queries, with scoped jobs.
//!
//! # Shape
//! A queue of jobs. A job is a closure on the stack of the calling thread, borrowed by the pool while
//! [`Pool::scope`] runs; several threads may run it at once. While other jobs wait, a helper returns its job
//! to the end of the queue from time to time (the closure returns [`Requeue::Yes`]), so that heavy queries
//! share helpers. Threads are started on demand and end with the pool.
//! # Alternatives
//! A `rayon` scope ends only when all spawned tasks have run, so a query would wait for helpers busy with
//! other queries (perhaps blocked on a slow reader). This pool removes jobs that no helper has started.
//! Threads spawned for each query (`std::thread::scope`) need no queue, but 10 to 30 µs each.
#![expect(unsafe_code, reason = "helpers run a closure that borrows from the stack of the calling thread")]

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use vervet_model::lock;

/// Stack size of a helper: that of a main thread, since batches run through steps depth first.
const STACK_BYTES: usize = 8 << 20;

/// Whether to return a job to the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Requeue {
    Yes,
    No,
}

/// The closure of a job.
type Work<'s> = dyn Fn() -> Requeue + Sync + 's;

/// The helpers of one database.
pub(crate) struct Pool {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// Signals a job in the queue, or the end of the pool.
    ready: Condvar,
    /// Number of jobs in the queue; may lag behind.
    waiting: AtomicUsize,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Arc<Job>>,
    ended: bool,
}

/// # Invariants
/// A thread may use `work` only while `state.inside` counts it. [`Pool::scope`], whose caller owns the
/// closure, returns only when the job is closed and `inside` is 0.
struct Job {
    work: *const Work<'static>,
    state: Mutex<JobState>,
    left: Condvar,
}

#[derive(Default)]
struct JobState {
    closed: bool,
    inside: usize,
}

// SAFETY: `work` points to a closure that is `Sync`, so any thread may call it through a shared reference;
// the invariant of `Job` guarantees that it is alive when called.
unsafe impl Send for Job {}
// SAFETY: as above; the other fields are `Sync` themselves.
unsafe impl Sync for Job {}

impl Pool {
    /// A pool without threads.
    pub(crate) fn new() -> Self {
        Self { shared: Arc::default(), threads: Mutex::default() }
    }

    /// Runs `lead` on the calling thread. Helpers that it calls ([`Scope::call`]) run `work`. After this
    /// function has returned or unwound, no helper runs `work`. A panic of `work` ends only that call.
    pub(crate) fn scope<'s, R>(&self, work: &'s Work<'s>, lead: impl FnOnce(&Scope<'_>) -> R) -> R {
        // SAFETY: only the lifetime changes. `scope` below is dropped before this function returns or
        // unwinds, and its drop closes the job and waits until no thread is inside; no thread outside uses
        // `work`.
        let work = unsafe { std::mem::transmute::<&'s Work<'s>, &'static Work<'static>>(work) };
        let job = Arc::new(Job { work, state: Mutex::default(), left: Condvar::new() });
        let scope = Scope { pool: self, job };
        lead(&scope)
    }

    /// Whether jobs are waiting for a helper.
    pub(crate) fn is_wanted(&self) -> bool {
        self.shared.waiting.load(Relaxed) > 0
    }

    /// Number of threads.
    pub(crate) fn threads(&self) -> usize {
        lock(&self.threads).len()
    }

    /// Starts threads up to `wanted`, or until the system refuses.
    fn grow(&self, wanted: usize) {
        let mut threads = lock(&self.threads);
        while threads.len() < wanted {
            let shared = Arc::clone(&self.shared);
            let name = format!("vervet-query-{}", threads.len());
            let thread = Builder::new().name(name).stack_size(STACK_BYTES).spawn(move || help(&shared));
            match thread {
                Ok(thread) => threads.push(thread),
                // Fewer helpers affect only the speed of a query.
                Err(_) => break,
            }
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        lock(&self.shared.queue).ended = true;
        self.shared.ready.notify_all();
        for thread in lock(&self.threads).drain(..) {
            // A helper catches panics of jobs, so it does not panic itself.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Pool({} threads)", self.threads())
    }
}

/// Handle of a job within [`Pool::scope`].
pub(crate) struct Scope<'p> {
    pool: &'p Pool,
    job: Arc<Job>,
}

impl Scope<'_> {
    /// Enqueues the job for `helpers` helpers. Each starts when it is free, if the scope still runs.
    pub(crate) fn call(&self, helpers: usize) {
        if helpers == 0 {
            return;
        }
        self.pool.grow(helpers);
        let shared = &self.pool.shared;
        let mut queue = lock(&shared.queue);
        queue.jobs.extend((0..helpers).map(|_| Arc::clone(&self.job)));
        shared.waiting.store(queue.jobs.len(), Relaxed);
        drop(queue);
        for _ in 0..helpers {
            shared.ready.notify_one();
        }
    }
}

impl Drop for Scope<'_> {
    fn drop(&mut self) {
        let shared = &self.pool.shared;
        {
            let mut queue = lock(&shared.queue);
            queue.jobs.retain(|job| !Arc::ptr_eq(job, &self.job));
            shared.waiting.store(queue.jobs.len(), Relaxed);
        }
        let mut state = lock(&self.job.state);
        state.closed = true;
        while state.inside > 0 {
            state = self.job.left.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Job {
    /// Runs the job once, unless it is closed.
    fn run(&self) -> Requeue {
        /// Leaves on drop, also if the work panics.
        struct Inside<'j>(&'j Job);
        impl Drop for Inside<'_> {
            fn drop(&mut self) {
                lock(&self.0.state).inside -= 1;
                self.0.left.notify_all();
            }
        }
        let inside = {
            let mut state = lock(&self.state);
            if state.closed {
                return Requeue::No;
            }
            state.inside += 1;
            Inside(self)
        };
        // SAFETY: this thread is inside, so the closure is alive by the invariant of `Job`.
        let work = unsafe { &*self.work };
        // A closure that may panic is responsible for its own unwind safety.
        let requeue = catch_unwind(AssertUnwindSafe(work)).unwrap_or(Requeue::No);
        drop(inside);
        requeue
    }
}

/// Main loop of a helper.
fn help(shared: &Shared) {
    let mut queue = lock(&shared.queue);
    loop {
        if queue.ended {
            return;
        }
        let Some(job) = queue.jobs.pop_front() else {
            queue = shared.ready.wait(queue).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        shared.waiting.store(queue.jobs.len(), Relaxed);
        drop(queue);
        let requeue = job.run();
        queue = lock(&shared.queue);
        if requeue == Requeue::Yes && !lock(&job.state).closed {
            queue.jobs.push_back(job);
            shared.waiting.store(queue.jobs.len(), Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::sync::atomic::AtomicU64;
    use std::time::Duration;

    #[test]
    fn helpers_borrow_the_closure_only_within_the_scope() {
        let pool = Pool::new();
        for round in 0..200_u64 {
            let sum = AtomicU64::new(0);
            let next = AtomicU64::new(0);
            let work = || {
                loop {
                    let number = next.fetch_add(1, Relaxed);
                    if number >= 1000 {
                        return Requeue::No;
                    }
                    sum.fetch_add(number + round, Relaxed);
                }
            };
            pool.scope(&work, |scope| {
                scope.call(3);
                work();
            });
            // A helper that still ran would change this sum.
            assert_eq!(sum.into_inner(), 499_500 + 1000 * round);
        }
        assert_eq!(pool.threads(), 3);
    }

    #[test]
    fn a_scope_ends_without_waiting_for_busy_helpers() {
        let pool = Pool::new();
        let (begun, end) = (Barrier::new(2), Barrier::new(2));
        let busy = || {
            begun.wait();
            end.wait();
            Requeue::No
        };
        pool.scope(&busy, |scope| {
            scope.call(1);
            begun.wait();
            let never = || unreachable!("the only helper is busy");
            pool.scope(&never, |scope| scope.call(1));
            assert!(!pool.is_wanted(), "the job was taken back");
            end.wait();
        });
    }

    #[test]
    fn a_requeued_job_runs_after_waiting_jobs() {
        let pool = Pool::new();
        let (first, second) = (AtomicU64::new(0), AtomicU64::new(0));
        let give_way = || {
            first.fetch_add(1, Relaxed);
            std::thread::sleep(Duration::from_micros(100));
            Requeue::Yes
        };
        let work = || {
            second.fetch_add(1, Relaxed);
            Requeue::No
        };
        pool.scope(&give_way, |scope| {
            scope.call(1);
            pool.scope(&work, |scope| {
                scope.call(1);
                while second.load(Relaxed) == 0 {
                    std::thread::yield_now();
                }
            });
            let before = first.load(Relaxed);
            while first.load(Relaxed) == before {
                std::thread::yield_now();
            }
        });
    }

    #[test]
    fn panics_of_work_leave_pool_and_scope_usable() {
        let pool = Pool::new();
        let calls = AtomicU64::new(0);
        let work = || {
            calls.fetch_add(1, Relaxed);
            panic!("expected by this test");
        };
        pool.scope(&work, |scope| {
            scope.call(1);
            while calls.load(Relaxed) == 0 {
                std::thread::yield_now();
            }
        });
        // A panic of the calling thread waits for the threads inside.
        let inside = AtomicU64::new(0);
        let slow = || {
            inside.fetch_add(1, Relaxed);
            std::thread::sleep(Duration::from_millis(20));
            inside.fetch_sub(1, Relaxed);
            Requeue::No
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            pool.scope(&slow, |scope| {
                scope.call(1);
                while inside.load(Relaxed) == 0 {
                    std::thread::yield_now();
                }
                panic!("expected by this test");
            });
        }));
        assert!(outcome.is_err());
        assert_eq!(inside.load(Relaxed), 0);
        assert_eq!(pool.threads(), 1, "the helper that caught a panic is alive");
    }
}

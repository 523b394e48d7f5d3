//! The gate: controls which threads of heavy queries run, so that threads of light queries find a processor.
//!
//! # Shape
//! There are as many *slots* as processors available to the process, and [`SPARE_SLOTS`] more. A thread of a
//! heavy query holds a slot while it runs, and passes the gate between two batches:
//!
//! ```text
//! pass: no slot         takes a free slot, or queues for one; at the front within its time slice
//!       slice used up   the first in the queue gets the slot, this thread queues at the end    TIME_SLICE
//!       otherwise       yields the processor if a light query ran recently                     YIELD_INTERVAL
//! ```
//! A thread that wakes up for a light query therefore waits for one or two [`YIELD_INTERVAL`]s, independently
//! of the fairness accounting of the scheduler. It waits longer if a batch takes longer, so batches are a
//! quarter as large beside light queries. Without slots, eight heavy queries would be ahead of it in the run
//! queue. Light queries never enter the gate.
//! # Invariants
//! 1. No thread waits forever: a slot whose holder has not passed for [`LEASE`] (it is blocked, or between
//!    two limit checks) goes to the first in the queue, and the former holder queues at its next pass.
//! 2. Heavy queries do not starve: holders of slots yield only to threads that are ready to run, and get the
//!    processor share of their scheduling priority.
//! # Cost
//! A pass is two comparisons; every [`YIELD_INTERVAL`] a system call (0.5 µs), every [`TIME_SLICE`] a thread
//! switch if the queue is not empty.
//! # Source
//! "Multi-level feedback queue", Corbató et al., "An Experimental Time-Sharing System", AFIPS SJCC 1962, for
//! classes by used time; HyPer, SIGMOD 2014, "Morsel-Driven Parallelism", for yielding between morsels.
//! Different: priorities are not changed, since threads belong to the embedding program, which may lower them
//! itself ([`on_heavy`]).
//! Time slices by `sched_setattr`: longer ones for heavy threads (2 to 100 ms) had no effect on Linux 6.18;
//! shorter ones for light threads have one, and the server requests them. They do not replace the yields: a
//! light thread that has used its fair share waits for the whole slice of a heavy one.
//! # Not here
//! When a query is heavy: `vervet_kernel::Gate`.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::Thread;
use std::time::{Duration, Instant};
use vervet_model::lock;

/// Slots in addition to one for each processor. They are used while a holder is blocked, or while the
/// scheduler runs two holders on one processor. Without one, a fifth of the processor time was idle beside
/// concurrent builds (2026-11-23).
const SPARE_SLOTS: usize = 1;

/// How often a heavy thread yields.
const YIELD_INTERVAL: Duration = Duration::from_micros(200);

/// How long a thread keeps its slot while others wait for one. At 5 ms, cache misses after switches took a
/// fifth of the throughput of eight heavy queries on two processors; at 20 ms no loss was measurable
/// (2026-11-23).
const TIME_SLICE: Duration = Duration::from_millis(20);

/// Time after which a thread that does not pass the gate loses its slot.
const LEASE: Duration = Duration::from_millis(3);

/// How often a queued thread checks whether to stop. Each check costs some 10 µs of a processor.
const POLL_INTERVAL: Duration = Duration::from_millis(8);

/// Heavy queries yield for this time after a light query. Longer than the pause between two requests of an
/// interactive user.
const LIGHT_WINDOW: Duration = Duration::from_secs(1);

/// Numbers of threads and of gates.
static NUMBERS: AtomicU64 = AtomicU64::new(1);

thread_local! {
    static THREAD: ThreadState = ThreadState {
        number: NUMBERS.fetch_add(1, Relaxed),
        held: const { Cell::new(None) },
        yields_at: const { Cell::new(0) },
        slice_gate: const { Cell::new(0) },
        slice_ends: const { Cell::new(0) },
        on_heavy: const { Cell::new(None) },
    };
}

/// The state of a thread at the gate.
struct ThreadState {
    number: u64,
    /// The gate and the slot that it holds; the slot may have been reassigned.
    held: Cell<Option<(u64, usize)>>,
    /// The next yield, in nanoseconds of the gate.
    yields_at: Cell<u64>,
    /// The gate of its last time slice, and the end of that slice.
    slice_gate: Cell<u64>,
    slice_ends: Cell<u64>,
    /// See [`on_heavy`].
    on_heavy: Cell<Option<fn()>>,
}

/// Calls `call` on this thread, once, as soon as a query or traversal that runs on it is heavy: by its
/// estimate, or after 1 to 2 ms of processor time. For programs that prioritize light requests by system
/// priorities of their threads; the driver itself changes no priority.
pub fn on_heavy(call: fn()) {
    THREAD.with(|thread_state| thread_state.on_heavy.set(Some(call)));
}

/// See the header of this file.
#[derive(Debug)]
pub(crate) struct Gate {
    number: u64,
    begin: Instant,
    slots: Box<[Slot]>,
    queue: Mutex<VecDeque<Arc<Waiter>>>,
    /// Length of `queue`; may lag behind.
    waiting: AtomicUsize,
    /// End of the last light query, in nanoseconds of the gate; 0: none. It lags by up to an eighth of
    /// [`LIGHT_WINDOW`].
    light_at: AtomicU64,
}

/// Changed under the lock of the queue, except `passed_at`.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Slot {
    /// The number of its holder; 0: none.
    holder: AtomicU64,
    passed_at: AtomicU64,
}

#[derive(Debug)]
struct Waiter {
    thread: Thread,
    number: u64,
    /// The assigned slot plus one; 0: none.
    slot: AtomicUsize,
    /// Whether it has stopped waiting.
    has_left: AtomicBool,
}

impl Gate {
    /// A gate for this number of processors.
    pub(crate) fn new(processors: usize) -> Self {
        Self::with_slots(processors + SPARE_SLOTS)
    }

    fn with_slots(slots: usize) -> Self {
        Self {
            number: NUMBERS.fetch_add(1, Relaxed),
            begin: Instant::now(),
            slots: (0..slots).map(|_| Slot::default()).collect(),
            queue: Mutex::default(),
            waiting: AtomicUsize::new(0),
            light_at: AtomicU64::new(0),
        }
    }

    /// Nanoseconds since the creation of the gate, at least 1.
    fn at(&self, now: Instant) -> u64 {
        nanoseconds(now.saturating_duration_since(self.begin)).max(1)
    }

    /// The slot that the calling thread holds.
    fn held(&self, thread_state: &ThreadState) -> Option<(usize, &Slot)> {
        let (_, at) = thread_state.held.get().filter(|(gate, _)| *gate == self.number)?;
        let slot = self.slots.get(at).filter(|slot| slot.holder.load(Relaxed) == thread_state.number)?;
        Some((at, slot))
    }

    /// Queues for a slot, until it gets one or `stop` holds.
    fn acquire(&self, thread_state: &ThreadState, now: Instant, stop: &dyn Fn() -> bool) {
        if let Some(call) = thread_state.on_heavy.take() {
            call();
        }
        let waiter = Arc::new(Waiter {
            thread: std::thread::current(),
            number: thread_state.number,
            slot: AtomicUsize::new(0),
            has_left: AtomicBool::new(false),
        });
        let at = self.at(now);
        // A thread that has waited for another one, or begins the next pipeline of its query, continues its
        // time slice.
        let continues = thread_state.slice_gate.get() == self.number && at < thread_state.slice_ends.get();
        self.with_queue(at, |queue| match continues {
            true => queue.push_front(Arc::clone(&waiter)),
            false => queue.push_back(Arc::clone(&waiter)),
        });
        let slot = loop {
            match waiter.slot.load(Relaxed) {
                0 => {}
                slot => break slot - 1,
            }
            // The first in the queue checks for expired leases; the others only for `stop`.
            let is_first = lock(&self.queue).front().is_none_or(|first| first.number == thread_state.number);
            std::thread::park_timeout(if is_first { LEASE } else { POLL_INTERVAL });
            if waiter.slot.load(Relaxed) > 0 {
                continue;
            }
            if stop() {
                // If a slot was assigned meanwhile, the thread keeps it until the query ends.
                waiter.has_left.store(true, Relaxed);
            }
            self.with_queue(self.at(Instant::now()), |_| {});
            if waiter.has_left.load(Relaxed) && waiter.slot.load(Relaxed) == 0 {
                return;
            }
        };
        let at = self.at(Instant::now());
        thread_state.held.set(Some((self.number, slot)));
        if !continues || at >= thread_state.slice_ends.get() {
            thread_state.slice_gate.set(self.number);
            thread_state.slice_ends.set(at + nanoseconds(TIME_SLICE));
        }
        thread_state.yields_at.set(at + nanoseconds(YIELD_INTERVAL));
    }

    /// Changes the queue, and assigns free slots to its first threads.
    fn with_queue(&self, at: u64, change: impl FnOnce(&mut VecDeque<Arc<Waiter>>)) {
        let mut queue = lock(&self.queue);
        change(&mut queue);
        queue.retain(|waiter| !waiter.has_left.load(Relaxed));
        for (number, slot) in self.slots.iter().enumerate() {
            let is_free = slot.holder.load(Relaxed) == 0
                || at.saturating_sub(slot.passed_at.load(Relaxed)) > nanoseconds(LEASE);
            if !is_free {
                continue;
            }
            let Some(first) = queue.pop_front() else { break };
            slot.passed_at.store(at, Relaxed);
            slot.holder.store(first.number, Relaxed);
            first.slot.store(number + 1, Relaxed);
            first.thread.unpark();
        }
        self.waiting.store(queue.len(), Relaxed);
    }

    fn free(&self, thread_state: &ThreadState, now: Instant) {
        if let Some((_, slot)) = self.held(thread_state) {
            slot.holder.store(0, Relaxed);
            self.with_queue(self.at(now), |_| {});
        }
        thread_state.held.set(None);
    }
}

impl vervet_kernel::Gate for Gate {
    fn pass(&self, now: Instant, stop: &dyn Fn() -> bool) -> bool {
        let at = self.at(now);
        let light_at = self.light_at.load(Relaxed);
        let is_beside_light = light_at > 0 && at.saturating_sub(light_at) < nanoseconds(LIGHT_WINDOW);
        THREAD.with(|thread_state| {
            let Some((_, slot)) = self.held(thread_state) else {
                return self.acquire(thread_state, now, stop);
            };
            if at < thread_state.yields_at.get() {
                return;
            }
            slot.passed_at.store(at, Relaxed);
            thread_state.yields_at.set(at + nanoseconds(YIELD_INTERVAL));
            if at >= thread_state.slice_ends.get() && self.waiting.load(Relaxed) > 0 {
                self.free(thread_state, now);
                self.acquire(thread_state, now, stop);
            } else if is_beside_light {
                std::thread::yield_now();
            }
        });
        is_beside_light
    }

    fn leave(&self) {
        // A thread that is exiting has no state any more; its lease expires.
        let _ = THREAD.try_with(|thread_state| self.free(thread_state, Instant::now()));
    }

    fn light_ended(&self, checked: Instant) {
        let at = self.at(checked);
        // Written rarely, so that threads do not contend for the cache line.
        let before = self.light_at.load(Relaxed);
        if before == 0 || at.saturating_sub(before) > nanoseconds(LIGHT_WINDOW) / 8 {
            self.light_at.store(at, Relaxed);
        }
    }

    fn processor_time(&self) -> Duration {
        vervet_env::cpu_time_of_thread()
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use vervet_kernel::Gate as _;

    const NEVER: &dyn Fn() -> bool = &|| false;

    #[test]
    fn time_slices_let_every_thread_finish() {
        let gate = Gate::with_slots(1);
        let passes: Vec<AtomicU64> = (0..4).map(|_| AtomicU64::new(0)).collect();
        std::thread::scope(|scope| {
            for mine in &passes {
                let (gate, all) = (&gate, &passes);
                scope.spawn(move || {
                    while !all.iter().all(|passes| passes.load(Relaxed) > 100) {
                        gate.pass(Instant::now(), NEVER);
                        mine.fetch_add(1, Relaxed);
                    }
                    gate.leave();
                });
            }
        });
        assert!(lock(&gate.queue).is_empty());
        assert!(gate.slots.iter().all(|slot| slot.holder.load(Relaxed) == 0), "all slots are free");
    }

    #[test]
    fn the_slot_of_a_blocked_thread_is_reassigned() {
        let gate = Gate::with_slots(1);
        let (begun, end) = (Barrier::new(2), Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                gate.pass(Instant::now(), NEVER);
                begun.wait();
                end.wait();
                // The slot has been reassigned: this thread queues, and gets it after the other has left.
                gate.pass(Instant::now(), NEVER);
                gate.leave();
            });
            begun.wait();
            // Returns although the holder is blocked until the next statement.
            gate.pass(Instant::now(), NEVER);
            end.wait();
            gate.leave();
        });
        assert_eq!(gate.slots[0].holder.load(Relaxed), 0);
    }

    #[test]
    fn on_heavy_is_called_once() {
        thread_local! {
            static CALLS: Cell<u32> = const { Cell::new(0) };
        }
        let gate = Gate::with_slots(1);
        on_heavy(|| CALLS.set(CALLS.get() + 1));
        gate.light_ended(Instant::now());
        assert_eq!(CALLS.get(), 0);
        for _ in 0..3 {
            gate.pass(Instant::now(), NEVER);
            gate.leave();
        }
        assert_eq!(CALLS.get(), 1);
    }

    #[test]
    fn a_cancelled_thread_leaves_the_queue() {
        let gate = Gate::with_slots(1);
        // A holder whose lease never expires.
        gate.slots[0].holder.store(u64::MAX, Relaxed);
        gate.slots[0].passed_at.store(u64::MAX, Relaxed);
        gate.pass(Instant::now(), &|| true);
        assert!(lock(&gate.queue).is_empty());
        assert_eq!(gate.slots[0].holder.load(Relaxed), u64::MAX, "the holder keeps its slot");
    }
}

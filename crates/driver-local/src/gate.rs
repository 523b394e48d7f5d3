//! Which threads of heavy queries run, so that light ones find a processor when they come.
//!
//! # Shape
//! As many *slots* as the process may use processors, and [`SPARE_SLOTS`] more. A thread of a heavy query
//! holds a slot while it works, and passes here between two batches:
//!
//! ```text
//! pass: no slot       a free one, else wait in line for one; in front, if the thread left within its turn
//!       its turn over the first in line gets the slot, this thread goes to the end of the line   TIME_SLICE
//!       else          gives way to threads that wait for this processor, if a light query ran   YIELD_INTERVAL
//! ```
//! So a thread that wakes up with a light query waits for [`YIELD_INTERVAL`] or twice that, whatever the
//! scheduler thinks it owes to heavy ones; longer if a piece of work is, which is why batches are a quarter
//! as large beside light queries. Without slots eight heavy queries would stand in line before it. Light
//! queries never come here.
//! # Invariants
//! 1. No thread waits for ever: a slot whose holder has not passed for [`LEASE`] (it is blocked, or in a
//!    piece of work that looks at no limit) goes to the first in line, and the former holder stands in line
//!    at its next pass.
//! 2. Heavy queries do not starve: those that hold slots give way only to threads that are ready to run, and
//!    get what the scheduler of the system gives to threads of their priority.
//! # Cost
//! A pass is two comparisons; every [`YIELD_INTERVAL`] a call of the system (0.5 µs), every [`TIME_SLICE`] a
//! change of threads if there is a line.
//! # Source
//! "Multi-level feedback queue", Corbató et al., "An Experimental Time-Sharing System", AFIPS SJCC 1962, for
//! classes by what was used; HyPer, SIGMOD 2014, "Morsel-Driven Parallelism", for giving way between morsels.
//! Different: priorities are not changed, since a thread of an embedding program is not ours; one that is
//! told ([`on_heavy`]) may step back itself.
//! What did not help on Linux 6.18: longer time slices for heavy threads (`sched_setattr`), 2 to 100 ms. A
//! light thread that wakes up then waits as long, or for the whole slice where it is owed nothing.
//! # Not here
//! When a query is heavy: `vervet_kernel::Gate`.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// Slots besides one for each processor, for moments in which a holder is blocked, or the scheduler has two
/// on one processor: with none, a fifth of the processors idled beside builds (2026-11-23).
const SPARE_SLOTS: usize = 1;

/// How long a heavy thread works before it gives way.
const YIELD_INTERVAL: Duration = Duration::from_micros(200);

/// How long a thread keeps its slot while others wait for one. At 5 ms, what a change of queries costs their
/// caches took a fifth of the throughput of eight heavy ones on two processors, at 20 nothing that could be
/// measured (2026-11-23).
const TIME_SLICE: Duration = Duration::from_millis(20);

/// How long a slot is kept for a thread that does not pass.
const LEASE: Duration = Duration::from_millis(3);

/// How often a thread in line looks whether it should stop. Each look costs some 10 µs of a processor.
const POLL_INTERVAL: Duration = Duration::from_millis(8);

/// How long after a light query heavy ones give way. Longer than the pause between two requests of a person.
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

/// What a thread knows of its place.
struct ThreadState {
    number: u64,
    /// The gate and the slot that it holds; it may have lost it meanwhile.
    held: Cell<Option<(u64, usize)>>,
    /// Nanoseconds of the gate.
    yields_at: Cell<u64>,
    /// The gate at which it had its last turn, and its end.
    slice_gate: Cell<u64>,
    slice_ends: Cell<u64>,
    /// See [`on_heavy`].
    on_heavy: Cell<Option<fn()>>,
}

/// Has `call` called on this thread, once, as soon as a query or traversal that runs on it is heavy: by its
/// estimate, or since it has used 1 to 2 ms of the processor. For programs that own their threads and have
/// light requests go before heavy ones, by priorities of the system; the driver changes none itself.
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
    /// When a light query ended last; 0: never.
    light_at: AtomicU64,
}

/// Changed under the lock of the line, but for `passed_at`.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Slot {
    /// The number of the thread that holds it; 0: none.
    holder: AtomicU64,
    passed_at: AtomicU64,
}

#[derive(Debug)]
struct Waiter {
    thread: Thread,
    number: u64,
    /// The slot that it got, plus one.
    slot: AtomicUsize,
    /// It waits no more.
    has_left: AtomicBool,
}

impl Gate {
    /// For so many processors.
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

    /// Nanoseconds since it was made, at least 1.
    fn at(&self, now: Instant) -> u64 {
        nanoseconds(now.saturating_duration_since(self.begin)).max(1)
    }

    /// The slot that the calling thread holds.
    fn held(&self, thread_state: &ThreadState) -> Option<(usize, &Slot)> {
        let (_, at) = thread_state.held.get().filter(|(gate, _)| *gate == self.number)?;
        let slot = self.slots.get(at).filter(|slot| slot.holder.load(Relaxed) == thread_state.number)?;
        Some((at, slot))
    }

    /// Waits in line for a slot, or until `stop` holds.
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
        // A thread that has waited for another one, or begins the next part of its query, goes on with its
        // turn.
        let goes_on = thread_state.slice_gate.get() == self.number && at < thread_state.slice_ends.get();
        self.with_queue(at, |queue| match goes_on {
            true => queue.push_front(Arc::clone(&waiter)),
            false => queue.push_back(Arc::clone(&waiter)),
        });
        let slot = loop {
            match waiter.slot.load(Relaxed) {
                0 => {}
                slot => break slot - 1,
            }
            // The first in line watches for leases that end; the others only for their own end.
            let is_first = lock(&self.queue).front().is_none_or(|first| first.number == thread_state.number);
            std::thread::park_timeout(if is_first { LEASE } else { POLL_INTERVAL });
            if waiter.slot.load(Relaxed) > 0 {
                continue;
            }
            if stop() {
                // A slot that it got meanwhile is used for the way out, and left with the query.
                waiter.has_left.store(true, Relaxed);
            }
            self.with_queue(self.at(Instant::now()), |_| {});
            if waiter.has_left.load(Relaxed) && waiter.slot.load(Relaxed) == 0 {
                return;
            }
        };
        let at = self.at(Instant::now());
        thread_state.held.set(Some((self.number, slot)));
        if !goes_on || at >= thread_state.slice_ends.get() {
            thread_state.slice_gate.set(self.number);
            thread_state.slice_ends.set(at + nanoseconds(TIME_SLICE));
        }
        thread_state.yields_at.set(at + nanoseconds(YIELD_INTERVAL));
    }

    /// Changes the line, and gives free slots to the first in it.
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
        // A thread that ends has no place any more; its lease ends.
        let _ = THREAD.try_with(|thread_state| self.free(thread_state, Instant::now()));
    }

    fn light_ended(&self, checked: Instant) {
        let at = self.at(checked);
        // Rarely, so that threads do not share a line that each of them writes.
        let before = self.light_at.load(Relaxed);
        if before == 0 || at.saturating_sub(before) > nanoseconds(LIGHT_WINDOW) / 8 {
            self.light_at.store(at, Relaxed);
        }
    }

    fn processor_time(&self) -> Duration {
        #[cfg(unix)]
        {
            let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
            let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
            Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
        }
        #[cfg(not(unix))]
        self.begin.elapsed()
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// What the mutex guards is whole after each change, so a panic elsewhere does not spoil it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
        assert!(gate.slots.iter().all(|slot| slot.holder.load(Relaxed) == 0), "all have left");
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
                // The slot is another's: this one stands in line, and gets it once that has left.
                gate.pass(Instant::now(), NEVER);
                gate.leave();
            });
            begun.wait();
            // Returns although the holder does nothing until the line behind this one.
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
        // A holder that has always just passed.
        gate.slots[0].holder.store(u64::MAX, Relaxed);
        gate.slots[0].passed_at.store(u64::MAX, Relaxed);
        gate.pass(Instant::now(), &|| true);
        assert!(lock(&gate.queue).is_empty());
        assert_eq!(gate.slots[0].holder.load(Relaxed), u64::MAX, "it was not taken away");
    }
}

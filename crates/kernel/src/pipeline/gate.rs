//! Query classes: light or heavy by processor time used, and the scheduling gate for heavy queries.
//!
//! # Shape
//! A query starts *light*. It becomes *heavy* when its driver classifies it so by estimate
//! ([`Control::set_heavy`]), or when it has run for [`LIGHT_TIME`] and after that used [`LIGHT_TIME`] of
//! processor time, so that neither a wrong estimate nor a preempted thread decides. From then on every
//! [`Control::check`] of every thread passes the [`Gate`].
//! # Cost
//! Light query: two atomic operations, and a comparison for each check. No system call.
//! # Not here
//! Threads and queues: those belong to the driver.
//!
//! [`Control::set_heavy`]: crate::Control::set_heavy
//! [`Control::check`]: crate::Control::check

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Time that a query runs before its processor time is read; see the header of `gate.rs`. Equal to the
/// default estimate from which a plan is heavy.
pub const LIGHT_TIME: Duration = Duration::from_millis(1);

/// Scheduler of the threads of heavy queries. Implemented by drivers.
pub trait Gate: Debug + Send + Sync {
    /// Called by a thread of a heavy query between two pieces of work. May block while other threads have
    /// priority; returns when `stop` holds, which it polls every few milliseconds. Returns whether light
    /// queries ran recently, so that pieces of work should be small.
    fn pass(&self, now: Instant, stop: &dyn Fn() -> bool) -> bool;

    /// The calling thread has no work for now, or is about to block elsewhere.
    fn leave(&self);

    /// A light query has ended, some time after `checked`.
    fn light_ended(&self, checked: Instant);

    /// Processor time of the calling thread.
    fn processor_time(&self) -> Duration;
}

/// Class of one query: light, or heavy.
#[derive(Debug, Default)]
pub(crate) struct WorkloadClass {
    /// The gate, and the start time of the query.
    gate: Option<(Arc<dyn Gate>, Instant)>,
    is_heavy: AtomicBool,
    /// Whether light queries ran recently, as of the last pass of this thread.
    is_beside_light: AtomicBool,
    /// Nanoseconds after the start at which the processor time is read next.
    look_at: AtomicU64,
    /// Processor time at the first reading, in nanoseconds; 0: not read yet.
    used: AtomicU64,
    /// Time of the last check as a light query, in nanoseconds after the start.
    checked: AtomicU64,
}

impl WorkloadClass {
    /// A light query that starts now, or at `begun`.
    pub(crate) fn new(gate: Option<Arc<dyn Gate>>, begun: Option<Instant>) -> Self {
        Self {
            gate: gate.map(|gate| (gate, begun.unwrap_or_else(Instant::now))),
            is_heavy: AtomicBool::new(false),
            is_beside_light: AtomicBool::new(false),
            look_at: AtomicU64::new(nanoseconds(LIGHT_TIME)),
            used: AtomicU64::new(0),
            checked: AtomicU64::new(0),
        }
    }

    /// The class for a worker thread of the same query.
    pub(crate) fn for_worker(&self) -> Self {
        let (gate, begun) = self.gate.clone().unzip();
        let class = Self::new(gate, begun);
        class.set_heavy();
        class
    }

    /// The class for a part of the same query on the same thread.
    pub(crate) fn for_part(&self) -> Self {
        let (gate, begun) = self.gate.clone().unzip();
        let class = Self::new(gate, begun);
        class.is_heavy.store(self.is_heavy(), Relaxed);
        class
    }

    pub(crate) fn has_gate(&self) -> bool {
        self.gate.is_some()
    }

    /// Relaxed, here and below: the flags publish no other data, and a delay of one check is harmless.
    pub(crate) fn set_heavy(&self) {
        self.is_heavy.store(true, Relaxed);
    }

    pub(crate) fn is_heavy(&self) -> bool {
        self.is_heavy.load(Relaxed)
    }

    #[inline]
    pub(crate) fn pass(&self, now: Instant, stop: &dyn Fn() -> bool) {
        let Some((gate, begun)) = &self.gate else { return };
        if self.is_heavy() || self.becomes_heavy(&**gate, now.saturating_duration_since(*begun)) {
            self.is_beside_light.store(gate.pass(now, stop), Relaxed);
        }
    }

    pub(crate) fn is_beside_light(&self) -> bool {
        self.is_beside_light.load(Relaxed)
    }

    /// `time`: since the start.
    fn becomes_heavy(&self, gate: &dyn Gate, time: Duration) -> bool {
        let time = nanoseconds(time);
        self.checked.store(time, Relaxed);
        if time < self.look_at.load(Relaxed) {
            return false;
        }
        let light_time = nanoseconds(LIGHT_TIME);
        let used = nanoseconds(gate.processor_time()).max(1);
        let before = self.used.load(Relaxed);
        if before == 0 {
            self.used.store(used, Relaxed);
        }
        self.look_at.store(time.saturating_add(light_time / 2), Relaxed);
        let is_heavy = before > 0 && used.saturating_sub(before) >= light_time;
        if is_heavy {
            self.set_heavy();
        }
        is_heavy
    }

    pub(crate) fn leave(&self) {
        if let Some((gate, _)) = self.gate.as_ref().filter(|_| self.is_heavy()) {
            gate.leave();
        }
    }
}

impl Drop for WorkloadClass {
    fn drop(&mut self) {
        if let Some((gate, begun)) = &self.gate {
            if self.is_heavy() {
                gate.leave();
            } else {
                // Reuses the last clock reading: another one would cost a query of microseconds too much.
                gate.light_ended(*begun + Duration::from_nanos(self.checked.load(Relaxed)));
            }
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Control, Limits};

    #[derive(Debug, Default)]
    struct Counting {
        passes: AtomicU64,
        left: AtomicU64,
        light: AtomicU64,
        /// Processor time in nanoseconds.
        used: AtomicU64,
    }

    impl Gate for Counting {
        fn pass(&self, _now: Instant, _stop: &dyn Fn() -> bool) -> bool {
            self.passes.fetch_add(1, Relaxed);
            self.light.load(Relaxed) > 0
        }

        fn leave(&self) {
            self.left.fetch_add(1, Relaxed);
        }

        fn light_ended(&self, _checked: Instant) {
            self.light.fetch_add(1, Relaxed);
        }

        fn processor_time(&self) -> Duration {
            Duration::from_nanos(self.used.load(Relaxed))
        }
    }

    fn counts(gate: &Counting) -> [u64; 3] {
        [&gate.passes, &gate.left, &gate.light].map(|count| count.load(Relaxed))
    }

    /// Limits of a query that started `ago`.
    fn begun(ago: Duration) -> Limits {
        let timeout = Duration::from_secs(3600);
        Limits { deadline: Some((Instant::now() + timeout - ago, timeout)), ..Limits::default() }
    }

    #[test]
    fn a_query_that_has_used_the_processor_is_heavy_and_one_that_was_interrupted_is_not() {
        let gate = Arc::new(Counting::default());
        let dynamic = || Some(Arc::clone(&gate) as Arc<dyn Gate>);
        let light = Control::with_gate(begun(Duration::ZERO), dynamic());
        light.check().unwrap();
        drop(light);
        assert_eq!(counts(&gate), [0, 0, 1]);
        let control = Control::with_gate(begun(Duration::from_secs(1)), dynamic());
        let until = Instant::now() + 2 * LIGHT_TIME;
        while Instant::now() < until {
            control.check().unwrap();
        }
        assert!(!control.is_heavy(), "it has used nothing");
        gate.used.store(nanoseconds(2 * LIGHT_TIME), Relaxed);
        while !control.is_heavy() {
            control.check().unwrap();
        }
        assert_eq!(counts(&gate), [1, 0, 1]);
        drop(control);
        assert_eq!(counts(&gate), [1, 1, 1]);
    }

    #[test]
    fn a_query_marked_heavy_passes_the_gate_on_all_threads() {
        let gate = Arc::new(Counting::default());
        let control = Control::with_gate(Limits::default(), Some(Arc::clone(&gate) as Arc<dyn Gate>));
        control.set_heavy();
        control.check().unwrap();
        let halted = AtomicBool::new(false);
        let worker = control.for_worker(&halted);
        worker.check().unwrap();
        assert_eq!(counts(&gate), [2, 0, 0]);
        halted.store(true, Relaxed);
        assert!(worker.check().is_err());
        assert_eq!(counts(&gate), [2, 0, 0], "no thread polls stop");
    }
}

//! Light or heavy by what a query has used, and where a heavy one lets others go first.
//!
//! # Shape
//! A query starts *light*. It is *heavy* from the moment that its driver says so ([`Control::set_heavy`], by
//! estimate), or once it has run for [`LIGHT_TIME`] and then has used [`LIGHT_TIME`] of the processor, so
//! that neither a wrong estimate nor a thread that was interrupted decides. From then on every
//! [`Control::check`] of every thread passes the [`Gate`].
//! # Cost
//! Of a light query: two atomic operations, and a comparison for each check. No call of the system.
//! # Not here
//! Threads: what waits where is the driver's.
//!
//! [`Control::set_heavy`]: crate::Control::set_heavy
//! [`Control::check`]: crate::Control::check

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How long a query runs before its processor time is looked at; see the header of `gate.rs`. As long as the
/// estimate from which a plan is heavy by default.
pub const LIGHT_TIME: Duration = Duration::from_millis(1);

/// Schedules the threads of heavy queries. Implemented by drivers.
pub trait Gate: Debug + Send + Sync {
    /// Called by a thread of a heavy query between two pieces of work. May block while others go first;
    /// returns as soon as `stop` holds, which it looks at every few milliseconds. Whether light queries ran
    /// lately, so that pieces are to be small.
    fn pass(&self, now: Instant, stop: &dyn Fn() -> bool) -> bool;

    /// The calling thread has no work for now, or is about to wait for something else.
    fn leave(&self);

    /// A light query has ended, some time after this.
    fn light_ended(&self, checked: Instant);

    /// Processor time of the calling thread.
    fn processor_time(&self) -> Duration;
}

/// Class of one query: light, or heavy.
#[derive(Debug, Default)]
pub(crate) struct Class {
    /// With the begin of the query.
    gate: Option<(Arc<dyn Gate>, Instant)>,
    is_heavy: AtomicBool,
    /// Whether light queries ran lately, by the last pass of this thread.
    is_beside_light: AtomicBool,
    /// Nanoseconds after the begin at which the processor time is looked at next.
    look_at: AtomicU64,
    /// Processor time at the first look, in nanoseconds; 0: not yet.
    used: AtomicU64,
    /// Nanoseconds after the begin of the last check while it was light.
    checked: AtomicU64,
}

impl Class {
    /// Light, from now on or from the moment that is given.
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

    /// That of one more thread of the same query.
    pub(crate) fn for_worker(&self) -> Self {
        let (gate, begun) = self.gate.clone().unzip();
        let class = Self::new(gate, begun);
        class.set_heavy();
        class
    }

    pub(crate) fn has_gate(&self) -> bool {
        self.gate.is_some()
    }

    /// Relaxed, here and below: these carry no other data, and a check more or less does not matter.
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

    /// `time`: since the begin.
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

impl Drop for Class {
    fn drop(&mut self) {
        if let Some((gate, begun)) = &self.gate {
            if self.is_heavy() {
                gate.leave();
            } else {
                // No look at the clock of its own, for queries of microseconds.
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
        /// Nanoseconds of the processor.
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

    /// Limits of a query that began so long ago.
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
    fn what_its_driver_calls_heavy_passes_on_all_threads() {
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
        assert_eq!(counts(&gate), [2, 0, 0], "nobody waits to stop");
    }
}

//! Clocks: the system's, and a simulated one.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// A source of time.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Time since some fixed moment; monotonic.
    fn now(&self) -> Duration;

    /// The time of day; may jump in either direction.
    fn wall(&self) -> SystemTime;
}

/// The operating system's clocks.
#[derive(Debug)]
pub struct RealClock {
    start: Instant,
}

impl RealClock {
    /// A clock whose [`Clock::now`] starts at zero.
    #[must_use]
    pub fn new() -> Self {
        Self { start: Instant::now() }
    }
}

impl Default for RealClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for RealClock {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn wall(&self) -> SystemTime {
        SystemTime::now()
    }
}

/// A clock that only moves by [`SimulatedClock::advance`]. Its day starts at 2020-01-01T00:00:00Z.
#[derive(Debug, Default)]
pub struct SimulatedClock {
    nanoseconds: AtomicU64,
}

impl SimulatedClock {
    const WALL_START_S: u64 = 1_577_836_800;

    /// Moves both clocks forward.
    pub fn advance(&self, by: Duration) {
        let by = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
        // Relaxed: no other data is published through the number.
        self.nanoseconds.fetch_add(by, Ordering::Relaxed);
    }
}

impl Clock for SimulatedClock {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed))
    }

    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(Self::WALL_START_S) + self.now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulated_time_advances_only_on_request() {
        let clock = SimulatedClock::default();
        let (now, wall) = (clock.now(), clock.wall());
        clock.advance(Duration::from_secs(3));
        assert_eq!(clock.now() - now, Duration::from_secs(3));
        assert_eq!(clock.wall().duration_since(wall).ok(), Some(Duration::from_secs(3)));
    }
}

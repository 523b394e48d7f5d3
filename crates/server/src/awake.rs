//! A thread that stays awake for a little while after an answer.
//!
//! Who has just had an answer asks the next question soon, or never. A processor that has gone to sleep takes up to 50 µs to wake
//! up in a virtual machine, several times what a light request takes; so the thread looks for more before it sleeps.
//!
//! # Shape
//! One task of each runtime turns around as long as [`Awake::answered`] has said. Each turn lets everything else on the thread run
//! first, and looks at the sockets of all its connections.
//! # Cost
//! A processor for [`crate::Limits::awake`] after each answer, if nobody else needs it; nothing while nobody asks.
//! # Source
//! `idle-poll-time-us` of Seastar, which stays awake for 200 µs; sockets that are polled (`SO_BUSY_POLL`) do not know of loopback.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// See the header of this file.
pub(crate) struct Awake {
    time: Duration,
    begin: Instant,
    /// Nanoseconds after `begin`.
    until: AtomicU64,
    is_awake: AtomicBool,
    wake: Notify,
}

impl Awake {
    /// `time`: how long after an answer; zero: not at all.
    pub(crate) fn new(time: Duration) -> Arc<Self> {
        Arc::new(Self {
            time,
            begin: Instant::now(),
            until: AtomicU64::new(0),
            is_awake: AtomicBool::new(false),
            wake: Notify::new(),
        })
    }

    /// Something has been sent to a client.
    pub(crate) fn answered(&self) {
        if self.time.is_zero() {
            return;
        }
        // Relaxed: a turn more or less does not matter.
        self.until.store(nanoseconds(self.begin.elapsed() + self.time), Ordering::Relaxed);
        if !self.is_awake.load(Ordering::Relaxed) {
            self.wake.notify_one();
        }
    }

    /// Keeps the thread awake that runs this.
    pub(crate) async fn keep(self: Arc<Self>) {
        loop {
            self.wake.notified().await;
            self.is_awake.store(true, Ordering::Relaxed);
            while nanoseconds(self.begin.elapsed()) < self.until.load(Ordering::Relaxed) {
                tokio::task::yield_now().await;
            }
            self.is_awake.store(false, Ordering::Relaxed);
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_awake_for_so_long_after_an_answer() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let awake = Awake::new(Duration::from_millis(20));
            let keeper = tokio::spawn(Arc::clone(&awake).keep());
            tokio::task::yield_now().await;
            assert!(!awake.is_awake.load(Ordering::Relaxed), "nobody has asked");
            awake.answered();
            tokio::task::yield_now().await;
            assert!(awake.is_awake.load(Ordering::Relaxed));
            while awake.is_awake.load(Ordering::Relaxed) {
                tokio::task::yield_now().await;
            }
            awake.answered();
            tokio::task::yield_now().await;
            assert!(awake.is_awake.load(Ordering::Relaxed), "again");
            keeper.abort();
        });
    }
}

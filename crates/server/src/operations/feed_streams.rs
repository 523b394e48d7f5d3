//! The streams of the change feed: how many there are, and what wakes them.
//!
//! # Shape
//! While there are streams, one task looks at the newest commit every [`LOOK_INTERVAL`] and wakes all of
//! them when there is another one, or when the server is stopping. A commit thus knows nothing of streams.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use vervet::{Database, Timestamp};

/// Time between two looks at the newest commit.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// See the header of this file.
#[derive(Debug)]
pub(crate) struct FeedStreams {
    database: Database,
    pub(crate) permits: Arc<Semaphore>,
    signal: watch::Sender<Signal>,
    /// Whether the task that looks at the newest commit runs.
    is_watched: AtomicBool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Signal {
    newest: Timestamp,
    is_ending: bool,
}

/// A permit for one stream, and what wakes it.
#[derive(Debug)]
pub(crate) struct FeedPermit {
    signal: watch::Receiver<Signal>,
    _permit: OwnedSemaphorePermit,
}

impl FeedStreams {
    pub(crate) fn new(database: &Database, streams: usize) -> Arc<Self> {
        let signal = Signal { newest: database.newest_commit(), is_ending: false };
        Arc::new(Self {
            database: database.clone(),
            permits: Arc::new(Semaphore::new(streams)),
            signal: watch::Sender::new(signal),
            is_watched: AtomicBool::new(false),
        })
    }

    /// A permit for a stream; `None` at the limit. Call it in a task.
    pub(crate) fn acquire(self: &Arc<Self>) -> Option<FeedPermit> {
        let permit = Arc::clone(&self.permits).try_acquire_owned().ok()?;
        let receiver = FeedPermit { signal: self.signal.subscribe(), _permit: permit };
        if !self.is_watched.swap(true, Ordering::AcqRel) {
            tokio::spawn(Arc::clone(self).watch());
        }
        Some(receiver)
    }

    /// Ends all streams.
    pub(crate) fn end(&self) {
        self.signal.send_modify(|signal| signal.is_ending = true);
    }

    async fn watch(self: Arc<Self>) {
        loop {
            let newest = self.database.newest_commit();
            self.signal.send_if_modified(|signal| std::mem::replace(&mut signal.newest, newest) != newest);
            tokio::time::sleep(LOOK_INTERVAL).await;
            if self.signal.receiver_count() == 0 {
                self.is_watched.store(false, Ordering::Release);
                // A stream may have begun in between, and have seen that this task runs.
                let has_none = self.signal.receiver_count() == 0;
                if has_none || self.is_watched.swap(true, Ordering::AcqRel) {
                    return;
                }
            }
        }
    }
}

impl FeedPermit {
    /// The newest commit as of the last signal.
    pub(crate) fn newest(&mut self) -> Timestamp {
        self.signal.borrow_and_update().newest
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.signal.borrow().is_ending
    }

    /// Waits for the next signal.
    pub(crate) async fn changed(&mut self) {
        // An error means that the server is gone: so is the task.
        _ = self.signal.changed().await;
    }
}

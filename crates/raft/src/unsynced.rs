//! The entries of a leader that its own disk may not have yet.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use vervet_log::Lsn;
use vervet_model::{Error, Result, lock};

/// See the header of this file. Entries enter in the order of the log.
#[derive(Debug)]
pub(crate) struct Unsynced {
    state: Mutex<State>,
    /// Changes when entries leave.
    progress: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct State {
    /// Their indexes and records, and when they entered.
    entries: VecDeque<(u64, Lsn, Instant)>,
    /// Why none of them will be synced.
    failure: Option<Error>,
}

impl Unsynced {
    pub(crate) fn new() -> Self {
        Self { state: Mutex::default(), progress: watch::channel(()).0 }
    }

    pub(crate) fn push(&self, index: u64, record: Lsn) {
        lock(&self.state).entries.push_back((index, record, Instant::now()));
    }

    /// Removes the entries from `index` on: the log has them no more.
    pub(crate) fn truncate(&self, index: u64) {
        let entries = &mut lock(&self.state).entries;
        let kept = entries.partition_point(|(at, ..)| *at < index);
        entries.truncate(kept);
    }

    /// Removes the entries with records up to `last`, which were synced, or failed to be.
    pub(crate) fn end(&self, last: Lsn, synced: Result<()>) {
        {
            let mut state = lock(&self.state);
            match synced {
                Ok(()) => {
                    let synced = state.entries.partition_point(|(_, record, _)| *record <= last);
                    state.entries.drain(..synced);
                    // A full disk has room again.
                    state.failure = None;
                }
                Err(error) => state.failure = Some(error),
            }
        }
        self.progress.send_replace(());
    }

    /// Index of the first one.
    pub(crate) fn first(&self) -> Option<u64> {
        lock(&self.state).entries.front().map(|(index, ..)| *index)
    }

    /// How long the first one has waited for its sync.
    pub(crate) fn waited(&self) -> Duration {
        let state = lock(&self.state);
        state.entries.front().map_or(Duration::ZERO, |(.., entered)| entered.elapsed())
    }

    /// Returns once there is none up to `index`.
    ///
    /// # Errors
    /// Io: they cannot be synced.
    pub(crate) async fn wait(&self, index: u64) -> Result<()> {
        let mut progress = self.progress.subscribe();
        loop {
            {
                let state = lock(&self.state);
                if state.entries.front().is_none_or(|(first, ..)| *first > index) {
                    return Ok(());
                }
                if let Some(failure) = &state.failure {
                    return Err(failure.clone());
                }
            }
            // The sender lives as long as this.
            _ = progress.changed().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait::within;

    #[test]
    fn waits_end_with_the_sync_of_their_entry() {
        let unsynced = Unsynced::new();
        let wait = |index| within(Duration::ZERO, unsynced.wait(index)).map(|synced| synced.is_ok());
        assert_eq!((unsynced.first(), wait(9)), (None, Some(true)));
        for index in 5..9 {
            unsynced.push(index, Lsn(index * 100));
        }
        assert_eq!((unsynced.first(), wait(4), wait(5)), (Some(5), Some(true), None));
        unsynced.end(Lsn(650), Ok(()));
        assert_eq!((unsynced.first(), wait(6), wait(8)), (Some(7), Some(true), None));
        // Another entry 8 takes its place, and the sync of the one before says nothing about it.
        unsynced.truncate(8);
        unsynced.push(8, Lsn(900));
        unsynced.end(Lsn(800), Ok(()));
        assert_eq!((unsynced.first(), wait(7), wait(8)), (Some(8), Some(true), None));
        unsynced.end(Lsn(900), Err(Error::internal("the disk has failed")));
        assert_eq!(wait(8), Some(false));
        assert_eq!(wait(7), Some(true));
        unsynced.push(9, Lsn(1000));
        unsynced.end(Lsn(1000), Ok(()));
        unsynced.push(10, Lsn(1100));
        assert_eq!((wait(9), wait(10)), (Some(true), None), "a full disk has room again");
    }
}

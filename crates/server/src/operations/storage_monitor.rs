//! Storage monitor: polls the storage every second and logs checkpoints, their failures, and refused writes.
//!
//! Storage runs checkpoints on its own threads and reports their outcome on request; it has no log of its
//! own.

use std::time::Duration;
use vervet::{Database, StorageStatus};

/// The polling interval. Cheap: touches no file.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Logs changes for as long as the server runs.
pub(crate) async fn monitor_storage(database: Database) {
    let mut last_poll = LastPoll::of(&database.storage_status());
    loop {
        tokio::time::sleep(POLL_INTERVAL).await;
        let status = database.storage_status();
        last_poll.log_changes(&status);
        last_poll = LastPoll::of(&status);
    }
}

/// The state at the last poll.
struct LastPoll {
    completed: u64,
    failed: u64,
    is_writable: bool,
    slowed: u64,
}

impl LastPoll {
    fn of(status: &StorageStatus) -> Self {
        Self {
            completed: status.checkpoints.completed,
            failed: status.checkpoints.failed,
            is_writable: status.is_writable(),
            slowed: status.slowed_commits,
        }
    }

    fn log_changes(&self, status: &StorageStatus) {
        let checkpoints = &status.checkpoints;
        if checkpoints.completed > self.completed {
            let (log_bytes, delta_changes) = (status.log_bytes, status.delta_cells);
            tracing::info!(seconds = checkpoints.took.as_secs_f64(), log_bytes, delta_changes, "checkpoint");
        }
        if checkpoints.failed > self.failed {
            let error = checkpoints.last_failure.as_ref().map(|(error, _)| error.to_string());
            let next_try_seconds = checkpoints.next_try.map(|time| time.as_secs_f64());
            let (failed_in_row, error) = (checkpoints.failed_in_row, error.unwrap_or_default());
            tracing::warn!(error, failed_in_row, next_try_seconds, "checkpoint failed");
        }
        if status.slowed_commits > self.slowed {
            let commits = status.slowed_commits - self.slowed;
            tracing::warn!(commits, log_bytes = status.log_bytes, "commits wait for checkpoints");
        }
        match &status.refusal {
            // Another server of the cluster takes changes now.
            Some(error) if self.is_writable && error.kind() == vervet::ErrorKind::Unsupported => {
                tracing::info!(%error, "changes are sent on");
            }
            Some(error) if self.is_writable => tracing::error!(%error, "writes are refused"),
            None if !self.is_writable => tracing::info!("writes are taken again"),
            _ => {}
        }
    }
}

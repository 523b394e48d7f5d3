//! Opening a log: turns the result of [`crate::read`] into a log that accepts appends.
//!
//! # Shape
//! Files after a cut at damage are removed. Then a new file is created, which starts where the log is proven
//! to be synced and holds a copy of the bytes from there to the end.
//! # Why a copy
//! A torn tail is cut without changing a byte in place, and records that may exist only in the page cache
//! (after a failed sync, or a kill) are written again: no record counts as durable unless it was synced in a
//! file that was whole. The argument is in docs/format.md.
//! # Few files
//! If the last file is small, all of it is copied and the copy takes its name. Otherwise ten thousand
//! processes that write one record each would leave as many files.
//! # Cost
//! A copy of at most [`LAST_FILE_BYTES_MAX`], or of the unproven part if that is larger: the last batch at
//! [`Durability::Sync`], everything since the last sync at other levels.

use crate::state::{Active, LogCounters, LogState, Shared};
use crate::sync::{Condvar, Mutex, lock};
use crate::waiters::Waiters;
use crate::{Durability, INTERVAL_MIN, Log, LogId, LogOptions, Lsn, RecoveryReport, files};
use std::collections::VecDeque;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use vervet_env::Environment;
use vervet_model::{Error, Result};

/// A last file of at most this many bytes is rewritten when a log is opened, which bounds the number of
/// files: a log of `n` MiB gets at most `n` files this way, plus two.
pub const LAST_FILE_BYTES_MAX: u64 = 1 << 20;

impl Log {
    /// Continues the log that [`crate::read`] found in `directory`. The caller has held the lock of the
    /// directory since before that read.
    ///
    /// The log continues in a new file, with a copy of everything that no mark proves to be synced; the copy
    /// is durable before the file gets its final name. A torn tail is thus cut without changing a byte of its
    /// file, and a crash at any moment leaves either the log that was found or the new one. Everything that
    /// was found is durable on return.
    ///
    /// # Errors
    /// [`vervet_model::ErrorKind::Io`]: nothing is lost; the caller may read and open again.
    pub fn open(
        environment: &Environment,
        directory: &Path,
        found: RecoveryReport,
        options: LogOptions,
    ) -> Result<Self> {
        let RecoveryReport { end, id, plan, .. } = found;
        if plan.beside_writer {
            return Err(Error::internal("a log that was read beside its writer cannot be opened"));
        }
        let io =
            |what: &str, path: &Path, error| Error::io(format_args!("{what} {}", path.display()), &error);
        let random =
            || environment.random.next_u64().map_err(|error| Error::io("draw a random number", &error));
        let id = id.map_or_else(|| random().map(LogId), Ok)?;
        files::remove_temporary(environment, directory);
        // Last file first: after a crash, the remaining files are a longer part of the damaged log.
        for first in plan.remove.iter().rev() {
            let path = files::path_of(directory, *first);
            match environment.files.remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(io("remove", &path, error));
                }
                _ => environment.files.sync_dir(directory).map_err(|error| io("sync", directory, error))?,
            }
        }
        let mut firsts = plan.files;
        let last = firsts.last().copied();
        // Always a new file, even after the mark of a clean close: if the sync of that mark failed, the mark
        // may exist only in the page cache, and records appended after it would be lost with it.
        let active = {
            // The needed part of the last file if it is small, else only the unproven part.
            let whole = last.map_or(end.0, |last| last.max(plan.from));
            assert!(whole <= end.0 && plan.proven <= end.0, "a log ends behind what was read");
            let first = if end.0 - whole <= LAST_FILE_BYTES_MAX { whole } else { plan.proven };
            let mut tail = Vec::new();
            if let Some(last) = last.filter(|_| first < end.0) {
                let path = files::path_of(directory, last);
                let offset = files::HEADER_BYTES as u64 + (first - last);
                let opened = environment.files.open_at(&path, offset);
                let copied = opened.and_then(|file| file.take(end.0 - first).read_to_end(&mut tail));
                copied.map_err(|error| io("read", &path, error))?;
                if tail.len() as u64 != end.0 - first {
                    return Err(Error::internal("the log changed after it was read"));
                }
            }
            let file = files::create(environment, directory, id, Lsn(first), &tail)
                .map_err(|failed| failed.error.with_hint("free some space, then open the database again"))?;
            if last != Some(first) {
                firsts.push(first);
            }
            Active { file, first }
        };
        let state = LogState {
            unwritten: Vec::new(),
            full: None,
            buffer: Vec::new(),
            spare: Vec::new(),
            end: end.0,
            durable: end.0,
            acknowledged: end.0,
            proven: active.first,
            active: Some(active),
            publishing: false,
            publish: VecDeque::new(),
            waiters: Waiters::default(),
            wanting_file: 0,
            files: firsts,
            failure: None,
            closing: false,
        };
        let shared = Arc::new(Shared {
            environment: environment.clone(),
            directory: directory.to_owned(),
            id,
            options,
            state: Mutex::new(state),
            free: Condvar::new(),
            closing: Condvar::new(),
            counters: LogCounters::default(),
        });
        shared.count_files(&lock(&shared.state));
        let mut log = Self { shared, ticker: None };
        if let Durability::Interval(every) = log.shared.options.durability {
            let shared = log.shared.clone();
            let ticker = thread::Builder::new()
                .name("vervet-log".to_owned())
                .spawn(move || shared.tick(every.max(INTERVAL_MIN)));
            log.ticker = Some(ticker.map_err(|error| Error::io("start a thread for the log", &error))?);
        }
        Ok(log)
    }
}

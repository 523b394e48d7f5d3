//! Opening a log: from what reading found to a log that can be appended to.
//!
//! # Shape
//! Files behind a cut at damage are removed; then the last file is opened, or a new one is made that starts
//! where the log is proven to be synced and has a copy of what lies between there and the end.
//! # Why a copy
//! A torn tail is cut without changing a byte in place, and records that only the page cache may have (after
//! a failed sync, or a kill) are written anew: nothing is taken for durable that has not been synced under a
//! file that was whole. The argument is in docs/format.md.
//! # Few files
//! If the last file is small, the copy is of all of it and takes its name: else ten thousand processes that
//! write one record each would leave as many files.
//! # Cost
//! A copy of [`LAST_FILE_BYTES_MAX`] at most, or of what was not proven if that is more: the last batch at
//! [`Level::Sync`], what came since the last sync at other levels.

use crate::log::{Active, Shared, State, Watched};
use crate::sync::{Condvar, Mutex, lock};
use crate::waiters::Waiters;
use crate::{Found, INTERVAL_MIN, Level, Log, LogId, LogOptions, Lsn, files};
use std::collections::VecDeque;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use vervet_env::Environment;
use vervet_model::{Error, Result};

/// A last file of so many bytes, or fewer, is written anew when a log is opened, so that files do not become
/// many: of a log of `n` bytes there are at most `n` through this, and two.
pub const LAST_FILE_BYTES_MAX: u64 = 1 << 20;

impl Log {
    /// Goes on behind what [`crate::read`] found in `directory`, whose lock the caller has held since before
    /// that.
    ///
    /// The log goes on in a new file, with a copy of everything that no mark proves to be synced, made
    /// durable before it gets its name. So a torn tail is cut without changing a byte of the file it is in,
    /// and a crash at any moment leaves what was found, or what is now. All that was found is durable on
    /// return.
    ///
    /// # Errors
    /// [`vervet_model::ErrorKind::Io`]; nothing is lost then, and opening may be tried again, reading first.
    pub fn open(
        environment: &Environment,
        directory: &Path,
        found: Found,
        options: LogOptions,
    ) -> Result<Self> {
        let Found { end, id, plan, .. } = found;
        if plan.beside_writer {
            return Err(Error::internal("a log that was read beside its writer cannot be opened"));
        }
        let io =
            |what: &str, path: &Path, error| Error::io(format_args!("{what} {}", path.display()), &error);
        let random =
            || environment.random.next_u64().map_err(|error| Error::io("draw a random number", &error));
        let id = id.map_or_else(|| random().map(LogId), Ok)?;
        files::remove_temporary(environment, directory);
        // The last one first: whatever is left after a crash is a longer part of the damaged log.
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
        // Never the file that is there, not even behind the mark of a clean close: if the sync of that
        // failed, the mark may be in the page cache alone, and what follows it would be lost with it.
        let active = {
            // All of the last file that is needed if that is little, else what is not proven.
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
        let state = State {
            unwritten: Vec::new(),
            full: None,
            buffer: Vec::new(),
            spare: Vec::new(),
            end: end.0,
            durable: end.0,
            acknowledged: end.0,
            proven: active.first,
            active: Some(active),
            announcing: false,
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
            watched: Watched::default(),
        });
        shared.count_files(&lock(&shared.state));
        let mut log = Self { shared, ticker: None };
        if let Level::Interval(every) = log.shared.options.level {
            let shared = log.shared.clone();
            let ticker = thread::Builder::new()
                .name("vervet-log".to_owned())
                .spawn(move || shared.tick(every.max(INTERVAL_MIN)));
            log.ticker = Some(ticker.map_err(|error| Error::io("start a thread for the log", &error))?);
        }
        Ok(log)
    }
}

//! What makes a directory ours: its lock, and the log.
//!
//! A directory is locked before anything in it is believed, and the log is opened when the first transaction
//! begins: who only loads in bulk needs none.

use crate::recovery::{self, Recovered};
use crate::sync::Mutex;
use crate::transactions::Transactions;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use vervet_env::{Environment, LockGuard};
use vervet_log::{Found, Log, LogOptions};
use vervet_model::{Error, ErrorKind, Result};
use vervet_store::{BuildOptions, LogPlace, StoreBuilder, Target};

/// Name of the file whose lock a writer holds.
const LOCK: &str = "LOCK";

/// See the header of this file.
#[derive(Debug)]
pub(crate) struct Writer {
    log: OnceLock<Log>,
    /// What is there to go on behind, until the log is opened.
    found: Mutex<Option<Found>>,
    /// Where the log goes on, if there is one that is not open.
    pub(crate) place: Mutex<Option<LogPlace>>,
    _lock: Box<dyn LockGuard>,
}

impl Writer {
    /// The log, if it is open.
    pub(crate) fn log(&self) -> Option<&Log> {
        self.log.get()
    }
}

impl Transactions {
    /// Why no writes are taken any more; `None`: they are.
    #[must_use]
    pub fn failure(&self) -> Option<Error> {
        let failed = self.failure.get().cloned();
        failed.or_else(|| self.open_log().and_then(|log| log.check().err()))
    }

    /// The directory's writer, which this becomes if nobody else is; `None` for a graph in memory.
    pub(crate) fn own(&self) -> Result<Option<&Arc<Writer>>> {
        let Some(directory) = &self.directory else { return Ok(None) };
        if let Some(failure) = self.failure.get() {
            return Err(failure.clone());
        }
        if let Some(writer) = self.writer.get() {
            return Ok(Some(writer));
        }
        let _one = crate::sync::lock(&self.owning);
        if self.writer.get().is_none() {
            let guard = lock_directory(&self.environment, directory)?;
            // Somebody else may have written since this was opened.
            let recovered = recovery::recover_as_owner(&self.environment, directory)?;
            let writer = self.writer_of(guard, recovered)?;
            // Nobody else sets it: `owning` is held.
            let _ = self.writer.set(Arc::new(writer));
        }
        Ok(self.writer.get())
    }

    fn writer_of(&self, guard: Box<dyn LockGuard>, recovered: Option<Recovered>) -> Result<Writer> {
        let (mut found, mut place) = (None, None);
        if let Some(recovered) = recovered {
            place = recovered.place();
            let Recovered { version, timestamp, constraints, found: read } = recovered;
            found = Some(read);
            self.reset(version, timestamp, constraints);
        }
        Ok(Writer { log: OnceLock::new(), found: Mutex::new(found), place: Mutex::new(place), _lock: guard })
    }

    /// The log of the directory, opened if nobody has yet; `None` for a graph in memory.
    pub(crate) fn log(&self) -> Result<Option<&Log>> {
        let (Some(writer), Some(directory)) = (self.own()?, &self.directory) else { return Ok(None) };
        if let Some(log) = writer.log.get() {
            return Ok(Some(log));
        }
        let mut found = crate::sync::lock(&writer.found);
        if writer.log.get().is_none() {
            let found = match found.take() {
                Some(found) => found,
                // A new directory, or a load has written since, or opening failed before: look again, while nobody
                // loads. No transaction has begun yet.
                None => {
                    let _one = crate::sync::lock(&self.checkpointing);
                    if !recovery::has_store(&self.environment, directory)? {
                        write_empty(&self.environment, directory)?;
                    }
                    match recovery::recover_as_owner(&self.environment, directory)? {
                        Some(Recovered { version, timestamp, constraints, found }) => {
                            self.reset(version, timestamp, constraints);
                            found
                        }
                        None => recovery::find_log(&self.environment, directory)?,
                    }
                }
            };
            let options = LogOptions { level: self.options.durability, ..LogOptions::default() };
            let log = Log::open(&self.environment, directory, found, options)?;
            let _ = writer.log.set(log);
            *crate::sync::lock(&writer.place) = None;
        }
        Ok(writer.log.get())
    }
}

/// Makes a directory ours, for writing.
pub(crate) fn lock_directory(environment: &Environment, directory: &Path) -> Result<Box<dyn LockGuard>> {
    let files = &environment.files;
    files
        .create_dir_all(directory)
        .map_err(|error| Error::io(format_args!("create {}", directory.display()), &error))?;
    files.lock(&directory.join(LOCK)).map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => {
            let message = format!("could not write to {}: {error}", directory.display());
            Error::new(ErrorKind::Unavailable, message).with_hint("try again when it is done")
        }
        _ => Error::io(format_args!("lock {}", directory.join(LOCK).display()), &error),
    })
}

/// Makes a directory a database without statements.
fn write_empty(environment: &Environment, directory: &Path) -> Result<()> {
    let builder = StoreBuilder::new(BuildOptions {
        threads: 1,
        memory_bytes: u64::MAX,
        environment: environment.clone(),
        temp_dir: None,
        log: None,
        orders: Vec::new(),
    });
    let image = vervet_dictionary::DictionaryBuilder::new().finish()?;
    builder.finish(image, &Target::Directory(directory.to_owned())).map(|_| ())
}

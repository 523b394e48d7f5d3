//! Write ownership of a directory: its lock, and the log.
//!
//! A directory is locked before its content is trusted, and the log is opened when the first transaction
//! begins: a process that only bulk-loads needs none.

use crate::directory::Locked;
use crate::recovery::{self, Recovered};
use crate::sync::Mutex;
use crate::transactions::Transactions;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use vervet_env::Environment;
use vervet_log::{Log, LogId, LogOptions, RecoveryReport};
use vervet_model::{Error, Result};
use vervet_store::{BuildOptions, CheckpointPosition, Store, StoreBuilder, Target};

/// See the header of this file.
#[derive(Debug)]
pub(crate) struct Writer {
    log: OnceLock<Log>,
    /// Result of recovery and the log position of the manifest, until the log is opened.
    found: Mutex<Option<(RecoveryReport, CheckpointPosition)>>,
    /// Position at which the log continues or is to begin, if it is known and the log is not open.
    pub(crate) place: Mutex<Option<CheckpointPosition>>,
    lock: Locked,
}

impl Writer {
    /// The log, if it is open.
    pub(crate) fn log(&self) -> Option<&Log> {
        self.log.get()
    }
}

impl Transactions {
    /// Describes this process to others that try to write to the directory, such as
    /// `vervet serve at http://…`; has no effect unless this process is the directory's writer.
    pub fn describe_owner(&self, text: &str) {
        if let Some(writer) = self.writer.get() {
            writer.lock.describe(text);
        }
    }

    /// The write ownership of the directory, taken if it is free; `None` for a graph in memory.
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
            let guard = Locked::take(&self.environment, directory)?;
            // Another process may have written since this graph was opened.
            let recovered = recovery::recover_as_owner(&self.environment, directory)?;
            let writer = self.writer_of(guard, recovered)?;
            let set = self.writer.set(Arc::new(writer));
            assert!(set.is_ok(), "`owning` is held");
        }
        Ok(self.writer.get())
    }

    fn writer_of(&self, guard: Locked, recovered: Option<Recovered>) -> Result<Writer> {
        let (mut found, mut place) = (None, None);
        if let Some(recovered) = recovered {
            place = Some(recovered.place());
            let Recovered { version, timestamp, constraints, found: read, base } = recovered;
            found = Some((read, base));
            self.reset(version, timestamp, constraints);
        }
        Ok(Writer { log: OnceLock::new(), found: Mutex::new(found), place: Mutex::new(place), lock: guard })
    }

    /// States in the manifest that the log has been begun, before the first record can be acknowledged: from
    /// then on a log without files is a lost one. A crash before that leaves a file without records, with the
    /// id that is reserved for it.
    fn publish_begun(&self, directory: &Path, log: &Log, base: CheckpointPosition) -> Result<()> {
        if base.begun {
            return Ok(());
        }
        // A load may have written a manifest since `base` was read.
        let place = Store::open(&self.environment, directory)?.checkpoint_position().unwrap_or(base);
        if place.begun {
            debug_assert_eq!(place.id, log.id().0, "one directory has one log");
            return Ok(());
        }
        let place = CheckpointPosition { id: log.id().0, begun: true, ..place };
        vervet_store::publish_log(&self.environment, directory, place)
    }

    /// The log of the directory, opened on first use; `None` for a graph in memory.
    pub(crate) fn log(&self) -> Result<Option<&Log>> {
        let (Some(writer), Some(directory)) = (self.own()?, &self.directory) else { return Ok(None) };
        if let Some(log) = writer.log.get() {
            return Ok(Some(log));
        }
        // Excludes a running load, which would write a manifest that does not name the log.
        let _one = crate::sync::lock(&self.checkpointing);
        let mut found = crate::sync::lock(&writer.found);
        if writer.log.get().is_none() {
            let (mut found, base) = match found.take() {
                Some(found) => found,
                // A new directory, or a failed earlier attempt: recover again. No transaction has begun yet.
                None => {
                    if !recovery::has_store(&self.environment, directory)? {
                        write_empty(&self.environment, directory)?;
                    }
                    let recovered = recovery::recover_as_owner(&self.environment, directory)?;
                    let lost = || Error::internal("a database that has just been written is missing");
                    let recovered = recovered.ok_or_else(lost)?;
                    // If the log cannot be opened, a load must continue with its id.
                    *crate::sync::lock(&writer.place) = Some(recovered.place());
                    let Recovered { version, timestamp, constraints, found, base } = recovered;
                    self.reset(version, timestamp, constraints);
                    (found, base)
                }
            };
            // The id that the manifest has reserved, if there is no log yet.
            found.id.get_or_insert(LogId(base.id));
            let options = LogOptions { durability: self.options.durability, ..LogOptions::default() };
            let log = Log::open(&self.environment, directory, found, options)?;
            self.publish_begun(directory, &log, base)?;
            self.terms_are_logged();
            let set = writer.log.set(log);
            assert!(set.is_ok(), "`found` is held");
            *crate::sync::lock(&writer.place) = None;
        }
        Ok(writer.log.get())
    }
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

//! The write ownership of a directory: its lock, its log, and whether it may be written to.
//!
//! # Shape
//! A directory is locked before its content is trusted, and the log is opened when the first transaction
//! begins: a process that only bulk-loads needs none. A graph in memory has no log.
//! # Invariants
//! 1. The log holds commits in the order of their timestamps. So if a commit is durable, all those that it
//!    may have read from are.
//! 2. One thread at a time writes manifests: a checkpoint, a load, or the thread that opens the log holds
//!    [`Writer::lock_manifest`].
//! 3. The log is cut only before a position that a durable base covers.

use crate::commit_head::CommitHead;
use crate::commit_log::{CommitLog, SharedLog};
use crate::constraints::Constraints;
use crate::directory::DirectoryLock;
use crate::mutation::Timestamp;
use crate::numbering::Numbering;
use crate::published::Published;
use crate::recovery::{self, Recovered};
use crate::start::Start;
use crate::sync::{ArcSwap, AtomicU64, Mutex, MutexGuard, lock};
use oxrdf::TermRef;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use vervet_delta::Version;
use vervet_env::Environment;
use vervet_log::{Durability, Log, LogId, LogOptions, Lsn, RECORD_BYTES_MAX, RecoveryReport};
use vervet_model::{Error, ErrorKind, Id, Result};
use vervet_snapshot::Snapshot;
use vervet_store::{Base, BuildOptions, CheckpointPosition, Store, StoreBuilder, Target};

/// See the header of this file.
#[derive(Debug)]
pub(crate) struct Writer {
    environment: Environment,
    directory: Option<PathBuf>,
    /// What the log changes, if that is not in the directory: then nothing here replaces it.
    over: Option<Start>,
    durability: Durability,
    /// The log, if it is not that of the directory.
    shared: Option<CommitLog>,
    head: Arc<CommitHead>,
    numbering: Numbering,
    /// Unset for a graph in memory, or before the first write.
    ownership: OnceLock<Ownership>,
    /// Held while this process takes the directory.
    owning: Mutex<()>,
    manifest: Mutex<()>,
    /// Start of the log part that recovery would read.
    log_start: AtomicU64,
    /// Set when the state of the directory is unknown: no further writes.
    failure: OnceLock<Error>,
    /// Why this process writes nothing at present.
    refusal: ArcSwap<Option<Error>>,
}

/// Where the log of a graph is.
#[derive(Debug, Default)]
pub(crate) struct LogLocation {
    /// Its directory; `None`: it has none.
    pub(crate) directory: Option<PathBuf>,
    /// What the log changes, if that is not in the directory.
    pub(crate) over: Option<Start>,
    /// The log, if it is not that of the directory.
    pub(crate) shared: Option<Arc<dyn SharedLog>>,
}

/// An owned directory.
#[derive(Debug)]
struct Ownership {
    log: OnceLock<CommitLog>,
    /// Result of recovery and the log position of the manifest, until the log is opened.
    found: Mutex<Option<(RecoveryReport, CheckpointPosition)>>,
    /// Position at which the log continues or is to begin, if it is known and the log is not open.
    place: Mutex<Option<CheckpointPosition>>,
    lock: DirectoryLock,
}

/// The start of the log part that recovery reads for this version.
fn log_start(version: &Version) -> u64 {
    version.base().checkpoint_position().map_or(0, |place| place.lsn)
}

impl Writer {
    /// The writer of the graph at the newest version of `head`; `None` for `directory`: in memory. `over`:
    /// what the log changes, if that is not in the directory.
    pub(crate) fn new(
        environment: Environment,
        LogLocation { directory, over, shared }: LogLocation,
        durability: Durability,
        terms_max: u64,
        head: Arc<CommitHead>,
    ) -> Self {
        let newest = head.newest();
        let numbering = Numbering::new(newest.version.edge_count(), terms_max);
        if shared.is_some() {
            numbering.mark_logged(&newest);
        }
        Self {
            environment,
            directory,
            over,
            durability,
            shared: shared.map(CommitLog::Shared),
            numbering,
            ownership: OnceLock::new(),
            owning: Mutex::default(),
            manifest: Mutex::default(),
            log_start: AtomicU64::new(log_start(&newest.version)),
            failure: OnceLock::new(),
            refusal: ArcSwap::new(Arc::default()),
            head,
        }
    }

    /// Files, clock and randomness.
    pub(crate) fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The directory; `None` for a graph in memory.
    pub(crate) fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// Durability level: when a commit is acknowledged.
    pub(crate) fn durability(&self) -> Durability {
        self.durability
    }

    /// Where a new base is written.
    pub(crate) fn target(&self) -> Target {
        match &self.directory {
            Some(directory) => Target::Directory(directory.clone()),
            None => Target::Memory,
        }
    }

    /// Describes this process in the lock file; has no effect unless it owns the directory.
    pub(crate) fn describe_owner(&self, text: &str) {
        if let Some(ownership) = self.ownership.get() {
            ownership.lock.describe(text);
        }
    }

    /// Why nothing may be written any more.
    pub(crate) fn failure(&self) -> Option<Error> {
        self.failure.get().cloned().or_else(|| Option::clone(&self.refusal.load()))
    }

    /// Refuses all writes, with this error, until the next call.
    pub(crate) fn refuse(&self, error: Error) {
        self.refusal.store(Arc::new(Some(error)));
    }

    /// # Errors
    /// [`Writer::failure`].
    pub(crate) fn check_failure(&self) -> Result<()> {
        self.failure().map_or(Ok(()), Err)
    }

    /// The longest record: one that followers take has to fit into an answer to them.
    pub(crate) fn record_bytes_max(&self) -> usize {
        match (&self.shared, &self.over) {
            (Some(_), _) => SHARED_RECORD_BYTES_MAX,
            (None, Some(_)) => FOLLOWED_RECORD_BYTES_MAX,
            (None, None) => RECORD_BYTES_MAX,
        }
    }

    /// Whether the base may be replaced, by a load or a checkpoint.
    ///
    /// # Errors
    /// Unsupported: the base is not in the directory of the log.
    pub(crate) fn check_replaceable(&self) -> Result<()> {
        if self.over.is_none() {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Unsupported, "the files of this graph are those of several servers")
            .with_hint("export the graph, and make its files again from the export"))
    }

    /// Refuses all further writes. The first failure is the one that counts.
    pub(crate) fn fail(&self, error: Error) {
        let _ = self.failure.set(error);
    }

    /// Excludes other writers of manifests; see the header.
    pub(crate) fn lock_manifest(&self) -> MutexGuard<'_, ()> {
        lock(&self.manifest)
    }

    /// Takes the write ownership of the directory, if it is free; no effect for a graph in memory.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`]: another process has it. [`ErrorKind::Io`], [`ErrorKind::Corrupt`].
    pub(crate) fn take_ownership(&self) -> Result<()> {
        self.own().map(drop)
    }

    fn own(&self) -> Result<Option<&Ownership>> {
        let Some(directory) = &self.directory else { return Ok(None) };
        self.check_failure()?;
        if let Some(ownership) = self.ownership.get() {
            return Ok(Some(ownership));
        }
        let _one = lock(&self.owning);
        if self.ownership.get().is_none() {
            let guard = DirectoryLock::take(&self.environment, directory)?;
            // Another process may have written since this graph was opened.
            let recovered = recovery::recover_as_owner(&self.environment, directory, self.over.as_ref())?;
            let set = self.ownership.set(self.ownership_of(guard, recovered));
            assert!(set.is_ok(), "`owning` is held");
        }
        Ok(self.ownership.get())
    }

    fn ownership_of(&self, guard: DirectoryLock, recovered: Option<Recovered>) -> Ownership {
        let (mut found, mut place) = (None, None);
        if let Some(recovered) = recovered {
            place = Some(recovered.place());
            let Recovered { version, timestamp, constraints, found: read, base } = recovered;
            found = Some((read, base));
            self.restart(version, timestamp, constraints);
        }
        Ownership { log: OnceLock::new(), found: Mutex::new(found), place: Mutex::new(place), lock: guard }
    }

    /// Restarts from the recovered state. This process has not written yet.
    fn restart(&self, version: Version, timestamp: Timestamp, constraints: Arc<Constraints>) {
        let mut head = self.head.lock();
        self.numbering.reserve_edges(version.edge_count());
        self.log_start.store(log_start(&version), Ordering::Relaxed);
        head.restart(Published::new(version, timestamp, constraints));
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
    pub(crate) fn log(&self) -> Result<Option<&CommitLog>> {
        if let Some(log) = &self.shared {
            self.check_failure()?;
            return Ok(Some(log));
        }
        let (Some(ownership), Some(directory)) = (self.own()?, &self.directory) else {
            return Ok(None);
        };
        if let Some(log) = ownership.log.get() {
            return Ok(Some(log));
        }
        // Excludes a running load, which would write a manifest that does not name the log.
        let _one = self.lock_manifest();
        let mut found = lock(&ownership.found);
        if ownership.log.get().is_none() {
            let (mut found, base) = match found.take() {
                Some(found) => found,
                // A new directory, or a failed earlier attempt: recover again. No transaction has begun yet.
                None => {
                    if !recovery::has_store(&self.environment, directory)? {
                        write_empty(&self.environment, directory)?;
                    }
                    let recovered =
                        recovery::recover_as_owner(&self.environment, directory, self.over.as_ref())?;
                    let lost = || Error::internal("a database that has just been written is missing");
                    let recovered = recovered.ok_or_else(lost)?;
                    // If the log cannot be opened, a load must continue with its id.
                    *lock(&ownership.place) = Some(recovered.place());
                    let Recovered { version, timestamp, constraints, found, base } = recovered;
                    self.restart(version, timestamp, constraints);
                    (found, base)
                }
            };
            // The id that the manifest has reserved, if there is no log yet.
            found.id.get_or_insert(LogId(base.id));
            let options = LogOptions { durability: self.durability, ..LogOptions::default() };
            let log = Log::open(&self.environment, directory, found, options)?;
            self.publish_begun(directory, &log, base)?;
            self.numbering.mark_logged(&self.head.newest());
            let set = ownership.log.set(CommitLog::Own(log));
            assert!(set.is_ok(), "`found` is held");
            *lock(&ownership.place) = None;
        }
        Ok(ownership.log.get())
    }

    /// The log, if it is open.
    pub(crate) fn open_log(&self) -> Option<&CommitLog> {
        if self.shared.is_some() {
            return self.shared.as_ref();
        }
        self.ownership.get()?.log.get()
    }

    /// Size of the log part that recovery would read, in bytes.
    pub(crate) fn log_bytes(&self) -> u64 {
        let start = self.log_start.load(Ordering::Relaxed);
        self.open_log().map_or(0, |log| log.end().saturating_sub(start))
    }

    /// Start of the log part that recovery would read: the log has all records from there on.
    pub(crate) fn log_start(&self) -> Lsn {
        Lsn(self.log_start.load(Ordering::Relaxed))
    }

    /// Removes the log before `lsn`, which a durable base covers.
    pub(crate) fn cut(&self, log: &CommitLog, lsn: Lsn) {
        let before = self.log_start.fetch_max(lsn.0, Ordering::Relaxed);
        assert!(before <= lsn.0, "the log is cut behind where it was cut before");
        // Remaining files only take up space.
        let _ = log.remove_before(lsn);
    }

    /// The position that a manifest must state if it is written before the log is opened; `None` for a graph
    /// in memory.
    pub(crate) fn place_without_log(&self, timestamp: Timestamp) -> Result<Option<CheckpointPosition>> {
        let Some(ownership) = self.own()? else { return Ok(None) };
        let mut known = lock(&ownership.place);
        let place = match *known {
            Some(place) => place,
            None => *known.insert(CheckpointPosition::reserve(&self.environment, timestamp.0)?),
        };
        Ok(Some(CheckpointPosition { timestamp: timestamp.0, ..place }))
    }

    /// The id of the log, also before it is opened; `None`: in memory, or nothing was ever written.
    pub(crate) fn known_log_id(&self) -> Result<Option<LogId>> {
        let Some(ownership) = self.own()? else { return Ok(None) };
        let known = || lock(&ownership.place).map(|place| LogId(place.id));
        Ok(ownership.log.get().map(CommitLog::id).or_else(known))
    }

    /// The assignment of numbers.
    pub(crate) fn numbering(&self) -> &Numbering {
        &self.numbering
    }

    /// Creates or finds the id of a term that `version` does not know.
    ///
    /// # Errors
    /// Those of [`Writer::log`] and [`Numbering::admit_term`]; [`ErrorKind::Conflict`]: a load has added it.
    pub(crate) fn intern(&self, version: &Version, term: TermRef<'_>) -> Result<Id> {
        self.check_failure()?;
        let bytes_max = self.record_bytes_max();
        if self.over.is_some() && text_bytes(term) > bytes_max - TERM_HEAD_BYTES_MAX {
            let what = format!("a term of more than {bytes_max} bytes in a graph of several servers");
            return Err(
                Error::new(ErrorKind::Input, what).with_hint("divide the text, or load it with a file")
            );
        }
        let _admitted = self.numbering.admit_term(&self.head, version)?;
        let is_in_new_base = self.head.with_newest(|newest| {
            let base = newest.version.base();
            Ok(!Arc::ptr_eq(base, version.base()) && base.dictionary().lookup(term)?.is_some())
        });
        if is_in_new_base? {
            // A checkpoint keeps the ids of its terms; a load numbers new terms, which old versions cannot
            // see.
            return version.terms().lookup(term).ok_or_else(|| {
                let message = format!("this transaction conflicts with a bulk load, which added {term}");
                Error::new(ErrorKind::Conflict, message).with_hint("run it again")
            });
        }
        // A transaction that numbers terms must own the directory.
        self.log()?;
        // A bulk load may have numbered the term since `version`, in a dictionary that its terms do not
        // include.
        let in_base = self.head.with_newest(|newest| newest.version.base().dictionary().lookup(term))?;
        in_base.map_or_else(|| version.terms().intern(term), Ok)
    }

    /// Appends the records of new terms; see [`Numbering::log_terms`].
    pub(crate) fn log_terms(&self, log: &CommitLog) -> Result<()> {
        self.numbering.log_terms(&self.head, log)
    }

    /// 64 random bits.
    pub(crate) fn random(&self) -> Result<u64> {
        self.environment.random.next_u64().map_err(|error| Error::io("draw a random number", &error))
    }
}

/// The longest record of a log that several processes share: about the largest message between them.
const SHARED_RECORD_BYTES_MAX: usize = 11 << 20;

/// Bytes of the record of a term beside its text.
const TERM_HEAD_BYTES_MAX: usize = 64;

/// The longest record of a log that other processes follow.
const FOLLOWED_RECORD_BYTES_MAX: usize = 32 << 20;

/// About the length of the text of a term; of a triple term, that of its parts.
fn text_bytes(term: TermRef<'_>) -> usize {
    match term {
        TermRef::NamedNode(node) => node.as_str().len(),
        TermRef::BlankNode(node) => node.as_str().len(),
        TermRef::Literal(literal) => literal.value().len() + literal.datatype().as_str().len(),
        TermRef::Triple(triple) => triple.to_string().len(),
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

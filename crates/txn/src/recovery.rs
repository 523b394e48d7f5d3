//! Recovery: loads the base that the manifest names, and replays the tail of the log.
//!
//! # Invariants
//! 1. The replayed records are exactly the commits after the base, in order; a commit is one record, so it is
//!    present whole or not at all.
//! 2. Terms get the numbers that the log states, or the log is damaged.
//! # Cost
//! Consecutive additions are sorted and added together, also those of different commits.

use crate::constraints::Constraints;
use crate::mutation::Timestamp;
use crate::record;
use crate::start::Start;
use std::path::Path;
use std::sync::Arc;
use vervet_delta::Version;
use vervet_dictionary::MutableDictionary;
use vervet_env::Environment;
use vervet_log::{LogId, Lsn, ReadOptions, RecoveryReport};
use vervet_model::{Error, ErrorKind, Result, Statement};
use vervet_store::{Base, CheckpointPosition, Store};

/// Maximum number of additions that are collected and added together.
const BATCH: usize = 1 << 18;
/// Maximum attempts beside a writer when a checkpoint has replaced the files being read.
const ATTEMPTS_MAX: u32 = 10;

/// Result of recovery.
#[derive(Debug)]
pub(crate) struct Recovered {
    pub(crate) version: Version,
    pub(crate) timestamp: Timestamp,
    pub(crate) constraints: Arc<Constraints>,
    pub(crate) found: RecoveryReport,
    /// The log position that the manifest states, or should state.
    pub(crate) base: CheckpointPosition,
}

impl Recovered {
    /// Position at which the log continues, or is to begin.
    pub(crate) fn place(&self) -> CheckpointPosition {
        let timestamp = self.timestamp.0;
        match self.found.id {
            Some(id) => CheckpointPosition { id: id.0, lsn: self.found.end.0, timestamp, begun: true },
            None => CheckpointPosition { timestamp, ..self.base },
        }
    }
}

/// A version over a base, with no changes.
pub(crate) fn version_of(base: Arc<dyn Base>) -> Version {
    let dictionary = base.dictionary();
    let terms = MutableDictionary::new(dictionary.vertex_count(), dictionary.literal_count());
    Version::new(base, Arc::new(terms))
}

/// The graph at the start of a log: its version, its last commit, and its constraints.
///
/// # Errors
/// Corrupt: a constraint cannot be read.
pub(crate) fn state_of(start: &Start) -> Result<(Version, Timestamp, Arc<Constraints>)> {
    let version = version_of(Arc::clone(&start.base));
    let constraints = Constraints::recovered(&start.constraints, &version)?;
    Ok((version, start.timestamp, constraints))
}

/// Whether `directory` has a database.
pub(crate) fn has_store(environment: &Environment, directory: &Path) -> Result<bool> {
    match Store::open(environment, directory) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::Input => Ok(false),
        Err(error) => Err(error),
    }
}

/// Recovers a directory whose lock the caller holds; `None` without a database. `over`: what the log changes,
/// if that is not in the directory.
pub(crate) fn recover_as_owner(
    environment: &Environment,
    directory: &Path,
    over: Option<&Start>,
) -> Result<Option<Recovered>> {
    match Store::open(environment, directory) {
        Ok(store) => recover_over(environment, directory, store, over, &ReadOptions::default()).map(Some),
        Err(error) if error.kind() == ErrorKind::Input => Ok(None),
        Err(error) => Err(error),
    }
}

/// Recovers a directory, possibly beside a process that writes to it: everything that it had committed at
/// some moment during the call.
pub(crate) fn recover_beside(environment: &Environment, directory: &Path) -> Result<Recovered> {
    let options = ReadOptions { beside_writer: true, ..ReadOptions::default() };
    let mut store = Store::open(environment, directory)?;
    for attempt in 1.. {
        let place = store.checkpoint_position();
        match recover(environment, directory, store, &options) {
            Err(error) if error.kind() == ErrorKind::Unavailable && attempt < ATTEMPTS_MAX => {}
            recovered => return recovered,
        }
        store = Store::open(environment, directory)?;
        if store.checkpoint_position() == place {
            // No concurrent checkpoint explains the missing files of the log: they are lost.
            return recover(environment, directory, store, &ReadOptions::default());
        }
    }
    Err(Error::internal("opening beside a writer stopped without a result"))
}

/// Compares the log in `directory` with the log that the manifest names.
///
/// # Errors
/// [`ErrorKind::Corrupt`]: it is the log of another database.
pub(crate) fn check_log(
    environment: &Environment,
    directory: &Path,
    place: Option<CheckpointPosition>,
) -> Result<Option<LogId>> {
    let found = vervet_log::find_id(environment, directory)?;
    let Some((place, id)) = place.zip(found).filter(|(place, id)| place.id != id.0) else { return Ok(found) };
    let expected = LogId(place.id);
    let what = format!("its log files are those of another database: log {id}, its own is {expected}");
    Err(Error::corrupt(directory.display(), what).with_hint(
        "move the wal-*.log files away if they were here before these files were copied; \
         `vervet restore` copies a backup without such remains",
    ))
}

pub(crate) fn recover(
    environment: &Environment,
    directory: &Path,
    store: Store,
    options: &ReadOptions,
) -> Result<Recovered> {
    recover_over(environment, directory, store, None, options)
}

/// [`recover`], with the log replayed over `over` in place of `store`, which then only has the position of
/// the log.
fn recover_over(
    environment: &Environment,
    directory: &Path,
    store: Store,
    over: Option<&Start>,
    options: &ReadOptions,
) -> Result<Recovered> {
    let place = store.checkpoint_position();
    let from = Lsn(place.map_or(0, |place| place.lsn));
    let timestamp = Timestamp(place.map_or(0, |place| place.timestamp));
    let present = check_log(environment, directory, place)?;
    // A log that has been begun and has no files is lost; one that has not been begun has none yet.
    let id = place.filter(|place| place.begun || present.is_some()).map(|place| LogId(place.id));
    let options = ReadOptions { id, ..options.clone() };
    let constraints = over.map_or(store.constraints(), |start| &start.constraints).to_vec();
    let base = over.map_or_else(|| Arc::new(store) as Arc<dyn Base>, |start| Arc::clone(&start.base));
    let mut replay = Replay::new(version_of(base), timestamp, constraints);
    replay.any_timestamp = place.is_none();
    let found = vervet_log::read(environment, directory, from, &options, &mut |lsn, kind, payload| {
        replay.record(kind, payload).map_err(|error| {
            error.context(format_args!("log of {}, record before {lsn}", directory.display()))
        })
    })?;
    replay.add()?;
    let constraints = replay.constraints().map_err(|error| error.context(directory.display()))?;
    let base = match place {
        Some(place) => place,
        // A manifest of version 1 that names no log: an existing log began after it.
        None => CheckpointPosition { lsn: 0, ..CheckpointPosition::reserve(environment, replay.began.0)? },
    };
    Ok(Recovered { version: replay.version, timestamp: replay.timestamp, constraints, found, base })
}

/// The replay of a log over a base.
#[derive(Clone, Debug)]
pub(crate) struct Replay {
    pub(crate) version: Version,
    pub(crate) timestamp: Timestamp,
    /// Texts of all constraints.
    constraints: Vec<String>,
    /// The base does not state the next timestamp.
    any_timestamp: bool,
    /// The last commit before the log.
    began: Timestamp,
    /// Vertices and literals with numbers below these are in the base.
    first: [u64; 2],
    /// Statements that have not been added yet.
    added: Vec<Statement>,
}

impl Replay {
    /// A replay over `version`, whose last commit is `timestamp`.
    pub(crate) fn new(version: Version, timestamp: Timestamp, constraints: Vec<String>) -> Self {
        let dictionary = version.base().dictionary();
        let first = [dictionary.vertex_count(), dictionary.literal_count()];
        Self {
            version,
            timestamp,
            constraints,
            any_timestamp: false,
            began: timestamp,
            first,
            added: Vec::new(),
        }
    }

    /// A replay of the records behind `start`.
    pub(crate) fn over(start: &Start) -> Self {
        Self::new(version_of(Arc::clone(&start.base)), start.timestamp, start.constraints.clone())
    }

    /// Replays the next record. Its additions may wait for [`Replay::add`].
    ///
    /// # Errors
    /// Corrupt: it is damaged, or not the next one. Unsupported: it is of a later version.
    pub(crate) fn record(&mut self, kind: u8, payload: &[u8]) -> Result<()> {
        match kind {
            record::TERM => self.term(payload),
            record::COMMIT => self.commit(payload),
            record::CONSTRAINTS => self.read_constraints(payload),
            _ => Err(Error::new(ErrorKind::Unsupported, format!("a record of unknown kind {kind}"))
                .with_hint("open this database with the version of Vervet that wrote it")),
        }
    }

    /// The texts of the constraints of the version.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.constraints.clone()
    }

    /// The constraints of the version.
    pub(crate) fn constraints(&self) -> Result<Arc<Constraints>> {
        Constraints::recovered(&self.constraints, &self.version)
    }

    fn term(&mut self, payload: &[u8]) -> Result<()> {
        let (id, term) = record::read_term(payload).ok_or_else(|| damaged("a term"))?;
        let first = if id.is_vertex() { self.first[0] } else { self.first[1] };
        if id.payload() < first {
            // The base has the term, with the same id unless this is not the log of that base.
            return match self.version.base().dictionary().lookup(term.as_ref())? {
                Some(known) if known == id => Ok(()),
                _ => Err(damaged(&format!("{term}, which is not {id:?} in the base,"))),
            };
        }
        match self.version.terms().intern(term.as_ref())? {
            interned if interned == id => Ok(()),
            interned => Err(damaged(&format!("{term}, which should be {id:?} and would be {interned:?},"))),
        }
    }

    fn commit(&mut self, payload: &[u8]) -> Result<()> {
        let (timestamp, changes) = record::read_commit(payload).ok_or_else(|| damaged("a commit"))?;
        self.next(timestamp)?;
        for change in changes {
            if change.added {
                self.added.push(change.statement);
            } else {
                self.add()?;
                self.version.remove(&change.statement)?;
            }
        }
        if self.added.len() >= BATCH { self.add() } else { Ok(()) }
    }

    fn read_constraints(&mut self, payload: &[u8]) -> Result<()> {
        let read = record::read_constraints(payload).ok_or_else(|| damaged("the constraints"))?;
        self.constraints = read.1;
        self.next(read.0)
    }

    /// Checks that the commit with this timestamp is the next one.
    fn next(&mut self, timestamp: Timestamp) -> Result<()> {
        // A bulk load without a log counts as a commit, but records no timestamp.
        if timestamp != self.timestamp.next() && !self.any_timestamp {
            return Err(damaged(&format!("commit {timestamp} after commit {}", self.timestamp)));
        }
        if self.any_timestamp {
            self.began = Timestamp(timestamp.0.saturating_sub(1));
        }
        (self.timestamp, self.any_timestamp) = (timestamp, false);
        Ok(())
    }

    /// Adds the collected statements.
    pub(crate) fn add(&mut self) -> Result<()> {
        if !self.added.is_empty() {
            self.version.insert_all(&self.added)?;
            self.added.clear();
        }
        Ok(())
    }
}

fn damaged(what: &str) -> Error {
    Error::new(ErrorKind::Corrupt, format!("the record of {what} is damaged"))
        .with_hint("restore this database from a backup")
}

//! From files to a version: the base that the manifest names, and the tail of the log on top.
//!
//! # Invariants
//! 1. What is replayed is exactly the commits behind the base, in their order; a commit is one record, so it is there
//!    whole or not at all.
//! 2. Terms get the numbers that the log says, or the log is damaged.
//! # Cost
//! Additions that follow each other are sorted and added together, also those of different commits.

use crate::change::Timestamp;
use crate::constraints::Constraints;
use crate::record;
use crate::schema;
use std::path::Path;
use std::sync::Arc;
use vervet_delta::Version;
use vervet_dictionary::Terms;
use vervet_env::Environment;
use vervet_log::{Found, LogId, Lsn, ReadOptions};
use vervet_model::{Error, ErrorKind, Id, Result, Statement};
use vervet_store::{LogPlace, Store};

/// How many additions are held to be added together.
const BATCH: usize = 1 << 18;
/// How often opening beside a writer starts anew when a checkpoint has replaced what was being read.
const ATTEMPTS_MAX: u32 = 10;

/// What was found in a directory.
#[derive(Debug)]
pub(crate) struct Recovered {
    pub(crate) version: Version,
    pub(crate) timestamp: Timestamp,
    pub(crate) constraints: Arc<Constraints>,
    pub(crate) found: Found,
}

impl Recovered {
    /// Where the log goes on, if there is one.
    pub(crate) fn place(&self) -> Option<LogPlace> {
        let id = self.found.id?;
        Some(LogPlace { id: id.0, lsn: self.found.end.0, timestamp: self.timestamp.0 })
    }
}

/// A version over a store, with no changes.
pub(crate) fn version_of(store: Store) -> Version {
    let dictionary = store.dictionary();
    let terms = Terms::new(dictionary.vertex_count(), dictionary.literal_count());
    Version::new(Arc::new(store), Arc::new(terms))
}

/// Whether there is a database in `directory`.
pub(crate) fn has_store(environment: &Environment, directory: &Path) -> Result<bool> {
    match Store::open(environment, directory) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::Input => Ok(false),
        Err(error) => Err(error),
    }
}

/// The log of a directory that has no database yet or one that says nothing of a log.
pub(crate) fn find_log(environment: &Environment, directory: &Path) -> Result<Found> {
    let mut visit = |_, _, _: &[u8]| Err(Error::corrupt(directory.display(), "it has a log without a base"));
    vervet_log::read(environment, directory, Lsn(0), &ReadOptions::default(), &mut visit)
}

/// What is in a directory whose lock the caller holds; `None`: no database.
pub(crate) fn recover_as_owner(environment: &Environment, directory: &Path) -> Result<Option<Recovered>> {
    match Store::open(environment, directory) {
        Ok(store) => recover(environment, directory, store, &ReadOptions::default()).map(Some),
        Err(error) if error.kind() == ErrorKind::Input => Ok(None),
        Err(error) => Err(error),
    }
}

/// What is in a directory, maybe beside a process that writes to it: everything that it had committed at some
/// moment during the call.
pub(crate) fn recover_beside(environment: &Environment, directory: &Path) -> Result<Recovered> {
    let options = ReadOptions { beside_writer: true, ..ReadOptions::default() };
    for _ in 1..ATTEMPTS_MAX {
        let store = Store::open(environment, directory)?;
        match recover(environment, directory, store, &options) {
            // A checkpoint was faster: its base holds what was looked for.
            Err(error) if error.kind() == ErrorKind::Unavailable => {}
            recovered => return recovered,
        }
    }
    recover(environment, directory, Store::open(environment, directory)?, &options)
}

pub(crate) fn recover(
    environment: &Environment,
    directory: &Path,
    store: Store,
    options: &ReadOptions,
) -> Result<Recovered> {
    let place = store.log_place();
    let from = Lsn(place.map_or(0, |place| place.lsn));
    let timestamp = Timestamp(place.map_or(0, |place| place.timestamp));
    let options = ReadOptions { id: place.map(|place| LogId(place.id)), ..options.clone() };
    let mut replay = Replay {
        constraints: store.constraints().to_vec(),
        first: [store.dictionary().vertex_count(), store.dictionary().literal_count()],
        version: version_of(store),
        timestamp,
        any_timestamp: place.is_none(),
        added: Vec::new(),
    };
    let found = vervet_log::read(environment, directory, from, &options, &mut |lsn, kind, payload| {
        let replayed = match kind {
            record::TERM => replay.term(payload),
            record::COMMIT => replay.commit(payload),
            record::CONSTRAINTS => replay.constraints(payload),
            _ => Err(Error::new(ErrorKind::Unsupported, format!("a record of unknown kind {kind}"))
                .with_hint("open this database with the version of Vervet that wrote it")),
        };
        replayed.map_err(|error| {
            error.context(format_args!("log of {}, record before {lsn}", directory.display()))
        })
    })?;
    replay.add()?;
    let constraints = schema::recovered(&replay.constraints, &replay.version)
        .map_err(|error| error.context(directory.display()))?;
    Ok(Recovered { version: replay.version, timestamp: replay.timestamp, constraints, found })
}

struct Replay {
    version: Version,
    timestamp: Timestamp,
    /// Texts of all constraints.
    constraints: Vec<String>,
    /// The base does not say which timestamp comes next.
    any_timestamp: bool,
    /// Numbers of vertices and literals below these are in the base.
    first: [u64; 2],
    /// Statements that have not been added yet.
    added: Vec<Statement>,
}

impl Replay {
    fn term(&mut self, payload: &[u8]) -> Result<()> {
        let (id, term) = record::read_term(payload).ok_or_else(|| damaged("a term"))?;
        let first = if id.is_vertex() { self.first[0] } else { self.first[1] };
        if id.payload() < first {
            return Ok(());
        }
        match self.version.terms().intern(term.as_ref(), &mut |_, _| Ok(()))? {
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

    fn constraints(&mut self, payload: &[u8]) -> Result<()> {
        let read = record::read_constraints(payload).ok_or_else(|| damaged("the constraints"))?;
        self.constraints = read.1;
        self.next(read.0)
    }

    /// The commit with this timestamp is next.
    fn next(&mut self, timestamp: Timestamp) -> Result<()> {
        // A bulk load without a log counts as a commit, but leaves no place to say so.
        if timestamp != self.timestamp.next() && !self.any_timestamp {
            return Err(damaged(&format!("commit {timestamp} behind commit {}", self.timestamp)));
        }
        (self.timestamp, self.any_timestamp) = (timestamp, false);
        Ok(())
    }

    /// Adds what is held.
    fn add(&mut self) -> Result<()> {
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

/// Ids of terms that a version has beyond its base, in the order of their numbers.
pub(crate) fn new_terms(version: &Version, vertices: u64, literals: u64) -> impl Iterator<Item = Id> + use<> {
    let dictionary = version.base().dictionary();
    let vertices = (dictionary.vertex_count()..vertices).map(Id::vertex);
    vertices.chain((dictionary.literal_count()..literals).map(Id::literal))
}

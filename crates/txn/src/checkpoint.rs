//! Checkpoints: the delta is merged into a new base, while transactions read and write.
//!
//! # Shape
//! 1. Under the lock of the head: take the newest version, and begin a new file of the log.
//! 2. Without a lock: write a store with that version. Its manifest states that the log continues with the
//!    new file: from now on recovery starts there.
//! 3. Without a lock: rebase later commits onto the new base, until few are left; under the lock again:
//!    rebase the rest, and make the result the head.
//! 4. Remove the files of the log that are no longer needed.
//!
//! If the graph equals its base, to the last term and edge number (existing statements were added again, or
//! statements were added and removed), step 2 only writes the manifest: the same files, and the later start
//! of the log. Step 3 is then empty.
//!
//! A graph in memory does the same without files; this merges its delta.
//! # Why this is right
//! A crash before the manifest is renamed leaves the old base and the whole log; a crash after it, the new
//! base and the rest of the log. Terms with records before the new file are in the new dictionary, because
//! they had their numbers when it was made. Recovery compares terms that are in both.
//! # Cost
//! The whole graph is rewritten. Steps 1 and 3 hold the lock for one sync of the log each, and step 3 for
//! [`LOCKED_CHANGES_MAX`] changes unless commits are faster than the rebase. The dictionary is copied with
//! the new terms merged in, with memory for the new terms; it is built from scratch where at least half of
//! its terms are new. A checkpoint that would not fit on the disk is not started.
//! # Not here
//! Triggers and retries: `background.rs`. Merging single segments, and runs between base and delta.

use crate::background::{Attempt, new_term_count};
use crate::change::Timestamp;
use crate::committed::Changes;
use crate::directory::Locked;
use crate::recovery::new_terms;
use crate::schema::Successor;
use crate::sync::lock;
use crate::transactions::{Published, Transactions};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use vervet_delta::Version;
use vervet_dictionary::{DictionaryBuilder, Extension};
use vervet_env::Environment;
use vervet_log::{Log, Lsn};
use vervet_model::{Error, ErrorKind, Id, Result, TermParts, Watch};
use vervet_snapshot::Snapshot;
use vervet_store::{BuildOptions, CheckpointPosition, NewDictionary, Store, StoreBuilder, Target};

/// Minimum space that a checkpoint leaves free on the disk: the log grows meanwhile.
pub const CHECKPOINT_SPARE_BYTES: u64 = 1 << 20;
/// Estimated size of one statement of the base, in bytes.
const STATEMENT_BYTES: u64 = 16;

/// Memory of a checkpoint for statements, in bytes.
const MEMORY_BYTES: u64 = 1 << 30;
/// Steps of a [`Watch`] for a statement that is read, sorted and encoded in both directions, and for a term,
/// estimated.
const STATEMENT_STEPS: u64 = 5;
const TERM_STEPS: u64 = 8;
/// Steps of [`TERM_STEPS`] that copying a term does not report.
const COPIED_STEPS: u64 = 6;
/// Maximum number of changes rebased under the lock…
const LOCKED_CHANGES_MAX: u64 = 1 << 10;
/// … unless this many rounds without it have left more.
const ROUNDS_MAX: usize = 8;
/// Number of statements of one chunk.
const CHUNK: usize = 1 << 16;

impl Transactions {
    /// Merges the delta into a new base, and cuts the log. `false` if there was nothing to do. Only one
    /// checkpoint runs at a time.
    ///
    /// # Errors
    /// A full disk and other I/O errors: nothing is changed. Damaged data.
    pub fn checkpoint(&self) -> Result<bool> {
        // Before taking the lock, since opening the log may take it.
        let log = self.log()?;
        let _one = lock(&self.checkpointing);
        let attempt = Attempt::begin(self);
        let result = self.merge(log);
        attempt.end(&result);
        result
    }

    fn merge(&self, log: Option<&Log>) -> Result<bool> {
        {
            let newest = self.newest();
            let has_log = log.is_some() && self.log_bytes() > 0;
            if newest.version.delta_cells() == 0 && new_term_count(&newest.version) == 0 && !has_log {
                return Ok(false);
            }
            self.check_space(&newest.version)?;
        }
        let (from, lsn) = {
            let head = lock(&self.head);
            let lsn = log.map(|log| log.rotate()).transpose()?;
            (Arc::clone(&head.published), lsn)
        };
        let version = &from.version;
        // After the new file was begun: a term with a record before that file has its number, and is counted.
        let ends = [version.terms().vertex_end(), version.terms().literal_end()];
        let place = log.zip(lsn).map(|(log, lsn)| place(log.id().0, lsn, from.timestamp));
        if let Some(((directory, place), log)) = self.directory.as_ref().zip(place).zip(log)
            && is_its_base(&from, ends)
        {
            vervet_store::publish_log(&self.environment, directory, place)?;
            self.cut(log, Lsn(place.lsn));
            return Ok(true);
        }
        let base = Arc::new(self.build(&from, ends, place, &self.target(), &Watch::new("checkpoint"))?);
        let mut merged = version.rebase_empty(base)?;
        let mut reached = Arc::clone(&from);
        for _ in 0..ROUNDS_MAX {
            let newest = self.newest();
            if newest.changes.saturating_sub(reached.changes) <= LOCKED_CHANGES_MAX {
                break;
            }
            merged.apply_difference(&reached.version, &newest.version)?;
            reached = newest;
        }
        if let Some(log) = log {
            // Most of the log is synced here, so that little is left to sync under the lock.
            log.sync()?;
        }
        {
            let mut head = lock(&self.head);
            if let Some(log) = log {
                log.sync()?;
            }
            merged.apply_difference(&reached.version, &head.published.version)?;
            let terms = head.published.version.terms().seal_and_succeed(ends[0], ends[1]);
            let merged = merged.with_terms(terms);
            let published = Arc::new(head.published.with(merged, head.published.timestamp));
            self.replace(&published);
            head.published = published;
        }
        if let Some((log, lsn)) = log.zip(lsn) {
            self.cut(log, lsn);
        }
        Ok(true)
    }

    /// Removes the log before `lsn`, which a durable base covers.
    fn cut(&self, log: &Log, lsn: Lsn) {
        let before = self.background.log_start.fetch_max(lsn.0, Ordering::Relaxed);
        assert!(before <= lsn.0, "the log is cut behind where it was cut before");
        // Remaining files only take up space.
        let _ = log.remove_before(lsn);
    }

    /// Checks that the disk has room for a base with this graph.
    fn check_space(&self, version: &Version) -> Result<()> {
        let Some(directory) = &self.directory else { return Ok(()) };
        // Attempt the checkpoint if the free space is unknown.
        let Ok(Some(free)) = self.environment.files.available_bytes(directory) else { return Ok(()) };
        let base = version.base();
        // At most the current size: too large an estimate would delay a checkpoint that has room.
        let kept = version.statement_count() as f64 / base.statement_count().max(1) as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of a length")]
        let base_bytes = (base.file_bytes() as f64 * kept.min(1.0) * 0.9) as u64;
        let needed = base_bytes + CHECKPOINT_SPARE_BYTES;
        if free >= needed {
            return Ok(());
        }
        let message = format!(
            "a checkpoint of {} needs {needed} bytes or more, and {free} are free on its disk",
            directory.display()
        );
        Err(Error::new(ErrorKind::Io, message)
            .with_hint("free some space; until then changes stay in the log and in memory"))
    }

    /// Replaces the graph by the result of `build` for the newest version. Writers wait meanwhile, each for
    /// [`crate::Options::load_wait`] at most. Active transactions fail with a conflict if they have read
    /// anything. `build` finishes the new store by [`Successor::finish`]; terms keep their numbers.
    ///
    /// # Errors
    /// Those of `build`, and nothing is changed; as [`Transactions::begin`].
    pub fn replace_graph<T>(&self, build: impl FnOnce(&Successor<'_>) -> Result<(Store, T)>) -> Result<T> {
        let _one = lock(&self.checkpointing);
        let writer = self.own()?;
        let _gate = self.interning.write().unwrap_or_else(PoisonError::into_inner);
        let loading = Loading::begin(self);
        let before = Arc::clone(&lock(&self.head).published);
        let timestamp = before.timestamp.next();
        let log = self.open_log();
        let (place, lsn) = match log {
            Some(log) => {
                log.sync()?;
                let lsn = log.rotate()?;
                (Some(place(log.id().0, lsn, timestamp)), lsn)
            }
            None => {
                let place = match writer {
                    Some(writer) => {
                        let mut known = lock(&writer.place);
                        let place = match *known {
                            Some(place) => place,
                            None => {
                                *known.insert(CheckpointPosition::reserve(&self.environment, timestamp.0)?)
                            }
                        };
                        Some(CheckpointPosition { timestamp: timestamp.0, ..place })
                    }
                    None => None,
                };
                (place, Lsn(place.map_or(0, |place| place.lsn)))
            }
        };
        let Published { version, constraints, .. } = &*before;
        let (store, result) = match build(&Successor { version, log: place, constraints }) {
            Ok(built) => built,
            Err(error) => return Err(self.failed_load(version, error)),
        };
        let mut head = lock(&self.head);
        assert!(Arc::ptr_eq(&head.published, &before), "no commit during a load");
        let dictionary = store.dictionary();
        let (vertices, literals) = (dictionary.vertex_count(), dictionary.literal_count());
        let terms = head.published.version.terms().seal_and_succeed(vertices, literals);
        let version = Version::new(Arc::new(store), terms);
        self.reserve_edges(version.edge_count());
        let published = Arc::new(head.published.with(version, timestamp));
        head.committed.push(timestamp, Changes::All);
        head.committed.forget(self.oldest_active());
        self.replace(&published);
        head.published = published;
        drop(head);
        drop(loading);
        if let Some(log) = log {
            // The load is complete, even if old files remain.
            self.cut(log, lsn);
        }
        Ok(result)
    }

    /// The error of a failed load. If its store may be the current one in the directory, later records would
    /// be lost; the graph then refuses all further writes.
    fn failed_load(&self, before: &Version, error: Error) -> Error {
        let Some(directory) = &self.directory else { return error };
        let untouched = match Store::open(&self.environment, directory) {
            Ok(store) => store.generation() == before.base().generation(),
            Err(now) => now.kind() == ErrorKind::Input && before.base().statement_count() == 0,
        };
        if untouched {
            return error;
        }
        let error =
            error.with_hint("the graph in the directory may be the new or the old one: open it again");
        // The first failure is the one that counts.
        let _ = self.failure.set(error.clone());
        error
    }

    fn target(&self) -> Target {
        match &self.directory {
            Some(directory) => Target::Directory(directory.clone()),
            None => Target::Memory,
        }
    }

    /// Writes the current graph as a separate database; returns its number of statements. Blocks no
    /// transaction.
    ///
    /// # Errors
    /// [`ErrorKind::Input`]: `to` has a database, or foreign files. A full disk and other I/O errors: nothing
    /// of the copy remains.
    pub fn backup(&self, to: &Path) -> Result<u64> {
        self.backup_watched(to, &Watch::new("backup"))
    }

    /// [`Transactions::backup`] with progress and cancellation by `watch`.
    ///
    /// # Errors
    /// As [`Transactions::backup`]; those of `watch`, and then nothing of the copy remains.
    pub fn backup_watched(&self, to: &Path, watch: &Watch<'_>) -> Result<u64> {
        let _lock = Locked::take(&self.environment, to)?;
        if crate::recovery::has_store(&self.environment, to)? {
            let message = format!("there is a database in {} already", to.display());
            return Err(Error::new(ErrorKind::Input, message).with_hint("name another directory"));
        }
        let published = self.current();
        let version = &published.version;
        let ends = [version.terms().vertex_end(), version.terms().literal_end()];
        // The copy is a database of its own and has its own log.
        let log = CheckpointPosition::reserve(&self.environment, published.timestamp.0)?;
        let store = self.build(&published, ends, Some(log), &Target::Directory(to.to_owned()), watch)?;
        Ok(store.statement_count())
    }

    /// A store with the statements of `published`, and its terms with numbers below `ends`.
    fn build(
        &self,
        published: &Published,
        ends: [u64; 2],
        log: Option<CheckpointPosition>,
        target: &Target,
        watch: &Watch<'_>,
    ) -> Result<Store> {
        let version = &published.version;
        let mut builder = StoreBuilder::new(BuildOptions {
            threads: 1,
            memory_bytes: MEMORY_BYTES,
            environment: self.environment.clone(),
            temp_dir: match target {
                Target::Directory(directory) => Some(directory.clone()),
                Target::Memory => None,
            },
            log,
            orders: version.base().order_names()?,
        })
        .watched_by(watch);
        let builder_steps = STATEMENT_STEPS * version.statement_count();
        watch.expect(builder_steps + TERM_STEPS * (ends[0] + ends[1]));
        // Includes removed edges: their numbers may still be known outside and must not be reused.
        builder.reserve_edges(version.edge_count());
        let mut chunk = Vec::with_capacity(CHUNK);
        for statement in version.statements() {
            chunk.push(statement?);
            if chunk.len() == CHUNK {
                watch.advance(CHUNK as u64)?;
                builder.add(&chunk)?;
                chunk.clear();
            }
        }
        builder.add(&chunk)?;
        builder.set_constraints(published.constraints.texts());
        builder.finish(dictionary(version, ends, &self.environment, watch)?, target)
    }
}

/// While it exists, committing transactions wait without holding the head.
struct Loading<'a>(&'a Transactions);

impl<'a> Loading<'a> {
    fn begin(transactions: &'a Transactions) -> Self {
        let mut head = lock(&transactions.head);
        assert!(!head.is_loading, "one load runs at a time");
        head.is_loading = true;
        Self(transactions)
    }
}

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        lock(&self.0.head).is_loading = false;
    }
}

/// Whether a version equals its base in everything that a base stores: terms have numbers below `ends`.
fn is_its_base(published: &Published, ends: [u64; 2]) -> bool {
    let version = &published.version;
    let base = version.base();
    version.delta_cells() == 0
        && ends == [base.vertex_count(), base.literal_count()]
        && version.edge_count() == base.edge_count()
        && published.constraints.texts() == base.constraints()
}

/// Estimated size of a base in bytes, also for a base in memory.
pub(crate) fn base_bytes(base: &Store) -> u64 {
    base.statement_count().saturating_mul(STATEMENT_BYTES)
}

fn place(id: u64, lsn: Lsn, timestamp: Timestamp) -> CheckpointPosition {
    CheckpointPosition { id, lsn: lsn.0, timestamp: timestamp.0, begun: true }
}

/// A dictionary with the terms of a version that have numbers below `ends`.
fn dictionary<'v>(
    version: &'v Version,
    [vertices, literals]: [u64; 2],
    environment: &Environment,
    watch: &Watch<'_>,
) -> Result<NewDictionary<'v>> {
    let base = version.base().dictionary();
    let (all, before) = (vertices + literals, base.vertex_count() + base.literal_count());
    if all == before {
        watch.advance(TERM_STEPS * all)?;
        return Ok(base.image().into());
    }
    let Some(mut extension) = Extension::new(base, all - before) else {
        let mut builder = continued(version, vertices, literals, watch)?;
        let seed = environment.random.next_u64();
        builder.set_seed(seed.map_err(|error| Error::io("draw a random number", &error))?);
        return Ok(builder.finish_watched(1, watch)?.into());
    };
    watch.advance(COPIED_STEPS * before)?;
    add_new(version, [vertices, literals], &mut |parts| extension.add(parts), watch)?;
    Ok(extension.into())
}

/// A builder that continues after the terms of a version.
///
/// # Errors
/// Damaged dictionary; those of `watch`, which gets a step for each term.
pub fn continued(
    version: &Version,
    vertices: u64,
    literals: u64,
    watch: &Watch<'_>,
) -> Result<DictionaryBuilder> {
    let mut builder = DictionaryBuilder::from_dictionary_watched(version.base().dictionary(), watch)?;
    add_new(version, [vertices, literals], &mut |parts| builder.intern_parts(parts), watch)?;
    Ok(builder)
}

/// Passes the terms of a version that its base lacks to `add`, which returns the id of each.
fn add_new(
    version: &Version,
    [vertices, literals]: [u64; 2],
    add: &mut dyn FnMut(TermParts<'_>) -> Result<Id>,
    watch: &Watch<'_>,
) -> Result<()> {
    let mut ticker = watch.ticker();
    let mut scratch = String::new();
    for id in new_terms(version, vertices, literals) {
        ticker.step()?;
        let mut added = Ok(Id::UNBOUND);
        version.read_term(id, &mut scratch, &mut |parts| added = add(parts))?;
        if added? != id {
            return Err(Error::internal(format!("{id:?} has the term of another id")));
        }
    }
    Ok(())
}

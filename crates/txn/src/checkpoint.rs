//! Checkpoints: the delta becomes part of a new base, while others read and write.
//!
//! # Shape
//! 1. Under the lock of the head: take the newest version, and begin a new file of the log.
//! 2. Without a lock: write a store with everything in that version. Its manifest says that the log goes on with the
//!    new file: from here on recovery starts there.
//! 3. Without a lock: what was committed since is brought over to the new base, until little is left; under the lock
//!    again: the rest, and that becomes the head.
//! 4. Remove the files of the log that nobody needs.
//!
//! A graph in memory does the same without files: then this is how the delta is merged.
//! # Why this is right
//! A crash before the manifest is renamed leaves the old base and the whole log; one after it, the new base and the
//! rest of the log. Terms whose records lie before the new file are in the new dictionary, because they had
//! their numbers when that was made. Terms that are in both are compared by recovery.
//! # Cost
//! The whole graph is written anew; 1 and 3 hold the lock for one sync of the log each, and 3 for
//! [`LOCKED_CHANGES_MAX`] changes unless commits are faster than they can be brought over. With [`CHECKPOINT_SHARE`] this is some ten times what the changes themselves take.
//! # Not here
//! Merging single segments, and runs between base and delta.

use crate::change::Timestamp;
use crate::committed::Changes;
use crate::recovery::new_terms;
use crate::schema::Successor;
use crate::sync::lock;
use crate::transactions::{Published, Transactions};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use vervet_delta::Version;
use vervet_dictionary::DictionaryBuilder;
use vervet_env::Bytes;
use vervet_log::Lsn;
use vervet_model::{Error, ErrorKind, Result, TermParts};
use vervet_snapshot::Snapshot;
use vervet_store::{BuildOptions, LogPlace, Store, StoreBuilder, Target};

/// A delta is worth a checkpoint when it has this share of the statements of its base…
pub const CHECKPOINT_SHARE: f64 = 0.125;
/// … and at least so many cells (two for each statement).
pub const CHECKPOINT_CELLS_MIN: u64 = 1 << 16;
/// A log of so many bytes is worth one, too, since that bounds the time of a recovery…
pub const CHECKPOINT_LOG_BYTES: u64 = 256 << 20;
/// … or of fewer, down to so many, if it is longer than the base, roughly: then the base is quickly written.
pub const CHECKPOINT_LOG_BYTES_MIN: u64 = 16 << 20;
/// What a statement of the base counts for in that.
const STATEMENT_BYTES: u64 = 16;

/// Bytes of statements that a checkpoint holds in memory.
const MEMORY_BYTES: u64 = 1 << 30;
/// The most changes that are brought over under the lock…
const LOCKED_CHANGES_MAX: u64 = 1 << 10;
/// … unless so many rounds without it have left more.
const ROUNDS_MAX: usize = 8;
/// How many statements are handed over at a time.
const CHUNK: usize = 1 << 16;

impl Transactions {
    /// Whether there is enough to merge.
    #[must_use]
    pub fn wants_checkpoint(&self) -> bool {
        let current = self.current();
        let base = current.version.base();
        let log_bytes = match self.open_log() {
            Some(log) => log.end_lsn().0.saturating_sub(base.log_place().map_or(0, |place| place.lsn)),
            None => 0,
        };
        let cells = current.version.delta_cells();
        let share = base.statement_count() as f64 * CHECKPOINT_SHARE;
        let base_bytes = base.statement_count().saturating_mul(STATEMENT_BYTES);
        let log_bytes_max = base_bytes.clamp(CHECKPOINT_LOG_BYTES_MIN, CHECKPOINT_LOG_BYTES);
        cells >= CHECKPOINT_CELLS_MIN && cells as f64 >= share || log_bytes >= log_bytes_max
    }

    /// Has a checkpoint made in the background, if there is enough to merge and nobody is at it.
    pub(crate) fn checkpoint_if_wanted(self: &Arc<Self>) {
        if !self.options.checkpoints
            || !self.wants_checkpoint()
            || self.is_merging.swap(true, Ordering::AcqRel)
        {
            return;
        }
        let transactions = Arc::clone(self);
        let merge = move || {
            // What failed is tried again with the next commit; until then nothing is lost but room.
            let _ = transactions.checkpoint();
            transactions.is_merging.store(false, Ordering::Release);
        };
        let spawned = std::thread::Builder::new().name("vervet-merge".to_owned()).spawn(merge);
        match spawned {
            Ok(thread) => *lock(&self.background) = Some(thread),
            Err(_) => self.is_merging.store(false, Ordering::Release),
        }
    }

    /// Returns when nothing is being merged in the background.
    pub fn wait_background(&self) {
        let thread = lock(&self.background).take();
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != std::thread::current().id()) {
            // A panic there has left everything as it was.
            let _ = thread.join();
        }
    }

    /// Merges the delta into a new base. `false`: there was none. Only one runs at a time.
    ///
    /// # Errors
    /// A full disk and the like: then everything is as it was. Damaged data.
    pub fn checkpoint(&self) -> Result<bool> {
        // Before the lock, which opening the log may take.
        let log = self.log()?;
        let _one = lock(&self.checkpointing);
        let (from, lsn) = {
            let head = lock(&self.head);
            if head.published.version.delta_cells() == 0 {
                return Ok(false);
            }
            let lsn = log.map(|log| log.rotate()).transpose()?;
            (Arc::clone(&head.published), lsn)
        };
        let version = &from.version;
        // After the new file was begun: a term with a record before it has had its number, and is counted.
        let ends = [version.terms().vertex_end(), version.terms().literal_end()];
        let place = log.zip(lsn).map(|(log, lsn)| place(log.id().0, lsn, from.timestamp));
        let base = Arc::new(self.build(&from, ends, place, &self.target())?);
        let mut merged = version.over(base)?;
        let mut reached = Arc::clone(&from);
        for _ in 0..ROUNDS_MAX {
            let newest = self.newest();
            if newest.changes.saturating_sub(reached.changes) <= LOCKED_CHANGES_MAX {
                break;
            }
            merged.follow(&reached.version, &newest.version)?;
            reached = newest;
        }
        if let Some(log) = log {
            // Most of it here, so that little is left to be synced under the lock.
            log.sync()?;
        }
        {
            let mut head = lock(&self.head);
            if let Some(log) = log {
                log.sync()?;
            }
            merged.follow(&reached.version, &head.published.version)?;
            let terms = head.published.version.terms().succeed(ends[0], ends[1]);
            let merged = merged.with_terms(terms);
            let published = Arc::new(head.published.with(merged, head.published.timestamp));
            self.replace(&published);
            head.published = published;
        }
        if let Some((log, lsn)) = log.zip(lsn) {
            // What is left of them takes room, nothing more.
            let _ = log.remove_before(lsn);
        }
        Ok(true)
    }

    /// Replaces the graph by what `build` makes of the newest version, while all who write wait. Transactions that are
    /// active fail with a conflict if they have read anything. `build` finishes the new store by [`Successor::finish`];
    /// terms keep their numbers.
    ///
    /// # Errors
    /// Those of `build`, and everything is as it was; as [`Transactions::begin`].
    pub fn replace_graph<T>(&self, build: impl FnOnce(&Successor<'_>) -> Result<(Store, T)>) -> Result<T> {
        let _one = lock(&self.checkpointing);
        let writer = self.own()?;
        let _gate = self.interning.write().unwrap_or_else(PoisonError::into_inner);
        let mut head = lock(&self.head);
        let timestamp = head.published.timestamp.next();
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
                            None => *known.insert(LogPlace::reserve(&self.environment, timestamp.0)?),
                        };
                        Some(LogPlace { timestamp: timestamp.0, ..place })
                    }
                    None => None,
                };
                (place, Lsn(place.map_or(0, |place| place.lsn)))
            }
        };
        let Published { version, constraints, .. } = &*head.published;
        let (store, result) = match build(&Successor { version, log: place, constraints }) {
            Ok(built) => built,
            Err(error) => return Err(self.failed_load(&head.published.version, error)),
        };
        let dictionary = store.dictionary();
        let (vertices, literals) = (dictionary.vertex_count(), dictionary.literal_count());
        let terms = head.published.version.terms().succeed(vertices, literals);
        let version = Version::new(Arc::new(store), terms);
        self.reserve_edges(version.edge_count());
        let published = Arc::new(head.published.with(version, timestamp));
        head.committed.push(timestamp, Changes::All);
        head.committed.forget(self.oldest_active());
        self.replace(&published);
        head.published = published;
        drop(head);
        if let Some(log) = log {
            // The load is done, whatever becomes of the old files.
            let _ = log.remove_before(lsn);
        }
        Ok(result)
    }

    /// What a load that failed says. If its store may be the one in the directory by now, what is written from here on
    /// would be lost behind it: nothing more may be.
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

    /// Writes the graph as it is now as a database of its own; returns its number of statements. Nobody waits.
    ///
    /// # Errors
    /// [`ErrorKind::Input`]: there is a database in `to`. A full disk and the like: then there is none.
    pub fn backup(&self, to: &Path) -> Result<u64> {
        let files = &self.environment.files;
        let io = |error| Error::io(format_args!("create {}", to.display()), &error);
        files.create_dir_all(to).map_err(io)?;
        let _lock = crate::writer::lock_directory(&self.environment, to)?;
        if crate::recovery::has_store(&self.environment, to)? {
            let message = format!("there is a database in {} already", to.display());
            return Err(Error::new(ErrorKind::Input, message).with_hint("name another directory"));
        }
        let published = self.current();
        let version = &published.version;
        let ends = [version.terms().vertex_end(), version.terms().literal_end()];
        // A database of its own, whose log is not this one.
        let log = LogPlace::reserve(&self.environment, published.timestamp.0)?;
        let store = self.build(&published, ends, Some(log), &Target::Directory(to.to_owned()))?;
        Ok(store.statement_count())
    }

    /// A store with everything in `published`, whose terms have numbers below `ends`.
    fn build(
        &self,
        published: &Published,
        ends: [u64; 2],
        log: Option<LogPlace>,
        target: &Target,
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
        });
        // Also of edges that are gone: who knows one by its number must not meet another one.
        builder.reserve_edges(version.edge_count());
        let mut chunk = Vec::with_capacity(CHUNK);
        for statement in version.statements() {
            chunk.push(statement?);
            if chunk.len() == CHUNK {
                builder.add(&chunk)?;
                chunk.clear();
            }
        }
        builder.add(&chunk)?;
        builder.set_constraints(published.constraints.texts());
        builder.finish(dictionary(version, ends)?, target)
    }
}

fn place(id: u64, lsn: Lsn, timestamp: Timestamp) -> LogPlace {
    LogPlace { id, lsn: lsn.0, timestamp: timestamp.0, begun: true }
}

/// The image of a dictionary with the terms of a version.
fn dictionary(version: &Version, [vertices, literals]: [u64; 2]) -> Result<Bytes> {
    let base = version.base().dictionary();
    if (base.vertex_count(), base.literal_count()) == (vertices, literals) {
        return Ok(base.image());
    }
    Ok(Bytes::from(continued(version, vertices, literals)?.finish()?))
}

/// A builder that goes on behind the terms of a version.
///
/// # Errors
/// Damaged dictionary.
pub fn continued(version: &Version, vertices: u64, literals: u64) -> Result<DictionaryBuilder> {
    let mut builder = DictionaryBuilder::from_dictionary(version.base().dictionary())?;
    let mut text = String::new();
    for id in new_terms(version, vertices, literals) {
        let mut interned = Ok(vervet_model::Id::UNBOUND);
        version.read_term(id, &mut String::new(), &mut |parts| {
            text.clear();
            parts.write_str(&mut text);
            interned = match parts {
                TermParts::Blank(_) => builder.intern_blank(&text),
                TermParts::Literal { kind, .. } => builder.intern_literal(&text, kind),
                _ => builder.intern_iri(&text),
            };
        })?;
        if interned? != id {
            return Err(Error::internal(format!("{id:?} has the term of another id")));
        }
    }
    Ok(builder)
}

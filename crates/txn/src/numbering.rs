//! Numbers of terms and edges: their assignment, and which terms the log holds.
//!
//! # Invariants
//! 1. A term is in the log, or in a durable base, before any commit that uses it: [`Numbering::log_terms`]
//!    precedes the append of a commit.
//! 2. While a bulk load numbers terms of its own, no other term gets a number.

use crate::commit_head::CommitHead;
use crate::commit_log::CommitLog;
use crate::published::Published;
use crate::record;
use crate::sync::{AtomicU64, Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard, lock};
use std::sync::atomic::Ordering;
use std::sync::{PoisonError, TryLockError};
use vervet_delta::Version;
use vervet_model::{Error, ErrorKind, Id, Result};

/// See the header of this file.
#[derive(Debug)]
pub(crate) struct Numbering {
    /// Held for reading while a term is added; for writing while a bulk load numbers terms of its own.
    interning: RwLock<()>,
    /// Vertices and literals with numbers below these have a record in the log, or are in a base.
    logged: Mutex<[u64; 2]>,
    next_edge: AtomicU64,
    terms_max: u64,
}

impl Numbering {
    /// Numbers of a graph with this many edge numbers, and at most `terms_max` terms of each kind.
    pub(crate) fn new(edge_count: u64, terms_max: u64) -> Self {
        Self {
            interning: RwLock::default(),
            logged: Mutex::default(),
            next_edge: AtomicU64::new(edge_count),
            terms_max,
        }
    }

    /// Allows adding a term to `version` while the result exists.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`]: a load takes too long; the limit of terms is reached.
    pub(crate) fn admit_term(&self, head: &CommitHead, version: &Version) -> Result<RwLockReadGuard<'_, ()>> {
        let gate = head.wait_for_load(|| match self.interning.try_read() {
            Ok(gate) => Some(gate),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        })?;
        let terms = version.terms();
        let count = terms.vertex_end().max(terms.literal_end());
        if count < self.terms_max {
            return Ok(gate);
        }
        let message = format!("there are {count} vertices or literals, the maximum that may have a number");
        Err(Error::new(ErrorKind::Unavailable, message).with_hint(
            "numbers are never used again; export the graph and load it into a new directory, which numbers only the remaining terms",
        ))
    }

    /// Excludes all other numbering of terms while the result exists.
    pub(crate) fn exclude(&self) -> RwLockWriteGuard<'_, ()> {
        self.interning.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends the records of all terms that have a number and no record, so that a commit that uses them may
    /// follow. Unused terms are written before the next commit, too: numbers in the log have no gaps.
    ///
    /// Interning does not append: it holds the lock of the terms, which readers take, and appending may wait
    /// for the disk.
    pub(crate) fn log_terms(&self, head: &CommitHead, log: &CommitLog) -> Result<()> {
        let mut logged = lock(&self.logged);
        let newest = head.newest();
        let (terms, dictionary) = (newest.version.terms(), newest.version.base().dictionary());
        let firsts = [dictionary.vertex_count(), dictionary.literal_count()];
        let ends = [terms.vertex_end(), terms.literal_end()];
        let make: [fn(u64) -> Id; 2] = [Id::vertex, Id::literal];
        let mut bytes = Vec::with_capacity(64);
        for (((logged, first), end), id) in logged.iter_mut().zip(firsts).zip(ends).zip(make) {
            // Terms of a base need no record: its manifest is durable before the base is used.
            *logged = first.max(*logged);
            while *logged < end {
                bytes.clear();
                let is_there = terms.read_term(id(*logged), &mut |parts| {
                    record::write_term(id(*logged), parts.to_term().as_ref(), &mut bytes);
                });
                assert!(is_there, "a number below the end of the terms has a term");
                log.append(record::TERM, &bytes)?;
                *logged += 1;
            }
        }
        Ok(())
    }

    /// Marks all terms as logged: the log has just been opened, and log and base contain them.
    pub(crate) fn mark_logged(&self, newest: &Published) {
        let terms = newest.version.terms();
        *lock(&self.logged) = [terms.vertex_end(), terms.literal_end()];
    }

    pub(crate) fn fresh_edge(&self) -> Id {
        Id::edge(self.next_edge.fetch_add(1, Ordering::Relaxed))
    }

    /// Reserves the edge ids below `end`.
    pub(crate) fn reserve_edges(&self, end: u64) {
        self.next_edge.fetch_max(end, Ordering::Relaxed);
    }
}

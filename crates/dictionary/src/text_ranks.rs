//! Ranks of strings in the order of texts: two strings are compared without reading their texts.
//!
//! # Shape
//! For each literal 32 bits: one more than its position in the order of texts (`text_order.rs`) if it is
//! an `xsd:string`, else 0. In memory only.
//! # Invariants
//! Two strings with different numbers have different texts, so their ranks decide. A literal of another type
//! has no rank, since literals with equal texts are in the order of their numbers.
//! # Cost
//! One pass over the order of texts, once. The requests for a rank pay for that: each makes
//! [`ENTRIES_PER_REQUEST`] entries, and its caller then reads the text instead. From then on a rank is one
//! load (docs/benchmarks/outside.md: MIN of strings in a third of the time).

use crate::record_blocks::BLOCK_OF;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, TryLockError};
use vervet_model::{Error, Result};

/// Maximum number of literals of a dictionary with ranks: 64 MiB.
const LITERALS_MAX: u64 = 1 << 24;

/// Entries that one request makes, on average.
const ENTRIES_PER_REQUEST: u64 = 8;

/// Requests from one that makes entries to the next; the first one does.
const REQUESTS_PER_STEP: u64 = 32;

/// See the header of this file.
#[derive(Debug, Default)]
pub(crate) struct TextRanks {
    ranks: OnceLock<Box<[u32]>>,
    requests: AtomicU64,
    unfinished: Mutex<Unfinished>,
}

/// Ranks that are being made: first those of all literals, then those that are not strings are removed.
#[derive(Debug, Default)]
struct Unfinished {
    ranks: Vec<u32>,
    /// Number of positions of the order that have been read.
    positions: u64,
    /// Number of literals whose type has been read.
    typed: u64,
}

/// The literals of a dictionary in two orders.
pub(crate) struct Literals<At, Strings> {
    pub(crate) count: u64,
    /// The number of the literal at a position in the order of texts.
    pub(crate) at: At,
    /// The literals of type `xsd:string` in a block of numbers, as bits.
    pub(crate) strings: Strings,
}

impl TextRanks {
    /// The rank of the literal with this number; `None` for other types than `xsd:string`, and while ranks
    /// are not known.
    #[inline]
    pub(crate) fn rank(
        &self,
        number: u64,
        literals: &Literals<impl Fn(u64) -> Result<u64>, impl Fn(u64) -> Result<u16>>,
    ) -> Result<Option<u64>> {
        match self.ranks.get() {
            Some(ranks) => {
                let rank = usize::try_from(number).ok().and_then(|at| ranks.get(at));
                Ok(rank.and_then(|rank| rank.checked_sub(1)).map(u64::from))
            }
            None => self.advance(literals).map(|()| None),
        }
    }

    #[cold]
    fn advance(
        &self,
        literals: &Literals<impl Fn(u64) -> Result<u64>, impl Fn(u64) -> Result<u16>>,
    ) -> Result<()> {
        let count = literals.count;
        if count > LITERALS_MAX || !self.requests.fetch_add(1, Relaxed).is_multiple_of(REQUESTS_PER_STEP) {
            return Ok(());
        }
        let mut unfinished = match self.unfinished.try_lock() {
            Ok(unfinished) => unfinished,
            // Consistent after each entry.
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Another thread makes entries.
            Err(TryLockError::WouldBlock) => return Ok(()),
        };
        let Unfinished { ranks, positions, typed } = &mut *unfinished;
        if self.ranks.get().is_some() {
            return Ok(());
        }
        ranks.resize(usize::try_from(count).unwrap_or(usize::MAX), 0);
        let mut left = ENTRIES_PER_REQUEST * REQUESTS_PER_STEP;
        while *positions < count && left > 0 {
            let literal = (literals.at)(*positions)?;
            *positions += 1;
            left -= 1;
            set(ranks, literal, u32::try_from(*positions).map_err(|_| too_many())?);
        }
        while *positions == count && *typed < count && left > 0 {
            let strings = (literals.strings)(*typed / BLOCK_OF)?;
            for place in 0..BLOCK_OF {
                if strings >> place & 1 == 0 {
                    set(ranks, *typed + place, 0);
                }
            }
            *typed += BLOCK_OF;
            left = left.saturating_sub(BLOCK_OF);
        }
        if *positions == count && *typed >= count {
            // Set once, under the lock.
            let _ = self.ranks.set(std::mem::take(ranks).into_boxed_slice());
        }
        Ok(())
    }
}

/// Sets the entry of a literal, if it has one.
fn set(ranks: &mut [u32], literal: u64, entry: u32) {
    if let Some(slot) = usize::try_from(literal).ok().and_then(|at| ranks.get_mut(at)) {
        *slot = entry;
    }
}

#[cold]
fn too_many() -> Error {
    Error::internal("a position in the order of texts above 2^32")
}

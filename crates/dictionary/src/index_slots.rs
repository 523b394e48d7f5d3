//! Slots of a hash index: their number, their width, and where the search for a hash starts.

use crate::integers::bytes_for;

/// Of seven slots of a new index, at most six are full.
const FULL_OF_SEVEN: u64 = 6;
/// Of eight slots of an extended index, at most seven are full…
const FULL_OF_EIGHT: u64 = 7;
/// … otherwise the next index has a third more slots.
const SPARE: u64 = 3;

/// Number of home slots of a new index of this many terms.
pub(crate) fn slot_count(terms: u64) -> u64 {
    // A count from a damaged file must not overflow; its index then has the wrong length.
    if terms == 0 { 0 } else { terms.saturating_add(terms / FULL_OF_SEVEN).saturating_add(1) }
}

/// The same for an index that extends one with `slots`.
pub(crate) fn slots_after(slots: u64, terms: u64) -> u64 {
    if terms.saturating_mul(8) <= slots.saturating_mul(FULL_OF_EIGHT) {
        slots
    } else {
        terms.saturating_add(terms / SPARE).saturating_add(1)
    }
}

/// The home slot of a hash, where its search starts.
#[inline]
pub(crate) fn home_slot(hash: u64, slots: u64) -> u64 {
    // The upper table of the product: below `slots`.
    u64::try_from((u128::from(hash) * u128::from(slots)) >> 64).unwrap_or_default()
}

/// The byte of a slot that filters candidates.
#[inline]
pub(crate) fn fingerprint(hash: u64) -> u8 {
    hash.to_le_bytes()[0]
}

/// Size of a number in the index of this many terms, in bytes; a slot is one byte longer.
pub(crate) fn index_width(terms: u64) -> usize {
    bytes_for(terms)
}

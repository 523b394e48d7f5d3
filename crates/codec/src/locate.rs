//! Look-up of keys in a set of any form.
//!
//! Joins look up one key a row, so the trait is a type parameter, never an object: each form of a set has a
//! loop of its own.

/// No position: the key is not in the set.
pub const NONE: u32 = u32::MAX;

/// A map from keys to positions.
pub trait Locate {
    /// The position of `key`, or [`NONE`].
    fn position(&self, key: u64) -> u32;
}

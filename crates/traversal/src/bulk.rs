//! The bulk of a traverser: the number of equal traversers that it represents.
//!
//! # Invariants
//! 1. A bulk is from 1 to 2^64 - 1.
//! 2. Arithmetic is exact. A result beyond 64 bits is an error of the query; it is never saturated.
//! 3. No loop runs over a bulk, since a short query can produce a bulk of 2^60. Steps compute with it;
//!    [`crate::context::Context::expand`] is the only function that materializes a bulk as repeated values,
//!    and it limits and counts them.

use std::num::NonZeroU64;
use vervet_model::{Error, ErrorKind, Result};

/// See the header of this file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Bulk(NonZeroU64);

impl Bulk {
    /// The bulk of a traverser that represents only itself.
    pub(crate) const ONE: Self = Self(NonZeroU64::MIN);

    /// A bulk of `count`; `None` for 0.
    pub(crate) fn new(count: u64) -> Option<Self> {
        NonZeroU64::new(count).map(Self)
    }

    /// The count, for arithmetic; never a loop bound.
    pub(crate) fn get(self) -> u64 {
        self.0.get()
    }

    /// The count, for sums beyond 64 bits.
    pub(crate) fn wide(self) -> u128 {
        self.get().into()
    }

    /// The sum of two bulks.
    ///
    /// # Errors
    /// The sum exceeds 64 bits.
    pub(crate) fn plus(self, others: Self) -> Result<Self> {
        self.0.checked_add(others.get()).map(Self).ok_or_else(overflow)
    }

    /// The product of two bulks.
    ///
    /// # Errors
    /// The product exceeds 64 bits.
    pub(crate) fn times(self, others: Self) -> Result<Self> {
        self.0.checked_mul(others.0).map(Self).ok_or_else(overflow)
    }

    /// The difference; `None` if it is not positive.
    pub(crate) fn minus(self, others: u64) -> Option<Self> {
        self.get().checked_sub(others).and_then(Self::new)
    }
}

fn overflow() -> Error {
    let message = format!("more than {} equal traversers: a bulk has 64 bits", u64::MAX);
    Error::new(ErrorKind::Query, message).with_hint("count, dedup or limit traversers before they multiply")
}

#[cfg(test)]
mod tests {
    use super::Bulk;

    /// query B10: a bulk neither wraps nor stays at the greatest number.
    #[test]
    fn b10_arithmetic_of_bulks_is_exact_or_an_error() {
        let bulk = |count| Bulk::new(count).expect("it is not zero");
        let greatest = bulk(u64::MAX);
        assert_eq!(bulk(u64::MAX - 1).plus(Bulk::ONE).expect("it fits"), greatest);
        assert!(greatest.plus(Bulk::ONE).is_err());
        assert_eq!(
            bulk(1 << 32).times(bulk((1 << 32) - 1)).expect("it fits").get(),
            u64::MAX - ((1 << 32) - 1)
        );
        assert!(bulk(1 << 32).times(bulk(1 << 32)).is_err());
        assert_eq!(greatest.minus(u64::MAX), None);
        assert_eq!(bulk(3).minus(4), None);
        assert_eq!(Bulk::new(0), None);
    }
}

//! How many equal traversers one traverser stands for.
//!
//! # Invariants
//! 1. From 1 to 2^64 - 1.
//! 2. Arithmetic is exact. A result that 64 bits do not hold is an error of the query, never the nearest
//!    number that they hold.
//! 3. No loop runs over a bulk: a short text makes one of 2^60. Steps compute with it;
//!    [`crate::context::Context::expand`] is the one place where a value is repeated as often as a bulk says,
//!    and it limits and counts them.

use std::num::NonZeroU64;
use vervet_model::{Error, ErrorKind, Result};

/// See the header of this file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Bulk(NonZeroU64);

impl Bulk {
    /// A traverser that stands for itself.
    pub(crate) const ONE: Self = Self(NonZeroU64::MIN);

    /// So many; `None`: there are none.
    pub(crate) fn new(count: u64) -> Option<Self> {
        NonZeroU64::new(count).map(Self)
    }

    /// How many. To compute with, not to count up to.
    pub(crate) fn get(self) -> u64 {
        self.0.get()
    }

    /// How many, for sums that 64 bits do not hold.
    pub(crate) fn wide(self) -> u128 {
        self.get().into()
    }

    /// These and others.
    ///
    /// # Errors
    /// More than 64 bits hold.
    pub(crate) fn plus(self, others: Self) -> Result<Self> {
        self.0.checked_add(others.get()).map(Self).ok_or_else(overflow)
    }

    /// For each of these as many others.
    ///
    /// # Errors
    /// More than 64 bits hold.
    pub(crate) fn times(self, others: Self) -> Result<Self> {
        self.0.checked_mul(others.0).map(Self).ok_or_else(overflow)
    }

    /// These without as many others; `None`: none is left.
    pub(crate) fn minus(self, others: u64) -> Option<Self> {
        self.get().checked_sub(others).and_then(Self::new)
    }
}

fn overflow() -> Error {
    let message = format!("more than {} equal traversers meet: a bulk has 64 bits", u64::MAX);
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

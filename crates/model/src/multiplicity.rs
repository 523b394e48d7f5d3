//! Multiplicity: the number of equal solutions that one row represents.
//!
//! # Invariants
//! Arithmetic is exact or an error: a multiplicity never wraps and never saturates.
//! # Cost
//! 16 bytes; a multiplication by a degree is two machine multiplications while the product is below 2^64.

use crate::{Error, ErrorKind, Result};

/// A number of equal solutions, at most 2^127 - 1 (so that it also fits a signed integer of 128 bits).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Multiplicity(u128);

const MAX: u128 = i128::MAX.unsigned_abs();

impl Multiplicity {
    /// No solution.
    pub const ZERO: Self = Self(0);
    /// One solution.
    pub const ONE: Self = Self(1);

    /// `count` solutions.
    #[must_use]
    pub const fn new(count: u64) -> Self {
        Self(count as u128)
    }

    /// This number of solutions; `None`: it is too large.
    #[must_use]
    pub const fn from_count(count: u128) -> Option<Self> {
        if count <= MAX { Some(Self(count)) } else { None }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u128 {
        self.0
    }

    /// The number as a signed integer.
    #[must_use]
    pub const fn signed(self) -> i128 {
        self.0.cast_signed()
    }

    /// Whether there is no solution.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The product with a degree.
    ///
    /// # Errors
    /// The product is above 2^127 - 1.
    #[inline]
    pub fn scale(self, factor: u64) -> Result<Self> {
        // A product of two numbers below 2^63 and 2^64 fits.
        if self.0 >> 63 == 0 {
            return Ok(Self(self.0 * u128::from(factor)));
        }
        self.times(Self::new(factor))
    }

    /// The product.
    ///
    /// # Errors
    /// The product is above 2^127 - 1.
    pub fn times(self, other: Self) -> Result<Self> {
        self.0.checked_mul(other.0).filter(|product| *product <= MAX).map(Self).ok_or_else(too_many)
    }

    /// The sum.
    ///
    /// # Errors
    /// The sum is above 2^127 - 1.
    #[inline]
    pub fn plus(self, other: Self) -> Result<Self> {
        let sum = self.0 + other.0;
        if sum <= MAX { Ok(Self(sum)) } else { Err(too_many()) }
    }

    /// The difference, or zero.
    #[must_use]
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

#[cold]
fn too_many() -> Error {
    Error::new(ErrorKind::Unsupported, "a query has more than 2^127 - 1 solutions, which cannot be counted")
        .with_hint("connect the patterns of the query, or count their parts in sub-queries")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b9_arithmetic_is_exact_or_an_error() {
        let large = Multiplicity::new(1 << 63);
        let product = large.times(Multiplicity::new((1 << 63) + 1)).unwrap();
        assert_eq!(product.get(), (1 << 126) + (1 << 63));
        assert_eq!(large.scale(u64::MAX).unwrap().get(), (1 << 127) - (1 << 63));
        assert_eq!(Multiplicity::new(7).scale(u64::MAX).unwrap().get(), 7 * u128::from(u64::MAX));
        assert!(product.scale(2).is_err() && product.times(Multiplicity::new(2)).is_err());
        assert!(product.plus(product).is_err());
        assert!(Multiplicity::new(u64::MAX).times(Multiplicity::new(u64::MAX)).is_err(), "above 2^127");
        assert_eq!(product.plus(Multiplicity::ONE).unwrap().get(), product.get() + 1);
        assert_eq!(product.signed().unsigned_abs(), product.get());
        assert_eq!(Multiplicity::ONE.saturating_sub(large), Multiplicity::ZERO);
    }
}

//! Units of work: how the evaluation of a batch finds time to look at the limits of its query.
//!
//! A row of an integer filter takes nanoseconds, one division of wide numbers a millisecond, and one search
//! of a regular expression in a text of megabytes seconds. So the evaluator counts units instead of rows:
//! [`crate::context::Context::work`] adds them, and calls [`crate::Interrupt::check`] after each
//! [`UNITS_PER_CHECK`].
//!
//! # Cost
//! An addition and a comparison for each evaluated operator; filters that ids alone decide count nothing. One
//! unit is about 10 ns in a release build, so checks are some 50 µs apart, and cost a thousandth.

use vervet_model::Result;

/// Counts units of work, and may abort; see [`crate::work`].
pub(crate) type Work<'w> = dyn FnMut(usize) -> Result<()> + 'w;

/// Units between two checks.
pub(crate) const UNITS_PER_CHECK: usize = 1 << 12;

/// Units of reading, copying or comparing a text.
#[inline]
pub(crate) fn of_text(bytes: usize) -> usize {
    bytes / 32
}

/// Units of an operation quadratic in the length of a number of `bits` bits: a product, a quotient, or the
/// conversion from or to decimal digits.
pub(crate) fn of_bits(bits: u64) -> usize {
    const BITS_PER_DIGIT: u64 = 64;
    /// Products of two digits in a unit.
    const PRODUCTS: usize = 16;
    let digits = usize::try_from(bits / BITS_PER_DIGIT).unwrap_or(usize::MAX);
    digits.saturating_mul(digits) / PRODUCTS
}

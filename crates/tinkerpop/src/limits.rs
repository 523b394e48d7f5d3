//! Limits on messages and values.

/// Maximum size of a message, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 16 << 20;
/// Maximum nesting depth of values. Readers and writers recurse; 200 fits any thread's stack.
pub const DEPTH_MAX: usize = 200;
/// Maximum number of values in a message. The smallest take 2 bytes in a message and about 100 in memory.
pub const VALUES_MAX: usize = 1_000_000;
/// Maximum number of digits of a number. Conversion takes quadratic time. TinkerPop has the same limit.
pub const DIGITS_MAX: usize = 10_000;
/// Maximum size of a binary integer in bytes: that of 10,000 digits.
pub const INTEGER_BYTES_MAX: usize = 4_160;
/// Maximum absolute scale of a decimal: arithmetic on `1E1000000000` would exhaust the memory.
pub const SCALE_MAX: i64 = 100_000;
/// Maximum capacity reserved for a declared length.
pub(crate) const RESERVED_MAX: usize = 1_024;
/// Maximum number of values of an expanded bag, in formats without bags.
pub const BULK_WRITTEN_MAX: u64 = 1_000_000;
/// Maximum size of an expanded bag, in bytes: nested bags take few bytes in a message and may expand to any
/// number of values.
pub const BULK_WRITTEN_BYTES_MAX: usize = 64 << 20;

/// Limits of a reader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Maximum number of bytes.
    pub bytes: usize,
    /// Maximum nesting depth of values; capped at [`DEPTH_MAX`].
    pub depth: usize,
    /// Maximum number of values.
    pub values: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: MESSAGE_BYTES_MAX, depth: DEPTH_MAX, values: VALUES_MAX }
    }
}

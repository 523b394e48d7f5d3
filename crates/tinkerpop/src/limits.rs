//! How much of a message is believed.

/// The most bytes of a message.
pub const MESSAGE_BYTES_MAX: usize = 16 << 20;
/// The most values inside one another. Readers and writers recurse; 200 fit any thread's stack.
pub const DEPTH_MAX: usize = 200;
/// The most values in a message. The smallest take 2 bytes as a message and about 100 in memory.
pub const VALUES_MAX: usize = 1_000_000;
/// The most digits of a number. To read or write digits takes quadratic time. TinkerPop has the same limit.
pub const DIGITS_MAX: usize = 10_000;
/// The most bytes of a binary integer: those of 10,000 digits.
pub const INTEGER_BYTES_MAX: usize = 4_160;
/// The most that a decimal may be shifted: arithmetic on `1E1000000000` would fill the memory.
pub const SCALE_MAX: i64 = 100_000;
/// The most places that are reserved because a length says so.
pub(crate) const RESERVED_MAX: usize = 1_024;
/// The most values that a bag is written out to where a format has no bags.
pub const BULK_WRITTEN_MAX: u64 = 1_000_000;
/// The most bytes that a bag is written out to there: bags in bags are few bytes as a message and may be any
/// number of values.
pub const BULK_WRITTEN_BYTES_MAX: usize = 64 << 20;

/// What a reader accepts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The most bytes.
    pub bytes: usize,
    /// The most values inside one another; above [`DEPTH_MAX`] it is that.
    pub depth: usize,
    /// The most values.
    pub values: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: MESSAGE_BYTES_MAX, depth: DEPTH_MAX, values: VALUES_MAX }
    }
}

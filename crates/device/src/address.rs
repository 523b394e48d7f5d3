//! Addresses in the memory of a device.

/// An address in the memory of a device, in bytes; 0: none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Address(pub u64);

impl Address {
    /// No address.
    pub const NONE: Self = Self(0);

    /// The address `words` words of 8 bytes further on.
    #[must_use]
    pub const fn plus_words(self, words: u64) -> Self {
        Self(self.0 + 8 * words)
    }
}

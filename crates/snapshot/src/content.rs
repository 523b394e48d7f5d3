//! Identity of the entries of a segment, for caches of copies.

use std::sync::atomic::{AtomicU64, Ordering};

static NEXT: AtomicU64 = AtomicU64::new(0);

/// Identifies the entries of one segment that never changes. No other segment of this process has it, not
/// even after the segment is dropped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ContentId(u64);

impl ContentId {
    /// A new identity.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "each call returns another value")]
    pub fn new() -> Self {
        // Relaxed: identities only have to differ.
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

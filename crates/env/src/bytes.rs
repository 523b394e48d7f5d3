//! Read-only bytes with shared ownership: a vector, or a mapped file.
//!
//! # Shape
//! Address, length, and a counted owner that keeps the address valid. A slice of `Bytes` is `Bytes`.
//! # Invariants
//! 1. `start..start + length` lies inside the owner's memory.
//! 2. The owner's heap memory or mapping is neither changed nor moved while the owner lives.
//! # Cost
//! Reading costs the same as for a slice (the address is stored here, not behind the owner); cloning and
//! slicing cost one atomic increment.
#![expect(unsafe_code, reason = "mapping a file, and keeping its address beside its owner")]

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::{Bound, Deref, RangeBounds};
use std::sync::Arc;

/// Read-only bytes with shared ownership. See the header of this file.
#[derive(Clone)]
pub struct Bytes {
    start: *const u8,
    length: usize,
    _owner: Arc<Owner>,
}

enum Owner {
    Memory(Vec<u8>),
    Mapped(memmap2::Mmap),
}

// SAFETY: `Bytes` only exposes `&[u8]` of memory that is not written while the owner lives (invariant 2), and
// the owner (`Vec<u8>` or `Mmap`, both `Send + Sync`) is reference counted atomically.
unsafe impl Send for Bytes {}
// SAFETY: as for `Send`.
unsafe impl Sync for Bytes {}

impl Bytes {
    /// Maps the whole of `file`.
    ///
    /// A published file must never be changed or shortened in place: Vervet writes a database file under a
    /// temporary name, syncs it, renames it, and from then on only removes it.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn map(file: &File) -> io::Result<Self> {
        if file.metadata()?.len() == 0 {
            return Ok(Self::from(Vec::new()));
        }
        // SAFETY: published database files are never changed in place (above). If another program violates
        // this rule, checksums turn changed bytes into an error; a file truncated under a mapping ends the
        // process with SIGBUS, as it does for every database that maps its files.
        let mapped = unsafe { memmap2::Mmap::map(file)? };
        Ok(Self::from_owner(Owner::Mapped(mapped)))
    }

    fn from_owner(owner: Owner) -> Self {
        let owner = Arc::new(owner);
        let all: &[u8] = match &*owner {
            Owner::Memory(bytes) => bytes,
            Owner::Mapped(bytes) => bytes,
        };
        Self { start: all.as_ptr(), length: all.len(), _owner: owner.clone() }
    }

    /// A part of these bytes that shares their owner.
    ///
    /// # Panics
    /// If `range` is not inside `0..len()`, as in slicing; use [`Bytes::checked_slice`] for offsets read from
    /// a file.
    #[must_use]
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Self {
        self.checked_slice(range).expect("the caller's range is inside")
    }

    /// A part of these bytes that shares their owner; `None` if `range` is not inside.
    #[must_use]
    pub fn checked_slice(&self, range: impl RangeBounds<usize>) -> Option<Self> {
        let start = match range.start_bound() {
            Bound::Included(&start) => start,
            Bound::Excluded(&before) => before.checked_add(1)?,
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(&last) => last.checked_add(1)?,
            Bound::Excluded(&end) => end,
            Bound::Unbounded => self.length,
        };
        let part = self.get(start..end)?;
        Some(Self { start: part.as_ptr(), length: part.len(), _owner: self._owner.clone() })
    }
}

impl Deref for Bytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: invariants 1 and 2; the owner lives at least as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self::from_owner(Owner::Memory(bytes))
    }
}

impl Default for Bytes {
    fn default() -> Self {
        Self::from(Vec::new())
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bytes({} bytes)", self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_outlive_their_source() {
        let all = Bytes::from(b"hello world".to_vec());
        let world = all.slice(6..);
        drop(all);
        assert_eq!(&*world, b"world");
        assert_eq!(&*world.slice(1..=2), b"or");
        assert!(world.checked_slice(3..9).is_none());
        #[expect(clippy::reversed_empty_ranges, reason = "a damaged file may say so")]
        let reversed = world.checked_slice(3..2);
        assert!(reversed.is_none());
        assert!(Bytes::default().is_empty());
    }
}

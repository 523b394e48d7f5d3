//! Device memory: one allocation in two regions, for windows and for binding tables.
//!
//! # Shape
//! Windows are allocated first-fit and freed in any order. Tables are a stack: execution is depth-first, so
//! what was allocated last is freed first.
//! # Invariants
//! Sizes are words of 8 bytes, and both regions start at a multiple of 256 bytes.

use vervet_device::{Address, Device, DeviceError};

/// Share of the windows in all memory, in percent.
const WINDOWS_PERCENT: u64 = 60;
/// Words of the alignment of both regions.
const ALIGN_WORDS: u64 = 32;

/// The memory of a device. See the header of this file.
#[derive(Debug)]
pub(crate) struct Arena {
    base: Address,
    pub(crate) windows: FreeList,
    work_start: u64,
    work_end: u64,
    work_next: u64,
}

impl Arena {
    /// Allocates `bytes` of the device.
    pub(crate) fn new(device: &mut dyn Device, bytes: u64) -> Result<Self, DeviceError> {
        let words = bytes / 8 / ALIGN_WORDS * ALIGN_WORDS;
        let base = device.allocate(8 * words)?;
        let windows = words / 100 * WINDOWS_PERCENT / ALIGN_WORDS * ALIGN_WORDS;
        Ok(Self {
            base,
            windows: FreeList::new(windows),
            work_start: windows,
            work_end: words,
            work_next: windows,
        })
    }

    /// The allocation, for freeing it.
    pub(crate) fn base(&self) -> Address {
        self.base
    }

    /// The address of a word of the arena.
    pub(crate) fn address(&self, word: u64) -> Address {
        self.base.plus_words(word)
    }

    /// Takes words for a table, or part of one; `None`: there are not as many.
    pub(crate) fn take(&mut self, words: u64) -> Option<Address> {
        let end = self.work_next.checked_add(words).filter(|end| *end <= self.work_end)?;
        let start = std::mem::replace(&mut self.work_next, end);
        Some(self.address(start))
    }

    /// Free words for tables.
    pub(crate) fn work_free(&self) -> u64 {
        self.work_end - self.work_next
    }

    /// The current end of the stack of tables.
    pub(crate) fn mark(&self) -> u64 {
        self.work_next
    }

    /// Frees all tables that were taken after `mark`.
    pub(crate) fn release_to(&mut self, mark: u64) {
        debug_assert!(mark <= self.work_next, "marks are released in reverse order");
        self.work_next = mark;
    }

    /// Frees all tables.
    pub(crate) fn release_all(&mut self) {
        self.work_next = self.work_start;
    }
}

/// Free ranges of a region.
#[derive(Debug)]
pub(crate) struct FreeList {
    words: u64,
    /// Start and length of each free range, ascending; no two touch.
    free: Vec<(u64, u64)>,
}

impl FreeList {
    fn new(words: u64) -> Self {
        Self { words, free: vec![(0, words)] }
    }

    /// Size of the region.
    pub(crate) fn words(&self) -> u64 {
        self.words
    }

    /// The first free range with this many words.
    pub(crate) fn take(&mut self, words: u64) -> Option<u64> {
        let at = self.free.iter().position(|(_, length)| *length >= words)?;
        let (start, length) = &mut self.free[at];
        let found = *start;
        *start += words;
        *length -= words;
        if *length == 0 {
            self.free.remove(at);
        }
        Some(found)
    }

    /// Frees a range that [`FreeList::take`] returned.
    pub(crate) fn give(&mut self, start: u64, words: u64) {
        let at = self.free.partition_point(|(other, _)| *other < start);
        self.free.insert(at, (start, words));
        for left in [at, at.wrapping_sub(1)] {
            if let (Some(&(start, length)), Some(&(next, more))) =
                (self.free.get(left), left.checked_add(1).and_then(|right| self.free.get(right)))
                && start + length == next
            {
                self.free[left].1 = length + more;
                self.free.remove(left + 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_ranges_join_their_neighbours() {
        let mut list = FreeList::new(100);
        let taken: Vec<u64> = (0..10).map(|_| list.take(10).unwrap()).collect();
        assert_eq!((taken[9], list.take(1)), (90, None));
        for start in [0, 20, 10, 90, 80, 70, 40] {
            list.give(start, 10);
        }
        assert_eq!(list.free, [(0, 30), (40, 10), (70, 30)]);
        assert_eq!(list.take(30), Some(0));
        list.give(0, 30);
        for start in [30, 50, 60] {
            list.give(start, 10);
        }
        assert_eq!(list.free, [(0, 100)]);
    }
}

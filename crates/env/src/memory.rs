//! Returning unused memory of the allocator to the operating system.
#![cfg_attr(
    any(feature = "mimalloc", all(target_os = "linux", target_env = "gnu")),
    expect(unsafe_code, reason = "one call of each allocator")
)]

/// Asks the allocator to return free memory to the system. A bulk load frees most of its memory, but
/// allocators keep it for later, so the resident set would stay near the peak of the load. Asks glibc, and
/// with the feature `mimalloc` that allocator; others are not known to need it.
///
/// # Cost
/// Milliseconds, and a page fault for each page that is used again.
pub fn release_free_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: `malloc_trim` takes a number, touches only memory that the allocator itself owns and that no
    // allocation uses, and may be called at any time from any thread (malloc_trim(3): MT-Safe).
    unsafe {
        libc::malloc_trim(0);
    }
    #[cfg(feature = "mimalloc")]
    mimalloc_heaps::release();
}

#[cfg(feature = "mimalloc")]
mod mimalloc_heaps {
    // Links the library.
    use mimalloc as _;

    unsafe extern "C" {
        /// Frees what the heap of this thread and those of ended threads do not use; `force`: at once.
        fn mi_collect(force: bool);
    }

    /// Memory that ended threads have freed, such as those of a load, is in heaps without an owner, which
    /// mimalloc returns only on this request.
    pub(super) fn release() {
        // SAFETY: the function of mimalloc 2 has this signature, may be called at any time from any thread
        // (mimalloc.h), and touches only memory that no allocation uses.
        unsafe { mi_collect(true) };
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn allocations_survive_a_release() {
        let kept: Vec<Vec<u8>> = (0..100_u8).map(|byte| vec![byte; 10_000]).collect();
        drop(vec![1_u8; 1 << 24]);
        super::release_free_memory();
        assert!((0..100_u8).zip(&kept).all(|(byte, kept)| kept.iter().all(|found| *found == byte)));
    }
}

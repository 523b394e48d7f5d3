//! Peak memory of a thread, by a counting allocator.
#![expect(unsafe_code, reason = "an allocator that counts and leaves the rest to that of the system")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    /// Bytes currently allocated by this thread, and their peak.
    static BYTES: Cell<[isize; 2]> = const { Cell::new([0; 2]) };
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn count(bytes: usize, sign: isize) {
    // No allocation has that many bytes; a terminating thread is not counted.
    let bytes = isize::try_from(bytes).unwrap_or(isize::MAX) * sign;
    let _ = BYTES.try_with(|cell| {
        let [now, most] = cell.get();
        cell.set([now + bytes, most.max(now + bytes)]);
    });
}

// SAFETY: every call is passed to the system's allocator with the same arguments.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 1);
        // SAFETY: the caller's contract is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        count(layout.size(), -1);
        // SAFETY: the caller's contract is the same.
        unsafe { System.dealloc(start, layout) }
    }
}

/// The result of `call`, and the peak of additional memory of this thread during it, in bytes.
pub(crate) fn peak<T>(call: impl FnOnce() -> T) -> (T, isize) {
    let [before, _] = BYTES.get();
    BYTES.set([before; 2]);
    let result = call();
    (result, BYTES.get()[1] - before)
}

//! How much memory a thread takes at most: an allocator that counts.
#![expect(unsafe_code, reason = "an allocator that counts and leaves the rest to that of the system")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    /// Bytes that this thread has now, and has had at most.
    static BYTES: Cell<[isize; 2]> = const { Cell::new([0; 2]) };
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn count(bytes: usize, sign: isize) {
    // No allocation has so many bytes; a thread that is ending is not counted.
    let bytes = isize::try_from(bytes).unwrap_or(isize::MAX) * sign;
    let _ = BYTES.try_with(|cell| {
        let [now, most] = cell.get();
        cell.set([now + bytes, most.max(now + bytes)]);
    });
}

// SAFETY: the calls are those of the system's allocator, with the same arguments.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 1);
        // SAFETY: as this call.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        count(layout.size(), -1);
        // SAFETY: as this call.
        unsafe { System.dealloc(start, layout) }
    }
}

/// The result of `call`, and how many bytes this thread had at most in it, beyond those before.
pub(crate) fn peak<T>(call: impl FnOnce() -> T) -> (T, isize) {
    let [before, _] = BYTES.get();
    BYTES.set([before; 2]);
    let result = call();
    (result, BYTES.get()[1] - before)
}

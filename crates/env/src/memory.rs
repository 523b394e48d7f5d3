//! Returning unused memory of the allocator to the operating system.
#![cfg_attr(
    all(target_os = "linux", target_env = "gnu"),
    expect(unsafe_code, reason = "one call of the C library")
)]

/// Asks the allocator to return free memory to the system. A bulk load frees most of its memory, but glibc
/// keeps it for later, so the resident set would stay at the peak of the load.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn release_free_memory() {
    // SAFETY: `malloc_trim` takes a number, touches only memory that the allocator itself owns and that no
    // allocation uses, and may be called at any time from any thread (malloc_trim(3): MT-Safe).
    unsafe { libc::malloc_trim(0) };
}

/// Does nothing: only glibc is known to need it.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn release_free_memory() {}

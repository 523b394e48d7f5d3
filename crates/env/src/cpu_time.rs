//! CPU time of another process.
#![cfg_attr(target_os = "linux", expect(unsafe_code, reason = "two calls of the C library"))]

use std::time::Duration;

/// CPU time of all threads of a process, those that have ended included; `None` if it does not exist, or on
/// systems without such a clock.
#[must_use]
#[cfg(target_os = "linux")]
pub fn cpu_time_of_process(id: u32) -> Option<Duration> {
    let id = libc::pid_t::try_from(id).ok()?;
    let mut clock: libc::clockid_t = 0;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: both functions check their numbers, and write only to the places that they are given
    // (clock_getcpuclockid(3), clock_gettime(2)).
    let is_read = unsafe {
        libc::clock_getcpuclockid(id, &raw mut clock) == 0 && libc::clock_gettime(clock, &raw mut time) == 0
    };
    let seconds = u64::try_from(time.tv_sec).ok()?;
    let nanoseconds = u32::try_from(time.tv_nsec).ok()?;
    is_read.then(|| Duration::new(seconds, nanoseconds))
}

/// Not known on this system.
#[must_use]
#[cfg(not(target_os = "linux"))]
pub fn cpu_time_of_process(_: u32) -> Option<Duration> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::hint::black_box;

    #[test]
    fn ended_threads_count() {
        let own = || cpu_time_of_process(std::process::id()).expect("this process exists");
        let before = own();
        let work = || (0..20_000_000_u64).fold(0, |sum, i| black_box(sum) ^ i);
        std::thread::spawn(move || black_box(work())).join().expect("it ends");
        assert!(own() - before > Duration::from_micros(100));
        assert_eq!(cpu_time_of_process(u32::MAX), None);
    }
}

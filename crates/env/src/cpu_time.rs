//! Processor time of threads and processes.
//!
//! Clocks are read through the C library: the simulation of servers replaces its functions.
#![cfg_attr(unix, expect(unsafe_code, reason = "calls of the C library"))]

use std::time::Duration;

#[cfg(unix)]
fn read(clock: libc::clockid_t) -> Option<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it checks its number, and writes only to the place that it is given (clock_gettime(2)).
    let is_read = unsafe { libc::clock_gettime(clock, &raw mut time) } == 0;
    let seconds = u64::try_from(time.tv_sec).ok()?;
    let nanoseconds = u32::try_from(time.tv_nsec).ok()?;
    is_read.then(|| Duration::new(seconds, nanoseconds))
}

/// Processor time of the calling thread since it began; time since the first call on systems that do not
/// report it. Cost: one system call.
#[must_use]
pub fn cpu_time_of_thread() -> Duration {
    #[cfg(unix)]
    {
        read(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or_default()
    }
    #[cfg(not(unix))]
    {
        static BEGIN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
        BEGIN.get_or_init(std::time::Instant::now).elapsed()
    }
}

/// Processor time of this process, all threads included; `None` on systems that do not report it.
#[must_use]
pub fn cpu_time_of_this_process() -> Option<Duration> {
    #[cfg(unix)]
    {
        read(libc::CLOCK_PROCESS_CPUTIME_ID)
    }
    #[cfg(not(unix))]
    None
}

/// Processor time of all threads of a process, those that have ended included; `None` if it does not exist,
/// or on systems without such a clock.
#[must_use]
#[cfg(target_os = "linux")]
pub fn cpu_time_of_process(id: u32) -> Option<Duration> {
    let id = libc::pid_t::try_from(id).ok()?;
    let mut clock: libc::clockid_t = 0;
    // SAFETY: it checks its number, and writes only to the place that it is given (clock_getcpuclockid(3)).
    let is_found = unsafe { libc::clock_getcpuclockid(id, &raw mut clock) } == 0;
    if is_found { read(clock) } else { None }
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

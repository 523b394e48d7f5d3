//! Time slices of threads.
#![cfg_attr(target_os = "linux", expect(unsafe_code, reason = "two system calls without a safe wrapper"))]

use std::time::Duration;

/// Requests time slices of this length for the calling thread, or those of the system (`None`). The system
/// may ignore the request; nothing but latency depends on it.
///
/// Linux 6.12 and later run a thread that wakes up immediately if its slices are shorter than those of the
/// running thread and it has not used up its share of the processor. Otherwise it waits until the running
/// thread has used its slice, 3 to 4 ms. Threads that this thread starts have the slices of the system.
///
/// # Cost
/// Two system calls.
#[cfg(target_os = "linux")]
pub fn request_time_slice(length: Option<Duration>) {
    let Some(mut attributes) = attributes().filter(|found| found.sched_policy == SCHED_OTHER) else { return };
    attributes.sched_flags |= SCHED_FLAG_RESET_ON_FORK;
    attributes.sched_runtime =
        length.map_or(0, |length| u64::try_from(length.as_nanos()).unwrap_or(u64::MAX));
    // SAFETY: the structure has the size that it states and lives until the call returns; thread 0 is the
    // caller. A refusal changes nothing.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
}

/// Does nothing.
#[cfg(not(target_os = "linux"))]
pub fn request_time_slice(_: Option<Duration>) {}

#[cfg(target_os = "linux")]
const SCHED_OTHER: u32 = libc::SCHED_OTHER.unsigned_abs();

/// From `linux/sched.h`; `libc` does not have it.
#[cfg(target_os = "linux")]
const SCHED_FLAG_RESET_ON_FORK: u64 = 1;

/// The scheduling attributes of the calling thread.
#[cfg(target_os = "linux")]
fn attributes() -> Option<libc::sched_attr> {
    /// The first version of the structure, which every kernel knows.
    const SIZE: u32 = 48;
    let mut found = libc::sched_attr {
        size: SIZE,
        sched_policy: 0,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the kernel writes at most the stated size; thread 0 is the caller.
    let status = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut found, SIZE, 0) };
    (status == 0).then_some(found)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn only_the_time_slice_changes() {
        let before = attributes().unwrap();
        request_time_slice(Some(Duration::from_micros(100)));
        let short = attributes().unwrap();
        assert_eq!((before.sched_policy, before.sched_nice), (short.sched_policy, short.sched_nice));
        // Systems before Linux 6.12 know no slices of such threads.
        assert!(short.sched_runtime == 100_000 || short.sched_runtime == 0, "{}", short.sched_runtime);
        let of_child = std::thread::spawn(|| attributes().unwrap()).join().unwrap();
        assert_eq!(of_child.sched_runtime, before.sched_runtime);
        request_time_slice(None);
        assert_eq!(attributes().unwrap().sched_runtime, before.sched_runtime);
    }
}

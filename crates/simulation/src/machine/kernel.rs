//! The system below the simulation.

use libc::{c_int, c_long};
use std::sync::atomic::AtomicU32;

/// Ends the process at once: the simulation cannot go on. A place to stop at in a debugger.
#[inline(never)]
pub(super) fn fail(why: &str) -> ! {
    let message = format!("simulation: {why}\n");
    // SAFETY: a plain write, and the end of the process.
    unsafe {
        libc::write(2, message.as_ptr().cast(), message.len());
        libc::_exit(101)
    }
}

/// Ends the calling thread, and nothing else: what it owns stays, and no destructor runs.
pub(super) fn end_thread() -> ! {
    // SAFETY: no arguments. The memory of the thread is not freed, so references to it stay valid.
    unsafe { call(libc::SYS_exit, [0; 6]) };
    fail("a thread did not end")
}

/// Stops the process for a debugger, which sees all threads where they wait.
pub(crate) fn trap() {
    // SAFETY: a signal to this process.
    unsafe { libc::raise(libc::SIGTRAP) };
}

/// A system call.
///
/// # Safety
/// As the call.
pub(super) unsafe fn call(number: c_long, arguments: [c_long; 6]) -> c_long {
    let [one, two, three, four, five, six] = arguments;
    let result: c_long;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller's.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") one, in("rsi") two, in("rdx") three, in("r10") four, in("r8") five, in("r9") six,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the caller's.
    unsafe {
        std::arch::asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") one => result,
            in("x1") two, in("x2") three, in("x3") four, in("x4") five, in("x5") six,
            options(nostack),
        );
    }
    result
}

/// A result of the C library from that of a system call.
pub(super) fn result(result: c_long) -> c_long {
    if (-4095..0).contains(&result) {
        error(c_int::try_from(-result).unwrap_or(libc::EIO)).into()
    } else {
        result
    }
}

/// Sets `errno`.
pub(super) fn error(number: c_int) -> c_int {
    // SAFETY: a variable of the thread.
    unsafe { *libc::__errno_location() = number };
    -1
}

const WAIT: c_long = (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG) as c_long;
const WAKE: c_long = (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as c_long;

/// Waits until `gate` is not 0, or for no reason.
pub(super) fn wait_really(gate: &AtomicU32) {
    // SAFETY: the word outlives the call.
    unsafe { call(libc::SYS_futex, [gate.as_ptr() as c_long, WAIT, 0, 0, 0, 0]) };
}

pub(super) fn wake_really(gate: &AtomicU32) {
    // SAFETY: as above.
    unsafe { call(libc::SYS_futex, [gate.as_ptr() as c_long, WAKE, 1, 0, 0, 0]) };
}

/// Runs all threads of this process on one core, the `number`-th that it may use: a change from one thread to
/// the other costs less than half then, and the code under test sees one core on every machine.
pub(crate) fn run_on(number: usize) {
    let mut set = std::mem::MaybeUninit::<libc::cpu_set_t>::zeroed();
    let bytes = size_of::<libc::cpu_set_t>();
    // SAFETY: a set of zeros is an empty one. Without the right to choose cores nothing happens.
    unsafe {
        if libc::sched_getaffinity(0, bytes, set.as_mut_ptr()) != 0 {
            return;
        }
        let allowed = set.assume_init();
        let cores: Vec<usize> = (0..8 * bytes).filter(|core| libc::CPU_ISSET(*core, &allowed)).collect();
        let Some(core) = cores.get(number % cores.len().max(1)) else { return };
        let mut one = std::mem::MaybeUninit::<libc::cpu_set_t>::zeroed();
        libc::CPU_SET(*core, one.assume_init_mut());
        libc::sched_setaffinity(0, bytes, one.as_ptr());
    }
}

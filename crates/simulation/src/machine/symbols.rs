//! Functions of the C library that this program has instead of those of the system.
//!
//! # Why
//! The code under test is what runs in production: it waits on futexes, reads clocks, starts threads and
//! opens sockets through the standard library, and other crates do the same. The linker takes the functions
//! here for all of them. Outside the simulation each does what the system's does.
//! # Where
//! Linux with glibc, on x86-64 and AArch64: there, arguments of a variadic function are passed like others.

use super::kernel::{call, error, fail, result};
use super::scheduler::{self, Thread, Woken, is_inside, world};
use libc::{c_int, c_long, c_void, clockid_t, pthread_attr_t, pthread_t, size_t, ssize_t, timespec};
use std::mem::transmute;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// The wall clock at time 0: 2026-01-01.
const WALL_CLOCK_SECONDS: u64 = 1_767_225_600;

fn nanoseconds(time: &timespec) -> u64 {
    let (seconds, rest) = (u64::try_from(time.tv_sec).unwrap_or(0), u64::try_from(time.tv_nsec).unwrap_or(0));
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}

/// A futex call of a thread of the simulation.
///
/// # Safety
/// As the call.
unsafe fn futex(arguments: [c_long; 6]) -> c_long {
    let [address, operation, value, time, ..] = arguments;
    let key = address as usize;
    match operation as c_int & !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME) {
        wait @ (libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET) => {
            let world = world();
            // SAFETY: the caller's word.
            let found = unsafe { (*(address as *const AtomicU32)).load(Ordering::SeqCst) };
            if found != value as u32 {
                return error(libc::EAGAIN).into();
            }
            // SAFETY: the caller's time, or none.
            let time = unsafe { (time as *const timespec).as_ref() }.map(nanoseconds);
            let until = time.map(|time| match wait {
                libc::FUTEX_WAIT => world.after_local(time),
                _ => world.global_time(time),
            });
            match world.block(Some(key), until).1 {
                Woken::Called => 0,
                Woken::TimedOut => error(libc::ETIMEDOUT).into(),
            }
        }
        libc::FUTEX_WAKE | libc::FUTEX_WAKE_BITSET => {
            let mut world = world();
            let woken = world.wake(key, usize::try_from(value).unwrap_or(0));
            drop(world.maybe_give_way());
            c_long::try_from(woken).unwrap_or(c_long::MAX)
        }
        _ => fail("an unknown operation on a futex"),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn syscall(
    number: c_long,
    one: c_long,
    two: c_long,
    three: c_long,
    four: c_long,
    five: c_long,
    six: c_long,
) -> c_long {
    let arguments = [one, two, three, four, five, six];
    if number == libc::SYS_futex && is_inside() {
        // SAFETY: the caller's.
        return unsafe { futex(arguments) };
    }
    if number == libc::SYS_getrandom && is_inside() {
        // SAFETY: the caller's.
        return unsafe { getrandom(one as *mut c_void, two as size_t, 0) as c_long };
    }
    // SAFETY: the caller's.
    result(unsafe { call(number, arguments) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn getrandom(buffer: *mut c_void, length: size_t, flags: u32) -> ssize_t {
    if !is_inside() {
        // SAFETY: the caller's.
        let filled =
            unsafe { call(libc::SYS_getrandom, [buffer as c_long, length as c_long, flags.into(), 0, 0, 0]) };
        return result(filled) as ssize_t;
    }
    // SAFETY: the caller's buffer.
    let bytes = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), length) };
    let mut world = world();
    for chunk in bytes.chunks_mut(8) {
        chunk.copy_from_slice(&world.draw().to_le_bytes()[..chunk.len()]);
    }
    length as ssize_t
}

#[unsafe(no_mangle)]
unsafe extern "C" fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int {
    if !is_inside() {
        // SAFETY: the caller's.
        return result(unsafe { call(libc::SYS_clock_gettime, [clock.into(), time as c_long, 0, 0, 0, 0]) })
            as c_int;
    }
    let (now, begin) = match clock {
        libc::CLOCK_MONOTONIC
        | libc::CLOCK_MONOTONIC_RAW
        | libc::CLOCK_MONOTONIC_COARSE
        | libc::CLOCK_BOOTTIME => (scheduler::local_time(), 0),
        libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE => {
            (scheduler::with(|world| world.now()), WALL_CLOCK_SECONDS)
        }
        libc::CLOCK_THREAD_CPUTIME_ID => (scheduler::processor_time(), 0),
        _ => fail("an unknown clock"),
    };
    let seconds = now / 1_000_000_000 + begin;
    // SAFETY: the caller's.
    unsafe { *time = timespec { tv_sec: seconds as i64, tv_nsec: (now % 1_000_000_000) as c_long } };
    0
}

fn sleep(nanoseconds: u64) {
    let world = world();
    let until = world.after_local(nanoseconds);
    drop(world.block(None, Some(until)));
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nanosleep(time: *const timespec, left: *mut timespec) -> c_int {
    if !is_inside() {
        // SAFETY: the caller's.
        return result(unsafe { call(libc::SYS_nanosleep, [time as c_long, left as c_long, 0, 0, 0, 0]) })
            as c_int;
    }
    // SAFETY: the caller's.
    sleep(nanoseconds(unsafe { &*time }));
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn clock_nanosleep(
    clock: clockid_t,
    flags: c_int,
    time: *const timespec,
    left: *mut timespec,
) -> c_int {
    if !is_inside() {
        let arguments = [clock.into(), flags.into(), time as c_long, left as c_long, 0, 0];
        // SAFETY: the caller's.
        return -unsafe { call(libc::SYS_clock_nanosleep, arguments) } as c_int;
    }
    // SAFETY: the caller's.
    let time = nanoseconds(unsafe { &*time });
    if flags & libc::TIMER_ABSTIME == 0 {
        sleep(time);
    } else {
        let world = world();
        let until = world.global_time(time);
        drop(world.block(None, Some(until)));
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sched_yield() -> c_int {
    if is_inside() {
        drop(world().give_way());
        return 0;
    }
    // SAFETY: no arguments.
    result(unsafe { call(libc::SYS_sched_yield, [0; 6]) }) as c_int
}

/// The system's function of this name.
fn next(name: &'static std::ffi::CStr, known: &AtomicPtr<c_void>) -> *mut c_void {
    let found = known.load(Ordering::Relaxed);
    if !found.is_null() {
        return found;
    }
    // SAFETY: a name that ends with 0.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if found.is_null() {
        fail("a function of the C library is missing");
    }
    known.store(found, Ordering::Relaxed);
    found
}

type Routine = extern "C" fn(*mut c_void) -> *mut c_void;
type Create = unsafe extern "C" fn(*mut pthread_t, *const pthread_attr_t, Routine, *mut c_void) -> c_int;
type Join = unsafe extern "C" fn(pthread_t, *mut *mut c_void) -> c_int;

struct Begun {
    thread: &'static Thread,
    routine: Routine,
    argument: *mut c_void,
}

extern "C" fn run(begun: *mut c_void) -> *mut c_void {
    // SAFETY: made by `pthread_create` below, for this call.
    let begun = unsafe { Box::from_raw(begun.cast::<Begun>()) };
    scheduler::enter(begun.thread);
    let returned = (begun.routine)(begun.argument);
    scheduler::leave();
    returned
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_create(
    handle: *mut pthread_t,
    attributes: *const pthread_attr_t,
    routine: Routine,
    argument: *mut c_void,
) -> c_int {
    static KNOWN: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
    // SAFETY: the type of the system's function.
    let create = unsafe { transmute::<*mut c_void, Create>(next(c"pthread_create", &KNOWN)) };
    if !is_inside() {
        // SAFETY: the caller's.
        return unsafe { create(handle, attributes, routine, argument) };
    }
    let thread = {
        let mut world = world();
        let node = world.own_node();
        world.add_thread(node)
    };
    let begun = Box::into_raw(Box::new(Begun { thread, routine, argument }));
    // SAFETY: the caller's; `run` takes what it gets.
    let created = unsafe { create(handle, attributes, run, begun.cast()) };
    let mut world = world();
    if created == 0 {
        // SAFETY: the handle is set.
        world.name_thread(unsafe { *handle } as usize, thread);
        world.start_thread(thread);
    }
    created
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_join(handle: pthread_t, returned: *mut *mut c_void) -> c_int {
    static KNOWN: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
    if is_inside() {
        scheduler::join(handle as usize);
    }
    // SAFETY: the type of the system's function, and the caller's arguments.
    unsafe { transmute::<*mut c_void, Join>(next(c"pthread_join", &KNOWN))(handle, returned) }
}

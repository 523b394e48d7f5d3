//! Ctrl-C handling: the first Ctrl-C cancels the running command, the next one ends the process.
//!
//! # Shape
//! A command that can be cancelled is [`Running`], and [`Running::finish`]ed once its effects are final: a
//! durable commit, a published load. Ctrl-C after that does not change its output or exit code.
//! # Invariants
//! Without a registered command, Ctrl-C ends the process at once. While a pager runs, only the pager handles
//! Ctrl-C.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use vervet::CancelToken;

/// Exit code of a cancelled command: 128 plus the number of SIGINT, as in shells.
pub(crate) const CANCELLED: u8 = 130;

static REQUESTED: AtomicBool = AtomicBool::new(false);
static PHASE: Mutex<Phase> = Mutex::new(Phase::Idle);

/// The effect of Ctrl-C.
#[derive(Debug)]
enum Phase {
    /// Ends the process.
    Idle,
    /// Cancels the token.
    Running(CancelToken),
    /// The effects are final: one Ctrl-C is ignored, the next one ends the process.
    Finishing,
    /// A pager has the terminal and handles Ctrl-C itself.
    Paging,
}

/// Registers a cancellable command until it is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    pub token: CancelToken,
}

impl Running {
    /// Marks the effects as final: a late Ctrl-C, past or future, does not count.
    pub(crate) fn finish(&self) {
        finish();
    }
}

/// Leaves Ctrl-C to the pager until it is dropped.
#[derive(Debug)]
pub(crate) struct Paging(());

impl Paging {
    pub(crate) fn start() -> Self {
        *phase() = Phase::Paging;
        Self(())
    }
}

impl Drop for Paging {
    fn drop(&mut self) {
        *phase() = Phase::Idle;
    }
}

/// [`Running::finish`] of the running command.
pub(crate) fn finish() {
    *phase() = Phase::Finishing;
    forget();
}

impl Drop for Running {
    fn drop(&mut self) {
        *phase() = Phase::Idle;
    }
}

/// Installs the Ctrl-C handler.
pub(crate) fn install() {
    // If the system refuses a handler, Ctrl-C ends the process: loads are atomic even then.
    let _ = ctrlc::set_handler(|| {
        if !press() {
            std::process::exit(i32::from(CANCELLED));
        }
    });
}

/// Handles a Ctrl-C; `false`: the process is to end.
fn press() -> bool {
    let mut phase = phase();
    match std::mem::replace(&mut *phase, Phase::Idle) {
        Phase::Idle => return false,
        Phase::Running(token) => {
            REQUESTED.store(true, Ordering::Relaxed);
            token.cancel();
        }
        Phase::Finishing => {}
        Phase::Paging => *phase = Phase::Paging,
    }
    true
}

/// Clears an earlier Ctrl-C: the shell continues.
pub(crate) fn forget() {
    REQUESTED.store(false, Ordering::Relaxed);
}

/// From now on Ctrl-C cancels the token and sets [`requested`].
pub(crate) fn start() -> Running {
    forget();
    let token = CancelToken::new();
    *phase() = Phase::Running(token.clone());
    Running { token }
}

/// Whether Ctrl-C was pressed since the last [`start`], [`forget`] or [`Running::finish`]. Relaxed
/// everywhere: the flag carries no other data.
pub(crate) fn requested() -> &'static AtomicBool {
    &REQUESTED
}

fn phase() -> MutexGuard<'static, Phase> {
    PHASE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// users 1: a Ctrl-C after the effects are final neither cancels nor ends the process; a second one ends
    /// it.
    #[test]
    fn users_1_what_is_done_is_not_cancelled() {
        let running = start();
        assert!(press(), "cancels");
        assert!(running.token.is_cancelled() && requested().load(Ordering::Relaxed));
        running.finish();
        assert!(!requested().load(Ordering::Relaxed), "the Ctrl-C came too late");
        assert!(press(), "passed over");
        assert!(!requested().load(Ordering::Relaxed));
        assert!(!press(), "ends the process");
        drop(running);
        assert!(!press(), "nothing runs");
        // users 22: the pager handles every Ctrl-C.
        let paging = Paging::start();
        assert!(press() && press() && !requested().load(Ordering::Relaxed));
        drop(paging);
        assert!(!press(), "nothing runs");
    }
}

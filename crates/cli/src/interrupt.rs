//! Ctrl-C: the first one cancels what runs, the next one ends the process.
//!
//! # Shape
//! A command that can be cancelled is [`Running`], and [`Running::finish`]ed once its work is done and cannot
//! be taken back: a commit that is durable, a load that is published. What it then says is what has happened,
//! whenever Ctrl-C came.
//! # Invariants
//! While nothing registered runs, Ctrl-C ends the process at once, so it can never be ignored twice.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use vervet::CancelToken;

/// Exit code of a cancelled command: 128 and the number of SIGINT, as shells have it.
pub(crate) const CANCELLED: u8 = 130;

static REQUESTED: AtomicBool = AtomicBool::new(false);
static PHASE: Mutex<Phase> = Mutex::new(Phase::Idle);

/// What Ctrl-C does.
#[derive(Debug)]
enum Phase {
    /// It ends the process.
    Idle,
    /// It cancels.
    Running(CancelToken),
    /// The work is done: it is passed over, and the next one ends the process.
    Finishing,
}

/// What may be cancelled; over when dropped.
#[derive(Debug)]
pub(crate) struct Running {
    pub token: CancelToken,
}

impl Running {
    /// The work is done, and cannot be taken back: a Ctrl-C that came too late, or comes now, does not count.
    pub(crate) fn finish(&self) {
        finish();
    }
}

/// [`Running::finish`] of what runs.
pub(crate) fn finish() {
    *phase() = Phase::Finishing;
    forget();
}

impl Drop for Running {
    fn drop(&mut self) {
        *phase() = Phase::Idle;
    }
}

/// Takes over Ctrl-C.
pub(crate) fn install() {
    // Where the system refuses a handler, Ctrl-C ends the process: loads are atomic even then.
    let _ = ctrlc::set_handler(|| {
        if !press() {
            std::process::exit(i32::from(CANCELLED));
        }
    });
}

/// A Ctrl-C; `false`: the process is to end.
fn press() -> bool {
    let mut phase = phase();
    match std::mem::replace(&mut *phase, Phase::Idle) {
        Phase::Idle => return false,
        Phase::Running(token) => {
            REQUESTED.store(true, Ordering::Relaxed);
            token.cancel();
        }
        Phase::Finishing => {}
    }
    true
}

/// Forgets an earlier Ctrl-C: in the shell, life goes on.
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

/// Whether Ctrl-C came since the last [`start`], [`forget`] or [`Running::finish`]. Relaxed everywhere: the
/// flag carries no other data.
pub(crate) fn requested() -> &'static AtomicBool {
    &REQUESTED
}

fn phase() -> MutexGuard<'static, Phase> {
    PHASE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// users 1: a Ctrl-C that comes when the work is done neither cancels nor ends the process; a second one
    /// ends it.
    #[test]
    fn users_1_what_is_done_is_not_cancelled() {
        let running = start();
        assert!(press(), "cancels");
        assert!(running.token.is_cancelled() && requested().load(Ordering::Relaxed));
        running.finish();
        assert!(!requested().load(Ordering::Relaxed), "it came too late");
        assert!(press(), "passed over");
        assert!(!requested().load(Ordering::Relaxed));
        assert!(!press(), "ends the process");
        drop(running);
        assert!(!press(), "nothing runs");
    }
}

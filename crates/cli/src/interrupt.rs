//! Ctrl-C: the first one cancels what runs, the next one ends the process.
//!
//! # Invariants
//! While nothing registered runs, Ctrl-C ends the process at once, so it can never be ignored.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use vervet::CancelToken;

/// Exit code of a cancelled command: 128 and the number of SIGINT, as shells have it.
pub(crate) const CANCELLED: u8 = 130;

static REQUESTED: AtomicBool = AtomicBool::new(false);
static WORK: Mutex<Option<CancelToken>> = Mutex::new(None);

/// What may be cancelled; over when dropped.
#[derive(Debug)]
pub(crate) struct Running {
    pub token: CancelToken,
}

impl Drop for Running {
    fn drop(&mut self) {
        *work() = None;
    }
}

/// Takes over Ctrl-C.
pub(crate) fn install() {
    // Where the system refuses a handler, Ctrl-C ends the process: loads are atomic even then.
    let _ = ctrlc::set_handler(|| match work().take() {
        Some(token) => {
            REQUESTED.store(true, Ordering::Relaxed);
            token.cancel();
        }
        None => std::process::exit(i32::from(CANCELLED)),
    });
}

/// Forgets an earlier Ctrl-C: in the shell, life goes on.
pub(crate) fn forget() {
    REQUESTED.store(false, Ordering::Relaxed);
}

/// From now on Ctrl-C cancels the token and sets [`requested`].
pub(crate) fn start() -> Running {
    forget();
    let token = CancelToken::new();
    *work() = Some(token.clone());
    Running { token }
}

/// Whether Ctrl-C came since the last [`start`] or [`forget`]. Relaxed everywhere: the flag carries no other data.
pub(crate) fn requested() -> &'static AtomicBool {
    &REQUESTED
}

fn work() -> MutexGuard<'static, Option<CancelToken>> {
    WORK.lock().unwrap_or_else(PoisonError::into_inner)
}

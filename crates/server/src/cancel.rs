//! Cancellation of a request whose client has disconnected, and waits that end with it.

use std::time::Duration;
use vervet::CancelToken;

/// How often a task checks whether the request for which it waits was cancelled.
pub(crate) const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Cancels a request on drop, unless disarmed: its client has disconnected.
#[derive(Debug)]
pub(crate) struct CancelOnDrop(Option<CancelToken>);

impl CancelOnDrop {
    /// A guard that cancels `token` on drop.
    pub(crate) fn new(token: CancelToken) -> Self {
        Self(Some(token))
    }

    /// Disarms the guard: the request has finished.
    pub(crate) fn disarm(&mut self) {
        self.0 = None;
    }
}

/// Completes once the token is cancelled, within about [`CHECK_INTERVAL`].
pub(crate) async fn cancelled(token: &CancelToken) {
    while !token.is_cancelled() {
        tokio::time::sleep(CHECK_INTERVAL).await;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(token) = &self.0 {
            token.cancel();
        }
    }
}

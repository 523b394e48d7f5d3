//! Cancellation of a request whose client has disconnected.

use vervet::CancelToken;

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

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(token) = &self.0 {
            token.cancel();
        }
    }
}

//! Requests of clients that change the graph, sent on to the server that takes changes.
//!
//! A request is [`FORWARD`] and bytes that only the servers above this crate read; so is the answer. Their
//! sender has checked the credentials of the client, and the receiver checks them again.

use std::fmt;
use std::sync::{Arc, OnceLock};
use vervet_model::{Error, ErrorKind, Result};

/// Kind of the requests: none of those of partitions, tasks, followers, voters and data.
pub(crate) const FORWARD: u8 = 99;

/// Answers a request that another server sends on.
pub type Forwarded = Box<dyn Fn(&[u8]) -> Result<Vec<u8>> + Send + Sync>;

/// What answers forwarded requests, once the server is up.
#[derive(Clone, Default)]
pub(crate) struct Receiver(Arc<OnceLock<Forwarded>>);

impl Receiver {
    /// The first call counts.
    pub(crate) fn set(&self, answer: Forwarded) {
        _ = self.0.set(answer);
    }

    /// Answers a request.
    ///
    /// # Errors
    /// Unavailable: the server is not up yet. Those of the receiver.
    pub(crate) fn answer(&self, request: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let not_up = || Error::new(ErrorKind::Unavailable, "this server does not answer clients yet");
        out.extend_from_slice(&(self.0.get().ok_or_else(not_up)?)(request.get(1..).unwrap_or_default())?);
        Ok(())
    }
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Receiver").field(&self.0.get().is_some()).finish()
    }
}

//! The protocol on which a client and a server have agreed, and the protocols that the next connection
//! offers.
//!
//! A server of protocol 7 refuses an offer of a newer protocol, so the client has to connect again and to
//! offer 7 alone. The refusal is remembered for a short time, so that a burst of new connections makes one
//! vain attempt. Every failure of a connection forgets it: the server may start again as another version.

use crate::protocol::{Protocol, ProtocolRange};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Connections made within this time after a refusal offer protocol 7 alone.
const REFUSAL_TIME: Duration = Duration::from_secs(10);

/// See the header of this file.
#[derive(Default)]
pub(crate) struct Agreement(Mutex<State>);

#[derive(Default)]
struct State {
    agreed: Option<Protocol>,
    refused_at: Option<Instant>,
}

impl Agreement {
    /// The protocol of the last connection, unless a connection has failed since.
    pub(crate) fn agreed(&self) -> Option<Protocol> {
        self.lock().agreed
    }

    /// What a client of these protocols offers at this time.
    pub(crate) fn offer(&self, own: ProtocolRange) -> ProtocolRange {
        let is_refused = self.lock().refused_at.is_some_and(|at| at.elapsed() < REFUSAL_TIME);
        let last = Protocol::LAST_WITHOUT_RANGE;
        if is_refused && own.contains(last) { ProtocolRange::only(last) } else { own }
    }

    /// A connection was made.
    pub(crate) fn note_agreed(&self, protocol: Protocol) {
        self.lock().agreed = Some(protocol);
    }

    /// The server has protocol 7 alone.
    pub(crate) fn note_refusal(&self) {
        self.lock().refused_at = Some(Instant::now());
    }

    /// A connection has failed.
    pub(crate) fn forget(&self) {
        *self.lock() = State::default();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_reduces_the_offer_until_a_connection_fails() {
        let agreement = Agreement::default();
        let own = ProtocolRange::SUPPORTED;
        let last = ProtocolRange::only(Protocol::LAST_WITHOUT_RANGE);
        assert_eq!((agreement.offer(own), agreement.agreed()), (own, None));
        agreement.note_refusal();
        agreement.note_agreed(last.newest());
        assert_eq!((agreement.offer(own), agreement.agreed()), (last, Some(last.newest())));
        // A client without protocol 7 has nothing else to offer.
        let newer = ProtocolRange::only(Protocol::NEWEST);
        assert_eq!(agreement.offer(newer), newer);
        agreement.forget();
        assert_eq!((agreement.offer(own), agreement.agreed()), (own, None));
    }

    #[test]
    fn a_refusal_is_forgotten_with_time() {
        let agreement = Agreement::default();
        agreement.note_refusal();
        agreement.lock().refused_at = Instant::now().checked_sub(REFUSAL_TIME);
        assert_eq!(agreement.offer(ProtocolRange::SUPPORTED), ProtocolRange::SUPPORTED);
    }
}

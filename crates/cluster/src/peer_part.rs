//! Another server as a part of the graph.

use vervet_model::Result;
use vervet_partition::{Answer, Remote};
use vervet_peer::{Peer, Pending};

/// See the header of this file.
#[derive(Debug)]
pub(crate) struct PeerPart(Peer);

impl PeerPart {
    pub(crate) fn new(peer: Peer) -> Self {
        Self(peer)
    }

    pub(crate) fn peer(&self) -> &Peer {
        &self.0
    }
}

impl Remote for PeerPart {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn send<'a>(&'a self, request: &[u8]) -> Result<Box<dyn Answer + 'a>> {
        Ok(Box::new(PendingAnswer(self.0.send(request)?)))
    }
}

struct PendingAnswer<'p>(Pending<'p>);

impl Answer for PendingAnswer<'_> {
    fn receive(self: Box<Self>) -> Result<Vec<u8>> {
        self.0.receive()
    }
}

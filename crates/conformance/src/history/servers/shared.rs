//! What the clients of histories over servers share.

use crate::voter_processes::Servers;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

/// What the clients of all histories share.
pub(super) struct Run<'a> {
    pub(super) servers: &'a Servers,
    /// Position of the server that took a change last, or that another one named.
    pub(super) leader: AtomicUsize,
    pub(super) start: Instant,
    /// The next element.
    pub(super) elements: AtomicU64,
    /// The next number of a client: one whose transaction has an unknown outcome gets another number, since
    /// that transaction may still be going on.
    pub(super) clients: AtomicU64,
}

impl Run<'_> {
    pub(super) fn now(&self) -> u128 {
        self.start.elapsed().as_nanos()
    }

    pub(super) fn element(&self) -> u64 {
        // Relaxed: only uniqueness of the numbers matters.
        self.elements.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn client_number(&self) -> u64 {
        self.clients.fetch_add(1, Ordering::Relaxed)
    }
}

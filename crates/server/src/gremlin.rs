//! Gremlin for TinkerPop's drivers: the protocol of Gremlin Server over a WebSocket, and its HTTP form, both
//! at `/gremlin`.
//!
//! # Shape
//! ```text
//! upgrade    HTTP becomes a WebSocket           http    one request, one answer
//! socket     frames in, frames out -> connection: who asks, what runs -> alone, or a session
//! request    what a message asks for            access  what its sender may do
//! run        runs it -> answer -> the socket     tier    where: at once, on a light thread, among heavy ones (`admission`)
//! ```
//! # Invariants
//! 1. Each request is answered to its end once, also after a panic: a [`answer::Reply`] that is dropped says
//!    so.
//! 2. Requests of a connection run side by side, those of a session in their order.
//! 3. What a connection has asked for ends with it: traversals are cancelled, transactions rolled back.
//! 4. Results wait for the client, not in memory: the thread of a traversal stands still until they are
//!    taken. Those of a light one are held until it has ended, [`tier::HELD_BYTES`] at most.
//! 5. Nothing that was tried and given up as too heavy where it was has been told, or changed anything.
//! # Source
//! Apache TinkerPop 3.8, provider documentation, "Network Protocols"; RFC 6455; RFC 4616.
//! # Not here
//! Formats (`vervet-tinkerpop`), Groovy, Kerberos, `permessage-deflate`.

mod access;
mod answer;
mod connection;
mod http;
mod request;
mod run;
mod session;
mod socket;
mod tier;
mod upgrade;

pub(crate) use http::answer;
pub(crate) use socket::serve;
pub(crate) use upgrade::Slot;

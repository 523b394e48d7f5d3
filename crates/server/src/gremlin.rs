//! Gremlin Server: the protocol of TinkerPop's drivers over a WebSocket, and its HTTP form, both at
//! `/gremlin`.
//!
//! # Shape
//! ```text
//! upgrade, authorize  HTTP becomes a WebSocket   http    one request, one response
//! socket   frames in, frames out -> connection: login, dispatch -> job -> run, or session
//! request  arguments of a message                access  the permissions of its sender
//! run      runs it -> response -> the socket     tier    limits of its tier (`admission`)
//! ```
//! # Invariants
//! 1. Each request gets exactly one complete response, also after a panic: dropping an unfinished
//!    [`response::PendingResponse`] sends an error.
//! 2. Requests of a connection run concurrently, those of a session in order.
//! 3. The end of a connection cancels its traversals and rolls back its transactions.
//! 4. Results are not buffered for a slow client: the thread of a traversal blocks until the client takes
//!    them. Those of a light traversal are held until it has ended, up to [`response::BUFFERED_BYTES_MAX`].
//! 5. A request rejected as too heavy for its tier has sent no response and has no side effects.
//! # Source
//! Apache TinkerPop 3.8, provider documentation, "Network Protocols"; RFC 6455; RFC 4616.
//! # Not here
//! Formats (`vervet-tinkerpop`), Groovy, Kerberos, `permessage-deflate`.

pub(crate) mod access;
mod authorize;
mod connection;
mod error;
mod fingerprint;
mod http;
mod job;
mod request;
mod response;
mod run;
mod session;
mod socket;
mod tier;
mod upgrade;

pub(crate) use http::answer;
pub(crate) use socket::serve;

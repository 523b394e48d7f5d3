//! Gremlin Server: the protocol of TinkerPop's drivers over a WebSocket, and its HTTP form, both at
//! `/gremlin`.
//!
//! # Shape
//! ```text
//! upgrade, authorize  HTTP becomes a WebSocket   http    one request, one response
//! socket   frames in, frames out -> connection: login, dispatch -> job -> run, or session
//! request  arguments of a message                access  the permissions of its sender
//! run      runs it -> response -> the socket     tier    limits of its tier (`admission`)
//! remote   runs it at another server of the cluster, where `forwarded` receives it (`exchange`)
//! ```
//! # Invariants
//! 1. Each request gets exactly one complete response, also after a panic: dropping an unfinished
//!    [`response::PendingResponse`] sends an error.
//! 2. Requests of a connection run concurrently, those of a session in order.
//! 3. The end of a connection cancels its traversals and rolls back its transactions.
//! 4. Results are not buffered for a slow client: the thread of a traversal blocks until the client takes
//!    them. Those of a light traversal are held until it has ended, up to [`response::BUFFERED_BYTES_MAX`].
//! 5. A request rejected as too heavy for its tier has sent no response and has no side effects.
//! 6. A transaction that another server of the cluster executes is not repeated once that server may have
//!    taken it (`remote`).
//! # Source
//! Apache TinkerPop 3.8, provider documentation, "Network Protocols"; RFC 6455; RFC 4616.
//! # Not here
//! Formats (`vervet-tinkerpop`), Groovy, Kerberos, `permessage-deflate`.

pub(crate) mod access;
mod authorize;
mod connection;
mod digest;
mod error;
mod exchange;
mod fingerprint;
mod forwarded;
mod http;
mod job;
mod remote;
mod request;
mod response;
mod run;
mod session;
mod sessionless;
mod socket;
mod tier;
pub(crate) mod transactions;
mod upgrade;

pub(crate) use exchange::FORWARDED_PATH;
pub(crate) use forwarded::{answer as answer_forwarded, end_idle as end_idle_transactions};
pub(crate) use http::answer;
pub(crate) use socket::serve;

//! Connections between the servers of a cluster: requests and answers as frames over TLS, with certificates
//! at both ends.
//!
//! A [`Peer`] is the client's view of another server, a [`PeerServer`] answers the peers of this one. An
//! [`Authority`] issues the certificates of a cluster. Contents of requests and answers are bytes here.
//!
//! # Shape
//! `frame`: the format of frames. `hello`: the first frame of both ends. `protocol`, `agreement`: versions,
//! and the one on which both ends agree. `error_bytes`: errors as bytes. `stream`: frames over a TLS
//! connection. `client`, `pool`: requests to one server. `server`, `watch`: answers. `addresses`: names of
//! hosts. `faults`: faults that tests add to the connections of a peer. `identity`, `authority`:
//! certificates.
//! # Blocking calls
//! There is no asynchronous runtime. A thread that runs a query writes its requests to all servers that it
//! needs, then reads the answers in turn: requests to several servers are in flight together, and no other
//! thread of this process takes part. Waking a thread on another core costs 17 to 20 microseconds, more than
//! everything else in a small request; threads of a query wait for answers in any case. A connection serves
//! one request at a time. A pool keeps idle connections; a connection on which a request failed, timed out or
//! was abandoned is closed, so an answer cannot reach the wrong request.
//!
//! The serving side has a thread for each connection, which answers inline. A handler that asks other servers
//! must not be able to wait in a circle, neither for an answer nor for a free thread. The client writes a
//! whole request before it reads, the server reads a whole request before it writes: large frames cannot
//! block each other.
//! # Failures
//! Bytes of a peer never end the process: lengths are checked before memory is allocated, buffers grow as
//! bytes arrive, a handler that panics gives an error for its request. Every wait ends: with the deadline or
//! the cancellation of the query ([`vervet_model::ThreadLimits`]), or after [`PEER_TIMEOUT`] without a byte.
//! A server whose handler takes longer sends a frame each second that says so.
//! # Not here
//! Which server owns what; what requests mean; when a request is sent to another server instead.
#![forbid(unsafe_code)]

mod addresses;
mod agreement;
mod authority;
mod client;
mod error_bytes;
mod faults;
mod frame;
mod hello;
mod identity;
mod pool;
mod protocol;
mod server;
mod stream;
mod watch;

pub use authority::{Authority, IdentityFiles};
pub use client::{Counts, Peer, Pending};
pub use faults::{ALWAYS, FaultPlan, Faults};
pub use frame::{ANSWER_BYTES_MAX, PEER_TIMEOUT, REQUEST_BYTES_MAX};
pub use hello::Hello;
pub use identity::Identity;
pub use protocol::{Protocol, ProtocolRange};
pub use server::{CONNECTIONS_MAX, Handler, PeerServer, Refusals};

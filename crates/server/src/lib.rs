//! The HTTP server of Vervet: SPARQL 1.1 Protocol, Graph Store Protocol, Gremlin Server, service description,
//! metrics, users and TLS.
//!
//! docs/server.md is the manual: configuration, security, Gremlin; docs/http.md has the addresses,
//! docs/limits.md the limits.
//!
//! # Shape
//! ```text
//! server    bind, run, reload, shutdown         network     I/O threads, streams, memory of bodies
//! route     URL path -> handler; CORS, errors   security    users and roles, Host and Origin
//! endpoints SPARQL, graph store, console        http        requests, responses, streaming
//! gremlin   /gremlin: WebSocket and HTTP        operations  metrics, running requests
//! state     permits, shared by all requests     admission   admission control: which thread runs a request
//! ```
//! Plain hyper with HTTP/1.1, without a framework: there are a dozen addresses, and limits, cancellation and
//! the exact moment at which a response begins matter more than routing.
//! # Invariants
//! 1. No query runs on an I/O thread, except those known to be short, for 2 ms at most.
//! 2. An incomplete response is aborted, never ended normally.
//! 3. Everything that a client can make large, slow or numerous has a limit in [`Limits`].
//! 4. When a client disconnects, its requests are cancelled.
//! # Not here
//! HTTP/2; sessions other than those of Gremlin.
//!
//! ```
//! use std::io::{Read, Write};
//! use vervet::{Database, Format};
//! use vervet_server::{Server, ServerOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let database = Database::in_memory();
//! database.load_text(Format::Turtle, "<urn:ann> <urn:knows> <urn:bob> .")?;
//! let mut options = ServerOptions::default();
//! options.bind = vec![([127, 0, 0, 1], 0).into()];
//! let server = Server::bind(database, options)?;
//! let (address, stopper) = (server.address()?, server.stopper());
//! let running = std::thread::spawn(move || server.run());
//!
//! let mut connection = std::net::TcpStream::connect(address)?;
//! write!(connection, "GET /query?query=ASK%7B%7D HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
//! let mut answer = String::new();
//! connection.read_to_string(&mut answer)?;
//! assert!(answer.contains("\"boolean\":true"));
//!
//! stopper.stop();
//! running.join().expect("the server does not panic")?;
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod admission;
mod cancel;
mod commit_waits;
mod config;
mod consistency;
mod context;
mod endpoints;
mod forwarding;
mod gremlin;
mod http;
mod load;
mod network;
mod operations;
mod options;
mod route;
mod saved_queries;
mod security;
mod server;
mod settings;
mod state;
mod toml_error;
mod worker_threads;

pub use config::resolve;
pub use endpoints::console::has_console;
pub use options::{
    BIND_DEFAULT, BODY_BYTES_PER_SECOND_MIN, Limits, Role, SLOW_QUERY_DEFAULT, ServerOptions, Tls, User,
};
pub use saved_queries::{QueryLanguage, ResultView, SavedQueries, SavedQuery};
pub use security::auth::hash_password;
pub use server::{Reloader, Server, Stopper};

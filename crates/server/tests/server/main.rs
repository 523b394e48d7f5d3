//! The server over its real protocol: every test starts one on a free loopback port and talks to it.
//!
//! * `w3c`: the W3C suites of the SPARQL Protocol and the Graph Store Protocol, by their manifests.
//! * `protocol`: formats, parameters, errors, compression, CORS.
//! * `store`: the Graph Store Protocol beyond the suite.
//! * `limits`: everything too large, too slow, too long or too numerous.
//! * `mutations`: requests with random damage.
//! * `changes`: the change feed, as responses and as streams of events.
//! * `users`: passwords, tokens, roles, TLS.
//! * `origins`: cross-site pages and DNS rebinding: Host, Origin, CORS, users, WebSockets.
//! * `ending`: disconnecting clients, and shutdown.
//! * `api`: the API of the console, health and metrics.
//! * `running`: running requests, and readiness.
//! * `gremlin`: Gremlin Server.
//! * `clients`: third-party clients, where installed: curl, Python's SPARQLWrapper and rdflib.

mod api;
mod arrow;
mod changes;
mod clients;
mod cluster;
mod common;
mod ending;
mod gremlin;
mod limits;
mod mutations;
mod origins;
mod protocol;
mod running;
mod store;
mod users;
mod w3c;

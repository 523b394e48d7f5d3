//! The server over its real protocol: every test starts one on a free port of loopback and talks to it.
//!
//! * `w3c`: the W3C suites of the SPARQL Protocol and the Graph Store Protocol, as their manifests say.
//! * `protocol`: formats, parameters, errors, compression, CORS.
//! * `store`: the Graph Store Protocol beyond the suite.
//! * `limits`: whatever is too large, too slow, too long or too much.
//! * `mutations`: requests with random damage.
//! * `users`: passwords, tokens, roles, TLS.
//! * `origins`: pages of other sites, names that lead here: Host, Origin, CORS, users, WebSockets.
//! * `ending`: clients that go away, and the end of the server.
//! * `api`: what the page uses, health and metrics.
//! * `running`: what runs, and readiness.
//! * `gremlin`: Gremlin Server.
//! * `clients`: curl, and Python's SPARQLWrapper and rdflib, where they are there.

mod api;
mod clients;
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

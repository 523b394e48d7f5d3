//! Gremlin Server over its real protocol.
//!
//! * `requests`: operations, formats, batches, errors, options.
//! * `sessions`: transactions, conflicts, order.
//! * `users`: SASL, roles, servers that are read-only, pages of other sites.
//! * `limits`: time, sizes, garbage, clients that leave, the end of the server.
//! * `weight`: light and heavy ones.
//! * `http`: the HTTP form.

mod client;
mod http;
mod limits;
mod requests;
mod sessions;
mod users;
mod weight;

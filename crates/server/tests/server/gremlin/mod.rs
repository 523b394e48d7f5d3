//! Gremlin Server over its real protocol.
//!
//! * `requests`: operations, formats, batches, errors, options.
//! * `sessions`: transactions, conflicts, order.
//! * `users`: SASL, roles, read-only servers, pages of other sites.
//! * `limits`: time, sizes, garbage, disconnecting clients, shutdown.
//! * `weight`: light and heavy requests.
//! * `http`: the HTTP form.

mod client;
mod http;
mod limits;
mod requests;
mod sessions;
mod users;
mod weight;

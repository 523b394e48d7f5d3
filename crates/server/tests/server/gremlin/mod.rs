//! Gremlin Server over its real protocol.
//!
//! * `requests`: operations, formats, batches, errors, options.
//! * `sessions`: transactions, conflicts, order.
//! * `forwarded`: sessions and changes at servers of a cluster that do not take changes.
//! * `remote_requests`: requests of other servers at the leader: their end, their list (`servers`).
//! * `users`: SASL, roles, read-only servers, pages of other sites.
//! * `limits`: time, sizes, garbage, disconnecting clients, shutdown.
//! * `weight`: light and heavy requests.
//! * `http`: the HTTP form.

mod client;
mod forwarded;
mod http;
mod limits;
mod remote_requests;
mod requests;
mod servers;
mod sessions;
mod users;
mod weight;

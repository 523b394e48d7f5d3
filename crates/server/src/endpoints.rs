//! Handlers of addresses, except Gremlin.
//!
//! # Shape
//! ```text
//! protocol             /query /update /sparql, with query, update and service_description
//! store                /store (Graph Store Protocol)
//! changes              /changes, the change feed
//! api, console         the web console and its API
//! ```

pub(crate) mod api;
pub(crate) mod changes;
pub(crate) mod cluster;
pub(crate) mod console;
pub(crate) mod protocol;
pub(crate) mod query;
pub(crate) mod service_description;
pub(crate) mod store;
pub(crate) mod update;

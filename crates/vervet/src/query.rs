//! SPARQL queries: parsed, planned, run, and their results.
//!
//! * `prepared`: prepared queries, and the caches of their plans (`cache`).
//! * `reading`: the version of the graph that a query reads, and when a plan is valid for it.
//! * `execute`: runs a plan under limits.
//! * `answer`, `construct`, `writing`: results in memory, graphs, and results written to an output.
//! * `service`: queries to other endpoints.

pub(crate) mod answer;
mod cache;
mod construct;
pub(crate) mod execute;
pub(crate) mod prepared;
pub(crate) mod reading;
pub(crate) mod service;
pub(crate) mod writing;

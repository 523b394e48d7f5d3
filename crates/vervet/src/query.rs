//! SPARQL queries: parsed, planned, run, and their results.
//!
//! * `prepared`: prepared queries. `plans`: parsed queries, and the caches of their plans (`cache`).
//! * `reading`: the version of the graph that a query reads, and when a plan is valid for it.
//! * `run`: runs a plan under limits. `execute`: runs a plan on a database.
//! * `answer`, `construct`, `writing`: results in memory, graphs, and results written to an output.
//! * `federation`: queries to other endpoints, through the client of `service`.

pub(crate) mod answer;
mod cache;
mod construct;
pub(crate) mod execute;
pub(crate) mod federation;
pub(crate) mod plans;
pub(crate) mod prepared;
pub(crate) mod reading;
pub(crate) mod run;
pub(crate) mod service;
pub(crate) mod writing;

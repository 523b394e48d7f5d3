//! SPARQL queries: parsed, planned, run, and their results.
//!
//! * `prepared`: prepared queries. `plans`: parsed queries, and the caches of their plans (`cache`).
//! * `reading`: the version of the graph that a query reads, and when a plan is valid for it.
//! * `run`: runs a plan under limits. `execute`: runs a plan on a database.
//! * `adaptive`: replaces the plan of a run whose rows are far more than expected.
//! * `answer`, `writing`: results in memory, and results written to an output.
//! * `construct`, `describe`: graphs, passed to a `graph_sink` while they are made. `duplicates`: whether
//!   solutions can repeat.
//! * `federation`: queries to other endpoints, through the client of `service`.

pub(crate) mod adaptive;
pub(crate) mod answer;
mod cache;
mod construct;
mod describe;
mod duplicates;
pub(crate) mod execute;
pub(crate) mod federation;
mod graph_sink;
pub(crate) mod plans;
pub(crate) mod prepared;
pub(crate) mod reading;
pub(crate) mod run;
pub(crate) mod service;
pub(crate) mod writing;

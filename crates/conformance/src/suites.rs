//! The suites as tests: each runs here in the form that `cargo test` has time for.
//!
//! They are unit tests, so that the test run compiles this crate and its peers once and links them once.

mod acid;
mod ldbc;
mod tinkerpop;
mod triple_terms;
mod w3c;

//! The suites as unit tests, each in a form short enough for `cargo test`.
//!
//! Unit tests, so that the test run compiles and links this crate and its dependencies once.

mod acid;
mod device;
mod ldbc;
mod tinkerpop;
mod triple_terms;
mod w3c;

//! Tests of the crate from outside, one module a subject, in one program: linked once.

mod against_oxigraph;
mod aggregates;
mod batches;
mod common;
mod functions;
mod search;
mod speed;

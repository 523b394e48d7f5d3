//! Integration tests, one module for each subject, in one binary that is linked once.

mod against_oxigraph;
mod aggregates;
mod batches;
mod common;
mod functions;
mod limits;
mod search;
mod speed;
mod wide;

//! Integration tests of the crate, one module per subject, linked into one program.

mod comparison;
mod corpora;
mod functions;
mod numbers;
mod random;

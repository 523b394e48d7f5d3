//! Tests of the crate from outside, one module a subject, in one program: linked once.

mod comparison;
mod corpora;
mod functions;
mod numbers;
mod random;

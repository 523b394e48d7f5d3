//! Tests of the crate from outside, one module a subject, in one program: linked once.

mod contract;
mod steps;

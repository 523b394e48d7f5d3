//! Tests of the crate from outside, one module a subject, in one program: linked once.

mod common;
mod constraints;
mod crash;
mod life;
mod model;
mod refusals;
mod threads;

//! Tests of the crate from outside, one module a subject, in one program: linked once.

mod common;
mod lubm;
mod random;
mod rules;

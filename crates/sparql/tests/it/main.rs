//! Tests of the crate from outside, one module a subject, in one program: linked once.

mod corpus;
mod scoping;
mod update;

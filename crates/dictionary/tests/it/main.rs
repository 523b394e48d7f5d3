//! Tests of the crate from outside, one module a subject, in one program: linked once.

mod damage;
mod extension;
mod memory;
mod model;
mod real;

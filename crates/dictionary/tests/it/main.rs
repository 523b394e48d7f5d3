//! Integration tests of the crate, one module a subject, linked into one program.

mod damage;
mod extension;
mod memory;
mod model;
mod real;

//! Integration tests of the crate, one module a subject, linked into one program.

mod common;
mod model;
mod threads;

//! Integration tests of the crate, one module a subject, linked into one program.

mod common;
mod constraints;
mod crash;
mod followers;
mod life;
mod model;
mod refusals;
mod threads;

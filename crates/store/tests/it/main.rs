//! Integration tests of the crate, one module a subject, linked into one program.

mod common;
mod crash;
mod damage;
mod key_bitmaps;
mod model;
mod order;

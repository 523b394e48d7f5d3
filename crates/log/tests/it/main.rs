//! Integration tests of the crate, one module a subject, linked into one program.

mod common;
mod crash;
mod damage;
mod durability;
mod group;
mod room;

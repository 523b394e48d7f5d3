//! Tests of the crate from outside, one module a subject, in one program: linked once.

mod common;
mod crash;
mod damage;
mod group;
mod levels;
mod room;

//! Tests of the crate from outside, one module a subject, in one program: linked once.

mod common;
mod crash;
mod database;
mod killed;
mod leftovers;
mod logging;
mod property_graphs;
mod query;
mod serve;
mod service;
mod transactions;
mod update;

//! Integration tests of the crate, one module per subject, in one program that is linked once.

mod book;
mod changes;
mod cluster;
mod common;
mod crash;
mod database;
mod generated;
mod gpu;
mod killed;
mod leftovers;
mod logging;
mod mcp;
mod object_storage;
mod packaging;
mod property_graphs;
mod query;
mod serve;
mod service;
mod shell;
mod transactions;
mod update;

//! Tests of the crate from outside, one module a subject, in one program: linked once.

mod air_routes;
mod algorithms;
mod concurrent;
mod counts;
mod edit;
mod edit_model;
mod exists_substituted;
mod forms;
mod gremlin_chains;
mod gremlin_files;
mod gremlin_kernels;
mod gremlin_random;
mod gremlin_review;
mod gremlin_writes;
mod killed;
mod many_neighbours;
mod paths;
mod property_files;
mod reifiers;
mod round_trip;
mod seek;
mod threads;
mod transactions;
mod triple_terms;
mod update;

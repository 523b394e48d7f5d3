//! Tests of the crate from outside, one module a subject, in one program: linked once.

mod edges;
mod mapping;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "parquet")]
mod parquet_limits;
mod property;
mod rdf;
mod tables;

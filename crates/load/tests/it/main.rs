//! Integration tests of the crate, one module per subject, linked into one program.

mod edges;
mod imports;
mod mapping;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "parquet")]
mod parquet_limits;
mod property;
mod rdf;
mod rows;
mod tables;

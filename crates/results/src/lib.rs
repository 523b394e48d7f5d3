//! Query result writers: SPARQL's TSV, CSV, JSON and XML, Arrow, tables for terminals, graphs in each RDF
//! format.
//!
//! # Shape
//! Results are batches of columns of ids. A [`RowWriter`] reads the terms of a batch from a [`TermSource`]
//! and streams the output; it buffers one batch and never the whole result (a table buffers its first rows to
//! compute its widths). [`ArrowWriter`] knows the types of its columns before it writes a row, so its caller
//! collects the ids of a result first ([`column_type`]).
//! # Cost
//! TSV, the fastest: one call to [`TermSource::write_terms`] per column of a batch, and one copy per cell.
//! Nanoseconds per cell with terms (terms alone: 5.9): TSV 13, CSV 44, JSON 74, XML 130, table 600; 3 million
//! cells, 2026-11-20, `examples/result_speed.rs`.
//! # Source
//! SPARQL 1.1 Query Results CSV and TSV Formats; JSON Format; XML Format, all W3C 2013.
//! # Not here
//! Query execution, compression, content negotiation.
#![forbid(unsafe_code)]

mod arrow;
mod boolean;
mod buffer_pool;
mod cells;
mod csv;
pub mod decimal;
mod format;
mod graph;
mod json;
pub mod lexical;
mod row_format;
mod row_writer;
pub mod scalar;
mod table;
mod term_source;
mod tsv;
mod xml;

pub use arrow::{ArrowWriter, ROWS_KEY, ReadTerm, column_type};
pub use boolean::write_boolean;
pub use format::Format;
pub use graph::{GraphWriter, read_triple};
pub use row_writer::RowWriter;
pub use scalar::ColumnType;
pub use table::TableOptions;
pub use term_source::TermSource;

//! The types that kernels are written against: batches, the rest of a pipeline, limits, shared state.

pub(crate) mod batch;
pub(crate) mod chain;
pub(crate) mod combined_rows;
pub(crate) mod control;
pub(crate) mod first_rows;
pub(crate) mod gate;
pub(crate) mod join_table;
pub(crate) mod nodes;
pub(crate) mod partial;
pub(crate) mod range_index;
pub(crate) mod row_table;
pub(crate) mod shared;
pub(crate) mod table;
pub(crate) mod watched;

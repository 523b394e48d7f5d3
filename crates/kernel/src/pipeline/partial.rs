//! Partial states of barriers: what the copies of a group or of an order have gathered, to be merged into
//! one.

use crate::pipeline::row_table::RowTable;
use crate::pipeline::table::Table;
use vervet_algebra::Variable;
use vervet_expression::{Accumulators, SortKey};

/// Partial state of one copy of a barrier.
pub struct Partial<'a>(pub(crate) Gathered<'a>);

pub(crate) enum Gathered<'a> {
    Groups {
        keys: RowTable,
        aggregates: Vec<(Variable, Accumulators<'a>)>,
        counted_bytes: u64,
    },
    Sorted {
        table: Table,
        sort_keys: Vec<Vec<SortKey>>,
        /// Positions in `table`, in order.
        rows: Vec<u32>,
        counted_bytes: u64,
    },
}

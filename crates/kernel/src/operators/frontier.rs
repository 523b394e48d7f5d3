//! Frontiers: best-effort deduplication under set semantics.

use crate::pipeline::batch::{Batch, Keep};
use crate::pipeline::chain::{Chain, Flow, Kernel};
use crate::pipeline::first_rows::{FirstRows, FirstRowsOfStep};
use vervet_algebra::Variable;
use vervet_model::{Result, lock};

/// Best-effort deduplication under set semantics. Each copy of a pipeline has its own, unless
/// [`SharedFrontiers`] are at hand.
pub(crate) struct Frontier {
    rows: FrontierRows,
    keep: Keep,
    selection: Vec<u32>,
    counted_bytes: u64,
}

enum FrontierRows {
    Own(FirstRows),
    Shared(FirstRowsOfStep),
}

impl Frontier {
    pub(crate) fn new(variables: &[Variable], keep: Keep, shared: Option<FirstRowsOfStep>) -> Self {
        let own = || FrontierRows::Own(FirstRows::new(variables));
        Self {
            rows: shared.map_or_else(own, FrontierRows::Shared),
            keep,
            selection: Vec::new(),
            counted_bytes: 0,
        }
    }
}

impl<'a> Kernel<'a> for Frontier {
    fn push(&mut self, batch: &mut Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        batch.multiplicity.clear();
        let run = *next.run();
        let (vertices, first) = (run.snapshot.vertex_count(), &mut self.selection);
        let is_selected = match &mut self.rows {
            FrontierRows::Own(rows) => {
                let is_selected = rows.select(batch, vertices, first)?;
                run.control.recount(&mut self.counted_bytes, rows.size_bytes())?;
                rows.end_trial();
                is_selected
            }
            FrontierRows::Shared(rows) => lock(rows).select(batch, vertices, first, run.control)?,
        };
        if is_selected {
            batch.select(first, &self.keep);
        } else {
            batch.drop_all_but(&self.keep);
        }
        next.push(batch)
    }
}

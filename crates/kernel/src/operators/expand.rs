//! Expand: the neighbours of a bound key for each row, optionally with edge ids.
//!
//! # Cost
//! One call of the segment for each batch, which locates all keys before it copies entries, so cache misses
//! overlap; then one copy of each carried column. If every row has exactly one neighbour, the carried columns
//! are moved, not copied.

use crate::operators::claims::Claims;
use crate::pipeline::batch::{Batch, Keep};
use crate::pipeline::chain::{Answered, Chain, Flow, Kernel, operand_column};
use crate::plan::Operand;
use vervet_algebra::Variable;
use vervet_model::{Id, Result};
use vervet_snapshot::{Cursor, EntryFilter, Expansion, Segment};

pub(crate) struct Expand<'a> {
    pub segment: &'a dyn Segment,
    pub filter: EntryFilter,
    pub key: Operand,
    pub neighbour: Variable,
    pub edge: Option<Variable>,
    pub keep: Keep,
    pub keys: Vec<Id>,
    pub expansion: Expansion,
    pub out: Batch,
}

impl<'a> Expand<'a> {
    pub(crate) fn new(
        (segment, filter): (&'a dyn Segment, EntryFilter),
        key: Operand,
        neighbour: Variable,
        edge: Option<Variable>,
        keep: Keep,
        variables: usize,
    ) -> Self {
        debug_assert!(edge != Some(neighbour), "edge and neighbour share a column");
        Self {
            segment,
            filter,
            key,
            neighbour,
            edge,
            keep,
            keys: Vec::new(),
            expansion: Expansion { want_edges: edge.is_some(), ..Expansion::default() },
            out: Batch::new(variables),
        }
    }
}

impl<'a> Expand<'a> {
    /// Claims some entries of the rows of `batch`, at most `entries_max`, and pushes them. `None`: no entries
    /// are left.
    pub(crate) fn push_next(
        &mut self,
        batch: &Batch,
        claims: &Claims,
        entries_max: usize,
        next: &mut Chain<'_, 'a>,
    ) -> Result<Option<Flow>> {
        self.expansion.clear();
        if !claims.expand_next(self.segment, self.filter, entries_max, &mut self.expansion)? {
            return Ok(None);
        }
        self.out.gather(batch, &self.expansion.rows, &self.keep);
        let (neighbour, edge) = (self.neighbour, self.edge);
        swap_found(neighbour, edge, &mut self.out, &mut self.expansion);
        self.out.drop_all_but(&self.keep);
        next.push(&mut self.out).map(Some)
    }
}

impl<'a> Kernel<'a> for Expand<'a> {
    fn push(&mut self, batch: &mut Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        let mut rows = Rows::new(next, self.segment);
        let mut cursor = Cursor::default();
        while rows.skip_answered(batch, &mut cursor) {
            self.expansion.capacity = rows.capacity;
            let first = cursor == Cursor::default();
            self.expansion.clear();
            let keys = operand_column(self.key, batch, &mut self.keys);
            self.segment.expand(keys, self.filter, &mut cursor, &mut self.expansion)?;
            let each_once = first
                && cursor.row == batch.rows
                && self.expansion.len() == batch.rows
                && self.expansion.rows.iter().zip(0_u32..).all(|(&row, expected)| row == expected);
            let (neighbour, edge) = (self.neighbour, self.edge);
            if each_once {
                // The kernel owns the input, and this is its last use.
                swap_found(neighbour, edge, batch, &mut self.expansion);
                batch.drop_all_but(&self.keep);
                let flow = next.push(batch);
                swap_found(neighbour, edge, batch, &mut self.expansion);
                return flow;
            }
            self.out.gather(batch, &self.expansion.rows, &self.keep);
            swap_found(neighbour, edge, &mut self.out, &mut self.expansion);
            if next.push(&mut self.out)? == Flow::Done {
                return Ok(Flow::Done);
            }
            rows.adapt(batch, &self.expansion.rows);
        }
        Ok(Flow::More)
    }
}

/// Entries that are read at a time from a long list of neighbours, if one may be enough.
const ENTRIES_FEW: usize = 16;

/// The same at other servers, where few entries take nearly as long as more.
const ENTRIES_FEW_REMOTE: usize = 128;

/// The rows of a batch that are expanded, of which some may be answered meanwhile.
struct Rows<'c> {
    answered: Option<&'c Answered>,
    capacity: usize,
    capacity_min: usize,
    capacity_max: usize,
}

impl<'c> Rows<'c> {
    fn new(next: &Chain<'c, '_>, segment: &dyn Segment) -> Self {
        let (answered, capacity) = (next.answered(), next.run().control.batch_rows());
        let capacity_min = match answered.is_some() && segment.is_remote(None) {
            true => ENTRIES_FEW_REMOTE,
            false => ENTRIES_FEW,
        };
        Self { answered, capacity, capacity_min, capacity_max: capacity }
    }

    /// Moves on to the next row that is not answered; `false`: there is none.
    fn skip_answered(&self, batch: &Batch, cursor: &mut Cursor) -> bool {
        if let Some(answered) = self.answered {
            while cursor.row < batch.rows && answered.has(batch, cursor.row) {
                *cursor = Cursor::at(cursor.row + 1);
            }
        }
        cursor.row < batch.rows
    }

    /// Entries of `rows` were pushed. Fewer the next time, if all were of one row, which is answered now.
    fn adapt(&mut self, batch: &Batch, rows: &[u32]) {
        let (Some(answered), Some(first), Some(last)) = (self.answered, rows.first(), rows.last()) else {
            return;
        };
        let is_answered = first == last && answered.has(batch, *first as usize);
        let capacity = match is_answered {
            true => (self.capacity / 4).max(self.capacity_min),
            false => self.capacity.saturating_mul(2),
        };
        self.capacity = capacity.min(self.capacity_max);
    }
}

/// Swaps the vectors of an expansion with the target columns, without copy or allocation.
fn swap_found(neighbour: Variable, edge: Option<Variable>, batch: &mut Batch, found: &mut Expansion) {
    std::mem::swap(&mut batch.columns[neighbour.index()], &mut found.neighbours);
    if let Some(edge) = edge {
        std::mem::swap(&mut batch.columns[edge.index()], &mut found.edges);
    }
}

/// Expand without listing neighbours: multiplies the multiplicity by the degree.
pub(crate) struct Degree<'a> {
    pub segment: &'a dyn Segment,
    pub filter: EntryFilter,
    pub key: Operand,
    pub keep: Keep,
    pub keys: Vec<Id>,
    pub degrees: Vec<u64>,
    pub selection: Vec<u32>,
}

impl<'a> Kernel<'a> for Degree<'a> {
    fn push(&mut self, batch: &mut Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        let keys = operand_column(self.key, batch, &mut self.keys);
        self.segment.degrees(keys, self.filter, &mut self.degrees)?;
        batch.multiply(&self.degrees, &mut self.selection, &self.keep)?;
        next.push(batch)
    }
}

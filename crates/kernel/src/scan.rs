//! Scan and seek: all entries of a segment, or those of some keys, for each incoming row.
//!
//! # Cost
//! Keys are listed in batches and expanded like any other column, so a scan costs what reading the
//! segment in order costs. Literals of a seek come in the order of their texts, so that they are looked up
//! like any other column.

use crate::batch::{BATCH_ROWS, Batch, Keep};
use crate::chain::{Chain, Flow, Kernel, Run};
use crate::plan::{Among, Texts};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use vervet_algebra::Variable;
use vervet_model::{Id, Result};
use vervet_snapshot::{Cursor, EntryFilter, Expansion, Segment, Snapshot};

pub(crate) struct Scan<'a> {
    pub snapshot: &'a dyn Snapshot,
    pub segment: &'a dyn Segment,
    /// `None`: all keys.
    pub among: Option<&'a Among>,
    pub filter: EntryFilter,
    pub key: Variable,
    pub neighbour: Option<Variable>,
    pub keep: Keep,
    pub keys: Batch,
    pub expansion: Expansion,
    pub degrees: Vec<u64>,
    pub selection: Vec<u32>,
    /// See [`Scan::list_literals`].
    pub listed: Option<Vec<Id>>,
    pub out: Batch,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(
        (segment, filter): (&'a dyn Segment, EntryFilter),
        among: Option<&'a Among>,
        key: Variable,
        neighbour: Option<Variable>,
        keep: Keep,
        run: &Run<'a>,
    ) -> Self {
        Self {
            snapshot: run.snapshot,
            segment,
            among,
            filter,
            key,
            neighbour,
            keep,
            keys: Batch::new(1),
            expansion: Expansion::new(BATCH_ROWS),
            degrees: Vec::new(),
            selection: Vec::new(),
            listed: None,
            out: Batch::new(run.variables),
        }
    }

    /// Writes the outer row `row` of `batch` beside `rows` new rows.
    fn repeat_outer(&mut self, batch: &Batch, row: usize, rows: usize) {
        let new = [Some(self.key.index()), self.neighbour.map(Variable::index)];
        for &column in &self.keep.columns {
            if new.contains(&Some(column)) {
                continue;
            }
            let target = &mut self.out.columns[column];
            target.clear();
            if let Some(&id) = batch.columns[column].get(row) {
                target.resize(rows, id);
            }
        }
        self.out.multiplicity.clear();
        if !batch.multiplicity.is_empty() {
            self.out.multiplicity.resize(rows, batch.times(row));
        }
        self.out.rows = rows;
    }

    /// Pushes, for one row, the entries of the keys between these two, both included.
    fn push_range(
        &mut self,
        batch: &Batch,
        row: usize,
        (first, last): (Id, Id),
        next: &mut Chain<'_, 'a>,
    ) -> Result<Flow> {
        let mut next_key = Some(first);
        while let Some(from) = next_key {
            let keys = &mut self.keys.columns[0];
            keys.clear();
            next_key = self.segment.keys_up_to(from, last, next.run().control.batch_rows(), keys)?;
            if self.push_keys(batch, row, next)? == Flow::Done {
                return Ok(Flow::Done);
            }
        }
        Ok(Flow::More)
    }

    /// Takes from `place` on (a row of `batch`, and the key to go on with) up to `capacity` keys and pushes
    /// their entries. `None`: there are no more. Other threads wait while keys are listed, for about a
    /// microsecond.
    pub(crate) fn push_next(
        &mut self,
        batch: &Batch,
        place: &Mutex<(usize, Id)>,
        capacity: usize,
        next: &mut Chain<'_, 'a>,
    ) -> Result<Option<Flow>> {
        let keys = &mut self.keys.columns[0];
        keys.clear();
        let row = {
            // A place is whole at any time, so a panic elsewhere does not spoil it.
            let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
            let (row, from) = *place;
            if row >= batch.rows {
                return Ok(None);
            }
            let next_key = self.segment.keys(from, capacity, keys)?;
            *place = next_key.map_or((row + 1, Id::UNBOUND), |next_key| (row, next_key));
            row
        };
        self.push_keys(batch, row, next).map(Some)
    }

    /// Those literals at these positions of their order that are keys.
    fn push_literals(
        &mut self,
        range: &Range<u64>,
        batch: &Batch,
        row: usize,
        next: &mut Chain<'_, 'a>,
    ) -> Result<Flow> {
        let mut position = range.start;
        while position < range.end {
            let end = range.end.min(position + next.run().control.batch_rows() as u64);
            self.keys.columns[0].clear();
            self.snapshot.literals_in_order(position..end, &mut self.keys.columns[0])?;
            position = end;
            // Literals that are no keys put out nothing, so nobody else would count this work.
            next.run().control.work(self.keys.columns[0].len())?;
            if self.push_keys(batch, row, next)? == Flow::Done {
                return Ok(Flow::Done);
            }
        }
        Ok(Flow::More)
    }

    /// Lists, once for all rows, the literals that came after the order was made, or that a search may find.
    fn list_literals(&mut self, among: &Among, run: &Run<'a>) -> Result<()> {
        if self.listed.is_some() {
            return Ok(());
        }
        let mut listed = Vec::new();
        if let Some(Texts { from, to }) = &among.texts {
            self.snapshot.later_literals(from, to.as_deref(), &mut listed)?;
        }
        if let Some(search) = &among.search {
            self.snapshot.search(search, &mut listed)?;
        }
        run.control.grow(8 * listed.capacity() as u64)?;
        self.listed = Some(listed);
        Ok(())
    }

    /// Those of the listed literals that are keys.
    fn push_listed(&mut self, batch: &Batch, row: usize, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        let mut position = 0;
        while let Some(literals) = self.listed.as_ref().and_then(|listed| listed.get(position..))
            && !literals.is_empty()
        {
            let literals = &literals[..literals.len().min(next.run().control.batch_rows())];
            self.keys.columns[0].clear();
            self.keys.columns[0].extend_from_slice(literals);
            position += literals.len();
            next.run().control.work(literals.len())?;
            if self.push_keys(batch, row, next)? == Flow::Done {
                return Ok(Flow::Done);
            }
        }
        Ok(Flow::More)
    }

    fn push_keys(&mut self, batch: &Batch, row: usize, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        let keys = &self.keys.columns[0];
        debug_assert!(keys.len() <= BATCH_ROWS, "keys come in batches");
        let Some(neighbour) = self.neighbour else {
            self.segment.degrees(keys, self.filter, &mut self.degrees)?;
            self.repeat_outer(batch, row, self.keys.columns[0].len());
            self.out.columns[self.key.index()].clone_from(&self.keys.columns[0]);
            self.out.multiply(&self.degrees, &mut self.selection, &self.keep)?;
            return next.push(&mut self.out);
        };
        let mut cursor = Cursor::default();
        self.expansion.capacity = next.run().control.batch_rows();
        while cursor.row < self.keys.columns[0].len() {
            self.expansion.clear();
            self.segment.expand(&self.keys.columns[0], self.filter, &mut cursor, &mut self.expansion)?;
            self.repeat_outer(batch, row, self.expansion.len());
            let target = &mut self.out.columns[self.key.index()];
            target.clear();
            target.extend(self.expansion.rows.iter().map(|&row| self.keys.columns[0][row as usize]));
            self.out.columns[neighbour.index()].clone_from(&self.expansion.neighbours);
            self.out.drop_all_but(&self.keep);
            if next.push(&mut self.out)? == Flow::Done {
                return Ok(Flow::Done);
            }
        }
        Ok(Flow::More)
    }
}

impl<'a> Kernel<'a> for Scan<'a> {
    fn push(&mut self, batch: &mut Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        for row in 0..batch.rows {
            let all = [(Id::UNBOUND, Id::from_bits(u64::MAX))];
            let ranges = self.among.map_or(all.as_slice(), |among| among.keys.as_slice());
            debug_assert!(ranges.is_sorted_by(|a, b| a.1 < b.0), "ranges of keys are apart");
            for range in ranges {
                if self.push_range(batch, row, *range, next)? == Flow::Done {
                    return Ok(Flow::Done);
                }
            }
            if let Some(among) = self.among
                && self.push_literals(&among.literals, batch, row, next)? == Flow::Done
            {
                return Ok(Flow::Done);
            }
            if let Some(among) = self.among {
                self.list_literals(among, next.run())?;
                if self.push_listed(batch, row, next)? == Flow::Done {
                    return Ok(Flow::Done);
                }
            }
        }
        Ok(Flow::More)
    }
}

//! Scan and seek: all entries of a segment, or those of candidate keys, for each input row.
//!
//! # Cost
//! Keys are listed in batches and expanded like any other column, so a scan costs as much as a sequential
//! read of the segment. Literals of a seek are in text order, so they are looked up like any other column.

use crate::operators::candidate_keys::CandidateKeyIter;
use crate::pipeline::batch::{BATCH_ROWS, Batch, Keep};
use crate::pipeline::chain::{Chain, Flow, Kernel, Run};
use crate::plan::CandidateKeys;
use std::sync::{Mutex, PoisonError};
use vervet_algebra::Variable;
use vervet_model::{Id, Result};
use vervet_snapshot::{Cursor, EntryFilter, Expansion, Segment};

/// The first keys of a scan of which one entry may be enough.
const KEYS_FEW: usize = 16;

pub(crate) struct Scan<'a> {
    pub segment: &'a dyn Segment,
    /// Candidate keys of a seek; `None`: all keys.
    pub candidates: Option<CandidateKeyIter<'a>>,
    pub filter: EntryFilter,
    pub key: Variable,
    pub neighbour: Option<Variable>,
    pub keep: Keep,
    pub keys: Batch,
    pub expansion: Expansion,
    pub degrees: Vec<u64>,
    pub selection: Vec<u32>,
    pub out: Batch,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(
        (segment, filter): (&'a dyn Segment, EntryFilter),
        candidates: Option<&'a CandidateKeys>,
        key: Variable,
        neighbour: Option<Variable>,
        keep: Keep,
        run: &Run<'a>,
    ) -> Self {
        Self {
            segment,
            candidates: candidates.map(CandidateKeyIter::new),
            filter,
            key,
            neighbour,
            keep,
            keys: Batch::new(1),
            expansion: Expansion::new(BATCH_ROWS),
            degrees: Vec::new(),
            selection: Vec::new(),
            out: Batch::new(run.variables),
        }
    }

    /// Repeats the outer row `row` of `batch` for `rows` new rows.
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

    /// Pushes, for one row, the entries of all keys.
    pub(crate) fn push_all(&mut self, batch: &Batch, row: usize, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        let mut next_key = Some(Id::UNBOUND);
        // Where one entry may be enough, the first keys are few.
        let mut few = if next.answered().is_some() { KEYS_FEW } else { usize::MAX };
        while let Some(from) = next_key.filter(|_| !is_answered(batch, row, next)) {
            next.run().control.work(1)?;
            let keys = &mut self.keys.columns[0];
            keys.clear();
            next_key = self.segment.keys(from, next.run().control.batch_rows().min(few), keys)?;
            few = few.saturating_mul(4);
            if self.push_keys(batch, row, next)? == Flow::Done {
                return Ok(Flow::Done);
            }
        }
        Ok(Flow::More)
    }

    /// Pushes, for one row, the entries of some keys.
    fn push_candidates(
        &mut self,
        candidates: &mut CandidateKeyIter<'a>,
        batch: &Batch,
        row: usize,
        next: &mut Chain<'_, 'a>,
    ) -> Result<Flow> {
        candidates.restart();
        while !is_answered(batch, row, next)
            && candidates.next(self.segment, next.run(), &mut self.keys.columns[0])?
        {
            if self.push_keys(batch, row, next)? == Flow::Done {
                return Ok(Flow::Done);
            }
        }
        Ok(Flow::More)
    }

    /// Takes up to `capacity` keys from `place` on (a row of `batch`, and the next key) and pushes their
    /// entries. `None`: no keys are left. Other threads block while keys are listed, for about a microsecond.
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
            // A place is consistent at any time, so a panic elsewhere does not corrupt it.
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
        while cursor.row < self.keys.columns[0].len() && !is_answered(batch, row, next) {
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

/// Whether what else is found for a row is of no use.
fn is_answered(batch: &Batch, row: usize, next: &Chain<'_, '_>) -> bool {
    next.answered().is_some_and(|answered| answered.has(batch, row))
}

impl<'a> Kernel<'a> for Scan<'a> {
    fn push(&mut self, batch: &mut Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        for row in 0..batch.rows {
            let flow = match self.candidates.take() {
                None => self.push_all(batch, row, next)?,
                Some(mut candidates) => {
                    // Restored on every exit: batches may follow `Done`.
                    let flow = self.push_candidates(&mut candidates, batch, row, next);
                    self.candidates = Some(candidates);
                    flow?
                }
            };
            if flow == Flow::Done {
                return Ok(Flow::Done);
            }
        }
        Ok(Flow::More)
    }
}

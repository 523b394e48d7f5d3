//! The *probe* method of an intersection: each vertex of the prefix is checked in the last leg.

use crate::operators::intersect::leg::OrderedLegs;
use crate::operators::intersect::output::IntersectOutput;
use crate::operators::intersect::prefix::Prefix;
use crate::pipeline::chain::{Chain, Flow};
use vervet_model::{Id, Result};

/// Pairs that are checked at other servers with one call.
pub(crate) const REMOTE_PAIRS: usize = 1 << 14;

/// Pairs of a row and a candidate, to be checked in the last leg.
#[derive(Default)]
pub(crate) struct Probe {
    rows: Vec<u32>,
    candidates: Vec<Id>,
    keys: Vec<Id>,
    hits: Vec<u32>,
}

impl Probe {
    /// Processes a batch.
    pub(crate) fn run(
        &mut self,
        input: OrderedLegs<'_, '_>,
        prefix: &mut Prefix,
        output: &mut IntersectOutput,
        next: &mut Chain<'_, '_>,
    ) -> Result<Flow> {
        self.rows.clear();
        self.candidates.clear();
        for row in 0..input.batch.rows {
            if input.has_empty_leg(row) {
                continue;
            }
            prefix.load(input, row, next.run().control)?;
            let list = prefix.list();
            let mut done = 0;
            while done < list.len() {
                let most = match input.last().is_probe_remote() {
                    true => REMOTE_PAIRS,
                    false => next.run().control.batch_rows(),
                };
                let take = most.saturating_sub(self.rows.len()).min(list.len() - done);
                let number = u32::try_from(row).unwrap_or(u32::MAX);
                self.rows.resize(self.rows.len() + take, number);
                self.candidates.extend_from_slice(&list[done..done + take]);
                done += take;
                if self.rows.len() >= most && self.check(input, output, next)? == Flow::Done {
                    return Ok(Flow::Done);
                }
            }
        }
        self.check(input, output, next)
    }

    /// Checks the collected pairs in the last leg.
    fn check(
        &mut self,
        input: OrderedLegs<'_, '_>,
        output: &mut IntersectOutput,
        next: &mut Chain<'_, '_>,
    ) -> Result<Flow> {
        next.run().control.check()?;
        let leg = input.last();
        self.keys.clear();
        self.keys.extend(self.rows.iter().map(|&row| leg.keys[row as usize]));
        self.hits.clear();
        match leg.reverse() {
            Some(reverse) if leg.probe().0 => {
                reverse.check(&self.candidates, &self.keys, leg.filter, &mut self.hits)?;
            }
            _ => leg.check(&self.keys, &self.candidates, &mut self.hits)?,
        }
        for &hit in &self.hits {
            let (row, id) = (self.rows[hit as usize], self.candidates[hit as usize]);
            if output.add(input.batch, row, id, next)? == Flow::Done {
                return Ok(Flow::Done);
            }
        }
        self.rows.clear();
        self.candidates.clear();
        Ok(Flow::More)
    }
}

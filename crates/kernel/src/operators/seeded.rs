//! Seeded left join: an optional part evaluated from the distinct values of one column.
//!
//! # Shape
//! [`crate::operators::optional`] explores from each row; this kernel explores once from each distinct value
//! of the column `seed` in a batch, and joins the result with the rows of the batch by all shared variables.
//! So a part that connects two columns (posts of *this person* in *this forum*) is read from its cheaper end,
//! once for all rows that share that end. The rows of the batch are the hash table: results without a partner
//! are dropped at once.
//! # Cost
//! For each row of the batch and each result row, a look-up in a table of at most
//! [`crate::pipeline::batch::BATCH_ROWS`] rows; the inner pipeline for each seed and batch. Memory: a few
//! batches.
//! # Source
//! Magic sets and sideways information passing: F. Bancilhon et al., PODS 1986.

use crate::pipeline::batch::{BATCH_ROWS, Batch, Keep};
use crate::pipeline::chain::{Chain, Flow, Kernel, Run, Stage};
use crate::pipeline::control::Control;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use vervet_algebra::Variable;
use vervet_model::{Id, Result};

/// Ends a chain of rows.
const END: u32 = u32::MAX;

/// The kernel of a seeded left join; see the header.
pub(crate) struct Seeded<'a> {
    pub inner: Vec<Stage<'a>>,
    pub seed: Variable,
    pub on: &'a [Variable],
    pub adds: &'a [Variable],
    pub keep: Keep,
    /// The kept columns of the input rows.
    pub before: Keep,
    pub input: Batch,
    pub rows: RowIndex,
    pub pairs: Vec<(u32, u32)>,
    pub out: Batch,
}

/// Hash index of the rows of a batch by some columns; rows with an equal hash are an ascending chain.
#[derive(Default)]
pub(crate) struct RowIndex {
    first: FxHashMap<u64, u32>,
    next: Vec<u32>,
}

impl RowIndex {
    fn fill(&mut self, on: &[Variable], batch: &Batch, control: &Control<'_>) -> Result<()> {
        control.work(batch.rows)?;
        self.first.clear();
        self.next.clear();
        self.next.resize(batch.rows, END);
        // In reverse order, so that each chain ascends.
        for row in (0..batch.rows).rev() {
            let number = u32::try_from(row).unwrap_or(END);
            if let Some(following) = self.first.insert(hash(on, batch, row), number) {
                self.next[row] = following;
            }
        }
        Ok(())
    }
}

fn hash(on: &[Variable], batch: &Batch, row: usize) -> u64 {
    let mut hasher = FxHasher::default();
    on.iter().for_each(|variable| batch.value(*variable, row).hash(&mut hasher));
    hasher.finish()
}

/// Joins `pairs` of an input row and a result row into `out`.
fn join(
    out: &mut Batch,
    pairs: &mut Vec<(u32, u32)>,
    (batch, before): (&Batch, &Keep),
    (found, adds): (&Batch, &[Variable]),
) -> Result<()> {
    let rows: Vec<u32> = pairs.iter().map(|pair| pair.0).collect();
    out.gather(batch, &rows, before);
    for &variable in adds {
        let column = &mut out.columns[variable.index()];
        column.clear();
        column.extend(pairs.iter().map(|pair| found.value(variable, pair.1 as usize)));
    }
    if !found.multiplicity.is_empty() {
        out.multiplicity = (pairs.iter())
            .map(|&(row, other)| batch.times(row as usize).times(found.times(other as usize)))
            .collect::<Result<_>>()?;
    }
    pairs.clear();
    Ok(())
}

impl<'a> Kernel<'a> for Seeded<'a> {
    fn push(&mut self, batch: &mut Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        let run = *next.run();
        let Self { inner, seed, on, adds, keep, before, input, rows, pairs, out } = self;
        rows.fill(on, batch, run.control)?;
        input.clear();
        let seeds = &mut input.columns[seed.index()];
        seeds.extend((0..batch.rows).map(|row| batch.value(*seed, row)));
        // Equal values are mostly adjacent.
        seeds.dedup();
        seeds.sort_unstable();
        seeds.dedup();
        debug_assert!(seeds.iter().all(|seed: &Id| seed.is_bound()), "a seed is bound in every row");
        input.rows = seeds.len();
        pairs.clear();
        let mut matched = vec![false; batch.rows];
        let mut flow = Flow::More;
        let mut sink = |found: &mut Batch, run: &Run<'a>| {
            for other in 0..found.rows {
                let mut at = rows.first.get(&hash(on, found, other)).copied().unwrap_or(END);
                while at != END {
                    let row = at;
                    at = rows.next[row as usize];
                    run.control.work(1)?;
                    if on.iter().any(|of| batch.value(*of, row as usize) != found.value(*of, other)) {
                        continue;
                    }
                    matched[row as usize] = true;
                    pairs.push((row, u32::try_from(other).unwrap_or(END)));
                    if pairs.len() == BATCH_ROWS {
                        join(out, pairs, (batch, before), (found, adds))?;
                        flow = next.push(out)?;
                        if flow == Flow::Done {
                            return Ok(flow);
                        }
                    }
                }
            }
            if !pairs.is_empty() {
                join(out, pairs, (batch, before), (found, adds))?;
                flow = next.push(out)?;
            }
            Ok(flow)
        };
        Chain::new(inner, &mut sink, &run).push(input)?;
        if flow == Flow::Done {
            return Ok(flow);
        }
        let alone: Vec<u32> =
            (0_u32..).zip(&matched).filter(|(_, matched)| !**matched).map(|(row, _)| row).collect();
        batch.select(&alone, keep);
        next.push(batch)
    }

    fn inner(&self) -> Vec<&Stage<'a>> {
        self.inner.iter().collect()
    }
}

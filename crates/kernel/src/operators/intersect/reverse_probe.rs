//! The *reverse* method of an intersection: the prefix is expanded in the reverse direction of the last leg.
//!
//! Rows that share a prefix are a *run*, adjacent or made adjacent by sorting. Probing reads each vertex of
//! the prefix once for each row of the run; this method reads it once for the run: it lists the neighbours in
//! the reverse direction, and finds those that are keys of the last leg in the run, which are sorted. Most
//! neighbours are no keys of the run; a [`KeyFilter`] rejects these without a search.
//! # Cost
//! For each run, the length of its prefix times (one key look-up, and some 2 ns for each neighbour). LUBM-40
//! Q1 has runs of 20 rows: 2,200 expansions instead of 44,000 checks, 0.1 ms instead of 1.1 (2026-11-21).
//! # Not here
//! The choice of the method: `intersect.rs`.

use crate::operators::intersect::leg::{IntersectLeg, OrderedLegs};
use crate::operators::intersect::output::IntersectOutput;
use crate::operators::intersect::prefix::Prefix;
use crate::pipeline::chain::{Chain, Flow};
use std::ops::Range;
use vervet_model::{Id, Result};
use vervet_snapshot::{Cursor, Expansion, Segment};

/// Maximum number of prefix vertices, and of entries, listed at a time: 192 KiB each.
const BLOCK_ENTRIES: usize = 1 << 14;

/// Words of a [`KeyFilter`]: half a kilobyte, so that few of the 1,024 keys of a batch share a bit.
const FILTER_WORDS: usize = 64;

/// A bit for each key of a run, by the low bits of its id: vertices are numbered consecutively.
#[derive(Default)]
struct KeyFilter {
    words: Vec<u64>,
}

impl KeyFilter {
    fn fill(&mut self, keys: &[(Id, u32)]) {
        self.words.clear();
        self.words.resize(FILTER_WORDS, 0);
        for (key, _) in keys {
            let (word, bit) = Self::place(*key);
            self.words[word] |= bit;
        }
    }

    /// Whether the key may be in the run.
    #[inline]
    fn may_contain(&self, key: Id) -> bool {
        let (word, bit) = Self::place(key);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    #[inline]
    fn place(key: Id) -> (usize, u64) {
        let bits = key.bits();
        (usize::try_from(bits / 64 % FILTER_WORDS as u64).unwrap_or(0), 1 << (bits % 64))
    }
}

/// Buffers of the method.
#[derive(Default)]
pub(crate) struct ReverseProbe {
    /// All rows; those of a run are adjacent.
    rows: Vec<u32>,
    /// Runs as ranges of `rows`.
    runs: Vec<Range<usize>>,
    /// For each position in `rows` the key in the last leg and the row; sorted within each run.
    keys: Vec<(Id, u32)>,
    /// Prefix vertices; their `rows` are numbers of runs in the current block.
    prefixes: Expansion,
    /// Neighbours of the prefix vertices; their `rows` are positions in `prefixes`.
    entries: Expansion,
    filter: KeyFilter,
    counted_bytes: u64,
}

impl ReverseProbe {
    /// Finds the runs, of adjacent rows or, with `sort`, of all rows with equal keys in the legs of the
    /// prefix. Returns the number of runs, and upper bounds on the number of prefix vertices: summed over
    /// runs, and over rows.
    pub(crate) fn arrange(&mut self, input: OrderedLegs<'_, '_>, sort: bool) -> (usize, u64, u64) {
        let OrderedLegs { batch, legs, prefix: order, .. } = input;
        self.rows.clear();
        self.rows.extend(0..u32::try_from(batch.rows).unwrap_or(u32::MAX));
        let keys_of = |row: u32| order.iter().map(move |&leg| legs[leg].keys[row as usize]);
        if sort {
            self.rows.sort_unstable_by(|a, b| keys_of(*a).cmp(keys_of(*b)));
        }
        self.runs.clear();
        let (mut runs, mut of_runs, mut of_rows, mut start) = (0, 0, 0, 0);
        for run in self.rows.chunk_by(|a, b| keys_of(*a).eq(keys_of(*b))) {
            let first = run[0] as usize;
            let shortest = order.iter().map(|&leg| legs[leg].degrees[first]).min().unwrap_or(0);
            if shortest > 0 {
                self.runs.push(start..start + run.len());
            }
            start += run.len();
            runs += 1;
            of_runs += shortest;
            of_rows += shortest * run.len() as u64;
        }
        (runs, of_runs, of_rows)
    }

    /// Sorts the keys of the last leg within each run.
    fn start(&mut self, last: &IntersectLeg<'_>) {
        self.keys.clear();
        self.keys.extend(self.rows.iter().map(|&row| (last.keys[row as usize], row)));
        for run in &self.runs {
            self.keys[run.clone()].sort_unstable();
        }
    }

    fn recount(&mut self, next: &Chain<'_, '_>) -> Result<()> {
        // 12 bytes: a row number and a neighbour.
        let listed = self.prefixes.neighbours.capacity() + self.entries.neighbours.capacity();
        next.run().control.recount(&mut self.counted_bytes, 12 * listed as u64)
    }

    /// Processes the arranged runs; `reverse`: the reverse direction of the last leg.
    pub(crate) fn run(
        &mut self,
        input: OrderedLegs<'_, '_>,
        reverse: &dyn Segment,
        prefix: &mut Prefix,
        output: &mut IntersectOutput,
        next: &mut Chain<'_, '_>,
    ) -> Result<Flow> {
        self.start(input.last());
        let mut done = 0;
        let mut flow = Flow::More;
        while done < self.runs.len() && flow == Flow::More {
            let first = done;
            done = self.list_prefixes(input, first, prefix, next)?;
            flow = self.reverse_block(input, reverse, first, output, next)?;
        }
        Ok(flow)
    }

    /// Lists the prefixes of the runs from `first` on, up to one block; returns the next run.
    fn list_prefixes(
        &mut self,
        input: OrderedLegs<'_, '_>,
        first: usize,
        prefix: &mut Prefix,
        next: &Chain<'_, '_>,
    ) -> Result<usize> {
        self.prefixes.clear();
        let mut run = first;
        while run < self.runs.len() && self.prefixes.len() < BLOCK_ENTRIES {
            let row = self.rows[self.runs[run].start] as usize;
            prefix.load(input, row, next.run().control)?;
            let number = u32::try_from(run - first).unwrap_or(u32::MAX);
            self.prefixes.neighbours.extend_from_slice(prefix.list());
            self.prefixes.rows.resize(self.prefixes.neighbours.len(), number);
            run += 1;
        }
        self.recount(next)?;
        Ok(run)
    }

    /// Expands the listed prefixes in the reverse direction and finds the rows of their neighbours.
    fn reverse_block(
        &mut self,
        input: OrderedLegs<'_, '_>,
        reverse: &dyn Segment,
        first: usize,
        output: &mut IntersectOutput,
        next: &mut Chain<'_, '_>,
    ) -> Result<Flow> {
        let filter = input.last().filter;
        let mut filtered = usize::MAX;
        let mut cursor = Cursor::default();
        while cursor.row < self.prefixes.len() {
            next.run().control.check()?;
            self.entries.clear();
            self.entries.capacity = BLOCK_ENTRIES;
            reverse.expand(&self.prefixes.neighbours, filter, &mut cursor, &mut self.entries)?;
            self.recount(next)?;
            for (&vertex, &key) in self.entries.rows.iter().zip(&self.entries.neighbours) {
                let run = first + self.prefixes.rows[vertex as usize] as usize;
                if run != filtered {
                    self.filter.fill(&self.keys[self.runs[run].clone()]);
                    filtered = run;
                }
                if !self.filter.may_contain(key) {
                    continue;
                }
                let keys = &self.keys[self.runs[run].clone()];
                let from = keys.partition_point(|(other, _)| *other < key);
                for &(_, row) in keys[from..].iter().take_while(|(other, _)| *other == key) {
                    let found = self.prefixes.neighbours[vertex as usize];
                    if output.add(input.batch, row, found, next)? == Flow::Done {
                        return Ok(Flow::Done);
                    }
                }
            }
        }
        Ok(Flow::More)
    }
}

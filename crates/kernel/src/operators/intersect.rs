//! Intersect: multi-way intersection of adjacencies (worst-case optimal join), for each row.
//!
//! Binding one variable at a time over sorted adjacencies makes cyclic patterns worst-case optimal: the work
//! for a row is bounded by its shortest adjacency, never by the product of two.
//! # Shape
//! Rows are grouped by the variables bound first, so the keys of a leg have runs. The leg with the most runs
//! is the *last*; the intersection of the others, the *prefix*, is kept while their keys are unchanged, also
//! across batches. Each batch uses the cheapest of three methods:
//! * *probe*: each vertex of the prefix is checked in the last leg, in its cheaper direction, a thousand
//!   pairs in one call;
//! * *list*: the last leg is expanded, a block of rows in one call. Its entries are compared with the prefix
//!   if that is short, looked up in a bit set of the prefix if several rows share it, or else merged with it
//!   row by row;
//! * *reverse*: each vertex of the prefix is expanded in the reverse direction of the last leg, once for all
//!   rows that share the prefix (`reverse_probe.rs`).
//! # Cost
//! For a row: the prefix times a check (10 to 35 ns), or the entries of the last leg times some 3 ns; for a
//! run of rows with one prefix: the prefix times an expansion (17 ns and more). Memory: `vertices / 8` bytes,
//! [`BLOCK_ENTRIES`] entries or the longest adjacency for each leg.
//! # Source
//! H. Ngo, E. Porat, C. Ré, A. Rudra, "Worst-case optimal join algorithms", JACM 2018; T. Veldhuizen,
//! "Leapfrog Triejoin", ICDT 2014. Different: candidates are intersected completely for each row, not leapt
//! over lazily, since rows are batched and adjacencies are contiguous.

use crate::operators::reverse_probe::ReverseProbe;
use crate::operators::small_lists::SmallListBuffers;
use crate::operators::sorted_ids::{PIECE_ENTRIES, common, hits, is_among, list_neighbours, retain_common};
use crate::pipeline::batch::{Batch, Keep};
use crate::pipeline::chain::{Chain, Flow, Kernel, Run};
use crate::pipeline::control::Control;
use crate::plan::Operand;
use std::ops::Range;
use vervet_algebra::Variable;
use vervet_model::{Id, Result};
use vervet_snapshot::{Cursor, EntryFilter, Expansion, Segment};

/// Maximum number of leg entries in one expansion, unless a single row has more: 128 KiB.
const BLOCK_ENTRIES: u64 = 1 << 14;

/// Minimum rows for each run of the prefix for which a bit set pays.
const BITSET_ROWS_MIN: usize = 3;

/// Maximum length of a prefix that is compared completely with each entry: a few vector comparisons,
/// branch-free.
const LANES: usize = 8;

/// Cost of a listed entry, in ns; see the header.
const LIST_ENTRY_NS: f64 = 3.0;
/// Cost of a listed and merged entry of either list, in ns (216 ns for 8 and 21, LUBM-40 Q7, 2026-11-21).
const MERGE_ENTRY_NS: f64 = 6.0;
/// Cost of a check, in ns: a constant, and an increment for each binary-search step.
const PROBE_NS: f64 = 8.0;
const PROBE_HALVING_NS: f64 = 3.0;

/// Cost of the *reverse* method, in ns: for each run, each vertex of its prefix, and each neighbour of that
/// vertex.
const REVERSE_RUN_NS: f64 = 60.0;
const REVERSE_VERTEX_NS: f64 = 12.0;
const REVERSE_ENTRY_NS: f64 = 5.0;
/// Minimum cost of a row, in ns, for which sorting the rows for longer runs (15 to 20 ns a row) is
/// considered.
const SORT_FROM_NS: f64 = 200.0;

/// Cost of expanding a vertex of a prefix, in ns. High-degree vertices are the most likely to be in a prefix,
/// so the average degree alone would underestimate it.
fn reverse_vertex_ns(reverse: &dyn Segment) -> f64 {
    let statistics = reverse.statistics();
    let average = statistics.entries as f64 / statistics.keys.max(1) as f64;
    REVERSE_VERTEX_NS + REVERSE_ENTRY_NS * (statistics.degree_max as f64).min(8.0 * average)
}

/// Cost of the *reverse* method for a run whose prefix has `prefix` vertices, in ns.
pub(crate) fn reverse_run_ns(reverse: &dyn Segment, prefix: f64) -> f64 {
    REVERSE_RUN_NS + prefix * reverse_vertex_ns(reverse)
}

/// The method for a batch; see the header.
enum IntersectMethod<'a> {
    Probe,
    List {
        /// Whether the prefix is stored as a bit set.
        bitset: bool,
    },
    /// The reverse direction of the last leg.
    Reverse(&'a dyn Segment),
}

pub(crate) struct IntersectLeg<'a> {
    pub segment: &'a dyn Segment,
    /// The segment of the reverse direction.
    pub reverse: Option<&'a dyn Segment>,
    pub filter: EntryFilter,
    pub key: Operand,
    /// Key of each row.
    pub keys: Vec<Id>,
    /// Number of runs of rows with equal keys.
    pub runs: usize,
    /// Degree of the key of each row.
    pub degrees: Vec<u64>,
    /// Key and degree of each run, if degrees are read once for each run.
    of_runs: (Vec<Id>, Vec<u64>),
}

impl<'a> IntersectLeg<'a> {
    pub(crate) fn new(
        segment: &'a dyn Segment,
        reverse: Option<&'a dyn Segment>,
        filter: EntryFilter,
        key: Operand,
    ) -> Self {
        let (keys, degrees) = (Vec::new(), Vec::new());
        Self { segment, reverse, filter, key, keys, runs: 0, degrees, of_runs: Default::default() }
    }

    fn start(&mut self, batch: &Batch) {
        self.degrees.clear();
        self.keys.clear();
        match self.key {
            Operand::Constant(id) => self.keys.resize(batch.rows, id),
            Operand::Variable(variable) => self.keys.extend_from_slice(&batch.columns[variable.index()]),
        }
        assert_eq!(self.keys.len(), batch.rows, "the key of a leg is bound in every row");
        let changes = self.keys.windows(2).filter(|pair| pair[0] != pair[1]);
        self.runs = changes.count() + usize::from(!self.keys.is_empty());
    }

    fn count_degrees(&mut self) -> Result<()> {
        if self.runs * BITSET_ROWS_MIN > self.keys.len() {
            return self.segment.degrees(&self.keys, self.filter, &mut self.degrees);
        }
        let (keys, degrees) = &mut self.of_runs;
        keys.clear();
        keys.extend_from_slice(&self.keys);
        keys.dedup();
        self.segment.degrees(keys, self.filter, degrees)?;
        self.degrees.clear();
        for (run, degree) in self.keys.chunk_by(|a, b| a == b).zip(degrees) {
            self.degrees.resize(self.degrees.len() + run.len(), *degree);
        }
        Ok(())
    }

    /// Whether a check in the reverse direction is cheaper, and the cost of a check in ns.
    fn probe(&self) -> (bool, f64) {
        let cost = |segment: &dyn Segment| {
            let statistics = segment.statistics();
            let degree = statistics.entries as f64 / statistics.keys.max(1) as f64;
            PROBE_NS + PROBE_HALVING_NS * degree.max(1.0).log2()
        };
        let forward = cost(self.segment);
        match self.reverse.map(cost) {
            Some(reverse) if reverse < forward => (true, reverse),
            _ => (false, forward),
        }
    }
}

/// The intersection of all legs but the last, cached while their keys are unchanged.
#[derive(Default)]
pub(crate) struct Prefix {
    /// Leg and key of each intersected adjacency.
    of: Vec<(usize, Id)>,
    list: Vec<Id>,
    scratch: Vec<Id>,
    /// Bit set of `list` over vertex numbers, if filled.
    words: Vec<u64>,
    has_bitset: bool,
    /// `list`, padded with [`Id::UNBOUND`], if it fits.
    lanes: [Id; LANES],
    /// Bytes counted for `list` and `scratch`.
    list_bytes: u64,
    scratch_bytes: u64,
}

impl Prefix {
    /// The vertices; valid after [`Prefix::load`].
    pub(crate) fn list(&self) -> &[Id] {
        &self.list
    }

    pub(crate) fn load(
        &mut self,
        legs: &[IntersectLeg<'_>],
        order: &[usize],
        row: usize,
        control: &Control<'_>,
    ) -> Result<()> {
        let same = self.of.len() == order.len()
            && order.iter().zip(&self.of).all(|(&leg, &of)| of == (leg, legs[leg].keys[row]));
        if same {
            return Ok(());
        }
        self.clear_bitset();
        self.of.clear();
        self.list.clear();
        for (at, &leg) in order.iter().enumerate() {
            let leg_at_work = &legs[leg];
            let (target, counted) = match at {
                0 => (&mut self.list, &mut self.list_bytes),
                _ => (&mut self.scratch, &mut self.scratch_bytes),
            };
            target.clear();
            let (key, degree) = (leg_at_work.keys[row], leg_at_work.degrees[row]);
            list_neighbours(leg_at_work.segment, key, leg_at_work.filter, degree, control, counted, target)?;
            if at > 0 {
                retain_common(&mut self.list, &self.scratch);
            }
        }
        if let Some(lanes) = self.lanes.get_mut(..self.list.len()) {
            lanes.copy_from_slice(&self.list);
            self.lanes[self.list.len()..].fill(Id::UNBOUND);
        }
        self.of.extend(order.iter().map(|&leg| (leg, legs[leg].keys[row])));
        Ok(())
    }

    /// The list, if it fits, padded with [`Id::UNBOUND`], which equals no entry.
    fn lanes<const COUNT: usize>(&self) -> Option<&[Id; COUNT]> {
        if self.list.len() <= COUNT { self.lanes.first_chunk() } else { None }
    }

    fn fill_bitset(&mut self, run: &Run<'_>) -> Result<()> {
        if self.has_bitset {
            return Ok(());
        }
        if self.words.is_empty() {
            let words = run.snapshot.vertex_count().div_ceil(64);
            run.control.grow(8 * words)?;
            self.words.resize(usize::try_from(words).unwrap_or(0), 0);
        }
        for &id in &self.list {
            if let Some(word) = self.words.get_mut(word_of(id)) {
                *word |= 1 << (id.payload() % 64);
            }
        }
        self.has_bitset = true;
        Ok(())
    }

    fn clear_bitset(&mut self) {
        if self.has_bitset {
            for &id in &self.list {
                if let Some(word) = self.words.get_mut(word_of(id)) {
                    *word = 0;
                }
            }
            self.has_bitset = false;
        }
    }

    fn bitset_contains(&self, id: Id) -> bool {
        let word = self.words.get(word_of(id)).copied().unwrap_or(0);
        word >> (id.payload() % 64) & 1 == 1
    }
}

/// Bit-set word of a vertex; only legs whose neighbours are all vertices are marked.
fn word_of(vertex: Id) -> usize {
    usize::try_from(vertex.payload() / 64).unwrap_or(usize::MAX)
}

/// Pairs of the *probe* method, to be checked in the last leg.
#[derive(Default)]
pub(crate) struct Pairs {
    rows: Vec<u32>,
    candidates: Vec<Id>,
    keys: Vec<Id>,
    hits: Vec<u32>,
}

pub(crate) struct Intersect<'a> {
    pub target: Variable,
    pub legs: Vec<IntersectLeg<'a>>,
    pub count_only: bool,
    pub keep: Keep,
    pub prefix: Prefix,
    pub pairs: Pairs,
    pub reverse_probe: ReverseProbe,
    pub small_lists: SmallListBuffers,
    pub entries: Expansion,
    /// Number of entries whose memory has been counted.
    pub entries_counted: u64,
    pub rows: Vec<u32>,
    pub found: Vec<Id>,
    /// Positions of entries that are in the prefix.
    pub hits: Vec<u32>,
    pub counts: Vec<u64>,
    pub selection: Vec<u32>,
    pub out: Batch,
}

impl<'a> Intersect<'a> {
    pub(crate) fn new(
        target: Variable,
        legs: Vec<IntersectLeg<'a>>,
        count_only: bool,
        keep: Keep,
        variables: usize,
    ) -> Self {
        assert!(legs.len() >= 2, "an intersection of fewer than two legs");
        Self {
            target,
            legs,
            count_only,
            keep,
            prefix: Prefix::default(),
            pairs: Pairs::default(),
            reverse_probe: ReverseProbe::default(),
            small_lists: SmallListBuffers::default(),
            entries: Expansion::default(),
            entries_counted: 0,
            rows: Vec::new(),
            found: Vec::new(),
            hits: Vec::new(),
            counts: Vec::new(),
            selection: Vec::new(),
            out: Batch::new(variables),
        }
    }

    fn flush(&mut self, batch: &Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        self.out.gather(batch, &self.rows, &self.keep);
        std::mem::swap(&mut self.out.columns[self.target.index()], &mut self.found);
        self.rows.clear();
        self.found.clear();
        next.push(&mut self.out)
    }

    /// Appends a row with its target vertex to the output.
    pub(crate) fn add(&mut self, batch: &Batch, row: u32, id: Id, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        self.rows.push(row);
        self.found.push(id);
        if self.rows.len() >= next.run().control.batch_rows() {
            self.flush(batch, next)
        } else {
            Ok(Flow::More)
        }
    }

    /// Whether some adjacency of a row is empty.
    fn has_empty_leg(&self, row: usize) -> bool {
        self.legs.iter().any(|leg| leg.degrees[row] == 0)
    }

    /// The end, at most `end`, of the run from `row` with equal keys in the legs of `order`.
    pub(crate) fn run_end(&self, order: &[usize], row: usize, end: usize) -> usize {
        let same =
            |other: &usize| order.iter().all(|&leg| self.legs[leg].keys[*other] == self.legs[leg].keys[row]);
        (row + 1..end).find(|other| !same(other)).unwrap_or(end)
    }

    /// Processes a batch by the cheapest method for the degrees of its keys.
    fn by_degrees(&mut self, batch: &Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        self.legs.iter_mut().try_for_each(IntersectLeg::count_degrees)?;
        let mut order: Vec<usize> = (0..self.legs.len()).collect();
        order.sort_by_key(|&leg| self.legs[leg].runs);
        debug_assert!(self.legs.iter().all(|leg| leg.degrees.len() == batch.rows), "a degree for each row");
        let Some(last) = order.pop() else { return Ok(Flow::More) };
        match self.cheapest_method(batch, &order, last) {
            IntersectMethod::Probe => self.by_probe(batch, &order, last, next),
            IntersectMethod::List { bitset } => self.by_list(batch, &order, last, bitset, next),
            IntersectMethod::Reverse(reverse) => self.by_reverse_probe(batch, &order, last, reverse, next),
        }
    }

    /// The cheapest method for a batch.
    fn cheapest_method(&mut self, batch: &Batch, order: &[usize], last: usize) -> IntersectMethod<'a> {
        let (runs, mut of_runs, of_rows) = self.reverse_probe.arrange(&self.legs, order, batch.rows, false);
        let leg = &self.legs[last];
        let listed: u64 = leg.degrees.iter().sum();
        let vertices = |leg: &usize| self.legs[*leg].segment.statistics().vertices_only;
        let bitset = runs * BITSET_ROWS_MIN <= batch.rows && order.iter().all(vertices) && vertices(&last);
        let list_ns = if bitset || of_rows <= (LANES * batch.rows) as u64 / 2 {
            listed as f64 * LIST_ENTRY_NS
        } else {
            (listed + of_rows) as f64 * MERGE_ENTRY_NS
        };
        let probe_ns = of_rows as f64 * leg.probe().1;
        let best_ns = list_ns.min(probe_ns);
        if let Some(reverse) = leg.reverse {
            let vertex_ns = reverse_vertex_ns(reverse);
            let mut runs = runs;
            if 4 * runs > 3 * batch.rows && best_ns > batch.rows as f64 * SORT_FROM_NS {
                (runs, of_runs, _) = self.reverse_probe.arrange(&self.legs, order, batch.rows, true);
            }
            if runs as f64 * REVERSE_RUN_NS + of_runs as f64 * vertex_ns < best_ns {
                return IntersectMethod::Reverse(reverse);
            }
        }
        if probe_ns < list_ns {
            return IntersectMethod::Probe;
        }
        IntersectMethod::List { bitset }
    }

    fn by_probe(
        &mut self,
        batch: &Batch,
        order: &[usize],
        last: usize,
        next: &mut Chain<'_, 'a>,
    ) -> Result<Flow> {
        for row in 0..batch.rows {
            if self.has_empty_leg(row) {
                continue;
            }
            self.prefix.load(&self.legs, order, row, next.run().control)?;
            let mut done = 0;
            while done < self.prefix.list.len() {
                let most = next.run().control.batch_rows();
                let take = most.saturating_sub(self.pairs.rows.len()).min(self.prefix.list.len() - done);
                let number = u32::try_from(row).unwrap_or(u32::MAX);
                self.pairs.rows.resize(self.pairs.rows.len() + take, number);
                self.pairs.candidates.extend_from_slice(&self.prefix.list[done..done + take]);
                done += take;
                if self.pairs.rows.len() >= most && self.probe(batch, last, next)? == Flow::Done {
                    return Ok(Flow::Done);
                }
            }
        }
        self.probe(batch, last, next)
    }

    /// Checks the collected pairs in the last leg.
    fn probe(&mut self, batch: &Batch, last: usize, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        next.run().control.check()?;
        let leg = &self.legs[last];
        let pairs = &mut self.pairs;
        pairs.keys.clear();
        pairs.keys.extend(pairs.rows.iter().map(|&row| leg.keys[row as usize]));
        pairs.hits.clear();
        match leg.reverse {
            Some(reverse) if leg.probe().0 => {
                reverse.check(&pairs.candidates, &pairs.keys, leg.filter, &mut pairs.hits)?;
            }
            _ => leg.segment.check(&pairs.keys, &pairs.candidates, leg.filter, &mut pairs.hits)?,
        }
        for at in 0..self.pairs.hits.len() {
            let hit = self.pairs.hits[at] as usize;
            let (row, id) = (self.pairs.rows[hit], self.pairs.candidates[hit]);
            if self.count_only {
                self.counts[row as usize] += 1;
            } else if self.add(batch, row, id, next)? == Flow::Done {
                return Ok(Flow::Done);
            }
        }
        self.pairs.rows.clear();
        self.pairs.candidates.clear();
        Ok(Flow::More)
    }

    fn by_list(
        &mut self,
        batch: &Batch,
        order: &[usize],
        last: usize,
        bitset: bool,
        next: &mut Chain<'_, 'a>,
    ) -> Result<Flow> {
        let mut first = 0;
        while first < batch.rows {
            next.run().control.check()?;
            let leg = &self.legs[last];
            let mut total = leg.degrees[first];
            let mut end = first + 1;
            while end < batch.rows && total + leg.degrees[end] <= BLOCK_ENTRIES {
                total += leg.degrees[end];
                end += 1;
            }
            self.entries.clear();
            // 16 bytes: a row number, a neighbour and the position of a hit.
            let grown = total.saturating_sub(self.entries_counted);
            next.run().control.grow(grown.saturating_mul(16))?;
            self.entries_counted += grown;
            let total = usize::try_from(total).unwrap_or(usize::MAX);
            let keys = &leg.keys[first..end];
            let mut cursor = Cursor::default();
            while cursor.row < keys.len() && self.entries.len() < total {
                next.run().control.check()?;
                self.entries.capacity = total.min(self.entries.len() + PIECE_ENTRIES);
                leg.segment.expand(keys, leg.filter, &mut cursor, &mut self.entries)?;
            }
            let (mut at, mut row) = (0, first);
            while row < end {
                let run_end = self.run_end(order, row, end);
                let count: u64 = self.legs[last].degrees[row..run_end].iter().sum();
                let start = at;
                at = (at + usize::try_from(count).unwrap_or(usize::MAX)).min(self.entries.len());
                let run = Listed { first, rows: row..run_end, entries: start..at };
                if start < at
                    && !order.iter().any(|&leg| self.legs[leg].degrees[row] == 0)
                    && self.list(batch, order, last, &run, bitset, next)? == Flow::Done
                {
                    return Ok(Flow::Done);
                }
                row = run_end;
            }
            first = end;
        }
        Ok(Flow::More)
    }

    /// Intersects the prefix of a run of rows with the entries listed for them.
    fn list(
        &mut self,
        batch: &Batch,
        order: &[usize],
        last: usize,
        run: &Listed,
        bitset: bool,
        next: &mut Chain<'_, 'a>,
    ) -> Result<Flow> {
        self.prefix.load(&self.legs, order, run.rows.start, next.run().control)?;
        if self.prefix.list.is_empty() {
            return Ok(Flow::More);
        }
        let neighbours = &self.entries.neighbours[run.entries.clone()];
        self.hits.clear();
        if let Some(lanes) = self.prefix.lanes::<4>() {
            hits(neighbours, &mut self.hits, |id| is_among(id, lanes));
        } else if let Some(lanes) = self.prefix.lanes::<LANES>() {
            hits(neighbours, &mut self.hits, |id| is_among(id, lanes));
        } else if bitset {
            self.prefix.fill_bitset(next.run())?;
            hits(neighbours, &mut self.hits, |id| self.prefix.bitset_contains(id));
        } else {
            let mut start = 0_usize;
            for row in run.rows.clone() {
                let degree = usize::try_from(self.legs[last].degrees[row]).unwrap_or(usize::MAX);
                let end = start.saturating_add(degree).min(neighbours.len());
                common(&self.prefix.list, &neighbours[start..end], start, &mut self.hits);
                start = end;
            }
        }
        for at in 0..self.hits.len() {
            let entry = run.entries.start + self.hits[at] as usize;
            let row = run.first + self.entries.rows[entry] as usize;
            if self.count_only {
                self.counts[row] += 1;
            } else {
                let number = u32::try_from(row).unwrap_or(u32::MAX);
                if self.add(batch, number, self.entries.neighbours[entry], next)? == Flow::Done {
                    return Ok(Flow::Done);
                }
            }
        }
        Ok(Flow::More)
    }
}

/// Rows of equal prefix, and their range of the entries listed for the rows from `first` on.
struct Listed {
    first: usize,
    rows: Range<usize>,
    entries: Range<usize>,
}

impl<'a> Kernel<'a> for Intersect<'a> {
    fn push(&mut self, batch: &mut Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        self.legs.iter_mut().for_each(|leg| leg.start(batch));
        self.rows.clear();
        self.found.clear();
        self.pairs.rows.clear();
        self.pairs.candidates.clear();
        self.counts.clear();
        self.counts.resize(batch.rows, 0);
        let flow = match self.by_small_lists(batch, next)? {
            Some(flow) => flow,
            None => self.by_degrees(batch, next)?,
        };
        if flow == Flow::Done {
            return Ok(Flow::Done);
        }
        if self.count_only {
            batch.multiply(&self.counts, &mut self.selection, &self.keep)?;
            return next.push(batch);
        }
        self.flush(batch, next)
    }
}

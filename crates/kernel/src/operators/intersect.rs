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
//!
//! Lists at other servers are fetched before, if they are short (`fetched.rs`).
//! # Cost
//! For a row: the prefix times a check (10 to 35 ns), or the entries of the last leg times some 3 ns; for a
//! run of rows with one prefix: the prefix times an expansion (17 ns and more). Memory: `vertices / 8` bytes,
//! [`list::BLOCK_ENTRIES`] entries or the longest adjacency for each leg.
//! # Source
//! H. Ngo, E. Porat, C. Ré, A. Rudra, "Worst-case optimal join algorithms", JACM 2018; T. Veldhuizen,
//! "Leapfrog Triejoin", ICDT 2014. Different: candidates are intersected completely for each row, not leapt
//! over lazily, since rows are batched and adjacencies are contiguous.

pub(crate) mod cost;
pub(crate) mod fetched;
pub(crate) mod leg;
pub(crate) mod list;
pub(crate) mod output;
pub(crate) mod prefix;
pub(crate) mod probe;
pub(crate) mod reverse_probe;
pub(crate) mod small_lists;

use self::cost::{
    BITSET_ROWS_MIN, LIST_ENTRY_NS, MERGE_ENTRY_NS, REVERSE_RUN_NS, SORT_FROM_NS, reverse_vertex_ns,
};
use self::leg::{IntersectLeg, OrderedLegs, fetch_legs};
use self::list::{BLOCK_ENTRIES, ListedEntries};
use self::output::IntersectOutput;
use self::prefix::{LANES, Prefix};
use self::probe::{Probe, REMOTE_PAIRS};
use self::reverse_probe::ReverseProbe;
use self::small_lists::SmallListBuffers;
use crate::pipeline::batch::{Batch, Keep};
use crate::pipeline::chain::{Chain, Flow, Kernel};
use vervet_algebra::Variable;
use vervet_model::Result;
use vervet_snapshot::Segment;

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

/// The kernel; see the header. Each method has its own buffers.
pub(crate) struct Intersect<'a> {
    legs: Vec<IntersectLeg<'a>>,
    prefix: Prefix,
    probe: Probe,
    listed: ListedEntries,
    reverse_probe: ReverseProbe,
    small_lists: SmallListBuffers,
    output: IntersectOutput,
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
            legs,
            prefix: Prefix::default(),
            probe: Probe::default(),
            listed: ListedEntries::default(),
            reverse_probe: ReverseProbe::default(),
            small_lists: SmallListBuffers::default(),
            output: IntersectOutput::new(target, count_only, keep, variables),
        }
    }

    /// Processes a batch by the cheapest method for the degrees of its keys.
    fn by_degrees(&mut self, batch: &Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        self.legs.iter_mut().try_for_each(IntersectLeg::count_degrees)?;
        let mut order: Vec<usize> = (0..self.legs.len()).collect();
        // The lists of a prefix are read one by one, so one that was not fetched is last.
        order.sort_by_key(|&leg| (self.legs[leg].is_elsewhere(), self.legs[leg].runs));
        debug_assert!(self.legs.iter().all(|leg| leg.degrees.len() == batch.rows), "a degree for each row");
        let Some(last) = order.pop() else { return Ok(Flow::More) };
        let input = OrderedLegs { batch, legs: &self.legs, prefix: &order, last };
        let (prefix, output) = (&mut self.prefix, &mut self.output);
        match cheapest_method(&mut self.reverse_probe, input) {
            IntersectMethod::Probe => self.probe.run(input, prefix, output, next),
            IntersectMethod::List { bitset } => self.listed.run(input, bitset, prefix, output, next),
            IntersectMethod::Reverse(reverse) => self.reverse_probe.run(input, reverse, prefix, output, next),
        }
    }
}

/// The cheapest method for a batch.
fn cheapest_method<'a>(reverse_probe: &mut ReverseProbe, input: OrderedLegs<'_, 'a>) -> IntersectMethod<'a> {
    let OrderedLegs { batch, legs, prefix: order, .. } = input;
    let (runs, mut of_runs, of_rows) = reverse_probe.arrange(input, false);
    let leg = input.last();
    let listed: u64 = leg.degrees.iter().sum();
    let vertices = |leg: &usize| legs[*leg].segment.statistics().vertices_only;
    let bitset = runs * BITSET_ROWS_MIN <= batch.rows && order.iter().all(vertices) && vertices(&input.last);
    let list_ns = if bitset || of_rows <= (LANES * batch.rows) as u64 / 2 {
        listed as f64 * LIST_ENTRY_NS
    } else {
        (listed + of_rows) as f64 * MERGE_ENTRY_NS
    };
    let list_ns = list_ns + leg.remote_ns(listed, BLOCK_ENTRIES)[0];
    let probe_ns = of_rows as f64 * leg.probe().1 + leg.remote_ns(of_rows, REMOTE_PAIRS as u64)[1];
    let best_ns = list_ns.min(probe_ns);
    if let Some(reverse) = leg.reverse() {
        let vertex_ns = reverse_vertex_ns(reverse);
        let mut runs = runs;
        if 4 * runs > 3 * batch.rows && best_ns > batch.rows as f64 * SORT_FROM_NS {
            (runs, of_runs, _) = reverse_probe.arrange(input, true);
        }
        let remote_ns = leg.remote_ns(2 * of_runs, BLOCK_ENTRIES)[2];
        if runs as f64 * REVERSE_RUN_NS + of_runs as f64 * vertex_ns + remote_ns < best_ns {
            return IntersectMethod::Reverse(reverse);
        }
    }
    if probe_ns < list_ns {
        return IntersectMethod::Probe;
    }
    IntersectMethod::List { bitset }
}

impl<'a> Kernel<'a> for Intersect<'a> {
    fn push(&mut self, batch: &mut Batch, next: &mut Chain<'_, 'a>) -> Result<Flow> {
        self.legs.iter_mut().for_each(|leg| leg.start(batch));
        fetch_legs(&mut self.legs, next.run().control)?;
        self.output.start(batch.rows);
        let flow = match self.small_lists.run(&self.legs, batch, &mut self.output, next)? {
            Some(flow) => flow,
            None => self.by_degrees(batch, next)?,
        };
        if flow == Flow::Done {
            return Ok(Flow::Done);
        }
        self.output.finish(batch, next)
    }
}

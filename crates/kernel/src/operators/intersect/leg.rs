//! A leg of an intersection, and the legs in the order in which a batch intersects them.

use crate::operators::intersect::cost::{BITSET_ROWS_MIN, PROBE_HALVING_NS, PROBE_NS};
use crate::pipeline::batch::Batch;
use crate::plan::Operand;
use vervet_model::{Id, Result};
use vervet_snapshot::{EntryFilter, Segment};

/// A sorted adjacency for each row.
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

    pub(crate) fn start(&mut self, batch: &Batch) {
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

    pub(crate) fn count_degrees(&mut self) -> Result<()> {
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
    pub(crate) fn probe(&self) -> (bool, f64) {
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

/// A batch, and the legs in the order in which it intersects them.
#[derive(Clone, Copy)]
pub(crate) struct OrderedLegs<'i, 'a> {
    pub batch: &'i Batch,
    pub legs: &'i [IntersectLeg<'a>],
    /// The legs of the prefix, by ascending number of runs.
    pub prefix: &'i [usize],
    /// The leg with the most runs.
    pub last: usize,
}

impl<'i, 'a> OrderedLegs<'i, 'a> {
    pub(crate) fn last(&self) -> &'i IntersectLeg<'a> {
        &self.legs[self.last]
    }

    /// Whether some adjacency of a row is empty.
    pub(crate) fn has_empty_leg(&self, row: usize) -> bool {
        self.legs.iter().any(|leg| leg.degrees[row] == 0)
    }

    /// The end, at most `end`, of the run from `row` with equal keys in the legs of the prefix.
    pub(crate) fn run_end(&self, row: usize, end: usize) -> usize {
        let keys = |row: usize| self.prefix.iter().map(move |&leg| self.legs[leg].keys[row]);
        (row + 1..end).find(|&other| !keys(other).eq(keys(row))).unwrap_or(end)
    }
}

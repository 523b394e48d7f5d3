//! A leg of an intersection, and the legs in the order in which a batch intersects them.

use crate::operators::intersect::cost::{
    BITSET_ROWS_MIN, PROBE_HALVING_NS, PROBE_NS, REMOTE_CALL_NS, REMOTE_ENTRY_NS,
};
use crate::operators::intersect::fetched::{FetchedLists, is_fetched};
use crate::operators::sorted_ids::list_neighbours;
use crate::pipeline::batch::Batch;
use crate::pipeline::control::Control;
use crate::plan::Operand;
use vervet_model::{Id, Result};
use vervet_snapshot::{Cursor, EntryFilter, Expansion, Segment};

/// A sorted adjacency for each row.
pub(crate) struct IntersectLeg<'a> {
    pub segment: &'a dyn Segment,
    /// The segment of the reverse direction.
    reverse: Option<&'a dyn Segment>,
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
    /// Whether calls of the segment take round trips for the keys of this batch.
    is_remote: bool,
    /// Whether calls of the reverse segment take round trips.
    is_reverse_remote: bool,
    /// The lists of the keys, if `is_fetched`.
    fetched: FetchedLists,
    is_fetched: bool,
}

impl<'a> IntersectLeg<'a> {
    pub(crate) fn new(
        segment: &'a dyn Segment,
        reverse: Option<&'a dyn Segment>,
        filter: EntryFilter,
        key: Operand,
    ) -> Self {
        Self {
            segment,
            reverse,
            filter,
            key,
            keys: Vec::new(),
            runs: 0,
            degrees: Vec::new(),
            of_runs: Default::default(),
            is_remote: false,
            is_reverse_remote: reverse.is_some_and(|reverse| reverse.is_remote(None)),
            fetched: FetchedLists::default(),
            is_fetched: false,
        }
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
        self.is_fetched = false;
        self.is_remote = self.segment.is_remote(Some(&self.keys));
    }

    /// Its distinct keys if they are elsewhere, and the number of their entries by statistics.
    fn expected(&self) -> (Vec<Id>, f64) {
        let statistics = self.segment.statistics();
        let mean = statistics.entries as f64 / statistics.keys.max(1) as f64;
        if !self.is_remote {
            return (Vec::new(), self.runs as f64 * mean);
        }
        let mut keys = self.keys.clone();
        keys.dedup();
        keys.sort_unstable();
        keys.dedup();
        let entries = keys.len() as f64 * mean;
        (keys, entries)
    }

    /// The reverse direction, if it is to be read.
    pub(crate) fn reverse(&self) -> Option<&'a dyn Segment> {
        // Lists that are here are faster to read.
        self.reverse.filter(|_| !self.is_fetched)
    }

    /// [`IntersectLeg::reverse`], if its calls take no round trips.
    pub(crate) fn reverse_here(&self) -> Option<&'a dyn Segment> {
        self.reverse().filter(|_| !self.is_reverse_remote)
    }

    /// Whether its lists are at another server, and were not fetched.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.is_remote && !self.is_fetched
    }

    /// As [`Segment::expand`].
    pub(crate) fn expand(&self, keys: &[Id], cursor: &mut Cursor, out: &mut Expansion) -> Result<()> {
        if self.is_fetched {
            self.fetched.expand(keys, cursor, out);
            return Ok(());
        }
        self.segment.expand(keys, self.filter, cursor, out)
    }

    /// As [`Segment::check`].
    pub(crate) fn check(&self, keys: &[Id], neighbours: &[Id], out: &mut Vec<u32>) -> Result<()> {
        if self.is_fetched {
            self.fetched.check(keys, neighbours, out);
            return Ok(());
        }
        self.segment.check(keys, neighbours, self.filter, out)
    }

    /// As [`list_neighbours`] for the key of a row.
    pub(crate) fn list(
        &self,
        row: usize,
        control: &Control<'_>,
        counted: &mut u64,
        out: &mut Vec<Id>,
    ) -> Result<()> {
        let key = self.keys[row];
        if self.is_fetched {
            out.extend_from_slice(self.fetched.list(key));
            out.dedup();
            control.work(out.len())?;
            return control.recount(counted, 8 * out.capacity() as u64);
        }
        list_neighbours(self.segment, key, self.filter, self.degrees[row], control, counted, out)
    }

    pub(crate) fn count_degrees(&mut self) -> Result<()> {
        if self.is_fetched {
            let (fetched, keys) = (&self.fetched, &self.keys);
            self.degrees.clear();
            self.degrees.extend(keys.iter().map(|key| fetched.list(*key).len() as u64));
            return Ok(());
        }
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
        let remote = |is_remote| if is_remote { REMOTE_ENTRY_NS } else { 0.0 };
        let forward = cost(self.segment) + remote(self.is_elsewhere());
        let reverse = self.reverse().map(|reverse| cost(reverse) + remote(self.is_reverse_remote));
        match reverse {
            Some(reverse) if reverse < forward => (true, reverse),
            _ => (false, forward),
        }
    }

    /// Whether a check in the cheaper direction takes round trips.
    pub(crate) fn is_probe_remote(&self) -> bool {
        if self.probe().0 { self.is_reverse_remote } else { self.is_elsewhere() }
    }

    /// Cost in ns, besides those of reading here, of a number of entries in pieces of `of_call`: of the
    /// segment, of a check, and of the reverse segment.
    pub(crate) fn remote_ns(&self, entries: u64, of_call: u64) -> [f64; 3] {
        let all = entries as f64 * REMOTE_ENTRY_NS + entries.div_ceil(of_call) as f64 * REMOTE_CALL_NS;
        let of = |is_remote| if is_remote { all } else { 0.0 };
        [of(self.is_elsewhere()), of(self.is_probe_remote()), of(self.is_reverse_remote)]
    }
}

/// Fetches the lists of legs that are at other servers.
pub(crate) fn fetch_legs(legs: &mut [IntersectLeg<'_>], control: &Control<'_>) -> Result<()> {
    if !legs.iter().any(|leg| leg.is_remote) {
        return Ok(());
    }
    let expected: Vec<(Vec<Id>, f64)> = legs.iter().map(IntersectLeg::expected).collect();
    let longest = (0..legs.len()).max_by(|a, b| expected[*a].1.total_cmp(&expected[*b].1));
    for (at, (leg, (keys, entries))) in legs.iter_mut().zip(&expected).enumerate() {
        if leg.is_remote && is_fetched(*entries, longest == Some(at)) {
            leg.is_fetched = leg.fetched.fetch(leg.segment, leg.filter, keys, *entries, control)?;
        }
    }
    Ok(())
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

//! Probe: a snapshot with one predicate that records which threads expand it, and panics on demand.

use oxrdf::TermRef;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};
use vervet_model::{Direction, Id, Meter, Result, TermParts, TextSearch};
use vervet_snapshot::{
    ClassId, Cursor, EntryFilter, Expansion, GraphFilter, OrderRange, OrderedEntry, Segment,
    SegmentStatistics, Snapshot,
};
use vervet_testkit::MemorySnapshot;

pub(crate) struct Probe<'a> {
    graph: &'a MemorySnapshot,
    segment: ProbeSegment<'a>,
}

struct ProbeSegment<'a> {
    predicate: Id,
    inner: &'a dyn Segment,
    /// Names of the threads that have expanded keys.
    threads: Mutex<BTreeSet<String>>,
    /// The thread that may expand; others panic. `None`: all threads may.
    only: Mutex<Option<ThreadId>>,
    rows: AtomicU64,
    /// Number of calls that listed or expanded keys.
    reads: AtomicU64,
    /// Microseconds that an expansion takes at least, as one of another server does.
    slowness: AtomicU64,
}

impl<'a> Probe<'a> {
    pub(crate) fn new(graph: &'a MemorySnapshot, predicate: Id) -> Self {
        let inner = graph.segment(predicate, Direction::Out).expect("a sound graph").expect("it has edges");
        let (threads, only) = (Mutex::default(), Mutex::default());
        let (rows, reads, slowness) = Default::default();
        Self { graph, segment: ProbeSegment { predicate, inner, threads, only, rows, reads, slowness } }
    }

    /// From now on an expansion takes so many microseconds at least.
    pub(crate) fn slow_down(&self, microseconds: u64) {
        self.segment.slowness.store(microseconds, Relaxed);
    }

    /// Number of threads that have expanded keys.
    pub(crate) fn threads(&self) -> usize {
        self.segment.threads.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Number of expanded rows.
    pub(crate) fn expanded_rows(&self) -> u64 {
        self.segment.rows.load(Relaxed)
    }

    /// Number of calls that listed or expanded keys.
    pub(crate) fn reads(&self) -> u64 {
        self.segment.reads.load(Relaxed)
    }

    pub(crate) fn forget(&self) {
        self.segment.threads.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.segment.rows.store(0, Relaxed);
    }

    pub(crate) fn panic_unless(&self, thread: ThreadId) {
        self.forget();
        *self.segment.only.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
    }

    pub(crate) fn calm(&self) {
        *self.segment.only.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Segment for ProbeSegment<'_> {
    fn statistics(&self) -> &SegmentStatistics {
        self.inner.statistics()
    }

    fn expand(
        &self,
        keys: &[Id],
        filter: EntryFilter,
        cursor: &mut Cursor,
        out: &mut Expansion,
    ) -> Result<()> {
        let current = std::thread::current();
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).insert(format!("{:?}", current.id()));
        let only = *self.only.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(only.is_none_or(|only| only == current.id()), "the probe panics");
        let (before, begun) = (cursor.row, Instant::now());
        let slowness = Duration::from_micros(self.slowness.load(Relaxed));
        while begun.elapsed() < slowness {
            std::thread::yield_now();
        }
        self.inner.expand(keys, filter, cursor, out)?;
        self.rows.fetch_add((cursor.row - before) as u64, Relaxed);
        self.reads.fetch_add(1, Relaxed);
        Ok(())
    }

    fn content_id(&self) -> Option<vervet_snapshot::ContentId> {
        None
    }

    fn is_remote(&self, keys: Option<&[Id]>) -> bool {
        self.inner.is_remote(keys)
    }

    fn split(&self, key: Id, parts: usize, entries_min: usize, out: &mut Vec<Id>) -> Result<()> {
        let mut neighbours = Vec::new();
        self.inner.neighbours(key, EntryFilter::ALL, &mut neighbours)?;
        let ranges = parts.min(neighbours.len() / entries_min.max(1));
        if ranges > 1 {
            let step = neighbours.len().div_ceil(ranges);
            out.extend(neighbours.into_iter().skip(step).step_by(step));
        }
        Ok(())
    }

    fn degrees(&self, keys: &[Id], filter: EntryFilter, out: &mut Vec<u64>) -> Result<()> {
        self.inner.degrees(keys, filter, out)
    }

    fn check(&self, keys: &[Id], neighbours: &[Id], filter: EntryFilter, out: &mut Vec<u32>) -> Result<()> {
        self.inner.check(keys, neighbours, filter, out)
    }

    fn check_constant(
        &self,
        keys: &[Id],
        neighbour: Id,
        filter: EntryFilter,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        self.inner.check_constant(keys, neighbour, filter, out)
    }

    fn neighbours(&self, key: Id, filter: EntryFilter, out: &mut Vec<Id>) -> Result<()> {
        self.inner.neighbours(key, filter, out)
    }

    fn keys(&self, from: Id, limit: usize, out: &mut Vec<Id>) -> Result<Option<Id>> {
        self.reads.fetch_add(1, Relaxed);
        self.inner.keys(from, limit, out)
    }

    fn keys_up_to(&self, from: Id, last: Id, limit: usize, out: &mut Vec<Id>) -> Result<Option<Id>> {
        vervet_snapshot::keys_up_to(self, from, last, limit, out)
    }

    fn order(&self) -> Option<Id> {
        self.inner.order()
    }

    fn ordered(
        &self,
        key: Id,
        range: &OrderRange,
        graph: GraphFilter,
        out: &mut Vec<OrderedEntry>,
    ) -> Result<()> {
        self.inner.ordered(key, range, graph, out)
    }

    fn keys_below(&self, key: Id) -> Result<u64> {
        self.inner.keys_below(key)
    }

    fn entries(&self, key: Id, from: [Id; 3], limit: usize, out: &mut Vec<[Id; 3]>) -> Result<()> {
        self.inner.entries(key, from, limit, out)
    }
}

impl Snapshot for Probe<'_> {
    fn lookup(&self, term: TermRef<'_>) -> Result<Option<Id>> {
        self.graph.lookup(term)
    }

    fn read_term(&self, id: Id, scratch: &mut String, read: &mut dyn FnMut(TermParts<'_>)) -> Result<()> {
        self.graph.read_term(id, scratch, read)
    }

    fn write_terms(&self, ids: &[Id], out: &mut Vec<u8>, ends: &mut Vec<usize>) -> Result<()> {
        self.graph.write_terms(ids, out, ends)
    }

    fn is_blank(&self, id: Id) -> Result<bool> {
        self.graph.is_blank(id)
    }

    fn segment(&self, predicate: Id, direction: Direction) -> Result<Option<&dyn Segment>> {
        Ok(if predicate == self.segment.predicate && direction == Direction::Out {
            Some(&self.segment)
        } else {
            self.graph.segment(predicate, direction)?
        })
    }

    fn predicates(&self) -> &[(Id, u64)] {
        self.graph.predicates()
    }

    fn graphs(&self) -> &[(Id, u64)] {
        self.graph.graphs()
    }

    fn is_plain_text(&self, id: Id) -> Result<bool> {
        self.graph.is_plain_text(id)
    }

    fn may_have_blanks(&self) -> bool {
        self.graph.may_have_blanks()
    }

    fn text_rank(&self, literal: Id) -> Result<Option<u64>> {
        self.graph.text_rank(literal)
    }

    fn may_have_triple_terms(&self) -> bool {
        self.graph.may_have_triple_terms()
    }

    fn classes_are_exact(&self) -> bool {
        self.graph.classes_are_exact()
    }

    fn literal_range(&self, from: &[u8], to: Option<&[u8]>) -> Result<Option<Range<u64>>> {
        self.graph.literal_range(from, to)
    }

    fn unordered_literals(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        out: &mut Vec<Id>,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        self.graph.unordered_literals(from, to, out, meter)
    }

    fn unordered_literal_count(&self, from: &[u8], to: Option<&[u8]>) -> Result<u64> {
        self.graph.unordered_literal_count(from, to)
    }

    fn search_count(&self, search: &TextSearch, meter: &mut Meter<'_>) -> Result<Option<u64>> {
        self.graph.search_count(search, meter)
    }

    fn search(&self, search: &TextSearch, out: &mut Vec<Id>, meter: &mut Meter<'_>) -> Result<()> {
        self.graph.search(search, out, meter)
    }

    fn literals_in_order(&self, positions: Range<u64>, out: &mut Vec<Id>) -> Result<()> {
        self.graph.literals_in_order(positions, out)
    }

    fn type_predicate(&self) -> Option<Id> {
        self.graph.type_predicate()
    }

    fn vertex_count(&self) -> u64 {
        self.graph.vertex_count()
    }

    fn edge_count(&self) -> u64 {
        self.graph.edge_count()
    }

    fn literal_count(&self) -> u64 {
        self.graph.literal_count()
    }

    fn statement_count(&self) -> u64 {
        self.graph.statement_count()
    }

    fn edge(&self, edge: Id) -> Result<[Id; 4]> {
        self.graph.edge(edge)
    }

    fn classes_of_type(&self, type_id: Id) -> &[ClassId] {
        self.graph.classes_of_type(type_id)
    }

    fn class_size(&self, class: ClassId) -> u64 {
        self.graph.class_size(class)
    }
}

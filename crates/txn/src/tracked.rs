//! A snapshot that records reads: a version of the graph with the read set of a transaction.
//!
//! # Cost
//! One lock and some hash inserts for each batch. Transactions that only read, and those under snapshot
//! isolation, read their version directly.

use crate::reads::ReadSet;
use elsa::sync::FrozenMap;
use oxrdf::TermRef;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use vervet_delta::Version;
use vervet_model::vocab::RDF_TYPE;
use vervet_model::{Direction, Id, LiteralKind, Meter, Result, Tag, TermParts, TextSearch, lock};
use vervet_snapshot::{
    ClassId, ContentId, Cursor, EntryFilter, Expansion, GraphFilter, KeyEntries, OrderRange, OrderedEntry,
    Segment, SegmentStatistics, Snapshot,
};

/// See the header of this file.
pub struct Tracked<'a> {
    /// The graph at the begin of the transaction.
    began: &'a Version,
    /// The same graph with the transaction's changes.
    version: &'a Version,
    reads: &'a Mutex<ReadSet>,
    segments: FrozenMap<(Id, Direction), Box<TrackedSegment<'a>>>,
}

impl std::fmt::Debug for Tracked<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tracked").finish_non_exhaustive()
    }
}

struct TrackedSegment<'a> {
    predicate: Id,
    direction: Direction,
    segment: &'a dyn Segment,
    reads: &'a Mutex<ReadSet>,
    /// Statistics marked as inexact, so that no query uses counts as proofs, which would not be recorded as
    /// reads. Flags serve as proofs too, and are recorded.
    statistics: SegmentStatistics,
    /// Whether the flags are in the read set.
    flags_recorded: AtomicBool,
}

impl<'a> Tracked<'a> {
    pub(crate) fn new(began: &'a Version, version: &'a Version, reads: &'a Mutex<ReadSet>) -> Self {
        Self { began, version, reads, segments: FrozenMap::new() }
    }
}

impl Snapshot for Tracked<'_> {
    fn lookup(&self, term: TermRef<'_>) -> Result<Option<Id>> {
        let id = self.version.lookup(term)?;
        match id {
            Some(id) if id.tag() != Tag::Edge => {}
            // The name of an edge has an id whether the edge exists or not.
            _ => match self.version.base().dictionary().lookup(term)?.filter(|id| id.tag() == Tag::Edge) {
                Some(edge) => lock(self.reads).add_edge(edge),
                None => lock(self.reads).add_unknown(term),
            },
        }
        Ok(id)
    }

    /// What is read elsewhere would not be recorded.
    fn base_number(&self) -> Option<u64> {
        None
    }

    fn read_term(&self, id: Id, scratch: &mut String, read: &mut dyn FnMut(TermParts<'_>)) -> Result<()> {
        self.version.read_term(id, scratch, read)
    }

    fn write_terms(&self, ids: &[Id], out: &mut Vec<u8>, ends: &mut Vec<usize>) -> Result<()> {
        self.version.write_terms(ids, out, ends)
    }

    fn is_plain_text(&self, id: Id) -> Result<bool> {
        self.version.is_plain_text(id)
    }

    fn read_literal_kind(&self, id: Id, read: &mut dyn FnMut(Option<LiteralKind<'_>>)) -> Result<()> {
        self.version.read_literal_kind(id, read)
    }

    fn text_rank(&self, literal: Id) -> Result<Option<u64>> {
        self.version.text_rank(literal)
    }

    fn may_have_triple_terms(&self) -> bool {
        self.version.may_have_triple_terms()
    }

    fn may_have_blanks(&self) -> bool {
        self.version.may_have_blanks()
    }

    fn is_blank(&self, id: Id) -> Result<bool> {
        self.version.is_blank(id)
    }

    fn segment(&self, predicate: Id, direction: Direction) -> Result<Option<&dyn Segment>> {
        if let Some(tracked) = self.segments.get(&(predicate, direction)) {
            return Ok(Some(tracked));
        }
        let Some(segment) = self.version.segment(predicate, direction)? else {
            lock(self.reads).add_segment(predicate);
            return Ok(None);
        };
        if direction == Direction::In {
            lock(self.reads).add_text_filtered(predicate);
        }
        let statistics = SegmentStatistics { exact: false, ..segment.statistics().clone() };
        let flags_recorded = AtomicBool::new(false);
        let tracked =
            TrackedSegment { predicate, direction, segment, reads: self.reads, statistics, flags_recorded };
        Ok(Some(self.segments.insert((predicate, direction), Box::new(tracked))))
    }

    /// Segments record what is read of them.
    fn entries_together(&self, _: &[(Id, Direction)], _: &[Id], _: usize) -> Result<Option<Vec<KeyEntries>>> {
        Ok(None)
    }

    fn predicates(&self) -> &[(Id, u64)] {
        lock(self.reads).add_predicate_list(self.began, self.version);
        self.version.predicates()
    }

    fn graphs(&self) -> &[(Id, u64)] {
        lock(self.reads).add_graph_list();
        self.version.graphs()
    }

    fn type_predicate(&self) -> Option<Id> {
        let id = self.version.type_predicate();
        if id.is_none() {
            match self.version.base().dictionary().lookup_iri(RDF_TYPE) {
                // The base knows the term from removed statements.
                Ok(Some(id)) => lock(self.reads).add_segment(id),
                // A concurrent statement with this predicate first adds the term, which the read of an
                // unknown term covers. With a damaged dictionary the term has no id, and no such statement
                // can be added.
                _ => lock(self.reads).add_unknown(oxrdf::vocab::rdf::TYPE.into()),
            }
        }
        id
    }

    fn vertex_count(&self) -> u64 {
        self.version.vertex_count()
    }

    fn edge_count(&self) -> u64 {
        self.version.edge_count()
    }

    fn literal_count(&self) -> u64 {
        self.version.literal_count()
    }

    fn statement_count(&self) -> u64 {
        self.version.statement_count()
    }

    fn edge(&self, edge: Id) -> Result<[Id; 4]> {
        lock(self.reads).add_edge(edge);
        self.version.edge(edge)
    }

    fn classes_of_type(&self, type_id: Id) -> &[ClassId] {
        self.version.classes_of_type(type_id)
    }

    fn class_size(&self, class: ClassId) -> u64 {
        self.version.class_size(class)
    }

    fn literal_range(&self, from: &[u8], to: Option<&[u8]>) -> Result<Option<Range<u64>>> {
        lock(self.reads).add_texts(from, to);
        self.version.literal_range(from, to)
    }

    fn unordered_literals(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        out: &mut Vec<Id>,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        lock(self.reads).add_texts(from, to);
        self.version.unordered_literals(from, to, out, meter)
    }

    /// An estimate.
    fn unordered_literal_count(&self, from: &[u8], to: Option<&[u8]>) -> Result<u64> {
        self.version.unordered_literal_count(from, to)
    }

    /// An estimate.
    fn search_count(&self, search: &TextSearch, meter: &mut Meter<'_>) -> Result<Option<u64>> {
        self.version.search_count(search, meter)
    }

    fn search(&self, search: &TextSearch, out: &mut Vec<Id>, meter: &mut Meter<'_>) -> Result<()> {
        lock(self.reads).add_search(search);
        self.version.search(search, out, meter)
    }

    fn literals_in_order(&self, positions: Range<u64>, out: &mut Vec<Id>) -> Result<()> {
        self.version.literals_in_order(positions, out)
    }

    /// Class statistics would serve as proofs about unread data.
    fn classes_are_exact(&self) -> bool {
        false
    }
}

impl Segment for TrackedSegment<'_> {
    fn statistics(&self) -> &SegmentStatistics {
        // Relaxed: recording them twice is harmless.
        if !self.flags_recorded.swap(true, Ordering::Relaxed) {
            lock(self.reads).add_flags(self.predicate, self.direction, &self.statistics);
        }
        &self.statistics
    }

    fn expand(
        &self,
        keys: &[Id],
        filter: EntryFilter,
        cursor: &mut Cursor,
        out: &mut Expansion,
    ) -> Result<()> {
        let first = cursor.row;
        self.segment.expand(keys, filter, cursor, out)?;
        let end = (cursor.row + 1).min(keys.len());
        let read = keys.get(first..end).unwrap_or_default();
        lock(self.reads).add_keys(self.predicate, self.direction, read);
        Ok(())
    }

    fn split(&self, key: Id, parts: usize, entries_min: usize, out: &mut Vec<Id>) -> Result<()> {
        // The split of entries changes no result, so this is no read.
        self.segment.split(key, parts, entries_min, out)
    }

    fn degrees(&self, keys: &[Id], filter: EntryFilter, out: &mut Vec<u64>) -> Result<()> {
        lock(self.reads).add_keys(self.predicate, self.direction, keys);
        self.segment.degrees(keys, filter, out)
    }

    fn check(&self, keys: &[Id], neighbours: &[Id], filter: EntryFilter, out: &mut Vec<u32>) -> Result<()> {
        let entries = keys.iter().copied().zip(neighbours.iter().copied());
        lock(self.reads).add_entries(self.predicate, self.direction, entries);
        self.segment.check(keys, neighbours, filter, out)
    }

    fn check_constant(
        &self,
        keys: &[Id],
        neighbour: Id,
        filter: EntryFilter,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        let entries = keys.iter().map(|key| (*key, neighbour));
        lock(self.reads).add_entries(self.predicate, self.direction, entries);
        self.segment.check_constant(keys, neighbour, filter, out)
    }

    fn neighbours(&self, key: Id, filter: EntryFilter, out: &mut Vec<Id>) -> Result<()> {
        lock(self.reads).add_keys(self.predicate, self.direction, &[key]);
        self.segment.neighbours(key, filter, out)
    }

    fn content_id(&self) -> Option<ContentId> {
        // A read of a copy would not be recorded.
        None
    }

    fn is_remote(&self, keys: Option<&[Id]>) -> bool {
        // Where entries are changes no result, so this is no read.
        self.segment.is_remote(keys)
    }

    fn keys(&self, from: Id, limit: usize, out: &mut Vec<Id>) -> Result<Option<Id>> {
        lock(self.reads).add_segment(self.predicate);
        self.segment.keys(from, limit, out)
    }

    fn keys_up_to(&self, from: Id, last: Id, limit: usize, out: &mut Vec<Id>) -> Result<Option<Id>> {
        if !from.is_bound() && last.bits() == u64::MAX {
            return self.keys(from, limit, out);
        }
        let next = self.segment.keys_up_to(from, last, limit, out)?;
        let end = next.map_or(last, |next| Id::from_bits(next.bits().saturating_sub(1)));
        lock(self.reads).add_range(self.predicate, self.direction, from, end);
        Ok(next)
    }

    fn order(&self) -> Option<Id> {
        self.segment.order()
    }

    fn ordered(
        &self,
        key: Id,
        range: &OrderRange,
        graph: GraphFilter,
        out: &mut Vec<OrderedEntry>,
    ) -> Result<()> {
        let mut reads = lock(self.reads);
        reads.add_keys(self.predicate, self.direction, &[key]);
        // The compared values are not known here, so the whole property counts as read.
        if let Some(property) = self.segment.order() {
            reads.add_segment(property);
        }
        drop(reads);
        self.segment.ordered(key, range, graph, out)
    }

    fn keys_below(&self, key: Id) -> Result<u64> {
        self.segment.keys_below(key)
    }

    fn entries(&self, key: Id, from: [Id; 3], limit: usize, out: &mut Vec<[Id; 3]>) -> Result<()> {
        lock(self.reads).add_keys(self.predicate, self.direction, &[key]);
        self.segment.entries(key, from, limit, out)
    }
}

#[cfg(test)]
mod tests {
    /// Every method of `Snapshot` and `Segment` is implemented here. A method that is left to its default
    /// body would read without a record, or more slowly through other methods. Compares the sources.
    #[test]
    fn every_method_is_tracked_or_forwarded() {
        let methods = |source: &str, header: &str| -> Vec<String> {
            let body = source.split_once(header).expect("the header is in the source").1;
            let body = body.split_once("\n}\n").expect("a closing brace").0;
            let names = body.lines().filter_map(|line| line.strip_prefix("    fn "));
            names.map(|rest| rest.split(['(', '<']).next().unwrap_or_default().to_owned()).collect()
        };
        for (name, header, methods_min) in [
            ("Snapshot", "impl Snapshot for Tracked<'_> {", 20),
            ("Segment", "impl Segment for TrackedSegment<'_> {", 10),
        ] {
            let declaration = format!("pub trait {name}: Send + Sync {{");
            let required = methods(include_str!("../../snapshot/src/lib.rs"), &declaration);
            let implemented = methods(include_str!("tracked.rs"), header);
            assert!(required.len() > methods_min, "the trait was found: {required:?}");
            for method in required {
                assert!(implemented.contains(&method), "{name}::{method} is not tracked");
            }
        }
    }
}

//! Validation of a whole store: checksums and consistency of all its parts.

use crate::entries::{Entries, KeyRuns};
use crate::locate::SegmentEntry;
use crate::order::{self, Values};
use crate::predicate_sets::PredicateSets;
use crate::statistics::{Classes, are_plain_strings, collect};
use crate::{Base, BaseSegment, Store};
use rustc_hash::FxHashMap;
use vervet_model::{Direction, Error, Id, Result, Tag, Watch};
use vervet_snapshot::{EntryFilter, Segment, SegmentStatistics};
use xxhash_rust::xxh3::xxh3_64;

/// Number and sum of hashes of the entries of one direction of a predicate: equal for both directions of all
/// partitions together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HalfSum {
    entries: u64,
    sum: u64,
}

impl HalfSum {
    /// Adds the entries of another partition.
    pub fn add(&mut self, other: Self) {
        self.entries += other.entries;
        self.sum = self.sum.wrapping_add(other.sum);
    }
}

impl Store {
    /// [`crate::Base::validate`].
    pub(crate) fn validate_all(&self) -> Result<()> {
        for (name, record, bytes) in &self.files {
            if xxh3_64(bytes) != record.checksum {
                return Err(Error::corrupt(name, "its checksum differs from the manifest"));
            }
        }
        self.dictionary.validate()?;
        let mut classes =
            Classes::new(self.types()?.as_slice(), self.toc.vertex_count, self.toc.literal_count)
                .with_predicates(self.toc.predicates.len());
        // Earlier versions have no classes by predicates.
        if classes.table != self.toc.classes {
            self.classify(&mut classes)?;
        }
        if classes.table != self.toc.classes {
            return Err(Error::corrupt("table of contents", "classes differ from a recount"));
        }
        let mut graphs: FxHashMap<u64, u64> = FxHashMap::default();
        let mut statements = 0;
        let mut edges = 0;
        for (predicate, count) in &self.toc.predicates {
            let out = self.walk(*predicate, Direction::Out)?;
            let mut reverse = self.walk(*predicate, Direction::In)?;
            let name = format!("segment {predicate:?}");
            if out.len() as u64 != *count {
                return Err(Error::corrupt(name, "its number of entries differs from the table of contents"));
            }
            for entry in &out {
                self.validate_entry(entry, *predicate, &name)?;
                if entry[2] != 0 {
                    *graphs.entry(entry[2]).or_default() += 1;
                }
                edges += usize::from(entry[3] != 0);
            }
            statements += count;
            let objects = KeyRuns::of(reverse.as_slice());
            let subjects = KeyRuns::of(out.as_slice());
            let strings = are_plain_strings(&objects.keys, &self.dictionary, &Watch::new("check"))?;
            let expected = collect(out.as_slice(), &subjects, &objects, &classes, strings);
            reverse.iter_mut().for_each(|entry| entry.swap(0, 1));
            reverse.sort_unstable();
            if out != reverse {
                return Err(Error::corrupt(name, "its directions have different entries"));
            }
            for (direction, expected) in Direction::BOTH.into_iter().zip(expected) {
                let segment = self.base_segment(*predicate, direction)?;
                if segment.is_none_or(|segment| !is_recount(segment.statistics(), expected)) {
                    return Err(Error::corrupt(name, "its statistics differ from a recount"));
                }
            }
        }
        self.validate_orders()?;
        let mut graphs: Vec<_> = graphs.into_iter().map(|(id, count)| (Id::from_bits(id), count)).collect();
        graphs.sort_unstable();
        let table = self.edge_table()?;
        if statements != self.toc.statement_count
            || graphs != self.toc.graphs
            || table.map_or(0, |table| table.len()) != edges
            || table.map_or(0, |table| table.number_end()) > self.toc.edge_count
        {
            return Err(Error::corrupt("table of contents", "its counts differ from a recount"));
        }
        Ok(())
    }

    /// Adds the classes by predicates.
    fn classify(&self, classes: &mut Classes) -> Result<()> {
        let (Some(mut sets), watch) =
            (PredicateSets::new(&classes.table, &classes.of_vertex), Watch::new("check"))
        else {
            return Ok(());
        };
        let mut predicates: Vec<Id> = self.toc.predicates.iter().map(|(predicate, _)| *predicate).collect();
        predicates.sort_unstable();
        for predicate in predicates {
            let entries = self.walk(predicate, Direction::Out)?;
            let mut visit = |each: &mut dyn FnMut([u64; 2])| {
                entries.iter().for_each(|[subject, object, ..]| each([*subject, *object]));
            };
            sets.add_predicate(&mut visit, &watch)?;
        }
        sets.classify(classes, &watch)
    }

    /// Reads the entries of one predicate and direction of a store of one partition: their order, ids, and
    /// whether each belongs here by `is_owner`, which is called with subject and object.
    ///
    /// # Errors
    /// [`vervet_model::ErrorKind::Corrupt`] with the damage and its location.
    pub fn validate_half(
        &self,
        predicate: Id,
        direction: Direction,
        is_owner: &dyn Fn(Id, Id) -> bool,
    ) -> Result<HalfSum> {
        let name = format!("segment {predicate:?} {direction:?}");
        let mut half = HalfSum::default();
        if self.base_segment(predicate, direction)?.is_none_or(|segment| segment.statistics().entries == 0) {
            return Ok(half);
        }
        for [key, neighbour, graph, edge] in self.walk(predicate, direction)? {
            let [subject, object] = match direction {
                Direction::Out => [key, neighbour],
                Direction::In => [neighbour, key],
            };
            if !is_owner(Id::from_bits(subject), Id::from_bits(object)) {
                return Err(Error::corrupt(name, "it has an entry of another partition"));
            }
            half.entries += 1;
            let bytes = [subject, object, graph, edge].map(u64::to_le_bytes);
            half.sum = half.sum.wrapping_add(xxh3_64(bytes.as_flattened()));
        }
        Ok(half)
    }

    /// Checks that the order columns equal recomputed ones.
    fn validate_orders(&self) -> Result<()> {
        for &(predicate, property) in self.orders() {
            let values = self.walk(property, Direction::Out)?;
            let values = values.into_iter().map(|[subject, value, ..]| [subject, value]).collect();
            let values = Values::Pairs(values);
            for direction in Direction::BOTH {
                let name = format!("order of segment {predicate:?} {direction:?}");
                let entries = self.walk(predicate, direction)?;
                let (runs, of) = (KeyRuns::of(entries.as_slice()), (predicate, direction, property));
                let (entries, watch) = (entries.as_slice(), Watch::new("check"));
                let by_edges = order::is_by_edges(entries, &values);
                let expected = order::encode(of, entries, &runs, &values, by_edges, &watch)?;
                let segment = self.base_segment(predicate, direction)?;
                let column = segment.map(|segment| segment.order_column()).transpose()?.flatten();
                if column.is_none_or(|column| column.bytes[..] != expected[..]) {
                    return Err(Error::corrupt(name, "it differs from a rebuilt one"));
                }
            }
        }
        Ok(())
    }

    /// Subject and type of every type statement, sorted.
    fn types(&self) -> Result<Vec<[u64; 2]>> {
        let entries = match self.toc.type_predicate {
            Id::UNBOUND => Vec::new(),
            predicate => self.walk(predicate, Direction::Out)?,
        };
        Ok(entries.into_iter().map(|[subject, object, ..]| [subject, object]).collect())
    }

    /// All entries of a segment (key, neighbour, graph, edge), after a check of their order.
    fn walk(&self, predicate: Id, direction: Direction) -> Result<Vec<[u64; 4]>> {
        let name = format!("segment {predicate:?} {direction:?}");
        let Some(segment) = self.base_segment(predicate, direction)? else {
            return Err(Error::corrupt(name, "it is missing"));
        };
        let entries = segment.all_entries(&name)?;
        let in_order = |pair: &[[u64; 4]]| pair[0] < pair[1];
        if !entries.windows(2).all(in_order) {
            return Err(Error::corrupt(name, "its entries are not in order"));
        }
        Ok(entries)
    }

    /// Checks that the ids of an entry (subject, object, graph, edge) exist, and that the edge table agrees.
    fn validate_entry(&self, entry: &[u64; 4], predicate: Id, name: &str) -> Result<()> {
        let [subject, object, graph, edge] = entry.map(Id::from_bits);
        let table = self.edge_table()?;
        let known = |id: Id| match id.tag() {
            Tag::Vertex => id.payload() < self.toc.vertex_count,
            Tag::Literal => id.payload() < self.toc.literal_count,
            Tag::Edge => table.is_some_and(|table| table.contains(id.bits())),
            Tag::Unbound | Tag::Computed => false,
            _ => true,
        };
        let subject_fits = known(subject) && !subject.is_stored_literal();
        let graph_fits = !graph.is_bound() || graph.is_vertex() && known(graph);
        if !subject_fits || !graph_fits || !known(object) {
            return Err(Error::corrupt(name, "it has an id that the dictionary does not know"));
        }
        let row = [subject, predicate, object, graph];
        if edge.is_bound() && table.and_then(|table| table.row(edge)) != Some(row) {
            return Err(Error::corrupt(
                name,
                format_args!("{edge:?} is another statement in the edge table"),
            ));
        }
        Ok(())
    }
}

impl BaseSegment {
    /// Every entry: key, neighbour, graph, edge. Looks each key up as a query would.
    fn all_entries(&self, name: &str) -> Result<Vec<[u64; 4]>> {
        let view = self.view();
        let mut keys = Vec::new();
        self.keys(Id::UNBOUND, usize::MAX, &mut keys)?;
        if !keys.is_sorted() || keys.len() as u64 != self.statistics().keys {
            return Err(Error::corrupt(name, "its keys are not in order"));
        }
        let filter = EntryFilter::ALL;
        let mut all = Vec::new();
        let mut entries: Vec<SegmentEntry> = Vec::new();
        for (position, key) in keys.iter().enumerate() {
            if view.position(*key) as usize != position {
                return Err(Error::corrupt(name, "a key is not found where it is listed"));
            }
            self.entries_of(*key, filter, &mut entries);
            if entries.first().is_none_or(|entry| entry.index != all.len()) {
                return Err(Error::corrupt(name, "its offsets omit entries"));
            }
            all.extend(
                entries
                    .iter()
                    .map(|entry| [key.bits(), entry.neighbour.bits(), entry.graph.bits(), entry.edge.bits()]),
            );
        }
        if all.len() as u64 != self.statistics().entries || Entries::len(all.as_slice()) != view.count {
            return Err(Error::corrupt(name, "its offsets omit entries"));
        }
        self.validate_flags(&all, name)?;
        Ok(all)
    }
}

/// Whether the statistics are those of a recount, apart from parts that earlier versions of the file lack.
fn is_recount(statistics: &SegmentStatistics, mut recount: SegmentStatistics) -> bool {
    if statistics.sketch.is_none() {
        recount.sketch = None;
        recount.degree_squares = 0;
    }
    // `false` is unknown.
    recount.plain_strings_only &= statistics.plain_strings_only;
    *statistics == recount
}

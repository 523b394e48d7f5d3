//! The base over a store for each partition.
//!
//! # Invariants
//! All stores have one dictionary, and the same counts of ids and classes; every statement is in two halves,
//! each at one partition: [`PartitionedBase::validate`] checks it.
//! # Cost
//! A segment is made from those of all partitions on first use. See `keyed` and `split`.

use crate::keyed::KeyedSegment;
use crate::split::SplitSegment;
use crate::statistics::merge;
use oxrdf::TermRef;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use vervet_dictionary::Dictionary;
use vervet_model::{
    Direction, Error, ErrorKind, Id, LiteralKind, Meter, Partitioning, Result, Tag, TermParts, TextSearch,
};
use vervet_snapshot::{ClassId, KeySketch, Segment, SegmentStatistics, Snapshot};
use vervet_store::{Base, CheckpointPosition, HalfSum, PartSize, PartStores, Store};

/// A segment, once it was asked for; `None`: there are no entries.
type SegmentSlot = OnceLock<Option<Arc<dyn Segment>>>;

/// See the header of this file.
pub struct PartitionedBase {
    partitioning: Partitioning,
    stores: Vec<Store>,
    /// By predicate (bits): the statistics of all in entries.
    split: FxHashMap<u64, SegmentStatistics>,
    predicates: Vec<(Id, u64)>,
    graphs: Vec<(Id, u64)>,
    statements: u64,
    /// By predicate (bits) and direction.
    segments: FxHashMap<u64, [SegmentSlot; 2]>,
}

impl fmt::Debug for PartitionedBase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = (self.partitioning.count(), self.statements);
        write!(f, "PartitionedBase({} partitions, {} statements)", counts.0, counts.1)
    }
}

impl PartitionedBase {
    /// The graph of these stores.
    ///
    /// # Errors
    /// Internal: their number is not that of the partitions.
    pub fn new(partitioning: Partitioning, PartStores { stores, split }: PartStores) -> Result<Self> {
        if stores.len() != partitioning.count() {
            return Err(Error::internal("there is not one store for each partition"));
        }
        let sum = |lists: &mut dyn Iterator<Item = &[(Id, u64)]>| -> Vec<(Id, u64)> {
            let mut counts: BTreeMap<Id, u64> = BTreeMap::new();
            lists.flatten().for_each(|(id, count)| *counts.entry(*id).or_default() += count);
            counts.into_iter().filter(|(_, count)| *count > 0).collect()
        };
        let predicates = sum(&mut stores.iter().map(Snapshot::predicates));
        Ok(Self {
            partitioning,
            graphs: sum(&mut stores.iter().map(Snapshot::graphs)),
            statements: stores.iter().map(Snapshot::statement_count).sum(),
            segments: predicates.iter().map(|(id, _)| (id.bits(), Default::default())).collect(),
            predicates,
            split: split.into_iter().map(|(id, statistics)| (id.bits(), statistics)).collect(),
            stores,
        })
    }

    /// A graph without statements.
    ///
    /// # Errors
    /// None at present.
    pub fn empty(partitioning: Partitioning) -> Result<Self> {
        let stores = (0..partitioning.count()).map(|_| Store::empty()).collect::<Result<Vec<_>>>()?;
        Self::new(partitioning, PartStores { stores, split: Vec::new() })
    }

    /// The first store, for everything that all have: terms, classes, bounds of numbers.
    fn first(&self) -> &Store {
        &self.stores[0]
    }

    /// The segment of each partition, if it has entries.
    fn parts(&self, predicate: Id, direction: Direction) -> Result<Vec<Option<Arc<dyn Segment>>>> {
        let part = |store: &Store| -> Result<Option<Arc<dyn Segment>>> {
            let segment = store.segment_arc(predicate, direction)?;
            Ok(segment.filter(|segment| segment.statistics().entries > 0))
        };
        self.stores.iter().map(part).collect()
    }

    /// Number of distinct keys of a predicate in a direction.
    fn key_count(&self, predicate: Id, direction: Direction) -> Result<u64> {
        match self.split.get(&predicate.bits()).filter(|_| direction == Direction::In) {
            Some(statistics) => Ok(statistics.keys),
            None => {
                let parts = self.parts(predicate, direction)?;
                Ok(parts.iter().flatten().map(|part| part.statistics().keys).sum())
            }
        }
    }

    fn make_segment(&self, predicate: Id, direction: Direction) -> Result<Option<Arc<dyn Segment>>> {
        let parts = self.parts(predicate, direction)?;
        if parts.iter().all(Option::is_none) {
            return Ok(None);
        }
        let order = self.orders().iter().find(|(of, _)| *of == predicate).map(|(_, property)| *property);
        if let Some(statistics) = self.split.get(&predicate.bits()).filter(|_| direction == Direction::In) {
            let statistics = statistics.clone();
            let parts = parts.into_iter().flatten().collect();
            return Ok(Some(Arc::new(SplitSegment { parts, statistics, order })));
        }
        let neighbours = self.key_count(predicate, direction.reverse())?;
        let statistics = merge(&parts, neighbours, KeySketch::samples_for(self.predicates.len()));
        Ok(Some(Arc::new(KeyedSegment { partitioning: self.partitioning, parts, statistics, order })))
    }

    fn segment_slot(&self, predicate: Id, direction: Direction) -> Result<Option<&Arc<dyn Segment>>> {
        let Some(slots) = self.segments.get(&predicate.bits()) else { return Ok(None) };
        let slot = &slots[direction as usize];
        let segment = match slot.get() {
            Some(segment) => segment,
            None => {
                let segment = self.make_segment(predicate, direction)?;
                slot.get_or_init(|| segment)
            }
        };
        Ok(segment.as_ref())
    }
}

impl Base for PartitionedBase {
    fn dictionary(&self) -> &Dictionary {
        self.first().dictionary()
    }

    fn number(&self) -> u64 {
        self.first().number()
    }

    fn partitioning(&self) -> Partitioning {
        self.partitioning
    }

    fn segment_arc(&self, predicate: Id, direction: Direction) -> Result<Option<Arc<dyn Segment>>> {
        Ok(self.segment_slot(predicate, direction)?.map(Arc::clone))
    }

    fn find_edge(&self, edge: Id) -> Result<Option<[Id; 4]>> {
        self.stores[self.partitioning.owner(edge)].find_edge(edge)
    }

    fn orders(&self) -> &[(Id, Id)] {
        self.first().orders()
    }

    fn generation(&self) -> Option<u64> {
        self.first().generation()
    }

    fn checkpoint_position(&self) -> Option<CheckpointPosition> {
        self.first().checkpoint_position()
    }

    fn file_bytes(&self) -> u64 {
        self.stores.iter().map(Base::file_bytes).sum()
    }

    fn constraints(&self) -> &[String] {
        self.first().constraints()
    }

    fn parts(&self) -> Result<Vec<PartSize>> {
        let mut sizes: Vec<PartSize> = Vec::new();
        for (partition, store) in self.stores.iter().enumerate() {
            for size in store.parts()? {
                let is_dictionary = size.segment.is_none() && size.part != Store::EDGE_TABLE;
                let known = |one: &&mut PartSize| one.segment == size.segment && one.part == size.part;
                match sizes.iter_mut().find(known) {
                    Some(known) if !is_dictionary => known.bytes += size.bytes,
                    // All stores have the dictionary of the first.
                    Some(_) => {}
                    None if is_dictionary && partition > 0 => {}
                    None => sizes.push(size),
                }
            }
        }
        Ok(sizes)
    }

    fn validate(&self) -> Result<()> {
        self.dictionary().validate()?;
        for (predicate, _) in &self.predicates {
            let is_split = self.split.contains_key(&predicate.bits());
            let mut sums = [HalfSum::default(); 2];
            for (partition, store) in self.stores.iter().enumerate() {
                for (sum, direction) in sums.iter_mut().zip(Direction::BOTH) {
                    let is_owner = |subject: Id, object: Id| {
                        let by_subject = direction == Direction::Out || is_split;
                        self.partitioning.owner(if by_subject { subject } else { object }) == partition
                    };
                    sum.add(store.validate_half(*predicate, direction, &is_owner)?);
                }
            }
            if sums[0] != sums[1] {
                let name = format!("predicate {predicate:?}");
                return Err(Error::corrupt(name, "its directions have different entries"));
            }
        }
        Ok(())
    }
}

impl Snapshot for PartitionedBase {
    fn lookup(&self, term: TermRef<'_>) -> Result<Option<Id>> {
        match self.dictionary().lookup(term)? {
            Some(edge) if edge.tag() == Tag::Edge => Ok(self.find_edge(edge)?.map(|_| edge)),
            found => Ok(found),
        }
    }

    fn read_term(&self, id: Id, scratch: &mut String, read: &mut dyn FnMut(TermParts<'_>)) -> Result<()> {
        self.first().read_term(id, scratch, read)
    }

    fn write_terms(&self, ids: &[Id], out: &mut Vec<u8>, ends: &mut Vec<usize>) -> Result<()> {
        self.first().write_terms(ids, out, ends)
    }

    fn is_blank(&self, id: Id) -> Result<bool> {
        self.first().is_blank(id)
    }

    fn is_plain_text(&self, id: Id) -> Result<bool> {
        self.first().is_plain_text(id)
    }

    fn read_literal_kind(&self, id: Id, read: &mut dyn FnMut(Option<LiteralKind<'_>>)) -> Result<()> {
        self.first().read_literal_kind(id, read)
    }

    fn may_have_triple_terms(&self) -> bool {
        self.first().may_have_triple_terms()
    }

    fn may_have_blanks(&self) -> bool {
        self.first().may_have_blanks()
    }

    fn text_rank(&self, id: Id) -> Result<Option<u64>> {
        self.first().text_rank(id)
    }

    fn segment(&self, predicate: Id, direction: Direction) -> Result<Option<&dyn Segment>> {
        Ok(self.segment_slot(predicate, direction)?.map(|segment| &**segment))
    }

    fn predicates(&self) -> &[(Id, u64)] {
        &self.predicates
    }

    fn graphs(&self) -> &[(Id, u64)] {
        &self.graphs
    }

    fn type_predicate(&self) -> Option<Id> {
        self.first().type_predicate()
    }

    fn vertex_count(&self) -> u64 {
        self.first().vertex_count()
    }

    fn edge_count(&self) -> u64 {
        self.first().edge_count()
    }

    fn literal_count(&self) -> u64 {
        self.first().literal_count()
    }

    fn statement_count(&self) -> u64 {
        self.statements
    }

    fn edge(&self, edge: Id) -> Result<[Id; 4]> {
        self.find_edge(edge)?
            .ok_or_else(|| Error::new(ErrorKind::Input, format!("{edge:?} is not an edge of this graph")))
    }

    fn classes_of_type(&self, type_id: Id) -> &[ClassId] {
        self.first().classes_of_type(type_id)
    }

    fn classes_are_exact(&self) -> bool {
        true
    }

    fn class_size(&self, class: ClassId) -> u64 {
        self.first().class_size(class)
    }

    fn literal_range(&self, from: &[u8], to: Option<&[u8]>) -> Result<Option<Range<u64>>> {
        self.first().literal_range(from, to)
    }

    fn unordered_literals(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        out: &mut Vec<Id>,
        meter: &mut Meter<'_>,
    ) -> Result<()> {
        self.first().unordered_literals(from, to, out, meter)
    }

    fn unordered_literal_count(&self, from: &[u8], to: Option<&[u8]>) -> Result<u64> {
        self.first().unordered_literal_count(from, to)
    }

    fn search_count(&self, search: &TextSearch, meter: &mut Meter<'_>) -> Result<Option<u64>> {
        self.first().search_count(search, meter)
    }

    fn search(&self, search: &TextSearch, out: &mut Vec<Id>, meter: &mut Meter<'_>) -> Result<()> {
        self.first().search(search, out, meter)
    }

    fn literals_in_order(&self, positions: Range<u64>, out: &mut Vec<Id>) -> Result<()> {
        self.first().literals_in_order(positions, out)
    }
}

//! The base over partitions: a store for each one of this process, and other servers for the rest.
//!
//! # Invariants
//! All stores have one dictionary, and the same counts of ids and classes; every statement is in two halves,
//! each at one partition: [`PartitionedBase::validate`] checks it. There is one store at least.
//! # Cost
//! A segment is made from those of all parts on first use. See `keyed` and `split`.

use crate::bytes::{self, Request};
use crate::call::{PartSegment, answer, empty_answer};
use crate::catalog::Catalog;
use crate::copied::{CopiedSegment, ENTRIES_MAX};
use crate::counted;
use crate::kept::KeptAnswers;
use crate::keyed::KeyedSegment;
use crate::long_lists::LongLists;
use crate::remote::Remote;
use crate::routes::{Routes, elsewhere};
use crate::split::SplitSegment;
use crate::together::Parts;
use oxrdf::TermRef;
use rustc_hash::FxHashMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};
use vervet_dictionary::Dictionary;
use vervet_model::{
    Direction, Error, ErrorKind, Id, LiteralKind, Meter, Partitioning, Result, Tag, TermParts, TextSearch,
    ThreadLimits, lock,
};
use vervet_snapshot::{ClassId, ContentId, KeyEntries, Segment, Snapshot};
use vervet_store::{Base, CheckpointPosition, HalfSum, PartSize, PartStores, Store};

/// A segment, once it was asked for; `None`: there are no entries.
type SegmentSlot = OnceLock<Option<Arc<dyn Segment>>>;

/// See the header of this file.
pub struct PartitionedBase {
    routes: Arc<Routes>,
    /// The partitions of this process, with their numbers, ascending.
    stores: Vec<(usize, Arc<Store>)>,
    remotes: Vec<Arc<dyn Remote>>,
    catalog: Arc<Catalog>,
    /// From the bits of a predicate to its position in the catalog.
    index: FxHashMap<u64, usize>,
    /// By position in the catalog, and direction.
    segments: Vec<[SegmentSlot; 2]>,
    lists: Arc<LongLists>,
    /// See [`crate::PartitionDirectory::set_copied_part`].
    copied_part: u64,
    /// The number of the build of its files; 0: it has none.
    build: u64,
    /// Some partitions of this process alone, for requests that are for those.
    parts: Mutex<FxHashMap<Vec<usize>, Arc<Self>>>,
}

/// Sets of partitions that are kept for requests.
const PARTS_MAX: usize = 64;

#[cold]
fn another_build() -> Error {
    Error::new(ErrorKind::Unavailable, "the server that was asked has data of another build")
        .with_hint("try again; if that does not help, `vervet cluster status` says which server differs")
}

impl fmt::Debug for PartitionedBase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = (self.stores.len(), self.partitioning().count(), self.catalog.statements);
        write!(f, "PartitionedBase({} of {} partitions, {} statements)", counts.0, counts.1, counts.2)
    }
}

impl PartitionedBase {
    /// The graph of these stores, which are all partitions.
    ///
    /// # Errors
    /// Internal: their number is not that of the partitions. Damaged segment.
    pub fn new(partitioning: Partitioning, PartStores { stores, split }: PartStores) -> Result<Self> {
        if stores.len() != partitioning.count() {
            return Err(Error::internal("there is not one store for each partition"));
        }
        let catalog = Catalog::of(&stores.iter().collect::<Vec<_>>(), split)?;
        let routes = Routes::new(partitioning, (0..stores.len()).map(Some).collect());
        let stores = stores.into_iter().map(Arc::new).enumerate().collect();
        Ok(Self::with_catalog(routes, stores, Vec::new(), Arc::new(catalog), (0, u64::MAX)))
    }

    /// The graph of the partitions of this process and of those of `remotes`. Parts are numbered in this
    /// order in `routes`.
    pub(crate) fn with_catalog(
        routes: Routes,
        stores: Vec<(usize, Arc<Store>)>,
        remotes: Vec<Arc<dyn Remote>>,
        catalog: Arc<Catalog>,
        (build, copied_part): (u64, u64),
    ) -> Self {
        let predicates = catalog.predicates.iter();
        let count = remotes.len();
        let keeping = |remote| Arc::new(KeptAnswers::new(remote, count)) as Arc<dyn Remote>;
        let remotes = remotes.into_iter().map(keeping).collect();
        Self {
            index: predicates
                .zip(0..)
                .map(|((predicate, _), position)| (predicate.bits(), position))
                .collect(),
            segments: catalog.predicates.iter().map(|_| Default::default()).collect(),
            routes: Arc::new(routes),
            stores,
            remotes,
            catalog,
            lists: Arc::default(),
            copied_part,
            build,
            parts: Mutex::default(),
        }
    }

    /// The number of partitions of the whole graph.
    #[must_use]
    pub fn partitioning(&self) -> Partitioning {
        self.routes.partitioning()
    }

    /// The number of the build of its files; 0: it has none.
    #[must_use]
    pub fn build(&self) -> u64 {
        self.build
    }

    /// The partitions that this process has, ascending.
    pub fn own_partitions(&self) -> impl Iterator<Item = usize> {
        self.stores.iter().map(|(partition, _)| *partition)
    }

    /// The graph of a partition of this process alone: the half of each statement that it has.
    ///
    /// # Errors
    /// Unavailable: it is at another server.
    pub fn partition(&self, number: usize) -> Result<&dyn Snapshot> {
        let found = self.stores.iter().find(|(partition, _)| *partition == number);
        found.map(|(_, store)| &**store as &dyn Snapshot).ok_or_else(|| elsewhere(number))
    }

    /// Whether the entries of a predicate by object are at the partitions of their subjects, because few
    /// objects have many.
    #[must_use]
    pub fn is_split(&self, predicate: Id) -> bool {
        let position = self.index.get(&predicate.bits()).copied();
        position.and_then(|position| self.catalog.segments.get(position)).is_some_and(|known| known.is_split)
    }

    /// Appends to `out` the answer to a request of another server ([`Remote::send`]). It reads what this
    /// process has: a base with partitions of other servers answers for its own only if it has no `remotes`.
    ///
    /// # Errors
    /// The bytes are not a request; damaged data.
    pub fn answer(&self, request: &[u8], out: &mut Vec<u8>) -> Result<()> {
        match bytes::read_partitions(request, self.partitioning().count())? {
            Some(of) if of.build != self.build => Err(another_build()),
            Some(of) => self.part_with(of.partitions)?.answer_all(of.request, out),
            None => self.answer_all(request, out),
        }
    }

    /// The build that a request is for; `None`: it does not say.
    #[must_use]
    pub fn build_of(request: &[u8]) -> Option<u64> {
        bytes::read_partitions(request, usize::MAX).ok().flatten().map(|of| of.build)
    }

    /// The graph of these partitions of this process alone.
    fn part_with(&self, partitions: Vec<usize>) -> Result<Arc<Self>> {
        let mut parts = lock(&self.parts);
        if let Some(part) = parts.get(&partitions) {
            return Ok(Arc::clone(part));
        }
        let store = |partition: &usize| {
            let found = self.stores.iter().find(|(own, _)| own == partition);
            found.map(|(own, store)| (*own, Arc::clone(store))).ok_or_else(|| elsewhere(*partition))
        };
        let stores = partitions.iter().map(store).collect::<Result<Vec<_>>>()?;
        let mut part_of = vec![None; self.partitioning().count()];
        partitions.iter().enumerate().for_each(|(part, partition)| part_of[*partition] = Some(part));
        let routes = Routes::new(self.partitioning(), part_of);
        let known = (self.build, self.copied_part);
        let part = Self::with_catalog(routes, stores, Vec::new(), Arc::clone(&self.catalog), known);
        let part = Arc::new(part);
        if parts.len() < PARTS_MAX {
            parts.insert(partitions, Arc::clone(&part));
        }
        Ok(part)
    }

    fn answer_all(&self, request: &[u8], out: &mut Vec<u8>) -> Result<()> {
        match bytes::read_request(request)? {
            Request::FindEdge(edge) => bytes::write_edge(self.find_edge(edge)?, out),
            Request::EntriesTogether(request) => bytes::write_entries_reply(&request.answer(self)?, out),
            Request::Segment(predicate, direction, call) => {
                let reply = match self.segment_slot(predicate, direction)? {
                    Some(segment) => answer(&**segment, &call)?,
                    None => empty_answer(&call),
                };
                bytes::write_reply(&reply, out);
            }
        }
        Ok(())
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
        &self.stores[0].1
    }

    /// The segment of each part, if it has entries; that of another server may have none.
    fn parts(&self, predicate: Id, direction: Direction) -> Result<Vec<Option<PartSegment>>> {
        let local = |(_, store): &(usize, Arc<Store>)| -> Result<Option<PartSegment>> {
            let segment = store.segment_arc(predicate, direction)?;
            Ok(segment.filter(|segment| segment.statistics().entries > 0).map(PartSegment::Local))
        };
        let mut parts = self.stores.iter().map(local).collect::<Result<Vec<_>>>()?;
        let remote = |remote: &Arc<dyn Remote>| PartSegment::Remote(Arc::clone(remote), predicate, direction);
        parts.extend(self.remotes.iter().map(remote).map(Some));
        Ok(parts)
    }

    fn make_segment(&self, position: usize, direction: Direction) -> Result<Option<Arc<dyn Segment>>> {
        let predicate = self.catalog.predicates[position].0;
        let parts = self.parts(predicate, direction)?;
        if parts.iter().all(Option::is_none) {
            return Ok(None);
        }
        let order = self.orders().iter().find(|(of, _)| *of == predicate).map(|(_, property)| *property);
        let known = &self.catalog.segments[position];
        let statistics = known.statistics[direction as usize].clone();
        let routes = Arc::clone(&self.routes);
        let content = ContentId::new();
        let lists = self.lists.of_segment(predicate, direction);
        let is_split = known.is_split && direction == Direction::In;
        let is_remote = parts.iter().any(|part| matches!(part, Some(PartSegment::Remote(..))));
        let is_copied = is_remote
            && statistics.entries <= ENTRIES_MAX
            && statistics.entries.saturating_mul(self.copied_part) <= self.catalog.statements;
        let copies = lists.clone();
        Ok(Some(match (is_split, is_copied) {
            (true, false) => Arc::new(SplitSegment { routes, parts, statistics, order, lists, content }),
            (true, true) => Arc::new(CopiedSegment::new(
                SplitSegment { routes, parts, statistics, order, lists, content },
                copies,
            )),
            (false, false) => Arc::new(KeyedSegment { routes, parts, statistics, order, lists, content }),
            (false, true) => Arc::new(CopiedSegment::new(
                KeyedSegment { routes, parts, statistics, order, lists, content },
                copies,
            )),
        }))
    }

    fn segment_slot(&self, predicate: Id, direction: Direction) -> Result<Option<&Arc<dyn Segment>>> {
        let Some(position) = self.index.get(&predicate.bits()).copied() else { return Ok(None) };
        let Some(slots) = self.segments.get(position) else { return Ok(None) };
        let slot = &slots[direction as usize];
        let segment = match slot.get() {
            Some(segment) => segment,
            None => {
                let segment = self.make_segment(position, direction)?;
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
        self.routes.partitioning()
    }

    fn segment_arc(&self, predicate: Id, direction: Direction) -> Result<Option<Arc<dyn Segment>>> {
        Ok(self.segment_slot(predicate, direction)?.map(Arc::clone))
    }

    fn find_edge(&self, edge: Id) -> Result<Option<[Id; 4]>> {
        let part = self.routes.part(edge)?;
        if let Some((_, store)) = self.stores.get(part) {
            return store.find_edge(edge);
        }
        let Some(remote) = self.remotes.get(part - self.stores.len()) else { return Ok(None) };
        ThreadLimits::check()?;
        let mut request = Vec::new();
        bytes::write_find_edge(edge, &mut request);
        bytes::read_edge(&counted::send(&**remote, &request, 1)?.receive()?)
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
        self.stores.iter().map(|(_, store)| store.file_bytes()).sum()
    }

    fn constraints(&self) -> &[String] {
        self.first().constraints()
    }

    fn parts(&self) -> Result<Vec<PartSize>> {
        let mut sizes: Vec<PartSize> = Vec::new();
        for (position, (_, store)) in self.stores.iter().enumerate() {
            for size in store.parts()? {
                let is_dictionary = size.segment.is_none() && size.part != Store::EDGE_TABLE;
                let known = |one: &&mut PartSize| one.segment == size.segment && one.part == size.part;
                match sizes.iter_mut().find(known) {
                    Some(known) if !is_dictionary => known.bytes += size.bytes,
                    // All stores have the dictionary of the first.
                    Some(_) => {}
                    None if is_dictionary && position > 0 => {}
                    None => sizes.push(size),
                }
            }
        }
        Ok(sizes)
    }

    fn validate(&self) -> Result<()> {
        self.dictionary().validate()?;
        for ((predicate, _), known) in self.catalog.predicates.iter().zip(&self.catalog.segments) {
            let mut sums = [HalfSum::default(); 2];
            for (partition, store) in &self.stores {
                for (sum, direction) in sums.iter_mut().zip(Direction::BOTH) {
                    let is_owner = |subject: Id, object: Id| {
                        let by_subject = direction == Direction::Out || known.is_split;
                        self.partitioning().owner(if by_subject { subject } else { object }) == *partition
                    };
                    sum.add(store.validate_half(*predicate, direction, &is_owner)?);
                }
            }
            // Halves at other servers are not here to be compared.
            if self.stores.len() == self.partitioning().count() && sums[0] != sums[1] {
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

    fn base_number(&self) -> Option<u64> {
        Some(self.number())
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

    /// Also over partitions of this process alone, as the twin of several servers in tests.
    fn entries_together(
        &self,
        segments: &[(Id, Direction)],
        keys: &[Id],
        limit: usize,
    ) -> Result<Option<Vec<KeyEntries>>> {
        if self.stores.len() + self.remotes.len() == 1 {
            return Ok(None);
        }
        let is_split = |(predicate, direction): &(Id, Direction)| {
            let position = self.index.get(&predicate.bits());
            let known = position.and_then(|position| self.catalog.segments.get(*position));
            known.is_some_and(|known| known.is_split && *direction == Direction::In)
        };
        let split: Vec<bool> = segments.iter().map(is_split).collect();
        let parts = Parts { routes: &self.routes, stores: &self.stores, remotes: &self.remotes };
        parts.entries_together(segments, &split, keys, limit).map(Some)
    }

    fn predicates(&self) -> &[(Id, u64)] {
        &self.catalog.predicates
    }

    fn graphs(&self) -> &[(Id, u64)] {
        &self.catalog.graphs
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
        self.catalog.statements
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

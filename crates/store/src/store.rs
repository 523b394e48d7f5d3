//! The store: an immutable snapshot in memory or in mapped files.
//!
//! # Shape
//! A dictionary, a table of contents, and for each predicate two slots, which become segments on first use:
//! then their checksum is verified, once.
//! # Cost
//! Opening reads the manifest, the dictionary's head and the table of contents; a segment is one hash
//! lookup.
//! # Not here
//! Versions: `vervet-delta` adds changes on top of each segment; all versions share this store.

use crate::base::{Base, PartSize};
use crate::edges::EdgeTable;
use crate::files::{self, CheckpointPosition, FileRecord, Manifest};
use crate::lazy_section::LazySection;
use crate::order::OrderColumn;
use crate::segment::BaseSegment;
use crate::statistics::Classes;
use crate::toc::{SectionLocation, Toc};
use oxrdf::TermRef;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use vervet_dictionary::{Dictionary, DictionaryBuilder};
use vervet_env::{Bytes, Environment};
use vervet_model::{Direction, Error, ErrorKind, Id, LiteralKind, Meter, Result, Tag, TermParts, TextSearch};
use vervet_snapshot::{ClassId, Segment, Snapshot};

/// See [`Store::number`].
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// An immutable graph. See the header of this file.
#[derive(Debug)]
pub struct Store {
    pub(crate) dictionary: Arc<Dictionary>,
    pub(crate) toc: Toc,
    /// From the bits of a predicate to its position in the table of contents.
    index: FxHashMap<u64, usize>,
    slots: Vec<[LazySection<Arc<BaseSegment>>; 2]>,
    pub(crate) edges: Option<LazySection<EdgeTable>>,
    /// Ordered predicates with their ordering properties.
    ordered: Vec<(Id, Id)>,
    /// By predicate (bits) and direction.
    orders: FxHashMap<(u64, Direction), Arc<LazySection<OrderColumn>>>,
    /// The files with their records in the manifest, for validation.
    pub(crate) files: Vec<(String, FileRecord, Bytes)>,
    log: Option<CheckpointPosition>,
    generation: Option<u64>,
    pub(crate) constraints: Vec<String>,
    number: u64,
}

impl Store {
    /// The name of the edge table among [`Base::parts`].
    pub const EDGE_TABLE: &'static str = "edge table";

    /// A store without statements.
    ///
    /// # Errors
    /// None at present.
    pub fn empty() -> Result<Self> {
        let image = DictionaryBuilder::new().finish()?;
        let dictionary = Arc::new(Dictionary::open(Bytes::from(image), "empty dictionary")?);
        let classes = Classes::new::<[[u64; 2]]>(&[], 0, 0).table;
        Self::in_memory(dictionary, Toc { classes, ..Toc::default() }, Vec::new())
    }

    /// Opens the current generation of the database in `dir`.
    ///
    /// # Errors
    /// Input: there is no database. Corrupt: a file is damaged. Io: a file could not be read.
    pub fn open(environment: &Environment, dir: &Path) -> Result<Self> {
        let mut manifest = files::manifest_of(environment, dir)?;
        loop {
            match Self::open_generation(environment, dir, &manifest) {
                Ok(store) => return Ok(store),
                Err(error) => {
                    // A writer may have published the next generation and removed this one meanwhile.
                    let now = files::manifest_of(environment, dir)?;
                    if now.generation <= manifest.generation {
                        return Err(error);
                    }
                    manifest = now;
                }
            }
        }
    }

    pub(crate) fn open_generation(
        environment: &Environment,
        dir: &Path,
        manifest: &Manifest,
    ) -> Result<Self> {
        let name = dir.join(&manifest.dictionary.name).display().to_string();
        let image = files::map(environment, dir, &manifest.dictionary)?;
        let dictionary = Arc::new(Dictionary::open(image.clone(), &name)?);
        let segments = (&manifest.segments, manifest.generation);
        let mut store = Self::open_files(environment, dir, segments, (&manifest.dictionary, dictionary))?;
        store.log = manifest.log;
        store.generation = Some(manifest.generation);
        store.constraints.clone_from(&manifest.constraints);
        store.files.push((name, manifest.dictionary.clone(), image));
        Ok(store)
    }

    /// The store of a segment file, which has this number in its tail, with the dictionary of another file.
    pub(crate) fn open_files(
        environment: &Environment,
        dir: &Path,
        (record, number): (&FileRecord, u64),
        (dictionary_record, dictionary): (&FileRecord, Arc<Dictionary>),
    ) -> Result<Self> {
        let name = dir.join(&record.name).display().to_string();
        let segments = files::map(environment, dir, record)?;
        let toc = files::read_toc(&segments, number);
        let toc = toc.map_err(|damaged| Error::corrupt(&name, damaged.0))?;
        if (dictionary.vertex_count(), dictionary.literal_count()) != (toc.vertex_count, toc.literal_count) {
            let dictionary_name = dir.join(&dictionary_record.name);
            return Err(Error::corrupt(
                dictionary_name.display(),
                "it is not the dictionary of these segments",
            ));
        }
        let section = |location: &SectionLocation| {
            let offset = usize::try_from(location.offset).ok()?;
            let end = offset.checked_add(usize::try_from(location.length).ok()?)?;
            Some((segments.checked_slice(offset..end)?, Some(location.checksum)))
        };
        let mut store = Self::assemble(dictionary, toc, &name, section)?;
        store.files = vec![(name, record.clone(), segments.clone())];
        Ok(store)
    }

    /// A store of newly made sections; locations in `toc` are indices of sections.
    pub(crate) fn in_memory(dictionary: Arc<Dictionary>, toc: Toc, sections: Vec<Bytes>) -> Result<Self> {
        let section = |location: &SectionLocation| {
            let index = usize::try_from(location.offset).ok()?;
            Some((sections.get(index)?.clone(), None))
        };
        Self::assemble(dictionary, toc, "memory", section)
    }

    fn assemble(
        dictionary: Arc<Dictionary>,
        toc: Toc,
        file: &str,
        section: impl Fn(&SectionLocation) -> Option<(Bytes, Option<u64>)>,
    ) -> Result<Self> {
        let slot = |what: String, location: &SectionLocation| match section(location) {
            Some((bytes, checksum)) => Ok((format!("{file}, {what}"), bytes, checksum)),
            None => Err(Error::corrupt(file, format_args!("{what} is out of bounds"))),
        };
        let mut slots = Vec::with_capacity(toc.segments.len());
        for ((predicate, _), [out, reverse]) in toc.predicates.iter().zip(&toc.segments) {
            let open = |direction: Direction, location| {
                let (name, bytes, checksum) = slot(format!("segment {predicate:?} {direction:?}"), location)?;
                Ok(LazySection::new(name, bytes, checksum))
            };
            slots.push([open(Direction::Out, out)?, open(Direction::In, reverse)?]);
        }
        let edges = match &toc.edges {
            Some(location) => {
                let (name, bytes, checksum) = slot("edge table".to_owned(), location)?;
                Some(LazySection::new(name, bytes, checksum))
            }
            None => None,
        };
        let mut orders = FxHashMap::default();
        for order in &toc.orders {
            for (direction, location) in Direction::BOTH.into_iter().zip(&order.locations) {
                let what = format!("order of segment {:?} {direction:?}", order.predicate);
                let (name, bytes, checksum) = slot(what, location)?;
                let column = Arc::new(LazySection::new(name, bytes, checksum));
                orders.insert((order.predicate.bits(), direction), column);
            }
        }
        let ordered = toc.orders.iter().map(|order| (order.predicate, order.property)).collect();
        let index = toc.predicates.iter().map(|(predicate, _)| predicate.bits()).zip(0..).collect();
        // Relaxed: numbers only have to differ.
        let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        Ok(Self {
            dictionary,
            toc,
            index,
            slots,
            edges,
            ordered,
            orders,
            files: Vec::new(),
            log: None,
            generation: None,
            constraints: Vec::new(),
            number,
        })
    }

    /// The concrete segment, not as a trait object.
    pub(crate) fn base_segment(
        &self,
        predicate: Id,
        direction: Direction,
    ) -> Result<Option<&Arc<BaseSegment>>> {
        let Some(index) = self.index.get(&predicate.bits()) else { return Ok(None) };
        let Some([out, reverse]) = self.slots.get(*index) else { return Ok(None) };
        let slot = match direction {
            Direction::Out => out,
            Direction::In => reverse,
        };
        slot.get(|bytes, name| {
            let mut segment = BaseSegment::open(bytes, name)?;
            if segment.predicate() != predicate || segment.direction() != direction {
                return Err(Error::corrupt(name, "it is another segment"));
            }
            segment.count_untyped_keys(self.toc.classes.typed_end());
            if let Some(slot) = self.orders.get(&(predicate.bits(), direction)) {
                let property = self.ordered.iter().find(|(of, _)| *of == predicate);
                segment.set_order(property.map_or(Id::UNBOUND, |(_, property)| *property), Arc::clone(slot));
            }
            Ok(Arc::new(segment))
        })
        .map(Some)
    }

    pub(crate) fn edge_table(&self) -> Result<Option<&EdgeTable>> {
        self.edges.as_ref().map(|slot| slot.get(|bytes, name| EdgeTable::open(bytes, name))).transpose()
    }
}

impl Base for Store {
    fn dictionary(&self) -> &Dictionary {
        &self.dictionary
    }

    fn number(&self) -> u64 {
        self.number
    }

    fn generation(&self) -> Option<u64> {
        self.generation
    }

    fn checkpoint_position(&self) -> Option<CheckpointPosition> {
        self.log
    }

    fn file_bytes(&self) -> u64 {
        self.files.iter().map(|(_, record, _)| record.length).sum()
    }

    fn constraints(&self) -> &[String] {
        &self.constraints
    }

    fn segment_arc(&self, predicate: Id, direction: Direction) -> Result<Option<Arc<dyn Segment>>> {
        let segment = self.base_segment(predicate, direction)?;
        Ok(segment.map(|segment| -> Arc<dyn Segment> { Arc::<BaseSegment>::clone(segment) }))
    }

    fn find_edge(&self, edge: Id) -> Result<Option<[Id; 4]>> {
        Ok(self.edge_table()?.and_then(|table| table.row(edge)))
    }

    fn parts(&self) -> Result<Vec<PartSize>> {
        let mut parts = Vec::new();
        for (predicate, _) in &self.toc.predicates {
            for direction in Direction::BOTH {
                if let Some(segment) = self.base_segment(*predicate, direction)? {
                    let segment_parts = segment.parts().into_iter();
                    parts.extend(segment_parts.map(|(part, bytes)| PartSize {
                        segment: Some((*predicate, direction)),
                        part,
                        bytes,
                    }));
                    if let Some(column) = segment.order_column()? {
                        let bytes = column.bytes.len() as u64;
                        parts.push(PartSize { segment: Some((*predicate, direction)), part: "order", bytes });
                    }
                }
            }
        }
        if let Some(table) = self.edge_table()? {
            parts.push(PartSize { segment: None, part: Self::EDGE_TABLE, bytes: table.size_bytes() });
        }
        let dictionary = self.dictionary.parts().into_iter();
        parts.extend(dictionary.map(|(part, bytes)| PartSize { segment: None, part, bytes }));
        Ok(parts)
    }

    fn orders(&self) -> &[(Id, Id)] {
        &self.ordered
    }

    fn validate(&self) -> Result<()> {
        self.validate_all()
    }
}

impl Snapshot for Store {
    fn lookup(&self, term: TermRef<'_>) -> Result<Option<Id>> {
        let id = self.dictionary.lookup(term)?;
        if let Some(edge) = id.filter(|id| id.tag() == Tag::Edge) {
            let exists = self.edge_table()?.is_some_and(|edges| edges.contains(edge.bits()));
            return Ok(exists.then_some(edge));
        }
        Ok(id)
    }

    fn base_number(&self) -> Option<u64> {
        Some(self.number())
    }

    fn read_term(&self, id: Id, scratch: &mut String, read: &mut dyn FnMut(TermParts<'_>)) -> Result<()> {
        self.dictionary.read_term(id, scratch, read)
    }

    fn write_terms(&self, ids: &[Id], out: &mut Vec<u8>, ends: &mut Vec<usize>) -> Result<()> {
        self.dictionary.write_terms(ids, out, ends)
    }

    fn is_plain_text(&self, id: Id) -> Result<bool> {
        self.dictionary.is_plain_text(id)
    }

    fn read_literal_kind(&self, id: Id, read: &mut dyn FnMut(Option<LiteralKind<'_>>)) -> Result<()> {
        self.dictionary.read_literal_kind(id, read)
    }

    fn text_rank(&self, literal: Id) -> Result<Option<u64>> {
        if literal.tag() == Tag::Literal { self.dictionary.text_rank(literal) } else { Ok(None) }
    }

    fn may_have_triple_terms(&self) -> bool {
        self.dictionary.has_triple_terms()
    }

    fn may_have_blanks(&self) -> bool {
        self.dictionary.has_blanks()
    }

    fn is_blank(&self, id: Id) -> Result<bool> {
        self.dictionary.is_blank(id)
    }

    fn segment(&self, predicate: Id, direction: Direction) -> Result<Option<&dyn Segment>> {
        Ok(self.base_segment(predicate, direction)?.map(|segment| -> &dyn Segment { &**segment }))
    }

    fn predicates(&self) -> &[(Id, u64)] {
        &self.toc.predicates
    }

    fn graphs(&self) -> &[(Id, u64)] {
        &self.toc.graphs
    }

    fn type_predicate(&self) -> Option<Id> {
        Some(self.toc.type_predicate).filter(|id| id.is_bound())
    }

    fn vertex_count(&self) -> u64 {
        self.toc.vertex_count
    }

    fn edge_count(&self) -> u64 {
        self.toc.edge_count
    }

    fn literal_count(&self) -> u64 {
        self.toc.literal_count
    }

    fn statement_count(&self) -> u64 {
        self.toc.statement_count
    }

    fn edge(&self, edge: Id) -> Result<[Id; 4]> {
        self.find_edge(edge)?
            .ok_or_else(|| Error::new(ErrorKind::Input, format!("{edge:?} is not an edge of this graph")))
    }

    fn classes_of_type(&self, type_id: Id) -> &[ClassId] {
        self.toc.classes.of_type.get(&type_id.bits()).map(Vec::as_slice).unwrap_or_default()
    }

    fn literal_range(&self, from: &[u8], to: Option<&[u8]>) -> Result<Option<Range<u64>>> {
        self.dictionary.literals_between(from, to).map(Some)
    }

    fn search_count(&self, search: &TextSearch, _meter: &mut Meter<'_>) -> Result<Option<u64>> {
        self.dictionary.search_count(search)
    }

    fn search(&self, search: &TextSearch, out: &mut Vec<Id>, meter: &mut Meter<'_>) -> Result<()> {
        self.dictionary.search(search, out, meter)
    }

    fn unordered_literals(
        &self,
        _from: &[u8],
        _to: Option<&[u8]>,
        _out: &mut Vec<Id>,
        _meter: &mut Meter<'_>,
    ) -> Result<()> {
        Ok(())
    }

    fn unordered_literal_count(&self, _from: &[u8], _to: Option<&[u8]>) -> Result<u64> {
        Ok(0)
    }

    fn classes_are_exact(&self) -> bool {
        true
    }

    fn literals_in_order(&self, positions: Range<u64>, out: &mut Vec<Id>) -> Result<()> {
        positions.into_iter().try_for_each(|position| {
            out.push(self.dictionary.literal_at(position)?);
            Ok(())
        })
    }

    fn class_size(&self, class: ClassId) -> u64 {
        self.toc.classes.sizes.get(usize::from(class.0)).copied().unwrap_or(0)
    }
}

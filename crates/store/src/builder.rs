//! The store builder: turns statements into segments, the edge table, statistics and files.
//!
//! # Shape
//! Statements are grouped by predicate as they are added (`buffers`); when memory is short, they are spilled
//! to files as sorted runs (`spill`), which are merged later (`merge`). At the end the type predicate gives
//! every vertex its class, quads give the edge table, and then each predicate becomes two sections, on
//! several threads, the largest predicates first. Sections are written in that same order, independent of the
//! thread that made them, so equal input gives equal files.
//! # Cost
//! A triple takes 8 bytes while it is buffered, 24 while its predicate is sorted (none of these if it is
//! spilled to a file), 16 for each of its keys while its segment is encoded, and about 10 in the store. With
//! an edge, or with wide values, it takes 32 or 16 bytes until its predicate is sorted, which then usually
//! takes 24 (see `packed`).
//! # Not here
//! Ids (see `vervet_dictionary`), and adding to a store in place: [`crate::Store::statements`] feeds a
//! builder with existing statements.

use crate::buffers::{Buffers, EntryBuffer, PredicateBuffer};
use crate::edges::{self, EdgeRow, EdgeTable};
use crate::encode::encode;
use crate::entries::{Entries, KeyRuns, Narrow};
use crate::files::{self, CheckpointPosition, HashedFile, Manifest, SegmentFile};
use crate::halves::{self, ObjectCounts};
use crate::in_order::in_order;
use crate::merge::{self, MergedRun};
use crate::order::{self, OrderBy, Values};
use crate::packed::PackedEntries;
use crate::predicate_sets::PredicateSets;
use crate::spill::{RunKind, Spill};
use crate::statistics::{Classes, are_plain_strings, collect, collect_half};
use crate::toc::{OrderSections, SectionLocation, Toc};
use crate::{NewDictionary, Statement, Store, sort};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vervet_codec::Stride;
use vervet_dictionary::Dictionary;
use vervet_env::{Bytes, Environment};
use vervet_model::{Direction, Error, ErrorKind, Id, Partitioning, Result, Tag, Watch, vocab::RDF_TYPE};
use vervet_snapshot::SegmentStatistics;

/// Name of the dictionary under construction in error messages.
const NEW_DICTIONARY: &str = "the new dictionary";

/// Options of a build.
#[derive(Clone, Debug)]
pub struct BuildOptions {
    /// Number of threads that make segments; at least 1.
    pub threads: usize,
    /// Maximum memory of statements that are buffered or being sorted, if there is a `temp_dir`; segments
    /// under construction take additional memory (see `merge`).
    pub memory_bytes: u64,
    /// Files and randomness.
    pub environment: Environment,
    /// Directory for statements that do not fit in memory; a subdirectory is created in it, and removed at
    /// the end. `None`: all statements stay in memory.
    pub temp_dir: Option<PathBuf>,
    /// Write-ahead log position for the manifest; `None`: a new id is reserved. Ignored in memory.
    pub log: Option<CheckpointPosition>,
    /// Orders of entries, at most one for each predicate; an order of a predicate or by a property that does
    /// not occur has no effect.
    pub orders: Vec<OrderBy>,
}

/// Destination of a store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// In memory.
    Memory,
    /// This directory, as its new generation; the files are then mapped.
    Directory(PathBuf),
}

/// Predicates with the statistics of all their in entries.
pub type SplitPredicates = Vec<(Id, SegmentStatistics)>;

/// The stores of a graph in several partitions: see [`StoreBuilder::finish_parts`].
#[derive(Debug)]
pub struct PartStores {
    /// One for each partition. Each has the out entries of the subjects that it owns, and of each predicate
    /// the in entries of the objects that it owns; the rows of the edges that it owns; and the counts of all
    /// ids and classes.
    pub stores: Vec<Store>,
    /// Split predicates, ascending, with the statistics of all their in entries: these are where the subjects
    /// are, because few objects, such as types, have most of the entries.
    pub split: SplitPredicates,
}

/// Collects statements and builds a store from them.
#[derive(Debug)]
pub struct StoreBuilder<'w> {
    options: BuildOptions,
    watch: &'w Watch<'w>,
    buffers: Buffers,
    spill: Option<Spill>,
    /// Edge numbers below this are assigned.
    edge_end: u64,
    constraints: Vec<String>,
}

/// Watch of builders without progress or cancellation.
static UNWATCHED: Watch<'static> = Watch::new("build");

/// Number of statements rewritten between two checks of the watch.
const REWRITTEN_AT_ONCE: u64 = 1 << 12;

/// Steps of a [`Watch`] for each statement: both directions are sorted, and both encoded.
const STATEMENT_STEPS: u64 = 4;

/// Checks a store before it is published.
type Check<'a> = &'a mut dyn FnMut(&Store) -> Result<()>;

/// The sections of one predicate.
struct EncodedPredicate {
    predicate: Id,
    /// For each partition.
    parts: Vec<EncodedPart>,
    /// If it is split, the statistics of its in entries (see [`PartStores::split`]).
    split: Option<SegmentStatistics>,
}

/// The sections of one predicate in one partition.
struct EncodedPart {
    /// Number of out entries.
    entries: u64,
    sections: [Vec<u8>; 2],
    order: Option<(Id, [Vec<u8>; 2])>,
    graphs: FxHashMap<u64, u64>,
}

/// Shared input of all jobs.
struct BuildContext<'a> {
    dictionary: &'a Dictionary,
    classes: &'a Classes,
    edges: Option<&'a EdgeTable>,
    spill: Option<&'a Spill>,
    orders: &'a [PendingOrder],
    /// Memory for sorting spilled entries, in bytes.
    run_bytes: u64,
    vertex_count: u64,
    literal_count: u64,
    partitioning: Partitioning,
    type_id: Id,
    watch: &'a Watch<'a>,
}

/// An order under construction.
struct PendingOrder {
    predicate: u64,
    property: Id,
    values: Values,
}

impl<'w> StoreBuilder<'w> {
    /// A builder without statements.
    #[must_use]
    pub fn new(options: BuildOptions) -> Self {
        Self {
            options,
            watch: &UNWATCHED,
            buffers: Buffers::default(),
            spill: None,
            edge_end: 0,
            constraints: Vec::new(),
        }
    }

    /// The same builder with progress and cancellation by `watch`: [`StoreBuilder::finish`] reports about
    /// [`StoreBuilder::finish_steps`] steps to it. Once the manifest is renamed, cancellation has no effect.
    #[must_use]
    pub fn watched_by(self, watch: &'w Watch<'w>) -> Self {
        Self { watch, ..self }
    }

    pub(crate) fn environment(&self) -> &Environment {
        &self.options.environment
    }

    pub(crate) fn watch(&self) -> &'w Watch<'w> {
        self.watch
    }

    /// Estimated number of steps of a [`Watch`] for building the store.
    #[must_use]
    pub fn finish_steps(&self) -> u64 {
        STATEMENT_STEPS * self.buffers.count()
    }

    /// Changes the memory limit of statements, for a caller whose own tables grow.
    pub fn set_memory_bytes(&mut self, bytes: u64) {
        self.options.memory_bytes = bytes;
    }

    /// Records in the store that edge numbers below `end` are assigned, including those of removed edges.
    pub fn reserve_edges(&mut self, end: u64) {
        self.edge_end = self.edge_end.max(end);
    }

    /// Sets the result of [`crate::Base::constraints`]: lines whose meaning belongs to the caller.
    pub fn set_constraints(&mut self, constraints: Vec<String>) {
        self.constraints = constraints;
    }

    /// Adds statements. A statement without an edge has no effect if it exists already, with or without an
    /// edge.
    ///
    /// # Errors
    /// A temporary file could not be written.
    pub fn add(&mut self, statements: &[Statement]) -> Result<()> {
        for statement in statements {
            self.buffers.add(statement);
        }
        self.spill_if_full()
    }

    /// Adds triples to the default graph: subject, predicate, object.
    ///
    /// # Errors
    /// As [`StoreBuilder::add`].
    pub fn add_triples(&mut self, triples: &[[Id; 3]]) -> Result<()> {
        for [subject, predicate, object] in triples {
            self.buffers.add_triple(*subject, *predicate, *object);
        }
        self.spill_if_full()
    }

    /// Calls `each` with every statement added so far; `each` may change it, or drop it by returning `false`.
    ///
    /// # Cost
    /// Every statement is added again; one predicate at a time is held twice.
    ///
    /// # Errors
    /// A temporary file could not be read or written.
    pub fn rewrite(&mut self, each: &mut dyn FnMut(&mut Statement) -> bool) -> Result<()> {
        let before = std::mem::take(&mut self.buffers);
        let mut count = 0_u64;
        for buffer in before.into_predicates() {
            let predicate = Id::from_bits(buffer.predicate);
            buffer.for_each(&mut |bits| {
                count += 1;
                if count.is_multiple_of(REWRITTEN_AT_ONCE) {
                    self.watch.check()?;
                }
                let [subject, object, graph, edge] = bits.map(Id::from_bits);
                let mut statement = Statement { subject, predicate, object, graph, edge };
                if each(&mut statement) {
                    self.buffers.add(&statement);
                    self.spill_if_full()?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Number of statements so far, duplicates included.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buffers.count()
    }

    /// Calls `each` with subject and object of every statement with this predicate.
    pub fn for_each_of(&self, predicate: Id, each: &mut dyn FnMut([Id; 2])) {
        if let Some(buffer) = self.buffers.of(predicate) {
            buffer.for_each_pair(&mut |pair| each(pair.map(Id::from_bits)));
        }
    }

    /// Calls `each` with every statement, predicate after predicate, and gives up their memory.
    ///
    /// # Errors
    /// Those of `each`. Io: a temporary file could not be read.
    pub fn into_statements(self, each: &mut dyn FnMut(Statement) -> Result<()>) -> Result<()> {
        let Self { buffers, spill, .. } = self;
        for buffer in buffers.into_predicates() {
            let predicate = Id::from_bits(buffer.predicate);
            buffer.for_each(&mut |bits| {
                let [subject, object, graph, edge] = bits.map(Id::from_bits);
                each(Statement { subject, predicate, object, graph, edge })
            })?;
        }
        drop(spill);
        Ok(())
    }

    fn spill_if_full(&mut self) -> Result<()> {
        let Some(parent) = &self.options.temp_dir else { return Ok(()) };
        if self.buffers.held_bytes <= self.options.memory_bytes {
            return Ok(());
        }
        if self.spill.is_none() {
            self.spill = Some(Spill::new(&self.options.environment, parent)?);
        }
        match &self.spill {
            Some(spill) => self.buffers.spill(spill, self.watch),
            None => Ok(()),
        }
    }

    /// Builds the store. `dictionary` is the one that assigned the ids.
    ///
    /// Only one process may write to a directory at a time: the caller holds its lock. Readers may have the
    /// directory open; they keep the old generation.
    ///
    /// # Errors
    /// Input: an edge with two statements, or a statement about an edge that does not exist. Io: files could
    /// not be written; the directory then keeps its earlier content. Internal: an id that the dictionary did
    /// not assign.
    pub fn finish<'d>(self, dictionary: impl Into<NewDictionary<'d>>, target: &Target) -> Result<Store> {
        self.finish_with(dictionary.into(), target, None)
    }

    /// [`StoreBuilder::finish`], if `check` accepts the store; otherwise the directory keeps its earlier
    /// content.
    ///
    /// # Errors
    /// Those of `check`; as [`StoreBuilder::finish`].
    pub fn finish_checked<'d>(
        self,
        dictionary: impl Into<NewDictionary<'d>>,
        target: &Target,
        check: &mut dyn FnMut(&Store) -> Result<()>,
    ) -> Result<Store> {
        self.finish_with(dictionary.into(), target, Some(check))
    }

    fn finish_with(self, new: NewDictionary<'_>, target: &Target, check: Option<Check<'_>>) -> Result<Store> {
        if self.constraints.iter().any(|line| line.contains(char::is_control)) {
            return Err(Error::internal("a constraint is not one line of text"));
        }
        let environment = self.options.environment.clone();
        match target {
            Target::Memory => {
                let PartStores { mut stores, .. } = self.finish_parts(new, Partitioning::WHOLE)?;
                let store = stores.pop().ok_or_else(|| Error::internal("a build without a store"))?;
                check.map_or(Ok(()), |check| check(&store))?;
                Ok(store)
            }
            Target::Directory(dir) => {
                let created = environment.files.create_dir_all(dir);
                created.map_err(|e| Error::io(format_args!("create the directory {}", dir.display()), &e))?;
                let before = files::manifest_to_replace(&environment, dir)?;
                if before.is_none() {
                    files::mark_unfinished(&environment, dir)?;
                } else {
                    // `MANIFEST` may have a new content whose rename is not durable yet: without this sync, a
                    // file removed here could be named by the manifest after a loss of power.
                    let synced = environment.files.sync_dir(dir);
                    synced.map_err(|e| Error::io(format_args!("sync {}", dir.display()), &e))?;
                    files::remove_mark(&environment, dir);
                }
                files::remove_leftovers(
                    &environment,
                    dir,
                    before.as_ref(),
                    self.spill.as_ref().map(Spill::dir),
                );
                let manifest = match self.write_files(new, dir, before.as_ref(), check) {
                    Ok(manifest) => manifest,
                    Err(error) => {
                        // If the manifest is the old one, nothing refers to the new files. If it is not, it
                        // may still become the old one again (its name was not synced): all files stay.
                        if Manifest::read(&environment, dir).ok() == Some(before.clone()) {
                            files::remove_leftovers(&environment, dir, before.as_ref(), None);
                            files::remove_mark(&environment, dir);
                        }
                        return Err(error);
                    }
                };
                files::remove_leftovers(&environment, dir, Some(&manifest), None);
                files::remove_mark(&environment, dir);
                Store::open(&environment, dir)
            }
        }
    }

    /// Builds a store for each partition, in memory; all share one dictionary.
    ///
    /// # Errors
    /// As [`StoreBuilder::finish`].
    pub fn finish_parts<'d>(
        self,
        dictionary: impl Into<NewDictionary<'d>>,
        partitioning: Partitioning,
    ) -> Result<PartStores> {
        let image = dictionary.into().into_image(self.watch)?;
        let dictionary = Arc::new(Dictionary::open(image, NEW_DICTIONARY)?);
        let constraints = self.constraints.clone();
        let mut sections: Vec<Vec<Bytes>> = vec![Vec::new(); partitioning.count()];
        let (tocs, split) = self.build(&dictionary, partitioning, &mut |part, bytes| {
            let sections = &mut sections[part];
            let (length, offset) = (bytes.len() as u64, sections.len() as u64);
            sections.push(Bytes::from(bytes));
            Ok(SectionLocation { offset, length, checksum: 0 })
        })?;
        let mut stores = Vec::with_capacity(tocs.len());
        for (toc, sections) in tocs.into_iter().zip(sections) {
            let mut store = Store::in_memory(Arc::clone(&dictionary), toc, sections)?;
            store.constraints.clone_from(&constraints);
            stores.push(store);
        }
        Ok(PartStores { stores, split })
    }

    /// Writes the next generation of `dir` and publishes it.
    fn write_files(
        self,
        new: NewDictionary<'_>,
        dir: &Path,
        before: Option<&Manifest>,
        check: Option<Check<'_>>,
    ) -> Result<Manifest> {
        let environment = self.options.environment.clone();
        let log = match self.options.log {
            Some(log) => log,
            None => CheckpointPosition::reserve(&environment, 0)?,
        };
        let (constraints, watch) = (self.constraints.clone(), self.watch);
        let generation = before.map_or(0, |manifest| manifest.generation).saturating_add(1);
        let mut file = HashedFile::create(&environment, dir.join(files::dictionary_name(generation)))?;
        new.write(&mut |bytes| file.write(bytes), watch)?;
        let dictionary_record = file.finish()?;
        // From here on its pages are those of the file.
        let dictionary =
            Dictionary::open(files::map(&environment, dir, &dictionary_record)?, NEW_DICTIONARY)?;
        let mut file =
            SegmentFile::create(&environment, dir.join(files::segments_name(generation)), generation)?;
        let (mut tocs, _) =
            self.build(&dictionary, Partitioning::WHOLE, &mut |_, bytes| file.section(&bytes))?;
        let toc = tocs.pop().ok_or_else(|| Error::internal("a build without a table of contents"))?;
        drop(dictionary);
        let segments = file.finish(&toc)?;
        let synced = environment.files.sync_dir(dir);
        synced.map_err(|e| Error::io(format_args!("sync the directory {}", dir.display()), &e))?;
        if before.is_none() {
            files::sync_path(&environment, dir)?;
        }
        let manifest = Manifest::new(generation, segments, dictionary_record, log, constraints);
        if let Some(check) = check {
            check(&Store::open_generation(&environment, dir, &manifest)?)?;
        }
        // Last check of the watch: after it the files belong to the database.
        watch.check()?;
        manifest.publish(&environment, dir)?;
        Ok(manifest)
    }

    /// Makes all sections, passes them with the number of their partition to `sink` in a fixed order, and
    /// returns the tables of contents, and the split predicates.
    pub(crate) fn build(
        self,
        dictionary: &Dictionary,
        partitioning: Partitioning,
        sink: &mut (dyn FnMut(usize, Vec<u8>) -> Result<SectionLocation> + Send),
    ) -> Result<(Vec<Toc>, SplitPredicates)> {
        let Self { options, watch, mut buffers, spill, edge_end, .. } = self;
        let spill = spill.as_ref();
        if let Some(spill) = spill {
            buffers.spill(spill, watch)?;
        }
        let mut buffers = buffers.into_ranked();
        let type_id = dictionary.lookup_iri(RDF_TYPE)?.unwrap_or(Id::UNBOUND);
        let (vertex_count, literal_count) = (dictionary.vertex_count(), dictionary.literal_count());
        let types = buffers.iter_mut().find(|buffer| buffer.predicate == type_id.bits());
        let has_types = types.is_some();
        let classes = match (types, spill) {
            (Some(types), Some(spill)) => {
                types.merge(spill, watch)?;
                let run = types.run().ok_or_else(|| Error::internal("a predicate without entries"))?;
                Classes::new(&MergedRun::<true>(run), vertex_count, literal_count)
            }
            (Some(types), None) => {
                Classes::new(types.sorted_pairs(watch)?.as_slice(), vertex_count, literal_count)
            }
            (None, _) => Classes::new::<[[u64; 2]]>(&[], vertex_count, literal_count),
        };
        let mut classes = classes.with_predicates(buffers.len());
        if let Some(mut sets) = PredicateSets::new(&classes.table, &classes.of_vertex) {
            let mut sorted: Vec<&PredicateBuffer> = buffers.iter().collect();
            sorted.sort_unstable_by_key(|buffer| buffer.predicate);
            for buffer in sorted {
                sets.add_predicate(&mut |each| buffer.for_each_pair(each), watch)?;
            }
            sets.classify(&mut classes, watch)?;
        }
        let mut toc = Toc { vertex_count, literal_count, classes: classes.table.clone(), ..Toc::default() };
        if has_types {
            toc.type_predicate = type_id;
        }
        watch.check()?;
        let mut rows = edge_rows(&buffers);
        let edges = edge_table(&mut rows, watch)?;
        toc.edge_count = edge_end.max(edges.as_ref().map_or(0, |(_, table)| table.number_end()));
        let mut tocs = vec![toc; partitioning.count()];
        match &edges {
            Some((bytes, _)) if partitioning.is_whole() => tocs[0].edges = Some(sink(0, bytes.clone())?),
            _ => {
                for (part, toc) in tocs.iter_mut().enumerate() {
                    let owned = rows.iter().filter(|row| partitioning.owner(Id::from_bits(row[0])) == part);
                    let stride = halves::stride(partitioning, part);
                    let bytes = edges::encode(&mut owned.copied().collect(), stride, watch)?;
                    toc.edges = bytes.map(|bytes| sink(part, bytes)).transpose()?;
                }
            }
        }
        drop(rows);
        let edges = edges.as_ref().map(|(_, table)| table);
        let orders = orders(&options.orders, dictionary, &mut buffers, spill, watch)?;
        let threads = u64::try_from(options.threads.max(1)).unwrap_or(u64::MAX);
        let run_bytes = options.memory_bytes / threads;
        let context = BuildContext {
            dictionary,
            classes: &classes,
            edges,
            spill,
            orders: &orders,
            run_bytes,
            vertex_count,
            literal_count,
            partitioning,
            type_id,
            watch,
        };
        let mut contents: Vec<Contents> = (0..partitioning.count()).map(|_| Contents::default()).collect();
        let mut split = Vec::new();
        let mut accept = |built: EncodedPredicate| {
            let predicate = built.predicate;
            split.extend(built.split.map(|statistics| (predicate, statistics)));
            for ((part, contents), encoded) in contents.iter_mut().enumerate().zip(built.parts) {
                let [out, reverse] = encoded.sections;
                contents.rows.push((predicate, encoded.entries, [sink(part, out)?, sink(part, reverse)?]));
                if let Some((property, [out, reverse])) = encoded.order {
                    let locations = [sink(part, out)?, sink(part, reverse)?];
                    contents.orders.push(OrderSections { predicate, property, locations });
                }
                for (graph, count) in encoded.graphs {
                    *contents.graphs.entry(graph).or_default() += count;
                }
            }
            Ok(())
        };
        in_order(buffers, options.threads, &|buffer| build_predicate(buffer, &context), &mut accept)?;
        for (toc, contents) in tocs.iter_mut().zip(contents) {
            contents.finish(toc);
        }
        split.sort_unstable_by_key(|(predicate, _)| *predicate);
        Ok((tocs, split))
    }
}

/// What is collected for a table of contents, predicate after predicate.
#[derive(Default)]
pub(crate) struct Contents {
    /// Predicates with their numbers of out entries and their sections.
    pub(crate) rows: Vec<(Id, u64, [SectionLocation; 2])>,
    orders: Vec<OrderSections>,
    pub(crate) graphs: BTreeMap<u64, u64>,
}

impl Contents {
    pub(crate) fn finish(mut self, toc: &mut Toc) {
        self.rows.sort_unstable_by_key(|(predicate, ..)| *predicate);
        self.orders.sort_unstable_by_key(|order| order.predicate);
        toc.orders = self.orders;
        for (predicate, entries, locations) in self.rows {
            toc.statement_count += entries;
            toc.predicates.push((predicate, entries));
            toc.segments.push(locations);
        }
        toc.graphs = self.graphs.into_iter().map(|(graph, count)| (Id::from_bits(graph), count)).collect();
    }
}

/// The values of the ordering properties.
fn orders(
    wanted: &[OrderBy],
    dictionary: &Dictionary,
    buffers: &mut [PredicateBuffer],
    spill: Option<&Spill>,
    watch: &Watch<'_>,
) -> Result<Vec<PendingOrder>> {
    let mut orders: Vec<PendingOrder> = Vec::new();
    for OrderBy { predicate, property } in wanted {
        let (predicate, property) = (dictionary.lookup_iri(predicate)?, dictionary.lookup_iri(property)?);
        let (Some(predicate), Some(property)) = (predicate, property) else { continue };
        let known = |id: Id| move |buffer: &&mut PredicateBuffer| buffer.predicate == id.bits();
        if orders.iter().any(|order| order.predicate == predicate.bits())
            || buffers.iter_mut().find(known(predicate)).is_none()
        {
            continue;
        }
        let Some(buffer) = buffers.iter_mut().find(known(property)) else { continue };
        let values = match spill {
            Some(spill) => {
                buffer.merge(spill, watch)?;
                let run = buffer.run().ok_or_else(|| Error::internal("a predicate without entries"))?;
                Values::Run(run.clone())
            }
            None => Values::Pairs(buffer.sorted_pairs(watch)?),
        };
        orders.push(PendingOrder { predicate: predicate.bits(), property, values });
    }
    Ok(orders)
}

/// The rows of the edges of all quads.
fn edge_rows(buffers: &[PredicateBuffer]) -> Vec<EdgeRow> {
    let mut rows = Vec::with_capacity(buffers.iter().map(PredicateBuffer::quad_count).sum());
    for buffer in buffers {
        buffer.for_each_quad(|[subject, object, graph, edge]| {
            if *edge != 0 {
                rows.push([*edge, *subject, buffer.predicate, *object, *graph]);
            }
        });
    }
    rows
}

/// The table of these rows, which are sorted, and its section.
fn edge_table(rows: &mut Vec<EdgeRow>, watch: &Watch<'_>) -> Result<Option<(Vec<u8>, EdgeTable)>> {
    let Some(bytes) = edges::encode(rows, Stride::default(), watch)? else { return Ok(None) };
    let table = EdgeTable::open(Bytes::from(bytes.clone()), &"the new edge table")?;
    Ok(Some((bytes, table)))
}

/// Both sections of one predicate.
fn build_predicate(mut buffer: PredicateBuffer, context: &BuildContext<'_>) -> Result<EncodedPredicate> {
    let (predicate, watch) = (Id::from_bits(buffer.predicate), context.watch);
    watch.check()?;
    if !predicate.is_vertex() || predicate.payload() >= context.vertex_count {
        return Err(foreign(predicate, "predicate"));
    }
    if let Some(spill) = context.spill {
        buffer.merge(spill, watch)?;
        if let Some(out) = buffer.run() {
            let reverse = merge::reverse(out, context.run_bytes, spill, watch)?;
            return if out.kind() == RunKind::Quads {
                build_quads(predicate, &MergedRun::<true>(out), &MergedRun::<true>(&reverse), context)
            } else {
                build_sections(predicate, &MergedRun::<false>(out), &MergedRun::<false>(&reverse), context)
            };
        }
    }
    match buffer.gather() {
        EntryBuffer::Narrow { key_tag, neighbour_tag, mut entries } => {
            let mut scratch = Vec::new();
            sort::sort(&mut entries, u64::MAX, &mut scratch, watch)?;
            watch.advance(entries.len() as u64)?;
            entries.dedup();
            let mut reverse: Vec<u64> = entries.iter().map(|entry| entry.rotate_left(32)).collect();
            // Entries with equal objects are already ordered by subject.
            sort::sort(&mut reverse, u64::MAX << 32, &mut scratch, watch)?;
            watch.advance(reverse.len() as u64)?;
            drop(scratch);
            let out = Narrow { entries: &entries, key_tag, neighbour_tag };
            let reverse = Narrow { entries: &reverse, key_tag: neighbour_tag, neighbour_tag: key_tag };
            build_sections(predicate, &out, &reverse, context)
        }
        EntryBuffer::Pairs(entries) => {
            let mut entries = match PackedEntries::<false>::both(entries, watch)? {
                Ok([out, reverse]) => return build_sections(predicate, &out, &reverse, context),
                Err(entries) => entries,
            };
            watch.sort(&mut entries, Ord::cmp)?;
            entries.dedup();
            let mut reverse: Vec<[u64; 2]> = entries.iter().map(|[s, o]| [*o, *s]).collect();
            watch.sort(&mut reverse, Ord::cmp)?;
            build_sections(predicate, entries.as_slice(), reverse.as_slice(), context)
        }
        EntryBuffer::Quads(entries) => {
            let mut entries = match PackedEntries::<true>::both(entries, watch)? {
                Ok([out, reverse]) => return build_quads(predicate, &out, &reverse, context),
                Err(entries) => entries,
            };
            watch.sort(&mut entries, Ord::cmp)?;
            entries.dedup();
            crate::buffers::drop_plain_twins(&mut entries);
            let mut reverse: Vec<[u64; 4]> = entries.iter().map(|[s, o, g, e]| [*o, *s, *g, *e]).collect();
            watch.sort(&mut reverse, Ord::cmp)?;
            build_quads(predicate, entries.as_slice(), reverse.as_slice(), context)
        }
    }
}

/// [`build_sections`] for entries that may have graphs and edges.
fn build_quads<E: Entries + ?Sized>(
    predicate: Id,
    out: &E,
    reverse: &E,
    context: &BuildContext<'_>,
) -> Result<EncodedPredicate> {
    let mut built = build_sections(predicate, out, reverse, context)?;
    for index in 0..out.len() {
        let (graph, edge) = (Id::from_bits(out.graph(index)), Id::from_bits(out.edge(index)));
        if graph.is_bound() {
            if !graph.is_vertex() || graph.payload() >= context.vertex_count {
                return Err(foreign(graph, "graph"));
            }
            let part = context.partitioning.owner(Id::from_bits(out.key(index)));
            *built.parts[part].graphs.entry(graph.bits()).or_default() += 1;
        }
        if edge.is_bound() && edge.tag() != Tag::Edge {
            return Err(foreign(edge, "edge"));
        }
    }
    Ok(built)
}

fn build_sections<E: Entries + ?Sized>(
    predicate: Id,
    out: &E,
    reverse: &E,
    context: &BuildContext<'_>,
) -> Result<EncodedPredicate> {
    let watch = context.watch;
    watch.check()?;
    let (subjects, objects) = (KeyRuns::of(out), KeyRuns::of(reverse));
    check_ids(&subjects.keys, false, context)?;
    check_ids(&objects.keys, true, context)?;
    watch.check()?;
    let order = context.orders.iter().find(|order| order.predicate == predicate.bits());
    let order = order.map(|PendingOrder { property, values, .. }| SectionOrder {
        property: *property,
        values,
        by_edges: order::is_by_edges(out, values),
    });
    if !context.partitioning.is_whole() {
        let is_type = predicate == context.type_id;
        let is_split = is_type || ObjectCounts::of(&objects).is_split(context.partitioning);
        let parts = if E::COLUMNS {
            let entry = |entries: &E, at: usize| {
                [entries.key(at), entries.neighbour(at), entries.graph(at), entries.edge(at)]
            };
            build_halves(
                predicate,
                halves::cut([out, reverse], is_split, context.partitioning, entry),
                is_split,
                order,
                context,
            )
        } else {
            let entry = |entries: &E, at: usize| [entries.key(at), entries.neighbour(at)];
            build_halves(
                predicate,
                halves::cut([out, reverse], is_split, context.partitioning, entry),
                is_split,
                order,
                context,
            )
        };
        let split = is_split.then(|| collect_half(reverse, &objects, &subjects.keys, context.classes, false));
        return Ok(EncodedPredicate { predicate, parts: parts?, split });
    }
    let stride = Stride::default();
    let strings = are_plain_strings(&objects.keys, context.dictionary, watch)?;
    let [forward, backward] = collect(out, &subjects, &objects, context.classes, strings);
    let sections = [
        encode((predicate, Direction::Out, stride), out, &subjects, &objects.keys, &forward, watch)?,
        encode((predicate, Direction::In, stride), reverse, &objects, &subjects.keys, &backward, watch)?,
    ];
    let order = match order {
        Some(order) => {
            let sections = [
                order.encode(predicate, Direction::Out, out, &subjects, watch)?,
                order.encode(predicate, Direction::In, reverse, &objects, watch)?,
            ];
            Some((order.property, sections))
        }
        None => None,
    };
    let part = EncodedPart { entries: out.len() as u64, sections, order, graphs: FxHashMap::default() };
    Ok(EncodedPredicate { predicate, parts: vec![part], split: None })
}

/// The sections of each partition from its halves, out and in.
fn build_halves<T>(
    predicate: Id,
    halves: Vec<[Vec<T>; 2]>,
    is_split: bool,
    order: Option<SectionOrder<'_>>,
    context: &BuildContext<'_>,
) -> Result<Vec<EncodedPart>>
where
    [T]: Entries,
{
    let watch = context.watch;
    let mut parts = Vec::with_capacity(halves.len());
    for (part, halves) in halves.into_iter().enumerate() {
        let (mut sections, mut columns) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
        for (at, direction) in Direction::BOTH.into_iter().enumerate() {
            let entries = halves[at].as_slice();
            let runs = KeyRuns::of(entries);
            let neighbours = halves::distinct_neighbours(entries, watch)?;
            let strings = are_plain_strings(&neighbours, context.dictionary, watch)?;
            let statistics = collect_half(entries, &runs, &neighbours, context.classes, strings);
            let is_owner = direction == Direction::Out || !is_split;
            let stride =
                if is_owner { halves::stride(context.partitioning, part) } else { Stride::default() };
            sections[at] =
                encode((predicate, direction, stride), entries, &runs, &neighbours, &statistics, watch)?;
            if let Some(order) = order {
                columns[at] = order.encode(predicate, direction, entries, &runs, watch)?;
            }
        }
        parts.push(EncodedPart {
            entries: Entries::len(halves[0].as_slice()) as u64,
            sections,
            order: order.map(|order| (order.property, columns)),
            graphs: FxHashMap::default(),
        });
    }
    Ok(parts)
}

/// The order of one predicate.
#[derive(Clone, Copy)]
struct SectionOrder<'a> {
    property: Id,
    values: &'a Values,
    by_edges: bool,
}

impl SectionOrder<'_> {
    fn encode<E: Entries + ?Sized>(
        self,
        predicate: Id,
        direction: Direction,
        entries: &E,
        runs: &KeyRuns,
        watch: &Watch<'_>,
    ) -> Result<Vec<u8>> {
        let of = (predicate, direction, self.property);
        order::encode(of, entries, runs, self.values, self.by_edges, watch)
    }
}

/// Whether all `ids` can be subjects (or objects) of this store.
fn check_ids(ids: &[u64], objects: bool, context: &BuildContext<'_>) -> Result<()> {
    let has_edge = |bits| context.edges.is_some_and(|edges| edges.contains(bits));
    ids.iter().try_for_each(|bits| {
        check_id(*bits, objects, [context.vertex_count, context.literal_count], has_edge)
    })
}

/// Whether an id can be a subject (or an object) of a store with these numbers of vertices and literals.
pub(crate) fn check_id(
    bits: u64,
    is_object: bool,
    [vertices, literals]: [u64; 2],
    has_edge: impl Fn(u64) -> bool,
) -> Result<()> {
    let id = Id::from_bits(bits);
    let known = match id.tag() {
        Tag::Vertex => id.payload() < vertices,
        Tag::Literal => is_object && id.payload() < literals,
        Tag::Edge if !has_edge(bits) => {
            let message = format!("a statement is about edge {}, which does not exist", id.payload());
            return Err(Error::new(ErrorKind::Input, message));
        }
        Tag::Edge => true,
        Tag::Unbound | Tag::Computed => false,
        _ => is_object,
    };
    if known { Ok(()) } else { Err(foreign(id, if is_object { "object" } else { "subject" })) }
}

pub(crate) fn foreign(id: Id, role: &str) -> Error {
    Error::internal(format!("{id:?} cannot be the {role} of a statement of this store"))
}

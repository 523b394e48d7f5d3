//! The part builder: the partitions of one server, while other servers build the others of the same graph.
//!
//! # Shape
//! [`PartBuilder`] takes halves of statements: out halves of the subjects and in halves of the objects that
//! its partitions own. [`PartBuilder::sort`] sorts them by predicate. The servers then agree on what none of
//! them knows alone (see `build_plan`):
//!
//! | each server makes | one server answers | which all apply |
//! | --- | --- | --- |
//! | [`SortedParts::survey`] | [`BuildPlan::new`] | [`SortedParts::apply_plan`] |
//! | [`SortedParts::set_survey`] | [`SetPlan::new`] | [`SortedParts::apply_sets`] |
//! | [`SortedParts::own_classes`] | | [`SortedParts::set_classes`] |
//!
//! [`SortedParts::write`] makes the same files as [`StoreBuilder::write_parts`] makes of all statements.
//! # Invariants
//! A half is at the server whose partition owns its key, so counts of keys of all servers add up.
//! # Cost
//! 8 bytes for each half of a triple, sorted once; spilled to files beyond the memory of the options. Of one
//! predicate, the entries of one partition are copied at a time. A byte for each vertex of the graph, and two
//! while sets of predicates are made.

use crate::buffers::{Buffers, PredicateBuffer};
use crate::build_plan::{BuildPlan, GraphCounts, PredicateSurvey, SetPlan, SetSurvey, Survey};
use crate::builder::{BuildOptions, Contents, SplitPredicates, check_id, foreign};
use crate::edges::{self, EdgeRow};
use crate::encode::encode;
use crate::entries::{Entries, KeyRuns};
use crate::files::{FileRecord, SegmentFile};
use crate::halves;
use crate::halves_bytes::Halves;
use crate::in_order::in_order;
use crate::part_files::{PartFiles, open_dictionary};
use crate::predicate_sets::PredicateSets;
use crate::sorted_entries::{EntriesVisitor, SortedEntries};
use crate::spill::Spill;
use crate::statistics::{Classes, TypeSets, are_plain_strings, collect_half, type_sets};
use crate::toc::Toc;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::path::Path;
use vervet_codec::Stride;
use vervet_dictionary::Dictionary;
use vervet_model::{Direction, Error, Id, Partitioning, Result, Statement, Tag, Watch};
use vervet_snapshot::SegmentStatistics;

/// Collects halves of statements. See the header of this file.
#[derive(Debug)]
pub struct PartBuilder<'w> {
    options: BuildOptions,
    watch: &'w Watch<'w>,
    own: OwnParts,
    halves: Halves,
    spill: Option<Spill>,
}

/// The partitions of one server.
#[derive(Clone, Debug)]
struct OwnParts {
    partitioning: Partitioning,
    /// Ascending.
    parts: Vec<usize>,
    is_own: Vec<bool>,
}

impl OwnParts {
    fn owns(&self, bits: u64) -> bool {
        self.is_own.get(self.partitioning.owner(Id::from_bits(bits))).copied().unwrap_or_default()
    }
}

/// The entries of one predicate.
#[derive(Debug, Default)]
struct SortedPredicate {
    added: u64,
    /// Out, in.
    sides: [SortedEntries; 2],
}

/// The sorted halves of one server. See the header of this file.
#[derive(Debug)]
pub struct SortedParts<'w> {
    options: BuildOptions,
    watch: &'w Watch<'w>,
    own: OwnParts,
    predicates: BTreeMap<u64, SortedPredicate>,
    rows: Vec<EdgeRow>,
    plan: BuildPlan,
    of_vertex: Vec<u8>,
    sets: Option<PredicateSets>,
    /// Keeps the files of runs.
    _spill: Option<Spill>,
}

/// The files that a server has written.
#[derive(Debug)]
pub struct WrittenParts {
    /// The partitions, ascending, with their files.
    pub files: Vec<(usize, FileRecord)>,
    /// Split predicates with the statistics of the in entries of the objects that the server owns.
    pub split: SplitPredicates,
}

impl<'w> PartBuilder<'w> {
    /// A builder for the partitions `own`, ascending.
    #[must_use]
    pub fn new(
        options: BuildOptions,
        partitioning: Partitioning,
        own: Vec<usize>,
        watch: &'w Watch<'w>,
    ) -> Self {
        let is_own = (0..partitioning.count()).map(|part| own.binary_search(&part).is_ok()).collect();
        let own = OwnParts { partitioning, parts: own, is_own };
        Self { options, watch, own, halves: Halves::default(), spill: None }
    }

    /// The same builder with progress and cancellation by `watch`.
    #[must_use]
    pub fn watched_by<'x>(self, watch: &'x Watch<'x>) -> PartBuilder<'x> {
        let Self { options, watch: _, own, halves, spill } = self;
        PartBuilder { options, watch, own, halves, spill }
    }

    /// Number of halves so far, duplicates included.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.halves.sides.iter().map(Buffers::count).sum()
    }

    /// Adds a half of a statement; its key is owned by a partition of this builder.
    ///
    /// # Errors
    /// Io: a temporary file could not be written.
    pub fn add(&mut self, direction: Direction, statement: &Statement) -> Result<()> {
        self.halves.add(direction, statement);
        self.spill_if_full()
    }

    /// Adds the row of the edge of a statement, which a partition of this builder owns.
    pub fn add_edge(&mut self, statement: &Statement) {
        self.halves.add_edge(statement);
    }

    /// Adds what [`Halves::drain`] wrote at another server.
    ///
    /// # Errors
    /// Corrupt: the bytes are damaged, or not for this builder. As [`PartBuilder::add`].
    pub fn add_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        let own = &self.own;
        let added = self.halves.add_bytes(bytes, |id| own.owns(id.bits()));
        added.map_err(|damaged| Error::corrupt("entries of another server", damaged.0))?;
        self.spill_if_full()
    }

    fn spill_if_full(&mut self) -> Result<()> {
        let Some(parent) = &self.options.temp_dir else { return Ok(()) };
        let held: u64 = self.halves.sides.iter().map(|side| side.held_bytes).sum();
        if held <= self.options.memory_bytes {
            return Ok(());
        }
        if self.spill.is_none() {
            self.spill = Some(Spill::new(&self.options.environment, parent)?);
        }
        let Some(spill) = &self.spill else { return Ok(()) };
        self.halves.sides.iter_mut().try_for_each(|side| side.spill(spill, self.watch))
    }

    /// Sorts all halves.
    ///
    /// # Errors
    /// Io; those of the watch.
    pub fn sort(self) -> Result<SortedParts<'w>> {
        let Self { options, watch, own, mut halves, spill } = self;
        if let Some(spill) = &spill {
            halves.sides.iter_mut().try_for_each(|side| side.spill(spill, watch))?;
        }
        let mut predicates: BTreeMap<u64, SortedPredicate> = BTreeMap::new();
        let ranked = halves.sides.map(Buffers::into_ranked);
        let buffers = (0..).zip(ranked).flat_map(|(at, side)| side.into_iter().map(move |one| (at, one)));
        let sort = |(at, buffer): (usize, PredicateBuffer)| {
            watch.check()?;
            let (predicate, added) = (buffer.predicate, buffer.added());
            Ok((at, predicate, added, SortedEntries::of(buffer, spill.as_ref(), watch)?))
        };
        let mut accept = |(at, predicate, added, entries): (usize, u64, u64, SortedEntries)| {
            watch.advance(added)?;
            let one = predicates.entry(predicate).or_default();
            one.sides[at] = entries;
            if at == 0 {
                one.added = added;
            }
            Ok(())
        };
        in_order(buffers.collect(), options.threads, &sort, &mut accept)?;
        let (rows, plan) = (halves.rows, BuildPlan::default());
        Ok(SortedParts {
            options,
            watch,
            own,
            predicates,
            rows,
            plan,
            of_vertex: Vec::new(),
            sets: None,
            _spill: spill,
        })
    }
}

impl SortedParts<'_> {
    /// These partitions in numbers. `type_predicate`: `rdf:type`, if the graph has it.
    #[must_use]
    pub fn survey(&self, type_predicate: Id) -> Survey {
        let survey = |(predicate, one): (&u64, &SortedPredicate)| PredicateSurvey {
            predicate: *predicate,
            added: one.added,
            objects: one.sides[1].counts(),
        };
        let last = self.rows.iter().map(|row| Id::from_bits(row[0]).payload() + 1).max();
        Survey {
            predicates: self.predicates.iter().map(survey).collect(),
            types: self.types(type_predicate).map(|types| types.visit(CountTypes)).unwrap_or_default(),
            edge_end: last.unwrap_or(0),
        }
    }

    fn types(&self, type_predicate: Id) -> Option<&SortedEntries> {
        self.predicates.get(&type_predicate.bits()).map(|one| &one.sides[0])
    }

    /// Takes the plan, and gives the own vertices their classes by types.
    ///
    /// # Errors
    /// Internal: the plan lacks a predicate, or an id is not of its dictionary. Input: a statement about an
    /// edge that does not exist.
    pub fn apply_plan(&mut self, plan: BuildPlan) -> Result<()> {
        let GraphCounts { vertices, type_predicate, .. } = plan.counts;
        let planned: FxHashMap<u64, bool> = plan.predicates.iter().copied().collect();
        if self.predicates.keys().any(|predicate| !planned.contains_key(predicate)) {
            return Err(Error::internal("a plan of a build without one of the predicates"));
        }
        self.of_vertex = vec![0; usize::try_from(vertices).unwrap_or(0)];
        self.plan = plan;
        self.check_ids()?;
        if let Some(types) = self.predicates.get(&type_predicate.bits()).map(|one| &one.sides[0]) {
            types.visit(FillTypes(&self.plan, &mut self.of_vertex));
        }
        Ok(())
    }

    /// Checks that all ids are those of the dictionary and of edges.
    fn check_ids(&mut self) -> Result<()> {
        let GraphCounts { vertices, literals, .. } = self.plan.counts;
        self.rows.sort_unstable();
        let rows = &self.rows;
        let has_edge = |bits| rows.binary_search_by_key(&bits, |row| row[0]).is_ok();
        let is_vertex = |id: Id| id.is_vertex() && id.payload() < vertices;
        for (predicate, one) in &self.predicates {
            self.watch.check()?;
            if !is_vertex(Id::from_bits(*predicate)) {
                return Err(foreign(Id::from_bits(*predicate), "predicate"));
            }
            let (mut result, mut last) = (Ok(()), 0);
            for (at, side) in one.sides.iter().enumerate() {
                side.for_each(&mut |[key, _, graph, edge]| {
                    let (graph, edge) = (Id::from_bits(graph), Id::from_bits(edge));
                    if result.is_err() {
                        return;
                    }
                    if key != last {
                        last = key;
                        result = check_id(key, at == 1, [vertices, literals], has_edge);
                    }
                    if graph.is_bound() && !is_vertex(graph) {
                        result = Err(foreign(graph, "graph"));
                    }
                    if edge.is_bound() && edge.tag() != Tag::Edge {
                        result = Err(foreign(edge, "edge"));
                    }
                });
            }
            result?;
        }
        Ok(())
    }

    /// The sets of predicates of the own vertices without types; `None`: nearly all vertices have types.
    ///
    /// # Errors
    /// Those of the watch.
    pub fn set_survey(&mut self) -> Result<Option<SetSurvey>> {
        let Some(mut sets) = PredicateSets::new(&self.plan.types.table, &self.of_vertex) else {
            return Ok(None);
        };
        let mut predicates: Vec<u64> = self.plan.predicates.iter().map(|(predicate, _)| *predicate).collect();
        predicates.sort_unstable();
        for predicate in predicates {
            let one = self.predicates.get(&predicate);
            for at in 0..2 {
                let mut visit = |each: &mut dyn FnMut(u64)| {
                    if let Some(one) = one {
                        one.sides[at].for_each(&mut |entry| each(entry[0]));
                    }
                };
                sets.add_end(&mut visit, self.watch)?;
            }
        }
        let survey = SetSurvey(sets.counts());
        self.sets = Some(sets);
        Ok(Some(survey))
    }

    /// Gives the own vertices without types their classes.
    pub fn apply_sets(&mut self, plan: SetPlan) {
        if let Some(sets) = self.sets.take() {
            sets.fill(&plan.of_set, &mut self.of_vertex);
        }
        self.plan.types.table = plan.table;
    }

    /// The classes of the vertices that these partitions own, by number.
    #[must_use]
    pub fn own_classes(&self) -> Vec<u8> {
        let classes = (0..).map(Id::vertex).zip(&self.of_vertex);
        classes.filter(|(id, _)| self.own.owns(id.bits())).map(|(_, class)| *class).collect()
    }

    /// Sets the classes of the vertices of other partitions: what [`SortedParts::own_classes`] returned at
    /// their server.
    ///
    /// # Errors
    /// Corrupt: another number of classes.
    pub fn set_classes(&mut self, parts: &[usize], classes: &[u8]) -> Result<()> {
        let count = self.own.partitioning.count();
        let is_theirs: Vec<bool> = (0..count).map(|part| parts.contains(&part)).collect();
        let known = self.plan.types.table.sizes.len();
        let mut rest = classes.iter();
        for (number, class) in (0..).zip(&mut self.of_vertex) {
            if is_theirs[self.own.partitioning.owner(Id::vertex(number))] {
                let next = rest.next().filter(|class| usize::from(**class) < known);
                *class = *next.ok_or_else(|| Error::corrupt("classes of another server", "wrong length"))?;
            }
        }
        match rest.next() {
            None => Ok(()),
            Some(_) => Err(Error::corrupt("classes of another server", "wrong length")),
        }
    }

    /// Writes the files of all own partitions to `dir`, with the number of the build. They are durable
    /// then, their names are not.
    ///
    /// # Errors
    /// Input: an edge with two statements. Io; those of the watch. Files that were written stay.
    pub fn write(self, dictionary: &FileRecord, dir: &Path, build: u64) -> Result<WrittenParts> {
        let Self { options, watch, own, mut predicates, rows, plan, of_vertex, sets: _, _spill } = self;
        let dictionary = open_dictionary(&options.environment, dir, dictionary)?;
        let classes = Classes::from_parts(of_vertex, plan.types.table).with_predicates(plan.predicates.len());
        let GraphCounts { vertices, literals, type_predicate, edges } = plan.counts;
        let has_types = plan.predicates.iter().any(|(predicate, _)| *predicate == type_predicate.bits());
        let toc = Toc {
            vertex_count: vertices,
            literal_count: literals,
            edge_count: edges,
            type_predicate: if has_types { type_predicate } else { Id::UNBOUND },
            classes: classes.table.clone(),
            ..Toc::default()
        };
        let create = |part: &usize| {
            let path = dir.join(PartFiles::name(Some(*part)));
            let mut file = SegmentFile::create(&options.environment, path, build)?;
            let owned = rows.iter().filter(|row| own.partitioning.owner(Id::from_bits(row[0])) == *part);
            let stride = halves::stride(own.partitioning, *part);
            let bytes = edges::encode(&mut owned.copied().collect(), stride, watch)?;
            let edges = bytes.map(|bytes| file.section(&bytes)).transpose()?;
            Ok((file, Toc { edges, ..toc.clone() }, Contents::default()))
        };
        let mut open = own.parts.iter().map(create).collect::<Result<Vec<_>>>()?;
        drop(rows);
        let context = PartContext { dictionary: &dictionary, classes: &classes, own: &own, watch };
        let inputs: Vec<_> = plan
            .predicates
            .iter()
            .map(|(predicate, is_split)| {
                (Id::from_bits(*predicate), *is_split, predicates.remove(predicate).unwrap_or_default())
            })
            .collect();
        let mut split = Vec::new();
        let mut accept = |built: EncodedParts| {
            split.extend(built.split.map(|statistics| (built.predicate, statistics)));
            for ((file, _, contents), part) in open.iter_mut().zip(built.parts) {
                let [out, reverse] = &part.sections;
                let locations = [file.section(out)?, file.section(reverse)?];
                contents.rows.push((built.predicate, part.entries, locations));
                for (graph, count) in part.graphs {
                    *contents.graphs.entry(graph).or_default() += count;
                }
            }
            Ok(())
        };
        let job = |(predicate, is_split, one): (Id, bool, SortedPredicate)| {
            watch.advance(one.added)?;
            context.encode(predicate, is_split, &one.sides)
        };
        in_order(inputs, options.threads, &job, &mut accept)?;
        split.sort_unstable_by_key(|(predicate, _)| *predicate);
        let finish = |(part, (file, mut toc, contents)): (&usize, (SegmentFile, Toc, Contents))| {
            contents.finish(&mut toc);
            Ok((*part, file.finish(&toc)?))
        };
        let files = own.parts.iter().zip(open).map(finish).collect::<Result<_>>()?;
        Ok(WrittenParts { files, split })
    }
}

struct CountTypes;

impl EntriesVisitor for CountTypes {
    type Output = TypeSets;
    fn visit<E: Entries + ?Sized>(self, entries: &E) -> TypeSets {
        type_sets(entries)
    }
}

struct FillTypes<'a>(&'a BuildPlan, &'a mut [u8]);

impl EntriesVisitor for FillTypes<'_> {
    type Output = ();
    fn visit<E: Entries + ?Sized>(self, entries: &E) {
        self.0.types.fill(entries, self.1);
    }
}

/// The sections of one predicate in the own partitions.
struct EncodedParts {
    predicate: Id,
    parts: Vec<EncodedPart>,
    /// If it is split, the statistics of the in entries of own objects.
    split: Option<SegmentStatistics>,
}

/// The sections of one predicate in one partition.
struct EncodedPart {
    /// Number of out entries.
    entries: u64,
    sections: [Vec<u8>; 2],
    graphs: FxHashMap<u64, u64>,
}

/// Shared input of all jobs.
struct PartContext<'a> {
    dictionary: &'a Dictionary,
    classes: &'a Classes,
    own: &'a OwnParts,
    watch: &'a Watch<'a>,
}

impl PartContext<'_> {
    fn encode(&self, predicate: Id, is_split: bool, sides: &[SortedEntries; 2]) -> Result<EncodedParts> {
        let OwnParts { partitioning, parts, .. } = self.own;
        let mut encoded = Vec::with_capacity(parts.len());
        for part in parts {
            let keep = |key: u64| partitioning.owner(Id::from_bits(key)) == *part;
            let out = sides[0].part(keep, self.watch)?;
            let reverse =
                if is_split { out.reversed(self.watch)? } else { sides[1].part(keep, self.watch)? };
            let own = halves::stride(*partitioning, *part);
            let strides = [own, if is_split { Stride::default() } else { own }];
            let side = |at: usize, entries: &SortedEntries| {
                entries.visit(EncodeSide { of: (predicate, Direction::BOTH[at], strides[at]), context: self })
            };
            let sections = [side(0, &out)?, side(1, &reverse)?];
            let mut graphs = FxHashMap::default();
            out.for_each(&mut |[_, _, graph, _]| {
                if graph != 0 {
                    *graphs.entry(graph).or_default() += 1;
                }
            });
            encoded.push(EncodedPart { entries: out.counts().entries, sections, graphs });
        }
        let split = is_split.then(|| sides[1].visit(SplitStatistics(self))).transpose()?;
        Ok(EncodedParts { predicate, parts: encoded, split })
    }
}

/// Encodes one direction of a predicate in one partition.
struct EncodeSide<'a> {
    of: (Id, Direction, Stride),
    context: &'a PartContext<'a>,
}

impl EntriesVisitor for EncodeSide<'_> {
    type Output = Result<Vec<u8>>;
    fn visit<E: Entries + ?Sized>(self, entries: &E) -> Result<Vec<u8>> {
        let PartContext { dictionary, classes, watch, .. } = self.context;
        let runs = KeyRuns::of(entries);
        let neighbours = halves::distinct_neighbours(entries, watch)?;
        let strings = are_plain_strings(&neighbours, dictionary, watch)?;
        let statistics = collect_half(entries, &runs, &neighbours, classes, strings);
        encode(self.of, entries, &runs, &neighbours, &statistics, watch)
    }
}

/// The statistics of in entries by the objects that this server owns.
struct SplitStatistics<'a>(&'a PartContext<'a>);

impl EntriesVisitor for SplitStatistics<'_> {
    type Output = Result<SegmentStatistics>;
    fn visit<E: Entries + ?Sized>(self, entries: &E) -> Result<SegmentStatistics> {
        let neighbours = halves::distinct_neighbours(entries, self.0.watch)?;
        Ok(collect_half(entries, &KeyRuns::of(entries), &neighbours, self.0.classes, false))
    }
}

//! Statistics: classes of vertices and the class pairs between them, counted while segments are built.
//!
//! # Shape
//! A class is a set of types; vertices without types have classes by their predicates (`predicate_sets.rs`).
//! While a store is built, one byte for each vertex holds its class; class pairs are counted in a square
//! table of classes (for a small segment in a sorted list). Afterwards only the counts are kept.
//! # Cost
//! One table access for each entry of one direction; the other direction is the same table, transposed.

use crate::entries::{Entries, KeyRuns};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use vervet_dictionary::Dictionary;
use vervet_model::{Id, Result, Tag, Watch};
use vervet_snapshot::{ClassId, ClassPairCount, KeySketch, SegmentStatistics};

/// Segments with fewer entries count class pairs in a list.
const TABLE_MIN: usize = 1 << 14;

/// The classes of a store under construction.
#[derive(Debug)]
pub(crate) struct Classes {
    /// The class of each vertex.
    pub(crate) of_vertex: Vec<u8>,
    /// Number of samples of each sketch.
    samples: usize,
    /// The part that is kept.
    pub(crate) table: ClassTable,
}

/// Sizes of classes, and the classes that contain each type.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct ClassTable {
    /// Number of vertices of each class; of [`ClassId::LITERAL`]: literals of the dictionary.
    pub(crate) sizes: Vec<u64>,
    /// For each type (bits of its id) the classes whose vertices may have it, ascending.
    pub(crate) of_type: FxHashMap<u64, Vec<ClassId>>,
}

impl ClassTable {
    /// The end of the classes that are sets of types; from there on they are sets of predicates.
    pub(crate) fn typed_end(&self) -> ClassId {
        let last = self.of_type.values().flatten().max();
        last.map_or(ClassId::FIRST, |last| ClassId(last.0 + 1).max(ClassId::FIRST))
    }

    /// Number of keys without types.
    pub(crate) fn untyped_keys(keys_of_class: &[(ClassId, u64)], typed_end: ClassId) -> u64 {
        let is_untyped = |class: ClassId| class == ClassId::UNTYPED || class >= typed_end;
        keys_of_class.iter().filter(|(class, _)| is_untyped(*class)).map(|(_, keys)| keys).sum()
    }
}

/// The number of vertices with each set of types (bits of their ids, ascending).
pub(crate) type TypeSets = FxHashMap<Vec<u64>, u64>;

/// Classes by types: their table, and the class of each set that has one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct TypeClasses {
    pub(crate) table: ClassTable,
    pub(crate) of_set: FxHashMap<Vec<u64>, u8>,
}

/// Calls `each` with the number and the types of each vertex of `types`: entries from subjects to types.
pub(crate) fn for_each_type_set<E: Entries + ?Sized>(types: &E, mut each: impl FnMut(u64, &[u64])) {
    let (mut at, mut set) = (0, Vec::new());
    while at < types.len() {
        let key = types.key(at);
        set.clear();
        while at < types.len() && types.key(at) == key {
            set.push(types.neighbour(at));
            at += 1;
        }
        if Id::from_bits(key).is_vertex() {
            set.dedup();
            each(Id::from_bits(key).payload(), &set);
        }
    }
}

/// The sets of types of `types`: entries from subjects to types.
pub(crate) fn type_sets<E: Entries + ?Sized>(types: &E) -> TypeSets {
    let mut sets = TypeSets::default();
    for_each_type_set(types, |_, set| match sets.get_mut(set) {
        Some(count) => *count += 1,
        None => _ = sets.insert(set.to_vec(), 1),
    });
    sets
}

impl TypeClasses {
    /// A class for each of the most frequent sets.
    pub(crate) fn new(sets: TypeSets, vertex_count: u64, literal_count: u64) -> Self {
        // The largest classes first; equal ones in the order of their types, for equal files.
        let mut ranked: Vec<(Vec<u64>, u64)> = sets.into_iter().collect();
        ranked.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let mut of_set: FxHashMap<Vec<u64>, u8> = FxHashMap::default();
        let mut of_type: FxHashMap<u64, BTreeSet<u16>> = FxHashMap::default();
        let mut sizes = vec![0_u64; usize::from(ClassId::FIRST.0)];
        for (index, (set, size)) in ranked.into_iter().enumerate() {
            let number = index + usize::from(ClassId::FIRST.0);
            let class = match u8::try_from(number) {
                Ok(class) if number < ClassId::COUNT_MAX => {
                    sizes.push(size);
                    class
                }
                _ => {
                    sizes[usize::from(ClassId::OTHER.0)] += size;
                    OTHER
                }
            };
            for type_id in &set {
                of_type.entry(*type_id).or_default().insert(u16::from(class));
            }
            if class != OTHER {
                of_set.insert(set, class);
            }
        }
        let typed: u64 = sizes.iter().sum();
        assert!(typed <= vertex_count, "{typed} vertices with types of {vertex_count}");
        sizes[usize::from(ClassId::UNTYPED.0)] = vertex_count - typed;
        sizes[usize::from(ClassId::LITERAL.0)] = literal_count;
        let of_type = of_type
            .into_iter()
            .map(|(type_id, classes)| (type_id, classes.into_iter().map(ClassId).collect()))
            .collect();
        Self { table: ClassTable { sizes, of_type }, of_set }
    }

    /// Writes the class of each vertex of `types` to `of_vertex`.
    pub(crate) fn fill<E: Entries + ?Sized>(&self, types: &E, of_vertex: &mut [u8]) {
        for_each_type_set(types, |vertex, set| {
            let class = self.of_set.get(set).copied().unwrap_or(OTHER);
            if let Some(slot) = usize::try_from(vertex).ok().and_then(|vertex| of_vertex.get_mut(vertex)) {
                *slot = class;
            }
        });
    }
}

impl Classes {
    /// The classes of vertices with `types`: entries from subjects to types.
    pub(crate) fn new<E: Entries + ?Sized>(types: &E, vertex_count: u64, literal_count: u64) -> Self {
        let classes = TypeClasses::new(type_sets(types), vertex_count, literal_count);
        let mut of_vertex = vec![0_u8; usize::try_from(vertex_count).unwrap_or(0)];
        classes.fill(types, &mut of_vertex);
        Self { of_vertex, samples: KeySketch::SAMPLES_MAX, table: classes.table }
    }

    /// These classes of all vertices.
    pub(crate) fn from_parts(of_vertex: Vec<u8>, table: ClassTable) -> Self {
        Self { of_vertex, samples: KeySketch::SAMPLES_MAX, table }
    }

    /// The same, with sketches for a graph with this number of predicates.
    pub(crate) fn with_predicates(self, count: usize) -> Self {
        Self { samples: KeySketch::samples_for(count), ..self }
    }

    /// The class of a key or a neighbour.
    #[inline]
    fn of(&self, bits: u64) -> u8 {
        const VERTEX: u64 = Tag::Vertex as u64;
        const EDGE: u64 = Tag::Edge as u64;
        match bits >> Id::PAYLOAD_BITS {
            VERTEX => {
                let number = usize::try_from(bits & Id::PAYLOAD_MAX).unwrap_or(usize::MAX);
                self.of_vertex.get(number).copied().unwrap_or(0)
            }
            EDGE => 0,
            _ => LITERAL,
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "2")]
const OTHER: u8 = ClassId::OTHER.0 as u8;
#[expect(clippy::cast_possible_truncation, reason = "1")]
const LITERAL: u8 = ClassId::LITERAL.0 as u8;

/// Number of strings between two checks of the watch.
const STRINGS_AT_ONCE: usize = 1 << 14;

/// Whether all of `neighbours`, which are ascending, are literals of type `xsd:string`.
/// # Cost
/// Up to the first other literal, the kind of each in the dictionary, whose blocks are read in their order.
///
/// # Errors
/// Damaged dictionary; those of `watch`.
pub(crate) fn are_plain_strings(
    neighbours: &[u64],
    dictionary: &Dictionary,
    watch: &Watch<'_>,
) -> Result<bool> {
    let is_string_tag = |bits: &u64| matches!(Id::from_bits(*bits).tag(), Tag::Literal | Tag::ShortString);
    // Neighbours ascend by tag, and the two tags are adjacent.
    if !neighbours.first().is_some_and(is_string_tag) || !neighbours.last().is_some_and(is_string_tag) {
        return Ok(false);
    }
    for some in neighbours.chunks(STRINGS_AT_ONCE) {
        watch.check()?;
        for bits in some {
            if !dictionary.is_plain_text(Id::from_bits(*bits))? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Statistics of the segments of one predicate, out and in. `out` are the entries keyed by subject;
/// `strings`: whether [`are_plain_strings`] holds for the objects.
pub(crate) fn collect<E: Entries + ?Sized>(
    out: &E,
    subjects: &KeyRuns,
    objects: &KeyRuns,
    classes: &Classes,
    strings: bool,
) -> [SegmentStatistics; 2] {
    let class_pairs = class_pairs(out, subjects, classes);
    let mut reverse: Vec<ClassPairCount> = class_pairs
        .iter()
        .map(|class_pair| ClassPairCount {
            source: class_pair.target,
            target: class_pair.source,
            entries: class_pair.entries,
        })
        .collect();
    reverse.sort_unstable_by_key(|class_pair| (class_pair.source, class_pair.target));
    let flags = ColumnFlags::of(out);
    [
        SegmentStatistics {
            plain_strings_only: strings,
            ..statistics_of(subjects, &objects.keys, flags, class_pairs, classes)
        },
        statistics_of(objects, &subjects.keys, flags, reverse, classes),
    ]
}

/// Statistics of one direction of a predicate in one partition, whose other direction has other entries.
/// `neighbours` are the distinct ones, ascending; `strings`: whether [`are_plain_strings`] holds for them.
pub(crate) fn collect_half<E: Entries + ?Sized>(
    entries: &E,
    keys: &KeyRuns,
    neighbours: &[u64],
    classes: &Classes,
    strings: bool,
) -> SegmentStatistics {
    let class_pairs = class_pairs(entries, keys, classes);
    SegmentStatistics {
        plain_strings_only: strings,
        ..statistics_of(keys, neighbours, ColumnFlags::of(entries), class_pairs, classes)
    }
}

/// What the columns of graphs and edges have.
#[derive(Clone, Copy)]
struct ColumnFlags {
    has_named_graphs: bool,
    has_edges: bool,
    has_parallel: bool,
}

impl ColumnFlags {
    /// Those of entries in either direction: equal pairs are adjacent in both.
    fn of<E: Entries + ?Sized>(entries: &E) -> Self {
        let has = |test: &dyn Fn(usize) -> bool| E::COLUMNS && (0..entries.len()).any(test);
        let same = |a, b| {
            entries.key(a) == entries.key(b)
                && entries.neighbour(a) == entries.neighbour(b)
                && entries.graph(a) == entries.graph(b)
        };
        let has_edges = has(&|index| entries.edge(index) != 0);
        Self {
            has_named_graphs: has(&|index| entries.graph(index) != 0),
            has_edges,
            has_parallel: has_edges && (1..entries.len()).any(|index| same(index - 1, index)),
        }
    }
}

/// Statistics without [`SegmentStatistics::plain_strings_only`].
fn statistics_of(
    keys: &KeyRuns,
    neighbours: &[u64],
    flags: ColumnFlags,
    class_pairs: Vec<ClassPairCount>,
    classes: &Classes,
) -> SegmentStatistics {
    let keys_of_class = keys_of_class(&keys.keys, classes);
    SegmentStatistics {
        exact: true,
        keys: keys.keys.len() as u64,
        entries: keys.starts.last().map_or(0, |end| *end as u64),
        neighbours: neighbours.len() as u64,
        degree_max: keys.degrees().max().unwrap_or(0),
        degree_squares: keys
            .degrees()
            .fold(0, |sum, degree| sum.saturating_add(degree.saturating_mul(degree))),
        sketch: Some(KeySketch::new(
            keys.keys.iter().map(|bits| Id::from_bits(*bits)).zip(keys.degrees()),
            classes.samples,
        )),
        has_named_graphs: flags.has_named_graphs,
        has_edges: flags.has_edges,
        has_parallel: flags.has_parallel,
        // Neighbours ascend by tag, so the first and the last decide; literals are the tags above edges.
        literals_only: neighbours.first().is_some_and(|bits| Id::from_bits(*bits).is_stored_literal()),
        plain_strings_only: false,
        vertices_only: neighbours.last().is_some_and(|bits| Id::from_bits(*bits).is_vertex()),
        class_pairs,
        untyped_keys: ClassTable::untyped_keys(&keys_of_class, classes.table.typed_end()),
        keys_of_class,
    }
}

fn keys_of_class(keys: &[u64], classes: &Classes) -> Vec<(ClassId, u64)> {
    let mut counts = [0_u64; ClassId::COUNT_MAX];
    for key in keys {
        counts[usize::from(classes.of(*key))] += 1;
    }
    (0..).map(ClassId).zip(counts).filter(|(_, count)| *count != 0).collect()
}

/// Number of entries by class of key and class of neighbour, sorted.
fn class_pairs<E: Entries + ?Sized>(entries: &E, runs: &KeyRuns, classes: &Classes) -> Vec<ClassPairCount> {
    let class_pair = |source: u16, target: u16, entries: u64| ClassPairCount {
        source: ClassId(source),
        target: ClassId(target),
        entries,
    };
    let starts = runs.starts.windows(2);
    if entries.len() < TABLE_MIN {
        let mut pairs = Vec::with_capacity(entries.len());
        for (key, range) in runs.keys.iter().zip(starts) {
            let source = classes.of(*key);
            pairs.extend((range[0]..range[1]).map(|index| (source, classes.of(entries.neighbour(index)))));
        }
        pairs.sort_unstable();
        let runs = pairs.chunk_by(|a, b| a == b);
        return runs.map(|run| class_pair(run[0].0.into(), run[0].1.into(), run.len() as u64)).collect();
    }
    let width = classes.table.sizes.len();
    let mut counts = vec![0_u64; width * width];
    for (key, range) in runs.keys.iter().zip(starts) {
        let row = usize::from(classes.of(*key)) * width;
        for index in range[0]..range[1] {
            counts[row + usize::from(classes.of(entries.neighbour(index)))] += 1;
        }
    }
    let rows = (0_u16..).zip(counts.chunks(width));
    rows.flat_map(|(source, row)| {
        (0_u16..)
            .zip(row)
            .filter(|(_, count)| **count != 0)
            .map(move |(target, count)| class_pair(source, target, *count))
    })
    .collect()
}

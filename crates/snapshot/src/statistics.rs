//! Segment statistics: counts and class pairs between classes, collected during a build and exact until a
//! change.
//!
//! # Source
//! Wukong's type-centric planner (research/wukong.md §4): the number of `advisor` edges that start at a
//! GraduateStudent and end at a FullProfessor is far more precise than an average degree. Difference: a
//! vertex with several types belongs to one class, the set of its types, and classes beyond a limit share
//! [`ClassId::OTHER`].

use crate::sketch::KeySketch;

/// A class: all vertices with the same set of types, or without types and with similar sets of predicates.
/// A vertex keeps its class until the store is built again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ClassId(pub u16);

impl ClassId {
    /// Vertices without a type and without a class by their predicates, and edges.
    pub const UNTYPED: Self = Self(0);
    /// Literals.
    pub const LITERAL: Self = Self(1);
    /// Vertices of classes too rare for a class of their own.
    pub const OTHER: Self = Self(2);
    /// The first class with a type set of its own; after these, classes by predicates, which have no types.
    pub const FIRST: Self = Self(3);
    /// Maximum number of classes of a store, the three above included.
    pub const COUNT_MAX: usize = 256;
}

/// Entries of a segment between two classes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClassPairCount {
    /// Class of the key.
    pub source: ClassId,
    /// Class of the neighbour.
    pub target: ClassId,
    /// Number of entries.
    pub entries: u64,
}

/// Statistics of one segment.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SegmentStatistics {
    /// Whether counts and class pairs are those of this snapshot. `false`: they are estimates from an earlier
    /// one and prove nothing; only the exclusions by the six flags below are still certain.
    pub exact: bool,
    /// Number of distinct keys.
    pub keys: u64,
    /// Number of entries (over all graphs, parallel edges counted).
    pub entries: u64,
    /// Number of distinct neighbours.
    pub neighbours: u64,
    /// The largest number of entries of one key.
    pub degree_max: u64,
    /// Sum of the squares of the numbers of entries of the keys; 0: unknown. Divided by [`Self::entries`],
    /// the expected number of entries of the key of a random entry.
    pub degree_squares: u64,
    /// A sample of the keys, from which joins on them are estimated. `None`: unknown; in a changed segment,
    /// that of the segment before the changes.
    pub sketch: Option<KeySketch>,
    /// Whether some entry may be in a named graph.
    pub has_named_graphs: bool,
    /// Whether some entry may have an edge id.
    pub has_edges: bool,
    /// Whether some key may have two entries with equal neighbour and graph, that is parallel edges. `false`:
    /// an entry exists at most once, whatever [`EntryFilter::parallel`](crate::EntryFilter::parallel) is.
    pub has_parallel: bool,
    /// Whether every neighbour is certainly a literal (of any tag from `Tag::Literal` on).
    pub literals_only: bool,
    /// Whether every neighbour is certainly an `xsd:string`, which has no language: for these, `=` is
    /// equality of ids. `false`: unknown.
    pub plain_strings_only: bool,
    /// Whether every neighbour is certainly a vertex.
    pub vertices_only: bool,
    /// Entries by class of key and class of neighbour; sorted by `(source, target)`; sums to `entries`.
    pub class_pairs: Vec<ClassPairCount>,
    /// Distinct keys by class; sorted; sums to `keys`.
    pub keys_of_class: Vec<(ClassId, u64)>,
    /// Number of keys of classes without types.
    pub untyped_keys: u64,
}

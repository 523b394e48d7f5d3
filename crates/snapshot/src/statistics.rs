//! Statistics that a store collects while it builds: counts of class pairs, exact until
//! something changes.
//!
//! # Source
//! Wukong's type-centric planner (research/wukong.md §4): the number of `advisor` edges that start at a
//! GraduateStudent and end at a FullProfessor says far more than an average degree. Different: a vertex
//! with several types belongs to one class, the set of its types, and classes beyond a limit share
//! [`ClassId::OTHER`].

/// A class: all vertices with the same set of types.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ClassId(pub u16);

impl ClassId {
    /// Vertices without a type, and edges.
    pub const UNTYPED: Self = Self(0);
    /// Literals.
    pub const LITERAL: Self = Self(1);
    /// Vertices of classes too rare to be told apart.
    pub const OTHER: Self = Self(2);
    /// The first class with a type set of its own.
    pub const FIRST: Self = Self(3);
    /// The most classes that a store tells apart, the three above included.
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

/// What is known about one segment.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SegmentStatistics {
    /// Whether counts and class pairs are those of this snapshot. `false`: they are of an earlier one,
    /// estimates that prove nothing; only what the five flags below exclude is still certain.
    pub exact: bool,
    /// Number of distinct keys.
    pub keys: u64,
    /// Number of entries (over all graphs, parallel edges counted).
    pub entries: u64,
    /// Number of distinct neighbours.
    pub neighbours: u64,
    /// The largest number of entries of one key.
    pub degree_max: u64,
    /// Whether some entry may be in a named graph.
    pub has_named_graphs: bool,
    /// Whether some entry may have an edge id.
    pub has_edges: bool,
    /// Whether some key may have two entries with equal neighbour and graph, that is parallel edges. `false`:
    /// an entry is there once or not at all, whatever [`EntryFilter::parallel`](crate::EntryFilter::parallel)
    /// is.
    pub has_parallel: bool,
    /// Whether every neighbour certainly is a literal (of any tag from `Tag::Literal` on).
    pub literals_only: bool,
    /// Whether every neighbour certainly is a vertex.
    pub vertices_only: bool,
    /// Entries by class of key and class of neighbour; sorted by `(source, target)`; sums to `entries`.
    pub class_pairs: Vec<ClassPairCount>,
    /// Distinct keys by class; sorted; sums to `keys`.
    pub keys_of_class: Vec<(ClassId, u64)>,
}

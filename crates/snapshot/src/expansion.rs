//! What an expansion asks for and what it brings back.

use vervet_model::Id;

/// Which graph an entry must be in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum GraphFilter {
    /// The default graph.
    #[default]
    Default,
    /// This named graph.
    Named(Id),
    /// Any named graph.
    AnyNamed,
    /// The default graph or any named one.
    Any,
}

impl GraphFilter {
    /// Whether entries of this graph ([`Id::UNBOUND`]: default) pass.
    #[inline]
    #[must_use]
    pub fn passes(self, graph: Id) -> bool {
        match self {
            Self::Default => !graph.is_bound(),
            Self::Named(name) => graph == name && name.is_bound(),
            Self::AnyNamed => graph.is_bound(),
            Self::Any => true,
        }
    }
}

/// Which entries pass.
///
/// A segment without graph and edge columns (the common case) tests nothing for the default value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EntryFilter {
    /// The graph.
    pub graph: GraphFilter,
    /// `true`: every statement counts, parallel edges too (the view of a property graph).
    /// `false`: equal `(neighbour, graph)` of one key count once (the view of RDF, where a graph is a
    /// set); ignored where edges are asked for, since then entries differ.
    pub parallel: bool,
}

/// Which entries of a key to list by their order keys ([`vervet_model::order_key`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OrderRange {
    /// The least order key; [`Id::UNBOUND`]: no bound.
    pub from: Id,
    /// Order keys are below this; [`Id::UNBOUND`]: no bound. Entries without an order key are listed only
    /// if there is no bound at all; they count as the least.
    pub before: Id,
    /// The greatest order key (the newest entry) first.
    pub descending: bool,
    /// The most entries.
    pub limit: usize,
}

/// An entry and what it is ordered by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OrderedEntry {
    /// The neighbour.
    pub neighbour: Id,
    /// The graph ([`Id::UNBOUND`]: default).
    pub graph: Id,
    /// The edge ([`Id::UNBOUND`]: none).
    pub edge: Id,
    /// The order key ([`Id::UNBOUND`]: none).
    pub order_key: Id,
}

/// Where an expansion stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cursor {
    /// The next row of the input.
    pub row: usize,
    /// How many entries of that row have been looked at, or 0 where `resume` says it.
    pub offset: u64,
    /// The first entry (neighbour, graph, edge) of that row that has not been looked at, or what is not above
    /// it; nothing bound: `offset` says it. Segments that find an entry faster than they count set it, and
    /// so do callers that begin at one of the neighbours of [`crate::Segment::split`].
    pub resume: [Id; 3],
}

impl Cursor {
    /// Before the first entry of a row.
    #[must_use]
    pub fn at(row: usize) -> Self {
        Self { row, ..Self::default() }
    }
}

/// Entries found for a batch of keys, as columns of equal length.
#[derive(Clone, Debug, Default)]
pub struct Expansion {
    /// For each entry the row of its key in the input; ascending.
    pub rows: Vec<u32>,
    /// The neighbours.
    pub neighbours: Vec<Id>,
    /// The edge ids, filled if [`Expansion::want_edges`].
    pub edges: Vec<Id>,
    /// The graphs ([`Id::UNBOUND`]: default), filled if [`Expansion::want_graphs`].
    pub graphs: Vec<Id>,
    /// Whether to fill `edges`; only entries with an edge id are then appended.
    pub want_edges: bool,
    /// Whether to fill `graphs`.
    pub want_graphs: bool,
    /// The most entries to hold.
    pub capacity: usize,
    /// Of this row only entries with a neighbour below this id are appended.
    pub end: Option<(usize, Id)>,
}

impl Expansion {
    /// An empty expansion for neighbours alone that holds up to `capacity` entries. Its memory comes with
    /// them: most light queries find a handful, and in a heap that others have used blocks of some kilobytes
    /// may take microseconds.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { capacity, ..Self::default() }
    }

    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// How many more entries fit.
    #[must_use]
    pub fn room(&self) -> usize {
        self.capacity - self.rows.len()
    }

    /// Removes all entries and keeps the memory.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.neighbours.clear();
        self.edges.clear();
        self.graphs.clear();
    }
}

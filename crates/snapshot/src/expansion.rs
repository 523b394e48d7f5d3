//! Parameters and results of an expansion: filters, cursors, output columns.

use vervet_model::{Id, Result};

/// Condition on the graph of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
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
    /// Whether an entry of this graph ([`Id::UNBOUND`]: default) passes.
    #[inline]
    #[must_use]
    pub fn matches(self, graph: Id) -> bool {
        match self {
            Self::Default => !graph.is_bound(),
            Self::Named(name) => graph == name && name.is_bound(),
            Self::AnyNamed => graph.is_bound(),
            Self::Any => true,
        }
    }
}

/// Condition on entries.
///
/// A segment without graph and edge columns (the common case) tests nothing for the default value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct EntryFilter {
    /// The graph.
    pub graph: GraphFilter,
    /// `true`: every statement counts, parallel edges too (the view of a property graph). `false`: equal
    /// `(neighbour, graph)` of one key count once (the view of RDF, where a graph is a set); ignored where
    /// edges are requested, since then entries differ.
    pub parallel: bool,
}

impl EntryFilter {
    /// Every statement of every graph counts, parallel edges too.
    pub const ALL: Self = Self { graph: GraphFilter::Any, parallel: true };
    /// Entries of every graph, parallel edges once.
    pub const ANY_GRAPH: Self = Self { graph: GraphFilter::Any, parallel: false };
}

/// The least position above an entry (neighbour, graph, edge), such as the start of the next call of
/// [`crate::Segment::entries`].
#[inline]
#[must_use]
pub fn successor([neighbour, graph, edge]: [Id; 3]) -> [Id; 3] {
    match edge.bits().checked_add(1) {
        Some(next) => [neighbour, graph, Id::from_bits(next)],
        None => [neighbour, Id::from_bits(graph.bits() + 1), Id::UNBOUND],
    }
}

/// Appends the entries that `next` returns, those of one key from [`Cursor::resume`] on in ascending order,
/// as far as they pass `filter` and fit: for segments that merge the entries of several lists. The key is
/// that of the row of `cursor`, which moves to the next row, or to the first entry that does not fit.
///
/// # Errors
/// Those of `next`.
pub fn append_entries(
    next: &mut dyn FnMut() -> Result<Option<[Id; 3]>>,
    filter: EntryFilter,
    cursor: &mut Cursor,
    out: &mut Expansion,
) -> Result<()> {
    let row = u32::try_from(cursor.row).unwrap_or(u32::MAX);
    let once = !out.want_edges && !filter.parallel;
    // An entry to resume with is never a repeated one, so nothing before it matters.
    let mut last = None;
    while let Some(entry) = next()? {
        let [neighbour, graph, edge] = entry;
        if out.end.is_some_and(|(row, below)| row == cursor.row && neighbour >= below) {
            break;
        }
        if !filter.graph.matches(graph) || out.want_edges && !edge.is_bound() {
            continue;
        }
        if once && last.replace((neighbour, graph)) == Some((neighbour, graph)) {
            continue;
        }
        if out.remaining_capacity() == 0 {
            cursor.resume = entry;
            return Ok(());
        }
        out.rows.push(row);
        out.neighbours.push(neighbour);
        if out.want_edges {
            out.edges.push(edge);
        }
        if out.want_graphs {
            out.graphs.push(graph);
        }
    }
    *cursor = Cursor::at(cursor.row + 1);
    Ok(())
}

/// Selection of the entries of a key by their order keys ([`vervet_model::order_key`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OrderRange {
    /// The least order key; [`Id::UNBOUND`]: no bound.
    pub from: Id,
    /// Upper bound of order keys (excluded); [`Id::UNBOUND`]: no bound. Entries without an order key are
    /// listed only without any bound; they sort first.
    pub before: Id,
    /// Whether the greatest order key (the newest entry) comes first.
    pub descending: bool,
    /// Maximum number of entries.
    pub limit: usize,
}

/// An entry with its order key.
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

/// Position at which an expansion stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cursor {
    /// The next row of the input.
    pub row: usize,
    /// Number of entries of that row already visited, or 0 where `resume` is set.
    pub offset: u64,
    /// Lower bound (neighbour, graph, edge) of the entries of that row not yet visited; unbound: `offset`
    /// applies. Set by segments that find an entry faster than they count, and by callers that begin at one
    /// of the neighbours of [`crate::Segment::split`].
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
    /// The row of the key of each entry in the input; ascending.
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
    /// Maximum number of entries.
    pub capacity: usize,
    /// Appends only entries of this row whose neighbour is below this id.
    pub end: Option<(usize, Id)>,
}

impl Expansion {
    /// An empty expansion for neighbours alone that holds up to `capacity` entries. Memory is allocated on
    /// demand: most light queries find a handful of entries, and in a fragmented heap blocks of some
    /// kilobytes may take microseconds.
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

    /// Number of entries that still fit.
    #[must_use]
    pub fn remaining_capacity(&self) -> usize {
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

/// Entries (neighbour, graph, edge) of the first keys of a list in one segment, all of each key, see
/// [`crate::Snapshot::entries_together`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KeyEntries {
    /// For each of these keys, the end of its entries in `entries`. Fewer than there are keys: the entries of
    /// the next one did not fit.
    pub ends: Vec<usize>,
    /// The entries, ascending for each key.
    pub entries: Vec<[Id; 3]>,
}

impl KeyEntries {
    /// The entries of the key at `row`; `None`: they are not in the list.
    #[must_use]
    pub fn of(&self, row: usize) -> Option<&[[Id; 3]]> {
        let end = *self.ends.get(row)?;
        let start = match row.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        self.entries.get(start..end)
    }
}

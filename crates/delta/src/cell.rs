//! A cell: one change of a segment.
//!
//! # Shape
//! 32 bytes: key, neighbour, graph, edge, and whether the entry is present or removed, in the highest bit of
//! the edge (unused by the tags of edges and of unbound ids). Cells are ordered like entries.

use crate::tree::TreeItem;
use vervet_model::Id;

/// Highest bit of an edge: the entry is removed.
const ABSENT: u64 = 1 << 63;

/// One change: an entry that the lower segment lacks is present, or one that it has is removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cell {
    pub(crate) key: Id,
    pub(crate) neighbour: Id,
    pub(crate) graph: Id,
    edge: u64,
}

/// Key and neighbour, graph and edge: two comparisons instead of four.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct CellKey(u128, u128);

impl CellKey {
    /// The key of the cell of this entry.
    #[inline]
    pub(crate) fn new(key: Id, [neighbour, graph, edge]: [Id; 3]) -> Self {
        let join = |high: u64, low: u64| u128::from(high) << 64 | u128::from(low);
        Self(join(key.bits(), neighbour.bits()), join(graph.bits(), edge.bits()))
    }

    /// Lower bound of the cells of `key`, above those of smaller keys.
    #[inline]
    pub(crate) fn start(key: Id) -> Self {
        Self::new(key, [Id::UNBOUND; 3])
    }

    /// Upper bound of the cells of `key`, not above those of larger keys.
    #[inline]
    pub(crate) fn end(key: Id) -> Self {
        Self::start(Id::from_bits(key.bits().saturating_add(1)))
    }
}

impl Cell {
    /// A cell for this entry of `key`.
    pub(crate) fn new(key: Id, [neighbour, graph, edge]: [Id; 3], is_present: bool) -> Self {
        let absent = if is_present { 0 } else { ABSENT };
        Self { key, neighbour, graph, edge: edge.bits() & !ABSENT | absent }
    }

    /// Whether the entry is present.
    #[inline]
    pub(crate) fn is_present(&self) -> bool {
        self.edge & ABSENT == 0
    }

    /// Neighbour, graph, edge.
    #[inline]
    pub(crate) fn entry(&self) -> [Id; 3] {
        [self.neighbour, self.graph, Id::from_bits(self.edge & !ABSENT)]
    }
}

impl TreeItem for Cell {
    type Key = CellKey;

    #[inline]
    fn key(&self) -> CellKey {
        CellKey::new(self.key, self.entry())
    }

    #[inline]
    fn touch(&self) -> u64 {
        self.edge
    }

    /// Contribution of the entry to the degree of its key.
    #[inline]
    fn weight(&self) -> i64 {
        if self.is_present() { 1 } else { -1 }
    }
}

//! A cell: one change of a segment.
//!
//! # Shape
//! 32 bytes: key, neighbour, graph, edge, and whether the entry is there or gone, in the highest bit of the
//! edge (a tag of an edge, or of nothing, leaves it free). Cells are ordered as entries are.

use crate::tree::Item;
use vervet_model::Id;

/// What stands in the highest bit of an edge if the entry is gone.
const ABSENT: u64 = 1 << 63;

/// Says of one entry that it is there although the lower segment does not have it, or gone although it does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cell {
    pub(crate) key: Id,
    pub(crate) neighbour: Id,
    pub(crate) graph: Id,
    edge: u64,
}

/// Key and neighbour, graph and edge: two comparisons where four ids would take four.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct CellKey(u128, u128);

impl CellKey {
    /// The key of the cell of this entry.
    #[inline]
    pub(crate) fn new(key: Id, [neighbour, graph, edge]: [Id; 3]) -> Self {
        let join = |high: u64, low: u64| u128::from(high) << 64 | u128::from(low);
        Self(join(key.bits(), neighbour.bits()), join(graph.bits(), edge.bits()))
    }

    /// Not above any cell of `key`, and above those of smaller keys.
    #[inline]
    pub(crate) fn start(key: Id) -> Self {
        Self::new(key, [Id::UNBOUND; 3])
    }

    /// Above all cells of `key`, and not above those of larger keys.
    #[inline]
    pub(crate) fn end(key: Id) -> Self {
        Self::start(Id::from_bits(key.bits().saturating_add(1)))
    }
}

impl Cell {
    /// The cell of `key` and entry.
    pub(crate) fn new(key: Id, [neighbour, graph, edge]: [Id; 3], is_present: bool) -> Self {
        let absent = if is_present { 0 } else { ABSENT };
        Self { key, neighbour, graph, edge: edge.bits() & !ABSENT | absent }
    }

    /// Whether the entry is there.
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

impl Item for Cell {
    type Key = CellKey;

    #[inline]
    fn key(&self) -> CellKey {
        CellKey::new(self.key, self.entry())
    }

    #[inline]
    fn touch(&self) -> u64 {
        self.edge
    }

    /// What the entry adds to the degree of its key.
    #[inline]
    fn weight(&self) -> i64 {
        if self.is_present() { 1 } else { -1 }
    }
}

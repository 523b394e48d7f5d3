//! The edges of a load: their names, and the claims whose statements are not found yet. `edges` fills it.

use crate::block::{Block, BlockPosition};
use foldhash::fast::RandomState;
use foldhash::{HashMap as SeededMap, HashSet as SeededSet};
use vervet_model::{Id, Tag};

/// The edges of a load.
#[derive(Default)]
pub(crate) struct Edges {
    /// Random per load, since hashes identify statements.
    pub(crate) hashing: RandomState,
    /// Edges by the id of their input names.
    pub(crate) named: SeededMap<Id, NamedEdge>,
    /// First uses of names that are not declared yet.
    pub(crate) uses: SeededMap<Id, InputPosition>,
    /// Edges with other IRIs as names, with those IRIs and the graphs of their statements.
    pub(crate) external: Vec<(Id, Id, Id)>,
    /// Number of edges with other IRIs or blank nodes as names.
    pub(crate) vertex_names: usize,
    /// Upper bound (exclusive) of the vertex numbers in the blocks so far.
    pub(crate) vertex_end: u64,
    /// Whether a name may have been used before its declaration.
    pub(crate) late: bool,
    /// Claims whose statement is not found yet.
    pub(crate) claims: Vec<Claim>,
    /// Subject, predicate, object and graph of the last statement of the last block, and whether it was added
    /// without an edge.
    pub(crate) last: Option<([Id; 4], bool)>,
    /// Statements that ended a block without an edge and got one in the next block: they are counted once.
    pub(crate) replaced: SeededSet<[Id; 4]>,
}

pub(crate) struct NamedEdge {
    pub(crate) edge: Id,
    /// A hash of its statement; `None`: not declared yet.
    pub(crate) statement: Option<u64>,
}

/// A statement with an edge, which must be asserted in the load.
pub(crate) struct Claim {
    pub(crate) statement: [Id; 4],
    pub(crate) edge: Id,
    pub(crate) position: InputPosition,
}

/// A position in the input.
#[derive(Clone, Copy)]
pub(crate) struct InputPosition {
    /// Number of the file.
    pub(crate) file: usize,
    /// Lines are relative to the file.
    pub(crate) at: BlockPosition,
}

impl Edges {
    /// Whether a block with these ids concerns edges.
    pub(crate) fn concerns_edges(&self, block: &Block, ids: &[Id]) -> bool {
        self.vertex_names > 0 || !block.reifiers.is_empty() || ids.iter().any(|id| id.tag() == Tag::Edge)
    }

    /// Prepares for a property graph, whose terms are not in blocks.
    pub(crate) fn expect_vertices(&mut self) {
        self.vertex_end = u64::MAX;
        self.late |= self.vertex_names > 0;
    }

    /// Records the terms of a block whose statements have been added.
    pub(crate) fn record_block(&mut self, ids: &[Id], last: Option<([Id; 4], bool)>) {
        let vertices = ids.iter().filter(|id| id.is_vertex());
        self.vertex_end = vertices.map(|id| id.payload() + 1).fold(self.vertex_end, u64::max);
        self.last = last.or(self.last);
    }

    /// The edge of a name, or the vertex itself.
    pub(crate) fn vertex_or_edge(&self, id: Id) -> Id {
        self.named.get(&id).map_or(id, |named| named.edge)
    }

    /// As [`Edges::vertex_or_edge`], for ids already passed to the target, whose edges are those of the
    /// target.
    pub(crate) fn vertex_or_edge_of_load(&self, id: Id) -> Id {
        if id.is_vertex() { self.vertex_or_edge(id) } else { id }
    }
}

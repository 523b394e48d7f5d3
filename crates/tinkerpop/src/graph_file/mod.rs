//! Graph files in GraphSON's adjacency-list form: one object per vertex, with its properties and its edges in
//! both directions.
//!
//! # Shape
//! ```text
//! {"id": 1, "label": "person", "inE": {"knows": [{"id": 7, "outV": 4, "properties": {"weight": 0.5}}]},
//!  "outE": {…}, "properties": {"name": [{"id": 0, "value": "marko", "properties": {…}}]}}
//! ```
//! Vertices are in sequence, one per line, or wrapped in `{"vertices": [vertex, vertex]}`. Types are
//! optional; the reader accepts all of GraphSON 2 and 3, and the output of GraphSON 1 in this form.
//! # Invariants
//! An edge is listed at both of its ends and counts once: in the direction of the first edge of the file, or
//! incoming if the first vertex with edges has both. The reader also accepts a file with only one direction;
//! it rejects a file whose directions have different numbers of edges at its end.
//! # Cost
//! Memory for one vertex at a time.
//! # Not here
//! Whole graphs as one value (`tinker:graph`; see [`graphson`](crate::graphson)), GraphML (`vervet-load`),
//! Gryo.

mod read;
mod write;

pub use read::GraphReader;
pub use write::{GraphWriteError, GraphWriter, Layout};

use std::sync::Arc;
use vervet_gremlin::{Direction, Property, Value, VertexProperty};

/// Maximum size of a vertex with its edges, in bytes.
pub const VERTEX_BYTES_MAX: usize = 1 << 30;

/// A vertex of a graph file, with its edges.
#[derive(Clone, PartialEq, Debug)]
pub struct GraphVertex {
    /// `T.id`
    pub id: Value,
    /// `T.label`
    pub label: Arc<str>,
    /// Properties; a key may occur several times, and a property may have properties.
    pub properties: Vec<Arc<VertexProperty>>,
    /// Incoming edges.
    pub incoming: Vec<GraphEdge>,
    /// Outgoing edges.
    pub outgoing: Vec<GraphEdge>,
    /// The direction in which edges of this file count; [`Direction::Both`] means outgoing.
    pub counted: Direction,
}

/// An edge in the adjacency list of a vertex.
#[derive(Clone, PartialEq, Debug)]
pub struct GraphEdge {
    /// `T.id`; null if missing.
    pub id: Value,
    /// `T.label`
    pub label: Arc<str>,
    /// The id of the vertex at the other end.
    pub other: Value,
    /// Its properties.
    pub properties: Vec<Arc<Property>>,
}

impl GraphVertex {
    /// The edges that count at this vertex, with their source and target ids. The union over all vertices
    /// contains each edge once.
    pub fn edges(&self) -> impl Iterator<Item = (&GraphEdge, &Value, &Value)> {
        let incoming = self.counted == Direction::In;
        let edges = if incoming { &self.incoming } else { &self.outgoing };
        edges.iter().map(
            move |edge| {
                if incoming { (edge, &edge.other, &self.id) } else { (edge, &self.id, &edge.other) }
            },
        )
    }
}

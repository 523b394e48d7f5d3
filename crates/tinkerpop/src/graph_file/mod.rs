//! Graph files in the adjacency form of GraphSON: an object for each vertex, with its properties and its
//! edges in both directions.
//!
//! # Shape
//! ```text
//! {"id": 1, "label": "person", "inE": {"knows": [{"id": 7, "outV": 4, "properties": {"weight": 0.5}}]},
//!  "outE": {…}, "properties": {"name": [{"id": 0, "value": "marko", "properties": {…}}]}}
//! ```
//! Vertices stand one after the other, each on its line, or wrapped, `{"vertices": [vertex, vertex]}`. Values
//! have types or none; all of GraphSON 2 and 3 is read, and what GraphSON 1 writes in this form.
//! # Invariants
//! An edge stands at both its ends and counts once: in the direction of the first edge of the file, or
//! incoming if the first vertex with edges has both. A file that was written with one direction is read as
//! well; one whose directions disagree about the number of edges is refused at its end.
//! # Cost
//! One vertex in memory at a time.
//! # Not here
//! Whole graphs as one value (`tinker:graph`: see [`graphson`](crate::graphson)), GraphML (`vervet-load`),
//! Gryo.

mod read;
mod write;

pub use read::GraphReader;
pub use write::{GraphWriteError, GraphWriter, Layout};

use std::sync::Arc;
use vervet_gremlin::{Direction, Property, Value, VertexProperty};

/// The most bytes of a vertex with its edges.
pub const VERTEX_BYTES_MAX: usize = 1 << 30;

/// A vertex of a file, with its edges.
#[derive(Clone, PartialEq, Debug)]
pub struct GraphVertex {
    /// `T.id`
    pub id: Value,
    /// `T.label`
    pub label: Arc<str>,
    /// Several may have one key; each may have properties.
    pub properties: Vec<Arc<VertexProperty>>,
    /// Edges that end here.
    pub incoming: Vec<GraphEdge>,
    /// Edges that start here.
    pub outgoing: Vec<GraphEdge>,
    /// The direction in which edges of this file count; [`Direction::Both`] stands for outgoing.
    pub counted: Direction,
}

/// An edge as a vertex of a file has it.
#[derive(Clone, PartialEq, Debug)]
pub struct GraphEdge {
    /// `T.id`; null if the file has none.
    pub id: Value,
    /// `T.label`
    pub label: Arc<str>,
    /// The id of the vertex at the other end.
    pub other: Value,
    /// Its properties.
    pub properties: Vec<Arc<Property>>,
}

impl GraphVertex {
    /// Each edge that counts here, with the ids of its source and of its target. Over all vertices each edge
    /// once.
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

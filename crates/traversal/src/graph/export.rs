//! Iteration over the whole graph, one vertex at a time, for graph files.

use super::Names;
use super::ids::{edge_id, vertex_id};
use super::read::{edges, statement_values, vertex_label, vertex_values};
use super::scan::VertexScan;
use crate::size::bytes;
use std::sync::Arc;
use vervet_gremlin::{Direction, EdgeKey, Property, PropertyDetail, PropertyKey, Value, VertexProperty};
use vervet_kernel::Control;
use vervet_model::{Id, Result};
use vervet_snapshot::Snapshot;
use vervet_tinkerpop::graph_file::{GraphEdge, GraphVertex};

/// The parts of a vertex to read beside its id and label.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VertexParts {
    /// Its properties.
    pub properties: bool,
    /// The outgoing edges.
    pub outgoing: bool,
    /// The incoming edges.
    pub incoming: bool,
}

impl VertexParts {
    /// All parts.
    pub const ALL: Self = Self { properties: true, outgoing: true, incoming: true };
}

/// Calls `each` with every vertex of the graph, in id order. Vertex properties are numbered from 0, as in
/// TinkerPop files.
///
/// # Errors
/// Limits; those of `each`, which end the iteration; damaged data.
/// # Cost
/// Memory for one vertex with its edges, counted against the memory cap. Each edge is read once per requested
/// direction.
pub fn for_each_vertex(
    snapshot: &dyn Snapshot,
    parts: VertexParts,
    control: &Control<'_>,
    each: &mut dyn FnMut(GraphVertex) -> Result<()>,
) -> Result<()> {
    let mut export =
        VertexExport { snapshot, control, names: Names::default(), properties: 0, held_bytes: 0 };
    let mut scan = VertexScan::default();
    let mut found = Vec::new();
    while scan.next_batch(snapshot, &mut export.names, &mut found)? {
        for vertex in found.drain(..) {
            let done = export.vertex(vertex, parts).and_then(&mut *each);
            control.shrink(std::mem::take(&mut export.held_bytes));
            done?;
        }
    }
    Ok(())
}

struct VertexExport<'a> {
    snapshot: &'a dyn Snapshot,
    control: &'a Control<'a>,
    names: Names,
    /// The number of vertex properties so far.
    properties: i64,
    /// Bytes counted for the current vertex.
    held_bytes: u64,
}

/// Edges and properties of one vertex between two limit checks.
const CHECK_EVERY: usize = 256;

impl VertexExport<'_> {
    fn reserve(&mut self, bytes: u64) -> Result<()> {
        self.held_bytes += bytes;
        self.control.grow(bytes)
    }

    fn vertex(&mut self, vertex: Id, parts: VertexParts) -> Result<GraphVertex> {
        let edges_of = |export: &mut Self, wanted: bool, direction| match wanted {
            true => export.edges(vertex, direction),
            false => Ok(Vec::new()),
        };
        self.control.check()?;
        Ok(GraphVertex {
            incoming: edges_of(self, parts.incoming, Direction::In)?,
            outgoing: edges_of(self, parts.outgoing, Direction::Out)?,
            id: vertex_id(self.snapshot, vertex)?,
            label: vertex_label(self.snapshot, &mut self.names, vertex.bits())?,
            properties: if parts.properties { self.vertex_properties(vertex)? } else { Vec::new() },
            counted: Direction::Out,
        })
    }

    fn vertex_properties(&mut self, vertex: Id) -> Result<Vec<Arc<VertexProperty>>> {
        let mut found: Vec<(PropertyKey, Arc<str>, Value)> = Vec::new();
        vertex_values(self.snapshot, &mut self.names, vertex.bits(), &[], &mut |key, label, value| {
            found.push((key, label, value));
        })?;
        let mut all = Vec::with_capacity(found.len());
        for (number, (key, label, value)) in found.into_iter().enumerate() {
            if number % CHECK_EVERY == CHECK_EVERY - 1 {
                self.control.check()?;
            }
            self.reserve(size_of::<VertexProperty>() as u64 + bytes(&value, self.control)?)?;
            let id = Value::Long(self.properties);
            self.properties += 1;
            let properties = self.properties(key.edge)?;
            let detail = Some(PropertyDetail { id, properties });
            all.push(Arc::new(VertexProperty { key, label, value, detail }));
        }
        Ok(all)
    }

    fn properties(&mut self, identity: u64) -> Result<Vec<Arc<Property>>> {
        let mut all = Vec::new();
        statement_values(self.snapshot, &mut self.names, identity, &[], &mut |key, value| {
            all.push(Arc::new(Property { element: Value::Null, key, value }));
        })?;
        for property in &all {
            self.reserve(size_of::<Property>() as u64 + bytes(&property.value, self.control)?)?;
        }
        Ok(all)
    }

    fn edges(&mut self, vertex: Id, direction: Direction) -> Result<Vec<GraphEdge>> {
        let (mut keys, mut held_bytes, control): (Vec<EdgeKey>, _, _) = (Vec::new(), 0, self.control);
        edges(self.snapshot, &mut self.names, vertex.bits(), direction, &[], &mut |key| {
            keys.push(key);
            if keys.len() % CHECK_EVERY == 0 {
                control.check()?;
                control.recount(&mut held_bytes, (keys.capacity() * size_of::<EdgeKey>()) as u64)?;
            }
            Ok(())
        })?;
        self.held_bytes += held_bytes;
        let mut all = Vec::with_capacity(keys.len());
        for (number, key) in keys.into_iter().enumerate() {
            if number % CHECK_EVERY == CHECK_EVERY - 1 {
                control.check()?;
            }
            self.reserve(size_of::<GraphEdge>() as u64)?;
            let other = if direction == Direction::Out { key.target } else { key.source };
            all.push(GraphEdge {
                id: edge_id(self.snapshot, &mut self.names, key)?,
                label: self.names.key_name(self.snapshot, Id::from_bits(key.label))?,
                other: vertex_id(self.snapshot, Id::from_bits(other))?,
                properties: self.properties(key.edge)?,
            });
        }
        Ok(all)
    }
}

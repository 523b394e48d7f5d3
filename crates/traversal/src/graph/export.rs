//! All vertices with their properties and edges, as graph files have them.

use super::detail::Details;
use super::names::Names;
use super::read::{edges, statement_values, vertex_label, vertex_values};
use super::scan::VertexScan;
use super::{detail::Materialize, ids};
use std::sync::Arc;
use vervet_gremlin::{Direction, EdgeKey, Property, Value, VertexProperty};
use vervet_kernel::Control;
use vervet_model::{Id, Result};
use vervet_snapshot::Snapshot;
use vervet_tinkerpop::graph_file::{GraphEdge, GraphVertex};

/// Calls `each` with every vertex, ascending by number, with its edges in both directions.
///
/// # Cost
/// One vertex in memory at a time; its labels, properties and edges are looked up one by one, a few microseconds each.
///
/// # Errors
/// Those of `each`; limits; damaged data.
pub fn each_vertex(
    snapshot: &dyn Snapshot,
    control: &Control<'_>,
    each: &mut dyn FnMut(GraphVertex) -> Result<()>,
) -> Result<()> {
    let mut names = Names::default();
    let (mut scan, mut found) = (VertexScan::default(), Vec::new());
    loop {
        let more = scan.more(snapshot, &mut names, &mut found)?;
        for id in found.drain(..) {
            control.check()?;
            each(vertex(snapshot, &mut names, id)?)?;
        }
        if !more {
            return Ok(());
        }
    }
}

fn vertex(snapshot: &dyn Snapshot, names: &mut Names, id: Id) -> Result<GraphVertex> {
    let mut found = Vec::new();
    vertex_values(snapshot, names, id.bits(), &[], &mut |key, label, value| {
        found.push(VertexProperty { key, label, value, detail: None });
    })?;
    let mut properties = Vec::with_capacity(found.len());
    for property in &found {
        let mut details = Details { snapshot, names, how: Materialize::All };
        properties.push(Arc::new(details.vertex_property(property)?));
    }
    let mut sides = [Vec::new(), Vec::new()];
    for (side, direction) in sides.iter_mut().zip([Direction::In, Direction::Out]) {
        let mut keys: Vec<EdgeKey> = Vec::new();
        edges(snapshot, names, id.bits(), direction, &[], &mut |key| keys.push(key))?;
        for key in keys {
            let mut properties = Vec::new();
            statement_values(snapshot, names, key.edge, &[], &mut |key, value| {
                properties.push(Arc::new(Property { element: Value::Null, key, value }));
            })?;
            let other = if direction == Direction::In { key.source } else { key.target };
            side.push(GraphEdge {
                id: ids::edge_id(snapshot, names, key)?,
                label: names.key_name(snapshot, Id::from_bits(key.label))?,
                other: ids::vertex_id(snapshot, Id::from_bits(other))?,
                properties,
            });
        }
    }
    let [incoming, outgoing] = sides;
    Ok(GraphVertex {
        id: ids::vertex_id(snapshot, id)?,
        label: vertex_label(snapshot, names, id.bits())?,
        properties,
        incoming,
        outgoing,
        counted: Direction::Out,
    })
}

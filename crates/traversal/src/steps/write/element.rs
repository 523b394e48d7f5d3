//! Look-up of elements by their values, and writes of their properties.

use crate::context::Context;
use crate::graph::computed::is_computed;
use crate::graph::ids;
use crate::graph::literal::literal;
use crate::graph::read::{is_vertex, properties, vertex_value};
use crate::host::Owner;
use std::sync::Arc;
use vervet_gremlin::{Cardinality, Edge, EdgeKey, PropertyKey, Value};
use vervet_model::Result;

/// Adds a value to a vertex property; returns its key if it then exists.
pub(super) fn put_on_vertex(
    vertex: u64,
    key: &Arc<str>,
    value: &Value,
    cardinality: Cardinality,
    context: &mut Context<'_>,
) -> Result<Option<PropertyKey>> {
    if *value != Value::Null {
        return context.host.put_vertex_property(vertex, key, &literal(value)?, cardinality).map(Some);
    }
    if cardinality == Cardinality::Single {
        let (vertex, keys) = (vertex_value(vertex), [key.clone()]);
        let mut found = Vec::new();
        context.read(|snapshot, names| {
            found.clear();
            properties(snapshot, names, &vertex, &keys, &mut |value| found.push(value))
        })?;
        for value in found {
            if let Value::VertexProperty(property) = value
                && !is_computed(property.key)
            {
                context.host.remove_vertex_property(property.key)?;
            }
        }
    }
    Ok(None)
}

/// Sets the only value of a property of an edge or of a vertex property.
pub(super) fn put_on_owner(
    owner: Owner,
    key: &Arc<str>,
    value: &Value,
    context: &mut Context<'_>,
) -> Result<Owner> {
    if *value == Value::Null {
        context.host.remove_property(owner, key)?;
        return Ok(owner);
    }
    context.host.put_property(owner, key, &literal(value)?)
}

/// The vertex of a value, which is the vertex or its id.
pub(super) fn find_vertex(value: &Value, context: &mut Context<'_>) -> Result<Option<u64>> {
    match value {
        Value::Vertex(vertex) if vertex.key != 0 => return Ok(Some(vertex.key)),
        Value::Null => return Ok(None),
        _ => {}
    }
    let id = match value {
        Value::Vertex(vertex) => vertex.id().clone(),
        id => id.clone(),
    };
    context.read(|snapshot, names| match ids::find_vertex(snapshot, &id)? {
        Some(found) if is_vertex(snapshot, names, found)? => Ok(Some(found.bits())),
        _ => Ok(None),
    })
}

/// The edge of a value, if it exists; an edge from a client is looked up by its id.
pub(super) fn find_edge(edge: &Edge, context: &mut Context<'_>) -> Result<Option<EdgeKey>> {
    if edge.key.is_known() {
        return Ok(Some(edge.key));
    }
    context.read(|snapshot, names| ids::find_edge(snapshot, names, edge.id()))
}

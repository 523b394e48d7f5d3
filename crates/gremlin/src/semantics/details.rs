//! `Details`: look-up of client-visible details of elements for value functions.
//!
//! Inside a traversal elements have store keys and no details, but `order()` sorts by `T.id` and `asString()`
//! prints it. Callers with a snapshot implement [`Details`].

use crate::{Edge, EdgeDetail, PropertyDetail, Value, Vertex, VertexDetail, VertexProperty};
use std::sync::Arc;

/// Looks up the details of elements. Lists of properties may be left empty.
pub trait Details {
    /// Of a vertex; `None` if it is unknown.
    fn vertex(&self, vertex: &Vertex) -> Option<Arc<VertexDetail>>;
    /// Of an edge; `None` if it is unknown.
    fn edge(&self, edge: &Edge) -> Option<EdgeDetail>;
    /// Of a property of a vertex; `None` if it is unknown.
    fn vertex_property(&self, property: &VertexProperty) -> Option<PropertyDetail>;
}

/// Returns the details that elements carry, and no others.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoDetails;

impl Details for NoDetails {
    fn vertex(&self, vertex: &Vertex) -> Option<Arc<VertexDetail>> {
        vertex.detail.clone()
    }

    fn edge(&self, edge: &Edge) -> Option<EdgeDetail> {
        edge.detail.clone()
    }

    fn vertex_property(&self, property: &VertexProperty) -> Option<PropertyDetail> {
        property.detail.clone()
    }
}

/// `T.id` of an element, if it is known.
pub(crate) fn id(element: &Value, details: &dyn Details) -> Option<Value> {
    match element {
        Value::Vertex(vertex) => match &vertex.detail {
            Some(detail) => Some(detail.id.clone()),
            None => details.vertex(vertex).map(|detail| detail.id.clone()),
        },
        Value::Edge(edge) => match &edge.detail {
            Some(detail) => Some(detail.id.clone()),
            None => details.edge(edge).map(|detail| detail.id),
        },
        Value::VertexProperty(property) => match &property.detail {
            Some(detail) => Some(detail.id.clone()),
            None => details.vertex_property(property).map(|detail| detail.id),
        },
        _ => None,
    }
}

//! Elements as clients see them: with ids, labels and properties.

use super::ids::{edge_id, property_id, vertex_id};
use super::names::Names;
use super::read::{statement_values, vertex_label, vertex_values};
use crate::context::Context;
use std::sync::Arc;
use vervet_gremlin::{
    Bulk, Edge, EdgeDetail, Map, Path, Property, PropertyDetail, Set, Subgraph, Tree, Value, Vertex,
    VertexDetail, VertexProperty,
};
use vervet_model::{Id, Result};
use vervet_snapshot::Snapshot;

/// How much of an element a client sees.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Materialize {
    /// Ids and labels.
    Tokens,
    /// Properties, too.
    #[default]
    All,
}

/// Gives every element in a value its detail.
pub(crate) fn detailed(context: &mut Context<'_>, value: Value, how: Materialize) -> Result<Value> {
    if !has_elements(&value) {
        return Ok(value);
    }
    context.read(|snapshot, names| Details { snapshot, names, how }.value(&value))
}

/// Whether there may be an element somewhere in it.
fn has_elements(value: &Value) -> bool {
    match value {
        Value::List(values) => values.iter().any(has_elements),
        Value::Set(values) => values.iter().any(has_elements),
        Value::Map(map) => map.iter().any(|(key, value)| has_elements(key) || has_elements(value)),
        // To clients it is a map.
        Value::Entry(_) => true,
        Value::Bulk(bulk) => bulk.keys().any(has_elements),
        Value::Vertex(_)
        | Value::Edge(_)
        | Value::VertexProperty(_)
        | Value::Property(_)
        | Value::Path(_)
        | Value::Tree(_)
        | Value::Subgraph(_) => true,
        _ => false,
    }
}

/// Who looks details up.
pub(super) struct Details<'a> {
    pub(super) snapshot: &'a dyn Snapshot,
    pub(super) names: &'a mut Names,
    pub(super) how: Materialize,
}

impl Details<'_> {
    fn value(&mut self, value: &Value) -> Result<Value> {
        Ok(match value {
            Value::List(values) => Value::list(self.values(values.iter())?),
            Value::Set(values) => {
                Value::Set(Arc::new(self.values(values.iter())?.into_iter().collect::<Set>()))
            }
            Value::Map(map) => {
                let mut all = Map::default();
                for (key, value) in map.iter() {
                    all.insert(self.value(key)?, self.value(value)?);
                }
                Value::map(all)
            }
            Value::Entry(entry) => {
                let mut map = Map::default();
                map.insert(self.value(&entry.0)?, self.value(&entry.1)?);
                Value::map(map)
            }
            Value::Bulk(bulk) => {
                let mut all = Bulk::default();
                for (value, count) in bulk.iter() {
                    all.insert(self.value(value)?, *count);
                }
                all.into()
            }
            Value::Vertex(vertex) => Value::Vertex(self.vertex(vertex, self.how == Materialize::All)?),
            Value::Edge(edge) => Value::Edge(Arc::new(self.edge(edge)?)),
            Value::VertexProperty(property) => {
                Value::VertexProperty(Arc::new(self.vertex_property(property)?))
            }
            Value::Property(property) => Value::Property(Arc::new(Property {
                element: self.value(&property.element)?,
                key: property.key.clone(),
                value: property.value.clone(),
            })),
            Value::Path(path) => Value::Path(Arc::new(Path {
                objects: self.values(path.objects.iter())?,
                labels: path.labels.clone(),
            })),
            Value::Tree(tree) => Value::Tree(Arc::new(self.tree(tree)?)),
            Value::Subgraph(graph) => {
                let mut all = Subgraph::default();
                for vertex in &graph.vertices {
                    all.vertices.push(self.vertex(vertex, true)?);
                }
                for edge in &graph.edges {
                    all.edges.push(Arc::new(self.edge(edge)?));
                }
                Value::Subgraph(Arc::new(all))
            }
            value => value.clone(),
        })
    }

    fn values<'v>(&mut self, values: impl Iterator<Item = &'v Value>) -> Result<Vec<Value>> {
        values.map(|value| self.value(value)).collect()
    }

    fn tree(&mut self, tree: &Tree) -> Result<Tree> {
        let mut all = Tree::default();
        for (value, below) in &tree.children {
            all.children.push((self.value(value)?, self.tree(below)?));
        }
        Ok(all)
    }

    fn vertex(&mut self, vertex: &Vertex, properties: bool) -> Result<Vertex> {
        if vertex.key == 0 {
            return Ok(vertex.clone());
        }
        let id = vertex_id(self.snapshot, Id::from_bits(vertex.key))?;
        let label = vertex_label(self.snapshot, self.names, vertex.key)?;
        let mut found = Vec::new();
        if properties {
            vertex_values(self.snapshot, self.names, vertex.key, &[], &mut |key, label, value| {
                found.push(VertexProperty { key, label, value, detail: None });
            })?;
        }
        let mut all = Vec::with_capacity(found.len());
        for property in &found {
            all.push(Arc::new(self.vertex_property(property)?));
        }
        let detail = VertexDetail { id, label, properties: all };
        Ok(Vertex { key: vertex.key, detail: Some(Arc::new(detail)) })
    }

    pub(super) fn vertex_property(&mut self, property: &VertexProperty) -> Result<VertexProperty> {
        let mut properties = Vec::new();
        if self.how == Materialize::All {
            statement_values(self.snapshot, self.names, property.key.edge, &[], &mut |key, value| {
                properties.push(Arc::new(Property { element: Value::Null, key, value }));
            })?;
        }
        let detail = PropertyDetail { id: property_id(self.snapshot, self.names, property.key)?, properties };
        Ok(VertexProperty { detail: Some(detail), ..property.clone() })
    }

    fn edge(&mut self, edge: &Edge) -> Result<Edge> {
        if !edge.key.is_known() {
            return Ok(edge.clone());
        }
        let mut properties = Vec::new();
        if self.how == Materialize::All {
            statement_values(self.snapshot, self.names, edge.key.edge, &[], &mut |key, value| {
                properties.push(Arc::new(Property { element: Value::Null, key, value }));
            })?;
        }
        let detail = EdgeDetail {
            id: edge_id(self.snapshot, self.names, edge.key)?,
            label: self.names.key_name(self.snapshot, Id::from_bits(edge.key.label))?,
            source: self.vertex(&Vertex::from_key(edge.key.source), false)?,
            target: self.vertex(&Vertex::from_key(edge.key.target), false)?,
            properties,
        };
        Ok(Edge { key: edge.key, detail: Some(detail) })
    }
}

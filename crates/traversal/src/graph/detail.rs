//! Materialization of result elements: ids, labels and properties.

use super::batch::{Batch, ValueStatement};
use super::ids::{edge_id, plain_property, property_id, vertex_id};
use super::literal;
use super::names::Names;
use super::read::{statement_values, vertex_label, vertex_values};
use crate::context::Context;
use std::sync::Arc;
use vervet_gremlin::{
    Bulk, Edge, EdgeDetail, Map, Path, Property, PropertyDetail, PropertyKey, Set, Subgraph, Tree, Value,
    Vertex, VertexDetail, VertexProperty,
};
use vervet_model::{Id, Result};
use vervet_snapshot::Snapshot;

/// The level of detail of result elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Materialize {
    /// Ids and labels.
    Tokens,
    /// Ids, labels and properties.
    #[default]
    All,
}

/// Materializes every element in a value.
pub(crate) fn detailed(context: &mut Context<'_>, value: Value, how: Materialize) -> Result<Value> {
    detailed_with(context, value, how, &Batch::default())
}

/// As [`detailed`], with properties from a batch where it has them.
pub(crate) fn detailed_with(
    context: &mut Context<'_>,
    value: Value,
    how: Materialize,
    batch: &Batch,
) -> Result<Value> {
    if !has_elements(&value) {
        return Ok(value);
    }
    context.read(|snapshot, names| Details { snapshot, names, how, batch }.value(&value))
}

/// Whether a value may contain an element.
fn has_elements(value: &Value) -> bool {
    match value {
        Value::List(values) => values.iter().any(has_elements),
        Value::Set(values) => values.iter().any(has_elements),
        Value::Map(map) => map.iter().any(|(key, value)| has_elements(key) || has_elements(value)),
        // Clients receive an entry as a map.
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

/// The materializer of one value.
pub(super) struct Details<'a> {
    pub(super) snapshot: &'a dyn Snapshot,
    pub(super) names: &'a mut Names,
    pub(super) how: Materialize,
    batch: &'a Batch,
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
        let batch = self.batch;
        let all = match batch.of(Id::from_bits(vertex.key)) {
            _ if !properties => Vec::new(),
            Some(statements) => self.known_properties(vertex.key, statements)?,
            None => {
                let mut found = Vec::new();
                vertex_values(self.snapshot, self.names, vertex.key, &[], &mut |key, label, value| {
                    found.push(VertexProperty { key, label, value, detail: None });
                })?;
                let of = |property: &VertexProperty| self.vertex_property(property).map(Arc::new);
                found.iter().map(of).collect::<Result<_>>()?
            }
        };
        let detail = VertexDetail { id, label, properties: all };
        Ok(Vertex { key: vertex.key, detail: Some(Arc::new(detail)) })
    }

    /// The properties of a vertex that these statements contain.
    fn known_properties(
        &mut self,
        vertex: u64,
        statements: &[ValueStatement],
    ) -> Result<Vec<Arc<VertexProperty>>> {
        let mut all = Vec::with_capacity(statements.len());
        for &ValueStatement { predicate, value, edge } in statements {
            let label = self.names.key_name(self.snapshot, predicate)?;
            let bits = if edge.is_bound() { edge.bits() } else { 0 };
            let key = PropertyKey { vertex, key: predicate.bits(), value: value.bits(), edge: bits };
            let property = if edge.is_bound() {
                let Some(value) = literal::value(self.snapshot, value)? else { continue };
                self.vertex_property(&VertexProperty { key, label, value, detail: None })?
            } else {
                let vertex = Id::from_bits(vertex);
                let (id, value) = plain_property(self.snapshot, self.names, vertex, predicate, value)?;
                let Some(value) = value else { continue };
                let detail = Some(PropertyDetail { id, properties: Vec::new() });
                VertexProperty { key, label, value, detail }
            };
            all.push(Arc::new(property));
        }
        Ok(all)
    }

    /// The properties of an edge or of a vertex property, by its identity.
    fn properties_of(&mut self, identity: u64) -> Result<Vec<Arc<Property>>> {
        let mut properties = Vec::new();
        if self.how != Materialize::All || identity == 0 {
            return Ok(properties);
        }
        let mut add = |key, value| {
            properties.push(Arc::new(Property { element: Value::Null, key, value }));
        };
        let Some(statements) = self.batch.of(Id::from_bits(identity)) else {
            statement_values(self.snapshot, self.names, identity, &[], &mut add)?;
            return Ok(properties);
        };
        for statement in statements {
            if let Some(value) = literal::value(self.snapshot, statement.value)? {
                add(self.names.key_name(self.snapshot, statement.predicate)?, value);
            }
        }
        Ok(properties)
    }

    pub(super) fn vertex_property(&mut self, property: &VertexProperty) -> Result<VertexProperty> {
        let properties = self.properties_of(property.key.edge)?;
        let detail = PropertyDetail { id: property_id(self.snapshot, self.names, property.key)?, properties };
        Ok(VertexProperty { detail: Some(detail), ..property.clone() })
    }

    fn edge(&mut self, edge: &Edge) -> Result<Edge> {
        if !edge.key.is_known() {
            return Ok(edge.clone());
        }
        let properties = self.properties_of(edge.key.edge)?;
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

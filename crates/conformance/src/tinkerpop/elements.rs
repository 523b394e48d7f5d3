//! Look-up of the elements of a graph by name.

use std::collections::HashMap;
use std::sync::Arc;
use vervet::Database;
use vervet::gremlin::{Edge, Value, Vertex, VertexProperty};

/// The elements of a graph, by name.
#[derive(Default)]
pub(super) struct Elements {
    vertices: Vec<Vertex>,
    edges: Vec<Arc<Edge>>,
    /// Positions in `vertices` by the property `name`.
    names: HashMap<String, usize>,
    /// Names of vertices by their keys.
    keys: HashMap<u64, String>,
}

impl Elements {
    /// The current elements.
    pub(super) fn of(database: &Database) -> vervet::Result<Self> {
        let mut all = Self::default();
        for value in database.gremlin("g.V()")?.into_values()? {
            let Value::Vertex(vertex) = value else { continue };
            for property in vertex.detail.iter().flat_map(|detail| &detail.properties) {
                if let ("name", Some(name)) = (&*property.label, property.value.as_text()) {
                    all.names.entry(name.to_owned()).or_insert(all.vertices.len());
                    all.keys.insert(vertex.key, name.to_owned());
                }
            }
            all.vertices.push(vertex);
        }
        for value in database.gremlin("g.E()")?.into_values()? {
            if let Value::Edge(edge) = value {
                all.edges.push(edge);
            }
        }
        Ok(all)
    }

    /// The vertex with this name.
    pub(super) fn vertex(&self, name: &str) -> Result<&Vertex, String> {
        let place = self.names.get(name).ok_or_else(|| format!("there is no vertex with the name {name}"))?;
        Ok(&self.vertices[*place])
    }

    /// The edge `source-label->target`.
    pub(super) fn edge(&self, text: &str) -> Result<&Arc<Edge>, String> {
        let (source, label, target) = triple(text)?;
        let is_name = |vertex: &Vertex, name| self.keys.get(&vertex.key).is_some_and(|known| known == name);
        let found = self.edges.iter().find(|edge| {
            edge.detail.as_ref().is_some_and(|detail| {
                *detail.label == *label && is_name(&detail.source, source) && is_name(&detail.target, target)
            })
        });
        found.ok_or_else(|| format!("there is no edge {text}"))
    }

    /// The property `vertex-key->value`; `decode` parses the value.
    pub(super) fn vertex_property(
        &self,
        text: &str,
        decode: &dyn Fn(&str) -> Result<Value, String>,
    ) -> Result<Arc<VertexProperty>, String> {
        let (vertex, key, value) = triple(text)?;
        let value = decode(value)?;
        let properties = self.vertex(vertex)?.detail.iter().flat_map(|detail| &detail.properties);
        let found =
            properties.into_iter().find(|property| *property.label == *key && property.value == value);
        found.cloned().ok_or_else(|| format!("there is no property {text}"))
    }
}

/// The parts of `a-b->c`.
fn triple(text: &str) -> Result<(&str, &str, &str), String> {
    let parts = text.split_once("->").and_then(|(start, last)| {
        let (first, middle) = start.split_once('-')?;
        Some((first, middle, last))
    });
    parts.ok_or_else(|| format!("{text} is not of the form a-b->c"))
}

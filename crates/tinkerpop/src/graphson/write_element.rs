//! GraphSON writer for graph elements, paths, trees and metrics.

use super::Dialect;
use super::write::{Result, Writer};
use crate::WriteError;
use crate::limits::DEPTH_MAX;
use foldhash::fast::RandomState;
use indexmap::IndexMap;
use std::sync::Arc;
use vervet_gremlin::{Edge, Metric, Metrics, Path, Property, Subgraph, Tree, Vertex, VertexProperty};

/// Maximum number of properties of a vertex that are grouped by a linear scan instead of a table.
const PROPERTIES_FEW: usize = 32;

impl Writer<'_> {
    pub(super) fn vertex(&mut self, vertex: &Vertex) -> Result {
        let detail = vertex.detail.as_ref().ok_or_else(|| WriteError::no_details("a vertex"))?;
        self.typed("g:Vertex", |writer| {
            writer.raw("{\"id\":");
            writer.value(&detail.id)?;
            writer.raw(",\"label\":");
            writer.text(&detail.label);
            writer.kind_if_untyped("vertex");
            if !detail.properties.is_empty() {
                writer.raw(",\"properties\":");
                let label = writer.dialect != Dialect::V3_UNTYPED;
                writer.vertex_properties(&detail.properties, |writer, property| {
                    writer.typed("g:VertexProperty", |writer| writer.vertex_property(property, label))
                })?;
            }
            writer.raw("}");
            Ok(())
        })
    }

    /// Writes the member `type` in untyped dialects.
    fn kind_if_untyped(&mut self, kind: &str) {
        if self.dialect == Dialect::V3_UNTYPED {
            self.raw(",\"type\":\"");
            self.raw(kind);
            self.raw("\"");
        }
    }

    /// `{"key": [property, …], …}`: the properties grouped by key.
    pub(crate) fn vertex_properties(
        &mut self,
        properties: &[Arc<VertexProperty>],
        mut write: impl FnMut(&mut Self, &VertexProperty) -> Result,
    ) -> Result {
        if !are_grouped(properties) {
            let mut groups: IndexMap<&str, Vec<Arc<VertexProperty>>, RandomState> = IndexMap::default();
            for property in properties {
                groups.entry(&property.label).or_default().push(property.clone());
            }
            let sorted: Vec<_> = groups.into_values().flatten().collect();
            return self.grouped(&sorted, write);
        }
        self.grouped(properties, &mut write)
    }

    fn grouped(
        &mut self,
        properties: &[Arc<VertexProperty>],
        mut write: impl FnMut(&mut Self, &VertexProperty) -> Result,
    ) -> Result {
        self.raw("{");
        for (index, group) in properties.chunk_by(|a, b| a.label == b.label).enumerate() {
            self.key(index == 0, &group[0].label);
            self.array(group, |writer, property| write(writer, property))?;
        }
        self.raw("}");
        Ok(())
    }

    /// Writes the inner part of a vertex property, with its label if `label`.
    pub(crate) fn vertex_property(&mut self, property: &VertexProperty, label: bool) -> Result {
        let detail =
            property.detail.as_ref().ok_or_else(|| WriteError::no_details("a property of a vertex"))?;
        self.raw("{\"id\":");
        self.value(&detail.id)?;
        self.raw(",\"value\":");
        self.value(&property.value)?;
        if label {
            self.raw(",\"label\":");
            self.text(&property.label);
        }
        if !detail.properties.is_empty() {
            self.raw(",\"properties\":");
            self.plain_properties(&detail.properties)?;
        }
        self.raw("}");
        Ok(())
    }

    /// `{"key": value, …}`
    pub(crate) fn plain_properties(&mut self, properties: &[Arc<Property>]) -> Result {
        self.raw("{");
        for (index, property) in properties.iter().enumerate() {
            self.key(index == 0, &property.key);
            self.value(&property.value)?;
        }
        self.raw("}");
        Ok(())
    }

    pub(super) fn property(&mut self, property: &Property) -> Result {
        self.typed("g:Property", |writer| {
            writer.raw("{\"key\":");
            writer.text(&property.key);
            writer.raw(",\"value\":");
            writer.value(&property.value)?;
            writer.raw("}");
            Ok(())
        })
    }

    pub(super) fn edge(&mut self, edge: &Edge) -> Result {
        let detail = edge.detail.as_ref().ok_or_else(|| WriteError::no_details("an edge"))?;
        let end = |vertex: &Vertex| {
            vertex.detail.clone().ok_or_else(|| WriteError::no_details("the end of an edge"))
        };
        let (source, target) = (end(&detail.source)?, end(&detail.target)?);
        self.typed("g:Edge", |writer| {
            writer.raw("{\"id\":");
            writer.value(&detail.id)?;
            writer.raw(",\"label\":");
            writer.text(&detail.label);
            writer.kind_if_untyped("edge");
            writer.raw(",\"inVLabel\":");
            writer.text(&target.label);
            writer.raw(",\"outVLabel\":");
            writer.text(&source.label);
            writer.raw(",\"inV\":");
            writer.value(&target.id)?;
            writer.raw(",\"outV\":");
            writer.value(&source.id)?;
            if !detail.properties.is_empty() {
                writer.raw(",\"properties\":");
                if writer.dialect == Dialect::V3_UNTYPED {
                    writer.plain_properties(&detail.properties)?;
                } else {
                    writer.raw("{");
                    for (index, property) in detail.properties.iter().enumerate() {
                        writer.key(index == 0, &property.key);
                        writer.property(property)?;
                    }
                    writer.raw("}");
                }
            }
            writer.raw("}");
            Ok(())
        })
    }

    pub(super) fn path(&mut self, path: &Path) -> Result {
        self.typed("g:Path", |writer| {
            writer.raw("{\"labels\":");
            writer.list(&path.labels, |writer, labels| {
                let text = |writer: &mut Self, label: &Arc<str>| {
                    writer.text(label);
                    Ok(())
                };
                if writer.typed_collections() {
                    writer.typed("g:Set", |writer| writer.array(labels, text))
                } else {
                    writer.array(labels, text)
                }
            })?;
            writer.raw(",\"objects\":");
            writer.list(&path.objects, Self::value)?;
            writer.raw("}");
            Ok(())
        })
    }

    pub(super) fn tree(&mut self, tree: &Tree) -> Result {
        self.depth = self.depth.checked_sub(1).ok_or_else(|| {
            WriteError::too_large(format!("could not write a tree deeper than {DEPTH_MAX}"))
        })?;
        self.typed("g:Tree", |writer| {
            writer.array(&tree.children, |writer, (value, below)| {
                writer.raw("{\"key\":");
                writer.value(value)?;
                writer.raw(",\"value\":");
                writer.tree(below)?;
                writer.raw("}");
                Ok(())
            })
        })?;
        self.depth += 1;
        Ok(())
    }

    pub(super) fn subgraph(&mut self, subgraph: &Subgraph) -> Result {
        self.typed("tinker:graph", |writer| {
            writer.raw("{\"vertices\":");
            writer.array(&subgraph.vertices, Self::vertex)?;
            writer.raw(",\"edges\":");
            writer.array(&subgraph.edges, |writer, edge| writer.edge(edge))?;
            writer.raw("}");
            Ok(())
        })
    }

    /// Writes a map with string keys, member by member.
    fn members(&mut self, write: impl FnOnce(&mut Members<'_, '_>) -> Result) -> Result {
        let typed = self.typed_collections();
        self.raw(if typed { "{\"@type\":\"g:Map\",\"@value\":[" } else { "{" });
        write(&mut Members { writer: self, typed, first: true })?;
        self.raw(if typed { "]}" } else { "}" });
        Ok(())
    }

    pub(super) fn metrics(&mut self, metrics: &Metrics) -> Result {
        self.typed("g:TraversalMetrics", |writer| {
            writer.members(|members| {
                members.member("dur", |writer| writer.double(milliseconds(metrics.nanoseconds)))?;
                members.member("metrics", |writer| {
                    writer.list(&metrics.steps, |writer, metric| writer.metric(metric))
                })
            })
        })
    }

    fn metric(&mut self, metric: &Metric) -> Result {
        self.depth = self.depth.checked_sub(1).ok_or_else(|| {
            WriteError::too_large(format!("could not write metrics deeper than {DEPTH_MAX}"))
        })?;
        self.typed("g:Metrics", |writer| {
            writer.members(|members| {
                members.member("dur", |writer| writer.double(milliseconds(metric.nanoseconds)))?;
                if !metric.counts.is_empty() {
                    members.member("counts", |writer| {
                        writer.members(|members| {
                            metric.counts.iter().try_for_each(|(name, count)| {
                                members.member(name, |writer| writer.typed_number("g:Int64", count))
                            })
                        })
                    })?;
                }
                members.member("name", |writer| {
                    writer.text(&metric.name);
                    Ok(())
                })?;
                if !metric.annotations.is_empty() {
                    members.member("annotations", |writer| {
                        writer.members(|members| {
                            metric.annotations.iter().try_for_each(|(name, value)| {
                                members.member(name, |writer| writer.value(value))
                            })
                        })
                    })?;
                }
                members.member("id", |writer| {
                    writer.text(&metric.id);
                    Ok(())
                })?;
                if !metric.nested.is_empty() {
                    members.member("metrics", |writer| {
                        writer.list(&metric.nested, |writer, metric| writer.metric(metric))
                    })?;
                }
                Ok(())
            })
        })?;
        self.depth += 1;
        Ok(())
    }
}

/// Writer of a map with string keys.
struct Members<'w, 'o> {
    writer: &'w mut Writer<'o>,
    typed: bool,
    first: bool,
}

impl<'o> Members<'_, 'o> {
    fn member(&mut self, key: &str, value: impl FnOnce(&mut Writer<'o>) -> Result) -> Result {
        if !self.first {
            self.writer.raw(",");
        }
        self.first = false;
        self.writer.text(key);
        self.writer.raw(if self.typed { "," } else { ":" });
        value(self.writer)
    }
}

fn milliseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e6
}

/// Whether properties with the same key are adjacent.
fn are_grouped(properties: &[Arc<VertexProperty>]) -> bool {
    if properties.len() > PROPERTIES_FEW {
        return false;
    }
    (1..properties.len()).all(|at| {
        let label = &properties[at].label;
        *label == properties[at - 1].label || properties[..at - 1].iter().all(|other| other.label != *label)
    })
}

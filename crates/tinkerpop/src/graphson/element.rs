//! GraphSON reader for graph elements, paths, trees and metrics. Members may be in any order; unknown ones
//! are skipped.

use super::read::{Result, required};
use crate::json::Cursor;
use crate::{ReadError, wire_names};
use std::sync::Arc;
use vervet_gremlin::{
    Edge, EdgeDetail, Metric, Metrics, Path, Property, PropertyDetail, Subgraph, Tree, Value, Vertex,
    VertexDetail, VertexProperty,
};

/// Default label of a vertex.
pub(crate) const VERTEX_LABEL: &str = "vertex";
/// Default label of an edge.
pub(crate) const EDGE_LABEL: &str = "edge";

/// A vertex of a message or file.
pub(crate) fn vertex_of(id: Value, label: Arc<str>, properties: Vec<Arc<VertexProperty>>) -> Vertex {
    Vertex { key: 0, detail: Some(Arc::new(VertexDetail { id, label, properties })) }
}

impl Cursor<'_> {
    pub(super) fn vertex(&mut self) -> Result<Vertex> {
        let at = self.at();
        let (mut id, mut label, mut properties) = (None, None, Vec::new());
        self.object(|cursor, key| {
            match &*key {
                "id" => id = Some(cursor.value()?),
                "label" => label = Some(cursor.string()?),
                "properties" => properties = cursor.vertex_properties()?,
                _ => cursor.skip()?,
            }
            Ok(())
        })?;
        let label = label.map_or_else(|| VERTEX_LABEL.into(), Arc::from);
        Ok(vertex_of(required(id, "id", at)?, label, properties))
    }

    /// `{"key": [property, …], …}`
    pub(crate) fn vertex_properties(&mut self) -> Result<Vec<Arc<VertexProperty>>> {
        let mut properties = Vec::new();
        self.object(|cursor, key| {
            cursor.array(|cursor| {
                cursor.enter()?;
                let property = cursor.of_type("g:VertexProperty", |cursor| cursor.vertex_property(&key))?;
                cursor.leave();
                properties.push(Arc::new(property));
                Ok(())
            })
        })?;
        Ok(properties)
    }

    /// Reads a vertex property; `key` is the default for its key.
    pub(super) fn vertex_property(&mut self, key: &str) -> Result<VertexProperty> {
        self.peek();
        let at = self.at();
        let (mut id, mut label, mut value, mut properties) = (Value::Null, None, None, Vec::new());
        self.object(|cursor, member| {
            match &*member {
                "id" => id = cursor.value()?,
                "label" => label = Some(cursor.string()?),
                "value" => value = Some(cursor.value()?),
                "properties" => properties = cursor.properties()?,
                _ => cursor.skip()?,
            }
            Ok(())
        })?;
        Ok(VertexProperty {
            label: label.map_or_else(|| key.into(), Arc::from),
            value: required(value, "value", at)?,
            detail: Some(PropertyDetail { id, properties }),
            ..VertexProperty::default()
        })
    }

    /// `{"key": value, …}`, each value plain or in a `g:Property`.
    pub(crate) fn properties(&mut self) -> Result<Vec<Arc<Property>>> {
        let mut properties = Vec::new();
        self.object(|cursor, key| {
            properties.push(match cursor.value()? {
                Value::Property(property) => property,
                value => Arc::new(Property { element: Value::Null, key: key.into(), value }),
            });
            Ok(())
        })?;
        Ok(properties)
    }

    pub(super) fn property(&mut self, key: &str) -> Result<Property> {
        self.peek();
        let at = self.at();
        let (mut name, mut value) = (None, None);
        self.object(|cursor, member| {
            match &*member {
                "key" => name = Some(cursor.string()?),
                "value" => value = Some(cursor.value()?),
                _ => cursor.skip()?,
            }
            Ok(())
        })?;
        let key = name.map_or_else(|| key.into(), Arc::from);
        Ok(Property { element: Value::Null, key, value: required(value, "value", at)? })
    }

    pub(super) fn edge(&mut self) -> Result<Edge> {
        let at = self.at();
        let (mut id, mut label, mut properties) = (Value::Null, None, Vec::new());
        let (mut source, mut source_label, mut target, mut target_label) = (None, None, None, None);
        self.object(|cursor, key| {
            match &*key {
                "id" => id = cursor.value()?,
                "label" => label = Some(cursor.string()?),
                "outV" => source = Some(cursor.value()?),
                "outVLabel" => source_label = Some(cursor.string()?),
                "inV" => target = Some(cursor.value()?),
                "inVLabel" => target_label = Some(cursor.string()?),
                "properties" => properties = cursor.properties()?,
                _ => cursor.skip()?,
            }
            Ok(())
        })?;
        let end = |id, label: Option<std::borrow::Cow<'_, str>>| {
            vertex_of(id, label.map_or_else(|| VERTEX_LABEL.into(), Arc::from), Vec::new())
        };
        let detail = EdgeDetail {
            id,
            label: label.map_or_else(|| EDGE_LABEL.into(), Arc::from),
            source: end(required(source, "outV", at)?, source_label),
            target: end(required(target, "inV", at)?, target_label),
            properties,
        };
        Ok(Edge { detail: Some(detail), ..Edge::default() })
    }

    pub(super) fn path(&mut self) -> Result<Path> {
        let at = self.at();
        let (mut labels, mut objects) = (None, None);
        self.object(|cursor, key| {
            match &*key {
                "labels" => {
                    labels = Some(cursor.of_type("g:List", |cursor| {
                        let mut all = Vec::new();
                        cursor.array(|cursor| {
                            all.push(cursor.labels()?);
                            Ok(())
                        })?;
                        Ok(all)
                    })?);
                }
                "objects" => objects = Some(cursor.of_type("g:List", Self::values)?),
                _ => cursor.skip()?,
            }
            Ok(())
        })?;
        let (labels, objects) = (required(labels, "labels", at)?, required(objects, "objects", at)?);
        if labels.len() != objects.len() {
            let message = format!("expected labels for {} objects, found {}", objects.len(), labels.len());
            return Err(ReadError::malformed(at, message));
        }
        Ok(Path { objects, labels })
    }

    /// Reads a set or a list of strings.
    fn labels(&mut self) -> Result<Vec<Arc<str>>> {
        self.peek();
        let at = self.at();
        let labels = match self.value()? {
            Value::Set(labels) => wire_names::labels(labels.iter()),
            Value::List(labels) => wire_names::labels(labels.iter()),
            _ => None,
        };
        labels.ok_or_else(|| ReadError::malformed(at, "expected the labels of an object of a path"))
    }

    /// `[{"key": value, "value": tree}, …]`
    pub(super) fn tree(&mut self) -> Result<Tree> {
        let mut children = Vec::new();
        self.array(|cursor| {
            cursor.enter()?;
            cursor.peek();
            let at = cursor.at();
            let (mut key, mut below) = (None, Tree::default());
            cursor.object(|cursor, member| {
                match &*member {
                    "key" => key = Some(cursor.value()?),
                    "value" => below = cursor.of_type("g:Tree", Self::tree)?,
                    _ => cursor.skip()?,
                }
                Ok(())
            })?;
            cursor.leave();
            children.push((required(key, "key", at)?, below));
            Ok(())
        })?;
        Ok(Tree { children })
    }

    pub(super) fn subgraph(&mut self) -> Result<Subgraph> {
        let mut subgraph = Subgraph::default();
        self.object(|cursor, key| match &*key {
            "vertices" => cursor.of_type("g:List", |cursor| {
                cursor.array(|cursor| {
                    cursor.enter()?;
                    subgraph.vertices.push(cursor.of_type("g:Vertex", Self::vertex)?);
                    cursor.leave();
                    Ok(())
                })
            }),
            "edges" => cursor.of_type("g:List", |cursor| {
                cursor.array(|cursor| {
                    cursor.enter()?;
                    subgraph.edges.push(Arc::new(cursor.of_type("g:Edge", Self::edge)?));
                    cursor.leave();
                    Ok(())
                })
            }),
            _ => cursor.skip(),
        })?;
        Ok(subgraph)
    }

    pub(super) fn metrics(&mut self) -> Result<Metrics> {
        let mut metrics = Metrics::default();
        self.members(|cursor, key| {
            match key {
                "dur" => metrics.nanoseconds = cursor.milliseconds()?,
                "metrics" => metrics.steps = cursor.metric_list()?,
                _ => cursor.skip()?,
            }
            Ok(())
        })?;
        Ok(metrics)
    }

    pub(super) fn metric(&mut self) -> Result<Metric> {
        self.enter()?;
        let mut metric = Metric::default();
        self.members(|cursor, key| {
            match key {
                "id" => metric.id = cursor.string()?.into(),
                "name" => metric.name = cursor.string()?.into(),
                "dur" => metric.nanoseconds = cursor.milliseconds()?,
                "counts" => {
                    cursor.members(|cursor, key| {
                        let count = cursor.of_type("g:Int64", Self::integer)?;
                        metric.counts.push((key.into(), count));
                        Ok(())
                    })?;
                }
                "annotations" => {
                    cursor.members(|cursor, key| {
                        let value = cursor.value()?;
                        metric.annotations.push((key.into(), value));
                        Ok(())
                    })?;
                }
                "metrics" => metric.nested = cursor.metric_list()?,
                _ => cursor.skip()?,
            }
            Ok(())
        })?;
        self.leave();
        Ok(metric)
    }

    fn metric_list(&mut self) -> Result<Vec<Metric>> {
        self.of_type("g:List", |cursor| {
            let mut metrics = Vec::new();
            cursor.array(|cursor| {
                metrics.push(cursor.of_type("g:Metrics", Self::metric)?);
                Ok(())
            })?;
            Ok(metrics)
        })
    }

    /// Reads a map with string keys, as an object or as a `g:Map`; `member` reads the value.
    fn members(&mut self, mut member: impl FnMut(&mut Self, &str) -> Result<()>) -> Result<()> {
        self.of_type("g:Map", |cursor| {
            if cursor.peek() == Some(b'{') {
                return cursor.object(|cursor, key| member(cursor, &key));
            }
            let at = cursor.at();
            let mut key = None;
            cursor.array(|cursor| {
                match key.take() {
                    None => key = Some(cursor.string()?),
                    Some(key) => member(cursor, &key)?,
                }
                Ok(())
            })?;
            match key {
                None => Ok(()),
                Some(_) => Err(ReadError::malformed(at, "expected a value for each key, found a key more")),
            }
        })
    }

    /// Reads a duration in milliseconds; returns nanoseconds.
    fn milliseconds(&mut self) -> Result<u64> {
        self.peek();
        let at = self.at();
        let milliseconds: f64 = self.of_type("g:Double", Self::floating)?;
        let nanoseconds = (milliseconds * 1e6).round();
        // The maximum is that of 64 bits with a sign, which rounds up as a fraction of milliseconds.
        if !(0.0..=9_223_372_036_854_775_808.0).contains(&nanoseconds) {
            return Err(ReadError::malformed(at, "expected a length of time in milliseconds"));
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "its range is checked above"
        )]
        Ok((nanoseconds as u64).min(i64::MAX as u64))
    }
}

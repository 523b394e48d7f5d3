//! Graph elements, and values made of them: paths, trees, subgraphs.
//!
//! # Shape
//! An element has a *key*, its ids in the store, and a *detail*, its client-visible part (id, label,
//! properties). Inside a traversal elements have keys and no details: details are looked up when a result is
//! returned. Elements from a client have details and no key (all zero) until they are looked up in the graph.
//! # Invariants
//! Two elements with keys are equal if their keys are; otherwise they are equal if the ids in their details
//! are. No set or map contains both forms.

use super::{Hashing, commutative};
use crate::Value;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A vertex.
#[derive(Clone, Debug, Default)]
pub struct Vertex {
    /// Bits of the store id; 0: unknown.
    pub key: u64,
    /// The client-visible part.
    pub detail: Option<Arc<VertexDetail>>,
}

/// The client-visible part of a vertex.
#[derive(Clone, Debug, Default)]
pub struct VertexDetail {
    /// `T.id`
    pub id: Value,
    /// `T.label`
    pub label: Arc<str>,
    /// Its properties; also empty if they were not requested.
    pub properties: Vec<Arc<VertexProperty>>,
}

impl Vertex {
    /// The vertex with this store id.
    #[must_use]
    pub fn from_key(key: u64) -> Self {
        Self { key, detail: None }
    }

    /// The id in its detail; null without a detail.
    #[must_use]
    pub fn id(&self) -> &Value {
        self.detail.as_ref().map_or(&Value::Null, |detail| &detail.id)
    }
}

impl PartialEq for Vertex {
    fn eq(&self, other: &Self) -> bool {
        if self.key != 0 && other.key != 0 { self.key == other.key } else { self.id() == other.id() }
    }
}

impl Eq for Vertex {}

impl Hash for Vertex {
    fn hash<H: Hasher>(&self, state: &mut H) {
        if self.key == 0 { self.id().hash(state) } else { self.key.hash(state) }
    }
}

/// The statement of an edge: bits of store ids.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct EdgeKey {
    /// The identity of the statement; 0: a plain statement.
    pub edge: u64,
    /// The source vertex.
    pub source: u64,
    /// Its predicate.
    pub label: u64,
    /// The target vertex.
    pub target: u64,
}

impl EdgeKey {
    /// Whether the store id is known.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.source != 0
    }
}

/// An edge.
#[derive(Clone, Debug, Default)]
pub struct Edge {
    /// The statement of the edge.
    pub key: EdgeKey,
    /// The client-visible part.
    pub detail: Option<EdgeDetail>,
}

/// The client-visible part of an edge.
#[derive(Clone, Debug, Default)]
pub struct EdgeDetail {
    /// `T.id`
    pub id: Value,
    /// `T.label`
    pub label: Arc<str>,
    /// The source vertex, with id and label.
    pub source: Vertex,
    /// The target vertex, with id and label.
    pub target: Vertex,
    /// Its properties; also empty if they were not requested.
    pub properties: Vec<Arc<Property>>,
}

impl Edge {
    /// The id in its detail; null without a detail.
    #[must_use]
    pub fn id(&self) -> &Value {
        self.detail.as_ref().map_or(&Value::Null, |detail| &detail.id)
    }
}

impl PartialEq for Edge {
    fn eq(&self, other: &Self) -> bool {
        if self.key.is_known() && other.key.is_known() {
            self.key == other.key
        } else {
            self.id() == other.id()
        }
    }
}

impl Eq for Edge {}

impl Hash for Edge {
    fn hash<H: Hasher>(&self, state: &mut H) {
        if self.key.is_known() { self.key.hash(state) } else { self.id().hash(state) }
    }
}

/// The statement of a vertex property: bits of store ids.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct PropertyKey {
    /// The vertex; 0: unknown.
    pub vertex: u64,
    /// The predicate.
    pub key: u64,
    /// The value.
    pub value: u64,
    /// The identity of the statement; 0: a plain statement.
    pub edge: u64,
}

/// A vertex property: an element with an id and properties.
#[derive(Clone, Debug, Default)]
pub struct VertexProperty {
    /// The statement of the property.
    pub key: PropertyKey,
    /// Its key, which is also its label.
    pub label: Arc<str>,
    /// Its value.
    pub value: Value,
    /// The other client-visible parts.
    pub detail: Option<PropertyDetail>,
}

/// The client-visible part of a vertex property.
#[derive(Clone, Debug, Default)]
pub struct PropertyDetail {
    /// `T.id`
    pub id: Value,
    /// Its meta-properties.
    pub properties: Vec<Arc<Property>>,
}

impl PartialEq for VertexProperty {
    fn eq(&self, other: &Self) -> bool {
        if self.key.vertex != 0 && other.key.vertex != 0 {
            return self.key == other.key;
        }
        let id = |property: &Self| property.detail.as_ref().map(|detail| detail.id.clone());
        id(self) == id(other) && self.label == other.label && self.value == other.value
    }
}

impl Eq for VertexProperty {}

impl Hash for VertexProperty {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.label.hash(state);
        self.value.hash(state);
    }
}

/// A property of an edge or of a vertex property.
#[derive(Clone, Debug, Default)]
pub struct Property {
    /// The owner; null: unknown.
    pub element: Value,
    /// Its key.
    pub key: Arc<str>,
    /// Its value.
    pub value: Value,
}

impl PartialEq for Property {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key && self.value == other.value
    }
}

impl Eq for Property {}

impl Hash for Property {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
        self.value.hash(state);
    }
}

/// A path: the objects of a traverser, with the labels of their steps.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Path {
    /// The objects.
    pub objects: Vec<Value>,
    /// The labels of each object, in the order of the steps.
    pub labels: Vec<Vec<Arc<str>>>,
}

/// A tree of values, children in insertion order.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// Child values with their subtrees.
    pub children: Vec<(Value, Tree)>,
}

impl PartialEq for Tree {
    fn eq(&self, other: &Self) -> bool {
        if self.children.len() != other.children.len() {
            return false;
        }
        if self.children.len() <= FEW_CHILDREN {
            return self.children.iter().all(|child| other.children.contains(child));
        }
        let mut by_value: HashMap<&Value, Vec<&Self>, Hashing> = HashMap::default();
        for (value, below) in &other.children {
            by_value.entry(value).or_default().push(below);
        }
        let has =
            |(value, below): &(Value, Self)| by_value.get(value).is_some_and(|all| all.contains(&below));
        self.children.iter().all(has)
    }
}

/// Maximum number of children that are compared without a table.
const FEW_CHILDREN: usize = 8;

impl Eq for Tree {}

impl Hash for Tree {
    fn hash<H: Hasher>(&self, state: &mut H) {
        commutative(self.children.iter()).hash(state);
    }
}

/// A subgraph.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Subgraph {
    /// Its vertices.
    pub vertices: Vec<Vertex>,
    /// Its edges.
    pub edges: Vec<Arc<Edge>>,
}

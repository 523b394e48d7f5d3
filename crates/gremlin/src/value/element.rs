//! Elements of a graph, and what is made of them: paths, trees, parts of a graph.
//!
//! # Shape
//! An element has a *key*, the ids of the store that name it, and a *detail*, what a client sees of it (id,
//! label, properties). Inside a traversal elements have keys and no details: details are looked up when a
//! result leaves. Elements that came over the wire have details and no key (all zero) until they are found in
//! the graph.
//! # Invariants
//! Two elements with keys are equal if their keys are; else if the ids in their details are. No set or map
//! mixes both.

use super::{Hashing, commutative};
use crate::Value;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A vertex.
#[derive(Clone, Debug, Default)]
pub struct Vertex {
    /// Its id in the store, as bits; 0: unknown.
    pub key: u64,
    /// What a client sees.
    pub detail: Option<Arc<VertexDetail>>,
}

/// What a client sees of a vertex.
#[derive(Clone, Debug, Default)]
pub struct VertexDetail {
    /// `T.id`
    pub id: Value,
    /// `T.label`
    pub label: Arc<str>,
    /// Its properties; empty as well if they were not asked for.
    pub properties: Vec<Arc<VertexProperty>>,
}

impl Vertex {
    /// The vertex with this id in the store.
    #[must_use]
    pub fn from_key(key: u64) -> Self {
        Self { key, detail: None }
    }

    /// The id in its detail; null without one.
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

/// Which statement an edge is: ids of the store, as bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct EdgeKey {
    /// The identity of the statement; 0: it is a plain statement.
    pub edge: u64,
    /// Where it starts.
    pub source: u64,
    /// Its predicate.
    pub label: u64,
    /// Where it ends.
    pub target: u64,
}

impl EdgeKey {
    /// Whether the store knows it.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.source != 0
    }
}

/// An edge.
#[derive(Clone, Debug, Default)]
pub struct Edge {
    /// Which statement it is.
    pub key: EdgeKey,
    /// What a client sees.
    pub detail: Option<EdgeDetail>,
}

/// What a client sees of an edge.
#[derive(Clone, Debug, Default)]
pub struct EdgeDetail {
    /// `T.id`
    pub id: Value,
    /// `T.label`
    pub label: Arc<str>,
    /// Where it starts, with id and label.
    pub source: Vertex,
    /// Where it ends, with id and label.
    pub target: Vertex,
    /// Its properties; empty as well if they were not asked for.
    pub properties: Vec<Arc<Property>>,
}

impl Edge {
    /// The id in its detail; null without one.
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

/// Which statement a property of a vertex is: ids of the store, as bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct PropertyKey {
    /// Its vertex; 0: unknown to the store.
    pub vertex: u64,
    /// The predicate.
    pub key: u64,
    /// The value.
    pub value: u64,
    /// The identity of the statement; 0: it has none.
    pub edge: u64,
}

/// A property of a vertex: an element of its own, with an id and properties.
#[derive(Clone, Debug, Default)]
pub struct VertexProperty {
    /// Which statement it is.
    pub key: PropertyKey,
    /// Its key, which is also its label.
    pub label: Arc<str>,
    /// Its value.
    pub value: Value,
    /// What a client sees beyond that.
    pub detail: Option<PropertyDetail>,
}

/// What a client sees of a property of a vertex.
#[derive(Clone, Debug, Default)]
pub struct PropertyDetail {
    /// `T.id`
    pub id: Value,
    /// Its own properties.
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

/// A property of an edge or of a property of a vertex.
#[derive(Clone, Debug, Default)]
pub struct Property {
    /// What has it; null: unknown.
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

/// The objects that a traverser has been to, each with the labels of the steps.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Path {
    /// The objects.
    pub objects: Vec<Value>,
    /// Of each object the labels, in the order of the steps.
    pub labels: Vec<Vec<Arc<str>>>,
}

/// A tree of values, children in the order of insertion.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// Each value with what is below it.
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

/// So many children are compared without a table.
const FEW_CHILDREN: usize = 8;

impl Eq for Tree {}

impl Hash for Tree {
    fn hash<H: Hasher>(&self, state: &mut H) {
        commutative(self.children.iter()).hash(state);
    }
}

/// A part of a graph.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Subgraph {
    /// Its vertices.
    pub vertices: Vec<Vertex>,
    /// Its edges.
    pub edges: Vec<Arc<Edge>>,
}

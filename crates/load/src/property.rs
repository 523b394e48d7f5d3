//! From vertices, edges and properties to statements: the mapping that `vervet_model::vocab` names.
//!
//! Every vertex has a label (the default is `vertex`), so every vertex has a statement. Every edge has an
//! edge id: parallel edges stay apart, and properties have something to hang on.

use crate::merge::Merger;
use crate::target::{Statement, Target};
use crate::value::Type;
use rustc_hash::FxHashMap;
use vervet_model::vocab::{EDGE_ID, KEY_NAMESPACE, LABEL_NAMESPACE, RDF_TYPE, VERTEX_NAMESPACE, name_iri};
use vervet_model::{Id, LiteralKind, Result};

/// Label of a vertex whose file gives none, as in TinkerPop.
pub(crate) const VERTEX_LABEL: &str = "vertex";
/// Label of an edge whose file gives none, as in TinkerPop.
pub(crate) const EDGE_LABEL: &str = "edge";

const STATEMENTS_AT_ONCE: usize = 1 << 13;

/// A value in its canonical form.
pub(crate) struct Value<'a> {
    pub(crate) kind: Type,
    pub(crate) lexical: &'a str,
}

/// Writes one property graph to the target of a merger.
pub(crate) struct PropertyWriter<'m, 'a, T: Target + ?Sized> {
    pub(crate) merger: &'m mut Merger<'a, T>,
    graph: Id,
    rdf_type: Option<Id>,
    edge_id: Option<Id>,
    keys: FxHashMap<String, Id>,
    labels: FxHashMap<String, Id>,
    triples: Vec<[Id; 3]>,
    statements: Vec<Statement>,
}

impl<'m, 'a, T: Target + ?Sized> PropertyWriter<'m, 'a, T> {
    pub(crate) fn new(merger: &'m mut Merger<'a, T>) -> Result<Self> {
        let graph = merger.graph()?;
        merger.edges.expect_vertices();
        Ok(Self {
            merger,
            graph,
            rdf_type: None,
            edge_id: None,
            keys: FxHashMap::default(),
            labels: FxHashMap::default(),
            triples: Vec::new(),
            statements: Vec::new(),
        })
    }

    /// The vertex with this external id; ids of different spaces are different vertices.
    pub(crate) fn vertex(&mut self, space: &str, id: &str) -> Result<Id> {
        let iri = if space.is_empty() {
            name_iri(VERTEX_NAMESPACE, id)
        } else {
            name_iri(VERTEX_NAMESPACE, &format!("{space}:{id}"))
        };
        self.merger.target.intern_iri(&iri)
    }

    pub(crate) fn label(&mut self, vertex: Id, label: &str) -> Result<()> {
        let rdf_type = match self.rdf_type {
            Some(id) => id,
            None => *self.rdf_type.insert(self.merger.target.intern_iri(RDF_TYPE)?),
        };
        let label = match self.labels.get(label) {
            Some(&id) => id,
            None => {
                let id = self.merger.target.intern_iri(&name_iri(LABEL_NAMESPACE, label))?;
                self.labels.insert(label.to_owned(), id);
                id
            }
        };
        self.add(vertex, rdf_type, label, Id::UNBOUND)
    }

    pub(crate) fn property(&mut self, subject: Id, key: &str, value: &Value<'_>) -> Result<()> {
        let key = self.key(key)?;
        let kind = match value.kind {
            Type::String => LiteralKind::String,
            kind => LiteralKind::Typed(kind.iri()),
        };
        let object = self.merger.target.intern_literal(value.lexical, kind)?;
        self.add(subject, key, object, Id::UNBOUND)
    }

    /// Adds an edge and returns its id.
    pub(crate) fn edge(&mut self, source: Id, label: &str, target: Id, id: Option<&str>) -> Result<Id> {
        let label = self.key(label)?;
        let edge = self.merger.target.next_edge()?;
        self.add(source, label, target, edge)?;
        if let Some(id) = id {
            let key = match self.edge_id {
                Some(key) => key,
                None => *self.edge_id.insert(self.merger.target.intern_iri(EDGE_ID)?),
            };
            let id = self.merger.target.intern_literal(id, LiteralKind::String)?;
            self.add(edge, key, id, Id::UNBOUND)?;
        }
        Ok(edge)
    }

    /// Hands everything over.
    pub(crate) fn finish(&mut self) -> Result<()> {
        let count = self.triples.len() + self.statements.len();
        if !self.triples.is_empty() {
            self.merger.target.add_triples(&self.triples)?;
        }
        if !self.statements.is_empty() {
            self.merger.target.add(&self.statements)?;
        }
        self.triples.clear();
        self.statements.clear();
        self.merger.added(count)
    }

    fn key(&mut self, key: &str) -> Result<Id> {
        if let Some(&id) = self.keys.get(key) {
            return Ok(id);
        }
        let id = self.merger.target.intern_iri(&name_iri(KEY_NAMESPACE, key))?;
        self.keys.insert(key.to_owned(), id);
        Ok(id)
    }

    fn add(&mut self, subject: Id, predicate: Id, object: Id, edge: Id) -> Result<()> {
        let graph = self.graph;
        if graph.is_bound() || edge.is_bound() {
            self.statements.push(Statement { subject, predicate, object, graph, edge });
        } else {
            self.triples.push([subject, predicate, object]);
        }
        if self.triples.len() + self.statements.len() >= STATEMENTS_AT_ONCE { self.finish() } else { Ok(()) }
    }
}

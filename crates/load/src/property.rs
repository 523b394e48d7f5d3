//! Writer of vertices, edges and properties as statements, by the mapping in `vervet_model::vocab`.
//!
//! Every vertex has a label (the default is `vertex`), so every vertex has a statement. Every edge has an
//! edge id: parallel edges are distinct, and edge properties have a subject.
//!
//! Names are interpreted as in Gremlin: an IRI (`http://…`, `urn:…`) denotes itself, `_:x` is a blank node.
//! Terms are numbered before statements are added, so a rejected element adds no statements.

use crate::merge::Merger;
use crate::target::{Statement, Target};
use crate::value::Type;
use foldhash::HashMap as SeededMap;
use oxrdf::NamedNode;
use vervet_model::vocab::{
    EDGE_ID, EDGE_NAMESPACE, KEY_NAMESPACE, LABEL_NAMESPACE, RDF_REIFIES, RDF_TYPE, VERTEX_NAMESPACE,
    iri_name, is_blank_label, is_iri, name_iri, push_name,
};
use vervet_model::{Error, Id, Inline, LiteralKind, Result};

/// Default label of a vertex, as in TinkerPop.
pub(crate) const VERTEX_LABEL: &str = "vertex";
/// Default label of an edge, as in TinkerPop.
pub(crate) const EDGE_LABEL: &str = "edge";

const STATEMENTS_AT_ONCE: usize = 1 << 13;

/// The reason for a rejected element.
#[derive(Debug)]
pub(crate) enum Rejected {
    /// An invalid name or value; reading can continue.
    Name(String),
    Other(Error),
}

impl From<Error> for Rejected {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

/// Writer of one property graph to the target of a merger.
pub(crate) struct PropertyWriter<'m, 'a, T: Target + ?Sized> {
    pub(crate) merger: &'m mut Merger<'a, T>,
    graph: Id,
    rdf_type: Option<Id>,
    edge_id: Option<Id>,
    keys: SeededMap<String, Id>,
    labels: SeededMap<String, Id>,
    /// Buffer with the last IRI.
    iri: String,
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
            keys: SeededMap::default(),
            labels: SeededMap::default(),
            iri: String::new(),
            triples: Vec::new(),
            statements: Vec::new(),
        })
    }

    /// The vertex with this external id; ids of different id spaces are different vertices.
    pub(crate) fn vertex(&mut self, space: &str, id: &str) -> Result<Id, Rejected> {
        if !space.is_empty() {
            self.iri.clear();
            push_vertex(&mut self.iri, space, id);
            return Ok(self.merger.target.intern_iri(&self.iri)?);
        }
        if let Some(label) = id.strip_prefix("_:") {
            let scoped = self.merger.scoped(label);
            if !is_blank_label(&scoped) {
                return Err(Rejected::Name(format!(
                    "{id} is not a blank node: letters, digits, - and _ are allowed behind _:"
                )));
            }
            return Ok(self.merger.target.intern_blank(&scoped)?);
        }
        let vertex = self.merger.target.intern_iri(&iri(VERTEX_NAMESPACE, id)?)?;
        if !vertex.is_vertex() {
            return Err(Rejected::Name(format!("{id} is the name of an edge, not of a vertex")));
        }
        Ok(vertex)
    }

    /// The id of a vertex label.
    pub(crate) fn label_id(&mut self, label: &str) -> Result<Id, Rejected> {
        if let Some(&id) = self.labels.get(label) {
            return Ok(id);
        }
        let id = self.merger.target.intern_iri(&iri(LABEL_NAMESPACE, label)?)?;
        if !id.is_vertex() {
            return Err(Rejected::Name(format!("{label} is the name of an edge, not of a label")));
        }
        self.labels.insert(label.to_owned(), id);
        Ok(id)
    }

    /// The id of a property key, or of an edge label.
    pub(crate) fn key(&mut self, key: &str) -> Result<Id, Rejected> {
        if let Some(&id) = self.keys.get(key) {
            return Ok(id);
        }
        if [RDF_TYPE, RDF_REIFIES, EDGE_ID].contains(&key) {
            return Err(Rejected::Name(format!("{key} cannot be a key: it is a reserved name")));
        }
        let id = self.merger.target.intern_iri(&iri(KEY_NAMESPACE, key)?)?;
        if !id.is_vertex() {
            return Err(Rejected::Name(format!("{key} is the name of an edge, not of a key")));
        }
        self.keys.insert(key.to_owned(), id);
        Ok(id)
    }

    /// The id of a value in its canonical form.
    pub(crate) fn value(&mut self, kind: Type, lexical: &str) -> Result<Id> {
        let kind = match kind {
            Type::String => LiteralKind::String,
            kind => LiteralKind::Typed(kind.iri()),
        };
        self.merger.target.intern_literal(lexical, kind)
    }

    /// The id of a value that may be inline.
    pub(crate) fn inline_value(&mut self, value: Inline) -> Result<Id> {
        self.merger.target.intern_value(value)
    }

    pub(crate) fn label(&mut self, vertex: Id, label: Id) -> Result<()> {
        let rdf_type = match self.rdf_type {
            Some(id) => id,
            None => *self.rdf_type.insert(self.merger.target.intern_iri(RDF_TYPE)?),
        };
        self.add(vertex, rdf_type, label, Id::UNBOUND)
    }

    /// A fresh statement identity.
    pub(crate) fn identity(&mut self) -> Result<Id> {
        self.merger.target.next_edge()
    }

    /// Records that a row or an element declares this vertex.
    pub(crate) fn declare(&mut self, vertex: Id) {
        self.merger.vertex_sets.declare(vertex);
    }

    /// Counts the last added edge as undirected, and adds it in the other direction if the options request
    /// it.
    pub(crate) fn undirected(&mut self, [source, label, target]: [Id; 3], values: &[(Id, Id)]) -> Result<()> {
        self.merger.report.undirected_edges += 1;
        if self.merger.options.both_directions && source != target {
            let edge = self.edge(target, label, source, None)?;
            for (key, value) in values {
                self.add(edge, *key, *value, Id::UNBOUND)?;
            }
        }
        Ok(())
    }

    /// Adds an edge and returns its id.
    pub(crate) fn edge(&mut self, source: Id, label: Id, target: Id, id: Option<&str>) -> Result<Id> {
        self.merger.vertex_sets.end(source);
        self.merger.vertex_sets.end(target);
        let edge = self.identity()?;
        self.add(source, label, target, edge)?;
        // Names generated by an export are dropped: the edge gets a new identity.
        if let Some(id) = id.filter(|id| !id.starts_with(EDGE_NAMESPACE)) {
            let key = match self.edge_id {
                Some(key) => key,
                None => *self.edge_id.insert(self.merger.target.intern_iri(EDGE_ID)?),
            };
            let id = self.merger.target.intern_literal(id, LiteralKind::String)?;
            self.add(edge, key, id, Id::UNBOUND)?;
        }
        Ok(edge)
    }

    /// Adds an edge between the vertices with these names and returns its id. If its own id is the name of a
    /// plain statement, and the edge is `bare` (has no properties), it becomes that statement.
    pub(crate) fn edge_between(
        &mut self,
        [source, target]: [&str; 2],
        label: &str,
        id: Option<&str>,
        bare: bool,
    ) -> Result<Id, Rejected> {
        let mut id = id;
        let ends = [self.vertex("", source)?, self.vertex("", target)?];
        let predicate = self.key(label)?;
        if let Some(text) = id
            && text.starts_with(['<', '_'])
            && text == format!("{} <{}> {}", node(source)?, iri(KEY_NAMESPACE, label)?, node(target)?)
        {
            if bare {
                self.merger.vertex_sets.end(ends[0]);
                self.merger.vertex_sets.end(ends[1]);
                self.add(ends[0], predicate, ends[1], Id::UNBOUND)?;
                return Ok(Id::UNBOUND);
            }
            id = None;
        }
        Ok(self.edge(ends[0], predicate, ends[1], id)?)
    }

    /// Flushes buffered statements to the target.
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
        self.merger.record_added(count)
    }

    /// Adds a statement; `edge`: its identity, or unbound.
    pub(crate) fn add(&mut self, subject: Id, predicate: Id, object: Id, edge: Id) -> Result<()> {
        let graph = self.graph;
        if graph.is_bound() || edge.is_bound() {
            self.statements.push(Statement { subject, predicate, object, graph, edge });
        } else {
            self.triples.push([subject, predicate, object]);
        }
        if self.triples.len() + self.statements.len() >= STATEMENTS_AT_ONCE { self.finish() } else { Ok(()) }
    }
}

/// Appends the IRI of a vertex in an id space.
pub(crate) fn push_vertex(iri: &mut String, space: &str, id: &str) {
    iri.push_str(VERTEX_NAMESPACE);
    push_name(iri, space);
    iri.push(':');
    push_name(iri, id);
}

/// The labels of a vertex, where several are joined as `A::B`, as in Gremlin.
pub(crate) fn labels_of(text: &str) -> impl Iterator<Item = &str> {
    text.split("::").filter(|label| !label.is_empty())
}

/// The IRI of a name.
fn iri(namespace: &str, name: &str) -> Result<String, Rejected> {
    if !is_iri(name) {
        return Ok(name_iri(namespace, name));
    }
    // Vervet's own names have one canonical form, so unneeded percent-encoding is removed.
    if let Some(name) = iri_name(namespace, name) {
        return Ok(name_iri(namespace, &name));
    }
    match NamedNode::new(name) {
        Ok(iri) => Ok(iri.into_string()),
        Err(error) => Err(Rejected::Name(format!("{name} is not an IRI: {error}"))),
    }
}

/// The vertex with this name in N-Triples.
fn node(name: &str) -> Result<String, Rejected> {
    if name.starts_with("_:") {
        Ok(name.to_owned())
    } else {
        Ok(format!("<{}>", iri(VERTEX_NAMESPACE, name)?))
    }
}

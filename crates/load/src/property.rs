//! From vertices, edges and properties to statements: the mapping that `vervet_model::vocab` names.
//!
//! Every vertex has a label (the default is `vertex`), so every vertex has a statement. Every edge has an
//! edge id: parallel edges stay apart, and properties have something to hang on.
//!
//! Names mean what they mean in Gremlin: one that is an IRI (`http://…`, `urn:…`) is that IRI, `_:x` is a
//! blank node. Terms are numbered first and statements added then, so an element that is refused adds none.

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

/// Label of a vertex whose file gives none, as in TinkerPop.
pub(crate) const VERTEX_LABEL: &str = "vertex";
/// Label of an edge whose file gives none, as in TinkerPop.
pub(crate) const EDGE_LABEL: &str = "edge";

const STATEMENTS_AT_ONCE: usize = 1 << 13;

/// Why an element is not added.
#[derive(Debug)]
pub(crate) enum Refused {
    /// A name or a value that cannot be one; the file can be read on.
    Name(String),
    Other(Error),
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

/// Writes one property graph to the target of a merger.
pub(crate) struct PropertyWriter<'m, 'a, T: Target + ?Sized> {
    pub(crate) merger: &'m mut Merger<'a, T>,
    graph: Id,
    rdf_type: Option<Id>,
    edge_id: Option<Id>,
    keys: SeededMap<String, Id>,
    labels: SeededMap<String, Id>,
    /// The IRI that was asked for last.
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

    /// The vertex with this external id; ids of different spaces are different vertices.
    pub(crate) fn vertex(&mut self, space: &str, id: &str) -> Result<Id, Refused> {
        if !space.is_empty() {
            self.iri.clear();
            push_vertex(&mut self.iri, space, id);
            return Ok(self.merger.target.intern_iri(&self.iri)?);
        }
        if let Some(label) = id.strip_prefix("_:") {
            let scoped = self.merger.scoped(label);
            if !is_blank_label(&scoped) {
                return Err(Refused::Name(format!(
                    "{id} is not a blank node: letters, digits, - and _ are allowed behind _:"
                )));
            }
            return Ok(self.merger.target.intern_blank(&scoped)?);
        }
        let vertex = self.merger.target.intern_iri(&iri(VERTEX_NAMESPACE, id)?)?;
        if !vertex.is_vertex() {
            return Err(Refused::Name(format!("{id} is the name of an edge, not of a vertex")));
        }
        Ok(vertex)
    }

    /// The number of a label of vertices.
    pub(crate) fn label_id(&mut self, label: &str) -> Result<Id, Refused> {
        if let Some(&id) = self.labels.get(label) {
            return Ok(id);
        }
        let id = self.merger.target.intern_iri(&iri(LABEL_NAMESPACE, label)?)?;
        if !id.is_vertex() {
            return Err(Refused::Name(format!("{label} is the name of an edge, not of a label")));
        }
        self.labels.insert(label.to_owned(), id);
        Ok(id)
    }

    /// The number of a property key, or of a label of edges.
    pub(crate) fn key(&mut self, key: &str) -> Result<Id, Refused> {
        if let Some(&id) = self.keys.get(key) {
            return Ok(id);
        }
        if [RDF_TYPE, RDF_REIFIES, EDGE_ID].contains(&key) {
            return Err(Refused::Name(format!("{key} cannot be a key: it has another meaning")));
        }
        let id = self.merger.target.intern_iri(&iri(KEY_NAMESPACE, key)?)?;
        if !id.is_vertex() {
            return Err(Refused::Name(format!("{key} is the name of an edge, not of a key")));
        }
        self.keys.insert(key.to_owned(), id);
        Ok(id)
    }

    /// The number of a value in its canonical form.
    pub(crate) fn value(&mut self, kind: Type, lexical: &str) -> Result<Id> {
        let kind = match kind {
            Type::String => LiteralKind::String,
            kind => LiteralKind::Typed(kind.iri()),
        };
        self.merger.target.intern_literal(lexical, kind)
    }

    /// The number of a value that may be inside it.
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

    /// A fresh identity of a statement.
    pub(crate) fn identity(&mut self) -> Result<Id> {
        self.merger.target.next_edge()
    }

    /// A row or an element stands for this vertex.
    pub(crate) fn declare(&mut self, vertex: Id) {
        self.merger.seen.declare(vertex);
    }

    /// The edge that was added last is undirected: it is counted, and comes in the other direction too if
    /// that is asked for.
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
        self.merger.seen.end(source);
        self.merger.seen.end(target);
        let edge = self.identity()?;
        self.add(source, label, target, edge)?;
        // Names that an export has made up are not kept: the edge gets a new one.
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

    /// Adds an edge between the vertices with these names and returns its id. If its own id is what the name
    /// of a plain statement would be, and it is `bare` (has no properties), it is that statement.
    pub(crate) fn edge_between(
        &mut self,
        [source, target]: [&str; 2],
        label: &str,
        id: Option<&str>,
        bare: bool,
    ) -> Result<Id, Refused> {
        let mut id = id;
        let ends = [self.vertex("", source)?, self.vertex("", target)?];
        let predicate = self.key(label)?;
        if let Some(text) = id
            && text.starts_with(['<', '_'])
            && text == format!("{} <{}> {}", node(source)?, iri(KEY_NAMESPACE, label)?, node(target)?)
        {
            if bare {
                self.merger.seen.end(ends[0]);
                self.merger.seen.end(ends[1]);
                self.add(ends[0], predicate, ends[1], Id::UNBOUND)?;
                return Ok(Id::UNBOUND);
            }
            id = None;
        }
        Ok(self.edge(ends[0], predicate, ends[1], id)?)
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

/// Appends the IRI of a vertex in a space of ids.
pub(crate) fn push_vertex(iri: &mut String, space: &str, id: &str) {
    iri.push_str(VERTEX_NAMESPACE);
    push_name(iri, space);
    iri.push(':');
    push_name(iri, id);
}

/// The labels of a vertex of which several stand as `A::B`, as in Gremlin.
pub(crate) fn labels_of(text: &str) -> impl Iterator<Item = &str> {
    text.split("::").filter(|label| !label.is_empty())
}

/// The IRI that a name stands for.
fn iri(namespace: &str, name: &str) -> Result<String, Refused> {
    if !is_iri(name) {
        return Ok(name_iri(namespace, name));
    }
    // Vervet's own names have one form, whatever was percent-encoded without need.
    if let Some(name) = iri_name(namespace, name) {
        return Ok(name_iri(namespace, &name));
    }
    match NamedNode::new(name) {
        Ok(iri) => Ok(iri.into_string()),
        Err(error) => Err(Refused::Name(format!("{name} is not an IRI: {error}"))),
    }
}

/// The vertex with this name in N-Triples.
fn node(name: &str) -> Result<String, Refused> {
    if name.starts_with("_:") {
        Ok(name.to_owned())
    } else {
        Ok(format!("<{}>", iri(VERTEX_NAMESPACE, name)?))
    }
}

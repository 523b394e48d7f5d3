//! Existence checks of elements, and ids of names.
//!
//! # Invariants
//! What is looked up in the version itself is added to the read set if an answer depends on it.

use crate::{Edge, Element, Transaction, Vertex};
use oxrdf::{BlankNode, NamedNode, NamedNodeRef, NamedOrBlankNode};
use std::ops::RangeInclusive;
use vervet_graph::AnyElement;
use vervet_model::vocab::{
    EDGE_NAMESPACE, KEY_NAMESPACE, RDF_REIFIES, RDF_TYPE, VERTEX_NAMESPACE, is_blank_label, is_iri, name_iri,
};
use vervet_model::{Direction, Error, ErrorKind, Id, Result, Statement};
use vervet_snapshot::{EntryFilter, Snapshot, successor};
use vervet_txn::Read;

/// Entries of a key read at a time.
pub(super) const CHUNK: usize = 4096;

/// All neighbours.
pub(super) const ALL: RangeInclusive<Id> = Id::UNBOUND..=Id::END;
/// Value ids are above the ids of vertices and edges.
pub(super) const VALUES: RangeInclusive<Id> = Id::literal(0)..=Id::END;

impl Transaction {
    /// The subject of statements about an element, and the graph for new ones.
    ///
    /// # Errors
    /// Input: the element does not exist, or cannot have properties.
    pub(super) fn located(&mut self, element: impl Element) -> Result<(Id, Id)> {
        match element.any() {
            AnyElement::Vertex(vertex) => Ok((vertex.id(), self.graph_of_vertex(vertex)?)),
            AnyElement::Edge(edge) => match edge.id() {
                Some(id) => Ok((id, self.graph_of_edge(edge, id)?)),
                None => {
                    let message = "a plain statement has no identity, so it cannot have properties";
                    Err(Error::new(ErrorKind::Input, message)
                        .with_hint("add the edge with `add_edge`: the statement becomes that edge"))
                }
            },
        }
    }

    /// The graph of an existing vertex. Reads one statement as its witness: a label if it has one.
    pub(super) fn graph_of_vertex(&mut self, vertex: Vertex) -> Result<Id> {
        let id = vertex.id();
        if let Some(type_id) = self.type_predicate()?
            && let Some(graph) = self.witness(type_id, Direction::Out, id)?
        {
            return Ok(graph);
        }
        let predicates = self.inner.version()?.predicates().iter();
        let segments =
            predicates.flat_map(|(predicate, _)| Direction::BOTH.map(|direction| (*predicate, direction)));
        let segments: Vec<(Id, Direction)> = segments.collect();
        for &(predicate, direction) in &segments {
            if let Some(graph) = self.witness(predicate, direction, id)? {
                return Ok(graph);
            }
        }
        // The absence of the vertex depends on all these reads.
        self.inner.record_read(Read::Predicates);
        for (predicate, direction) in segments {
            self.inner.record_read(Read::Key(predicate, direction, id));
        }
        let name = self.read(|graph| graph.external_id(vertex)).unwrap_or_else(|_| format!("{id:?}"));
        Err(Error::new(ErrorKind::Input, format!("there is no vertex {name}"))
            .with_hint("it was removed, or has never been added"))
    }

    /// The graph of the first entry of a key; the entry is added to the read set.
    fn witness(&mut self, predicate: Id, direction: Direction, key: Id) -> Result<Option<Id>> {
        let Some(first) = self.first_entry(predicate, direction, key)? else { return Ok(None) };
        self.inner.record_read(Read::Entry(first.subject, predicate, first.object));
        Ok(Some(first.graph))
    }

    /// The graph of an existing edge.
    fn graph_of_edge(&mut self, edge: Edge, id: Id) -> Result<Id> {
        self.inner.record_read(Read::Edge(id));
        match self.inner.version_of_edge(id)?.find_edge(id)? {
            Some([subject, predicate, object, graph])
                if [subject, predicate, object] == [edge.source.id(), edge.label_id(), edge.target.id()] =>
            {
                Ok(graph)
            }
            _ => Err(no_edge(&format!(" {}", id.payload()))),
        }
    }

    /// The statements of an edge: one if it has an id, else one for each graph.
    pub(super) fn statements_of_edge(&mut self, edge: Edge) -> Result<Vec<Statement>> {
        let (subject, predicate, object) = (edge.source.id(), edge.label_id(), edge.target.id());
        if let Some(id) = edge.id() {
            let graph = self.graph_of_edge(edge, id)?;
            return Ok(vec![Statement { subject, predicate, object, graph, edge: id }]);
        }
        self.inner.record_read(Read::Entry(subject, predicate, object));
        let mut found = self.entries(predicate, Direction::Out, subject, object..=object)?;
        found.retain(|statement| !statement.edge.is_bound());
        if found.is_empty() { Err(no_edge("")) } else { Ok(found) }
    }

    /// The first entry of a key, by neighbour, graph and edge.
    pub(super) fn first_entry(
        &self,
        predicate: Id,
        direction: Direction,
        key: Id,
    ) -> Result<Option<Statement>> {
        let mut first = Vec::with_capacity(1);
        if let Some(segment) =
            self.inner.version_at(predicate, direction, key)?.segment(predicate, direction)?
        {
            segment.entries(key, [Id::UNBOUND; 3], 1, &mut first)?;
        }
        Ok(first.first().map(|entry| statement_of(predicate, direction, key, *entry)))
    }

    /// The entries of a key with neighbours in this range.
    pub(super) fn entries(
        &self,
        predicate: Id,
        direction: Direction,
        key: Id,
        neighbours: RangeInclusive<Id>,
    ) -> Result<Vec<Statement>> {
        let mut all = Vec::new();
        let version = self.inner.version_at(predicate, direction, key)?;
        let Some(segment) = version.segment(predicate, direction)? else { return Ok(all) };
        let (mut chunk, mut from) = (Vec::new(), [*neighbours.start(), Id::UNBOUND, Id::UNBOUND]);
        // One neighbour has few entries.
        let limit = if neighbours.start() == neighbours.end() { 4 } else { CHUNK };
        loop {
            chunk.clear();
            segment.entries(key, from, limit, &mut chunk)?;
            let inside = chunk.iter().take_while(|[neighbour, ..]| neighbour <= neighbours.end());
            all.extend(inside.map(|entry| statement_of(predicate, direction, key, *entry)));
            match chunk.last() {
                Some(last) if chunk.len() >= limit && last[0] <= *neighbours.end() => from = successor(*last),
                _ => return Ok(all),
            }
        }
    }

    /// Whether a statement is in any graph, with or without an identity.
    pub(super) fn is_there(&self, subject: Id, predicate: Id, object: Id) -> Result<bool> {
        let mut rows = Vec::with_capacity(1);
        if let Some(segment) =
            self.inner.version_at(predicate, Direction::Out, subject)?.segment(predicate, Direction::Out)?
        {
            segment.check(&[subject], &[object], EntryFilter::ALL, &mut rows)?;
        }
        Ok(!rows.is_empty())
    }

    /// The id of `rdf:type`, if any statement has this predicate.
    fn type_predicate(&self) -> Result<Option<Id>> {
        // A type predicate is never removed.
        match self.inner.began_version().type_predicate() {
            None => Ok(self.inner.version()?.type_predicate()),
            known => Ok(known),
        }
    }

    /// The id of `rdf:type`.
    pub(super) fn type_id(&self) -> Result<Id> {
        match self.type_predicate()? {
            Some(id) => Ok(id),
            None => self.inner.intern(NamedNodeRef::new_unchecked(RDF_TYPE).into()),
        }
    }

    /// The id of a key or edge label, interned if new.
    pub(super) fn intern_key(&self, key: &str) -> Result<Id> {
        let hint = match key {
            RDF_TYPE => "labels are added with `add_label`",
            RDF_REIFIES => "an edge that is added has an identity",
            _ => return self.intern_name(KEY_NAMESPACE, key),
        };
        let message = format!("{key} cannot be a key or the label of an edge");
        Err(Error::new(ErrorKind::Input, message).with_hint(hint))
    }

    /// The id of the term that a name maps to, interned if new.
    pub(super) fn intern_name(&self, namespace: &str, name: &str) -> Result<Id> {
        let id = match term_of(namespace, name)? {
            NamedOrBlankNode::NamedNode(node) if node.as_str().starts_with(EDGE_NAMESPACE) => {
                return Err(Error::new(ErrorKind::Input, format!("{node} is the name of an edge"))
                    .with_hint("edges get their names from the database"));
            }
            NamedOrBlankNode::NamedNode(node) => self.inner.intern(node.as_ref().into())?,
            NamedOrBlankNode::BlankNode(node) => self.inner.intern(node.as_ref().into())?,
        };
        Ok(id)
    }

    /// The id of the term that a name maps to, if it has ever been interned.
    pub(super) fn lookup_name(&self, namespace: &str, name: &str) -> Result<Option<Id>> {
        let view = self.inner.view()?;
        match term_of(namespace, name)? {
            NamedOrBlankNode::NamedNode(node) => view.as_snapshot().lookup(node.as_ref().into()),
            NamedOrBlankNode::BlankNode(node) => view.as_snapshot().lookup(node.as_ref().into()),
        }
    }
}

fn no_edge(number: &str) -> Error {
    Error::new(ErrorKind::Input, format!("there is no such edge{number}"))
        .with_hint("it was removed, or its transaction did not commit")
}

/// The term that a name maps to.
fn term_of(namespace: &str, name: &str) -> Result<NamedOrBlankNode> {
    let bad = |what: &str| Error::new(ErrorKind::Input, format!("{name} is not {what}"));
    if let Some(label) = name.strip_prefix("_:").filter(|_| namespace == VERTEX_NAMESPACE) {
        if !is_blank_label(label) {
            return Err(bad("a blank node").with_hint("letters, digits, - and _ are allowed behind _:"));
        }
        return Ok(BlankNode::new_unchecked(label).into());
    }
    if is_iri(name) {
        return Ok(NamedNode::new(name).map_err(|_| bad("an IRI"))?.into());
    }
    Ok(NamedNode::new_unchecked(name_iri(namespace, name)).into())
}

/// The statement of an entry.
pub(super) fn statement_of(
    predicate: Id,
    direction: Direction,
    key: Id,
    [neighbour, graph, edge]: [Id; 3],
) -> Statement {
    let (subject, object) = match direction {
        Direction::Out => (key, neighbour),
        Direction::In => (neighbour, key),
    };
    Statement { subject, predicate, object, graph, edge }
}

/// A statement without an identity.
pub(super) fn plain(subject: Id, predicate: Id, object: Id, graph: Id) -> Statement {
    Statement { subject, predicate, object, graph, edge: Id::UNBOUND }
}

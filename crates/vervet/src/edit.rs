//! Typed writes: vertices, edges, labels and properties, without a query language.
//!
//! # Shape
//! Methods of [`Transaction`] that take the handles of [`vervet_graph`]. Names map to IRIs as in the loaders
//! (docs/loading.md): vertex `X` is `urn:vervet:vertex:X`, label `L` is `urn:vervet:label:L`, key or edge
//! label `K` is `urn:vervet:key:K`. A name that contains `://` or begins with `urn:` is itself an IRI.
//!
//! * this file: vertices, labels, edges.
//! * `properties`: values of vertices and edges.
//! * `identity`: values and statements with an identity: separate equal values, and statements about a value.
//! * `removal`: cascading removal.
//! * `find`: existence checks, and ids of names.
//! # Invariants
//! 1. An added vertex has a label. A vertex without labels (of RDF data) exists as long as a statement
//!    mentions it.
//! 2. New statements about an element go into the graph of the element: that of the edge, or of the first
//!    label (by id) of the vertex. Removals apply to all graphs.
//! 3. A transaction reads as little as its answers need: for each end of a new edge, that one certain label
//!    is still there; for a property that is set, its values; for an added value, whether it exists. Adding a
//!    vertex and drawing an edge id read nothing. So any number of transactions may concurrently add edges to
//!    one vertex, even between the same two vertices, while each of them conflicts with a transaction that
//!    removes an end.
//! # Source
//! `append` and `delete` of A. Khandelwal et al., "ZipG: A Memory-efficient Graph Store for Interactive
//! Queries", SIGMOD 2017, Table 1, for nodes and edge records. Difference: an edge has an identity and any
//! number of properties, and is removed individually, not together with all edges of its type.

mod find;
mod identity;
mod properties;
mod removal;

pub(crate) use identity::StatementHandle;

use crate::{Edge, Transaction, Vertex};
use find::{ALL, plain};
use vervet_model::vocab::{KEY_NAMESPACE, LABEL_NAMESPACE, VERTEX_NAMESPACE};
use vervet_model::{Direction, Error, ErrorKind, Id, Result, Statement};
use vervet_txn::Read;

/// The label of a vertex without other labels.
const LABEL_DEFAULT: &str = "vertex";

impl Transaction {
    /// Adds a vertex with these labels (default: `vertex`) and a new unique external id: two numbers, such as
    /// `5577006791947779410-1`. Reads nothing, so it conflicts with no other transaction.
    ///
    /// # Errors
    /// [`ErrorKind::Input`]: a label that looks like an IRI but is invalid. A full disk.
    ///
    /// ```
    /// use vervet::{Database, Direction};
    ///
    /// # fn main() -> vervet::Result<()> {
    /// let db = Database::in_memory();
    /// let ann = db.transact(|transaction| {
    ///     let ann = transaction.add_vertex(&["person"])?;
    ///     let bob = transaction.add_vertex_named("bob", &["person"])?;
    ///     transaction.set_property(ann, "name", "Ann")?;
    ///     let knows = transaction.add_edge(ann, "knows", bob)?;
    ///     transaction.set_property(knows, "since", 2019)?;
    ///     Ok(ann)
    /// })?;
    /// assert_eq!(db.snapshot().graph().degree(ann, "knows", Direction::Out)?, 1);
    /// db.transact(|transaction| {
    ///     let bob = transaction.read(|graph| graph.vertex("bob"))?.expect("he was added");
    ///     transaction.remove_vertex(bob) // the edge goes too, and what it says
    /// })?;
    /// assert_eq!(db.snapshot().graph().degree(ann, "knows", Direction::Out)?, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn add_vertex(&mut self, labels: &[&str]) -> Result<Vertex> {
        let name = self.database.fresh_vertex_name()?;
        let vertex = self.intern_vertex(&name)?;
        self.declare(vertex, labels)
    }

    /// Adds the vertex with this external id: a name, an IRI, or `_:` and the label of a blank node. A vertex
    /// that so far only edges mention gets its first labels.
    ///
    /// # Errors
    /// [`ErrorKind::Input`]: a vertex with this id and a label exists; a name that looks like an IRI but is
    /// invalid. A full disk.
    pub fn add_vertex_named(&mut self, external_id: &str, labels: &[&str]) -> Result<Vertex> {
        self.add_vertex_unless_there(external_id, labels)?.ok_or_else(|| {
            let message = format!("the vertex {external_id} is there already");
            Error::new(ErrorKind::Input, message)
                .with_hint("find it with `Graph::vertex`, or add a label with `add_label`")
        })
    }

    /// Like [`Transaction::add_vertex_named`]; `None`: a vertex with this id and a label exists.
    pub(crate) fn add_vertex_unless_there(
        &mut self,
        external_id: &str,
        labels: &[&str],
    ) -> Result<Option<Vertex>> {
        let vertex = self.intern_vertex(external_id)?;
        let type_id = self.type_id()?;
        self.inner.record_read(Read::Key(type_id, Direction::Out, vertex.id()));
        if self.first_entry(type_id, Direction::Out, vertex.id())?.is_some() {
            return Ok(None);
        }
        self.declare(vertex, labels).map(Some)
    }

    fn intern_vertex(&mut self, external_id: &str) -> Result<Vertex> {
        let id = self.intern_name(VERTEX_NAMESPACE, external_id)?;
        Vertex::from_id(id).ok_or_else(|| {
            Error::new(ErrorKind::Input, format!("{external_id} is the name of an edge, not of a vertex"))
        })
    }

    /// Gives a vertex its first labels.
    fn declare(&mut self, vertex: Vertex, labels: &[&str]) -> Result<Vertex> {
        let type_id = self.type_id()?;
        let labels = if labels.is_empty() { &[LABEL_DEFAULT] } else { labels };
        let mut statements = Vec::with_capacity(labels.len());
        for label in labels {
            let label = self.intern_name(LABEL_NAMESPACE, label)?;
            statements.push(plain(vertex.id(), type_id, label, Id::UNBOUND));
        }
        self.inner.insert_all(&statements)?;
        Ok(vertex)
    }

    /// Adds a label to a vertex; `false`: the vertex had it.
    ///
    /// # Errors
    /// [`ErrorKind::Input`]: there is no such vertex; a label that looks like an IRI but is invalid.
    pub fn add_label(&mut self, vertex: Vertex, label: &str) -> Result<bool> {
        let graph = self.graph_of_vertex(vertex)?;
        let (type_id, label) = (self.type_id()?, self.intern_name(LABEL_NAMESPACE, label)?);
        self.add_value(plain(vertex.id(), type_id, label, graph))
    }

    /// Removes a label from a vertex; `false`: the vertex did not have it. A vertex that loses its last label
    /// gets the label `vertex`.
    ///
    /// # Errors
    /// [`ErrorKind::Input`]: there is no such vertex; `vertex` is its only label.
    pub fn remove_label(&mut self, vertex: Vertex, label: &str) -> Result<bool> {
        let graph = self.graph_of_vertex(vertex)?;
        let type_id = self.type_id()?;
        let Some(label_id) = self.lookup_name(LABEL_NAMESPACE, label)? else { return Ok(false) };
        self.inner.record_read(Read::Key(type_id, Direction::Out, vertex.id()));
        let labels = self.entries(type_id, Direction::Out, vertex.id(), ALL)?;
        let (gone, rest): (Vec<_>, Vec<_>) = labels.into_iter().partition(|s| s.object == label_id);
        if gone.is_empty() {
            return Ok(false);
        }
        if rest.is_empty() {
            let last = self.intern_name(LABEL_NAMESPACE, LABEL_DEFAULT)?;
            if last == label_id {
                let message = format!("a vertex cannot lose the label {label} if it has no other");
                return Err(Error::new(ErrorKind::Input, message).with_hint("add another label first"));
            }
            self.inner.insert_all(&[plain(vertex.id(), type_id, last, graph)])?;
        }
        self.take_out(gone)?;
        Ok(true)
    }

    /// Adds an edge, even if parallel edges exist. It has its own id, so it can have properties. A plain
    /// statement of RDF data between the same vertices with this label becomes this edge.
    ///
    /// # Errors
    /// [`ErrorKind::Input`]: there is no such vertex; a label that looks like an IRI but is invalid, or that
    /// is reserved, such as `rdf:type`.
    pub fn add_edge(&mut self, from: Vertex, label: &str, to: Vertex) -> Result<Edge> {
        Ok(self.add_edge_in_graph(from, label, to)?.0)
    }

    /// [`Transaction::add_edge`]; also returns the graph of the edge.
    fn add_edge_in_graph(&mut self, from: Vertex, label: &str, to: Vertex) -> Result<(Edge, Id)> {
        let graph = self.graph_of_vertex(from)?;
        if to != from {
            self.graph_of_vertex(to)?;
        }
        let label = self.intern_key(label)?;
        let edge = self.inner.fresh_edge();
        let statement = Statement { subject: from.id(), predicate: label, object: to.id(), graph, edge };
        self.inner.insert_all(&[statement])?;
        Ok((Edge::from_ids(from, label, to, edge), graph))
    }

    /// The edges from one vertex to another with this label. Only these edges enter the read set: unlike with
    /// [`Graph::edges_between`](crate::Graph::edges_between), an edge from the same vertex to a third one is
    /// no conflict. Together with [`Transaction::add_edge`] it implements add-if-absent.
    ///
    /// # Errors
    /// [`ErrorKind::Input`]: a label that looks like an IRI but is invalid. Damaged data.
    pub fn edges_between(&mut self, from: Vertex, label: &str, to: Vertex) -> Result<Vec<Edge>> {
        // Interned rather than looked up: the absence of a label would be a read of all statements with it.
        let label = self.intern_name(KEY_NAMESPACE, label)?;
        self.inner.record_read(Read::Entry(from.id(), label, to.id()));
        let entries = self.entries(label, Direction::Out, from.id(), to.id()..=to.id())?;
        Ok(entries.into_iter().map(|entry| Edge::from_ids(from, label, to, entry.edge)).collect())
    }

    /// Removes an edge with all statements about it; returns the number of removed statements.
    ///
    /// # Errors
    /// [`ErrorKind::Input`]: there is no such edge.
    pub fn remove_edge(&mut self, edge: Edge) -> Result<u64> {
        let statements = self.statements_of_edge(edge)?;
        self.whole(|transaction| transaction.take_out(statements))
    }

    /// Removes a vertex: its labels and properties, all its incoming and outgoing edges in all graphs, and
    /// all statements about those edges; returns the number of removed statements. Statements with the vertex
    /// as predicate or graph name stay.
    ///
    /// # Cost
    /// Two lookups for each predicate of the graph. For each edge: two changes, and two more lookups for each
    /// predicate (statements about the edge). Edges are read in chunks; until the commit the transaction
    /// holds 48 bytes for each statement, and the changed paths of the trees.
    ///
    /// # Errors
    /// [`ErrorKind::Input`]: there is no such vertex.
    pub fn remove_vertex(&mut self, vertex: Vertex) -> Result<u64> {
        self.graph_of_vertex(vertex)?;
        self.whole(|transaction| transaction.take_out_vertex(vertex.id()))
    }
}

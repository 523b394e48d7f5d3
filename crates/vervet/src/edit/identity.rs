//! Values and statements with an identity: separate equal values, external ids of edges, and statements about
//! a value.
//!
//! # Shape
//! A property value is a statement. With its own edge id it can exist beside an equal value and be the
//! subject of other statements: Gremlin calls these meta-properties. Elements are identified by store ids
//! here.
//! # Invariants
//! 1. A plain statement would be absorbed by an equal one with an identity, so it gets an identity before
//!    another one is added.
//! 2. A plain statement that has meanwhile got an identity resolves to the first matching statement.

use super::find::{ALL, plain};
use crate::{Edge, Transaction, Vertex};
use oxrdf::{Literal, NamedNodeRef};
use vervet_model::vocab::{EDGE_ID, EDGE_NAMESPACE};
use vervet_model::{Direction, Error, ErrorKind, Id, Result, Statement, Tag};
use vervet_txn::Read;

/// A statement that may have an identity; `edge` is unbound if the caller knows of none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StatementHandle {
    pub(crate) subject: Id,
    pub(crate) predicate: Id,
    pub(crate) object: Id,
    pub(crate) edge: Id,
}

impl Transaction {
    /// Adds an edge with an external id; `None`: an edge with this id exists.
    pub(crate) fn add_edge_named(
        &mut self,
        from: Vertex,
        label: &str,
        to: Vertex,
        external_id: &str,
    ) -> Result<Option<Edge>> {
        if external_id.starts_with(EDGE_NAMESPACE) {
            let message = format!("{external_id} cannot be the id of an edge");
            return Err(Error::new(ErrorKind::Input, message)
                .with_hint("edges get such names from the database: leave the id out"));
        }
        let predicate = self.inner.intern(NamedNodeRef::new_unchecked(EDGE_ID).into())?;
        let name = self.inner.intern(Literal::new_simple_literal(external_id).as_ref().into())?;
        self.inner.record_read(Read::Key(predicate, Direction::In, name));
        let named = self.entries(predicate, Direction::In, name, ALL)?;
        if named.iter().any(|statement| statement.subject.tag() == Tag::Edge) {
            return Ok(None);
        }
        let (edge, graph) = self.add_edge_in_graph(from, label, to)?;
        if let Some(id) = edge.id() {
            self.inner.insert_all(&[plain(id, predicate, name, graph)])?;
        }
        Ok(Some(edge))
    }

    /// Makes this the only value of a vertex property, without statements about it.
    pub(crate) fn set_bare_value(
        &mut self,
        vertex: Vertex,
        key: &str,
        value: &Literal,
    ) -> Result<StatementHandle> {
        let (subject, graph) = self.located(vertex)?;
        let (predicate, object) = self.key_and_value(key, value)?;
        self.inner.record_read(Read::Key(predicate, Direction::Out, subject));
        let mut values = self.values(predicate, subject)?;
        let before = values.len();
        values.retain(|statement| statement.object != object || statement.edge.is_bound());
        let is_there = values.len() < before;
        self.take_out(values)?;
        if !is_there {
            self.inner.insert_all(&[plain(subject, predicate, object, graph)])?;
        }
        Ok(StatementHandle { subject, predicate, object, edge: Id::UNBOUND })
    }

    /// Adds a value to a vertex property unless it has an equal one; returns the value.
    pub(crate) fn add_value_once(
        &mut self,
        vertex: Vertex,
        key: &str,
        value: &Literal,
    ) -> Result<StatementHandle> {
        let (subject, graph) = self.located(vertex)?;
        let (predicate, object) = self.key_and_value(key, value)?;
        let named = StatementHandle { subject, predicate, object, edge: Id::UNBOUND };
        if let Some(found) = self.find_statement(named)? {
            return Ok(StatementHandle { edge: found.edge, ..named });
        }
        self.inner.insert_all(&[plain(subject, predicate, object, graph)])?;
        Ok(named)
    }

    /// Adds a value to a vertex property, even beside equal ones.
    pub(crate) fn add_value_apart(
        &mut self,
        vertex: Vertex,
        key: &str,
        value: &Literal,
    ) -> Result<StatementHandle> {
        let (subject, graph) = self.located(vertex)?;
        let (predicate, object) = self.key_and_value(key, value)?;
        let named = StatementHandle { subject, predicate, object, edge: Id::UNBOUND };
        if let Some(found) = self.find_statement(named)?.filter(|found| !found.edge.is_bound()) {
            self.identified(found)?;
        }
        let edge = self.inner.fresh_edge();
        self.inner.insert_all(&[Statement { subject, predicate, object, graph, edge }])?;
        Ok(StatementHandle { edge, ..named })
    }

    /// Sets the only value of `key` on a statement; returns the identity of the statement, new if it had
    /// none.
    ///
    /// # Errors
    /// Input: the statement does not exist.
    pub(crate) fn set_value_about(
        &mut self,
        about: StatementHandle,
        key: &str,
        value: &Literal,
    ) -> Result<Id> {
        let Some(found) = self.find_statement(about)? else {
            return Err(Error::new(ErrorKind::Input, "there is no such edge or property")
                .with_hint("it was removed, or its transaction did not commit"));
        };
        let found = if found.edge.is_bound() { found } else { self.identified(found)? };
        let (predicate, object) = self.key_and_value(key, value)?;
        self.set_value(found.edge, predicate, object, found.graph)?;
        Ok(found.edge)
    }

    /// Removes the values of `key` on a statement.
    pub(crate) fn remove_value_about(&mut self, about: StatementHandle, key: &str) -> Result<u64> {
        let Some(found) = self.find_statement(about)?.filter(|found| found.edge.is_bound()) else {
            return Ok(0);
        };
        let Some(predicate) = self.lookup_key(key)? else { return Ok(0) };
        self.inner.record_read(Read::Key(predicate, Direction::Out, found.edge));
        let values = self.values(predicate, found.edge)?;
        self.whole(|transaction| transaction.take_out(values))
    }

    /// Removes a statement with all statements about it; returns the number removed.
    pub(crate) fn remove_named(&mut self, named: StatementHandle) -> Result<u64> {
        let Some(found) = self.find_statement(named)? else { return Ok(0) };
        let mut gone = vec![found];
        if !found.edge.is_bound() {
            // The same plain statement in other graphs is the same edge or value.
            gone =
                self.entries(named.predicate, Direction::Out, named.subject, named.object..=named.object)?;
            gone.retain(|statement| !statement.edge.is_bound());
        }
        self.whole(|transaction| transaction.take_out(gone))
    }

    /// Removes a vertex with everything that belongs to it; 0: it does not exist.
    pub(crate) fn remove_vertex_if_there(&mut self, vertex: Vertex) -> Result<u64> {
        self.whole(|transaction| transaction.take_out_vertex(vertex.id()))
    }

    /// The statement that is meant, if it exists. Added to the read set.
    fn find_statement(&mut self, named: StatementHandle) -> Result<Option<Statement>> {
        let StatementHandle { subject, predicate, object, edge } = named;
        if edge.is_bound() {
            self.inner.record_read(Read::Edge(edge));
            let found = self.inner.version_of_edge(edge)?.find_edge(edge)?;
            return Ok(found.filter(|found| found[..3] == [subject, predicate, object]).map(
                |[subject, predicate, object, graph]| Statement { subject, predicate, object, graph, edge },
            ));
        }
        self.inner.record_read(Read::Entry(subject, predicate, object));
        let found = self.entries(predicate, Direction::Out, subject, object..=object)?;
        // Prefer a plain statement; else the first one.
        let plain = found.iter().find(|statement| !statement.edge.is_bound());
        Ok(plain.or(found.first()).copied())
    }

    /// Gives an existing plain statement an identity.
    fn identified(&mut self, statement: Statement) -> Result<Statement> {
        let statement = Statement { edge: self.inner.fresh_edge(), ..statement };
        self.inner.insert_all(&[statement])?;
        Ok(statement)
    }

    fn key_and_value(&self, key: &str, value: &Literal) -> Result<(Id, Id)> {
        Ok((self.intern_key(key)?, self.inner.intern(value.as_ref().into())?))
    }
}

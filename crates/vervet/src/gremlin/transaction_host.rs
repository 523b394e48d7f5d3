//! Adapter: a transaction as the graph that a traversal reads and changes.
//!
//! # Invariants
//! The view of the transaction records reads. `edit` notes what a write depends on, which is as little as its
//! answer needs: two traversals that add edges to one vertex do not conflict.

use super::files;
use super::options::GremlinOptions;
use super::snapshot_host::solve;
use crate::edit::StatementHandle;
use crate::query::reading::plan_options;
use crate::{Transaction, Vertex};
use oxrdf::Literal;
use vervet_algebra::Query;
use vervet_gremlin::{Cardinality, EdgeKey, PropertyKey, Value};
use vervet_kernel::Control;
use vervet_model::{Error, ErrorKind, Id, Result};
use vervet_snapshot::Snapshot;
use vervet_traversal::{FileFormat, Host, Owner, RowSink, vertex_name};
use vervet_txn::Isolation;

/// Separator between the labels of a vertex with several labels.
const LABELS_BETWEEN: &str = "::";

/// See the header of this file.
pub(super) struct TransactionHost<'t> {
    pub(super) transaction: &'t mut Transaction,
    pub(super) options: &'t GremlinOptions,
}

impl Host for TransactionHost<'_> {
    fn read(&self, read: &mut dyn FnMut(&dyn Snapshot) -> Result<()>) -> Result<()> {
        let view = self.transaction.inner.view()?;
        read(view.as_snapshot())
    }

    fn solve(&self, query: &Query, control: &Control<'_>, sink: &mut RowSink<'_>) -> Result<bool> {
        let view = self.transaction.inner.view()?;
        // Counts from statistics would not enter the read set.
        let known_counts = matches!(view, vervet_txn::View::Plain(_));
        let plan =
            vervet_planner::plan(query, view.as_snapshot(), &plan_options(true, known_counts), control)?;
        solve(&self.transaction.database, view.as_snapshot(), self.options, &plan, control, sink)?;
        Ok(true)
    }

    fn changes(&self) -> u64 {
        self.transaction.inner.change_count() as u64
    }

    fn tracks_read_set(&self) -> bool {
        self.transaction.inner.isolation() == Isolation::Serializable
    }

    fn read_file(&mut self, name: &str, form: FileFormat, control: &Control<'_>) -> Result<()> {
        let path = files::to_read(self.options.files.as_deref(), name)?;
        files::read(self, &path, form, control)
    }

    fn write_file(&self, name: &str, form: FileFormat, control: &Control<'_>) -> Result<()> {
        let path = files::to_write(self.options.files.as_deref(), name)?;
        self.read(&mut |snapshot| files::write(snapshot, &path, form, control))
    }

    fn add_vertex(&mut self, id: Option<&Value>, label: &str) -> Result<u64> {
        let mut labels: Vec<&str> = label.split(LABELS_BETWEEN).collect();
        if labels.contains(&"") {
            labels = vec![label];
        }
        let vertex = match id {
            None => self.transaction.add_vertex(&labels)?,
            Some(id) => {
                let name = vertex_name(id)?;
                let added = self.transaction.add_vertex_unless_there(&name, &labels)?;
                added.ok_or_else(|| there_already("Vertex", &name))?
            }
        };
        Ok(vertex.id().bits())
    }

    fn add_edge(&mut self, source: u64, label: &str, target: u64, id: Option<&Value>) -> Result<EdgeKey> {
        let (from, to) = (vertex(source)?, vertex(target)?);
        let edge = match id {
            None => self.transaction.add_edge(from, label, to)?,
            Some(id) => {
                let name = vertex_name(id)?;
                let added = self.transaction.add_edge_named(from, label, to, &name)?;
                added.ok_or_else(|| there_already("Edge", &name))?
            }
        };
        let edge_id = edge.id().map_or(0, Id::bits);
        Ok(EdgeKey { edge: edge_id, source, label: edge.label_id().bits(), target })
    }

    fn put_vertex_property(
        &mut self,
        vertex_id: u64,
        key: &str,
        value: &Literal,
        cardinality: Cardinality,
    ) -> Result<PropertyKey> {
        let vertex = vertex(vertex_id)?;
        let put = match cardinality {
            Cardinality::Single => self.transaction.set_bare_value(vertex, key, value)?,
            Cardinality::Set => self.transaction.add_value_once(vertex, key, value)?,
            Cardinality::List => self.transaction.add_value_apart(vertex, key, value)?,
        };
        Ok(PropertyKey {
            vertex: vertex_id,
            key: put.predicate.bits(),
            value: put.object.bits(),
            edge: put.edge.bits(),
        })
    }

    fn put_property(&mut self, owner: Owner, key: &str, value: &Literal) -> Result<Owner> {
        let edge = self.transaction.set_value_about(named(owner), key, value)?.bits();
        Ok(match owner {
            Owner::Edge(owner) => Owner::Edge(EdgeKey { edge, ..owner }),
            Owner::VertexProperty(owner) => Owner::VertexProperty(PropertyKey { edge, ..owner }),
        })
    }

    fn remove_vertex(&mut self, vertex_id: u64) -> Result<()> {
        self.transaction.remove_vertex_if_there(vertex(vertex_id)?).map(|_| ())
    }

    fn remove_edge(&mut self, edge: EdgeKey) -> Result<()> {
        self.transaction.remove_named(named(Owner::Edge(edge))).map(|_| ())
    }

    fn remove_vertex_property(&mut self, property: PropertyKey) -> Result<()> {
        self.transaction.remove_named(named(Owner::VertexProperty(property))).map(|_| ())
    }

    fn remove_property(&mut self, owner: Owner, key: &str) -> Result<()> {
        self.transaction.remove_value_about(named(owner), key).map(|_| ())
    }
}

fn vertex(bits: u64) -> Result<Vertex> {
    Vertex::from_id(Id::from_bits(bits)).ok_or_else(|| Error::new(ErrorKind::Input, "this is not a vertex"))
}

/// The statement of an owner of properties.
fn named(owner: Owner) -> StatementHandle {
    let (subject, predicate, object, edge) = match owner {
        Owner::Edge(key) => (key.source, key.label, key.target, key.edge),
        Owner::VertexProperty(key) => (key.vertex, key.key, key.value, key.edge),
    };
    let id = Id::from_bits;
    StatementHandle { subject: id(subject), predicate: id(predicate), object: id(object), edge: id(edge) }
}

/// TinkerPop's wording, which clients recognize.
fn there_already(what: &str, name: &str) -> Error {
    Error::new(ErrorKind::Input, format!("{what} with id already exists: {name}"))
        .with_hint("leave the id out, or change the one that is there (mergeV(), mergeE())")
}

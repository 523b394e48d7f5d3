//! The `Host` trait: the graph that a traversal reads and, in a transaction, writes.
//!
//! # Shape
//! A traversal reads a snapshot; a traversal that writes runs in a transaction and sees its own changes.
//! Element ids are store ids (`u64`, the bits of an id); labels and keys are strings.

use oxrdf::Literal;
use vervet_algebra::Query;
use vervet_gremlin::{Cardinality, EdgeKey, PropertyKey, Value};
use vervet_kernel::Control;
use vervet_model::{Error, ErrorKind, Id, Result};
use vervet_snapshot::Snapshot;

/// Sink for rows of a query: columns by variable, the number of rows, and the multiplicity of each row
/// (empty: each is 1).
pub type RowSink<'s> = dyn FnMut(&[Vec<Id>], usize, &[u64]) -> Result<()> + 's;

/// The owner of a property that is not a vertex property.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// An edge.
    Edge(EdgeKey),
    /// A property of a vertex.
    VertexProperty(PropertyKey),
}

/// See the header of this file. The default implementation of each write is an error.
pub trait Host {
    /// Calls `read` once with the current graph, including the changes of the own transaction.
    ///
    /// # Errors
    /// Those of `read`; damaged data.
    fn read(&self, read: &mut dyn FnMut(&dyn Snapshot) -> Result<()>) -> Result<()>;

    /// Solves a query of the algebra. `sink` receives columns by variable, the number of rows, and the
    /// multiplicity of each row (empty: each is 1). `false`: this host does not solve queries; `sink` was not
    /// called.
    ///
    /// # Errors
    /// Those of `sink`; limits; damaged data.
    fn solve(&self, query: &Query, control: &Control<'_>, sink: &mut RowSink<'_>) -> Result<bool> {
        let _ = (query, control, sink);
        Ok(false)
    }

    /// Change counter; a new value invalidates cached reads.
    fn changes(&self) -> u64 {
        0
    }

    /// Whether reads are recorded for validation. Steps then avoid unneeded reads, which could cause
    /// conflicts.
    fn tracks_read_set(&self) -> bool {
        false
    }

    /// Maximum number of threads of an algorithm.
    fn threads(&self) -> usize {
        1
    }

    /// Loads the graph of a file into this one: `io(name).read()`.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`]: this host does not read files, or not in this format. Input: a file that
    /// may not be read or is malformed; an element that already exists.
    fn read_file(&mut self, name: &str, form: FileFormat, control: &Control<'_>) -> Result<()> {
        let _ = (name, form, control);
        Err(no_files())
    }

    /// Writes the graph to a file: `io(name).write()`.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`]: this host does not write files, or not in this format. Input: a file that
    /// may not be written. Io.
    fn write_file(&self, name: &str, form: FileFormat, control: &Control<'_>) -> Result<()> {
        let _ = (name, form, control);
        Err(no_files())
    }

    /// Adds a vertex with this label. Without `id` the host assigns a new one.
    ///
    /// # Errors
    /// Input: a vertex with this id exists; an invalid id.
    fn add_vertex(&mut self, id: Option<&Value>, label: &str) -> Result<u64> {
        let _ = (id, label);
        Err(read_only())
    }

    /// Adds an edge.
    ///
    /// # Errors
    /// Input: an endpoint does not exist; an edge with this id exists.
    fn add_edge(&mut self, source: u64, label: &str, target: u64, id: Option<&Value>) -> Result<EdgeKey> {
        let _ = (source, label, target, id);
        Err(read_only())
    }

    /// Adds a value to a vertex property. `list` keeps equal values apart.
    ///
    /// # Errors
    /// Input: the vertex does not exist.
    fn put_vertex_property(
        &mut self,
        vertex: u64,
        key: &str,
        value: &Literal,
        cardinality: Cardinality,
    ) -> Result<PropertyKey> {
        let _ = (vertex, key, value, cardinality);
        Err(read_only())
    }

    /// Sets the only value of a property of an edge or of a vertex property. Returns the owner, to which this
    /// call may have assigned an identity.
    ///
    /// # Errors
    /// Input: the owner does not exist.
    fn put_property(&mut self, owner: Owner, key: &str, value: &Literal) -> Result<Owner> {
        let _ = (owner, key, value);
        Err(read_only())
    }

    /// Removes a vertex with its properties and edges. No effect if it does not exist.
    ///
    /// # Errors
    /// Damaged data.
    fn remove_vertex(&mut self, vertex: u64) -> Result<()> {
        let _ = vertex;
        Err(read_only())
    }

    /// Removes an edge with its properties. No effect if it does not exist.
    ///
    /// # Errors
    /// Damaged data.
    fn remove_edge(&mut self, edge: EdgeKey) -> Result<()> {
        let _ = edge;
        Err(read_only())
    }

    /// Removes one value of a vertex property. No effect if it does not exist.
    ///
    /// # Errors
    /// Damaged data.
    fn remove_vertex_property(&mut self, property: PropertyKey) -> Result<()> {
        let _ = property;
        Err(read_only())
    }

    /// Removes a property of an edge or of a vertex property. No effect if it does not exist.
    ///
    /// # Errors
    /// Damaged data.
    fn remove_property(&mut self, owner: Owner, key: &str) -> Result<()> {
        let _ = (owner, key);
        Err(read_only())
    }
}

/// A file format of `io()`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileFormat {
    /// GraphSON 3, one vertex per line.
    GraphSon,
    /// GraphML.
    GraphMl,
}

fn no_files() -> Error {
    Error::new(ErrorKind::Unsupported, "io() is turned off").with_hint(
        "the operator of the database can permit a folder, or load and export files with other tools",
    )
}

fn read_only() -> Error {
    Error::new(ErrorKind::Unsupported, "this traversal may only read").with_hint("run it in a transaction")
}

/// A read-only host over a snapshot.
pub struct ReadOnly<'a>(pub &'a dyn Snapshot);

impl Host for ReadOnly<'_> {
    fn read(&self, read: &mut dyn FnMut(&dyn Snapshot) -> Result<()>) -> Result<()> {
        read(self.0)
    }
}

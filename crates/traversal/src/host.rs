//! The graph that a traversal walks, and what it may do to it.
//!
//! # Shape
//! A snapshot to read; for traversals that change something a transaction, which shows its own changes.
//! Elements are named by ids of the store (`u64`, the bits of an id), names of labels and keys are plain.

use oxrdf::Literal;
use vervet_algebra::Query;
use vervet_gremlin::{Cardinality, EdgeKey, PropertyKey, Value};
use vervet_kernel::Control;
use vervet_model::{Error, ErrorKind, Id, Result};
use vervet_snapshot::Snapshot;

/// Takes rows of a query: columns by variable, the number of rows, and how often each is there (empty: once
/// each).
pub type RowSink<'s> = dyn FnMut(&[Vec<Id>], usize, &[u64]) -> Result<()> + 's;

/// What a property that is no property of a vertex belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// An edge.
    Edge(EdgeKey),
    /// A property of a vertex.
    VertexProperty(PropertyKey),
}

/// See the header of this file. Calls that change something are errors unless the host says otherwise.
pub trait Host {
    /// Calls `read` once with the graph as it is now, own changes included.
    ///
    /// # Errors
    /// Those of `read`; damaged data.
    fn read(&self, read: &mut dyn FnMut(&dyn Snapshot) -> Result<()>) -> Result<()>;

    /// Solves a query of the algebra; `sink` gets columns by variable, the number of rows, and how often each
    /// row is there (empty: once each). `false`: this host solves none, and nothing was given to `sink`.
    ///
    /// # Errors
    /// Those of `sink`; limits; damaged data.
    fn solve(&self, query: &Query, control: &Control<'_>, sink: &mut RowSink<'_>) -> Result<bool> {
        let _ = (query, control, sink);
        Ok(false)
    }

    /// Grows with every change, so that what was found out before can be forgotten.
    fn changes(&self) -> u64 {
        0
    }

    /// Whether it remembers what is read. Then nothing is looked at that no answer needs, since others who
    /// change it would be in conflict.
    fn remembers_reads(&self) -> bool {
        false
    }

    /// On how many threads an algorithm may run.
    fn threads(&self) -> usize {
        1
    }

    /// Puts the graph of a file into this one: `io(name).read()`.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`]: this host reads no files, or none of this form. Input: a file that may not
    /// be read, or is not as it should be; an element that is there.
    fn read_file(&mut self, name: &str, form: FileForm, control: &Control<'_>) -> Result<()> {
        let _ = (name, form, control);
        Err(no_files())
    }

    /// Writes the graph to a file: `io(name).write()`.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`]: this host writes no files, or none of this form. Input: a file that may
    /// not be written. Io.
    fn write_file(&self, name: &str, form: FileForm, control: &Control<'_>) -> Result<()> {
        let _ = (name, form, control);
        Err(no_files())
    }

    /// Adds a vertex with this label; with an id that nobody has, if it has none.
    ///
    /// # Errors
    /// Input: a vertex with this id is there; an id that cannot be one.
    fn add_vertex(&mut self, id: Option<&Value>, label: &str) -> Result<u64> {
        let _ = (id, label);
        Err(read_only())
    }

    /// Adds an edge.
    ///
    /// # Errors
    /// Input: an end is not there; an edge with this id is there.
    fn add_edge(&mut self, source: u64, label: &str, target: u64, id: Option<&Value>) -> Result<EdgeKey> {
        let _ = (source, label, target, id);
        Err(read_only())
    }

    /// Gives a vertex a value of a property. `list` keeps equal values apart.
    ///
    /// # Errors
    /// Input: the vertex is not there.
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

    /// Makes this the only value of a property of an edge or of a property; returns the owner, which may have
    /// got an identity.
    ///
    /// # Errors
    /// Input: the owner is not there.
    fn put_property(&mut self, owner: Owner, key: &str, value: &Literal) -> Result<Owner> {
        let _ = (owner, key, value);
        Err(read_only())
    }

    /// Removes a vertex with its properties and edges; nothing if it is not there.
    ///
    /// # Errors
    /// Damaged data.
    fn remove_vertex(&mut self, vertex: u64) -> Result<()> {
        let _ = vertex;
        Err(read_only())
    }

    /// Removes an edge with its properties; nothing if it is not there.
    ///
    /// # Errors
    /// Damaged data.
    fn remove_edge(&mut self, edge: EdgeKey) -> Result<()> {
        let _ = edge;
        Err(read_only())
    }

    /// Removes one value of a property of a vertex; nothing if it is not there.
    ///
    /// # Errors
    /// Damaged data.
    fn remove_vertex_property(&mut self, property: PropertyKey) -> Result<()> {
        let _ = property;
        Err(read_only())
    }

    /// Removes a property of an edge or of a property; nothing if it is not there.
    ///
    /// # Errors
    /// Damaged data.
    fn remove_property(&mut self, owner: Owner, key: &str) -> Result<()> {
        let _ = (owner, key);
        Err(read_only())
    }
}

/// The form of a file of `io()`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileForm {
    /// GraphSON 3, a vertex on each line.
    GraphSon,
    /// GraphML.
    GraphMl,
}

fn no_files() -> Error {
    Error::new(ErrorKind::Unsupported, "io() is turned off").with_hint(
        "who runs the database can name a folder that it may use, or load and export files with other tools",
    )
}

fn read_only() -> Error {
    Error::new(ErrorKind::Unsupported, "this traversal may only read").with_hint("run it in a transaction")
}

/// A snapshot as a host that changes nothing.
pub struct ReadOnly<'a>(pub &'a dyn Snapshot);

impl Host for ReadOnly<'_> {
    fn read(&self, read: &mut dyn FnMut(&dyn Snapshot) -> Result<()>) -> Result<()> {
        read(self.0)
    }
}

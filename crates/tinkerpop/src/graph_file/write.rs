//! Incremental writer of graph files.

use super::{GraphEdge, GraphVertex};
use crate::WriteError;
use crate::graphson::{Dialect, Writer, whole};
use foldhash::fast::RandomState;
use indexmap::IndexMap;
use std::fmt;
use std::io::{self, Write};

/// Layout of the vertices in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// One vertex per line: the file can be split at line ends.
    Lines,
    /// `{"vertices": […]}`: the file is one JSON text.
    Wrapped,
}

/// A write error of a graph file.
#[derive(Debug)]
#[non_exhaustive]
pub enum GraphWriteError {
    /// A value cannot be represented.
    Value(WriteError),
    /// An I/O error.
    Io(io::Error),
}

impl fmt::Display for GraphWriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(error) => error.fmt(f),
            Self::Io(error) => write!(f, "could not write: {error}"),
        }
    }
}

impl std::error::Error for GraphWriteError {}

impl From<WriteError> for GraphWriteError {
    fn from(error: WriteError) -> Self {
        Self::Value(error)
    }
}

impl From<io::Error> for GraphWriteError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Writer of a graph file; must be [`finish`](Self::finish)ed.
#[derive(Debug)]
pub struct GraphWriter<W> {
    file: W,
    dialect: Dialect,
    layout: Layout,
    count: u64,
    /// Text of the current vertex.
    text: Vec<u8>,
}

impl<W: Write> GraphWriter<W> {
    /// A typed GraphSON 3 file is `GraphWriter::new(file, Dialect::V3, Layout::Lines)`. `file` should be
    /// buffered.
    pub fn new(file: W, dialect: Dialect, layout: Layout) -> Self {
        Self { file, dialect, layout, count: 0, text: Vec::new() }
    }

    /// Writes a vertex with its listed edges in both directions.
    ///
    /// # Errors
    /// A value that cannot be represented, in which case nothing is written; or an I/O error.
    pub fn vertex(&mut self, vertex: &GraphVertex) -> Result<(), GraphWriteError> {
        self.text.clear();
        whole(self.dialect, &mut self.text, |writer| write_vertex(writer, vertex))?;
        match (self.layout, self.count) {
            (Layout::Lines, _) => {}
            (Layout::Wrapped, 0) => self.file.write_all(b"{\"vertices\":[")?,
            (Layout::Wrapped, _) => self.file.write_all(b",")?,
        }
        self.file.write_all(&self.text)?;
        if self.layout == Layout::Lines {
            self.file.write_all(b"\n")?;
        }
        self.count += 1;
        Ok(())
    }

    /// Completes the file, and returns it.
    ///
    /// # Errors
    /// An I/O error.
    pub fn finish(mut self) -> io::Result<W> {
        if self.layout == Layout::Wrapped {
            self.file.write_all(if self.count == 0 { b"{\"vertices\":[]}" } else { b"]}" })?;
        }
        self.file.flush()?;
        Ok(self.file)
    }
}

fn write_vertex(writer: &mut Writer<'_>, vertex: &GraphVertex) -> Result<(), WriteError> {
    writer.raw("{\"id\":");
    writer.value(&vertex.id)?;
    writer.key(false, "label");
    writer.text(&vertex.label);
    for (name, end, edges) in [("inE", "outV", &vertex.incoming), ("outE", "inV", &vertex.outgoing)] {
        if !edges.is_empty() {
            writer.key(false, name);
            write_edges(writer, end, edges)?;
        }
    }
    if !vertex.properties.is_empty() {
        writer.key(false, "properties");
        writer.vertex_properties(&vertex.properties, |writer, property| {
            writer.vertex_property(property, false)
        })?;
    }
    writer.raw("}");
    Ok(())
}

fn write_edges(writer: &mut Writer<'_>, end: &str, edges: &[GraphEdge]) -> Result<(), WriteError> {
    let mut groups: IndexMap<&str, Vec<&GraphEdge>, RandomState> = IndexMap::default();
    for edge in edges {
        groups.entry(&edge.label).or_default().push(edge);
    }
    writer.raw("{");
    for (index, (label, edges)) in groups.into_iter().enumerate() {
        writer.key(index == 0, label);
        writer.array(edges, |writer, edge| {
            writer.raw("{\"id\":");
            writer.value(&edge.id)?;
            writer.key(false, end);
            writer.value(&edge.other)?;
            if !edge.properties.is_empty() {
                writer.key(false, "properties");
                writer.plain_properties(&edge.properties)?;
            }
            writer.raw("}");
            Ok(())
        })?;
    }
    writer.raw("}");
    Ok(())
}

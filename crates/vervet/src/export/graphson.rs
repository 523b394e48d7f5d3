//! The graph as GraphSON in the adjacency form, a vertex on each line.

use std::io::{BufWriter, Write};
use vervet_model::{Error, ErrorKind, Result};
use vervet_snapshot::Snapshot;
use vervet_tinkerpop::graph_file::{GraphWriteError, GraphWriter, Layout};
use vervet_tinkerpop::graphson::Dialect;
use vervet_traversal::{Parts, each_vertex};

/// Writes all vertices with their edges; how many vertices and edges there are. `check` is asked before each vertex.
pub(crate) fn write(
    snapshot: &dyn Snapshot,
    dialect: Dialect,
    check: &dyn Fn() -> Result<()>,
    out: &mut dyn Write,
) -> Result<u64> {
    let mut file = GraphWriter::new(BufWriter::with_capacity(1 << 16, out), dialect, Layout::Lines);
    let mut count = 0;
    each_vertex(snapshot, Parts::ALL, &mut |vertex| {
        check()?;
        count += 1 + vertex.outgoing.len() as u64;
        file.vertex(&vertex).map_err(|error| match error {
            GraphWriteError::Io(error) => Error::io("write the export", &error),
            error => {
                let message = format!("a vertex cannot be written as GraphSON: {error}");
                Error::new(ErrorKind::Unsupported, message).with_hint("export as N-Quads (nq)")
            }
        })
    })?;
    file.finish().map_err(|error| Error::io("write the export", &error))?;
    Ok(count)
}

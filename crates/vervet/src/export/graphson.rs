//! GraphSON export in the adjacency form, one vertex per line.

use std::io::{BufWriter, Write};
use vervet_kernel::Control;
use vervet_model::{Error, ErrorKind, Result};
use vervet_snapshot::Snapshot;
use vervet_tinkerpop::graph_file::{GraphWriteError, GraphWriter, Layout};
use vervet_tinkerpop::graphson::Dialect;
use vervet_traversal::{VertexParts, for_each_vertex};

/// Approximate size of an edge as text, in bytes.
const EDGE_TEXT_BYTES: u64 = 128;

/// Writes all vertices with their edges, within the limits of `control`. Returns the number of vertices and
/// edges.
pub(crate) fn write(
    snapshot: &dyn Snapshot,
    dialect: Dialect,
    control: &Control<'_>,
    out: &mut dyn Write,
) -> Result<u64> {
    let mut file = GraphWriter::new(BufWriter::with_capacity(1 << 16, out), dialect, Layout::Lines);
    let (mut count, mut counted) = (0, 0);
    for_each_vertex(snapshot, VertexParts::ALL, control, &mut |vertex| {
        // The text of a vertex is buffered as a whole, and the buffer keeps its capacity.
        let text_bytes = EDGE_TEXT_BYTES * (vertex.incoming.len() + vertex.outgoing.len()) as u64;
        let most = text_bytes.max(counted);
        control.recount(&mut counted, most)?;
        count += 1 + vertex.outgoing.len() as u64;
        file.vertex(&vertex).map_err(|error| match error {
            GraphWriteError::Io(error) => Error::io("write the export", &error),
            error => {
                let message = format!("a vertex cannot be written as GraphSON: {error}");
                Error::new(ErrorKind::Unsupported, message).with_hint("export as N-Quads (nq)")
            }
        })
    })?;
    control.shrink(counted);
    file.finish().map_err(|error| Error::io("write the export", &error))?;
    Ok(count)
}

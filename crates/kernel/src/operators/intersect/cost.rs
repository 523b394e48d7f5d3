//! Costs of the methods of an intersection, in ns, and the thresholds between them.

use vervet_snapshot::Segment;

/// Minimum rows for each run of the prefix for which a bit set pays.
pub(crate) const BITSET_ROWS_MIN: usize = 3;

/// Cost of a listed entry; see the header of the intersection.
pub(crate) const LIST_ENTRY_NS: f64 = 3.0;
/// Cost of a listed and merged entry of either list, in ns (216 ns for 8 and 21, LUBM-40 Q7, 2026-11-21).
pub(crate) const MERGE_ENTRY_NS: f64 = 6.0;
/// Cost of a check, in ns: a constant, and an increment for each binary-search step.
pub(crate) const PROBE_NS: f64 = 8.0;
pub(crate) const PROBE_HALVING_NS: f64 = 3.0;

/// Cost of reading from other servers, in ns of both ends: for each key or entry of a request or answer, and
/// for each call, which takes a request to each server.
pub(crate) const REMOTE_ENTRY_NS: f64 = 20.0;
pub(crate) const REMOTE_CALL_NS: f64 = 60_000.0;

/// Cost of the *reverse* method, in ns: for each run, each vertex of its prefix, and each neighbour of that
/// vertex.
pub(crate) const REVERSE_RUN_NS: f64 = 80.0;
const REVERSE_VERTEX_NS: f64 = 8.0;
const REVERSE_ENTRY_NS: f64 = 3.0;
/// Minimum cost of a row, in ns, for which sorting the rows for longer runs (15 to 20 ns a row) is
/// considered.
pub(crate) const SORT_FROM_NS: f64 = 200.0;

/// Cost of expanding a vertex of a prefix, in ns. High-degree vertices are the most likely to be in a prefix,
/// so the average degree alone would underestimate it.
pub(crate) fn reverse_vertex_ns(reverse: &dyn Segment) -> f64 {
    let statistics = reverse.statistics();
    let average = statistics.entries as f64 / statistics.keys.max(1) as f64;
    REVERSE_VERTEX_NS + REVERSE_ENTRY_NS * (statistics.degree_max as f64).min(8.0 * average)
}

/// Cost of the *reverse* method for a run whose prefix has `prefix` vertices, in ns.
pub(crate) fn reverse_run_ns(reverse: &dyn Segment, prefix: f64) -> f64 {
    REVERSE_RUN_NS + prefix * reverse_vertex_ns(reverse)
}

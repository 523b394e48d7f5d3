//! Cost model: nanoseconds of one thread for each row of batched operators.
//!
//! Wukong's planner measured 0.1 to 0.4 us a row for one hash probe and one list (OSDI 2016, §4; its code).
//! Batches, arrays in place of a hash table, and prefetching divide that by ten and more; hand-written loops
//! over plain arrays take 5 to 15 ns for a random expansion or check. Only ratios matter.

/// An expanded row: key look-up and read of the offsets.
pub(crate) const EXPAND_ROW: f64 = 12.0;
/// A row whose degree is read without listing its neighbours.
pub(crate) const DEGREE_ROW: f64 = 9.0;
/// An output row.
pub(crate) const OUTPUT_ROW: f64 = 2.0;
/// The edge column of an output row of an expansion. Measured 2026-11-23 on the air routes, in a development
/// build: a row took 7.0 ns with its edge and 3.9 without.
pub(crate) const EDGE_ROW: f64 = 3.0;
/// A scanned key; keys and offsets are read sequentially.
pub(crate) const SCAN_KEY: f64 = 3.0;
/// A scanned entry whose key nothing after the join needs, while it needs the neighbour. Measured 2026-11-24:
/// distinct pairs of ends of paths of two edges took 70 ms where rows with the same first end were
/// consecutive, and 2.8 s where they were not (wiki-Vote, 4.5 million rows, development build).
pub(crate) const SCATTERED_ROW: f64 = 4.0;
/// A checked row. Measured 2026-11-20: 10 ns with one neighbour (LUBM-40 Q1), 35 ns in lists of some 160
/// (triangles of a power-law graph).
pub(crate) const CHECK_ROW: f64 = 9.0;
/// Each binary-search step of a check.
pub(crate) const CHECK_HALVING: f64 = 3.0;
/// A type check of a row.
pub(crate) const CHECK_TYPE: f64 = 9.0;
/// A leg of an intersection of one row. Measured 2026-11-21 on LUBM-40 Q7, later steps included: rows with 3
/// and 3 neighbours took 59 ns, rows with 8 and 21 took 216.
pub(crate) const LEG_ROW: f64 = 10.0;
/// A leg entry that an intersection lists, and merges or looks up.
pub(crate) const LEG_ENTRY: f64 = 5.0;
/// A leg entry looked up in the bit set of another leg, which was listed once for many rows.
pub(crate) const LEG_BITSET_ENTRY: f64 = 3.0;
/// An entry of the shortest leg probed in another leg: a check without locality.
pub(crate) const LEG_PROBE: f64 = 18.0;
/// A row of an intersection of two short legs. Measured 2026-11-21 on LUBM-40 Q7 and LUBM-10: 33 to 41 ns for
/// a row with 3 and 3 entries.
pub(crate) const SMALL_LIST_ROW: f64 = 14.0;
/// Each entry of either leg; see [`SMALL_LIST_ROW`].
pub(crate) const SMALL_LIST_ENTRY: f64 = 3.0;
/// A row of an intersection that groups its rows by the key of a leg.
pub(crate) const LEG_GROUP_ROW: f64 = 20.0;
/// Each distinct key of that leg; see [`LEG_GROUP_ROW`].
pub(crate) const LEG_GROUP_KEY: f64 = 60.0;
/// An input row of a general match, which visits all predicates if the predicate is a variable.
pub(crate) const MATCH_ROW: f64 = 150.0;
/// A statement listed by a general match. Measured 2026-11-23 on a social network, in a development build: 64
/// to 140 ns including later steps, where an expansion took 25.
pub(crate) const MATCH_ENTRY: f64 = 30.0;
/// An entry that a search along a path visits: its node is looked up among those visited. Measured 2026-11-24
/// on a power-law graph, in a development build: 33 ns.
pub(crate) const PATH_ENTRY: f64 = 30.0;
/// A filtered row: terms may have to be decoded.
pub(crate) const FILTER_ROW: f64 = 40.0;
/// A row filtered by id: a variable compared with a constant. Measured: 2 to 7 ns; strings compared by order
/// are decoded once each.
pub(crate) const FILTER_ID_ROW: f64 = 6.0;
/// An extended row.
pub(crate) const EXTEND_ROW: f64 = 60.0;
/// A row inserted into a hash table.
pub(crate) const BUILD_ROW: f64 = 60.0;
/// A hash table probe.
pub(crate) const PROBE_ROW: f64 = 30.0;
/// A row inserted into or probed in the hash table of one batch, which stays in the L1 cache.
pub(crate) const SEEDED_ROW: f64 = 15.0;
/// A grouped or deduplicated row.
pub(crate) const GROUP_ROW: f64 = 30.0;
/// A sorted row, times the binary logarithm of the number of rows.
pub(crate) const SORT_ROW: f64 = 15.0;
/// Assumed future cost of a row, for the comparison of partial orders.
pub(crate) const FUTURE_ROW: f64 = 12.0;

/// Cost of a check in lists of `degree` neighbours.
pub(crate) fn check(degree: f64) -> f64 {
    CHECK_ROW + CHECK_HALVING * (1.0 + degree).log2()
}

/// Cost of a probe in a leg whose keys have `degree` neighbours on average.
pub(crate) fn leg_probe(degree: f64) -> f64 {
    LEG_PROBE + CHECK_HALVING * degree.max(1.0).log2()
}

/// A statement of a path in one search from all nodes. Measured 2026-11-27 on the graphs of gMark, in a
/// development build: 8 to 17 ns.
pub(crate) const PATH_SHARED_ENTRY: f64 = 10.0;
/// Searches that condense components, as a multiple of one search from all nodes: four times the statements
/// are visited before it, and it takes some 50 ns for each.
pub(crate) const CONDENSED: f64 = 8.0;

/// Cost of a row of a distinct of this number of columns: a bit test for one, a hash table for several.
pub(crate) fn distinct(columns: usize) -> f64 {
    if columns == 1 { 2.0 * OUTPUT_ROW } else { GROUP_ROW }
}

/// Cost of sorting `rows` rows.
pub(crate) fn sort(rows: f64) -> f64 {
    SORT_ROW * rows * (2.0 + rows).log2()
}

//! Costs in nanoseconds of one thread, for rows that come in batches.
//!
//! Wukong's planner measured 0.1 to 0.4 us a row for one hash probe and one list (OSDI 2016, §4; its
//! code). Batches, arrays in place of a hash table, and prefetching divide that by ten and more; the
//! hand-written loops over plain arrays need 5 to 15 ns for a random expansion or check. Only ratios matter.

/// A row that is expanded: find the key, read the offsets.
pub(crate) const EXPAND_ROW: f64 = 12.0;
/// A row whose neighbours are counted, not listed.
pub(crate) const DEGREE_ROW: f64 = 9.0;
/// A row that a step puts out.
pub(crate) const OUTPUT_ROW: f64 = 2.0;
/// The edge of a row that an expansion puts out. Measured 2026-11-23 on the air routes, in a development
/// build: a row took 7.0 ns with its edge and 3.9 without.
pub(crate) const EDGE_ROW: f64 = 3.0;
/// A key of a scan; keys and their offsets come in order.
pub(crate) const SCAN_KEY: f64 = 3.0;
/// A row that is checked. Measured 2026-11-20: 10 ns with one neighbour (LUBM-40 Q1), 35 ns in lists of some
/// 160 (triangles of a power-law graph).
pub(crate) const CHECK_ROW: f64 = 9.0;
/// Each halving of a list of neighbours in a check.
pub(crate) const CHECK_HALVING: f64 = 3.0;
/// A row whose type is checked.
pub(crate) const CHECK_TYPE: f64 = 9.0;
/// A leg of an intersection of one row. Measured 2026-11-21 on LUBM-40 Q7 with what follows: rows with 3 and
/// 3 neighbours took 59 ns, rows with 8 and 21 took 216.
pub(crate) const LEG_ROW: f64 = 10.0;
/// A neighbour that an intersection lists, and merges or looks up.
pub(crate) const LEG_ENTRY: f64 = 5.0;
/// A neighbour that an intersection lists and looks up in a leg that has been listed once for many rows, as
/// bits.
pub(crate) const LEG_MARKED_ENTRY: f64 = 3.0;
/// A neighbour in the shortest leg that is looked up in another one instead: as a check, far from the last
/// one.
pub(crate) const LEG_PROBE: f64 = 18.0;
/// A row of an intersection of two legs that both are short, and each entry of either. Measured 2026-11-21 on
/// LUBM-40 Q7 and LUBM-10: 33 to 41 ns for a row with 3 and 3 entries.
pub(crate) const SHORT_ROW: f64 = 14.0;
/// See [`SHORT_ROW`].
pub(crate) const SHORT_ENTRY: f64 = 3.0;
/// A row of an intersection whose rows are put together by the key of a leg, and each such key.
pub(crate) const LEG_GROUP_ROW: f64 = 20.0;
/// See [`LEG_GROUP_ROW`].
pub(crate) const LEG_GROUP_KEY: f64 = 60.0;
/// A row that a general match looks at: it visits all predicates where that is a variable.
pub(crate) const MATCH_ROW: f64 = 150.0;
/// A statement that a general match lists. Measured 2026-11-23 on a social network, in a development build:
/// 64 to 140 ns with what follows, where an expansion took 25.
pub(crate) const MATCH_ENTRY: f64 = 30.0;
/// A row that a filter looks at: terms may have to be decoded.
pub(crate) const FILTER_ROW: f64 = 40.0;
/// A row whose id decides the filter: a variable against a constant. Measured: 2 to 7 ns; texts that are
/// compared by their order are decoded once each.
pub(crate) const FILTER_ID_ROW: f64 = 6.0;
/// A row that is extended.
pub(crate) const EXTEND_ROW: f64 = 60.0;
/// A row that goes into a hash table.
pub(crate) const BUILD_ROW: f64 = 60.0;
/// A row that is looked up in a hash table.
pub(crate) const PROBE_ROW: f64 = 30.0;
/// A row of a batch that is put into a table of the batch, or looked up there: it stays in the first cache.
pub(crate) const SEEDED_ROW: f64 = 15.0;
/// A row that is grouped or made distinct.
pub(crate) const GROUP_ROW: f64 = 30.0;
/// A row that is sorted, times the logarithm of the number of rows.
pub(crate) const SORT_ROW: f64 = 15.0;
/// What a row still to be worked on is assumed to cost later, when unfinished orders are compared.
pub(crate) const FUTURE_ROW: f64 = 12.0;

/// A check in lists of `degree` neighbours.
pub(crate) fn check(degree: f64) -> f64 {
    CHECK_ROW + CHECK_HALVING * (1.0 + degree).log2()
}

/// Looking one neighbour up in a leg whose keys have `degree` neighbours on average.
pub(crate) fn leg_probe(degree: f64) -> f64 {
    LEG_PROBE + CHECK_HALVING * degree.max(1.0).log2()
}

/// Sorting `rows` rows.
pub(crate) fn sort(rows: f64) -> f64 {
    SORT_ROW * rows * (2.0 + rows).log2()
}

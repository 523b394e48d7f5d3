//! Segment encoder: sorted entries to the section of a segment.
//!
//! # Shape
//! `body` (the target of the descriptors), `meta` (numbers of 8 bytes, little-endian, in the order of
//! [`write_meta`]), then the length of `meta` in 8 bytes. The metadata also serves as the padding that loads
//! at the end of the body may touch.

use crate::entries::{Entries, KeyRuns};
use crate::statistics_bytes::{flag, write_statistics};
use rustc_hash::FxHashMap;
use vervet_codec::{Array, Codes, KeySet, Packed, Stride, write_u64};
use vervet_model::{Direction, Error, ErrorKind, Id, Result, Tag, Watch};
use vervet_snapshot::SegmentStatistics;

/// Descriptors of everything in the body of a section.
#[derive(Clone, Debug)]
pub(crate) struct SegmentLayout {
    pub(crate) keys: KeySet,
    /// Offsets of the entries of each key, and the end; absent if every key has one entry.
    pub(crate) offsets: Option<Array>,
    pub(crate) neighbours: Codes,
    /// 0: default graph; else the number of the graph's vertex plus 1. Absent if all are 0.
    pub(crate) graphs: Option<Array>,
    /// 0: no edge; else the number of the edge plus 1. Absent if all are 0.
    pub(crate) edges: Option<Array>,
    /// Whether every entry has an edge.
    pub(crate) all_edges: bool,
}

/// Up to this many entries between vertices, neighbours stay unframed even if there are edges: the segment
/// fits into a cache, where the cost of an access matters as much as the cache miss.
const UNFRAMED_ENTRIES_MAX: usize = 1 << 16;

/// Offsets of fewer keys fit into a cache and are read fastest unframed. For more keys, a framed pair takes a
/// third of the bytes and so fewer cache misses: 16.8 against 22.9 ns for a random pair of 4 million
/// (2026-11-23).
const UNFRAMED_KEYS_MAX: usize = 1 << 16;

/// Decodes a value of an optional column.
pub(crate) fn optional_id(tag: Tag, value: u64) -> Id {
    if value == 0 { Id::UNBOUND } else { Id::new(tag, value - 1) }
}

/// Encodes an optional id; the inverse of [`optional_id`].
fn optional_value(bits: u64) -> u64 {
    if bits == 0 { 0 } else { Id::from_bits(bits).payload() + 1 }
}

/// The section of the segment of `entries`. `runs` are their keys, `others` their distinct neighbours in
/// ascending order (the keys of the other direction).
///
/// Path queries follow entries between vertices: their offsets are stored for speed while they fit into a
/// cache, and so are their neighbours unless there are many and they have edges. Entries from or to values,
/// and the edge column, may be framed.
///
/// `stride`: of the keys, for a partition that owns them all. `watch` gets a step for each entry, and is
/// checked before each part.
pub(crate) fn encode<E: Entries + ?Sized>(
    (predicate, direction, stride): (Id, Direction, Stride),
    entries: &E,
    runs: &KeyRuns,
    others: &[u64],
    statistics: &SegmentStatistics,
    watch: &Watch<'_>,
) -> Result<Vec<u8>> {
    let count = entries.len();
    assert!(count == 0 || !others.is_empty(), "entries have neighbours");
    debug_assert!(others.is_sorted_by(|a, b| a < b), "distinct neighbours ascend");
    debug_assert_eq!(runs.starts.len(), runs.keys.len() + 1, "one start for each key, and the end");
    debug_assert_eq!(runs.starts.last(), Some(&count), "the last key's entries end with all entries");
    let minimum = others.first().copied().unwrap_or(0);
    let maximum = others.last().copied().unwrap_or(0);
    let mut body = Vec::with_capacity(count * 4);
    let keys = KeySet::write_strided(&runs.keys, stride, &mut body).map_err(|_| {
        Error::new(ErrorKind::Unsupported, "a predicate has more than 4,294,967,294 keys in one direction")
    })?;
    let is_walked =
        runs.keys.last().is_none_or(|key| Id::from_bits(*key).is_vertex()) && statistics.vertices_only;
    let offsets = (runs.keys.len() != count).then(|| {
        let starts = runs.starts.iter().map(|start| *start as u64);
        if is_walked && runs.keys.len() < UNFRAMED_KEYS_MAX {
            Array::Packed(Packed::write(starts, runs.starts.len(), 0, count as u64, &mut body))
        } else {
            Array::write_small(starts, runs.starts.len(), 0, count as u64, &mut body)
        }
    });
    watch.check()?;
    let is_table_smaller = Codes::is_table_smaller(count, others.len(), minimum, maximum);
    let is_fast = is_walked && (!statistics.has_edges || count <= UNFRAMED_ENTRIES_MAX);
    let framed = if is_fast {
        None
    } else {
        let values = (0..count).map(|index| entries.neighbour(index));
        Codes::write_framed(
            values,
            count,
            is_table_smaller.then_some(others.len()),
            minimum,
            maximum,
            &mut body,
        )
    };
    let neighbours = if let Some(framed) = framed {
        framed
    } else if is_table_smaller {
        let codes: FxHashMap<u64, u64> = others.iter().copied().zip(0..).collect();
        let position = |index| *codes.get(&entries.neighbour(index)).expect("`others` has all neighbours");
        Codes::write_table(others, (0..count).map(position), count, &mut body)
    } else {
        let values = (0..count).map(|index| entries.neighbour(index));
        Codes::write_plain(values, count, minimum, maximum, &mut body)
    };
    watch.check()?;
    let graphs = statistics
        .has_named_graphs
        .then(|| write_column(count, |index| optional_value(entries.graph(index)), &mut body));
    let edges = statistics
        .has_edges
        .then(|| write_column(count, |index| optional_value(entries.edge(index)), &mut body));
    watch.advance(count as u64)?;
    let all_edges = E::COLUMNS && count > 0 && (0..count).all(|index| entries.edge(index) != 0);
    let parts = SegmentLayout { keys, offsets, neighbours, graphs, edges, all_edges };
    let meta = write_meta(predicate, direction, statistics, &parts);
    body.extend_from_slice(&meta);
    write_u64(meta.len() as u64, &mut body);
    body.shrink_to_fit();
    Ok(body)
}

/// Appends a column of `count` values.
fn write_column(count: usize, value: impl Fn(usize) -> u64 + Copy, body: &mut Vec<u8>) -> Array {
    let maximum = (0..count).map(value).max().unwrap_or(0);
    Array::write_small((0..count).map(value), count, 0, maximum, body)
}

/// The metadata of a section: predicate, direction, statistics, descriptors.
fn write_meta(
    predicate: Id,
    direction: Direction,
    statistics: &SegmentStatistics,
    parts: &SegmentLayout,
) -> Vec<u8> {
    let mut meta = Vec::new();
    write_u64(predicate.bits(), &mut meta);
    write_u64(u64::from(direction as u8), &mut meta);
    let more = if parts.all_edges { flag::ALL_EDGES } else { 0 };
    write_statistics(statistics, more, &mut meta);
    parts.keys.write_meta(&mut meta);
    parts.neighbours.write_meta(&mut meta);
    for part in [&parts.offsets, &parts.graphs, &parts.edges] {
        write_u64(u64::from(part.is_some()), &mut meta);
        if let Some(part) = part {
            part.write_meta(&mut meta);
        }
    }
    meta
}

//! Conformance cases for all implementations of a segment.
#![expect(clippy::cast_possible_truncation, reason = "small numbers of a test")]

use crate::Random;
use std::collections::BTreeSet;
use vervet_model::{Id, Tag};
use vervet_snapshot::{
    Cursor, EntryFilter, Expansion, GraphFilter, KeySketch, Segment, SegmentStatistics, Snapshot,
};

/// Asserts that every call of a segment agrees with `entries` (key, neighbour, graph, edge; sorted, not
/// empty). `strangers`: ids that are not keys but may be looked up; `graphs`: named graphs to filter by.
///
/// # Panics
/// If a result differs; `context` is part of the message.
pub fn check_segment(
    segment: &dyn Segment,
    entries: &[[Id; 4]],
    strangers: &[Id],
    graphs: &[Id],
    random: &mut Random,
    context: &str,
) {
    let keys: Vec<Id> = entries.iter().map(|e| e[0]).collect::<BTreeSet<_>>().into_iter().collect();
    let neighbours: Vec<Id> = entries.iter().map(|e| e[1]).collect::<BTreeSet<_>>().into_iter().collect();
    let statistics = segment.statistics();
    check_statistics(statistics, entries, &keys, &neighbours, context);
    for _ in 0..4 {
        let from = match random.below(4) {
            0 => Id::UNBOUND,
            1 => Id::from_bits(random.pick(&keys).bits() + 1),
            2 => Id::new(random.pick(&[Tag::Vertex, Tag::Edge, Tag::Literal, Tag::Long]), random.below(300)),
            _ => random.pick(&keys),
        };
        let limit = random.below(200) as usize;
        let mut listed = Vec::new();
        let next = segment.keys(from, limit, &mut listed).expect("whole");
        assert!(listed.len() <= limit, "{context}");
        let wanted: Vec<Id> = keys.iter().copied().filter(|key| *key >= from).collect();
        // Fewer keys than requested may be listed, but then the next key says where to continue.
        let end = listed.len();
        assert_eq!(listed, wanted[..end.min(wanted.len())], "{context}: keys from {from:?}");
        let after = wanted.get(end).copied();
        match (next, after) {
            (None, after) => assert_eq!(after, None, "{context}: keys from {from:?} end early"),
            (Some(next), Some(after)) => assert!(next <= after && (next > from || limit == 0), "{context}"),
            (Some(next), None) => assert!(next >= from, "{context}"),
        }
        let exact = statistics.exact;
        assert!(!exact || end == limit.min(wanted.len()) && next == after, "{context}: keys from {from:?}");

        let key = random.pick(&keys);
        let of_key: Vec<[Id; 3]> =
            entries.iter().filter(|e| e[0] == key).map(|e| [e[1], e[2], e[3]]).collect();
        let mut from = random.pick(&of_key);
        if random.one_in(3) {
            from[random.below(3) as usize] = Id::UNBOUND;
        } else if random.one_in(3) {
            from[random.below(3) as usize] = Id::vertex(random.below(400));
        }
        let mut found = Vec::new();
        segment.entries(key, from, limit, &mut found).expect("whole");
        let wanted = of_key.into_iter().filter(|entry| *entry >= from).take(limit);
        assert_eq!(found, wanted.collect::<Vec<_>>(), "{context}: entries of {key:?} from {from:?}");
    }

    let (mut listed, mut next) = (Vec::new(), Some(Id::UNBOUND));
    let step = 1 + random.below(40) as usize;
    while let Some(from) = next {
        next = segment.keys(from, step, &mut listed).expect("whole");
    }
    assert_eq!(listed, keys, "{context}: all keys, {step} at a time");

    let mut asked: Vec<Id> = Vec::new();
    for _ in 0..random.below(200) {
        let key = match random.below(5) {
            0 | 1 if !strangers.is_empty() => random.pick(strangers),
            2 if !asked.is_empty() => asked[asked.len() - 1],
            _ => random.pick(&keys),
        };
        asked.push(key);
    }
    for graph_filter in [
        GraphFilter::Default,
        GraphFilter::Named(random.pick(graphs)),
        GraphFilter::AnyNamed,
        GraphFilter::Any,
    ] {
        for parallel in [false, true] {
            let filter = EntryFilter { graph: graph_filter, parallel };
            let context = format!("{context}, {filter:?}");
            compare_filtered(segment, entries, &asked, filter, random, &context);
            // A single key may be read by other code than a batch.
            for key in asked.iter().take(3) {
                let context = format!("{context}, only {key:?}");
                compare_filtered(segment, entries, std::slice::from_ref(key), filter, random, &context);
            }
            compare_ranges(segment, entries, &asked, filter, random, &context);
        }
    }
}

/// Checks [`SegmentStatistics::plain_strings_only`] of a segment of `snapshot` against its distinct
/// neighbours.
///
/// # Panics
/// If it is wrong, or unknown in exact statistics; `context` is part of the message.
pub fn check_strings(snapshot: &dyn Snapshot, segment: &dyn Segment, entries: &[[Id; 4]], context: &str) {
    let is_string = |id: Id| id.is_stored_literal() && snapshot.is_plain_text(id).expect("whole");
    let strings = entries.iter().all(|entry| is_string(entry[1]));
    let statistics = segment.statistics();
    assert!(strings || !statistics.plain_strings_only, "{context}: other objects than strings");
    assert!(!statistics.exact || statistics.plain_strings_only == strings, "{context}: strings");
}

/// Checks the certain part of statistics, and the rest if they are exact.
fn check_statistics(
    statistics: &SegmentStatistics,
    entries: &[[Id; 4]],
    keys: &[Id],
    neighbours: &[Id],
    context: &str,
) {
    let literals_only = neighbours.iter().all(|n| n.is_stored_literal());
    let vertices_only = neighbours.iter().all(|n| n.is_vertex());
    let has_edges = entries.iter().any(|e| e[3].is_bound());
    let has_parallel = entries.windows(2).any(|pair| pair[0][..3] == pair[1][..3]);
    let has_named_graphs = entries.iter().any(|e| e[2].is_bound());
    if !statistics.exact {
        assert!(literals_only || !statistics.literals_only, "{context}");
        assert!(vertices_only || !statistics.vertices_only, "{context}");
        assert!(!has_edges || statistics.has_edges, "{context}");
        assert!(!has_parallel || statistics.has_parallel, "{context}: parallel entries");
        assert!(!has_named_graphs || statistics.has_named_graphs, "{context}");
        return;
    }
    assert_eq!(statistics.keys, keys.len() as u64, "{context}");
    assert_eq!(statistics.entries, entries.len() as u64, "{context}");
    assert_eq!(statistics.neighbours, neighbours.len() as u64, "{context}");
    assert_eq!(
        statistics.class_pairs.iter().map(|f| f.entries).sum::<u64>(),
        statistics.entries,
        "{context}"
    );
    assert_eq!(statistics.keys_of_class.iter().map(|k| k.1).sum::<u64>(), statistics.keys, "{context}");
    assert_eq!(statistics.literals_only, literals_only, "{context}");
    assert_eq!(statistics.vertices_only, vertices_only, "{context}");
    assert_eq!(statistics.has_edges, has_edges, "{context}");
    assert_eq!(statistics.has_parallel, has_parallel, "{context}: parallel entries");
    assert_eq!(statistics.has_named_graphs, has_named_graphs, "{context}");
    let degree_max = entries.chunk_by(|a, b| a[0] == b[0]).map(|run| run.len() as u64).max();
    assert_eq!(statistics.degree_max, degree_max.unwrap_or(0), "{context}");
    let degree_of = |run: &[[Id; 4]]| (run[0][0], run.len() as u64);
    let degrees: Vec<(Id, u64)> = entries.chunk_by(|a, b| a[0] == b[0]).map(degree_of).collect();
    let squares = degrees.iter().map(|(_, degree)| degree * degree).sum::<u64>();
    assert_eq!(statistics.degree_squares, squares, "{context}");
    let sketch = KeySketch::new(degrees, KeySketch::SAMPLES_MAX);
    assert_eq!(statistics.sketch, Some(sketch), "{context}");
}

fn compare_filtered(
    segment: &dyn Segment,
    entries: &[[Id; 4]],
    asked: &[Id],
    filter: EntryFilter,
    random: &mut Random,
    context: &str,
) {
    for (want_edges, want_graphs) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut found: Vec<(u32, [Id; 3])> = Vec::new();
        let mut cursor = Cursor::default();
        let mut out = Expansion::new(1 + random.below(70) as usize);
        (out.want_edges, out.want_graphs) = (want_edges, want_graphs);
        let mut calls = 0;
        while cursor.row < asked.len() {
            out.clear();
            segment.expand(asked, filter, &mut cursor, &mut out).expect("whole");
            calls += 1;
            assert!(out.len() <= out.capacity && calls < 100_000, "{context}");
            assert!(cursor.row == asked.len() || out.remaining_capacity() == 0, "{context}: stopped early");
            assert_eq!(out.neighbours.len(), out.len(), "{context}");
            assert_eq!(out.edges.len(), if want_edges { out.len() } else { 0 }, "{context}");
            assert_eq!(out.graphs.len(), if want_graphs { out.len() } else { 0 }, "{context}");
            for index in 0..out.len() {
                let graph = if want_graphs { out.graphs[index] } else { Id::UNBOUND };
                let edge = if want_edges { out.edges[index] } else { Id::UNBOUND };
                found.push((out.rows[index], [out.neighbours[index], graph, edge]));
            }
        }
        let rows = (0_u32..).zip(asked);
        let wanted: Vec<(u32, [Id; 3])> = rows
            .flat_map(|(row, key)| {
                expected(entries, *key, filter, want_edges).into_iter().map(move |e| (row, e))
            })
            .map(|(row, [neighbour, graph, edge])| {
                let graph = if want_graphs { graph } else { Id::UNBOUND };
                (row, [neighbour, graph, if want_edges { edge } else { Id::UNBOUND }])
            })
            .collect();
        assert_eq!(found, wanted, "{context}: expand, edges {want_edges}, graphs {want_graphs}");
    }
    let mut degrees = vec![7];
    segment.degrees(asked, filter, &mut degrees).expect("whole");
    let wanted: Vec<u64> =
        asked.iter().map(|key| expected(entries, *key, filter, false).len() as u64).collect();
    assert_eq!(degrees, wanted, "{context}: degrees");

    let other: Vec<Id> = asked
        .iter()
        .map(|key| match expected(entries, *key, EntryFilter::ALL, false) {
            found if !found.is_empty() && !random.one_in(3) => random.pick(&found)[0],
            _ => random.pick(entries)[1],
        })
        .collect();
    let has = |key: Id, neighbour: Id| {
        entries.iter().any(|e| e[0] == key && e[1] == neighbour && matches_filter(filter, e[2]))
    };
    let mut rows = vec![9];
    segment.check(asked, &other, filter, &mut rows).expect("whole");
    let wanted: Vec<u32> = std::iter::once(9)
        .chain((0..asked.len()).filter(|i| has(asked[*i], other[*i])).map(|i| i as u32))
        .collect();
    assert_eq!(rows, wanted, "{context}: check");
    for _ in 0..4 {
        let constant = if random.one_in(4) { Id::vertex(random.below(400)) } else { random.pick(entries)[1] };
        let mut rows = Vec::new();
        segment.check_constant(asked, constant, filter, &mut rows).expect("whole");
        let wanted: Vec<u32> =
            (0..asked.len()).filter(|i| has(asked[*i], constant)).map(|i| i as u32).collect();
        assert_eq!(rows, wanted, "{context}: check_constant {constant:?}");
    }
    for key in asked.iter().take(20) {
        let mut neighbours = Vec::new();
        segment.neighbours(*key, filter, &mut neighbours).expect("whole");
        let mut wanted: Vec<Id> = expected(entries, *key, filter, false).iter().map(|e| e[0]).collect();
        wanted.dedup();
        assert_eq!(neighbours, wanted, "{context}: neighbours of {key:?}");
    }
}

/// Checks that the ranges of a key hold all its entries, without duplicates.
fn compare_ranges(
    segment: &dyn Segment,
    entries: &[[Id; 4]],
    asked: &[Id],
    filter: EntryFilter,
    random: &mut Random,
    context: &str,
) {
    // The key with the most entries, and some others; each after rows that are not selected.
    let longest = entries.chunk_by(|a, b| a[0] == b[0]).max_by_key(|run| run.len()).map(|run| run[0][0]);
    let mut rows: Vec<Id> = asked.iter().copied().take(8).collect();
    rows.extend(longest);
    for (row, &key) in rows.iter().enumerate() {
        let want_edges = random.one_in(3);
        let (parts, entries_min) = (1 + random.below(9) as usize, 1 + random.below(3) as usize);
        let mut bounds = Vec::new();
        segment.split(key, parts, entries_min, &mut bounds).expect("whole");
        assert!(bounds.is_sorted_by(|a, b| a < b), "{context}: bounds of {key:?} {bounds:?}");
        let degree = expected(entries, key, EntryFilter::ALL, false);
        let is_cut = parts > 1 && degree.first().map(|e| e[0]) != degree.last().map(|e| e[0]);
        let is_long = degree.len() >= 2 * entries_min * parts;
        assert!(!(is_cut && is_long && bounds.is_empty()), "{context}: {key:?} is not cut");
        let mut found = Vec::new();
        let from = |at: usize| {
            at.checked_sub(1).map_or([Id::UNBOUND; 3], |at| [bounds[at], Id::UNBOUND, Id::UNBOUND])
        };
        for at in 0..=bounds.len() {
            let mut cursor = Cursor { resume: from(at), ..Cursor::at(row) };
            let mut out = Expansion::new(1 + random.below(20) as usize);
            (out.want_edges, out.end) = (want_edges, bounds.get(at).map(|bound| (row, *bound)));
            while cursor.row <= row {
                out.clear();
                segment.expand(&rows[..=row], filter, &mut cursor, &mut out).expect("whole");
                assert!(out.rows.iter().all(|of| *of as usize == row), "{context}");
                found.extend_from_slice(&out.neighbours);
            }
        }
        let wanted: Vec<Id> = expected(entries, key, filter, want_edges).iter().map(|e| e[0]).collect();
        assert_eq!(found, wanted, "{context}: stretches of {key:?} between {bounds:?}");
    }
}

fn matches_filter(filter: EntryFilter, graph: Id) -> bool {
    match filter.graph {
        GraphFilter::Default => !graph.is_bound(),
        GraphFilter::Named(name) => graph == name && graph.is_bound(),
        GraphFilter::AnyNamed => graph.is_bound(),
        GraphFilter::Any => true,
    }
}

/// The entries `(neighbour, graph, edge)` of a key that an expansion must return, by definition.
fn expected(entries: &[[Id; 4]], key: Id, filter: EntryFilter, want_edges: bool) -> Vec<[Id; 3]> {
    let mut found: Vec<[Id; 3]> = Vec::new();
    for [_, neighbour, graph, edge] in entries.iter().filter(|entry| entry[0] == key) {
        if !matches_filter(filter, *graph) || want_edges && !edge.is_bound() {
            continue;
        }
        let same = |other: &[Id; 3]| other[0] == *neighbour && other[1] == *graph;
        if !want_edges && !filter.parallel && found.last().is_some_and(same) {
            continue;
        }
        found.push([*neighbour, *graph, *edge]);
    }
    found
}

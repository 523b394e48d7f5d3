//! Statistics of all partitions together, from those of each: exact, since every entry, and every key of a
//! predicate that is not split, is in one partition.

use std::collections::BTreeMap;
use vervet_snapshot::{ClassId, ClassPairCount, KeySketch, SegmentStatistics};

/// Statistics of a segment with `neighbours` distinct neighbours, the keys of the other direction.
/// `samples_max` is that of the sketches.
pub(crate) fn merge(parts: &[&SegmentStatistics], neighbours: u64, samples_max: usize) -> SegmentStatistics {
    let all: Vec<&SegmentStatistics> = parts.iter().copied().filter(|one| one.entries > 0).collect();
    let sum = |of: fn(&SegmentStatistics) -> u64| all.iter().map(|one| of(one)).fold(0, u64::saturating_add);
    let any = |of: fn(&SegmentStatistics) -> bool| all.iter().any(|one| of(one));
    let every = |of: fn(&SegmentStatistics) -> bool| !all.is_empty() && all.iter().all(|one| of(one));
    let mut class_pairs: BTreeMap<(ClassId, ClassId), u64> = BTreeMap::new();
    let mut keys_of_class: BTreeMap<ClassId, u64> = BTreeMap::new();
    for one in &all {
        for pair in &one.class_pairs {
            *class_pairs.entry((pair.source, pair.target)).or_default() += pair.entries;
        }
        for (class, keys) in &one.keys_of_class {
            *keys_of_class.entry(*class).or_default() += keys;
        }
    }
    let class_pair = |((source, target), entries)| ClassPairCount { source, target, entries };
    let sketches: Option<Vec<&KeySketch>> = all.iter().map(|one| one.sketch.as_ref()).collect();
    SegmentStatistics {
        exact: every(|one| one.exact),
        keys: sum(|one| one.keys),
        entries: sum(|one| one.entries),
        neighbours,
        degree_max: all.iter().map(|one| one.degree_max).max().unwrap_or(0),
        degree_squares: sum(|one| one.degree_squares),
        sketch: sketches.map(|sketches| KeySketch::merge(sketches, samples_max)),
        has_named_graphs: any(|one| one.has_named_graphs),
        has_edges: any(|one| one.has_edges),
        has_parallel: any(|one| one.has_parallel),
        literals_only: every(|one| one.literals_only),
        plain_strings_only: every(|one| one.plain_strings_only),
        vertices_only: every(|one| one.vertices_only),
        class_pairs: class_pairs.into_iter().map(class_pair).collect(),
        keys_of_class: keys_of_class.into_iter().collect(),
        untyped_keys: sum(|one| one.untyped_keys),
    }
}

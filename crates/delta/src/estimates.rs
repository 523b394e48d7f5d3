//! Statistics of an overlay: exact flags and estimated counts.
//!
//! # Shape
//! Flags are widened by every added entry, and never narrowed (`has_parallel` by `Overlay::has_twin`). Counts
//! are recomputed whenever the cells of a predicate have doubled: entries are exact then; keys that the lower
//! segment lacks are estimated from up to [`SAMPLES`] cells spread evenly over the tree, each counting as one
//! divided by the cells of its key. Flows are those of the lower segment, scaled. A predicate that the store
//! does not know is assumed to lead from and to the largest classes of the store, in proportion to their
//! sizes: there is no better information, and empty class pairs would make the planner assume that there are
//! no entries.
//! # Why no false proof results
//! Classes belong to vertices as they were when the store was built; no vertex has changed class since,
//! because only a builder assigns classes. What can have changed is (a) the entries of a segment: then it has
//! an overlay, whose statistics are marked as not exact, and no conclusion is drawn from its class pairs; (b)
//! the types of a vertex: then the type segments have overlays, so no type is implied, nor are classes taken
//! for types. Class pairs of segments without overlay still cover all of their entries, between the classes
//! of that time. A later vertex has no entry in any of those, and a segment where it has one has an overlay;
//! so a proof that rests on exact class pairs holds for it, too: it does not occur as a subject or object of
//! a pattern over an exact segment.

use crate::Overlay;
use crate::cell::CellKey;
use std::sync::Arc;
use vervet_model::Id;
use vervet_snapshot::{ClassId, ClassPairCount, EntryFilter, SegmentStatistics};

/// Number of cells sampled for an estimate.
const SAMPLES: u64 = 256;
/// Number of classes over which entries of unknown classes are spread.
pub(crate) const SPREAD_CLASSES: usize = 16;

impl Overlay {
    /// Widens the flags for an added entry. `string`: the neighbour is certainly an `xsd:string`.
    pub(crate) fn widen_flags(&mut self, [neighbour, graph, edge]: [Id; 3], string: bool) {
        let known = &self.statistics;
        let (named, edged) = (graph.is_bound(), edge.is_bound());
        let (literal, vertex) = (neighbour.is_stored_literal(), neighbour.is_vertex());
        let fits = (known.has_named_graphs || !named)
            && (known.has_edges || !edged)
            && (!known.literals_only || literal)
            && (!known.plain_strings_only || string)
            && (!known.vertices_only || vertex);
        if !fits {
            let statistics = Arc::make_mut(&mut self.statistics);
            statistics.has_named_graphs |= named;
            statistics.has_edges |= edged;
            statistics.literals_only &= literal;
            statistics.plain_strings_only &= string;
            statistics.vertices_only &= vertex;
        }
    }

    /// Estimated number of distinct keys.
    fn keys_estimated(&self) -> u64 {
        let known = self.lower.as_ref().map_or(0, |lower| lower.statistics().keys);
        let cells = self.cells.len();
        let samples = cells.min(SAMPLES);
        if samples == 0 {
            return known;
        }
        let sampled = (0..samples).filter_map(|number| self.cells.nth(number * cells / samples));
        let keys: Vec<Id> = sampled.filter(|cell| cell.is_present()).map(|cell| cell.key).collect();
        let mut degrees = vec![0; keys.len()];
        if let Some(lower) = &self.lower {
            // If this fails, so will the query that could have used a better estimate.
            let _ = lower.degrees(&keys, EntryFilter::ALL, &mut degrees);
        }
        let new = keys.iter().zip(degrees).filter(|(_, degree)| *degree == 0).map(|(key, _)| {
            let below = |key| self.cells.sum_below(key).items;
            1.0 / (below(CellKey::end(*key)) - below(CellKey::start(*key))).max(1) as f64
        });
        let new = new.sum::<f64>() * cells as f64 / samples as f64;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "below the number of cells"
        )]
        let new = new.round() as u64;
        known + new
    }
}

/// Recomputes the counts of both directions. `classes`: the largest classes of the store and their sizes.
pub(crate) fn refresh(sides: &mut [Arc<Overlay>; 2], classes: &[(ClassId, u64)]) {
    let keys = [sides[0].keys_estimated(), sides[1].keys_estimated()];
    for (at, side) in sides.iter_mut().enumerate() {
        let side = Arc::make_mut(side);
        let entries = side.len();
        let before = match &side.lower {
            Some(lower) => lower.statistics().clone(),
            None => spread(&side.statistics, classes),
        };
        let statistics = Arc::make_mut(&mut side.statistics);
        let own = keys[at].clamp(entries.min(1), entries.max(1));
        *statistics = SegmentStatistics {
            exact: false,
            keys: own,
            entries,
            neighbours: keys[1 - at].clamp(entries.min(1), entries.max(1)),
            degree_max: before.degree_max.max(entries.div_ceil(own.max(1))),
            // The sketch remains that of the segment below; only proportions are read from it.
            degree_squares: scaled_squares(&before, entries),
            sketch: before.sketch.clone(),
            class_pairs: scaled_class_pairs(&before.class_pairs, entries),
            keys_of_class: scaled(&before.keys_of_class, own),
            untyped_keys: scaled_untyped(&before, own),
            has_named_graphs: statistics.has_named_graphs,
            has_edges: statistics.has_edges,
            has_parallel: statistics.has_parallel,
            literals_only: statistics.literals_only,
            plain_strings_only: statistics.plain_strings_only,
            vertices_only: statistics.vertices_only,
        };
    }
}

/// The sum of squares of degrees with the same ratio to the number of entries.
fn scaled_squares(before: &SegmentStatistics, entries: u64) -> u64 {
    let scaled = u128::from(before.degree_squares) * u128::from(entries) / u128::from(before.entries.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// The number of keys without types in the same proportion to `keys`.
fn scaled_untyped(before: &SegmentStatistics, keys: u64) -> u64 {
    let all: u128 = before.keys_of_class.iter().map(|(_, keys)| u128::from(*keys)).sum();
    let scaled = u128::from(before.untyped_keys) * u128::from(keys) / all.max(1);
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// Assumed statistics of a segment of which only the flags are known.
fn spread(statistics: &SegmentStatistics, classes: &[(ClassId, u64)]) -> SegmentStatistics {
    let sources: Vec<(ClassId, u64)> = classes.to_vec();
    let targets = classes.iter().copied().filter(|(class, _)| match *class {
        ClassId::LITERAL => !statistics.vertices_only,
        _ => !statistics.literals_only,
    });
    let mut targets: Vec<(ClassId, u64)> = targets.collect();
    if targets.is_empty() {
        targets.push((if statistics.literals_only { ClassId::LITERAL } else { ClassId::UNTYPED }, 1));
    }
    let class_pairs = sources.iter().flat_map(|(source, weight)| {
        let of = |(target, other): &(ClassId, u64)| ClassPairCount {
            source: *source,
            target: *target,
            // Sizes are below 2^60; only proportions matter.
            entries: (weight >> 20).max(1).saturating_mul((other >> 20).max(1)),
        };
        targets.iter().map(of).collect::<Vec<_>>()
    });
    SegmentStatistics {
        class_pairs: class_pairs.collect(),
        untyped_keys: sources
            .iter()
            .filter(|(class, _)| *class == ClassId::UNTYPED)
            .map(|(_, size)| size)
            .sum(),
        keys_of_class: sources.clone(),
        ..Default::default()
    }
}

/// The class pairs with `total` entries in the same proportions.
fn scaled_class_pairs(class_pairs: &[ClassPairCount], total: u64) -> Vec<ClassPairCount> {
    let weights: Vec<((ClassId, ClassId), u64)> = class_pairs
        .iter()
        .map(|class_pair| ((class_pair.source, class_pair.target), class_pair.entries))
        .collect();
    let scaled = scaled(&weights, total).into_iter();
    scaled.map(|((source, target), entries)| ClassPairCount { source, target, entries }).collect()
}

/// The weights with this total in the same proportions, none of them 0.
fn scaled<T: Copy>(weights: &[(T, u64)], total: u64) -> Vec<(T, u64)> {
    let sum: u128 = weights.iter().map(|(_, weight)| u128::from(*weight)).sum();
    let scale = |weight: u64| u128::from(weight) * u128::from(total) / sum.max(1);
    let scale = |weight: u64| u64::try_from(scale(weight)).unwrap_or(u64::MAX).max(1);
    weights.iter().map(|(of, weight)| (*of, scale(*weight))).collect()
}

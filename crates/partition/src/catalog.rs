//! What is known of all partitions together: predicates with exact statistics, graphs, counts.
//!
//! # Invariants
//! It is that of the stores of all partitions; a server that has some of them has the catalog of all.

use crate::statistics::merge;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;
use vervet_codec::{Damaged, Reader, write_u64};
use vervet_model::{Direction, Id, Result};
use vervet_snapshot::{KeySketch, Segment, SegmentStatistics, Snapshot};
use vervet_store::{Base, SplitPredicates, Store, read_statistics, write_statistics};

/// See the header of this file.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Catalog {
    /// Predicates with their statements, ascending.
    pub(crate) predicates: Vec<(Id, u64)>,
    /// For each predicate.
    pub(crate) segments: Vec<PredicateSegments>,
    /// Named graphs with their statements, ascending.
    pub(crate) graphs: Vec<(Id, u64)>,
    pub(crate) statements: u64,
}

/// The segments of a predicate over all partitions.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct PredicateSegments {
    /// Whether its in entries are where the subjects are.
    pub(crate) is_split: bool,
    /// Out, in.
    pub(crate) statistics: [SegmentStatistics; 2],
}

impl Catalog {
    /// The catalog of these stores, which are all partitions.
    pub(crate) fn of(stores: &[&Store], split: SplitPredicates) -> Result<Self> {
        let sum = |lists: &mut dyn Iterator<Item = &[(Id, u64)]>| -> Vec<(Id, u64)> {
            let mut counts: BTreeMap<Id, u64> = BTreeMap::new();
            lists.flatten().for_each(|(id, count)| *counts.entry(*id).or_default() += count);
            counts.into_iter().filter(|(_, count)| *count > 0).collect()
        };
        let predicates = sum(&mut stores.iter().map(|store| store.predicates()));
        let mut split: FxHashMap<u64, SegmentStatistics> =
            split.into_iter().map(|(id, statistics)| (id.bits(), statistics)).collect();
        let samples_max = KeySketch::samples_for(predicates.len());
        let segments = predicates.iter().map(|(predicate, _)| {
            let parts = |direction| {
                let part = |store: &&Store| store.segment_arc(*predicate, direction);
                let parts = stores.iter().map(part).collect::<Result<Vec<_>>>()?;
                Ok::<_, vervet_model::Error>(parts.into_iter().flatten().collect::<Vec<_>>())
            };
            let [out, reverse] = [parts(Direction::Out)?, parts(Direction::In)?];
            let keys = |parts: &[_]| parts.iter().map(|part: &Arc<dyn Segment>| part.statistics().keys).sum();
            let split = split.remove(&predicate.bits());
            let objects = split.as_ref().map_or_else(|| keys(&reverse), |statistics| statistics.keys);
            let subjects = keys(&out);
            let is_split = split.is_some();
            let reverse = split.unwrap_or_else(|| merge(&reverse, subjects, samples_max));
            Ok(PredicateSegments { is_split, statistics: [merge(&out, objects, samples_max), reverse] })
        });
        Ok(Self {
            segments: segments.collect::<Result<_>>()?,
            predicates,
            graphs: sum(&mut stores.iter().map(|store| store.graphs())),
            statements: stores.iter().map(|store| store.statement_count()).sum(),
        })
    }

    /// Appends its bytes.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        write_u64(self.statements, out);
        write_u64(self.graphs.len() as u64, out);
        for (graph, count) in &self.graphs {
            write_u64(graph.bits(), out);
            write_u64(*count, out);
        }
        write_u64(self.predicates.len() as u64, out);
        for ((predicate, count), segments) in self.predicates.iter().zip(&self.segments) {
            write_u64(predicate.bits(), out);
            write_u64(*count, out);
            write_u64(u64::from(segments.is_split), out);
            for statistics in &segments.statistics {
                write_statistics(statistics, 0, out);
                write_u64(statistics.untyped_keys, out);
            }
        }
    }

    /// Reads what [`Catalog::write`] wrote.
    ///
    /// # Errors
    /// Damaged bytes.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Damaged> {
        let mut catalog = Self { statements: reader.u64()?, ..Self::default() };
        for _ in 0..reader.list_length()? {
            catalog.graphs.push((Id::from_bits(reader.u64()?), reader.u64()?));
        }
        for _ in 0..reader.list_length()? {
            catalog.predicates.push((Id::from_bits(reader.u64()?), reader.u64()?));
            let is_split = reader.u64()? != 0;
            let mut statistics = || {
                let (mut statistics, _) = read_statistics(reader)?;
                statistics.untyped_keys = reader.u64()?;
                Ok(statistics)
            };
            catalog.segments.push(PredicateSegments { is_split, statistics: [statistics()?, statistics()?] });
        }
        let ascends = |list: &[(Id, u64)]| list.is_sorted_by(|one, next| one.0 < next.0);
        if ascends(&catalog.graphs) && ascends(&catalog.predicates) {
            Ok(catalog)
        } else {
            Err(Damaged("its lists are not in order"))
        }
    }
}

//! What is known of all partitions together: predicates with exact statistics, graphs, counts.
//!
//! # Invariants
//! It is that of the stores of all partitions; a server that has some of them has the catalog of all.

use crate::statistics::merge;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use vervet_codec::{Damaged, Reader, write_u64};
use vervet_model::{Direction, Id, Result};
use vervet_snapshot::{KeySketch, SegmentStatistics, Snapshot};
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

/// The sum of the counts of each id, ascending.
fn sum(lists: &mut dyn Iterator<Item = &[(Id, u64)]>) -> Vec<(Id, u64)> {
    let mut counts: BTreeMap<Id, u64> = BTreeMap::new();
    for (id, count) in lists.flatten() {
        let sum = counts.entry(*id).or_default();
        *sum = sum.saturating_add(*count);
    }
    counts.into_iter().collect()
}

impl Catalog {
    /// The catalog of these stores, which are all partitions.
    pub(crate) fn of(stores: &[&Store], split: SplitPredicates) -> Result<Self> {
        Ok(Self::merged(&[Self::piece(stores, split)?]))
    }

    /// What [`Catalog::merged`] needs of the stores of one server, which list the same predicates as those of
    /// all others, with zeros for what they do not have.
    pub(crate) fn piece(stores: &[&Store], split: SplitPredicates) -> Result<Self> {
        let predicates = sum(&mut stores.iter().map(|store| store.predicates()));
        let mut split: FxHashMap<u64, SegmentStatistics> =
            split.into_iter().map(|(id, statistics)| (id.bits(), statistics)).collect();
        let samples_max = KeySketch::samples_for(predicates.len());
        let segments = predicates.iter().map(|(predicate, _)| {
            let merged = |direction| {
                let part = |store: &&Store| store.segment_arc(*predicate, direction);
                let parts = stores.iter().map(part).collect::<Result<Vec<_>>>()?;
                let statistics: Vec<_> = parts.iter().flatten().map(|part| part.statistics()).collect();
                Ok::<_, vervet_model::Error>(merge(&statistics, 0, samples_max))
            };
            let split = split.remove(&predicate.bits());
            let is_split = split.is_some();
            let reverse = split.map_or_else(|| merged(Direction::In), Ok)?;
            Ok(PredicateSegments { is_split, statistics: [merged(Direction::Out)?, reverse] })
        });
        Ok(Self {
            segments: segments.collect::<Result<_>>()?,
            predicates,
            graphs: sum(&mut stores.iter().map(|store| store.graphs())),
            statements: stores.iter().map(|store| store.statement_count()).sum(),
        })
    }

    /// The catalog of these pieces, which are those of all servers.
    pub(crate) fn merged(pieces: &[Self]) -> Self {
        let counts = sum(&mut pieces.iter().map(|piece| piece.predicates.as_slice()));
        let present: Vec<(Id, u64)> = counts.iter().copied().filter(|(_, count)| *count > 0).collect();
        let samples_max = KeySketch::samples_for(present.len());
        let segments = present.iter().map(|(predicate, _)| {
            let of = |piece: &'_ Self| {
                let found = piece.predicates.binary_search_by_key(predicate, |(id, _)| *id);
                found.ok().and_then(|at| piece.segments.get(at)).cloned()
            };
            let all: Vec<PredicateSegments> = pieces.iter().filter_map(of).collect();
            let side = |at: usize| all.iter().map(|one| &one.statistics[at]).collect::<Vec<_>>();
            let [out, reverse] = [side(0), side(1)];
            let keys = |parts: &[&SegmentStatistics]| parts.iter().map(|one| one.keys).sum();
            let statistics =
                [merge(&out, keys(&reverse), samples_max), merge(&reverse, keys(&out), samples_max)];
            PredicateSegments { is_split: all.iter().any(|one| one.is_split), statistics }
        });
        let graphs = sum(&mut pieces.iter().map(|piece| piece.graphs.as_slice()));
        Self {
            segments: segments.collect(),
            predicates: present,
            graphs: graphs.into_iter().filter(|(_, count)| *count > 0).collect(),
            statements: pieces.iter().map(|piece| piece.statements).fold(0, u64::saturating_add),
        }
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

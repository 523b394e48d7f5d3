//! The edges from one vertex to another.
//!
//! # Cost
//! One check per label if no edge exists. So a transaction that looks for an edge and then adds it conflicts
//! only with transactions that add the same edge.

use super::ids::EVERY;
use super::names::Names;
use super::read::{NameFilter, edge_predicates, entries_from};
use rustc_hash::FxHashSet;
use std::ops::ControlFlow;
use vervet_gremlin::EdgeKey;
use vervet_model::{Direction, Id, Result};
use vervet_snapshot::Snapshot;

/// Appends the edges from `source` to `target` with one of these labels.
pub(crate) fn edges_between(
    snapshot: &dyn Snapshot,
    names: &mut Names,
    [source, target]: [u64; 2],
    labels: &NameFilter,
    out: &mut Vec<EdgeKey>,
) -> Result<()> {
    let (from, to) = (Id::from_bits(source), Id::from_bits(target));
    for predicate in edge_predicates(snapshot, names, labels)? {
        let Some(segment) = snapshot.segment(predicate, Direction::Out)? else { continue };
        let mut rows = Vec::with_capacity(1);
        segment.check(&[from], &[to], EVERY, &mut rows)?;
        if rows.is_empty() {
            continue;
        }
        let mut seen: FxHashSet<u64> = FxHashSet::default();
        entries_from(segment, from, [to, Id::UNBOUND, Id::UNBOUND], &mut |[neighbour, _, edge]| {
            if neighbour != to {
                return ControlFlow::Break(());
            }
            let key = EdgeKey { edge: edge.bits(), source, label: predicate.bits(), target };
            // A plain statement in several graphs is one edge.
            if seen.insert(key.edge) {
                out.push(key);
            }
            ControlFlow::Continue(())
        })?;
    }
    Ok(())
}

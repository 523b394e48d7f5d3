//! `DESCRIBE`: statements about resources.
//!
//! # Cost
//! Reads each segment once for a batch of resources. The resources are held in memory; their statements are
//! passed on batch by batch.

use crate::query::execute::Execution;
use crate::query::graph_sink::{GraphSink, SnapshotTerms};
use rustc_hash::FxHashSet;
use vervet_algebra::Slot;
use vervet_expression::Evaluator;
use vervet_kernel::plan::Profile;
use vervet_kernel::{Batch, Control, Flow};
use vervet_model::{Direction, Id, Result, Tag};
use vervet_snapshot::{Cursor, EntryFilter, Expansion, Snapshot};

/// Batch size: resources described at a time, and entries read at a time.
const CHUNK: usize = 1024;

/// Work units of the expansion of up to [`CHUNK`] subjects in one predicate.
const EXPANSION_WORK: usize = 1 << 7;

/// The description of each resource: its outgoing statements in all graphs, and those of the blank nodes
/// reachable through them.
pub(crate) fn describe(
    execution: &Execution<'_>,
    resources: &[Slot],
    control: &Control<'_>,
    sink: &mut dyn GraphSink,
) -> Result<Profile> {
    let snapshot: &dyn Snapshot = execution.snapshot;
    let mut wanted = DescribedResources { list: Vec::new(), seen: FxHashSet::default(), control };
    for resource in resources {
        if let Slot::Constant(term) = resource
            && let Some(id) = snapshot.lookup(term.as_ref())?
        {
            wanted.add(id)?;
        }
    }
    let (_, profile) = execution.run_under(control, &mut |_: &Evaluator<'_>, batch: &Batch| {
        for resource in resources {
            if let Slot::Variable(variable) = resource {
                (0..batch.rows).try_for_each(|row| wanted.add(batch.value(*variable, row)))?;
            }
        }
        Ok(Flow::More)
    })?;
    let source = SnapshotTerms(snapshot);
    let mut columns: [Vec<Id>; 3] = Default::default();
    let mut from = 0;
    while from < wanted.list.len() {
        let subjects = wanted.list[from..].iter().take(CHUNK).copied().collect::<Vec<Id>>();
        from += subjects.len();
        for statements in statements_of(snapshot, &subjects, control)?.chunks(CHUNK) {
            control.check()?;
            columns.iter_mut().for_each(Vec::clear);
            for &(row, predicate, object) in statements {
                if object.is_vertex() && snapshot.is_blank(object)? {
                    wanted.add(object)?;
                }
                for (column, id) in columns.iter_mut().zip([subjects[row as usize], predicate, object]) {
                    column.push(id);
                }
            }
            sink.batch(columns.each_ref().map(Vec::as_slice), &source)?;
        }
    }
    Ok(profile)
}

/// Resources to describe, without duplicates.
struct DescribedResources<'a> {
    list: Vec<Id>,
    seen: FxHashSet<Id>,
    control: &'a Control<'a>,
}

impl DescribedResources<'_> {
    fn add(&mut self, id: Id) -> Result<()> {
        if matches!(id.tag(), Tag::Vertex | Tag::Edge) && self.seen.insert(id) {
            self.list.push(id);
            self.control.grow(4 * size_of::<Id>() as u64)?;
        }
        Ok(())
    }
}

/// Positions of the subject, predicate and object of all statements about `subjects`, without duplicates,
/// grouped by subject.
fn statements_of(
    snapshot: &dyn Snapshot,
    subjects: &[Id],
    control: &Control<'_>,
) -> Result<Vec<(u32, Id, Id)>> {
    let filter = EntryFilter::ANY_GRAPH;
    let mut statements = Vec::new();
    let mut expansion = Expansion::new(CHUNK);
    let mut counted = 0;
    for &(predicate, _) in snapshot.predicates() {
        let Some(segment) = snapshot.segment(predicate, Direction::Out)? else { continue };
        let mut cursor = Cursor::default();
        while cursor.row < subjects.len() {
            control.work(EXPANSION_WORK)?;
            expansion.clear();
            segment.expand(subjects, filter, &mut cursor, &mut expansion)?;
            let entries = expansion.rows.iter().zip(&expansion.neighbours);
            statements.extend(entries.map(|(&row, &object)| (row, predicate, object)));
            control.recount(&mut counted, (statements.capacity() * size_of::<(u32, Id, Id)>()) as u64)?;
        }
    }
    statements.sort_unstable();
    // The same statement may be in several graphs.
    statements.dedup();
    control.recount(&mut counted, 0)?;
    Ok(statements)
}

//! Queries that replace the first steps of a traversal: planned and run like SPARQL queries.

use super::files;
use super::options::GremlinOptions;
use crate::algorithms::threads;
use crate::query::plans::TraversalPlans;
use crate::query::reading::plan_options;
use crate::query::run::{RunContext, run};
use crate::{Database, GraphSnapshot, QueryOptions};
use vervet_algebra::Query;
use vervet_expression::Evaluator;
use vervet_kernel::plan::Plan;
use vervet_kernel::{Batch, Control, Flow};
use vervet_model::{Error, ErrorKind, Result};
use vervet_snapshot::Snapshot;
use vervet_traversal::{FileFormat, Host, RowSink};

/// Runs a plan: on several threads if it is heavy, or not at all if the options refuse heavy queries.
pub(super) fn solve(
    database: &Database,
    snapshot: &dyn Snapshot,
    options: &GremlinOptions,
    plan: &Plan,
    control: &Control<'_>,
    sink: &mut RowSink<'_>,
) -> Result<()> {
    let context = RunContext {
        environment: database.environment(),
        driver: Some(database.driver()),
        seed: database.next_seed()?,
    };
    // The limits are those of the traversal.
    let threads = options.threads;
    let refuses = options.refuse_heavy;
    let options =
        QueryOptions { timeout: None, memory_limit_bytes: None, threads, ..QueryOptions::default() };
    if refuses && vervet_driver_local::is_heavy(plan, options.parallelism()) {
        return Err(Error::new(ErrorKind::Deadline, "a query of the traversal is expected to be heavy"));
    }
    let mut bulks: Vec<u64> = Vec::new();
    run(&context, snapshot, plan, &options, control, &mut |_: &Evaluator<'_>, batch: &Batch| {
        bulks.clear();
        for times in &batch.multiplicity {
            bulks.push(u64::try_from(times.get()).map_err(|_| bulk_too_large())?);
        }
        sink(&batch.columns, batch.rows, &bulks)?;
        Ok(Flow::More)
    })?;
    Ok(())
}

fn bulk_too_large() -> Error {
    Error::new(ErrorKind::Unsupported, "a traversal has more than 2^64 - 1 equal traversers")
        .with_hint("count them where they are made, or use dedup()")
}

/// The plan of such a query as human-readable text.
pub(super) fn plan_text(query: &Query, snapshot: &dyn Snapshot) -> Result<String> {
    let plan = vervet_planner::plan(query, snapshot, &plan_options(true, true), &Control::default())?;
    Ok(vervet_planner::explain(&plan, snapshot, &crate::query::plans::prefixes()))
}

/// A published version as the graph that a traversal reads.
pub(super) struct SnapshotHost<'d> {
    pub(super) database: &'d Database,
    pub(super) snapshot: GraphSnapshot,
    pub(super) options: &'d GremlinOptions,
}

impl Host for SnapshotHost<'_> {
    fn read(&self, read: &mut dyn FnMut(&dyn Snapshot) -> Result<()>) -> Result<()> {
        read(self.snapshot.as_snapshot())
    }

    fn solve(&self, query: &Query, control: &Control<'_>, sink: &mut RowSink<'_>) -> Result<bool> {
        let plan =
            TraversalPlans::plan(self.database.traversal_plans(), query, self.snapshot.published(), control)?;
        solve(self.database, self.snapshot.as_snapshot(), self.options, &plan, control, sink)?;
        Ok(true)
    }

    fn threads(&self) -> usize {
        threads(self.options.threads)
    }

    fn write_file(&self, name: &str, form: FileFormat, control: &Control<'_>) -> Result<()> {
        let path = files::to_write(self.options.files.as_deref(), name)?;
        files::write(self.snapshot.as_snapshot(), &path, form, control)
    }
}

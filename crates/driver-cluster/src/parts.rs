//! The parts of a pipeline that run at all servers, with steps between them that run where the query was
//! asked, within the limits of jobs.

use crate::moved::MovedRows;
use crate::partial_groups::Columns;
use crate::placement::Placement;
use crate::running::FRAGMENTS_MAX;
use crate::servers::Servers;
use crate::task::bytes_of;
use crate::worker::has_columns;
use vervet_driver_local::Parallelism;
use vervet_kernel::Shared;
use vervet_kernel::plan::{Pipeline, PlanStep, Step};

/// Maximum number of parts of a pipeline that run at all servers, with steps here between them.
const PLACEMENTS_MAX: usize = 4;

/// Rows move to their servers from a fourth of the rows at which a step is split into morsels: a request
/// takes less than a thread that is woken in vain.
const MOVED_OF_SPLIT: f64 = 4.0;

/// Bytes of a job without its computed terms and tables: with them it is below the limit of jobs.
const STEPS_BYTES_MAX: usize = 128 << 10;

/// The parts of a pipeline that run at all servers, each with bytes within all limits. `with_joins`: see
/// [`Placement::new`].
pub(crate) fn placements(
    servers: &Servers,
    pipeline: &Pipeline,
    columns: Columns,
    parallelism: Parallelism,
    with_joins: bool,
) -> Vec<Placement> {
    let rows_min = f64::from(parallelism.cut_policy.split_rows_min) / MOVED_OF_SPLIT;
    let (mut placements, mut from, mut fragments) = (Vec::new(), 0, 0);
    while placements.len() < PLACEMENTS_MAX
        && let Some(placement) = Placement::new(pipeline, from, columns, servers, rows_min, with_joins)
    {
        let mut job = placement.job(columns.all, servers.own());
        let joins = job.pipeline.steps.iter().filter(|step| matches!(step.step, Step::Join { .. })).count();
        job.tables = vec![MovedRows::default(); joins];
        fragments += job.fragments.len();
        let has_bytes = || bytes_of(&job).is_some_and(|bytes| bytes.len() <= STEPS_BYTES_MAX);
        if fragments > FRAGMENTS_MAX || !has_columns(fragments, columns.all, servers) || !has_bytes() {
            break;
        }
        from = placement.steps.end + 1;
        placements.push(placement);
    }
    placements
}

/// Whether a part of a pipeline, or of the right side of one of its joins, runs at all servers.
pub(crate) fn is_placed(
    servers: &Servers,
    pipeline: &Pipeline,
    columns: Columns,
    parallelism: Parallelism,
) -> bool {
    let is_right_placed = |(_, step): (usize, &PlanStep)| {
        step.step.nested().iter().any(|right| is_placed(servers, right, columns, parallelism))
    };
    !placements(servers, pipeline, columns, parallelism, true).is_empty()
        || Shared::joins_of(&pipeline.steps).into_iter().any(is_right_placed)
}

/// The number of the step at this place.
pub(crate) fn number_of(pipeline: &Pipeline, at: usize) -> usize {
    pipeline.steps[..at].iter().map(|step| step.step.number_steps()).sum()
}

//! Cost rule: whether a part of a plan is worth the device.
//!
//! The constants are estimates for a data center GPU and its link; none has been measured.

use crate::lower::DeviceStep;
use vervet_kernel::plan::{Plan, PlanStep};

/// Time of opening the device and its memory, in ns.
const OPEN_NS: f64 = 400e6;
/// Time of a strip without work, and of each step in it, in ns.
const STRIP_NS: f64 = 60_000.0;
const STEP_NS: f64 = 12_000.0;
/// Time of a row in a step, in ns.
const ROW_NS: f64 = 0.3;
/// Time of a byte over the link, in ns (40 GB/s), and of building a window's byte on the host.
const LINK_NS: f64 = 0.025;
const BUILD_NS: f64 = 0.5;
/// Advantage that the device must have by estimate.
const MARGIN: f64 = 1.3;

/// Whether running `steps` on the device is faster than the whole plan on `threads` threads.
pub(crate) fn is_worth_it(
    plan: &Plan,
    steps: &[PlanStep],
    lowered: &[DeviceStep<'_>],
    is_known: &dyn Fn(&DeviceStep<'_>) -> bool,
    threads: usize,
    is_open: bool,
) -> bool {
    let cpu_ns = plan.cost / (0.75 * threads.max(1) as f64).max(1.0);
    let rows: f64 = steps.iter().map(|step| step.rows).sum();
    let result = steps.last().map_or(0.0, |step| step.rows * 8.0 * step.keep.len() as f64);
    let missing: u64 = lowered
        .iter()
        .filter(|step| !is_known(step))
        .flat_map(|step| step.op.segments())
        .map(|used| 8 * used.segment.statistics().entries)
        .sum();
    let device_ns = if is_open { 0.0 } else { OPEN_NS }
        + STRIP_NS
        + STEP_NS * steps.len() as f64
        + ROW_NS * rows
        + LINK_NS * result
        + (LINK_NS + BUILD_NS) * missing as f64;
    MARGIN * device_ns < cpu_ns
}

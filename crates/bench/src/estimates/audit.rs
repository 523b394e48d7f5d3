//! The steps of plans with their estimated and actual rows.

use vervet::PlanStep;

/// A step of a plan after a run.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct AuditedStep {
    pub(super) query: String,
    pub(super) text: String,
    pub(super) estimated: f64,
    pub(super) rows: u64,
    pub(super) q_error: f64,
}

/// The steps of all queries of a benchmark.
#[derive(Default, Debug)]
pub(super) struct Audit {
    pub(super) queries: usize,
    pub(super) steps: Vec<AuditedStep>,
    /// Queries that exceeded a limit, and so have no rows to compare with.
    pub(super) unfinished: Vec<String>,
}

impl Audit {
    /// Adds the steps of a run.
    pub(super) fn add(&mut self, query: &str, steps: &[PlanStep]) {
        self.queries += 1;
        for (at, step) in steps.iter().enumerate() {
            let rows = step.rows.unwrap_or_default();
            self.steps.push(AuditedStep {
                query: query.to_owned(),
                text: format!("{} {}", step.operator, step.detail),
                estimated: step.estimated_rows,
                rows,
                q_error: q_error(step.estimated_rows, rows, may_stop_early(steps, at)),
            });
        }
    }
}

/// The q-error of an estimate, both numbers at least 1. `is_bound`: the actual number is at least `rows`.
fn q_error(estimated: f64, rows: u64, is_bound: bool) -> f64 {
    let (estimated, rows) = (estimated.max(1.0), rows.max(1) as f64);
    if is_bound && rows <= estimated { 1.0 } else { (estimated / rows).max(rows / estimated) }
}

/// Whether a slice may end the step at `at` before it has all of its rows: a slice follows it, or a step that
/// contains it, without a step between them that reads all of its input first.
fn may_stop_early(steps: &[PlanStep], at: usize) -> bool {
    let mut here = at;
    loop {
        let parent = steps[here].parent;
        for later in steps[here + 1..].iter().filter(|step| step.parent == parent) {
            match later.operator.as_str() {
                "slice" => return true,
                "group" | "order" => return false,
                _ => {}
            }
        }
        match parent.and_then(|parent| steps.iter().position(|step| step.id == parent)) {
            // A join reads its right side completely.
            Some(above) if steps[above].operator.starts_with("hash") => return false,
            Some(above) => here = above,
            None => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_zero_and_of_bounds() {
        assert_eq!(q_error(0.0, 0, false), 1.0);
        assert_eq!(q_error(0.1, 65, false), 65.0);
        assert_eq!(q_error(65.0, 0, false), 65.0);
        assert_eq!(q_error(65.0, 10, true), 1.0);
        assert_eq!(q_error(10.0, 65, true), 6.5);
    }

    #[test]
    fn slices_bound_the_steps_before_them() {
        let step = |id, parent, operator: &str| PlanStep {
            id,
            parent,
            operator: operator.to_owned(),
            detail: String::new(),
            estimated_rows: 1.0,
            rows: Some(1),
            nanoseconds: None,
            threads: 1,
        };
        let steps = [
            step(0, None, "scan"),
            step(1, None, "group"),
            step(2, None, "optional"),
            step(3, Some(2), "expand"),
            step(4, None, "hash join"),
            step(5, Some(4), "scan"),
            step(6, None, "slice"),
        ];
        let bounds: Vec<_> = (0..steps.len()).map(|at| may_stop_early(&steps, at)).collect();
        assert_eq!(bounds, [false, true, true, true, true, false, false]);
    }
}

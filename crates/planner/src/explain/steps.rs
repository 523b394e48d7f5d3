//! `EXPLAIN` as data, for programs that render plans: the same steps, words and figures as the text.

use super::{Prefix, Writer};
use vervet_kernel::plan::{Pipeline, Plan, Profile, Step};
use vervet_snapshot::Snapshot;

/// A step of a plan.
#[derive(Clone, PartialEq, Debug)]
pub struct PlanStep {
    /// Step number, in the order of the text: [`Pipeline::number_steps`].
    pub id: usize,
    /// The step that contains the pipeline of this step; `None`: the pipeline of the query.
    pub parent: Option<usize>,
    /// Name of the operator, one to three words.
    pub operator: String,
    /// Operands, as text.
    pub detail: String,
    /// Estimated output rows.
    pub estimated_rows: f64,
    /// Actual output rows, if the plan has run.
    pub rows: Option<u64>,
    /// Nanoseconds, summed over all threads and including nested steps, if the plan has run.
    pub nanoseconds: Option<u64>,
    /// Number of threads.
    pub threads: usize,
}

/// The steps of the plan; arguments as in [`super::explain_threads`].
#[must_use]
pub fn explain_steps(
    plan: &Plan,
    threads: &[usize],
    profile: Option<&Profile>,
    snapshot: &dyn Snapshot,
    prefixes: &[Prefix<'_>],
) -> Vec<PlanStep> {
    let mut steps = Vec::new();
    Writer { plan, snapshot, prefixes, threads }.steps(&plan.pipeline, None, profile, &mut steps);
    steps
}

impl Writer<'_> {
    fn steps(
        &self,
        pipeline: &Pipeline,
        parent: Option<usize>,
        profile: Option<&Profile>,
        out: &mut Vec<PlanStep>,
    ) {
        for step in &pipeline.steps {
            let id = out.len();
            let figures = profile.map(|profile| profile.steps.get(id).copied().unwrap_or_default());
            let text = self.step(&step.step, &step.keep);
            let (operator, detail) = words(&text);
            out.push(PlanStep {
                id,
                parent,
                operator: operator.to_owned(),
                detail: detail.to_owned(),
                estimated_rows: step.rows,
                rows: figures.map(|figures| figures.rows_out),
                nanoseconds: figures.map(|figures| figures.nanoseconds),
                threads: self.threads.get(id).copied().unwrap_or(1),
            });
            match &step.step {
                Step::Union { branches } => {
                    branches.iter().for_each(|branch| self.steps(branch, Some(id), profile, out));
                }
                other => {
                    for nested in other.nested() {
                        self.steps(nested, Some(id), profile, out);
                    }
                }
            }
        }
    }
}

/// Splits a line into operator and detail: the operator ends at a column boundary or before the first of
/// these words.
fn words(text: &str) -> (&str, &str) {
    if let Some((operator, detail)) = text.split_once("  ") {
        return (operator, detail.trim_start());
    }
    let end = [" on ", " where ", " if ", ": ", " ?"].iter().filter_map(|word| text.find(word)).min();
    let (operator, detail) = text.split_at(end.unwrap_or(text.len()));
    (operator, detail.trim_start_matches(':').trim_start())
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn lines_have_operators() {
        for (text, expected) in [
            ("scan       ?a ─p→ ?b", ("scan", "?a ─p→ ?b")),
            ("hash left join if ?a = ?b on ?c", ("hash left join", "if ?a = ?b on ?c")),
            ("hash join on ?c", ("hash join", "on ?c")),
            ("optional", ("optional", "")),
            ("empty: provably no solution", ("empty", "provably no solution")),
        ] {
            assert_eq!(words(text), expected);
        }
    }
}

//! Seeded optional parts: left joins evaluated from the distinct values of one variable of the rows.
//!
//! # Equivalence
//! `LeftJoin(L, R, C)` reads solutions of `R` that agree with a row of `L` in all shared variables. If every
//! solution of either side binds all shared variables, and `C` reads only variables that `R` binds, then
//! solutions of `R` with a value of a shared variable that no row has do not affect the result. So `R` may be
//! explored from the distinct values of one shared variable, as long as that is lateral
//! ([`crate::scope::is_lateral`]), and rows are matched by equality.
//! # Heuristic
//! The rows have runs of equal values ([`Runs`](crate::partial_plan::Runs)), so that there are fewer values
//! than rows, and exploration from each row would repeat work.

use crate::cost;
use crate::filter::Conjunct;
use crate::frontier::is_stable;
use crate::lower::{Planner, is_bag};
use crate::partial_plan::{PartialPlan, pipeline};
use crate::scope::{free, possible};
use vervet_algebra::{Node, VariableSet};
use vervet_kernel::BATCH_ROWS;
use vervet_kernel::plan::Step;
use vervet_model::Result;

/// Minimum average run length.
const RUN_MIN: f64 = 2.0;

impl Planner<'_> {
    /// Adds the optional part `right` with the condition `filters` to `partial`, evaluated from the values of
    /// one variable, if that is equivalent and may be cheaper; `rows`: estimated output rows.
    pub(crate) fn lower_seeded(
        &mut self,
        right: &Node,
        filters: &[Conjunct],
        partial: &PartialPlan,
        needed: &VariableSet,
        rows: f64,
    ) -> Result<Option<PartialPlan>> {
        let (bound, sure) = (possible(right), right.certain());
        let shared = partial.possible.clone().intersection(&bound);
        let means_the_same = shared.is_subset(&partial.certain)
            && shared.is_subset(&sure)
            && !shared.intersects(&self.parameters)
            && !is_bag(right)
            && filters
                .iter()
                .all(|filter| filter.is_movable() && !filter.has_exists && filter.variables.is_subset(&sure))
            && free(right).is_empty();
        let runs = |variable| (variable, partial.runs.of(variable).unwrap_or(partial.rows));
        let least = shared.iter().map(runs).min_by(|a, b| a.1.total_cmp(&b.1));
        let may_gain = |runs: f64| runs * RUN_MIN <= partial.rows || self.options.seeded == f64::INFINITY;
        let Some((seed, runs)) = least.filter(|(_, runs)| means_the_same && may_gain(*runs)) else {
            return Ok(None);
        };
        let mut inner = partial.seeds(seed, runs + partial.rows / BATCH_ROWS as f64);
        if !self.is_lateral_in(right, &inner) || !self.may_compare(1) {
            return Ok(None);
        }
        let wanted = needed.clone().intersection(&bound).union(&shared);
        self.join(right, &mut inner, &wanted, filters.to_vec())?;
        let is_sound =
            shared.is_subset(&inner.certain) && inner.steps.iter().all(|step| is_stable(&step.step));
        if inner.empty || inner.steps.is_empty() || !is_sound {
            return Ok(None);
        }
        let adds = needed.clone().intersection(&inner.possible).minus(&partial.possible);
        let mut outer = partial.clone();
        outer.cost = inner.cost + (partial.rows + inner.rows) * cost::SEEDED_ROW + rows * cost::OUTPUT_ROW;
        let step = Step::Seeded {
            inner: pipeline(inner.steps),
            seed,
            on: shared.iter().collect(),
            adds: adds.iter().collect(),
        };
        outer.push(step, rows);
        outer.possible.add_all(&adds);
        Ok(Some(outer))
    }
}

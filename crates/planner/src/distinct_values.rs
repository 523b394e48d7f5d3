//! Estimated rows of hash joins, and of operators that keep one row for each combination of values.

use crate::key_joins::{classes_tell, match_probability};
use crate::lower::Planner;
use crate::partial_plan::PartialPlan;
use vervet_algebra::{Variable, VariableSet};
use vervet_model::Result;
use vervet_snapshot::KeySketch;

/// Weight of the logarithm of the selectivity of a further variable of a join, relative to the one before.
const FURTHER_WEIGHT: f64 = 0.75;

impl Planner<'_> {
    /// Estimated rows of a join of `left` and `right` on `shared` variables.
    pub(crate) fn joined_rows(
        &mut self,
        left: &PartialPlan,
        right: &PartialPlan,
        shared: &VariableSet,
    ) -> Result<f64> {
        if shared.is_empty() {
            return Ok(left.rows * right.rows);
        }
        let mut matching = Vec::new();
        for variable in shared.iter() {
            matching.extend(self.matching(left, right, variable)?);
        }
        let by_keys = left.rows * right.rows / left.rows.max(right.rows).max(1.0);
        if matching.is_empty() {
            return Ok(by_keys);
        }
        // The most selective variable counts in full, each further one with less weight.
        matching.sort_by(f64::total_cmp);
        let weights = std::iter::successors(Some(1.0), |weight| Some(weight * FURTHER_WEIGHT));
        let log: f64 = matching.iter().zip(weights).map(|(one, weight): (&f64, f64)| weight * one.ln()).sum();
        Ok(left.rows * right.rows * log.exp())
    }

    /// The probability that a row of either side has the same value of a variable; `None`: unknown.
    fn matching(
        &mut self,
        left: &PartialPlan,
        right: &PartialPlan,
        variable: Variable,
    ) -> Result<Option<f64>> {
        let of = |partial: &PartialPlan| {
            partial.ends.iter().find(|(of, _)| *of == variable).map(|(_, ends)| ends.clone())
        };
        let (Some(left), Some(right)) = (of(left), of(right)) else { return Ok(None) };
        let mut sum = 0.0;
        for a in &*left {
            for b in &*right {
                let (of_a, of_b) = (self.segments_of(a.predicate)?, self.segments_of(b.predicate)?);
                let same = a.predicate == b.predicate && a.direction == b.direction;
                let (Some(side), Some(other)) = (of_a.side(a.direction), of_b.side(b.direction)) else {
                    return Ok(None);
                };
                let Some(one) = match_probability(side, other, same) else { return Ok(None) };
                sum += a.share * b.share * one;
            }
        }
        Ok((sum > 0.0).then(|| sum.min(1.0)))
    }

    /// Estimated number of distinct rows in these columns; `of_unknown`: values of a column that no pattern
    /// is known to have bound. `None`: such a column, and no assumption about it.
    pub(crate) fn distinct_rows(
        &mut self,
        partial: &PartialPlan,
        columns: &[Variable],
        of_unknown: Option<f64>,
    ) -> Result<Option<f64>> {
        let rows = partial.rows;
        // A variable has at most as many values as there were rows when it was bound.
        let when_bound = |variable: Variable| partial.runs.of(variable).unwrap_or(f64::INFINITY).max(1.0);
        if let [variable] = columns
            && let Some(values) = self.distinct_of_draws(partial, *variable)?
        {
            return Ok(Some(values.min(when_bound(*variable)).min(rows).max(rows.min(1.0))));
        }
        let (mut all, mut most) = (1.0, 1.0);
        for variable in columns {
            let values = self.distinct_values(partial, *variable)?;
            let Some(values) = values.or(of_unknown) else { return Ok(None) };
            all *= values;
            most *= values.min(when_bound(*variable));
        }
        // Cells hit by this number of throws (Cardenas 1975).
        let hit = -all * (-rows / all.max(1.0)).exp_m1();
        Ok(Some(hit.min(most).min(rows).max(rows.min(1.0))))
    }

    /// Estimated number of distinct values of a variable if each row has the value of a random entry of its
    /// ends; popular values repeat more often.
    fn distinct_of_draws(&mut self, partial: &PartialPlan, variable: Variable) -> Result<Option<f64>> {
        if partial.constant(variable).is_some() {
            return Ok(Some(1.0));
        }
        let Some((_, ends)) = partial.ends.iter().find(|(of, _)| *of == variable).cloned() else {
            return Ok(None);
        };
        let (mut values, mut known): (f64, Vec<&KeySketch>) = (0.0, Vec::new());
        for end in &*ends {
            let segments = self.segments_of(end.predicate)?;
            let Some(side) = segments.side(end.direction) else { continue };
            let statistics = side.statistics;
            let Some(sketch) = &statistics.sketch else { return Ok(None) };
            if classes_tell(std::iter::once(statistics)) {
                return Ok(None);
            }
            let common = known.iter().map(|other| sketch.overlap(other).keys / sketch.keys().max(1.0));
            let new = 1.0 - common.fold(0.0, f64::max).min(1.0);
            values += new * sketch.distinct(partial.rows * end.share);
            known.push(sketch);
        }
        Ok(Some(values))
    }

    /// Upper bound on the estimated number of distinct values of a variable.
    fn distinct_values(&mut self, partial: &PartialPlan, variable: Variable) -> Result<Option<f64>> {
        if partial.constant(variable).is_some() {
            return Ok(Some(1.0));
        }
        let Some((_, ends)) = partial.ends.iter().find(|(of, _)| *of == variable).cloned() else {
            return Ok(None);
        };
        let mut values = 0.0;
        for end in &*ends {
            let segments = self.segments_of(end.predicate)?;
            values += segments.side(end.direction).map_or(0.0, |side| side.statistics.keys as f64);
        }
        Ok(Some(values.max(1.0)))
    }
}

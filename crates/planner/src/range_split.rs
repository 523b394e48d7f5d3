//! Connected patterns cut in two between the sides of a comparison.
//!
//! # Shape
//! `?r :offers ?o . ?o :from ?x . ?r :offers ?q . ?q :until ?y FILTER(?y < ?x)`: explored from one end, all
//! pairs of `?o` and `?q` are listed before the condition rejects some. A variable is a cut if the patterns
//! without it are no longer connected, with the sides of the comparison in different components; here `?o`,
//! `?r` and `?q` are. The component of one side and the rest are then parts of a join on that variable, of
//! which the comparison is the range condition (`pair_conditions.rs`). The order of all patterns in one
//! search and the cuts are compared by cost.
//! # Cost
//! Cuts are searched only in expensive groups, and the most balanced ones are planned.

use crate::cost;
use crate::group_order::connected_except;
use crate::join_group::JoinGroup;
use crate::lower::Planner;
use crate::partial_plan::PartialPlan;
use crate::scope::expression_variables;
use vervet_algebra::{Expression, Node, Pattern, VariableSet};
use vervet_model::Result;

/// Minimum cost of the patterns in one search for planning cuts, as a multiple of
/// [`crate::PlanOptions::compare_from_cost`].
const CUT_FROM: f64 = 400.0;

/// Maximum number of patterns of a group that is cut.
const PATTERNS_MAX: usize = 64;

/// Maximum number of cuts that are planned.
const CUTS_MAX: usize = 4;

impl Planner<'_> {
    /// Orders the parts of a join in one search, or cut in two between the sides of a comparison.
    pub(crate) fn lower_joined_or_cut(
        &mut self,
        group: JoinGroup<'_>,
        partial: &mut PartialPlan,
        needed: &VariableSet,
    ) -> Result<()> {
        let is_constant = |one: &Expression| matches!(one, Expression::Constant(_));
        let is_comparison = |one: &Expression| match one {
            Expression::Compare(_, a, b) => !is_constant(a) && !is_constant(b),
            _ => false,
        };
        let may_cut = self.options.ranges
            && self.options.reorder
            && self.first_rows.is_none()
            && partial.unit
            && partial.possible.is_empty()
            && (3..=PATTERNS_MAX).contains(&group.patterns.len())
            && group.filters.iter().any(|one| is_comparison(&one.expression));
        if !may_cut {
            return self.lower_joined(group, &[], partial, needed);
        }
        let start = partial.clone();
        self.lower_joined(group.clone(), &[], partial, needed)?;
        if partial.empty || partial.cost - start.cost < CUT_FROM * self.options.compare_from_cost {
            return Ok(());
        }
        let total = |partial: &PartialPlan| partial.cost + partial.rows * cost::FUTURE_ROW;
        let cuts = self.cuts(&group)?;
        let mut best = total(partial) * self.options.cut;
        for parts in cuts {
            if !self.may_compare(2) {
                break;
            }
            let mut of_cut = start.clone();
            let group = JoinGroup { patterns: Vec::new(), ..group.clone() };
            self.lower_joined(group, &parts, &mut of_cut, needed)?;
            if total(&of_cut) < best {
                best = total(&of_cut);
                *partial = of_cut;
            }
        }
        Ok(())
    }

    /// The parts of the patterns on both sides of the cuts between the sides of comparisons, the most
    /// balanced ones first.
    fn cuts(&self, group: &JoinGroup<'_>) -> Result<Vec<[Node; 2]>> {
        let variables: VariableSet = group.patterns.iter().flat_map(|pattern| pattern.variables()).collect();
        let none = VariableSet::default();
        let mut cuts: Vec<(usize, Vec<bool>)> = Vec::new();
        for conjunct in group.filters.iter().filter(|one| one.is_movable() && !one.has_exists) {
            let Expression::Compare(_, a, b) = &*conjunct.expression else { continue };
            let (a, b) = (expression_variables(a), expression_variables(b));
            if a.is_empty() || b.is_empty() || a.intersects(&b) {
                continue;
            }
            for cut in variables.iter().filter(|one| !conjunct.variables.contains(*one)) {
                self.control.work(group.patterns.len() << 4)?;
                let except = VariableSet::from_iter([cut]);
                let components = connected_except(group.patterns.clone(), &none, &except, self.control)?;
                let of = |side: &VariableSet| {
                    components.iter().position(|one| {
                        let of_component: VariableSet =
                            one.iter().flat_map(|pattern| pattern.variables()).collect();
                        side.is_subset(&of_component)
                    })
                };
                let (Some(of_a), Some(of_b)) = (of(&a), of(&b)) else { continue };
                if of_a == of_b {
                    continue;
                }
                for side in [of_a, of_b].into_iter().filter_map(|at| components.get(at)) {
                    let is_inside = |one: &&Pattern| side.iter().any(|other| std::ptr::eq(*one, *other));
                    let inside: Vec<bool> = group.patterns.iter().map(is_inside).collect();
                    let size = side.len();
                    let smaller = size.min(group.patterns.len() - size);
                    let outside: Vec<bool> = inside.iter().map(|one| !one).collect();
                    if !cuts.iter().any(|(_, one)| *one == inside || *one == outside) {
                        cuts.push((smaller, inside));
                    }
                }
            }
        }
        cuts.sort_by_key(|(smaller, _)| std::cmp::Reverse(*smaller));
        cuts.truncate(CUTS_MAX);
        let part = |inside: &[bool], is_inside: bool| {
            let patterns = group.patterns.iter().zip(inside).filter(|(_, one)| **one == is_inside);
            Node::Patterns(patterns.map(|(pattern, _)| (*pattern).clone()).collect())
        };
        Ok(cuts.iter().map(|(_, inside)| [part(inside, true), part(inside, false)]).collect())
    }
}

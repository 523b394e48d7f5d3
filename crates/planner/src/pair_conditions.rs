//! Conditions on pairs of a hash join: comparisons of both sides as ranges, and semi-joins for parts of which
//! only existence matters.
//!
//! # Shape
//! A comparison (`<`, `<=`, `>`, `>=`) of an expression of each side becomes a condition of the join, which
//! then visits only rows of a range of values (`range_index.rs` of the kernel). Operands that are no
//! variables become columns first; an error leaves them unbound, and then the comparison is an error, too.
//! Patterns that share no variable, but a comparison, are also planned as parts of a join, since a search of
//! their common order would find only nested loops.
//!
//! Under set semantics an inner join whose right columns nothing but conditions reads is a semi-join.
//! # Source
//! Semi-joins for subexpressions whose columns die: C. Galindo-Legaria and M. Joshi, "Orthogonal Optimization
//! of Subqueries and Aggregation", SIGMOD 2001.

use crate::cost;
use crate::filter::Conjunct;
use crate::group_order::connected;
use crate::join_group::JoinGroup;
use crate::lower::Planner;
use crate::partial_plan::PartialPlan;
use crate::scope::{expression_variables, possible};
use std::rc::Rc;
use vervet_algebra::{Expression, Node, Pattern, VariableSet};
use vervet_kernel::plan::{JoinKind, Step};
use vervet_model::Result;

/// Assumed fraction of pairs for which a comparison holds.
pub(crate) const RANGE_SELECTIVITY: f64 = 0.4;

/// Variables of the sides of a join. A shared variable that a side may leave unbound is in neither set.
pub(crate) struct Sides {
    /// Those that the left side alone decides.
    left: VariableSet,
    right: VariableSet,
    /// Those bound to the same value on both sides.
    both: VariableSet,
}

impl Sides {
    /// Those of a join on `shared`.
    pub(crate) fn new(partial: &PartialPlan, right: &PartialPlan, shared: &VariableSet) -> Self {
        let both = shared.clone().intersection(&partial.certain).intersection(&right.certain);
        let of = |side: &PartialPlan| side.possible.clone().minus(shared);
        Self { left: of(partial), right: of(right), both }
    }

    /// Whether `conjunct` compares expressions of both sides by order; if so, whether its first operand is of
    /// the left side.
    fn comparison(&self, conjunct: &Conjunct) -> Option<bool> {
        let Expression::Compare(_, a, b) = &*conjunct.expression else { return None };
        if !conjunct.is_movable() || conjunct.has_exists {
            return None;
        }
        let (a, b) = (expression_variables(a), expression_variables(b));
        let is_of = |variables: &VariableSet, side: &VariableSet| {
            variables.intersects(side) && variables.is_subset(&side.clone().union(&self.both))
        };
        if is_of(&a, &self.left) && is_of(&b, &self.right) {
            return Some(true);
        }
        (is_of(&a, &self.right) && is_of(&b, &self.left)).then_some(false)
    }

    /// Whether a condition on pairs may test `conjunct`.
    fn is_testable(&self, conjunct: &Conjunct) -> bool {
        let all = self.left.clone().union(&self.right).union(&self.both);
        conjunct.is_movable() && !conjunct.has_exists && conjunct.variables.is_subset(&all)
    }
}

/// The condition of a join.
pub(crate) struct PairCondition {
    pub(crate) condition: Option<Expression>,
    /// Its comparisons of both sides.
    pub(crate) ranges: usize,
}

impl PairCondition {
    /// The variables that it reads.
    pub(crate) fn variables(&self) -> VariableSet {
        self.condition.as_ref().map(expression_variables).unwrap_or_default()
    }

    /// Fraction of pairs within the ranges.
    pub(crate) fn selectivity(&self) -> f64 {
        RANGE_SELECTIVITY.powi(i32::try_from(self.ranges).unwrap_or(i32::MAX))
    }

    /// Cost of sorting `right` rows and searching them for each of `left` rows.
    pub(crate) fn cost(&self, left: f64, right: f64) -> f64 {
        match self.ranges {
            0 => 0.0,
            _ => cost::sort(right) + left * cost::FILTER_ID_ROW * (2.0 + right).log2(),
        }
    }
}

impl Planner<'_> {
    /// The condition made of `conjuncts`, with operands of comparisons of both sides as columns of the sides.
    pub(crate) fn pair_condition(
        &mut self,
        conjuncts: Vec<Conjunct>,
        sides: &Sides,
        partial: &mut PartialPlan,
        right: &mut PartialPlan,
    ) -> Result<PairCondition> {
        let mut ranges = 0;
        let mut all = Vec::with_capacity(conjuncts.len());
        for conjunct in conjuncts {
            let comparison = sides.comparison(&conjunct);
            let mut expression = Rc::unwrap_or_clone(conjunct.expression);
            if let (Some(is_left_first), Expression::Compare(_, a, b)) = (comparison, &mut expression) {
                ranges += 1;
                let (of_left, of_right) = if is_left_first { (a, b) } else { (b, a) };
                self.compute(of_left, partial)?;
                self.compute(of_right, right)?;
            }
            all.push(expression);
        }
        let condition = match all.len() {
            0 => None,
            1 => all.pop(),
            _ => Some(Expression::And(all)),
        };
        Ok(PairCondition { condition, ranges })
    }

    /// Replaces an expression that is no variable by a variable that `side` computes.
    fn compute(&mut self, expression: &mut Expression, side: &mut PartialPlan) -> Result<()> {
        if matches!(expression, Expression::Variable(_)) {
            return Ok(());
        }
        let variable = self.new_variable()?;
        let computed = std::mem::replace(expression, Expression::Variable(variable));
        side.cost += side.rows * cost::EXTEND_ROW;
        side.possible.insert(variable);
        side.push(Step::Extend { variable, expression: computed }, side.rows);
        Ok(())
    }

    /// The condition of a left join; `conjuncts` are those of `condition`.
    pub(crate) fn left_condition(
        &mut self,
        condition: Option<&Expression>,
        conjuncts: Vec<Conjunct>,
        shared: &VariableSet,
        partial: &mut PartialPlan,
        right: &mut PartialPlan,
    ) -> Result<PairCondition> {
        let sides = Sides::new(partial, right, shared);
        let has_ranges = conjuncts.iter().any(|one| sides.comparison(one).is_some());
        match self.options.ranges && has_ranges {
            true => self.pair_condition(conjuncts, &sides, partial, right),
            false => Ok(PairCondition { condition: condition.cloned(), ranges: 0 }),
        }
    }

    /// Adds an inner join with `right`, or a semi-join where that is equivalent, and returns the conditions
    /// of `filters` that it does not test. `needed`: the variables that later steps read.
    pub(crate) fn join_with_conditions(
        &mut self,
        partial: &mut PartialPlan,
        mut right: PartialPlan,
        needed: &VariableSet,
        filters: Vec<Conjunct>,
    ) -> Result<Vec<Conjunct>> {
        let shared = partial.possible.clone().intersection(&right.possible);
        let sides = Sides::new(partial, &right, &shared);
        let is_of_pair = |one: &Conjunct| one.variables.intersects(&sides.right);
        let is_semi = self.set
            && self.stable
            && self.options.reorder
            && shared.is_subset(&sides.both)
            && !needed.intersects(&sides.right)
            && filters.iter().all(|one| !is_of_pair(one) || sides.is_testable(one));
        let (tested, left): (Vec<_>, Vec<_>) = filters.into_iter().partition(|one| match is_semi {
            true => is_of_pair(one),
            false => self.options.ranges && sides.comparison(one).is_some(),
        });
        let pairs = self.joined_rows(partial, &right, &shared)?;
        let (selectivity, tests) = (tested.iter().map(|one| one.selectivity).product::<f64>(), tested.len());
        let condition = match self.options.ranges {
            true => self.pair_condition(tested, &sides, partial, &mut right)?,
            false => {
                let all: Vec<_> = tested.into_iter().map(|one| Rc::unwrap_or_clone(one.expression)).collect();
                PairCondition { condition: (!all.is_empty()).then_some(Expression::And(all)), ranges: 0 }
            }
        };
        partial.cost += condition.cost(partial.rows, right.rows);
        let wanted =
            left.iter().fold(condition.variables().union(needed), |set, one| set.union(&one.variables));
        let wanted = wanted.intersection(&right.possible);
        if is_semi {
            let rows = partial.rows.min(pairs * selectivity);
            if tests > condition.ranges {
                // A probe ends at the first match.
                partial.cost += partial.rows.min(pairs) * cost::FILTER_ROW;
            }
            let kind = JoinKind::Semi(condition.condition);
            self.push_join(partial, right, kind, &shared, &wanted, rows);
        } else {
            let compared = condition.variables().intersection(&right.possible).minus(&partial.possible);
            let is_counted = match tests {
                0 => shared.is_empty(),
                tests => condition.ranges == tests && compared.iter().count() == 1,
            };
            let reads_right = needed.intersects(&sides.right) || left.iter().any(is_of_pair);
            let pairs = pairs * condition.selectivity();
            // Pairs of which no right column remains are counted, not listed.
            let rows = if is_counted && !reads_right { pairs.min(partial.rows) } else { pairs };
            let kind = JoinKind::Inner(condition.condition);
            self.push_join(partial, right, kind, &shared, &wanted, rows);
        }
        Ok(left)
    }

    /// Whether conditions compare variables of `partial` and of `node`, and nothing else connects them.
    pub(crate) fn is_linked_by_range(
        &self,
        node: &Node,
        partial: &PartialPlan,
        filters: &[Conjunct],
    ) -> bool {
        if !self.options.ranges || partial.unit {
            return false;
        }
        let of_node = possible(node);
        if of_node.intersects(&partial.possible) {
            return false;
        }
        let sides = Sides { left: partial.possible.clone(), right: of_node, both: VariableSet::default() };
        filters.iter().any(|one| sides.comparison(one).is_some())
    }

    /// The parts that comparisons link, and all other patterns. A part is a connected component of the
    /// patterns, or, if the linked components form several clusters, the join of each cluster.
    pub(crate) fn parts_linked_by_ranges<'q>(
        &self,
        group: &JoinGroup<'q>,
        partial: &PartialPlan,
    ) -> Result<(Vec<Node>, Vec<&'q Pattern>)> {
        let is_constant = |one: &Expression| matches!(one, Expression::Constant(_));
        let is_comparison = |one: &Conjunct| match &*one.expression {
            Expression::Compare(_, a, b) => !is_constant(a) && !is_constant(b),
            _ => false,
        };
        if !self.options.ranges || group.patterns.len() < 2 || !group.filters.iter().any(is_comparison) {
            return Ok((Vec::new(), Vec::new()));
        }
        let components = connected(group.patterns.clone(), &partial.possible, self.control)?;
        let sets: Vec<VariableSet> = components
            .iter()
            .map(|patterns| patterns.iter().flat_map(|pattern| pattern.variables()).collect())
            .collect();
        // Positions of the components that are linked, directly or through others.
        let mut clusters: Vec<Vec<usize>> = Vec::new();
        for conjunct in group.filters.iter().filter(|one| is_comparison(one)) {
            for (at, left) in sets.iter().enumerate() {
                self.control.work(sets.len() + 1)?;
                let rest = conjunct.variables.clone().minus(left);
                if rest.is_empty() || !conjunct.variables.intersects(left) {
                    continue;
                }
                let Some(other) = sets.iter().position(|one| rest.is_subset(one)) else { continue };
                let sides = Sides { left: left.clone(), right: rest, both: VariableSet::default() };
                if sides.comparison(conjunct).is_some() {
                    let mut linked = vec![at, other];
                    clusters.retain_mut(|one| {
                        let meets = one.contains(&at) || one.contains(&other);
                        if meets {
                            linked.append(one);
                        }
                        !meets
                    });
                    linked.sort_unstable();
                    linked.dedup();
                    clusters.push(linked);
                }
            }
        }
        clusters.sort_unstable();
        let cluster_of = |at: usize| clusters.iter().position(|one| one.contains(&at));
        let (mut parts, mut others) = (vec![Vec::new(); clusters.len()], Vec::new());
        for (at, patterns) in components.into_iter().enumerate() {
            self.control.work(sets.len() + 1)?;
            match cluster_of(at).and_then(|cluster| parts.get_mut(cluster)) {
                Some(of_cluster) => {
                    of_cluster.push(Node::Patterns(patterns.into_iter().cloned().collect()));
                }
                None => others.extend(patterns),
            }
        }
        let parts = match parts.len() {
            0 | 1 => parts.into_iter().flatten().collect(),
            _ => parts.into_iter().map(Node::Join).collect(),
        };
        Ok((parts, others))
    }
}

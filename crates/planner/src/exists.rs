//! Planning of `EXISTS`: correlated evaluation and semi-joins.
//!
//! # Shape
//! A pattern is planned from the rows of its filter, as an optional part is, and all variables that those
//! rows bind are parameters in it (SPARQL 1.1 §18.6, `substitute`). A plain pattern may also run once on its
//! own as the build side of a semi-join, whose condition compares both sides. One that names a vertex or a
//! value may become a distinct part of the join and start it: "posts with this tag" are few, and no other
//! post is read. A condition that *is* an `EXISTS`, or the negation of one, keeps or drops rows; in any other
//! expression a variable added by the planner holds whether there was a solution.

use crate::cost;
use crate::equalities::equality_key;
use crate::filter::{Conjunct, split, together};
use crate::join_group::JoinGroup;
use crate::lower::Planner;
use crate::partial_plan::{PartialPlan, pipeline};
use crate::scope::{free, looks_at, possible};
use oxrdf::Term;
use std::rc::Rc;
use vervet_algebra::{Exists, Expression, Node, Slot, VariableSet};
use vervet_kernel::plan::{JoinKind, SemiJoinKind, Step};
use vervet_model::Result;
use vervet_model::vocab::RDF_TYPE;

/// Maximum number of variables of a semi-join that rows of either side may leave unbound: the join builds an
/// index for each set of them that a row binds.
const IN_DOUBT_MAX: usize = 4;

impl Planner<'_> {
    /// Applies conditions at the end of `partial`.
    pub(crate) fn apply(&mut self, filters: Vec<Conjunct>, partial: &mut PartialPlan) -> Result<()> {
        for filter in together(filters) {
            match &*filter.expression {
                Expression::Exists(exists) => self.lower_exists(exists, SemiJoinKind::Semi, partial)?,
                Expression::Not(inner) if matches!(**inner, Expression::Exists(_)) => {
                    if let Expression::Exists(exists) = &**inner {
                        self.lower_exists(exists, SemiJoinKind::Anti, partial)?;
                    }
                }
                _ => {
                    let expression =
                        self.without_patterns(Rc::unwrap_or_clone(filter.expression), partial)?;
                    partial.cost += partial.rows * cost::FILTER_ROW;
                    partial.push(Step::Filter(expression), partial.rows * filter.selectivity);
                }
            }
        }
        Ok(())
    }

    /// Replaces each `EXISTS` of the expression by a variable, which the steps added to `partial` bind.
    pub(crate) fn without_patterns(
        &mut self,
        mut expression: Expression,
        partial: &mut PartialPlan,
    ) -> Result<Expression> {
        if !expression.has_exists() {
            return Ok(expression);
        }
        self.replace_exists(&mut expression, partial)?;
        Ok(expression)
    }

    fn replace_exists(&mut self, expression: &mut Expression, partial: &mut PartialPlan) -> Result<()> {
        if let Expression::Exists(exists) = expression {
            let variable = self.new_variable()?;
            self.lower_exists(exists, SemiJoinKind::Mark(variable), partial)?;
            *expression = Expression::Variable(variable);
            return Ok(());
        }
        let mut result = Ok(());
        expression.for_each_child_mut(&mut |child| {
            if result.is_ok() {
                result = self.replace_exists(child, partial);
            }
        });
        result
    }

    fn lower_exists(
        &mut self,
        exists: &Exists,
        semi_join_kind: SemiJoinKind,
        partial: &mut PartialPlan,
    ) -> Result<()> {
        if partial.empty {
            return Ok(());
        }
        let mut inner = partial.nested_by_row();
        let parameters = self.parameters.clone();
        self.parameters.add_all(&partial.possible);
        let no_variables = VariableSet::default();
        let planned = self.with_bag_semantics_if(false, |planner| {
            planner.join(&exists.pattern, &mut inner, &no_variables, Vec::new())
        });
        self.parameters = parameters;
        planned?;
        let certainly = match (inner.empty, inner.steps.is_empty()) {
            (true, _) => Some(false),
            (_, true) => Some(true),
            _ => None,
        };
        match (certainly, semi_join_kind) {
            (Some(true), SemiJoinKind::Semi) | (Some(false), SemiJoinKind::Anti) => return Ok(()),
            (Some(false), SemiJoinKind::Semi) | (Some(true), SemiJoinKind::Anti) => {
                partial.make_empty();
                return Ok(());
            }
            _ => {}
        }
        let found = (inner.rows / partial.rows.max(f64::MIN_POSITIVE)).clamp(0.05, 0.95);
        let rows = match semi_join_kind {
            SemiJoinKind::Semi => partial.rows * found,
            SemiJoinKind::Anti => partial.rows * (1.0 - found),
            SemiJoinKind::Mark(_) => partial.rows,
        };
        let mut lateral = partial.clone();
        lateral.cost = inner.cost + partial.rows * cost::OUTPUT_ROW;
        if let SemiJoinKind::Mark(variable) = semi_join_kind {
            lateral.possible.insert(variable);
            lateral.certain.insert(variable);
        }
        let row = self.new_variable()?;
        lateral.push(Step::Exists { inner: pipeline(inner.steps), row, semi_join_kind }, rows);
        *partial = match self.semi_join(exists, semi_join_kind, partial, rows)? {
            Some(hashed) if self.options.prefers_alone(hashed.cost, lateral.cost) => hashed,
            _ => lateral,
        };
        Ok(())
    }

    /// Finds an `EXISTS` condition on a join that can become a part of the join: its position, and the part,
    /// which is the distinct projection of its pattern to the variables shared with the join. Requirements:
    /// the pattern is plain ([`is_plain`]) and has an anchor ([`is_anchored`]), the join and the pattern bind
    /// all shared variables in every solution, and `partial` binds nothing.
    pub(crate) fn exists_as_join_operand(
        &mut self,
        group: &JoinGroup<'_>,
        partial: &PartialPlan,
    ) -> Option<(usize, Node)> {
        if !partial.unit || !self.options.reorder || !self.parameters.is_empty() {
            return None;
        }
        let joined = group.certain();
        let found = group.filters.iter().enumerate().find_map(|(at, filter)| {
            let Expression::Exists(exists) = &*filter.expression else { return None };
            let pattern = &exists.pattern;
            let outer: VariableSet = exists.outer.iter().copied().collect();
            let means_the_same = is_plain(pattern)
                && !exists.outer.is_empty()
                && outer.is_subset(&joined)
                && outer.is_subset(&pattern.certain())
                && free(pattern).is_empty();
            (means_the_same && is_anchored(pattern)).then(|| {
                let input = Box::new(pattern.clone());
                (at, Node::Distinct(Box::new(Node::Project { input, variables: exists.outer.clone() })))
            })
        })?;
        self.may_compare(2).then_some(found)
    }

    /// A semi-join with the solutions of the pattern, where it is equivalent and may be cheaper. Variables
    /// that some rows do not bind are compared where they are bound.
    ///
    /// Conditions of the pattern that read variables of the row become the condition of the join. One that
    /// compares a variable of each side for equality is also a key.
    fn semi_join(
        &mut self,
        exists: &Exists,
        semi_join_kind: SemiJoinKind,
        partial: &PartialPlan,
        rows: f64,
    ) -> Result<Option<PartialPlan>> {
        if let SemiJoinKind::Mark(_) = semi_join_kind {
            return Ok(None);
        }
        let (pattern, correlated) = match &exists.pattern {
            Node::Filter { input, condition } => {
                // A value of the row, which a condition reads, replaces a variable that the input need not
                // bind.
                let of_row = partial.possible.clone().minus(&input.certain());
                let (own, mut conjuncts) = (possible(input).minus(&of_row), Vec::new());
                split(condition, &mut conjuncts);
                let (inside, correlated): (Vec<_>, Vec<_>) =
                    conjuncts.into_iter().partition(|one| one.variables.is_subset(&own));
                let inside: Vec<_> =
                    inside.into_iter().map(|one| Rc::unwrap_or_clone(one.expression)).collect();
                let pattern = match inside.is_empty() {
                    true => (**input).clone(),
                    false => Node::Filter { input: input.clone(), condition: Expression::And(inside) },
                };
                (pattern, correlated)
            }
            pattern => (pattern.clone(), Vec::new()),
        };
        let (bound, sure) = (possible(&pattern), pattern.certain());
        let mut shared = partial.possible.clone().intersection(&bound);
        let readable = partial.possible.clone().union(&bound);
        // A variable that a row or a solution leaves unbound agrees with any value.
        let in_doubt = shared.clone().minus(&partial.certain.clone().intersection(&sure));
        let means_the_same = is_plain(&pattern)
            && in_doubt.iter().count() <= IN_DOUBT_MAX
            && !looks_at(&pattern).intersects(&shared)
            && !shared.intersects(&self.parameters)
            && free(&pattern).is_empty()
            && correlated
                .iter()
                .all(|one| !one.has_exists && one.is_movable() && one.variables.is_subset(&readable));
        if !means_the_same || partial.rows < self.options.compare_from_rows || !self.may_compare(1) {
            return Ok(None);
        }
        let mut hashed = partial.clone();
        let mut right = pattern;
        let across = |one: &Conjunct| match &*one.expression {
            Expression::Equal(a, b) | Expression::SameTerm(a, b) => match (&**a, &**b) {
                (&Expression::Variable(a), &Expression::Variable(b)) => [(a, b), (b, a)]
                    .into_iter()
                    .find(|(of_row, local)| partial.certain.contains(*of_row) && sure.contains(*local))
                    .filter(|(of_row, local)| !bound.contains(*of_row) && !partial.possible.contains(*local)),
                _ => None,
            },
            _ => None,
        };
        if let Some((of_row, local)) = correlated.iter().find_map(across) {
            let key = self.new_variable()?;
            hashed.cost += hashed.rows * cost::EXTEND_ROW;
            hashed.possible.insert(key);
            hashed.certain.insert(key);
            hashed.push(Step::Extend { variable: key, expression: equality_key(of_row) }, partial.rows);
            let expression = equality_key(local);
            right = Node::Extend { input: Box::new(right), variable: key, expression };
            shared.insert(key);
        }
        let of_condition =
            correlated.iter().fold(VariableSet::default(), |set, one| set.union(&one.variables));
        let adds = of_condition.intersection(&bound).minus(&shared);
        let needed = shared.clone().union(&adds);
        let right =
            self.with_bag_semantics_if(false, |planner| planner.alone(&right, &needed, Vec::new()))?;
        if right.empty {
            return Ok(None);
        }
        let condition = match correlated.len() {
            0 => None,
            1 => correlated.into_iter().next().map(|one| Rc::unwrap_or_clone(one.expression)),
            _ => Some(Expression::And(
                correlated.into_iter().map(|one| Rc::unwrap_or_clone(one.expression)).collect(),
            )),
        };
        // An index of extreme values has one row for each key.
        if condition.as_ref().is_some_and(|condition| !matches!(condition, Expression::Compare(..))) {
            let pairs = match shared.is_empty() {
                true => partial.rows * right.rows,
                false => self.joined_rows(partial, &right, &shared)?,
            };
            hashed.cost += pairs * cost::FILTER_ROW;
        }
        let kind = match semi_join_kind {
            SemiJoinKind::Anti => JoinKind::Anti(condition),
            _ => JoinKind::Semi(condition),
        };
        self.push_join(&mut hashed, right, kind, &shared, &adds, rows);
        Ok(Some(hashed))
    }
}

/// Whether the pattern has an anchor: a constant vertex or value other than a type.
fn is_anchored(node: &Node) -> bool {
    let is_type =
        |slot: &Slot| matches!(slot, Slot::Constant(Term::NamedNode(name)) if name.as_str() == RDF_TYPE);
    match node {
        Node::Patterns(patterns) => patterns.iter().any(|pattern| {
            pattern.subject.variable().is_none()
                || pattern.object.variable().is_none() && !is_type(&pattern.predicate)
        }),
        Node::Values { .. } => true,
        Node::Join(nodes) => nodes.iter().any(is_anchored),
        Node::Filter { input, .. } => is_anchored(input),
        _ => false,
    }
}

/// Whether pre-binding variables of the pattern and filtering its solutions are equivalent.
pub(crate) fn is_plain(node: &Node) -> bool {
    match node {
        Node::Patterns(_) | Node::Values { .. } => true,
        // A constant that occurs in no statement still has an empty path to itself.
        Node::Path(path) => !path.path.is_nullable(),
        Node::Join(nodes) | Node::Union(nodes) => nodes.iter().all(is_plain),
        Node::Filter { input, condition } => {
            !condition.has_exists() && !condition.is_volatile() && is_plain(input)
        }
        _ => false,
    }
}

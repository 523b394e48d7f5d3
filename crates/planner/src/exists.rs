//! Planning of `EXISTS`: correlated evaluation and semi-joins.
//!
//! # Shape
//! A pattern is planned from the rows of its filter, as an optional part is, and all variables that those
//! rows bind are parameters in it (SPARQL 1.1 §18.6, `substitute`). A plain pattern may also run once on its
//! own as the build side of a semi-join. One that names a vertex or a value may become a distinct part of the
//! join and start it: "posts with this tag" are few, and no other post is read. A condition that *is* an
//! `EXISTS`, or the negation of one, keeps or drops rows; in any other expression a variable added by the
//! planner holds whether there was a solution.

use crate::cost;
use crate::filter::{Conjunct, together};
use crate::join_group::JoinGroup;
use crate::lower::Planner;
use crate::partial_plan::{PartialPlan, pipeline};
use crate::scope::{free, possible};
use oxrdf::Term;
use std::rc::Rc;
use vervet_algebra::{Exists, Expression, Node, Slot, VariableSet};
use vervet_kernel::plan::{JoinKind, SemiJoinKind, Step};
use vervet_model::Result;
use vervet_model::vocab::RDF_TYPE;

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
        let mut inner = partial.nested();
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
            Some(hashed) if hashed.cost < lateral.cost => hashed,
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

    /// A semi-join with the solutions of the pattern, where it is equivalent and may be cheaper.
    fn semi_join(
        &mut self,
        exists: &Exists,
        semi_join_kind: SemiJoinKind,
        partial: &PartialPlan,
        rows: f64,
    ) -> Result<Option<PartialPlan>> {
        let kind = match semi_join_kind {
            SemiJoinKind::Semi => JoinKind::Semi,
            SemiJoinKind::Anti => JoinKind::Anti,
            SemiJoinKind::Mark(_) => return Ok(None),
        };
        let pattern = &exists.pattern;
        let shared = partial.possible.clone().intersection(&possible(pattern));
        let means_the_same = is_plain(pattern)
            && shared.is_subset(&partial.certain)
            && shared.is_subset(&pattern.certain())
            && !shared.intersects(&self.parameters)
            && free(pattern).is_empty();
        if !means_the_same || partial.rows < self.options.compare_from_rows || !self.may_compare(1) {
            return Ok(None);
        }
        let right =
            self.with_bag_semantics_if(false, |planner| planner.alone(pattern, &shared, Vec::new()))?;
        if right.empty {
            return Ok(None);
        }
        let mut hashed = partial.clone();
        self.push_join(&mut hashed, right, kind, &shared, &VariableSet::default(), rows);
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
fn is_plain(node: &Node) -> bool {
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

//! Left joins of which only unmatched rows remain become anti-joins.
//!
//! SPARQL 1.0 wrote negation as `OPTIONAL { … ?v … } FILTER(!BOUND(?v))`. If the optional part binds `?v` in
//! every solution and nothing else binds it, a row with `?v` unbound is one without a match. The left join
//! becomes `FILTER NOT EXISTS { … }`, which ends at the first match, and whose condition may be a range.
//! # Invariants
//! 1. Rows that the condition drops may differ; the others pass the same operators with the same values.
//! 2. An optional part is evaluated on its own, `EXISTS` from the values of the row. So the part is plain
//!    ([`is_plain`]), and no condition in it reads a variable that only the row binds.
//! 3. The variables that only the part binds are local to the `EXISTS`: they are renamed, since other parts
//!    of the query may bind them.
//! # Cost
//! One walk over the operators; the algebra is copied only if it has such a condition.

use crate::exists::is_plain;
use crate::lower::Planner;
use crate::scope::{expression_variables, free, looks_at, possible};
use std::borrow::Cow;
use vervet_algebra::{Exists, Expression, Node, Variable};
use vervet_model::Result;

/// The variable of a conjunct `!BOUND(?v)`.
fn unbound(conjunct: &Expression) -> Option<Variable> {
    let Expression::Not(inner) = conjunct else { return None };
    let Expression::Bound(variable) = **inner else { return None };
    Some(variable)
}

fn has_candidates(node: &Node) -> bool {
    let mut found = match node {
        Node::Filter { condition: Expression::And(all), .. } => all.iter().any(|one| unbound(one).is_some()),
        Node::Filter { condition, .. } => unbound(condition).is_some(),
        _ => false,
    };
    node.for_each_child(&mut |child| found = found || has_candidates(child));
    found
}

impl Planner<'_> {
    /// The algebra with anti-joins.
    ///
    /// # Errors
    /// Limits of the query.
    pub(crate) fn with_anti_joins<'q>(&mut self, root: &'q Node) -> Result<Cow<'q, Node>> {
        if !self.options.equalities || !has_candidates(root) {
            return Ok(Cow::Borrowed(root));
        }
        let mut root = root.clone();
        self.make_anti_joins(&mut root)?;
        Ok(Cow::Owned(root))
    }

    fn make_anti_joins(&mut self, node: &mut Node) -> Result<()> {
        self.control.work(1 << 8)?;
        if let Node::Filter { input, condition } = node {
            let mut conjuncts = match std::mem::replace(condition, Expression::Unbound) {
                Expression::And(all) => all,
                one => vec![one],
            };
            let mut at = 0;
            while at < conjuncts.len() {
                match unbound(&conjuncts[at]) {
                    Some(variable) if self.keep_unmatched(input, variable)? => _ = conjuncts.remove(at),
                    _ => at += 1,
                }
            }
            if conjuncts.is_empty() {
                *node = std::mem::replace(&mut **input, Node::Patterns(Vec::new()));
                return self.make_anti_joins(node);
            }
            *condition = match conjuncts.len() {
                1 => conjuncts.remove(0),
                _ => Expression::And(conjuncts),
            };
        }
        let mut result = Ok(());
        node.for_each_child_mut(&mut |child| {
            if result.is_ok() {
                result = self.make_anti_joins(child);
            }
        });
        result
    }

    /// Makes the left join in `node` that binds `variable` an anti-join, if both are equivalent for rows
    /// without a value of `variable`.
    fn keep_unmatched(&mut self, node: &mut Node, variable: Variable) -> Result<bool> {
        self.control.work(1 << 8)?;
        let (left, right, condition) = match node {
            Node::LeftJoin { left, right, condition } => (left, right, condition),
            Node::Extend { input, variable: own, .. } if *own != variable => {
                return self.keep_unmatched(input, variable);
            }
            Node::Minus { left: input, .. } | Node::Filter { input, .. } => {
                return self.keep_unmatched(input, variable);
            }
            _ => return Ok(false),
        };
        let (of_left, of_right) = (possible(left), possible(right));
        if !of_right.contains(variable) {
            return self.keep_unmatched(left, variable);
        }
        let is_decidable = |condition: &Expression| !condition.has_exists() && !condition.is_volatile();
        let is_same = condition.as_ref().is_none_or(is_decidable)
            && !of_left.contains(variable)
            && right.certain().contains(variable)
            && is_plain(right)
            && free(right).is_empty()
            && !looks_at(right).intersects(&of_left);
        if !is_same {
            return Ok(false);
        }
        let mut local = Vec::new();
        for one in of_right.clone().minus(&of_left).iter() {
            local.push((one, self.new_variable()?));
        }
        let read = condition.iter().fold(of_right.clone(), |set, one| set.union(&expression_variables(one)));
        let outer = read.iter().filter(|one| of_left.contains(*one) || !of_right.contains(*one)).collect();
        let mut pattern = std::mem::replace(&mut **right, Node::Patterns(Vec::new()));
        if let Some(condition) = condition.take() {
            pattern = Node::Filter { input: Box::new(pattern), condition };
        }
        pattern.rename(&local);
        let input = std::mem::replace(left, Box::new(Node::Patterns(Vec::new())));
        let exists = Expression::Exists(Box::new(Exists { pattern, outer }));
        *node = Node::Filter { input, condition: Expression::Not(Box::new(exists)) };
        Ok(true)
    }
}

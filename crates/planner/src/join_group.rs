//! Decomposition of a group: the parts of its join, and the operators on the whole join.
//!
//! `Join`, `Filter`, `LeftJoin`, `Minus` and `Extend` nest in the order of the text. Under a condition on
//! their variables they commute with a join: `Filter(A) ⋈ B = Filter(A ⋈ B)`, `LeftJoin(A, B) ⋈ C =
//! LeftJoin(A ⋈ C, B)`, and so on. The condition for all of them: a variable that the operator reads, and
//! that the rest of the join binds as well, is bound in every solution of the operator's own input (a
//! well-designed pattern: Pérez et al., "Semantics and Complexity of SPARQL", TODS 2009). So all patterns of
//! a group are ordered together. A volatile operator does not commute: `Extend(A, RAND()) ⋈ B` has one value
//! for each solution of `A`.

use crate::filter::{Conjunct, split};
use crate::scope::{expression_variables, is_volatile, possible};
use crate::variable_uses::VariableUses;
use oxrdf::Term;
use vervet_algebra::{Expression, Node, Pattern, Variable, VariableSet};
use vervet_kernel::Control;
use vervet_model::Result;

/// An operator on the whole join.
#[derive(Clone, Copy)]
pub(crate) enum PostJoin<'q> {
    /// An optional part and its condition.
    Optional(&'q Node, Option<&'q Expression>),
    /// An excluded part.
    Minus(&'q Node),
    /// A computed variable.
    Extend(Variable, &'q Expression),
}

impl PostJoin<'_> {
    /// The variables that the operator may bind or read.
    pub(crate) fn variables(&self) -> VariableSet {
        match self {
            Self::Optional(right, condition) => {
                condition.iter().fold(possible(right), |set, one| set.union(&expression_variables(one)))
            }
            Self::Minus(right) => possible(right),
            Self::Extend(variable, expression) => {
                let mut set = expression_variables(expression);
                set.insert(*variable);
                set
            }
        }
    }
}

/// A decomposed group: `post(… post(patterns ⋈ bindings ⋈ others))`, filtered by `filters`.
#[derive(Clone, Default)]
pub(crate) struct JoinGroup<'q> {
    /// All patterns.
    pub(crate) patterns: Vec<&'q Pattern>,
    /// Variables with a fixed value.
    pub(crate) bindings: Vec<(Variable, &'q Term)>,
    /// All other parts of the join.
    pub(crate) others: Vec<&'q Node>,
    /// Operators on the join, innermost first.
    pub(crate) post: Vec<PostJoin<'q>>,
    /// Conditions, each applied as soon as its variables have their final values.
    pub(crate) filters: Vec<Conjunct>,
}

impl<'q> JoinGroup<'q> {
    /// Decomposes `node`. `rest`: variables of all nodes joined with it (including the rows that it starts
    /// from) and of all later operators that bind variables; `first`: `node` is the whole group and known to
    /// be lateral.
    ///
    /// # Errors
    /// Limits of the query.
    pub(crate) fn add(
        &mut self,
        node: &'q Node,
        rest: &VariableSet,
        first: bool,
        control: &Control<'_>,
    ) -> Result<()> {
        control.work(1 << 8)?;
        let commutes = |seen: VariableSet, bound: VariableSet| seen.intersection(rest).is_subset(&bound);
        match node {
            Node::Patterns(patterns) => self.patterns.extend(patterns),
            Node::Join(nodes) => {
                let mut others = VariableUses::default();
                nodes.iter().for_each(|node| others.add(possible(node).iter()));
                for node in nodes {
                    let own = possible(node);
                    others.remove(own.iter());
                    self.add(node, &rest.clone().union(others.set()), false, control)?;
                    others.add(own.iter());
                }
            }
            Node::Filter { input, condition } => {
                let mut conjuncts = Vec::new();
                split(condition, &mut conjuncts);
                let may = first || commutes(expression_variables(condition), input.certain());
                if may && conjuncts.iter().all(Conjunct::is_movable) {
                    self.add(input, rest, false, control)?;
                    self.filters.append(&mut conjuncts);
                } else {
                    self.others.push(node);
                }
            }
            node if is_volatile(node) && !first => self.others.push(node),
            Node::LeftJoin { left, right, condition } => {
                let post = PostJoin::Optional(right, condition.as_ref());
                let of_left = left.certain();
                let condition_is_safe = condition.as_ref().is_none_or(|condition| {
                    commutes(expression_variables(condition), of_left.clone().union(&right.certain()))
                });
                if first || (condition_is_safe && commutes(possible(right), of_left)) {
                    self.add(left, &rest.clone().union(&post.variables()), false, control)?;
                    self.post.push(post);
                } else {
                    self.others.push(node);
                }
            }
            Node::Minus { left, right } => {
                if first || commutes(possible(right), left.certain()) {
                    self.add(left, &rest.clone().union(&possible(right)), false, control)?;
                    self.post.push(PostJoin::Minus(right));
                } else {
                    self.others.push(node);
                }
            }
            Node::Extend { input, variable, expression: Expression::Constant(term) } => {
                self.bindings.push((*variable, term));
                self.add(input, &rest.clone().union(&VariableSet::from_iter([*variable])), false, control)?;
            }
            Node::Extend { input, variable, expression } => {
                let safe =
                    !rest.contains(*variable) && commutes(expression_variables(expression), input.certain());
                if first || safe {
                    self.add(
                        input,
                        &rest.clone().union(&VariableSet::from_iter([*variable])),
                        false,
                        control,
                    )?;
                    self.post.push(PostJoin::Extend(*variable, expression));
                } else {
                    self.others.push(node);
                }
            }
            Node::Project { input, .. } if is_group(input) => self.add(input, rest, false, control)?,
            _ => self.others.push(node),
        }
        Ok(())
    }
}

impl JoinGroup<'_> {
    /// The variables that every solution of the join binds.
    pub(crate) fn certain(&self) -> VariableSet {
        let of_patterns = self.patterns.iter().flat_map(|pattern| pattern.variables());
        let joined = of_patterns.chain(self.bindings.iter().map(|(variable, _)| *variable)).collect();
        self.others.iter().fold(joined, |set, node| set.union(&node.certain()))
    }
}

/// Whether [`JoinGroup::add`] decomposes the node.
pub(crate) fn is_group(node: &Node) -> bool {
    matches!(
        node,
        Node::Patterns(_)
            | Node::Join(_)
            | Node::Filter { .. }
            | Node::LeftJoin { .. }
            | Node::Minus { .. }
            | Node::Extend { .. }
    )
}

//! Equalities between parts of a join become join keys.
//!
//! A condition `?a = ?b` between two parts without a common variable would be tested on their Cartesian
//! product. This pass rewrites the algebra so that the parts are joined:
//!
//! * *Identity*: the equality is that of terms, for `sameTerm`, and for `=` where one variable is a
//!   subject, a predicate or a graph, or the object of a predicate whose objects are all strings
//!   ([`plain_strings_only`]). Such an `=` becomes a `sameTerm`. `?b` is replaced by `?a` in its part, and
//!   becomes a copy of `?a` above the join. The planner then orders the patterns of both parts together.
//! * *Value*: `1`, `01` and `1.0` are equal, but are different terms. Both parts are extended by a new
//!   variable with [`Function::EqualityKey`] of `?a` and `?b`; equal values have equal keys. The parts are
//!   joined on it.
//!
//! The condition remains, so keys that are equal for unequal values cost time and have no other effect.
//!
//! In the pattern of an `EXISTS`, a local variable that is certainly the same term as one of the row is
//! replaced by it. Equalities of values there are keys of a semi-join ([`crate::exists`]).
//!
//! [`plain_strings_only`]: vervet_snapshot::SegmentStatistics::plain_strings_only
//! # Invariants
//! 1. Both variables are certainly bound in their parts, and no other part binds them.
//! 2. Parts that variables from outside connect count as one: rows that bind these variables may be few, and
//!    exploring from them may be cheaper than a join of whole parts.
//! # Cost
//! One walk over the operators; the algebra is copied only if a condition compares two variables.
//! # Source
//! Equality-generating predicates as join keys: Selinger et al., "Access Path Selection", SIGMOD 1979.

use crate::filter::{Conjunct, split};
use crate::lower::Planner;
use crate::scope::possible;
use std::borrow::Cow;
use vervet_algebra::{Expression, Function, GraphSlot, Node, Pattern, Slot, Variable, VariableSet};
use vervet_model::{Direction, Result};

/// Maximum number of equalities of a query: each key adds a step at least, so a plan with more keys is too
/// long, and would be made in vain.
const EQUALITIES_MAX: usize = crate::DEPTH_MAX;

/// A condition `a = b` or `sameTerm(a, b)` on two variables.
#[derive(Clone, Copy)]
struct Equality {
    a: Variable,
    b: Variable,
    /// Whether it is `sameTerm`.
    of_terms: bool,
}

impl Planner<'_> {
    /// The algebra with equalities as join keys.
    ///
    /// # Errors
    /// Limits of the query.
    pub(crate) fn with_equalities_as_keys<'q>(&mut self, root: Cow<'q, Node>) -> Result<Cow<'q, Node>> {
        if !self.options.equalities || !(1..=EQUALITIES_MAX).contains(&equality_count(&root)) {
            return Ok(root);
        }
        let outer = self.parameters.clone();
        Ok(Cow::Owned(self.rewrite(root.into_owned(), &[], &outer)?))
    }

    /// Rewrites `node`. `equalities` hold for each row that reaches the result; `outer`: variables that rows
    /// from outside may bind.
    fn rewrite(&mut self, node: Node, equalities: &[Equality], outer: &VariableSet) -> Result<Node> {
        self.control.work(1 << 8)?;
        Ok(match node {
            Node::Filter { input, mut condition } => {
                self.compare_terms(&mut condition, &[&input])?;
                let mut all = within(equalities, &input.certain());
                equalities_of(&condition, &mut all);
                if condition.has_exists() {
                    self.unify_in_exists(&input, &mut condition)?;
                }
                Node::Filter { input: Box::new(self.rewrite(*input, &all, outer)?), condition }
            }
            Node::Patterns(patterns) => {
                let parts = patterns.into_iter().map(|pattern| Node::Patterns(vec![pattern])).collect();
                self.join_parts(parts, equalities, outer)?
            }
            Node::Join(nodes) => {
                let mut parts = Vec::new();
                let all: VariableSet =
                    nodes.iter().fold(outer.clone(), |set, node| set.union(&possible(node)));
                for node in nodes {
                    match node {
                        Node::Patterns(patterns) => {
                            parts.extend(patterns.into_iter().map(|pattern| Node::Patterns(vec![pattern])));
                        }
                        node => {
                            let inside = within(equalities, &node.certain());
                            parts.push(self.rewrite(node, &inside, &all)?);
                        }
                    }
                }
                self.join_parts(parts, equalities, outer)?
            }
            Node::LeftJoin { left, right, condition } => {
                self.rewrite_left_join(*left, *right, condition, equalities, outer)?
            }
            Node::Extend { input, variable, expression } => {
                let inside = within(equalities, &input.certain());
                let outer = outer.clone().union(&VariableSet::from_iter([variable]));
                Node::Extend { input: Box::new(self.rewrite(*input, &inside, &outer)?), variable, expression }
            }
            Node::Minus { left, right } => {
                let inside = within(equalities, &left.certain());
                let of_right = outer.clone().union(&possible(&left));
                let of_left = outer.clone().union(&possible(&right));
                Node::Minus {
                    left: Box::new(self.rewrite(*left, &inside, &of_left)?),
                    right: Box::new(self.rewrite(*right, &[], &of_right)?),
                }
            }
            Node::Union(nodes) => {
                let mut branches = Vec::with_capacity(nodes.len());
                for node in nodes {
                    let inside = within(equalities, &node.certain());
                    branches.push(self.rewrite(node, &inside, outer)?);
                }
                Node::Union(branches)
            }
            Node::Project { input, variables } => {
                let visible: VariableSet = variables.iter().copied().collect();
                let inside = within(equalities, &input.certain().intersection(&visible));
                Node::Project { input: Box::new(self.rewrite(*input, &inside, outer)?), variables }
            }
            Node::Distinct(input) => Node::Distinct(Box::new(self.rewrite(*input, equalities, outer)?)),
            Node::Reduced(input) => Node::Reduced(Box::new(self.rewrite(*input, equalities, outer)?)),
            Node::OrderBy { input, keys } => {
                Node::OrderBy { input: Box::new(self.rewrite(*input, equalities, outer)?), keys }
            }
            Node::Slice { input, start, length } => {
                Node::Slice { input: Box::new(self.rewrite(*input, &[], outer)?), start, length }
            }
            Node::Group { input, keys, aggregates } => {
                Node::Group { input: Box::new(self.rewrite(*input, &[], outer)?), keys, aggregates }
            }
            node @ (Node::Path(_) | Node::Service(_) | Node::Values { .. }) => node,
        })
    }

    fn rewrite_left_join(
        &mut self,
        left: Node,
        right: Node,
        mut condition: Option<Expression>,
        equalities: &[Equality],
        outer: &VariableSet,
    ) -> Result<Node> {
        if let Some(condition) = &mut condition {
            self.compare_terms(condition, &[&left, &right])?;
        }
        let mut of_condition = Vec::new();
        condition.iter().for_each(|condition| equalities_of(condition, &mut of_condition));
        let (of_left, of_right) = (possible(&left), possible(&right));
        let inside = within(equalities, &left.certain());
        let mut left = self.rewrite(left, &inside, &outer.clone().union(&of_right))?;
        let inside = within(&of_condition, &right.certain());
        let mut right = self.rewrite(right, &inside, &outer.clone().union(&of_left))?;
        // Only an optional part that nothing else connects: exploring it would visit all of it for each row.
        if !of_right.intersects(&of_left) && !of_right.intersects(outer) {
            let (left_certain, right_certain) = (left.certain(), right.certain());
            let sides = |equality: &Equality| {
                let Equality { a, b, .. } = *equality;
                let is_across = |a, b| left_certain.contains(a) && right_certain.contains(b);
                if is_across(a, b) { Some((a, b)) } else { is_across(b, a).then_some((b, a)) }
            };
            // One key is enough; further equalities remain conditions.
            let across: Vec<&Equality> = of_condition.iter().filter(|one| sides(one).is_some()).collect();
            if let Some((a, b)) = across.iter().copied().find(|one| one.of_terms).and_then(sides) {
                right.rename(&[(b, a)]);
                right = extend(right, b, Expression::Variable(a));
            } else if let Some((a, b)) = across.first().and_then(|one| sides(one)) {
                let key = self.new_variable()?;
                left = extend(left, key, equality_key(a));
                right = extend(right, key, equality_key(b));
            }
        }
        Ok(Node::LeftJoin { left: Box::new(left), right: Box::new(right), condition })
    }

    /// The join of `parts`, with `equalities` as keys between those that no variable connects.
    fn join_parts(&mut self, parts: Vec<Node>, equalities: &[Equality], outer: &VariableSet) -> Result<Node> {
        if equalities.is_empty() {
            return Ok(join(parts));
        }
        let mut components = self.connected_parts(parts, outer)?;
        let mut copies = Vec::new();
        let mut has_keys = false;
        for equality in equalities {
            self.control.work(components.len() + 1)?;
            let renamed = |variable: Variable| {
                copies.iter().rev().find(|(copy, _)| *copy == variable).map_or(variable, |(_, of)| *of)
            };
            let (a, b) = (renamed(equality.a), renamed(equality.b));
            let find =
                |variable| components.iter().position(|one: &Component| one.certain.contains(variable));
            let (Some(of_a), Some(of_b)) = (find(a), find(b)) else { continue };
            if of_a == of_b || components[of_a].is_outer || components[of_b].is_outer {
                continue;
            }
            let mut is_identity = equality.of_terms;
            for (at, one) in [(of_a, a), (of_b, b)] {
                for part in &components[at].parts {
                    is_identity = is_identity || self.is_compared_by_id(part, one)?;
                }
            }
            if is_identity && components[of_a].keys.is_empty() && components[of_b].keys.is_empty() {
                let mut merged = components.swap_remove(of_b);
                merged.parts.iter_mut().for_each(|part| part.rename(&[(b, a)]));
                merged.certain.remove(b);
                // `swap_remove` moves the last component.
                let of_a = if of_a == components.len() { of_b } else { of_a };
                components[of_a].parts.append(&mut merged.parts);
                components[of_a].certain.add_all(&merged.certain);
                copies.push((b, a));
            } else {
                let key = self.new_variable()?;
                components[of_a].keys.push((key, a));
                components[of_b].keys.push((key, b));
                has_keys = true;
            }
        }
        let mut parts = Vec::new();
        for component in components {
            match has_keys && !component.keys.is_empty() {
                true => {
                    let keys = component.keys.into_iter();
                    parts.push(
                        keys.fold(join(component.parts), |node, (key, of)| {
                            extend(node, key, equality_key(of))
                        }),
                    );
                }
                false => parts.extend(component.parts),
            }
        }
        Ok(copies
            .into_iter()
            .rev()
            .fold(join(parts), |node, (copy, of)| extend(node, copy, Expression::Variable(of))))
    }

    /// Connected components of the parts by shared variables; all parts with a variable of `outer` are one
    /// component, the first.
    fn connected_parts(&self, parts: Vec<Node>, outer: &VariableSet) -> Result<Vec<Component>> {
        let mut components: Vec<Component> = vec![Component { is_outer: true, ..Component::default() }];
        components[0].possible = outer.clone();
        for part in parts {
            let own = possible(&part);
            let mut new = Component { certain: part.certain(), ..Component::default() };
            self.control.work(components.len())?;
            let mut at = components.len();
            while at > 0 {
                at -= 1;
                if components[at].possible.intersects(&own) {
                    let mut one = components.remove(at);
                    one.parts.append(&mut new.parts);
                    new.parts = one.parts;
                    new.possible.add_all(&one.possible);
                    new.certain.add_all(&one.certain);
                    new.is_outer |= one.is_outer;
                }
            }
            new.possible.add_all(&own);
            new.parts.push(part);
            components.push(new);
        }
        Ok(components)
    }

    /// Unifies variables of the rows of `input` with variables local to the pattern of an `EXISTS` whose
    /// condition says that they are the same term, so that the pattern may be explored from the rows or
    /// joined with them.
    fn unify_in_exists(&self, input: &Node, condition: &mut Expression) -> Result<()> {
        let (bound, may_be_bound) = (input.certain(), possible(input));
        let mut outcome = Ok(());
        condition.for_each_exists_mut(&mut |exists| {
            let outer: VariableSet = exists.outer.iter().copied().collect();
            let Node::Filter { input: inner, condition } = &mut exists.pattern else { return };
            let mut conjuncts = match std::mem::replace(condition, Expression::Unbound) {
                Expression::And(all) => all,
                one => vec![one],
            };
            let mut same = Vec::new();
            let (certain, all) = (inner.certain(), possible(inner));
            conjuncts.retain(|conjunct| {
                let (a, b, of_terms) = match conjunct {
                    Expression::Equal(a, b) => (a, b, false),
                    Expression::SameTerm(a, b) => (a, b, true),
                    _ => return true,
                };
                let (&Expression::Variable(a), &Expression::Variable(b)) = (&**a, &**b) else { return true };
                let is_local = |one| {
                    let is_free = !may_be_bound.contains(one) && !outer.contains(one);
                    certain.contains(one) && is_free && !computes(inner, one)
                };
                let is_of_rows = |one| bound.contains(one) && outer.contains(one) && !all.contains(one);
                let (row, local) = match (is_of_rows(a) && is_local(b), is_of_rows(b) && is_local(a)) {
                    (true, _) => (a, b),
                    (_, true) => (b, a),
                    _ => return true,
                };
                // One equality for each variable; a further one remains a condition.
                let is_new = same.iter().all(|(from, to)| *from != local && *to != row);
                let is_identity = || -> Result<bool> {
                    Ok(self.is_compared_by_id(input, row)? || self.is_compared_by_id(inner, local)?)
                };
                let unifies = is_new
                    && (of_terms
                        || is_identity().unwrap_or_else(|error| {
                            outcome = Err(error);
                            false
                        }));
                if unifies {
                    same.push((local, row));
                }
                !unifies
            });
            *condition = match conjuncts.len() {
                1 => conjuncts.remove(0),
                _ => Expression::And(conjuncts),
            };
            exists.pattern.rename(&same);
            if let Node::Filter { input, condition: Expression::And(all) } = &mut exists.pattern
                && all.is_empty()
            {
                exists.pattern = std::mem::replace(&mut **input, Node::Patterns(Vec::new()));
            }
        });
        outcome
    }

    /// Makes each conjunct `?a = ?b` that compares terms by identity a `sameTerm`, which reads no text.
    /// `nodes` bind the rows.
    fn compare_terms(&self, condition: &mut Expression, nodes: &[&Node]) -> Result<()> {
        let conjuncts = match condition {
            Expression::And(all) => all.as_mut_slice(),
            one => std::slice::from_mut(one),
        };
        for conjunct in conjuncts {
            let Expression::Equal(a, b) = conjunct else { continue };
            let (&Expression::Variable(a), &Expression::Variable(b)) = (&**a, &**b) else { continue };
            let mut is_identity = false;
            for (node, one) in nodes.iter().flat_map(|node| [(node, a), (node, b)]) {
                is_identity = is_identity || self.is_compared_by_id(node, one)?;
            }
            if is_identity {
                *conjunct = Expression::SameTerm(
                    Box::new(Expression::Variable(a)),
                    Box::new(Expression::Variable(b)),
                );
            }
        }
        Ok(())
    }

    /// Whether the values of `variable` are certainly no literals, or all strings: for these, `=` is equality
    /// of terms, whatever the other value is.
    fn is_compared_by_id(&self, node: &Node, variable: Variable) -> Result<bool> {
        Ok(match node {
            Node::Patterns(patterns) => {
                for pattern in patterns {
                    if is_resource_in(pattern, variable) || self.is_string_in(pattern, variable)? {
                        return Ok(true);
                    }
                }
                false
            }
            Node::Join(nodes) => {
                for node in nodes {
                    if self.is_compared_by_id(node, variable)? {
                        return Ok(true);
                    }
                }
                false
            }
            Node::Union(nodes) => {
                for node in nodes {
                    if !self.is_compared_by_id(node, variable)? {
                        return Ok(false);
                    }
                }
                true
            }
            Node::LeftJoin { left: input, .. }
            | Node::Minus { left: input, .. }
            | Node::Filter { input, .. }
            | Node::Distinct(input)
            | Node::Reduced(input)
            | Node::OrderBy { input, .. }
            | Node::Slice { input, .. } => self.is_compared_by_id(input, variable)?,
            Node::Extend { input, variable: own, .. } => {
                *own != variable && self.is_compared_by_id(input, variable)?
            }
            Node::Project { input, variables } => {
                variables.contains(&variable) && self.is_compared_by_id(input, variable)?
            }
            Node::Path(_) | Node::Service(_) | Node::Values { .. } | Node::Group { .. } => false,
        })
    }

    /// Whether the pattern binds `variable` to objects of a predicate with only strings.
    fn is_string_in(&self, pattern: &Pattern, variable: Variable) -> Result<bool> {
        let Slot::Constant(predicate) = &pattern.predicate else { return Ok(false) };
        if pattern.object.variable() != Some(variable) {
            return Ok(false);
        }
        let Some(predicate) = self.snapshot.lookup(predicate.as_ref())? else { return Ok(false) };
        let segment = self.snapshot.segment(predicate, Direction::Out)?;
        Ok(segment.is_some_and(|segment| segment.statistics().plain_strings_only))
    }
}

/// Parts of a join that variables connect.
#[derive(Default)]
struct Component {
    parts: Vec<Node>,
    possible: VariableSet,
    certain: VariableSet,
    /// Keys, and the variables whose keys they are.
    keys: Vec<(Variable, Variable)>,
    /// Whether variables from outside connect it.
    is_outer: bool,
}

/// The join of `parts`; patterns are one part.
fn join(parts: Vec<Node>) -> Node {
    let (mut patterns, mut nodes) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            Node::Patterns(mut some) => patterns.append(&mut some),
            node => nodes.push(node),
        }
    }
    match (patterns.is_empty(), nodes.len()) {
        (_, 0) => Node::Patterns(patterns),
        (true, 1) => nodes.remove(0),
        (true, _) => Node::Join(nodes),
        (false, _) => {
            nodes.insert(0, Node::Patterns(patterns));
            Node::Join(nodes)
        }
    }
}

fn extend(input: Node, variable: Variable, expression: Expression) -> Node {
    Node::Extend { input: Box::new(input), variable, expression }
}

pub(crate) fn equality_key(of: Variable) -> Expression {
    Expression::Call(Function::EqualityKey, vec![Expression::Variable(of)])
}

/// Those of `equalities` whose variables are both in `certain`.
fn within(equalities: &[Equality], certain: &VariableSet) -> Vec<Equality> {
    let is_within = |one: &&Equality| certain.contains(one.a) && certain.contains(one.b);
    equalities.iter().filter(is_within).copied().collect()
}

/// Appends the conjuncts of `condition` that compare two variables.
fn equalities_of(condition: &Expression, out: &mut Vec<Equality>) {
    let mut conjuncts = Vec::new();
    split(condition, &mut conjuncts);
    out.extend(conjuncts.iter().filter_map(equality));
}

fn equality(conjunct: &Conjunct) -> Option<Equality> {
    let (a, b, of_terms) = match &*conjunct.expression {
        Expression::Equal(a, b) => (a, b, false),
        Expression::SameTerm(a, b) => (a, b, true),
        _ => return None,
    };
    match (&**a, &**b) {
        (Expression::Variable(a), Expression::Variable(b)) if a != b => {
            Some(Equality { a: *a, b: *b, of_terms })
        }
        _ => None,
    }
}

/// Whether `node` may compute `variable`, or bind it in an operator over all its solutions, rather than match
/// it: then it cannot take the value of a row.
fn computes(node: &Node, variable: Variable) -> bool {
    let here = match node {
        Node::Extend { variable: own, .. } => *own == variable,
        Node::Group { .. } | Node::Distinct(_) | Node::OrderBy { .. } | Node::Slice { .. } => {
            possible(node).contains(variable)
        }
        _ => false,
    };
    let mut any = here;
    node.for_each_child(&mut |child| any = any || computes(child, variable));
    any
}

/// The number of equalities of two variables in the conditions of `node`.
fn equality_count(node: &Node) -> usize {
    let mut count = match node {
        Node::Filter { condition, .. } | Node::LeftJoin { condition: Some(condition), .. } => {
            let mut found = Vec::new();
            equalities_of(condition, &mut found);
            let mut count = found.len();
            condition.for_each_exists(&mut |exists| count += equality_count(&exists.pattern));
            count
        }
        _ => 0,
    };
    node.for_each_child(&mut |child| count += equality_count(child));
    count
}

/// Whether the pattern binds `variable` to vertices or edges.
fn is_resource_in(pattern: &Pattern, variable: Variable) -> bool {
    pattern.subject.variable() == Some(variable)
        || pattern.predicate.variable() == Some(variable)
        || matches!(pattern.graph, GraphSlot::Variable(graph) if graph == variable)
}

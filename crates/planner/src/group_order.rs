//! Join ordering of a group: patterns, paths, tables and nested groups, then the operators on the join.
//!
//! # Shape
//! Statement patterns are ordered together ([`crate::bgp`]); paths, tables and nested groups are ordered
//! around them by planning the whole join in every order (branch and bound), or, if there are many, by greedy
//! descent. Tables of one row come first: they are constants and multiply nothing. Beside a path, patterns
//! that only the path connects are ordered separately, since together they would be a Cartesian product.
//! A path between two free ends may be preceded by the nodes at one end of another path ([`Reducer`]):
//! searches then start from few nodes.
//! Patterns that share no variable with the rest of the query are evaluated once: their number of solutions
//! multiplies the rows, or under set semantics their first solution keeps them.
//! # Cost
//! An order is abandoned as soon as it costs more than the best earlier one, also within the search of
//! patterns. Orders that follow bound variables are tried first.

use crate::cost;
use crate::filter::Conjunct;
use crate::join_group::{JoinGroup, PostJoin};
use crate::lower::Planner;
use crate::partial_plan::PartialPlan;
use crate::scope::{is_lateral, possible};
use crate::variable_uses::VariableUses;
use vervet_algebra::{Node, PathPattern, Pattern, Slot, Variable, VariableSet};
use vervet_kernel::Control;
use vervet_kernel::plan::{JoinKind, Step};
use vervet_model::Result;

/// Maximum number of parts for exhaustive ordering.
const PERMUTED_MAX: usize = 3;

/// Minimum estimated rows for patterns without a common variable to be evaluated on their own.
const SEPARATE_ROWS_MIN: f64 = 2.0;

/// The nodes at one end of a path, found before another path is searched from them: a semi-join with a path
/// of the same join. Its own search takes time linear in the statements.
struct Reducer {
    /// The path, with another variable at the other end.
    path: PathPattern,
    /// The operand of which it is a part.
    of: usize,
    /// The operands with both ends free that start or end there.
    starts: Vec<usize>,
}

/// A path both of whose ends are variables that nothing has bound, and these.
type FreePath<'q> = (&'q PathPattern, (Variable, Variable));

impl Reducer {
    /// Whether an order of operands begins with one that the reducer restricts.
    fn is_useful(&self, order: &[usize]) -> bool {
        order.first().is_some_and(|first| *first != self.of && self.starts.contains(first))
    }
}

impl Planner<'_> {
    /// The reducers of the paths among these operands.
    fn reducers(&mut self, joined: &[JoinOperand<'_>], partial: &PartialPlan) -> Result<Vec<Reducer>> {
        let mut reducers = Vec::new();
        if !self.stable || !self.options.frontiers {
            return Ok(reducers);
        }
        // Both ends are variables that nothing has bound, and the path has its own graph.
        let mut free: Vec<Option<FreePath<'_>>> = Vec::new();
        for operand in joined {
            free.push(match operand {
                JoinOperand::Node(Node::Path(path)) if path.graph_variable().is_none() => {
                    let ends = path.subject.variable().zip(path.object.variable());
                    let is_free = |end: Variable| !partial.possible.contains(end);
                    ends.filter(|(a, b)| a != b && is_free(*a) && is_free(*b)).map(|ends| (path, ends))
                }
                _ => None,
            });
        }
        for (of, (path, ends)) in free.iter().enumerate().filter_map(|(at, one)| Some((at, (*one)?))) {
            for (end, is_subject) in [(ends.0, true), (ends.1, false)] {
                let meets = |other: &usize| {
                    let ends = free.get(*other).copied().flatten().map(|(_, ends)| ends);
                    *other != of && ends.is_some_and(|(subject, object)| subject == end || object == end)
                };
                let starts: Vec<usize> = (0..free.len()).filter(meets).collect();
                if starts.is_empty() || path.path.is_nullable() || !self.may_compare(starts.len()) {
                    continue;
                }
                let mut path = path.clone();
                let other = if is_subject { &mut path.object } else { &mut path.subject };
                *other = Slot::Variable(self.new_variable()?);
                reducers.push(Reducer { path, of, starts });
            }
        }
        Ok(reducers)
    }

    /// Binds one end of a path to the nodes that have one.
    fn lower_reducer(
        &mut self,
        path: &PathPattern,
        partial: &mut PartialPlan,
        needed: &VariableSet,
    ) -> Result<()> {
        // Each node once, which is correct for bags, too: the path itself is joined later.
        self.with_bag_semantics_if(false, |planner| planner.lower_path(path, partial, needed))
    }

    /// Adds a join and the operators on it; an `EXISTS` condition may become a part of the join.
    pub(crate) fn lower_group_parts(
        &mut self,
        group: JoinGroup<'_>,
        partial: &mut PartialPlan,
        needed: &VariableSet,
    ) -> Result<()> {
        let Some((at, part)) = self.exists_as_join_operand(&group, partial) else {
            return self.lower_join_group(group, partial, needed);
        };
        let mut joined = partial.clone();
        let before = partial.cost;
        self.lower_join_group(group.clone(), partial, needed)?;
        if partial.cost - before < self.options.compare_from_cost {
            return Ok(());
        }
        let mut with_part = group;
        with_part.filters.remove(at);
        with_part.others.push(&part);
        self.lower_group_parts(with_part, &mut joined, needed)?;
        let total = |partial: &PartialPlan| partial.cost + partial.rows * cost::FUTURE_ROW;
        if total(&joined) < total(partial) {
            *partial = joined;
        }
        Ok(())
    }

    /// [`Planner::lower_joined`], where patterns that only comparisons link may also be parts of their own.
    fn lower_join_group(
        &mut self,
        group: JoinGroup<'_>,
        partial: &mut PartialPlan,
        needed: &VariableSet,
    ) -> Result<()> {
        let (parts, patterns) = self.parts_linked_by_ranges(&group, partial)?;
        if parts.is_empty() || !self.may_compare(2) {
            return self.lower_joined_or_cut(group, partial, needed);
        }
        let mut separate = partial.clone();
        let before = partial.cost;
        self.lower_joined(group.clone(), &[], partial, needed)?;
        if partial.cost - before < self.options.compare_from_cost {
            return Ok(());
        }
        let mut of_parts = JoinGroup { patterns, ..group };
        of_parts.others.extend(&parts);
        self.lower_joined(of_parts, &[], &mut separate, needed)?;
        let total = |partial: &PartialPlan| partial.cost + partial.rows * cost::FUTURE_ROW;
        if total(&separate) < total(partial) {
            *partial = separate;
        }
        Ok(())
    }

    /// Orders the parts of a join by cost, then adds the operators on it. `alone`: parts of the join that
    /// are evaluated on their own unless they come first.
    pub(crate) fn lower_joined(
        &mut self,
        group: JoinGroup<'_>,
        alone: &[Node],
        partial: &mut PartialPlan,
        needed: &VariableSet,
    ) -> Result<()> {
        let JoinGroup { patterns, bindings, others, post, filters } = group;
        let others = match self.parameters.is_empty() {
            true => others,
            false => {
                let mut known: VariableSet = bindings.iter().map(|(variable, _)| *variable).collect();
                patterns.iter().for_each(|pattern| known.extend(pattern.variables()));
                let needed =
                    post.iter().fold(needed.clone().union(&known), |set, one| set.union(&one.variables()));
                let needed = filters.iter().fold(needed, |set, filter| set.union(&filter.variables));
                self.join_of_rows(others, &known, partial, &needed)?
            }
        };
        for (variable, term) in bindings {
            let id = self.value(term)?;
            self.push_values(vec![variable], vec![vec![id]], partial);
        }
        let others = self.join_constants(others, partial)?;
        // Later operators need their variables.
        let mut after: Vec<VariableSet> = vec![VariableSet::default()];
        for one in post.iter().rev() {
            let last = after.last().cloned().unwrap_or_default();
            after.push(last.union(&one.variables()));
        }
        let later = after.pop().unwrap_or_default();
        let mut joined: Vec<JoinOperand<'_>> = others.into_iter().map(JoinOperand::Node).collect();
        joined.extend(alone.iter().map(JoinOperand::Alone));
        let has_path = joined.iter().any(|one| matches!(one, JoinOperand::Node(Node::Path(_))));
        let mut separate = Vec::new();
        let groups = match self.options.reorder {
            true => {
                let mut groups = connected(patterns, &partial.possible, self.control)?;
                let mut used = needed.clone().union(&later).union(&partial.possible);
                joined.iter().for_each(|one| used.add_all(&one.possible()));
                for filter in &filters {
                    let is_inside = |group: &Vec<&Pattern>| filter.variables.is_subset(&variables_of(group));
                    if filter.has_exists || !groups.iter().any(is_inside) {
                        used.add_all(&filter.variables);
                    }
                }
                let mut left = groups.len() + joined.len();
                groups.retain(|group| {
                    let variables = variables_of(group);
                    let stays = left == 1 || variables.is_empty() || variables.intersects(&used);
                    if !stays {
                        left -= 1;
                        separate.push((group.clone(), variables));
                    }
                    stays
                });
                if has_path { groups } else { vec![groups.concat()] }
            }
            false => vec![patterns],
        };
        let (of_separate, mut filters): (Vec<_>, Vec<_>) = filters.into_iter().partition(|filter| {
            separate
                .iter()
                .any(|(_, variables)| !filter.variables.is_empty() && filter.variables.is_subset(variables))
        });
        // Without reordering, patterns come after tables and before all other parts.
        let at =
            joined.iter().take_while(|one| matches!(one, JoinOperand::Node(Node::Values { .. }))).count();
        let groups =
            groups.iter().filter(|group| !group.is_empty()).map(|group| JoinOperand::Patterns(group));
        joined.splice(at..at, groups);
        // Each step preserves the order of its input rows, so an ordered part comes first.
        let ordered = joined.iter().position(|one| matches!(one, JoinOperand::Node(node) if has_order(node)));
        if let Some(at) = ordered {
            joined[..=at].rotate_right(1);
        }
        let reorder = self.options.reorder && ordered.is_none();
        let orders = [0, 0, 2, 6].get(joined.len()).copied().unwrap_or(0);
        let greedy = joined.len() * (joined.len() + 1) / 2;
        if has_path && joined.len() > PERMUTED_MAX && reorder && self.may_compare(greedy) {
            self.lower_cheapest_first(joined, partial, needed, &later, &mut filters)?;
        } else if orders > 0 && reorder && self.may_compare(orders) {
            let mut best: Option<(f64, PartialPlan, Vec<Conjunct>)> = None;
            let enough = partial.cost + self.options.compare_from_cost;
            let mut orders = permutations(joined.len());
            orders.sort_by_key(|order| cross_products(order, &joined, &partial.possible));
            let reducers = self.reducers(&joined, partial)?;
            let with_reducers = |order: Vec<usize>| {
                let operands: Vec<JoinOperand<'_>> = order.iter().map(|at| joined[*at]).collect();
                let reduced = reducers.iter().filter(move |reducer| reducer.is_useful(&order));
                let reduced = reduced.map({
                    let operands = operands.clone();
                    move |reducer| [&[JoinOperand::Reducer(&reducer.path)], operands.as_slice()].concat()
                });
                let reduced: Vec<_> = reduced.collect();
                std::iter::once(operands).chain(reduced)
            };
            for order in orders.into_iter().flat_map(with_reducers) {
                let (mut partial, mut filters) = (partial.clone(), filters.clone());
                let limit = best.as_ref().map(|(cost, ..)| *cost);
                if !self.lower_in_order(&order, &mut partial, needed, &later, &mut filters, limit)? {
                    continue;
                }
                let total = partial.cost + partial.rows * cost::FUTURE_ROW;
                if limit.is_none_or(|limit| total < limit) {
                    best = Some((total, partial, filters));
                }
                if total < enough {
                    break;
                }
            }
            if let Some((_, found, left)) = best {
                (*partial, filters) = (found, left);
            }
        } else {
            self.lower_in_order(&joined, partial, needed, &later, &mut filters, None)?;
        }
        let mut of_separate = of_separate;
        for (group, variables) in separate {
            let (own, others): (Vec<_>, Vec<_>) =
                of_separate.into_iter().partition(|filter| filter.variables.is_subset(&variables));
            of_separate = others;
            self.multiply_by(&group, partial, own)?;
        }
        for (one, after) in post.iter().zip(after.iter().rev()) {
            self.control.work(filters.len() + 1)?;
            let ready = take_ready(&mut filters, &partial.certain, &after.clone().union(&one.variables()));
            self.apply(ready, partial)?;
            let needed =
                filters.iter().fold(needed.clone().union(after), |set, filter| set.union(&filter.variables));
            match one {
                PostJoin::Optional(right, condition) => {
                    self.lower_optional(right, *condition, partial, &needed)?
                }
                PostJoin::Minus(right) => self.lower_minus(right, partial)?,
                PostJoin::Extend(variable, expression) => {
                    if needed.contains(*variable) {
                        let expression = self.without_patterns((*expression).clone(), partial)?;
                        partial.cost += partial.rows * cost::EXTEND_ROW;
                        if expression.is_certain(&partial.certain) {
                            partial.certain.insert(*variable);
                        }
                        partial.possible.insert(*variable);
                        partial.push(Step::Extend { variable: *variable, expression }, partial.rows);
                    }
                }
            }
        }
        self.apply(filters, partial)
    }

    /// Joins `partial` with patterns that share no variable with it or any later operator.
    fn multiply_by(
        &mut self,
        patterns: &[&Pattern],
        partial: &mut PartialPlan,
        filters: Vec<Conjunct>,
    ) -> Result<()> {
        if partial.empty {
            return Ok(());
        }
        let none = VariableSet::default();
        let mut right = PartialPlan::start(&none);
        self.lower_patterns(patterns, &mut right, &none, filters.clone(), None)?;
        if right.empty {
            partial.make_empty();
            return Ok(());
        }
        if partial.rows < SEPARATE_ROWS_MIN {
            self.lower_patterns(patterns, partial, &none, filters, None)?;
            return Ok(());
        }
        let kind = match self.set && self.stable {
            true => {
                right.push(Step::Slice { start: 0, length: Some(1) }, right.rows.min(1.0));
                JoinKind::Semi(None)
            }
            false => JoinKind::Inner(None),
        };
        let rows = partial.rows;
        self.push_join(partial, right, kind, &none, &none, rows);
        Ok(())
    }

    /// Greedy descent: repeatedly joins the part with the lowest cost.
    fn lower_cheapest_first(
        &mut self,
        mut joined: Vec<JoinOperand<'_>>,
        partial: &mut PartialPlan,
        needed: &VariableSet,
        later: &VariableSet,
        filters: &mut Vec<Conjunct>,
    ) -> Result<()> {
        while !joined.is_empty() {
            let mut best: Option<(f64, usize, PartialPlan, Vec<Conjunct>)> = None;
            for at in 0..joined.len() {
                let (mut partial, mut filters) = (partial.clone(), filters.clone());
                let others = joined.iter().enumerate().filter(|(other, _)| *other != at);
                let later = others.fold(later.clone(), |set, (_, one)| set.union(&one.possible()));
                self.lower_in_order(&joined[at..=at], &mut partial, needed, &later, &mut filters, None)?;
                let total = partial.cost + partial.rows * cost::FUTURE_ROW;
                if best.as_ref().is_none_or(|(cost, ..)| total < *cost) {
                    best = Some((total, at, partial, filters));
                }
            }
            let Some((_, at, found, left)) = best else { return Ok(()) };
            (*partial, *filters) = (found, left);
            joined.remove(at);
        }
        Ok(())
    }

    /// Joins tables of one row; returns the other parts.
    fn join_constants<'q>(
        &mut self,
        others: Vec<&'q Node>,
        partial: &mut PartialPlan,
    ) -> Result<Vec<&'q Node>> {
        let mut left = Vec::with_capacity(others.len());
        for node in others {
            match node {
                Node::Values { variables, rows }
                    if self.options.reorder
                        && rows.len() == 1
                        && variables.iter().all(|variable| !partial.possible.contains(*variable))
                        && rows.iter().flatten().all(Option::is_some) =>
                {
                    self.lower_values(variables, rows, partial)?;
                }
                node => left.push(node),
            }
        }
        Ok(left)
    }

    /// Joins parts that must be planned from the rows that bind parameters, and of whose variables only
    /// parameters may be bound before; returns the other parts. `known`: variables of the rest of the join.
    fn join_of_rows<'q>(
        &mut self,
        others: Vec<&'q Node>,
        known: &VariableSet,
        partial: &mut PartialPlan,
        needed: &VariableSet,
    ) -> Result<Vec<&'q Node>> {
        let mut left = Vec::with_capacity(others.len());
        let mut all = VariableUses::default();
        others.iter().for_each(|node| all.add(possible(node).iter()));
        for node in &others {
            self.control.check()?;
            let own = possible(node);
            all.remove(own.iter());
            let rest = known.clone().union(all.set());
            all.add(own.iter());
            if self.needs_rows(node) && !is_lateral(node, &rest.clone().minus(&self.parameters)) {
                self.join(node, partial, &needed.clone().union(&rest), Vec::new())?;
            } else {
                left.push(*node);
            }
        }
        Ok(left)
    }

    /// Joins parts in the given order; `false`: the cost reaches `limit`.
    fn lower_in_order(
        &mut self,
        joined: &[JoinOperand<'_>],
        partial: &mut PartialPlan,
        needed: &VariableSet,
        later: &VariableSet,
        filters: &mut Vec<Conjunct>,
        limit: Option<f64>,
    ) -> Result<bool> {
        let mut uses = VariableUses::default();
        joined.iter().skip(1).for_each(|one| uses.add(one.possible().iter()));
        for (at, one) in joined.iter().enumerate() {
            self.control.work(filters.len() + 1)?;
            if at > 0 {
                uses.remove(one.possible().iter());
            }
            let later = later.clone().union(uses.set());
            let ready = take_ready(filters, &partial.certain.clone().union(&one.certain()), &later);
            let needed =
                filters.iter().fold(needed.clone().union(&later), |set, filter| set.union(&filter.variables));
            match one {
                JoinOperand::Patterns(patterns) => {
                    if !self.lower_patterns(patterns, partial, &needed, ready, limit)? {
                        return Ok(false);
                    }
                }
                JoinOperand::Reducer(path) => {
                    self.lower_reducer(path, partial, &needed)?;
                    self.apply(ready, partial)?;
                }
                JoinOperand::Node(node) => {
                    self.join(node, partial, &needed, ready)?;
                    self.cap_rows_by_distinct(node, partial, &needed);
                }
                JoinOperand::Alone(node) if partial.unit => self.join(node, partial, &needed, ready)?,
                JoinOperand::Alone(node) => self.join_alone(node, partial, &needed, ready)?,
            }
            if limit.is_some_and(|limit| limit <= partial.cost) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn variables_of(patterns: &[&Pattern]) -> VariableSet {
    patterns.iter().flat_map(|pattern| pattern.variables()).collect()
}

/// A part of a join.
#[derive(Clone, Copy)]
enum JoinOperand<'q> {
    Patterns(&'q [&'q vervet_algebra::Pattern]),
    Node(&'q Node),
    /// A part that a hash join evaluates on its own, unless it comes first.
    Alone(&'q Node),
    /// The nodes at one end of a path that is joined later.
    Reducer(&'q PathPattern),
}

impl JoinOperand<'_> {
    fn possible(&self) -> VariableSet {
        match self {
            Self::Patterns(patterns) => patterns.iter().flat_map(|pattern| pattern.variables()).collect(),
            Self::Node(node) | Self::Alone(node) => possible(node),
            Self::Reducer(path) => path.variables().collect(),
        }
    }

    fn certain(&self) -> VariableSet {
        match self {
            Self::Patterns(_) => self.possible(),
            Self::Node(node) | Self::Alone(node) => node.certain(),
            Self::Reducer(_) => self.possible(),
        }
    }
}

/// Whether the solutions of a part of a join are sorted.
fn has_order(node: &Node) -> bool {
    match node {
        Node::OrderBy { .. } => true,
        Node::Project { input, .. } | Node::Distinct(input) | Node::Reduced(input) => has_order(input),
        _ => false,
    }
}

/// Removes and returns the conditions each of whose variables is certainly bound or not used `later`.
fn take_ready(filters: &mut Vec<Conjunct>, certain: &VariableSet, later: &VariableSet) -> Vec<Conjunct> {
    let (ready, waiting) = std::mem::take(filters).into_iter().partition(|filter: &Conjunct| {
        filter.variables.clone().minus(certain).intersection(later).is_empty()
    });
    *filters = waiting;
    ready
}

/// Connected components of the patterns by shared variables; all patterns with a variable of `bound` are one
/// component.
pub(crate) fn connected<'q>(
    patterns: Vec<&'q Pattern>,
    bound: &VariableSet,
    control: &Control<'_>,
) -> Result<Vec<Vec<&'q Pattern>>> {
    connected_except(patterns, bound, &VariableSet::default(), control)
}

/// As [`connected`], where the variables of `except` connect nothing.
pub(crate) fn connected_except<'q>(
    patterns: Vec<&'q Pattern>,
    bound: &VariableSet,
    except: &VariableSet,
    control: &Control<'_>,
) -> Result<Vec<Vec<&'q Pattern>>> {
    if patterns.len() < 2 {
        return Ok(if patterns.is_empty() { Vec::new() } else { vec![patterns] });
    }
    let mut groups: Vec<(VariableSet, Vec<&'q Pattern>)> = Vec::new();
    for pattern in patterns {
        control.work(groups.len() + 1)?;
        let mut variables: VariableSet =
            pattern.variables().filter(|variable| !except.contains(*variable)).collect();
        if variables.intersects(bound) {
            variables.add_all(bound);
        }
        let mut group = vec![pattern];
        groups.retain_mut(|(of_group, members)| {
            let meets = of_group.intersects(&variables);
            if meets {
                variables.add_all(of_group);
                members.append(&mut group);
                std::mem::swap(members, &mut group);
            }
            !meets
        });
        groups.push((variables, group));
    }
    Ok(groups.into_iter().map(|(_, group)| group).collect())
}

/// Number of parts that share no variable with earlier parts.
fn cross_products(order: &[usize], joined: &[JoinOperand<'_>], bound: &VariableSet) -> usize {
    let mut bound = bound.clone();
    let mut count = 0;
    for of in order.iter().filter_map(|at| joined.get(*at)).map(JoinOperand::possible) {
        count += usize::from(!of.intersects(&bound));
        bound.add_all(&of);
    }
    count
}

/// All permutations of `count` elements, the identity first.
fn permutations(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for shorter in permutations(count - 1) {
        for at in (0..count).rev() {
            let mut longer = shorter.clone();
            longer.insert(at, count - 1);
            all.push(longer);
        }
    }
    all
}

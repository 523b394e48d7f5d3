//! Lowering of algebra nodes to plan steps.
//!
//! # Shape
//! Every function here adds the steps to a [`PartialPlan`] that join its rows with a node. `needed` are the
//! variables that later steps read; `filters` are conjuncts that the caller pushes down, all applied when the
//! function returns.
//! # Invariants
//! 1. A node is lowered into a partial plan only if it is lateral there ([`crate::scope::is_lateral`]), or,
//!    for operators over whole bags, if the partial plan is still the single empty row; all others become a
//!    join with a separate pipeline.
//! 2. A filter is applied only where its variables have their final values.

use crate::atom::PredicateSegments;
use crate::classes::ClassSet;
use crate::cost;
use crate::filter::{Conjunct, split};
use crate::join_group::{JoinGroup, is_group};
use crate::options::PlanOptions;
use crate::partial_plan::{PartialPlan, pipeline};
use crate::path_facts::PathFacts;
use crate::scope::{expression_variables, free, is_lateral, is_stable, is_volatile, looks_at, possible};
use oxrdf::Term;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use vervet_algebra::{Aggregate, AggregateKind, Expression, Node, Path, Variable, VariableSet};
use vervet_kernel::Control;
use vervet_kernel::plan::{JoinKind, SemiJoinKind, Step};
use vervet_model::{Error, ErrorKind, Id, Result, Tag};
use vervet_snapshot::Snapshot;

/// Maximum number of alternatives planned in full for comparison, in one query. Each one plans all nested
/// nodes again, so deep nesting would take exponential time without a bound.
const ALTERNATIVES_MAX: usize = 128;

/// Minimum assumed fraction of the rows of a join that are computed before a slice above it has its rows:
/// estimates are uncertain, and a later condition may reject most rows.
const FIRST_ROWS_FRACTION_MIN: f64 = 0.01;

/// Approximate bytes of an algebra node in the plan, and in each alternative.
const NODE_BYTES: u64 = 512;

/// Work units for each node, and for each set of patterns.
pub(crate) const NODE_WORK: usize = 1 << 8;

/// Work units for each table value, since it is looked up in the dictionary.
const VALUE_WORK: usize = 8;

/// State of the planning of one query.
pub(crate) struct Planner<'a> {
    pub(crate) snapshot: &'a dyn Snapshot,
    pub(crate) options: &'a PlanOptions,
    /// Deadline, cancellation, memory.
    pub(crate) control: &'a Control<'a>,
    /// Names of the variables; empty for those added by the planner.
    pub(crate) variables: Vec<String>,
    pub(crate) parameters: VariableSet,
    /// See [`vervet_kernel::plan::Plan::computed`].
    pub(crate) computed: Vec<Term>,
    /// Positions in `computed`. Clients choose the terms, so the hash is seeded.
    computed_positions: HashMap<Term, u64>,
    /// Cache of the statistics of predicates.
    pub(crate) sides: FxHashMap<Id, Rc<PredicateSegments<'a>>>,
    /// Cache of the classes of constants.
    pub(crate) classes_of_constants: FxHashMap<Id, ClassSet>,
    /// Cache of the automata of paths.
    pub(crate) automata: RefCell<HashMap<Path, Rc<PathFacts>>>,
    /// Number of alternatives that may still be compared.
    alternatives: usize,
    /// Number of solutions that an order directly below a slice has to keep.
    limit: Option<usize>,
    /// Number of solutions after which execution stops, if no barrier is in between.
    pub(crate) first_rows: Option<f64>,
    /// Set semantics: the result of the nodes being planned does not depend on duplicates.
    pub(crate) set: bool,
    /// Whether no expression of the query is volatile.
    pub(crate) stable: bool,
    /// See [`vervet_kernel::plan::Plan::joined`].
    pub(crate) joined: Vec<u64>,
}

impl<'a> Planner<'a> {
    pub(crate) fn new(
        snapshot: &'a dyn Snapshot,
        options: &'a PlanOptions,
        control: &'a Control<'a>,
        variables: Vec<String>,
        parameters: VariableSet,
    ) -> Self {
        Self {
            snapshot,
            options,
            control,
            variables,
            parameters,
            computed: Vec::new(),
            computed_positions: HashMap::new(),
            sides: FxHashMap::default(),
            classes_of_constants: FxHashMap::default(),
            automata: RefCell::default(),
            alternatives: ALTERNATIVES_MAX,
            limit: None,
            first_rows: None,
            set: false,
            stable: false,
            joined: Vec::new(),
        }
    }

    /// Runs `plan` under bag semantics if `count`, else under set semantics if frontiers are enabled.
    pub(crate) fn with_bag_semantics_if<T>(&mut self, count: bool, plan: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.set, !count && self.options.frontiers);
        let planned = plan(self);
        self.set = before;
        planned
    }

    /// The id of a term; a plan-local computed id for a term that is not in the graph.
    pub(crate) fn value(&mut self, term: &Term) -> Result<Id> {
        if let Some(id) = self.snapshot.lookup(term.as_ref())? {
            return Ok(id);
        }
        if let Some(&position) = self.computed_positions.get(term) {
            return Ok(Id::new(Tag::Computed, position));
        }
        // Stored twice: in the list and in the hash table.
        self.control.grow(2 * term_bytes(term))?;
        let position = self.computed.len() as u64;
        self.computed.push(term.clone());
        self.computed_positions.insert(term.clone(), position);
        Ok(Id::new(Tag::Computed, position))
    }

    pub(crate) fn new_variable(&mut self) -> Result<Variable> {
        let number = u16::try_from(self.variables.len())
            .map_err(|_| Error::new(ErrorKind::Query, "the query has more than 65,536 variables"))?;
        self.variables.push(String::new());
        Ok(Variable(number))
    }

    /// Joins `partial` with `node`: laterally or by a hash join, as scoping and cost require.
    pub(crate) fn join(
        &mut self,
        node: &Node,
        partial: &mut PartialPlan,
        needed: &VariableSet,
        filters: Vec<Conjunct>,
    ) -> Result<()> {
        if partial.empty {
            return Ok(());
        }
        self.control.work(NODE_WORK)?;
        self.control.grow(NODE_BYTES)?;
        let outside = self.needs_rows(node);
        if !self.is_lateral_in(node, partial) {
            return if outside {
                Err(needs_rows_error())
            } else {
                self.join_alone(node, partial, needed, filters)
            };
        }
        if outside || self.is_start_of_exists(partial) && !is_stable(node) {
            return self.lower(node, partial, needed, filters);
        }
        let connects = || !partial.certain.clone().intersection(&possible(node)).is_empty();
        if matches!(node, Node::Patterns(_) | Node::Values { .. })
            && !self.is_linked_by_range(node, partial, &filters)
            || partial.unit
            || partial.rows < self.options.compare_from_rows && connects()
        {
            return self.lower(node, partial, needed, filters);
        }
        if !self.may_compare(2) {
            return if connects() {
                self.lower(node, partial, needed, filters)
            } else {
                self.join_alone(node, partial, needed, filters)
            };
        }
        // Compares exploration from many rows with separate evaluation and a hash join.
        let mut lateral = partial.clone();
        self.lower(node, &mut lateral, needed, filters.clone())?;
        if lateral.cost - partial.cost < self.options.compare_from_cost {
            *partial = lateral;
            return Ok(());
        }
        let mut alone = partial.clone();
        self.join_alone(node, &mut alone, needed, filters)?;
        let explored = partial.cost + (lateral.cost - partial.cost) * self.fraction_of(lateral.rows);
        *partial = if self.options.prefers_alone(alone.cost, explored) { alone } else { lateral };
        Ok(())
    }

    /// The assumed fraction of `rows` that are computed before execution stops. Exploration stops with them,
    /// the right side of a hash join is complete before the first row.
    fn fraction_of(&self, rows: f64) -> f64 {
        self.first_rows.map_or(1.0, |first| (first / rows.max(1.0)).clamp(FIRST_ROWS_FRACTION_MIN, 1.0))
    }

    /// Runs `plan` for all rows, since a barrier reads them.
    fn for_all_rows<T>(&mut self, plan: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.first_rows.take();
        let planned = plan(self);
        self.first_rows = before;
        planned
    }

    /// Whether `count` alternatives may still be planned; if so, counts them.
    pub(crate) fn may_compare(&mut self, count: usize) -> bool {
        let may = self.alternatives >= count;
        if may {
            self.alternatives -= count;
        }
        may
    }

    /// Whether the node must be planned from the rows that bind parameters: an expression reads a parameter,
    /// or pre-binding a parameter changes the result of an operator ([`looks_at`]).
    pub(crate) fn needs_rows(&self, node: &Node) -> bool {
        if self.parameters.is_empty() {
            return false;
        }
        let of_rows = possible(node).intersection(&self.parameters);
        free(node).intersects(&self.parameters)
            || looks_at(node).intersects(&self.parameters)
            || !is_bag(node) && !of_rows.is_subset(&node.certain())
    }

    pub(crate) fn is_lateral_in(&self, node: &Node, partial: &PartialPlan) -> bool {
        match node {
            Node::Group { .. } | Node::Distinct(_) | Node::OrderBy { .. } | Node::Slice { .. } => {
                partial.unit
            }
            node if is_volatile(node) => partial.unit || self.is_start_of_exists(partial),
            node => is_lateral(node, &partial.possible.clone().minus(&self.parameters)),
        }
    }

    /// Whether a pattern of an `EXISTS` is planned from the rows, for each of which it is evaluated.
    fn is_start_of_exists(&self, partial: &PartialPlan) -> bool {
        !partial.unit && partial.steps.is_empty() && partial.possible.is_subset(&self.parameters)
    }

    /// Plans a node from the empty row.
    pub(crate) fn alone(
        &mut self,
        node: &Node,
        needed: &VariableSet,
        filters: Vec<Conjunct>,
    ) -> Result<PartialPlan> {
        let mut partial = PartialPlan::start(&VariableSet::default());
        self.for_all_rows(|planner| planner.lower(node, &mut partial, needed, filters))?;
        Ok(partial)
    }

    /// Hash join with the solutions of `node`, evaluated once.
    pub(crate) fn join_alone(
        &mut self,
        node: &Node,
        partial: &mut PartialPlan,
        needed: &VariableSet,
        filters: Vec<Conjunct>,
    ) -> Result<()> {
        let bound = possible(node);
        // Pushes down the conditions whose variables this node binds.
        let (inside, outside): (Vec<_>, Vec<_>) =
            filters.into_iter().partition(|filter| filter.variables.is_subset(&node.certain()));
        let needed_later = outside.iter().fold(needed.clone(), |set, filter| set.union(&filter.variables));
        let wanted = needed_later.clone().union(&partial.possible).intersection(&bound);
        let right = self.alone(node, &wanted, inside)?;
        if right.empty || !partial.narrow_to(&right) {
            partial.make_empty();
            return Ok(());
        }
        let shared_ends = right.ends.clone();
        let outside = self.join_with_conditions(partial, right, needed, outside)?;
        let is_new = |(of, _): &(Variable, _)| !partial.ends.iter().any(|(known, _)| known == of);
        let new: Vec<_> = shared_ends.into_iter().filter(is_new).collect();
        partial.ends.extend(new);
        self.apply(outside, partial)
    }

    /// Adds a join with `right`; `wanted`: the columns of `right` that later steps or its condition read.
    pub(crate) fn push_join(
        &mut self,
        partial: &mut PartialPlan,
        right: PartialPlan,
        kind: JoinKind,
        shared: &VariableSet,
        wanted: &VariableSet,
        rows: f64,
    ) {
        let on = shared.clone().intersection(&partial.certain).intersection(&right.certain);
        let compatible = shared.clone().minus(&on);
        let adds = wanted.clone().intersection(&right.possible).minus(&partial.possible);
        partial.cost += right.cost + right.rows * cost::BUILD_ROW + partial.rows * cost::PROBE_ROW;
        partial.cost += rows * cost::OUTPUT_ROW;
        let (binds, extends) =
            (matches!(kind, JoinKind::Inner(_)), matches!(kind, JoinKind::Inner(_) | JoinKind::Left(_)));
        let step = Step::Join {
            right: pipeline(right.steps),
            kind,
            on: on.iter().collect(),
            compatible: compatible.iter().collect(),
            adds: adds.iter().collect(),
        };
        partial.push(step, rows);
        if extends {
            partial.possible.add_all(&adds);
        }
        if binds {
            partial.certain.add_all(&right.certain.intersection(&partial.possible));
        }
    }

    /// Joins `partial` with `node`, which is lateral there.
    fn lower(
        &mut self,
        node: &Node,
        partial: &mut PartialPlan,
        needed: &VariableSet,
        filters: Vec<Conjunct>,
    ) -> Result<()> {
        if partial.empty {
            return Ok(());
        }
        let limit = self.limit.take();
        let with_filters = |filters: &[Conjunct]| {
            filters.iter().fold(needed.clone(), |set, filter| set.union(&filter.variables))
        };
        match node {
            Node::Filter { input, condition } if !is_pure(condition) => {
                let mut conjuncts = Vec::new();
                split(condition, &mut conjuncts);
                let (mut pure, placed): (Vec<_>, Vec<_>) =
                    conjuncts.into_iter().partition(Conjunct::is_movable);
                let needed = with_filters(&placed);
                pure.extend(filters);
                self.join(input, partial, &needed, pure)?;
                self.apply(placed, partial)?;
            }
            node if is_group(node) => {
                let mut group = JoinGroup { filters, ..JoinGroup::default() };
                group.add(node, &partial.possible.clone().minus(&self.parameters), true, self.control)?;
                self.lower_group_parts(group, partial, needed)?;
            }
            Node::Union(branches) => self.lower_union(branches, partial, needed, &filters)?,
            Node::Values { variables, rows } => {
                self.lower_values(variables, rows, partial)?;
                self.apply(filters, partial)?;
            }
            Node::Path(path) => {
                self.lower_path(path, partial, &with_filters(&filters))?;
                self.apply(filters, partial)?;
            }
            Node::Project { input, .. } => {
                self.limit = limit;
                self.join(input, partial, needed, filters)?;
            }
            Node::Reduced(input) => self.join(input, partial, needed, filters)?,
            Node::Distinct(input) => {
                let visible = possible(input);
                let wanted = with_filters(&filters).union(&visible);
                self.with_bag_semantics_if(false, |planner| planner.join(input, partial, &wanted, filters))?;
                if !self.is_set(input) {
                    let variables: Vec<Variable> = visible.intersection(&partial.possible).iter().collect();
                    partial.cost += partial.rows * cost::distinct(variables.len());
                    let rows = self.distinct_rows(partial, &variables, None)?.unwrap_or(partial.rows);
                    partial.push(Step::Distinct { variables }, rows);
                }
            }
            Node::Group { input, keys, aggregates } => {
                self.lower_group(input, keys, aggregates, partial, needed, filters)?
            }
            Node::OrderBy { input, keys } => {
                let wanted = keys.iter().fold(with_filters(&filters), |set, key| {
                    set.union(&expression_variables(&key.expression))
                });
                self.for_all_rows(|planner| planner.join(input, partial, &wanted, filters))?;
                let mut keys = keys.clone();
                for key in &mut keys {
                    let expression = std::mem::replace(&mut key.expression, Expression::Unbound);
                    key.expression = self.without_patterns(expression, partial)?;
                }
                partial.cost += cost::sort(partial.rows);
                let rows = limit.map_or(partial.rows, |limit| partial.rows.min(limit as f64));
                partial.push(Step::Order { keys, limit }, rows);
            }
            Node::Slice { input, start, length } => {
                if *length == Some(0) {
                    partial.make_empty();
                    return Ok(());
                }
                if is_ordered(input) {
                    self.limit = length.map(|length| length.saturating_add(*start));
                }
                let wanted = with_filters(&filters);
                let first = length.map(|length| length.saturating_add(*start) as f64);
                let before = std::mem::replace(&mut self.first_rows, first);
                let planned = self
                    .with_bag_semantics_if(true, |planner| planner.join(input, partial, &wanted, Vec::new()));
                self.first_rows = before;
                planned?;
                let rows = (partial.rows - *start as f64).max(0.0);
                let rows = length.map_or(rows, |length| rows.min(length as f64));
                partial.push(Step::Slice { start: *start, length: *length }, rows);
                self.apply(filters, partial)?;
            }
            // All other nodes are groups.
            _ => return Err(Error::internal("a node of the algebra has no plan")),
        }
        Ok(())
    }

    pub(crate) fn lower_optional(
        &mut self,
        right: &Node,
        condition: Option<&Expression>,
        partial: &mut PartialPlan,
        needed: &VariableSet,
    ) -> Result<()> {
        if partial.empty {
            return Ok(());
        }
        let mut filters = Vec::new();
        if let Some(condition) = condition {
            split(condition, &mut filters);
        }
        let bound = possible(right);
        let connects = !partial.certain.clone().intersection(&bound).is_empty();
        let outside = self.needs_rows(right);
        let has_exists = condition.is_some_and(Expression::has_exists);
        let is_lateral = self.is_lateral_in(right, partial) && !is_bag(right);
        if outside && !is_lateral {
            return Err(needs_rows_error());
        }
        // A condition with `EXISTS` is planned from rows.
        let lateral = if is_lateral || has_exists {
            let mut inner = partial.nested_by_row();
            // Conditions read both sides, and the columns of the left side are already bound.
            let (pure, placed): (Vec<_>, Vec<_>) = filters.iter().cloned().partition(Conjunct::is_movable);
            let wanted = placed.iter().fold(needed.clone(), |set, filter| set.union(&filter.variables));
            if is_lateral {
                self.join(right, &mut inner, &wanted, pure)?;
            } else {
                self.join_alone(right, &mut inner, &wanted, pure)?;
            }
            self.apply(placed, &mut inner)?;
            if inner.empty || inner.steps.is_empty() {
                return Ok(());
            }
            let mut outer = partial.clone();
            outer.cost = inner.cost + partial.rows * cost::OUTPUT_ROW;
            outer.possible.add_all(&inner.possible);
            let row = self.new_variable()?;
            let rows = inner.rows.max(partial.rows);
            outer.push(Step::Optional { inner: pipeline(inner.steps), row }, rows);
            if outside
                || has_exists
                || partial.unit
                || outer.cost - partial.cost < self.options.compare_from_cost
                || connects && (partial.rows < self.options.compare_from_rows || !self.may_compare(2))
            {
                *partial = outer;
                return Ok(());
            }
            match self.lower_seeded(right, &filters, partial, needed, rows)? {
                Some(seeded) if seeded.cost < outer.cost * self.options.seeded => Some(seeded),
                _ => Some(outer),
            }
        } else {
            None
        };
        let of_condition =
            filters.iter().fold(VariableSet::default(), |set, filter| set.union(&filter.variables));
        let wanted = needed.clone().union(&of_condition).intersection(&bound);
        let mut side = self.alone(
            right,
            &wanted.clone().union(&partial.possible.clone().intersection(&bound)),
            Vec::new(),
        )?;
        if side.empty {
            return Ok(());
        }
        let shared = partial.possible.clone().intersection(&side.possible);
        let mut hashed = partial.clone();
        let condition = self.left_condition(condition, filters, &shared, &mut hashed, &mut side)?;
        let rows = match shared.is_empty() {
            true => (partial.rows * side.rows * condition.selectivity()).max(partial.rows),
            false => partial.rows.max(side.rows),
        };
        hashed.cost += condition.cost(partial.rows, side.rows);
        let wanted = condition.variables().intersection(&side.possible).union(&wanted);
        self.push_join(&mut hashed, side, JoinKind::Left(condition.condition), &shared, &wanted, rows);
        *partial = match lateral {
            Some(lateral) if !self.options.prefers_alone(hashed.cost, lateral.cost) => lateral,
            _ => hashed,
        };
        Ok(())
    }

    pub(crate) fn lower_minus(&mut self, right: &Node, partial: &mut PartialPlan) -> Result<()> {
        let both = partial.possible.clone().intersection(&possible(right));
        // A parameter counts as a constant, and constants are not shared variables.
        let shared = both.clone().minus(&self.parameters);
        if partial.empty || shared.is_empty() {
            return Ok(());
        }
        let outside = self.needs_rows(right);
        if outside || !both.is_subset(&shared) {
            // If some shared variable is certainly bound on both sides, only compatibility remains to be
            // tested, including that of parameters.
            let sure = shared.clone().intersection(&partial.certain).intersection(&right.certain());
            if sure.is_empty() || outside && !self.is_lateral_in(right, partial) {
                return Err(needs_rows_error());
            }
        }
        if outside {
            return self.minus_from_rows(right, partial);
        }
        let side = self.with_bag_semantics_if(false, |planner| planner.alone(right, &both, Vec::new()))?;
        let both = both.intersection(&side.possible);
        if !side.empty && both.intersects(&shared) {
            let rows = partial.rows;
            self.push_join(partial, side, JoinKind::Minus, &both, &VariableSet::default(), rows);
        }
        Ok(())
    }

    /// `MINUS` as an anti-join evaluated from the rows: drops rows from which the excluded part has a
    /// solution.
    fn minus_from_rows(&mut self, right: &Node, partial: &mut PartialPlan) -> Result<()> {
        let mut inner = partial.nested_by_row();
        let needed = VariableSet::default();
        self.with_bag_semantics_if(false, |planner| planner.join(right, &mut inner, &needed, Vec::new()))?;
        if inner.empty {
            return Ok(());
        }
        if inner.steps.is_empty() {
            partial.make_empty();
            return Ok(());
        }
        let row = self.new_variable()?;
        partial.cost = inner.cost + partial.rows * cost::OUTPUT_ROW;
        let inner = pipeline(inner.steps);
        partial.push(Step::Exists { inner, row, semi_join_kind: SemiJoinKind::Anti }, partial.rows);
        Ok(())
    }

    fn lower_union(
        &mut self,
        branches: &[Node],
        partial: &mut PartialPlan,
        needed: &VariableSet,
        filters: &[Conjunct],
    ) -> Result<()> {
        let mut flat = Vec::new();
        flatten_union(branches, &mut flat);
        let mut partials = Vec::new();
        for branch in flat {
            let mut inner = partial.nested();
            self.join(branch, &mut inner, needed, filters.to_vec())?;
            if !inner.empty {
                partials.push(inner);
            }
        }
        if self.set && self.first_rows.is_some_and(|first| first <= 1.0) {
            // One row of any branch is enough.
            let before = partial.cost;
            let to_first = |branch: &PartialPlan| (branch.cost - before) / branch.rows.clamp(0.01, 1.0);
            partials.sort_by(|a, b| to_first(a).total_cmp(&to_first(b)));
        }
        match partials.len() {
            0 => partial.make_empty(),
            1 => {
                let mut steps = std::mem::take(&mut partial.steps);
                *partial = partials.remove(0);
                steps.append(&mut partial.steps);
                partial.steps = steps;
            }
            _ => {
                let branches = partial.merge(partials);
                partial.push(Step::Union { branches }, partial.rows);
            }
        }
        Ok(())
    }

    pub(crate) fn lower_values(
        &mut self,
        variables: &[Variable],
        rows: &[Vec<Option<Term>>],
        partial: &mut PartialPlan,
    ) -> Result<()> {
        let row_bytes = size_of::<Vec<Id>>() + variables.len() * size_of::<Id>();
        self.control.grow((rows.len() as u64).saturating_mul(row_bytes as u64))?;
        let mut ids = Vec::with_capacity(rows.len());
        for row in rows {
            self.control.work(VALUE_WORK * variables.len().max(1))?;
            let mut of_row = Vec::with_capacity(variables.len());
            for at in 0..variables.len() {
                of_row.push(match row.get(at) {
                    Some(Some(term)) => self.value(term)?,
                    _ => Id::UNBOUND,
                });
            }
            ids.push(of_row);
        }
        self.push_values(variables.to_vec(), ids, partial);
        Ok(())
    }

    /// Joins with a table.
    pub(crate) fn push_values(
        &mut self,
        variables: Vec<Variable>,
        rows: Vec<Vec<Id>>,
        partial: &mut PartialPlan,
    ) {
        if rows.is_empty() {
            partial.make_empty();
            return;
        }
        let is_new = variables.iter().all(|variable| !partial.possible.contains(*variable));
        let count = rows.len() as f64;
        let after = if is_new { partial.rows * count } else { partial.rows * (count * 0.1).min(1.0) };
        partial.cost += partial.rows * count.min(4.0) * cost::OUTPUT_ROW + after * cost::OUTPUT_ROW;
        for (at, variable) in variables.iter().enumerate() {
            partial.possible.insert(*variable);
            if rows.iter().all(|row| row[at].is_bound()) {
                partial.certain.insert(*variable);
                if rows.iter().all(|row| row[at] == rows[0][at]) {
                    partial.constants.entry(*variable).or_insert(rows[0][at]);
                }
            }
        }
        if !(variables.is_empty() && rows.len() == 1) {
            partial.push(Step::Values { variables, rows: rows.into() }, after);
        }
    }

    fn lower_group(
        &mut self,
        input: &Node,
        keys: &[Variable],
        aggregates: &[(Variable, Aggregate)],
        partial: &mut PartialPlan,
        needed: &VariableSet,
        filters: Vec<Conjunct>,
    ) -> Result<()> {
        // A variable that every solution binds is counted as the solutions are.
        let certain = input.certain();
        let mut aggregates = aggregates.to_vec();
        for (_, aggregate) in &mut aggregates {
            if let (AggregateKind::Count, Some(Expression::Variable(of)), false) =
                (&aggregate.kind, &aggregate.expression, aggregate.distinct)
                && certain.contains(*of)
            {
                aggregate.expression = None;
            }
        }
        let of_keys: VariableSet = keys.iter().copied().collect();
        let (inside, outside): (Vec<_>, Vec<_>) =
            filters.into_iter().partition(|filter| !keys.is_empty() && filter.variables.is_subset(&of_keys));
        if keys.is_empty()
            && let Some(counts) = self.known_counts(input, &aggregates)?
        {
            let variables = aggregates.iter().map(|(variable, _)| *variable).collect();
            self.push_values(variables, vec![counts], partial);
            self.apply(outside, partial)?;
            return Ok(());
        }
        let is_star = |aggregate: &Aggregate| aggregate.distinct && aggregate.expression.is_none();
        let visible = possible(input);
        let mut wanted = of_keys.clone();
        for (_, aggregate) in &aggregates {
            match &aggregate.expression {
                Some(expression) => wanted.add_all(&expression_variables(expression)),
                None if aggregate.distinct => wanted.add_all(&visible),
                None => {}
            }
        }
        let count = !aggregates.iter().all(|(_, one)| one.ignores_duplicates());
        self.with_bag_semantics_if(count, |planner| {
            planner.for_all_rows(|planner| planner.join(input, partial, &wanted, inside))
        })?;
        if !keys.is_empty() && partial.empty {
            return Ok(());
        }
        for expression in aggregates.iter_mut().filter_map(|(_, one)| one.expression.as_mut()) {
            let given = std::mem::replace(expression, Expression::Unbound);
            *expression = self.without_patterns(given, partial)?;
        }
        if !partial.empty && aggregates.iter().any(|(_, aggregate)| is_star(aggregate)) {
            if aggregates.iter().all(|(_, aggregate)| is_star(aggregate)) {
                // Deduplicates the solutions before they are counted.
                let variables = visible.clone().intersection(&partial.possible).iter().collect();
                partial.push(Step::Distinct { variables }, partial.rows);
                aggregates.iter_mut().for_each(|(_, aggregate)| aggregate.distinct = false);
            } else if self.variables.len() > visible.iter().count() + aggregates.len() {
                // The kernel would count all columns, including those hidden from this sub-query.
                return Err(Error::new(
                    ErrorKind::Unsupported,
                    "COUNT(DISTINCT *) beside other aggregates is not supported in this query",
                )
                .with_hint("name the counted variables, or count in a separate sub-query"));
            }
        }
        if let ([(_, aggregate)], true, false) = (aggregates.as_mut_slice(), keys.is_empty(), partial.empty)
            && let (AggregateKind::Count, Some(Expression::Variable(of)), true) =
                (&aggregate.kind, &aggregate.expression, aggregate.distinct)
            && partial.possible.contains(*of)
        {
            // A set of one column is smaller than one of groups and values, and threads may share it.
            partial.push(Step::Distinct { variables: vec![*of] }, partial.rows);
            aggregate.distinct = false;
        }
        partial.cost += partial.rows * cost::GROUP_ROW;
        let rows = if keys.is_empty() {
            1.0
        } else {
            // Computed values are often few.
            let of_unknown = partial.rows.max(1.0).sqrt();
            self.distinct_rows(partial, keys, Some(of_unknown))?.unwrap_or(partial.rows)
        };
        let domains =
            partial.domains.iter().filter(|(variable, _)| of_keys.contains(*variable)).copied().collect();
        let mut after = PartialPlan::start(&VariableSet::default());
        after.steps = std::mem::take(&mut partial.steps);
        after.cost = partial.cost;
        after.domains = domains;
        after.classes = partial.classes.iter().filter(|(of, _)| of_keys.contains(*of)).cloned().collect();
        after.ends = partial.ends.iter().filter(|(of, _)| of_keys.contains(*of)).cloned().collect();
        after.constants = partial.constants.clone();
        after.constants.retain(|of, _| of_keys.contains(*of));
        after.possible = of_keys.clone().intersection(&partial.possible);
        after.certain = of_keys.intersection(&partial.certain);
        for (variable, aggregate) in &aggregates {
            after.possible.insert(*variable);
            if aggregate.kind == AggregateKind::Count {
                after.certain.insert(*variable);
            }
        }
        if let Some(lost) = (needed.clone().intersection(&self.parameters).intersection(&partial.possible))
            .minus(&after.possible)
            .iter()
            .next()
        {
            let name = self.variables.get(lost.index()).map_or("", String::as_str);
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!("the parameter ?{name} cannot be used after a grouping that does not contain it"),
            )
            .with_hint("add it to GROUP BY"));
        }
        after.push(Step::Group { keys: keys.to_vec(), aggregates }, rows);
        *partial = after;
        self.apply(outside, partial)
    }
}

fn needs_rows_error() -> Error {
    let message = "a part evaluated separately reads a parameter, or a variable from outside its EXISTS";
    Error::new(ErrorKind::Unsupported, message)
        .with_hint("move the expression that reads it out of the OPTIONAL, MINUS or sub-query")
}

fn flatten_union<'q>(branches: &'q [Node], out: &mut Vec<&'q Node>) {
    for branch in branches {
        match branch {
            Node::Union(branches) => flatten_union(branches, out),
            branch => out.push(branch),
        }
    }
}

fn is_pure(condition: &Expression) -> bool {
    !condition.is_volatile()
}

pub(crate) fn is_bag(node: &Node) -> bool {
    match node {
        Node::Group { .. } | Node::Distinct(_) | Node::OrderBy { .. } | Node::Slice { .. } => true,
        Node::Project { input, .. } | Node::Reduced(input) => is_bag(input),
        _ => false,
    }
}

/// Whether the node is an order, possibly below projections.
fn is_ordered(node: &Node) -> bool {
    match node {
        Node::OrderBy { .. } => true,
        Node::Project { input, .. } => is_ordered(input),
        _ => false,
    }
}

/// Approximate size of a term in bytes.
fn term_bytes(term: &Term) -> u64 {
    let text = match term {
        Term::NamedNode(node) => node.as_str().len(),
        Term::BlankNode(node) => node.as_str().len(),
        Term::Literal(literal) => literal.value().len(),
        // Approximated by four terms; its parts are terms of the query.
        Term::Triple(triple) => 4 * size_of::<Term>() + triple.predicate.as_str().len(),
    };
    (size_of::<Term>() + text) as u64
}

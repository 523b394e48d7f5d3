//! Candidate generation of the join-order search: next actions with estimated rows and cost.
//!
//! # Shape
//! Every remaining pattern yields at most one candidate for each access method: a check if both ends are
//! bound, an expansion if one is, a scan if no other action continues, a general match. Every unbound
//! variable that two patterns connect with bound ones yields an intersection. Implied patterns are optional:
//! a start, or a check that saves more than it costs.

use crate::atom::{DirectedSegment, variable_of};
use crate::cost;
use crate::estimate::{ClassDistributions, Estimator};
use crate::join_state::{Action, Candidate, JoinOrderSearch, Legs, State, bind};
use crate::negligible::NEGLIGIBLE_ROWS_MAX;
use vervet_algebra::{Variable, VariableSet};
use vervet_kernel::plan::Operand;
use vervet_kernel::{SMALL_LIST_LAST_MEAN, SMALL_LIST_PREFIX_MEAN};
use vervet_model::Direction;

/// Minimum fraction of rows that the check of an implied pattern must reject.
const IMPLIED_CHECK_STOPS_MIN: f64 = 0.1;

/// Maximum ratio of runs of equal keys to rows for which an intersection lists a leg once for each run and
/// stores its entries in a bit set.
const RUNS_SHARE_MAX: f64 = 1.0 / 3.0;

/// Minimum rows for which the search considers a frontier; below, planning takes longer than it saves.
const FRONTIER_ROWS_MIN: f64 = 1024.0;

/// Generator of the candidates of one state.
pub(crate) struct CandidateGenerator<'o, 's, 'a> {
    pub(crate) search: &'o JoinOrderSearch<'s, 'a>,
    pub(crate) estimator: &'o mut Estimator<'s, 'a>,
    pub(crate) state: &'o State,
    /// The distributions of `state`.
    pub(crate) classes: ClassDistributions,
    /// Position of `state` in the search.
    pub(crate) parent: u32,
    /// The atoms that a complete order must contain.
    pub(crate) mandatory: u64,
    pub(crate) out: &'o mut Vec<Candidate>,
}

/// A candidate before filters: action, rows and cost.
struct UnfilteredCandidate {
    action: Action,
    done: u64,
    rows: f64,
    /// Upper bound of the rows after the filters.
    most: f64,
    cost: f64,
    independent: bool,
}

impl CandidateGenerator<'_, '_, '_> {
    /// Appends all candidates to `out`.
    pub(crate) fn collect(mut self) {
        let atoms = self.search.atoms;
        let is_start = self.state.done == 0;
        let reorder = self.search.reorder;
        let wanted = if reorder { usize::MAX } else { 1 };
        let done = self.state.done;
        let is_open = |index: &usize| done >> index & 1 == 0 && (reorder || !atoms[*index].implied);
        let todo = || (0..atoms.len()).filter(is_open).take(wanted);
        if reorder && self.state.rows <= NEGLIGIBLE_ROWS_MAX && self.negligible() {
            return;
        }
        let (mut connected, mut expanded) = (false, 0_u64);
        for index in todo() {
            let atom = &atoms[index];
            let bound = (self.is_bound(atom.subject), self.is_bound(atom.object));
            if atom.general.is_some() {
                if let Some(edge) = atom.edge
                    && !self.state.bound.contains(edge)
                    && bound.0 != bound.1
                {
                    let direction = if bound.0 { Direction::Out } else { Direction::In };
                    let before = self.out.len();
                    connected |= self.expand(index, direction);
                    expanded |= u64::from(self.out.len() > before) << index;
                    continue;
                }
                // Only where it continues bound variables, or below as a start.
                let continues = atom.variables.intersects(&self.state.bound);
                if continues || atom.variables.is_empty() || bound.0 || bound.1 {
                    connected = true;
                    self.general(index);
                    self.seek(index);
                }
                continue;
            }
            match bound {
                (true, true) => {
                    // The check of an implied pattern may be rejected; then it does not connect.
                    let before = self.out.len();
                    self.check(index);
                    connected |= self.out.len() > before;
                }
                (true, false) => connected |= self.expand(index, Direction::Out),
                (false, true) if !atom.implied => connected |= self.expand(index, Direction::In),
                _ => {}
            }
        }
        if self.search.intersect && reorder {
            self.intersections();
        }
        // A disconnected component starts with a scan, when all connected patterns are done.
        if connected && !is_start {
            return;
        }
        for index in todo().filter(|index| !atoms[*index].implied || is_start) {
            let atom = &atoms[index];
            if atom.general.is_some() {
                // A pattern that an expansion can evaluate needs no general match or seek as a start.
                if expanded >> index & 1 == 0 {
                    self.general(index);
                    self.seek(index);
                }
            } else if self.is_bound(atom.object) && !self.is_bound(atom.subject) {
                if atom.implied {
                    self.expand(index, Direction::In);
                }
            } else if !self.is_bound(atom.subject) {
                Direction::BOTH.into_iter().for_each(|direction| self.scan(index, direction));
                self.seek(index);
            }
        }
    }

    /// Adds the first candidate that needs no comparison, checks before expansions; returns whether there is
    /// one.
    fn negligible(&mut self) -> bool {
        let atoms = self.search.atoms;
        let is_open = |index: &usize| {
            let atom = &atoms[*index];
            self.state.done >> index & 1 == 0 && atom.general.is_none() && !atom.implied
        };
        let open: u64 = (0..atoms.len()).filter(is_open).fold(0, |mask, index| mask | 1 << index);
        for is_check in [true, false] {
            let mut rest = open;
            while rest != 0 {
                let index = rest.trailing_zeros() as usize;
                rest &= rest - 1;
                let atom = &atoms[index];
                match (self.is_bound(atom.subject), self.is_bound(atom.object)) {
                    (true, true) if is_check => self.check(index),
                    (true, false) if !is_check && self.search.has_one_row(index, Direction::Out) => {
                        self.expand(index, Direction::Out);
                    }
                    (false, true) if !is_check && self.search.has_one_row(index, Direction::In) => {
                        self.expand(index, Direction::In);
                    }
                    _ => continue,
                }
                if self.search.negligible(self.state, self.out, self.mandatory).is_some() {
                    return true;
                }
                self.out.clear();
            }
        }
        false
    }

    fn is_bound(&self, end: Operand) -> bool {
        variable_of(end).is_none_or(|variable| self.state.bound.contains(variable))
    }

    fn degree(&self, index: usize, direction: Direction) -> (f64, f64) {
        self.estimator.degree(self.classes, self.state.done, index, direction)
    }

    /// Average length of a leg, for the cost of an intersection. The cost model has been calibrated with
    /// averages by class, and the kernel takes the shortest list of each row.
    fn leg_degree(&self, index: usize, direction: Direction) -> f64 {
        self.estimator.leg_degree(self.classes, self.state.done, index, direction)
    }

    fn scan(&mut self, index: usize, direction: Direction) {
        let atom = &self.search.atoms[index];
        let Some(side) = atom.side(direction) else { return };
        let done = self.state.done | 1 << index;
        let (keys, entries) = (side.statistics.keys as f64, side.statistics.entries as f64);
        let neighbour = variable_of(atom.ends(direction).1);
        let (rows, cost) = if neighbour.is_some_and(|variable| self.search.is_dead(variable, done)) {
            (keys, keys * (cost::SCAN_KEY + cost::OUTPUT_ROW))
        } else {
            // Later steps that remember rows are faster where equal values of needed variables are
            // consecutive.
            let is_needed = |variable: Variable| self.search.uses.iter().all(|(of, _)| *of != variable);
            let key = variable_of(atom.ends(direction).0);
            let scattered = !key.is_some_and(is_needed) && neighbour.is_some_and(is_needed);
            let of_entry = cost::OUTPUT_ROW + if scattered { cost::SCATTERED_ROW } else { 0.0 };
            (entries, keys * cost::SCAN_KEY + entries * of_entry)
        };
        let action = Action::Scan(number(index), direction);
        let (rows, cost) = (self.state.rows * rows, self.state.rows * cost);
        self.push(UnfilteredCandidate { action, done, rows, most: f64::INFINITY, cost, independent: false });
    }

    /// A seek: a scan of the keys that sargable conditions leave.
    fn seek(&mut self, index: usize) {
        let atom = &self.search.atoms[index];
        let Some(seek) = &atom.seek else { return };
        let done = self.state.done | 1 << index;
        let dead = variable_of(atom.subject).is_some_and(|variable| self.search.is_dead(variable, done));
        let (fan_out, start) = match &atom.general {
            None if dead => (1.0, 0.0),
            None => (seek.degree, 0.0),
            Some((general, _)) => {
                let edge = general.edge.is_some_and(|edge| self.is_bound(edge));
                if edge || self.is_bound(atom.subject) || self.is_bound(atom.object) {
                    return;
                }
                (seek.degree, cost::MATCH_ROW)
            }
        };
        let all = seek.keys * fan_out;
        let read = (seek.candidate_count * fan_out).min(all);
        let cost = start + seek.lookups * cost::EXPAND_ROW + read * cost::OUTPUT_ROW;
        // The filter cost of all rows is added later; subtracts the cost of tests that the seek saves.
        let cost = cost - (all - read) * seek.test;
        let action = Action::Seek(number(index));
        let (rows, cost, most) = (self.state.rows * all, self.state.rows * cost, self.state.rows * read);
        self.push(UnfilteredCandidate { action, done, rows, most, cost, independent: false });
    }

    /// Adds an expansion; returns whether it connects with bound variables.
    fn expand(&mut self, index: usize, direction: Direction) -> bool {
        let atom = &self.search.atoms[index];
        if atom.side(direction).is_none() {
            return false;
        }
        let (key, neighbour) = atom.ends(direction);
        let done = self.state.done | 1 << index;
        let (degree, keys) = self.degree(index, direction);
        let before = self.state.rows;
        let neighbour = variable_of(neighbour);
        let is_counted =
            atom.edge.is_none() && neighbour.is_some_and(|variable| self.search.is_dead(variable, done));
        let (rows, cost) = if is_counted {
            let rows = before * keys;
            (rows, before * cost::DEGREE_ROW + rows * cost::OUTPUT_ROW)
        } else {
            let rows = before * degree;
            let output = cost::OUTPUT_ROW + if atom.edge.is_some() { cost::EDGE_ROW } else { 0.0 };
            (rows, before * cost::EXPAND_ROW + rows * output)
        };
        let is_leaf = |variable| self.is_leaf(index, variable);
        let independent = neighbour.is_some_and(is_leaf) && atom.edge.is_none_or(is_leaf);
        self.push(UnfilteredCandidate {
            action: Action::Expand(number(index), direction),
            done,
            rows,
            most: f64::INFINITY,
            cost,
            independent,
        });
        // An expansion from a constant is a start; only a bound variable connects.
        variable_of(key).is_some()
            || self.state.done == 0
            || !neighbour.is_some_and(|variable| self.has_bound_neighbour(variable))
    }

    /// Whether no other remaining pattern or condition contains this unbound variable.
    fn is_leaf(&self, index: usize, variable: Variable) -> bool {
        let mut others = self.search.atoms.iter().enumerate().filter(|(at, _)| *at != index);
        others.all(|(at, atom)| {
            self.state.done >> at & 1 == 1 || atom.implied || !atom.variables.contains(variable)
        }) && !self.search.filters.iter().any(|filter| filter.variables.contains(variable))
    }

    /// Whether another pattern connects this unbound variable with a bound one.
    fn has_bound_neighbour(&self, variable: Variable) -> bool {
        self.search.atoms.iter().enumerate().any(|(at, atom)| {
            self.state.done >> at & 1 == 0
                && atom.variables.contains(variable)
                && atom.variables.intersects(&self.state.bound)
        })
    }

    fn check(&mut self, index: usize) {
        let atom = &self.search.atoms[index];
        let done = self.state.done | 1 << index;
        let before = self.state.rows;
        let passed = self.estimator.selectivity(self.classes, self.state.done, index);
        if atom.implied && passed > 1.0 - IMPLIED_CHECK_STOPS_MIN {
            return;
        }
        let rows = before * passed;
        let (action, cost) = if atom.counts_once {
            let Some((direction, cost)) = self.check_direction(index) else { return };
            (Action::Check(number(index), direction), before * cost + rows * cost::OUTPUT_ROW)
        } else {
            (Action::Match(number(index)), before * cost::MATCH_ROW)
        };
        self.push(UnfilteredCandidate { action, done, rows, most: f64::INFINITY, cost, independent: true });
    }

    /// The cheaper direction of a check of this atom, and its cost for each row.
    fn check_direction(&self, index: usize) -> Option<(Direction, f64)> {
        let atom = &self.search.atoms[index];
        if atom.types.is_some() && atom.side(Direction::Out).is_some() {
            return Some((Direction::Out, cost::CHECK_TYPE));
        }
        Direction::BOTH
            .into_iter()
            .filter(|direction| atom.side(*direction).is_some())
            .map(|direction| (direction, cost::check(self.degree(index, direction).0)))
            .min_by(|a, b| a.1.total_cmp(&b.1))
    }

    fn general(&mut self, index: usize) {
        let atom = &self.search.atoms[index];
        let Some((_, all)) = &atom.general else { return };
        // Heuristic fan-out without data access: each bound end divides by the assumed number of ends.
        let degree = |direction: Direction, most: f64| {
            let average = atom.side(direction).map(DirectedSegment::average_degree);
            atom.degrees[direction as usize].or(average).unwrap_or(all.sqrt().min(most))
        };
        let [subject, object] = atom.in_doubt;
        let bound = (self.is_bound(atom.subject) || subject, self.is_bound(atom.object) || object);
        let fan_out = match bound {
            // A pair of values that some other pattern relates is often an entry.
            (true, true) => degree(Direction::Out, 1.0).min(degree(Direction::In, 1.0)).min(1.0),
            (true, false) => degree(Direction::Out, 8.0),
            (false, true) => degree(Direction::In, 16.0),
            (false, false) => *all,
        };
        let rows = self.state.rows * fan_out;
        let cost = self.state.rows * cost::MATCH_ROW + rows * cost::MATCH_ENTRY;
        let done = self.state.done | 1 << index;
        self.push(UnfilteredCandidate {
            action: Action::Match(number(index)),
            done,
            rows,
            most: f64::INFINITY,
            cost,
            independent: false,
        });
    }

    fn intersections(&mut self) {
        let mut seen = VariableSet::default();
        for first in 0..self.search.atoms.len() {
            for direction in Direction::BOTH {
                if let Some(target) = self.leg_target(first, direction)
                    && !seen.contains(target)
                {
                    seen.insert(target);
                    self.intersection(target, first);
                }
            }
        }
    }

    /// Adds the intersection for `target` of all atoms from `first` on that can be legs.
    fn intersection(&mut self, target: Variable, first: usize) {
        let mut legs = [(0_u8, Direction::Out, 0.0_f64); Legs::MAX];
        let mut count = 0;
        for index in first..self.search.atoms.len() {
            for direction in Direction::BOTH {
                if count < Legs::MAX && self.leg_target(index, direction) == Some(target) {
                    legs[count] = (number(index), direction, self.leg_degree(index, direction));
                    count += 1;
                }
            }
        }
        if count < 2 {
            return;
        }
        let legs = &mut legs[..count];
        legs.sort_by(|a, b| a.2.total_cmp(&b.2));
        let mut chosen = Legs { count: 0, all: [(0, Direction::Out); Legs::MAX] };
        let (mut done, mut listed, mut probed) = (self.state.done, 0.0, 0.0);
        let shortest = legs[0].2;
        for &(index, direction, degree) in &*legs {
            // A leg much longer than the shortest one is cheaper as a later check.
            let too_long = degree * cost::LEG_ENTRY >= 20.0 + shortest * cost::check(degree);
            if chosen.count >= 2 && too_long {
                continue;
            }
            chosen.all[usize::from(chosen.count)] = (index, direction);
            chosen.count += 1;
            done |= 1 << index;
            listed += degree * cost::LEG_ENTRY;
            if chosen.count > 1 {
                probed += shortest * self.leg_probe(usize::from(index));
            }
        }
        // The kernel chooses the cheapest method for each batch.
        let costs = [listed, probed, self.reversed(&chosen, shortest), self.in_runs(&chosen)];
        let by_degrees =
            f64::from(chosen.count) * cost::LEG_ROW + costs.into_iter().fold(f64::INFINITY, f64::min);
        let per_row = by_degrees.min(self.small_list_cost(&chosen));
        let checkpoint = self.estimator.checkpoint();
        let (growth, _) = self.estimator.intersection(self.classes, self.state.done, chosen.iter());
        self.estimator.forget(checkpoint);
        let before = self.state.rows;
        let rows = before * growth;
        let rows = if self.search.is_dead(target, done) { rows.min(before) } else { rows };
        let cost = before * per_row + rows * cost::OUTPUT_ROW;
        self.push(UnfilteredCandidate {
            action: Action::Intersect(target, chosen),
            done,
            rows,
            most: f64::INFINITY,
            cost,
            independent: false,
        });
    }

    /// Cost of a row if both legs are short enough for the method of the kernel that reads no degrees.
    fn small_list_cost(&self, legs: &Legs) -> f64 {
        let (2, [first, second, ..]) = (legs.count, legs.all) else { return f64::INFINITY };
        let mean = |(index, direction): (u8, Direction)| {
            let side = self.search.atoms[usize::from(index)].side(direction);
            side.map_or(f64::INFINITY, |side| side.average_degree())
        };
        let degree = |(index, direction): (u8, Direction)| self.leg_degree(usize::from(index), direction);
        let fits = |a: f64, b: f64| a.min(b) <= SMALL_LIST_PREFIX_MEAN && a.max(b) <= SMALL_LIST_LAST_MEAN;
        // In skewed segments, rows hit high-degree keys more often than the mean suggests.
        let degrees = (degree(first), degree(second));
        if !fits(mean(first), mean(second)) || !fits(degrees.0, degrees.1) {
            return f64::INFINITY;
        }
        cost::SMALL_LIST_ROW + (degrees.0 + degrees.1) * cost::SMALL_LIST_ENTRY
    }

    /// Cost of a row if each neighbour in the shorter of two legs is expanded in the reverse direction of the
    /// longer leg, once for all rows that share the key of the shorter.
    fn reversed(&self, legs: &Legs, shortest: f64) -> f64 {
        let (2, [(first, direction), (second, other), ..]) = (legs.count, legs.all) else {
            return f64::INFINITY;
        };
        let reverse = self.search.atoms[usize::from(second)].side(other.reverse());
        let key = variable_of(self.search.atoms[usize::from(first)].ends(direction).0);
        let (Some(key), Some(side)) = (key, reverse) else { return f64::INFINITY };
        let vertex = cost::EXPAND_ROW + reverse_degree(side) * cost::LEG_ENTRY;
        let of_key = cost::LEG_GROUP_KEY + shortest * vertex;
        let shared = (self.distinct(key, self.state.done) / self.state.rows).min(1.0);
        cost::LEG_GROUP_ROW + shared * of_key
    }

    /// Cost of a row if rows that share the key of one of two legs are consecutive: that leg is listed once
    /// for all of them, and its entries are stored in a bit set in which those of the other leg are looked
    /// up, or expanded in the reverse direction of the other leg.
    fn in_runs(&self, legs: &Legs) -> f64 {
        let (2, [a, b, ..]) = (legs.count, legs.all) else { return f64::INFINITY };
        let shared = |(index, direction): (u8, Direction)| {
            let key = variable_of(self.search.atoms[usize::from(index)].ends(direction).0);
            let runs = key.and_then(|key| self.search.runs.of(key));
            runs.map_or(1.0, |runs| (runs / self.state.rows).min(1.0))
        };
        // The kernel keeps the leg whose key changes least often.
        let (prefix, last, shared) = match (shared(a), shared(b)) {
            (of_a, of_b) if of_a <= of_b => (a, b, of_a),
            (_, of_b) => (b, a, of_b),
        };
        if shared > RUNS_SHARE_MAX {
            return f64::INFINITY;
        }
        let degree = |(index, direction): (u8, Direction)| self.leg_degree(usize::from(index), direction);
        let (of_prefix, of_last) = (degree(prefix), degree(last));
        let is_marked = |(index, direction): (u8, Direction)| {
            let side = self.search.atoms[usize::from(index)].side(direction);
            side.is_some_and(|side| side.statistics.vertices_only)
        };
        let listed = match is_marked(prefix) && is_marked(last) {
            true => shared * of_prefix * cost::LEG_ENTRY + of_last * cost::LEG_BITSET_ENTRY,
            false => f64::INFINITY,
        };
        let reverse = self.search.atoms[usize::from(last.0)].side(last.1.reverse());
        let reversed = reverse.map_or(f64::INFINITY, |side| {
            let vertex = cost::EXPAND_ROW + reverse_degree(side) * cost::LEG_ENTRY;
            cost::LEG_GROUP_ROW + shared * (cost::LEG_GROUP_KEY + of_prefix * vertex)
        });
        listed.min(reversed)
    }

    /// Upper bound on the distinct values of a bound variable, from the atoms in `done`.
    fn distinct(&self, variable: Variable, done: u64) -> f64 {
        let mut least = f64::INFINITY;
        for (_, atom) in self.search.atoms.iter().enumerate().filter(|(at, _)| done >> at & 1 == 1) {
            for direction in Direction::BOTH {
                if variable_of(atom.ends(direction).0) == Some(variable)
                    && let Some(side) = atom.side(direction)
                {
                    least = least.min(self.estimator.keys(self.classes, variable, side));
                }
            }
        }
        least
    }

    /// Cost of looking a pair up in an atom, in the cheaper direction.
    fn leg_probe(&self, index: usize) -> f64 {
        let sides =
            self.search.atoms[index].sides.iter().flat_map(|sides| sides.by_direction.iter().flatten());
        sides.map(|side| cost::leg_probe(side.average_degree())).fold(f64::INFINITY, f64::min)
    }

    /// The unbound variable that this atom connects with a bound end in this direction, if the atom can be a
    /// leg.
    fn leg_target(&self, index: usize, direction: Direction) -> Option<Variable> {
        let atom = &self.search.atoms[index];
        // Types are checked in a bit map; the index of a type is too long to be read for every row.
        if self.state.done >> index & 1 == 1
            || atom.general.is_some()
            || !atom.counts_once
            || atom.types.is_some()
        {
            return None;
        }
        atom.side(direction)?;
        let (key, neighbour) = atom.ends(direction);
        let target = variable_of(neighbour)?;
        (self.is_bound(key) && !self.state.bound.contains(target)).then_some(target)
    }

    /// Adds a candidate, with the filters that become applicable after it.
    fn push(&mut self, unfiltered: UnfilteredCandidate) {
        let UnfilteredCandidate { action, mut done, mut rows, most, cost, mut independent } = unfiltered;
        let correction = self.search.correction(self.state.done, done);
        let mut filtered = self.state.filtered;
        let mut cost = self.state.cost + cost;
        if !self.search.filters.is_empty() {
            let mut bound = self.state.bound.clone();
            bind(self.search.atoms, &action, &mut bound);
            for (index, filter) in self.search.filters.iter().enumerate().take(64) {
                if filtered >> index & 1 == 0 && filter.variables.is_subset(&bound) {
                    filtered |= 1 << index;
                    cost += rows * filter.cost;
                    rows *= filter.selectivity;
                }
            }
        }
        if !self.search.uses.is_empty() {
            done |= self.unusable(&action, done);
        }
        let mut rows = at_least(self.state.rows, rows.min(most)).max(1e-6);
        if let Some(factor) = correction {
            cost += rows * (factor - 1.0).max(0.0) * cost::OUTPUT_ROW;
            rows *= factor;
            independent = false;
        }
        let step_rows = rows;
        if self.search.frontiers
            && rows >= FRONTIER_ROWS_MIN
            && let Some(values) = self.values_after_frontier(&action, done, rows)
            && values < rows
        {
            cost += rows * cost::CHECK_TYPE;
            rows = values;
            independent = false;
        }
        let parent = self.parent;
        self.out.push(Candidate { parent, done, filtered, rows, step_rows, cost, action, independent });
    }

    /// Estimated rows after a frontier that follows an action with `rows` rows: the distinct values of the
    /// only live variable. `None`: no frontier follows, or nothing is known. A frontier needs a later step
    /// that multiplies rows.
    fn values_after_frontier(&self, action: &Action, done: u64, rows: f64) -> Option<f64> {
        let atoms = self.search.atoms;
        if done & self.search.mandatory == self.search.mandatory {
            return None;
        }
        // The neighbours of one constant are distinct.
        if let Action::Expand(at, direction) = action
            && self.state.done == 0
            && variable_of(atoms[usize::from(*at)].ends(*direction).0).is_none()
        {
            return None;
        }
        let mut bound = self.state.bound.clone();
        bind(atoms, action, &mut bound);
        let variable = self.search.only_live(&bound, done)?;
        let mut values = self.distinct(variable, done);
        // Popular values repeat more often.
        for (_, atom) in atoms.iter().enumerate().filter(|(at, _)| done >> at & 1 == 1) {
            let of = |direction: &Direction| variable_of(atom.ends(*direction).0) == Some(variable);
            let sides = Direction::BOTH.into_iter().filter(of).filter_map(|direction| atom.side(direction));
            for sketch in sides.filter_map(|side| side.statistics.sketch.as_ref()) {
                values = values.min(sketch.distinct(rows));
            }
        }
        values.is_finite().then_some(values)
    }

    /// Implied atoms over a variable that `action` does not output; they cannot be used later.
    fn unusable(&self, action: &Action, done: u64) -> u64 {
        let atoms = self.search.atoms;
        let target = match action {
            Action::Seek(of) if atoms[usize::from(*of)].general.is_none() => {
                variable_of(atoms[usize::from(*of)].subject)
            }
            Action::Scan(of, direction) | Action::Expand(of, direction) => {
                variable_of(atoms[usize::from(*of)].ends(*direction).1)
            }
            Action::Intersect(target, _) => Some(*target),
            _ => None,
        };
        let Some(target) = target.filter(|target| self.search.is_dead(*target, done)) else { return 0 };
        let is_superseded = |atom: &crate::atom::Atom<'_>| atom.implied && atom.variables.contains(target);
        atoms
            .iter()
            .enumerate()
            .filter(|(_, atom)| is_superseded(atom))
            .fold(0, |mask, (at, _)| mask | 1 << at)
    }
}

/// Estimated rows after a step that leaves `after` of `before` rows. Below one row an estimate is a
/// probability, and a product of probabilities that are not independent: the step then has its effect on half
/// the scale.
pub(crate) fn at_least(before: f64, after: f64) -> f64 {
    let before_at_most_one = before.min(1.0);
    if after >= before_at_most_one { after } else { (before_at_most_one * after).sqrt() }
}

/// Expected degree of a vertex that is expanded in the reverse direction of a leg, biased towards high
/// degrees.
fn reverse_degree(side: &DirectedSegment<'_>) -> f64 {
    (side.statistics.degree_max as f64).min(8.0 * side.average_degree())
}

fn number(index: usize) -> u8 {
    u8::try_from(index).unwrap_or(u8::MAX)
}

//! The order of a join of patterns: dynamic programming over sets of patterns, with a beam.
//!
//! # Shape
//! A state is a set of patterns that are done, with estimated rows, cost, and for each bound variable a
//! distribution over classes. States with `k` patterns make states with `k + 1` (by a scan, an expansion, a
//! check or a general match) or more (by an intersection). Of states with equal sets the cheapest stays;
//! of each size only the best [`Search::beam`] stay, ranked by cost and by the rows still to be worked on.
//! Up to six patterns that is exact; beyond, wide enough for stars, chains and cycles of twelve.
//! # Cost
//! `patterns * beam * patterns` extensions of some 50 to 200 ns: distributions are made only for the
//! states that stay.
//! # Source
//! Selinger et al., "Access Path Selection in a Relational Database Management System", SIGMOD 1979; the
//! type table of Wukong's planner (OSDI 2016, §4). Different from the latter: memoised sets instead of all orders,
//! exact degrees of constants, both directions of a check, intersections, variables that nobody
//! needs cost a degree instead of an enumeration.

use crate::atom::{Atom, Fan, variable_of};
use crate::classes::{Collector, Distribution};
use crate::cost;
use crate::filter::Conjunct;
use crate::set::VariableSet;
use std::rc::Rc;
use vervet_algebra::Variable;
use vervet_kernel::plan::Operand;
use vervet_model::Direction;

/// What a state did last.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Action {
    /// Nothing: the first state.
    Start,
    /// All entries of an atom.
    Scan(usize, Direction),
    /// The entries of an atom whose objects conditions allow.
    Seek(usize),
    /// The neighbours of a bound end of an atom.
    Expand(usize, Direction),
    /// Whether an entry of an atom exists.
    Check(usize, Direction),
    /// The vertices that are neighbours in all these atoms.
    Intersect(Variable, Vec<(usize, Direction)>),
    /// An atom in general form.
    Match(usize),
}

/// Classes of the variables that have an estimate.
pub(crate) type Classes = Vec<(Variable, Rc<Distribution>)>;

/// A set of patterns that are done.
#[derive(Clone, Debug)]
pub(crate) struct State {
    done: u64,
    filtered: u64,
    bound: VariableSet,
    /// Estimated rows.
    pub(crate) rows: f64,
    /// Cost so far.
    pub(crate) cost: f64,
    /// Estimated classes.
    pub(crate) classes: Classes,
    parent: usize,
    /// What led here.
    pub(crate) action: Action,
}

/// A state that has not been made yet.
struct Candidate {
    parent: usize,
    done: u64,
    filtered: u64,
    rows: f64,
    cost: f64,
    action: Action,
}

/// One search.
pub(crate) struct Search<'s, 'a> {
    /// The patterns; at most [`Search::ATOMS_MAX`].
    pub(crate) atoms: &'s [Atom<'a>],
    /// Conditions that apply as soon as their variables are bound; at most 64 are considered.
    pub(crate) filters: &'s [Conjunct],
    /// See [`Search::uses_of`].
    pub(crate) uses: Vec<(Variable, u64)>,
    /// States that stay for each number of patterns.
    pub(crate) beam: usize,
    /// Whether to use intersections.
    pub(crate) intersect: bool,
    /// `false`: the patterns are done in the order in which they are written.
    pub(crate) reorder: bool,
}

impl Search<'_, '_> {
    /// The most patterns in one search.
    pub(crate) const ATOMS_MAX: usize = 64;

    /// The cheapest order from rows that bind `bound`: the states in order, the first one excluded.
    pub(crate) fn run(&self, bound: VariableSet, rows: f64, classes: Classes) -> Vec<State> {
        let mandatory = self.mask(|atom| !atom.implied);
        let start = State {
            done: 0,
            filtered: 0,
            bound,
            rows,
            cost: 0.0,
            classes,
            parent: usize::MAX,
            action: Action::Start,
        };
        let mut states = vec![start];
        // states_of[k]: candidates with k patterns done.
        let mut candidates: Vec<Vec<Candidate>> = (0..=self.atoms.len()).map(|_| Vec::new()).collect();
        let mut best: Option<usize> = (mandatory == 0).then_some(0);
        if mandatory != 0 {
            self.extend(&states, 0, &mut candidates);
        }
        for count in 1..candidates.len() {
            let mut level = std::mem::take(&mut candidates[count]);
            level.sort_by(|a, b| a.done.cmp(&b.done).then(a.rank().total_cmp(&b.rank())));
            level.dedup_by_key(|candidate| candidate.done);
            level.sort_by(|a, b| a.rank().total_cmp(&b.rank()));
            level.truncate(self.beam);
            for candidate in level {
                if best.is_some_and(|best: usize| states[best].cost <= candidate.cost) {
                    continue;
                }
                let state = self.make(&states, candidate);
                let (at, is_final) = (states.len(), state.done & mandatory == mandatory);
                states.push(state);
                if is_final {
                    best = Some(at);
                } else {
                    self.extend(&states, at, &mut candidates);
                }
            }
        }
        let mut path = Vec::new();
        let mut at = best.unwrap_or(0);
        while at != 0 {
            path.push(states[at].clone());
            at = states[at].parent;
        }
        path.reverse();
        path
    }

    fn mask(&self, wanted: impl Fn(&Atom<'_>) -> bool) -> u64 {
        self.atoms.iter().enumerate().filter(|(_, atom)| wanted(atom)).fold(0, |mask, (at, _)| mask | 1 << at)
    }

    /// Whether nobody needs `variable` once the atoms in `done` are done.
    fn is_dead(&self, variable: Variable, done: u64) -> bool {
        match self.uses.iter().find(|(of, _)| *of == variable) {
            Some((_, uses)) => uses & !done == 0,
            None => false,
        }
    }

    /// For each variable that nothing but atoms needs: the atoms that do.
    pub(crate) fn uses_of(
        atoms: &[Atom<'_>],
        filters: &[Conjunct],
        needed: &VariableSet,
    ) -> Vec<(Variable, u64)> {
        let mut all = VariableSet::default();
        atoms.iter().for_each(|atom| all.add_all(&atom.variables));
        filters.iter().for_each(|filter| all.remove_all(&filter.variables));
        all.remove_all(needed);
        let mask = |variable| {
            let uses = |atom: &Atom<'_>| !atom.implied && atom.variables.contains(variable);
            atoms.iter().enumerate().filter(|(_, atom)| uses(atom)).fold(0, |mask, (at, _)| mask | 1 << at)
        };
        all.iter().map(|variable| (variable, mask(variable))).collect()
    }

    /// Adds what can follow on `states[at]`.
    fn extend(&self, states: &[State], at: usize, out: &mut [Vec<Candidate>]) {
        let state = &states[at];
        let is_bound = |end| variable_of(end).is_none_or(|variable| state.bound.contains(variable));
        let mut connected = false;
        let wanted = if self.reorder { usize::MAX } else { 1 };
        let is_open =
            |index: &usize| state.done >> index & 1 == 0 && (self.reorder || !self.atoms[*index].implied);
        let todo = || (0..self.atoms.len()).filter(is_open).take(wanted);
        for index in todo() {
            let atom = &self.atoms[index];
            if atom.general.is_some() {
                // Only where it continues something, or below as a start.
                if !atom.variables.clone().intersection(&state.bound).is_empty()
                    || atom.variables.is_empty()
                    || is_bound(atom.subject)
                    || is_bound(atom.object)
                {
                    connected = true;
                    self.push_match(state, at, index, out);
                }
                continue;
            }
            match (is_bound(atom.subject), is_bound(atom.object)) {
                (true, true) => {
                    connected = true;
                    self.push_check(state, at, index, out);
                }
                (true, false) => connected |= self.push_expand(state, at, index, Direction::Out, out),
                (false, true) => connected |= self.push_expand(state, at, index, Direction::In, out),
                (false, false) => {}
            }
        }
        if self.intersect && self.reorder {
            self.push_intersections(state, at, out);
        }
        // A part that nothing connects starts by a scan, once nothing else is left to do.
        if !connected || at == 0 {
            for index in todo().filter(|index| !self.atoms[*index].implied || at == 0) {
                let atom = &self.atoms[index];
                if atom.general.is_some() {
                    self.push_match(state, at, index, out);
                } else if !is_bound(atom.subject) && !is_bound(atom.object) {
                    for direction in Direction::BOTH {
                        self.push_scan(state, at, index, direction, out);
                    }
                    self.push_seek(state, at, index, out);
                }
            }
        }
    }

    fn push_scan(
        &self,
        state: &State,
        at: usize,
        index: usize,
        direction: Direction,
        out: &mut [Vec<Candidate>],
    ) {
        let Some(side) = self.atoms[index].side(direction) else { return };
        let (_, neighbour) = self.atoms[index].ends(direction);
        let done = state.done | 1 << index;
        let (keys, entries) = (side.statistics.keys as f64, side.statistics.entries as f64);
        let dead = variable_of(neighbour).is_some_and(|variable| self.is_dead(variable, done));
        let (rows, cost) = if dead {
            (keys, keys * (cost::SCAN_KEY + cost::OUTPUT_ROW))
        } else {
            (entries, keys * cost::SCAN_KEY + entries * cost::OUTPUT_ROW)
        };
        self.push(state, at, done, state.rows * rows, state.rows * cost, Action::Scan(index, direction), out);
    }

    /// A scan of the keys that conditions leave.
    fn push_seek(&self, state: &State, at: usize, index: usize, out: &mut [Vec<Candidate>]) {
        let atom = &self.atoms[index];
        let (Some(seek), Some(side)) = (&atom.seek, atom.side(Direction::In)) else { return };
        let done = state.done | 1 << index;
        let dead = variable_of(atom.subject).is_some_and(|variable| self.is_dead(variable, done));
        let fan = if dead { 1.0 } else { side.average_degree() };
        let all = side.statistics.keys as f64 * fan;
        let read = (seek.candidates * fan).min(all);
        let cost = seek.candidates * cost::EXPAND_ROW + read * cost::OUTPUT_ROW;
        // The condition that is sought is counted as if it were still to be tested on all rows.
        let cost = cost - (all - read) * cost::FILTER_ROW;
        self.push(state, at, done, state.rows * all, state.rows * cost, Action::Seek(index), out);
    }

    fn push_expand(
        &self,
        state: &State,
        at: usize,
        index: usize,
        direction: Direction,
        out: &mut [Vec<Candidate>],
    ) -> bool {
        let atom = &self.atoms[index];
        if atom.side(direction).is_none() {
            return false;
        }
        let (key, neighbour) = atom.ends(direction);
        let done = state.done | 1 << index;
        let (degree, keys) = self.degree(state, index, direction);
        let dead = variable_of(neighbour).is_some_and(|variable| self.is_dead(variable, done));
        let (rows, cost) = if dead {
            let rows = state.rows * keys;
            (rows, state.rows * cost::DEGREE_ROW + rows * cost::OUTPUT_ROW)
        } else {
            let rows = state.rows * degree;
            (rows, state.rows * cost::EXPAND_ROW + rows * cost::OUTPUT_ROW)
        };
        self.push(state, at, done, rows, cost, Action::Expand(index, direction), out);
        // From a constant it is a start like any other; only a bound variable connects.
        variable_of(key).is_some() || at == 0 || !self.has_bound_neighbour(state, neighbour)
    }

    /// Whether another pattern connects this unbound end with a bound variable.
    fn has_bound_neighbour(&self, state: &State, end: Operand) -> bool {
        let Some(variable) = variable_of(end) else { return false };
        self.atoms.iter().enumerate().any(|(at, atom)| {
            state.done >> at & 1 == 0
                && atom.variables.contains(variable)
                && atom.variables.iter().any(|other| state.bound.contains(other))
        })
    }

    fn push_check(&self, state: &State, at: usize, index: usize, out: &mut [Vec<Candidate>]) {
        let atom = &self.atoms[index];
        let done = state.done | 1 << index;
        let rows = state.rows * self.selectivity(state, index);
        if !atom.counts_once {
            let cost = state.rows * cost::MATCH_ROW;
            self.push(state, at, done, rows, cost, Action::Match(index), out);
            return;
        }
        let Some((direction, cost)) = self.check_direction(state, index) else { return };
        let cost = state.rows * cost + rows * cost::OUTPUT_ROW;
        self.push(state, at, done, rows, cost, Action::Check(index, direction), out);
    }

    /// The direction in which a check of this atom is cheaper, and its cost for each row.
    fn check_direction(&self, state: &State, index: usize) -> Option<(Direction, f64)> {
        let atom = &self.atoms[index];
        if atom.types.is_some() && atom.side(Direction::Out).is_some() {
            return Some((Direction::Out, cost::CHECK_TYPE));
        }
        Direction::BOTH
            .into_iter()
            .filter(|direction| atom.side(*direction).is_some())
            .map(|direction| (direction, cost::check(self.degree(state, index, direction).0)))
            .min_by(|a, b| a.1.total_cmp(&b.1))
    }

    fn push_match(&self, state: &State, at: usize, index: usize, out: &mut [Vec<Candidate>]) {
        let atom = &self.atoms[index];
        let Some((_, all)) = &atom.general else { return };
        // Each bound end divides by about as many as there are ends: a guess that needs no look at data.
        let is_bound = |end| variable_of(end).is_none_or(|variable| state.bound.contains(variable));
        let fan = match (is_bound(atom.subject), is_bound(atom.object)) {
            (true, true) => 1.0,
            (true, false) => atom.degrees[0].unwrap_or(all.sqrt().min(8.0)),
            (false, true) => atom.degrees[1].unwrap_or(all.sqrt().min(16.0)),
            (false, false) => *all,
        };
        let rows = state.rows * fan;
        let cost = state.rows * cost::MATCH_ROW + rows * cost::OUTPUT_ROW;
        self.push(state, at, state.done | 1 << index, rows, cost, Action::Match(index), out);
    }

    fn push_intersections(&self, state: &State, at: usize, out: &mut [Vec<Candidate>]) {
        let mut seen = VariableSet::default();
        let todo = |index: &usize| state.done >> index & 1 == 0;
        for first in (0..self.atoms.len()).filter(todo) {
            for direction in Direction::BOTH {
                let Some(target) = self.leg_target(state, first, direction) else { continue };
                if seen.contains(target) {
                    continue;
                }
                seen.insert(target);
                let mut legs: Vec<(usize, Direction, f64)> = (first..self.atoms.len())
                    .filter(todo)
                    .flat_map(|index| Direction::BOTH.map(|direction| (index, direction)))
                    .filter(|(index, direction)| self.leg_target(state, *index, *direction) == Some(target))
                    .map(|(index, direction)| (index, direction, self.degree(state, index, direction).0))
                    .collect();
                if legs.len() < 2 {
                    continue;
                }
                legs.sort_by(|a, b| a.2.total_cmp(&b.2));
                // A leg that is much longer than the common part is better checked afterwards.
                let shortest = legs[0].2;
                let mut count = 0;
                legs.retain(|(.., degree)| {
                    count += 1;
                    count <= 2 || degree * cost::LEG_ENTRY < 20.0 + shortest * cost::check(*degree)
                });
                let mut done = state.done;
                let mut per_row = 0.0;
                for (index, _, degree) in &legs {
                    done |= 1 << index;
                    per_row += cost::LEG_ROW + degree * cost::LEG_ENTRY;
                }
                let legs: Vec<_> = legs.into_iter().map(|(index, direction, _)| (index, direction)).collect();
                let (rows, _) = self.intersect_classes(state, target, &legs);
                let rows = if self.is_dead(target, done) { rows.min(state.rows) } else { rows };
                let cost = state.rows * per_row + rows * cost::OUTPUT_ROW;
                self.push(state, at, done, rows, cost, Action::Intersect(target, legs), out);
            }
        }
    }

    /// The unbound variable that this atom connects with a bound end in this direction.
    fn leg_target(&self, state: &State, index: usize, direction: Direction) -> Option<Variable> {
        let atom = &self.atoms[index];
        // A type is checked by a bit map; its index is too long to be read for every row.
        if atom.general.is_some() || !atom.counts_once || atom.types.is_some() {
            return None;
        }
        atom.side(direction)?;
        let (key, neighbour) = atom.ends(direction);
        let target = variable_of(neighbour)?;
        let key_is_bound = variable_of(key).is_none_or(|variable| state.bound.contains(variable));
        (key_is_bound && !state.bound.contains(target)).then_some(target)
    }

    #[expect(clippy::too_many_arguments, reason = "one place that adds filters to every kind of step")]
    fn push(
        &self,
        state: &State,
        at: usize,
        mut done: u64,
        mut rows: f64,
        cost: f64,
        action: Action,
        out: &mut [Vec<Candidate>],
    ) {
        let mut filtered = state.filtered;
        let mut cost = state.cost + cost;
        if !self.filters.is_empty() {
            let mut bound = state.bound.clone();
            self.bind(&action, &mut bound);
            for (index, filter) in self.filters.iter().enumerate().take(64) {
                if filtered >> index & 1 == 0 && filter.variables.is_subset(&bound) {
                    filtered |= 1 << index;
                    cost += rows * cost::FILTER_ROW;
                    rows *= filter.selectivity;
                }
            }
        }
        // Implied atoms over a variable that is not carried on cannot be used any more.
        for (index, atom) in self.atoms.iter().enumerate() {
            if atom.implied && done >> index & 1 == 0 && !self.uses.is_empty() {
                let gone = |variable| self.is_dead(variable, done);
                let target = match &action {
                    Action::Seek(of) => variable_of(self.atoms[*of].subject),
                    Action::Scan(of, direction) | Action::Expand(of, direction) => {
                        variable_of(self.atoms[*of].ends(*direction).1)
                    }
                    Action::Intersect(target, _) => Some(*target),
                    _ => None,
                };
                if target.is_some_and(|target| atom.variables.contains(target) && gone(target)) {
                    done |= 1 << index;
                }
            }
        }
        if let Some(level) = out.get_mut(done.count_ones() as usize) {
            level.push(Candidate { parent: at, done, filtered, rows: rows.max(1e-6), cost, action });
        }
    }

    fn bind(&self, action: &Action, bound: &mut VariableSet) {
        match action {
            Action::Start | Action::Check(..) => {}
            Action::Scan(index, _)
            | Action::Seek(index)
            | Action::Expand(index, _)
            | Action::Match(index) => {
                bound.add_all(&self.atoms[*index].variables);
            }
            Action::Intersect(target, _) => bound.insert(*target),
        }
    }

    fn make(&self, states: &[State], candidate: Candidate) -> State {
        let parent = &states[candidate.parent];
        let mut bound = parent.bound.clone();
        self.bind(&candidate.action, &mut bound);
        let mut classes = parent.classes.clone();
        match &candidate.action {
            Action::Start | Action::Match(_) => {}
            Action::Scan(index, direction) => self.scan_classes(*index, *direction, &mut classes),
            Action::Seek(index) => self.scan_classes(*index, Direction::In, &mut classes),
            Action::Expand(index, direction) => self.expand_classes(*index, *direction, &mut classes),
            Action::Check(index, _) => {
                self.check_classes(*index, &mut classes);
            }
            Action::Intersect(target, legs) => classes = self.intersect_classes(parent, *target, legs).1,
        }
        State {
            done: candidate.done,
            filtered: candidate.filtered,
            bound,
            rows: candidate.rows,
            cost: candidate.cost,
            classes,
            parent: candidate.parent,
            action: candidate.action,
        }
    }

    fn scan_classes(&self, index: usize, direction: Direction, classes: &mut Classes) {
        if let Some(side) = self.atoms[index].side(direction) {
            let (keys, neighbours) = side.entry_classes(|_| true);
            let (key, neighbour) = self.atoms[index].ends(direction);
            set(classes, key, keys);
            set(classes, neighbour, neighbours);
        }
    }

    /// Estimated number of neighbours of the key of an atom, and the probability that there are any.
    fn degree(&self, state: &State, index: usize, direction: Direction) -> (f64, f64) {
        let atom = &self.atoms[index];
        let Some(side) = atom.side(direction) else { return (0.0, 0.0) };
        match atom.ends(direction).0 {
            Operand::Constant(_) => {
                let degree = atom.degrees[direction as usize].unwrap_or_else(|| side.average_degree());
                (degree, degree.min(1.0))
            }
            Operand::Variable(key) => match classes_of(&state.classes, key) {
                None => (side.average_degree() * side.skew(), 1.0),
                Some(classes) => {
                    let (mut degree, mut keys) = (0.0, 0.0);
                    merge(classes, &side.fans, |weight, fan| {
                        degree += weight * fan.degree;
                        keys += weight * fan.keys;
                    });
                    (degree * if state.done == 0 { 1.0 } else { side.skew() }, keys)
                }
            },
        }
    }

    fn expand_classes(&self, index: usize, direction: Direction, classes: &mut Classes) {
        let atom = &self.atoms[index];
        let Some(side) = atom.side(direction) else { return };
        let (key, neighbour) = atom.ends(direction);
        let key_classes = variable_of(key).and_then(|key| classes_of(classes, key).cloned());
        let (keys, neighbours) = match (key, &key_classes) {
            (Operand::Variable(_), Some(known)) => {
                let (mut keys, mut neighbours) = (Collector::new(), Collector::new());
                let mut last: Option<(vervet_snapshot::ClassId, f64)> = None;
                for flow in &side.statistics.flows {
                    let factor = match last {
                        Some((class, factor)) if class == flow.source => factor,
                        _ => known.weight(flow.source) / side.fan(flow.source).map_or(1.0, |fan| fan.size),
                    };
                    last = Some((flow.source, factor));
                    if factor > 0.0 {
                        keys.add(flow.source, factor * flow.entries as f64);
                        neighbours.add(flow.target, factor * flow.entries as f64);
                    }
                }
                (keys.finish(), neighbours.finish())
            }
            (Operand::Constant(id), _) => {
                if let (Some(types), Direction::In) = (&atom.types, direction) {
                    // Sizes of the classes of this type: how the type index is made up.
                    let mut of_type = Collector::new();
                    if let Some(out) = atom.side(Direction::Out) {
                        for fan in out.fans.iter().filter(|fan| types.contains(fan.class)) {
                            of_type.add(fan.class, fan.size * fan.keys);
                        }
                    }
                    (Distribution::default(), of_type.finish())
                } else {
                    let literal = id.is_stored_literal();
                    side.entry_classes(|class| (class == vervet_snapshot::ClassId::LITERAL) == literal)
                }
            }
            (Operand::Variable(_), None) => side.entry_classes(|_| true),
        };
        set(classes, key, keys);
        set(classes, neighbour, neighbours);
    }

    /// The fraction of rows for which the entry exists; both ends are bound.
    fn selectivity(&self, state: &State, index: usize) -> f64 {
        self.check(index, &state.classes, None)
    }

    fn check_classes(&self, index: usize, classes: &mut Classes) -> f64 {
        let mut out = (Collector::new(), Collector::new());
        let passed = self.check(index, classes, Some(&mut out));
        set(classes, self.atoms[index].subject, out.0.finish());
        set(classes, self.atoms[index].object, out.1.finish());
        passed
    }

    /// The fraction of rows that pass, and the classes of subject and object of those that do.
    fn check(&self, index: usize, classes: &Classes, mut out: Option<&mut (Collector, Collector)>) -> f64 {
        let atom = &self.atoms[index];
        let of = |end| variable_of(end).and_then(|variable| classes_of(classes, variable));
        let (subjects, objects) = (of(atom.subject), of(atom.object));
        if let (Some(types), Some(subjects)) = (&atom.types, subjects) {
            let mut passed = 0.0;
            for &(class, weight) in subjects.weights.iter().filter(|(class, _)| types.contains(*class)) {
                passed += weight;
                if let Some((keys, _)) = &mut out {
                    keys.add(class, weight);
                }
            }
            // The classes of rare types are not told apart: leave them a small chance.
            return passed.clamp(1e-4, 1.0);
        }
        let Some((direction, side)) =
            Direction::BOTH.into_iter().find_map(|direction| Some((direction, atom.side(direction)?)))
        else {
            return 0.0;
        };
        let reverse = direction == Direction::In;
        let (keys, neighbours) = if reverse { (objects, subjects) } else { (subjects, objects) };
        // A constant end takes its exact share of all entries; a variable of unknown classes is a random
        // key or neighbour.
        let entries = side.statistics.entries.max(1) as f64;
        let share = |direction: Direction, count: u64| match atom.degrees[direction as usize] {
            Some(degree) => degree / entries,
            None => 1.0 / count.max(1) as f64,
        };
        let key_share = share(direction, side.statistics.keys);
        let neighbour_share = share(direction.reverse(), side.statistics.neighbours);
        let mut passed = 0.0;
        for (flow, density) in side.statistics.flows.iter().zip(&*side.densities) {
            let weight = match (keys, neighbours) {
                (Some(keys), Some(neighbours)) => {
                    keys.weight(flow.source) * neighbours.weight(flow.target) * density
                }
                (Some(keys), None) => {
                    let weight = keys.weight(flow.source);
                    if weight == 0.0 {
                        continue;
                    }
                    let size = side.fan(flow.source).map_or(1.0, |fan| fan.size);
                    weight / size * neighbour_share * flow.entries as f64
                }
                (None, Some(neighbours)) => {
                    let weight = neighbours.weight(flow.target);
                    if weight == 0.0 {
                        continue;
                    }
                    let other = atom.side(direction.reverse()).and_then(|other| other.fan(flow.target));
                    let size = other.map_or(side.statistics.neighbours.max(1) as f64, |fan| fan.size);
                    key_share * weight / size * flow.entries as f64
                }
                (None, None) => key_share * neighbour_share * flow.entries as f64,
            };
            if weight > 0.0 {
                passed += weight;
                if let Some((subjects, objects)) = &mut out {
                    let (source, target) =
                        if reverse { (flow.target, flow.source) } else { (flow.source, flow.target) };
                    subjects.add(source, weight);
                    objects.add(target, weight);
                }
            }
        }
        passed.clamp(1e-6, 1.0)
    }

    /// Rows and classes after an intersection: the first leg expanded, the others checked.
    fn intersect_classes(
        &self,
        state: &State,
        target: Variable,
        legs: &[(usize, Direction)],
    ) -> (f64, Classes) {
        let mut classes = state.classes.clone();
        let mut rows = state.rows;
        for (number, (index, direction)) in legs.iter().enumerate() {
            if number == 0 {
                rows *= self.degree(state, *index, *direction).0;
                self.expand_classes(*index, *direction, &mut classes);
            } else {
                rows *= self.check_classes(*index, &mut classes);
            }
        }
        debug_assert!(!state.bound.contains(target));
        (rows, classes)
    }
}

impl Candidate {
    fn rank(&self) -> f64 {
        self.cost + self.rows * cost::FUTURE_ROW
    }
}

fn classes_of(classes: &Classes, variable: Variable) -> Option<&Rc<Distribution>> {
    classes.iter().find(|(of, _)| *of == variable).map(|(_, classes)| classes)
}

/// Sets the classes of a variable; nothing known leaves what was.
fn set(classes: &mut Classes, end: Operand, to: Distribution) {
    let Some(variable) = variable_of(end) else { return };
    if to.weights.is_empty() {
        return;
    }
    match classes.iter_mut().find(|(of, _)| *of == variable) {
        Some((_, classes)) => *classes = Rc::new(to),
        None => classes.push((variable, Rc::new(to))),
    }
}

/// Calls `visit` with the weight and the fan of each class that is in both; both are sorted.
fn merge(classes: &Distribution, fans: &[Fan], mut visit: impl FnMut(f64, &Fan)) {
    let mut fans = fans.iter().peekable();
    for (class, weight) in &classes.weights {
        while fans.next_if(|fan| fan.class < *class).is_some() {}
        if let Some(fan) = fans.peek().filter(|fan| fan.class == *class) {
            visit(*weight, fan);
        }
    }
}

//! States of the join-order search: joined patterns, actions, and candidates for the next state.

use crate::atom::Atom;
use crate::cost;
use crate::estimate::ClassDistributions;
use crate::filter::Conjunct;
use crate::key_joins::BoundEnds;
use crate::partial_plan::Runs;
use vervet_algebra::{Variable, VariableSet};
use vervet_model::Direction;

/// The last action of a state. Numbers are indices of atoms.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Action {
    /// Nothing: the first state.
    Start,
    /// All entries of an atom.
    Scan(u8, Direction),
    /// The entries of an atom whose objects satisfy its sargable conditions.
    Seek(u8),
    /// The neighbours of a bound end of an atom.
    Expand(u8, Direction),
    /// Whether an entry of an atom exists.
    Check(u8, Direction),
    /// The vertices that are neighbours in all these atoms.
    Intersect(Variable, Legs),
    /// An atom in general form.
    Match(u8),
}

/// The legs of an intersection, the shortest first.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Legs {
    pub(crate) count: u8,
    pub(crate) all: [(u8, Direction); Legs::MAX],
}

impl Legs {
    /// Maximum number of legs; further patterns become checks.
    pub(crate) const MAX: usize = 8;

    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, Direction)> + '_ {
        self.all
            .iter()
            .take(usize::from(self.count))
            .map(|&(index, direction)| (usize::from(index), direction))
    }
}

/// A search state: a set of joined patterns.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) done: u64,
    pub(crate) filtered: u64,
    pub(crate) bound: VariableSet,
    /// Rows that later steps receive.
    pub(crate) rows: f64,
    /// Rows of the last step; a frontier may follow.
    pub(crate) step_rows: f64,
    pub(crate) cost: f64,
    /// `None`: not computed yet; only states that are extended, and the best one, need it.
    pub(crate) classes: Option<ClassDistributions>,
    pub(crate) parent: u32,
    pub(crate) action: Action,
}

/// A candidate for a new state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) parent: u32,
    pub(crate) done: u64,
    pub(crate) filtered: u64,
    /// As in [`State`].
    pub(crate) rows: f64,
    pub(crate) step_rows: f64,
    pub(crate) cost: f64,
    pub(crate) action: Action,
    /// Whether its growth factor and its cost for each row are independent of earlier actions.
    pub(crate) independent: bool,
}

/// A step of the best order.
pub(crate) struct OrderedAction {
    pub(crate) action: Action,
    /// Estimated rows after it.
    pub(crate) step_rows: f64,
    /// The same after a frontier, if one may follow.
    pub(crate) rows: f64,
    /// Estimated cost up to it, in ns.
    pub(crate) cost: f64,
}

/// One search.
pub(crate) struct JoinOrderSearch<'s, 'a> {
    /// The patterns; at most [`JoinOrderSearch::ATOMS_MAX`].
    pub(crate) atoms: &'s [Atom<'a>],
    /// Conditions, applied as soon as their variables are bound; at most 64 are considered.
    pub(crate) filters: &'s [Conjunct],
    /// See [`JoinOrderSearch::uses_of`].
    pub(crate) uses: Vec<(Variable, u64)>,
    /// Ends of predicates that have bound variables of the input rows.
    pub(crate) ends: Vec<BoundEnds<'a>>,
    /// Runs of equal values in the input rows.
    pub(crate) runs: &'s Runs,
    /// Beam width: states kept for each number of patterns.
    pub(crate) beam: usize,
    /// Whether to use intersections.
    pub(crate) intersect: bool,
    /// `false`: the patterns are joined in the order of the text.
    pub(crate) reorder: bool,
    /// Whether frontiers may follow the steps: see [`crate::frontier`].
    pub(crate) frontiers: bool,
    /// The atoms that a complete order must contain.
    pub(crate) mandatory: u64,
    /// Upper bound: orders that cost as much or more are rejected.
    pub(crate) limit: Option<f64>,
    /// Factors by which the joins of sets of atoms have more rows than estimated.
    pub(crate) corrections: Vec<(u64, f64)>,
}

impl JoinOrderSearch<'_, '_> {
    /// Maximum number of patterns in one search.
    pub(crate) const ATOMS_MAX: usize = 64;

    /// Whether `variable` is dead after the atoms in `done`.
    pub(crate) fn is_dead(&self, variable: Variable, done: u64) -> bool {
        match self.uses.iter().find(|(of, _)| *of == variable) {
            Some((_, uses)) => uses & !done == 0,
            None => false,
        }
    }

    /// The only live variable of these after the atoms in `done`; `None`: there are several, or none.
    pub(crate) fn only_live(&self, bound: &VariableSet, done: u64) -> Option<Variable> {
        let mut live = bound.iter().filter(|variable| !self.is_dead(*variable, done));
        live.next().filter(|_| live.next().is_none())
    }

    /// The bit mask of the atoms that a complete order must contain.
    pub(crate) fn mandatory_of(atoms: &[Atom<'_>]) -> u64 {
        atoms.iter().enumerate().filter(|(_, atom)| !atom.implied).fold(0, |mask, (at, _)| mask | 1 << at)
    }

    /// For each variable that only atoms use: the bit mask of these atoms.
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
}

impl JoinOrderSearch<'_, '_> {
    /// The factor for a step from the atoms `before` to the atoms `done`, if earlier runs have taught one.
    #[inline]
    pub(crate) fn correction(&self, before: u64, done: u64) -> Option<f64> {
        if self.corrections.is_empty() {
            return None;
        }
        let is_new = |mask: u64| done & mask == mask && before & mask != mask;
        let factors = self.corrections.iter().filter(|(mask, _)| is_new(*mask)).map(|(_, factor)| *factor);
        factors.reduce(|a, b| a * b)
    }
}

impl Candidate {
    pub(crate) fn rank(&self) -> f64 {
        self.cost + self.rows * cost::FUTURE_ROW
    }
}

/// Adds the variables that an action binds.
pub(crate) fn bind(atoms: &[Atom<'_>], action: &Action, bound: &mut VariableSet) {
    match action {
        Action::Start | Action::Check(..) => {}
        Action::Intersect(target, _) => bound.insert(*target),
        Action::Scan(index, _) | Action::Seek(index) | Action::Expand(index, _) | Action::Match(index) => {
            bound.add_all(&atoms[usize::from(*index)].variables);
        }
    }
}

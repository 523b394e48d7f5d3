//! Join-order search: dynamic programming over sets of patterns, with branch and bound and a beam.
//!
//! # Shape
//! A state is a set of joined patterns, with estimated rows, cost, and for each bound variable a distribution
//! over classes. A state generates candidates for larger sets (`join_candidates.rs`). A greedy descent finds
//! a first complete order, whose cost bounds all others. Then sets are processed by size: of candidates with
//! equal sets the cheapest remains; of each size only the best [`JoinOrderSearch::beam`] remain, ranked by
//! cost plus the assumed future cost of their rows. Up to six patterns the search is exact except for forced
//! moves ([`dominant_candidate`], and steps too cheap for a comparison); beyond, the beam is wide enough for
//! chains and cycles of twelve. Stars are forced moves once their centre is bound. The search ends when it
//! has taken as long as the best order is estimated to take: together they take at most twice what the best
//! order takes, or what the search takes.
//! # Cost
//! 30 to 100 ns for a candidate, some 100 for a state: only states that are extended get distributions, and
//! neither allocates. LUBM (2026-11-21, whole planning): Q5 with two patterns 2 µs, the star of Q4 5 µs,
//! the triangles of Q1 and Q7 15 to 25 µs.
//! # Source
//! Selinger et al., "Access Path Selection in a Relational Database Management System", SIGMOD 1979; the type
//! table of Wukong's planner (OSDI 2016, §4); the order of independent steps by rank: T. Ibaraki, T. Kameda,
//! "On the Optimal Nesting Order for Computing N-Relational Joins", TODS 1984. Different from Wukong:
//! memoised sets instead of all orders, exact degrees of constants, both directions of a check,
//! intersections, dead variables cost a degree instead of an enumeration.

use crate::classes::Classes;
use crate::cost;
use crate::estimate::{ClassDistributions, Estimator};
use crate::join_candidates::CandidateGenerator;
use crate::join_state::{Action, Candidate, JoinOrderSearch, OrderedAction, State, bind};
use vervet_algebra::VariableSet;
use vervet_kernel::Control;
use vervet_model::{Direction, Error, Result};

/// Nanoseconds of the search for a candidate and for a state; see the header of this file.
const CANDIDATE_COST: f64 = 60.0;
const STATE_COST: f64 = 100.0;

/// Work units for each set of patterns, which may have some hundred candidates of 100 ns.
const SET_WORK: usize = 1 << 8;

impl JoinOrderSearch<'_, '_> {
    /// The cheapest order from rows that bind `bound`, and the classes at its end; `None`: every order
    /// reaches [`JoinOrderSearch::limit`].
    pub(crate) fn run(
        &self,
        bound: VariableSet,
        rows: f64,
        classes: &Classes,
        control: &Control<'_>,
    ) -> Result<Option<(Vec<OrderedAction>, Classes)>> {
        let (estimator, table) = Estimator::new(self.atoms, classes, &self.ends, &self.uses);
        let start = State {
            done: 0,
            filtered: 0,
            bound,
            rows: rows.max(1e-6),
            step_rows: rows,
            cost: 0.0,
            classes: Some(table),
            parent: 0,
            action: Action::Start,
        };
        let mandatory = self.mandatory;
        let mut work = RunningSearch {
            search: self,
            mandatory,
            estimator,
            states: Vec::with_capacity(2 + 2 * self.atoms.len()),
            candidates: Vec::with_capacity(8 * self.atoms.len()),
            fresh: Vec::with_capacity(4 * self.atoms.len()),
            best: None,
        };
        work.states.push(start);
        if mandatory == 0 {
            work.best = Some((0.0, 0));
        } else {
            work.greedy_descent(control)?;
            work.by_size(control)?;
        }
        Ok(match work.best {
            None if self.limit.is_some() => None,
            None => return Err(Error::internal("no order of a join has all of its patterns")),
            Some((_, last)) => Some(work.path(last, classes)),
        })
    }
}

/// State of a running search.
pub(crate) struct RunningSearch<'w, 's, 'a> {
    pub(crate) search: &'w JoinOrderSearch<'s, 'a>,
    /// Bit mask of the atoms that a complete order must contain.
    mandatory: u64,
    pub(crate) estimator: Estimator<'s, 'a>,
    states: Vec<State>,
    candidates: Vec<Candidate>,
    /// Candidates of the current state.
    pub(crate) fresh: Vec<Candidate>,
    /// Cost and position of the cheapest complete state.
    best: Option<(f64, usize)>,
}

impl RunningSearch<'_, '_, '_> {
    /// Greedy descent: follows the best candidate of each state to a complete order.
    fn greedy_descent(&mut self, control: &Control<'_>) -> Result<()> {
        let mut at = 0;
        while let Some(candidate) = self.extend(at) {
            control.work(SET_WORK)?;
            if self.search.limit.is_some_and(|limit| limit <= candidate.cost) {
                break;
            }
            at = self.states.len();
            if self.make(&candidate) {
                break;
            }
        }
        Ok(())
    }

    /// Processes all candidates, smaller sets first.
    fn by_size(&mut self, control: &Control<'_>) -> Result<()> {
        let mut level: Vec<Candidate> = Vec::new();
        for count in 1..=self.search.atoms.len() {
            level.clear();
            let size = |candidate: &Candidate| candidate.done.count_ones() as usize;
            let bound = self.bound().unwrap_or(f64::INFINITY);
            let is_wanted = |candidate: &&Candidate| size(candidate) == count && candidate.cost < bound;
            level.extend(self.candidates.iter().filter(is_wanted));
            level.sort_by(|a, b| a.done.cmp(&b.done).then(a.rank().total_cmp(&b.rank())));
            level.dedup_by_key(|candidate| candidate.done);
            level.sort_by(|a, b| a.rank().total_cmp(&b.rank()));
            level.truncate(self.search.beam);
            for candidate in &level {
                control.work(SET_WORK)?;
                if self.is_not_worth_it() {
                    return Ok(());
                }
                let known = |state: &State| state.done == candidate.done && state.cost <= candidate.cost;
                if self.exceeds_bound(candidate.cost) || self.states.iter().any(known) {
                    continue;
                }
                let at = self.states.len();
                if !self.make(candidate) {
                    self.extend(at);
                }
            }
        }
        Ok(())
    }

    /// Whether the search has cost as much as the best order will: what is left to gain is less than that.
    fn is_not_worth_it(&self) -> bool {
        let spent = self.candidates.len() as f64 * CANDIDATE_COST + self.states.len() as f64 * STATE_COST;
        self.best.is_some_and(|(best, _)| best <= spent)
    }

    /// The upper bound on the cost of useful states.
    fn bound(&self) -> Option<f64> {
        self.best.map(|(best, _)| best).or(self.search.limit)
    }

    fn exceeds_bound(&self, cost: f64) -> bool {
        self.bound().is_some_and(|bound| bound <= cost)
    }

    /// Adds the candidates of a state; returns the best of them.
    fn extend(&mut self, at: usize) -> Option<Candidate> {
        let classes = self.classes_of(at);
        let mut fresh = std::mem::take(&mut self.fresh);
        fresh.clear();
        let state = &self.states[at];
        CandidateGenerator {
            search: self.search,
            estimator: &mut self.estimator,
            state,
            classes,
            parent: u32::try_from(at).unwrap_or(u32::MAX),
            mandatory: self.mandatory,
            out: &mut fresh,
        }
        .collect();
        let negligible = self.search.negligible(state, &fresh, self.mandatory);
        if self.search.reorder
            && let Some(dominant) = negligible.or_else(|| dominant_candidate(state, &fresh, self.mandatory))
        {
            fresh.swap(0, dominant);
            fresh.truncate(1);
        }
        let best = fresh.iter().min_by(|a, b| a.rank().total_cmp(&b.rank())).copied();
        let bound = self.bound().unwrap_or(f64::INFINITY);
        self.candidates.extend(fresh.iter().filter(|candidate| candidate.cost < bound));
        self.fresh = fresh;
        best
    }

    /// Creates the state of a candidate; returns whether it is complete.
    fn make(&mut self, candidate: &Candidate) -> bool {
        let mut bound = self.states[candidate.parent as usize].bound.clone();
        bind(self.search.atoms, &candidate.action, &mut bound);
        let Candidate { parent, done, filtered, rows, step_rows, cost, action, .. } = *candidate;
        let is_final = done & self.mandatory == self.mandatory;
        if is_final && !self.exceeds_bound(cost) {
            self.best = Some((cost, self.states.len()));
        }
        self.states.push(State {
            done,
            filtered,
            bound,
            rows,
            step_rows,
            cost,
            classes: None,
            parent,
            action,
        });
        is_final
    }

    /// The distributions of a state, computed on first use.
    fn classes_of(&mut self, at: usize) -> ClassDistributions {
        let State { classes, parent, action, .. } = self.states[at];
        if let Some(known) = classes {
            return known;
        }
        // A state with children has been extended, so this call does not go deep.
        let before = self.classes_of(parent as usize);
        let atoms = self.search.atoms;
        let estimator = &mut self.estimator;
        let classes = match action {
            Action::Start | Action::Match(_) => before,
            Action::Seek(index) if atoms[usize::from(index)].general.is_some() => before,
            Action::Scan(index, direction) => estimator.scanned(before, usize::from(index), direction),
            Action::Seek(index) => estimator.scanned(before, usize::from(index), Direction::In),
            Action::Expand(index, direction) => estimator.expanded(before, usize::from(index), direction),
            Action::Check(index, _) => estimator.checked(before, usize::from(index)),
            Action::Intersect(_, legs) => {
                estimator.intersection(before, self.states[parent as usize].done, legs.iter()).1
            }
        };
        self.states[at].classes = Some(classes);
        classes
    }

    /// The order that ends with a state, and the distributions after it; `before`: those before the search.
    fn path(mut self, last: usize, before: &Classes) -> (Vec<OrderedAction>, Classes) {
        let table = self.classes_of(last);
        let mut path = Vec::with_capacity(self.search.atoms.len());
        let mut at = last;
        while at != 0 {
            let State { action, rows, step_rows, cost, parent, .. } = self.states[at];
            path.push(OrderedAction { action, rows, step_rows, cost });
            at = parent as usize;
        }
        path.reverse();
        (path, self.estimator.into_classes(table, before))
    }
}

/// The dominant candidate: one that is provably first in some cheapest order.
///
/// An independent step that multiplies rows by `g` and costs `c` for a row precedes a step with `g'` and `c'`
/// if `c + g c' <= c' + g' c`, that is by the rank `(g - 1) / c`. A dependent step may enable a step that
/// leaves almost no rows, so the comparison with it assumes that it does, at the cost of one more check for
/// each row.
fn dominant_candidate(state: &State, fresh: &[Candidate], mandatory: u64) -> Option<usize> {
    let growth = |one: &Candidate| one.rows / state.rows;
    let cost = |one: &Candidate| (one.cost - state.cost) / state.rows;
    let rank = |one: &Candidate| (growth(one) - 1.0) / cost(one).max(1e-9);
    // A step over implied atoms only is optional, hence never dominant.
    let is_free = |one: &Candidate| one.independent && one.done & !state.done & mandatory != 0;
    let (at, first) = fresh
        .iter()
        .enumerate()
        .filter(|(_, one)| is_free(one))
        .min_by(|a, b| rank(a.1).total_cmp(&rank(b.1)).then(a.1.cost.total_cmp(&b.1.cost)))?;
    let (mine, kept) = (cost(first), growth(first));
    let wins = |other: &Candidate| {
        is_free(other) || mine <= (cost(other) + cost::CHECK_ROW * growth(other)) * (1.0 - kept)
    };
    fresh.iter().all(wins).then_some(at)
}

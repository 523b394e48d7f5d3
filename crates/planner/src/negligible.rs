//! Steps too cheap for a comparison of join orders.
//!
//! A dozen patterns around one vertex have thousands of orders, which take a hundred microseconds to compare
//! where running the query takes ten. A step that cannot multiply rows and costs at most [`NEGLIGIBLE_COST`]
//! is therefore taken at once. Any order becomes at most that much more expensive if such a step is moved to
//! its beginning: later steps have no more rows than before, and a step that bound the same variable becomes
//! one from a bound variable.

use crate::cost;
use crate::join_state::{Action, Candidate, JoinOrderSearch, State};
use vervet_kernel::plan::Operand;
use vervet_model::Direction;

/// Maximum cost of a step that is taken without a comparison, in ns.
const NEGLIGIBLE_COST: f64 = 150.0;

/// From more rows no step is negligible.
pub(crate) const NEGLIGIBLE_ROWS_MAX: f64 = NEGLIGIBLE_COST / cost::CHECK_ROW;

impl JoinOrderSearch<'_, '_> {
    /// The best step among the candidates `fresh` of `state` that needs no comparison. `mandatory`: the atoms
    /// that a complete order must contain.
    pub(crate) fn negligible(&self, state: &State, fresh: &[Candidate], mandatory: u64) -> Option<usize> {
        if !self.reorder {
            return None;
        }
        let is_negligible = |one: &Candidate| {
            one.cost - state.cost <= NEGLIGIBLE_COST
                && one.rows <= state.rows
                && one.done & !state.done & mandatory != 0
                && self.never_multiplies(&one.action)
        };
        let all = fresh.iter().enumerate().filter(|(_, one)| is_negligible(one));
        all.min_by(|a, b| a.1.rank().total_cmp(&b.1.rank())).map(|(at, _)| at)
    }

    /// Whether each row has at most one row after the action.
    fn never_multiplies(&self, action: &Action) -> bool {
        match *action {
            Action::Check(..) => true,
            Action::Expand(at, direction) => self.has_one_row(usize::from(at), direction),
            _ => false,
        }
    }

    /// Whether the expansion of an atom outputs at most one row for a row.
    pub(crate) fn has_one_row(&self, index: usize, direction: Direction) -> bool {
        let atom = &self.atoms[index];
        let degree_max = match atom.ends(direction).0 {
            Operand::Constant(_) => atom.degrees[direction as usize],
            Operand::Variable(_) => atom.side(direction).map(|side| side.statistics.degree_max as f64),
        };
        degree_max.is_some_and(|degree| degree <= 1.0)
    }
}

//! Corrections of estimates by earlier runs, and the numbers of rows at which a run asks for them.
//!
//! # Shape
//! Each step of a join order has a [`ValidityRange`]: the rows at which its run is looked at, and the keys of
//! the patterns joined up to it. A run that leaves the range teaches one factor: how many times more rows the
//! join of these patterns has than estimated. The next planning multiplies by the factor where an order first
//! contains all of these patterns, so that other orders of the same patterns have no advantage.
//!
//! A key is that of a pattern with its constants, or of the variables that are bound before the join:
//! patterns joined with bound rows have factors of their own.
//! # Source
//! V. Markl et al., "Robust Query Processing through Progressive Optimization", SIGMOD 2004: validity ranges
//! and planning during a run. M. Stillger et al., "LEO – DB2's Learning Optimizer", VLDB 2001: factors for
//! later plans.
//! # Not here
//! When a run ends in favour of another plan: the crate `vervet`.

use crate::atom::Atom;
use std::hash::{Hash, Hasher};
use vervet_algebra::{Variable, VariableSet};
use vervet_kernel::plan::{GraphOperand, Operand, Plan, PlanStep, ValidityRange};
use vervet_snapshot::GraphFilter;

/// Ratio of actual to estimated rows at which a run is looked at.
const UNEXPECTED: f64 = 100.0;

/// Maximum number of factors for one query; later ones replace the first.
const CORRECTIONS_MAX: usize = 32;

/// Factors for the joins of one query, learned from its runs. They scale with the data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Corrections {
    of_joins: Vec<Correction>,
}

#[derive(Clone, Debug, PartialEq)]
struct Correction {
    /// Sorted keys.
    joined: Box<[u64]>,
    factor: f64,
}

impl Corrections {
    /// Whether nothing has been learned.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.of_joins.is_empty()
    }

    /// Learns from a run of `plan`, one of whose steps has output `rows_out` rows; they came from at most
    /// `rows_in` rows (0: unknown). A step without a validity range teaches nothing.
    pub fn learn(&mut self, plan: &Plan, step: &PlanStep, rows_in: u64, rows_out: u64) {
        let Some(ValidityRange { rows_before, joined: (start, end), .. }) = step.validity else { return };
        let Some(joined) = plan.joined.get(start as usize..end as usize) else { return };
        let (rows_in, rows_out) = (rows_in as f64, rows_out as f64);
        // The step may not have all of its input yet.
        let share = if rows_in > 0.0 { (rows_before / rows_in).max(1.0) } else { 1.0 };
        let factor = rows_out * share / step.rows.max(f64::MIN_POSITIVE);
        let mut joined: Box<[u64]> = joined.into();
        joined.sort_unstable();
        match self.of_joins.iter_mut().find(|known| known.joined == joined) {
            Some(known) => known.factor *= factor,
            None => {
                if self.of_joins.len() >= CORRECTIONS_MAX {
                    self.of_joins.remove(0);
                }
                self.of_joins.push(Correction { joined, factor });
            }
        }
    }

    /// The factors for joins of these atoms: bit masks of the atoms, from rows with this context.
    pub(crate) fn of_atoms(&self, context: u64, atoms: &[Atom<'_>]) -> Vec<(u64, f64)> {
        if self.of_joins.is_empty() {
            return Vec::new();
        }
        let keys: Vec<u64> = atoms.iter().map(key_of_atom).collect();
        let mask = |correction: &Correction| {
            let mut mask = 0_u64;
            for key in correction.joined.iter().filter(|key| **key != context) {
                let of_key = keys.iter().enumerate().filter(|(_, other)| *other == key);
                let (at, _) = of_key.clone().find(|(at, _)| mask >> at & 1 == 0)?;
                mask |= 1 << at;
            }
            correction.joined.contains(&context).then_some((mask, correction.factor))
        };
        self.of_joins.iter().filter_map(mask).filter(|(mask, _)| *mask != 0).collect()
    }

    /// The factor for a join of one part, from rows with this context.
    pub(crate) fn of_part(&self, context: u64, key: u64) -> f64 {
        let mut joined = [context, key];
        joined.sort_unstable();
        let known = self.of_joins.iter().find(|known| *known.joined == joined);
        known.map_or(1.0, |known| known.factor)
    }
}

/// The validity range of a step with these estimates.
/// `unexpected`: see [`crate::PlanOptions::unexpected_rows`].
pub(crate) fn validity(rows_before: f64, rows: f64, unexpected: f64, joined: (u32, u32)) -> ValidityRange {
    let most = if unexpected > 0.0 { (rows * UNEXPECTED).max(unexpected) } else { rows };
    #[expect(clippy::cast_possible_truncation, reason = "saturates; it is an estimate")]
    let rows_max = most as u64;
    ValidityRange { rows_max, rows_before, joined }
}

/// The key of an atom.
pub(crate) fn key_of_atom(atom: &Atom<'_>) -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    add_operand(&mut hasher, atom.subject);
    add_operand(&mut hasher, atom.object);
    match &atom.general {
        Some((general, _)) => {
            add_operand(&mut hasher, general.predicate);
            if let GraphOperand::Variable(graph) = general.graph {
                hasher.write_u16(graph.0);
            }
        }
        None => hasher.write_u64(atom.predicate.bits()),
    }
    match atom.graph {
        GraphFilter::Default => {}
        GraphFilter::Named(graph) => hasher.write_u64(graph.bits()),
        GraphFilter::Any => hasher.write_u8(1),
        GraphFilter::AnyNamed => hasher.write_u8(2),
    }
    hasher.finish()
}

/// The key of the variables of a join that are bound before it.
pub(crate) fn key_of_context(bound: impl Iterator<Item = Variable>) -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    hasher.write_u8(u8::MAX);
    bound.for_each(|variable| hasher.write_u16(variable.0));
    hasher.finish()
}

/// The key of any other part of a join.
pub(crate) fn key_of_part(part: &impl Hash) -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    part.hash(&mut hasher);
    hasher.finish()
}

fn add_operand(hasher: &mut rustc_hash::FxHasher, operand: Operand) {
    match operand {
        Operand::Variable(variable) => hasher.write_u16(variable.0),
        Operand::Constant(id) => hasher.write_u64(id.bits()),
    }
}

/// The variables of `variables` that are in `bound`.
pub(crate) fn bound_of<'s>(
    variables: &'s VariableSet,
    bound: &'s VariableSet,
) -> impl Iterator<Item = Variable> + 's {
    variables.iter().filter(|variable| bound.contains(*variable))
}

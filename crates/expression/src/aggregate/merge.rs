//! Merge of partial aggregates, for parallel aggregation.
//!
//! # Semantics
//! The result is that of aggregating all rows in some order. So sums of floats and doubles may differ in
//! their last digits between runs, `SAMPLE` may select another value, and the texts of `GROUP_CONCAT` may
//! have another order; SPARQL leaves all three open.
//! # Cost
//! One addition for each group; with `DISTINCT` one look-up for each distinct value of the other half.

use super::{Accumulators, Concat, Extreme, Number, States};
use crate::arithmetic::apply;
use crate::context::{Context, Operand};
use crate::operator::Operator;
use crate::work::of_text;
use vervet_model::{Error, Multiplicity, Result};

impl Accumulators<'_> {
    /// Merges `other`, accumulators of the same aggregate of the same query; `groups[i]` is the number here
    /// of its group `i`. `work` receives the number of processed groups or values, and may abort the merge.
    ///
    /// # Errors
    /// Damaged data; a limit; those of `work`.
    pub fn merge(&mut self, other: Self, groups: &[u32], work: &dyn Fn(usize) -> Result<()>) -> Result<()> {
        let Some(most) = groups.iter().max() else { return Ok(()) };
        self.states.grow(*most as usize + 1);
        let here = |group: u32| groups.get(group as usize).copied().ok_or_else(mismatch);
        let mut context = Context::new(self.evaluator, &[]);
        for (group, ids) in other.solutions {
            work(1)?;
            let size_bytes = std::mem::size_of_val(&*ids);
            let group = here(group)?;
            if self.solutions.insert((group, ids)) {
                self.heap_bytes += size_bytes;
                if let States::Count(counts) = &mut self.states {
                    counts.add(group as usize, Multiplicity::ONE)?;
                }
            }
        }
        if let (Some(mine), Some(theirs)) = (&mut self.distinct, other.distinct) {
            for (group, id) in theirs {
                work(1)?;
                let group = here(group)?;
                if mine.insert((group, id)) {
                    let (group, operand) = (group as usize, Operand::Id(id));
                    self.states.add(group, operand, Multiplicity::ONE, &mut context, &mut self.heap_bytes)?;
                }
            }
            for (group, &to) in groups.iter().enumerate() {
                if other.states.has_failed(group) {
                    self.states.fail(to as usize);
                }
            }
            return Ok(());
        }
        self.states.merge(other.states, groups, &mut context, &mut self.heap_bytes, work)
    }
}

fn mismatch() -> Error {
    Error::internal("partial aggregates of different kinds")
}

impl States {
    fn has_failed(&self, group: usize) -> bool {
        match self {
            Self::Count(_) | Self::Sample(_) => false,
            Self::Sum(states) => matches!(states.get(group), Some(Number::Failed)),
            Self::Average(states) => matches!(states.get(group), Some((Number::Failed, _))),
            Self::Extreme { states, .. } => matches!(states.get(group), Some(Extreme::Failed)),
            Self::Concat { states, .. } => matches!(states.get(group), Some(Concat::Failed)),
        }
    }

    /// There may be fewer states than groups: missing states are empty.
    fn merge(
        &mut self,
        other: Self,
        groups: &[u32],
        context: &mut Context<'_>,
        heap_bytes: &mut usize,
        work: &dyn Fn(usize) -> Result<()>,
    ) -> Result<()> {
        let groups = groups.iter().map(|&group| group as usize);
        match (self, other) {
            (Self::Count(mine), Self::Count(theirs)) => {
                for (theirs_group, group) in groups.enumerate().take(theirs.low.len()) {
                    work(1)?;
                    mine.add(group, theirs.get(theirs_group)?)?;
                }
            }
            (Self::Sum(mine), Self::Sum(theirs)) => {
                for (group, sum) in groups.zip(theirs) {
                    work(1 + sum.work())?;
                    mine[group].add_sum(&sum, heap_bytes);
                }
            }
            (Self::Average(mine), Self::Average(theirs)) => {
                for (group, (sum, count)) in groups.zip(theirs) {
                    work(1 + sum.work())?;
                    let (my_sum, my_count) = &mut mine[group];
                    my_sum.add_sum(&sum, heap_bytes);
                    *my_count = my_count.plus(count)?;
                }
            }
            (Self::Extreme { wanted, states: mine }, Self::Extreme { states: theirs, .. }) => {
                for (group, extreme) in groups.zip(theirs) {
                    work(1)?;
                    match extreme {
                        Extreme::Empty => {}
                        Extreme::Failed => mine[group] = Extreme::Failed,
                        Extreme::Value(id, _) => {
                            mine[group].add(*wanted, Operand::Id(id), context, heap_bytes)?;
                        }
                    }
                }
            }
            (Self::Sample(mine), Self::Sample(theirs)) => {
                for (group, id) in groups.zip(theirs) {
                    work(1)?;
                    if !mine[group].is_bound() {
                        mine[group] = id;
                    }
                }
            }
            (Self::Concat { separator, states: mine }, Self::Concat { states: theirs, .. }) => {
                for (group, text) in groups.zip(theirs) {
                    work(1 + if let Concat::Text(text) = &text { of_text(text.len()) } else { 0 })?;
                    mine[group].append(separator, text, context, heap_bytes)?;
                }
            }
            _ => return Err(mismatch()),
        }
        Ok(())
    }
}

impl Number {
    /// Units of work of an addition.
    fn work(&self) -> usize {
        if let Self::Wide(value) = self { value.work() } else { 0 }
    }

    fn add_sum(&mut self, other: &Self, heap_bytes: &mut usize) {
        let sum = match (self.value(), other.value()) {
            (Some(a), Some(b)) => apply(Operator::Add, &a, &b),
            _ => None,
        };
        self.set(Self::of(sum), heap_bytes);
    }
}

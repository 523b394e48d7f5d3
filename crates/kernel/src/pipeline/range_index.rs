//! Sorted index of the build side of a join whose condition compares a column of each side: `?a < ?b`, or
//! several such comparisons of one right column (a band).
//!
//! # Shape
//! The rows of a group are sorted by key, by [`OrderClass`] of the compared value, and by value. Within a
//! class, the rows for which `right comparator left` holds are a prefix or a suffix, whatever the class of
//! the left value, so two binary searches find them; the ranges of several comparisons intersect. Values
//! without a total order are tested one by one.
//! # Why this is right
//! A binary search evaluates the comparison itself, on the values of both rows: only its monotonicity within
//! a class is assumed, for which `vervet_expression::OrderClass` has the argument.
//! # Cost
//! Build: a sort. Probe: a look-up of the key, and a binary search for each class and comparison.
//! # Source
//! Range predicates as sort-merge ("band") joins: D. DeWitt et al., "An Evaluation of Non-Equijoin
//! Algorithms", VLDB 1991.

use crate::pipeline::batch::Batch;
use crate::pipeline::control::Control;
use crate::plan::Step;
use rustc_hash::FxHashMap;
use std::cmp::Ordering;
use vervet_algebra::{Comparator, Expression, Variable};
use vervet_expression::{Evaluator, OrderClass};
use vervet_model::{Id, Multiplicity, Result};

/// The comparisons `right comparator left` among the conjuncts of a join condition that have the same right
/// column.
#[derive(Clone, Debug)]
pub(crate) struct RangeCondition {
    pub right: Variable,
    pub bounds: Vec<(Comparator, Variable)>,
    /// Whether the condition has no other conjunct.
    pub is_exact: bool,
}

impl RangeCondition {
    /// The range condition of an inner, left, semi or anti join.
    pub(crate) fn of(step: &Step) -> Option<Self> {
        let Step::Join { kind, compatible, adds, .. } = step else { return None };
        let conjuncts = match kind.condition()? {
            Expression::And(all) => all.as_slice(),
            one => std::slice::from_ref(one),
        };
        let mut found: Vec<Self> = Vec::new();
        for (comparator, left, right) in
            conjuncts.iter().filter_map(|conjunct| across(conjunct, compatible, adds))
        {
            match found.iter_mut().find(|one| one.right == right) {
                Some(one) => one.bounds.push((comparator, left)),
                None => found.push(Self { right, bounds: vec![(comparator, left)], is_exact: false }),
            }
        }
        // The first one of those with most bounds.
        let mut best =
            found.into_iter().reduce(|a, b| if b.bounds.len() > a.bounds.len() { b } else { a })?;
        best.is_exact = best.bounds.len() == conjuncts.len();
        Some(best)
    }

    /// Whether all comparisons hold.
    pub(crate) fn holds(
        &self,
        right: Id,
        left: &Batch,
        row: usize,
        evaluator: &Evaluator<'_>,
    ) -> Result<bool> {
        for &(comparator, variable) in &self.bounds {
            if evaluator.holds(comparator, right, left.value(variable, row))? != Some(true) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The comparison `right comparator left` of a column of each side that a conjunct is. A `compatible`
/// variable has the value of either side.
pub(crate) fn across(
    conjunct: &Expression,
    compatible: &[Variable],
    adds: &[Variable],
) -> Option<(Comparator, Variable, Variable)> {
    let Expression::Compare(comparator, a, b) = conjunct else { return None };
    let (&Expression::Variable(a), &Expression::Variable(b)) = (&**a, &**b) else { return None };
    let is_left = |one| !adds.contains(&one) && !compatible.contains(&one);
    match (adds.contains(&a), adds.contains(&b)) {
        (true, false) if is_left(b) => Some((*comparator, b, a)),
        (false, true) if is_left(a) => Some((comparator.flipped(), a, b)),
        _ => None,
    }
}

/// Consecutive sorted rows with an equal key and class.
struct ClassRun {
    /// Whether values are in the order of a class; otherwise each is tested.
    is_ordered: bool,
    start: u32,
    end: u32,
}

/// Consecutive runs with an equal key.
struct KeyGroup {
    hash: u64,
    runs: (u32, u32),
}

/// The sorted rows of a group; see the header.
#[derive(Default)]
pub(crate) struct RangeIndex {
    /// The first of the consecutive `keys` with each hash.
    first: FxHashMap<u64, u32>,
    keys: Vec<KeyGroup>,
    runs: Vec<ClassRun>,
    /// Rows of the table.
    rows: Vec<u32>,
    /// Sums of the multiplicities of the first rows; empty: each row represents one solution.
    sums: Vec<Multiplicity>,
}

/// Right rows that may match a left row.
pub(crate) struct Candidates<'i> {
    pub rows: &'i [u32],
    /// Whether all comparisons hold for all of them.
    pub is_certain: bool,
    /// The number of solutions that the rows represent.
    solutions: Option<Multiplicity>,
}

impl Candidates<'_> {
    /// The number of solutions that the rows represent.
    pub(crate) fn solutions(&self) -> Multiplicity {
        self.solutions.unwrap_or_else(|| Multiplicity::new(self.rows.len() as u64))
    }
}

impl RangeIndex {
    /// Sorts `rows` of the table. `hash`: of the key of a row; `key`: the variables of the key.
    pub(crate) fn new(
        rows: &[u32],
        hash: impl Fn(usize) -> u64,
        key: &[Variable],
        right: Variable,
        table: &Batch,
        evaluator: &Evaluator<'_>,
        control: &Control<'_>,
    ) -> Result<Self> {
        let entry_bytes = size_of::<(u64, OrderClass, u32)>();
        control.grow((entry_bytes * rows.len()) as u64)?;
        let mut entries = Vec::with_capacity(rows.len());
        for &row in rows {
            control.work(1)?;
            let class = evaluator.order_class(table.value(right, row as usize))?;
            if class != OrderClass::Never {
                entries.push((hash(row as usize), class, row));
            }
        }
        let by_key = |a: u32, b: u32| {
            let of = |row: u32| key.iter().map(move |variable| table.value(*variable, row as usize));
            of(a).cmp(of(b))
        };
        let number = |class: OrderClass| match class {
            OrderClass::Ordered(class) => u16::from(class),
            OrderClass::Never | OrderClass::Alone => u16::MAX,
        };
        let run_order = |a: &(u64, OrderClass, u32), b: &(u64, OrderClass, u32)| {
            a.0.cmp(&b.0).then_with(|| by_key(a.2, b.2)).then_with(|| number(a.1).cmp(&number(b.1)))
        };
        entries.sort_unstable_by(|a, b| run_order(a, b).then(a.2.cmp(&b.2)));
        control.check()?;
        let mut index = Self::default();
        let mut scratch = Vec::new();
        let mut counted_bytes = 0;
        for run in entries.chunk_by(|a, b| run_order(a, b) == Ordering::Equal) {
            let (hash, class, first) = run[0];
            let start = index.rows.len();
            index.rows.extend(run.iter().map(|entry| entry.2));
            let is_ordered = class != OrderClass::Alone;
            if is_ordered {
                let less = |a: u32, b: u32| {
                    let (a, b) = (table.value(right, a as usize), table.value(right, b as usize));
                    Ok(evaluator.holds(Comparator::Less, a, b)? == Some(true))
                };
                merge_sort(&mut index.rows[start..], &mut scratch, less, control)?;
            }
            let position = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
            let at = position(index.runs.len());
            index.runs.push(ClassRun { is_ordered, start: position(start), end: position(index.rows.len()) });
            match index.keys.last_mut() {
                Some(last)
                    if last.hash == hash
                        && by_key(index.rows[index.runs[last.runs.0 as usize].start as usize], first)
                            == Ordering::Equal =>
                {
                    last.runs.1 = at + 1;
                }
                _ => {
                    index.first.entry(hash).or_insert(position(index.keys.len()));
                    index.keys.push(KeyGroup { hash, runs: (at, at + 1) });
                }
            }
            let bytes = 17 * index.first.capacity()
                + size_of::<KeyGroup>() * index.keys.capacity()
                + size_of::<ClassRun>() * index.runs.capacity()
                + 4 * (index.rows.capacity() + scratch.capacity());
            control.recount(&mut counted_bytes, bytes as u64)?;
        }
        if !table.multiplicity.is_empty() {
            control.grow((size_of::<Multiplicity>() * (index.rows.len() + 1)) as u64)?;
            let mut sum = Multiplicity::ZERO;
            index.sums.push(sum);
            for &row in &index.rows {
                sum = sum.plus(table.times(row as usize))?;
                index.sums.push(sum);
            }
        }
        control.shrink((entry_bytes * rows.len()) as u64);
        Ok(index)
    }

    /// Calls `visit` with the right rows that may match `row` of `left`, until it returns `false`, which this
    /// returns, too. `has_key`: whether a row of the table has the key of the left row.
    #[expect(clippy::too_many_arguments, reason = "two sides with what reads them")]
    pub(crate) fn probe(
        &self,
        hash: u64,
        condition: &RangeCondition,
        (left, row): (&Batch, usize),
        table: &Batch,
        evaluator: &Evaluator<'_>,
        control: &Control<'_>,
        has_key: impl Fn(u32) -> bool,
        visit: &mut dyn FnMut(Candidates<'_>) -> Result<bool>,
    ) -> Result<bool> {
        let Some(&first) = self.first.get(&hash) else { return Ok(true) };
        let same_hash = self.keys[first as usize..].iter().take_while(|key| key.hash == hash);
        for key in same_hash {
            let runs = &self.runs[key.runs.0 as usize..key.runs.1 as usize];
            if !runs.first().is_some_and(|run| has_key(self.rows[run.start as usize])) {
                continue;
            }
            for run in runs {
                control.work(1)?;
                let (mut start, mut end) = (run.start as usize, run.end as usize);
                if run.is_ordered {
                    for &(comparator, variable) in &condition.bounds {
                        let left = left.value(variable, row);
                        let holds = |at: usize| {
                            let right = table.value(condition.right, self.rows[at] as usize);
                            Ok(evaluator.holds(comparator, right, left)? == Some(true))
                        };
                        match comparator {
                            Comparator::Less | Comparator::LessOrEqual => {
                                end = partition_point(start, end, holds)?;
                            }
                            Comparator::Greater | Comparator::GreaterOrEqual => {
                                start = partition_point(start, end, |at| Ok(!holds(at)?))?;
                            }
                        }
                    }
                }
                if start == end {
                    continue;
                }
                let solutions = match self.sums.is_empty() {
                    true => None,
                    false => Some(self.sums[end].saturating_sub(self.sums[start])),
                };
                let found =
                    Candidates { rows: &self.rows[start..end], is_certain: run.is_ordered, solutions };
                if !visit(found)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

/// The first position from `start` on at which `holds` is false; it is true before and false after.
fn partition_point(mut start: usize, mut end: usize, holds: impl Fn(usize) -> Result<bool>) -> Result<usize> {
    while start < end {
        let middle = start + (end - start) / 2;
        if holds(middle)? {
            start = middle + 1;
        } else {
            end = middle;
        }
    }
    Ok(start)
}

/// Sorts `rows`, stably. A comparison may fail, which the sorts of the standard library do not allow for.
fn merge_sort(
    rows: &mut [u32],
    scratch: &mut Vec<u32>,
    less: impl Fn(u32, u32) -> Result<bool>,
    control: &Control<'_>,
) -> Result<()> {
    /// Rows sorted by insertion.
    const INSERTION: usize = 8;
    for chunk in rows.chunks_mut(INSERTION) {
        for end in 1..chunk.len() {
            let mut at = end;
            while at > 0 && less(chunk[at], chunk[at - 1])? {
                chunk.swap(at, at - 1);
                at -= 1;
            }
        }
        control.work(INSERTION)?;
    }
    let mut width = INSERTION;
    while width < rows.len() {
        scratch.clear();
        for pair in rows.chunks(2 * width) {
            control.work(pair.len())?;
            let (a, b) = pair.split_at(width.min(pair.len()));
            let (mut at_a, mut at_b) = (0, 0);
            while let (Some(&of_a), Some(&of_b)) = (a.get(at_a), b.get(at_b)) {
                if less(of_b, of_a)? {
                    scratch.push(of_b);
                    at_b += 1;
                } else {
                    scratch.push(of_a);
                    at_a += 1;
                }
            }
            scratch.extend_from_slice(&a[at_a..]);
            scratch.extend_from_slice(&b[at_b..]);
        }
        rows.copy_from_slice(scratch);
        width *= 2;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn merge_sort_is_a_stable_sort() {
        let control = Control::default();
        for count in 0..200_u32 {
            let mut rows: Vec<u32> = (0..count).map(|at| ((at * 7919 + count) % 20) << 16 | at).collect();
            let mut expected = rows.clone();
            expected.sort_by_key(|row| row >> 16);
            let less = |a: u32, b: u32| Ok(a >> 16 < b >> 16);
            merge_sort(&mut rows, &mut Vec::new(), less, &control).expect("no limit");
            assert_eq!(rows, expected);
        }
    }
}

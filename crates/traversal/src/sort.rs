//! Cancellable merge sort.
//!
//! # Shape
//! Runs of [`RUN`] items are sorted by the standard library, then merged pairwise.
//! # Cost
//! Merge sort: `n log2(n)` comparisons. Up to [`RUN`] items are one standard-library sort.

use std::cmp::Ordering;
use vervet_kernel::Control;
use vervet_model::Result;

/// Items sorted without a limit check.
const RUN: usize = 1 << 12;

/// Sorts items; the sort is stable.
///
/// # Errors
/// Cancellation.
pub(crate) fn sorted<T>(
    mut all: Vec<T>,
    control: &Control<'_>,
    compare: impl Fn(&T, &T) -> Ordering,
) -> Result<Vec<T>> {
    if all.len() <= RUN {
        control.work(all.len())?;
        all.sort_by(compare);
        return Ok(all);
    }
    let mut runs = Vec::with_capacity(all.len().div_ceil(RUN));
    let mut rest = all.into_iter();
    loop {
        let mut run: Vec<T> = rest.by_ref().take(RUN).collect();
        if run.is_empty() {
            break;
        }
        control.work(run.len())?;
        run.sort_by(&compare);
        runs.push(run);
    }
    while runs.len() > 1 {
        let mut merged = Vec::with_capacity(runs.len().div_ceil(2));
        let mut pairs = runs.into_iter();
        while let Some(first) = pairs.next() {
            merged.push(match pairs.next() {
                Some(second) => merge(first, second, control, &compare)?,
                None => first,
            });
        }
        runs = merged;
    }
    Ok(runs.pop().unwrap_or_default())
}

fn merge<T>(
    first: Vec<T>,
    second: Vec<T>,
    control: &Control<'_>,
    compare: impl Fn(&T, &T) -> Ordering,
) -> Result<Vec<T>> {
    let mut merged = Vec::with_capacity(first.len() + second.len());
    let (mut first, mut second) = (first.into_iter().peekable(), second.into_iter().peekable());
    while let (Some(a), Some(b)) = (first.peek(), second.peek()) {
        control.work(1)?;
        let next = if compare(a, b) == Ordering::Greater { second.next() } else { first.next() };
        merged.extend(next);
    }
    merged.extend(first);
    merged.extend(second);
    Ok(merged)
}

#[cfg(test)]
mod tests {
    use super::{RUN, sorted};
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use vervet_kernel::{Control, Limits};

    #[test]
    fn sorted_as_the_standard_library_sorts() {
        for count in [0, 1, RUN, RUN + 1, 5 * RUN + 7] {
            let all: Vec<(usize, usize)> = (0..count).map(|at| (at * 7919 % 1009, at)).collect();
            let mut expected = all.clone();
            expected.sort_by_key(|(key, _)| *key);
            let control = Control::new(Limits::default());
            assert_eq!(sorted(all, &control, |a, b| a.0.cmp(&b.0)).expect("there are no limits"), expected);
        }
    }

    #[test]
    fn a_sort_of_many_is_cancelled() {
        let cancelled = Some(Arc::new(AtomicBool::new(true)));
        let control = Control::new(Limits { cancelled, ..Limits::default() });
        let all: Vec<usize> = (0..1 << 17).rev().collect();
        assert!(sorted(all, &control, Ord::cmp).is_err());
    }
}

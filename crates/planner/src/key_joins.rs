//! Joins of two predicates on a variable: how often a value bound by one end of a predicate has entries at
//! another end, and how many.
//!
//! # Shape
//! A *predicate end* is a predicate with a direction; its values are the keys of that segment. A row that an
//! entry of one end has bound is distributed like the entries of that end, so popular values are frequent.
//! The sketches of both ends estimate how many entries such a value has at the other end. Estimates by
//! classes assume independence within a class; a [`Correction`] is the factor by which the sketches differ
//! from them, so both sources of information combine: types restrict the classes, sketches tell which
//! predicates occur together.
//! Where most keys have types, classes alone decide ([`classes_tell`]).
//! # Heuristic
//! Corrections within the noise of the samples are 1. Corrections by several ends of one variable are neither
//! independent nor the same fact, so the second one counts with half its logarithm, the third with a quarter.
//! # Source
//! Exponential damping of selectivities: "exponential back-off" of the estimator of SQL Server 2014; size
//! bias: the inspection paradox.

use crate::atom::{Atom, DirectedSegment, PredicateSegments};
use std::rc::Rc;
use vervet_algebra::Variable;
use vervet_model::{Direction, Id};
use vervet_snapshot::{ClassId, KeySketch, SegmentStatistics};

/// Maximum number of ends of a variable that an estimate combines.
pub(crate) const ENDS_MAX: usize = 8;

/// Maximum number of ends in a mixture.
const MIXED_MAX: usize = 4;

/// Maximum number of classes for which a correction is computed: the time is linear in them.
const CLASSES_MAX: usize = 128;

/// Standard deviations of an overlap within which its correction is ignored.
const NOISE_WEIGHT: f64 = 0.5;

/// Minimum number of common samples expected by classes for which their absence says anything.
const SAMPLES_EXPECTED_MIN: f64 = 1.0;

/// Whether classes tell which predicates of these patterns occur together: most keys have types. Then no
/// estimate is corrected, since that takes as long as the rest of the planning of a light query. Patterns of
/// types do not count: the types themselves have none.
pub(crate) fn classes_tell_of(atoms: &[Atom<'_>]) -> bool {
    classes_tell(atoms.iter().filter(|atom| atom.types.is_none()).flat_map(Atom::statistics))
}

/// [`classes_tell_of`] for segments.
pub(crate) fn classes_tell<'s>(mut all: impl Iterator<Item = &'s SegmentStatistics>) -> bool {
    all.all(|one| one.untyped_keys.saturating_mul(2) <= one.keys)
}

/// An end of a predicate that may have bound a variable, with its share of the rows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct EndShare {
    pub(crate) predicate: Id,
    pub(crate) direction: Direction,
    pub(crate) share: f64,
}

/// The ends that have bound variables in earlier steps; shares of a variable sum to at most 1.
pub(crate) type Ends = Vec<(Variable, Rc<[EndShare]>)>;

/// The same for one variable, with segments.
pub(crate) type BoundEnds<'a> = (Variable, Vec<(Rc<PredicateSegments<'a>>, Direction, f64)>);

/// The ends of the union of two bags with these row counts.
pub(crate) fn mix_ends(a: &[EndShare], a_rows: f64, b: &[EndShare], b_rows: f64) -> Rc<[EndShare]> {
    let (a_rows, b_rows) = (a_rows.max(f64::MIN_POSITIVE), b_rows.max(f64::MIN_POSITIVE));
    let all = a_rows + b_rows;
    let mut mixed: Vec<EndShare> = Vec::with_capacity(a.len() + b.len());
    for (ends, rows) in [(a, a_rows), (b, b_rows)] {
        for end in ends {
            let share = end.share * rows / all;
            let same = |one: &&mut EndShare| one.predicate == end.predicate && one.direction == end.direction;
            match mixed.iter_mut().find(same) {
                Some(one) => one.share += share,
                None => mixed.push(EndShare { share, ..*end }),
            }
        }
    }
    mixed.sort_by(|a, b| b.share.total_cmp(&a.share));
    mixed.truncate(MIXED_MAX);
    mixed.into()
}

/// Factors for an estimate by classes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Correction {
    /// Of the fraction of values that have entries.
    pub(crate) reached: f64,
    /// Of the number of entries of a value that has any.
    pub(crate) fan_out: f64,
    /// Every value certainly has entries.
    pub(crate) certain: bool,
}

impl Correction {
    pub(crate) const NONE: Self = Self { reached: 1.0, fan_out: 1.0, certain: false };

    /// The mean of corrections with these weights.
    pub(crate) fn mean(all: impl Iterator<Item = (Self, f64)>) -> Self {
        let (mut reached, mut entries, mut weights, mut certain) = (0.0, 0.0, 0.0, true);
        for (one, weight) in all {
            reached += weight * one.reached;
            entries += weight * one.reached * one.fan_out;
            weights += weight;
            certain &= one.certain;
        }
        if weights <= 0.0 || reached <= 0.0 {
            return Self::NONE;
        }
        Self { reached: reached / weights, fan_out: entries / reached, certain }
    }

    /// Applies corrections to the fraction of values with entries and to their number of entries; both
    /// damped.
    pub(crate) fn apply(all: &mut [Self], reached: f64, fan_out: f64, degree_max: f64) -> (f64, f64) {
        match all {
            [] => return (reached.min(1.0), fan_out),
            [one] => {
                let reached = if one.certain { 1.0 } else { (reached * one.reached).min(1.0) };
                return (reached, (fan_out * one.fan_out).clamp(1.0, degree_max.max(1.0)));
            }
            _ => {}
        }
        let certain = all.iter().any(|one| one.certain);
        let reached = if certain { 1.0 } else { (reached * damped(all, |one| one.reached)).min(1.0) };
        let fan_out = (fan_out * damped(all, |one| one.fan_out)).clamp(1.0, degree_max.max(1.0));
        (reached, fan_out)
    }
}

impl Correction {
    /// The damped factor of the number of entries of a value.
    pub(crate) fn factor(all: &mut [Self]) -> f64 {
        match all {
            [] => 1.0,
            [one] => one.reached * one.fan_out,
            all => damped(all, |one| one.reached * one.fan_out),
        }
    }
}

/// The product of factors, the strongest with its full weight, each further one with half the weight of the
/// one before.
fn damped(all: &mut [Correction], factor: impl Fn(&Correction) -> f64) -> f64 {
    all.sort_unstable_by(|a, b| factor(b).ln().abs().total_cmp(&factor(a).ln().abs()));
    let (mut sum, mut weight) = (0.0, 1.0);
    for one in all {
        sum += weight * factor(one).ln();
        weight *= 0.5;
    }
    sum.exp()
}

/// The correction for a value that an end has bound, looked up at the end `to`. `uniform`: every value of the
/// end is bound once, instead of once for each entry. `None`: unknown.
pub(crate) fn correction(
    from: &DirectedSegment<'_>,
    uniform: bool,
    to: &DirectedSegment<'_>,
    same: bool,
) -> Option<Correction> {
    let (by_class, degree_by_class) = by_class(from, uniform, to)?;
    if by_class <= 0.0 || degree_by_class <= 0.0 {
        return None;
    }
    let fan_by_class = degree_by_class / by_class;
    if same {
        let biased = from.size_biased_degree();
        let fan_out = if uniform { from.average_degree() } else { biased };
        return Some(Correction { reached: 1.0 / by_class, fan_out: fan_out / fan_by_class, certain: true });
    }
    let (a, b) = (from.statistics.sketch.as_ref()?, to.statistics.sketch.as_ref()?);
    let overlap = a.overlap(b);
    let all = if uniform { a.keys() } else { a.entries() }.max(1.0);
    let exact = a.is_complete() && b.is_complete();
    let share = |sketch: &KeySketch| sketch.kept(sketch.entries() / sketch.keys().max(1.0));
    if overlap.samples == 0 {
        let seen = (a.keys() * share(a).min(share(b))).max(1.0);
        if by_class * seen < SAMPLES_EXPECTED_MIN && !exact {
            return Some(Correction::NONE);
        }
        // No common value at all is more likely than as few as no sample shows.
        let reached = (0.5 / seen).powi(2).max(0.5 / all);
        return Some(Correction { reached: (reached / by_class).min(1.0), ..Correction::NONE });
    }
    let (reached, entries) = match uniform {
        false => (overlap.first, overlap.products),
        true => (overlap.keys, overlap.second),
    };
    let fan_out = entries / reached;
    let reached = (reached / all).min(1.0);
    let noise = NOISE_WEIGHT * overlap.deviation;
    // Values with many entries in `to` that `from` has as well, but not among its samples.
    let common = (overlap.keys / b.keys().max(1.0)).min(1.0);
    let degree = a.entries() / a.keys().max(1.0);
    let unseen = (b.entries() - overlap.second).max(0.0) * common * degree * (1.0 - share(a));
    let noise_of_heavy = (unseen / overlap.products).ln_1p();
    Some(Correction {
        reached: outside_noise(reached / by_class, noise),
        fan_out: outside_noise(fan_out / fan_by_class, noise.max(noise_of_heavy)),
        certain: exact && reached > 0.999,
    })
}

/// A factor without the part that noise explains.
fn outside_noise(factor: f64, noise: f64) -> f64 {
    let log = factor.ln();
    (log.signum() * (log.abs() - noise).max(0.0)).exp()
}

/// What classes say about a value that the end `from` has bound: the probability that it has entries at the
/// end `to`, and their expected number.
fn by_class(from: &DirectedSegment<'_>, uniform: bool, to: &DirectedSegment<'_>) -> Option<(f64, f64)> {
    let degrees = to.class_degrees();
    if from.statistics.keys_of_class.len() > CLASSES_MAX || degrees.len() > CLASSES_MAX {
        return None;
    }
    let (mut weights, mut reached, mut entries) = (0.0, 0.0, 0.0);
    let mut add = |class: ClassId, weight: f64| {
        weights += weight;
        if let Ok(at) = degrees.binary_search_by_key(&class, |one| one.class) {
            reached += weight * degrees[at].keys;
            entries += weight * degrees[at].degree;
        }
    };
    if uniform {
        from.statistics.keys_of_class.iter().for_each(|(class, keys)| add(*class, *keys as f64));
    } else {
        from.class_degrees().iter().for_each(|one| add(one.class, one.degree / one.share));
    }
    (weights > 0.0).then(|| (reached / weights, entries / weights))
}

/// The expected number of entries in `to` of the key of a random entry of `from`; 0 is not certain. `None`:
/// unknown.
pub(crate) fn conditional_degree(
    from: &SegmentStatistics,
    to: &SegmentStatistics,
    same: bool,
) -> Option<f64> {
    if same && from.degree_squares > 0 {
        return Some(from.degree_squares as f64 / from.entries.max(1) as f64);
    }
    let (first, second) = (from.sketch.as_ref()?, to.sketch.as_ref()?);
    let overlap = first.overlap(second);
    let all = first.entries().max(1.0);
    if overlap.samples == 0 {
        if !share_classes(from, to) {
            return Some(0.0);
        }
        return Some(reached_unseen(first, second) * second.entries() / second.keys().max(1.0));
    }
    Some(overlap.products / all)
}

/// Whether some class has keys of both.
fn share_classes(a: &SegmentStatistics, b: &SegmentStatistics) -> bool {
    let has = |class: &ClassId| b.keys_of_class.binary_search_by_key(class, |(class, _)| *class).is_ok();
    a.keys_of_class.iter().any(|(class, _)| has(class))
}

/// The probability that a value of `first` is one of `second`, where no sample is common. No common value at
/// all is more likely than as few as no sample shows.
fn reached_unseen(first: &KeySketch, second: &KeySketch) -> f64 {
    if first.is_complete() && second.is_complete() {
        return 0.5 / first.entries().max(1.0);
    }
    let share = |sketch: &KeySketch| sketch.kept(sketch.entries() / sketch.keys().max(1.0));
    let seen = first.keys() * share(first).min(share(second));
    (0.5 / seen.max(0.5)).powi(2).max(0.5 / first.entries().max(1.0))
}

/// The probability that two rows, bound by these ends, have the same value.
pub(crate) fn match_probability(a: &DirectedSegment<'_>, b: &DirectedSegment<'_>, same: bool) -> Option<f64> {
    if same && a.statistics.degree_squares > 0 {
        let entries = a.statistics.entries.max(1) as f64;
        return Some(a.statistics.degree_squares as f64 / entries / entries);
    }
    let (first, second) = (a.statistics.sketch.as_ref()?, b.statistics.sketch.as_ref()?);
    let overlap = first.overlap(second);
    let all = first.entries().max(1.0) * second.entries().max(1.0);
    if overlap.samples == 0 {
        let exact = first.is_complete() && second.is_complete() || !share_classes(a.statistics, b.statistics);
        let of_keys = reached_unseen(first, second).max(reached_unseen(second, first));
        let keys = first.keys().max(second.keys()).max(1.0);
        return Some(if exact { 0.5 / all } else { (0.1 * of_keys.sqrt()).min(of_keys) / keys });
    }
    Some(overlap.products / all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_corrections_are_damped() {
        let one = |reached| Correction { reached, fan_out: 2.0, certain: false };
        let (reached, fan_out) = Correction::apply(&mut [one(0.25), one(0.01)], 0.8, 1.5, 100.0);
        assert!((reached - 0.8 * 0.01 * 0.5).abs() < 1e-9, "{reached}");
        assert!((fan_out - 1.5 * 2.0 * 2.0_f64.sqrt()).abs() < 1e-9, "{fan_out}");
        let certain = Correction { certain: true, ..Correction::NONE };
        assert_eq!(Correction::apply(&mut [one(0.1), certain], 0.5, 1.0, 1.0), (1.0, 1.0));
    }

    #[test]
    fn noise_is_no_correction() {
        assert_eq!(outside_noise(1.1, 0.5), 1.0);
        assert_eq!(outside_noise(0.9, 0.5), 1.0);
        assert!((outside_noise(100.0, 0.5) - 100.0 * (-0.5_f64).exp()).abs() < 1e-9);
    }

    #[test]
    fn mixtures_keep_shares() {
        let end = |predicate, share| EndShare {
            predicate: Id::vertex(predicate),
            direction: Direction::Out,
            share,
        };
        let mixed = mix_ends(&[end(1, 1.0)], 10.0, &[end(1, 0.5), end(2, 0.5)], 30.0);
        assert_eq!(&*mixed, [end(1, 0.625), end(2, 0.375)]);
    }
}

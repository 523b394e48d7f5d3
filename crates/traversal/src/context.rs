//! The execution context that all steps of one running traversal share.

use crate::collection_index::CollectionIndex;
use crate::graph::Names;
use crate::host::Host;
use crate::memory::{Memory, Reservation, TRAVERSER_BYTES};
use crate::size;
use crate::traverser::Traverser;
use foldhash::HashMap as SeededMap;
use indexmap::IndexMap;
use std::sync::Arc;
use vervet_gremlin::{Hashing, Operator, Value};
use vervet_kernel::Control;
use vervet_model::Result;
use vervet_snapshot::Snapshot;

/// See the header of this file.
pub(crate) struct Context<'a> {
    pub(crate) host: &'a mut dyn Host,
    pub(crate) names: Names,
    pub(crate) side_effects: SeededMap<Arc<str>, SideEffect>,
    /// The groups of `group` side effects by name; all steps with one name share them.
    pub(crate) groups: SeededMap<Arc<str>, Groups>,
    /// Element positions in the trees and subgraphs among the side effects.
    pub(crate) collection_indexes: SeededMap<Arc<str>, CollectionIndex>,
    pub(crate) control: &'a Control<'a>,
    /// The memory account of the steps.
    pub(crate) memory: Memory<'a>,
    /// Counts what is read ahead.
    pub(crate) ahead: Reservation,
    /// The base seed; each step derives its own generator.
    pub(crate) seed: u64,
    pub(crate) random: Option<Random>,
    /// Sack settings: how a sack splits and merges, with the operator of `withSack`.
    pub(crate) settings: Arc<Settings>,
}

/// Settings of the traversal source.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    /// Whether traversers keep whole paths.
    pub(crate) paths: bool,
    /// Whether traversers keep labelled objects.
    pub(crate) labels: bool,
    /// `withSack`: the initial value.
    pub(crate) sack: Option<Value>,
    /// `withSack(…, Operator.sum)`: the merge operator of sacks; `None`: traversers with sacks do not merge.
    pub(crate) sack_merge: Option<Operator>,
    /// `withBulk(false)`.
    pub(crate) no_bulk: bool,
    /// `ProductiveByStrategy`: an unproductive `by` yields null.
    pub(crate) productive: bool,
}

/// A side effect: a value outside the traversers.
#[derive(Clone, Debug)]
pub(crate) struct SideEffect {
    pub(crate) value: Value,
    /// The reducer of further values.
    pub(crate) operator: Option<Operator>,
}

/// The groups of a `group` side effect.
pub(crate) type Groups = IndexMap<Value, Box<dyn GroupReducer>, Hashing>;

/// The traversal that reduces the members of one group.
pub(crate) trait GroupReducer {
    /// Adds a member.
    ///
    /// # Errors
    /// The memory cap; cancellation.
    fn push(&mut self, member: Traverser, context: &Context<'_>) -> Result<()>;

    /// The result for the members so far; members may be added afterwards.
    fn result(&self, context: &mut Context<'_>) -> Result<Option<Traverser>>;
}

impl Context<'_> {
    /// Calls `read` with the current graph and the cached names.
    pub(crate) fn read<T>(
        &mut self,
        mut read: impl FnMut(&dyn Snapshot, &mut Names) -> Result<T>,
    ) -> Result<T> {
        self.names.invalidate_if_changed(self.host.changes(), self.host.tracks_read_set());
        let mut result = None;
        let names = &mut self.names;
        self.host.read(&mut |snapshot| {
            names.ahead.begin(snapshot)?;
            result = Some(read(snapshot, names)?);
            Ok(())
        })?;
        if self.names.ahead.is_on() {
            self.ahead.set(self.names.ahead.size_bytes(), &self.memory)?;
        }
        result.ok_or_else(|| vervet_model::Error::internal("the host did not provide a graph"))
    }

    /// Random numbers for steps without their own generator.
    pub(crate) fn random(&mut self) -> &mut Random {
        let seed = self.seed;
        self.random.get_or_insert_with(|| Random::new(seed))
    }

    /// Counts units of work, and stops a traversal that exceeds a limit.
    #[inline]
    pub(crate) fn tick(&self) -> Result<()> {
        self.control.work(64)
    }

    /// Counts a value that lives until the traversal ends: in a side effect or in the graph.
    ///
    /// # Errors
    /// The memory cap; cancellation.
    pub(crate) fn keep(&self, value: &Value) -> Result<()> {
        self.memory.take(TRAVERSER_BYTES + size::bytes(value, self.control)?).map(|_| ())
    }

    /// Appends `bulk` copies of `value`: the only place where a bulk becomes values. `held` counts them.
    ///
    /// # Errors
    /// More than [`size::VALUES_MAX`] values in `out`; the memory cap, before any is appended; cancellation.
    pub(crate) fn expand(
        &self,
        value: &Value,
        count: u64,
        out: &mut Vec<Value>,
        held: &mut Reservation,
    ) -> Result<()> {
        if count.saturating_add(out.len() as u64) > size::VALUES_MAX {
            return Err(size::too_many());
        }
        held.add(count * size::VALUE_BYTES + size::bytes(value, self.control)?, &self.memory)?;
        let mut left = usize::try_from(count).unwrap_or(usize::MAX);
        while left > 0 {
            let part = left.min(EXPANDED_TOGETHER);
            self.control.work(part)?;
            out.extend(std::iter::repeat_n(value, part).cloned());
            left -= part;
        }
        Ok(())
    }
}

/// Values appended between two limit checks.
const EXPANDED_TOGETHER: usize = 1 << 12;

/// Random number generator of a step: the 48-bit linear congruential generator of Java's standard library, so
/// that `SeedStrategy` makes the same choices as other implementations.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

const MULTIPLIER: u64 = 0x5_DEEC_E66D;
const STATE: u64 = (1 << 48) - 1;

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self((seed ^ MULTIPLIER) & STATE)
    }

    /// The next `bits` (up to 32) bits.
    fn bits(&mut self, bits: u32) -> u32 {
        self.0 = self.0.wrapping_mul(MULTIPLIER).wrapping_add(0xB) & STATE;
        u32::try_from(self.0 >> (48 - bits)).unwrap_or(u32::MAX)
    }

    /// 64 random bits.
    pub(crate) fn next(&mut self) -> u64 {
        u64::from(self.bits(32)) << 32 | u64::from(self.bits(32))
    }

    /// A uniform number below `bound`, which is from 1 to 2^31.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        if bound.is_power_of_two() {
            return u32::try_from((u64::from(bound) * u64::from(self.bits(31))) >> 31).unwrap_or(0);
        }
        loop {
            let bits = self.bits(31);
            let value = bits % bound.max(1);
            // Rejects the last, incomplete block, which would favour small numbers.
            if u64::from(bits - value) + u64::from(bound - 1) < 1 << 31 {
                return value;
            }
        }
    }

    /// A uniform number from 0 to 1.
    pub(crate) fn unit(&mut self) -> f64 {
        let bits = (u64::from(self.bits(26)) << 27) + u64::from(self.bits(27));
        bits as f64 / (1u64 << 53) as f64
    }

    /// A binomial deviate: the number of successes in `trials` with this probability.
    ///
    /// # Cost
    /// One random number per trial for up to [`TRIALS_EACH`] trials, or per success for up to about
    /// [`MEAN_EACH`] expected successes; otherwise two per attempt, with 1.3 attempts on average, independent
    /// of `trials`.
    /// # Source
    /// W. Hörmann, "The generation of binomial random variates", Journal of Statistical Computation and
    /// Simulation 46, 1993: algorithm BTRS. Different: the logarithm of the ratio of two probabilities is
    /// computed from the distance to the mode, since its terms cancel out beyond 2^40 trials; below 10
    /// expected successes the gaps between successes are drawn.
    pub(crate) fn binomial(&mut self, trials: u64, probability: f64) -> u64 {
        if trials <= TRIALS_EACH {
            return (0..trials).filter(|_| probability >= self.unit()).count() as u64;
        }
        if probability.is_nan() || probability <= 0.0 {
            return 0;
        }
        if probability >= 1.0 {
            return trials;
        }
        if probability > 0.5 {
            return trials - self.binomial_rare(trials, 1.0 - probability);
        }
        self.binomial_rare(trials, probability)
    }

    /// As [`Random::binomial`], for a probability of at most a half.
    fn binomial_rare(&mut self, trials: u64, probability: f64) -> u64 {
        let n = trials as f64;
        let (mean, failure) = (n * probability, 1.0 - probability);
        if mean < MEAN_EACH {
            let (mut successes, mut passed) = (0, 0.0);
            loop {
                // The failures before the next success, and the success.
                passed += ((1.0 - self.unit()).ln() / (-probability).ln_1p()).floor() + 1.0;
                if passed > n {
                    return successes;
                }
                successes += 1;
            }
        }
        let deviation = (mean * failure).sqrt();
        let b = 1.15 + 2.53 * deviation;
        let a = -0.0873 + 0.0248 * b + 0.01 * probability;
        let (center, alpha, certain) = (mean + 0.5, (2.83 + 5.1 / b) * deviation, 0.92 - 4.2 / b);
        let mode = ((n + 1.0) * probability).floor();
        loop {
            let (u, v) = (self.unit() - 0.5, 1.0 - self.unit());
            let us = 0.5 - u.abs();
            let k = ((2.0 * a / us + b) * u + center).floor();
            if !(0.0..=n).contains(&k) {
                continue;
            }
            let is_in = us >= 0.07 && v <= certain
                || (v * alpha / (a / (us * us) + b)).ln() <= log_ratio(n, probability, mode, k);
            if is_in {
                #[expect(clippy::cast_possible_truncation, reason = "a whole number from 0 to `n`")]
                let successes = k as u64;
                // A double beyond 2^53 may round up to `trials` + 1.
                return successes.min(trials);
            }
        }
    }
}

/// Maximum number of trials drawn one by one; small bulks then draw the same numbers as single traversers.
const TRIALS_EACH: u64 = 64;
/// Expected successes below which the gaps between successes are drawn.
const MEAN_EACH: f64 = 10.0;

/// Logarithm of the probability of `k` successes divided by the probability of the mode.
fn log_ratio(n: f64, probability: f64, mode: f64, k: f64) -> f64 {
    // ln(m! (n - m)! / (k! (n - k)!)) + (k - m) ln(p / (1 - p)), with x! = Γ(x + 1) by Stirling's formula.
    let distance = k - mode;
    let (in_mode, out_of_mode, in_k, out_of_k) = (mode + 1.0, n - mode + 1.0, k + 1.0, n - k + 1.0);
    let slope = (probability / (1.0 - probability)).ln() + out_of_mode.ln() - in_mode.ln();
    let bend =
        (in_k - 0.5) * (distance / in_mode).ln_1p() + (out_of_k - 0.5) * (-distance / out_of_mode).ln_1p();
    distance * slope - bend + stirling(in_mode) + stirling(out_of_mode) - stirling(in_k) - stirling(out_of_k)
}

/// ln Γ(x) - ((x - 1/2) ln x - x + ln(2π)/2).
fn stirling(x: f64) -> f64 {
    let square = x * x;
    (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / (1260.0 * square)) / square) / x
}

#[cfg(test)]
mod tests {
    use super::Random;

    /// query B6: `coin()` draws how many of a bulk pass. Small bulks have the exact distribution, large ones
    /// its mean and deviation.
    #[test]
    fn b6_binomial_deviates_have_their_distribution() {
        let mut random = Random::new(16);
        for (trials, probability) in [
            (100_u64, 0.03),
            (70, 0.4),
            (1000, 0.5),
            (1 << 20, 0.75),
            (1 << 40, 1e-5),
            (1 << 62, 0.5),
            (u64::MAX, 0.3),
        ] {
            const DRAWS: u32 = 20_000;
            let (mean, deviation) =
                (trials as f64 * probability, (trials as f64 * probability * (1.0 - probability)).sqrt());
            let (mut sum, mut squares, mut below) = (0.0, 0.0, [0_u32; 3]);
            for _ in 0..DRAWS {
                let drawn = random.binomial(trials, probability);
                assert!(drawn <= trials);
                let off = (drawn as f64 - mean) / deviation;
                sum += off;
                squares += off * off;
                for (at, bound) in [-1.0, 0.0, 1.0].into_iter().enumerate() {
                    below[at] += u32::from(off < bound);
                }
            }
            // The mean deviation is 0 within 5 standard errors of 1 / sqrt(DRAWS); the variance is 1.
            let draws = f64::from(DRAWS);
            assert!((sum / draws).abs() < 5.0 / draws.sqrt(), "{trials} {probability}: mean {}", sum / draws);
            assert!(
                (squares / draws - 1.0).abs() < 0.06,
                "{trials} {probability}: variance {}",
                squares / draws
            );
            if deviation > 1000.0 {
                for (below, expected) in below.into_iter().zip([0.158_66, 0.5, 0.841_34]) {
                    let share = f64::from(below) / draws;
                    assert!(
                        (share - expected).abs() < 0.018,
                        "{trials} {probability}: {share} for {expected}"
                    );
                }
            }
        }
    }

    /// Compares the probability of each number with the formula.
    #[test]
    fn b6_binomial_deviates_of_few_trials() {
        let mut random = Random::new(7);
        // The algorithm for many trials has the frequencies of the formula.
        let (trials, probability, draws) = (80_u64, 0.3, 200_000_u32);
        let mut counts = [0_u32; 81];
        for _ in 0..draws {
            counts[usize::try_from(random.binomial(trials, probability)).expect("it is small")] += 1;
        }
        let mut expected = 0.7_f64.powi(80);
        for (k, count) in (0_u32..).zip(counts) {
            let wanted = expected * f64::from(draws);
            assert!(
                (f64::from(count) - wanted).abs() < 5.0 * wanted.sqrt() + 5.0,
                "{k}: {count} for {wanted}"
            );
            expected *= f64::from(80 - k) / f64::from(k + 1) * (probability / (1.0 - probability));
        }
    }

    #[test]
    fn certain_and_impossible_trials() {
        let mut random = Random::new(1);
        for probability in [0.0, -1.0, f64::NAN] {
            assert_eq!(random.binomial(1 << 60, probability), 0);
        }
        assert_eq!(random.binomial(1 << 60, 1.0), 1 << 60);
        assert_eq!(random.binomial(1 << 60, 2.0), 1 << 60);
    }
}

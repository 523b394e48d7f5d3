//! Sketches of the keys of a segment: weighted coordinated samples, which estimate joins of two segments on
//! their keys.
//!
//! # Shape
//! Every key has a number that is uniform in (0, 1] and the same in all sketches, since it is a hash of the
//! id. A sketch keeps the keys with the least rank, number / degree, and the first rank that it does not
//! keep. So a key is kept with probability `min(1, degree * rank_end)`, the keys of most entries are always
//! kept, and a key that one sketch keeps is likely to be in another one. Each sample is a 48-bit hash and a
//! degree with 11 significant bits.
//! # Cost
//! 2 ns for each key of a build; 8 bytes a sample; some 100 to 400 ns for an overlap, which is computed once
//! for two sketches as long as both exist (`overlaps.rs`); 10 ns for each degree for a number of distinct
//! keys.
//! # Source
//! M. Daliri, J. Freire, C. Musco, A. Santos, H. Zhang, "Sampling Methods for Inner Product Sketching", PVLDB
//! 17 (2024): priority sampling with shared randomness.

use crate::overlaps::{KeyOverlap, KnownOverlaps};
use std::sync::{Arc, OnceLock};
use vervet_model::Id;

const HASH_BITS: u32 = 48;

/// Bits of the mantissa of an encoded degree.
const MANTISSA_BITS: u32 = 11;

/// A weighted sample of the keys of a segment, see the header of this file. The default is that of no keys.
#[derive(Clone, Debug)]
pub struct KeySketch {
    /// Hashes, each with an encoded degree in its low 16 bits, ascending.
    samples: Arc<[u64]>,
    /// The least rank of a key that is not in `samples`; infinite: all keys are.
    rank_end: f64,
    /// See [`KeySketch::keys`].
    keys: f64,
    /// See [`KeySketch::entries`].
    entries: f64,
    /// Overlaps computed before.
    known: Arc<KnownOverlaps>,
    /// See [`KeySketch::keys_by_degree`].
    by_degree: Arc<OnceLock<Box<[KeysOfDegree]>>>,
}

/// Everything else is derived from the samples.
impl PartialEq for KeySketch {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

/// The keys with one degree.
#[derive(Clone, Copy, PartialEq, Debug)]
struct KeysOfDegree {
    degree: f64,
    /// Estimated number of keys.
    keys: f64,
}

impl Default for KeySketch {
    fn default() -> Self {
        Self::with_totals(Vec::new(), f64::INFINITY)
    }
}

impl KeySketch {
    /// Maximum number of samples of a sketch.
    pub const SAMPLES_MAX: usize = 128;

    /// Number of samples of each sketch in a graph with this number of predicates: all sketches together have
    /// at most [`Self::SAMPLES_MAX`] for each of 512 predicates, and each at least 8.
    #[must_use]
    pub fn samples_for(predicates: usize) -> usize {
        (Self::SAMPLES_MAX * 512 / predicates.max(1)).clamp(8, Self::SAMPLES_MAX)
    }

    /// The sketch of these keys, each once, with their degrees.
    #[must_use]
    pub fn new(keys: impl IntoIterator<Item = (Id, u64)>, samples_max: usize) -> Self {
        let limit = samples_max.max(1);
        // Ranks and samples; sorted and cut when it has grown to twice the limit.
        let mut kept: Vec<(f64, u64)> = Vec::new();
        let mut rank_end = f64::INFINITY;
        let cut = |kept: &mut Vec<(f64, u64)>| {
            if kept.len() <= limit {
                return f64::INFINITY;
            }
            kept.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            kept.truncate(limit + 1);
            kept[limit].0
        };
        for (key, degree) in keys {
            let hash = hash(key);
            let code = encode(degree);
            let weight = decode(code) as f64;
            let number = uniform(hash);
            if number < rank_end * weight {
                kept.push((number / weight, hash << 16 | u64::from(code)));
                if kept.len() > 4 * limit {
                    rank_end = cut(&mut kept);
                }
            }
        }
        let rank_end = cut(&mut kept);
        kept.truncate(limit);
        let mut samples: Vec<u64> = kept.into_iter().map(|(_, sample)| sample).collect();
        samples.sort_unstable();
        Self::with_totals(samples, rank_end)
    }

    /// The sketch of the keys of all of `sketches`, which have no key in common and `samples_max` samples or
    /// all their keys: exactly that of [`KeySketch::new`].
    #[must_use]
    pub fn merge<'a>(sketches: impl IntoIterator<Item = &'a Self>, samples_max: usize) -> Self {
        let (mut kept, mut rank_end) = (Vec::new(), f64::INFINITY);
        for sketch in sketches {
            rank_end = rank_end.min(sketch.rank_end);
            kept.extend(sketch.samples.iter().map(|sample| {
                let weight = decode(low(*sample)) as f64;
                (uniform(sample >> 16) / weight, *sample)
            }));
        }
        kept.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        if let Some((rank, _)) = kept.get(samples_max.max(1)) {
            rank_end = rank_end.min(*rank);
        }
        kept.truncate(samples_max.max(1));
        let mut samples: Vec<u64> = kept.into_iter().map(|(_, sample)| sample).collect();
        samples.sort_unstable();
        Self::with_totals(samples, rank_end)
    }

    /// A sketch from its parts; `None`: the samples do not ascend, or the rank is not positive.
    #[must_use]
    pub fn from_parts(samples: Vec<u64>, rank_end: f64) -> Option<Self> {
        (samples.is_sorted() && rank_end > 0.0).then(|| Self::with_totals(samples, rank_end))
    }

    fn with_totals(samples: Vec<u64>, rank_end: f64) -> Self {
        let (mut keys, mut entries) = (0.0, 0.0);
        for sample in &samples {
            let degree = decode(low(*sample)) as f64;
            keys += 1.0 / (degree * rank_end).min(1.0);
            entries += degree.max(1.0 / rank_end);
        }
        let samples = samples.into();
        Self { samples, rank_end, keys, entries, known: Arc::default(), by_degree: Arc::default() }
    }

    /// The samples, and the first rank that is not among them.
    #[must_use]
    pub fn parts(&self) -> (&[u64], f64) {
        (&self.samples, self.rank_end)
    }

    /// Whether all keys are in the sketch, so that overlaps with other such sketches are exact but for the
    /// precision of degrees.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.rank_end.is_infinite()
    }

    /// Whether there are no samples.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Estimated number of keys.
    #[must_use]
    pub fn keys(&self) -> f64 {
        self.keys
    }

    /// Estimated number of entries.
    #[must_use]
    pub fn entries(&self) -> f64 {
        self.entries
    }

    /// The probability that a key with this degree is a sample.
    #[must_use]
    pub fn kept(&self, degree: f64) -> f64 {
        (degree * self.rank_end).min(1.0)
    }

    /// Expected number of distinct keys among those of `draws` random entries.
    #[must_use]
    pub fn distinct(&self, draws: f64) -> f64 {
        let all = self.entries().max(1.0);
        let hit = |one: &KeysOfDegree| -(-draws * one.degree / all).exp_m1() * one.keys;
        self.keys_by_degree().iter().map(hit).sum()
    }

    /// The estimated number of keys of each degree. Many samples have the same degree, and a query asks for
    /// the distinct keys of a predicate several times.
    fn keys_by_degree(&self) -> &[KeysOfDegree] {
        self.by_degree.get_or_init(|| {
            let mut codes: Vec<u16> = self.samples.iter().map(|sample| low(*sample)).collect();
            codes.sort_unstable();
            let of_code = |codes: &[u16]| {
                let degree = codes.first().map_or(1.0, |code| decode(*code) as f64);
                KeysOfDegree { degree, keys: codes.len() as f64 / self.kept(degree) }
            };
            codes.chunk_by(|a, b| a == b).map(of_code).collect()
        })
    }

    /// Estimated sums over the keys of both.
    #[must_use]
    pub fn overlap(&self, other: &Self) -> KeyOverlap {
        self.known.get(&other.known, || self.compute_overlap(other))
    }

    fn compute_overlap(&self, other: &Self) -> KeyOverlap {
        let (mut overlap, mut variance) = (KeyOverlap::default(), 0.0);
        let (mut left, mut right) = (0, 0);
        while let (Some(a), Some(b)) = (self.samples.get(left), other.samples.get(right)) {
            let (hash, other_hash) = (a >> 16, b >> 16);
            if hash == other_hash {
                let (first, second) = (decode(low(*a)) as f64, decode(low(*b)) as f64);
                let kept = (first * self.rank_end).min(second * other.rank_end).min(1.0);
                overlap.keys += 1.0 / kept;
                overlap.first += first / kept;
                overlap.second += second / kept;
                overlap.products += first * second / kept;
                variance += (1.0 - kept) * (first / kept).powi(2);
                overlap.samples += 1;
            }
            // Without branches, which would be unpredictable.
            left += usize::from(hash <= other_hash);
            right += usize::from(other_hash <= hash);
        }
        if overlap.samples > 0 {
            overlap.deviation = variance.sqrt() / overlap.first;
        }
        overlap
    }
}

/// The low 16 bits.
fn low(sample: u64) -> u16 {
    u16::try_from(sample & 0xFFFF).unwrap_or_default()
}

/// A hash of the id in the low bits (the mixer of SplitMix64: Steele et al., OOPSLA 2014).
fn hash(id: Id) -> u64 {
    let mut bits = id.bits().wrapping_add(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    (bits ^ bits >> 31) >> (u64::BITS - HASH_BITS)
}

/// The hash as a number in (0, 1].
fn uniform(hash: u64) -> f64 {
    (hash + 1) as f64 / (1_u64 << HASH_BITS) as f64
}

/// A degree as exponent and mantissa, rounded down; at least 1.
fn encode(degree: u64) -> u16 {
    let degree = degree.max(1);
    let exponent = (u64::BITS - degree.leading_zeros()).saturating_sub(MANTISSA_BITS + 1);
    let code = match exponent {
        0 => degree,
        shift => u64::from(shift + 1) << MANTISSA_BITS | (degree >> shift) & ((1 << MANTISSA_BITS) - 1),
    };
    u16::try_from(code).unwrap_or(u16::MAX)
}

/// The degree of [`encode`].
fn decode(code: u16) -> u64 {
    let (exponent, mantissa) = (u32::from(code) >> MANTISSA_BITS, u64::from(code) & 0x7FF);
    match exponent {
        0 => mantissa,
        exponent => (mantissa | 1 << MANTISSA_BITS) << (exponent - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn degrees_keep_eleven_bits() {
        for degree in (1..5_000).chain([1 << 20, (1 << 20) + 1, 123_456_789, 1 << 40]) {
            let found = decode(encode(degree));
            assert!(found <= degree && degree - found <= degree >> MANTISSA_BITS, "{degree}: {found}");
        }
        assert_eq!(decode(encode(2_047)), 2_047);
        assert_eq!(decode(encode(4_095)), 4_095);
        assert_eq!(decode(encode(0)), 1);
    }

    /// Keys below `count`, with the degree of each.
    fn keys(numbers: impl Iterator<Item = u64>, degree: impl Fn(u64) -> u64) -> Vec<(Id, u64)> {
        numbers.map(|number| (Id::vertex(number), degree(number))).collect()
    }

    fn check(a: &[(Id, u64)], b: &[(Id, u64)], tolerance: f64) {
        let sketch = |keys: &[(Id, u64)]| KeySketch::new(keys.iter().copied(), KeySketch::SAMPLES_MAX);
        let found = sketch(a).overlap(&sketch(b));
        let mut expected = KeyOverlap::default();
        for (key, first) in a {
            if let Some((_, second)) = b.iter().find(|(other, _)| other == key) {
                expected.keys += 1.0;
                expected.first += *first as f64;
                expected.second += *second as f64;
                expected.products += (first * second) as f64;
            }
        }
        for (found, expected) in [
            (found.first, expected.first),
            (found.products, expected.products),
            (found.second, expected.second),
        ] {
            assert!((found - expected).abs() <= tolerance * expected, "{found}, expected {expected}");
        }
    }

    #[test]
    fn small_sets_are_exact() {
        check(&keys(0..40, |n| n % 7 + 1), &keys(20..60, |n| n % 3 + 1), 0.0);
        let complete = KeySketch::new(keys(0..128, |_| 1), KeySketch::SAMPLES_MAX);
        assert!(complete.is_complete());
        assert!(!KeySketch::new(keys(0..129, |_| 1), KeySketch::SAMPLES_MAX).is_complete());
    }

    #[test]
    fn large_sets_are_estimated() {
        check(&keys(0..10_000, |_| 3), &keys(0..10_000, |_| 5), 0.5);
        check(&keys(0..10_000, |_| 2), &keys(5_000..9_000, |n| n % 4 + 1), 0.6);
        // A power law: few keys have most of the entries.
        let degree = |n: u64| 100_000 / (n + 1) + 1;
        check(&keys(0..10_000, degree), &keys(0..10_000, degree), 0.1);
    }

    #[test]
    fn random_entries_have_popular_keys() {
        let one = KeySketch::new(keys(0..100, |n| if n == 0 { 10_000 } else { 1 }), 128);
        assert!((one.distinct(100.0) - 1.98).abs() < 0.1, "{}", one.distinct(100.0));
        let uniform = KeySketch::new(keys(0..100, |_| 3), 128);
        assert!((uniform.distinct(100.0) - 63.4).abs() < 1.0, "{}", uniform.distinct(100.0));
        assert!(uniform.distinct(1e9) <= 100.0 + 1e-9);
    }

    #[test]
    fn merged_sketches_are_those_of_all_keys() {
        for (count, samples) in [(10, 128), (100, 128), (500, 16), (40_000, 128), (3_000, 8)] {
            let degree = |n: u64| 5_000 / (n + 1) + n % 3 + 1;
            let whole = KeySketch::new(keys(0..count, degree), samples);
            let parts = [0, 1, 2, 3]
                .map(|part| KeySketch::new(keys((0..count).filter(|n| n % 4 == part), degree), samples));
            assert_eq!(KeySketch::merge(&parts, samples), whole, "{count} keys");
        }
        assert_eq!(KeySketch::merge([], 8), KeySketch::new([], 8));
    }

    #[test]
    fn damaged_parts_are_refused() {
        let sketch = KeySketch::new(keys(0..100, |n| n), 8);
        let (samples, rank_end) = sketch.parts();
        assert_eq!(samples.len(), 8);
        assert_eq!(KeySketch::from_parts(samples.to_vec(), rank_end).as_ref(), Some(&sketch));
        let reversed = samples.iter().rev().copied().collect();
        assert_eq!(KeySketch::from_parts(reversed, rank_end), None);
        assert_eq!(KeySketch::from_parts(Vec::new(), f64::NAN), None);
    }

    #[test]
    fn many_predicates_have_small_sketches() {
        assert_eq!(KeySketch::samples_for(0), 128);
        assert_eq!(KeySketch::samples_for(512), 128);
        assert_eq!(KeySketch::samples_for(4_096), 16);
        assert_eq!(KeySketch::samples_for(1 << 20), 8);
    }
}

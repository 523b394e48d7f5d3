//! Which classes the values of a variable may have: exactly as a set, and estimated as a distribution.
//!
//! # Invariants
//! 1. A [`ClassSet`] is never too small: a class that is not in it has no value of that variable. It may
//!    therefore prove emptiness and implied types.
//! 2. A [`Distribution`] is an estimate; it sums to 1, and nothing but cost depends on it.

use vervet_snapshot::ClassId;

/// A set of classes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ClassSet([u64; ClassId::COUNT_MAX / 64]);

impl ClassSet {
    pub(crate) const EMPTY: Self = Self([0; ClassId::COUNT_MAX / 64]);
    pub(crate) const ALL: Self = Self([u64::MAX; ClassId::COUNT_MAX / 64]);

    pub(crate) fn insert(&mut self, class: ClassId) {
        if let Some(word) = self.0.get_mut(usize::from(class.0) / 64) {
            *word |= 1 << (class.0 % 64);
        }
    }

    /// Classes beyond [`ClassId::COUNT_MAX`] are never told apart, hence always in.
    pub(crate) fn contains(&self, class: ClassId) -> bool {
        self.0.get(usize::from(class.0) / 64).is_none_or(|word| word >> (class.0 % 64) & 1 == 1)
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::EMPTY
    }

    pub(crate) fn intersection(mut self, other: &Self) -> Self {
        self.0.iter_mut().zip(&other.0).for_each(|(mine, its)| *mine &= its);
        self
    }

    pub(crate) fn union(mut self, other: &Self) -> Self {
        self.0.iter_mut().zip(&other.0).for_each(|(mine, its)| *mine |= its);
        self
    }

    pub(crate) fn is_subset(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(mine, its)| mine & !its == 0)
    }
}

impl FromIterator<ClassId> for ClassSet {
    fn from_iter<I: IntoIterator<Item = ClassId>>(classes: I) -> Self {
        let mut set = Self::EMPTY;
        classes.into_iter().for_each(|class| set.insert(class));
        set
    }
}

/// How the values of a variable are spread over classes; sorted by class.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Distribution {
    pub(crate) weights: Vec<(ClassId, f64)>,
    /// The same by class number.
    dense: Vec<f64>,
}

impl Distribution {
    /// The weight of a class.
    pub(crate) fn weight(&self, class: ClassId) -> f64 {
        self.dense.get(usize::from(class.0)).copied().unwrap_or(0.0)
    }
}

/// Collects weights by class in any order.
#[derive(Debug)]
pub(crate) struct Collector {
    dense: Vec<f64>,
}

impl Collector {
    pub(crate) fn new() -> Self {
        Self { dense: Vec::with_capacity(32) }
    }

    pub(crate) fn add(&mut self, class: ClassId, weight: f64) {
        let at = usize::from(class.0);
        if self.dense.len() <= at {
            self.dense.resize(at + 1, 0.0);
        }
        self.dense[at] += weight;
    }

    /// Scales to the sum 1.
    pub(crate) fn finish(mut self) -> Distribution {
        let sum: f64 = self.dense.iter().sum();
        if sum <= 0.0 {
            return Distribution::default();
        }
        self.dense.iter_mut().for_each(|weight| *weight /= sum);
        let weights = (0..)
            .map(ClassId)
            .zip(&self.dense)
            .filter(|(_, weight)| **weight > 0.0)
            .map(|(class, weight)| (class, *weight))
            .collect();
        Distribution { weights, dense: self.dense }
    }
}

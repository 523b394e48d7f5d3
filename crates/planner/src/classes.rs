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
}

impl Distribution {
    /// Scales to the sum 1. `weights` must be sorted by class, each class once.
    pub(crate) fn normalised(mut weights: Vec<(ClassId, f64)>) -> Self {
        weights.retain(|(_, weight)| *weight > 0.0);
        let sum: f64 = weights.iter().map(|(_, weight)| weight).sum();
        weights.iter_mut().for_each(|(_, weight)| *weight /= sum);
        Self { weights }
    }

    /// The weight of a class.
    pub(crate) fn weight(&self, class: ClassId) -> f64 {
        match self.weights.binary_search_by_key(&class, |(class, _)| *class) {
            Ok(at) => self.weights[at].1,
            Err(_) => 0.0,
        }
    }
}

/// Collects weights by class in any order.
#[derive(Debug)]
pub(crate) struct Collector {
    weights: Vec<(ClassId, f64)>,
}

impl Collector {
    pub(crate) fn new() -> Self {
        Self { weights: Vec::with_capacity(16) }
    }

    pub(crate) fn add(&mut self, class: ClassId, weight: f64) {
        match self.weights.binary_search_by_key(&class, |(class, _)| *class) {
            Ok(at) => self.weights[at].1 += weight,
            Err(at) => self.weights.insert(at, (class, weight)),
        }
    }

    pub(crate) fn finish(self) -> Distribution {
        Distribution::normalised(self.weights)
    }
}

//! Classes of the values of a variable: an exact superset, and an estimated distribution.
//!
//! # Invariants
//! 1. A [`ClassSet`] is a superset: no value of the variable has a class outside it. It can therefore prove
//!    emptiness and implied types.
//! 2. [`Classes`] are an estimate; only costs depend on them.

use std::rc::Rc;
use vervet_algebra::Variable;
use vervet_snapshot::ClassId;

/// A set of classes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClassSet([u64; ClassId::COUNT_MAX / 64]);

/// Without the call of `memcmp` that a derived comparison makes.
impl PartialEq for ClassSet {
    fn eq(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).fold(0, |differing, (mine, its)| differing | mine ^ its) == 0
    }
}

impl Eq for ClassSet {}

impl ClassSet {
    pub(crate) const EMPTY: Self = Self([0; ClassId::COUNT_MAX / 64]);
    pub(crate) const ALL: Self = Self([u64::MAX; ClassId::COUNT_MAX / 64]);
    /// Classes whose set of types is known.
    pub(crate) const KNOWN: Self = {
        let mut words = [u64::MAX; ClassId::COUNT_MAX / 64];
        words[0] = u64::MAX << ClassId::FIRST.0;
        Self(words)
    };

    pub(crate) fn insert(&mut self, class: ClassId) {
        if let Some(word) = self.0.get_mut(usize::from(class.0) / 64) {
            *word |= 1 << (class.0 % 64);
        }
    }

    /// Classes beyond [`ClassId::COUNT_MAX`] are not distinguished, hence always contained.
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

/// Estimated distributions of variables.
pub(crate) type Classes = Vec<(Variable, Distribution)>;

/// An estimated distribution over classes: weights by class number that sum to 1, in an array that several
/// distributions share.
#[derive(Clone, Debug)]
pub(crate) struct Distribution {
    array: Rc<Vec<f64>>,
    start: usize,
    end: usize,
}

impl Distribution {
    /// The weights from `start` to `end` of `array`.
    pub(crate) fn part_of(array: &Rc<Vec<f64>>, start: usize, end: usize) -> Self {
        Self { array: Rc::clone(array), start, end }
    }
}

impl std::ops::Deref for Distribution {
    type Target = [f64];

    fn deref(&self) -> &[f64] {
        self.array.get(self.start..self.end).unwrap_or_default()
    }
}

impl FromIterator<f64> for Distribution {
    fn from_iter<I: IntoIterator<Item = f64>>(weights: I) -> Self {
        let array: Vec<f64> = weights.into_iter().collect();
        let end = array.len();
        Self { array: Rc::new(array), start: 0, end }
    }
}

/// The distribution of the union of two bags with these row counts.
pub(crate) fn mix(a: &[f64], a_rows: f64, b: &[f64], b_rows: f64) -> Distribution {
    let (a_rows, b_rows) = (a_rows.max(f64::MIN_POSITIVE), b_rows.max(f64::MIN_POSITIVE));
    let all = a_rows + b_rows;
    let of = |weights: &[f64], at: usize| weights.get(at).copied().unwrap_or(0.0);
    (0..a.len().max(b.len())).map(|at| (of(a, at) * a_rows + of(b, at) * b_rows) / all).collect()
}

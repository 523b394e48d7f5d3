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

/// Estimated distributions of variables; each holds weights by class number that sum to 1.
pub(crate) type Classes = Vec<(Variable, Rc<[f64]>)>;

/// The distribution of the union of two bags with these row counts.
pub(crate) fn mix(a: &[f64], a_rows: f64, b: &[f64], b_rows: f64) -> Rc<[f64]> {
    let (a_rows, b_rows) = (a_rows.max(f64::MIN_POSITIVE), b_rows.max(f64::MIN_POSITIVE));
    let all = a_rows + b_rows;
    let of = |weights: &[f64], at: usize| weights.get(at).copied().unwrap_or(0.0);
    (0..a.len().max(b.len())).map(|at| (of(a, at) * a_rows + of(b, at) * b_rows) / all).collect()
}

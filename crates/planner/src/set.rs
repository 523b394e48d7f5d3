//! Bit sets of variables; small ones do not allocate.

use vervet_algebra::Variable;

/// A bit set of variables.
#[derive(Clone, Default, Debug)]
pub(crate) struct VariableSet {
    /// Bits of the variables below 64.
    low: u64,
    /// Bits of the others, 64 in each word.
    high: Vec<u64>,
}

impl VariableSet {
    pub(crate) fn insert(&mut self, variable: Variable) {
        let (word, bit) = (variable.index() / 64, 1_u64 << (variable.index() % 64));
        if word == 0 {
            self.low |= bit;
        } else {
            if self.high.len() < word {
                self.high.resize(word, 0);
            }
            self.high[word - 1] |= bit;
        }
    }

    pub(crate) fn remove(&mut self, variable: Variable) {
        let (word, bit) = (variable.index() / 64, 1_u64 << (variable.index() % 64));
        if word == 0 {
            self.low &= !bit;
        } else if let Some(high) = self.high.get_mut(word - 1) {
            *high &= !bit;
        }
    }

    pub(crate) fn contains(&self, variable: Variable) -> bool {
        let (word, bit) = (variable.index() / 64, 1_u64 << (variable.index() % 64));
        let bits = if word == 0 { self.low } else { self.high.get(word - 1).copied().unwrap_or(0) };
        bits & bit != 0
    }

    /// Size in bytes, as memory caps count it.
    pub(crate) fn size_bytes(&self) -> u64 {
        (size_of::<Self>() + 8 * self.high.capacity()) as u64
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.low == 0 && self.high.iter().all(|&word| word == 0)
    }

    pub(crate) fn add_all(&mut self, other: &Self) {
        self.low |= other.low;
        if self.high.len() < other.high.len() {
            self.high.resize(other.high.len(), 0);
        }
        for (mine, its) in self.high.iter_mut().zip(&other.high) {
            *mine |= its;
        }
    }

    pub(crate) fn remove_all(&mut self, other: &Self) {
        self.low &= !other.low;
        for (mine, its) in self.high.iter_mut().zip(&other.high) {
            *mine &= !its;
        }
    }

    pub(crate) fn keep_all(&mut self, other: &Self) {
        self.low &= other.low;
        for (at, mine) in self.high.iter_mut().enumerate() {
            *mine &= other.high.get(at).copied().unwrap_or(0);
        }
    }

    pub(crate) fn union(mut self, other: &Self) -> Self {
        self.add_all(other);
        self
    }

    pub(crate) fn intersection(mut self, other: &Self) -> Self {
        self.keep_all(other);
        self
    }

    pub(crate) fn minus(mut self, other: &Self) -> Self {
        self.remove_all(other);
        self
    }

    pub(crate) fn intersects(&self, other: &Self) -> bool {
        self.low & other.low != 0 || self.high.iter().zip(&other.high).any(|(mine, its)| mine & its != 0)
    }

    pub(crate) fn is_subset(&self, other: &Self) -> bool {
        self.low & !other.low == 0
            && self
                .high
                .iter()
                .enumerate()
                .all(|(at, word)| word & !other.high.get(at).copied().unwrap_or(0) == 0)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Variable> + '_ {
        std::iter::once(self.low).chain(self.high.iter().copied()).enumerate().flat_map(|(word, bits)| {
            let first = u16::try_from(word * 64).unwrap_or(u16::MAX);
            let mut left = bits;
            std::iter::from_fn(move || {
                let bit = u16::try_from(left.trailing_zeros()).ok().filter(|_| left != 0)?;
                left &= left - 1;
                Some(Variable(first + bit))
            })
        })
    }
}

impl FromIterator<Variable> for VariableSet {
    fn from_iter<I: IntoIterator<Item = Variable>>(variables: I) -> Self {
        let mut set = Self::default();
        set.extend(variables);
        set
    }
}

impl Extend<Variable> for VariableSet {
    fn extend<I: IntoIterator<Item = Variable>>(&mut self, variables: I) {
        variables.into_iter().for_each(|variable| self.insert(variable));
    }
}

/// Multiset of variable occurrences in later operators, with its support as a set.
///
/// # Cost
/// One step for each occurrence added or removed, where recomputing the union would take one for each
/// remaining occurrence each time.
#[derive(Default, Debug)]
pub(crate) struct VariableUses {
    counts: Vec<u32>,
    set: VariableSet,
}

impl VariableUses {
    /// Adds occurrences.
    pub(crate) fn add(&mut self, variables: impl IntoIterator<Item = Variable>) {
        for variable in variables {
            if variable.index() >= self.counts.len() {
                self.counts.resize(variable.index() + 1, 0);
            }
            self.counts[variable.index()] += 1;
            self.set.insert(variable);
        }
    }

    /// Removes occurrences added before.
    pub(crate) fn remove(&mut self, variables: impl IntoIterator<Item = Variable>) {
        for variable in variables {
            let count = &mut self.counts[variable.index()];
            assert!(*count > 0, "a removed occurrence was added before");
            *count -= 1;
            if *count == 0 {
                self.set.remove(variable);
            }
        }
    }

    /// The variables that occur.
    pub(crate) fn set(&self) -> &VariableSet {
        &self.set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_behave_like_sets_on_both_sides_of_64() {
        let a: VariableSet = [1, 63, 64, 200].map(Variable).into_iter().collect();
        let b: VariableSet = [63, 200, 7].map(Variable).into_iter().collect();
        let list = |set: &VariableSet| set.iter().map(|v| v.0).collect::<Vec<_>>();
        assert_eq!(list(&a), [1, 63, 64, 200]);
        assert_eq!(list(&a.clone().intersection(&b)), [63, 200]);
        assert_eq!(list(&a.clone().union(&b)), [1, 7, 63, 64, 200]);
        assert_eq!(list(&a.clone().minus(&b)), [1, 64]);
        assert!(a.intersects(&b) && !a.intersects(&[7, 65].map(Variable).into_iter().collect()));
        assert!(a.clone().intersection(&b).is_subset(&a) && !b.is_subset(&a));
        assert!(a.contains(Variable(64)) && !a.contains(Variable(65)) && !a.contains(Variable(60_000)));
        let mut c = b;
        c.remove(Variable(63));
        c.remove(Variable(200));
        c.remove(Variable(7));
        assert!(c.is_empty());
    }

    #[test]
    fn uses_are_counted() {
        let mut uses = VariableUses::default();
        uses.add([1, 70, 70].map(Variable));
        uses.add([70].map(Variable));
        uses.remove([70, 70].map(Variable));
        assert_eq!(uses.set().iter().collect::<Vec<_>>(), [1, 70].map(Variable));
        uses.remove([70].map(Variable));
        assert_eq!(uses.set().iter().collect::<Vec<_>>(), [1].map(Variable));
    }
}

//! Bit sets of variables; small ones do not allocate.
//!
//! Planning consists of such sets to a good part, in another crate: their methods are inlined there.

use crate::Variable;

/// A bit set of variables.
#[derive(Clone, Default, Debug)]
pub struct VariableSet {
    /// Bits of the variables below 64.
    low: u64,
    /// Bits of the others, 64 in each word.
    high: Vec<u64>,
}

impl VariableSet {
    /// Inserts a variable.
    #[inline]
    pub fn insert(&mut self, variable: Variable) {
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

    /// Removes a variable.
    #[inline]
    pub fn remove(&mut self, variable: Variable) {
        let (word, bit) = (variable.index() / 64, 1_u64 << (variable.index() % 64));
        if word == 0 {
            self.low &= !bit;
        } else if let Some(high) = self.high.get_mut(word - 1) {
            *high &= !bit;
        }
    }

    /// Whether the variable is in the set.
    #[must_use]
    #[inline]
    pub fn contains(&self, variable: Variable) -> bool {
        let (word, bit) = (variable.index() / 64, 1_u64 << (variable.index() % 64));
        let bits = if word == 0 { self.low } else { self.high.get(word - 1).copied().unwrap_or(0) };
        bits & bit != 0
    }

    /// Size in bytes, as memory caps count it.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        (size_of::<Self>() + 8 * self.high.capacity()) as u64
    }

    /// Whether the set is empty.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.low == 0 && self.high.iter().all(|&word| word == 0)
    }

    /// Inserts all of another set.
    #[inline]
    pub fn add_all(&mut self, other: &Self) {
        self.low |= other.low;
        if self.high.len() < other.high.len() {
            self.high.resize(other.high.len(), 0);
        }
        for (mine, its) in self.high.iter_mut().zip(&other.high) {
            *mine |= its;
        }
    }

    /// Removes all of another set.
    #[inline]
    pub fn remove_all(&mut self, other: &Self) {
        self.low &= !other.low;
        for (mine, its) in self.high.iter_mut().zip(&other.high) {
            *mine &= !its;
        }
    }

    /// Removes what another set does not contain.
    #[inline]
    pub fn keep_all(&mut self, other: &Self) {
        self.low &= other.low;
        for (at, mine) in self.high.iter_mut().enumerate() {
            *mine &= other.high.get(at).copied().unwrap_or(0);
        }
    }

    /// Both sets.
    #[must_use]
    #[inline]
    pub fn union(mut self, other: &Self) -> Self {
        self.add_all(other);
        self
    }

    /// What both sets contain.
    #[must_use]
    #[inline]
    pub fn intersection(mut self, other: &Self) -> Self {
        self.keep_all(other);
        self
    }

    /// What the other set does not contain.
    #[must_use]
    #[inline]
    pub fn minus(mut self, other: &Self) -> Self {
        self.remove_all(other);
        self
    }

    /// Whether the sets have a common variable.
    #[must_use]
    #[inline]
    pub fn intersects(&self, other: &Self) -> bool {
        self.low & other.low != 0 || self.high.iter().zip(&other.high).any(|(mine, its)| mine & its != 0)
    }

    /// Whether the other set contains all of this one.
    #[must_use]
    #[inline]
    pub fn is_subset(&self, other: &Self) -> bool {
        self.low & !other.low == 0
            && self
                .high
                .iter()
                .enumerate()
                .all(|(at, word)| word & !other.high.get(at).copied().unwrap_or(0) == 0)
    }

    /// The variables, ascending.
    pub fn iter(&self) -> impl Iterator<Item = Variable> + '_ {
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

#[cfg(test)]
mod tests {
    use super::VariableSet;
    use crate::Variable;

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
}

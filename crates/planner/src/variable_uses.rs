//! Counted occurrences of variables.

use vervet_algebra::{Variable, VariableSet};

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

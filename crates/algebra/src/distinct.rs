//! Deduplicated lists of variables, in order of first appearance.

use crate::Variable;

/// Up to this length a linear search detects duplicates; longer lists have a bit set.
const SEARCHED_MAX: usize = 16;

/// A list of variables without duplicates.
///
/// # Cost
/// An insertion into a short list takes up to [`SEARCHED_MAX`] comparisons, into a long one a bit test. The
/// bit set has one bit for each variable.
pub(crate) struct DistinctVariables<'o> {
    out: &'o mut Vec<Variable>,
    /// Bit set of the variables in `out`; empty while `out` is short.
    seen: Vec<u64>,
}

impl<'o> DistinctVariables<'o> {
    /// Appends to `out`, whose variables count as present.
    pub(crate) fn new(out: &'o mut Vec<Variable>) -> Self {
        Self { out, seen: Vec::new() }
    }

    pub(crate) fn add(&mut self, variable: Variable) {
        if self.out.len() <= SEARCHED_MAX && self.seen.is_empty() {
            if !self.out.contains(&variable) {
                self.out.push(variable);
            }
            return;
        }
        if self.seen.is_empty() {
            for at in 0..self.out.len() {
                self.mark(self.out[at]);
            }
        }
        if self.mark(variable) {
            self.out.push(variable);
        }
    }

    /// Inserts into the bit set; returns whether the variable is new.
    fn mark(&mut self, variable: Variable) -> bool {
        let (word, bit) = (variable.index() / 64, 1 << (variable.index() % 64));
        if word >= self.seen.len() {
            self.seen.resize(word + 1, 0);
        }
        let before = self.seen[word];
        self.seen[word] |= bit;
        before & bit == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_variable_is_listed_once_in_order_of_appearance() {
        let mut random = 7_u64;
        for count in [3, 20, 300] {
            let (mut out, mut expected) = (vec![Variable(900)], vec![Variable(900)]);
            let mut list = DistinctVariables::new(&mut out);
            for _ in 0..1_000 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let variable = Variable(u16::try_from((random >> 33) % count).expect("small"));
                list.add(variable);
                if !expected.contains(&variable) {
                    expected.push(variable);
                }
            }
            list.add(Variable(900));
            assert_eq!(out, expected);
        }
    }
}

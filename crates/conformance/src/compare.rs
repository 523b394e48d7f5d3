//! Compares results up to renaming of blank nodes.

use oxrdf::dataset::CanonicalizationAlgorithm;
use oxrdf::{BlankNode, Dataset, Term};
use std::collections::HashMap;

/// The number of row pairs after which the comparison gives up. Rows that only differ in blank nodes are few
/// in the suites.
const PAIRS_MAX: usize = 1_000_000;

/// Values in the order of the columns.
pub(crate) type Row = Vec<Option<Term>>;

/// Whether a bijection of blank nodes, one for the whole result, makes the rows equal: in order, or as bags.
///
/// # Errors
/// If the comparison takes too long.
pub(crate) fn same_rows(left: &[Row], right: &[Row], ordered: bool) -> Result<bool, String> {
    if left.len() != right.len() {
        return Ok(false);
    }
    let mut matching = Matching { forth: HashMap::new(), back: HashMap::new(), pairs: 0 };
    if ordered {
        return Ok(left.iter().zip(right).all(|(left, right)| matching.join(left, right).is_some()));
    }
    // Rows without blank nodes go first, since their matching is unambiguous.
    let mut order: Vec<&Row> = left.iter().collect();
    order.sort_by_key(|row| row.iter().flatten().any(Term::is_blank_node));
    let mut used = vec![false; right.len()];
    matching.extend(&order, right, &mut used)
}

/// A partial bijection.
struct Matching {
    forth: HashMap<BlankNode, BlankNode>,
    back: HashMap<BlankNode, BlankNode>,
    pairs: usize,
}

impl Matching {
    fn extend(&mut self, left: &[&Row], right: &[Row], used: &mut [bool]) -> Result<bool, String> {
        let Some((first, rest)) = left.split_first() else { return Ok(true) };
        for at in 0..right.len() {
            if used[at] {
                continue;
            }
            self.pairs += 1;
            if self.pairs > PAIRS_MAX {
                return Err("the results have too many blank nodes to compare them".to_owned());
            }
            let Some(added) = self.join(first, &right[at]) else { continue };
            used[at] = true;
            if self.extend(rest, right, used)? {
                return Ok(true);
            }
            if !first.iter().flatten().any(Term::is_blank_node) {
                // Another equal row would fail in the same way.
                return Ok(false);
            }
            used[at] = false;
            self.part(added);
        }
        Ok(false)
    }

    /// Makes two rows equal, and returns the newly paired blank nodes; `None`, and nothing changed, if that
    /// is impossible.
    fn join(&mut self, left: &Row, right: &Row) -> Option<Vec<[BlankNode; 2]>> {
        let mut added = Vec::new();
        for (left, right) in left.iter().zip(right) {
            let equal = match (left, right) {
                (Some(Term::BlankNode(left)), Some(Term::BlankNode(right))) => {
                    match (self.forth.get(left), self.back.get(right)) {
                        (None, None) => {
                            self.forth.insert(left.clone(), right.clone());
                            self.back.insert(right.clone(), left.clone());
                            added.push([left.clone(), right.clone()]);
                            true
                        }
                        (Some(to), Some(from)) => to == right && from == left,
                        _ => false,
                    }
                }
                (left, right) => left == right,
            };
            if !equal {
                self.part(added);
                return None;
            }
        }
        Some(added)
    }

    fn part(&mut self, added: Vec<[BlankNode; 2]>) {
        for [left, right] in added {
            self.forth.remove(&left);
            self.back.remove(&right);
        }
    }
}

/// Whether two sets of statements are isomorphic.
pub(crate) fn isomorphic(mut left: Dataset, mut right: Dataset) -> bool {
    left.canonicalize(CanonicalizationAlgorithm::Unstable);
    right.canonicalize(CanonicalizationAlgorithm::Unstable);
    left == right
}

#[cfg(test)]
mod tests {
    use super::*;
    use oxrdf::Literal;

    fn row(text: &str) -> Row {
        (text.split(' '))
            .map(|cell| match cell.strip_prefix('_') {
                Some(label) => Some(BlankNode::new_unchecked(label).into()),
                None if cell == "-" => None,
                None => Some(Literal::from(cell).into()),
            })
            .collect()
    }

    fn check(left: &[&str], right: &[&str], bag: bool, list: bool) {
        let [left, right] = [left, right].map(|rows| rows.iter().map(|text| row(text)).collect::<Vec<_>>());
        assert_eq!(same_rows(&left, &right, false), Ok(bag), "{left:?} {right:?}");
        assert_eq!(same_rows(&left, &right, true), Ok(list), "{left:?} {right:?}");
    }

    #[test]
    fn blank_nodes_are_renamed_over_the_whole_result() {
        check(&["a", "b"], &["b", "a"], true, false);
        check(&["a", "a", "b"], &["a", "b", "b"], false, false);
        check(&["_a 1", "_b 2"], &["_x 1", "_y 2"], true, true);
        check(&["_a 1", "_a 2"], &["_x 1", "_y 2"], false, false);
        check(&["_a 1", "_b 2"], &["_x 1", "_x 2"], false, false);
        // The first choice for a row may be wrong.
        check(&["_a _b", "_b _c", "_c 1"], &["_z 1", "_y _z", "_x _y"], true, false);
        check(&["_a -"], &["_a a"], false, false);
    }
}

//! Range predicates on ids: comparisons of a variable with constants as one range of payloads.
//!
//! Payloads preserve the order of values within a tag, and among integers. So `?x >= 5 && ?x < 9` is one test
//! of the tag and one of the payload for each row, for any number of comparisons.

use crate::compile::Node;
use crate::operands::is_integer;
use vervet_algebra::Comparator;
use vervet_model::{Id, Tag};

/// A range predicate on ids; see the header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PayloadRange {
    /// Bit set of the tags whose values the range decides.
    tags: u16,
    /// Least and greatest passing payload; an empty range if `high < low`.
    low: u64,
    high: u64,
}

impl PayloadRange {
    /// The variable and the bounds of a comparison or a conjunction of comparisons; `None`: ids alone do not
    /// decide it. `uniform`: the value of a variable that has the same value in every row, such as a
    /// parameter.
    pub(crate) fn of(node: &Node, uniform: &dyn Fn(usize) -> Option<Id>) -> Option<(usize, Self)> {
        match node {
            Node::Compare(comparator, ab) => match &**ab {
                [Node::Variable(variable), Node::Constant(constant)] => {
                    Some((*variable, Self::compared(*comparator, constant.id)?))
                }
                [Node::Constant(constant), Node::Variable(variable)] => {
                    Some((*variable, Self::compared(comparator.flipped(), constant.id)?))
                }
                [Node::Variable(a), Node::Variable(b)] => match uniform(*b) {
                    Some(id) => Some((*a, Self::compared(*comparator, id)?)),
                    None => Some((*b, Self::compared(comparator.flipped(), uniform(*a)?)?)),
                },
                _ => None,
            },
            Node::And(all) => {
                let mut all = all.iter().map(|node| Self::of(node, uniform));
                let (variable, mut bounds) = all.next()??;
                for other in all {
                    let (of, other) = other?;
                    if of != variable || other.tags != bounds.tags {
                        return None;
                    }
                    bounds.low = bounds.low.max(other.low);
                    bounds.high = bounds.high.min(other.high);
                }
                Some((variable, bounds))
            }
            _ => None,
        }
    }

    fn compared(comparator: Comparator, id: Id) -> Option<Self> {
        let tags = match id.tag() {
            tag if is_integer(tag) => bit(Tag::Integer) | bit(Tag::Int) | bit(Tag::Long),
            tag @ (Tag::ShortString | Tag::Boolean | Tag::DateTime | Tag::Date) => bit(tag),
            _ => return None,
        };
        // The empty range.
        let none = (1, 0);
        let payload = id.payload();
        let (low, high) = match comparator {
            Comparator::Less => payload.checked_sub(1).map_or(none, |last| (0, last)),
            Comparator::LessOrEqual => (0, payload),
            Comparator::Greater => (payload + 1, Id::PAYLOAD_MAX),
            Comparator::GreaterOrEqual => (payload, Id::PAYLOAD_MAX),
        };
        Some(Self { tags, low, high })
    }

    /// Whether a value passes; `None`: its id does not decide.
    #[inline]
    pub(crate) fn has(self, id: Id) -> Option<bool> {
        let payload = id.payload();
        (self.tags & bit(id.tag()) != 0).then_some(self.low <= payload && payload <= self.high)
    }
}

#[inline]
fn bit(tag: Tag) -> u16 {
    1 << tag as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operands::compare_ids;
    use vervet_model::Inline;

    #[test]
    fn payload_ranges_agree_with_comparisons() {
        let mut ids: Vec<Id> = [i64::MIN, -7, -1, 0, 1, 5, 1 << 40]
            .into_iter()
            .flat_map(|value| [Inline::Integer(value), Inline::Long(value)])
            .chain([Inline::Int(-3), Inline::Int(5), Inline::Boolean(false), Inline::Boolean(true)])
            .chain([Inline::DateTime(-5), Inline::DateTime(12), Inline::Date(0), Inline::Double(1.5)])
            .filter_map(Inline::to_id)
            .collect();
        ids.extend([
            Id::UNBOUND,
            Id::vertex(7),
            Id::new(Tag::Integer, 0),
            Id::new(Tag::Long, Id::PAYLOAD_MAX),
        ]);
        let comparators =
            [Comparator::Less, Comparator::LessOrEqual, Comparator::Greater, Comparator::GreaterOrEqual];
        for &constant in &ids {
            for comparator in comparators {
                let Some(bounds) = PayloadRange::compared(comparator, constant) else { continue };
                for &id in &ids {
                    let expected = compare_ids(comparator, id, constant);
                    assert_eq!(bounds.has(id), expected, "{id:?} {comparator:?} {constant:?}");
                }
            }
        }
    }
}

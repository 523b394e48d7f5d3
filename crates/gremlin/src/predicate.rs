//! Predicates of `has`, `is`, `where`, `all`, `any` and `none`.

use crate::Value;

/// An order comparison.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Comparison {
    /// `eq`
    Eq,
    /// `neq`
    Neq,
    /// `lt`
    Lt,
    /// `lte`
    Lte,
    /// `gt`
    Gt,
    /// `gte`
    Gte,
}

/// A test of text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TextTest {
    /// `startingWith`
    StartingWith,
    /// `notStartingWith`
    NotStartingWith,
    /// `endingWith`
    EndingWith,
    /// `notEndingWith`
    NotEndingWith,
    /// `containing`
    Containing,
    /// `notContaining`
    NotContaining,
    /// `regex`
    Regex,
    /// `notRegex`
    NotRegex,
}

/// A predicate on one value.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum P {
    /// `eq(x)`, …, `gte(x)`
    Compare(Comparison, Value),
    /// `inside(low, high)`: both bounds excluded.
    Inside(Value, Value),
    /// `outside(low, high)`: both bounds excluded.
    Outside(Value, Value),
    /// `between(low, high)`: the lower bound included.
    Between(Value, Value),
    /// `within(…)`; a single collection argument is expanded to its items.
    Within(Vec<Value>),
    /// `without(…)`
    Without(Vec<Value>),
    /// `TextP`
    Text(TextTest, Value),
    /// `typeOf(GType.INT)` or `typeOf("Integer")`
    TypeOf(Value),
    /// `not(p)`
    Not(Box<P>),
    /// `p.and(q)`
    And(Vec<P>),
    /// `p.or(q)`
    Or(Vec<P>),
}

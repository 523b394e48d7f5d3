//! Value semantics: equality, order, predicates, arithmetic, strings, dates, collections.
//!
//! # Shape
//! * `compare`: equality (`P.eq`), comparability (`P.lt`) and orderability (`order()`).
//! * `predicate`: whether a [`P`](crate::P) holds.
//! * `number`: arithmetic with promotion, `sum`, `mean`, `min`, `max`, `asNumber`.
//! * `operator`: the members of [`Operator`](crate::Operator) as functions.
//! * `math`: the expressions of `math()`.
//! * `text`: `concat`, `length`, `split`, …, `asBool`, templates of `format()`.
//! * `string`: `asString`, the textual forms of all values.
//! * `date`: date-times and durations: `asDate`, `dateAdd`, `dateDiff`, their texts.
//! * `list`: `combine`, `difference`, …, `all`, `any`, `none`, and iteration over collections.
//! # Invariants
//! All functions are pure. None panics for any value; time and memory are proportional to the input: numbers
//! of arbitrary precision have a limit ([`number::MAX_BITS`]), and so do lists ([`list::MAX_ITEMS`]).
//! Functions recurse over nested values; their producers (parser, wire formats) limit the nesting depth.
//! # Source
//! Apache TinkerPop 3.8, provider documentation, "Gremlin Semantics", and the feature files. Messages contain
//! the words that the feature files require.
//! # Not here
//! *Equivalence* (`dedup`, keys of groups and sets): `==` of [`Value`](crate::Value).

pub mod compare;
pub mod date;
mod details;
mod error;
mod items;
mod java;
pub mod list;
pub mod math;
pub mod number;
pub mod operator;
pub mod predicate;
pub mod string;
pub mod text;

pub use details::{Details, NoDetails};
pub use error::{Error, Result};

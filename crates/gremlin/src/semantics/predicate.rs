//! Evaluation of predicates ([`P`]).
//!
//! # Shape
//! [`Compiled`] is a preprocessed predicate: regular expressions are compiled, types resolved, long lists of
//! `within` indexed. [`test()`] compiles and evaluates.
//! # Invariants
//! Logic is two-valued. A comparison of incomparable values (`lt(NaN)`, a string with a number) is false, so
//! its negation is true. The result of [`negate`] holds if and only if its argument does not.
//! # Cost
//! Linear in value and predicate; constant for `within` of strings, integers and vertices with keys. Regular
//! expressions take time linear in the text; look-around and backreferences are not supported.
//! # Source
//! TinkerPop 3.8, `P`, `TextP`. Different: a text predicate is false for a value that is not a string
//! (TinkerPop throws); an unknown type name is an error even if no value is tested.

mod types;
mod within;

pub use types::Type;

use super::{Error, Result, compare};
use crate::{Comparison, P, TextTest, Value};
use regex::{Regex, RegexBuilder};
use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;
use within::Members;

/// Maximum size of a compiled regular expression, in bytes.
const REGEX_SIZE_BYTES: usize = 10 << 20;

/// Maximum size of a regular expression that is kept, in bytes.
const RECENT_SIZE_BYTES: usize = 1 << 20;

/// Number of regular expressions that each thread keeps.
const RECENT_MAX: usize = 4;

/// Whether `predicate` holds for `value`.
///
/// # Errors
/// As for [`Compiled::new`].
pub fn test(predicate: &P, value: &Value) -> Result<bool> {
    Ok(match predicate {
        // Fast path: no preparation.
        P::Compare(comparison, other) => holds(*comparison, value, other),
        P::Inside(low, high) => holds(Comparison::Gt, value, low) && holds(Comparison::Lt, value, high),
        P::Outside(low, high) => holds(Comparison::Lt, value, low) || holds(Comparison::Gt, value, high),
        P::Between(low, high) => holds(Comparison::Gte, value, low) && holds(Comparison::Lt, value, high),
        P::Within(values) => values.iter().any(|other| compare::equal(value, other)),
        P::Without(values) => !values.iter().any(|other| compare::equal(value, other)),
        _ => Compiled::new(predicate)?.test(value),
    })
}

/// `not(predicate)`, by De Morgan's laws for `and` and `or`.
#[must_use]
pub fn negate(predicate: &P) -> P {
    match predicate {
        P::Not(inner) => (**inner).clone(),
        P::And(parts) => P::Or(parts.iter().map(negate).collect()),
        P::Or(parts) => P::And(parts.iter().map(negate).collect()),
        other => P::Not(Box::new(other.clone())),
    }
}

/// A preprocessed predicate, for tests of many values.
#[derive(Clone, Debug)]
pub struct Compiled(Node);

#[derive(Clone, Debug)]
enum Node {
    Compare(Comparison, Value),
    Members(Members),
    Starts(Arc<str>),
    Ends(Arc<str>),
    Contains(Arc<str>),
    Matches(Regex),
    Type(Type),
    Never,
    Not(Box<Node>),
    All(Vec<Node>),
    Any(Vec<Node>),
}

impl Compiled {
    /// Compiles `predicate`.
    ///
    /// # Errors
    /// An invalid regular expression, a text predicate without a string, or an unknown type name.
    pub fn new(predicate: &P) -> Result<Self> {
        node(predicate).map(Self)
    }

    /// Whether the predicate holds for `value`.
    #[must_use]
    pub fn test(&self, value: &Value) -> bool {
        self.0.test(value)
    }
}

impl Node {
    fn test(&self, value: &Value) -> bool {
        match self {
            Self::Compare(comparison, other) => holds(*comparison, value, other),
            Self::Members(members) => members.contains(value),
            Self::Starts(text) => value.as_text().is_some_and(|value| value.starts_with(&**text)),
            Self::Ends(text) => value.as_text().is_some_and(|value| value.ends_with(&**text)),
            Self::Contains(text) => value.as_text().is_some_and(|value| value.contains(&**text)),
            Self::Matches(regex) => value.as_text().is_some_and(|value| regex.is_match(value)),
            Self::Type(wanted) => wanted.has(value),
            Self::Never => false,
            Self::Not(inner) => !inner.test(value),
            Self::All(parts) => parts.iter().all(|part| part.test(value)),
            Self::Any(parts) => parts.iter().any(|part| part.test(value)),
        }
    }
}

fn holds(comparison: Comparison, value: &Value, other: &Value) -> bool {
    match comparison {
        Comparison::Eq => compare::equal(value, other),
        Comparison::Neq => !compare::equal(value, other),
        Comparison::Lt => compare::compare(value, other) == Some(Ordering::Less),
        Comparison::Lte => compare::compare(value, other).is_some_and(Ordering::is_le),
        Comparison::Gt => compare::compare(value, other) == Some(Ordering::Greater),
        Comparison::Gte => compare::compare(value, other).is_some_and(Ordering::is_ge),
    }
}

fn node(predicate: &P) -> Result<Node> {
    let compare = |comparison, value: &Value| Node::Compare(comparison, value.clone());
    Ok(match predicate {
        P::Compare(comparison, value) => compare(*comparison, value),
        P::Inside(low, high) => Node::All(vec![compare(Comparison::Gt, low), compare(Comparison::Lt, high)]),
        P::Outside(low, high) => Node::Any(vec![compare(Comparison::Lt, low), compare(Comparison::Gt, high)]),
        P::Between(low, high) => {
            Node::All(vec![compare(Comparison::Gte, low), compare(Comparison::Lt, high)])
        }
        P::Within(values) => Node::Members(Members::new(values)),
        P::Without(values) => Node::Not(Box::new(Node::Members(Members::new(values)))),
        P::Text(test, wanted) => text(*test, wanted)?,
        P::TypeOf(wanted) => Node::Type(Type::new(wanted)?),
        P::Not(inner) => Node::Not(Box::new(node(inner)?)),
        P::And(parts) => Node::All(parts.iter().map(node).collect::<Result<_>>()?),
        P::Or(parts) => Node::Any(parts.iter().map(node).collect::<Result<_>>()?),
    })
}

fn text(test: TextTest, wanted: &Value) -> Result<Node> {
    let positive = match wanted {
        Value::String(wanted) => match test {
            TextTest::StartingWith | TextTest::NotStartingWith => Node::Starts(wanted.clone()),
            TextTest::EndingWith | TextTest::NotEndingWith => Node::Ends(wanted.clone()),
            TextTest::Containing | TextTest::NotContaining => Node::Contains(wanted.clone()),
            TextTest::Regex | TextTest::NotRegex => Node::Matches(regex(wanted)?),
        },
        Value::Null => Node::Never,
        _ => {
            return Err(Error::new(format!(
                "a predicate of text takes a string, encountered {}",
                wanted.type_name()
            )));
        }
    };
    Ok(match test {
        TextTest::StartingWith | TextTest::EndingWith | TextTest::Containing | TextTest::Regex => positive,
        TextTest::NotStartingWith
        | TextTest::NotEndingWith
        | TextTest::NotContaining
        | TextTest::NotRegex => Node::Not(Box::new(positive)),
    })
}

/// The compiled pattern. A predicate is compiled for each value, so each thread keeps the last ones.
fn regex(pattern: &Arc<str>) -> Result<Regex> {
    thread_local! {
        static RECENT: RefCell<VecDeque<(Arc<str>, Regex)>> = const { RefCell::new(VecDeque::new()) };
    }
    let recent = RECENT.with_borrow(|recent| {
        recent.iter().find(|(known, _)| known == pattern).map(|(_, regex)| regex.clone())
    });
    if let Some(regex) = recent {
        return Ok(regex);
    }
    let compile = |size_bytes| RegexBuilder::new(pattern).size_limit(size_bytes).build();
    match compile(RECENT_SIZE_BYTES) {
        Ok(regex) => {
            RECENT.with_borrow_mut(|recent| {
                recent.truncate(RECENT_MAX - 1);
                recent.push_front((pattern.clone(), regex.clone()));
            });
            Ok(regex)
        }
        Err(regex::Error::CompiledTooBig(_)) => compile(REGEX_SIZE_BYTES),
        Err(error) => Err(error),
    }
    .map_err(|error| {
        // The last line of a multi-line message has the reason.
        let message = error.to_string();
        let reason = message.lines().last().unwrap_or_default().trim_start_matches("error: ");
        Error::new(format!("cannot read the regular expression '{pattern}': {reason}"))
    })
}

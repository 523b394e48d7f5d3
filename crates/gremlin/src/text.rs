//! Gremlin as text: parsing, and printing what was parsed.
//!
//! # Shape
//! `lex` makes tokens, `parse` makes statements and steps of them, `literal`, `predicate` and `words` what
//! stands between the parentheses; `steps` is the one table of what may be called with what, `forms` checks
//! calls against it. `display` prints.
//! # Invariants
//! * `parse(b.to_string())` is `b` for all bytecode that has a text (see `display`).
//! * No text makes a panic or a deep stack, and time is linear in its length: one token of lookahead, no way
//!   back.
//! # Cost
//! About 2 µs for `g.V(1).out("knows").values("name")`; one allocation for each list of arguments and each
//! string.
//! # Source
//! Apache TinkerPop 3.8.1, `gremlin-language/src/main/antlr4/Gremlin.g4`. Wider than it: a variable may stand
//! for any argument; forms that 3.6 and 3.7 had (`store`, `aggregate(Scope, …)`, `none()`, `in_`); any value
//! as a key of a map in parentheses. Different: `0xAB` is 171 (there it is 10, its last digit is taken for
//! the suffix of a byte).
//! # Not here
//! What a step means, lambdas, Groovy.

mod datetime;
mod display;
mod error;
mod forms;
mod lex;
mod literal;
mod number;
mod parse;
mod predicate;
mod steps;
mod strings;
mod suggest;
#[cfg(test)]
mod tests;
mod words;

pub(crate) use forms::shared_name;

use crate::{Bytecode, Value};
use std::borrow::Cow;
use std::collections::HashMap;
use time::OffsetDateTime;

/// The longest text, in bytes.
pub const TEXT_BYTES_MAX: usize = 16 << 20;
/// The most tokens of a text.
pub const TOKENS_MAX: usize = 4_000_000;
/// How deep traversals, collections and predicates may be inside of each other.
pub const DEPTH_MAX: usize = 128;
/// How many values the ranges (`1..5`) of one text may have together.
pub const RANGE_VALUES_MAX: usize = 1_000_000;

/// What a text is read with.
#[derive(Clone, Debug)]
pub struct ParseOptions<'o> {
    /// Names of traversal sources: `g`, and aliases.
    pub sources: Cow<'o, [String]>,
    /// Values of variables.
    pub bindings: Cow<'o, HashMap<String, Value>>,
    /// What `datetime()` is.
    pub now: OffsetDateTime,
    /// What the values of `UUID()` are made from; equal seeds give equal values.
    pub seed: u128,
}

/// The source `g`, no variables; `now` is 1970.
impl Default for ParseOptions<'_> {
    fn default() -> Self {
        Self {
            sources: Cow::Owned(vec!["g".to_owned()]),
            bindings: Cow::Owned(HashMap::new()),
            now: OffsetDateTime::UNIX_EPOCH,
            seed: 0,
        }
    }
}

/// One statement of a text. `source` says which of [`ParseOptions::sources`] it is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Statement {
    /// `g.V().toList()`
    Traversal {
        /// Which source.
        source: usize,
        /// Its steps; the terminal method is none of them.
        bytecode: Bytecode,
        /// How results are asked for; none: all of them, as the protocol streams them.
        terminal: Option<Terminal>,
    },
    /// `g.tx().commit()`
    Transaction {
        /// Which source.
        source: usize,
        /// What becomes of the transaction.
        action: Transaction,
    },
    /// `g` or `g.withPath()`: a source that nothing is asked of.
    Source {
        /// Which source.
        source: usize,
        /// Has no steps.
        bytecode: Bytecode,
        /// Whether `toString()` is behind it.
        to_text: bool,
    },
    /// `""`: a query that has no result.
    Nothing,
}

/// How the results of a traversal are asked for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Terminal {
    /// `next()`: the first result.
    Next,
    /// `next(n)`: a list of at most so many results.
    NextMany(i64),
    /// `hasNext()`
    HasNext,
    /// `tryNext()`: the first result, or none.
    TryNext,
    /// `iterate()`: no result.
    Iterate,
    /// `toList()`
    ToList,
    /// `toSet()`
    ToSet,
    /// `toBulkSet()`
    ToBulkSet,
    /// `explain()`
    Explain,
    /// `toString()`: the traversal as text.
    ToText,
}

/// What `g.tx()` is told.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Transaction {
    /// `begin()`
    Begin,
    /// `commit()`
    Commit,
    /// `rollback()`
    Rollback,
}

/// The names of all steps and of what modulates them, in order.
pub fn step_names() -> impl Iterator<Item = &'static str> {
    steps::STEPS.iter().map(|(name, _)| *name)
}

/// The statements of a text, at least one.
///
/// # Errors
/// `ErrorKind::Query` if the text is not Gremlin, a variable has no value or a limit is passed. The message
/// shows the place:
///
/// ```text
/// there is no step vv (line 1, column 3)
/// 1 | g.vv()
///   |   ^^
/// ```
pub fn parse(text: &str, options: &ParseOptions<'_>) -> vervet_model::Result<Vec<Statement>> {
    parse::parse(text, options).map_err(|fault| fault.show(text))
}

/// One literal, as the arguments of steps have them: `[name: "marko"]`, `T.id`, `P.gt(1)`, `__.out()`.
///
/// # Errors
/// As [`parse`].
pub fn parse_value(text: &str, options: &ParseOptions<'_>) -> vervet_model::Result<Value> {
    parse::parse_value(text, options).map_err(|fault| fault.show(text))
}

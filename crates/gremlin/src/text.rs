//! Gremlin text: parser and printer.
//!
//! # Shape
//! `lex` is the lexer, `parse` the parser of statements and steps, `literal`, `predicate` and `words` the
//! parser of arguments; `steps` is the table of callable names with their signatures, and `forms` checks
//! calls against it. `display` is the printer.
//! # Invariants
//! * `parse(b.to_string())` equals `b` for all bytecode with a text form (see `display`).
//! * No text causes a panic or a deep stack. Time is linear in the length of the text: one token of
//!   lookahead, no backtracking.
//! # Cost
//! About 2 µs for `g.V(1).out("knows").values("name")`; one allocation per argument list and per string.
//! # Source
//! Apache TinkerPop 3.8.1, `gremlin-language/src/main/antlr4/Gremlin.g4`. Extensions: a variable may replace
//! any argument; forms of 3.6 and 3.7 (`store`, `aggregate(Scope, …)`, `none()`, `in_`); any value in
//! parentheses as a map key. Different: `0xAB` is 171 (there it is 10, because its last digit is taken for
//! the suffix of a byte).
//! # Not here
//! Semantics of steps, lambdas, Groovy.

mod datetime;
mod display;
mod error;
mod forms;
mod lex;
mod literal;
mod mistakes;
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

/// Maximum length of a text, in bytes.
pub const TEXT_BYTES_MAX: usize = 16 << 20;
/// Maximum number of tokens of a text.
pub const TOKENS_MAX: usize = 4_000_000;
/// Maximum nesting depth of traversals, collections and predicates.
pub const DEPTH_MAX: usize = 128;
/// Maximum total number of values in the ranges (`1..5`) of one text.
pub const RANGE_VALUES_MAX: usize = 1_000_000;

/// Options of the parser.
#[derive(Clone, Debug)]
pub struct ParseOptions<'o> {
    /// Names of traversal sources: `g`, and aliases.
    pub sources: Cow<'o, [String]>,
    /// Values of variables.
    pub bindings: Cow<'o, HashMap<String, Value>>,
    /// The value of `datetime()`.
    pub now: OffsetDateTime,
    /// The seed of `UUID()`; equal seeds yield equal values.
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

/// A statement of a text. `source` is an index into [`ParseOptions::sources`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Statement {
    /// `g.V().toList()`
    Traversal {
        /// Index of the source.
        source: usize,
        /// The instructions, without the terminal method.
        bytecode: Bytecode,
        /// The terminal method; `None`: all results, as the protocol streams them.
        terminal: Option<Terminal>,
    },
    /// `g.tx().commit()`
    Transaction {
        /// Index of the source.
        source: usize,
        /// The transaction control method.
        action: Transaction,
    },
    /// `g` or `g.withPath()`: a source without steps.
    Source {
        /// Index of the source.
        source: usize,
        /// The source instructions.
        bytecode: Bytecode,
        /// Whether `toString()` follows.
        to_text: bool,
    },
    /// `""`: a query without a result.
    Nothing,
}

/// A terminal method.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Terminal {
    /// `next()`: the first result.
    Next,
    /// `next(n)`: a list of at most `n` results.
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

/// A transaction control method of `g.tx()`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Transaction {
    /// `begin()`
    Begin,
    /// `commit()`
    Commit,
    /// `rollback()`
    Rollback,
}

/// The names of all steps and modulators, in order.
pub fn step_names() -> impl Iterator<Item = &'static str> {
    steps::STEPS.iter().map(|(name, _)| *name)
}

/// Parses the statements of a text, at least one.
///
/// # Errors
/// `ErrorKind::Query` for a syntax error, an unbound variable or an exceeded limit. The message shows the
/// position:
///
/// ```text
/// there is no step vv (line 1, column 3)
/// 1 | g.vv()
///   |   ^^
/// ```
pub fn parse(text: &str, options: &ParseOptions<'_>) -> vervet_model::Result<Vec<Statement>> {
    parse::parse(text, options).map_err(|fault| fault.show(text))
}

/// Parses one literal in any form of an argument: `[name: "marko"]`, `T.id`, `P.gt(1)`, `__.out()`.
///
/// # Errors
/// As [`parse`].
pub fn parse_value(text: &str, options: &ParseOptions<'_>) -> vervet_model::Result<Value> {
    parse::parse_value(text, options).map_err(|fault| fault.show(text))
}

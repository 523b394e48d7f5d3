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
mod statement;
mod steps;
mod strings;
mod suggest;
#[cfg(test)]
mod tests;
mod words;

pub(crate) use steps::shared_name;

pub use statement::{
    DEPTH_MAX, ParseOptions, RANGE_VALUES_MAX, Statement, TEXT_BYTES_MAX, TOKENS_MAX, Terminal, Transaction,
};

use crate::Value;

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

//! Expressions of `math()`: `_ + x * sin(2)`.
//!
//! # Shape
//! Numbers, variables (`_` is the current object), `+ - * / % ^`, unary minus and plus, parentheses, and
//! functions of one argument. Precedence from high to low: `^` (right-associative; `-2 ^ 2` is -4), unary
//! minus, `* / %`, `+ -`. A function without parentheses applies to the rest of the expression: `sin _ + 1`
//! is `sin(_ + 1)`, as in exp4j, which TinkerPop uses.
//!
//! An [`Expression`] is compiled once to a program for a stack machine and evaluated for each traverser.
//! # Invariants
//! A program leaves exactly one number and never underflows its stack; nesting is limited ([`MAX_DEPTH`]).
//! # Cost
//! Parsing and evaluation are linear in the length of the text.

mod parse;
mod program;

pub use program::{Expression, MAX_DEPTH};

use super::Result;

impl Expression {
    /// Parses `text`.
    ///
    /// # Errors
    /// A syntax error or too deep nesting; the message shows the position.
    pub fn parse(text: &str) -> Result<Self> {
        parse::expression(text)
    }
}

/// `pi` and `e`.
#[must_use]
pub fn constant(name: &str) -> Option<f64> {
    match name {
        "pi" | "π" => Some(std::f64::consts::PI),
        "e" => Some(std::f64::consts::E),
        _ => None,
    }
}

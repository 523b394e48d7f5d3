//! Statements, and the options and limits of the parser.

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

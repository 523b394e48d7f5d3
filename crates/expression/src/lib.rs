//! Expressions and aggregates over batches of ids: the operators and functions of SPARQL 1.1 §17 and §18.5.
//!
//! An expression is compiled once for a query ([`CompiledExpression`]) and then runs over batches of
//! columns. An [`Evaluator`] holds what is fixed for a query: the snapshot, the terms that the query has
//! made ([`ComputedTerms`]), the time of `NOW()`. [`SortKey`] is the order of `ORDER BY`, [`Accumulators`]
//! the aggregates of many groups.
//!
//! # Invariants
//! 1. An error of an expression is a value (`None`, [`vervet_model::Id::UNBOUND`]); `Err` means damaged
//!    data, a limit, or an expression that cannot run at all.
//! 2. Terms that pass through an expression keep their lexical form to the letter. Values that are
//!    computed get the form that `oxsdatatypes` writes (`2` for the double and the decimal two).
//! 3. Equal ids are equal terms, for computed terms too.
//! # Extensions of SPARQL 1.1
//! `xsd:date`, `xsd:time`, durations and the Gregorian types are values that `=`, `<` and the functions on
//! dates know; durations can be added to and subtracted from dates; values of different known types are
//! unequal (not an error); `<=` and `>=` hold between a term and itself; triple terms are equal if their
//! parts are, and have no `<`.
//! # Not here
//! `EXISTS` (a plan, not a function of one row), custom functions.
#![forbid(unsafe_code)]

mod aggregate;
mod arithmetic;
mod batch;
mod bounds;
mod cast;
mod compare;
mod compile;
mod computed;
mod context;
mod dates;
mod evaluate;
mod evaluator;
mod numbered;
mod order;
mod pattern;
mod strings;
mod value;

pub use aggregate::Accumulators;
pub use batch::CompiledExpression;
pub use computed::ComputedTerms;
pub use evaluator::Evaluator;
pub use order::SortKey;
pub use pattern::is_regex;

/// Longest text that an expression may make, in bytes; more is an error of kind
/// [`vervet_model::ErrorKind::MemoryLimit`].
pub const MAX_TEXT_BYTES: usize = 1 << 26;

/// Deepest nesting of an expression.
pub const MAX_DEPTH: usize = 256;

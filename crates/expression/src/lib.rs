//! Vectorised evaluation of expressions and aggregates over batches of ids: the operators and functions of
//! SPARQL 1.1 §17 and §18.5.
//!
//! An expression is compiled once for a query ([`CompiledExpression`]) and then evaluated over batches of
//! columns. An [`Evaluator`] holds the per-query environment: the snapshot, the computed terms
//! ([`ComputedTerms`]), the time of `NOW()`. [`SortKey`] implements the order of `ORDER BY`, [`Accumulators`]
//! the aggregates of many groups.
//!
//! # Invariants
//! 1. An expression error is a value (`None`, [`vervet_model::Id::UNBOUND`]); `Err` means damaged data, a
//!    limit, or an expression that cannot be evaluated at all.
//! 2. Terms that pass through an expression keep their exact lexical form. Computed values have the form that
//!    `oxsdatatypes` writes (`2` for the double and the decimal two).
//! 3. Equal ids are equal terms, also for computed terms.
//! 4. Between two calls of [`Interrupt::check`] there is a bounded amount of work, whatever the expression
//!    and the terms are (`work.rs`).
//!
//! # Extensions of SPARQL 1.1
//! `=`, `<` and the date functions support `xsd:date`, `xsd:time`, durations and the Gregorian types;
//! durations can be added to and subtracted from dates; values of different known types are unequal (not an
//! error); `<=` and `>=` hold between a term and itself; triple terms are equal if their parts are, and have
//! no `<`.
//! # Not here
//! `EXISTS` (a nested plan, not a function of one row), custom functions.
#![forbid(unsafe_code)]

mod aggregate;
mod append_only_table;
mod arithmetic;
mod batch;
mod cast;
mod compare;
mod comparison;
mod compile;
mod computed;
mod constant_list;
mod context;
mod dates;
mod evaluate;
mod evaluator;
mod id_tests;
mod operands;
mod operator;
mod order;
mod pattern;
mod pattern_cache;
mod payload_range;
mod regex_search;
mod strings;
mod text_cache;
mod unicode_blocks;
mod value;
mod wide;
mod work;
mod xpath_regex;

pub use aggregate::Accumulators;
pub use batch::CompiledExpression;
pub use comparison::OrderClass;
pub use computed::ComputedTerms;
pub use evaluator::{Evaluator, Interrupt};
pub use id_tests::{IdOutcome, IdRelation, IdTest};
pub use order::{SortKey, order_of_ids};
pub use pattern::regex_error;
pub use wide::DIGITS_MAX;

/// Maximum length of a computed text, in bytes; a longer one is an error of kind
/// [`vervet_model::ErrorKind::MemoryLimit`].
pub const MAX_TEXT_BYTES: usize = 1 << 26;

/// Maximum nesting depth of an expression.
pub const MAX_DEPTH: usize = 256;

//! SPARQL front end: text to [`vervet_algebra::Query`] and [`vervet_algebra::Update`], with scoping and
//! positioned errors.
//!
//! # Shape
//! One pass over the text by recursive descent. The parser builds the algebra directly: a group becomes a
//! [`vervet_algebra::Node`], and scoping is resolved during parsing, so that errors have a position and later
//! crates are independent of names.
//! # Invariants
//! Those of `vervet_algebra`. In detail: a sub-query, and the right side of a `MINUS`, have their own scope;
//! at its end, variables visible outside are renumbered to the outer ones.
//! # Cost
//! Linear in the text except for contrived input; Q5 of LUBM takes 2.1 microseconds (spargebra: 4.2), Q7 3.1
//! (8.3); 2026-11-20, `examples/parse_speed.rs`. Nesting and the length of operator chains have limits
//! ([`limits`]), so that no text overflows the stack.
//! # Source
//! SPARQL 1.1 Query Language, W3C 2013, §18.2 and §19.8, and the triple terms of SPARQL 1.2. The crate
//! `spargebra` serves only as the reference in tests: its time doubles with each nested `REPLACE`, and its
//! syntax trees have no positions for messages.
//!
//! ```
//! use vervet_sparql::{parse, ParseOptions};
//!
//! let query = parse("SELECT ?x { ?x a <http://example.org/City> }", &ParseOptions::default())?;
//! assert_eq!(query.variables, ["x"]);
//!
//! let error = parse("SELECT * { ?x fof:name ?name }", &ParseOptions::default()).unwrap_err();
//! assert_eq!((error.line(), error.column()), (1, 15));
//! assert!(error.hint().is_some_and(|hint| hint.contains("foaf:")));
//! # Ok::<_, vervet_sparql::QueryError>(())
//! ```
#![forbid(unsafe_code)]

mod analysis;
mod error;
mod exists;
mod expression;
mod function;
mod graph;
mod group;
mod lexer;
pub mod limits;
mod mistakes;
mod parser;
mod path;
mod prefixes;
mod select;
mod service;
mod sub_query_order;
mod template;
mod term;
mod triple_term_patterns;
mod triples;
mod update;

pub use error::{QueryError, QueryErrorKind};
pub use prefixes::well_known_prefixes;

use vervet_algebra::{Dataset, Query, Update};

/// Options of the parser.
#[derive(Clone, Copy, Default, Debug)]
pub struct ParseOptions<'a> {
    /// Base IRI for relative IRIs, unless the query has a `BASE`.
    pub base_iri: Option<&'a str>,
    /// Default prefixes (without the colon) and their IRIs; declarations of the query override them.
    pub prefixes: &'a [(&'a str, &'a str)],
    /// Parameters: variables (without `?`) that the caller binds at each execution. They are the first
    /// entries of [`Query::variables`], in this order, and are in scope everywhere, also in sub-queries that
    /// do not project them.
    pub parameters: &'a [&'a str],
    /// The dataset of a query; overrides its `FROM` clauses (SPARQL 1.1 Protocol §2.1.4).
    pub dataset: Option<&'a Dataset>,
}

/// Parses a query into its algebra.
///
/// # Errors
/// Invalid SPARQL; SPARQL that Vervet does not support; a text beyond [`limits`]; a parameter that the query
/// does not mention.
pub fn parse(text: &str, options: &ParseOptions<'_>) -> Result<Query, QueryError> {
    parser::Parser::new(text, options, limits::TEXT_BYTES_MAX)?.query()
}

/// [`parse`], and the prefixes that the query declares: name without the colon and IRI, by name.
///
/// # Errors
/// As [`parse`].
pub fn parse_with_prefixes(
    text: &str,
    options: &ParseOptions<'_>,
) -> Result<(Query, Vec<(String, String)>), QueryError> {
    parser::Parser::new(text, options, limits::TEXT_BYTES_MAX)?.query_and_prefixes()
}

/// Parses an update: zero or more operations separated by `;`.
///
/// Each operation has its own table of variables ([`vervet_algebra::Modify::solutions`]), which starts with
/// the parameters. Prefixes and base of an operation apply to later ones. Templates are plain lists of
/// statements, without those that contain a variable which the pattern never binds.
///
/// ```
/// use vervet_sparql::{parse_update, ParseOptions};
///
/// let text = "PREFIX : <http://example.org/>
///     INSERT DATA { :ann :knows :bob } ;
///     DELETE WHERE { ?x :knows ?x }";
/// let update = parse_update(text, &ParseOptions::default())?;
/// assert_eq!(update.operations.len(), 2);
///
/// let error = parse_update("DELETE DATA { ?x ?y ?z }", &ParseOptions::default()).unwrap_err();
/// assert_eq!((error.line(), error.column()), (1, 15));
/// # Ok::<_, vervet_sparql::QueryError>(())
/// ```
///
/// # Errors
/// As [`parse`].
pub fn parse_update(text: &str, options: &ParseOptions<'_>) -> Result<Update, QueryError> {
    parser::Parser::new(text, options, limits::UPDATE_BYTES_MAX)?.update()
}

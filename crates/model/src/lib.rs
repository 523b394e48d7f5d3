//! Basic types shared by all layers: ids, inline values, directions, statements, errors.
//!
//! This crate depends on no storage, query language or file format. Terms are those of `oxrdf`, a deliberate
//! choice: all RDF libraries in use share them, and they keep lexical forms.
#![forbid(unsafe_code)]

mod error;
mod id;
mod inline;
mod iri;
mod meter;
mod multiplicity;
mod parts;
mod search;
mod statement;
mod term_conversion;
mod triple;
pub mod vocab;
mod watch;

pub use error::{Error, ErrorKind, Position, Result};
pub use id::{Direction, Id, Tag};
pub use inline::{Inline, double_bounds, inline_id, integer_bounds, order_key, short_string_bound};
pub use iri::is_plain_iri;
pub use meter::{METER_STEP, Meter, unmetered};
pub use multiplicity::Multiplicity;
pub use parts::{LiteralKind, TermParts};
pub use search::{Part, SEARCH_WORDS_MAX, SearchError, TextSearch, WORD_BYTES_MAX, Words, for_each_word};
pub use statement::Statement;
pub use term_conversion::{triple_term, triple_text, with_nt, with_parts};
pub use triple::{
    TRIPLE_DEPTH_MAX, depth_of_term, is_triple_text, speaks_of_edge, triple_depth, triple_parts, with_labels,
    write_triple,
};
pub use watch::{Ticker, Watch};

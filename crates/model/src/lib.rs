//! Basic types shared by all layers: ids, inline values, directions, statements, errors.
//!
//! This crate depends on no storage, query language or file format. Terms are those of `oxrdf`, a deliberate
//! choice: all RDF libraries in use share them, and they keep lexical forms.
#![forbid(unsafe_code)]

mod civil;
mod error;
mod hex;
mod id;
mod inline;
mod iri;
mod meter;
mod multiplicity;
mod partition;
mod remote_reads;
mod statement;
mod suggest;
mod sync;
mod term_conversion;
mod term_parts;
mod text_search;
mod thread_limits;
mod triple;
pub mod vocab;
mod watch;

pub use civil::{civil_from_days, days_from_civil};
pub use error::{Error, ErrorKind, Position, Result};
pub use hex::hex;
pub use id::{Direction, Id, Tag};
pub use inline::{Inline, double_bounds, inline_id, integer_bounds, order_key, short_string_bound};
pub use iri::is_plain_iri;
pub use meter::{METER_STEP, Meter, unmetered};
pub use multiplicity::Multiplicity;
pub use partition::{Partitioning, SLOTS};
pub use remote_reads::{ReadCounts, RemoteReads, describe_reads, sum_of_reads};
pub use statement::{Statement, drop_plain_twins};
pub use suggest::nearest;
pub use sync::lock;
pub use term_conversion::{triple_term, triple_text, with_nt, with_parts};
pub use term_parts::{LiteralKind, TermParts};
pub use text_search::{
    SEARCH_WORDS_MAX, SearchClause, SearchError, TextSearch, WORD_BYTES_MAX, Words, for_each_word,
};
pub use thread_limits::{EnteredLimits, ThreadLimits, cancelled_error, deadline_error};
pub use triple::{
    TRIPLE_DEPTH_MAX, is_triple_text, mentions_edge, replace_blank_labels, term_depth, triple_depth,
    triple_parts, write_triple,
};
pub use watch::{Ticker, Watch};

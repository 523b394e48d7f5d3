//! The dictionary: the map between 64-bit ids and RDF terms.
//!
//! A [`DictionaryBuilder`] numbers terms in order of first occurrence and produces the image of a file; a
//! [`Dictionary`] reads such an image, mapped, without loading it whole. Numbers, dates, short strings and
//! edges are inside their ids ([`vervet_model::Inline`]): they have no entry here, but all calls accept them.
//!
//! ```
//! use vervet_dictionary::{Dictionary, DictionaryBuilder};
//! use vervet_env::Bytes;
//!
//! let mut builder = DictionaryBuilder::new();
//! let alice = builder.intern_iri("http://example.org/alice")?;
//! assert_eq!(builder.intern_iri("http://example.org/alice")?, alice);
//!
//! let dictionary = Dictionary::open(Bytes::from(builder.finish()?), "dictionary")?;
//! let (mut text, mut ends) = (Vec::new(), Vec::new());
//! dictionary.write_terms(&[alice], &mut text, &mut ends)?;
//! assert_eq!(text, b"<http://example.org/alice>");
//! # Ok::<(), vervet_model::Error>(())
//! ```
//!
//! `docs/dictionary.md` describes the bytes of the file.
#![forbid(unsafe_code)]

mod blank_bits;
mod builder;
mod dictionary;
mod encode;
mod extension;
mod finish;
mod fsst;
mod full_text;
mod full_text_merge;
mod header;
mod index;
mod index_slots;
mod integers;
mod key;
mod mutable_dictionary;
mod pattern;
mod rebuild;
mod record_blocks;
mod sections;
mod template;
mod text_order;
mod text_ranks;
mod text_runs;
mod transfer;
mod validate;
mod write;

pub use builder::DictionaryBuilder;
pub use dictionary::Dictionary;
pub use extension::Extension;
pub use key::{hash_blank, hash_iri, hash_literal, hash_term};
pub use mutable_dictionary::{MutableDictionary, TERM_BYTES_MAX};

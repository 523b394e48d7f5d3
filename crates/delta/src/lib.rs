//! Versions of a graph: the delta over a store, as persistent (copy-on-write) trees.
//!
//! A [`Version`] is a value: a clone costs a few atomic increments, shares everything, and is not affected by
//! changes of the original. A reader holds a version and reads one graph for as long as it needs; a
//! transaction changes its own clone; a savepoint is an older clone; a roll-back is a drop. There are no
//! stamps, no locks and no epochs: memory is freed with the last clone that reaches it.
//!
//! ```
//! use std::sync::Arc;
//! use vervet_delta::Version;
//! use vervet_dictionary::MutableDictionary;
//! use vervet_model::{Direction, Id, Statement};
//! use vervet_snapshot::{EntryFilter, Snapshot};
//! use vervet_store::Store;
//!
//! let terms = Arc::new(MutableDictionary::new(0, 0));
//! let id = |name: &str| {
//!     let iri = oxrdf::NamedNode::new_unchecked(format!("http://example.org/{name}"));
//!     terms.intern(iri.as_ref().into())
//! };
//! let (alice, bob, knows) = (id("alice")?, id("bob")?, id("knows")?);
//!
//! let before = Version::new(Arc::new(Store::empty()?), Arc::clone(&terms));
//! let mut after = before.clone();
//! let none = Id::UNBOUND;
//! after.insert(&Statement { subject: alice, predicate: knows, object: bob, graph: none, edge: none })?;
//!
//! let mut friends = Vec::new();
//! if let Some(segment) = after.segment(knows, Direction::Out)? {
//!     segment.neighbours(alice, EntryFilter::default(), &mut friends)?;
//! }
//! assert_eq!(friends, [bob]);
//! assert_eq!((before.statement_count(), after.statement_count()), (0, 1));
//! # Ok::<(), vervet_model::Error>(())
//! ```
//!
//! # Shape
//! `tree`: a persistent B+tree. `cell`: its items. `key_filter`: a Bloom filter of the keys with cells.
//! `overlay` and the files named after the calls of a segment: a segment with cells over it. `version` and
//! the files beside it: the whole graph.
//! # Not here
//! Transactions, conflicts, the log, and the choice of the current version. The mutable dictionary
//! ([`vervet_dictionary::MutableDictionary`]).
#![forbid(unsafe_code)]

mod bulk;
mod cell;
mod check;
mod degrees;
mod estimates;
mod expand;
mod key_filter;
mod keys;
mod merged;
mod neighbours;
mod ordered;
mod overlay;
mod preconditions;
mod predicate;
mod rebase;
mod segment;
mod snapshot;
mod statements;
mod tree;
mod version;
mod version_orders;

pub use overlay::Overlay;
pub use statements::Statements;
pub use version::Version;

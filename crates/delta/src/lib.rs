//! Versions of a graph: what has changed since a store was built, as persistent trees in front of it.
//!
//! A [`Version`] is a value: a clone costs a few atomic increments, shares everything, and is not changed by
//! what happens to the other. So a reader holds a version and sees one graph for as long as it likes; a
//! transaction changes its own clone; a savepoint is an older clone; roll back is drop. There are no stamps,
//! no locks, no epochs: memory goes back with the last clone that reaches it.
//!
//! ```
//! use std::sync::Arc;
//! use vervet_delta::Version;
//! use vervet_dictionary::Terms;
//! use vervet_model::{Direction, Id, Statement};
//! use vervet_snapshot::{EntryFilter, Snapshot};
//! use vervet_store::Store;
//!
//! let terms = Arc::new(Terms::new(0, 0));
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
//! `tree`: a persistent B+tree. `cell`: what it holds. `touched`: which keys have cells. `overlay` and the
//! files named after the calls of a segment: a segment with cells over it. `version` and the files beside
//! it: the whole graph.
//! # Not here
//! Transactions, conflicts, the log: who may change which version when. The mutable dictionary
//! ([`vervet_dictionary::Terms`]).
#![forbid(unsafe_code)]

mod admit;
mod bulk;
mod cell;
mod check;
mod degrees;
mod estimates;
mod expand;
mod keys;
mod merged;
mod neighbours;
mod ordered;
mod overlay;
mod predicate;
mod rebase;
mod snapshot;
mod statements;
mod touched;
mod tree;
mod version;

pub use overlay::Overlay;
pub use statements::Statements;
pub use version::Version;

//! The immutable base store: segments, statistics, files, and the builder that makes them.
//!
//! A [`StoreBuilder`] takes statements as ids and makes a [`Store`], in memory or as files that are
//! mapped; a store is a [`vervet_snapshot::Snapshot`].
//!
//! ```
//! use vervet_dictionary::DictionaryBuilder;
//! use vervet_env::Environment;
//! use vervet_model::Direction;
//! use vervet_snapshot::{EntryFilter, Snapshot};
//! use vervet_store::{BuildOptions, StoreBuilder, Target};
//!
//! let mut dictionary = DictionaryBuilder::new();
//! let mut id = |name: &str| dictionary.intern_iri(&format!("http://example.org/{name}"));
//! let (alice, bob, knows) = (id("alice")?, id("bob")?, id("knows")?);
//!
//! let mut builder = StoreBuilder::new(BuildOptions {
//!     threads: 1,
//!     memory_bytes: 1 << 30,
//!     environment: Environment::real(),
//!     temp_dir: None,
//!     log: None,
//!     orders: Vec::new(),
//! });
//! builder.add_triples(&[[alice, knows, bob]])?;
//! let store = builder.finish(dictionary.finish()?, &Target::Memory)?;
//!
//! let mut friends = Vec::new();
//! if let Some(segment) = store.segment(knows, Direction::Out)? {
//!     segment.neighbours(alice, EntryFilter::default(), &mut friends)?;
//! }
//! assert_eq!(friends, [bob]);
//! # Ok::<(), vervet_model::Error>(())
//! ```
//!
//! # Not here
//! Changes: `vervet-delta` adds them on top of a store, with the same traits. `docs/format.md` describes the
//! bytes of the files.

mod base;
mod buffers;
mod build_plan;
mod builder;
mod check;
mod edges;
mod encode;
mod entries;
mod expand;
mod files;
mod halves;
mod halves_bytes;
mod in_order;
mod key_bitmaps;
mod lazy_section;
mod locate;
mod merge;
mod new_dictionary;
mod order;
mod packed;
mod part_builder;
mod part_files;
mod predicate_sets;
mod restore;
mod segment;
mod sort;
mod sorted_entries;
mod spill;
mod statements;
mod statistics;
mod statistics_bytes;
mod store;
mod toc;
mod validate;

pub use base::{Base, PartSize};
pub use build_plan::{BuildPlan, GraphCounts, SetPlan, SetSurvey, Survey};
pub use builder::{BuildOptions, PartStores, SplitPredicates, StoreBuilder, Target};
pub use files::{CheckpointPosition, FileRecord, publish_log};
pub use halves_bytes::Halves;
pub use new_dictionary::NewDictionary;
pub use order::OrderBy;
pub use part_builder::{PartBuilder, SortedParts, WrittenParts};
pub use part_files::{PartFiles, open_parts, write_dictionary};
pub use restore::copy_generation;
pub use segment::BaseSegment;
pub use statements::Statements;
pub use statistics_bytes::{read_statistics, write_statistics};
pub use store::Store;
pub use validate::HalfSum;

pub use vervet_model::Statement;

//! Transactions over one graph: multi-version optimistic concurrency control with a write-ahead log.
//!
//! # Shape
//! [`Transactions`] manages one graph, in memory or in a directory. Readers take its current version, an
//! immutable value. A [`Transaction`] has a private version, which begins as the newest one; its changes go
//! there, and its reads are recorded. Its commit is validated against concurrent commits, logged, and
//! published.
//!
//! ```
//! use vervet_env::Environment;
//! use vervet_model::Statement;
//! use vervet_txn::{Isolation, Options, Transactions};
//! # use oxrdf::NamedNodeRef;
//! # use vervet_model::Id;
//!
//! let graph = Transactions::in_memory(Environment::real(), Options::default())?;
//! let mut ann = graph.begin(Isolation::Serializable)?;
//! let mut id = |name| ann.intern(NamedNodeRef::new_unchecked(name).into());
//! let (subject, predicate, object) = (id("urn:ann")?, id("urn:knows")?, id("urn:bob")?);
//! let statement = Statement { subject, predicate, object, graph: Id::UNBOUND, edge: Id::UNBOUND };
//! assert!(ann.insert(&statement)?);
//! assert!(!graph.current().version.contains(&statement)?); // nobody else sees it yet
//! ann.commit()?;
//! assert!(graph.current().version.contains(&statement)?);
//! # Ok::<(), vervet_model::Error>(())
//! ```
#![forbid(unsafe_code)]

mod applied;
mod background;
mod backup;
mod base;
mod checkpoint;
mod commit;
mod commit_head;
mod commit_log;
mod constraint;
mod constraint_scan;
mod constraints;
mod damage;
mod directory;
mod feed;
mod feed_state;
mod follower;
mod moved;
mod mutation;
mod numbering;
mod options;
mod published;
mod reads;
mod recent_commits;
mod record;
mod recovery;
mod replacement;
mod restore;
mod schema;
mod start;
mod status;
mod sync;
mod tracked;
mod transaction;
mod transactions;
mod validation;
mod writer;
mod writes;

#[cfg(all(test, feature = "shuttle"))]
mod explore;

pub use applied::Applied;
pub use background::{
    CHECKPOINT_CELLS_MIN, CHECKPOINT_LOG_BYTES, CHECKPOINT_LOG_BYTES_MIN, CHECKPOINT_LOG_FILES,
    CHECKPOINT_SHARE, CHECKPOINT_TERMS_MIN, STALL_MAX,
};
pub use base::continued;
pub use checkpoint::{CHECKPOINT_RETRY_MAX, CHECKPOINT_RETRY_MIN, CHECKPOINT_SPARE_BYTES};
pub use commit_log::SharedLog;
pub use constraint::{CONSTRAINT_PROPERTIES_MAX, Constraint, ConstraintKind};
pub use damage::{CheckedLog, Damage, check_log, cut_at_damage, find_damage};
pub use feed::{Feed, FeedCommit, FeedContent, FeedPosition, FeedRefusal, Mutations, commit_timestamp};
pub use feed_state::RecordSource;
pub use follower::Follower;
pub use mutation::{Mutation, Timestamp};
pub use options::{DELTA_BYTES_MAX_DEFAULT, LOAD_WAIT_DEFAULT, LOG_BYTES_MAX_DEFAULT, Options, TERMS_MAX};
pub use published::Published;
pub use reads::READS_MAX;
pub use recent_commits::COMMITTED_CHANGES_MAX;
pub use record::LogRecord;
pub use replacement::ReplacementBase;
pub use restore::restore;
pub use start::Start;
pub use status::{CheckpointStatus, ConflictCounts, Counts, StorageStatus};
pub use tracked::Tracked;
pub use transaction::{PendingCommit, Read, Savepoint, Transaction, View};
pub use transactions::Transactions;
pub use validation::Isolation;
/// Durability level: when a commit is acknowledged.
pub use vervet_log::Durability;

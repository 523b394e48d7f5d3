//! The base of a version: what the layers of changes, transactions and files need of the graph below them,
//! beyond reading it as a snapshot.
//!
//! # Implementations
//! [`crate::Store`], one graph in memory or files; `vervet_partition::PartitionedBase`, several stores.
//! # Invariants
//! A base never changes. All methods of one base agree with its [`Snapshot`].

use crate::{CheckpointPosition, OrderBy};
use std::fmt::Debug;
use std::sync::Arc;
use vervet_dictionary::Dictionary;
use vervet_model::{Direction, Error, Id, Partitioning, Result};
use vervet_snapshot::{Segment, Snapshot};

/// Size of one part of a store, in bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartSize {
    /// The segment that the part belongs to, if any.
    pub segment: Option<(Id, Direction)>,
    /// Name of the part.
    pub part: &'static str,
    /// Size in bytes.
    pub bytes: u64,
}

/// An immutable graph under a version. See the header of this file.
pub trait Base: Snapshot + Debug {
    /// The dictionary, for look-ups by parts of terms and for extension.
    fn dictionary(&self) -> &Dictionary;

    /// A number that is unique among all bases ever opened by this process.
    fn number(&self) -> u64;

    /// The partitions that it consists of, for building another base with the same.
    fn partitioning(&self) -> Partitioning {
        Partitioning::WHOLE
    }

    /// [`Snapshot::segment`] as a shared pointer, for layers on top of this one.
    ///
    /// # Errors
    /// Damaged segment.
    fn segment_arc(&self, predicate: Id, direction: Direction) -> Result<Option<Arc<dyn Segment>>>;

    /// Subject, predicate, object and graph of an edge; `None` if there is no such edge.
    ///
    /// # Errors
    /// Damaged edge table.
    fn find_edge(&self, edge: Id) -> Result<Option<[Id; 4]>>;

    /// Ordered predicates, ascending, each with its ordering property.
    fn orders(&self) -> &[(Id, Id)];

    /// The orders by name, for building a store with the same orders.
    ///
    /// # Errors
    /// Damaged dictionary.
    fn order_names(&self) -> Result<Vec<OrderBy>> {
        let text = |id| {
            let mut text = String::new();
            self.read_term(id, &mut String::new(), &mut |parts| parts.write_str(&mut text))?;
            Ok::<_, Error>(text)
        };
        let names = self.orders().iter().map(|(predicate, property)| {
            Ok(OrderBy { predicate: text(*predicate)?, property: text(*property)? })
        });
        names.collect()
    }

    /// The generation in its manifest; `None` for a base in memory.
    fn generation(&self) -> Option<u64>;

    /// The log position in the manifest when this base was opened; `None` if the manifest states none. The
    /// manifest may have changed since ([`crate::publish_log`]).
    fn checkpoint_position(&self) -> Option<CheckpointPosition>;

    /// Total size of its files in bytes; 0 in memory.
    fn file_bytes(&self) -> u64;

    /// The lines set by [`crate::StoreBuilder::set_constraints`].
    fn constraints(&self) -> &[String];

    /// Sizes in bytes of all parts.
    ///
    /// # Errors
    /// Damaged segment.
    fn parts(&self) -> Result<Vec<PartSize>>;

    /// Reads everything: checksums of whole files, the dictionary, every segment in both directions (which
    /// must have the same entries), ids, the edge table, and all counts and statistics, which are recomputed.
    /// Needs about 64 bytes for each entry of the largest predicate.
    ///
    /// # Errors
    /// [`vervet_model::ErrorKind::Corrupt`] with the damage and its location.
    fn validate(&self) -> Result<()>;
}

//! A graph in several partitions, read as one.
//!
//! [`PartitionedBase`] is a [`vervet_store::Base`] over a store for each partition. Versions, transactions
//! and queries over it are those of any base, so every suite can run over partitions in one process, and what
//! it finds holds for partitions on several servers.
//!
//! # Shape
//! A part is a partition of this process or another server ([`Remote`]). `keyed`: a segment whose keys are
//! each in one part: keys are sorted by owner, each part answers for its own, the answers are laid back in
//! the order of the rows. `split`: a segment whose keys may have entries in all parts: entries are merged.
//! `call`, `bytes`, `gather`: calls of segments as values, their bytes, and asking several parts together.
//! `replicas`: several servers with the same partitions as one. `kept`: answers that are kept.
//! `window`: how many rows of an expansion to ask for. `together`: entries of keys in several segments, with
//! one request to each server.
//! `catalog`: statistics of all partitions, exact. `base`: the graph. `directory`: its files.
//! # Not here
//! Which partition owns an id ([`vervet_model::Partitioning`]); how stores of partitions are built
//! (`vervet_store::StoreBuilder`); connections to other servers (`vervet-peer`); changes, which
//! `vervet-delta` adds on top.
#![forbid(unsafe_code)]

mod base;
mod build;
mod bytes;
mod call;
mod catalog;
mod catalog_piece;
mod copied;
mod counted;
mod directory;
mod gather;
mod kept;
mod keyed;
mod long_lists;
mod remote;
mod replicas;
mod routes;
mod split;
mod statistics;
mod together;
mod window;

pub use base::PartitionedBase;
pub use build::finish;
pub use catalog_piece::CatalogPiece;
pub use directory::{PartitionDirectory, RemotePart};
pub use remote::{Answer, Remote};
pub use replicas::Replicas;

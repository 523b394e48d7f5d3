//! A graph over several servers: the map of the cluster, its files, and the connections between its servers.
//!
//! [`init`] cuts a graph into partitions and writes a directory for each server; [`Cluster::open`] opens one:
//! a [`vervet::Database`] that has some partitions itself and reads the others from their servers. So every
//! query language, interface and endpoint works on every server, and gives the answers of one database.
//!
//! # Shape
//! `map`: which server has which partitions, a file. `layout`: which of them is asked. `init`: making the
//! directories. `cluster`: opening one. `check`: verifying one. `damage`: remedies. `peer_part`: another
//! server. `reachability`: which of them answer. `following`: changes from the log of another server.
//! `writer_log`, `voter_log`: logs for the change feed. `origin`: which cluster a log belongs to.
//! `voting`: changes whose log several servers have; `beginning`: how a server begins as a voter.
//! `generation`: the data of a server, with more changes in them from time to time. `serving`: which of them
//! it answers others with. `members`: the servers at present, which join (`invite`) and leave (`remove`).
//! `forwarding`: requests of clients for the server that takes changes. `merging`, `merging_together`: making
//! new data; `held`: those that are open; `holdings`: which servers have them. `fetch`: copying them from
//! another server. `moving`: partitions that go to other servers, which an operator asks for (`rebalance`).
//! `backup`: copying data and log to a directory (`backup_directory`), by requests of their own
//! (`backup_feed`). `restore`: the graph of such a copy. `check_backup`: verifying it. `stored_backup`: the
//! same where the copy is not a directory (`backup_store`).
//! # Not here
//! Partitions and requests (`vervet-partition`); connections (`vervet-peer`); HTTP (`vervet-server`).
#![forbid(unsafe_code)]

mod backup;
mod backup_directory;
mod backup_feed;
mod backup_store;
mod beginning;
mod changes_status;
mod check;
mod check_backup;
mod cluster;
mod damage;
mod fetch;
mod files;
mod following;
mod forwarding;
mod generation;
mod held;
mod holdings;
mod identity;
mod init;
mod invite;
mod layout;
mod load;
mod map;
mod members;
mod merge;
mod merging;
mod merging_together;
mod moving;
mod origin;
mod peer_part;
mod reachability;
mod rebalance;
mod rejoin;
mod remove;
mod restore;
mod serving;
mod storage;
mod stored_backup;
mod voter_log;
mod voting;
mod writer_log;

pub use backup::{BackedUp, BackupOptions, backup};
pub use backup_directory::{BACKUP_FILE, BackupPoint, BackupStatus, backup_status};
pub use backup_store::{BackupStore, StoredObject, StoredText};
pub use changes_status::{ChangesStatus, VotersStatus};
pub use check::{Checked, check};
pub use check_backup::{CheckedBackup, check_backup};
pub use cluster::{Cluster, ClusterStatus, PeerStatus, ServerStatus};
pub use forwarding::Forwarded;
pub use init::{AUTHORITY_KEY_FILE, InitOptions, check_new, init, init_empty, renew_certificate};
pub use invite::{InviteOptions, invite};
pub use load::{ClusterLoadOptions, ClusterLoadReport, LoadEvent, load};
pub use map::{ClusterMap, MAP_FILE, ServerEntry};
pub use rebalance::{Rebalance, RebalanceEvent, RebalancePlan, plan_rebalance, rebalance};
pub use rejoin::{Rejoined, rejoin};
pub use remove::remove;
pub use restore::{RestoreOptions, Restored, Until, restore};
pub use storage::ClusterStorage;
pub use stored_backup::{backup_to_store, check_stored_backup, restore_from_store, stored_backup_status};
pub use vervet_driver_cluster::ClusterCounts;

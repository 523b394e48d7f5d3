//! What merging changes into data needs of a server, and what it hands over.

use crate::members::Members;
use std::path::PathBuf;
use std::sync::Arc;
use vervet::{Applied, Environment, Start};
use vervet_model::Result;

/// New data, and what they are of.
#[derive(Clone, Debug)]
pub(crate) struct Merged {
    pub(crate) start: Start,
    /// The graph up to there over the data before; `None`: it is made when it is needed, by a leader that
    /// gives its leadership up if it cannot make it, or if the data are earlier ones.
    pub(crate) applied: Option<Applied>,
}

/// The part of a server that follows a log, as merging needs it.
pub(crate) trait Merge: Send + Sync + 'static {
    /// Number of changes over the data, and bytes of the log since they were made.
    fn changes(&self) -> (u64, u64);

    /// The graph of all records so far.
    ///
    /// # Errors
    /// The log cannot be read.
    fn applied(&self) -> Result<Applied>;

    /// The graph of all records over `start`, or of those up to `until`.
    ///
    /// # Errors
    /// The log cannot be read, or lacks some of them.
    fn applied_over(&self, start: Start, until: Option<u64>) -> Result<Applied>;

    /// Whether this server leads.
    fn leads(&self) -> bool;

    /// Number of the base that it goes on from, or has begun to ([`vervet_store::Base::number`]).
    fn start_number(&self) -> u64;

    /// Whether it has not gone on yet from the last data that it took note of.
    fn is_pending(&self) -> bool;

    /// The last entry that the log does not have any more, as far as this server knows.
    fn purged(&self) -> u64;

    /// Takes note of new data, which are durable, and of the position of the data before them.
    ///
    /// # Errors
    /// The log takes no note; the data stay.
    fn go_on_from(&self, merged: Merged, before: u64) -> Result<()>;
}

/// The directory of the data of a server, and the others.
pub(crate) struct Place {
    pub(crate) environment: Environment,
    pub(crate) directory: PathBuf,
    /// The build of the first data.
    pub(crate) origin: u64,
    /// The other servers have data of their own.
    pub(crate) members: Arc<Members>,
}

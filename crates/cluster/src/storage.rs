//! Sizes of the files of a server, and syncs of its log, for metrics.

use crate::cluster::Cluster;
use vervet::FileBytes;
use vervet_log::LogStatus;

/// Files and log of a server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClusterStorage {
    /// Bytes of its files: data, logs, map and certificates.
    pub files: FileBytes,
    /// The log of a voter; `None`: this server has none, or it is that of its database.
    pub log: Option<LogStatus>,
}

impl Cluster {
    /// The sizes of the files of this server.
    ///
    /// # Cost
    /// One system call for each file.
    #[must_use]
    pub fn storage(&self) -> ClusterStorage {
        let (environment, directory) = self.place();
        ClusterStorage { files: FileBytes::of_directory(environment, directory), log: self.voter_log() }
    }
}

//! The graph of the first records of a log, from which this process or another one goes on.
//!
//! # Shape
//! [`Applied`] is such a graph in memory, over the base that it began with; [`Applied::write`] writes it as
//! the files of a base, and [`crate::Start`] is that base with the place in the log. Terms and edges keep
//! their numbers, so the next records fit both.

use crate::base::{change_count, write_partitions};
use crate::mutation::Timestamp;
use std::path::Path;
use vervet_delta::Version;
use vervet_env::Environment;
use vervet_model::{Result, Watch};
use vervet_partition::PartitionDirectory;

/// See the header of this file.
#[derive(Clone, Debug)]
pub struct Applied {
    pub(crate) version: Version,
    /// The last commit in it.
    pub timestamp: Timestamp,
    /// Position of the last record in it.
    pub position: u64,
    /// The texts of its constraints.
    pub constraints: Vec<String>,
    /// Numbers of vertices and of literals that it has.
    pub(crate) ends: [u64; 2],
}

impl Applied {
    /// `version`: no other process or thread adds terms to it from now on that have no records.
    pub(crate) fn new(
        version: Version,
        timestamp: Timestamp,
        constraints: Vec<String>,
        position: u64,
    ) -> Self {
        let ends = [version.terms().vertex_end(), version.terms().literal_end()];
        Self { version, timestamp, position, constraints, ends }
    }

    /// Number of changed statements and new terms over its base.
    #[must_use]
    pub fn change_count(&self) -> u64 {
        change_count(&self.version)
    }

    /// Number of statements of its base.
    #[must_use]
    pub fn base_statement_count(&self) -> u64 {
        self.version.base().statement_count()
    }

    /// Writes it to a directory without a graph, in the partitions of its base.
    ///
    /// # Errors
    /// Input: the directory has a graph. A full disk and other I/O errors; those of `watch`.
    /// # Cost
    /// The whole graph is sorted and encoded; up to 1 GB of memory, then temporary files.
    pub fn write(
        &self,
        environment: &Environment,
        directory: &Path,
        watch: &Watch<'_>,
    ) -> Result<PartitionDirectory> {
        let partitioning = self.version.base().partitioning();
        let graph = (&self.version, self.constraints.clone(), self.ends);
        write_partitions(environment, graph, partitioning, directory, watch)
    }
}

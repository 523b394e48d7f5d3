//! Verifying the directory of one server.

use crate::beginning;
use crate::cluster::{log_directory, open_files, open_origin};
use crate::damage::with_remedy;
use crate::layout::remote_parts;
use crate::map::{ClusterMap, ServerEntry};
use crate::origin::has_log;
use std::path::Path;
use std::sync::Arc;
use vervet::{CheckedLog, DatabaseOptions};
use vervet_model::{Error, Result};
use vervet_partition::{Answer, Remote};
use vervet_raft::{CheckedEntries, Replica};
use vervet_store::Base;

/// What [`check`] has verified.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checked {
    /// Name of the cluster.
    pub cluster: String,
    /// Name of the server.
    pub server: String,
    /// Number of partitions of the server, and of all.
    pub partitions: (usize, usize),
    /// Number of statements of the whole graph.
    pub statements: u64,
    /// Size of the files of the server, without the log of changes.
    pub size_bytes: u64,
    /// The log of changes, if the server has one.
    pub log: Option<CheckedLog>,
    /// The replicated log, if the server is a voter that has begun it.
    pub voter_log: Option<CheckedEntries>,
}

/// Another server, which is not asked.
#[derive(Debug)]
struct Elsewhere(String);

impl Remote for Elsewhere {
    fn name(&self) -> &str {
        &self.0
    }

    fn send<'a>(&'a self, _: &[u8]) -> Result<Box<dyn Answer + 'a>> {
        Err(Error::internal("a check asks no other server"))
    }
}

/// Verifies the directory of a server: its map and certificates, that they belong to its data, and every byte
/// of its partitions and of its logs. Whether the partitions of other servers agree with them is
/// not known here.
///
/// # Errors
/// Input: a file is missing, or is that of another cluster or server. Corrupt: damaged data.
pub fn check(directory: &Path, options: &DatabaseOptions) -> Result<Checked> {
    verify(directory, options).map_err(|error| with_remedy(error, directory))
}

fn verify(directory: &Path, options: &DatabaseOptions) -> Result<Checked> {
    let map = ClusterMap::read(directory)?;
    let (_, generation) = open_files(directory, &map, options)?;
    let (files, build) = (&generation.files, generation.origin);
    let own = map.own()?;
    files.verify_files(&own.partitions)?;
    let elsewhere = |entry: &ServerEntry| Some(Arc::new(Elsewhere(entry.name.clone())) as Arc<dyn Remote>);
    let own_partitions = own.partitions.iter().copied().collect();
    let others = remote_parts(&map, &own_partitions, files.build(), false, &elsewhere);
    let [own_only, _] = files.bases(&own.partitions, &others)?;
    own_only.validate()?;
    let log = log_directory(directory, build);
    let log = match has_log(&options.environment, &log) {
        true => {
            open_origin(directory, build)?.check(&options.environment, &log)?;
            Some(vervet::check_log(&options.environment, &log)?)
        }
        false => None,
    };
    let is_voter = map.voters.contains(&own.name) && !beginning::new_file(directory, build).exists();
    let voter_log = is_voter
        .then(|| Replica::check_log(&options.environment, &beginning::log_directory(directory, build)))
        .transpose()?;
    Ok(Checked {
        cluster: map.name.clone(),
        server: own.name.clone(),
        partitions: (own.partitions.len(), files.partitioning().count()),
        statements: files.statement_count(),
        size_bytes: own_only.parts()?.iter().map(|part| part.bytes).sum(),
        log,
        voter_log,
    })
}

//! `vervet-bench snb`: the social network, in Gremlin and in SPARQL, and TinkerGraph on the same files and
//! texts.
//!
//! # Shape
//! * `network`: the files, from an archive or generated. `substitution`: parameter values. `workload`: the
//!   operations. `run`: rows and times. `peer`: a process with TinkerGraph. `figures`: tables and targets.
//!   `options`: the options. `resident`: the task of the subprocess that measures memory.
//! * Each operation runs with each of its parameters once, in both languages, and the rows are counted; both
//!   languages must return equally many, and the peer the same rows. Then come rounds over all parameters, as
//!   many as the time allows.
//! * Times are CPU times of all threads together, from the text to values: parsing, planning, running.

mod figures;
mod network;
mod options;
mod peer;
mod resident;
mod run;
mod substitution;
mod workload;

pub use network::Network;
pub use options::SnbOptions;
pub use peer::PeerOptions;
pub(crate) use peer::parameters_as_json;
pub(crate) use resident::resident;
pub(crate) use run::{Found, canonical, hash, once, run_once};
pub(crate) use substitution::SubstitutionParameters;
pub(crate) use workload::{Operation, operations};

use crate::measure::process_cpu;
use crate::sections::SectionReport;
use figures::Stored;
use std::path::Path;
use std::time::{Duration, Instant};
use vervet::{Database, DatabaseOptions};
use vervet_model::{Error, Result};

/// Runs the benchmark.
///
/// # Errors
/// An unknown operation; a failure; the languages differ in the number of rows, or the peer in the rows.
pub fn run(network: &Network, options: &SnbOptions) -> Result<SectionReport> {
    let failed = |error: std::io::Error| Error::io("make a temporary folder", &error);
    let folder = tempfile::Builder::new().prefix("vervet-bench-").tempdir().map_err(failed)?;
    let directory = folder.path().join("db");
    let mut stored = store(network, &directory)?;
    let database = Database::open(&directory)?;
    let substitution = SubstitutionParameters::new(&database, options.parameters.as_deref(), options.count)?;
    let operations = workload::operations(&substitution, &options.only)?;
    if let Some(program) = &options.program {
        stored.resident_bytes = Some(crate::processes::resident(program, &directory, options)?);
    }
    let mut peer = match &options.peer {
        Some(peer) => Some(peer::Peer::start(peer, network, folder.path())?),
        None => None,
    };
    let mut outcomes = Vec::with_capacity(operations.len());
    for operation in &operations {
        let mut outcome = run::run(&database, operation, options.time)?;
        if let Some(peer) = &mut peer {
            outcome.peer = peer.run(operation, options.time)?;
            outcome.check_peer(operation)?;
        }
        eprintln!("{}", figures::line(operation, &outcome));
        outcomes.push(outcome);
    }
    let peer = match peer {
        Some(peer) => Some(peer.end()?),
        None => None,
    };
    Ok(figures::report(network, &stored, &operations, &outcomes, peer.as_ref()))
}

/// Loads into a directory, and into memory; the directory is closed.
fn store(network: &Network, directory: &Path) -> Result<Stored> {
    let rows = network.rows();
    let timed = |database: &Database| -> Result<(f64, f64)> {
        let (cpu, wall) = (process_cpu(), Instant::now());
        network.load(database)?;
        Ok((process_cpu().saturating_sub(cpu).as_secs_f64(), wall.elapsed().as_secs_f64()))
    };
    let in_memory = Database::in_memory_with(DatabaseOptions::default());
    let memory = timed(&in_memory)?;
    drop(in_memory);
    let on_disk = Database::open_or_create(directory)?;
    let disk = timed(&on_disk)?;
    drop(on_disk);
    let failed = |error: std::io::Error| Error::io(format_args!("list {}", directory.display()), &error);
    let mut disk_bytes = 0;
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        disk_bytes += entry.and_then(|entry| entry.metadata()).map_err(failed)?.len();
    }
    Ok(Stored { rows, memory, disk, disk_bytes, resident_bytes: None })
}

/// Runs a small version on a generated network, without the peer.
///
/// # Errors
/// As [`run`].
pub fn self_check() -> Result<SectionReport> {
    let options = SnbOptions {
        only: Vec::new(),
        parameters: None,
        count: 4,
        time: Duration::ZERO,
        peer: None,
        program: None,
    };
    run(&Network::made(60), &options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_agree_on_a_generated_network() {
        let report = self_check().unwrap().to_string();
        for part in ["IS1", "IC14", "3 hops", "Grasper Q8", "G-Tran IC4", "bytes on disk"] {
            assert!(report.contains(part), "{part} is missing in:\n{report}");
        }
    }

    #[test]
    fn unknown_operations_are_errors() {
        let options = SnbOptions {
            only: vec!["IS9".to_owned()],
            parameters: None,
            count: 1,
            time: Duration::ZERO,
            peer: None,
            program: None,
        };
        assert!(run(&Network::made(10), &options).is_err());
    }
}

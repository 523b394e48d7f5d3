//! `vervet-bench transactions`: the cost of transactions, for writers and for readers.
//!
//! # Shape
//! One file for each part; each returns sections (a table and a sentence or two) and targets. `clients` runs
//! the threads, `graphs` creates the databases, `options` has the options.

mod bank;
mod clients;
mod graphs;
mod inserts;
mod lbv;
mod options;
mod readers;
mod steady;

pub(crate) use clients::run as run_clients;
pub use clients::{Load, Outcome};
pub use graphs::{Data, StorageLocation};
pub(crate) use lbv::LbvMix;
pub use options::{PARTS, TransactionOptions};

use crate::sections::SectionReport;
use std::time::Duration;
use vervet_model::{Error, ErrorKind, Result};

/// Runs the benchmark.
///
/// # Errors
/// An unknown part; a failure, or a wrong value.
pub fn run(data: &Data, options: &TransactionOptions) -> Result<SectionReport> {
    if let Some(part) = options.only.iter().find(|part| !PARTS.contains(&part.as_str())) {
        let message = format!("there is no part {part:?}");
        return Err(Error::new(ErrorKind::Input, message).with_hint(format!("parts: {}", PARTS.join(", "))));
    }
    let mut report = SectionReport::new(format!("Transactions on {}", data.name()));
    let wants = |part: &str| options.only.is_empty() || options.only.iter().any(|only| only == part);
    if wants("inserts") {
        inserts::single(data, options, &mut report)?;
    }
    if wants("sync") {
        inserts::group_commit(data, options, &mut report)?;
    }
    if wants("bulk") {
        inserts::bulk(data, options, &mut report)?;
    }
    if wants("readers") {
        readers::run(data, options, &mut report)?;
    }
    if wants("lbv") {
        lbv::run(data, options, &mut report)?;
    }
    if wants("bank") {
        bank::run(options, &mut report)?;
    }
    if wants("steady") {
        steady::run(data, options, &mut report)?;
    }
    Ok(report)
}

/// Runs a small version of every part on generated data, with all its checks.
///
/// # Errors
/// As [`run`].
pub fn self_check() -> Result<Vec<SectionReport>> {
    let options = TransactionOptions {
        only: Vec::new(),
        time: Duration::from_millis(20),
        updates: 0,
        steady_time: Some(Duration::from_millis(200)),
        rate: None,
        bulk: 2_000,
        clients: vec![2],
    };
    let universities =
        TransactionOptions { only: vec!["bulk".to_owned(), "inserts".to_owned()], ..options.clone() };
    Ok(vec![run(&Data::made(1)?, &universities)?, run(&Data::made_persons(500), &options)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_runs() {
        let reports = self_check().unwrap();
        let text = reports[1].to_string();
        for part in ["One edge", "Group commit", "Recovery", "Readers", "LBV", "Bank", "Steady"] {
            assert!(text.contains(part), "{part} is missing in:\n{text}");
        }
        let options = TransactionOptions {
            only: vec!["nonsense".to_owned()],
            time: Duration::ZERO,
            updates: 0,
            steady_time: None,
            rate: Some(1.0),
            bulk: 0,
            clients: Vec::new(),
        };
        assert!(run(&Data::made_persons(10), &options).is_err());
    }
}

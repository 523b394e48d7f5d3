//! Damaged logs: detection of the damage, and cutting the log there.
//!
//! # Why cutting is explicit
//! Acknowledged commits may follow the damage. A log torn by a loss of power has none after the tear, and is
//! cut automatically (docs/format.md).

use crate::directory::DirectoryLock;
use crate::mutation::Timestamp;
use crate::record::{self, MutationReader};
use crate::recovery::{self, Recovered};
use std::path::{Path, PathBuf};
use vervet_env::Environment;
use vervet_log::{Log, LogId, LogOptions, Lsn, ReadOptions};
use vervet_model::{Error, ErrorKind, Result};
use vervet_store::{Base, Store};

/// Location of log damage, and the loss if the log is cut there.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Damage {
    /// The damaged file.
    pub file: PathBuf,
    /// Position in the file, in bytes.
    pub offset: u64,
    /// Description of the damage.
    pub reason: String,
    /// The last commit before the damage.
    pub last_kept: Timestamp,
    /// Number of bytes that a cut discards, including later files.
    pub bytes_lost: u64,
    /// Number of readable records among them: commits, and terms that they use. Damaged records are not
    /// counted, so the true number may be larger.
    pub records_lost: u64,
}

/// Looks for damage in the log of the database in `directory`. Changes nothing, and takes no lock: another
/// process may write to the database meanwhile.
///
/// # Errors
/// [`ErrorKind::Input`]: there is no database. [`ErrorKind::Corrupt`]: damage that cutting the log cannot
/// repair.
pub fn find_damage(environment: &Environment, directory: &Path) -> Result<Option<Damage>> {
    match recovery::recover_beside(environment, directory) {
        Ok(_) => Ok(None),
        Err(error) if matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unavailable) => {
            examine(environment, directory, false)
        }
        Err(error) => Err(error),
    }
}

/// What [`check_log`] has read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct CheckedLog {
    /// Number of commits.
    pub commits: u64,
    /// Their payload and that of their terms, in bytes.
    pub bytes: u64,
}

/// Reads the log in `directory` without its base, which may be elsewhere: verifies every record, and that the
/// commits are consecutive. Changes nothing; another process may write to the log meanwhile.
///
/// # Errors
/// [`ErrorKind::Input`]: there is no database. [`ErrorKind::Corrupt`]: a record is damaged or missing.
pub fn check_log(environment: &Environment, directory: &Path) -> Result<CheckedLog> {
    let place = Store::open(environment, directory)?.checkpoint_position();
    let present = recovery::check_log(environment, directory, place)?;
    let id = place.filter(|place| place.begun || present.is_some()).map(|place| LogId(place.id));
    let options = ReadOptions { beside_writer: true, id, ..ReadOptions::default() };
    let mut last = place.map(|place| Timestamp(place.timestamp));
    let mut checked = CheckedLog::default();
    let from = Lsn(place.map_or(0, |place| place.lsn));
    vervet_log::read(environment, directory, from, &options, &mut |lsn, kind, payload| {
        let damaged = |what: &str| {
            let what = format!("the record of {what} before {lsn} is damaged");
            Error::corrupt(format_args!("log of {}", directory.display()), what)
        };
        checked.bytes += payload.len() as u64;
        let timestamp = match kind {
            record::TERM => {
                record::read_term(payload).ok_or_else(|| damaged("a term"))?;
                return Ok(());
            }
            record::COMMIT => {
                let mut reader = MutationReader::of(payload).ok_or_else(|| damaged("a commit"))?;
                while let Some(mutation) = reader.next_mutation() {
                    mutation.ok_or_else(|| damaged("a commit"))?;
                }
                record::timestamp(payload)
            }
            record::CONSTRAINTS => record::read_constraints(payload).map(|(timestamp, _)| timestamp),
            _ => {
                return Err(Error::new(ErrorKind::Unsupported, format!("a record of unknown kind {kind}"))
                    .with_hint("check it with the version of Vervet that wrote it"));
            }
        };
        let timestamp = timestamp.ok_or_else(|| damaged("a commit"))?;
        if last.is_some_and(|last| timestamp != last.next()) {
            return Err(damaged(&format!("commit {timestamp}, which does not follow the one before it,")));
        }
        last = Some(timestamp);
        checked.commits += 1;
        Ok(())
    })?;
    Ok(checked)
}

/// Cuts the log of the database in `directory` at its damage; returns the loss, or `None` for an undamaged
/// log. All commits before the damage are durable on return.
///
/// # Errors
/// As [`find_damage`]; [`ErrorKind::Unavailable`]: another process writes to it. [`ErrorKind::Io`]: the call
/// may be repeated.
pub fn cut_at_damage(environment: &Environment, directory: &Path) -> Result<Option<Damage>> {
    // Before the lock, which would create a missing directory.
    Store::open(environment, directory)?;
    let _lock = DirectoryLock::take(environment, directory)?;
    examine(environment, directory, true)
}

fn examine(environment: &Environment, directory: &Path, cut: bool) -> Result<Option<Damage>> {
    let store = Store::open(environment, directory)?;
    let options = ReadOptions { truncate_at_damage: true, ..ReadOptions::default() };
    let Recovered { timestamp, found, .. } = recovery::recover(environment, directory, store, &options)?;
    let Some((place, reason)) = found.truncation.as_ref().and_then(|cut| Some((cut, cut.damage.clone()?)))
    else {
        return Ok(None);
    };
    let damage = Damage {
        file: place.file.clone(),
        offset: place.offset,
        reason,
        last_kept: timestamp,
        bytes_lost: place.bytes,
        records_lost: place.records,
    };
    if cut {
        Log::open(environment, directory, found, LogOptions::default())?.close()?;
    }
    Ok(Some(damage))
}

//! The graph of a cluster as it was backed up ([`crate::backup()`]), at its end or at an earlier commit.
//!
//! # Shape
//! The data of a base, with the records behind them applied up to the commit, are a database that is only
//! read. [`crate::init`] makes a cluster of it, [`vervet::Database::backup`] a database.
//! # Invariants
//! The data are verified before they are used, and each record when it is read. Commits follow each other
//! without a gap, and end at the one that the manifest names.
//! # Cost
//! Changes are in memory until they are [many](RestoreOptions::changes_max); then they are merged into data
//! in a temporary directory, as a server does.

use crate::backup_directory::{BackupPoint, Base, Before, Manifest, Point, base_path, records_path};
use crate::generation::{self, Generation, remove_older};
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use vervet::{Database, DatabaseOptions, Environment, Follower, LogRecord, Timestamp, commit_timestamp};
use vervet_driver_local::LocalDriver;
use vervet_log::{LogId, Lsn, ReadOptions};
use vervet_model::{Error, ErrorKind, Result, Watch};

/// About the most bytes of records that are applied together.
const BATCH_BYTES: usize = 4 << 20;

/// Changes that stay in memory, if this is more than this share of the statements.
const CHANGES_MIN: u64 = 1 << 20;
const CHANGES_SHARE: u64 = 4;

/// Where a restore ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Until(End);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// Behind this commit.
    Commit(u64),
    /// At the last point whose call began at this time, or before.
    Time(OffsetDateTime),
}

impl FromStr for Until {
    type Err = Error;

    /// A number of a commit, or a time as in RFC 3339.
    fn from_str(text: &str) -> Result<Self> {
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            let commit = text.parse().map_err(|_| Error::new(ErrorKind::Input, "the number is too large"));
            return Ok(Self(End::Commit(commit?)));
        }
        let time = OffsetDateTime::parse(text, &Rfc3339);
        time.map(|time| Self(End::Time(time))).map_err(|_| {
            let what = format!("{text:?} is neither the number of a commit nor a time");
            Error::new(ErrorKind::Input, what).with_hint("write for example 1234, or 2026-11-29T12:00:00Z")
        })
    }
}

/// How [`restore`] reads a backup.
#[derive(Clone, Debug)]
pub struct RestoreOptions<'a> {
    /// Files, clock, randomness.
    pub environment: Environment,
    /// Where to end; `None`: at the last point.
    pub until: Option<Until>,
    /// A directory for temporary files, which is used as long as the result is.
    pub scratch: &'a Path,
    /// Changes that are in memory at once; `None`: a million, or a quarter of the statements.
    pub changes_max: Option<u64>,
}

/// A graph of a backup.
#[derive(Clone, Debug)]
pub struct Restored {
    /// The graph, which is only read. It has open files in the backup, and in the temporary directory.
    pub database: Database,
    /// Name of the cluster.
    pub cluster: String,
    /// The last commit in it.
    pub timestamp: Timestamp,
}

/// The graph of a backup. `watch` gets a step for each record.
///
/// # Errors
/// Input: there is no backup, or it does not have the commit or the time that is wanted. Corrupt: it is
/// damaged. Io; those of `watch`.
pub fn restore(backup: &Path, options: &RestoreOptions<'_>, watch: &Watch<'_>) -> Result<Restored> {
    let RestoreOptions { environment, until, scratch, changes_max } = options;
    let manifest = Manifest::open(environment, backup)?;
    let Plan { base, points, timestamp } = plan(&manifest, *until)?;
    let origin = origin_of(&manifest)?;
    let path = base_path(backup, base.number);
    let generation = open_verified(environment, &manifest, base, &path)?;
    let changes_max =
        changes_max.unwrap_or_else(|| CHANGES_MIN.max(generation.files.statement_count() / CHANGES_SHARE));
    watch.expect(points.iter().map(|point| point.records).sum());
    let options = DatabaseOptions { environment: environment.clone(), ..DatabaseOptions::default() };
    let refusal = Error::new(ErrorKind::Unsupported, "a graph that is being restored is only read");
    let driver = Arc::new(LocalDriver::new(false));
    let (database, follower) = Database::following(generation.whole()?, refusal, driver, &options)?;
    let place = Place { environment, scratch, origin, changes_max };
    let mut applying =
        Applying { follower, place, batch: Vec::new(), bytes: 0, position: base.position, watch };
    for (before, point) in base.segments().take(points.len()) {
        read_segment(environment, (&path, before), point, timestamp, &mut |kind, payload| {
            applying.take(kind, payload)
        })
        .map_err(|error| with_remedy(error, Some(before)))?;
    }
    applying.apply()?;
    let Timestamp(reached) = database.newest_commit();
    if reached != timestamp {
        return Err(Error::internal(format!("commit {reached} was restored in place of {timestamp}")));
    }
    Ok(Restored { database, cluster: manifest.cluster, timestamp: Timestamp(timestamp) })
}

/// What a restore reads.
#[derive(Debug)]
pub(crate) struct Plan<'m> {
    pub(crate) base: &'m Base,
    pub(crate) points: &'m [Point],
    /// The last commit.
    timestamp: u64,
}

pub(crate) fn plan(manifest: &Manifest, until: Option<Until>) -> Result<Plan<'_>> {
    let bases = &manifest.bases;
    let none = || Error::internal("a backup without a base");
    let whole = |base| -> Result<Plan<'_>> {
        let base: &Base = base;
        Ok(Plan { base, points: &base.points, timestamp: base.last()?.timestamp })
    };
    match until {
        None => whole(bases.last().ok_or_else(none)?),
        Some(Until(End::Commit(commit))) => {
            let has = |base: &&Base| {
                base.timestamp <= commit && base.points.last().is_some_and(|last| commit <= last.timestamp)
            };
            let base = bases.iter().rev().find(has).ok_or_else(|| without_commit(bases, commit))?;
            let needed = base.points.partition_point(|point| point.timestamp < commit) + 1;
            let points = &base.points[..needed.min(base.points.len())];
            Ok(Plan { base, points, timestamp: commit })
        }
        Some(Until(End::Time(until))) => {
            let is_before =
                |point: &Point| OffsetDateTime::parse(&point.time, &Rfc3339).is_ok_and(|time| time <= until);
            for base in bases.iter().rev() {
                if let Some(at) = base.points.iter().rposition(is_before) {
                    let points = &base.points[..=at];
                    return Ok(Plan { base, points, timestamp: base.points[at].timestamp });
                }
            }
            let first = bases.first().ok_or_else(none)?.points.first().map(Point::shown);
            let BackupPoint { time, timestamp } = first.ok_or_else(none)?;
            let what = format!("the backup begins at {time}, with commit {timestamp}");
            Err(Error::new(ErrorKind::Input, what).with_hint(format!("restore it --until {time}, or later")))
        }
    }
}

/// Why there is no graph of a commit.
fn without_commit(bases: &[Base], commit: u64) -> Error {
    // Ascending; one copy of the data may begin before the changes behind the one before end.
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for base in bases {
        let last = base.points.last().map_or(base.timestamp, |last| last.timestamp);
        match ranges.last_mut().filter(|before| base.timestamp <= before.1.saturating_add(1)) {
            Some(before) => *before = (before.0.min(base.timestamp), before.1.max(last)),
            None => ranges.push((base.timestamp, last)),
        }
    }
    let range = |(first, last): &(u64, u64)| match first == last {
        true => last.to_string(),
        false => format!("{first} to {last}"),
    };
    let ranges: Vec<String> = ranges.iter().map(range).collect();
    let what = format!("the backup does not have commit {commit}; it has {}", ranges.join(", "));
    Error::new(ErrorKind::Input, what)
        .with_hint("name one of these with --until, or leave it out for the last one")
}

pub(crate) fn origin_of(manifest: &Manifest) -> Result<u64> {
    let damaged = |_| Error::corrupt("the manifest of the backup", "its origin is no number");
    u64::from_str_radix(&manifest.origin, 16).map_err(damaged)
}

/// Opens the data of a base, and compares every byte with their catalog.
pub(crate) fn open_verified(
    environment: &Environment,
    manifest: &Manifest,
    base: &Base,
    path: &Path,
) -> Result<Generation> {
    let opened = base.open_data(environment, origin_of(manifest)?, path).and_then(|generation| {
        generation.verify(&generation.all_partitions())?;
        Ok(generation)
    });
    // Records behind data are of no use without them; those of other bases have data of their own.
    let before = manifest.bases.iter().take_while(|other| other.number < base.number).last();
    let last = before.and_then(|before| before.points.last());
    let sound = last.map(|last| Before { position: last.position, timestamp: last.timestamp });
    opened.map_err(|error| with_remedy(error, sound))
}

/// Gives an error of a damaged backup the remedy. `sound`: the last state before the damage.
pub(crate) fn with_remedy(error: Error, sound: Option<Before>) -> Error {
    if error.kind() != ErrorKind::Corrupt {
        return error;
    }
    let earlier = match sound {
        Some(Before { timestamp, .. }) => format!("restore an earlier commit (--until {timestamp})"),
        None => "restore another backup".to_owned(),
    };
    error.with_hint(format!("put back a copy of the backup that was made earlier, or {earlier}"))
}

/// Visits the records of a point up to the commit `until`: kind and payload of each.
///
/// # Errors
/// Corrupt: a record is missing or damaged. Those of `visit`.
pub(crate) fn read_segment(
    environment: &Environment,
    (base, before): (&Path, Before),
    point: &Point,
    until: u64,
    visit: &mut dyn FnMut(u8, &[u8]) -> Result<()>,
) -> Result<()> {
    if point.records == 0 {
        return Ok(());
    }
    let path = records_path(base, before.position);
    let damaged = |what: &dyn std::fmt::Display| Error::corrupt(path.display(), what);
    let id =
        u64::from_str_radix(&point.log, 16).map_err(|_| damaged(&"the manifest does not name its log"))?;
    if !environment.files.exists(&path).unwrap_or(false) {
        return Err(damaged(&"it is missing"));
    }
    let options = ReadOptions { id: Some(LogId(id)), ..ReadOptions::default() };
    let (mut timestamp, mut records, mut end, mut is_enough) = (before.timestamp, 0, 0, false);
    let read = vervet_log::read(environment, &path, Lsn(0), &options, &mut |lsn, kind, payload| {
        if let Some(Timestamp(found)) = commit_timestamp(kind, payload)? {
            if found != timestamp + 1 {
                return Err(damaged(&format_args!("commit {found} follows commit {timestamp}")));
            }
            if found > until {
                is_enough = true;
                return Err(Error::internal("enough records"));
            }
            timestamp = found;
        }
        (records, end) = (records + 1, lsn.0);
        visit(kind, payload)
    });
    match read {
        _ if is_enough => return Ok(()),
        Err(error) => return Err(error),
        Ok(found) if found.truncation.is_some() => return Err(damaged(&"its last record is cut off")),
        Ok(_) => {}
    }
    if (records, end, timestamp) != (point.records, point.end, point.timestamp) {
        let expected = format!("{} to commit {}", point.records, point.timestamp);
        return Err(damaged(&format_args!(
            "it has {records} records to commit {timestamp}, and the manifest names {expected}"
        )));
    }
    Ok(())
}

/// Where changes are merged that are many.
struct Place<'a> {
    environment: &'a Environment,
    scratch: &'a Path,
    origin: u64,
    changes_max: u64,
}

/// Applies records to a graph.
struct Applying<'a> {
    follower: Follower,
    place: Place<'a>,
    /// Records that are not applied yet, and their bytes.
    batch: Vec<LogRecord>,
    bytes: usize,
    /// Rises with each record, as a position in a log does.
    position: u64,
    watch: &'a Watch<'a>,
}

impl Applying<'_> {
    fn take(&mut self, kind: u8, payload: &[u8]) -> Result<()> {
        self.position += 1;
        self.bytes += payload.len() + size_of::<LogRecord>();
        self.batch.push(LogRecord { lsn: self.position, kind, payload: payload.to_vec() });
        let is_enough = self.bytes >= BATCH_BYTES || self.batch.len() as u64 > self.place.changes_max;
        if is_enough { self.apply() } else { Ok(()) }
    }

    fn apply(&mut self) -> Result<()> {
        let (follower, place) = (&self.follower, &self.place);
        follower.apply(&self.batch)?;
        self.watch.advance(self.batch.len() as u64)?;
        self.batch.clear();
        self.bytes = 0;
        let applied = follower.applied();
        if applied.change_count() > place.changes_max {
            let Place { environment, scratch, origin, .. } = place;
            let merged = generation::write(environment, scratch, (*origin, false), &applied, self.watch)?;
            remove_older(environment, scratch, merged.checkpoint.position);
            follower.restart_over(merged.whole()?);
            follower.show()?;
        }
        Ok(())
    }
}

//! Backing up a cluster whose voters take changes, while it
//! runs.
//!
//! # Shape
//! A call copies the data of a server (`fetch.rs`) and all records of the log behind them, up to the newest
//! entry that is committed when it begins (`backup_feed.rs`). The next call into the same directory adds the
//! records since. Where no server has them any more, since they were merged into data, it copies data again,
//! as a further base of the same backup.
//! # Why this is right
//! The data of any server, with the records behind their position, are the graph of one commit, whichever
//! servers they are from: terms and edges keep their numbers in a merge, and positions are those of the log
//! of the voters.
//! # Cost
//! The data are read once at one server. A call without changes sends one request.

use crate::backup_directory::{
    BackupDirectory, BackupPoint, Base, Before, Point, hexadecimal, present, records_path,
    unfinished_records_path,
};
use crate::backup_feed::{Feed, FeedAnswer};
use crate::fetch::{Wanted, fetch};
use crate::files::{create_private, failed};
use crate::identity::open_identity;
use crate::map::ClusterMap;
use crate::peer_part::PeerPart;
use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use vervet::{Durability, Environment, LogRecord, Timestamp, commit_timestamp};
use vervet_log::{Log, LogOptions, Lsn, ReadOptions};
use vervet_model::{Error, ErrorKind, Result, ThreadLimits};
use vervet_peer::{Hello, Peer};

/// How often data are copied that are replaced meanwhile, or whose log is.
const ATTEMPTS_MAX: u32 = 5;

/// What [`backup`] does beyond adding what is new.
#[derive(Clone, Debug)]
pub struct BackupOptions {
    /// Files, clock, randomness.
    pub environment: Environment,
    /// Copy the data again even if the log has everything since the last call: a restore then applies fewer
    /// changes.
    pub full: bool,
    /// Keep this many copies of the data, the newest ones, with the records behind them; `None`: all.
    pub keep: Option<usize>,
}

impl Default for BackupOptions {
    fn default() -> Self {
        Self { environment: Environment::real(), full: false, keep: None }
    }
}

/// What [`backup`] has done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BackedUp {
    /// Name of the cluster.
    pub cluster: String,
    /// The state that the backup has now. Without new records: that of the call before.
    pub point: BackupPoint,
    /// Bytes of the data that were copied; `None`: the records since the last call were enough.
    pub data_bytes: Option<u64>,
    /// Number of new records.
    pub records: u64,
}

/// Copies what the cluster of the server in `server` has, and the backup in `to` has not. The server may run
/// or not; its map and certificates are used. `report`: gets the name of the server whose data are copied,
/// and their bytes. Everything that was committed before the call is in the backup when it returns, synced.
///
/// The limits of the thread ([`ThreadLimits`]) cancel the call; the backup then is as before.
///
/// # Errors
/// Unsupported: there are no voters. Input: the map or a certificate is missing or wrong, or `to` has
/// something else. Unavailable: no majority of the voters answers, or another process writes to the backup.
/// Corrupt: the backup has more than the cluster. Io.
pub fn backup(
    server: &Path,
    to: &Path,
    options: &BackupOptions,
    report: &dyn Fn(&str, u64),
) -> Result<BackedUp> {
    let (map, origin) = source_of(server, options)?;
    let environment = &options.environment;
    let mut feed = Feed::new(sources(server, &map, origin)?);
    let mut directory = BackupDirectory::open(environment, to, (&map.name, origin))?;
    let time = present(environment)?;
    let newest = feed.newest()?;
    let mut manifest = directory.manifest.clone();
    (manifest.servers, manifest.voters) = (map.servers.len(), map.voters.len());
    manifest.cluster.clone_from(&map.name);
    if let Some(base) = manifest.bases.last_mut().filter(|_| !options.full) {
        let last = base.last()?.clone();
        if newest < last.position {
            let what = format!(
                "the log of the cluster ends at entry {newest}, and the backup {} has entry {}",
                to.display(),
                last.position
            );
            return Err(Error::new(ErrorKind::Corrupt, what).with_hint(
                "the cluster has lost commits that the backup has, such as by old copies of its directories: keep the \
                 backup, and begin another one in a new directory",
            ));
        }
        let before = Before { position: last.position, timestamp: last.timestamp };
        let path = directory.base(base.number);
        match copy_records(environment, &mut feed, (&path, before), newest, &time)? {
            Copied::Nothing(_) => {
                return Ok(BackedUp { cluster: map.name, point: last.shown(), data_bytes: None, records: 0 });
            }
            Copied::Records(point) => {
                let (shown, records) = (point.shown(), point.records);
                base.points.push(point);
                directory.write(manifest)?;
                return Ok(BackedUp { cluster: map.name, point: shown, data_bytes: None, records });
            }
            Copied::Purged(_) => {}
        }
    }
    let bytes = Cell::new(0);
    let report = |server: &str, all: u64| {
        bytes.set(all);
        report(server, all);
    };
    let base = copy_base(&directory, &mut feed, (origin, newest, map.partitions().len()), &time, &report)?;
    let last = base.last()?;
    let (point, records) = (last.shown(), last.records);
    manifest.bases.push(base);
    if let Some(keep) = options.keep {
        manifest.bases.drain(..manifest.bases.len().saturating_sub(keep));
    }
    directory.write(manifest)?;
    Ok(BackedUp { cluster: map.name, point, data_bytes: Some(bytes.get()), records })
}

/// The map of a cluster that can be backed up, and the build of its first data.
pub(crate) fn source_of(server: &Path, options: &BackupOptions) -> Result<(ClusterMap, u64)> {
    let map = ClusterMap::read(server)?;
    if map.voters.is_empty() {
        let what = "a cluster is backed up where voters take its changes";
        return Err(Error::new(ErrorKind::Unsupported, what).with_hint(
            "export the graph of this one (GET /store), or keep the database that it was made from",
        ));
    }
    if options.keep == Some(0) {
        return Err(Error::new(ErrorKind::Input, "a backup keeps one copy of the data at least"));
    }
    let named = map.data.as_deref().and_then(|name| u64::from_str_radix(name, 16).ok());
    let unnamed = || Error::new(ErrorKind::Input, "the map does not name the data of the cluster");
    Ok((map, named.ok_or_else(unnamed)?))
}

/// All servers of a cluster, those that vote first, and among them the own one.
fn sources(server: &Path, map: &ClusterMap, origin: u64) -> Result<Vec<Arc<PeerPart>>> {
    let identity = Arc::new(open_identity(server, map)?);
    let number = map.number(origin);
    let mut entries: Vec<_> = map.servers.iter().collect();
    entries.sort_by_key(|entry| (!map.voters.contains(&entry.name), entry.name != map.server));
    let source = |entry: &crate::map::ServerEntry| {
        let hello = Hello::new(number, &map.server);
        Arc::new(PeerPart::new(Peer::new(&entry.name, &entry.address, Arc::clone(&identity), hello)))
    };
    Ok(entries.into_iter().map(source).collect())
}

/// Copies data, and the records behind them.
fn copy_base(
    directory: &BackupDirectory<'_>,
    feed: &mut Feed,
    (origin, newest, partitions): (u64, u64, usize),
    time: &str,
    report: &dyn Fn(&str, u64),
) -> Result<Base> {
    let environment = directory.environment;
    let (number, path) = directory.create_base()?;
    let mut least = 0;
    for attempt in 1.. {
        let is_last = attempt == ATTEMPTS_MAX;
        let all: Vec<usize> = (0..partitions).collect();
        let wanted =
            Wanted { origin, least: (least, 0), is_whole: true, partitions: &all, count: partitions };
        let fetched = match fetch(environment, &path, wanted, feed.sources(), report) {
            // Each of them has merged changes meanwhile.
            Err(error) if error.kind() == ErrorKind::Unavailable && !is_last => continue,
            // The disk is that of the backup.
            Err(error) if error.kind() == ErrorKind::Io => {
                return Err(error.context(format_args!("the backup in {}", path.display())));
            }
            fetched => fetched?,
        };
        let (build, checkpoint) = (fetched.files.build(), fetched.checkpoint);
        let before = Before { position: checkpoint.position, timestamp: checkpoint.timestamp };
        let through = newest.max(before.position);
        let point = match copy_records(environment, feed, (&path, before), through, time)? {
            Copied::Records(point) | Copied::Nothing(point) => point,
            Copied::Purged(purged) if is_last => {
                let what =
                    format!("the entries of the log up to {purged} were purged while data were copied");
                return Err(Error::new(ErrorKind::Unavailable, what).with_hint("run it again"));
            }
            Copied::Purged(purged) => {
                least = purged;
                continue;
            }
        };
        return Ok(Base {
            number,
            build: hexadecimal(build),
            position: before.position,
            timestamp: before.timestamp,
            points: vec![point],
        });
    }
    Err(Error::internal("a backup stopped without a result"))
}

/// What [`copy_records`] has copied.
enum Copied {
    Records(Point),
    /// There are none, which is a point as well.
    Nothing(Point),
    /// No server has the records behind the position any more: data have to have the entries up to this one.
    Purged(u64),
}

/// Copies the records behind a position, up to the entry `through`, into the directory of a base.
fn copy_records(
    environment: &Environment,
    feed: &mut Feed,
    (base, before): (&Path, Before),
    through: u64,
    time: &str,
) -> Result<Copied> {
    let (path, unfinished) =
        (records_path(base, before.position), unfinished_records_path(base, before.position));
    let mut segment = Segment { environment, path: &unfinished, log: None, before, records: 0, end: 0 };
    let mut position = before.position;
    while position < through {
        match feed.read(position, through)? {
            FeedAnswer::Purged(purged) => return Ok(Copied::Purged(purged)),
            FeedAnswer::Records { reached, records } => {
                segment.append(&records)?;
                position = reached;
            }
        }
    }
    let point = Point {
        time: time.to_owned(),
        timestamp: segment.before.timestamp,
        position,
        records: segment.records,
        end: segment.end,
        log: segment.log.as_ref().map(|log| hexadecimal(log.id().0)).unwrap_or_default(),
    };
    let Some(log) = segment.log.take() else { return Ok(Copied::Nothing(point)) };
    let files = &environment.files;
    let finished = log.close().and_then(|()| {
        let renamed = files.rename(&unfinished, &path).and_then(|()| files.sync_dir(base));
        renamed.map_err(failed("write", &path))
    });
    if let Err(error) = finished {
        _ = files.remove_dir_all(&unfinished);
        return Err(error);
    }
    Ok(Copied::Records(point))
}

/// Records while they are written: their directory is made with the first one, and removed with this value
/// unless the log was taken from it.
struct Segment<'a> {
    environment: &'a Environment,
    path: &'a Path,
    log: Option<Log>,
    /// The last commit so far.
    before: Before,
    records: u64,
    /// LSN of the last record.
    end: u64,
}

impl Segment<'_> {
    fn append(&mut self, records: &[LogRecord]) -> Result<()> {
        for LogRecord { lsn, kind, payload } in records {
            ThreadLimits::check()?;
            if let Some(Timestamp(timestamp)) = commit_timestamp(*kind, payload)? {
                if timestamp != self.before.timestamp + 1 {
                    let what = format!("commit {timestamp} follows commit {}", self.before.timestamp);
                    return Err(Error::corrupt(format_args!("entry {lsn} of the log of the cluster"), what)
                        .with_hint("check the directories of its servers: vervet check DIR"));
                }
                self.before.timestamp = timestamp;
            }
            let log = match &self.log {
                Some(log) => log,
                None => self.log.insert(begin_log(self.environment, self.path)?),
            };
            self.end = log.append(*kind, payload)?.0;
            self.records += 1;
        }
        Ok(())
    }
}

impl Drop for Segment<'_> {
    fn drop(&mut self) {
        if self.log.take().is_some() {
            // The next call removes it, if this one cannot.
            _ = self.environment.files.remove_dir_all(self.path);
        }
    }
}

/// A log in a new directory, which is synced when it is closed.
fn begin_log(environment: &Environment, path: &Path) -> Result<Log> {
    create_private(path).map_err(failed("create", path))?;
    let found = vervet_log::read(environment, path, Lsn(0), &ReadOptions::default(), &mut |_, _, _| Ok(()))?;
    let options = LogOptions { durability: Durability::None, ..LogOptions::default() };
    Log::open(environment, path, found, options)
}

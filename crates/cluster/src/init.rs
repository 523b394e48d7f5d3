//! Making the directories of a cluster from a graph.
//!
//! # Shape
//! `DIR/<server>/` for each server: `cluster.toml`, `authority.pem`, `certificate.pem`, `key.pem`, and
//! `data/` with the catalog, the dictionary and the partitions of that server. Each may be moved to its
//! machine. Files that several servers have are hard links where the file system can do it.
//! `DIR/authority-key.pem` is the private key of the authority, which no server needs.
//! # Invariants
//! `DIR` is whole or not there: everything is written to `DIR.partial` beside it, which is renamed at the
//! end. A `DIR.partial` that an interrupted call has left is replaced by the next one; a lock on a file in it
//! tells it from that of a call that is still at work.

use crate::beginning::mark_new;
use crate::files::{create_private, failed};
use crate::generation::{CHECKPOINT_FILE, Checkpoint, DATA};
use crate::layout::partitions_of;
use crate::map::{ClusterMap, MAP_FILE, ServerEntry};
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use vervet::{Database, Timestamp};
use vervet_model::{Error, ErrorKind, Partitioning, Result, Watch};
use vervet_partition::PartitionDirectory;
use vervet_peer::{Authority, Identity, IdentityFiles};

/// Name of the directory with all partitions while they are written.
const ALL: &str = "all.tmp";
/// Name of the file that is locked while the directory is written.
const LOCK: &str = "lock.tmp";
/// Ends the name of the directory while it is written.
const PARTIAL: &str = ".partial";
/// Name of the file of a database that it always has.
const DATABASE_FILE: &str = "MANIFEST";
pub(crate) const AUTHORITY_FILE: &str = "authority.pem";
pub(crate) const CERTIFICATE_FILE: &str = "certificate.pem";
pub(crate) const KEY_FILE: &str = "key.pem";
/// Name of the file with the private key of the certificate authority, beside the directories of the servers.
pub const AUTHORITY_KEY_FILE: &str = "authority-key.pem";

/// What [`init`] makes.
#[derive(Clone, Debug)]
pub struct InitOptions {
    /// Name of the cluster.
    pub name: String,
    /// Number of partitions: a power of two, at least the number of servers.
    pub partitions: usize,
    /// The servers; those without partitions get their share.
    pub servers: Vec<ServerEntry>,
    /// The server that takes changes; `None`: the graph does not change.
    pub writer: Option<String>,
    /// How many servers have each partition.
    pub replicas: usize,
    /// The servers that have the log of changes, one of which leads; see [`ClusterMap::voters`].
    pub voters: Vec<String>,
    /// Consecutive numbers of terms in one partition, as a power of two up to 12; `None`: as many as leave
    /// each partition several such runs.
    pub run_bits: Option<u32>,
}

impl InitOptions {
    /// `count` servers named `a`, `b` and so on, on one host, with addresses for each other from `port` on,
    /// and for clients from `http_port` on.
    #[must_use]
    pub fn on_host(count: usize, partitions: usize, host: &str, (port, http_port): (u16, u16)) -> Self {
        let servers = (0..count).map(|number| {
            let offset = u16::try_from(number).unwrap_or(u16::MAX);
            ServerEntry {
                name: server_name(number),
                address: format!("{host}:{}", port.saturating_add(offset)),
                http: Some(format!("{host}:{}", http_port.saturating_add(offset))),
                number: None,
                partitions: Vec::new(),
            }
        });
        Self {
            name: "vervet".to_owned(),
            partitions,
            servers: servers.collect(),
            writer: None,
            replicas: 1,
            voters: Vec::new(),
            run_bits: None,
        }
    }
}

/// `a` to `z`, then `s26`, ….
fn server_name(number: usize) -> String {
    match u8::try_from(number).ok().filter(|number| *number < 26) {
        Some(number) => char::from(b'a' + number).to_string(),
        None => format!("s{number}"),
    }
}

fn partitioning(options: &InitOptions, statements: u64) -> Result<Partitioning> {
    let partitioning = Partitioning::new(options.partitions)
        .ok_or_else(|| Error::new(ErrorKind::Input, "the number of partitions must be a power of two"))?;
    let partitioning = match options.run_bits {
        Some(run_bits) => partitioning.with_runs(run_bits),
        None => Some(partitioning.for_vertices(statements / 4)),
    };
    partitioning
        .ok_or_else(|| Error::new(ErrorKind::Input, "a run of numbers in one partition has at most 4,096"))
}

/// The map that [`init`] would write, if the options are right and the directory is free: to be known before
/// a long load.
///
/// # Errors
/// As [`init`].
pub fn check_new(options: &InitOptions, directory: &Path) -> Result<ClusterMap> {
    partitioning(options, 0)?;
    let count = options.servers.len();
    let has_all = options.replicas == count;
    if options.replicas == 0 || options.replicas > count {
        let what = format!("{} replicas of each partition over {count} servers", options.replicas);
        let hint = format!("name a number of replicas between 1 and {count}");
        return Err(Error::new(ErrorKind::Input, what).with_hint(hint));
    }
    if count == 0 || count > options.partitions && !has_all {
        let what = format!("{} partitions cannot be given to {count} servers", options.partitions);
        return Err(
            Error::new(ErrorKind::Input, what).with_hint("give at least one partition to each server")
        );
    }
    let mut servers = options.servers.clone();
    for (number, server) in servers.iter_mut().enumerate() {
        if server.partitions.is_empty() {
            server.partitions = partitions_of(number, count, options.partitions, options.replicas).collect();
        }
    }
    let map = ClusterMap {
        name: options.name.clone(),
        server: servers[0].name.clone(),
        bind: None,
        data: None,
        authority: None,
        cluster: None,
        writer: options.writer.clone(),
        voters: options.voters.clone(),
        // Only voters can have partitions that move.
        replicas: (!has_all && options.voters.len() == count).then_some(options.replicas),
        servers,
    };
    map.check()?;
    check_is_free(directory)?;
    Ok(map)
}

/// Writes the graph of `database` as a directory for each server below `directory`, and returns them.
///
/// # Errors
/// Input: the directory exists and is not empty; too few partitions. Io: nothing of what was written stays.
pub fn init(
    database: &Database,
    options: &InitOptions,
    directory: &Path,
    watch: &Watch<'_>,
) -> Result<Vec<PathBuf>> {
    let partitioning = partitioning(options, database.snapshot().statement_count())?;
    let mut write = |all: &Path| {
        let files = database.write_partitions(partitioning, all, watch)?;
        let constraints = database.constraints().iter().map(ToString::to_string).collect();
        let checkpoint = Checkpoint::new(files.build(), 0, Timestamp::default(), constraints);
        write_file(&all.join(CHECKPOINT_FILE), &checkpoint.to_text(), false)?;
        Ok(Some(files))
    };
    make(options, directory, &mut write)
}

/// Writes a directory for each server without data, which the servers load together ([`crate::load()`]).
///
/// # Errors
/// As [`init`].
pub fn init_empty(options: &InitOptions, directory: &Path) -> Result<Vec<PathBuf>> {
    make(options, directory, &mut |_| Ok(None))
}

/// Writes the files of partitions to a directory, if there are any.
type WriteData<'a> = &'a mut dyn FnMut(&Path) -> Result<Option<PartitionDirectory>>;

fn make(options: &InitOptions, directory: &Path, write_data: WriteData<'_>) -> Result<Vec<PathBuf>> {
    let map = check_new(options, directory)?;
    let partial = Partial::create(directory)?;
    write(write_data, map.clone(), &partial.path)?;
    partial.publish(directory)?;
    Ok(map.servers.iter().map(|server| directory.join(&server.name)).collect())
}

/// Whether the directory is missing or empty.
fn check_is_free(directory: &Path) -> Result<()> {
    let used = |what: &str, hint: &str| {
        Err(Error::new(ErrorKind::Input, format!("{} {what}", directory.display())).with_hint(hint))
    };
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::io(format_args!("read {}", directory.display()), &error)),
    };
    let names: Vec<PathBuf> = entries.map_while(|entry| Some(entry.ok()?.path())).collect();
    let has = |name: &str| names.iter().any(|path| path.ends_with(name));
    if has(MAP_FILE) {
        return used("is the directory of a server of a cluster", "choose a new directory");
    }
    if has(DATABASE_FILE) {
        return used("is a database", "choose a new directory, and name the database with --from");
    }
    if names.iter().any(|path| path.join(MAP_FILE).exists()) {
        let hint = "choose a new directory; or end its servers and remove it, to make the cluster again";
        return used("has the servers of a cluster already", hint);
    }
    if !names.is_empty() {
        return used("is not empty", "choose a new directory");
    }
    Ok(())
}

/// The directory while it is written; removed with this value, unless it was published.
struct Partial {
    path: PathBuf,
    /// Locked as long as this process writes.
    lock: Option<File>,
}

impl Partial {
    fn create(directory: &Path) -> Result<Self> {
        let Some(name) = directory.file_name() else {
            let what = format!("{} is not the name of a new directory", directory.display());
            return Err(Error::new(ErrorKind::Input, what).with_hint("name the directory to be made"));
        };
        let mut partial = name.to_owned();
        partial.push(PARTIAL);
        let path = directory.with_file_name(partial);
        create_private(&path).map_err(failed("create the directory", &path))?;
        let lock_path = path.join(LOCK);
        let lock = File::create(&lock_path).map_err(failed("write", &lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let what = format!("{} is being written by another process", path.display());
                return Err(
                    Error::new(ErrorKind::Input, what).with_hint("wait for it, or choose another directory")
                );
            }
            // A file system without locks.
            Err(TryLockError::Error(_)) => {}
        }
        // What an interrupted call has left.
        let left = fs::read_dir(&path).map_err(failed("read", &path))?;
        for left in left.map_while(|entry| Some(entry.ok()?.path())).filter(|left| !left.ends_with(LOCK)) {
            let removed = if left.is_dir() { fs::remove_dir_all(&left) } else { fs::remove_file(&left) };
            removed.map_err(failed("remove", &left))?;
        }
        Ok(Self { path, lock: Some(lock) })
    }

    /// Gives the directory its name.
    fn publish(mut self, directory: &Path) -> Result<()> {
        match fs::remove_dir(directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed("replace", directory)(error));
            }
            _ => {}
        }
        fs::rename(&self.path, directory).map_err(failed("write", directory))?;
        self.lock = None;
        // Not before: another call could lock the directory while it is renamed.
        let lock = directory.join(LOCK);
        fs::remove_file(&lock).map_err(failed("remove", &lock))?;
        if let Some(parent) = directory.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            // Not every system can; the files themselves are durable.
            let _ = File::open(parent).and_then(|parent| parent.sync_all());
        }
        Ok(())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if self.lock.is_some() {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

fn write(write_data: WriteData<'_>, mut map: ClusterMap, directory: &Path) -> Result<()> {
    let all = directory.join(ALL);
    let files = write_data(&all)?;
    let authority = Authority::new(&map.name)?;
    map.data = files.as_ref().map(|files| ClusterMap::data_name(files.build()));
    map.authority = Some(ClusterMap::authority_name(authority.certificate().as_bytes()));
    for server in map.servers.clone() {
        let path = directory.join(&server.name);
        create_private(&path).map_err(failed("write", &path))?;
        if let Some(files) = &files {
            let data = path.join(DATA);
            create_private(&data).map_err(failed("write", &data))?;
            let names = files.file_names(&server.partitions).into_iter();
            for name in names.chain([CHECKPOINT_FILE.to_owned()]) {
                let (from, to) = (all.join(&name), data.join(&name));
                if fs::hard_link(&from, &to).is_err() {
                    fs::copy(&from, &to).map_err(failed("write", &to))?;
                }
            }
        }
        if let Some(files) = files.as_ref().filter(|_| map.voters.contains(&server.name)) {
            mark_new(&path, files.build())?;
        }
        let identity = authority.issue(&server.name)?;
        write_identity(&path, &identity)?;
        map.server = server.name;
        write_text(&path.join(MAP_FILE), &map.to_text())?;
    }
    write_file(&directory.join(AUTHORITY_KEY_FILE), authority.key(), true)?;
    match fs::remove_dir_all(&all) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", &all)(error)),
        _ => Ok(()),
    }
}

/// Writes the certificates of a new server, and its key.
pub(crate) fn write_identity(directory: &Path, issued: &IdentityFiles) -> Result<()> {
    write_text(&directory.join(AUTHORITY_FILE), &issued.authority)?;
    write_text(&directory.join(CERTIFICATE_FILE), &issued.certificate)?;
    write_file(&directory.join(KEY_FILE), &issued.key, true)
}

/// Writes a file that is not there yet.
pub(crate) fn write_text(path: &Path, text: &str) -> Result<()> {
    write_file(path, text, false)
}

/// Gives the server in `directory` a new certificate with a new key, with the key of the authority in the
/// file `authority_key`. It is used from the next start on.
///
/// # Errors
/// Input: a file is missing, or the key is that of another authority; the certificate stays.
pub fn renew_certificate(directory: &Path, authority_key: &Path) -> Result<()> {
    let map = ClusterMap::read(directory)?;
    let read = |path: &Path| fs::read_to_string(path).map_err(failed("read", path));
    let certificate = read(&directory.join(AUTHORITY_FILE))?;
    let authority = Authority::from_pem(&map.name, &certificate, &read(authority_key)?)?;
    let issued = authority.issue(&map.server)?;
    let [authority, certificate, key] = [&issued.authority, &issued.certificate, &issued.key];
    Identity::from_pem(authority.as_bytes(), certificate.as_bytes(), key.as_bytes())?.check(&map.server)?;
    for (name, text, is_secret) in [(KEY_FILE, key, true), (CERTIFICATE_FILE, certificate, false)] {
        let (path, new) = (directory.join(name), directory.join(format!("{name}.tmp")));
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed("remove", &new)(error));
            }
            _ => {}
        }
        write_file(&new, text, is_secret)?;
        fs::rename(&new, &path).map_err(failed("write", &path))?;
    }
    Ok(())
}

/// Writes a file that only its owner can read if `is_secret`.
fn write_file(path: &Path, text: &str, is_secret: bool) -> Result<()> {
    let write = || {
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        if is_secret {
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        #[cfg(not(unix))]
        let _ = is_secret;
        let mut file = options.open(path)?;
        io::Write::write_all(&mut file, text.as_bytes())?;
        file.sync_all()
    };
    write().map_err(|error| Error::io(format_args!("write {}", path.display()), &error))
}

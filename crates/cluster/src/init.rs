//! Making the directories of a cluster from a graph.
//!
//! # Shape
//! `DIR/<server>/` for each server: `cluster.toml`, `authority.pem`, `certificate.pem`, `key.pem`, and
//! `data/` with the catalog, the dictionary and the partitions of that server. Each may be moved to its
//! machine. Files that several servers have are hard links where the file system can do it.

use crate::map::{ClusterMap, MAP_FILE, ServerEntry};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use vervet::Database;
use vervet_model::{Error, ErrorKind, Partitioning, Result, Watch};
use vervet_peer::Authority;

/// Name of the directory of data within that of a server.
pub(crate) const DATA: &str = "data";
/// Name of the directory with all partitions while they are written.
const ALL: &str = "all.tmp";
pub(crate) const AUTHORITY_FILE: &str = "authority.pem";
pub(crate) const CERTIFICATE_FILE: &str = "certificate.pem";
pub(crate) const KEY_FILE: &str = "key.pem";

/// What [`init`] makes.
#[derive(Clone, Debug)]
pub struct InitOptions {
    /// Name of the cluster.
    pub name: String,
    /// Number of partitions: a power of two, at least the number of servers.
    pub partitions: usize,
    /// The servers; those without partitions get their share.
    pub servers: Vec<ServerEntry>,
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
                partitions: Vec::new(),
            }
        });
        Self { name: "vervet".to_owned(), partitions, servers: servers.collect() }
    }
}

/// `a` to `z`, then `s26`, ….
fn server_name(number: usize) -> String {
    match u8::try_from(number).ok().filter(|number| *number < 26) {
        Some(number) => char::from(b'a' + number).to_string(),
        None => format!("s{number}"),
    }
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
    let partitioning = Partitioning::new(options.partitions)
        .ok_or_else(|| Error::new(ErrorKind::Input, "the number of partitions must be a power of two"))?;
    let count = options.servers.len();
    if count == 0 || count > options.partitions {
        let what = format!("{} partitions cannot be given to {count} servers", options.partitions);
        return Err(
            Error::new(ErrorKind::Input, what).with_hint("give at least one partition to each server")
        );
    }
    let mut servers = options.servers.clone();
    for (number, server) in servers.iter_mut().enumerate() {
        if server.partitions.is_empty() {
            server.partitions =
                (0..options.partitions).filter(|partition| partition % count == number).collect();
        }
    }
    let map = |server: &ServerEntry| ClusterMap {
        name: options.name.clone(),
        server: server.name.clone(),
        bind: None,
        servers: servers.clone(),
    };
    map(&servers[0]).check()?;
    let is_empty = match fs::read_dir(directory) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(error) => return Err(Error::io(format_args!("read {}", directory.display()), &error)),
    };
    if !is_empty {
        return Err(Error::new(ErrorKind::Input, format!("{} is not empty", directory.display()))
            .with_hint("choose a new directory"));
    }
    let written = write(database, partitioning, &servers, &map, directory, watch);
    if written.is_err() {
        // The directory was empty before.
        for server in &servers {
            let _ = fs::remove_dir_all(directory.join(&server.name));
        }
    }
    let _ = fs::remove_dir_all(directory.join(ALL));
    written
}

fn write(
    database: &Database,
    partitioning: Partitioning,
    servers: &[ServerEntry],
    map: &dyn Fn(&ServerEntry) -> ClusterMap,
    directory: &Path,
    watch: &Watch<'_>,
) -> Result<Vec<PathBuf>> {
    let all = directory.join(ALL);
    let files = database.write_partitions(partitioning, &all, watch)?;
    let authority = Authority::new(&map(&servers[0]).name)?;
    let mut made = Vec::new();
    for server in servers {
        let path = directory.join(&server.name);
        let wrote = |what: &Path| {
            let what = what.display().to_string();
            move |error: io::Error| Error::io(format!("write {what}"), &error)
        };
        fs::create_dir_all(path.join(DATA)).map_err(wrote(&path))?;
        for name in files.file_names(&server.partitions) {
            let (from, to) = (all.join(&name), path.join(DATA).join(&name));
            if fs::hard_link(&from, &to).is_err() {
                fs::copy(&from, &to).map_err(wrote(&to))?;
            }
        }
        let identity = authority.issue(&server.name)?;
        write_file(&path.join(AUTHORITY_FILE), &identity.authority, false)?;
        write_file(&path.join(CERTIFICATE_FILE), &identity.certificate, false)?;
        write_file(&path.join(KEY_FILE), &identity.key, true)?;
        // Last: without it the directory is not that of a server.
        write_file(&path.join(MAP_FILE), &map(server).to_text(), false)?;
        made.push(path);
    }
    Ok(made)
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

//! Backups of a cluster in a store of objects.
//!
//! # Shape
//! Objects are the files of a backup in a directory (`backup_directory.rs`): the manifest, and below
//! `base-<number>-<build>/` those of `data-<position>/` and of `records-<position>-<log>/`. A call reads the
//! manifest, makes what is new in a temporary directory, as a call for a directory does, stores it, and
//! replaces the manifest. A restore copies a base, and the records that it needs, to a temporary directory.
//! # Invariants
//! 1. Objects other than the manifest never change: their names have the build of the data, or the id of the
//!    log, which are random numbers. So calls at the same time store different objects, or equal ones.
//! 2. The manifest is replaced last, and only if it is the one that the call has read: of calls at the same
//!    time one succeeds, and the others change nothing.
//! 3. A call removes only objects that no manifest after its own can name: bases up to the last one, and
//!    records before the last point. A call that has begun since makes others.

use crate::backup::{BackedUp, BackupOptions, backup, source_of};
use crate::backup_directory::{
    BACKUP_FILE, BASE, BackupDirectory, BackupStatus, Base, Manifest, RECORDS, base_path, records_path,
    status_of,
};
use crate::backup_store::{BackupStore, StoredObject};
use crate::check_backup::{CheckedBackup, Checking};
use crate::files::{create_private, failed};
use crate::generation::DATA;
use crate::restore::{RestoreOptions, Restored, plan, restore};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use vervet::Environment;
use vervet_model::{Error, ErrorKind, Result, ThreadLimits, Watch};

/// Most bytes of a manifest: those of about 400,000 points.
const MANIFEST_BYTES_MAX: u64 = 64 << 20;

/// Names of the directories in a temporary one.
const STAGING: &str = "backup";
const WORK: &str = "work";

/// [`backup()`] to a store. `scratch`: a directory for temporary files, which gets all that is stored.
/// `report`: as there; `progress`: gets the bytes that were stored, and all that will be.
///
/// # Errors
/// As for [`backup()`], and those of the store. Unavailable: another call has changed the backup meanwhile.
pub fn backup_to_store(
    server: &Path,
    store: &dyn BackupStore,
    scratch: &Path,
    options: &BackupOptions,
    report: &dyn Fn(&str, u64),
    progress: &dyn Fn(u64, u64),
) -> Result<BackedUp> {
    let (map, origin) = source_of(server, options)?;
    let environment = &options.environment;
    let staging = Staging::new(environment, store, scratch)?;
    let before = match staging.fetch_manifest()? {
        Some(before) => before,
        None => {
            staging.expect_no_objects()?;
            // It says that bases without a manifest are those of an interrupted call.
            drop(BackupDirectory::open(environment, &staging.path, (&map.name, origin))?);
            staging.replace_manifest(None)?;
            staging.fetch_manifest()?.ok_or_else(|| staging.changed())?
        }
    };
    let made = backup(server, &staging.path, options, report).map_err(|error| staging.shown(error))?;
    let manifest = staging.manifest()?;
    if manifest == before.manifest {
        return Ok(made);
    }
    staging.store(&manifest, progress)?;
    staging.replace_manifest(Some(&before.tag))?;
    // Between two copies of data only interrupted calls leave anything, and lists take time.
    if made.data_bytes.is_some() {
        staging.remove_unnamed(&manifest).map_err(|error| {
            error.context("the backup is complete, but what does not count any more was not removed")
        })?;
    }
    Ok(made)
}

/// [`crate::backup_status()`] of a store. `scratch`: a directory for temporary files.
///
/// # Errors
/// As for it, and those of the store.
pub fn stored_backup_status(
    store: &dyn BackupStore,
    environment: &Environment,
    scratch: &Path,
) -> Result<BackupStatus> {
    Staging::new(environment, store, scratch)?.finished_manifest().map(status_of)
}

/// [`restore()`] from a store. Its directory for temporary files gets a copy of the data, and of the records
/// that are needed. `copying`: gets a step for each byte that is copied.
///
/// # Errors
/// As for [`restore()`], and those of the store.
pub fn restore_from_store(
    store: &dyn BackupStore,
    options: &RestoreOptions<'_>,
    copying: &Watch<'_>,
    watch: &Watch<'_>,
) -> Result<Restored> {
    let environment = &options.environment;
    let staging = Staging::new(environment, store, options.scratch)?;
    let manifest = staging.finished_manifest()?;
    let planned = plan(&manifest, options.until)?;
    let points = planned.points.len();
    staging.fetch_base(planned.base, points, &|bytes| copying.expect(bytes), &mut |bytes| {
        copying.advance(bytes)
    })?;
    let work = options.scratch.join(WORK);
    create_private(&work).map_err(failed("create", &work))?;
    let options = RestoreOptions { scratch: &work, ..options.clone() };
    restore(&staging.path, &options, watch).map_err(|error| staging.shown(error))
}

/// [`crate::check_backup()`] of a store. `scratch`: a directory for temporary files, which gets one copy of
/// the data after the other. `watch`: gets a step for each byte that is copied.
///
/// # Errors
/// As for it, and those of the store.
pub fn check_stored_backup(
    store: &dyn BackupStore,
    environment: &Environment,
    scratch: &Path,
    watch: &Watch<'_>,
) -> Result<CheckedBackup> {
    let staging = Staging::new(environment, store, scratch)?;
    let manifest = staging.finished_manifest()?;
    let mut checking = Checking::default();
    for base in &manifest.bases {
        ThreadLimits::check()?;
        let path = staging.base(base);
        staging.fetch_base(base, base.points.len(), &|bytes| watch.expect(bytes), &mut |bytes| {
            watch.advance(bytes)
        })?;
        checking.check(environment, &manifest, base, &path).map_err(|error| staging.shown(error))?;
        environment.files.remove_dir_all(&path).map_err(failed("remove", &path))?;
    }
    checking.finish(manifest)
}

/// A manifest of a store.
struct FoundManifest {
    manifest: Manifest,
    tag: String,
}

/// A temporary directory with some of the files of a backup.
struct Staging<'a> {
    environment: &'a Environment,
    store: &'a dyn BackupStore,
    path: PathBuf,
    /// The directories of bases and records, and where their files are in the store, for messages.
    places: RefCell<Vec<(String, String)>>,
}

/// Begins the names of the objects of a base.
fn objects_of(base: &Base) -> String {
    // The number as in the name of a directory.
    let name = base_path(Path::new(""), base.number);
    format!("{}-{}/", name.display(), base.build)
}

impl<'a> Staging<'a> {
    fn new(environment: &'a Environment, store: &'a dyn BackupStore, scratch: &Path) -> Result<Self> {
        let path = scratch.join(STAGING);
        create_private(&path).map_err(failed("create", &path))?;
        Ok(Self { environment, store, path, places: RefCell::default() })
    }

    fn base(&self, base: &Base) -> PathBuf {
        base_path(&self.path, base.number)
    }

    /// The manifest in the directory.
    fn manifest(&self) -> Result<Manifest> {
        let manifest = Manifest::read(self.environment, &self.path).map_err(|error| self.shown(error))?;
        manifest.ok_or_else(|| Error::internal("a backup without a manifest"))
    }

    /// Copies the manifest from the store.
    fn fetch_manifest(&self) -> Result<Option<FoundManifest>> {
        let Some(stored) = self.store.read(BACKUP_FILE, MANIFEST_BYTES_MAX)? else { return Ok(None) };
        self.write(&self.path.join(BACKUP_FILE), &mut |out| {
            out.write_all(&stored.bytes).map_err(|error| Error::io("write the manifest of a backup", &error))
        })?;
        Ok(Some(FoundManifest { manifest: self.manifest()?, tag: stored.tag }))
    }

    /// The same, of a backup that has a base.
    fn finished_manifest(&self) -> Result<Manifest> {
        self.fetch_manifest()?;
        Manifest::open(self.environment, &self.path).map_err(|error| self.shown(error))
    }

    /// Writes a file. It is removed before a crash matters, so nothing is synced.
    fn write(
        &self,
        path: &Path,
        content: &mut dyn FnMut(&mut dyn std::io::Write) -> Result<()>,
    ) -> Result<()> {
        let mut file = self.environment.files.create(path).map_err(failed("write", path))?;
        content(&mut file)?;
        file.flush().map_err(failed("write", path))
    }

    /// A backup begins where there are no objects.
    fn expect_no_objects(&self) -> Result<()> {
        let Some(other) = self.store.list("")?.into_iter().next() else { return Ok(()) };
        let what = format!("{} has {}, and no backup", self.store.location(), shown_name(&other.name));
        Err(Error::new(ErrorKind::Input, what)
            .with_hint("name a prefix without objects, or that of a backup"))
    }

    fn changed(&self) -> Error {
        let what = format!("another call has changed the backup {} meanwhile", self.store.location());
        Error::new(ErrorKind::Unavailable, what)
            .with_hint("nothing was added; run it again, and let one machine back up at a time")
    }

    /// Replaces the manifest of the store, if it is this version.
    fn replace_manifest(&self, before: Option<&str>) -> Result<()> {
        let path = self.path.join(BACKUP_FILE);
        let bytes = self.environment.files.read(&path).map_err(failed("read", &path))?;
        if bytes.len() as u64 > MANIFEST_BYTES_MAX {
            let what = format!("{} has too many points", self.store.location());
            return Err(
                Error::new(ErrorKind::Unsupported, what).with_hint("begin another backup in a new place")
            );
        }
        match self.store.replace(BACKUP_FILE, &bytes, before)? {
            true => Ok(()),
            false => Err(self.changed()),
        }
    }

    /// For each directory of files of a base: where it is, and where its objects are. `points`: so many of
    /// its segments.
    fn directories(&self, base: &Base, points: usize) -> Vec<(PathBuf, String)> {
        let (path, objects) = (self.base(base), objects_of(base));
        let data = format!("{DATA}-{}", base.position);
        let mut directories = vec![(path.join(&data), format!("{objects}{data}/"))];
        for (before, point) in base.segments().take(points).filter(|(_, point)| point.records > 0) {
            let records = records_path(&path, before.position);
            let name = records.file_name().unwrap_or_default().to_string_lossy().into_owned();
            directories.push((records, format!("{objects}{name}-{}/", point.log)));
        }
        let object = |objects: &str| format!("{}/{}", self.store.location(), objects.trim_end_matches('/'));
        let mut places = self.places.borrow_mut();
        places
            .extend(directories.iter().map(|(path, objects)| (path.display().to_string(), object(objects))));
        // Behind those of its directories.
        places.push((path.display().to_string(), object(&objects)));
        directories
    }

    /// Stores the files of the directory that the store lacks.
    fn store(&self, manifest: &Manifest, progress: &dyn Fn(u64, u64)) -> Result<()> {
        let files = &self.environment.files;
        let mut wanted = BTreeMap::new();
        let mut bases = Vec::new();
        for base in &manifest.bases {
            for (directory, objects) in self.directories(base, base.points.len()) {
                // What was stored by calls before is not here.
                if !files.exists(&directory).map_err(failed("read", &directory))? {
                    continue;
                }
                for file in files.list(&directory).map_err(failed("list", &directory))? {
                    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
                    let size = files.length(&file).map_err(failed("read", &file))?;
                    wanted.insert(format!("{objects}{name}"), (file, size));
                }
                bases.push(objects);
            }
        }
        let lacking = |wanted: &BTreeMap<String, (PathBuf, u64)>| -> Result<Vec<String>> {
            let mut stored = BTreeMap::new();
            for begin in &bases {
                stored.extend(
                    self.store.list(begin)?.into_iter().map(|object| (object.name, object.size_bytes)),
                );
            }
            let is_lacking = |(name, (_, size)): &(&String, &(PathBuf, u64))| stored.get(*name) != Some(size);
            Ok(wanted.iter().filter(is_lacking).map(|(name, _)| name.clone()).collect())
        };
        // Those of an interrupted call count: names have what distinguishes contents.
        let lacks = lacking(&wanted)?;
        let all: u64 = lacks.iter().filter_map(|name| wanted.get(name)).map(|(_, size)| *size).sum();
        let done = Cell::new(0);
        progress(0, all);
        for name in &lacks {
            let Some((file, _)) = wanted.get(name) else { continue };
            self.store.upload(name, file, &mut |bytes| {
                done.set(done.get() + bytes);
                progress(done.get(), all);
                Ok(())
            })?;
        }
        if lacks.is_empty() {
            return Ok(());
        }
        match lacking(&wanted)?.first() {
            None => Ok(()),
            Some(name) => {
                let what = format!("{}/{name} was stored, and is missing or shorter", self.store.location());
                Err(Error::new(ErrorKind::Unavailable, what)
                    .with_hint("the backup is as before; run it again"))
            }
        }
    }

    /// See invariant 3.
    fn remove_unnamed(&self, manifest: &Manifest) -> Result<()> {
        let mut named = Vec::new();
        for base in &manifest.bases {
            named.extend(self.directories(base, base.points.len()).into_iter().map(|(_, objects)| objects));
        }
        let Some(last) = manifest.bases.last() else { return Ok(()) };
        let last_point = last.last()?.position;
        let last_objects = objects_of(last);
        for StoredObject { name, .. } in self.store.list(BASE)? {
            if named.iter().any(|objects| name.starts_with(objects.as_str())) {
                continue;
            }
            let is_over = match name.strip_prefix(last_objects.as_str()) {
                Some(inner) => number_in(inner, RECORDS).is_some_and(|position| position < last_point),
                None => number_in(&name, BASE).is_some_and(|number| number <= last.number),
            };
            if is_over {
                self.store.remove(&name)?;
            }
        }
        Ok(())
    }

    /// Copies the files of a base, with some of its segments. `expect` gets their bytes.
    fn fetch_base(
        &self,
        base: &Base,
        points: usize,
        expect: &dyn Fn(u64),
        progress: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        let directories = self.directories(base, points);
        let stored = self.store.list(&objects_of(base))?;
        let mut copies = Vec::new();
        for (directory, objects) in &directories {
            for object in &stored {
                if let Some(name) = object.name.strip_prefix(objects.as_str()).filter(|name| is_plain(name)) {
                    copies.push((directory.join(name), object));
                }
            }
        }
        let all = copies.iter().fold(0, |all: u64, (_, object)| all.saturating_add(object.size_bytes));
        let free = self.environment.files.available_bytes(&self.path).map_err(failed("read", &self.path))?;
        if free.is_some_and(|free| free < all) {
            let what =
                format!("a copy of {all} bytes of the backup does not fit into {}", self.path.display());
            return Err(Error::new(ErrorKind::Io, what)
                .with_hint("free some space; TMPDIR names the directory for temporary files"));
        }
        expect(all);
        let path = self.base(base);
        create_private(&path).map_err(failed("create", &path))?;
        for (path, object) in copies {
            if let Some(directory) = path.parent() {
                create_private(directory).map_err(failed("create", directory))?;
            }
            self.write(&path, &mut |out| self.store.download(object, out, progress))?;
        }
        Ok(())
    }

    /// An error that names a file of the directory, with the object in its place.
    fn shown(&self, error: Error) -> Error {
        // The disk is that of the directory.
        if error.kind() == ErrorKind::Io {
            return error.with_hint("TMPDIR names the directory for temporary files; it needs some space");
        }
        let replaced = |text: &str| {
            let mut text = text.to_owned();
            for (local, objects) in self.places.borrow().iter() {
                // The name of one may begin that of another: records-1, records-12.
                text = replace_path(&text, local, objects);
            }
            text.replace(&self.path.display().to_string(), &self.store.location())
        };
        let shown = Error::new(error.kind(), replaced(error.message()));
        match error.hint() {
            Some(hint) => shown.with_hint(replaced(hint)),
            None => shown,
        }
    }
}

/// Replaces a path where it is followed by no letter or digit.
fn replace_path(text: &str, path: &str, by: &str) -> String {
    let mut replaced = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(path) {
        let (before, found) = rest.split_at(at);
        let after = &found[path.len()..];
        let is_longer = after.starts_with(|next: char| next.is_ascii_alphanumeric());
        replaced.push_str(before);
        replaced.push_str(if is_longer { path } else { by });
        rest = after;
    }
    replaced + rest
}

/// Whether a name is that of a file in a directory of a backup.
fn is_plain(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    !name.is_empty() && !name.starts_with('.') && name.bytes().all(is_plain)
}

/// A name of an object as a part of a message.
fn shown_name(name: &str) -> String {
    name.chars().map(|character| if character.is_control() { '?' } else { character }).take(200).collect()
}

/// The number behind `begin`, up to the next `-` or `/`.
fn number_in(name: &str, begin: &str) -> Option<u64> {
    let rest = name.strip_prefix(begin)?;
    rest.split(['-', '/']).next()?.parse().ok()
}

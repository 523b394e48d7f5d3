//! `vervet cluster backup` and `vervet cluster restore`: copies of clusters that run, and new clusters or
//! databases from them.

use crate::arguments::{ClusterBackupArguments, ClusterRestoreArguments};
use crate::bucket_store::{BucketStore, store_of};
use crate::cluster_shape::{Shape, folder_beside, print_servers, shape};
use crate::interrupt;
use crate::output::{self, Outcome, Output};
use crate::progress::Bar;
use crate::temporary_folder::TemporaryFolder;
use std::cell::OnceCell;
use std::io::Write;
use std::path::Path;
use std::time::Instant;
use vervet::{Environment, Error, Watch};
use vervet_cluster::{
    BackedUp, BackupOptions, BackupPoint, CheckedBackup, RestoreOptions, backup_status, backup_to_store,
    check_new, check_stored_backup, init, restore_from_store, stored_backup_status,
};
use vervet_model::ThreadLimits;

pub(crate) fn back_up(arguments: &ClusterBackupArguments) -> Outcome {
    let running = interrupt::start();
    let started = Instant::now();
    let options = BackupOptions {
        full: arguments.full,
        keep: arguments.keep.map(usize::from),
        ..BackupOptions::default()
    };
    let report = |server: &str, bytes: u64| {
        eprintln!("copying {} from server {server}", output::bytes(bytes));
    };
    let store = store_of(&arguments.backup)?;
    let limits = ThreadLimits { cancelled: Some(running.token.flag()), ..ThreadLimits::default() };
    let made = {
        let _limits = limits.enter();
        match &store {
            None => vervet_cluster::backup(&arguments.server, &arguments.backup, &options, &report)?,
            Some(store) => {
                let folder = temporary_folder()?;
                let bar = OnceCell::new();
                let stored = |done, total| bar.get_or_init(Bar::new).built(done, total, "stored");
                let (server, scratch) = (&arguments.server, folder.path());
                let made = backup_to_store(server, store, scratch, &options, &report, &stored);
                if let Some(bar) = bar.get() {
                    bar.finish();
                }
                made?
            }
        }
    };
    running.finish();
    let BackedUp { cluster, point: BackupPoint { time, timestamp }, data_bytes, records } = made;
    let mut out = Output::standard();
    let path = arguments.backup.display();
    match (data_bytes, records) {
        (None, 0) => {
            writeln!(out, "{path} has all of cluster {cluster} already: commit {timestamp}, {time}")?
        }
        _ => {
            let data = data_bytes.map(|bytes| format!("{} of data and ", output::bytes(bytes)));
            let what = format!("{}{} records", data.unwrap_or_default(), output::count(records));
            let elapsed = output::time(started.elapsed());
            writeln!(
                out,
                "{path} has cluster {cluster} up to commit {timestamp}, {time}: added {what} in {elapsed}"
            )?;
        }
    }
    out.finish()
}

pub(crate) fn restore(arguments: &ClusterRestoreArguments) -> Outcome {
    let running = interrupt::start();
    let started = Instant::now();
    let environment = Environment::real();
    // Before a long restore.
    let store = store_of(&arguments.backup)?;
    let limits = ThreadLimits { cancelled: Some(running.token.flag()), ..ThreadLimits::default() };
    // Requests end by these, and all else by the watches.
    let _limits = store.is_some().then(|| limits.enter());
    let status = match &store {
        None => backup_status(&environment, &arguments.backup)?,
        Some(store) => stored_backup_status(store, &environment, temporary_folder()?.path())?,
    };
    let target = match arguments.database {
        true => None,
        false => {
            let default = Shape {
                servers: u16::try_from(status.servers).unwrap_or(u16::MAX),
                is_replicated: true,
                voters: u8::try_from(status.voters).unwrap_or(u8::MAX),
            };
            let mut options = shape(&arguments.shape, &default)?;
            options.name.clone_from(&status.cluster);
            check_new(&options, &arguments.directory)?;
            Some(options)
        }
    };
    let folder = folder_beside(&arguments.directory)?;
    let bar = Bar::new();
    let applied = |done, total| bar.built(done, total, "applied");
    let watch = Watch::new("restore").cancelled_by(running.token.as_atomic()).reporting_to(&applied);
    let options =
        RestoreOptions { environment, until: arguments.until, scratch: folder.path(), changes_max: None };
    let restored = match &store {
        None => vervet_cluster::restore(&arguments.backup, &options, &watch),
        Some(store) => {
            let copied = |done, total| bar.built(done, total, "copied");
            let copying = Watch::new("restore").cancelled_by(running.token.as_atomic()).reporting_to(&copied);
            restore_from_store(store, &options, &copying, &watch)
        }
    };
    let written = |done, total| bar.built(done, total, "written");
    let watch = Watch::new("restore").cancelled_by(running.token.as_atomic()).reporting_to(&written);
    let made = restored.and_then(|restored| {
        let made = match &target {
            Some(options) => init(&restored.database, options, &arguments.directory, &watch)?,
            None => {
                restored.database.backup_watched(&arguments.directory, &watch)?;
                Vec::new()
            }
        };
        Ok((restored, made))
    });
    bar.finish();
    let (restored, made) = made?;
    running.finish();
    eprintln!(
        "restored commit {} of cluster {}, {}, in {}",
        restored.timestamp,
        restored.cluster,
        output::statements(restored.database.snapshot().statement_count()),
        output::time(started.elapsed())
    );
    match target {
        Some(_) => print_servers(&made, &arguments.directory, Output::standard()),
        None => Ok(()),
    }
}

/// A folder for what is stored, or was.
fn temporary_folder() -> Result<TemporaryFolder, Error> {
    TemporaryFolder::new().map_err(|error| {
        let what = format!("make a folder in {}", std::env::temp_dir().display());
        Error::io(what, &error).with_hint("TMPDIR names the directory for temporary files")
    })
}

/// `vervet check` of a backup of a cluster. `store`: that of the argument, if it is a URL.
pub(crate) fn check(backup: &Path, store: Option<&BucketStore>) -> Outcome {
    let running = interrupt::start();
    let started = Instant::now();
    let limits = ThreadLimits { cancelled: Some(running.token.flag()), ..ThreadLimits::default() };
    let _limits = limits.enter();
    let environment = Environment::real();
    let checked = match store {
        None => vervet_cluster::check_backup(backup, &environment),
        Some(store) => {
            let folder = temporary_folder()?;
            let bar = Bar::new();
            let copied = |done, total| bar.built(done, total, "copied");
            let watch = Watch::new("check").cancelled_by(running.token.as_atomic()).reporting_to(&copied);
            let checked = check_stored_backup(store, &environment, folder.path(), &watch);
            bar.finish();
            checked
        }
    };
    let CheckedBackup { status, records, bytes, statements, last } = checked?;
    running.finish();
    let first = status.points.first().ok_or_else(|| Error::internal("a backup without a point"))?;
    let mut out = Output::standard();
    writeln!(
        out,
        "{} is sound: a backup of cluster {} from commit {}, {}, to commit {}, {}; {} of {} and {} records of {}, \
         verified in {}",
        backup.display(),
        status.cluster,
        first.timestamp,
        first.time,
        last.timestamp,
        last.time,
        if status.bases == 1 { "a copy".to_owned() } else { format!("{} copies", status.bases) },
        output::statements(statements),
        output::count(records),
        output::bytes(bytes),
        output::time(started.elapsed()),
    )?;
    out.finish()
}

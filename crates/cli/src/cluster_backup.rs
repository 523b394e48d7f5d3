//! `vervet cluster backup` and `vervet cluster restore`: copies of clusters that run, and new clusters or
//! databases from them.

use crate::arguments::{ClusterBackupArguments, ClusterRestoreArguments};
use crate::cluster_shape::{Shape, folder_beside, print_servers, shape};
use crate::interrupt;
use crate::output::{self, Outcome, Output};
use crate::progress::Bar;
use std::io::Write;
use std::path::Path;
use std::time::Instant;
use vervet::{Environment, Error, Watch};
use vervet_cluster::{
    BackedUp, BackupOptions, BackupPoint, CheckedBackup, RestoreOptions, backup_status, check_new, init,
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
    let made = {
        let limits = ThreadLimits { cancelled: Some(running.token.flag()), ..ThreadLimits::default() };
        let _limits = limits.enter();
        vervet_cluster::backup(&arguments.server, &arguments.backup, &options, &report)?
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
    let status = backup_status(&environment, &arguments.backup)?;
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
    let restored = vervet_cluster::restore(&arguments.backup, &options, &watch);
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

/// `vervet check` of a backup of a cluster.
pub(crate) fn check(backup: &Path) -> Outcome {
    let running = interrupt::start();
    let started = Instant::now();
    let limits = ThreadLimits { cancelled: Some(running.token.flag()), ..ThreadLimits::default() };
    let _limits = limits.enter();
    let CheckedBackup { status, records, bytes, statements, last } =
        vervet_cluster::check_backup(backup, &Environment::real())?;
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

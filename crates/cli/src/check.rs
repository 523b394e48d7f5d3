//! `vervet check`: verifies every byte of a database, of the directory of a server of a cluster, or of a
//! backup of a cluster.

use crate::arguments::CheckArguments;
use crate::bucket_store::store_of;
use crate::cluster_backup;
use crate::output::{self, Outcome, Output};
use std::io::Write;
use std::time::Instant;
use vervet::{Database, DatabaseOptions};
use vervet_cluster::{BACKUP_FILE, MAP_FILE};

pub(crate) fn run(arguments: &CheckArguments) -> Outcome {
    let started = Instant::now();
    if let Some(store) = store_of(&arguments.database)? {
        return cluster_backup::check(&arguments.database, Some(&store));
    }
    if arguments.database.join(MAP_FILE).exists() {
        let found = vervet_cluster::check(&arguments.database, &DatabaseOptions::default())?;
        let mut out = Output::standard();
        writeln!(
            out,
            "{} is sound: server {} of cluster {}, {} of {} partitions of {} statements, {} verified in {}",
            arguments.database.display(),
            found.server,
            found.cluster,
            found.partitions.0,
            found.partitions.1,
            output::count(found.statements),
            output::bytes(found.size_bytes),
            output::time(started.elapsed()),
        )?;
        if let Some(log) = found.log {
            let (commits, size) = (output::count(log.commits), output::bytes(log.bytes));
            writeln!(out, "its log of changes is sound: {commits} commits, {size}")?;
        }
        if let Some(log) = found.voter_log {
            let (entries, size) = (output::count(log.entries), output::bytes(log.bytes));
            writeln!(out, "its replicated log is sound: {entries} entries, {size}")?;
        }
        return out.finish();
    }
    if arguments.database.join(BACKUP_FILE).exists() {
        return cluster_backup::check(&arguments.database, None);
    }
    let database = Database::open(&arguments.database)?;
    database.check()?;
    let size: u64 = database.component_sizes()?.iter().map(|part| part.size_bytes).sum();
    let mut out = Output::standard();
    writeln!(
        out,
        "{} is sound: {} statements, {} verified in {}",
        arguments.database.display(),
        output::count(database.snapshot().statement_count()),
        output::bytes(size),
        output::time(started.elapsed()),
    )?;
    out.finish()
}

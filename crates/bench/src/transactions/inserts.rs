//! Insertions: one edge per transaction, by many clients with a sync for each commit, a million in one
//! transaction; and recovery from the resulting log.

use super::clients::{self, Load};
use super::graphs::{Data, StorageLocation, TemporaryDatabase};
use super::options::TransactionOptions;
use crate::sections::{Section, SectionReport};
use crate::table::{count, figure};
use std::time::Instant;
use vervet::{Database, Durability, NamedNode};
use vervet_generate::Random;
use vervet_model::{Error, Result};

const LINK: &str = "urn:bench:link";
const MIB: f64 = 1_048_576.0;

/// Inserts a random edge between two of `vertices`, the same in each run.
fn insert(db: &Database, vertices: &[NamedNode], link: &NamedNode, client: usize, number: u64) -> Result<()> {
    let mut random = Random::new((client as u64) << 40 | number);
    let mut draw = || random.pick(vertices);
    let mut transaction = db.begin()?;
    let edge = oxrdf::QuadRef::new(draw(), link, draw(), oxrdf::GraphNameRef::DefaultGraph);
    transaction.insert(edge)?;
    transaction.commit().map(drop)
}

/// Transactions of one edge each, without a sync.
pub(super) fn single(data: &Data, options: &TransactionOptions, report: &mut SectionReport) -> Result<()> {
    let mut section = Section::new(
        "One edge in each transaction",
        "Serializable. Both ends exist and are looked up by their IRIs. `log, none`: the log is written without a \
         sync. Checkpoints run in the background when they are due.",
        &["where", "clients", "transactions/s", "by CPU second", "p50 µs", "p99 µs", "longest ms", "aborted"],
    );
    let link = NamedNode::new_unchecked(LINK);
    for place in [StorageLocation::Memory, StorageLocation::Directory(Durability::None)] {
        for &clients in &options.clients {
            let made = data.database(place, |_| {})?;
            let vertices = data.vertices(&made.db)?;
            let before = made.db.snapshot().statement_count();
            let load = Load { clients, time: options.time, warm_up: 100 };
            let outcome =
                clients::run(load, |client, number| insert(&made.db, &vertices, &link, client, number))?;
            let added = made.db.snapshot().statement_count() - before;
            // An edge may be drawn twice.
            if added > outcome.done + 100 * clients as u64 || added < outcome.done / 2 {
                return Err(Error::internal(format!("{} commits added {added} edges", outcome.done)));
            }
            section.row(vec![
                place.name(),
                clients.to_string(),
                figure(outcome.rate()),
                figure(outcome.done as f64 / outcome.cpu_seconds),
                figure(outcome.quantile_us(0.5)),
                figure(outcome.quantile_us(0.99)),
                figure(outcome.quantile_us(1.0) / 1e3),
                figure(outcome.abort_share()),
            ]);
            if clients == 1 && place != StorageLocation::Memory {
                report.target(
                    "single-edge transactions/s, one client, not synced",
                    outcome.rate(),
                    150_000.0,
                    false,
                );
            }
        }
    }
    report.push(section);
    Ok(())
}

/// Single-edge transactions with a sync for each commit, shared by concurrent commits (group commit).
pub(super) fn group_commit(
    data: &Data,
    options: &TransactionOptions,
    report: &mut SectionReport,
) -> Result<()> {
    let mut section = Section::new(
        "Group commit",
        "The same at the level `sync`: a commit returns when it is on disk.",
        &["clients", "transactions/s", "times one client", "p50 µs", "p99 µs", "aborted"],
    );
    let link = NamedNode::new_unchecked(LINK);
    let mut one = None;
    for clients in [1, 4, 16] {
        let made = data.database(StorageLocation::Directory(Durability::Sync), |_| {})?;
        let vertices = data.vertices(&made.db)?;
        let load = Load { clients, time: options.time, warm_up: 2 };
        let outcome =
            clients::run(load, |client, number| insert(&made.db, &vertices, &link, client, number))?;
        let times = outcome.rate() / *one.get_or_insert(outcome.rate());
        section.row(vec![
            clients.to_string(),
            figure(outcome.rate()),
            figure(times),
            figure(outcome.quantile_us(0.5)),
            figure(outcome.quantile_us(0.99)),
            figure(outcome.abort_share()),
        ]);
        if clients == 16 {
            report.target("synced transactions of sixteen clients, times those of one", times, 8.0, false);
        }
    }
    report.push(section);
    Ok(())
}

/// Many statements in one transaction, and the time of reopening.
pub(super) fn bulk(data: &Data, options: &TransactionOptions, report: &mut SectionReport) -> Result<()> {
    let mut section = Section::new(
        format!("{} statements in one transaction", count(options.bulk)),
        "In a directory, at the level `sync`, without a checkpoint: as the text of `INSERT DATA`, and by calls of \
         the library with statements of known terms. Recovery: the time to reopen the database, with the log in \
         the page cache.",
        &["way", "s", "statements/s", "log MiB", "recovery s", "recovery MiB/s"],
    );
    let link = NamedNode::new_unchecked(LINK);
    for way in ["library", "INSERT DATA"] {
        let made = data
            .database(StorageLocation::Directory(Durability::Sync), |options| options.checkpoints = false)?;
        let vertices = data.vertices(&made.db)?;
        let mut random = Random::new(1);
        let mut draw = || random.pick(&vertices);
        let pairs: Vec<_> = (0..options.bulk).map(|_| (draw(), draw())).collect();
        let before = made.db.snapshot().statement_count();
        let disk = made.disk_bytes()?;
        let text = || {
            let mut text = String::from("INSERT DATA {\n");
            pairs.iter().for_each(|(from, to)| text.extend([&format!("{from} {link} {to} .\n")[..]]));
            text + "}"
        };
        let text = (way != "library").then(text);
        let begin = Instant::now();
        match &text {
            Some(text) => drop(made.db.update(text)?),
            None => {
                let mut transaction = made.db.begin()?;
                let edges = pairs.iter().map(|(from, to)| {
                    oxrdf::QuadRef::new(*from, &link, *to, oxrdf::GraphNameRef::DefaultGraph)
                });
                transaction.insert_all(edges)?;
                transaction.commit()?;
            }
        }
        let seconds = begin.elapsed().as_secs_f64();
        let after = made.db.snapshot().statement_count();
        if after <= before {
            return Err(Error::internal("a bulk insert added nothing"));
        }
        let log = made.disk_bytes()?.saturating_sub(disk) as f64 / MIB;
        let (recovery, made) = reopen(made)?;
        if made.db.snapshot().statement_count() != after {
            return Err(Error::internal("a bulk insert was not recovered"));
        }
        let rate = options.bulk as f64 / seconds;
        section.row(vec![
            way.to_owned(),
            figure(seconds),
            figure(rate),
            figure(log),
            figure(recovery),
            figure(log / recovery),
        ]);
        if text.is_none() {
            report.target("bulk insert in one transaction, statements/s", rate, 500_000.0, false);
        }
    }
    report.push(section);
    recovery_of_small(data, options, report)
}

/// Reopening after many small transactions.
fn recovery_of_small(data: &Data, options: &TransactionOptions, report: &mut SectionReport) -> Result<()> {
    let mut section = Section::new(
        "Recovery of small transactions",
        "Transactions of one edge each, without a checkpoint; then the database is reopened. `new terms`: the \
         target of each edge is a new vertex.",
        &["transactions", "edges to", "log MiB", "recovery s", "MiB/s", "transactions/s"],
    );
    let link = NamedNode::new_unchecked(LINK);
    for new_terms in [false, true] {
        let made = data
            .database(StorageLocation::Directory(Durability::None), |options| options.checkpoints = false)?;
        let vertices = data.vertices(&made.db)?;
        let before = made.disk_bytes()?;
        let number = options.bulk / 4;
        for (at, from) in (0..number).zip(vertices.iter().cycle()) {
            if new_terms {
                let to = NamedNode::new_unchecked(format!("urn:bench:new:{at}"));
                let mut transaction = made.db.begin()?;
                let graph = oxrdf::GraphNameRef::DefaultGraph;
                transaction.insert(oxrdf::QuadRef::new(from, &link, &to, graph))?;
                transaction.commit()?;
            } else {
                insert(&made.db, &vertices, &link, 0, at)?;
            }
        }
        let after = made.db.snapshot().statement_count();
        // Closed first, so that buffered records count.
        let made = made.reopen()?;
        let log = made.disk_bytes()?.saturating_sub(before) as f64 / MIB;
        let (recovery, made) = reopen(made)?;
        if made.db.snapshot().statement_count() != after {
            return Err(Error::internal("small transactions were not recovered"));
        }
        section.row(vec![
            count(number),
            if new_terms { "new terms" } else { "known vertices" }.to_owned(),
            figure(log),
            figure(recovery),
            figure(log / recovery),
            figure(number as f64 / recovery),
        ]);
        if !new_terms {
            report.target("recovery of small transactions, MiB/s", log / recovery, 200.0, false);
        }
    }
    report.push(section);
    Ok(())
}

/// The time of reopening, minus the time of opening without a log.
fn reopen(made: TemporaryDatabase) -> Result<(f64, TemporaryDatabase)> {
    let begin = Instant::now();
    let made = made.reopen()?;
    Ok((begin.elapsed().as_secs_f64(), made))
}

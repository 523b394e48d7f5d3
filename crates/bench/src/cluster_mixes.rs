//! Mixes of the social network over several servers, beside one database: the reads and writes of G-Tran's
//! LBV benchmark, and the short reads IS1 to IS7 of LDBC in Gremlin.
//!
//! # Shape
//! The servers are in this process, with connections over the loopback address and TLS as between machines; a
//! client reads at one server, the clients at different ones, and writes at the leader. They have the whole
//! graph each, or each partition is at one server. All of them share the processors that the one database
//! has alone, so a rate here is that of one machine, and not of several.
//! # Check
//! Before the short reads are measured, each server must return the rows of the one database for all
//! parameters.

use crate::data::test_data;
use crate::loopback::{self, Leading};
use crate::snb::{self, Found, Network, Operation, SubstitutionParameters};
use crate::table::{Table, figure};
use crate::target::{self, Target};
use crate::transactions::{Data, LbvMix, Load, Outcome, StorageLocation, run_clients};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;
use vervet::{Database, Durability, Isolation};
use vervet_cluster::{Cluster, InitOptions};
use vervet_generate::Random;
use vervet_model::{Error, ErrorKind, Result};

/// Voters, also among more servers.
const VOTERS: usize = 3;

/// The mixes of LBV: percentages of reads.
const MIXES: [(&str, u32); 3] = [("read-only", 100), ("80:20", 80), ("20:80", 20)];

/// Options of a run.
#[derive(Clone, Debug, Args)]
pub struct MixOptions {
    /// An archive (.tar.zst) of the social network
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// Number of servers
    #[arg(long, default_value_t = 4, value_name = "NUMBER")]
    servers: usize,
    /// Number of partitions, a power of two
    #[arg(long, default_value_t = 16, value_name = "NUMBER")]
    partitions: usize,
    /// Number of clients
    #[arg(long, default_value_t = 8, value_name = "NUMBER")]
    clients: usize,
    /// Seconds for each figure
    #[arg(long, default_value_t = 3.0, value_name = "SECONDS")]
    seconds: f64,
    /// Sets of parameters of each short read
    #[arg(long, default_value_t = 20, value_name = "NUMBER")]
    parameters: usize,
}

/// Where the graph is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Database,
    Whole,
    Partitions,
}

impl Place {
    const ALL: [Self; 3] = [Self::Database, Self::Whole, Self::Partitions];

    fn name(self, options: &MixOptions) -> String {
        let MixOptions { servers, partitions, .. } = options;
        match self {
            Self::Database => "one database".to_owned(),
            Self::Whole => format!("{servers} servers, the whole graph at each"),
            Self::Partitions => format!("{servers} servers, {partitions} partitions"),
        }
    }
}

/// Prints the tables, and the targets; `false`: a server returns other rows than the one database.
///
/// # Errors
/// The data cannot be read; a server cannot be started; a transaction fails.
pub fn run(options: &MixOptions) -> Result<bool> {
    let missing = || Error::new(ErrorKind::Input, "there is no test data; give --data");
    let file = match &options.data {
        Some(file) => file.clone(),
        None => test_data().ok_or_else(missing)?.join("data/ldbc-snb/sf0.1-rebuilt.tar.zst"),
    };
    let mut targets = Vec::new();
    let table = lbv(&Data::open(&file)?, options, &mut targets)?;
    println!("{table}");
    let (table, is_right) = short_reads(&Network::open(&file)?, options, &mut targets)?;
    println!("{table}");
    println!("{}", target::table(&targets));
    println!("{}", if is_right { "all servers return the same rows" } else { "DIFFERENT rows" });
    Ok(is_right)
}

fn load(options: &MixOptions) -> Load {
    let time = Duration::try_from_secs_f64(options.seconds).unwrap_or(Duration::from_secs(3));
    Load { clients: options.clients, time, warm_up: 100 }
}

/// Servers of a graph in this process, with voters.
fn start(
    database: &Database,
    place: Place,
    options: &MixOptions,
) -> Result<(Vec<Cluster>, tempfile::TempDir)> {
    let mut made = InitOptions::on_host(options.servers, options.partitions, "127.0.0.1", (0, 0));
    made.voters = made.servers.iter().take(VOTERS).map(|server| server.name.clone()).collect();
    if place == Place::Whole {
        made.replicas = options.servers;
    }
    loopback::start(database, made)
}

fn row(place: &str, mix: &str, clients: usize, outcome: &Outcome) -> Vec<String> {
    vec![
        place.to_owned(),
        mix.to_owned(),
        clients.to_string(),
        figure(outcome.rate()),
        figure(outcome.quantile_us(0.5)),
        figure(outcome.quantile_us(0.99)),
        figure(outcome.cpu_seconds * 1e6 / outcome.done.max(1) as f64),
    ]
}

const COLUMNS: [&str; 7] =
    ["servers", "mix", "clients", "transactions/s", "p50 µs", "p99 µs", "CPU µs / transaction"];

/// LBV, serializable, with synced commits. A conflict counts, and is not repeated.
fn lbv(data: &Data, options: &MixOptions, targets: &mut Vec<Target>) -> Result<Table> {
    let mut table = Table::new(&[&COLUMNS[..], &["writes refused, %"]].concat());
    for (mix, reads) in MIXES {
        for place in Place::ALL {
            // Each measurement begins with the same graph.
            let location = match place {
                Place::Database => StorageLocation::Directory(Durability::Sync),
                _ => StorageLocation::Memory,
            };
            let made = data.database(location, |_| ())?;
            let drawn = LbvMix::new(data, &made.db)?;
            let outcome = if place == Place::Database {
                run_clients(load(options), |client, number| {
                    let mut random = Random::for_part(7, &[client as u64, number]);
                    match random.below(100) < reads {
                        true => drawn.read(&made.db, &mut random),
                        false => drawn.write(&made.db, Isolation::Serializable, &mut random),
                    }
                })?
            } else {
                let (servers, _folder) = start(&made.db, place, options)?;
                let leading = Leading::of(&servers)?;
                run_clients(load(options), |client, number| {
                    let mut random = Random::for_part(7, &[client as u64, number]);
                    match random.below(100) < reads {
                        true => drawn.read(servers[client % servers.len()].database(), &mut random),
                        false => leading.run(|database| {
                            drawn.write(database, Isolation::Serializable, &mut random.clone())
                        }),
                    }
                })?
            };
            let writes = (outcome.done + outcome.conflicts) as f64 * (1.0 - f64::from(reads) / 100.0);
            let refused = 100.0 * outcome.conflicts as f64 / writes.max(1.0);
            let name = place.name(options);
            let mut cells = row(&name, mix, options.clients, &outcome);
            cells.push(if reads == 100 { "—".to_owned() } else { figure(refused) });
            table.row(cells);
            if reads == 20 {
                targets.push(target(format!("{mix}: {name}: writes refused, %"), 1.0, true, refused));
            }
        }
    }
    Ok(table)
}

fn target(what: String, target: f64, at_most: bool, reached: f64) -> Target {
    Target { what, target, at_most, reached, is_bound: false }
}

/// IS1 to IS7 in Gremlin, drawn uniformly with their parameters. `false`: other rows than the one database.
fn short_reads(network: &Network, options: &MixOptions, targets: &mut Vec<Target>) -> Result<(Table, bool)> {
    let database = Database::in_memory();
    network.load(&database)?;
    let substitution = SubstitutionParameters::new(&database, None, options.parameters)?;
    let names: Vec<String> = (1..=7).map(|number| format!("IS{number}")).collect();
    let operations = snb::operations(&substitution, &names)?;
    let expected = all_rows(&database, &operations)?;
    let (mut table, mut is_right, mut alone) = (Table::new(&COLUMNS), true, 0.0);
    for place in Place::ALL {
        let made = if place == Place::Database { None } else { Some(start(&database, place, options)?) };
        let databases: Vec<&Database> = match &made {
            None => vec![&database],
            Some((servers, _)) => {
                loopback::leader(servers)?;
                servers.iter().map(Cluster::database).collect()
            }
        };
        for at in &databases {
            is_right &= all_rows(at, &operations)? == expected;
        }
        let outcome = run_clients(load(options), |client, number| {
            let mut random = Random::for_part(11, &[client as u64, number]);
            let operation = random.pick(&operations);
            let parameters = random.below(u32::try_from(operation.parameters.len()).unwrap_or(1).max(1));
            snb::run_once(databases[client % databases.len()], operation, parameters as usize).map(drop)
        })?;
        let name = place.name(options);
        table.row(row(&name, "IS1 to IS7", options.clients, &outcome));
        match place {
            Place::Database => alone = outcome.rate(),
            _ => targets.push(target(
                format!("IS1 to IS7: {name}: share of the rate of one database"),
                1.0 / 3.0,
                false,
                outcome.rate() / alone,
            )),
        }
    }
    Ok((table, is_right))
}

fn all_rows(database: &Database, operations: &[Operation]) -> Result<Vec<Vec<Found>>> {
    operations.iter().map(|operation| snb::once(database, operation)).collect()
}

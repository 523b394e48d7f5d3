//! Histories over processes of `vervet serve` that elect a leader, while they are killed, stopped, slowed
//! down and cut off from each other: `cargo xtask conformance history --cluster N`.
//!
//! # Shape
//! One cluster for all histories, each with keys of its own. Clients (`client.rs`) run the transactions of
//! the embedded histories over the network, while a thread injects faults (`server_faults.rs`). At the end
//! of each history one strict read has all its keys. When all is done the faults end, and each server must
//! answer the same reads. Then our own checker and the third parties judge.
//! # Freshness
//! What a session at the leader reads without writing, and a read without `Vervet-Consistency: strict`, may
//! miss the newest commits, so these are [`Freshness::Session`](super::record::Freshness): consistent, and
//! never going back at one server between two of its starts.

mod client;
mod shared;

use super::checkers;
use super::client::{KEY_LIFE, KEYS, THREADS};
use super::options::LEVELS;
use super::record::{CommitOutcome, Entry, Freshness, History, Kind, Operation};
use super::requests::keys_exist;
use super::storage::{Storage, StorageForm};
use super::{HISTORY_TRANSACTIONS, OWN, Options, Tally, own_checker, write};
use crate::Report;
use crate::server_faults::{FaultKind, Figures, Injector};
use crate::voter_processes::{Http, LOOK_INTERVAL, NoAnswer, PATIENCE, Servers, program};
use client::{Client, Counts};
use shared::Run;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use vervet::{Database, Isolation};
use vervet_testkit::Random;

/// Numbers of keys from one history to the next.
const KEYS_EACH: u64 = 100_000;

/// A history with the keys that it used.
struct Recorded {
    name: String,
    storage: Storage,
    keys: Range<u64>,
    history: History,
}

/// Records histories over `count` servers with faults of these kinds, and has them checked.
///
/// # Errors
/// The program `vervet` is missing; the cluster cannot be made; a server does not become ready again; no
/// client gets on; a checker fails. A wrong verdict is a failure in the report.
pub fn run(options: &Options, count: usize, faults: &[FaultKind], report: &mut Report) -> Result<(), String> {
    let program = program()?;
    println!(
        "seed {}, {count} servers, {THREADS} clients, histories in {}",
        options.seed,
        options.to.display()
    );
    let mut random = Random(options.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let database = Database::in_memory();
    database.update(&keys_exist(0..1)).map_err(|error| error.to_string())?;
    let mut servers = Servers::start_with_relays(&program, &database, count)?;
    let done = record_all(options, &servers, faults, &mut random);
    let (mut recorded, counts, figures) = match done {
        Ok(done) => done,
        Err(reason) => {
            println!("the files of the servers are in {}", servers.keep().display());
            return Err(reason);
        }
    };
    println!("{figures}; {counts}");
    for (message, number) in &counts.unexpected {
        report.add("errors of requests", message, Err(format!("{number} times")));
    }
    let equal = equal_at_all_servers(&servers, &mut recorded);
    report.add("equal graphs", "at all servers", equal);
    drop(servers);
    let folder = options.to.join(format!("servers-{}", options.seed));
    let (mut tally, begun, before) = (Tally::default(), Instant::now(), report.failed());
    for Recorded { name, history, .. } in &recorded {
        tally.add(history);
        write::write(history, &folder, name)?;
        report.add(OWN, name, own_checker::check(history));
    }
    let rejected = report.failed() - before;
    println!("{tally}; {rejected} rejected by our own checker, in {:.1} s", begun.elapsed().as_secs_f64());
    checkers::accepted_by_dbcop(options, LEVELS[0], &folder, tally.histories, report)?;
    checkers::accepted_by_elle(options, LEVELS[0], &folder, tally.histories, report)
}

fn record_all(
    options: &Options,
    servers: &Servers,
    faults: &[FaultKind],
    random: &mut Random,
) -> Result<(Vec<Recorded>, Counts, Figures), String> {
    let run = Run {
        servers,
        leader: AtomicUsize::new(0),
        start: Instant::now(),
        elements: AtomicU64::new(1),
        clients: AtomicU64::new(0),
    };
    let is_over = AtomicBool::new(false);
    let injector = Injector::new(servers, faults, &run.leader, Random(random.next() | 1));
    std::thread::scope(|scope| {
        let injecting = scope.spawn(|| injector.run(&is_over));
        let recorded = histories(options, &run, random, &is_over, || injecting.is_finished());
        is_over.store(true, Ordering::SeqCst);
        let figures = injecting.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let (recorded, counts) = recorded?;
        Ok((recorded, counts, figures))
    })
}

/// Records histories until enough transactions have committed.
fn histories(
    options: &Options,
    run: &Run<'_>,
    random: &mut Random,
    is_over: &AtomicBool,
    has_failed: impl Fn() -> bool,
) -> Result<(Vec<Recorded>, Counts), String> {
    let (mut all, mut counts, mut committed) = (Vec::new(), Counts::default(), 0);
    let transactions = HISTORY_TRANSACTIONS.min(options.transactions.max(THREADS));
    for number in 0.. {
        for kind in Kind::ALL {
            for shape in StorageForm::ALL {
                if committed >= options.transactions || has_failed() {
                    return Ok((all, counts));
                }
                let storage = Storage { kind, shape, isolation: Isolation::Serializable };
                let first = (all.len() as u64 + 1) * KEYS_EACH;
                let (history, keys) =
                    record(run, storage, first, transactions, (random, &mut counts, is_over))?;
                committed += history.count(CommitOutcome::Committed);
                let name = format!("{}-{}-{number:03}", kind.name(), shape.name());
                all.push(Recorded { name, storage, keys, history });
            }
        }
    }
    Ok((all, counts))
}

/// Records one history, with keys from `first` on.
fn record(
    run: &Run<'_>,
    storage: Storage,
    first: u64,
    transactions: u64,
    (random, counts, is_over): (&mut Random, &mut Counts, &AtomicBool),
) -> Result<(History, Range<u64>), String> {
    let begun = AtomicU64::new(0);
    let share = transactions / THREADS;
    // Twice as many as a history without refusals begins.
    let keys = first..first + KEYS + 2 * transactions / KEY_LIFE + 1;
    until_done(run, &keys_exist(keys.clone()))?;
    let mut clients: Vec<Client<'_>> = (0..THREADS)
        .map(|_| Client::new(run, storage, keys.clone(), &begun, Random(random.next() | 1)))
        .collect();
    std::thread::scope(|scope| {
        let run_client = |client| scope.spawn(move || Client::run(client, share, is_over));
        let threads: Vec<_> = clients.iter_mut().map(run_client).collect();
        let ends = threads.into_iter().map(|thread| thread.join());
        ends.map(|end| end.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect::<Result<Vec<()>, String>>()
    })?;
    let mut entries = Vec::new();
    for client in clients {
        counts.add(&client.counts);
        entries.extend(client.entries);
    }
    entries.push(read_all(run, 0, storage, keys.clone())?);
    Ok((History { kind: storage.kind, entries }, keys))
}

/// Sends an update, which may take effect several times, until it is acknowledged.
fn until_done(run: &Run<'_>, text: &str) -> Result<(), String> {
    let (http, begun) = (Http::new(Duration::from_secs(2)), Instant::now());
    for at in 0.. {
        let server = &run.servers.servers[at % run.servers.servers.len()];
        let reason = match http.update(&server.address, text) {
            Ok((200..=299, _)) => return Ok(()),
            Ok((_, reason)) | Err(NoAnswer::Lost(reason)) => reason,
            Err(NoAnswer::NotSent) => "nothing listens".to_owned(),
        };
        if begun.elapsed() > PATIENCE {
            return Err(format!("no server takes an update: {reason}"));
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
    Ok(())
}

/// A strict read of all keys, at server `first` or, if it does not answer, at a later one.
fn read_all(run: &Run<'_>, first: usize, storage: Storage, keys: Range<u64>) -> Result<Entry, String> {
    let (http, begun) = (Http::new(Duration::from_secs(10)), Instant::now());
    let text = storage.sparql_read(keys.clone());
    for at in first.. {
        let server = &run.servers.servers[at % run.servers.servers.len()];
        let began = run.now();
        let reason = match http.strict_query(&server.address, &text) {
            Ok((200, csv)) => {
                let ended = run.now();
                let mut elements = storage.elements_of_csv(&csv)?;
                let read =
                    |key| Operation::Read { key, seen: Some(elements.remove(&key).unwrap_or_default()) };
                return Ok(Entry {
                    client: run.client_number(),
                    began,
                    ended,
                    outcome: CommitOutcome::Committed,
                    freshness: Freshness::Strict,
                    operations: keys.map(read).collect(),
                });
            }
            Ok((_, reason)) | Err(NoAnswer::Lost(reason)) => reason,
            Err(NoAnswer::NotSent) => "nothing listens".to_owned(),
        };
        if begun.elapsed() > PATIENCE {
            return Err(format!("no server answers a strict read: {reason}"));
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
    Err("no server".to_owned())
}

/// Adds a strict read of all keys at each server to each history. All must show the same.
fn equal_at_all_servers(servers: &Servers, recorded: &mut [Recorded]) -> Result<(), String> {
    let after = |recorded: &[Recorded]| {
        let entries = recorded.iter().flat_map(|recorded| &recorded.history.entries);
        let client = entries.clone().map(|entry| entry.client).max().unwrap_or(0);
        (entries.map(|entry| entry.ended).max().unwrap_or(0), client)
    };
    let (ended, client) = after(recorded);
    let run = Run {
        servers,
        leader: AtomicUsize::new(0),
        start: Instant::now(),
        elements: AtomicU64::new(0),
        clients: AtomicU64::new(client + 1),
    };
    let mut different = Ok(());
    for Recorded { name, storage, keys, history } in recorded {
        let mut first: Option<Entry> = None;
        for at in 0..servers.servers.len() {
            let mut entry = read_all(&run, at, *storage, keys.clone())?;
            // The clock of this run began later.
            (entry.began, entry.ended) = (entry.began + ended + 1, entry.ended + ended + 1);
            if first.as_ref().is_some_and(|first| first.operations != entry.operations) && different.is_ok() {
                different = Err(format!("the servers differ in history {name}"));
            }
            first.get_or_insert_with(|| entry.clone());
            history.entries.push(entry);
        }
    }
    different
}

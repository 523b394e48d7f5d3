//! What clients ask of servers, and how a server does it.
//!
//! # Shape
//! The graph has [`KEYS`] registers: `<urn:r:K> <urn:value> <urn:v:N>`, or nothing. A transaction that writes
//! has a number of its own, writes it into registers, and adds `<urn:tx:N> <urn:by> C`, so that the log says
//! which transaction each commit is. Numbers are new terms of the graph.

use crate::merges::Source;
use oxrdf::{GraphNameRef, QuadRef};
use std::sync::Arc;
use std::time::Duration;
use vervet::{
    Answer as Answered, Database, FeedFormat, FeedLimits, FeedPosition, FeedRefusal, Isolation, NamedNode,
    QueryOptions, Term, Timestamp, Transaction, TransactionOptions,
};
use vervet_cluster::Cluster;
use vervet_model::{Error, ErrorKind, Result};

/// Number of registers.
pub(crate) const KEYS: usize = 8;

/// Statements of [`first_data`].
const FIRST_STATEMENTS: u64 = 64;

/// The value of each register.
pub(crate) type Registers = [Option<u64>; KEYS];

/// A step of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// Reads a register.
    Read(usize),
    /// Reads all registers by one query, so that what is absent is read as well.
    ReadAll,
    /// Replaces the value of a register.
    Write(usize),
    /// Replaces the value of a register by an update that finds the old one.
    Replace(usize),
    /// Empties a register.
    Clear(usize),
    /// Waits for so many microseconds.
    Pause(u64),
}

/// A request to a server.
#[derive(Clone, Debug)]
pub(crate) enum Request {
    /// A transaction of several steps at the server itself, which has to lead.
    Transaction { number: u64, client: u64, steps: Vec<Step>, isolation: Isolation },
    /// One update, which the server sends on to the leader. With `once` a repetition changes nothing.
    Update { number: u64, client: u64, keys: Vec<usize>, once: bool },
    /// Reads all registers. `strict`: with all that was committed before.
    Read { strict: bool },
    /// The commits after one.
    Feed { after: u64 },
    /// The number of transactions in the graph.
    Count,
    /// Merges changes into the data.
    Merge,
    /// Names of the voters.
    Voters,
    /// What the server says of itself.
    Status,
}

/// What a step has read: the registers that it read.
pub(crate) type Seen = Vec<(usize, Option<u64>)>;

/// How a transaction has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// With its number, if it is told.
    Committed(Option<u64>),
    /// Nothing was changed.
    Refused,
    Unknown,
}

/// A commit in the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Commit {
    pub(crate) timestamp: u64,
    /// Number of the transaction; `None`: it has none.
    pub(crate) transaction: Option<u64>,
    /// Values that were inserted into registers and removed from them, in order.
    pub(crate) changes: Vec<(usize, u64, bool)>,
}

/// An answer of a server.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// Of a transaction or an update: what each step has read.
    Done(Outcome, Vec<Seen>),
    /// With what they were read from.
    Registers(Registers, Source),
    Commits(Vec<Commit>),
    Count(u64),
    /// Whether there was something to merge.
    Merged(bool),
    Voters(Vec<String>),
    Status(String),
    /// It does not answer this at present.
    Unavailable,
    /// The log does not have these commits any more.
    Gone,
    /// What no server should say.
    Wrong(String),
}

fn register(key: usize) -> NamedNode {
    NamedNode::new_unchecked(format!("urn:r:{key}"))
}

fn value(number: u64) -> NamedNode {
    NamedNode::new_unchecked(format!("urn:v:{number}"))
}

fn wrong(what: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Corrupt, format!("a register has {what}"))
}

fn number_of(term: &Term) -> Result<u64> {
    let number = match term {
        Term::NamedNode(node) => node.as_str().strip_prefix("urn:v:").and_then(|text| text.parse().ok()),
        _ => None,
    };
    number.ok_or_else(|| wrong(term))
}

fn read(transaction: &Transaction, key: usize) -> Result<Option<u64>> {
    let solutions = transaction.select(&format!("SELECT ?v {{ <urn:r:{key}> <urn:value> ?v }}"))?;
    let mut found = None;
    for row in solutions.rows() {
        let term = row.get("v")?.ok_or_else(|| wrong("nothing"))?;
        if found.replace(number_of(&term)?).is_some() {
            return Err(wrong("two values"));
        }
    }
    Ok(found)
}

/// Stands in the profile of a query that has read partitions of other servers.
const REMOTE: &str = "reads in place";

const ALL: &str = "SELECT ?r ?v { ?r <urn:value> ?v }";

fn all(solutions: &vervet::Solutions) -> Result<Registers> {
    let mut registers = Registers::default();
    for row in solutions.rows() {
        let (key, found) = (row.get("r")?, row.get("v")?);
        let key = match &key {
            Some(Term::NamedNode(node)) => node.as_str().strip_prefix("urn:r:").and_then(|k| k.parse().ok()),
            _ => None,
        };
        let place = key.and_then(|key: usize| registers.get_mut(key)).ok_or_else(|| wrong("a wrong name"))?;
        if place.replace(number_of(&found.ok_or_else(|| wrong("nothing"))?)?).is_some() {
            return Err(wrong("two values"));
        }
    }
    Ok(registers)
}

fn step(transaction: &mut Transaction, number: u64, step: Step) -> Result<Seen> {
    let predicate = NamedNode::new_unchecked("urn:value");
    let remove = |transaction: &mut Transaction, key: usize| -> Result<Seen> {
        let found = read(transaction, key)?;
        if let Some(old) = found {
            let (subject, object) = (register(key), value(old));
            transaction.remove(QuadRef::new(
                subject.as_ref(),
                predicate.as_ref(),
                object.as_ref(),
                GraphNameRef::DefaultGraph,
            ))?;
        }
        Ok(vec![(key, found)])
    };
    match step {
        Step::Read(key) => Ok(vec![(key, read(transaction, key)?)]),
        Step::ReadAll => Ok(all(&transaction.select(ALL)?)?.into_iter().enumerate().collect()),
        Step::Clear(key) => remove(transaction, key),
        Step::Write(key) => {
            let seen = remove(transaction, key)?;
            let (subject, object) = (register(key), value(number));
            transaction.insert(QuadRef::new(
                subject.as_ref(),
                predicate.as_ref(),
                object.as_ref(),
                GraphNameRef::DefaultGraph,
            ))?;
            Ok(seen)
        }
        Step::Replace(key) => {
            transaction.update(&replacement(number, &[key], None))?;
            Ok(Vec::new())
        }
        Step::Pause(microseconds) => {
            std::thread::sleep(Duration::from_micros(microseconds));
            Ok(Vec::new())
        }
    }
}

/// An update that writes registers. `marked`: it also marks the transaction of a client; with `true` only if
/// it is not marked yet.
fn replacement(number: u64, keys: &[usize], marked: Option<(u64, bool)>) -> String {
    let (mut old, mut new, mut found) = (String::new(), String::new(), String::new());
    for key in keys {
        old += &format!("<urn:r:{key}> <urn:value> ?o{key} . ");
        new += &format!("<urn:r:{key}> <urn:value> <urn:v:{number}> . ");
        found += &format!("OPTIONAL {{ <urn:r:{key}> <urn:value> ?o{key} }} ");
    }
    if let Some((client, once)) = marked {
        new += &format!("<urn:tx:{number}> <urn:by> {client} . ");
        if once {
            found += &format!("FILTER NOT EXISTS {{ <urn:tx:{number}> <urn:by> ?any }} ");
        }
    }
    format!("DELETE {{ {old}}} INSERT {{ {new}}} WHERE {{ {found}}}")
}

/// A graph without registers, as the first data of servers with different partitions: a server copies a
/// predicate with fewer statements, and then asks no other one for them.
pub(crate) fn first_data(database: &Database) -> Result<()> {
    let statements: String = (0..FIRST_STATEMENTS)
        .map(|number| format!("<urn:other:{number}> <urn:value> <urn:other:{}> . ", number / 2))
        .collect();
    database.update(&format!("INSERT DATA {{ GRAPH <urn:other> {{ {statements}}} }}")).map(drop)
}

/// What became of a transaction that was not committed.
pub(crate) fn outcome_of(error: &Error) -> Outcome {
    if error.message().contains("unknown") { Outcome::Unknown } else { Outcome::Refused }
}

fn transact(
    database: &Database,
    number: u64,
    client: u64,
    steps: &[Step],
    isolation: Isolation,
) -> (Outcome, Vec<Seen>, Option<Error>) {
    let mut seen = Vec::new();
    let mut run = || -> Result<Timestamp> {
        let mut transaction = database.begin_with(TransactionOptions { isolation })?;
        for one in steps {
            seen.push(step(&mut transaction, number, *one)?);
        }
        transaction.update(&format!("INSERT DATA {{ <urn:tx:{number}> <urn:by> {client} }}"))?;
        transaction.commit()
    };
    match run() {
        Ok(timestamp) => (Outcome::Committed(Some(timestamp.0)), seen, None),
        Err(error) => (outcome_of(&error), seen, Some(error)),
    }
}

/// The longest wait of a server for a leader.
const LEADER_WAIT: Duration = Duration::from_secs(5);

/// Time between two attempts to find one.
const LEADER_INTERVAL: Duration = Duration::from_millis(25);

/// How long a strict read waits.
const STRICT_WAIT: Duration = Duration::from_secs(4);

/// Bytes of the answer to an update that was sent on.
const DONE: &[u8] = b"done";
const REFUSED: &[u8] = b"refused";
const UNKNOWN: &[u8] = b"unknown";

/// Executes an update that another server has sent on.
pub(crate) fn execute(database: &Database, request: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(request);
    let answer = match database.update(&text) {
        Ok(_) => DONE,
        Err(error) if is_wrong(&error) => return error.to_string().into_bytes(),
        Err(error) if outcome_of(&error) == Outcome::Unknown => UNKNOWN,
        Err(_) => REFUSED,
    };
    answer.to_vec()
}

/// Sends an update on to the leader, as the server for HTTP does.
fn send_on(cluster: &Cluster, text: &str) -> Result<Outcome, String> {
    let begun = std::time::Instant::now();
    loop {
        match cluster.taker().map(|taker| cluster.forward(&taker, text.as_bytes())) {
            Some(Ok(Err(_))) => return Ok(Outcome::Unknown),
            Some(Ok(Ok(answer))) if !answer.is_empty() => {
                return match answer.as_slice() {
                    DONE => Ok(Outcome::Committed(None)),
                    REFUSED => Ok(Outcome::Refused),
                    UNKNOWN => Ok(Outcome::Unknown),
                    other => Err(String::from_utf8_lossy(other).into_owned()),
                };
            }
            _ if cluster.has_resigned() || begun.elapsed() >= LEADER_WAIT => {
                return Ok(Outcome::Refused);
            }
            _ => std::thread::sleep(LEADER_INTERVAL),
        }
    }
}

fn feed(database: &Database, after: u64) -> Result<Vec<Commit>, FeedRefusal> {
    let after = FeedPosition { commit: Timestamp(after), log: None };
    let mut feed = database.feed(Some(after))?;
    let mut bytes = Vec::new();
    let (limits, options) = (FeedLimits::default(), QueryOptions::default());
    database.write_feed(&mut feed, FeedFormat::JsonLines, limits, &options, &mut bytes)?;
    let commits = String::from_utf8_lossy(&bytes).lines().map(commit).collect::<Option<_>>();
    commits.ok_or_else(|| FeedRefusal::Failed(wrong("a commit that is none")))
}

/// A commit from its line.
fn commit(line: &str) -> Option<Commit> {
    let found: serde_json::Value = serde_json::from_str(line).ok()?;
    let mut commit = Commit { timestamp: found["commit"].as_u64()?, transaction: None, changes: Vec::new() };
    for change in found["changes"].as_array()? {
        let inner = |name: &str, start: &str| -> Option<u64> {
            change[name].as_str()?.strip_prefix(start)?.strip_suffix('>')?.parse().ok()
        };
        if let Some(number) = inner("subject", "<urn:tx:") {
            commit.transaction = Some(number);
        } else {
            let key = usize::try_from(inner("subject", "<urn:r:")?).ok()?;
            commit.changes.push((key, inner("object", "<urn:v:")?, change["op"] == "insert"));
        }
    }
    Some(commit)
}

/// Whether an error is one that no fault explains.
fn is_wrong(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Internal)
}

/// The answer to a request that has failed: partitions of other servers may not be reachable.
fn failed(error: Error) -> Answer {
    if is_wrong(&error) { Answer::Wrong(error.to_string()) } else { Answer::Unavailable }
}

/// Answers a request at a server.
pub(crate) fn answer(cluster: &Arc<Cluster>, request: &Request) -> Answer {
    let database = cluster.database();
    match request {
        Request::Transaction { number, client, steps, isolation } => {
            let (outcome, seen, error) = transact(database, *number, *client, steps, *isolation);
            match error.filter(is_wrong) {
                Some(error) => Answer::Wrong(error.to_string()),
                None => Answer::Done(outcome, seen),
            }
        }
        Request::Update { number, client, keys, once } => {
            let text = replacement(*number, keys, Some((*client, *once)));
            send_on(cluster, &text).map_or_else(Answer::Wrong, |done| Answer::Done(done, Vec::new()))
        }
        Request::Read { strict } => {
            if *strict && let Err(error) = cluster.catch_up(STRICT_WAIT) {
                return failed(error);
            }
            // A server that has just begun shows what was committed before only when it says so.
            if !strict && !cluster.changes().is_some_and(|changes| changes.is_complete) {
                return Answer::Unavailable;
            }
            let read = || {
                let profile = !cluster.map().is_replicated();
                let options = QueryOptions { profile, ..QueryOptions::default() };
                let Answered::Solutions(solutions) = database.query_with(ALL, &options)? else {
                    return Err(wrong("no rows"));
                };
                let merged = cluster.changes().and_then(|changes| changes.merged).unwrap_or_default();
                let profile = solutions.profile().unwrap_or_default();
                Ok((all(&solutions)?, Source { merged, is_remote: profile.contains(REMOTE) }))
            };
            read().map_or_else(failed, |(registers, source)| Answer::Registers(registers, source))
        }
        Request::Count => {
            let count = database.select("SELECT (COUNT(*) AS ?n) { ?t <urn:by> ?c }").and_then(|found| {
                let count = found.rows().next().map(|row| row.integer("n")).transpose()?.flatten();
                count.and_then(|count| u64::try_from(count).ok()).ok_or_else(|| wrong("no count"))
            });
            count.map_or_else(failed, Answer::Count)
        }
        Request::Feed { after } => match feed(database, *after) {
            Ok(commits) => Answer::Commits(commits),
            Err(FeedRefusal::Gone(_)) => Answer::Gone,
            Err(FeedRefusal::Future(_)) => Answer::Unavailable,
            Err(FeedRefusal::Failed(error)) => failed(error),
        },
        Request::Voters => {
            let voters = cluster.changes().and_then(|changes| changes.voters);
            voters.map_or(Answer::Unavailable, |voters| Answer::Voters(voters.names))
        }
        Request::Status => Answer::Status(format!("{:?}", cluster.changes())),
        Request::Merge => match cluster.merge_changes() {
            Ok(was_due) => Answer::Merged(was_due),
            Err(error) => failed(error),
        },
    }
}

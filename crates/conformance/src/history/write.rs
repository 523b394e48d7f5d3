//! Writes histories as files.
//!
//! # Shape
//! `FOLDER/NAME.edn`: for Elle, an operation per line, in order of time; Jepsen's invocations and
//! completions, with micro-operations `[:r key seen]` and `[:w key element]` or `[:append key element]`.
//! `FOLDER/dbcop/NAME/NAME.json`: for dbcop, which takes folders, by session. A list is represented as a
//! register of its last element, which determines the list, so a read is one version in both kinds.
//!
//! Both have the transactions that are [`Freshness::Strict`]: neither format says of a single read that it
//! may miss the newest commits. For Elle, an unknown outcome is `:info`, without what was read, which Elle
//! would take for the reads of a transaction that took effect; dbcop gets such a transaction if it took
//! effect as far as the history shows.

use super::record::{CommitOutcome, Entry, Freshness, History, Kind, Operation};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

pub(super) fn write(history: &History, folder: &Path, name: &str) -> Result<(), String> {
    let json = folder.join("dbcop").join(name);
    let problem = |error| format!("could not write to {}: {error}", folder.display());
    std::fs::create_dir_all(&json).map_err(problem)?;
    std::fs::write(folder.join(format!("{name}.edn")), edn(history)).map_err(problem)?;
    std::fs::write(json.join(format!("{name}.json")), dbcop(history).to_string()).map_err(problem)
}

/// Jepsen's format.
pub(super) fn edn(history: &History) -> String {
    let mut events: Vec<(u128, bool, &Entry)> = Vec::with_capacity(2 * history.entries.len());
    for entry in history.entries.iter().filter(|entry| entry.freshness == Freshness::Strict) {
        events.push((entry.began, false, entry));
        events.push((entry.ended, true, entry));
    }
    // At equal times, invocations precede completions, so no operation appears to end too early.
    events.sort_by_key(|(time, ends, _)| (*time, *ends));
    let mut text = String::new();
    for (index, (time, ends, entry)) in events.into_iter().enumerate() {
        let kind = match (ends, entry.outcome) {
            (false, _) => "invoke",
            (true, CommitOutcome::Committed) => "ok",
            (true, CommitOutcome::Refused) => "fail",
            (true, CommitOutcome::Unknown) => "info",
        };
        // Writing to a `String` cannot fail.
        let _ = write!(
            text,
            "{{:index {index}, :time {time}, :type :{kind}, :process {}, :f :txn, :value [",
            entry.client
        );
        for operation in &entry.operations {
            let _ = match operation {
                Operation::Write { key, element } if history.kind == Kind::Register => {
                    write!(text, "[:w {key} {element}]")
                }
                Operation::Write { key, element } => write!(text, "[:append {key} {element}]"),
                Operation::Read { key, seen: Some(seen) } if ends && kind != "info" => {
                    match (history.kind, seen.as_slice()) {
                        (Kind::Register, []) => write!(text, "[:r {key} nil]"),
                        (Kind::Register, [one]) => write!(text, "[:r {key} {one}]"),
                        // Impossible for a register: every checker rejects it.
                        (Kind::Register, several) => write!(text, "[:r {key} {several:?}]"),
                        (Kind::List, all) => {
                            let all: Vec<String> = all.iter().map(u64::to_string).collect();
                            write!(text, "[:r {key} [{}]]", all.join(" "))
                        }
                    }
                }
                Operation::Read { key, .. } => write!(text, "[:r {key} nil]"),
            };
        }
        text.push_str("]}\n");
    }
    text
}

/// dbcop's format: transactions that took effect, each with its reads of other transactions' writes and the
/// last write of each key. dbcop treats all given writes as executed, and cannot represent a read of an own
/// write that is overwritten later, nor a repeated read. Elle sees all of these.
pub(super) fn dbcop(history: &History) -> Value {
    let clients = history.entries.iter().map(|entry| entry.client).max().map_or(0, |last| last + 1);
    let transaction = |entry: &Entry| {
        let (mut events, mut last) = (Vec::new(), Vec::<(u64, u64)>::new());
        for operation in &entry.operations {
            match operation {
                Operation::Write { key, element } => {
                    last.retain(|(other, _)| other != key);
                    last.push((*key, *element));
                }
                Operation::Read { key, seen } if !last.iter().any(|(other, _)| other == key) => {
                    let version = seen.as_ref().and_then(|seen| seen.last());
                    let read = json!({ "Read": { "variable": key, "version": version } });
                    if !events.contains(&read) {
                        events.push(read);
                    }
                }
                Operation::Read { .. } => {}
            }
        }
        let write = |(key, element)| json!({ "Write": { "variable": key, "version": element } });
        events.extend(last.into_iter().map(write));
        json!({ "events": events, "committed": true })
    };
    let effective = history.effective();
    let session = |client| -> Vec<Value> {
        let entries = history.entries.iter().zip(&effective);
        let own = entries.filter(|(entry, effective)| {
            **effective && entry.client == client && entry.freshness == Freshness::Strict
        });
        own.map(|(entry, _)| transaction(entry)).collect()
    };
    let sessions: Vec<Vec<Value>> = (0..clients).map(session).filter(|session| !session.is_empty()).collect();
    json!({
        "params": {
            "id": 0,
            "n_node": sessions.len(),
            "n_variable": 0,
            "n_transaction": 0,
            "n_event": 0,
        },
        "info": history.kind.name(),
        "start": "1970-01-01T00:00:00Z",
        "end": "1970-01-01T00:00:00Z",
        "data": sessions,
    })
}

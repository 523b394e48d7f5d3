//! Histories with a planted fault, which a checker must reject.
//!
//! # Shape
//! Three faults change one read in an otherwise genuine history; two are produced by the clients, so they
//! also show that the load would expose a database without isolation.

use super::client::{self, Workload};
use super::record::{CommitOutcome, Entry, History, Kind, Operation};
use super::storage::StorageForm;
use vervet::Isolation;
use vervet_testkit::Random;

/// The fault of a history.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    /// Two transactions have read the same elements of a key and both have written it.
    LostUpdate,
    /// A transaction has seen one write of another transaction, but not its other write.
    FracturedRead,
    /// A transaction has read a write that was never committed.
    AbortedRead,
    /// Clients ran each operation in a transaction of its own.
    Split,
    /// At the end, each of two transactions has read what the other one writes. The history ran under
    /// snapshot isolation, which allows it.
    WriteSkew,
}

impl Fault {
    pub(super) const ALL: [Self; 5] =
        [Self::LostUpdate, Self::FracturedRead, Self::AbortedRead, Self::Split, Self::WriteSkew];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::LostUpdate => "lost-update",
            Self::FracturedRead => "fractured-read",
            Self::AbortedRead => "aborted-read",
            Self::Split => "split-transactions",
            Self::WriteSkew => "write-skew",
        }
    }

    /// Whether a level forbids the fault.
    pub(super) fn breaks(self, isolation: Isolation) -> bool {
        self != Self::WriteSkew || isolation == Isolation::Serializable
    }
}

/// Records a history with this fault.
pub(super) fn record(
    kind: Kind,
    shape: StorageForm,
    fault: Fault,
    transactions: u64,
    random: &mut Random,
) -> Result<History, String> {
    let level = if fault == Fault::WriteSkew { Isolation::Snapshot } else { Isolation::Serializable };
    let workload = Workload {
        split: fault == Fault::Split,
        skew: fault == Fault::WriteSkew,
        ..Workload::new(kind, shape, level, transactions)
    };
    // Not every short history has a suitable place for the fault.
    for _ in 0..20 {
        let mut history = client::record(&workload, random)?;
        let done = match fault {
            Fault::LostUpdate => lost_update(&mut history),
            Fault::FracturedRead => fractured_read(&mut history),
            Fault::AbortedRead => aborted_read(&mut history),
            Fault::Split | Fault::WriteSkew => Some(()),
        };
        if done.is_some() {
            return Ok(history);
        }
    }
    Err(format!("no place for fault '{}' in {} histories", fault.name(), kind.name()))
}

/// Of two transactions that write a key, the later one gets the read of the earlier one.
fn lost_update(history: &mut History) -> Option<()> {
    let find = |(at, later): (usize, &Entry)| {
        let key = written(later).find(|key| read_first(later, *key).is_some() && !read_after(later, *key))?;
        let replaced = *read_first(later, key)?.last()?;
        let earlier = history.entries.iter().find(|entry| last_written(entry, key) == Some(replaced))?;
        Some((at, key, read_first(earlier, key)?.to_vec()))
    };
    let (at, key, old) = committed(history).find_map(find)?;
    change(&mut history.entries[at], key, &old);
    Some(())
}

/// A transaction that has read two writes of another one gets, for one of the keys, the value before that
/// write.
fn fractured_read(history: &mut History) -> Option<()> {
    let find = |(at, reader): (usize, &Entry)| {
        let clean = |key: &u64| !written(reader).any(|other| other == *key);
        let key = reader.reads().map(|(key, _)| key).filter(clean).find_map(|key| {
            let writer = writer_of(history, *read_first(reader, key)?.last()?)?;
            let old = read_first(writer, key)?.to_vec();
            let other = |other: u64| {
                let element = last_written(writer, other);
                other != key
                    && element
                        .is_some_and(|one| read_first(reader, other).is_some_and(|seen| seen.contains(&one)))
            };
            written(writer).any(other).then_some((key, old))
        });
        key.map(|(key, old)| (at, key, old))
    };
    let (at, key, old) = committed(history).find_map(find)?;
    change(&mut history.entries[at], key, &old);
    Some(())
}

/// A read of a key that an aborted transaction had written gets the aborted write.
fn aborted_read(history: &mut History) -> Option<()> {
    let refused = history.entries.iter().filter(|entry| entry.outcome == CommitOutcome::Refused);
    let (key, element) = refused
        .flat_map(|entry| written(entry).filter_map(|key| Some((key, last_written(entry, key)?))))
        .next()?;
    let find = |(at, reader): (usize, &Entry)| {
        let seen = read_first(reader, key)?;
        (!written(reader).any(|other| other == key)).then(|| (at, seen.to_vec()))
    };
    let (at, mut seen) = committed(history).find_map(find)?;
    if history.kind == Kind::Register {
        seen.clear();
    }
    seen.push(element);
    change(&mut history.entries[at], key, &seen);
    Some(())
}

/// Starts in the middle, so that there is history before and after the fault.
fn committed(history: &History) -> impl Iterator<Item = (usize, &Entry)> {
    let all = history.entries.iter().enumerate();
    let in_the_middle = all.clone().filter(|(at, _)| at % 5 > 1);
    in_the_middle.chain(all).filter(|(_, entry)| is_committed(entry))
}

fn is_committed(entry: &Entry) -> bool {
    entry.outcome == CommitOutcome::Committed
}

/// The keys that a transaction writes.
fn written(entry: &Entry) -> impl Iterator<Item = u64> {
    entry.writes().map(|(key, _)| key)
}

fn last_written(entry: &Entry, of: u64) -> Option<u64> {
    let element = |operation: &Operation| match operation {
        Operation::Write { key, element } if *key == of => Some(*element),
        _ => None,
    };
    entry.operations.iter().rev().find_map(element)
}

/// The committed transaction whose last write of some key is this element.
fn writer_of(history: &History, element: u64) -> Option<&Entry> {
    let wrote = |entry: &&Entry| {
        is_committed(entry) && written(entry).any(|key| last_written(entry, key) == Some(element))
    };
    history.entries.iter().find(wrote)
}

/// The read of a key that precedes the transaction's own writes of it.
fn read_first(entry: &Entry, of: u64) -> Option<&[u64]> {
    let first = entry.operations.iter().find(|operation| match operation {
        Operation::Read { key, .. } | Operation::Write { key, .. } => *key == of,
    })?;
    match first {
        Operation::Read { seen, .. } => seen.as_deref(),
        Operation::Write { .. } => None,
    }
}

/// Whether a transaction reads a key after writing it.
fn read_after(entry: &Entry, of: u64) -> bool {
    let of_key = entry.operations.iter().filter(|operation| match operation {
        Operation::Read { key, .. } | Operation::Write { key, .. } => *key == of,
    });
    of_key
        .skip_while(|operation| matches!(operation, Operation::Read { .. }))
        .any(|operation| matches!(operation, Operation::Read { .. }))
}

/// Replaces all reads of a key before its first write.
fn change(entry: &mut Entry, of: u64, to: &[u64]) {
    for operation in &mut entry.operations {
        match operation {
            Operation::Read { key, seen } if *key == of => *seen = Some(to.to_vec()),
            Operation::Write { key, .. } if *key == of => break,
            _ => {}
        }
    }
}

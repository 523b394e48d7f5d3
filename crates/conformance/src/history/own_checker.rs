//! Our own checker of histories, for a verdict without third parties.
//!
//! # Shape
//! [`check`] accepts a history if it is strictly serializable as far as can be told in polynomial time. It
//! first looks at the values of each read: no element without a writer, or of a refused transaction, or that
//! its writer has overwritten or followed by another one before its commit; own writes are seen; the reads of
//! a list are prefixes of the longest one. Then it looks for a cycle in the graph of dependencies
//! (`dependencies.rs`).
//! # Dependencies
//! *Lists*: the longest read of a key is the order of its versions. A write that no read has seen is behind
//! all of them, since lists only grow. *Registers*: a transaction that reads a version and then writes
//! orders the two; so does real time, if the writer of one was acknowledged before the writer of the other
//! began; the absence of a value is the first version. *Time*: a transaction that ended before another one
//! began precedes it, unless the second one is a read of the kind [`Freshness::Session`].
//! # Outcomes
//! A transaction with an unknown outcome counts if something of it was read. It has no end in time, since it
//! may take effect later.
//! # Limits
//! Writes of a register without a read before them are ordered by real time alone, so an anomaly between two
//! of them that overlap may be missed. Each dependency follows from strict serializability, so a rejected
//! history is wrong.
//! # Source
//! Kingsbury and Alvaro, "Elle: Inferring Isolation Anomalies from Experimental Observations", VLDB 2020; A.
//! Adya, "Weak Consistency", PhD thesis, MIT 1999 (the anomalies).

use super::dependencies::{Cycle, Dependency, Graph};
use super::record::{CommitOutcome, Entry, Freshness, History, Kind, Operation};
use std::collections::{BTreeMap, HashMap};

/// The write of an element.
#[derive(Clone, Copy)]
struct Write {
    /// The position of its transaction in the history.
    entry: usize,
    key: u64,
    /// Whether the transaction writes the key later again.
    is_last: bool,
}

/// What a transaction read of a key before its own writes.
struct Read<'a> {
    entry: usize,
    key: u64,
    seen: &'a [u64],
}

/// What transactions that took effect did with a key.
#[derive(Default)]
struct KeyUse<'a> {
    reads: Vec<(usize, &'a [u64])>,
    /// Entry and element of the last write of each transaction.
    writes: Vec<(usize, u64)>,
}

/// Accepts a history, or says what is wrong with it.
///
/// # Errors
/// An anomaly.
pub(super) fn check(history: &History) -> Result<(), String> {
    Checker::new(history)?.check()
}

struct Checker<'a> {
    history: &'a History,
    effective: Vec<bool>,
    writes: HashMap<u64, Write>,
}

impl<'a> Checker<'a> {
    fn new(history: &'a History) -> Result<Self, String> {
        let mut writes = HashMap::new();
        for (entry, transaction) in history.entries.iter().enumerate() {
            let mut last: HashMap<u64, u64> = HashMap::new();
            last.extend(transaction.writes());
            for (key, element) in transaction.writes() {
                let is_last = last.get(&key) == Some(&element);
                if writes.insert(element, Write { entry, key, is_last }).is_some() {
                    return Err(format!("element {element} is written twice: not a history"));
                }
            }
        }
        Ok(Self { history, effective: history.effective(), writes })
    }

    fn check(&self) -> Result<(), String> {
        let mut keys: BTreeMap<u64, KeyUse<'a>> = BTreeMap::new();
        for (at, entry) in self.history.entries.iter().enumerate().filter(|(at, _)| self.effective[*at]) {
            for read in self.first_reads(at, entry)? {
                self.check_read(&read)?;
                keys.entry(read.key).or_default().reads.push((at, read.seen));
            }
            for (key, element) in entry.writes().filter(|(_, element)| self.writes[element].is_last) {
                keys.entry(key).or_default().writes.push((at, element));
            }
        }
        let mut graph = Graph::new(self.history.entries.len());
        for (&key, uses) in &keys {
            match self.history.kind {
                Kind::List => self.order_list(key, uses, &mut graph)?,
                Kind::Register => self.order_register(key, uses, &mut graph),
            }
        }
        self.order_time(&mut graph);
        graph.cycle().map_or(Ok(()), |cycle| Err(self.describe_cycle(&cycle)))
    }

    /// The first read of each key by a transaction, without its own writes. Later reads must show the same
    /// and the own writes since.
    fn first_reads(&self, at: usize, entry: &'a Entry) -> Result<Vec<Read<'a>>, String> {
        // Of each key: what others wrote, once it is known, and the own writes so far.
        let mut seen_keys: BTreeMap<u64, (Option<&'a [u64]>, Vec<u64>)> = BTreeMap::new();
        for operation in &entry.operations {
            match operation {
                Operation::Write { key, element } => seen_keys.entry(*key).or_default().1.push(*element),
                Operation::Read { key, seen: Some(seen) } => {
                    let (others, own) = seen_keys.entry(*key).or_default();
                    let is_register = self.history.kind == Kind::Register;
                    let wrong = || format!("key {key} shows {seen:?} after own writes {own:?}: {entry:?}");
                    if is_register && !own.is_empty() {
                        if seen.as_slice() != own.last().map_or(&[][..], std::slice::from_ref) {
                            return Err(format!("internal: {}", wrong()));
                        }
                        continue;
                    }
                    let rest = seen.len().checked_sub(own.len()).filter(|length| seen[*length..] == own[..]);
                    let rest = &seen[..rest.ok_or_else(|| format!("internal: {}", wrong()))?];
                    match others {
                        Some(before) if *before != rest => {
                            return Err(format!("non-repeatable read: {before:?}, and then {}", wrong()));
                        }
                        _ => *others = Some(rest),
                    }
                }
                Operation::Read { seen: None, .. } => {}
            }
        }
        let read =
            |(key, (seen, _)): (u64, (Option<&'a [u64]>, _))| Some(Read { entry: at, key, seen: seen? });
        Ok(seen_keys.into_iter().filter_map(read).collect())
    }

    fn check_read(&self, read: &Read<'_>) -> Result<(), String> {
        let Read { entry, key, seen } = *read;
        let reader = || self.describe(entry);
        if self.history.kind == Kind::Register && seen.len() > 1 {
            return Err(format!("register {key} has several values: {}", reader()));
        }
        for (position, element) in seen.iter().enumerate() {
            if seen[..position].contains(element) {
                return Err(format!("element {element} is twice in list {key}: {}", reader()));
            }
            let Some(write) = self.writes.get(element).filter(|write| write.key == key) else {
                return Err(format!("element {element} of key {key} was never written: {}", reader()));
            };
            let writer = || self.describe(write.entry);
            if write.entry == entry {
                return Err(format!("a read of an own later write: {}", reader()));
            }
            if !self.effective[write.entry] {
                return Err(format!("aborted read of element {element}: {} read {}", reader(), writer()));
            }
            if position + 1 == seen.len() && !write.is_last {
                return Err(format!(
                    "intermediate read of element {element}: {} read {}",
                    reader(),
                    writer()
                ));
            }
        }
        Ok(())
    }

    fn order_list(&self, key: u64, uses: &KeyUse<'a>, graph: &mut Graph) -> Result<(), String> {
        let longest = uses.reads.iter().max_by_key(|(_, seen)| seen.len());
        let order = longest.map_or(&[][..], |(_, seen)| seen);
        for (reader, seen) in &uses.reads {
            if !order.starts_with(seen) {
                let reader = self.describe(*reader);
                return Err(format!("list {key} is {order:?} at its end, and in {reader} it is {seen:?}"));
            }
        }
        let writer = |element: &u64| self.writes[element].entry;
        let unseen = || uses.writes.iter().filter(|(_, element)| !order.contains(element));
        for pair in order.windows(2) {
            graph.edge(writer(&pair[0]), writer(&pair[1]), Dependency::WriteWrite(key));
        }
        if let Some(last) = order.last() {
            unseen().for_each(|(entry, _)| graph.edge(writer(last), *entry, Dependency::WriteWrite(key)));
        }
        for (reader, seen) in &uses.reads {
            if let Some(last) = seen.last() {
                graph.edge(writer(last), *reader, Dependency::WriteRead(key));
            }
            match order.get(seen.len()) {
                Some(next) => graph.edge(*reader, writer(next), Dependency::ReadWrite(key)),
                None => {
                    unseen().for_each(|(entry, _)| graph.edge(*reader, *entry, Dependency::ReadWrite(key)));
                }
            }
        }
        Ok(())
    }

    fn order_register(&self, key: u64, uses: &KeyUse<'a>, graph: &mut Graph) {
        let read_by: HashMap<usize, Option<u64>> =
            uses.reads.iter().map(|(reader, seen)| (*reader, seen.first().copied())).collect();
        let mut replaced_by: HashMap<Option<u64>, Vec<usize>> = HashMap::new();
        for (writer, _) in &uses.writes {
            if let Some(version) = read_by.get(writer) {
                replaced_by.entry(*version).or_default().push(*writer);
            }
        }
        for (reader, seen) in &uses.reads {
            let version = seen.first().copied();
            for writer in replaced_by.get(&version).into_iter().flatten() {
                graph.edge(*reader, *writer, Dependency::ReadWrite(key));
            }
            let Some(element) = version else {
                uses.writes
                    .iter()
                    .for_each(|(writer, _)| graph.edge(*reader, *writer, Dependency::ReadWrite(key)));
                continue;
            };
            let author = self.writes[&element].entry;
            graph.edge(author, *reader, Dependency::WriteRead(key));
            let author = &self.history.entries[author];
            if author.outcome == CommitOutcome::Committed {
                let later = |writer: &usize| self.history.entries[*writer].began > author.ended;
                for (writer, _) in uses.writes.iter().filter(|(writer, _)| later(writer)) {
                    graph.edge(*reader, *writer, Dependency::ReadWrite(key));
                }
            }
        }
    }

    /// Adds the order of time: a chain of points, one for each end of a transaction.
    fn order_time(&self, graph: &mut Graph) {
        let mut events: Vec<(u128, bool, usize)> = Vec::new();
        for (at, entry) in self.history.entries.iter().enumerate().filter(|(at, _)| self.effective[*at]) {
            events.push((entry.began, false, at));
            if entry.outcome == CommitOutcome::Committed {
                events.push((entry.ended, true, at));
            }
        }
        // At equal times, begins precede ends.
        events.sort_unstable();
        let mut last = None;
        let mut last_of_session: HashMap<u64, usize> = HashMap::new();
        for (_, ends, at) in events {
            let session = match self.history.entries[at].freshness {
                Freshness::Session(session) => Some(session),
                Freshness::Strict => None,
            };
            if !ends {
                match session {
                    None => last.into_iter().for_each(|point| graph.edge(point, at, Dependency::RealTime)),
                    Some(session) => {
                        let before = last_of_session.get(&session);
                        before.into_iter().for_each(|point| graph.edge(*point, at, Dependency::Session));
                    }
                }
                continue;
            }
            let point = graph.vertex();
            graph.edge(at, point, Dependency::RealTime);
            last.into_iter().for_each(|before| graph.edge(before, point, Dependency::RealTime));
            last = Some(point);
            if let Some(session) = session {
                let point = graph.vertex();
                graph.edge(at, point, Dependency::Session);
                if let Some(before) = last_of_session.insert(session, point) {
                    graph.edge(before, point, Dependency::Session);
                }
            }
        }
    }

    /// Names a cycle by its edges, and lists its transactions.
    fn describe_cycle(&self, cycle: &Cycle) -> String {
        let count = |is: fn(&Dependency) -> bool| cycle.iter().filter(|(_, one)| is(one)).count();
        let anti = count(|one| matches!(one, Dependency::ReadWrite(_)));
        let reads = count(|one| matches!(one, Dependency::WriteRead(_)));
        let name = match (anti, reads) {
            (0, 0) => "G0",
            (0, _) => "G1c",
            (1, _) => "G-single",
            _ => "G2-item",
        };
        let in_time = if count(|one| *one == Dependency::RealTime) > 0 { ", in real time" } else { "" };
        let mut text = format!("{name}{in_time}:");
        let entries = self.history.entries.len();
        // Points in time only lead from one transaction to the next.
        for (vertex, dependency) in cycle.iter().filter(|(vertex, _)| *vertex < entries) {
            text += &format!("\n  {} precedes, by {dependency},", self.describe(*vertex));
        }
        text + " the first one"
    }

    fn describe(&self, at: usize) -> String {
        let Entry { client, began, ended, outcome, freshness, operations } = &self.history.entries[at];
        format!("[client {client}, {began} to {ended} ns, {outcome:?}, {freshness:?}: {operations:?}]")
    }
}

#[cfg(test)]
mod tests;

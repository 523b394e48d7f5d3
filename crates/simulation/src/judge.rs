//! Whether what clients have seen is right.
//!
//! # Shape
//! The feed of changes says in which order the transactions took effect, and clients say what they were told
//! and what they read. A history is right if
//!
//! 1. each commit of the log is a transaction of a client, once; those that were acknowledged are in the log,
//!    those that were refused are not;
//! 2. each committed transaction has read, at its place in the order, the registers of that place, and has
//!    changed what it should have (serializable);
//! 3. of two transactions, one that had ended before the other began comes first (strict);
//! 4. every read beside transactions is of one state of the graph: a strict read of one with all that was
//!    acknowledged before it, and all that a strict read before it has shown; any read of a state that is no
//!    older than an earlier read of the same server showed;
//! 5. none of these has what was never committed, and none is from the future.
//!
//! With the order given, nothing has to be searched for. Not judged: that a transaction which began after a
//! read comes behind what the read has shown, unless that was acknowledged.

use crate::transaction::{Commit, KEYS, Outcome, Registers, Seen, Step};
use std::collections::BTreeMap;

/// A transaction of a client.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) number: u64,
    pub(crate) began: u64,
    pub(crate) ended: u64,
    pub(crate) steps: Vec<Step>,
    pub(crate) seen: Vec<Seen>,
    pub(crate) outcome: Outcome,
}

/// A read beside transactions.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    pub(crate) began: u64,
    pub(crate) ended: u64,
    pub(crate) strict: bool,
    /// The server, and the number of its life.
    pub(crate) server: (usize, u64),
    pub(crate) registers: Registers,
}

/// All that was seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pub(crate) entries: Vec<Entry>,
    pub(crate) looks: Vec<Look>,
    /// The commits, in their order.
    pub(crate) commits: Vec<Commit>,
}

/// The states of a register: from which place on it has which value. Place 0 is before all commits.
type Values = Vec<(usize, Option<u64>)>;

struct Order<'h> {
    history: &'h History,
    /// Place of each transaction.
    places: BTreeMap<u64, usize>,
    values: [Values; KEYS],
    /// The end and the place of acknowledged transactions by their end, each with the last place so far.
    acknowledged: Vec<(u64, usize)>,
    /// The latest beginning of the transactions up to each place.
    begins: Vec<u64>,
}

/// Judges a history; returns the last registers.
pub(crate) fn judge(history: &History) -> Result<Registers, String> {
    let mut order = Order {
        history,
        places: BTreeMap::new(),
        values: std::array::from_fn(|_| vec![(0, None)]),
        acknowledged: Vec::new(),
        begins: vec![0],
    };
    let last = order.replay()?;
    order.check_refused()?;
    order.check_looks()?;
    Ok(last)
}

impl Order<'_> {
    fn replay(&mut self) -> Result<Registers, String> {
        let entries: BTreeMap<u64, &Entry> =
            self.history.entries.iter().map(|entry| (entry.number, entry)).collect();
        let mut registers = Registers::default();
        let mut latest = (0, 0);
        for (at, commit) in self.history.commits.iter().enumerate() {
            let place = at + 1;
            if commit.timestamp != place as u64 {
                return Err(format!("commit {} is the {place}th one", commit.timestamp));
            }
            let number = commit.transaction.ok_or_else(|| format!("commit {place} is of no transaction"))?;
            let entry = entries.get(&number).ok_or_else(|| format!("transaction {number} was never sent"))?;
            if let Some(before) = self.places.insert(number, place) {
                return Err(format!("transaction {number} was committed twice: {before} and {place}"));
            }
            if let Outcome::Committed(Some(told)) = entry.outcome
                && told != place as u64
            {
                return Err(format!("transaction {number} was told commit {told}, and is commit {place}"));
            }
            let before = registers;
            step_through(entry, &mut registers).map_err(|why| {
                format!("transaction {number}, commit {place}: {why}; the registers were {before:?}")
            })?;
            let mut changed = before;
            for (key, value, is_inserted) in &commit.changes {
                let register = &mut changed[*key];
                match (is_inserted, *register == Some(*value)) {
                    (true, _) => *register = Some(*value),
                    (false, true) => *register = None,
                    (false, false) => {}
                }
            }
            if changed != registers {
                return Err(format!(
                    "transaction {number}, commit {place}: it made {changed:?} of {before:?}, and should have \
                     made {registers:?}"
                ));
            }
            for (values, (old, new)) in self.values.iter_mut().zip(before.into_iter().zip(registers)) {
                if old != new {
                    values.push((place, new));
                }
            }
            let latest_begin = self.begins.last().copied().unwrap_or(0).max(entry.began);
            self.begins.push(latest_begin);
            if entry.ended < latest.0 && matches!(entry.outcome, Outcome::Committed(_)) {
                return Err(format!(
                    "transaction {number}, commit {place}, had ended at {} before transaction {} began at {}, \
                     which comes before it",
                    entry.ended, latest.1, latest.0
                ));
            }
            latest = latest.max((entry.began, number));
        }
        for entry in &self.history.entries {
            if let (Outcome::Committed(_), Some(place)) = (&entry.outcome, self.places.get(&entry.number)) {
                self.acknowledged.push((entry.ended, *place));
            }
        }
        self.acknowledged.sort_unstable();
        let mut most = 0;
        for (_, place) in &mut self.acknowledged {
            most = most.max(*place);
            *place = most;
        }
        Ok(registers)
    }

    fn check_refused(&self) -> Result<(), String> {
        for entry in &self.history.entries {
            let place = self.places.get(&entry.number);
            match (&entry.outcome, place) {
                (Outcome::Committed(_), None) => {
                    return Err(format!("transaction {} was acknowledged, and is lost", entry.number));
                }
                (Outcome::Refused, Some(place)) => {
                    return Err(format!("transaction {} was refused, and is commit {place}", entry.number));
                }
                (_, Some(_)) => {}
                (_, None) => check_repetitions(entry)?,
            }
        }
        Ok(())
    }

    fn check_future(&self, place: usize, ended: u64) -> Result<(), String> {
        match self.begins[place] {
            begun if begun > ended => Err(format!("it ended at {ended}, and read a commit of {begun}")),
            _ => Ok(()),
        }
    }

    /// The places at which all these registers had these values; `None`: there are none.
    fn places_of(&self, seen: &Seen) -> Option<Vec<(usize, usize)>> {
        let last = self.begins.len() - 1;
        let mut places = vec![(0, last)];
        for (key, value) in seen {
            let values = &self.values[*key];
            let ends = values.iter().skip(1).map(|(place, _)| place - 1).chain([last]);
            let own = values.iter().zip(ends).filter(|((_, found), _)| found == value);
            let own: Vec<(usize, usize)> = own.map(|((first, _), end)| (*first, end)).collect();
            let mut both = Vec::new();
            let (mut one, mut other) = (0, 0);
            while one < places.len() && other < own.len() {
                let (first, end) = (places[one].0.max(own[other].0), places[one].1.min(own[other].1));
                if first <= end {
                    both.push((first, end));
                }
                if places[one].1 < own[other].1 { one += 1 } else { other += 1 }
            }
            places = both;
        }
        Some(places).filter(|places| !places.is_empty())
    }

    fn check_looks(&self) -> Result<(), String> {
        // The ends of strict reads, each with the last place that one so far has surely seen.
        let mut strict: Vec<(u64, usize)> = Vec::new();
        // The same of all reads of each life of a server.
        let mut shown: BTreeMap<(usize, u64), Vec<(u64, usize)>> = BTreeMap::new();
        let mut looks: Vec<&Look> = self.history.looks.iter().collect();
        looks.sort_by_key(|look| look.ended);
        for look in looks {
            let what = if look.strict { "a strict read" } else { "a read" };
            let what = format!("{what} at server {} from {} to {}", look.server.0, look.began, look.ended);
            let seen: Seen = look.registers.iter().copied().enumerate().collect();
            let places = self.places_of(&seen).ok_or_else(|| format!("{what}: {seen:?} was no state"))?;
            let mut least = 0;
            if look.strict {
                let before = self.acknowledged.partition_point(|(ended, _)| *ended < look.began);
                least = before.checked_sub(1).map_or(0, |last| self.acknowledged[last].1);
                let before = strict.partition_point(|(ended, _)| *ended < look.began);
                least = least.max(before.checked_sub(1).map_or(0, |last| strict[last].1));
            }
            let earlier = shown.entry(look.server).or_default();
            let before = earlier.partition_point(|(ended, _)| *ended < look.began);
            least = least.max(before.checked_sub(1).map_or(0, |last| earlier[last].1));
            let place = places.iter().find(|(_, end)| *end >= least).map(|(first, _)| (*first).max(least));
            let place = place.ok_or_else(|| {
                format!("{what} shows a state up to {:?}, not {least}: {seen:?}", places.last())
            })?;
            self.check_future(place, look.ended).map_err(|why| format!("{what}: {why}"))?;
            let so_far = earlier.last().map_or(0, |(_, place)| *place);
            earlier.push((look.ended, place.max(so_far)));
            if look.strict {
                let so_far = strict.last().map_or(0, |(_, place)| *place);
                strict.push((look.ended, place.max(so_far)));
            }
        }
        Ok(())
    }
}

/// A transaction that is not committed has read every register alike, unless it has written it. No more is
/// known: it may have read commits that were validated and then lost with their leader (pre-read).
fn check_repetitions(entry: &Entry) -> Result<(), String> {
    let mut known: [Option<Option<u64>>; KEYS] = [None; KEYS];
    let mut written = [false; KEYS];
    for (step, reads) in entry.steps.iter().zip(&entry.seen) {
        for (key, value) in reads.iter().filter(|(key, _)| !written[*key]) {
            if *known[*key].get_or_insert(*value) != *value {
                return Err(format!("transaction {} read {key} twice, and differently", entry.number));
            }
        }
        if let Step::Write(key) | Step::Replace(key) | Step::Clear(key) = step {
            written[*key] = true;
        }
    }
    Ok(())
}

/// Runs the steps of a transaction over registers, and compares what it has read.
fn step_through(entry: &Entry, registers: &mut Registers) -> Result<(), String> {
    for (at, step) in entry.steps.iter().enumerate() {
        for (key, value) in entry.seen.get(at).into_iter().flatten() {
            if registers[*key] != *value {
                return Err(format!(
                    "step {at}, {step:?}, read {value:?} in {key}, not {:?}",
                    registers[*key]
                ));
            }
        }
        match step {
            Step::Write(key) | Step::Replace(key) => registers[*key] = Some(entry.number),
            Step::Clear(key) => registers[*key] = None,
            Step::Read(_) | Step::ReadAll | Step::Pause(_) => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Transaction `number` from `10 * number` on, which takes 5; it writes register `key`, which had `seen`.
    fn entry(number: u64, key: usize, seen: Option<u64>) -> Entry {
        let outcome = Outcome::Committed(Some(number));
        let (began, steps) = (10 * number, vec![Step::Write(key)]);
        Entry { number, began, ended: began + 5, steps, seen: vec![vec![(key, seen)]], outcome }
    }

    fn commit(number: u64, key: usize, old: Option<u64>) -> Commit {
        let removed = old.map(|old| (key, old, false));
        let changes = removed.into_iter().chain([(key, number, true)]).collect();
        Commit { timestamp: number, transaction: Some(number), changes }
    }

    /// Three transactions one after another: two write register 0, and one register 1.
    fn history() -> History {
        History {
            entries: vec![entry(1, 0, None), entry(2, 1, None), entry(3, 0, Some(1))],
            looks: vec![look(true, 26, [Some(1), Some(2)]), look(false, 27, [Some(1), Some(2)])],
            commits: vec![commit(1, 0, None), commit(2, 1, None), commit(3, 0, Some(1))],
        }
    }

    fn look(strict: bool, began: u64, [first, second]: [Option<u64>; 2]) -> Look {
        let mut registers = Registers::default();
        (registers[0], registers[1]) = (first, second);
        Look { began, ended: began + 1, strict, server: (0, 1), registers }
    }

    #[test]
    fn a_right_history_is_right() {
        let last = judge(&history()).expect("it is right");
        assert_eq!(last[..2], [Some(3), Some(2)]);
    }

    type Change = fn(&mut History);

    /// Each kind of mistake, and what is said of it.
    const MISTAKES: [(Change, &str); 13] = [
        (|history| _ = history.commits.pop(), "is lost"),
        (|history| history.entries[2].outcome = Outcome::Refused, "was refused"),
        (|history| history.commits.push(Commit { timestamp: 4, ..commit(3, 0, Some(1)) }), "committed twice"),
        (|history| history.commits[1].timestamp = 3, "the 2th one"),
        (|history| history.commits[1].transaction = None, "of no transaction"),
        (|history| history.commits[1].transaction = Some(9), "never sent"),
        (|history| history.entries[2].seen = vec![vec![(0, None)]], "read None in 0"),
        (|history| history.commits[2].changes.clear(), "should have"),
        (|history| history.entries[1].outcome = Outcome::Committed(Some(1)), "told commit 1"),
        (|history| history.entries[1].began = 36, "comes before it"),
        (|history| history.looks[0].registers[1] = None, "a strict read"),
        (|history| history.looks[1].registers = look(false, 0, [None, Some(2)]).registers, "no state"),
        (
            |history| history.looks[1].registers = look(false, 0, [Some(3), Some(2)]).registers,
            "read a commit of",
        ),
    ];

    #[test]
    fn mistakes_are_found() {
        for (at, (change, expected)) in MISTAKES.iter().enumerate() {
            let mut history = history();
            change(&mut history);
            let why = judge(&history).expect_err(&format!("mistake {at}"));
            assert!(why.contains(expected), "{at}: {why}");
        }
    }

    /// A server shows less than it has shown before.
    #[test]
    fn states_do_not_go_back() {
        let mut history = history();
        history.looks.push(look(false, 29, [Some(1), None]));
        let why = judge(&history).expect_err("it went back");
        assert!(why.contains("not 2"), "{why}");
        history.looks[2].server = (0, 2);
        judge(&history).expect("another life of the server may");
    }

    /// A strict read that misses what another server has shown to an earlier one.
    #[test]
    fn strict_reads_agree() {
        let mut history = history();
        history.entries[2].ended = 100;
        history.looks.push(look(true, 40, [Some(3), Some(2)]));
        history.looks.push(Look { server: (1, 1), ..look(true, 50, [Some(1), Some(2)]) });
        let why = judge(&history).expect_err("it misses commit 3");
        assert!(why.contains("a strict read at server 1"), "{why}");
        history.looks[3].strict = false;
        judge(&history).expect("a read that is not strict may");
    }

    /// What is unknown may be in the log or not.
    #[test]
    fn outcomes_may_be_unknown() {
        let mut history = history();
        history.entries[2].outcome = Outcome::Unknown;
        judge(&history).expect("it is in the log");
        history.commits.pop();
        judge(&history).expect("it is not in the log");
        history.entries[2].steps = vec![Step::Read(0); 2];
        history.entries[2].seen = vec![vec![(0, Some(1))], vec![(0, None)]];
        let why = judge(&history).expect_err("it read twice");
        assert!(why.contains("twice"), "{why}");
    }
}

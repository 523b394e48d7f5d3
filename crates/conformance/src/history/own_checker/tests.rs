//! The checker accepts what was recorded, and rejects what cannot be: planted faults, and small histories.

use super::check;
use crate::history::client::{self, Workload};
use crate::history::fault_injection::{self, Fault};
use crate::history::record::{CommitOutcome, Entry, Freshness, History, Kind, Operation};
use crate::history::storage::StorageForm;
use vervet::Isolation;
use vervet_testkit::Random;

const R: fn(u64, &[u64]) -> Operation = |key, seen| Operation::Read { key, seen: Some(seen.to_vec()) };
const W: fn(u64, u64) -> Operation = |key, element| Operation::Write { key, element };

/// A transaction from `began` to `ended`.
fn entry(began: u128, ended: u128, operations: &[Operation]) -> Entry {
    Entry {
        client: 0,
        began,
        ended,
        outcome: CommitOutcome::Committed,
        freshness: Freshness::Strict,
        operations: operations.to_vec(),
    }
}

fn with(outcome: CommitOutcome, entry: Entry) -> Entry {
    Entry { outcome, ..entry }
}

fn in_session(session: u64, entry: Entry) -> Entry {
    Entry { freshness: Freshness::Session(session), ..entry }
}

#[track_caller]
fn accepted(kind: Kind, entries: &[Entry]) {
    assert_eq!(check(&History { kind, entries: entries.to_vec() }), Ok(()));
}

#[track_caller]
fn rejected(kind: Kind, entries: &[Entry], words: &str) {
    let found = check(&History { kind, entries: entries.to_vec() }).expect_err("it is wrong");
    assert!(found.contains(words), "{found}");
}

#[test]
fn recorded_histories_are_accepted() {
    let mut random = Random(vervet_testkit::seed() | 1);
    for kind in Kind::ALL {
        for shape in StorageForm::ALL {
            let workload = Workload::new(kind, shape, Isolation::Serializable, 320);
            let history = client::record(&workload, &mut random).expect("a history");
            assert_eq!(check(&history), Ok(()), "{} {}", kind.name(), shape.name());
        }
    }
}

#[test]
fn planted_faults_are_found() {
    let mut random = Random(vervet_testkit::seed() | 1);
    for fault in Fault::ALL {
        for kind in Kind::ALL {
            for shape in StorageForm::ALL {
                let history = fault_injection::record(kind, shape, fault, 48, &mut random);
                let history = history.expect("a history");
                let what = format!("{}, {} {}", fault.name(), kind.name(), shape.name());
                assert!(check(&history).is_err(), "accepted: {what}");
            }
        }
    }
}

#[test]
fn reads_of_what_no_commit_wrote_are_found() {
    let refused = with(CommitOutcome::Refused, entry(0, 1, &[W(1, 10)]));
    rejected(Kind::Register, &[refused.clone(), entry(2, 3, &[R(1, &[10])])], "aborted read");
    rejected(Kind::List, &[refused, entry(2, 3, &[R(1, &[10])])], "aborted read");
    rejected(Kind::List, &[entry(0, 1, &[R(1, &[10])])], "never written");
    rejected(Kind::List, &[entry(0, 1, &[W(2, 10)]), entry(2, 3, &[R(1, &[10])])], "never written");
    let twice = [entry(0, 1, &[W(1, 10), W(1, 11)]), entry(0, 3, &[R(1, &[10])])];
    rejected(Kind::Register, &twice, "intermediate read");
    rejected(Kind::List, &twice, "intermediate read");
    rejected(Kind::List, &[entry(0, 1, &[W(1, 10)]), entry(2, 3, &[R(1, &[10, 10])])], "twice");
    rejected(Kind::Register, &[entry(0, 1, &[W(1, 10)]), entry(0, 1, &[W(1, 11), R(1, &[10])])], "internal");
    rejected(Kind::List, &[entry(0, 1, &[W(1, 10), R(1, &[])])], "internal");
    let both = [entry(0, 1, &[W(1, 10)]), entry(0, 5, &[R(1, &[]), R(1, &[10])])];
    rejected(Kind::List, &both, "non-repeatable");
    accepted(Kind::List, &[entry(0, 1, &[W(1, 10)]), entry(2, 3, &[R(1, &[10]), W(1, 11), R(1, &[10, 11])])]);
}

#[test]
fn lost_and_reordered_writes_are_found() {
    let writes = [entry(0, 1, &[W(1, 10)]), entry(0, 1, &[W(1, 11)])];
    let read = |seen: &[u64]| entry(2, 3, &[R(1, seen)]);
    let list =
        |seen: &[&[u64]]| [&writes[..], &seen.iter().map(|seen| read(seen)).collect::<Vec<_>>()].concat();
    accepted(Kind::List, &list(&[&[10, 11]]));
    rejected(Kind::List, &list(&[&[10]]), "G-single, in real time");
    rejected(Kind::List, &list(&[&[]]), "in real time");
    rejected(Kind::List, &list(&[&[10, 11], &[11, 10]]), "at its end");
    // Two that have replaced the same version.
    let lost =
        [writes[0].clone(), entry(2, 9, &[R(1, &[10]), W(1, 20)]), entry(2, 9, &[R(1, &[10]), W(1, 21)])];
    rejected(Kind::Register, &lost, "G2-item");
    // An acknowledged write of a register without a read, which a later read does not see.
    rejected(
        Kind::Register,
        &[writes[0].clone(), entry(2, 3, &[W(1, 12)]), entry(4, 5, &[R(1, &[10])])],
        "real time",
    );
    accepted(Kind::Register, &[writes[0].clone(), entry(2, 6, &[W(1, 12)]), entry(4, 5, &[R(1, &[10])])]);
}

#[test]
fn old_reads_are_found_unless_they_are_allowed() {
    let writes = [entry(0, 1, &[R(1, &[]), W(1, 10)]), entry(2, 3, &[R(1, &[10]), W(1, 11)])];
    for (kind, new) in [(Kind::Register, &[11][..]), (Kind::List, &[10, 11][..])] {
        let history = |reads: &[Entry]| [&writes[..], reads].concat();
        rejected(kind, &history(&[entry(4, 5, &[R(1, &[10])])]), "real time");
        accepted(kind, &history(&[entry(4, 5, &[R(1, new)])]));
        accepted(kind, &history(&[in_session(1, entry(4, 5, &[R(1, &[10])]))]));
        // Never back at one server.
        let back = [in_session(1, entry(4, 5, &[R(1, new)])), in_session(1, entry(6, 7, &[R(1, &[10])]))];
        rejected(kind, &history(&back), "same server");
        let other = [back[0].clone(), in_session(2, back[1].clone())];
        accepted(kind, &history(&other));
        // What was seen anywhere was committed.
        let strict = [back[0].clone(), entry(6, 7, &[R(1, &[10])])];
        rejected(kind, &history(&strict), "real time");
    }
}

#[test]
fn write_skew_and_fractured_reads_are_found() {
    let skew =
        [entry(0, 9, &[R(1, &[]), R(2, &[]), W(1, 10)]), entry(0, 9, &[R(1, &[]), R(2, &[]), W(2, 11)])];
    rejected(Kind::Register, &skew, "G2-item");
    rejected(Kind::List, &skew, "G2-item");
    let fractured =
        [entry(0, 9, &[R(1, &[]), W(1, 10), R(2, &[]), W(2, 11)]), entry(0, 9, &[R(1, &[10]), R(2, &[])])];
    rejected(Kind::Register, &fractured, "G-single");
    rejected(Kind::List, &fractured, "G-single");
}

#[test]
fn transactions_with_an_unknown_outcome_count_once_they_are_seen() {
    let unknown = |operations: &[Operation]| with(CommitOutcome::Unknown, entry(0, 1, operations));
    for kind in Kind::ALL {
        // No effect, or a later one.
        accepted(kind, &[unknown(&[W(1, 10)]), entry(2, 3, &[R(1, &[])])]);
        accepted(kind, &[unknown(&[W(1, 10)]), entry(2, 3, &[R(1, &[])]), entry(4, 5, &[R(1, &[10])])]);
        // It never goes away.
        let back = [unknown(&[W(1, 10)]), entry(2, 3, &[R(1, &[10])]), entry(4, 5, &[R(1, &[])])];
        rejected(kind, &back, "real time");
        // All of it, or nothing.
        let half = [unknown(&[W(1, 10), W(2, 11)]), entry(2, 3, &[R(1, &[10]), R(2, &[])])];
        rejected(kind, &half, "G-single");
        // One that only another one has seen.
        let chain = [unknown(&[W(1, 10)]), unknown(&[R(1, &[10]), W(2, 11)])];
        let effective = History { kind, entries: chain.to_vec() }.effective();
        assert_eq!(effective, [false, false]);
        let seen = [&chain[..], &[entry(2, 3, &[R(2, &[11])])]].concat();
        assert_eq!(History { kind, entries: seen.clone() }.effective(), [true; 3]);
        accepted(kind, &seen);
        let lost = [&seen[..], &[entry(4, 5, &[R(1, &[])])]].concat();
        rejected(kind, &lost, "rw key 1");
    }
}

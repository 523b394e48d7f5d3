//! Tests of full disks, unreadable sectors, short writers and concurrent readers of the log.
//!
//! The readers must not return records that a loss of power would undo. Findings B3, B10, B11, B12 and B16 of
//! the reviews.

use crate::common::{DIR, disk, read_all, reopen, seed};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use vervet_env::{Fault, SeededRandom};
use vervet_log::{Durability, LAST_FILE_BYTES_MAX, Log, LogOptions, Lsn, ReadOptions};
use vervet_model::ErrorKind;

fn options(level: Durability) -> LogOptions {
    LogOptions { durability: level, ..LogOptions::default() }
}

/// Storage B3: the disk becomes full at every operation and level. Nothing more is appended, and once there
/// is room the same log continues with every appended record, in order, published once.
#[test]
fn b3_the_log_survives_a_full_disk() {
    let seed = seed();
    let levels = [Durability::Sync, Durability::None, Durability::Interval(Duration::from_millis(1))];
    let (mut refused, mut kept) = (0, 0);
    for (level, n) in levels.into_iter().flat_map(|level| (0..40).map(move |n| (level, n))) {
        let random = SeededRandom::new(seed ^ n);
        let simulation = disk(seed ^ n);
        let environment = simulation.environment();
        let options = LogOptions { buffer_bytes: 400, ..options(level) };
        let (log, _) = reopen(&environment, Lsn(0), &options).expect("opens");
        let published = Arc::new(Mutex::new(Vec::new()));
        let mut appended = Vec::new();
        let mut one = |log: &Log, number: u8| {
            let payload = vec![number; 20 + usize::try_from(random.below(100)).expect("small")];
            let seen = Arc::clone(&published);
            let publish = Box::new(move |lsn| seen.lock().expect("whole").push(lsn));
            // Two at once, or none.
            let lsn = log.append_all_then(number, &[&payload, b"and this"], publish)?;
            appended.push((number, payload));
            appended.push((number, b"and this".to_vec()));
            if random.below(8) == 0 { log.rotate().map(drop) } else { log.wait(lsn) }
        };
        simulation.files.fail_write(n, Fault::DiskFull);
        for number in 0..30 {
            if let Err(error) = one(&log, number) {
                assert_eq!(error.kind(), ErrorKind::Io, "{error}");
                refused += 1;
            }
        }
        if log.refuses() {
            assert!(log.check().is_err() && log.status().refusal.is_some());
        }
        simulation.files.clear_faults();
        for number in 30..35 {
            one(&log, number).unwrap_or_else(|error| panic!("VERVET_SEED={seed}, {level}, {n}: {error}"));
        }
        assert!(log.check().is_ok() && log.status().refusal.is_none());
        kept += appended.len();
        log.close().expect("works");
        let (_, records) = read_all(&environment, Lsn(0), &ReadOptions::default()).expect("reads");
        let records: Vec<_> = records.into_iter().map(|(_, kind, payload)| (kind, payload)).collect();
        assert_eq!(records, appended, "VERVET_SEED={seed}, {level}, operation {n}");
        let published = published.lock().expect("whole");
        assert!(published.is_sorted_by(|a, b| a < b) && published.len() * 2 == appended.len());
    }
    assert!(refused > 100 && kept > 1000, "{refused} {kept}");
}

/// Storage B3, with accidents: a log on a full disk loses power; acknowledged records survive.
#[test]
fn b3_a_full_disk_and_a_loss_of_power() {
    let seed = seed();
    for n in 0..60 {
        let simulation = disk(seed ^ n);
        let environment = simulation.environment();
        let (log, _) = reopen(&environment, Lsn(0), &options(Durability::Sync)).expect("opens");
        simulation.files.fail_write(n % 20, Fault::DiskFull);
        let mut acknowledged = Vec::new();
        for number in 0..12 {
            let done = log.append(number, &[number; 30]).and_then(|lsn| log.wait(lsn).map(|()| lsn));
            acknowledged.extend(done.map(|lsn| (lsn, number, vec![number; 30])));
        }
        match n / 20 {
            0 => simulation.files.crash(),
            1 => simulation.files.crash_losing_all(),
            _ => simulation.files.crash_reordering(),
        }
        drop(log);
        let (_, records) = reopen(&environment, Lsn(0), &options(Durability::Sync)).expect("opens");
        assert!(records.starts_with(&acknowledged), "VERVET_SEED={seed}, {n}: {records:?} {acknowledged:?}");
    }
}

/// Storage B16: at the levels that do not wait, a published record is not an error, whatever happens to the
/// disk afterwards; the next append is.
#[test]
fn b16_what_is_published_is_acknowledged() {
    for fault in [Fault::Io, Fault::DiskFull] {
        let simulation = disk(1);
        let (log, _) = reopen(&simulation.environment(), Lsn(0), &options(Durability::None)).expect("opens");
        simulation.files.fail_write(0, fault);
        let payload = vec![1; 100_000];
        let mut visible = 0;
        let error = loop {
            let published = Arc::new(Mutex::new(false));
            let seen = Arc::clone(&published);
            match log.append_then(1, &payload, Box::new(move |_| *seen.lock().expect("whole") = true)) {
                Ok(lsn) => {
                    let waited = log.wait(lsn);
                    assert!(*published.lock().expect("whole"), "at once");
                    waited.expect("it is visible");
                    visible += 1;
                }
                Err(error) => break error,
            }
        };
        assert_eq!((visible, error.kind()), (3, ErrorKind::Io), "a buffer is written from 256 KiB on");
        assert!(error.hint().is_some());
    }
}

/// Storage B10: an unreadable sector of the log is an error with its position, and the log may be cut there.
/// (Formerly the file was mapped, and the process died.)
#[test]
fn b10_a_bad_sector_is_an_error() {
    let simulation = disk(1);
    let environment = simulation.environment();
    let (log, _) = reopen(&environment, Lsn(0), &options(Durability::Sync)).expect("opens");
    let mut ends = Vec::new();
    for number in 0..30 {
        let lsn = log.append(number, &[number; 50]).expect("works");
        log.wait(lsn).expect("works");
        ends.push(lsn);
    }
    log.close().expect("works");
    let file = environment.files.list(Path::new(DIR)).expect("works").remove(0);
    for position in [0, 45, 1000, 2000] {
        simulation.files.clear_faults();
        simulation.files.add_bad_sector(&file, position);
        for beside_writer in [false, true] {
            let options = ReadOptions { beside_writer, ..ReadOptions::default() };
            let error = read_all(&environment, Lsn(0), &options).expect_err("it cannot be read");
            assert_eq!(error.kind(), ErrorKind::Io, "{error}");
            assert!(
                error.message().contains("wal-") && error.hint().is_some_and(|hint| hint.contains("recover"))
            );
        }
        let cutting = ReadOptions { truncate_at_damage: true, ..ReadOptions::default() };
        let (found, kept) = read_all(&environment, Lsn(0), &cutting).expect("cuts");
        let at = found.truncation.expect("it is cut");
        assert!(at.damage.is_some_and(|what| what.contains("cannot be read")));
        let whole = ends.iter().filter(|end| 40 + end.0 <= position as u64).count();
        assert_eq!(kept.len(), whole, "all before byte {position}");
    }
}

/// Storage B11: formerly each process that wrote one record and closed left two files.
#[test]
fn b11_short_writers_leave_few_files() {
    let simulation = disk(1);
    let environment = simulation.environment();
    let payload = vec![7; 10_000];
    let (mut most, mut bytes) = (0, 0);
    for round in 0..250 {
        let (log, records) = reopen(&environment, Lsn(0), &LogOptions::default()).expect("opens");
        assert_eq!(records.len(), round);
        log.append(1, &payload).expect("works");
        assert_eq!(log.status().files, environment.files.list(Path::new(DIR)).expect("works").len() as u64);
        bytes = log.status().bytes;
        log.close().expect("works");
        most = most.max(environment.files.list(Path::new(DIR)).expect("works").len() as u64);
    }
    assert!(most <= 2 + bytes / LAST_FILE_BYTES_MAX, "{most} files for {bytes} bytes");
}

/// Storage B12: records that a reader beside a writer has returned survive a loss of power.
#[test]
fn b12_a_reader_returns_only_durable_records() {
    let seed = seed();
    for n in 0..40 {
        let simulation = disk(seed ^ n);
        let environment = simulation.environment();
        let (log, _) = reopen(&environment, Lsn(0), &options(Durability::None)).expect("opens");
        for number in 0..12 {
            log.wait(log.append(number, &vec![number; 40_000]).expect("works")).expect("works");
        }
        let beside = ReadOptions { beside_writer: true, ..ReadOptions::default() };
        let (_, seen) = read_all(&environment, Lsn(0), &beside).expect("reads");
        assert!(!seen.is_empty(), "the written records are read");
        match n % 3 {
            0 => simulation.files.crash(),
            1 => simulation.files.crash_losing_all(),
            _ => simulation.files.crash_reordering(),
        }
        drop(log);
        let (_, left) = read_all(&environment, Lsn(0), &ReadOptions::default()).expect("reads");
        assert!(
            left.starts_with(&seen),
            "VERVET_SEED={seed}, {n}: {} of {} are left",
            left.len(),
            seen.len()
        );
    }
}

//! Levels, limits, checkpoints, and readers beside a writer.

use crate::common::{DIR, disk, read_all, reopen};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use vervet_env::{Environment, Fault};
use vervet_log::{Durability, KIND_MAX, Log, LogOptions, Lsn, RECORD_BYTES_MAX, ReadOptions, WRITE_BYTES};
use vervet_model::ErrorKind;

fn options(level: Durability) -> LogOptions {
    LogOptions { durability: level, ..LogOptions::default() }
}

#[test]
fn none_writes_large_buffers_only() {
    let simulation = disk(1);
    let (log, _) = reopen(&simulation.environment(), Lsn(0), &options(Durability::None)).expect("opens");
    let before = simulation.files.write_count();
    let payload = vec![7; 1000];
    let mut appended = 0;
    let start = log.end_lsn();
    while simulation.files.write_count() == before {
        log.wait(log.append(0, &payload).expect("works")).expect("works");
        appended += 1;
    }
    assert!(appended * 1013 + 100 > WRITE_BYTES, "{appended}");
    assert_eq!(log.durable_lsn(), start, "written, not synced");
    log.close().expect("works");
    simulation.files.crash_losing_all();
    let (_, records) = read_all(&simulation.environment(), Lsn(0), &ReadOptions::default()).expect("reads");
    assert_eq!(records.len(), appended, "closing syncs at every level");
}

#[test]
fn interval_durability_syncs_in_the_background() {
    let simulation = disk(1);
    let level = Durability::Interval(Duration::from_millis(2));
    let (log, _) = reopen(&simulation.environment(), Lsn(0), &options(level)).expect("opens");
    let before = simulation.files.write_count();
    let lsn = log.append(0, b"soon").expect("works");
    log.wait(lsn).expect("works");
    let deadline = Instant::now() + Duration::from_secs(20);
    while log.durable_lsn() < lsn {
        assert!(Instant::now() < deadline, "the thread of the log does not sync");
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(simulation.files.write_count(), before + 2, "one write, one sync");
    thread::sleep(Duration::from_millis(20));
    assert_eq!(simulation.files.write_count(), before + 2, "nothing to do, nothing done");
    // A failure of the thread reaches every caller.
    simulation.files.fail_write(0, Fault::DiskFull);
    let lost = log.append(0, b"lost").expect("works");
    // Acknowledged at once, unless the thread of the log was faster.
    if let Err(error) = log.wait(lost) {
        assert_eq!(error.kind(), ErrorKind::Io);
    }
    let mut appended = 1;
    while log.append(0, b"").is_ok() {
        appended += 1;
        assert!(Instant::now() < deadline, "the failure is not reported");
        thread::sleep(Duration::from_millis(1));
    }
    let error = log.close().expect_err("failed");
    assert_eq!(error.kind(), ErrorKind::Io);
    simulation.files.clear_faults();
    let (_, records) = read_all(&simulation.environment(), Lsn(0), &ReadOptions::default()).expect("reads");
    assert_eq!(records[0], (lsn, 0, b"soon".to_vec()));
    // The disk took half of the batch, which is larger if the thread of the log came late.
    let kept = &records[1..];
    assert!(kept.len() < appended, "{kept:?} of {appended}");
    let expected = [b"lost".as_slice()].into_iter().chain(std::iter::repeat(b"".as_slice()));
    assert!(kept.iter().zip(expected).all(|((_, _, payload), expected)| payload == expected), "{kept:?}");
}

#[test]
fn limits_are_errors() {
    let simulation = disk(1);
    let (log, _) = reopen(&simulation.environment(), Lsn(0), &LogOptions::default()).expect("opens");
    assert_eq!(log.append(KIND_MAX + 1, b"").expect_err("reserved").kind(), ErrorKind::Internal);
    assert_eq!(log.wait(Lsn(1)).expect_err("no such record").kind(), ErrorKind::Internal);
    let huge = vec![0; RECORD_BYTES_MAX + 1];
    assert_eq!(log.append(0, &huge).expect_err("too large").kind(), ErrorKind::Input);
    drop(huge);
    let larger_than_the_buffer = vec![1; 9 << 20];
    let lsn = log.append(0, &larger_than_the_buffer).expect("alone in the buffer");
    log.wait(lsn).expect("works");
    log.wait(Lsn(0)).expect("the past");
    log.close().expect("works");
    let (_, records) = read_all(&simulation.environment(), Lsn(0), &ReadOptions::default()).expect("reads");
    assert!(records == [(lsn, 0, larger_than_the_buffer)]);
}

#[test]
fn a_full_buffer_is_written_by_the_appending_thread() {
    let simulation = disk(1);
    let options = LogOptions { buffer_bytes: 1000, ..LogOptions::default() };
    let (log, _) = reopen(&simulation.environment(), Lsn(0), &options).expect("opens");
    let before = simulation.files.write_count();
    for _ in 0..100 {
        log.append(0, &[1; 100]).expect("works");
    }
    let writes = simulation.files.write_count() - before;
    assert!((12..=15).contains(&writes), "{writes} writes of 8 records, and no sync");
    assert_eq!(log.durable_lsn(), Lsn(0));
    log.wait(log.end_lsn()).expect("works");
    assert_eq!(log.durable_lsn(), log.end_lsn());
}

#[test]
fn checkpoints_remove_older_files() {
    let simulation = disk(1);
    let environment = simulation.environment();
    let count = || environment.files.list(Path::new(DIR)).expect("works").len();
    let (log, _) = reopen(&environment, Lsn(0), &LogOptions::default()).expect("opens");
    assert_eq!((log.rotate().expect("nothing to do"), count()), (Lsn(0), 1));
    let mut starts = Vec::new();
    for number in 0..5 {
        log.append(number, b"x").expect("works");
        starts.push(log.rotate().expect("works"));
        assert_eq!(log.rotate().expect("nothing to do"), starts[number as usize]);
    }
    assert_eq!(count(), 6);
    log.remove_before(starts[2]).expect("works");
    assert_eq!(count(), 3, "the file that starts there stays");
    log.remove_before(Lsn(starts[3].0 - 1)).expect("works");
    assert_eq!(count(), 3, "it still has a record after the LSN");
    let (_, records) = read_all(&environment, starts[2], &ReadOptions::default()).expect("reads");
    assert_eq!(records.iter().map(|(_, kind, _)| *kind).collect::<Vec<_>>(), [3, 4]);
    let error = read_all(&environment, Lsn(0), &ReadOptions::default()).expect_err("they are removed");
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    let beside = ReadOptions { beside_writer: true, ..ReadOptions::default() };
    assert_eq!(read_all(&environment, Lsn(0), &beside).expect_err("gone").kind(), ErrorKind::Unavailable);
    // A file that cannot be created does not stop the log.
    log.append(9, b"y").expect("works");
    simulation.files.fail_write(2, Fault::Io);
    assert_eq!(log.rotate().expect_err("fails").kind(), ErrorKind::Io);
    log.wait(log.append(9, b"z").expect("works")).expect("works");
    log.close().expect("works");
    assert_eq!(count(), 3);
    // A checkpoint after the end of the remaining log: the log continues from there.
    let far = Lsn(1 << 40);
    let (log, records) = reopen(&environment, far, &LogOptions::default()).expect("opens");
    assert!(records.is_empty() && log.end_lsn() == far);
    log.append(1, b"far").expect("works");
    log.close().expect("works");
    assert_eq!(read_all(&environment, far, &ReadOptions::default()).expect("reads").1.len(), 1);
}

/// A closed log continues in a new file: records after the mark of the close, whose sync may have failed
/// unseen, would not be safe. No record is lost or found twice, and there are few files.
#[test]
fn a_closed_log_continues_in_a_new_file() {
    let simulation = disk(1);
    let environment = simulation.environment();
    for round in 0..10 {
        let (log, records) = reopen(&environment, Lsn(0), &LogOptions::default()).expect("opens");
        assert_eq!(records.len(), round);
        log.append(1, b"once more").expect("works");
        log.close().expect("works");
        let (log, records) = reopen(&environment, Lsn(0), &LogOptions::default()).expect("opens");
        assert_eq!(records.len(), round + 1);
        log.close().expect("works");
        let files = environment.files.list(Path::new(DIR)).expect("works").len();
        assert!(files <= 2 * round + 3, "{files} files after {round} rounds");
    }
}

/// A reader on the real file system, while threads append, rotate and remove: it always sees a prefix,
/// without gaps.
#[test]
fn readers_beside_a_writer_see_a_prefix() {
    let dir = tempfile::tempdir().expect("works");
    let environment = Environment::real();
    let open = |from, beside_writer, visit: &mut dyn FnMut(u64)| {
        let options = ReadOptions { beside_writer, ..ReadOptions::default() };
        vervet_log::read(&environment, dir.path(), from, &options, &mut |_, _, payload| {
            visit(payload.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte)));
            Ok(())
        })
    };
    let found = open(Lsn(0), false, &mut |_| {}).expect("reads");
    let options = LogOptions { buffer_bytes: 5000, durability: Durability::None };
    let log = Log::open(&environment, dir.path(), found, options).expect("opens");
    // The checkpoint: its LSN, and the number of the first record after it.
    let checkpoint = std::sync::Mutex::new((Lsn(0), 0_u64));
    let (done, written) = (AtomicBool::new(false), Arc::new(AtomicU64::new(0)));
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0_u64..20_000 {
                let mut payload = number.to_be_bytes().to_vec();
                payload.resize(8 + (number % 300) as usize, 3);
                log.append(0, &payload).expect("works");
                if number % 1000 == 999 {
                    let lsn = log.rotate().expect("works");
                    written.store(number + 1, Ordering::Release);
                    if number % 3000 == 2999 {
                        *checkpoint.lock().expect("whole") = (lsn, number + 1);
                        log.remove_before(lsn).expect("works");
                    }
                }
            }
            done.store(true, Ordering::Release);
        });
        let mut reads = 0;
        loop {
            let last = done.load(Ordering::Acquire);
            let (from, first) = *checkpoint.lock().expect("whole");
            let safe = written.load(Ordering::Acquire);
            let mut next = first;
            let result = open(from, true, &mut |number| {
                assert_eq!(number, next);
                next += 1;
            });
            match result {
                Ok(_) => {
                    assert!(next >= safe, "{next} of {safe}");
                    reads += 1;
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
            }
            if last {
                break;
            }
        }
        assert!(reads > 0);
        println!("{reads} reads");
    });
}

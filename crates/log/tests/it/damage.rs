//! Tests of damaged log files.
//!
//! Every byte of every file changed in several ways, every file missing or cut at every length. Reading then
//! gives an error, or the log up to some record; for a closed log an error or the whole log, since no
//! acknowledged record may be lost silently.

use crate::common::{DIR, Record, disk, read_all, reopen, seed};
use std::path::{Path, PathBuf};
use vervet_env::{Environment, Fault, SeededRandom, Simulation};
use vervet_log::{Log, LogId, LogOptions, Lsn, ReadOptions};
use vervet_model::ErrorKind;

/// A log of three files, `closed` or abandoned without closing.
fn build(simulation: &Simulation, random: &SeededRandom, closed: bool) -> Vec<Record> {
    let environment = simulation.environment();
    let (log, _) = reopen(&environment, Lsn(0), &LogOptions::default()).expect("opens");
    let mut records = Vec::new();
    for number in 0..12_u8 {
        if number % 4 == 0 && number > 0 {
            log.rotate().expect("works");
        }
        let payload: Vec<u8> = (0..random.below(30)).map(|_| random.next().to_le_bytes()[0]).collect();
        let lsn = log.append(number, &payload).expect("works");
        records.push((lsn, number, payload));
        if number % 2 == 0 {
            log.wait(lsn).expect("works");
        }
    }
    log.sync().expect("works");
    if closed {
        log.close().expect("works");
    } else {
        std::mem::forget(log);
    }
    records
}

fn files(environment: &Environment) -> Vec<PathBuf> {
    environment.files.list(Path::new(DIR)).expect("works")
}

/// Checks the result of reading, then cuts the log if it is damaged, and continues it. `shortened`: a file
/// may end after one of its frames, and then nothing shows that there were more.
fn check(simulation: &Simulation, records: &[Record], closed: bool, shortened: bool, context: &str) -> bool {
    let environment = simulation.environment();
    let beside = ReadOptions { beside_writer: true, ..ReadOptions::default() };
    let live = read_all(&environment, Lsn(0), &beside);
    let damaged = match read_all(&environment, Lsn(0), &ReadOptions::default()) {
        Ok((found, read)) => {
            assert!(records.starts_with(&read), "{context}: a wrong record");
            assert!(!closed || read.len() == records.len(), "{context}: lost silently");
            let shorter = read.len() < records.len();
            assert!(found.truncation.is_some() || !shorter || shortened, "{context}: shortened silently");
            assert_eq!(live.expect("sound").1, read, "{context}");
            false
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{context}: {error}");
            assert!(error.message().contains(DIR) && error.hint().is_some(), "{context}: {error}");
            let kind = live.expect_err("damaged").kind();
            assert!(matches!(kind, ErrorKind::Corrupt | ErrorKind::Unavailable), "{context}");
            true
        }
    };
    let options = ReadOptions { truncate_at_damage: true, ..ReadOptions::default() };
    let (found, kept) = read_all(&environment, Lsn(0), &options).expect("cuts");
    assert!(records.starts_with(&kept), "{context}: a wrong record");
    assert_eq!(found.truncation.as_ref().is_some_and(|cut| cut.damage.is_some()), damaged, "{context}");
    let log = Log::open(&environment, Path::new(DIR), found, LogOptions::default()).expect("opens");
    let lsn = log.append(9, b"goes on").expect("works");
    log.close().expect("works");
    let (found, after) = read_all(&environment, Lsn(0), &ReadOptions::default()).expect("sound");
    assert_eq!(after.len(), kept.len() + 1, "{context}");
    assert_eq!(after.last(), Some(&(lsn, 9, b"goes on".to_vec())), "{context}");
    assert!(after.starts_with(&kept) && found.truncation.is_none(), "{context}");
    damaged
}

#[test]
fn every_changed_byte_is_detected() {
    let seed = seed();
    for closed in [true, false] {
        let mut damaged = 0;
        let mut tried = 0;
        let names = {
            let simulation = disk(seed);
            build(&simulation, &SeededRandom::new(seed), closed);
            files(&simulation.environment())
        };
        assert_eq!(names.len(), 3);
        for name in &names {
            for position in 0.. {
                let simulation = disk(seed);
                let records = build(&simulation, &SeededRandom::new(seed), closed);
                let bytes = simulation.environment().files.read(name).expect("works");
                let Some(old) = bytes.get(position) else { break };
                let mask = [1, 0x80, 0xff, 0x10][position % 4];
                simulation.files.damage(name, position, old ^ mask).expect("works");
                let context = format!("closed {closed}, {}, byte {position}, mask {mask:#x}", name.display());
                damaged += u32::from(check(&simulation, &records, closed, false, &context));
                tried += 1;
            }
        }
        println!("closed {closed}: {damaged} of {tried} changed bytes are damage");
        assert!(damaged > tried / 2);
    }
}

#[test]
fn every_truncation_and_missing_file_is_detected() {
    let seed = seed();
    for closed in [true, false] {
        let simulation = disk(seed);
        build(&simulation, &SeededRandom::new(seed), closed);
        let names = files(&simulation.environment());
        for (index, name) in names.iter().enumerate() {
            let length = simulation.environment().files.length(name).expect("works");
            for length in (0..length).map(Some).chain([None]) {
                let simulation = disk(seed);
                let records = build(&simulation, &SeededRandom::new(seed), closed);
                let environment = simulation.environment();
                match length {
                    Some(length) => environment.files.truncate(name, length).expect("works"),
                    None => environment.files.remove_file(name).expect("works"),
                }
                // A last file that is too short, or missing, reads as one that was never written.
                let last = index + 1 == names.len();
                let context = format!("closed {closed}, {}, length {length:?}", name.display());
                let damaged = check(&simulation, &records, closed && !last, last, &context);
                assert!(damaged || last, "{context}");
            }
        }
    }
}

/// Cutting at damage fails or loses power at each of its operations; a retry keeps the same records.
#[test]
fn truncation_may_be_interrupted() {
    let seed = seed();
    let cutting = ReadOptions { truncate_at_damage: true, ..ReadOptions::default() };
    let mut interrupted = 0;
    for file in 0..3 {
        for n in 0..12 {
            for power in [false, true] {
                let simulation = disk(seed ^ n);
                let environment = simulation.environment();
                let records = build(&simulation, &SeededRandom::new(seed), true);
                // The frame after the first mark of this file.
                simulation.files.damage(&files(&environment)[file], 40 + 21 + 12, 0xee).expect("works");
                let (found, kept) = read_all(&environment, Lsn(0), &cutting).expect("cuts");
                assert_eq!(kept, records[..file * 4], "file {file}");
                simulation.files.fail_write(n, Fault::Io);
                let result = Log::open(&environment, Path::new(DIR), found, LogOptions::default());
                interrupted += u32::from(result.is_err());
                if power {
                    simulation.files.crash_reordering();
                } else {
                    simulation.files.clear_faults();
                }
                drop(result);
                let (found, after) = read_all(&environment, Lsn(0), &cutting).expect("cuts");
                assert_eq!(after, kept, "VERVET_SEED={seed}, file {file}, operation {n}, power {power}");
                Log::open(&environment, Path::new(DIR), found, LogOptions::default())
                    .and_then(Log::close)
                    .expect("opens");
                let (found, after) = read_all(&environment, Lsn(0), &ReadOptions::default()).expect("sound");
                assert!(after == kept && found.truncation.is_none());
            }
        }
    }
    assert!(interrupted > 30, "{interrupted}");
}

#[test]
fn files_of_another_log_are_damage() {
    let simulation = disk(1);
    let environment = simulation.environment();
    build(&simulation, &SeededRandom::new(1), true);
    let names = files(&environment);
    let middle = environment.files.read(&names[1]).expect("works");
    for name in &names {
        environment.files.remove_file(name).expect("works");
    }
    build(&simulation, &SeededRandom::new(1), true);
    assert_eq!(files(&environment), names);
    let mut file = environment.files.create(&names[1]).expect("works");
    std::io::Write::write_all(&mut file, &middle).expect("works");
    let error = read_all(&environment, Lsn(0), &ReadOptions::default()).expect_err("another log");
    assert!(error.kind() == ErrorKind::Corrupt && error.message().contains("another log"), "{error}");
    let id = ReadOptions { id: Some(LogId(5)), ..ReadOptions::default() };
    assert!(read_all(&environment, Lsn(0), &id).is_err());
}

/// A batch whose first sector is lost and whose last one is there is a torn tail, not damage.
#[test]
fn an_unsynced_batch_may_lose_its_middle() {
    let simulation = disk(1);
    let environment = simulation.environment();
    let (log, _) = reopen(&environment, Lsn(0), &LogOptions::default()).expect("opens");
    let kept = log.append(1, b"kept").expect("works");
    log.wait(kept).expect("works");
    log.append(2, b"torn").expect("works");
    let last = log.append(3, b"whole").expect("works");
    simulation.files.fail_write(1, Fault::Io);
    log.wait(last).expect_err("not synced");
    let name = &files(&environment)[0];
    let bytes = environment.files.read(name).expect("works");
    let place = bytes.windows(4).position(|window| window == b"torn").expect("present");
    simulation.files.damage(name, place, b'T').expect("works");
    let (found, records) = read_all(&environment, Lsn(0), &ReadOptions::default()).expect("a torn tail");
    assert_eq!(records, [(kept, 1, b"kept".to_vec())]);
    let cut = found.truncation.expect("cut");
    // The head of the frame and the mark of its batch precede the payload.
    assert_eq!((cut.offset, cut.damage), (place as u64 - 13, None));
    assert_eq!(cut.bytes, bytes.len() as u64 - cut.offset);
}

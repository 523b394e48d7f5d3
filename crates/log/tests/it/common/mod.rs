//! A random life of a log, and its invariants after any accident.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part of this module")]

use std::path::Path;
use std::sync::{Arc, Mutex};
use vervet_env::{Environment, SeededRandom, Simulation};
use vervet_log::{Durability, Log, LogOptions, Lsn, ReadOptions, RecoveryReport, read};
use vervet_model::Result;

/// The seed of this run, printed.
pub fn seed() -> u64 {
    let seed = std::env::var("VERVET_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(20_261_120_u64);
    println!("VERVET_SEED={seed}");
    seed
}

/// A record with its LSN.
pub type Record = (Lsn, u8, Vec<u8>);

pub const DIR: &str = "/db";

/// A simulated disk with an empty directory.
pub fn disk(seed: u64) -> Simulation {
    let simulation = Simulation::new(seed);
    let files = &simulation.environment().files;
    files.create_dir_all(Path::new(DIR)).expect("works");
    files.sync_dir(Path::new("/")).expect("works");
    simulation
}

/// All records after `from`.
pub fn read_all(
    environment: &Environment,
    from: Lsn,
    options: &ReadOptions,
) -> Result<(RecoveryReport, Vec<Record>)> {
    let mut records = Vec::new();
    let found = read(environment, Path::new(DIR), from, options, &mut |lsn, kind, payload| {
        records.push((lsn, kind, payload.to_vec()));
        Ok(())
    })?;
    assert_eq!(found.records, records.len() as u64);
    Ok((found, records))
}

/// Reads and opens.
pub fn reopen(environment: &Environment, from: Lsn, options: &LogOptions) -> Result<(Log, Vec<Record>)> {
    let (found, records) = read_all(environment, from, &ReadOptions::default())?;
    Ok((Log::open(environment, Path::new(DIR), found, options.clone())?, records))
}

/// Expected state of a log.
#[derive(Debug)]
pub struct Model {
    /// Every record that was appended and may be in the log.
    pub records: Vec<Record>,
    /// Number of records that must be in the log.
    pub safe: usize,
    /// Records up to this LSN are covered by a checkpoint.
    pub checkpoint: Lsn,
    /// LSNs that the log has published, in order.
    pub published: Arc<Mutex<Vec<Lsn>>>,
    pub options: LogOptions,
}

impl Model {
    pub fn new(random: &SeededRandom) -> Self {
        let level = if random.below(4) == 0 { Durability::None } else { Durability::Sync };
        let buffer_bytes = 1 << (6 + random.below(5));
        Self {
            records: Vec::new(),
            safe: 0,
            checkpoint: Lsn(0),
            published: Arc::default(),
            options: LogOptions { durability: level, buffer_bytes },
        }
    }

    pub fn append(&mut self, log: &Log, random: &SeededRandom) -> Result<Lsn> {
        let length = if random.below(20) == 0 { random.below(3000) } else { random.below(100) };
        let kind = u8::try_from(random.below(255)).expect("small");
        let mut payload: Vec<u8> = (0..length).map(|_| random.next().to_le_bytes()[0]).collect();
        if random.below(4) == 0 {
            payload.fill(0);
        }
        let published = self.published.clone();
        let publish = Box::new(move |lsn| published.lock().expect("whole").push(lsn));
        let lsn = log.append_then(kind, &payload, publish)?;
        self.records.push((lsn, kind, payload));
        Ok(lsn)
    }

    fn all_safe(&mut self) {
        self.safe = self.records.len();
    }

    /// Performs one random operation on the log.
    pub fn step(&mut self, log: Log, environment: &Environment, random: &SeededRandom) -> Result<Log> {
        match random.below(20) {
            0..8 => {
                self.append(&log, random)?;
            }
            8..14 => {
                let lsn = self.append(&log, random)?;
                log.wait(lsn)?;
                if self.options.durability == Durability::Sync {
                    self.all_safe();
                }
                let published = self.published.lock().expect("whole").last().copied();
                assert_eq!(published, Some(lsn), "a wait returns after publication");
            }
            14 => {
                log.sync()?;
                self.all_safe();
            }
            15..17 => {
                let lsn = log.rotate()?;
                self.all_safe();
                assert_eq!(lsn, log.durable_lsn());
                if random.below(2) == 0 {
                    self.checkpoint = lsn;
                    log.remove_before(lsn)?;
                }
            }
            17 => {
                // A checkpoint in the middle of a file.
                if let Some((lsn, ..)) = self.records[..self.safe].last() {
                    self.checkpoint = self.checkpoint.max(*lsn);
                    log.remove_before(*lsn)?;
                }
            }
            18 => {
                log.close()?;
                self.all_safe();
                return self.reopen(environment);
            }
            _ => {
                // The process dies.
                std::mem::forget(log);
                return self.reopen(environment);
            }
        }
        Ok(log)
    }

    /// Reads and opens the log after any accident, and checks its records. From then on these records must
    /// survive.
    pub fn reopen(&mut self, environment: &Environment) -> Result<Log> {
        let (found, records) = read_all(environment, self.checkpoint, &ReadOptions::default())?;
        let first = self.records.partition_point(|(lsn, ..)| *lsn <= self.checkpoint);
        let expected = &self.records[first..];
        assert!(expected.starts_with(&records), "found {} of {} records", records.len(), expected.len());
        let safe = self.safe.saturating_sub(first);
        assert!(records.len() >= safe, "only {} of {safe} acknowledged records", records.len());
        let log = Log::open(environment, Path::new(DIR), found, self.options.clone())?;
        self.records.truncate(first + records.len());
        self.all_safe();
        let mut published = self.published.lock().expect("whole");
        assert!(published.is_sorted(), "published in order");
        published.clear();
        Ok(log)
    }
}

//! Benchmark of the log on the real file system: commits a second at each level with 1 and 16 threads, and
//! read throughput.
//!
//! `cargo run --release -p vervet-log --example measure_log [directory]`
#![expect(clippy::print_stdout, clippy::cast_precision_loss, reason = "a program for the terminal")]

use std::error::Error;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use vervet_env::Environment;
use vervet_log::{Durability, Log, LogOptions, Lsn, ReadOptions, read};

const PAYLOAD: [u8; 100] = [7; 100];

fn main() -> Result<(), Box<dyn Error>> {
    let root = std::env::args().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let dir = root.join(format!("vervet-log-{}", std::process::id()));
    let environment = Environment::real();
    let open = |level| -> Result<Log, Box<dyn Error>> {
        environment.files.create_dir_all(&dir)?;
        let found = read(&environment, &dir, Lsn(0), &ReadOptions::default(), &mut |_, _, _| Ok(()))?;
        Ok(Log::open(&environment, &dir, found, LogOptions { durability: level, ..LogOptions::default() })?)
    };
    let raw_syncs = || -> Result<f64, Box<dyn Error>> {
        let mut file = environment.files.create(&root.join(format!("vervet-sync-{}", std::process::id())))?;
        let start = Instant::now();
        let mut count = 0;
        while start.elapsed() < Duration::from_millis(500) {
            file.write_all(&PAYLOAD)?;
            file.sync()?;
            count += 1;
        }
        Ok(f64::from(count) / start.elapsed().as_secs_f64())
    };
    for level in [Durability::Sync, Durability::Interval(Duration::from_millis(100)), Durability::None] {
        for threads in [1, 16] {
            if level == Durability::Sync {
                println!("the disk alone: {:.0} writes and syncs a second", raw_syncs()?);
            }
            let log = open(level)?;
            let count = AtomicU64::new(0);
            let start = Instant::now();
            thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| {
                        while start.elapsed() < Duration::from_secs(2) {
                            for _ in 0..16 {
                                let Ok(lsn) = log.append(0, &PAYLOAD) else { return };
                                if log.wait(lsn).is_err() {
                                    return;
                                }
                            }
                            count.fetch_add(16, Ordering::Relaxed);
                        }
                    });
                }
            });
            let rate = count.into_inner() as f64 / start.elapsed().as_secs_f64();
            log.close()?;
            environment.files.remove_dir_all(&dir)?;
            println!("{level:?}, {threads} threads: {rate:.0} commits a second of {} bytes", PAYLOAD.len());
        }
    }
    println!("the disk alone: {:.0} writes and syncs a second", raw_syncs()?);
    environment.files.remove_file(&root.join(format!("vervet-sync-{}", std::process::id())))?;
    for length in [100, 1000, 100_000] {
        let log = open(Durability::None)?;
        let payload = vec![7; length];
        for _ in 0..(512 << 20) / length {
            log.wait(log.append(0, &payload)?)?;
        }
        log.close()?;
        for _ in 0..3 {
            let start = Instant::now();
            let found = read(&environment, &dir, Lsn(0), &ReadOptions::default(), &mut |_, _, _| Ok(()))?;
            let rate = found.bytes as f64 / 1e6 / start.elapsed().as_secs_f64();
            println!("{} records of {length} bytes: read at {rate:.0} MB/s", found.records);
        }
        environment.files.remove_dir_all(&dir)?;
    }
    Ok(())
}

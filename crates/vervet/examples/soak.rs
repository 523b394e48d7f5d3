//! Soak test of a database, with a disk that is full for a time: runs `tests/it/soak.rs`.
//!
//! `cargo run --release -p vervet --example soak -- [OPERATIONS [SECONDS [DIRECTORY]]]`: by default a million
//! operations of each kind and ten minutes of a full disk. Panics at the first exceeded limit, and at the
//! first lost statement.

#[path = "../tests/it/soak.rs"]
mod soak;

use std::path::PathBuf;
use std::time::{Duration, Instant};
use vervet::{Durability, Error, ErrorKind, Result};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| match arguments.next() {
        Some(text) => text.parse().map_err(|_| {
            Error::new(ErrorKind::Input, format!("{text} is not a number of operations or seconds"))
        }),
        None => Ok(default),
    };
    let (operations, seconds) = (number(1_000_000)?, number(600)?);
    let directory = match std::env::args().nth(3) {
        Some(directory) => PathBuf::from(directory),
        None => std::env::temp_dir().join(format!("vervet-soak-{}", std::process::id())),
    };
    let options = soak::Soak {
        directory: directory.clone(),
        operations,
        full: Duration::from_secs(seconds),
        durability: Durability::Interval(Duration::from_millis(50)),
        log_bytes_max: 64 << 20,
        tell_every: 100_000,
    };
    let begin = Instant::now();
    let report = soak::run(&options, true)?;
    println!("{report:#?}\n{:.0} s", begin.elapsed().as_secs_f64());
    // Best-effort cleanup.
    let _ = std::fs::remove_dir_all(directory);
    Ok(())
}

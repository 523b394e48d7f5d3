//! Soak test: existing statements are added again, others are added and removed at once, transactions with
//! new terms are rolled back, and for a time the disk is full, first for bases alone (checkpoints fail), then
//! for all files. Throughout, log bytes, files, threads and memory stay below named limits; afterwards all
//! acknowledged writes are there, without a restart.
//!
//! As a test it takes a second or two; as a program it runs as long as requested: `cargo run --release -p
//! vervet --example soak`.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};
use vervet::{Database, DatabaseOptions, Durability, ErrorKind, Result, StorageStatus};
use vervet_env::{Bytes, Environment, FileSystem, LockGuard, RealFiles, WriteFile};

/// The amount and duration of work.
#[derive(Clone, Debug)]
pub(crate) struct Soak {
    /// An empty or missing directory.
    pub(crate) directory: PathBuf,
    /// Operations of each of the three kinds.
    pub(crate) operations: u64,
    /// The time for which the disk is full.
    pub(crate) full: Duration,
    pub(crate) durability: Durability,
    /// [`DatabaseOptions::log_bytes_max`].
    pub(crate) log_bytes_max: u64,
    /// Prints progress every this many operations.
    pub(crate) tell_every: u64,
}

/// The maximum number of log files at any time: the last one, one that a checkpoint is about to remove, and
/// one for each failed attempt, of which there is at most one a minute.
const LOG_FILES_MAX: u64 = 4;
/// The maximum log bytes of one operation.
const COMMIT_BYTES_MAX: u64 = 4096;
/// The maximum number of additional threads: the one that merges, and the log's.
const MORE_THREADS_MAX: u64 = 2;
/// Memory of a term of a rolled-back transaction, in the heap or in the mapped dictionary, beside the memory
/// of building a dictionary.
const TERM_BYTES_MAX: u64 = 400;
/// Memory that is used in any case.
const MEMORY_BYTES_MAX: u64 = 256 << 20;

/// Observations of a run.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) operations: u64,
    pub(crate) log_bytes: u64,
    pub(crate) log_files: u64,
    pub(crate) more_threads: u64,
    pub(crate) more_memory_bytes: u64,
    pub(crate) checkpoints: u64,
    pub(crate) failed_checkpoints: u64,
    pub(crate) refused: u64,
    pub(crate) acknowledged_while_full: u64,
    pub(crate) recovered: Duration,
}

/// The disk has room.
const ROOM: u8 = 0;
/// Only the files of the log may grow.
const BASES_FULL: u8 = 1;
/// No file may grow.
const ALL_FULL: u8 = 2;

/// Real files on a disk that becomes full on request.
#[derive(Clone, Debug)]
struct Disk {
    full: Arc<AtomicU8>,
}

impl Disk {
    fn room(&self, path: &Path) -> io::Result<()> {
        let is_log = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("wal-"));
        match self.full.load(Ordering::Relaxed) {
            ROOM => Ok(()),
            BASES_FULL if is_log => Ok(()),
            _ => Err(io::ErrorKind::StorageFull.into()),
        }
    }
}

struct DiskFile {
    file: Box<dyn WriteFile>,
    path: PathBuf,
    disk: Disk,
}

impl Write for DiskFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.disk.room(&self.path)?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl WriteFile for DiskFile {
    fn sync(&mut self) -> io::Result<()> {
        self.file.sync()
    }
}

impl FileSystem for Disk {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        RealFiles.create_dir_all(dir)
    }
    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        self.room(path)?;
        let file = RealFiles.create(path)?;
        Ok(Box::new(DiskFile { file, path: path.to_owned(), disk: self.clone() }))
    }
    fn append(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        self.room(path)?;
        RealFiles.append(path)
    }
    fn truncate(&self, path: &Path, length: u64) -> io::Result<()> {
        RealFiles.truncate(path, length)
    }
    fn map(&self, path: &Path) -> io::Result<Bytes> {
        RealFiles.map(path)
    }
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        RealFiles.read(path)
    }
    fn open_at(&self, path: &Path, offset: u64) -> io::Result<Box<dyn Read + Send>> {
        RealFiles.open_at(path, offset)
    }
    fn length(&self, path: &Path) -> io::Result<u64> {
        RealFiles.length(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.room(to)?;
        RealFiles.rename(from, to)
    }
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        RealFiles.remove_file(path)
    }
    fn remove_dir_all(&self, dir: &Path) -> io::Result<()> {
        RealFiles.remove_dir_all(dir)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        RealFiles.list(dir)
    }
    fn exists(&self, path: &Path) -> io::Result<bool> {
        RealFiles.exists(path)
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        RealFiles.sync_dir(dir)
    }
    fn sync_file(&self, path: &Path) -> io::Result<()> {
        RealFiles.sync_file(path)
    }
    fn available_bytes(&self, dir: &Path) -> io::Result<Option<u64>> {
        // Full, but a checkpoint only finds out by writing.
        RealFiles.available_bytes(dir)
    }
    fn lock(&self, path: &Path) -> io::Result<Box<dyn LockGuard>> {
        RealFiles.lock(path)
    }
}

/// Threads of this process, and its resident memory in bytes; zeros where the system does not report them.
fn of_process() -> (u64, u64) {
    let threads = std::fs::read_dir("/proc/self/task").map_or(0, |tasks| tasks.count() as u64);
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = pages.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    (threads, pages.unwrap_or(0) * 4096)
}

struct Life<'a> {
    options: &'a Soak,
    database: Database,
    disk: Disk,
    begin: (u64, u64),
    report: Report,
    /// Terms without statements.
    terms: u64,
    /// The number of statements that must exist beside those of the beginning, and the numbers of those that
    /// may.
    kept: u64,
    may_be: Vec<u64>,
    /// Whether no other tests run in this process.
    is_alone: bool,
}

fn extra(number: u64) -> String {
    format!("<urn:extra:{number}> <urn:p> <urn:o>")
}

impl Life<'_> {
    fn status(&self) -> StorageStatus {
        self.database.storage_status()
    }

    /// Asserts that everything is below its limit.
    fn check(&mut self, failed_attempts: u64) {
        let status = self.status();
        let report = &mut self.report;
        report.log_bytes = report.log_bytes.max(status.log_bytes);
        report.log_files = report.log_files.max(status.log_files);
        assert!(status.log_bytes < self.options.log_bytes_max + COMMIT_BYTES_MAX, "{status:?}");
        assert!(status.log_files <= LOG_FILES_MAX + failed_attempts, "{status:?}");
        if !self.is_alone {
            return;
        }
        let (threads, memory) = of_process();
        report.more_threads = report.more_threads.max(threads.saturating_sub(self.begin.0));
        report.more_memory_bytes = report.more_memory_bytes.max(memory.saturating_sub(self.begin.1));
        assert!(report.more_threads <= MORE_THREADS_MAX, "{threads} threads, {} at first", self.begin.0);
        let limit = MEMORY_BYTES_MAX + self.terms * TERM_BYTES_MAX;
        assert!(
            report.more_memory_bytes < limit,
            "{} bytes more memory of {limit}",
            report.more_memory_bytes
        );
    }

    fn operation(&mut self, number: u64) -> Result<()> {
        match number % 3 {
            0 => self.database.update(&format!("INSERT DATA {{ {} }}", base(number % BASE))).map(drop),
            1 => {
                let one = format!("<urn:a> <urn:p> <urn:b{}>", number % 7);
                self.database.update(&format!("INSERT DATA {{ {one} }} ; DELETE DATA {{ {one} }}")).map(drop)
            }
            _ => {
                let mut transaction = self.database.begin()?;
                transaction.update(&format!("INSERT DATA {{ <urn:nobody:{number}> <urn:p> <urn:o> }}"))?;
                self.terms += 1;
                transaction.roll_back();
                Ok(())
            }
        }
    }

    /// Adds a statement that must exist from now on, if the database acknowledges it.
    fn keep(&mut self) -> Result<()> {
        let number = self.kept + self.may_be.len() as u64;
        let done = self.database.update(&format!("INSERT DATA {{ {} }}", extra(number)));
        match done {
            Ok(_) => self.kept += 1,
            // It may still become visible, unless the next one is refused before any change.
            Err(ref error) => {
                assert!(matches!(error.kind(), ErrorKind::Io | ErrorKind::Unavailable), "{error}");
                self.may_be.push(number);
                self.report.refused += 1;
            }
        }
        done.map(drop)
    }

    fn count(&self, pattern: &str) -> u64 {
        let solutions =
            self.database.select(&format!("SELECT (COUNT(*) AS ?n) {{ {pattern} }}")).expect("a query");
        let count = solutions.rows().next().and_then(|row| row.integer("n").ok().flatten());
        count.and_then(|count| u64::try_from(count).ok()).expect("one number")
    }

    /// Asserts that all required statements exist, and no others.
    fn verify(&self) {
        assert_eq!(self.count("?s <urn:base> ?o"), BASE);
        let extras = self.count("?s <urn:p> <urn:o>");
        let most = self.kept + self.may_be.len() as u64;
        assert!(
            (self.kept..=most).contains(&extras),
            "{extras} statements, {} to {most} expected",
            self.kept
        );
    }

    fn full(&mut self, how: u8, time: Duration) {
        let begin = Instant::now();
        self.disk.full.store(how, Ordering::Relaxed);
        let mut number = 0;
        let mut failed = self.status().checkpoints.failed;
        let failed_before = failed;
        while begin.elapsed() < time || (how == BASES_FULL && failed == failed_before) {
            if self.keep().is_ok() {
                self.report.acknowledged_while_full += 1;
            }
            // Queries continue, whether or not changes succeed.
            if number % 50 == 0 {
                self.verify();
                failed = self.status().checkpoints.failed;
                self.check(failed - failed_before);
            }
            if how == BASES_FULL && self.may_be.is_empty() {
                for one in 0..50 {
                    // Fills the log, so that checkpoints are due.
                    let _ = self.operation(3 * one);
                }
            } else {
                std::thread::sleep(Duration::from_millis(1));
            }
            number += 1;
        }
        self.report.failed_checkpoints = self.status().checkpoints.failed;
        self.disk.full.store(ROOM, Ordering::Relaxed);
        let room = Instant::now();
        // A commit that finds no room waits for a checkpoint, which is retried after a minute at most.
        while let Err(error) = self.keep() {
            assert!(room.elapsed() < Duration::from_secs(100), "there is room, and still: {error}");
            std::thread::sleep(Duration::from_millis(20));
        }
        self.report.recovered = self.report.recovered.max(room.elapsed());
        assert!(self.status().is_writable());
        self.database.checkpoint().expect("there is room");
        self.verify();
    }
}

/// The number of statements at the beginning.
const BASE: u64 = 1000;

fn base(number: u64) -> String {
    format!("<urn:base:{number}> <urn:base> \"{number}\"")
}

/// Runs the soak. `is_alone`: no other test uses memory and threads of this process.
pub(crate) fn run(options: &Soak, is_alone: bool) -> Result<Report> {
    let disk = Disk { full: Arc::new(AtomicU8::new(ROOM)) };
    let environment = Environment { files: Arc::new(disk.clone()), ..Environment::real() };
    let open = DatabaseOptions {
        environment,
        durability: options.durability,
        log_bytes_max: options.log_bytes_max,
        ..DatabaseOptions::default()
    };
    let database = Database::open_or_create_with(&options.directory, open.clone())?;
    let mut text = String::new();
    for number in 0..BASE {
        writeln!(text, "{} .", base(number)).expect("a text takes all");
    }
    database.update(&format!("INSERT DATA {{ {text} }}"))?;
    database.checkpoint()?;
    let mut life = Life {
        options,
        database,
        disk,
        begin: of_process(),
        report: Report::default(),
        terms: 0,
        kept: 0,
        may_be: Vec::new(),
        is_alone,
    };
    for number in 0..3 * options.operations {
        life.operation(number)?;
        if number % 500 == 0 {
            life.keep()?;
            life.check(0);
        }
        if options.tell_every > 0 && number % options.tell_every == 0 {
            let status = life.status();
            println!(
                "{number}: {} bytes and {} files of log, {} terms, {} checkpoints, {:?}",
                status.log_bytes,
                status.log_files,
                status.terms,
                status.checkpoints.completed,
                of_process()
            );
        }
    }
    life.verify();
    life.full(BASES_FULL, options.full / 2);
    life.full(ALL_FULL, options.full / 2);
    let status = life.status();
    life.report.operations = 3 * options.operations;
    life.report.checkpoints = status.checkpoints.completed;
    // After reopening, nothing is lost either.
    let Life { database, report, kept, may_be, .. } = life;
    drop(database);
    let database = Database::open_with(&options.directory, open)?;
    let count = database.snapshot().statement_count() - BASE;
    assert!((kept..=kept + may_be.len() as u64).contains(&count), "{count} of {kept} are there");
    Ok(report)
}

/// A few seconds, concurrently with other tests.
#[cfg(test)]
#[test]
fn a_short_soak() {
    let directory = tempfile::tempdir().expect("works");
    let options = Soak {
        directory: directory.path().join("db"),
        operations: 1500,
        full: Duration::from_millis(100),
        durability: Durability::Interval(Duration::from_millis(5)),
        log_bytes_max: 400_000,
        tell_every: 0,
    };
    let report = run(&options, false).expect("works");
    assert!(report.checkpoints > 2 && report.failed_checkpoints > 0 && report.refused > 0, "{report:?}");
}

//! Cancelled loads and backups: at any step before publication nothing has changed; after it they are
//! complete. Cancellation is triggered by steps and by the renaming of the manifest, never by time.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use vervet::{CancelToken, Database, Environment, ErrorKind, Format, LoadOptions, Progress, Source, Watch};
use vervet_env::{Bytes, FileSystem, LockGuard, Simulation, WriteFile};

/// Cancels at the n-th reported step.
struct CancelAt<'t> {
    token: &'t CancelToken,
    calls: AtomicU64,
    at: u64,
}

impl Progress for CancelAt<'_> {
    fn advance(&self, _bytes_read: u64, _bytes_total: Option<u64>, _statements: u64) {}

    fn build(&self, done: u64, total: u64) {
        assert!(done <= total);
        if self.calls.fetch_add(1, Ordering::Relaxed) == self.at {
            self.token.cancel();
        }
    }
}

/// Triples, edges with properties, texts and a type.
fn source(number: u64) -> Source {
    let text: String = (0..40)
        .map(|i| {
            format!(
                "<urn:v{number}:{i}> a <urn:Thing> ; <urn:name> 'thing {i} of {number}' ; <urn:next> <urn:v{number}:{}> ~ \
                 <urn:e{number}:{i}> {{| <urn:since> {i} |}} .\n",
                i + 1
            )
        })
        .collect();
    Source::bytes(format!("{number}.ttl"), text.into_bytes())
}

fn count(db: &Database) -> u64 {
    db.snapshot().statement_count()
}

/// users 1: a load can be cancelled at every step of its second half, in which the files are built, and
/// leaves the database unchanged; through the token of the API as well as through Ctrl-C.
#[test]
fn users_1_a_load_is_cancelled_at_any_step_of_building() {
    let world = Simulation::new(1);
    let path = Path::new("/db");
    Database::open_or_create_in(world.environment(), path)
        .unwrap()
        .load(vec![source(1)], &LoadOptions::default())
        .unwrap();
    let mut refused = 0;
    for at in 0.. {
        let db = Database::open_in(world.environment(), path).unwrap();
        let before = count(&db);
        let files = world.files.list(path).unwrap();
        let token = CancelToken::new();
        let progress = CancelAt { token: &token, calls: AtomicU64::new(0), at };
        let options = LoadOptions {
            progress: Some(&progress),
            cancelled: Some(token.as_atomic()),
            orders: vec![("urn:next".to_owned(), "urn:since".to_owned())],
            text_index: true,
            threads: 2,
            ..LoadOptions::default()
        };
        match db.load(vec![source(2)], &options) {
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Cancelled, "step {at}: {error}");
                assert_eq!(count(&db), before, "step {at}");
                drop(db);
                assert_eq!(world.files.list(path).unwrap(), files, "step {at}: nothing is left");
                assert_eq!(
                    count(&Database::open_in(world.environment(), path).unwrap()),
                    before,
                    "step {at}"
                );
                refused += 1;
            }
            Ok(_) => {
                assert!(!token.is_cancelled(), "step {at}: it was cancelled in time");
                assert!(count(&db) > before);
                break;
            }
        }
    }
    assert!(refused > 10, "{refused} steps");
}

/// users 1: a cancellation after the manifest was renamed has no effect, and the load reports success.
#[test]
fn users_1_what_is_published_is_not_cancelled() {
    let token = CancelToken::new();
    let world = Simulation::new(2);
    let files = CancelAtRename { files: world.files.clone(), token: token.clone() };
    let environment = Environment { files: Arc::new(files), ..world.environment() };
    let db = Database::open_or_create_in(environment, "/db").unwrap();
    let options = LoadOptions { cancelled: Some(token.as_atomic()), ..LoadOptions::default() };
    let report = db.load(vec![source(1)], &options).expect("it was too late to cancel");
    assert!(token.is_cancelled() && report.statements > 0);
    assert_eq!(count(&Database::open_in(world.environment(), "/db").unwrap()), count(&db));
    // Likewise for a backup.
    let token = CancelToken::new();
    let files = CancelAtRename { files: world.files.clone(), token: token.clone() };
    let environment = Environment { files: Arc::new(files), ..world.environment() };
    let db = Database::open_in(environment, "/db").unwrap();
    let copied = db.backup_watched("/copy", &Watch::new("backup").cancelled_by(token.as_atomic()));
    assert_eq!(copied.expect("it was too late to cancel"), count(&db));
    assert!(token.is_cancelled());
}

/// users 9: a cancelled backup removes its files and the directories that it created; a backup into a folder
/// with other files is refused.
#[test]
fn users_9_a_cancelled_backup_leaves_nothing() {
    let world = Simulation::new(3);
    let db = Database::open_or_create_in(world.environment(), "/db").unwrap();
    db.load(vec![source(1)], &LoadOptions::default()).unwrap();
    db.update("INSERT DATA { <urn:a> <urn:b> <urn:c> }").unwrap();
    let mut refused = 0;
    for at in 0.. {
        let (token, calls) = (CancelToken::new(), AtomicU64::new(0));
        let report = |_, _| {
            if calls.fetch_add(1, Ordering::Relaxed) == at {
                token.cancel();
            }
        };
        let watch = Watch::new("backup").cancelled_by(token.as_atomic()).reporting_to(&report);
        match db.backup_watched("/a/b/copy", &watch) {
            Err(error) => {
                assert_eq!(error.message(), "the backup was cancelled");
                assert!(!world.files.exists(Path::new("/a")).unwrap(), "step {at}");
                refused += 1;
            }
            Ok(statements) => {
                assert_eq!(statements, count(&db));
                break;
            }
        }
    }
    assert!(refused > 5, "{refused} steps");
    world.files.create_dir_all(Path::new("/home")).unwrap();
    drop(world.files.create(Path::new("/home/thesis.tex")).unwrap());
    let error = db.backup("/home").expect_err("a folder with other files");
    assert!(error.kind() == ErrorKind::Input && error.message().contains("thesis.tex"), "{error}");
}

/// users 9: a failed load leaves no directory behind, and a load into a folder with other files is refused;
/// hidden files, and leftovers of a killed load, are no obstacle.
#[test]
fn users_9_a_failed_load_leaves_nothing() {
    let world = Simulation::new(4);
    let wrong = || vec![Source::bytes("a.nt", *b"<urn:a> oops .\n")];
    let right = || vec![Source::bytes("a.nt", *b"<urn:a> <urn:b> <urn:c> .\n")];
    let load = |path: &str, sources: Vec<Source>| {
        Database::open_or_create_in(world.environment(), path)?.load(sources, &LoadOptions::default())
    };
    assert_eq!(load("/x/y", wrong()).expect_err("malformed").kind(), ErrorKind::Input);
    assert!(!world.files.exists(Path::new("/x")).unwrap());
    world.files.create_dir_all(Path::new("/mine")).unwrap();
    assert_eq!(load("/mine", wrong()).expect_err("malformed").kind(), ErrorKind::Input);
    assert!(world.files.list(Path::new("/mine")).unwrap().is_empty(), "the folder was there, and is");
    drop(world.files.create(Path::new("/mine/.hidden")).unwrap());
    load("/mine", right()).expect("hidden files do not count");
    world.files.create_dir_all(Path::new("/photos")).unwrap();
    drop(world.files.create(Path::new("/photos/cat.jpg")).unwrap());
    let error = load("/photos", right()).expect_err("other files");
    assert!(error.kind() == ErrorKind::Input && error.message().contains("cat.jpg"), "{error}");
    assert_eq!(world.files.list(Path::new("/photos")).unwrap().len(), 1);
    // A malformed text does not create a database in an existing folder either.
    let db = Database::in_memory();
    assert!(db.load_text(Format::NTriples, "oops").is_err());
}

/// The files of a simulation; cancels when a manifest is renamed.
#[derive(Debug)]
struct CancelAtRename {
    files: Arc<vervet_env::SimulatedFiles>,
    token: CancelToken,
}

impl FileSystem for CancelAtRename {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.files.create_dir_all(dir)
    }
    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        self.files.create(path)
    }
    fn append(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        self.files.append(path)
    }
    fn truncate(&self, path: &Path, length: u64) -> io::Result<()> {
        self.files.truncate(path, length)
    }
    fn map(&self, path: &Path) -> io::Result<Bytes> {
        self.files.map(path)
    }
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.files.read(path)
    }
    fn open(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        self.files.open(path)
    }
    fn open_at(&self, path: &Path, offset: u64) -> io::Result<Box<dyn Read + Send>> {
        self.files.open_at(path, offset)
    }
    fn sync_file(&self, path: &Path) -> io::Result<()> {
        self.files.sync_file(path)
    }
    fn available_bytes(&self, path: &Path) -> io::Result<Option<u64>> {
        self.files.available_bytes(path)
    }
    fn length(&self, path: &Path) -> io::Result<u64> {
        self.files.length(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.files.rename(from, to)?;
        self.token.cancel();
        Ok(())
    }
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.files.remove_file(path)
    }
    fn remove_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.files.remove_dir_all(dir)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        self.files.list(dir)
    }
    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.files.exists(path)
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.files.sync_dir(dir)
    }
    fn lock(&self, path: &Path) -> io::Result<Box<dyn LockGuard>> {
        self.files.lock(path)
    }
}

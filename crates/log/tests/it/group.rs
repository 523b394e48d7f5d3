//! Group commit on the real file system: many threads share few syncs, and all their records are in the log.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use vervet_env::{Bytes, Environment, FileSystem, LockGuard, RealFiles, SeededRandom, WriteFile};
use vervet_log::{Log, LogOptions, Lsn, ReadOptions, read};

/// The real files, with a counter of syncs.
#[derive(Debug, Default)]
struct Counting {
    syncs: Arc<AtomicU64>,
}

struct CountingFile(Box<dyn WriteFile>, Arc<AtomicU64>);

impl Write for CountingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl WriteFile for CountingFile {
    fn sync(&mut self) -> io::Result<()> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.sync()
    }
}

impl FileSystem for Counting {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        RealFiles.create_dir_all(dir)
    }
    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        Ok(Box::new(CountingFile(RealFiles.create(path)?, self.syncs.clone())))
    }
    fn append(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        Ok(Box::new(CountingFile(RealFiles.append(path)?, self.syncs.clone())))
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
    fn sync_file(&self, path: &Path) -> io::Result<()> {
        RealFiles.sync_file(path)
    }
    fn available_bytes(&self, dir: &Path) -> io::Result<Option<u64>> {
        RealFiles.available_bytes(dir)
    }
    fn length(&self, path: &Path) -> io::Result<u64> {
        RealFiles.length(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
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
    fn lock(&self, path: &Path) -> io::Result<Box<dyn LockGuard>> {
        RealFiles.lock(path)
    }
}

#[test]
fn sixteen_threads_share_syncs() {
    const THREADS: u64 = 16;
    const RECORDS: u64 = 200;
    let dir = tempfile::tempdir().expect("works");
    let counting = Counting::default();
    let syncs = counting.syncs.clone();
    let environment = Environment { files: Arc::new(counting), ..Environment::real() };
    let visit_none = &mut |_: Lsn, _, _: &[u8]| Ok(());
    let found = read(&environment, dir.path(), Lsn(0), &ReadOptions::default(), visit_none).expect("reads");
    let options = LogOptions { buffer_bytes: 2000, ..LogOptions::default() };
    let log = Log::open(&environment, dir.path(), found, options).expect("opens");
    let published = Arc::new(Mutex::new(Vec::new()));
    // The lock of a committer: held while it appends, and taken again by the publish callback.
    let committing = Arc::new(Mutex::new(()));
    syncs.store(0, Ordering::Relaxed);
    thread::scope(|scope| {
        for number in 0..THREADS {
            let (log, published, committing) = (&log, published.clone(), committing.clone());
            scope.spawn(move || {
                let random = SeededRandom::new(number);
                for count in 0..RECORDS {
                    let payload = [number.to_le_bytes(), count.to_le_bytes()].concat();
                    let (seen, again) = (published.clone(), committing.clone());
                    let publish = Box::new(move |lsn| {
                        let _guard = again.lock().expect("whole");
                        seen.lock().expect("whole").push(lsn);
                    });
                    let lsn = {
                        let _guard = committing.lock().expect("whole");
                        log.append_then(1, &payload, publish).expect("works")
                    };
                    for _ in 0..random.below(3) {
                        thread::yield_now();
                    }
                    log.wait(lsn).expect("works");
                    assert!(log.durable_lsn() >= lsn);
                    assert!(published.lock().expect("whole").binary_search(&lsn).is_ok(), "published");
                    if number == 0 && count % 50 == 10 {
                        log.rotate().expect("works");
                    }
                }
            });
        }
    });
    let shared = syncs.load(Ordering::Relaxed);
    println!("{} records, {shared} syncs", THREADS * RECORDS);
    assert!(shared * 2 < THREADS * RECORDS, "{shared} syncs");
    log.close().expect("works");
    let mut seen = Vec::new();
    let mut next = BTreeMap::new();
    let visit = &mut |lsn, _, payload: &[u8]| {
        let (thread, count) = payload.split_at(8);
        let next = next.entry(thread.to_vec()).or_insert(0_u64);
        assert_eq!(count, next.to_le_bytes(), "the order of a thread is kept");
        *next += 1;
        seen.push(lsn);
        Ok(())
    };
    let found = read(&environment, dir.path(), Lsn(0), &ReadOptions::default(), visit).expect("reads");
    assert!(found.truncation.is_none() && next.values().all(|count| *count == RECORDS));
    assert_eq!(*published.lock().expect("whole"), seen, "everything, once, in order");
}

//! The disk of a server: its log on a simulated one, all else in real files.
//!
//! The log is what a loss of power may damage. Data are written whole and renamed (`generation.rs` of the
//! cluster), which tests of their own check; here they only have to be there.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use vervet::Environment;
use vervet_env::{Bytes, Fault, FileSystem, LockGuard, RealFiles, SimulatedFiles, Simulation, WriteFile};

/// Begins the name of the directory of a log.
const LOG: &str = "voter-";

/// See the header of this file.
pub(crate) struct Disk {
    simulation: Simulation,
    /// Syncs do nothing: a planted fault.
    lies: Arc<AtomicBool>,
    /// An older state, and a planted fault puts it back.
    older: Option<SimulatedFiles>,
}

#[derive(Debug)]
struct Files {
    log: Arc<SimulatedFiles>,
    lies: Arc<AtomicBool>,
}

impl Disk {
    /// The disk of a server in `directory`, which no loss of power removes.
    pub(crate) fn new(seed: u64, directory: &Path) -> io::Result<Self> {
        let simulation = Simulation::new(seed);
        simulation.files.create_dir_all(directory)?;
        for above in directory.ancestors().skip(1) {
            simulation.files.sync_dir(above)?;
        }
        Ok(Self { simulation, lies: Arc::default(), older: None })
    }

    pub(crate) fn environment(&self) -> Environment {
        let files = Files { log: Arc::clone(&self.simulation.files), lies: Arc::clone(&self.lies) };
        Environment { files: Arc::new(files), ..Environment::real() }
    }

    /// What a crash leaves.
    pub(crate) fn crash(&mut self, power: bool, reorders: bool) {
        match (power, reorders) {
            (true, true) => self.simulation.files.crash_reordering(),
            (true, false) => self.simulation.files.crash(),
            // The system has what the process has written.
            (false, _) => self.simulation.files.end_process(),
        }
        if let Some(older) = self.older.take() {
            self.simulation.files = Arc::new(older);
        }
    }

    pub(crate) fn set_sync_time(&self, time: Duration) {
        self.simulation.files.set_sync_time(time);
    }

    /// The `n`-th write from now fails.
    pub(crate) fn fail_write(&self, n: u64, fault: Fault) {
        self.simulation.files.fail_write(n, fault);
    }

    pub(crate) fn mend(&self) {
        self.simulation.files.clear_faults();
        self.set_sync_time(Duration::ZERO);
    }

    /// From now on syncs do nothing.
    pub(crate) fn lie(&self) {
        self.lies.store(true, Ordering::Relaxed);
    }

    /// The next crash restores the state that is on the disk now.
    pub(crate) fn keep(&mut self) {
        self.older = Some(self.simulation.files.after_power_loss());
    }
}

impl Files {
    fn of(&self, path: &Path) -> &dyn FileSystem {
        let is_log = |part: std::path::Component<'_>| {
            part.as_os_str().to_str().is_some_and(|name| name.starts_with(LOG) && !name.contains('.'))
        };
        if path.components().any(is_log) { &*self.log } else { &RealFiles }
    }
}

/// A file whose syncs may do nothing.
struct Handle {
    file: Box<dyn WriteFile>,
    lies: Arc<AtomicBool>,
}

impl io::Write for Handle {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl WriteFile for Handle {
    fn sync(&mut self) -> io::Result<()> {
        if self.lies.load(Ordering::Relaxed) { Ok(()) } else { self.file.sync() }
    }
}

impl Files {
    fn handle(&self, file: Box<dyn WriteFile>) -> Box<dyn WriteFile> {
        Box::new(Handle { file, lies: Arc::clone(&self.lies) })
    }
}

impl FileSystem for Files {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.of(dir).create_dir_all(dir)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        self.of(path).create(path).map(|file| self.handle(file))
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        self.of(path).append(path).map(|file| self.handle(file))
    }

    fn truncate(&self, path: &Path, length: u64) -> io::Result<()> {
        self.of(path).truncate(path, length)
    }

    fn map(&self, path: &Path) -> io::Result<Bytes> {
        self.of(path).map(path)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.of(path).read(path)
    }

    fn open_at(&self, path: &Path, offset: u64) -> io::Result<Box<dyn io::Read + Send>> {
        self.of(path).open_at(path, offset)
    }

    fn length(&self, path: &Path) -> io::Result<u64> {
        self.of(path).length(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.of(from).rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.of(path).remove_file(path)
    }

    fn remove_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.of(dir).remove_dir_all(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        self.of(dir).list(dir)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.of(path).exists(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        // The directory of a server has names of both kinds.
        if self.log.exists(dir)? {
            self.log.sync_dir(dir)?;
        }
        if RealFiles.exists(dir)? { RealFiles.sync_dir(dir) } else { Ok(()) }
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        if self.lies.load(Ordering::Relaxed) { Ok(()) } else { self.of(path).sync_file(path) }
    }

    fn available_bytes(&self, dir: &Path) -> io::Result<Option<u64>> {
        self.of(dir).available_bytes(dir)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn LockGuard>> {
        self.of(path).lock(path)
    }
}

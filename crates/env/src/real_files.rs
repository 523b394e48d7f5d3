//! The operating system's files.

use crate::files::locked_by;
use crate::{Bytes, FileSystem, LockGuard, WriteFile};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The operating system's files. Locks are advisory (`flock`) and end with the process.
#[derive(Debug)]
pub struct RealFiles;

impl WriteFile for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

impl FileSystem for RealFiles {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        fs::create_dir_all(dir)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        Ok(Box::new(File::create(path)?))
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        Ok(Box::new(OpenOptions::new().append(true).create(true).open(path)?))
    }

    fn truncate(&self, path: &Path, length: u64) -> io::Result<()> {
        let file = OpenOptions::new().write(true).open(path)?;
        if file.metadata()?.len() > length {
            file.set_len(length)?;
        }
        file.sync_all()
    }

    fn map(&self, path: &Path) -> io::Result<Bytes> {
        Bytes::map(&File::open(path)?)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        fs::read(path)
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(File::open(path)?))
    }

    fn length(&self, path: &Path) -> io::Result<u64> {
        Ok(fs::metadata(path)?.len())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_dir_all(&self, dir: &Path) -> io::Result<()> {
        fs::remove_dir_all(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        let mut paths =
            fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<PathBuf>>>()?;
        paths.sort();
        Ok(paths)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        path.try_exists()
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        // Windows can neither open a directory as a file nor needs to: names are in its journal.
        if cfg!(unix) { File::open(dir)?.sync_all() } else { Ok(()) }
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn LockGuard>> {
        // Not emptied on opening: until the lock is ours, the text in it is the owner's.
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => {
                file.set_len(0)?;
                file.write_all(std::process::id().to_string().as_bytes())?;
                Ok(Box::new(RealLock(file)))
            }
            Err(TryLockError::Error(error)) => Err(error),
            Err(TryLockError::WouldBlock) => {
                let mut owner = String::new();
                // Text that cannot be read only makes the message say less.
                let _ = file.take(32).read_to_string(&mut owner);
                Err(locked_by(&owner))
            }
        }
    }
}

#[derive(Debug)]
struct RealLock(File);

impl LockGuard for RealLock {}

impl Drop for RealLock {
    fn drop(&mut self) {
        // Closing the file would unlock it too; a lock file that keeps its text harms nobody.
        let _ = self.0.set_len(0);
        let _ = self.0.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_real_file_system_keeps_the_contract() {
        let dir = std::env::temp_dir().join(format!("vervet-env-{}", std::process::id()));
        crate::simulated_files::contract::check(&RealFiles, &dir);
        assert!(!dir.exists());
    }
}

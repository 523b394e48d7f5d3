//! The operating system's file system.

use crate::files::{is_directory_sync_unsupported, locked_by};
use crate::{Bytes, FileSystem, LockGuard, WriteFile, space};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Mode of created files, accessible to their user alone: a database is as secret as the most secret
/// statement in it.
#[cfg(unix)]
const FILE_MODE: u32 = 0o600;
/// Mode of created directories. Existing ones keep their mode.
#[cfg(unix)]
const DIRECTORY_MODE: u32 = 0o700;

/// Options for a file that only its user may read, on systems with users.
fn owner_only() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, FILE_MODE);
    options
}

/// The operating system's files. Locks are advisory (`flock`) and end with the process. Only its user may
/// read and write created files.
#[derive(Debug)]
pub struct RealFiles;

impl WriteFile for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

impl FileSystem for RealFiles {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, DIRECTORY_MODE);
        builder.recursive(true).create(dir)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        Ok(Box::new(owner_only().write(true).create(true).truncate(true).open(path)?))
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        Ok(Box::new(owner_only().append(true).create(true).open(path)?))
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

    fn open_at(&self, path: &Path, offset: u64) -> io::Result<Box<dyn Read + Send>> {
        let mut file = File::open(path)?;
        if offset > 0 {
            file.seek(SeekFrom::Start(offset))?;
        }
        Ok(Box::new(file))
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

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        fs::remove_dir(dir)
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
        // Windows can neither open a directory as a file nor needs to: its file system journals names.
        if !cfg!(unix) {
            return Ok(());
        }
        match File::open(dir)?.sync_all() {
            // Like PostgreSQL's `fsync_fname`: the alternative is to refuse such file systems.
            Err(error) if is_directory_sync_unsupported(&error) => Ok(()),
            synced => synced,
        }
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_data()
    }

    fn available_bytes(&self, dir: &Path) -> io::Result<Option<u64>> {
        space::available_bytes(dir)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn LockGuard>> {
        loop {
            // Not truncated on opening: until this process has the lock, the text belongs to the owner.
            let mut file = owner_only().read(true).write(true).create(true).truncate(false).open(path)?;
            match file.try_lock() {
                // The previous owner has removed the file since it was opened: the name refers to another
                // file, or none.
                Ok(()) if !is_at(&file, path)? => {}
                Ok(()) => {
                    file.set_len(0)?;
                    file.write_all(std::process::id().to_string().as_bytes())?;
                    return Ok(Box::new(RealLock(file)));
                }
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) => {
                    let mut owner = String::new();
                    // Unreadable text only makes the message less specific.
                    let _ = file.take(OWNER_BYTES_MAX).read_to_string(&mut owner);
                    return Err(locked_by(&owner));
                }
            }
        }
    }
}

/// Whether `path` is a name of this file.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let own = file.metadata()?;
    match fs::metadata(path) {
        Ok(named) => Ok((named.dev(), named.ino()) == (own.dev(), own.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Windows does not remove open files.
#[cfg(not(unix))]
fn is_at(_file: &File, _path: &Path) -> io::Result<bool> {
    Ok(true)
}

/// Maximum length of the description of a lock owner, in bytes.
const OWNER_BYTES_MAX: u64 = 512;

#[derive(Debug)]
struct RealLock(File);

impl LockGuard for RealLock {
    fn describe(&self, text: &str) -> io::Result<()> {
        let mut file = &self.0;
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(format!("{}\n{text}\n", std::process::id()).as_bytes())
    }
}

impl Drop for RealLock {
    fn drop(&mut self) {
        // Closing the file would unlock it too; leftover text in a lock file is harmless.
        let _ = self.0.set_len(0);
        let _ = self.0.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_real_file_system_meets_the_contract() {
        let dir = std::env::temp_dir().join(format!("vervet-env-{}", std::process::id()));
        crate::simulated_files::contract::check(&RealFiles, &dir);
        assert!(!dir.exists());
    }

    /// Security S9: files and directories of a database are private to their user, whatever the umask allows.
    #[cfg(unix)]
    #[test]
    fn s9_files_and_directories_are_private() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        let root = std::env::temp_dir().join(format!("vervet-private-{}", std::process::id()));
        let inner = root.join("a/b");
        RealFiles.create_dir_all(&inner).expect("it is made");
        let mode = |path: &Path| fs::metadata(path).expect("it is there").mode() & 0o777;
        assert_eq!((mode(&root), mode(&root.join("a")), mode(&inner)), (0o700, 0o700, 0o700));
        drop(RealFiles.create(&inner.join("created")).expect("it is made"));
        drop(RealFiles.append(&inner.join("appended")).expect("it is made"));
        drop(RealFiles.lock(&inner.join("lock")).expect("it is made"));
        for name in ["created", "appended", "lock"] {
            assert_eq!(mode(&inner.join(name)), 0o600, "{name}");
        }
        // A mode that was widened on purpose is kept.
        fs::set_permissions(&inner, fs::Permissions::from_mode(0o750)).expect("it is ours");
        fs::set_permissions(inner.join("created"), fs::Permissions::from_mode(0o640)).expect("it is ours");
        RealFiles.create_dir_all(&inner).expect("it is there");
        drop(RealFiles.create(&inner.join("created")).expect("it is emptied"));
        assert_eq!((mode(&inner), mode(&inner.join("created"))), (0o750, 0o640));
        fs::remove_dir_all(&root).expect("it goes");
    }
}

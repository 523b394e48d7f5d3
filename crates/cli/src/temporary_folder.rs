//! Temporary folders of commands that make clusters, and those that commands ended by SIGKILL have left.
//!
//! # Invariants
//! A folder has a marker file, which its command keeps locked; the system releases the lock when the process
//! ends, however it ends. A folder is a leftover only if it has the marker and its lock is free, so a running
//! command is never taken for one that has ended, whatever process has its number by now.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use tempfile::TempDir;

/// Begins the names of folders.
const PREFIX: &str = "vervet-cluster-";

/// Name of the marker.
const MARKER: &str = "command.lock";

/// A folder that is removed with this value.
pub(crate) struct TemporaryFolder {
    folder: TempDir,
    /// Locked as long as this process lives.
    _marker: File,
}

impl TemporaryFolder {
    /// Removes leftovers in the system's folder for temporary files, and makes a folder there.
    pub(crate) fn new() -> io::Result<Self> {
        Self::new_in(&std::env::temp_dir())
    }

    /// The same in another folder.
    pub(crate) fn new_in(parent: &Path) -> io::Result<Self> {
        remove_leftovers(parent);
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
        let unlocked = folder.path().join("marker.tmp");
        let mut marker = File::create(&unlocked)?;
        // A file system without locks: the folder then looks locked to no process, and stays.
        if marker.try_lock().is_ok() {
            writeln!(marker, "{}", std::process::id())?;
            // The marker has its name only once it is locked.
            fs::rename(&unlocked, folder.path().join(MARKER))?;
        }
        Ok(Self { folder, _marker: marker })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes the folders in `parent` whose commands have ended. What cannot be removed stays.
fn remove_leftovers(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(PREFIX) && is_leftover(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn is_leftover(folder: &Path) -> bool {
    let marker = folder.join(MARKER);
    // Of links nothing is followed: others may write to the folder for temporary files.
    let (Ok(about), Ok(file)) = (fs::symlink_metadata(folder), fs::symlink_metadata(&marker)) else {
        return false;
    };
    about.is_dir()
        && file.is_file()
        && is_own(&about)
        && is_own(&file)
        && File::options().write(true).open(&marker).is_ok_and(|marker| marker.try_lock().is_ok())
}

/// Whether the user of this process owns it.
#[cfg(unix)]
fn is_own(about: &fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::uid(about) == rustix::process::getuid().as_raw()
}

/// Whether the user of this process owns it: folders for temporary files belong to one user here.
#[cfg(not(unix))]
fn is_own(_: &fs::Metadata) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_ended_commands_are_removed() -> io::Result<()> {
        let parent = tempfile::tempdir()?;
        let running = TemporaryFolder::new_in(parent.path())?;
        let other = parent.path().join(format!("{PREFIX}other"));
        fs::create_dir(&other)?;
        let ended = parent.path().join(format!("{PREFIX}ended"));
        fs::create_dir(&ended)?;
        fs::write(ended.join(MARKER), "1\n")?;
        let foreign = parent.path().join("foreign");
        fs::create_dir(&foreign)?;
        fs::write(foreign.join(MARKER), "1\n")?;
        remove_leftovers(parent.path());
        assert!(running.path().is_dir() && other.is_dir() && foreign.is_dir() && !ended.exists());
        #[cfg(unix)]
        {
            let link = parent.path().join(format!("{PREFIX}link"));
            std::os::unix::fs::symlink(&foreign, &link)?;
            remove_leftovers(parent.path());
            assert!(foreign.is_dir() && link.is_symlink());
        }
        Ok(())
    }
}

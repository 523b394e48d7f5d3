//! How a voter begins: the files that say whether it has had a log, and as which voter it begins anew.

use crate::files::{failed, replace_text};
use std::path::{Path, PathBuf};
use vervet::Environment;
use vervet_model::{Error, Result};

/// Begins the name of the directory with the log of a voter; the number of the build of its data follows.
pub(crate) const LOG: &str = "voter-";

/// Ends the name of the file that says that a voter has never had a log.
const NEW: &str = ".new";

/// Ends the name of the file with the number of the beginning of a voter that has begun anew.
const BEGINNING: &str = ".beginning";

/// The directory of the log of a voter, below that of its server.
pub(crate) fn log_directory(directory: &Path, build: u64) -> PathBuf {
    directory.join(format!("{LOG}{build:016x}"))
}

/// The file that says that the server has never had a log for these data.
pub(crate) fn new_file(directory: &Path, build: u64) -> PathBuf {
    directory.join(format!("{LOG}{build:016x}{NEW}"))
}

/// The file with the number of the beginning of a voter that has begun anew.
fn beginning_file(directory: &Path, build: u64) -> PathBuf {
    directory.join(format!("{LOG}{build:016x}{BEGINNING}"))
}

/// Whether the server is to be admitted, and has never had a log.
pub(crate) fn is_invited(directory: &Path, build: u64) -> bool {
    beginning_file(directory, build).exists() && new_file(directory, build).exists()
}

/// Stands in the file of the beginning of a voter that was admitted.
const ADMITTED: &str = "admitted";

/// What the file of the beginning of a voter says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Beginning {
    /// Number of the beginning; 0: it has its first log.
    pub(crate) number: u32,
    /// The others have admitted it: it asks no more, since it may have been removed.
    pub(crate) is_admitted: bool,
}

impl Beginning {
    /// A voter that is to be admitted.
    pub(crate) fn new(environment: &Environment) -> Result<Self> {
        let random = environment.random.next_u64();
        let random = random.map_err(|error| Error::io("draw a random number", &error))?;
        Ok(Self { number: u32::try_from(random >> 33).unwrap_or(1).max(1), is_admitted: false })
    }

    pub(crate) fn read(directory: &Path, build: u64) -> Result<Self> {
        let path = beginning_file(directory, build);
        let text = match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self { number: 0, is_admitted: true });
            }
            text => text.map_err(failed("read", &path))?,
        };
        let (number, rest) = text.split_once('\n').unwrap_or((&text, ""));
        let number = number.trim().parse().map_err(|_| Error::corrupt(path.display(), "it has no number"))?;
        Ok(Self { number, is_admitted: rest.trim() == ADMITTED })
    }

    pub(crate) fn write(self, directory: &Path, build: u64) -> Result<()> {
        let path = beginning_file(directory, build);
        let admitted = if self.is_admitted { format!("{ADMITTED}\n") } else { String::new() };
        replace_text(&path, &format!("{}\n{admitted}", self.number)).map_err(failed("write", &path))
    }
}

/// States that the server has never had a log for these data.
pub(crate) fn mark_new(directory: &Path, build: u64) -> Result<()> {
    let path = new_file(directory, build);
    std::fs::write(&path, "").map_err(|error| Error::io(format_args!("write {}", path.display()), &error))
}

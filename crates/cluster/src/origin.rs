//! Which cluster a log of changes belongs to: a file in its directory, beside the log.
//!
//! A log has numbers of terms of the data that it changes. Over other data it would be other changes, so a
//! log that was copied from a server of another cluster is refused. A log of an earlier version has no such
//! file, and gets one when it is opened.

use crate::map::ClusterMap;
use serde::Deserialize;
use std::io::ErrorKind::NotFound;
use std::path::Path;
use vervet::Environment;
use vervet_model::{Error, ErrorKind, Result};

/// Name of the file.
pub(crate) const ORIGIN_FILE: &str = "ORIGIN";

/// The file until it is written.
const UNFINISHED: &str = "ORIGIN.new";

/// Whether a directory has a log, and not only what the writer has put there before its first change.
pub(crate) fn has_log(environment: &Environment, log: &Path) -> bool {
    let names = environment.files.list(log).unwrap_or_default();
    let is_of_log = |path: &std::path::PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        !matches!(name, Some("LOCK" | ORIGIN_FILE | UNFINISHED))
    };
    names.iter().any(is_of_log)
}

/// See the header of this file.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Origin {
    /// As in the map.
    data: String,
    /// As in the map.
    authority: String,
}

impl Origin {
    pub(crate) fn new(build: u64, authority: &[u8]) -> Self {
        Self { data: ClusterMap::data_name(build), authority: ClusterMap::authority_name(authority) }
    }

    /// Compares the origin of the log in a directory with this one, if it has one.
    ///
    /// # Errors
    /// Input: it is another one. Corrupt, Io: the file cannot be read.
    pub(crate) fn check(&self, environment: &Environment, log: &Path) -> Result<()> {
        let Some(found) = Self::read(environment, log)?.filter(|found| found != self) else { return Ok(()) };
        let (what, theirs, own) = match found.data == self.data {
            true => ("certificate authority", &found.authority, &self.authority),
            false => ("data", &found.data, &self.data),
        };
        let message = format!(
            "the log of changes in {} is that of another cluster: of the {what} {theirs}, and those of this \
             server are {own}",
            log.display()
        );
        Err(Error::new(ErrorKind::Input, message).with_hint(format!(
            "move it away, and put back the log of this server; if only the authority was replaced, remove {}",
            log.join(ORIGIN_FILE).display()
        )))
    }

    /// Writes the file, if there is none.
    ///
    /// # Errors
    /// Io.
    pub(crate) fn write(&self, environment: &Environment, log: &Path) -> Result<()> {
        if Self::read(environment, log)?.is_some() {
            return Ok(());
        }
        let (path, unfinished) = (log.join(ORIGIN_FILE), log.join(UNFINISHED));
        let text = format!(
            "# The cluster whose changes this log has.\ndata = \"{}\"\nauthority = \"{}\"\n",
            self.data, self.authority
        );
        let files = &environment.files;
        let written = files.create(&unfinished).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync()?;
            files.rename(&unfinished, &path)?;
            files.sync_dir(log)
        });
        written.map_err(|error| Error::io(format_args!("write {}", path.display()), &error))
    }

    fn read(environment: &Environment, log: &Path) -> Result<Option<Self>> {
        let path = log.join(ORIGIN_FILE);
        let bytes = match environment.files.read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == NotFound => return Ok(None),
            Err(error) => return Err(Error::io(format_args!("read {}", path.display()), &error)),
        };
        let origin = std::str::from_utf8(&bytes).ok().and_then(|text| toml::from_str(text).ok());
        let damaged = || Error::corrupt(path.display(), "it does not name a cluster");
        origin.map(Some).ok_or_else(damaged)
    }
}

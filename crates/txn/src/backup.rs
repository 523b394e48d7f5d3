//! Backup: writes a version as a separate database.

use crate::base;
use crate::directory::DirectoryLock;
use crate::published::Published;
use crate::recovery;
use std::path::Path;
use vervet_env::Environment;
use vervet_model::{Error, ErrorKind, Result, Watch};
use vervet_store::{CheckpointPosition, Target};

/// See [`crate::Transactions::backup_watched`].
pub(crate) fn backup(
    environment: &Environment,
    published: &Published,
    to: &Path,
    watch: &Watch<'_>,
) -> Result<u64> {
    let _lock = DirectoryLock::take(environment, to)?;
    if recovery::has_store(environment, to)? {
        let message = format!("there is a database in {} already", to.display());
        return Err(Error::new(ErrorKind::Input, message).with_hint("name another directory"));
    }
    let version = &published.version;
    let ends = [version.terms().vertex_end(), version.terms().literal_end()];
    // The copy is a database of its own and has its own log.
    let log = CheckpointPosition::reserve(environment, published.timestamp.0)?;
    let target = Target::Directory(to.to_owned());
    let store = base::build(environment, published, ends, Some(log), &target, watch)?;
    Ok(store.statement_count())
}

//! Restore: copies the files of a database without a writer into a directory without a database.
//!
//! # Invariants
//! The copy is published by its manifest, after all files have been synced and their checksums have matched
//! the manifest of the source. An interrupted copy, or a copy of a damaged file, is therefore not a database.

use crate::files::{self, CheckpointPosition, HashedFile, Manifest};
use std::path::Path;
use vervet_env::Environment;
use vervet_model::{Error, ErrorKind, Result};

/// Number of bytes copied between two calls of `report`.
const CHUNK: usize = 4 << 20;

/// Copies the generation that the manifest in `from` names to `to`, whose lock the caller holds, with `log`
/// in its manifest. `report` is called with the number of bytes copied so far and the total; its error ends
/// the copy.
///
/// # Cost
/// Each file is read once and written once.
///
/// # Errors
/// Input: no database in `from`, or one in `to`. Corrupt: a file of `from` has another checksum than its
/// manifest states; `to` has files of a database without a manifest. Io. Those of `report`. After an error
/// there is no database in `to`.
pub fn copy_generation(
    environment: &Environment,
    from: &Path,
    to: &Path,
    log: CheckpointPosition,
    report: &mut dyn FnMut(u64, u64) -> Result<()>,
) -> Result<()> {
    let manifest = files::manifest_of(environment, from)?;
    if files::manifest_to_replace(environment, to)?.is_some() {
        return Err(Error::new(ErrorKind::Input, format!("there is a database in {} already", to.display()))
            .with_hint("name another directory, or move that database away"));
    }
    files::mark_unfinished(environment, to)?;
    files::remove_leftovers(environment, to, None, None);
    let copied = copy(environment, from, to, manifest, log, report);
    match Manifest::read(environment, to) {
        Ok(None) => {
            files::remove_leftovers(environment, to, None, None);
            files::remove_mark(environment, to);
        }
        Ok(Some(_)) if copied.is_ok() => files::remove_mark(environment, to),
        // The manifest may or may not exist after the next crash.
        _ => {}
    }
    copied
}

fn copy(
    environment: &Environment,
    from: &Path,
    to: &Path,
    manifest: Manifest,
    log: CheckpointPosition,
    report: &mut dyn FnMut(u64, u64) -> Result<()>,
) -> Result<()> {
    let total = manifest.dictionary.length + manifest.segments.length;
    let mut done = 0;
    for record in [&manifest.dictionary, &manifest.segments] {
        let bytes = files::map(environment, from, record)?;
        let mut file = HashedFile::create(environment, to.join(&record.name))?;
        for chunk in bytes.chunks(CHUNK) {
            file.write(chunk)?;
            done += chunk.len() as u64;
            report(done, total)?;
        }
        let written = file.finish()?;
        if written != *record {
            let what =
                format!("it has checksum {:016x}, expected {:016x}", written.checksum, record.checksum);
            return Err(Error::corrupt(from.join(&record.name).display(), what));
        }
    }
    let synced = environment.files.sync_dir(to);
    synced.map_err(|e| Error::io(format_args!("sync the directory {}", to.display()), &e))?;
    files::sync_path(environment, to)?;
    manifest.with_log(log).publish(environment, to)
}

//! Verifying the backup of a cluster.

use crate::backup_directory::{BackupPoint, BackupStatus, Base, Manifest, base_path, status_of};
use crate::restore::{open_verified, read_segment, with_remedy};
use std::path::Path;
use vervet::Environment;
use vervet_model::{Error, Result, ThreadLimits};

/// What [`check_backup`] has verified.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckedBackup {
    /// What its manifest says.
    pub status: BackupStatus,
    /// Number of records.
    pub records: u64,
    /// Their payload in bytes.
    pub bytes: u64,
    /// Statements of the newest data.
    pub statements: u64,
    /// The newest state.
    pub last: BackupPoint,
}

/// Verifies every byte of a backup, and that its commits follow each other without a gap. Whether they fit
/// the data is not known before they are applied ([`crate::restore()`]).
///
/// The limits of the thread ([`ThreadLimits`]) cancel the call.
///
/// # Errors
/// Input: there is no backup. Corrupt: it is damaged; the hint names the last commit before the damage. Io.
pub fn check_backup(backup: &Path, environment: &Environment) -> Result<CheckedBackup> {
    let manifest = Manifest::open(environment, backup)?;
    let mut checking = Checking::default();
    for base in &manifest.bases {
        checking.check(environment, &manifest, base, &base_path(backup, base.number))?;
    }
    checking.finish(manifest)
}

/// What was verified so far.
#[derive(Default)]
pub(crate) struct Checking {
    records: u64,
    bytes: u64,
    statements: u64,
}

impl Checking {
    /// Verifies a base, whose directory is `path`.
    pub(crate) fn check(
        &mut self,
        environment: &Environment,
        manifest: &Manifest,
        base: &Base,
        path: &Path,
    ) -> Result<()> {
        ThreadLimits::check()?;
        let generation = open_verified(environment, manifest, base, path)?;
        self.statements = generation.files.statement_count();
        for (before, point) in base.segments() {
            let read = read_segment(environment, (path, before), point, u64::MAX, &mut |_, payload| {
                self.records += 1;
                self.bytes += payload.len() as u64;
                ThreadLimits::check()
            });
            read.map_err(|error| with_remedy(error, Some(before)))?;
        }
        Ok(())
    }

    pub(crate) fn finish(self, manifest: Manifest) -> Result<CheckedBackup> {
        let Self { records, bytes, statements } = self;
        let status = status_of(manifest);
        let last = status.points.last().cloned();
        let last = last.ok_or_else(|| Error::internal("a backup without a point"))?;
        Ok(CheckedBackup { status, records, bytes, statements, last })
    }
}

//! What to do about damaged files of a server. It has no backups of its own: some of its files are at all
//! servers, and the others can only be made again.

use std::path::Path;
use vervet_model::{Error, ErrorKind};

/// Gives an error of a damaged file the remedy for the server in `directory`.
pub(crate) fn with_remedy(error: Error, directory: &Path) -> Error {
    if error.kind() != ErrorKind::Corrupt {
        return error;
    }
    let hint = format!(
        "vervet check {} lists damage; dictionary.vvd and catalog.vvc are the same at all servers and can be copied \
         from another one; for a partition copy the directory back from a copy made earlier, or make the cluster \
         again from its database: vervet cluster init NEW --from DB",
        directory.display()
    );
    error.with_hint(hint)
}

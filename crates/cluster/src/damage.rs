//! What to do about damaged files of a server. It has no backups of its own: some of its files are at all
//! servers, and the others can only be made again.

use crate::beginning::LOG;
use crate::map::ClusterMap;
use std::path::Path;
use vervet_model::{Error, ErrorKind};

/// Begins the name of the directory with the log of the writer; the number of the build of its data follows.
pub(crate) const CHANGES: &str = "changes-";

/// Gives an error of a damaged file the remedy for the server in `directory`.
pub(crate) fn with_remedy(error: Error, directory: &Path) -> Error {
    if error.kind() != ErrorKind::Corrupt {
        return error;
    }
    // Errors of the log name its files.
    if error.message().contains(&format!("{}{CHANGES}", directory.join("").display())) {
        return error.with_hint(format!(
            "put back a copy of the log of changes that was made earlier; or export the graph from a server that \
             follows (GET /store), which has the changes that it has shown, and make the cluster again from the \
             export: vervet load DB FILE, vervet cluster init NEW --from DB; vervet check {} reads the log again",
            directory.display()
        ));
    }
    // That of a voter: an earlier one has forgotten votes and entries.
    if error.message().contains(&format!("{}{LOG}", directory.join("").display()))
        || error.message().contains("replicated log")
    {
        return error.with_hint(format!(
            "end the server, and let it begin anew among the others: vervet cluster rejoin {}; never put back a copy of \
             its log that was made earlier",
            directory.display()
        ));
    }
    if ClusterMap::read(directory).is_ok_and(|map| map.fewest_replicas() > 1 && !map.voters.is_empty()) {
        return error.with_hint(format!(
            "end the server, and let it take the data of another one: vervet cluster rejoin {}; never put back a copy \
             of its directory that was made earlier",
            directory.display()
        ));
    }
    let hint = format!(
        "vervet check {} lists damage; dictionary.vvd and catalog.vvc are the same at all servers and can be copied \
         from another one; for a partition copy the directory back from a copy made earlier, or make the cluster \
         again from its database: vervet cluster init NEW --from DB",
        directory.display()
    );
    error.with_hint(hint)
}

//! The task of the subprocess that measures memory.

use super::substitution::SubstitutionParameters;
use super::{run, workload};
use crate::measure::resident_bytes;
use std::path::Path;
use vervet::Database;
use vervet_model::Result;

/// Opens a stored network, runs each Gremlin operation once with each parameter, and returns the resident
/// memory after that: the task of a subprocess.
///
/// # Errors
/// As [`run`](super::run()).
pub(crate) fn resident(directory: &Path, parameters: Option<&Path>, count: usize) -> Result<u64> {
    let database = Database::open(directory)?;
    let substitution = SubstitutionParameters::new(&database, parameters, count)?;
    for operation in workload::operations(&substitution, &[])? {
        if operation.is_network_query() {
            run::once(&database, &operation)?;
        }
    }
    resident_bytes()
}

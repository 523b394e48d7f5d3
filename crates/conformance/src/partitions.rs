//! The number of partitions of the databases of cases.
//!
//! Each case runs on one number, 1, 4 or 16, picked by its seed or name with a length of runs, or on the one
//! that the program was told to use. Answers must not depend on it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::OnceLock;
use vervet::{Database, DatabaseOptions, Partitioning};

static CHOSEN: OnceLock<Partitioning> = OnceLock::new();

/// Uses this number of partitions for all cases from now on.
///
/// # Errors
/// It is not a power of two up to 4,096; another one was chosen before.
pub fn choose(count: usize) -> Result<(), String> {
    let partitioning = Partitioning::new(count)
        .ok_or_else(|| format!("{count} partitions: a power of two up to 4096 is needed"))?;
    CHOSEN.set(partitioning).map_err(|_| "the number of partitions is chosen twice".to_owned())
}

/// The partitions of a case with this seed or name.
pub(crate) fn of_case(case: impl Hash) -> Partitioning {
    if let Some(chosen) = CHOSEN.get() {
        return *chosen;
    }
    let mut hasher = DefaultHasher::new();
    case.hash(&mut hasher);
    let count = [1, 1, 4, 16][usize::try_from(hasher.finish() % 4).unwrap_or(0)];
    let runs = u32::try_from(hasher.finish() >> 8 & 3).unwrap_or(0);
    Partitioning::new(count).and_then(|count| count.with_runs(runs)).unwrap_or_default()
}

/// An empty database in memory for a case with this seed or name.
pub fn database(case: impl Hash) -> Database {
    Database::in_memory_with(DatabaseOptions { partitioning: of_case(case), ..DatabaseOptions::default() })
}

//! External test suites, and random differential testing against independent engines.
//!
//! Each suite returns a [`Report`]: counts by category and every failure with its reason.
#![forbid(unsafe_code)]

pub mod acid;
pub(crate) mod changes;
pub mod chaos;
pub mod cluster;
pub mod cluster_day;
mod compare;
pub mod device;
pub mod history;
pub mod known;
mod layered;
pub mod ldbc;
pub mod lubm;
mod manifest;
pub mod namespaces;
pub mod random;
mod random_computed;
mod random_equalities;
pub mod random_flow;
mod random_graphs;
pub mod random_gremlin;
mod random_numbers;
mod random_outcome;
mod random_path;
mod random_sets;
mod random_terms;
pub mod random_update;
pub mod rdf;
pub mod relay;
mod report;
pub mod server_faults;
pub mod sparql;
#[cfg(test)]
mod suites;
mod test_failure;
pub mod tinkerpop;
mod twin;
mod update;
pub mod voter_chaos;
pub mod voter_processes;
mod wire_session;

pub mod partitions;
pub use report::{Outcome, Report};

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::Duration;

/// The thread counts of a query, and the estimated time from which on it uses them: every query runs in each
/// of these configurations. The first is that of a light query; the others cut even the smallest query into
/// the smallest morsels.
pub(crate) const CONFIGURATIONS: [(usize, Duration); 3] =
    [(1, vervet::HEAVY_FROM_DEFAULT), (2, Duration::ZERO), (4, Duration::ZERO)];

/// The folder of external data: `VERVET_TEST_DATA`, or `../shared` beside the repository; `None` if neither
/// exists.
#[must_use]
pub fn test_data() -> Option<PathBuf> {
    let beside = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared"));
    let place = std::env::var_os("VERVET_TEST_DATA").map_or(beside, PathBuf::from);
    // Without `..`, which some programs reject in file names.
    let place = place.canonicalize().ok()?;
    place.join("data").is_dir().then_some(place)
}

/// The W3C's suites below [`test_data`], if available.
#[must_use]
pub fn w3c_suites() -> Option<PathBuf> {
    let place = test_data()?.join("conformance/w3c-sparql");
    place.is_dir().then_some(place)
}

/// TinkerPop's suite below [`test_data`], if available.
#[must_use]
pub fn tinkerpop_suite() -> Option<PathBuf> {
    let place = test_data()?.join("conformance/tinkerpop");
    place.is_dir().then_some(place)
}

/// [`test_data`], if it contains the social network.
#[must_use]
pub fn social_network() -> Option<PathBuf> {
    let place = test_data()?;
    place.join("data/ldbc-snb").is_dir().then_some(place)
}

/// Runs one case; a panic is a failure of the case and does not end the suite.
fn guarded<E: From<String>>(case: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
    catch_unwind(AssertUnwindSafe(case)).unwrap_or_else(|_| Err("the engine panicked".to_owned().into()))
}

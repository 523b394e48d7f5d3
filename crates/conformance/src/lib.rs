//! Outside test suites, and random comparison with an engine that we did not write.
//!
//! Each suite gives a [`Report`]: counts by category and every failure with its reason.
#![forbid(unsafe_code)]

pub mod lubm;
pub mod random;
mod report;

pub use report::Report;

use std::path::PathBuf;

/// Where outside data is: `VERVET_TEST_DATA`, or `../shared` beside the repository; `None` if neither is
/// there.
#[must_use]
pub fn test_data() -> Option<PathBuf> {
    let beside = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared"));
    let place = std::env::var_os("VERVET_TEST_DATA").map_or(beside, PathBuf::from);
    place.join("data").is_dir().then_some(place)
}

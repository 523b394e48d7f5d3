//! Deterministic data generators for benchmarks, tests and demonstrations: the same seed gives the same bytes
//! on every platform.
//!
//! | | |
//! | --- | --- |
//! | [`generate_lubm`] | universities after the profile of the LUBM benchmark, streamed as N-Triples |
//! | [`generate_snb`] | a social network with the files and statistics of LDBC SNB, as CSV |
//! | [`PowerLaw`] | a directed graph whose degrees follow a power law |
//! | [`RandomDataset`] | a few hundred quads full of corner cases, for comparing two engines |
//!
//! # Not here
//! Files, compression, threads: everything writes to an `io::Write` that the caller owns.
#![forbid(unsafe_code)]

mod dataset;
mod lubm;
mod power_law;
mod random;
mod small;
mod snb;

pub use dataset::RandomDataset;
pub use lubm::{LubmStatistics, generate_lubm};
pub use power_law::{PowerLaw, write_edges};
pub use random::Random;
pub use snb::{FileMaker, SnbStatistics, generate_snb};

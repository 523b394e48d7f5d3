//! Deterministic data generators for benchmarks, tests and demonstrations: the same seed gives the same bytes
//! on every platform.
//!
//! | | |
//! | --- | --- |
//! | [`generate_lubm`] | universities after the profile of the LUBM benchmark, streamed as N-Triples |
//! | [`generate_snb`] | a social network with the files and statistics of LDBC SNB, as CSV |
//! | [`generate_sp2bench`] | publications after the profile of SP2Bench, streamed as N-Triples |
//! | [`generate_watdiv`] | a shop after the schema of WatDiv, streamed as N-Triples |
//! | [`generate_bsbm`] | products, offers and reviews after the schema of BSBM, streamed as N-Triples |
//! | [`PowerLaw`] | a directed graph whose degrees follow a power law |
//! | [`RandomDataset`] | a few hundred quads full of corner cases, for comparing two engines |
//!
//! # Not here
//! Files, compression, threads: everything writes to an `io::Write` that the caller owns.
#![forbid(unsafe_code)]

mod bsbm;
mod dataset;
mod lubm;
mod power_law;
mod random;
mod small;
mod snb;
mod sp2bench;
mod statements;
mod watdiv;

pub use bsbm::{BSBM_PREFIXES, BsbmSizes, generate_bsbm};
pub use dataset::RandomDataset;
pub use lubm::{LubmStatistics, generate_lubm};
pub use power_law::{PowerLaw, write_edges};
pub use random::Random;
pub use snb::{FileMaker, SnbStatistics, generate_snb};
pub use sp2bench::{SP2BENCH_PREFIXES, generate_sp2bench};
pub use statements::Prefixes;
pub use watdiv::{WATDIV_PREFIXES, WatDivSizes, generate_watdiv};

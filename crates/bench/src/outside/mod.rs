//! Benchmarks that others designed, on data and queries of our own after their published descriptions.
//!
//! # Shape
//! [`data_sets`] generates or reads the data of a benchmark with its queries ([`DataSet`]: benchmark, name,
//! file, queries); [`run`] loads each into our engine and the peers, compares values, and measures. Values
//! are compared with an independent evaluator (gMark) or with the peers, as multisets: numbers by value,
//! blank nodes anonymous.
//! # Not here
//! The original tools and texts. Schemas, distributions and shapes of queries follow the publications;
//! figures are comparable between engines of one run, not with published ones, except for gMark, whose graphs
//! and queries are the published ones.

mod bsbm;
mod contest;
mod data_set;
mod endpoint;
pub mod gmark;
mod report;
mod sp2bench;
mod sparqloscope;
mod sparqloscope_queries;
mod watdiv;

pub use contest::{ContestOptions, run};
pub use data_set::{Benchmark, Compared, DataOptions, DataSet, OutsideQuery, Reference};
pub use endpoint::Endpoint;
pub use report::{OutsideFigures, OutsideReport, Side};

use crate::engine::Engine;
use std::time::Duration;
use vervet_model::{Error, Result};

/// Passes the data sets of `benchmark` to `each`, one after the other; each exists only during its call.
///
/// # Errors
/// Data cannot be written or read; as `each`.
pub fn data_sets(
    benchmark: Benchmark,
    options: &DataOptions,
    each: &mut dyn FnMut(DataSet) -> Result<()>,
) -> Result<()> {
    match benchmark {
        Benchmark::GMark => gmark::data_sets(options, each),
        Benchmark::Sp2Bench => sp2bench::data_sets(options, each),
        Benchmark::WatDiv => watdiv::data_sets(options, each),
        Benchmark::Bsbm => bsbm::data_sets(options, each),
        Benchmark::Sparqloscope => sparqloscope::data_sets(options, each),
    }
}

/// Small versions of all benchmarks against `engines`, for values; an error if any differs.
///
/// # Errors
/// As [`run`]; [`vervet_model::ErrorKind::Internal`] if values differ, or our engine fails in a query.
pub fn self_check(engines: impl Fn() -> Result<Vec<Box<dyn Engine>>>) -> Result<Vec<OutsideReport>> {
    let options =
        ContestOptions { timeout: Duration::from_secs(3), time: Duration::ZERO, ..ContestOptions::default() };
    let mut reports = Vec::new();
    let mut check = |data: DataSet| {
        let report = run(&data, &mut engines()?, &options)?;
        if let Some(query) = report.queries.iter().find(|query| query.wrong || !query.is_answered()) {
            let remarks = query.remarks.join("; ");
            let what = format!("self-check of {}: {}: {remarks}", report.title, query.query);
            return Err(Error::internal(what));
        }
        reports.push(report);
        Ok(())
    };
    let data = DataOptions { scale: SELF_CHECK_SCALE, ..DataOptions::default() };
    for benchmark in Benchmark::ALL.into_iter().filter(|benchmark| *benchmark != Benchmark::GMark) {
        data_sets(benchmark, &data, &mut check)?;
    }
    for counted in [gmark::CountedPath::Star, gmark::CountedPath::Three] {
        check(gmark::random_data_set(1, RANDOM_PATH_QUERIES, counted)?)?;
    }
    Ok(reports)
}

/// The size of generated data in the self-check: thousands of statements.
const SELF_CHECK_SCALE: f64 = 0.01;

/// The number of random path queries of the self-check for each meaning of counted paths.
const RANDOM_PATH_QUERIES: usize = 150;

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
mod shapes;
mod sp2bench;
mod sparqloscope;
mod sparqloscope_queries;
mod watdiv;

pub use contest::{ContestOptions, run};
pub use data_set::{Benchmark, Compared, DataOptions, DataSet, OutsideQuery, Reference};
pub use endpoint::Endpoint;
pub use report::{OutsideFigures, OutsideReport, Side};

use crate::engine::Engine;
use std::io;
use std::path::Path;
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
        Benchmark::Shapes => shapes::data_sets(options, each),
    }
}

/// Writes a data set to a folder, for engines in other processes: `BENCHMARK-NAME.nt`, and each query as
/// `.rq` in a folder of this name.
///
/// # Errors
/// A file cannot be written.
pub fn write(data: &DataSet, folder: &Path) -> Result<()> {
    let name = format!("{}-{}", data.benchmark.name(), data.name.replace([' ', ','], "-"));
    let failed = |error: io::Error| Error::io(format_args!("write {}", folder.join(&name).display()), &error);
    std::fs::create_dir_all(folder.join(&name)).map_err(failed)?;
    std::fs::copy(data.file.path(), folder.join(format!("{name}.nt"))).map_err(failed)?;
    for query in &data.queries {
        let file = folder.join(&name).join(format!("{}.rq", query.name));
        std::fs::write(file, format!("{}\n", query.text)).map_err(failed)?;
    }
    Ok(())
}

/// Small versions of all benchmarks against `engines`, for values; an error if any differs.
///
/// # Errors
/// As [`run`]; [`vervet_model::ErrorKind::Internal`] if values differ, or our engine fails in a query.
pub fn self_check(engines: impl Fn() -> Result<Vec<Box<dyn Engine>>>) -> Result<Vec<OutsideReport>> {
    let options =
        ContestOptions { timeout: Duration::from_secs(1), time: Duration::ZERO, ..ContestOptions::default() };
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Every benchmark has data and distinct names of queries; the files are what another engine needs.
    #[test]
    fn data_sets_can_be_written() {
        let folder = tempfile::tempdir().unwrap();
        let options = DataOptions { scale: 0.001, ..DataOptions::default() };
        let mut written = 0;
        for benchmark in Benchmark::ALL.into_iter().filter(|benchmark| *benchmark != Benchmark::GMark) {
            data_sets(benchmark, &options, &mut |set| {
                assert_eq!(set.benchmark, benchmark);
                let names: std::collections::HashSet<_> =
                    set.queries.iter().map(|query| &query.name).collect();
                assert_eq!(names.len(), set.queries.len());
                written += set.queries.len() + 2;
                write(&set, folder.path())
            })
            .unwrap();
        }
        let mut found = 0;
        let mut folders = vec![folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                found += 1;
                if path.is_dir() {
                    folders.push(path);
                }
            }
        }
        assert_eq!(found, written);
    }
}

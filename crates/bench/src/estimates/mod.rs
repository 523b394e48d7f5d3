//! `vervet-bench estimates`: estimated and actual rows of every step of the plans of all benchmark queries.
//!
//! # Shape
//! * `options`: the options. `workloads`: data and queries. `audit`: the steps of one run. `report`: tables.
//! * Each query runs once with a profile. The q-error of a step is the larger of estimate / rows and rows /
//!   estimate, with both at least 1 (Moerkotte et al., "Preventing Bad Plans by Bounding the Impact of
//!   Cardinality Estimation Errors", VLDB 2009).
//! * A step before a slice may stop early. Its rows are then a lower bound, so only an estimate below them is
//!   an error.

mod audit;
mod options;
mod report;
mod workloads;

pub use options::EstimateOptions;
pub use report::EstimateReport;
pub use workloads::PARTS;

use crate::data::PlainFile;
use std::time::Duration;
use vervet::QueryOptions;
use vervet_generate::{PowerLaw, generate_lubm, write_edges};
use vervet_model::{Error, ErrorKind, Result};
use workloads::Workload;

/// Runs the queries of all parts.
///
/// # Errors
/// An unknown part; data is missing or damaged; a query is an error other than exceeding its limits.
pub fn run(options: &EstimateOptions) -> Result<EstimateReport> {
    if let Some(other) = options.only.iter().find(|only| !PARTS.contains(&only.as_str())) {
        return Err(Error::new(ErrorKind::Input, format!("there is no part {other:?}"))
            .with_hint(format!("the parts are {}", PARTS.join(", "))));
    }
    let mut report = EstimateReport::new(options.worst);
    let mut plans = String::new();
    for part in PARTS {
        if !options.only.is_empty() && !options.only.iter().any(|only| only == part) {
            continue;
        }
        workloads::for_each(part, options, &mut |workload| {
            let audit = audit(&workload, options.limit, &mut plans)?;
            report.push(workload.name, audit);
            Ok(())
        })?;
    }
    if let Some(file) = &options.plans {
        std::fs::write(file, plans)
            .map_err(|error| Error::io(format_args!("write {}", file.display()), &error))?;
    }
    Ok(report)
}

/// Runs all queries of a workload; appends their plans to `plans`.
fn audit(workload: &Workload, limit: Duration, plans: &mut String) -> Result<audit::Audit> {
    let options = QueryOptions { timeout: Some(limit), ..QueryOptions::default().with_threads(1) };
    let mut audit = audit::Audit::default();
    for (name, text) in &workload.queries {
        let failed = |error: Error| {
            Error::new(error.kind(), format!("{}, {name}: {}", workload.name, error.message()))
        };
        let prepared = workload.database.prepare(text).map_err(failed)?;
        match prepared.explanation(&options, true) {
            Ok(explanation) => {
                plans.push_str(&format!("# {}, {name}\n{}\n", workload.name, explanation.text));
                audit.add(name, &explanation.steps);
            }
            Err(error) if matches!(error.kind(), ErrorKind::Deadline | ErrorKind::MemoryLimit) => {
                let explained = prepared.explain_with(&options).map_err(failed)?;
                plans.push_str(&format!("# {}, {name} ({})\n{explained}\n", workload.name, error.message()));
                audit.unfinished.push(name.clone());
            }
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(audit)
}

/// Audits a small university and a small graph, without files.
///
/// # Errors
/// As [`run`].
pub fn self_check() -> Result<EstimateReport> {
    let mut report = EstimateReport::new(3);
    let universities = PlainFile::write(|out| generate_lubm(1, 0, out).map(drop))?;
    let edges = PowerLaw { vertices: 300, edges: 2_000, ..PowerLaw::default() }.generate();
    let graph = PlainFile::write(|out| write_edges(&edges, out))?;
    for workload in [
        workloads::universities("one university", workloads::load(universities.path())?),
        workloads::graph("power law, 2,000 edges", workloads::load(graph.path())?)?,
    ] {
        let audit = audit(&workload, Duration::from_secs(10), &mut String::new())?;
        report.push(workload.name, audit);
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn estimates_of_small_data_are_audited() {
        let report = self_check().unwrap();
        assert_eq!(report.benchmarks().len(), 2);
        for (name, figures) in report.benchmarks() {
            assert!(figures.queries >= 40 && figures.steps > figures.queries, "{name}: {figures:?}");
            assert!(figures.unfinished.is_empty(), "{name}: {figures:?}");
            assert!(1.0 <= figures.median && figures.median <= figures.p95, "{name}: {figures:?}");
            assert!(figures.p95 <= figures.max, "{name}: {figures:?}");
        }
    }

    #[test]
    fn unknown_parts_are_errors() {
        let options = EstimateOptions {
            data: PathBuf::new(),
            only: vec!["tpc".to_owned()],
            edges: 1,
            count: 1,
            limit: Duration::ZERO,
            worst: 1,
            plans: None,
        };
        assert!(run(&options).is_err());
    }
}

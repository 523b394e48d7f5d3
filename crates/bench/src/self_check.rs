//! Self-check: small versions of all comparisons on generated data, for CI, in seconds.

use crate::compare::Contest;
use crate::data::PlainFile;
use crate::engine::Engine;
use crate::features::{FeatureOptions, FeatureReport};
use crate::lubm::{self, LubmOptions, Processes};
use crate::measure::Budget;
use crate::patterns::{self, EdgeList};
use crate::report::Report;
use std::path::PathBuf;
use std::time::Duration;
use vervet_generate::{PowerLaw, generate_lubm, write_edges};
use vervet_model::{Error, Result};

/// Q1 to Q7, embedded so that the check needs no files.
const QUERIES: [(&str, &str); 7] = [
    ("q1", include_str!("queries/q1.rq")),
    ("q2", include_str!("queries/q2.rq")),
    ("q3", include_str!("queries/q3.rq")),
    ("q4", include_str!("queries/q4.rq")),
    ("q5", include_str!("queries/q5.rq")),
    ("q6", include_str!("queries/q6.rq")),
    ("q7", include_str!("queries/q7.rq")),
];

/// Generates universities and a graph, and checks that the engines created by `engines` agree on them.
/// `program` is the program to start as subprocesses; `None`: no subprocesses.
///
/// # Errors
/// A failure, or differing values.
pub fn run(engines: impl Fn() -> Result<Contest>, program: Option<PathBuf>) -> Result<Vec<Report>> {
    let budget = Budget { time: Duration::from_millis(50), repeats_min: 1, repeats_max: 10 };
    let folder = tempfile::tempdir().map_err(|error| Error::io("make a temporary folder", &error))?;
    for (name, text) in QUERIES {
        std::fs::write(folder.path().join(format!("{name}.rq")), text)
            .map_err(|error| Error::io("write a query", &error))?;
    }
    let data = PlainFile::write(|out| generate_lubm(2, 0, out).map(drop))?;
    let options = LubmOptions {
        data: data.path().to_owned(),
        queries: Some(PathBuf::from(folder.path())),
        processes: program.map(|program| Processes { program, repeats: 1 }),
        light: Some(budget.time),
        ..LubmOptions::default()
    };
    let universities = lubm::run(&options, &mut Contest { budget, ..engines()? })?;
    let edges = PowerLaw { vertices: 300, edges: 2_000, ..PowerLaw::default() }.generate();
    let graph = EdgeList { name: "power law, 2,000 edges".to_owned(), edges };
    let patterns = patterns::run(graph, &mut Contest { budget, ..engines()? })?;

    let reports = vec![universities, patterns];
    for report in &reports {
        let failed = report.queries.iter().find(|query| !query.remarks.is_empty());
        if let Some(query) = failed {
            let what =
                format!("self-check of {}: {}: {}", report.title, query.query, query.remarks.join("; "));
            return Err(Error::internal(what));
        }
    }
    Ok(reports)
}

/// The time limit of an answer here: the peer answers some queries in quadratic time.
const FEATURE_LIMIT: Duration = Duration::from_secs(2);

/// Generates universities and a graph, and runs every feature query in the engines created by `engines`.
///
/// # Errors
/// A failure, or differing values.
pub fn features(engines: impl Fn() -> Result<Contest>) -> Result<Vec<FeatureReport>> {
    let options = FeatureOptions { only: Vec::new(), rounds: 1, light: Duration::ZERO };
    let universities = PlainFile::write(|out| generate_lubm(1, 0, out).map(drop))?;
    let edges = PowerLaw { vertices: 200, edges: 1_000, ..PowerLaw::default() }.generate();
    let graph = PlainFile::write(|out| write_edges(&edges, out))?;
    let mut reports = Vec::new();
    for (title, file) in [("one university", &universities), ("power law, 1,000 edges", &graph)] {
        let report = crate::features::run(title, file.path(), &options, &mut limited(engines()?))?;
        let failed = report.features.iter().find(|feature| !feature.remarks.is_empty());
        if let Some(feature) = failed {
            let (name, remarks) = (&feature.feature, feature.remarks.join("; "));
            return Err(Error::internal(format!("self-check of features, {title}: {name}: {remarks}")));
        }
        reports.push(report);
    }
    Ok(reports)
}

fn limited(contest: Contest) -> Contest {
    Contest { time_limit: Some(FEATURE_LIMIT), ..contest }
}

/// Every engine of a self-check, for [`run`].
///
/// # Errors
/// An engine could not be created.
pub fn all_engines() -> Result<Contest> {
    let peer: Box<dyn Engine> = Box::new(crate::peer::Oxigraph::new(None)?);
    Ok(Contest { ours: crate::ours(2, 2), peer: Some(peer), ..Contest::default() })
}

/// Both engines, for [`crate::outside::self_check`].
///
/// # Errors
/// An engine could not be created.
pub fn engine_list() -> Result<Vec<Box<dyn Engine>>> {
    let Contest { ours, peer, .. } = all_engines()?;
    Ok([ours, peer].into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_agree_about_outside_benchmarks() {
        for report in crate::outside::self_check(engine_list).unwrap() {
            // An empty result is equal too easily.
            let filled = report.queries.iter().filter(|query| query.rows != Some(0)).count();
            assert!(3 * filled > report.queries.len(), "{report}");
        }
    }

    #[test]
    fn engines_agree_about_features() {
        let reports = features(all_engines).unwrap();
        for report in &reports {
            let answered =
                report.features.iter().filter(|one| one.ours.timing.is_some() && one.peer.timing.is_some());
            assert!(answered.count() >= 40, "{report}");
            assert!(report.is_right(), "{report}");
        }
        // Queries on universities have results, so that they can differ; a few are empty for a single
        // university.
        let empty: Vec<_> = reports[0].features.iter().filter(|one| one.rows == Some(0)).collect();
        assert!(empty.len() <= 3, "{empty:?}");
    }

    /// Peer and loops agree on generated universities and graphs; the numbers of rows are as in the published
    /// table, up to randomness.
    #[test]
    fn engines_and_loops_agree() {
        let reports = run(all_engines, None).unwrap();
        let rows: Vec<u64> = reports[0].queries.iter().map(|query| query.rows.unwrap()).collect();
        let (universities, departments) = (2, 20);
        assert!(rows[0] < 10 * universities, "q1: {} rows", rows[0]);
        assert!((45 * departments..=120 * departments).contains(&rows[1]), "q2: {} rows", rows[1]);
        assert_eq!(rows[2], 0);
        assert!((7..=10).contains(&rows[3]), "q4: {} rows", rows[3]);
        assert!((10..=20).contains(&rows[4]), "q5: {} rows", rows[4]);
        assert!((15 * 7..=25 * 10).contains(&rows[5]), "q6: {} rows", rows[5]);
        assert!((20 * universities..=80 * universities).contains(&rows[6]), "q7: {} rows", rows[6]);
    }
}

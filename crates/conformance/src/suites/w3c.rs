//! The W3C's suites have no news: what fails is in `known-failures.txt` with its reason, and all that is in
//! there fails.
//!
//! The suites are looked for as [`crate::test_data`] says; without them nothing runs.

use crate::{Report, known, rdf, sparql, w3c_suites};
use std::io::Write;
use std::path::Path;

fn check(name: &str, folders: &[&str], least: usize, run: fn(&Path, &mut Report) -> Result<(), String>) {
    let Some(root) = w3c_suites() else {
        // Not by a macro, whose output a passing test keeps to itself.
        let message =
            format!("SKIPPED: the W3C's suites are not there; set VERVET_TEST_DATA to run {name}\n");
        std::io::stderr().write_all(message.as_bytes()).expect("there is a place for errors");
        return;
    };
    let mut report = Report::default();
    run(&root, &mut report).expect("the manifests are well-formed");
    println!("{report}");
    let news = known::news(&report, folders);
    assert!(news.is_empty(), "{}", news.join("\n"));
    // A suite that silently lost its tests would pass everything.
    assert!(report.passed() >= least, "only {} tests of {name} pass, there were {least}", report.passed());
}

#[test]
fn sparql_queries_have_the_expected_answers() {
    check("sparql", &["sparql10/", "sparql11/", "sparql12/"], LEAST_SPARQL, sparql::run);
}

#[test]
fn rdf_documents_are_read() {
    check("rdf", &["rdf11/"], LEAST_RDF, rdf::run);
}

/// How many tests passed when these numbers were written (2026-11-22); more is better.
const LEAST_SPARQL: usize = 1215;
const LEAST_RDF: usize = 990;

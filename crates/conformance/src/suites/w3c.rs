//! The W3C's suites pass, except for `known-failures.txt`, whose entries must all fail.
//!
//! The suites are located by [`crate::test_data`]; without them the tests are skipped.

use crate::{Report, known, rdf, sparql, w3c_suites};
use std::io::Write;
use std::path::Path;

fn check(name: &str, folders: &[&str], least: usize, run: fn(&Path, &mut Report) -> Result<(), String>) {
    let Some(root) = w3c_suites() else {
        // Not a macro, since the test harness captures its output.
        let message = format!("SKIPPED: the W3C's suites are missing; set VERVET_TEST_DATA to run {name}\n");
        std::io::stderr().write_all(message.as_bytes()).expect("there is a place for errors");
        return;
    };
    let mut report = Report::default();
    run(&root, &mut report).expect("the manifests are well-formed");
    println!("{report}");
    let news = known::news(&report, folders);
    assert!(news.is_empty(), "{}", news.join("\n"));
    // Guards against silently lost tests.
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

/// The number of passing tests on 2026-11-22, as a lower bound.
const LEAST_SPARQL: usize = 1215;
const LEAST_RDF: usize = 990;

//! TinkerPop's scenarios pass, except for `known-failures.txt`, whose entries must all fail. Each scenario
//! runs on the base, on the delta, and with every step as a step.
//!
//! The feature files are located by [`crate::test_data`]; without them the test is skipped.

use crate::{Report, known, tinkerpop, tinkerpop_suite};
use std::io::Write;
use std::process::Command;

/// The number of passing scenarios on 2026-11-22, as a lower bound.
const LEAST: usize = 2035;

#[test]
fn scenarios_have_the_expected_results() {
    let Some(root) = tinkerpop_suite() else {
        let message = "SKIPPED: TinkerPop's feature files are missing; set VERVET_TEST_DATA to run them\n";
        std::io::stderr().write_all(message.as_bytes()).expect("there is a place for errors");
        return;
    };
    let mut report = Report::default();
    tinkerpop::run(&root, &tinkerpop::Options::default(), &mut report).expect("the files are well-formed");
    println!("{report}");
    let news = known::news(&report, &["gremlin/"]);
    assert!(news.is_empty(), "{}", news.join("\n"));
    // Guards against silently lost tests.
    assert!(report.passed() >= LEAST, "only {} scenarios pass, there were {LEAST}", report.passed());
}

/// Only a part runs through the driver here; `cargo xtask conformance tinkerpop --wire` runs all.
#[test]
fn some_scenarios_pass_through_the_driver() {
    let python = std::env::var("VERVET_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let there = Command::new(&python).args(["-c", "import gremlin_python"]).output();
    let (Some(root), true) = (tinkerpop_suite(), there.is_ok_and(|output| output.status.success())) else {
        let message =
            "SKIPPED: it needs TinkerPop's feature files, and gremlinpython in VERVET_TEST_PYTHON\n";
        std::io::stderr().write_all(message.as_bytes()).expect("there is a place for errors");
        return;
    };
    for format in [tinkerpop::WireFormat::GraphSon, tinkerpop::WireFormat::GraphBinary] {
        let mut report = Report::default();
        let options = tinkerpop::Options {
            only: Some("map/Merge".to_owned()),
            configurations: vec![tinkerpop::Configuration::Delta],
            driver: Some(tinkerpop::Driver { format, python: python.clone() }),
            ..tinkerpop::Options::default()
        };
        tinkerpop::run(&root, &options, &mut report).expect("the driver starts");
        println!("{report}");
        assert!(report.failed() == 0 && report.passed() > 100, "{format:?}: {report}");
    }
}

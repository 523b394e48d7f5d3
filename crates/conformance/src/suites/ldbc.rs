//! The social network queries have the expected answers in both languages, except for `known-failures.txt`,
//! whose entries must all fail.
//!
//! The data is located by [`crate::test_data`]; without it the test is skipped. `cargo xtask conformance
//! ldbc` also runs the larger set.

use crate::{Report, known, ldbc, social_network};
use std::io::Write;

/// The number of passing cases on 2026-11-22, as a lower bound.
const LEAST: usize = 300;

#[test]
fn queries_have_the_expected_answers() {
    let Some(root) = social_network() else {
        let message = "SKIPPED: the social network is missing; set VERVET_TEST_DATA to run its queries\n";
        std::io::stderr().write_all(message.as_bytes()).expect("there is a place for errors");
        return;
    };
    let mut report = Report::default();
    let options = ldbc::Options { sets: vec![ldbc::Set::Tiny], ..ldbc::Options::default() };
    ldbc::run(&root, &options, &mut report).expect("the files are well-formed");
    println!("{report}");
    let news = known::news(&report, &["ldbc/tiny/"]);
    assert!(news.is_empty(), "{}", news.join("\n"));
    // Guards against silently lost cases.
    assert!(report.passed() >= LEAST, "only {} cases pass, there were {LEAST}", report.passed());
}

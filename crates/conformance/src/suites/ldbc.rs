//! The queries of the social network have the expected answers in both languages; what differs is in
//! `known-failures.txt` with its reason, and all that is in there does.
//!
//! The data is looked for as [`crate::test_data`] says; without it nothing runs. `cargo xtask conformance
//! ldbc` also runs the larger set.

use crate::{Report, known, ldbc, social_network};
use std::io::Write;

/// How many cases passed when this number was written (2026-11-22); more is better.
const LEAST: usize = 300;

#[test]
fn queries_have_the_expected_answers() {
    let Some(root) = social_network() else {
        let message = "SKIPPED: the social network is not there; set VERVET_TEST_DATA to run its queries\n";
        std::io::stderr().write_all(message.as_bytes()).expect("there is a place for errors");
        return;
    };
    let mut report = Report::default();
    let options = ldbc::Options { sets: vec![ldbc::Set::Tiny], ..ldbc::Options::default() };
    ldbc::run(&root, &options, &mut report).expect("the files are well-formed");
    println!("{report}");
    let news = known::news(&report, &["ldbc/tiny/"]);
    assert!(news.is_empty(), "{}", news.join("\n"));
    // A suite that silently lost its cases would pass everything.
    assert!(report.passed() >= LEAST, "only {} cases pass, there were {LEAST}", report.passed());
}

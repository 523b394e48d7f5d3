//! The short form of the LDBC ACID tests, at both levels.

use crate::{Report, acid};

#[test]
fn transactions_are_atomic_and_isolated() {
    let folder = tempfile::tempdir().expect("there is a place for temporary files");
    let mut report = Report::default();
    acid::run(acid::Form::SHORT, folder.path(), vervet_testkit::seed(), &mut report);
    println!("{report}");
    let failures: Vec<_> = report.failures().map(|(name, reason)| format!("{name}: {reason}")).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    // Twelve at each level.
    assert_eq!(report.passed(), 24);
}

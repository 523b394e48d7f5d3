//! The program checks itself: every comparison on small data, with equal answers of all engines.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::process::Command;

#[test]
fn comparisons_run_and_answers_agree() {
    let output = Command::new(env!("CARGO_BIN_EXE_vervet-bench")).arg("self-check").output().unwrap();
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}\n{errors}");
}

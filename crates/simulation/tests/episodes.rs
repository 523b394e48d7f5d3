//! A few episodes as processes: right ones, the same again, and planted faults that are found.

#![cfg(all(target_os = "linux", target_env = "gnu"))]

use std::process::Command;

/// The last line that the program prints.
fn last_line(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_vervet-simulation")).args(arguments).output();
    let text = String::from_utf8(output.expect("it runs").stdout).expect("a text");
    let last = text.lines().last().map(str::to_owned);
    println!("{text}");
    last.expect("a line")
}

#[test]
fn episodes_are_right_and_repeatable() {
    assert_eq!(last_line(&["--transactions", "3000", "--seed", "20"]), "2 passed, 0 failed");
    let episode = ["--episode", "--transactions", "500", "--seed", "21"];
    let first = last_line(&episode);
    assert!(first.starts_with("right "), "{first}");
    assert_eq!(last_line(&episode), first);
}

#[test]
fn planted_faults_are_found() {
    for fault in ["stale-reads", "snapshot-isolation"] {
        assert_eq!(last_line(&["--jobs", "1", "--fault", fault]), "1 passed, 0 failed", "{fault}");
    }
}

//! The built binary, ended with SIGKILL in the middle of durable commits, again and again on one directory:
//! every commit that it has told of is there, at most the one in flight besides, and none of them in part.
//!
//! # Shape
//! `vervet shell` gets commits through a pipe without end: requests of their own and transactions of several
//! requests in turn. With `.timing on` it says on the standard error that each is done. It is ended after a
//! random time from its start, so that some are hit while they open the directory; then `vervet check` and
//! `vervet query` tell what is left. `VERVET_KILLS` is how often: 6, and 50 for a release (CONTRIBUTING.md).
//! What threads and checkpoints do meanwhile is killed in `vervet/tests/it/killed.rs`, loads in `crash.rs`.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::common::Place;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, Stdio};
use std::time::{Duration, SystemTime};

/// Statements that a commit adds for good, each with terms of its own.
const PARTS: u64 = 4;
/// The longest life of a shell.
const LIFE_MAX: Duration = Duration::from_millis(600);

/// What makes commit `number`: the counter moves on, and its parts come.
fn script(number: u64) -> String {
    let parts: String =
        (0..PARTS).map(|part| format!(" . <urn:w> <urn:part> <urn:part:{number}:{part}>")).collect();
    let remove = format!("DELETE DATA {{ <urn:w> <urn:count> {} }}", number - 1);
    let insert = format!("INSERT DATA {{ <urn:w> <urn:count> {number}{parts} }}");
    match number % 2 {
        0 => format!("begin\n{remove};\n{insert};\ncommit\n"),
        _ => format!("{remove} ; {insert};\n"),
    }
}

/// Hands over commits until nobody reads them any more.
fn feed(mut input: ChildStdin, first: u64) {
    let mut write = |text: &str| input.write_all(text.as_bytes()).and_then(|()| input.flush());
    if write(".timing on\n").is_ok() {
        (first..).find(|number| write(&script(*number)).is_err());
    }
}

/// How many commits these lines tell of.
fn acknowledged(lines: &[String]) -> u64 {
    let (mut done, mut is_open) = (0, false);
    for line in lines {
        if line.starts_with("the transaction sees") {
            is_open = true;
        } else if line.starts_with("commit ") {
            (done, is_open) = (done + 1, false);
        } else {
            // The last line may be cut.
            let is_last = std::ptr::eq(line, &raw const *lines.last().unwrap());
            assert!(line.contains("added, ") || is_last, "the shell says: {line}");
            done += u64::from(!is_open && line.contains("removed in "));
        }
    }
    done
}

/// How many commits are there, none of them in part.
fn committed(place: &Place) -> u64 {
    let column = |query: &str| -> Vec<String> {
        let rows = place.ok(&["query", "db", query, "--format", "csv"]);
        rows.lines().skip(1).map(|line| line.trim().to_owned()).collect()
    };
    let counts = column("SELECT ?n { <urn:w> <urn:count> ?n }");
    assert!(counts.len() <= 1, "the counter is {counts:?}");
    let count = counts.first().map_or(0, |count| count.parse().unwrap());
    let mut found = column("SELECT ?part { <urn:w> <urn:part> ?part }");
    let mut expected: Vec<String> = (1..=count)
        .flat_map(|number| (0..PARTS).map(move |part| format!("urn:part:{number}:{part}")))
        .collect();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected, "all parts of {count} commits and no others");
    count
}

#[test]
fn a_killed_shell_keeps_what_it_has_told_of() {
    let kills = std::env::var("VERVET_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(6_u32);
    let seed = std::env::var("VERVET_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut random = seed.unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        u64::from(now.subsec_nanos()) ^ now.as_secs()
    }) | 1;
    println!("VERVET_SEED={random}");
    let place = Place::new();
    place.file("nothing.nt", "");
    place.ok(&["load", "db", "nothing.nt"]);
    let (mut known, mut in_flight, mut in_the_middle) = (0, 0, 0);
    for kill in 0..kills {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let mut shell = place
            .command(&["shell", "db"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let input = shell.stdin.take().unwrap();
        let lines = BufReader::new(shell.stderr.take().unwrap());
        let feeder = std::thread::spawn(move || feed(input, known + 1));
        let reader = std::thread::spawn(move || lines.lines().map_while(Result::ok).collect::<Vec<String>>());
        // A random moment; nothing is waited for.
        std::thread::sleep(
            LIFE_MAX.mul_f64(f64::from(u32::try_from(random >> 32).unwrap()) / f64::from(u32::MAX)),
        );
        let ended = shell.try_wait().unwrap();
        shell.kill().unwrap();
        shell.wait().unwrap();
        feeder.join().unwrap();
        let lines = reader.join().unwrap();
        assert!(ended.is_none(), "it ended by itself: {lines:?}");
        let told = known + acknowledged(&lines);
        place.ok(&["check", "db"]);
        let there = committed(&place);
        assert!(there == told || there == told + 1, "kill {kill}: {there} commits, {told} acknowledged");
        in_the_middle += u32::from(told > known);
        in_flight += there - told;
        known = there;
    }
    println!(
        "{kills} kills, {in_the_middle} after a commit; {known} commits, {in_flight} of them not acknowledged"
    );
    assert!(in_the_middle > 0, "no shell came to commit");
    // The next one goes on.
    let done = place.run_with_input(&["shell", "db"], &(script(known + 1) + &script(known + 2)));
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    assert_eq!(committed(&place), known + 2);
}

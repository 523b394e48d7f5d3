//! Crash test of commits: the built binary is killed (SIGKILL) during durable commits, repeatedly on one
//! directory. Every acknowledged commit survives, plus at most the one in flight, and each commit is atomic.
//!
//! # Shape
//! `vervet shell` receives commits through an endless pipe: single requests and transactions of several
//! requests in turn. With `.timing on` it acknowledges each on standard error. It is killed a random time
//! after its start, sometimes while it opens the directory; then `vervet check` and `vervet query` inspect
//! the result. `VERVET_KILLS` is the number of kills: 6, and 50 for a release (CONTRIBUTING.md).
//! `vervet/tests/it/killed.rs` covers concurrent threads and checkpoints, `crash.rs` covers loads.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::common::Place;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, Stdio};
use std::time::{Duration, SystemTime};

/// Statements that a commit adds permanently, each with new terms.
const PARTS: u64 = 4;
/// The longest lifetime of a shell.
const LIFE_MAX: Duration = Duration::from_millis(600);

/// The input for commit `number`: increments the counter and adds the parts.
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

/// Writes commits until the reader closes the pipe.
fn feed(mut input: ChildStdin, first: u64) {
    let mut write = |text: &str| input.write_all(text.as_bytes()).and_then(|()| input.flush());
    if write(".timing on\n").is_ok() {
        (first..).find(|number| write(&script(*number)).is_err());
    }
}

/// The number of commits that these lines acknowledge.
fn acknowledged(lines: &[String]) -> u64 {
    let (mut done, mut is_open) = (0, false);
    for line in lines {
        if line.starts_with("the transaction sees") {
            is_open = true;
        } else if line.starts_with("commit ") {
            (done, is_open) = (done + 1, false);
        } else {
            // The last line may be incomplete.
            let is_last = std::ptr::eq(line, &raw const *lines.last().unwrap());
            assert!(line.contains("added, ") || is_last, "the shell says: {line}");
            done += u64::from(!is_open && line.contains("removed in "));
        }
    }
    done
}

/// The number of commits in the database; asserts that each is complete.
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
fn a_killed_shell_keeps_acknowledged_commits() {
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
        // A random moment, without synchronization.
        std::thread::sleep(
            LIFE_MAX.mul_f64(f64::from(u32::try_from(random >> 32).unwrap()) / f64::from(u32::MAX)),
        );
        let ended = shell.try_wait().unwrap();
        shell.kill().unwrap();
        shell.wait().unwrap();
        feeder.join().unwrap();
        let lines = reader.join().unwrap();
        assert!(ended.is_none(), "it ended by itself: {lines:?}");
        let reported = known + acknowledged(&lines);
        place.ok(&["check", "db"]);
        let there = committed(&place);
        assert!(
            there == reported || there == reported + 1,
            "kill {kill}: {there} commits, {reported} acknowledged"
        );
        in_the_middle += u32::from(reported > known);
        in_flight += there - reported;
        known = there;
    }
    println!(
        "{kills} kills, {in_the_middle} after a commit; {known} commits, {in_flight} of them not acknowledged"
    );
    assert!(in_the_middle > 0, "no shell came to commit");
    // The next shell continues.
    let done = place.run_with_input(&["shell", "db"], &(script(known + 1) + &script(known + 2)));
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    assert_eq!(committed(&place), known + 2);
}

//! Crash test: processes are killed (SIGKILL) during durable commits, repeatedly on one directory. Every
//! acknowledged commit survives, plus at most the one in flight, and each commit is atomic.
//!
//! # Shape
//! The parent starts this test program again as a child that commits endlessly from several threads while
//! another thread writes new bases; the child prints the number of each commit that has returned. The parent
//! kills it after a random time, sometimes while it opens the directory, and verifies the data.
//! `VERVET_KILLS` is the number of kills: 8, and 50 for a release (CONTRIBUTING.md).
#![cfg(unix)]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use vervet::{Database, Result};
use vervet_testkit::{Random, seed};

const DIRECTORY: &str = "VERVET_KILLED_CHILD";
const WRITERS: usize = 3;
/// Statements that a commit adds permanently, each with new terms.
const PARTS: u64 = 4;
/// The longest lifetime of a child.
const LIFE_MAX: Duration = Duration::from_millis(800);

/// Commit `number` of a writer: increments its counter and adds its parts.
fn commit(db: &Database, writer: usize, number: u64) -> Result<()> {
    let parts: String = (0..PARTS)
        .map(|part| format!("<urn:w{writer}> <urn:part> <urn:w{writer}:{number}:{part}> . "))
        .collect();
    let before = number - 1;
    db.update(&format!(
        "DELETE DATA {{ <urn:w{writer}> <urn:count> {before} }} ;
         INSERT DATA {{ <urn:w{writer}> <urn:count> {number} . {parts} }}"
    ))?;
    Ok(())
}

/// The number of commits of a writer in the database.
///
/// # Panics
/// If a commit is only partly there.
fn committed(db: &Database, writer: usize) -> u64 {
    let rows = db.select(&format!("SELECT ?n {{ <urn:w{writer}> <urn:count> ?n }}")).expect("answers");
    let counts: Vec<u64> = rows
        .rows()
        .map(|row| row.integer("n").expect("sound").and_then(|n| u64::try_from(n).ok()).expect("a count"))
        .collect();
    assert!(counts.len() <= 1, "writer {writer} has the counts {counts:?}");
    let count = counts.first().copied().unwrap_or(0);
    let rows = db.select(&format!("SELECT ?part {{ <urn:w{writer}> <urn:part> ?part }}")).expect("answers");
    let mut found: Vec<String> =
        rows.rows().map(|row| row.text("part").expect("sound").expect("bound")).collect();
    let mut expected: Vec<String> = (1..=count)
        .flat_map(|number| (0..PARTS).map(move |part| format!("urn:w{writer}:{number}:{part}")))
        .collect();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected, "writer {writer}: all parts of {count} commits and no others");
    count
}

/// Entry point of the child processes; not a test of its own.
#[test]
fn child() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let db = Database::open_or_create(Path::new(&directory)).expect("opens");
    let db = &db;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            loop {
                db.checkpoint().expect("works");
            }
        });
        for writer in 0..WRITERS {
            scope.spawn(move || {
                for number in committed(db, writer) + 1.. {
                    commit(db, writer, number).expect("commits");
                    // A single write, so that a line is never partial.
                    let line = format!("\nacknowledged {writer} {number}\n");
                    std::io::stderr().write_all(line.as_bytes()).expect("the parent listens");
                }
            });
        }
    });
}

#[test]
fn killed_processes_keep_what_they_acknowledged() {
    let kills = std::env::var("VERVET_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(8_u64);
    let mut random = Random(seed() | 1);
    let place = tempfile::tempdir().expect("a place");
    let directory = place.path().join("db");
    let (mut known, mut in_flight, mut in_the_middle) = ([0; WRITERS], 0, 0);
    for kill in 0..kills {
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "killed::child", "--nocapture"])
            .env(DIRECTORY, &directory)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("starts");
        let lines = BufReader::new(child.stderr.take().expect("a pipe"));
        let reader =
            std::thread::spawn(move || lines.lines().map_while(std::io::Result::ok).collect::<Vec<_>>());
        std::thread::sleep(LIFE_MAX.mul_f64(random.below(1000) as f64 / 1000.0));
        assert!(child.try_wait().expect("a child").is_none(), "it ended by itself: {:?}", reader.join());
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        let mut acknowledged = known;
        for line in reader.join().expect("reads") {
            let mut words = line.split(' ');
            match words.next() {
                Some("acknowledged") => {
                    let mut number = || words.next().and_then(|word| word.parse::<u64>().ok()).expect(&line);
                    let (writer, number) = (number(), number());
                    acknowledged[usize::try_from(writer).expect("few")] = number;
                }
                Some("") => {}
                _ => panic!("a child says: {line}"),
            }
        }
        in_the_middle += u64::from(acknowledged != known);
        let db = Database::open_or_create(&directory).expect("opens");
        db.check().expect("sound");
        for writer in 0..WRITERS {
            let (there, reported) = (committed(&db, writer), acknowledged[writer]);
            assert!(
                there == reported || there == reported + 1,
                "kill {kill}: {there} commits, {reported} acknowledged"
            );
            in_flight += there - reported;
            known[writer] = there;
        }
    }
    println!(
        "{kills} kills, {in_the_middle} after a commit; {known:?} commits, {in_flight} of them not acknowledged"
    );
    assert!(in_the_middle > 0, "no child came to commit");
}

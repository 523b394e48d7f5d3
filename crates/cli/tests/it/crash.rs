//! Crash test of loads: a killed load leaves the database unchanged. Children are killed (SIGKILL) at random
//! times until twenty were killed in the middle; each time the database must be sound and answer as before.
//! (A load may have become visible just before the kill: then it must be complete.)
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::common::people;
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime};

const POINTS: u32 = 20;
/// The maximum number of children; some end before they are killed.
const CHILDREN_MAX: u32 = 100;

#[test]
fn a_killed_load_leaves_the_database_as_it_was() {
    let place = people();
    place.ok(&["generate", "lubm", "--universities", "1", "--output", "lubm.nt"]);
    let before = place.ok(&["export", "db"]);
    let count = |name: &str| place.ok(&["query", name, "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"]);
    let small = count("db");

    // The time of a complete load on this machine, and its result.
    place.ok(&["load", "whole", "people.ttl"]);
    let started = Instant::now();
    place.ok(&["load", "whole", "lubm.nt"]);
    let whole = started.elapsed();
    let large = count("whole");

    let seed = std::env::var("VERVET_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut random = seed.unwrap_or_else(|| {
        let nanoseconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos();
        u64::try_from(nanoseconds & u128::from(u64::MAX)).unwrap()
    }) | 1;
    println!("VERVET_SEED={random}");
    let mut killed = 0;
    for child_number in 0..CHILDREN_MAX {
        if killed == POINTS {
            break;
        }
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let share = f64::from(u32::try_from(random >> 32).unwrap()) / f64::from(u32::MAX);
        let mut child = place
            .command(&["load", "db", "lubm.nt"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_secs_f64(whole.as_secs_f64() * share));
        child.kill().unwrap();
        child.wait().unwrap();
        place.ok(&["check", "db"]);
        let now = count("db");
        if now == small {
            assert_eq!(place.ok(&["export", "db"]), before, "child {child_number}");
            killed += 1;
        } else {
            assert_eq!(now, large, "child {child_number}: neither before nor after");
            std::fs::remove_dir_all(place.path("db")).unwrap();
            place.ok(&["load", "db", "people.ttl"]);
            assert_eq!(place.ok(&["export", "db"]), before);
        }
    }
    assert!(killed > POINTS / 2, "only {killed} loads were killed before their end");
    // A killed load does not block the next one.
    place.ok(&["load", "db", "lubm.nt"]);
    assert_eq!(count("db"), large);
    // … nor leave files behind.
    let files = |name: &str| std::fs::read_dir(place.path(name)).unwrap().count();
    assert_eq!(files("db"), files("whole"));
    println!("{killed} loads were killed before their end");
}

#[cfg(unix)]
#[test]
fn ctrl_c_cancels_with_130() {
    let place = people();
    place.file("numbers.ttl", &(0..300).map(|i| format!("<urn:{i}> <urn:p> {i} .\n")).collect::<String>());
    place.ok(&["load", "numbers", "numbers.ttl"]);
    let endless = "SELECT (COUNT(*) AS ?n) { ?a <urn:p> ?b . ?c <urn:p> ?d . ?e <urn:p> ?f . ?g <urn:p> ?h \
                   . ?i <urn:p> ?j . FILTER (?b + ?d + ?f + ?h + ?j < -5) }";
    let child = place
        .command(&["query", "numbers", endless])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(800));
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT)
        .unwrap();
    let started = Instant::now();
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(130), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(started.elapsed() < Duration::from_secs(10), "took {:?}", started.elapsed());
    assert_eq!(String::from_utf8(done.stdout).unwrap(), "");
    assert!(String::from_utf8(done.stderr).unwrap().starts_with("error: "));
}

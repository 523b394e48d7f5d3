//! `vervet changes`: the change feed of a directory, and of a server that is followed.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::common::{Place, people};
use crate::serve::Serving;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

fn insert(place: &Place, number: u32) {
    place.ok(&["update", "db", &format!("INSERT DATA {{ <urn:a{number}> <urn:p> {number} }}")]);
}

/// The position that a command has printed on standard error.
fn position(text: &str) -> String {
    text.lines().find_map(|line| line.strip_prefix("position ")).unwrap().to_owned()
}

#[test]
fn a_directory_has_the_commits_after_a_position() {
    let place = people();
    let newest = place.run(&["changes", "db"]);
    assert_eq!((newest.code, newest.out.as_str()), (0, ""));
    let loaded = position(&newest.err);
    insert(&place, 1);
    insert(&place, 2);
    let done = place.run(&["changes", "db", "--after", &loaded]);
    assert_eq!(done.code, 0, "{}", done.err);
    let lines: Vec<&str> = done.out.lines().collect();
    assert!(lines.len() == 2 && lines[1].contains("\"subject\":\"<urn:a2>\""), "{}", done.out);
    let last = position(&done.err);
    assert!(lines[1].contains(&format!("\"position\":\"{last}\"")), "{} {last}", done.out);
    let patch = place.run(&["changes", "db", "--after", &loaded, "--format", "rdf-patch"]);
    assert!(patch.out.contains("A <urn:a1> <urn:p> ") && patch.out.ends_with("TC .\n"), "{}", patch.out);
    // A load has no record of its own.
    place.fails(&["changes", "db", "--after", "0"], 1, &["has replaced them", "vervet export db"]);
    place.fails(&["changes", "db", "--after", "99"], 1, &["before 99"]);
    place.fails(&["changes", "db", "--after", "x"], 2, &["position"]);
    place.fails(&["changes", "db", "--follow"], 2, &["needs a server", "vervet serve db"]);
    place.fails(&["changes", "127.0.0.1:1"], 1, &["is the server running?"]);
}

/// Sends an update to a server.
fn update(server: &Serving, number: u32) {
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let body = format!("INSERT DATA {{ <urn:b{number}> <urn:p> {number} }}");
    write!(
        stream,
        "POST /update HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\
         Content-Type: application/sparql-update\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
}

fn interrupt(mut child: Child) -> Option<i32> {
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    child.wait().unwrap().code()
}

#[test]
fn a_server_is_followed_until_an_interrupt() {
    let place = people();
    let server = Serving::start(&place, &[]);
    let held = place.run(&["changes", "db", "--after", "0"]);
    assert!(held.code == 1 && held.err.contains("vervet changes http://127.0.0.1:"), "{}", held.err);
    let start = position(&place.run(&["changes", &server.address]).err);
    for (round, format) in [(0, "json"), (1, "rdf-patch")] {
        let mut command =
            place.command(&["changes", &server.address, "--after", &start, "--follow", "--format", format]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        for number in 3 * round..3 * round + 3 {
            update(&server, number);
            let expected = format!("<urn:b{number}>");
            assert!(lines.any(|line| line.contains(&expected)), "{format}: {number}");
        }
        assert_eq!(interrupt(child), Some(0), "{format}");
    }
    let all = place.run(&["changes", &server.address, "--after", &start]);
    assert_eq!((all.code, all.out.lines().count()), (0, 6), "{} {}", all.out, all.err);
    let patch = place.ok(&["changes", &server.address, "--after", &start, "--format", "rdf-patch"]);
    assert_eq!(patch.matches("TC .\n").count(), 6, "{patch}");
    place.fails(&["changes", &server.address, "--after", "0"], 1, &["410", "export"]);
}

/// `vervet changes … --follow | head -1` ends without an error.
#[test]
fn a_reader_that_closes_the_pipe_is_no_error() {
    let place = people();
    let server = Serving::start(&place, &[]);
    let start = position(&place.run(&["changes", &server.address]).err);
    let mut command = place.command(&["changes", &server.address, "--after", &start, "--follow"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    update(&server, 0);
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.contains("<urn:b0>"), "{first}");
    update(&server, 1);
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!((child.wait().unwrap().code(), err.as_str()), (Some(0), ""));
}

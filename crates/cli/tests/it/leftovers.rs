//! Leftovers of failed commands, and messages about other processes.
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::common::{PEOPLE, Place, people};
use std::process::Stdio;

/// users 9: failed loads, occupied addresses and misspelt directories create no database.
#[test]
fn users_9_failures_and_typos_make_no_database() {
    let place = Place::new();
    place.file("bad.nt", "<urn:a> oops .\n");
    place.file("people.ttl", PEOPLE);
    place.fails(&["load", "new/db", "bad.nt"], 1, &["bad.nt:1:"]);
    place.fails(&["load", "new/db", "missing.nt"], 1, &["missing.nt"]);
    assert!(!place.path("new").exists());
    place.fails(&["load", ".", "people.ttl"], 1, &["is no database, and has other files", "hint:"]);
    assert!(!place.path("LOCK").exists() && !place.path("MANIFEST").exists());
    let bind = ["--bind", "127.0.0.1:0"];
    place.fails(&["serve", "typo", bind[0], bind[1]], 1, &["there is no database in typo", "--create"]);
    assert!(!place.path("typo").exists());
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    place.fails(&["serve", "new", "--create", "--bind", &address], 1, &["could not listen on"]);
    assert!(!place.path("new").exists(), "the address is checked before anything is created");
}

/// users 11: the error of a second writer names the server that owns the database, and its address; `recover`
/// without `--cut-at-damage` needs no lock.
#[test]
fn users_11_a_server_is_named_with_its_address() {
    let place = people();
    let mut command = place.command(&["serve", "db", "--bind", "127.0.0.1:0"]);
    let mut server = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(server.stderr.take().unwrap()));
    // It prints its address once it owns the database.
    let address = lines.find_map(|line| {
        let line = line.unwrap();
        let at = line.find("http://127.0.0.1:")?;
        Some(line[at..].split(['/', ' ']).nth(2)?.to_owned())
    });
    let address = address.expect("an address");
    let expected = format!("vervet serve at http://{address}/");
    let insert = ["update", "db", "INSERT DATA { <urn:a> <urn:b> <urn:c> }"];
    let says = place.run(&insert).err;
    assert!(says.contains(&expected) && says.contains("send updates to its address"), "{says}");
    assert_eq!(place.ok(&["recover", "db"]), "the log is sound\n");
    server.kill().unwrap();
    server.wait().unwrap();
    place.ok(&insert);
}

//! Updates through the built binary: durable for the next process, atomic; and a backup is a database.
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::common::{Place, people};
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::{Duration, Instant};

fn count(place: &Place, database: &str, pattern: &str) -> u64 {
    let query = format!("SELECT (COUNT(*) AS ?n) {{ {pattern} }}");
    let rows = place.ok(&["query", database, &query, "--format", "csv"]);
    rows.lines().nth(1).unwrap().trim().parse().unwrap()
}

#[test]
fn updates_are_there_for_the_next_process() {
    let place = people();
    let before = count(&place, "db", "?s ?p ?o");
    let done =
        place.run(&["update", "db", "INSERT DATA { <urn:a> <urn:p> 1, 'a text that is long enough' }"]);
    assert_eq!((done.code, done.out.as_str(), done.err.as_str()), (0, "", ""), "quiet when piped");
    assert_eq!(count(&place, "db", "?s ?p ?o"), before + 2);
    place.file("changes.ru", "DELETE { ?s <urn:p> ?o } INSERT { ?s <urn:q> ?o } WHERE { ?s <urn:p> ?o }");
    place.ok(&["update", "db", "--file", "changes.ru"]);
    assert_eq!((count(&place, "db", "?s <urn:p> ?o"), count(&place, "db", "?s <urn:q> ?o")), (0, 2));
    let piped = place.run_with_input(&["update", "db"], "DELETE WHERE { <urn:a> <urn:q> 1 }");
    assert_eq!(piped.code, 0, "{piped:?}");
    assert_eq!(count(&place, "db", "?s ?p ?o"), before + 1);
    // A later load continues from there.
    place.file("more.nt", "<urn:x> <urn:q> <urn:y> .\n");
    place.ok(&["load", "db", "more.nt"]);
    place.ok(&["update", "db", "INSERT DATA { <urn:x> <urn:q> <urn:z> }"]);
    assert_eq!(count(&place, "db", "?s ?p ?o"), before + 3);
    assert!(place.ok(&["check", "db"]).contains("sound"));
    assert!(place.ok(&["export", "db"]).contains("<urn:x> <urn:q> <urn:z> ."));
}

#[test]
fn a_request_that_fails_changes_nothing() {
    let place = people();
    let before = count(&place, "db", "?s ?p ?o");
    place.fails(&["update", "db", "INSERT DATA { <urn:a> <urn:p> }"], 1, &["line 1", "^"]);
    place.fails(&["update", "db", "INSERT DATA { <urn:a> <urn:p> 1 } ; LOAD <urn:x>"], 1, &["error:"]);
    assert_eq!(count(&place, "db", "?s ?p ?o"), before);
    // A missing directory is created.
    place.ok(&["update", "new", "INSERT DATA { <urn:a> <urn:p> 1 }"]);
    assert_eq!(count(&place, "new", "?s ?p ?o"), 1);
}

#[test]
fn constraints_are_kept() {
    let place = people();
    place.ok(&[
        "update",
        "db",
        "INSERT DATA { <urn:a> a <urn:C> ; <urn:p> 1 . <urn:b> a <urn:C> ; <urn:p> 1 }",
    ]);
    let unique = ["unique", "urn:C", "<urn:p>"];
    let with = |action: &'static str| [&["constraint", "db", action], unique.as_slice()].concat();
    assert_eq!(place.ok(&["constraint", "db"]), "");
    let breaks = ["does not hold: <urn:a> and <urn:b> both have", "hint:"];
    place.fails(&with("add"), 1, &breaks);
    place.ok(&["update", "db", "DELETE DATA { <urn:b> <urn:p> 1 }"]);
    place.ok(&with("add"));
    place.fails(&with("add"), 1, &["there is a constraint"]);
    let done = place.run(&["constraint", "db", "add", "required", "Person", "name"]);
    assert_eq!(done.code, 0, "{done:?}");
    // The data have neither the label nor the key.
    for unknown in ["warning: nothing has the type label:Person", "has the predicate key:name"] {
        assert!(done.err.contains(unknown), "no {unknown} in {done:?}");
    }
    let listed = ["required <urn:vervet:label:Person> <urn:vervet:key:name>", "unique <urn:C> <urn:p>"];
    assert_eq!(place.ok(&["constraint", "db"]).lines().collect::<Vec<_>>(), [listed[1], listed[0]]);
    for line in listed {
        assert!(place.ok(&["info", "db"]).contains(line));
        assert!(place.ok(&["info", "db", "--json"]).contains(line));
    }
    let broken = ["is broken: <urn:b> and <urn:a> both have", "hint:"];
    place.fails(&["update", "db", "INSERT DATA { <urn:b> <urn:p> 1 }"], 1, &broken);
    // A load that would violate it changes nothing.
    let one = "<urn:b> <urn:p> \"1\"^^<http://www.w3.org/2001/XMLSchema#integer> .\n";
    place.file("more.nt", &format!("{one}<urn:x> <urn:y> <urn:z> .\n"));
    let before = count(&place, "db", "?s ?p ?o");
    place.fails(&["load", "db", "more.nt"], 1, &["does not hold", "<urn:b>", "hint:"]);
    assert_eq!(count(&place, "db", "?s ?p ?o"), before);
    place.ok(&["update", "db", "INSERT DATA { <urn:b> <urn:p> 2 }"]);
    place.ok(&["backup", "db", "copy"]);
    assert_eq!(place.ok(&["constraint", "copy"]), place.ok(&["constraint", "db"]));
    place.ok(&with("remove"));
    place.fails(&with("remove"), 1, &["there is no constraint", "hint:"]);
    place.ok(&["load", "db", "more.nt"]);
    assert_eq!(count(&place, "db", "?s <urn:p> 1"), 2);
    assert_eq!(place.ok(&["constraint", "db"]).lines().count(), 1);
    assert!(place.ok(&["check", "db"]).contains("sound"));
    place.fails(&["constraint", "db", "add", "every", "C", "p"], 2, &["known are unique"]);
}

#[test]
fn a_backup_is_a_database() {
    let place = people();
    place.ok(&["update", "db", "INSERT DATA { <urn:a> <urn:p> 1 }"]);
    place.ok(&["backup", "db", "copy"]);
    place.fails(&["backup", "db", "copy"], 1, &["there is a database", "hint:"]);
    assert_eq!(count(&place, "copy", "?s ?p ?o"), count(&place, "db", "?s ?p ?o"));
    assert!(place.ok(&["check", "copy"]).contains("sound"));
}

/// users 3 and 4, storage B13, through the built binary: a backup is restored only into a directory without a
/// database; lost logs and manifests are reported.
#[test]
fn a_backup_is_restored_where_no_database_is() {
    let place = people();
    place.ok(&["update", "db", "INSERT DATA { <urn:a> <urn:p> 1 }"]);
    place.ok(&["backup", "db", "copy"]);
    place.fails(&["restore", "copy", "db"], 1, &["there is a database in db", "hint:"]);
    place.fails(&["restore", "db", "new"], 1, &["db has a log", "hint:", "vervet backup"]);
    let done = place.run(&["restore", "copy", "new"]);
    assert_eq!((done.code, done.out.as_str(), done.err.as_str()), (0, "", ""), "quiet when piped");
    assert_eq!(count(&place, "new", "?s ?p ?o"), count(&place, "db", "?s ?p ?o"));
    place.ok(&["update", "new", "INSERT DATA { <urn:b> <urn:p> 1 }"]);
    assert!(place.ok(&["check", "new"]).contains("sound"));

    for log in std::fs::read_dir(place.path("new")).unwrap().map(|entry| entry.unwrap().path()) {
        if log.extension().is_some_and(|extension| extension == "log") {
            std::fs::remove_file(log).unwrap();
        }
    }
    place.fails(
        &["query", "new", "ASK {}"],
        1,
        &["there is no file with LSN", "hint:", "vervet recover new"],
    );
    std::fs::remove_file(place.path("db/MANIFEST")).unwrap();
    place.file("more.nt", "<urn:a> <urn:b> <urn:c> .\n");
    for command in [&["load", "db", "more.nt"], &["update", "db", "CLEAR ALL"], &["restore", "copy", "db"]] {
        place.fails(command, 1, &["files of a database", "MANIFEST", "hint:"]);
    }
}

#[test]
fn a_traversal_is_referred_to_the_command_that_runs_it() {
    let place = people();
    let traversal = "g.V().has('name', 'Ann').property('city', 'Graz')";
    place.fails(
        &["update", "db", traversal],
        1,
        &["hint: this looks like Gremlin", "vervet query DB --language gremlin"],
    );
}

/// `--wait` waits for another writer: its end is the start of the update, and the time has a limit.
#[test]
fn updates_wait_for_another_writer() {
    let place = people();
    let mut writer = place.command(&["shell", "db"]);
    let mut writer = writer.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut inputs = writer.stdin.take().unwrap();
    inputs
        .write_all(b"begin;\nINSERT DATA { <urn:first> <urn:p> 1 };\nASK { <urn:first> <urn:p> 1 };\n")
        .unwrap();
    // The shell is the writer from its `begin` on.
    let mut answers = BufReader::new(writer.stdout.take().unwrap()).lines();
    assert_eq!(answers.next().unwrap().unwrap().trim(), "true");
    let insert = "INSERT { <urn:second> <urn:p> ?o } WHERE { <urn:first> <urn:p> ?o }";
    let refused = place.run(&["update", "db", insert]);
    assert!(refused.err.contains("holds the lock") && refused.err.contains("--wait SECONDS"), "{refused:?}");
    let started = Instant::now();
    let refused = place.run(&["update", "db", "--wait", "0.3", insert]);
    assert!(refused.code == 1 && refused.err.contains("holds the lock"), "{refused:?}");
    assert!(
        !refused.err.contains("--wait") && started.elapsed() >= Duration::from_millis(300),
        "{refused:?}"
    );
    // A wait says which process it is for.
    let held = format!("process {} holds the lock; waiting up to 60 s", writer.id());
    let waits = |arguments: &[&str]| {
        let mut waiting = place.command(arguments).stderr(Stdio::piped()).spawn().unwrap();
        let mut errors = BufReader::new(waiting.stderr.take().unwrap()).lines();
        let line = errors.next().unwrap().unwrap();
        assert!(line.contains(&held), "{line}");
        waiting
    };
    let mut waiting = waits(&["update", "db", "--wait", "60", insert]);
    let file = place.file("third.nt", "<urn:third> <urn:p> <urn:o> .\n");
    let mut loading = waits(&["load", "db", "--wait", "60", file]);
    inputs.write_all(b"commit;\n").unwrap();
    drop(inputs);
    assert!(writer.wait().unwrap().success());
    assert!(waiting.wait().unwrap().success());
    assert!(loading.wait().unwrap().success());
    assert_eq!(count(&place, "db", "<urn:second> <urn:p> 1"), 1);
    assert_eq!(count(&place, "db", "<urn:third> <urn:p> ?n"), 1);
}

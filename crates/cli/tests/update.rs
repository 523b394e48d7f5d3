//! Shows, by the built binary alone, that updates are there for the next process, whole or not at all, and that a
//! backup is a database.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Place, people};

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
    // A load goes on from there.
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
    // A directory that is not there is made.
    place.ok(&["update", "new", "INSERT DATA { <urn:a> <urn:p> 1 }"]);
    assert_eq!(count(&place, "new", "?s ?p ?o"), 1);
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

//! Data in and out of a database, through the built binary: load, info, check, export, malformed files,
//! generated data, the shell and the demo.
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::common::{Place, people};

const ALL: &str = "SELECT * { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }";

fn sorted(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// A load refuses to run beside a writing process and names it, without changes; queries continue.
#[test]
fn one_process_loads_at_a_time() {
    let place = people();
    std::fs::write(place.path("db/LOCK"), "4711").unwrap();
    let lock = std::fs::File::open(place.path("db/LOCK")).unwrap();
    lock.lock().unwrap();
    place.file("more.nt", "<urn:a> <urn:b> <urn:c> .\n");
    place.fails(&["load", "db", "more.nt"], 1, &["error: could not write to db", "process 4711", "hint:"]);
    let ask = "ASK { <urn:a> <urn:b> <urn:c> }";
    assert!(place.ok(&["query", "db", ask]).contains("false"));
    let insert = "INSERT DATA { <urn:a> <urn:b> <urn:c> }";
    place.fails(&["update", "db", insert], 1, &["error: could not write to db", "process 4711", "hint:"]);
    drop(lock);
    place.ok(&["load", "db", "more.nt"]);
    assert!(place.ok(&["query", "db", ask]).contains("true"));
}

#[test]
fn a_load_reports_its_counts() {
    let place = Place::new();
    place.file("people.ttl", crate::common::PEOPLE);
    let done = place.run(&["load", "db", "people.ttl"]);
    assert_eq!((done.code, done.err.as_str()), (0, ""), "nothing but the result when piped");
    assert_eq!(done.out.lines().count(), 1);
    assert!(done.out.starts_with("loaded 11 statements from "), "{}", done.out);
    // A second load adds.
    place.file("more.nt", "<http://example.org/fay> <http://example.org/name> \"Fay\" .\n");
    assert!(place.ok(&["load", "db", "more.nt"]).contains("has 12 in "));
    // The load skips statements that the database has, and repetitions in a file.
    place.file(
        "again.nt",
        &format!("{0}{0}", "<http://example.org/fay> <http://example.org/name> \"Fay\" .\n"),
    );
    let again = place.ok(&["load", "db", "again.nt"]);
    assert!(
        again.starts_with("loaded 0 statements (2 in the files) from ") && again.contains("has 12 in "),
        "{again}"
    );
    let piped = place.run_with_input(&["load", "db", "-", "--format", "nt"], "<urn:a> <urn:b> <urn:c> .\n");
    assert!(piped.out.contains("has 13 in "), "{piped:?}");
    place.fails(&["load", "db", "-"], 2, &["error:", "--format"]);
    place.fails(&["load", "db", "people.doc"], 1, &["people.doc", "hint:"]);
    place.fails(&["load", "db", "nothing.nt"], 1, &["nothing.nt"]);
}

/// A load requests the word index, the first or a later one; loads and updates maintain it.
#[test]
fn texts_are_found_by_their_words() {
    let place = Place::new();
    place.file("a.ttl", "<urn:a> <urn:p> 'The quick brown fox' . <urn:b> <urn:p> 'Quick, quick', 'Brown' .");
    let find = |search: &str| {
        format!("SELECT ?s {{ ?s <urn:p> ?o FILTER <urn:vervet:text:matches>(?o, '{search}') }} ORDER BY ?s")
    };
    place.ok(&["load", "db", "a.ttl"]);
    place.fails(&["load", "db"], 2, &["error:", "FILE"]);
    assert!(!place.ok(&["query", "db", &find("quick"), "--explain"]).contains("among"));
    assert_eq!(place.ok(&["query", "db", &find("quick"), "--format", "tsv"]), "?s\n<urn:a>\n<urn:b>\n");
    place.ok(&["load", "db", "--text-index"]);
    place.file("b.ttl", "<urn:c> <urn:p> 'A quick brown dog' .");
    place.ok(&["load", "db", "b.ttl"]);
    place.ok(&["update", "db", "INSERT DATA { <urn:d> <urn:p> 'No quickness, no brown bear' }"]);
    assert!(place.ok(&["query", "db", &find("quick"), "--explain"]).contains("among"));
    for (search, found) in [
        ("quick brown", "?s\n<urn:a>\n<urn:c>\n"),
        ("quick* brown -fox", "?s\n<urn:c>\n<urn:d>\n"),
        ("\"brown fox\" OR bear", "?s\n<urn:a>\n<urn:d>\n"),
        ("fox bear", "?s\n"),
    ] {
        assert_eq!(place.ok(&["query", "db", &find(search), "--format", "tsv"]), found, "{search}");
    }
    place.fails(
        &["query", "db", &find("-fox")],
        1,
        &["error:", "no word that texts must have", "^", "hint:"],
    );
    place.ok(&["check", "db"]);
    assert!(place.ok(&["info", "db"]).contains("words"));
}

#[test]
fn graphs_and_bases_are_named() {
    let place = Place::new();
    place.file("a.ttl", "<s> <p> <o> .\n");
    place.ok(&["load", "db", "a.ttl", "--base", "http://base/", "--graph", "http://graph/"]);
    let rows = place.ok(&["query", "db", "SELECT * { GRAPH ?g { ?s ?p ?o } }", "--format", "csv"]);
    let mut cells: Vec<&str> = rows.lines().nth(1).unwrap().split(',').collect();
    cells.sort_unstable();
    assert_eq!(cells, ["http://base/o", "http://base/p", "http://base/s", "http://graph/"]);
}

#[test]
fn malformed_files_stop_the_load_and_leave_the_database() {
    let place = people();
    let before = sorted(&place.ok(&["export", "db"]));
    place.file("bad.nt", "<urn:a> <urn:b> <urn:c> .\n<urn:a> <urn:b> oops .\n<urn:a> <urn:b> <urn:d> .\n");
    place.fails(&["load", "db", "bad.nt"], 1, &["error:", "bad.nt:2:"]);
    place.ok(&["check", "db"]);
    assert_eq!(sorted(&place.ok(&["export", "db"])), before);

    let done = place.run(&["load", "db", "bad.nt", "--skip-errors"]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(done.out.starts_with("loaded 2 statements"), "{}", done.out);
    assert!(done.err.contains("skipped 1 "), "{}", done.err);
    let report = std::fs::read_to_string(place.path("db.skipped.txt")).unwrap();
    assert!(report.starts_with("bad.nt:2:"), "{report}");
    let done = place.run(&["load", "db", "bad.nt", "--skip-errors", "--report", "-"]);
    assert!(done.err.contains("bad.nt:2:"), "{}", done.err);
    place.ok(&["load", "db", "bad.nt", "--skip-errors", "--report", "mine.txt"]);
    assert_eq!(std::fs::read_to_string(place.path("mine.txt")).unwrap(), report);
}

#[test]
fn exports_load_again() {
    let place = people();
    let quads = "<urn:a> <urn:b> \"x\"@en <urn:g> .\n_:n <urn:b> \"5\"^^<urn:t> .\n";
    place.file("quads.nq", quads);
    place.ok(&["load", "db", "quads.nq"]);
    let answer = sorted(&place.ok(&[
        "query",
        "db",
        "SELECT ?p ?o ?g { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }",
    ]));
    for format in ["nq", "trig"] {
        let name = format!("out.{format}");
        place.ok(&["export", "db", "--output", &name]);
        assert!(!place.path(&format!("{name}.part")).exists());
        let copy = format!("copy-{format}");
        place.ok(&["load", &copy, &name]);
        place.ok(&["check", &copy]);
        let query = "SELECT ?p ?o ?g { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }";
        assert_eq!(sorted(&place.ok(&["query", &copy, query])), answer, "{format}");
    }
    place.ok(&["load", "plain", "people.ttl"]);
    let rows = sorted(&place.ok(&["query", "plain", ALL]));
    for format in ["nt", "ttl"] {
        let text = place.ok(&["export", "plain", "--format", format]);
        let name = format!("plain.{format}");
        place.file(&name, &text);
        assert_eq!(sorted(&place.ok(&["query", "--data", &name, ALL])), rows, "{format}");
    }
    place.fails(&["export", "db", "--format", "csv"], 2, &["nq"]);
}

#[test]
fn info_counts_everything() {
    let place = people();
    let text = place.ok(&["info", "db"]);
    for part in ["statements", "http://example.org/knows", "bytes/statement", "in all"] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    let json: serde_json::Value = serde_json::from_str(&place.ok(&["info", "db", "--json"])).unwrap();
    assert_eq!(json["statements"], 11);
    assert_eq!(json["predicates"].as_array().unwrap().len(), 4);
    let knows =
        json["predicates"].as_array().unwrap().iter().find(|p| p["iri"] == "http://example.org/knows");
    assert_eq!(knows.unwrap()["statements"], 3);
    let parts = json["parts"].as_array().unwrap();
    let sum: u64 = parts.iter().map(|part| part["size_bytes"].as_u64().unwrap()).sum();
    assert_eq!(json["size_bytes"].as_u64(), Some(sum));
    assert!(place.ok(&["check", "db"]).contains("is sound: 11 statements"));
    for command in ["info", "check", "export", "shell"] {
        place.fails(&[command, "nowhere"], 1, &["there is no database in nowhere"]);
    }
}

#[test]
fn damage_is_found() {
    let place = people();
    let mut files = Vec::new();
    let mut directories = vec![place.path("db")];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { directories.push(path) } else { files.push(path) }
        }
    }
    let mut damaged = 0;
    for file in files {
        let bytes = std::fs::read(&file).unwrap();
        if bytes.is_empty() {
            continue;
        }
        let mut changed = bytes.clone();
        changed[bytes.len() / 2] ^= 0x40;
        std::fs::write(&file, &changed).unwrap();
        let done = place.run(&["check", "db"]);
        assert_eq!(done.code, 1, "{}: {done:?}", file.display());
        assert!(done.err.starts_with("error: ") && !done.err.contains("panicked"), "{}", done.err);
        std::fs::write(&file, &bytes).unwrap();
        damaged += 1;
    }
    assert!(damaged > 0);
    place.ok(&["check", "db"]);
}

#[test]
fn made_data_is_deterministic() {
    let place = Place::new();
    place.ok(&["generate", "power-law", "--vertices", "100", "--edges", "500", "--output", "a.nt"]);
    let again = place.ok(&["generate", "power-law", "--vertices", "100", "--edges", "500"]);
    assert_eq!(std::fs::read_to_string(place.path("a.nt")).unwrap(), again);
    assert_eq!(again.lines().count(), 500);
    place.fails(&["generate", "power-law", "--exponent", "1"], 2, &["above 2"]);
    place.ok(&["generate", "lubm", "--universities", "1", "--seed", "7", "--output", "lubm.nt"]);
    let lines = std::fs::read_to_string(place.path("lubm.nt")).unwrap().lines().count();
    assert!((80_000..140_000).contains(&lines), "{lines}");
}

#[test]
fn property_graphs_are_queried_in_sparql() {
    let place = Place::new();
    place.file("nodes.csv", "id,label,code,elev\n1,airport,VIE,600\n2,airport,GRZ,1115\n");
    place.file("edges.csv", "id,from,to,label,dist\n10,1,2,route,94\n");
    place.ok(&["load", "db", "nodes.csv", "edges.csv"]);
    place.ok(&["check", "db"]);
    let query = "PREFIX key: <urn:vervet:key:> PREFIX vertex: <urn:vervet:vertex:>
        SELECT ?code ?miles { vertex:1 key:route ?b ~ ?e . ?e key:dist ?miles . ?b key:code ?code }";
    assert_eq!(place.ok(&["query", "db", query, "--format", "csv"]), "code,miles\r\nGRZ,94\r\n");
}

#[test]
fn the_shell_reads_scripts() {
    let place = people();
    let script = "PREFIX : <http://example.org/>\nSELECT ?n {\n  :ann :name ?n ;\n    a :Person .\n};\n.format csv\n\
                  SELECT (COUNT(*) AS ?n) { ?p a ?class }\n\n.help\n.quit\nnever reached;\n";
    let done = place.run_with_input(&["shell", "db"], script);
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
    assert!(
        done.out.contains("Ann") && done.out.contains("n\r\n3\r\n") && done.out.contains(".explain"),
        "{}",
        done.out
    );
    // Well-known prefixes need no PREFIX line.
    let done =
        place.run_with_input(&["shell", "db"], ".format tsv\nSELECT (COUNT(*) AS ?n) { ?p rdf:type ?c };\n");
    assert_eq!(done.out, "?n\n\"3\"^^<http://www.w3.org/2001/XMLSchema#integer>\n", "{}", done.err);
    let done = place.run_with_input(&["shell", "db"], "SELECT { };\n");
    assert_eq!(done.code, 1);
    assert!(done.err.contains("error:"), "{}", done.err);
}

#[test]
fn the_demo_answers() {
    let text = Place::new().ok(&["demo"]);
    // Numbers that a script computed from the tables of nodes and edges.
    let numbers = ["9526", "310", "4322034", "1106304", "11180", "2163", "14472", "13355", "3,462"];
    let words = [
        "Kelvin R. Lawrence",
        "212,461 statements",
        "Singapore",
        "FRA",
        "1. ",
        "10. ",
        "Vienna",
        // Gremlin wrote, SPARQL read; SPARQL wrote, Gremlin read.
        "Auckland",
        "Daocheng",
        "rows",
    ];
    for part in numbers.iter().chain(&words) {
        assert!(text.contains(part), "no {part} in {text}");
    }
}

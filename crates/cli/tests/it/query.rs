//! `vervet query` through the built binary: each format byte by byte, parameters, data in memory, plans,
//! limits, and errors with positions.
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::common::{Place, people};

const NAMES: &str = "PREFIX : <http://example.org/>
SELECT ?p ?name ?age { ?p :name ?name OPTIONAL { ?p :age ?age } } ORDER BY ?p";

/// The output for a count of three.
const COUNTED: &str = "?n\n\"3\"^^<http://www.w3.org/2001/XMLSchema#integer>\n";

/// The error of a text in another language suggests the right command.
#[test]
fn texts_for_another_command_say_which() {
    let place = people();
    for text in ["g.V()", " g\n .V().count()"] {
        for option in ["--threads=1", "--explain", "--profile"] {
            place.fails(
                &["query", "db", text, option],
                1,
                &["hint: this looks like Gremlin", "--language gremlin"],
            );
        }
    }
    let done = place.run(&["query", "db", "graph"]);
    assert!(done.code == 1 && !done.err.contains("Gremlin"), "{done:?}");
    place.fails(&["query", "db", "INSERT DATA { <urn:a> <urn:b> 1 }"], 1, &["vervet update", "POST /update"]);
    place.fails(&["update", "db", "ASK {}"], 1, &["vervet query"]);
    place.fails(&["update", "db", "LOAD <file:///a.ttl>"], 1, &["LOAD is turned off", "vervet load"]);
    let lambda = ["query", "db", "--language", "gremlin", "g.V().map{it.get()}"];
    place.fails(&lambda, 1, &["lambdas are not part of gremlin-lang"]);
    place.file("one.nt", "<urn:a> <urn:b> <urn:c> .\n");
    assert!(place.ok(&["load", "one", "one.nt"]).starts_with("loaded 1 statement from "));
}

/// A format that cannot hold the result is an error, not another format without a word.
#[test]
fn formats_fit_the_form_of_the_query() {
    let place = people();
    let describe = "DESCRIBE <http://example.org/ann>";
    place.fails(
        &["query", "db", describe, "--format", "csv"],
        1,
        &["result is a graph", "choose nt, turtle"],
    );
    place.fails(&["query", "db", "SELECT * { ?s ?p ?o }", "--format", "nt"], 1, &["choose table, tsv, csv"]);
    place.fails(&["query", "db", "ASK {}", "--format", "turtle"], 1, &["truth value"]);
    // users 30: of the well-known prefixes Turtle declares those that it uses.
    let turtle = place.ok(&["query", "db", describe, "--format", "turtle"]);
    assert!(turtle.contains("Ann") && turtle.matches("@prefix").count() <= 2, "{turtle}");
    let construct = "CONSTRUCT { vertex:1 key:code 1 } {}";
    let turtle = place.ok(&["query", "db", construct, "--format", "turtle"]);
    assert!(turtle.contains("vertex:1 key:code 1") && turtle.contains("@prefix key:"), "{turtle}");
}

/// users 17: well-known prefixes need no declaration, and a `;` at the end is allowed, as in the shell.
#[test]
fn users_17_prefixes_and_semicolons_are_as_in_the_shell() {
    let place = people();
    place.ok(&["update", "db", "INSERT DATA { vertex:1 key:code 'VIE' ; a label:airport } ;"]);
    let query = "SELECT ?c { ?v a label:airport ; key:code ?c } LIMIT 1 ;";
    assert_eq!(place.ok(&["query", "db", query, "--format", "csv"]), "c\r\nVIE\r\n");
    assert!(place.ok(&["query", "db", query, "--explain"]).contains("key:code"));
    // A declaration of the query has precedence.
    let own = "PREFIX key: <urn:own:> SELECT ?c { ?v key:code ?c }";
    assert_eq!(place.ok(&["query", "db", own, "--format", "csv"]), "c\r\n");
    let table = place.ok(&["query", "db", "SELECT ?v { ?v key:code ?c }", "--format", "table"]);
    assert!(table.contains(" vertex:1\n"), "{table}");
    let declared = "PREFIX e: <http://example.org/> SELECT ?v { ?v e:name 'Ann' }";
    let table = place.ok(&["query", "db", declared, "--format", "table"]);
    assert!(table.contains(" e:ann\n"), "{table}");
}

/// An update that changes nothing tells the names that are not there.
#[test]
fn updates_warn_about_unknown_names() {
    let place = people();
    let done = place.run(&["update", "db", "DELETE WHERE { ?p <http://example.org/nam> ?n }"]);
    assert!(done.code == 0 && done.err.contains("did you mean <http://example.org/name>?"), "{done:?}");
    let done = place.run(&["query", "db", "g.V().groupCount().by('nosuch')", "--language", "gremlin"]);
    assert!(done.code == 0 && done.err.contains("nothing has the key \"nosuch\""), "{done:?}");
}

#[test]
fn tsv_to_the_letter() {
    let expected = "?p\t?name\t?age\n\
        <http://example.org/ann>\t\"Ann\"\t\"31\"^^<http://www.w3.org/2001/XMLSchema#integer>\n\
        <http://example.org/bob>\t\"Bob\"@en\t\"27\"^^<http://www.w3.org/2001/XMLSchema#integer>\n\
        <http://example.org/eve>\t\"Eve, \\\"the\\\" <3rd>\\tline\\nbreak\"\t\n";
    let place = people();
    assert_eq!(place.ok(&["query", "db", NAMES, "--format", "tsv"]), expected);
    // The default for a pipe.
    assert_eq!(place.ok(&["query", "db", NAMES]), expected);
}

#[test]
fn csv_to_the_letter() {
    let expected = "p,name,age\r\n\
        http://example.org/ann,Ann,31\r\n\
        http://example.org/bob,Bob,27\r\n\
        http://example.org/eve,\"Eve, \"\"the\"\" <3rd>\tline\nbreak\",\r\n";
    assert_eq!(people().ok(&["query", "db", NAMES, "--format", "csv"]), expected);
}

#[test]
fn json_follows_the_standard() {
    let text = people().ok(&["query", "db", NAMES, "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let integer = "http://www.w3.org/2001/XMLSchema#integer";
    let expected = serde_json::json!({
        "head": { "vars": ["p", "name", "age"] },
        "results": { "bindings": [
            { "p": { "type": "uri", "value": "http://example.org/ann" },
              "name": { "type": "literal", "value": "Ann" },
              "age": { "type": "literal", "value": "31", "datatype": integer } },
            { "p": { "type": "uri", "value": "http://example.org/bob" },
              "name": { "type": "literal", "value": "Bob", "xml:lang": "en" },
              "age": { "type": "literal", "value": "27", "datatype": integer } },
            { "p": { "type": "uri", "value": "http://example.org/eve" },
              "name": { "type": "literal", "value": "Eve, \"the\" <3rd>\tline\nbreak" } },
        ] },
    });
    assert_eq!(json, expected);
}

#[test]
fn xml_follows_the_standard() {
    let text = people().ok(&["query", "db", NAMES, "--format", "xml"]);
    for part in [
        "<sparql xmlns=\"http://www.w3.org/2005/sparql-results#\">",
        "<variable name=\"age\"/>",
        "<binding name=\"p\"><uri>http://example.org/ann</uri></binding>",
        "<literal xml:lang=\"en\">Bob</literal>",
        "<literal datatype=\"http://www.w3.org/2001/XMLSchema#integer\">31</literal>",
        "&lt;3rd&gt;",
    ] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    assert_eq!(text.matches("<result>").count(), 3);
}

#[test]
fn tables_are_for_people() {
    let text = people().ok(&["query", "db", NAMES, "--format", "table"]);
    assert!(text.contains("name") && text.contains("Ann") && text.contains("31"), "{text}");
}

#[test]
fn questions_have_answers_in_every_format() {
    let place = people();
    let ask = "ASK { ?s <http://example.org/knows> ?o }";
    assert!(place.ok(&["query", "db", ask]).contains("true"));
    let json: serde_json::Value =
        serde_json::from_str(&place.ok(&["query", "db", ask, "--format", "json"])).unwrap();
    assert_eq!(json, serde_json::json!({ "head": {}, "boolean": true }));
    assert!(place.ok(&["query", "db", ask, "--format", "xml"]).contains("<boolean>true</boolean>"));
}

#[test]
fn graphs_come_as_triples() {
    let place = people();
    let construct = "PREFIX : <http://example.org/> CONSTRUCT { ?b :knownBy ?a } WHERE { ?a :knows ?b }";
    let mut lines: Vec<String> = place.ok(&["query", "db", construct]).lines().map(str::to_owned).collect();
    lines.sort();
    let line = |a: &str, b: &str| {
        format!("<http://example.org/{b}> <http://example.org/knownBy> <http://example.org/{a}> .")
    };
    assert_eq!(lines, [line("ann", "bob"), line("ann", "eve"), line("bob", "eve")]);
    let turtle = place.ok(&["query", "db", construct, "--format", "turtle"]);
    place.file("again.ttl", &turtle);
    assert_eq!(place.ok(&["query", "--data", "again.ttl", "SELECT * { ?s ?p ?o }"]).lines().count(), 4);
    place.fails(&["query", "db", NAMES, "--format", "turtle"], 1, &["turtle", "hint:"]);
}

#[test]
fn queries_come_from_arguments_files_and_pipes() {
    let place = people();
    let count = "SELECT (COUNT(*) AS ?n) { ?s <http://example.org/knows> ?o }";
    place.file("count.rq", count);
    for arguments in [
        &["query", "db", count][..],
        &["query", "db", "--file", "count.rq"],
        &["query", count, "--data", "people.ttl"],
        &["query", "--data", "people.ttl", "--file", "count.rq"],
        &["query", "--data", "people.ttl", count],
    ] {
        assert_eq!(place.ok(arguments), COUNTED, "{arguments:?}");
    }
    for arguments in [
        &["query", "db"][..],
        &["query", "db", "-"],
        &["query", "db", "--file", "-"],
        &["query", "--data", "people.ttl"],
    ] {
        let done = place.run_with_input(arguments, count);
        assert_eq!((done.code, done.out.as_str()), (0, COUNTED), "{arguments:?}: {}", done.err);
    }
}

#[test]
fn parameters_are_terms() {
    let place = people();
    let query = "SELECT ?p { ?p <http://example.org/name> ?name }";
    let ann = "?p\n<http://example.org/ann>\n";
    let bob = "?p\n<http://example.org/bob>\n";
    assert_eq!(place.ok(&["query", "db", query, "--param", "name=\"Ann\""]), ann);
    assert_eq!(place.ok(&["query", "db", query, "--param", "?name=\"Bob\"@en"]), bob);
    assert_eq!(place.ok(&["query", "db", query, "--param", "name=\"nobody\""]), "?p\n");
    let query = "SELECT ?p { ?p <http://example.org/age> ?age }";
    assert_eq!(place.ok(&["query", "db", query, "--param", "age=31"]), ann);
    let query = "SELECT ?n { ?p <http://example.org/name> ?n }";
    assert_eq!(place.ok(&["query", "db", query, "--param", "p=<http://example.org/ann>"]), "?n\n\"Ann\"\n");
    place.fails(&["query", "db", query, "--param", "p=ann"], 2, &["is not a term"]);
    place.fails(&["query", "db", query, "--param", "other=5"], 1, &["error:", "other"]);
}

#[test]
fn plans_are_shown() {
    let place = people();
    let explain = place.ok(&["query", "db", NAMES, "--explain"]);
    assert!(explain.lines().count() > 1 && explain.contains("name"), "{explain}");
    assert!(!explain.contains("Ann"), "{explain}");
    let profile = place.ok(&["query", "db", NAMES, "--profile"]);
    assert!(profile.lines().count() > 1 && profile.contains("name"), "{profile}");
    let pattern = "{ ?p <http://example.org/name> ?n }";
    for form in ["ASK", "CONSTRUCT { ?p <urn:named> ?n }", "DESCRIBE ?p"] {
        let profile = place.ok(&["query", "db", &format!("{form} {pattern}"), "--profile"]);
        assert!(profile.contains("name"), "{profile}");
    }
}

#[test]
fn errors_point_at_the_mistake() {
    let place = people();
    let done = place.run(&["query", "db", "SELECT ?s WHERE {\n  ?s fof:name ?n\n}"]);
    assert_eq!((done.code, done.out.as_str()), (1, ""));
    let carets: Vec<&str> = done.err.lines().filter(|line| line.contains('^')).collect();
    assert_eq!(carets.len(), 1, "{}", done.err);
    assert!(done.err.starts_with("error: "), "{}", done.err);
    assert!(done.err.contains("line 2, column 6"), "{}", done.err);
    assert!(done.err.contains("\nhint: ") && done.err.contains("foaf"), "{}", done.err);
    place.fails(&["query", "db", "SELECT"], 1, &["error:", "line 1"]);
    place.fails(&["query", "db", "SELECT * { ?s ?p"], 1, &["error:", "line 1"]);
}

#[test]
fn usage_errors_have_their_own_exit_code() {
    let place = people();
    place.fails(&["query"], 2, &["database", "Usage"]);
    place.fails(&["query", "db", "ASK {}", "--format", "yaml"], 2, &["tsv"]);
    place.fails(&["query", "db", "ASK {}", "--file", "x.rq"], 2, &["twice"]);
    place.fails(&["query", "db", "ASK {}", "--data", "people.ttl"], 2, &["--data"]);
    place.fails(&["query", "db", "ASK {}", "--timeout", "soon"], 2, &["seconds"]);
    place.fails(&["query", "nowhere", "ASK {}"], 1, &["error: there is no database in nowhere", "hint:"]);
    place.fails(&["query", "db", "--file", "nothing.rq"], 1, &["nothing.rq"]);
    place.fails(&["query", "ASK {}", "--data", "nothing.ttl"], 1, &["nothing.ttl"]);
    assert_eq!(Place::new().run(&["--help"]).code, 0);
    let help = place.ok(&["query", "--help"]);
    assert!(help.contains("--param") && help.contains("Examples:"), "{help}");
}

#[test]
fn limits_end_queries() {
    let place = people();
    place.file("digits.ttl", &(0..60).map(|i| format!("<urn:{i}> <urn:p> {i} .\n")).collect::<String>());
    let product = "SELECT (COUNT(*) AS ?n) { ?a <urn:p> ?b . ?c <urn:p> ?d . ?e <urn:p> ?f . ?g <urn:p> ?h \
                   . ?i <urn:p> ?j . FILTER (?b + ?d + ?f + ?h + ?j = 1000) }";
    let arguments = ["query", product, "--data", "digits.ttl", "--timeout", "0.2"];
    let started = std::time::Instant::now();
    place.fails(&arguments, 1, &["error:"]);
    assert!(started.elapsed().as_secs() < 20, "took {:?}", started.elapsed());
    let all = "SELECT ?a ?c ?e { ?a <urn:p> ?b . ?c <urn:p> ?d . ?e <urn:p> ?f } ORDER BY ?f ?d ?b";
    place.fails(&["query", all, "--data", "digits.ttl", "--memory", "100K"], 1, &["error:", "memory"]);
}

#[test]
fn a_closed_pipe_ends_the_command_quietly() {
    use std::io::Read;
    let place = people();
    place.file("numbers.ttl", &(0..40_000).map(|i| format!("<urn:{i}> <urn:p> {i} .\n")).collect::<String>());
    let mut command = place.command(&["query", "SELECT * { ?s ?p ?o }", "--data", "numbers.ttl"]);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut head = [0; 16];
    child.stdout.take().unwrap().read_exact(&mut head).unwrap();
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(0));
    assert_eq!(String::from_utf8(done.stderr).unwrap(), "");
}

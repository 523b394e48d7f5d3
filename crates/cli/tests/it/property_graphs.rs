//! Property graphs in and out, through the built binary: GraphSON, GraphML, tables with a mapping, and the
//! generated social network.
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::common::Place;

const GRAPHSON: &str = r#"{"id":1,"label":"person","outE":{"knows":[{"id":7,"inV":2,"properties":{"since":2010}}]},"properties":{"name":[{"id":0,"value":"ann"}]}}
{"id":2,"label":"person","properties":{"name":[{"id":1,"value":"bob"}]}}
"#;

const FRIENDS: &str = "SELECT ?a ?b ?y { ?x <urn:vervet:key:knows> ?z ~ ?e . ?e <urn:vervet:key:since> ?y . ?x <urn:vervet:key:name> ?a . ?z <urn:vervet:key:name> ?b }";

#[test]
fn graphs_go_out_and_come_back() {
    let place = Place::new();
    place.file("graph.json", GRAPHSON);
    place.ok(&["load", "db", "graph.json"]);
    let expected = place.ok(&["query", "db", FRIENDS]);
    assert!(expected.contains("ann"), "{expected}");
    for (number, name) in ["out.json", "out.graphml", "out.graphson2", "out.nq"].iter().enumerate() {
        place.ok(&["export", "db", "--output", name]);
        let again = format!("again{number}");
        place.ok(&["load", &again, name]);
        assert_eq!(place.ok(&["query", &again, FRIENDS]), expected, "{name}");
    }
    let shown = place.ok(&["export", "db", "--format", "graphson"]);
    assert!(shown.starts_with(r#"{"id":{"@type":"g:Int64","@value":1},"label":"person""#), "{shown}");
    place.fails(&["export", "db", "--format", "csv"], 2, &["known are nt, nq, ttl, trig, graphson"]);
}

/// An export refuses file names under which it could not be loaded again.
#[test]
fn the_file_name_determines_the_format_of_an_export() {
    let place = Place::new();
    place.file("graph.json", GRAPHSON);
    place.ok(&["load", "db", "graph.json"]);
    for name in ["x.csv", "x.rdf", "x.xml", "x.jsonld", "x.PARQUET", "x.nq.gz", "x.graphml.zst"] {
        place.fails(&["export", "db", "--output", name], 2, &[name, "--format"]);
        assert!(!place.path(name).exists(), "{name}");
        place.ok(&["export", "db", "--output", name, "--format", "nq"]);
        assert!(place.path(name).exists(), "{name}");
    }
    let quads = place.ok(&["export", "db"]);
    for name in ["x", "x.txt", "x.nq", "-"] {
        let said = place.ok(&["export", "db", "--output", name]);
        let written = if name == "-" { said } else { std::fs::read_to_string(place.path(name)).unwrap() };
        assert_eq!(written, quads, "{name}");
    }
    // An empty graph is an empty GraphSON file, which loads.
    place.file("empty.ttl", "");
    place.ok(&["load", "empty", "empty.ttl"]);
    for name in ["e.graphson", "e.graphson2", "e.graphml", "e.ttl", "e.nq"] {
        place.ok(&["export", "empty", "--output", name]);
        let said = place.ok(&["load", "again", name]);
        assert!(said.starts_with("loaded 0 statements "), "{name}: {said}");
    }
}

#[test]
fn tables_are_shown_mapped_and_loaded() {
    let place = Place::new();
    place.file("people.csv", "key,name,boss\n1,ann,\n2,bob,1\n");
    place.fails(
        &["load", "db", "people.csv"],
        1,
        &["the header names neither the id", "--id", "key, name, boss"],
    );
    let shown = place.ok(&["load", "db", "people.csv", "--show-schema"]);
    assert!(shown.contains("a load would fail") && shown.contains("this is a guess"), "{shown}");
    place.file("people.csv", "id,name,boss\n1,ann,\n2,bob,1\n");
    let shown = place.ok(&["load", "db", "people.csv", "--show-schema"]);
    assert!(shown.contains("boss    property boss  int"), "{shown}");
    assert!(!place.path("db").exists(), "nothing is loaded");
    let printed = place.ok(&["load", "db", "people.csv", "--print-mapping"]);
    let line = r#"{ name = "boss", type = "int" }"#;
    assert!(printed.contains(line), "{printed}");
    place.file("mapping.toml", &printed.replace(line, r#"{ name = "boss", edge = "boss" }"#));
    place.ok(&["load", "db", "people.csv", "--mapping", "mapping.toml"]);
    let query = "SELECT ?n { ?x <urn:vervet:key:boss>/<urn:vervet:key:name> ?n }";
    assert!(place.ok(&["query", "db", query]).contains("ann"));
    place.file("mapping.toml", &printed.replace("type = \"int\"", "typ = \"int\""));
    let parts = ["error: mapping.toml: ", "(line ", "^"];
    place.fails(&["load", "db", "people.csv", "--mapping", "mapping.toml"], 1, &parts);
}

#[test]
fn a_folder_of_another_database_loads() {
    let place = Place::new();
    std::fs::create_dir(place.path("export")).expect("a folder");
    place.file("export/schema.cypher", "CREATE NODE TABLE `User` (`name` STRING, PRIMARY KEY(`name`));\n");
    place.file("export/copy.cypher", "COPY `User` (`name`) FROM \"User.csv\" (header=true);\n");
    place.file("export/User.csv", "a.name\nAnn\n");
    let said = place.ok(&["load", "db", "export"]);
    assert!(said.starts_with("loaded 2 statements "), "{said}");
    place.file("export/copy.cypher", "COPY `User` (`name`) FROM \"Users.csv\";\n");
    let parts = ["copy.cypher:1: there is no file Users.csv in the folder", "export the database again"];
    place.fails(&["load", "db", "export"], 1, &parts);
}

#[test]
fn the_generated_network_loads() {
    let place = Place::new();
    let said = place.ok(&["generate", "snb-like", "--persons", "40", "--seed", "3", "network"]);
    assert!(said.starts_with("40 persons, "), "{said}");
    let files: Vec<String> = std::fs::read_dir(place.path("network"))
        .unwrap()
        .map(|file| file.unwrap().path().display().to_string())
        .collect();
    assert_eq!(files.len(), 31);
    let mut arguments = vec!["load", "db", "--names-from-files"];
    arguments.extend(files.iter().map(String::as_str));
    place.ok(&arguments);
    let count = |text: &str| place.ok(&["query", "db", "--language", "gremlin", "--format", "json", text]);
    assert_eq!(count("g.V().hasLabel('Person').count()").trim(), "40");
    assert_eq!(count("g.V().hasLabel('Post').not(out('hasCreator')).count()").trim(), "0");
    assert_eq!(count("g.V().hasLabel('Person').not(out('isLocatedIn').out('isPartOf')).count()").trim(), "0");
}

//! Property-graph files: TinkerPop's graphs survive a load and an export unchanged (except for ids generated
//! by the database), and an exported file loads as the same graph.

use std::path::{Path, PathBuf};
use vervet::gremlin::Value;
use vervet::{Database, ErrorKind, Format, LoadOptions, Source};
use vervet_tinkerpop::graph_file::{GraphReader, GraphVertex};
use vervet_tinkerpop::rdf_values::vertex_name;
use vervet_tinkerpop::{Limits, graphson};

/// The folder of shared test data, if available.
fn shared(part: &str) -> Option<PathBuf> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = std::env::var_os("VERVET_TEST_DATA").map_or(beside, PathBuf::from).join(part);
    if !folder.is_dir() {
        eprintln!("skipped: no {part} at ../shared nor in VERVET_TEST_DATA");
        return None;
    }
    Some(folder)
}

fn load(source: Source, format: Option<Format>) -> vervet::Result<Database> {
    let database = Database::in_memory();
    database.load(vec![source], &LoadOptions { format, ..LoadOptions::default() })?;
    database.check().expect("whole");
    Ok(database)
}

fn load_file(path: &Path) -> Database {
    load(Source::path(path), None).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn load_text(name: &str, text: &str) -> vervet::Result<Database> {
    load(Source::bytes(name, text.as_bytes()), None)
}

fn export(database: &Database, format: Format) -> Vec<u8> {
    let mut text = Vec::new();
    database.export(format, &mut text).expect("it can be written");
    text
}

/// The vertices and edges of a file, sorted, with ids as names and without ids of properties.
fn dump(file: &[u8]) -> Vec<String> {
    let vertices: Vec<GraphVertex> = GraphReader::new(file).collect::<Result<_, _>>().expect("GraphSON");
    let id = |id: &Value| vertex_name(id).expect("an id");
    let mut lines = Vec::new();
    for vertex in &vertices {
        lines.push(format!("{} {}", id(&vertex.id), vertex.label));
        for property in &vertex.properties {
            let mut about: Vec<String> = property
                .detail
                .iter()
                .flat_map(|detail| &detail.properties)
                .map(|own| format!("{}={:?}", own.key, own.value))
                .collect();
            about.sort();
            lines.push(format!("{}.{}={:?} {about:?}", id(&vertex.id), property.label, property.value));
        }
        for (edge, source, target) in vertex.edges() {
            let mut own: Vec<String> = edge
                .properties
                .iter()
                .map(|property| format!("{}={:?}", property.key, property.value))
                .collect();
            own.sort();
            lines.push(format!("{} {}-{}->{} {own:?}", id(&edge.id), id(source), edge.label, id(target)));
        }
    }
    lines.sort();
    lines
}

fn dump_of(database: &Database) -> Vec<String> {
    dump(&export(database, Format::GraphSon))
}

/// The number of statements, whatever the edge numbers.
fn statement_count(database: &Database) -> u64 {
    database.snapshot().statement_count()
}

#[test]
fn the_graphs_of_tinkerpop_come_back() {
    let Some(folder) = shared("conformance/tinkerpop/graphs") else { return };
    for name in ["tinkerpop-classic", "tinkerpop-modern", "tinkerpop-crew", "tinkerpop-sink", "grateful-dead"]
    {
        let path = folder.join(format!("{name}.json"));
        let file = std::fs::read(&path).expect("it can be read");
        let database = load_file(&path);
        assert_eq!(dump_of(&database), dump(&file), "{name}");
        for format in [Format::GraphSon, Format::GraphSon2] {
            let again =
                load(Source::bytes("again", export(&database, format)), Some(format)).expect("it loads");
            assert_eq!(dump_of(&again), dump(&file), "{name}, {format:?}");
            assert_eq!(statement_count(&again), statement_count(&database));
        }
        // The wrapped form.
        let text = String::from_utf8(file.clone()).expect("text");
        let wrapped = format!("{{\"vertices\": [{}]}}", text.trim().lines().collect::<Vec<_>>().join(",\n"));
        assert_eq!(dump_of(&load_text("x.graphson", &wrapped).expect("it loads")), dump(&file), "{name}");
        if name == "tinkerpop-crew" {
            let mut out = Vec::new();
            let error = database.export(Format::GraphMl, &mut out).expect_err("it has meta-properties");
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        } else {
            let again = export(&database, Format::GraphMl);
            let again = load(Source::bytes("again.xml", again), None).expect("it loads");
            assert_eq!(dump_of(&again), dump(&file), "{name} as GraphML");
        }
    }
}

#[test]
fn graphml_and_graphson_of_one_graph_are_equal() {
    let Some(folder) = shared("conformance/tinkerpop/graphs") else { return };
    for name in ["tinkerpop-classic", "tinkerpop-modern", "grateful-dead"] {
        let [one, other] =
            ["xml", "json"].map(|extension| dump_of(&load_file(&folder.join(format!("{name}.{extension}")))));
        assert_eq!(one, other, "{name}");
    }
    let Some(folder) = shared("conformance/tinkerpop/graphml-variants") else { return };
    // Two of them declare made-up types.
    let files = [
        ("graph-no-edge-ids.xml", true),
        ("graph-types.xml", false),
        ("graph-types-bad.xml", false),
        ("tinkerpop-classic-normalized.xml", true),
        ("tinkerpop-classic-tp2.xml", true),
        ("tinkerpop-classic-unordered.xml", true),
        ("tinkerpop-no-edge-labels.xml", true),
    ];
    for (name, loads) in files {
        match load(Source::path(folder.join(name)), None) {
            Ok(database) => {
                assert!(loads, "{name}");
                let again = export(&database, Format::GraphMl);
                let again = load(Source::bytes("again.graphml", again), None).expect("it loads");
                assert_eq!(dump_of(&again), dump_of(&database), "{name}");
            }
            Err(error) => assert!(!loads && error.kind() == ErrorKind::Unsupported, "{name}: {error}"),
        }
    }
}

#[test]
fn air_routes_are_one_graph_in_every_form() {
    let Some(folder) = shared("data/air-routes") else { return };
    let graphson = load_file(&folder.join("air-routes.graphson3.json.zst"));
    let graphml = load_file(&folder.join("air-routes.graphml.zst"));
    let expected = dump_of(&graphson);
    assert_eq!(expected.iter().filter(|line| line.contains("->")).count(), 57_645);
    assert!(expected == dump_of(&graphml), "GraphML and GraphSON differ");
    let again =
        load(Source::bytes("again.graphml", export(&graphson, Format::GraphMl)), None).expect("it loads");
    assert!(expected == dump_of(&again), "GraphML does not bring it back");
    let again =
        load(Source::bytes("again.json", export(&graphson, Format::GraphSon)), None).expect("it loads");
    assert!(expected == dump_of(&again), "GraphSON does not bring it back");
}

/// Each TinkerPop sample as a property value: it survives, or is rejected if a property cannot have such a
/// value.
#[test]
fn every_type_of_value_survives() {
    let Some(folder) = shared("conformance/tinkerpop/io-samples/graphson-v3") else { return };
    let (mut kept, mut refused) = (0, 0);
    for file in std::fs::read_dir(folder).expect("it can be listed") {
        let path = file.expect("it can be listed").path();
        let sample = std::fs::read_to_string(&path).expect("text");
        let Ok(value) = graphson::read(sample.as_bytes(), Limits::default()) else { continue };
        let value_of = |sample: &str| {
            format!(
                r#"{{"id":1,"label":"a::b","properties":{{"k":[{{"id":0,"value":{sample},"properties":{{"m":{sample}}}}}]}},"outE":{{"e":[{{"id":2,"inV":1,"properties":{{"k":{sample}}}}}]}}}}"#
            )
        };
        match load_text("x.json", &value_of(&sample)) {
            Ok(database) if matches!(value, Value::Null | Value::Property(_)) => {
                // There are no null values; the reader unwraps the value of a property.
                assert!(!dump_of(&database).is_empty());
            }
            Ok(database) => {
                let about = format!("k={value:?}");
                let dump = dump_of(&database);
                assert!(dump.contains(&format!("2 1-e->1 {:?}", [&about])), "{}: {dump:?}", path.display());
                let meta = format!("m={value:?}");
                assert!(dump.contains(&format!("1.{about} {:?}", [&meta])), "{}: {dump:?}", path.display());
                let again = load(Source::bytes("again.json", export(&database, Format::GraphSon)), None);
                assert_eq!(dump_of(&again.expect("it loads")), dump, "{}", path.display());
                kept += 1;
            }
            Err(error) => {
                let message = error.to_string();
                assert!(message.contains("a property cannot have a value of the type"), "{message}");
                assert!(message.starts_with("x.json:"), "{message}");
                refused += 1;
            }
        }
    }
    assert!(kept > 30, "{kept} kept, {refused} refused");
}

/// Several labels, ids that are IRIs, blank nodes and UUIDs, values that are equal, plain statements of RDF.
#[test]
fn unusual_graphs_survive() {
    let text = r#"{"id":"http://e/a","label":"http://e/C::person","outE":{"http://e/p":[{"id":"<http://e/a> <http://e/p> <urn:vervet:vertex:x%20y>","inV":"x y"}],"knows":[{"inV":"_:b"},{"id":"<none>","inV":"_:b","properties":{"n":null,"w":{"@type":"g:Float","@value":0.1}}}]},"properties":{"k":[{"value":1},{"value":1},{"value":"1"}],"l":[{"value":[1,[2]]}]}}
        {"id":"x y","label":"vertex","properties":{"t":[{"value":"a\tb\r\n<&>\""}]}}
        {"id":{"@type":"g:UUID","@value":"41d2e28a-20a4-4ab0-b379-d810dede3786"},"label":""}
        {"id":"_:b","label":"vertex"}"#;
    let database = load_text("x.graphson", text).expect("it loads");
    let select = |query: &str| database.select(query).expect("it runs").len();
    assert_eq!(
        select("SELECT * { <http://e/a> a <http://e/C>, <urn:vervet:label:person> ; <http://e/p> ?x }"),
        1
    );
    assert_eq!(select("SELECT * { <http://e/a> <http://e/p> ?x ~ ?e }"), 0, "a plain statement");
    let count = |text: &str| database.gremlin(text).expect("it runs").len();
    assert_eq!(count("g.V('http://e/a').out('knows')"), 2);
    assert_eq!(count("g.V('http://e/a').properties('k')"), 3);
    assert_eq!(count("g.V('x y').in('http://e/p')"), 1);
    assert_eq!(count("g.V(UUID('41d2e28a-20a4-4ab0-b379-d810dede3786'))"), 1);
    let again =
        load(Source::bytes("again.json", export(&database, Format::GraphSon)), None).expect("it loads");
    // Blank nodes and edges without ids are renamed.
    let shape = |database: &Database| (statement_count(database), dump_of(database).len());
    assert_eq!(shape(&again), shape(&database));
    assert_eq!(again.gremlin("g.V('http://e/a').properties('k')").expect("it runs").len(), 3);

    let simple = r#"{"id":"x y","label":"a::b","outE":{"e f":[{"id":7,"inV":"x y","properties":{"k":"v","l":{"@type":"g:Int64","@value":1}}}]},"properties":{"k":[{"value":" a\tb\r\n<&>\" "}],"d":[{"value":{"@type":"gx:LocalDate","@value":"2020-02-29"}}],"labelE ":[{"value":true}]}}"#;
    let database = load_text("x.graphson", simple).expect("it loads");
    let again = export(&database, Format::GraphMl);
    let again = load(Source::bytes("again.xml", again), None).expect("it loads");
    assert_eq!(dump_of(&again), dump_of(&database));
    assert_eq!(statement_count(&again), statement_count(&database));
}

/// A double of a file is found by an equal integer and by a number written by Gremlin.
#[test]
fn numbers_are_found_whoever_wrote_them() {
    let database = load_text("x.csv", "id,h:double,f:float\n1,2,3\n").expect("it loads");
    database.gremlin("g.addV().property('h', 2.0d).property('f', 3.0f)").expect("it runs");
    for text in ["g.V().has('h', 2)", "g.V().has('h', 2.0d)", "g.V().has('f', 3)", "g.V().has('f', 3.0f)"] {
        assert_eq!(database.gremlin(text).expect("it runs").len(), 2, "{text}");
    }
    assert_eq!(database.select("SELECT DISTINCT ?h { ?v <urn:vervet:key:h> ?h }").expect("it runs").len(), 1);
}

#[test]
fn mistakes_have_places() {
    let good = r#"{"id":1,"label":"a"}"#;
    for (text, start, part) in [
        (format!("{good}\n{{\"id\":2,\"label\":}}"), "x.json:2:17", ""),
        (format!("{good}\n  {{\"label\":\"b\"}}"), "x.json:2:3", "expected a member \"id\""),
        (format!("{good}\n{{\"id\":[],\"label\":\"b\"}}"), "x.json:2", "cannot have an id of the type"),
        (format!("{good}\n{{\"id\":\"urn:vervet:edge:3\"}}"), "x.json:2", "is the name of an edge"),
        (format!("{good}\n{{\"id\":\"urn: \"}}"), "x.json:2", "is not an IRI"),
        (format!("{good}\n{{\"id\":\"_: \"}}"), "x.json:2", "is not a blank node"),
        (format!("{good}\n{{\"id\":3"), "x.json:2", "expected the rest of a vertex"),
        ("[]".to_owned(), "x.json:1:1", "expected a vertex"),
    ] {
        let error = load_text("x.json", &text).expect_err("it is malformed");
        assert_eq!(error.kind(), ErrorKind::Input, "{error}");
        let message = error.to_string();
        assert!(message.starts_with(start) && message.contains(part), "{message}");
    }
    // Skipping errors, where the rest of the file can be read.
    let database = Database::in_memory();
    let text = format!("{{\"id\":[]}}\n{good}\n");
    let options = LoadOptions { skip_errors: true, ..LoadOptions::default() };
    let report = database.load(vec![Source::bytes("x.json", text.into_bytes())], &options).expect("it loads");
    assert_eq!((report.statements, report.skipped), (1, 1));
    // An unknown type.
    let error =
        load_text("x.json", r#"{"id":1,"properties":{"k":[{"value":{"@type":"g:None","@value":1}}]}}"#);
    assert!(matches!(error.expect_err("not known").kind(), ErrorKind::Unsupported | ErrorKind::Input));
}

#[test]
fn xml_is_told_by_its_first_element() {
    let rdf = r#"<?xml version="1.0"?><!-- c --><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/"><rdf:Description rdf:about="http://e/s"><e:p>o</e:p></rdf:Description></rdf:RDF>"#;
    let graph = r#"<?xml version="1.0"?><!-- <rdf/> --><g:graphml xmlns:g="x"><graph><node id="1"/></graph></g:graphml>"#;
    for (text, statement) in [(rdf, "<http://e/s> ?p ?o"), (graph, "<urn:vervet:vertex:1> a ?o")] {
        let compressed = [text.as_bytes().to_vec(), zstd(text)];
        for (name, bytes) in ["x.xml", "x.xml.zst"].into_iter().zip(compressed) {
            let stream = Source::reader(name, std::io::Cursor::new(bytes.clone()));
            for source in [Source::bytes(name, bytes), stream] {
                let database = load(source, None).expect("it loads");
                let found = database.select(&format!("SELECT * {{ {statement} }}")).expect("it runs").len();
                assert_eq!(found, 1, "{text}");
            }
        }
    }
}

/// A zstd frame with one raw block, so that no compressor is needed.
fn zstd(text: &str) -> Vec<u8> {
    let length = u32::try_from(text.len()).expect("it is short");
    let mut frame = vec![0x28, 0xB5, 0x2F, 0xFD, 0xA0];
    frame.extend_from_slice(&length.to_le_bytes());
    frame.extend_from_slice(&((length << 3) | 1).to_le_bytes()[..3]);
    frame.extend_from_slice(text.as_bytes());
    frame
}

/// Gremlin has no type for triple terms: property-graph files contain them as the texts that `values()`
/// returns.
#[test]
fn triple_terms_are_texts_in_property_graphs() {
    let said = "<<( <http://e/a> <http://e/p> <<( _:b <http://e/q> \"x & \\\"y\\\"\"@en )>> )>>";
    let because = "<<( <http://e/x> <http://e/p> \"1\"^^<http://www.w3.org/2001/XMLSchema#integer> )>>";
    let data = format!(
        "<http://e/x> <urn:vervet:key:says> {said} .\n\
         <http://e/x> <urn:vervet:key:knows> <http://e/y> .\n\
         <http://e/e> <http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies> <<( <http://e/x> <urn:vervet:key:knows> <http://e/y> )>> .\n\
         <http://e/e> <urn:vervet:key:because> {because} .\n"
    );
    let database = load(Source::bytes("data.nt", data.as_bytes()), None).expect("loads");
    let texts = |database: &Database| {
        ["g.V().values('says')", "g.E().values('because')"]
            .map(|text| database.gremlin(text).expect("it runs").into_values().expect("there are few"))
    };
    let found = texts(&database);
    // The blank node has the label that the load gave it.
    let [Value::String(first)] = found[0].as_slice() else { panic!("{found:?}") };
    let label = first.split("_:").nth(1).and_then(|rest| rest.split(' ').next()).expect("a blank node");
    assert_eq!(&**first, said.replace("_:b", &format!("_:{label}")));
    assert_eq!(found[1], [Value::from(because)]);
    for format in [Format::GraphSon, Format::GraphSon2, Format::GraphMl] {
        let file = export(&database, format);
        let again = load(Source::bytes("graph", file), Some(format)).expect("it is read again");
        assert_eq!(texts(&again), found, "{format:?}");
        let ask = "ASK { ?x <urn:vervet:key:says> ?said FILTER(isLITERAL(?said) && DATATYPE(?said) = <http://www.w3.org/2001/XMLSchema#string>) }";
        assert!(matches!(again.query(ask).expect("it runs"), vervet::Answer::Boolean(true)), "{format:?}");
    }
}

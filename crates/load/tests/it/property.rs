//! Property graphs: GraphML and CSV yield equal statements, types are kept, errors have positions.

use proptest::prelude::*;
use std::path::PathBuf;
use vervet_load::testing::MapTarget;
use vervet_load::{LoadOptions, LoadReport, Source, load};
use vervet_model::{Error, ErrorKind, Tag};

fn options() -> LoadOptions<'static> {
    LoadOptions { threads: 2, ..LoadOptions::default() }
}

fn load_texts(
    texts: &[(&str, &str)],
    options: &LoadOptions<'_>,
) -> Result<(MapTarget, LoadReport, String), Error> {
    let mut target = MapTarget::default();
    let mut skipped = Vec::new();
    let sources = texts.iter().map(|(name, text)| Source::bytes(*name, text.as_bytes())).collect();
    let report = load(sources, options, &mut target, &mut skipped)?;
    Ok((target, report, String::from_utf8(skipped).expect("the report is text")))
}

fn lines(texts: &[(&str, &str)]) -> Vec<String> {
    short(load_texts(texts, &options()).expect("valid").0.lines())
}

/// Lines without namespaces, for readability.
fn short(lines: Vec<String>) -> Vec<String> {
    let shorten = |line: String| {
        line.replace("http://www.w3.org/2001/XMLSchema#", "")
            .replace("<urn:vervet:", "<")
            .replace("<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", "a")
    };
    lines.into_iter().map(shorten).collect()
}

fn error(name: &str, text: &str) -> Error {
    load_texts(&[(name, text)], &options()).expect_err("malformed")
}

/// The folder of test data, if present.
fn data() -> Option<PathBuf> {
    let folder = std::env::var_os("VERVET_TEST_DATA").map(PathBuf::from).or_else(|| {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
        ["../shared/data", "../../shared/data"].iter().map(|path| root.join(path)).find(|path| path.is_dir())
    });
    let folder = folder.map(|folder| if folder.join("data").is_dir() { folder.join("data") } else { folder });
    if folder.is_none() {
        eprintln!("skipped: no test data at ../shared nor in VERVET_TEST_DATA");
    }
    folder
}

const GRAPHML: &str = r#"<?xml version="1.0"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="labelV" for="node" attr.name="labelV" attr.type="string"/>
  <key id="labelE" for="edge" attr.name="labelE" attr.type="string"/>
  <key id="n" for="node" attr.name="name" attr.type="string"/>
  <key id="h" for="node" attr.name="height" attr.type="double"><default>1.50</default></key>
  <key id="w" for="edge" attr.name="weight" attr.type="float"/>
  <key id="y" for="edge" attr.name="yes" attr.type="boolean"/>
  <graph id="G" edgedefault="directed">
    <data key="n">of the graph</data>
    <node id="1"><data key="labelV">person</data><data key="n">A &amp; B &#233;<![CDATA[<x>]]></data></node>
    <node id="2 x"><data key="n"></data><data key="h">2</data></node>
    <edge id="e" source="1" target="2 x"><data key="labelE">knows</data><data key="w">0.5</data></edge>
    <edge source="1" target="2 x"><data key="y">TRUE</data></edge>
  </graph>
</graphml>"#;

#[test]
fn graphml_becomes_statements() {
    assert_eq!(
        lines(&[("x.graphml", GRAPHML)]),
        [
            "<vertex:1> a <label:person>",
            "<vertex:1> <key:name> \"A & B é<x>\"",
            "<vertex:1> <key:height> \"1.5E0\"^^<double>",
            "<vertex:2%20x> a <label:vertex>",
            "<vertex:2%20x> <key:name> \"\"",
            "<vertex:2%20x> <key:height> \"2.0E0\"^^<double>",
            "edge:0 <id> \"e\"",
            "edge:0 <key:weight> \"5.0E-1\"^^<float>",
            "edge:1 <key:yes> \"true\"^^<boolean>",
            "<vertex:1> <key:knows> <vertex:2%20x>  edge:0",
            "<vertex:1> <key:edge> <vertex:2%20x>  edge:1",
        ]
    );
}

#[test]
fn malformed_graphml_has_a_position() {
    let check = |old: &str, new: &str, start: &str, part: &str| {
        assert!(GRAPHML.contains(old));
        let text = GRAPHML.replace(old, new);
        let error = error("x.graphml", &text);
        assert!(error.to_string().starts_with(start), "{error}");
        assert!(error.to_string().contains(part), "{error}");
        text
    };
    check(">2</data>", ">two</data>", "x.graphml:12:", "\"two\" of key height is not a value of type double");
    check("key=\"w\"", "key=\"v\"", "x.graphml:13:", "undeclared key v");
    check("source=\"1\"", "", "x.graphml:13:", "has no attribute source");
    check("<node id=\"1\">", "<node>", "x.graphml:11:", "has no attribute id");
    check("&amp;", "&nbsp;", "x.graphml:11:", "entity &nbsp;");
    check("</node>", "</nod>", "x.graphml:11:", "");
    check("</graphml>", "", "x.graphml:", "");
    check("type=\"float\"", "type=\"point\"", "x.graphml:7:", "unknown type point");
    let text = check("<edge source", "<hyperedge/><edge source", "x.graphml:14:", "hyperedges");
    assert_eq!(error("x.graphml", &text).kind(), ErrorKind::Unsupported);
    for end in 300..GRAPHML.len() - 11 {
        if GRAPHML.is_char_boundary(end) {
            assert_eq!(error("x.graphml", &GRAPHML[..end]).kind(), ErrorKind::Input, "{end}");
        }
    }
    let text = GRAPHML.replace(">2</data>", ">two</data>");
    let skipping = LoadOptions { skip_errors: true, ..options() };
    let (target, report, skipped) = load_texts(&[("x.graphml", &text)], &skipping).unwrap();
    assert_eq!((report.skipped, target.statements.len()), (1, 8));
    assert!(skipped.starts_with("x.graphml:12:"), "{skipped}");
}

/// Input that would load as an empty graph is an error; valid empty files load.
#[test]
fn files_that_are_not_what_their_names_say_are_errors() {
    let rdf = "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'/>";
    let nothing = "the file has no element";
    for (name, text, part) in [
        ("x.graphml", "", nothing),
        ("x.graphml", " \n", nothing),
        ("x.graphml", "<?xml version='1.0'?><!-- nothing -->", nothing),
        ("x.graphml", "@prefix : <http://a/> .\n:a :b :c .", ""),
        ("x.graphml", "prefix a: nothing .", nothing),
        ("x.graphml", "<http://a/s> <http://a/p> \"o\" .\n", "x.graphml:1:"),
        ("x.graphml", rdf, "the first element is <rdf:RDF>, not <graphml>"),
        ("x.graphml", "<graphml/><a/>", "not <graphml>"),
        ("x.rdf", "", "x.rdf:1: the file has no element"),
        ("x.rdf", " \n\n", "x.rdf:3: the file has no element"),
        ("x.owl", "<?xml version='1.0'?>\n<!-- nothing -->", nothing),
        ("x.xml", "", nothing),
        ("x.rdf", ":a :b :c .", ""),
        ("x.jsonld", "", ""),
        ("x.csv", "", ""),
    ] {
        for threads in [1, 2] {
            let options = LoadOptions { threads, ..options() };
            let error = load_texts(&[(name, text)], &options).expect_err(name);
            assert_eq!(error.kind(), ErrorKind::Input, "{name} {text:?}: {error}");
            assert!(error.to_string().contains(part), "{name} {text:?}: {error}");
        }
    }
    for (name, text) in [
        ("x.graphml", "<graphml/>"),
        ("x.graphml", "<?xml version='1.0'?>\n<!-- <a> -->\n<g:graphml xmlns:g='http://a/'></g:graphml>\n"),
        ("x.rdf", rdf),
        ("x.ttl", ""),
        ("x.trig", "# nothing\n"),
        ("x.nt", "\n"),
        ("x.nq", ""),
        ("x.jsonld", "[]"),
        // An empty graph as TinkerPop writes it, one vertex per line.
        ("x.graphson", ""),
        ("x.graphson", "{\"vertices\":[]}"),
    ] {
        assert_eq!(lines(&[(name, text)]).len(), 0, "{name} {text:?}");
    }
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_text() {
    let statement = "<http://a/s> <http://a/p> \"o\" .\n";
    let rdf = "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:a='http://a/'><rdf:Description rdf:about='http://a/s'><a:p>o</a:p></rdf:Description></rdf:RDF>";
    for (name, text) in [
        ("x.nt", statement),
        ("x.nq", statement),
        ("x.ttl", statement),
        ("x.trig", statement),
        ("x.rdf", rdf),
        ("x.jsonld", r#"{"@id":"http://a/s","http://a/p":"o"}"#),
        ("x.graphml", GRAPHML),
        ("x.xml", GRAPHML),
        ("x.graphson", r#"{"id":1,"label":"a"}"#),
        ("x.csv", "id,name\n1,a\n"),
    ] {
        let marked = format!("\u{feff}{text}");
        let expected = lines(&[(name, text)]);
        assert!(!expected.is_empty());
        assert_eq!(lines(&[(name, &marked)]), expected, "{name}");
        // In every file, including a stream and a compressed file.
        let mut target = MapTarget::default();
        let sources = vec![
            Source::bytes(name, text.as_bytes()),
            Source::reader(name, std::io::Cursor::new(marked.clone())),
        ];
        load(sources, &options(), &mut target, &mut std::io::sink()).expect("valid");
        let compressed = zstd::encode_all(marked.as_bytes(), 3).expect("compresses");
        let mut target = MapTarget::default();
        load(vec![Source::bytes(name, compressed)], &options(), &mut target, &mut std::io::sink())
            .expect("valid");
        assert_eq!(short(target.lines()), expected, "{name}, compressed");
        // A second mark is data.
        let twice = format!("\u{feff}{marked}");
        if !matches!(name, "x.csv" | "x.rdf" | "x.graphml" | "x.xml" | "x.jsonld") {
            assert!(load_texts(&[(name, &twice)], &options()).is_err(), "{name}");
        }
    }
    assert_eq!(lines(&[("x.nt", "\u{feff}")]).len(), 0);
    let error = error("x.nt", "\u{feff}<http://a/s> x");
    assert!(error.to_string().starts_with("x.nt:1:"), "{error}");
}

#[test]
fn graphson_continues_after_a_malformed_vertex() {
    let text = concat!(
        r#"{"id":1,"label":"a","properties":{"name":[{"value":"ann"}]}}"#,
        "\n",
        r#"{"id":2,"label":"a","properties":{"name":"bare"}}"#,
        "\n",
        r#"{"label":"a"}"#,
        "\n",
        r#"{"id":3,"label":"a","outE":{"k":[{"inV":1}]}}"#,
        "\n",
    );
    let stopped = error("x.graphson", text);
    assert_eq!(stopped.message(), "x.graphson:2:42: expected an array, found \"bare\"");
    assert!(stopped.hint().is_some_and(|hint| hint.contains("--skip-errors")), "{stopped:?}");
    let skipping = LoadOptions { skip_errors: true, ..options() };
    let (target, report, skipped) = load_texts(&[("x.graphson", text)], &skipping).expect("skips");
    assert_eq!(
        (report.skipped, skipped.as_str()),
        (2, "x.graphson:2: expected an array, found \"bare\"\nx.graphson:3: expected a member \"id\"\n")
    );
    let without: String = text
        .lines()
        .filter(|line| !line.contains("bare") && line.contains("id"))
        .collect::<Vec<_>>()
        .join("\n");
    assert_eq!(short(target.lines()), lines(&[("x.graphson", &without)]));
    // In malformed JSON the start of the next vertex is unknown.
    let broken = text.replace("\"bare\"", "bare");
    let error = load_texts(&[("x.graphson", &broken)], &skipping).expect_err("broken");
    assert!(error.message().starts_with("x.graphson:2:42: expected an array, found \"bare"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    /// Damaged documents of every format yield statements or an error, never a panic; skipping errors never
    /// fails where stopping succeeds.
    #[test]
    fn damaged_documents_are_errors_at_worst(
        which in 0..7_usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3_u8), 1..6),
    ) {
        let documents: [(&str, &str); 7] = [
            ("x.graphml", GRAPHML),
            ("x.csv", "id,label,name,age\n1,a,\"x, y\",3\n2,b,,4\n"),
            ("x.csv", ":START_ID(A)|:END_ID(B)|:TYPE|w:double[]|d:date\n1|2|k|1;2.5|2020-01-01\n"),
            ("x.ttl", "@prefix : <http://a/> .\n:s :p [ :q (1 2.5 'x'@en) ; a :T ] , _:b .\n"),
            ("x.trig", "@prefix : <http://a/> .\n:g { :s :p \"\"\"long\ntext\"\"\" } { :s a :T }\n"),
            ("x.rdf", "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns='http://a/'>\n<rdf:Description rdf:about='http://a/s'><p rdf:parseType='Collection'><T/></p></rdf:Description></rdf:RDF>"),
            ("x.jsonld", r#"{"@context": {"p": "http://a/p"}, "@id": "http://a/s", "p": [{"@value": "t", "@language": "en"}, {"@list": [1, 2.5]}]}"#),
        ];
        let (name, text) = documents[which];
        let mut bytes = text.as_bytes().to_vec();
        for (at, byte, change) in changes {
            let at = at.index(bytes.len());
            match change {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte & 0x7F),
                _ => bytes.truncate(at.max(1)),
            }
        }
        let run = |skip_errors| {
            let options = LoadOptions { skip_errors, ..options() };
            load(vec![Source::bytes(name, &bytes[..])], &options, &mut MapTarget::default(), &mut std::io::sink())
        };
        let (stopping, skipping) = (run(false), run(true));
        if let Err(error) = &stopping {
            prop_assert!(matches!(error.kind(), ErrorKind::Input | ErrorKind::Unsupported), "{error:?}");
        }
        if let Ok(report) = stopping {
            prop_assert_eq!(skipping.expect("nothing to skip"), report);
        }
    }
}

#[test]
fn csv_becomes_statements() {
    let nodes = "id,label,name,age,score,ok,code\n1,person,\"Ann, B\",30,1,true,007\n2,\"person;robot\",,3000000000,2.5,false,8\n3,,x,,,,\n";
    let edges = "id,from,to,label,since\ne1,1,2,knows,2020\n,1,2,knows,\n,2,1,,2021\n";
    assert_eq!(
        lines(&[("n.csv", nodes), ("e.csv", edges)]),
        [
            "<vertex:1> a <label:person>",
            "<vertex:1> <key:name> \"Ann, B\"",
            "<vertex:1> <key:age> \"30\"^^<long>",
            "<vertex:1> <key:score> \"1.0E0\"^^<double>",
            "<vertex:1> <key:ok> \"true\"^^<boolean>",
            "<vertex:1> <key:code> \"007\"",
            "<vertex:2> a <label:person>",
            "<vertex:2> a <label:robot>",
            "<vertex:2> <key:age> \"3000000000\"^^<long>",
            "<vertex:2> <key:score> \"2.5E0\"^^<double>",
            "<vertex:2> <key:ok> \"false\"^^<boolean>",
            "<vertex:2> <key:code> \"8\"",
            "<vertex:3> a <label:vertex>",
            "<vertex:3> <key:name> \"x\"",
            "edge:0 <id> \"e1\"",
            "edge:0 <key:since> \"2020\"^^<int>",
            "edge:2 <key:since> \"2021\"^^<int>",
            "<vertex:1> <key:knows> <vertex:2>  edge:0",
            "<vertex:1> <key:knows> <vertex:2>  edge:1",
            "<vertex:2> <key:edge> <vertex:1>  edge:2",
        ]
    );
}

#[test]
fn csv_of_neo4j_and_of_ldbc_becomes_statements() {
    let nodes = "key:ID(P)|:LABEL|tags:string[]|born:date|n:long|:IGNORE\r\n1|A;B|x;y|2000-01-02|7|z\r\n";
    let edges = ":START_ID(P)|:END_ID(P)|:TYPE|at:datetime\n1|1|self|1000\n";
    assert_eq!(
        lines(&[("n.csv", nodes), ("e.csv", edges)]),
        [
            "<vertex:P:1> a <label:A>",
            "<vertex:P:1> a <label:B>",
            "<vertex:P:1> <key:key> \"1\"^^<int>",
            "<vertex:P:1> <key:tags> \"x\"",
            "<vertex:P:1> <key:tags> \"y\"",
            "<vertex:P:1> <key:born> \"2000-01-02\"^^<date>",
            "<vertex:P:1> <key:n> \"7\"^^<long>",
            "edge:0 <key:at> \"1970-01-01T00:00:01Z\"^^<dateTime>",
            "<vertex:P:1> <key:self> <vertex:P:1>  edge:0",
        ]
    );
    let named = LoadOptions { names_from_files: true, ..options() };
    let texts = [
        ("person_0_0.csv", "id|name|gender\n1|\"Ann|female\n"),
        ("person_email_emailaddress_0_0.csv", "Person.id|email\n1|a@x\n1|b@x\n"),
        ("person_knows_person_0_0.csv", "Person.id|Person.id|since\n1|1|5\n"),
        ("Person_likes_Post.csv", ":START_ID(Person)|:END_ID(Post)|n:LONG\n1|3|7\n"),
        ("Person_likes_Post_1.csv", "1|4|8\n"),
    ];
    assert_eq!(
        short(load_texts(&texts, &named).unwrap().0.lines()),
        [
            "<vertex:Person:1> a <label:Person>",
            "<vertex:Person:1> <key:id> \"1\"^^<int>",
            "<vertex:Person:1> <key:name> \"\"Ann\"".replace("\"\"", "\"\\\"").as_str(),
            "<vertex:Person:1> <key:gender> \"female\"",
            "<vertex:Person:1> <key:email> \"a@x\"",
            "<vertex:Person:1> <key:email> \"b@x\"",
            "edge:0 <key:since> \"5\"^^<int>",
            "<vertex:Person:1> <key:knows> <vertex:Person:1>  edge:0",
            "edge:1 <key:n> \"7\"^^<long>",
            "<vertex:Person:1> <key:likes> <vertex:Post:3>  edge:1",
            "edge:2 <key:n> \"8\"^^<long>",
            "<vertex:Person:1> <key:likes> <vertex:Post:4>  edge:2",
        ]
    );
}

#[test]
fn malformed_csv_has_a_position() {
    for (text, start, part) in [
        ("id,label,n:int\n1,a,2\n2,b,x\n", "x.csv:3:5: ", "\"x\" in column n is not a value of type int"),
        ("id,label\n1,a\n2\n", "x.csv:3:1: ", "1 fields, the header 2"),
        ("id,label\n,a\n", "x.csv:2:1: ", "lacks its id"),
        ("from,to\n1,\n", "x.csv:2:1: ", "lacks its source or its target"),
        ("name,age\n", "x.csv:1: ", "neither the id"),
        ("", "x.csv:1: ", "the file is empty"),
        ("id,x:shape\n", "x.csv:1: ", "unknown type shape"),
    ] {
        let error = error("x.csv", text);
        assert!(error.to_string().starts_with(start), "{error}");
        assert!(error.to_string().contains(part), "{error}");
    }
    let skipping = LoadOptions { skip_errors: true, ..options() };
    let text = "id,label,n:int\n1,a,2\n2,b\n3,c,x\n4,d,5\n";
    let (target, report, skipped) = load_texts(&[("x.csv", text)], &skipping).unwrap();
    assert_eq!((report.skipped, report.statements, target.statements.len()), (2, 4, 4));
    assert_eq!(skipped.lines().count(), 2);
    let bytes = b"id,label\n1,\xFF\n".as_slice();
    let error = load(
        vec![Source::bytes("x.csv", bytes)],
        &options(),
        &mut MapTarget::default(),
        &mut std::io::sink(),
    )
    .expect_err("not UTF-8");
    assert!(error.to_string().starts_with("x.csv:2:1: field 2 is not UTF-8"), "{error}");
}

#[test]
fn a_stream_can_be_loaded_and_all_goes_to_the_named_graph() {
    let graph = Some(oxrdf::NamedNode::new_unchecked("http://a/g"));
    let options = LoadOptions { graph, ..options() };
    let mut target = MapTarget::default();
    let source = Source::reader("x.csv", &b"from,to,w\n1,2,3\n"[..]);
    load(vec![source], &options, &mut target, &mut std::io::sink()).unwrap();
    assert_eq!(
        short(target.lines()),
        ["<vertex:1> <key:edge> <vertex:2> <http://a/g> edge:0", "edge:0 <key:w> \"3\"^^<int> <http://a/g>"]
    );
}

/// Sorted statements as lines, with edges named by their external ids instead of their numbers.
fn comparable(target: &MapTarget) -> Vec<String> {
    let mut names = std::collections::HashMap::new();
    for statement in &target.statements {
        if target.text(statement.predicate) == "<urn:vervet:id>" {
            names.insert(statement.subject, target.text(statement.object));
        }
    }
    let text = |id: vervet_model::Id| match id.tag() {
        Tag::Edge => names[&id].clone(),
        _ => target.text(id),
    };
    let mut lines: Vec<String> = target
        .statements
        .iter()
        .map(|s| format!("{} {} {} {}", text(s.subject), text(s.predicate), text(s.object), text(s.edge)))
        .collect();
    lines.sort_unstable();
    lines
}

#[test]
fn air_routes_are_the_same_from_graphml_and_csv() {
    let Some(folder) = data().map(|data| data.join("air-routes")) else { return };
    let run = |files: &[&str]| {
        let mut target = MapTarget::default();
        let sources = files.iter().map(|file| Source::path(folder.join(file))).collect();
        load(sources, &options(), &mut target, &mut std::io::sink()).unwrap();
        comparable(&target)
    };
    let graphml = run(&["air-routes.graphml.zst"]);
    let csv = run(&["air-routes-nodes.csv", "air-routes-edges.csv"]);
    let count = |part: &str| csv.iter().filter(|line| line.contains(part)).count();
    assert_eq!(count("22-rdf-syntax-ns#type> <urn:vervet:label:airport>"), 3504);
    assert_eq!(count("22-rdf-syntax-ns#type>"), 3749);
    assert_eq!(count("<urn:vervet:key:route>"), 50_637);
    assert_eq!(count("<urn:vervet:key:contains>"), 7_008);
    assert_eq!(count("<urn:vervet:key:dist>"), 50_637);
    let only = |one: &[String], other: &[String]| {
        one.iter().filter(|line| other.binary_search(line).is_err()).take(5).cloned().collect::<Vec<_>>()
    };
    assert_eq!((only(&graphml, &csv), only(&csv, &graphml)), (vec![], vec![]));
    assert_eq!(graphml, csv);
}

/// The whole social network of data/ldbc-snb, whose files have typed headers, are partly continuations, and
/// have no quotes.
#[test]
fn the_social_network_has_its_known_counts() {
    let Some(archive) = data().map(|data| data.join("ldbc-snb/sf0.1-rebuilt.tar.zst")) else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let unpacked = std::process::Command::new("tar")
        .arg("--zstd")
        .arg("-xf")
        .arg(&archive)
        .arg("-C")
        .arg(folder.path())
        .status();
    if !unpacked.is_ok_and(|status| status.success()) {
        eprintln!("skipped: no tar that reads zstd");
        return;
    }
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder.path())
        .expect("the folder is there")
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "csv"))
        .collect();
    files.sort_unstable();
    let options = LoadOptions { names_from_files: true, ..options() };
    let mut target = MapTarget::default();
    let sources = files.into_iter().map(Source::path).collect();
    load(sources, &options, &mut target, &mut std::io::sink()).unwrap();
    let edges = target.statements.iter().filter(|statement| statement.edge.is_bound()).count();
    let is_type = |id| target.text(id) == "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>";
    let vertices = target.statements.iter().filter(|statement| is_type(statement.predicate)).count();
    assert_eq!((vertices, edges), (327_588, 1_454_147));
}

#[test]
fn shared_rdf_files_have_their_known_counts() {
    let Some(data) = data() else { return };
    for (file, count) in [
        ("rdf/music.ttl", 18_157),
        ("rdf/schemaorg-30.0-current-https.nq", 17_949),
        ("air-routes/air-routes.nt.zst", 302_978),
        ("lubm/lubm-1.nt.zst", 100_543),
    ] {
        let mut target = MapTarget::default();
        let report =
            load(vec![Source::path(data.join(file))], &options(), &mut target, &mut std::io::sink()).unwrap();
        assert_eq!(report.statements, count, "{file}");
        let graphs = target.statements.iter().filter(|statement| statement.graph.is_bound()).count();
        assert_eq!(graphs > 0, file.ends_with("nq"));
    }
}

/// Rows reuse ids of previous rows: ends, labels, keys. Compared with each row loaded separately.
#[test]
fn rows_do_not_depend_on_previous_rows() {
    let ends = [
        ("1", "2"),
        ("1", "2"),
        ("1", "3"),
        ("2", "3"),
        ("3", "3"),
        ("a b", "3"),
        ("a b", "1"),
        ("1", "a b"),
    ];
    let labels = ["", "x", "", "y z", "y z", "", "x", ""];
    let (mut text, mut expected) = ("from,to,label,n:long\n".to_owned(), Vec::new());
    for (edge, ((from, to), label)) in ends.iter().zip(labels).enumerate() {
        text.push_str(&format!("{from},{to},{label},{edge}\n"));
        let encoded = |name: &str| name.replace(' ', "%20");
        let label = encoded(if label.is_empty() { "edge" } else { label });
        expected.push(format!(
            "<vertex:{}> <key:{label}> <vertex:{}>  edge:{edge}",
            encoded(from),
            encoded(to)
        ));
        expected.push(format!("edge:{edge} <key:n> \"{edge}\"^^<long>"));
    }
    for (row, labels) in ["", "A", "", "B;C", "", "A"].iter().enumerate() {
        if row == 0 {
            text.push('\0');
            text.push_str("id,label\n");
        }
        text.push_str(&format!("v{row},{labels}\n"));
        let labels = if labels.is_empty() { "vertex" } else { labels };
        expected.extend(labels.split(';').map(|label| format!("<vertex:v{row}> a <label:{label}>")));
    }
    let (edges, vertices) = text.split_once('\0').expect("two files");
    let (mut found, mut expected) = (lines(&[("e.csv", edges), ("v.csv", vertices)]), expected);
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}

/// Rows are read in advance; errors have the position of their row, and all other rows are loaded, including
/// long ones.
#[test]
fn malformed_rows_are_reported_in_order() {
    let mut text = ":START_ID(V),:END_ID(V),n:int,t:string\n".to_owned();
    let (mut reported, mut expected) = (Vec::new(), 0);
    for row in 0..100 {
        let line = row + 2;
        match row % 11 {
            5 => {
                text.push_str(&format!("{row},{},x,\n", row % 3));
                reported.push(format!("e.csv:{line}:"));
            }
            7 => {
                text.push_str(&format!("{row},{}\n", row % 3));
                reported.push(format!("e.csv:{line}:"));
            }
            kind => {
                let long = if kind == 3 { "y".repeat(70_000) } else { String::new() };
                text.push_str(&format!("{row},{},{row},{long}\n", row % 3));
                expected += if kind == 3 { 3 } else { 2 };
            }
        }
    }
    let options = LoadOptions { skip_errors: true, ..options() };
    let (target, report, skipped) =
        load_texts(&[("e.csv", &text)], &options).expect("errors are passed over");
    let lines: Vec<&str> = skipped.lines().collect();
    assert_eq!(lines.len(), reported.len());
    for (line, reported) in lines.iter().zip(&reported) {
        assert!(line.starts_with(reported), "{line} is not at {reported}");
    }
    assert_eq!((report.skipped, report.statements), (reported.len() as u64, expected));
    assert_eq!(target.statements.len() as u64, expected);
    let found = short(target.lines());
    assert!(
        found.iter().any(|line| line.starts_with("<vertex:V:99> <key:edge> <vertex:V:0>")),
        "the last row"
    );
}

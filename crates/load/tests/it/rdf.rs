//! RDF formats: the fast path accepts exactly the language of the library, results do not depend on the
//! number of threads, errors have positions.

use oxrdf::{BlankNode, NamedNode, NamedOrBlankNode, Quad, Term};
use proptest::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use vervet_load::testing::MapTarget;
use vervet_load::{Format, LoadOptions, LoadReport, Progress, Source, load};
use vervet_model::{Error, ErrorKind};

fn options(threads: usize) -> LoadOptions<'static> {
    LoadOptions { threads, ..LoadOptions::default() }
}

fn load_text(
    name: &str,
    text: &[u8],
    options: &LoadOptions<'_>,
) -> Result<(MapTarget, LoadReport, String), Error> {
    let mut target = MapTarget::default();
    let mut skipped = Vec::new();
    let report = load(vec![Source::bytes(name, text)], options, &mut target, &mut skipped)?;
    Ok((target, report, String::from_utf8(skipped).expect("the report is text")))
}

fn lines(name: &str, text: &str) -> Vec<String> {
    load_text(name, text.as_bytes(), &options(1)).expect("valid").0.lines()
}

fn error(name: &str, text: &str) -> String {
    let error = load_text(name, text.as_bytes(), &options(2)).expect_err("malformed");
    assert_eq!(error.kind(), ErrorKind::Input);
    error.to_string()
}

/// The library's result for one line, in the form of `MapTarget::lines`; `None` if it is malformed.
fn by_library(line: &str, with_graph: bool) -> Option<Vec<String>> {
    let quads: Result<Vec<Quad>, _> = if with_graph {
        oxttl::NQuadsParser::new().for_slice(line).collect()
    } else {
        let triples = oxttl::NTriplesParser::new().for_slice(line);
        triples.map(|triple| triple.map(|triple| triple.in_graph(oxrdf::GraphName::DefaultGraph))).collect()
    };
    let scoped = |node: BlankNode| BlankNode::new_unchecked(format!("f0_{}", node.as_str()));
    let text = |quad: Quad| {
        let subject = match quad.subject {
            NamedOrBlankNode::BlankNode(node) => scoped(node).into(),
            subject => subject,
        };
        let object = match quad.object {
            Term::BlankNode(node) => scoped(node).into(),
            object => object,
        };
        let graph = match quad.graph_name {
            oxrdf::GraphName::DefaultGraph => String::new(),
            oxrdf::GraphName::NamedNode(node) => format!(" {node}"),
            oxrdf::GraphName::BlankNode(node) => format!(" {}", scoped(node)),
        };
        format!("{subject} {} {object}{graph}", quad.predicate)
    };
    quads.ok().map(|quads| quads.into_iter().map(text).collect())
}

fn check_line(line: &str, with_graph: bool) {
    if line.contains("<<") || line.contains("reifies") {
        return;
    }
    let name = if with_graph { "x.nq" } else { "x.nt" };
    // Twice in one block: the second occurrence finds every token in the index. Not at the start of the file,
    // where a byte order mark is skipped.
    let text = format!("\n{line}\n{line}\n");
    let ours = load_text(name, text.as_bytes(), &options(1));
    match (by_library(line, with_graph), ours) {
        (Some(expected), Ok((target, ..))) => {
            assert_eq!(target.lines(), [&expected[..], &expected[..]].concat(), "{line:?}")
        }
        // The library also ends a line at a lone carriage return.
        (None, Err(error)) if line.contains('\r') => assert!(error.to_string().starts_with(name), "{error}"),
        (None, Err(error)) => assert!(error.to_string().starts_with(&format!("{name}:2:")), "{error}"),
        (expected, ours) => {
            panic!("{line:?}: library {expected:?}, here {:?}", ours.map(|ours| ours.0.lines()))
        }
    }
}

#[test]
fn lines_are_read_as_by_the_library() {
    let lines = [
        "<http://a/b> <http://a/c> <http://a/d> .",
        "<http://a/b>\t<http://a/c>  \"d\"\t.",
        "<http://a/b><http://a/c><http://a/d>.",
        "_:x <http://a/c> _:y-z .",
        "_:x. <http://a/c> _:y .",
        "_:x <http://a/c> _:y.",
        "_:-x <http://a/c> _:y .",
        "_: <http://a/c> _:y .",
        "_:é <http://a/c> _:y·z .",
        "<http://a/b> <http://a/c> \"d\\n\\u00e9\\\"\" .",
        "<http://a/\\u00e9> <http://a/c> \"d\" .",
        "<http://a/é> <http://a/ü> \"日本\"@ja .",
        "<http://a/b> <http://a/c> \"d\"@EN-us .",
        "<http://a/b> <http://a/c> \"d\"@en-us .",
        "<http://a/b> <http://a/c> \"d\"@en--ltr .",
        "<http://a/b> <http://a/c> \"d\"@en--xxx .",
        "<http://a/b> <http://a/c> \"d\"@english .",
        "<http://a/b> <http://a/c> \"d\"@abcd .",
        "<http://a/b> <http://a/c> \"d\"@a .",
        "<http://a/b> <http://a/c> \"d\"@ .",
        "<http://a/b> <http://a/c> \"1\"^^<http://www.w3.org/2001/XMLSchema#integer> .",
        "<http://a/b> <http://a/c> \"1\"^^<http://www.w3.org/2001/XMLSchema#string> .",
        "<http://a/b> <http://a/c> \"1\"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString> .",
        "<http://a/b> <http://a/c> \"1\"^^<x> .",
        "<http://a/b> <http://a/c> \"1\" ^^ <http://a/d> .",
        "<http://a/b> <http://a/c> \"1\"^<http://a/d> .",
        "<http://a/b> <http://a/c> \"d\" . # note",
        "<http://a/b> <http://a/c> \"d\" .# note",
        "  <http://a/b> <http://a/c> \"d\" .   ",
        "<http://a/b> <http://a/c> \"d\" .\r",
        "<http://a/b> <http://a/c> \"d\" .\r<http://a/b> <http://a/c> \"e\" .",
        "<http://a/b> <http://a/c> \"d\r\" .",
        "<http://a/b> <http://a/c> \"d\\r\" .",
        "<http://a/b> <http://a/c> \"a\\\\b\" .",
        "<http://a/b> <http://a/c> \"a\\b\" .",
        "# only a note",
        "",
        "   ",
        "\r",
        "<http://a/b> <http://a/c> .",
        "<http://a/b> \"c\" <http://a/d> .",
        "<b> <http://a/c> <http://a/d> .",
        "<http://a/ b> <http://a/c> <http://a/d> .",
        "<http://a/%zz> <http://a/c> <http://a/d> .",
        "<http://a/[> <http://a/c> <http://a/d> .",
        "<http://[::1]/> <http://a/c> <http://a/d> .",
        "<http://a:port/> <http://a/c> <http://a/d> .",
        "<mailto:x@y> <urn:x:y> <a:> .",
        "<1a:b> <urn:x:y> <a:> .",
        "<http://a/b> <http://a/c> <http://a/d> <http://a/g> .",
        "<http://a/b> <http://a/c> \"d\" _:g .",
        "<http://a/b> <http://a/c> \"d\" \"g\" .",
        "<http://a/b> <http://a/c> \"d\"@en <http://a/g>.",
        "<http://a/b> <http://a/c> <http://a/d> . .",
        "<http://a/b> <http://a/c> <http://a/d>",
        "<http://a/b> <http://a/c> <http://a/d> .9",
        "<http://a/b> a <http://a/d> .",
        "<http://a/b> <http://a/c> 'd' .",
        "\u{feff}<http://a/b> <http://a/c> <http://a/d> .",
        "<http://a/b> <http://a/c> \"unfinished",
        "<http://a/b> <http://a/c",
    ];
    for line in lines {
        check_line(line, false);
        check_line(line, true);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(3000) })]

    /// Mutations of valid lines: insertion, deletion and duplication of significant characters.
    #[test]
    fn mutated_lines_are_read_as_the_library_reads_them(
        base in 0..6_usize,
        changes in prop::collection::vec((0..3_u8, any::<prop::sample::Index>(), 0..40_usize), 0..4),
        with_graph: bool,
    ) {
        let base = [
            "<http://a.b/c#d> <http://e/f?g=1> <urn:h:i> .",
            "_:b0 <http://e/f> \"text here\" .",
            "<http://a.b/c> <http://e/f> \"chat\"@fr .",
            "<http://a.b/c> <http://e/f> \"1.5\"^^<http://www.w3.org/2001/XMLSchema#decimal> .",
            "_:a <http://e/f> _:b <http://g/h> .",
            "<http://a.b/c> <http://e/f> \"x\\ty\\u0041\" _:g .",
        ][base];
        let pieces: Vec<char> = "<>\"\\_:.@^# \t\r-aZ0é日%{}|`[]/?'()\u{0}\u{7f}\u{b7}\u{e000}\u{10ffff}+,;=&".chars().collect();
        let mut line: Vec<char> = base.chars().collect();
        for (change, at, piece) in changes {
            let at = at.index(line.len());
            match change {
                0 => line.insert(at, pieces[piece % pieces.len()]),
                1 => { line.remove(at); }
                _ => line[at] = pieces[piece % pieces.len()],
            }
        }
        check_line(&line.into_iter().collect::<String>(), with_graph);
    }
}

#[test]
fn bytes_that_are_not_utf8_are_errors() {
    for text in [
        &b"<http://a/\xFF> <http://a/c> <http://a/d> .\n"[..],
        b"<http://a/b> <http://a/c> \"\xC3\" .\n",
        b"\xFF\n",
    ] {
        let error = load_text("x.nt", text, &options(1)).expect_err("not UTF-8");
        assert_eq!(error.kind(), ErrorKind::Input, "{error}");
        assert!(error.to_string().starts_with("x.nt:1:"), "{error}");
    }
}

/// Enough statements for dozens of blocks, with repeated terms, escapes and blank nodes.
fn large(with_errors: bool) -> String {
    let mut text = String::new();
    for i in 0..60_000_u64 {
        let (s, o) = (i / 7, i * 7919 % 5003);
        match i % 11 {
            0 => text.push_str(&format!("_:b{s} <http://a.example/p{}> _:b{o} .\n", i % 5)),
            1 => {
                text.push_str(&format!("<http://a.example/s{s}> <http://a.example/q> \"line\\n{o}\"@EN .\n"))
            }
            2 => text.push_str(&format!(
                "<http://a.example/s{s}> <http://a.example/r> \"{o}\"^^<http://a.example/t> . # x\n"
            )),
            3 if with_errors && i % 1000 == 3 => text.push_str("<http://a.example/s> oops .\n"),
            _ => text.push_str(&format!(
                "<http://a.example/s{s}> <http://a.example/p{}> <http://a.example/s{o}> .\n",
                i % 5
            )),
        }
    }
    text
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let text = large(false).repeat(2);
    let expected = load_text("x.nt", text.as_bytes(), &options(1)).unwrap();
    assert_eq!(expected.1.statements, 120_000);
    for threads in [2, 3, 5] {
        let found = load_text("x.nt", text.as_bytes(), &options(threads)).unwrap();
        assert_eq!(found.1, expected.1);
        // Ids, not texts: the order of first occurrence is the same.
        assert_eq!(found.0.statements, expected.0.statements);
    }
}

#[test]
fn skipped_lines_are_reported_with_their_positions() {
    let text = large(true);
    let mut reports = Vec::new();
    for threads in [1, 4] {
        let options = LoadOptions { skip_errors: true, ..options(threads) };
        let (_, report, skipped) = load_text("dir/x.nt", text.as_bytes(), &options).unwrap();
        let expected = text.lines().enumerate().filter(|(_, line)| line.contains("oops"));
        let mut count = 0;
        for ((number, _), skipped) in expected.zip(skipped.lines()) {
            assert!(skipped.starts_with(&format!("dir/x.nt:{}:", number + 1)), "{skipped}");
            count += 1;
        }
        assert!(count > 3);
        assert_eq!((report.skipped, report.statements), (count, 60_000 - count));
        reports.push(skipped);
    }
    assert_eq!(reports[0], reports[1]);
    let first = text.lines().position(|line| line.contains("oops")).unwrap() + 1;
    assert!(error("x.nt", &text).starts_with(&format!("x.nt:{first}:22: ")), "{}", error("x.nt", &text));
}

#[test]
fn every_format_gives_the_same_statements() {
    let expected = ["<http://a/s> <http://a/p> <http://a/o>", "<http://a/s> <http://a/p> \"t\"@en"];
    let check = |name: &str, text: &str| {
        let mut lines = lines(name, text);
        lines.sort_unstable_by_key(|line| line.contains('"'));
        assert_eq!(lines, expected, "{name}");
    };
    check("x.nt", "<http://a/s> <http://a/p> <http://a/o> .\n<http://a/s> <http://a/p> \"t\"@en .");
    check("x.nq", "<http://a/s> <http://a/p> <http://a/o> .\n<http://a/s> <http://a/p> \"t\"@en .");
    check("x.ttl", "@prefix : <http://a/> . :s :p :o, 't'@en .");
    check("x.trig", "@prefix : <http://a/> . { :s :p :o, 't'@en }");
    check(
        "x.rdf",
        "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns='http://a/'>\n\
         <rdf:Description rdf:about='http://a/s'><p rdf:resource='http://a/o'/>\n\
         <p xml:lang='en'>t</p></rdf:Description></rdf:RDF>",
    );
    check(
        "x.jsonld",
        r#"{"@id": "http://a/s", "http://a/p": [{"@id": "http://a/o"}, {"@value": "t", "@language": "en"}]}"#,
    );
    let text = "<http://a/s> <http://a/p> <http://a/o> .\n<http://a/s> <http://a/p> \"t\"@en .";
    let zst = zstd::encode_all(text.as_bytes(), 1).unwrap();
    for name in ["x.nt.zst", "x.nt"] {
        assert_eq!(load_text(name, &zst, &options(2)).unwrap().0.lines(), expected);
    }
}

#[test]
fn labels_of_blank_nodes_are_valid_in_every_format() {
    // JSON-LD permits a colon in a label, N-Triples and Turtle do not.
    let text = r#"[{"@id": "_:a:b", "http://a/p": [{"@id": "_:c"}, {"@id": "_:a:b"}, {"@id": "_:d:"}]}]"#;
    let (target, ..) = load_text("x.jsonld", text.as_bytes(), &options(1)).unwrap();
    let lines = target.lines();
    assert_eq!(lines.len(), 3, "{lines:?}");
    let labels: std::collections::BTreeSet<&str> =
        lines.iter().flat_map(|line| line.split_whitespace()).filter(|word| word.starts_with("_:")).collect();
    assert_eq!(labels.len(), 3, "{labels:?}");
    assert!(labels.iter().all(|label| !label[2..].contains(':')), "{labels:?}");
}

#[test]
fn errors_of_every_format_name_the_line() {
    for (name, text, start) in [
        ("x.ttl", "@prefix : <http://a/> .\n:s :p :o .\n:s :p ;; x .\n", "x.ttl:3:"),
        ("x.trig", "@prefix : <http://a/> .\n{ :s :p }\n", "x.trig:2:"),
        ("x.nq", "<http://a/s> <http://a/p> <http://a/o> <g> .\n", "x.nq:1:40: "),
        ("x.jsonld", "{\n\"@id\": \"http://a/s\",\n oops }", "x.jsonld:3:"),
        ("x.jsonld", "{\"@context\": \"http://a.example/context\",\n \"x\": 1 }", "x.jsonld:"),
        (
            "x.rdf",
            "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>\n<a>\n</b>\n",
            "x.rdf:2: ",
        ),
    ] {
        let message = error(name, text);
        assert!(message.starts_with(start), "{message}");
        assert!(!message.contains("Parser error at"), "{message}");
        let skipping = LoadOptions { skip_errors: true, ..options(2) };
        if name != "x.nq" {
            let error = load_text(name, text.as_bytes(), &skipping).expect_err("cannot go on");
            assert!(error.hint().is_some_and(|hint| hint.contains("cannot be read beyond")), "{error}");
        }
    }
    assert!(
        error("x.jsonld", "{\"@context\": \"http://a.example/context\"}")
            .contains("remote contexts are not fetched")
    );
    assert!(error("x.unknown", "").contains("cannot tell the format"));
}

/// Without limits each document runs for minutes, overflows the stack, or exhausts the memory.
#[test]
fn documents_beyond_parser_limits_are_errors() {
    let deep = 50_000;
    let rdf = "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns:e=\"urn:e:\">\n";
    let terms = "<urn:a> <urn:b>".to_owned() + &" <<( <urn:a> <urn:b>".repeat(deep);
    // A chain of terms, each of which depends on the next one.
    let chain = |count| {
        let terms: String = (0..count).map(|n| format!("\"a{n}\":\"a{}:x\",\n", n + 1)).collect();
        format!("{{\"@context\":{{{terms}\"a{count}\":\"urn:x\"}},\"a0\":1}}")
    };
    let mut laughs = "<!DOCTYPE rdf:RDF [\n<!ENTITY a0 \"ha\">\n".to_owned();
    for n in 1..30 {
        laughs += &format!("<!ENTITY a{n} \"{}\">\n", format!("&a{};", n - 1).repeat(10));
    }
    for (name, text, excess) in [
        (
            "a.jsonld",
            "[".repeat(deep),
            "a.jsonld:1: the document is nested more than 256 levels deep (DEPTH_MAX)",
        ),
        ("a.jsonld", "{\"urn:a\":".repeat(deep), "DEPTH_MAX"),
        ("a.jsonld", chain(20_000), "a.jsonld:16385: a context has more than 16384 keys (CONTEXT_KEYS_MAX)"),
        ("a.rdf", rdf.to_owned() + &"<e:a><e:b>\n".repeat(deep), "a.rdf:129: the document is nested"),
        ("a.rdf", format!("{rdf}<e:a {}/>", "e:b='' ".repeat(deep)), "ATTRIBUTES_MAX"),
        ("a.ttl", format!("\n{terms} 1{}", ")>>".repeat(deep)), "a.ttl:2: the document is nested"),
        ("a.trig", format!("{terms} 1{}", ")>>".repeat(deep)), "DEPTH_MAX"),
        ("a.nt", format!("\n{terms} <urn:c> {} .", ")>>".repeat(deep)), "a.nt:2:1: the document is nested"),
        ("a.nq", format!("{terms} <urn:c> {} .", ")>>".repeat(deep)), "DEPTH_MAX"),
        ("a.rdf", format!("{laughs}]>\n{rdf}<e:a><e:b>&a29;</e:b></e:a></rdf:RDF>"), "ENTITY_BYTES_MAX"),
    ] {
        let error = error(name, &text);
        assert!(error.contains(excess), "{error}");
    }
    // Realistic documents are accepted.
    let entities = "<!DOCTYPE rdf:RDF [\n<!ENTITY e \"urn:e:\">\n]>\n";
    let text = format!("{entities}{rdf}<e:a rdf:about='&e;x'><e:b>&e;y</e:b></e:a></rdf:RDF>");
    assert!(lines("a.rdf", &text).contains(&"<urn:e:x> <urn:e:b> \"urn:e:y\"".to_owned()));
    let text = format!("{}\"urn:x\"{}", "[".repeat(250), "]".repeat(250));
    assert_eq!(lines("a.jsonld", &text).len(), 0);
    for threads in [1, 2] {
        load_text("a.jsonld", chain(16_000).as_bytes(), &options(threads)).expect("there is room for that");
    }
}

#[test]
fn triple_terms_with_edges_are_refused_with_their_position() {
    let nested = "<http://a/s> <http://a/p> <http://a/o> .\n\n<http://a/s> <http://a/p>\n <<( <urn:vervet:edge:7> <http://a/p> <http://a/o> )>> .\n";
    for (name, text, start) in [
        (
            "x.nt",
            "<http://a/s> <http://a/p> <<( <urn:vervet:edge:7> <http://a/p> <http://a/o> )>> .\n",
            "x.nt:1:",
        ),
        ("x.ttl", nested, "x.ttl:4:"),
        ("x.trig", nested, "x.trig:4:"),
    ] {
        let error = load_text(name, text.as_bytes(), &options(1)).expect_err("unsupported");
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(error.to_string().starts_with(start), "{error}");
    }
    let stream = Source::reader("x.ttl", std::io::Cursor::new(nested));
    let error = load(vec![stream], &options(2), &mut MapTarget::default(), &mut std::io::sink());
    assert!(error.expect_err("unsupported").to_string().starts_with("x.ttl:4:"));
}

#[test]
fn graphs_are_preserved_and_the_default_graph_can_be_renamed() {
    let text = "<http://a/s> <http://a/p> \"1\" .\n<http://a/s> <http://a/p> \"2\" <http://a/g> .\n";
    assert_eq!(
        lines("x.nq", text),
        ["<http://a/s> <http://a/p> \"1\"", "<http://a/s> <http://a/p> \"2\" <http://a/g>"]
    );
    let graph = Some(NamedNode::new_unchecked("http://a/home"));
    let options = LoadOptions { graph, ..options(1) };
    assert_eq!(
        load_text("x.nq", text.as_bytes(), &options).unwrap().0.lines(),
        ["<http://a/s> <http://a/p> \"1\" <http://a/home>", "<http://a/s> <http://a/p> \"2\" <http://a/g>"]
    );
    let options = LoadOptions { base_iri: Some("http://base/".to_owned()), ..options };
    assert_eq!(
        load_text("x.ttl", b"<s> <p> <o> .", &options).unwrap().0.lines(),
        ["<http://base/s> <http://base/p> <http://base/o> <http://a/home>"]
    );
}

#[test]
fn blank_nodes_of_two_files_differ_and_labels_are_deterministic() {
    let run = || {
        let sources = vec![
            Source::bytes("a.ttl", *b"_:x <http://a/p> [ <http://a/q> [] ] ."),
            Source::bytes("b.nt", *b"_:x <http://a/p> _:x .\n"),
        ];
        let mut target = MapTarget::default();
        load(sources, &options(2), &mut target, &mut std::io::sink()).unwrap();
        target.lines()
    };
    let lines = run();
    assert_eq!(lines, run());
    assert!(lines.contains(&"_:f1_x <http://a/p> _:f1_x".to_owned()), "{lines:?}");
    assert!(lines.iter().any(|line| line.starts_with("_:f0_x ")), "{lines:?}");
    assert_eq!(lines.iter().filter(|line| line.contains("_:f0_-")).count(), 2, "{lines:?}");
}

#[test]
fn progress_is_reported_and_a_load_can_be_cancelled() {
    #[derive(Default)]
    struct Last(AtomicU64, AtomicU64);
    impl Progress for Last {
        fn advance(&self, bytes_read: u64, bytes_total: Option<u64>, statements: u64) {
            assert!(bytes_total.is_some_and(|total| bytes_read <= total));
            self.0.store(bytes_read, Ordering::Relaxed);
            self.1.store(statements, Ordering::Relaxed);
        }
    }
    let text = large(false);
    let last = Last::default();
    let loading = LoadOptions { progress: Some(&last), ..options(2) };
    load_text("x.nt", text.as_bytes(), &loading).unwrap();
    assert_eq!((last.0.into_inner(), last.1.into_inner()), (text.len() as u64, 60_000));

    let cancelled = AtomicBool::new(true);
    let loading = LoadOptions { cancelled: Some(&cancelled), ..options(2) };
    assert_eq!(
        load_text("x.nt", text.as_bytes(), &loading).expect_err("cancelled").kind(),
        ErrorKind::Cancelled
    );
}

#[test]
fn missing_and_truncated_files_are_errors() {
    let load = |source| load(vec![source], &options(2), &mut MapTarget::default(), &mut std::io::sink());
    assert_eq!(load(Source::path("/nowhere/x.nt")).expect_err("missing").kind(), ErrorKind::Io);
    let zst = zstd::encode_all(large(false).as_bytes(), 1).unwrap();
    for name in ["x.nt.zst", "x.ttl.zst", "x.rdf.zst"] {
        let error = load(Source::bytes(name, &zst[..zst.len() - 9])).expect_err("cut off");
        assert_eq!(error.kind(), ErrorKind::Input, "{error}");
        if name == "x.nt.zst" {
            assert!(error.to_string().contains("ends too early"), "{error}");
        }
    }
    assert_eq!(Format::from_name("N-Quads"), Some(Format::NQuads));
}

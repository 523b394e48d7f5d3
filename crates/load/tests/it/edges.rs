//! Reifiers of RDF 1.2 become edges, for any order of the statements and any format.

use std::collections::HashSet;
use vervet_load::testing::MapTarget;
use vervet_load::{LoadOptions, LoadReport, Source, load};
use vervet_model::{Error, ErrorKind};

fn load_texts(
    texts: &[(&str, &str)],
    options: &LoadOptions<'_>,
) -> Result<(Vec<String>, LoadReport, String), Error> {
    let mut target = MapTarget::default();
    let mut skipped = Vec::new();
    let sources = texts.iter().map(|(name, text)| Source::bytes(*name, text.as_bytes())).collect();
    let report = load(sources, options, &mut target, &mut skipped)?;
    let mut lines: Vec<String> = target.lines().into_iter().map(|line| shorten(&line)).collect();
    // As in the store, a statement with an edge needs no copy without.
    let twins: HashSet<String> =
        lines.iter().filter_map(|line| Some(line.rsplit_once("  edge:")?.0.to_owned())).collect();
    lines.retain(|line| !twins.contains(line));
    assert_eq!(report.statements, lines.len() as u64);
    lines.sort();
    Ok((lines, report, String::from_utf8(skipped).expect("the report is text")))
}

fn shorten(line: &str) -> String {
    line.replace("http://a/", "").replace("http://www.w3.org/2001/XMLSchema#", "")
}

/// N-Triples with `R` for `rdf:reifies`, `<eN>` for `urn:vervet:edge:N`, and names without namespace.
fn write_out(text: &str) -> String {
    let reifies = text.replace(" R ", " <http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies> ");
    let names = reifies.replace('<', "<http://a/").replace("<http://a/<http://a/(", "<<(");
    names.replace("http://a/http://", "http://").replace("http://a/e#", "urn:vervet:edge:")
}

fn run(name: &str, text: &str) -> Vec<String> {
    let text = write_out(text);
    let mut results = Vec::new();
    for threads in [1, 3] {
        let options = LoadOptions { threads, ..LoadOptions::default() };
        results.push(load_texts(&[(name, &text)], &options).expect("valid").0);
    }
    assert_eq!(results[0], results[1]);
    results.remove(0)
}

#[test]
fn names_of_vervet_become_new_edges() {
    let text = "<e#7> <k> <x> .\n<s> <p> <o> .\n<e#7> R <<( <s> <p> <o> )>> .\n<s> <p> <o> .\n\
                <e#900> R <<( <s> <p> <o> )>> .\n<x> <about> <e#900> .\n";
    assert_eq!(
        run("x.nt", text),
        ["<s> <p> <o>  edge:0", "<s> <p> <o>  edge:1", "<x> <about> edge:1", "edge:0 <k> <x>"]
            .map(str::to_owned)
            .to_vec()
    );
    let text = "<s> <p> <o> <g> .\n<e#7> R <<( <s> <p> <o> )>> <g> .\n<s> <p> <o> .\n";
    assert_eq!(run("x.nq", text), ["<s> <p> <o>", "<s> <p> <o> <g> edge:0"]);
}

#[test]
fn other_edge_names_are_kept_and_may_be_declared_late() {
    let all = ["<s> <p> <o>", "<n> R <<( <s> <p> <o> )>>", "<n> <k> <x>", "<x> <about> <n>"];
    let expected =
        ["<s> <p> <o>  edge:0", "<x> <about> edge:0", "edge:0 <k> <x>", "edge:0 <urn:vervet:id> <n>"];
    // Every order in one block, and spread over files.
    for start in 0..all.len() {
        for reverse in [false, true] {
            let mut lines: Vec<String> =
                (0..all.len()).map(|i| write_out(&format!("{} .\n", all[(start + i) % all.len()]))).collect();
            if reverse {
                lines.reverse();
            }
            let options = LoadOptions::default();
            let text = lines.concat();
            assert_eq!(load_texts(&[("x.nt", &text)], &options).expect("valid").0, expected, "{text}");
            let files: Vec<(String, &str)> =
                lines.iter().enumerate().map(|(i, line)| (format!("{i}.ttl"), line.as_str())).collect();
            let files: Vec<(&str, &str)> = files.iter().map(|(name, line)| (name.as_str(), *line)).collect();
            assert_eq!(load_texts(&files, &options).expect("valid").0, expected, "{files:?}");
        }
    }
}

#[test]
fn turtle_and_trig_annotations_are_edges() {
    let text = "PREFIX : <http://a/>\n:s :p :o {| :k 1 |} , :q ~ :n {| :k 2 |} .\n<< :s :p :o ~ :m >> :k 3 .";
    assert_eq!(
        run_raw("x.ttl", text),
        [
            "<s> <p> <o>  edge:0",
            "<s> <p> <o>  edge:2",
            "<s> <p> <q>  edge:1",
            "edge:0 <k> \"1\"^^<integer>",
            "edge:1 <k> \"2\"^^<integer>",
            "edge:1 <urn:vervet:id> <n>",
            "edge:2 <k> \"3\"^^<integer>",
            "edge:2 <urn:vervet:id> <m>",
        ]
    );
    let text = "PREFIX : <http://a/>\n:g { :s :p :o {| :k 1 |} }";
    assert_eq!(run_raw("x.trig", text), ["<s> <p> <o> <g> edge:0", "edge:0 <k> \"1\"^^<integer> <g>"]);
    // An edge whose source is an edge.
    let text = "PREFIX : <http://a/>\n:s :p :o ~ :n .\n:n :since :y ~ :m .";
    assert_eq!(
        run_raw("x.ttl", text),
        [
            "<s> <p> <o>  edge:0",
            "edge:0 <since> <y>  edge:1",
            "edge:0 <urn:vervet:id> <n>",
            "edge:1 <urn:vervet:id> <m>"
        ]
    );
}

fn run_raw(name: &str, text: &str) -> Vec<String> {
    load_texts(&[(name, text)], &LoadOptions::default()).expect("valid").0
}

#[test]
fn errors_have_lines_or_are_skipped() {
    let ttl = "PREFIX : <http://a/>\n:a :b :c .\n\n<< :s :p :o ~ :n >>\n  :k 3 .\n:x :y :n .";
    let cases = [
        ("x.nt", "<a> <b> <c> .\n<e#7> <k> <x> .\n<e#7> <k> <y> .\n", "x.nt:2:"),
        ("x.nt", "<a> <b> <c> .\n\n<a> <k> <e#7> .\n", "x.nt:3:"),
        ("x.nt", "<a> <b> <c> .\n<n> R <<( <s> <p> <o> )>> .\n<n> <k> <x> .\n", "x.nt:2:"),
        ("x.nq", "<a> <b> <c> .\n<a> <b> <c> <e#2> .\n", "x.nq:2:"),
        ("x.nt", "<a> <b> <c> .\n<a> <e#1> <c> .\n", "x.nt:2:"),
        ("x.ttl", ttl, "x.ttl:4:"),
    ];
    for (name, text, start) in cases {
        let text = if text == ttl { text.to_owned() } else { write_out(text) };
        let error = load_texts(&[(name, &text)], &LoadOptions::default()).expect_err("wrong");
        assert!(matches!(error.kind(), ErrorKind::Input | ErrorKind::Unsupported), "{error}");
        assert!(error.to_string().starts_with(start), "{error}");
        assert!(error.hint().is_some());
        let skipping = LoadOptions { skip_errors: true, ..LoadOptions::default() };
        let (lines, report, skipped) = load_texts(&[(name, &text)], &skipping).expect("passed over");
        assert_eq!(lines, ["<a> <b> <c>"], "{text}");
        assert_eq!(report.skipped, 1);
        assert!(skipped.starts_with(start), "{skipped}");
    }
    let text = "<a> <b> <c> .\n<a> <b> <d> .\n<n> R <<( <a> <b> <c> )>> .\n<n> R <<( <a> <b> <d> )>> .\n";
    let error = load_texts(&[("x.nt", &write_out(text))], &LoadOptions::default()).expect_err("two");
    assert!(error.to_string().starts_with("x.nt:4: this reifier"), "{error}");
}

#[test]
fn reifiers_match_statements_across_blocks() {
    use std::fmt::Write;
    let mut text = String::new();
    for number in 0..40_000 {
        let _ = writeln!(text, "<s{number}> <p> <o{}> .", number % 7);
        let _ = writeln!(text, "<e#{number}> R <<( <s{number}> <p> <o{}> )>> .", number % 7);
        let _ = writeln!(text, "<e#{}> <k> <v> .", 39_999 - number);
    }
    for number in 0..20 {
        let _ = writeln!(text, "<n{number}> R <<( <s{}> <p> <o{}> )>> .", number * 3, number * 3 % 7);
    }
    let lines = run("x.nt", &text);
    assert_eq!(lines.len(), 80_000 + 40);
    assert_eq!(lines.iter().filter(|line| line.contains("<p> <o") && !line.contains(" edge:")).count(), 0);
}

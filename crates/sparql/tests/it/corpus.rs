//! Every query of the benchmark and of the W3C suites, compared with `spargebra`: the parser accepts the same
//! queries, except for a list of known differences; and no damaged query makes it panic, overflow the stack
//! or hang.

use std::path::{Path, PathBuf};
use vervet_sparql::{ParseOptions, QueryErrorKind, limits, parse};

/// The test data; `None`, after printing a line, if there is none.
fn data(below: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let root = std::env::var_os("VERVET_TEST_DATA").map_or(beside, PathBuf::from).join(below);
    if root.is_dir() {
        return Some(root);
    }
    println!("skipped: there is no test data at {}", root.display());
    None
}

fn queries(folder: &Path, out: &mut Vec<(PathBuf, String)>) {
    let mut entries: Vec<_> =
        std::fs::read_dir(folder).expect("a folder").flatten().map(|e| e.path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            queries(&path, out);
        } else if path.extension().is_some_and(|extension| extension == "rq")
            && let Ok(text) = std::fs::read_to_string(&path)
        {
            out.push((path, text));
        }
    }
}

#[test]
fn all_queries_of_lubm_are_understood() {
    let Some(folder) = data("data/lubm/queries") else { return };
    let mut all = Vec::new();
    queries(&folder, &mut all);
    assert!(all.len() > 50);
    for (path, text) in all {
        if path.to_string_lossy().ends_with(".template.rq") {
            continue;
        }
        if let Err(error) = parse(&text, &ParseOptions::default()) {
            panic!("{}: {error}", path.display());
        }
    }
}

#[test]
fn a_second_parser_accepts_the_same_queries() {
    let Some(folder) = data("conformance/w3c-sparql/sparql") else { return };
    let mut all = Vec::new();
    queries(&folder, &mut all);
    assert!(all.len() > 500);
    let base = "http://example.org/";
    let options = ParseOptions { base_iri: Some(base), ..ParseOptions::default() };
    let (mut accepted, mut unsupported, mut refused, mut differences) = (0, 0, 0, Vec::new());
    for (path, text) in &all {
        let theirs =
            spargebra::SparqlParser::new().with_base_iri(base).expect("an IRI").parse_query(text).is_ok();
        match parse(text, &options) {
            Ok(_) if theirs => accepted += 1,
            Err(error) if error.kind() == QueryErrorKind::Unsupported => unsupported += 1,
            Err(_) if !theirs => refused += 1,
            Ok(_) => differences.push(format!("{}: only we accept it", path.display())),
            Err(error) => differences.push(format!("{}: only we refuse it: {error}", path.display())),
        }
    }
    println!("{accepted} accepted, {unsupported} unsupported, {refused} refused");
    differences.retain(|difference| !KNOWN_DIFFERENCES.iter().any(|known| difference.contains(known)));
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Differences between the two parsers, with reasons.
const KNOWN_DIFFERENCES: &[&str] = &[
    // A subject of a triple term in an expression is an IRI or a variable.
    "syntax-triple-terms-negative/tripleterm-subject-03.rq: only we refuse it",
    "syntax-triple-terms-negative/tripleterm-subject-06.rq: only we refuse it",
    // Valid by its manifest; `spargebra` does not let a SELECT expression use an earlier one in a group.
    "sparql12/grouping/select-variable-reuse.rq: only we accept",
    // Valid by its manifest, since keywords are case-insensitive; `spargebra` requires lower case.
    "sparql10/expr-builtin/case-insensitive-booleans.rq: only we accept",
    // Invalid by its manifest (<?a&&?b> is one token); `spargebra` splits the token.
    "sparql10/syntax-sparql3/syn-bad-26.rq: only we refuse",
    // Invalid by its manifest; `spargebra` accepts nested aggregates.
    "sparql12/syntax/nested-aggregate-functions.rq: only we refuse",
];

#[test]
fn damaged_queries_are_errors() {
    let mut texts: Vec<String> = SAMPLES.iter().map(|text| (*text).to_owned()).collect();
    if let Some(folder) = data("conformance/w3c-sparql/sparql/sparql11") {
        let mut all = Vec::new();
        queries(&folder, &mut all);
        texts.extend(all.into_iter().map(|(_, text)| text).step_by(3));
    }
    let mut random = fastrand::Rng::with_seed(1);
    for text in &texts {
        for _ in 0..60 {
            let mut bytes = text.clone().into_bytes();
            for _ in 0..random.usize(1..4) {
                let at = random.usize(0..bytes.len());
                match random.u8(0..4) {
                    0 => bytes[at] = *random.choice(b"{}()[]<>\"'?:;.,|^*+-!=&\\@#~_$aA0 \n").expect("one"),
                    1 => drop(bytes.remove(at)),
                    2 => bytes.truncate(at),
                    _ => {
                        let end = random.usize(at..bytes.len()).min(at + 20);
                        let piece = bytes[at..end].to_vec();
                        let to = random.usize(0..bytes.len());
                        bytes.splice(to..to, piece);
                    }
                }
                if bytes.is_empty() {
                    break;
                }
            }
            let damaged = String::from_utf8_lossy(&bytes);
            if let Err(error) = parse(&damaged, &ParseOptions::default()) {
                assert_eq!(error.to_string().lines().count(), 3, "{damaged}");
            }
        }
    }
}

const SAMPLES: &[&str] = &[
    "PREFIX ex: <http://example.org/> SELECT DISTINCT (COUNT(?x) AS ?n) ?y { ?x ex:p/^ex:q|ex:r ?y OPTIONAL { ?y \
     ex:s \"größe\"@de-AT FILTER(?x > 1.5e3 && REGEX(STR(?y), '^a', \"i\")) } } GROUP BY ?y HAVING (MAX(?x) < 3) \
     ORDER BY DESC(?n) LIMIT 3 OFFSET 1 VALUES (?y) { (ex:a) (UNDEF) }",
    "CONSTRUCT { ?x <http://e/p> _:b , [ <http://e/q> ( 1 2.0 true ) ] } WHERE { GRAPH ?g { ?x ?p ?o MINUS { ?x a ?t } } }",
    "SELECT * { << ?s ?p ?o ~ ?e >> <http://e/q> 1 . ?s ?p ?o {| <http://e/r> 2 |} BIND(IF(BOUND(?s), 1, 2) AS ?z) }",
    "DESCRIBE ?x <http://e/y> { { SELECT ?x (SUM(?v) AS ?w) { ?x ?p ?v } GROUP BY ?x } UNION { ?x ?p \"\\u00e9\" } }",
];

/// Every nesting construct, nested and repeated far beyond practical use.
#[test]
fn depth_and_length_have_limits() {
    let repeat = |text: &str, n: usize| text.repeat(n);
    for n in [limits::NESTING_MAX / 2 - 5, limits::NESTING_MAX + 1, 50_000] {
        let texts = [
            format!("SELECT * {{ {} ?x ?p ?y {} }}", repeat("{", n), repeat("}", n)),
            format!("SELECT * {{ FILTER{}1{} }}", repeat("(", n), repeat(")", n)),
            format!("SELECT * {{ FILTER({}1) }}", repeat("!", n)),
            format!("SELECT * {{ FILTER({}1{}) }}", repeat("ABS(", n), repeat(")", n)),
            format!("SELECT * {{ FILTER({}1{}) }}", repeat("1 IN (", n), repeat(")", n)),
            format!("SELECT * {{ FILTER({}1{}) }}", repeat("REPLACE(", n), repeat(", 'a', 'b')", n)),
            format!("SELECT * {{ ?x <http://e/p> {} 1 {} }}", repeat("[ <http://e/p> ", n), repeat("]", n)),
            format!("SELECT * {{ ?x <http://e/p> {} {} }}", repeat("( 1 ", n), repeat(")", n)),
            format!("SELECT * {{ ?x {}<http://e/p>{} 1 }}", repeat("(", n), repeat(")", n)),
            format!("SELECT * {{ {} ?x ?p 1 {} ?p 1 }}", repeat("<< ", n), repeat(" >> ?p 1", n - 1) + " >>"),
            format!("SELECT * {{ {} ?x ?p 1 {} }}", repeat("OPTIONAL {", n), repeat("}", n)),
            format!("SELECT * {{ {} ?x ?p 1 {} }}", repeat("GRAPH ?g {", n), repeat("}", n)),
            format!("SELECT * {} ?x ?p 1 {}", repeat("{ SELECT * {", n), repeat("} }", n)),
            format!("SELECT ({}?x{} AS ?y) {{}}", repeat("(", n), repeat(")", n)),
        ];
        for text in &texts {
            let result = parse(text, &ParseOptions::default());
            if n > limits::NESTING_MAX {
                assert!(result.is_err(), "{}", &text[..40]);
            } else if let Err(error) = result {
                panic!("{n} levels: {error}");
            }
        }
        let chains = [
            format!("SELECT * {{ FILTER(1{}) }}", repeat(" + 1", n)),
            format!("SELECT * {{ FILTER(1{}) }}", repeat(" * 1", n)),
            format!("SELECT * {{ {} }}", repeat("OPTIONAL { ?x ?p ?y } ", n)),
            format!("SELECT * {{ {} }}", repeat("MINUS { ?x ?p ?y } ", n)),
        ];
        for text in &chains {
            let result = parse(text, &ParseOptions::default());
            assert_eq!(result.is_ok(), n <= limits::CHAIN_MAX, "{}", &text[..40]);
        }
        // These are lists in the algebra, so long ones are valid.
        for text in [
            format!("SELECT * {{ FILTER(1{}) }}", repeat(" || 1", n)),
            format!("SELECT * {{ {} }}", repeat("?x ?p ?y . ", n)),
            format!("SELECT * {{ {{}}{} }}", repeat(" UNION {}", n)),
            format!("SELECT * {{ {} }}", repeat("FILTER(?x) ", n)),
        ] {
            assert!(parse(&text, &ParseOptions::default()).is_ok(), "{}", &text[..40]);
        }
    }
}

//! Updates: algebra of operations, errors with positions, limits, and comparison with `spargebra`.

use std::path::{Path, PathBuf};
use vervet_algebra::{Dataset, GraphTarget, Modify, Operation, Quads, TemplateTerm, Update};
use vervet_sparql::{ParseOptions, QueryErrorKind, limits, parse, parse_update};

fn options() -> ParseOptions<'static> {
    ParseOptions { prefixes: &[("", "http://a/")], ..ParseOptions::default() }
}

fn update(text: &str) -> Update {
    match parse_update(text, &options()) {
        Ok(update) => update,
        Err(error) => panic!("{error}"),
    }
}

fn show_term(quads: &Quads, position: u32, variables: &[String]) -> String {
    match &quads.terms[position as usize] {
        TemplateTerm::Variable(variable) => format!("?{}", variables[variable.index()]),
        TemplateTerm::Blank(number) => format!("_:{number}"),
        TemplateTerm::Triple(parts) => {
            format!("<{}>", parts.map(|part| show_term(quads, part, variables)).join(" "))
        }
        TemplateTerm::Constant(term) => {
            let text = term.to_string();
            text.strip_prefix("<http://a/").and_then(|t| t.strip_suffix('>')).unwrap_or(&text).to_owned()
        }
    }
}

/// Templates as text: `?x` for variables, `_:0` for blank nodes, `a` for `<http://a/a>`.
fn show(quads: &Quads, variables: &[String]) -> String {
    let term = |position: u32| show_term(quads, position, variables);
    let line = |quad: &vervet_algebra::Quad| {
        let mut line = format!("{} {} {}", term(quad.subject), term(quad.predicate), term(quad.object));
        if let Some(graph) = quad.graph {
            line += &format!(" @{}", term(graph));
        }
        if let Some(edge) = quad.edge {
            line += &format!(" ~{}", term(edge));
        }
        line
    };
    quads.quads.iter().map(line).collect::<Vec<_>>().join("; ")
}

fn data(text: &str) -> String {
    match update(text).operations.as_slice() {
        [Operation::InsertData(quads) | Operation::DeleteData(quads)] => show(quads, &[]),
        other => panic!("{text}: {other:?}"),
    }
}

fn modify(text: &str) -> Modify {
    match update(text).operations.pop() {
        Some(Operation::Modify(modify)) => *modify,
        other => panic!("{text}: {other:?}"),
    }
}

fn templates(text: &str) -> [String; 2] {
    let modify = modify(text);
    [&modify.delete, &modify.insert].map(|quads| show(quads, &modify.solutions.variables))
}

#[test]
fn data_is_a_list_of_statements() {
    assert_eq!(data("INSERT DATA { }"), "");
    assert_eq!(data("INSERT DATA { :a :p :b, :c ; a :d . :b :p :a }"), {
        let rdf_type = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>";
        format!("a p b; a p c; a {rdf_type} d; b p a")
    });
    let text = "DELETE DATA { :a :p :b GRAPH :g { :a :p :b . :b :p :c . } . :c :p :d . GRAPH :h { } }";
    assert_eq!(data(text), "a p b; a p b @g; b p c @g; c p d");
    // The scope of a label includes all graphs of one operation.
    let text = "INSERT DATA { _:x :p [ :q _:y ] . GRAPH :g { _:x :p _:y, [] } }";
    assert_eq!(data(text), "_:1 q _:2; _:0 p _:1; _:0 p _:2 @g; _:0 p _:3 @g");
    let first = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#first>";
    assert!(data("INSERT DATA { :a :p ( :b ) }").starts_with(&format!("_:0 {first} b; ")));
    assert_eq!(data("DELETE DATA { :a :p :b ~ :e {| :k :v |} }"), "a p b ~e; e k v");
    assert_eq!(
        data("INSERT DATA { :a :p :b ~ :e {| :k :v |} , :c {| :k 1 |} }"),
        "a p b ~e; e k v; a p c ~_:0; _:0 k \"1\"^^<http://www.w3.org/2001/XMLSchema#integer>"
    );
}

#[test]
fn templates_and_patterns_share_variables() {
    let text =
        "DELETE { ?x :p ?y } INSERT { ?y ?p ?x . GRAPH ?g { _:b :q ?x } } WHERE { GRAPH ?g { ?x ?p ?y } }";
    assert_eq!(templates(text), ["?x p ?y", "?y ?p ?x; _:0 q ?x @?g"]);
    assert_eq!(templates("DELETE WHERE { ?x :p ?y . GRAPH ?g { ?x :q :z } }"), ["?x p ?y; ?x q z @?g", ""]);
    assert_eq!(templates("INSERT { ?x :p :a } WHERE { ?x :p :b }"), ["", "?x p a"]);
    // Statements with variables that no solution binds are dropped.
    let text =
        "DELETE { ?x :p ?z } INSERT { ?x :p ?y . :a :p :b . GRAPH ?h { :a :p :c } } WHERE { ?x :p :b }";
    assert_eq!(templates(text), ["", "a p b"]);
    assert_eq!(modify(text).insert.terms.len(), 3, "terms of dropped statements remain");
    assert_eq!(templates("DELETE { ?x :p ?y ~ ?e } WHERE { ?x :p ?y ~ ?e }"), ["?x p ?y ~?e", ""]);
    // An insertion needs no bound reifier; a deletion with an unbound reifier matches no statement.
    let text = "DELETE { ?x :p ?y ~ ?n } INSERT { ?x :q ?y ~ ?n {| :k 1 |} } WHERE { ?x :p ?y }";
    assert_eq!(templates(text), ["", "?x q ?y"]);
    // Each operation has its own variables; its columns are those of the templates.
    let update = update("INSERT { ?x :p :a } WHERE { ?x :p ?y } ; INSERT { ?z :p :a } WHERE { ?y :q ?z }");
    let names = |operation: &Operation| match operation {
        Operation::Modify(modify) => modify.solutions.variables.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(update.operations.iter().map(names).collect::<Vec<_>>(), [["x", "y"], ["z", "y"]]);
    let columns = |modify: &Modify| format!("{:?}", modify.solutions.form);
    assert_eq!(
        columns(&modify("DELETE { ?x :p ?y } WHERE { ?x :p ?y ; :q ?z }")),
        "Select([Variable(0), Variable(1)])"
    );
}

#[test]
fn with_and_using_are_a_dataset() {
    let node = |name: &str| oxrdf::NamedNode::new_unchecked(format!("http://a/{name}"));
    let graphs = |names: &[&str]| Some(names.iter().map(|name| node(name)).collect::<Vec<_>>());
    let tail = "INSERT { ?x :p :y . GRAPH :h { ?x :p :z } }";
    for (head, using, default, named) in [
        ("", "", None, None),
        ("WITH :g", "", graphs(&["g"]), None),
        ("", "USING :a USING :b USING :a", graphs(&["a", "b"]), graphs(&[])),
        ("WITH :g", "USING NAMED :n USING :a", graphs(&["a"]), graphs(&["n"])),
        ("", "USING NAMED :n", graphs(&[]), graphs(&["n"])),
    ] {
        let modify = modify(&format!("{head} DELETE {{ ?x :q ?x }} {tail} {using} WHERE {{ ?x :q ?x }}"));
        assert_eq!(modify.dataset, Dataset { default, named }, "{head} {using}");
        let graph = if head.is_empty() { "" } else { " @g" };
        let variables = &modify.solutions.variables;
        assert_eq!(show(&modify.delete, variables), format!("?x q ?x{graph}"));
        assert_eq!(show(&modify.insert, variables), format!("?x p y{graph}; ?x p z @h"));
    }
}

#[test]
fn operations_on_graphs() {
    let update = update(
        "PREFIX b: <http://b/> # a comment
         load silent b:doc into graph :g; CLEAR DEFAULT; DROP SILENT NAMED; CLEAR ALL; DROP GRAPH :g;
         BASE <http://c/> CREATE GRAPH <x> ; ADD :g TO DEFAULT ; MOVE SILENT DEFAULT TO GRAPH <y> ;
         COPY GRAPH b:x TO :y ;",
    );
    let shown: Vec<String> = update.operations.iter().map(|operation| format!("{operation:?}")).collect();
    assert_eq!(shown.len(), 9);
    assert!(
        shown[0].contains("silent: true")
            && shown[0].contains("http://b/doc")
            && shown[0].contains("http://a/g")
    );
    assert_eq!(update.operations[1], Operation::Clear { silent: false, target: GraphTarget::Default });
    assert_eq!(update.operations[2], Operation::Drop { silent: true, target: GraphTarget::Named });
    assert!(
        shown[5].contains("http://c/x") && shown[7].contains("http://c/y") && shown[7].contains("from: None")
    );
    assert!(shown[8].starts_with("Copy") && shown[8].contains("http://b/x"));
    for text in ["", "# nothing", "BASE <http://c/>", "PREFIX b: <http://b/> "] {
        assert!(parse_update(text, &options()).expect("valid").operations.is_empty(), "{text}");
    }
}

#[test]
fn error_positions() {
    for (text, place, message, hint) in [
        ("INSERT DATA { ?x :p :b }", (1, 15), "INSERT DATA cannot have variables", "INSERT { ... } WHERE"),
        ("DELETE DATA {\n GRAPH ?g { :a :p :b } }", (2, 8), "DELETE DATA cannot have variables", ""),
        ("DELETE DATA { :a :p _:x }", (1, 21), "DELETE DATA cannot have blank nodes", "DELETE WHERE"),
        ("DELETE WHERE { ?x :p [] }", (1, 22), "DELETE WHERE cannot have blank nodes", "use a variable"),
        (
            "DELETE { ?x :p (1) } WHERE { ?x :p 1 }",
            (1, 16),
            "DELETE cannot have blank nodes",
            "use a variable",
        ),
        (
            "DELETE { ?x :p 1 {| :q 2 |} } WHERE { ?x :p 1 }",
            (1, 18),
            "DELETE cannot have blank nodes",
            "a variable",
        ),
        ("DELETE { ?x :p 1 ~ } WHERE { ?x :p 1 }", (1, 18), "DELETE cannot have blank nodes", "a variable"),
        (
            "INSERT DATA { _:x :p 1 } ; INSERT DATA { _:x :p 1 }",
            (1, 42),
            "already used in an earlier INSERT DATA",
            "operation",
        ),
        (
            "INSERT {} WHERE { _:x :p 1 } ; INSERT {} WHERE { _:x :p 1 }",
            (1, 50),
            "another graph pattern",
            "variable",
        ),
        ("INSERT DATA { GRAPH :g { GRAPH :h { } } }", (1, 26), "expected a triple or }, but found GRAPH", ""),
        ("INSERT { ?x :p/:q ?y } WHERE { ?x :p ?y }", (1, 13), "a template cannot have property paths", ""),
        ("INSERT WHERE { ?x :p ?y }", (1, 8), "expected {, but found WHERE", ""),
        ("WITH :g SELECT * {}", (1, 9), "expected INSERT, but found SELECT", ""),
        ("DELETE { } USING :g", (1, 20), "expected WHERE, but the query ends", ""),
        ("CREATE :g", (1, 8), "expected GRAPH, but found :g", ""),
        ("CLEAR :g", (1, 7), "expected GRAPH, DEFAULT, NAMED or ALL", ""),
        ("DROP DEAFULT", (1, 6), "but found DEAFULT", "did you mean DEFAULT?"),
        ("ADD DEFAULT", (1, 12), "expected TO, but the query ends", ""),
        ("LOAD :x INTO :g", (1, 14), "expected GRAPH, but found :g", ""),
        ("CLEAR ALL CLEAR ALL", (1, 11), "expected ; or the end of the update", ""),
        ("CLEAR ALL ;; CLEAR ALL", (1, 12), "expected INSERT, DELETE, WITH", ""),
        ("INSRT DATA {}", (1, 1), "expected INSERT, DELETE", "did you mean INSERT?"),
        ("SELECT * {}", (1, 1), "SELECT begins a query", "as a query"),
        ("INSERT DATA { fof:a :p :b }", (1, 15), "the prefix fof: is not declared", "foaf:"),
    ] {
        let error = parse_update(text, &options()).expect_err(text);
        assert_eq!((error.line(), error.column()), place, "{text}: {error}");
        assert!(error.message().contains(message), "{text}: {error}");
        assert!(error.hint().unwrap_or_default().contains(hint), "{text}: {:?}", error.hint());
        assert_eq!(error.kind(), QueryErrorKind::Syntax, "{text}");
    }
    for (text, message) in [
        ("INSERT DATA { << :a :p :b >> :q 1 }", "reified triples in INSERT DATA"),
        ("INSERT { :e rdf:reifies <<( ?x :p :b )>> } WHERE { ?x :p :b }", "reified triples in INSERT"),
        ("DELETE { << ?x :p :b ~ ?e >> :q 1 } WHERE { ?x :p :b ~ ?e }", "reified triples in DELETE"),
        ("DELETE { ?e rdf:reifies <<( ?x :p :b )>> } WHERE { ?x :p :b ~ ?e }", "reified triples in DELETE"),
    ] {
        let text = format!("PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> {text}");
        let error = parse_update(&text, &options()).expect_err(&text);
        assert_eq!(error.kind(), QueryErrorKind::Unsupported, "{error}");
        assert!(error.message().contains(message), "{error}");
    }
    // A label denotes different blank nodes in each template and in the pattern.
    update("INSERT { _:x :p 1 } WHERE { _:x :p 2 } ; INSERT { _:x :p 3 } WHERE { }");
    assert!(parse("INSERT DATA { }", &options()).is_err());
}

#[test]
fn parameters_belong_to_all_operations() {
    let options = ParseOptions { parameters: &["p", "q"], ..options() };
    let text = "INSERT { ?p :x ?q } WHERE { } ; DELETE { ?x :p ?q } WHERE { ?x :p ?y }";
    let update = parse_update(text, &options).expect("valid");
    for operation in &update.operations {
        let Operation::Modify(modify) = operation else { panic!("{operation:?}") };
        assert_eq!(modify.solutions.variables[..2], ["p", "q"]);
        assert_eq!(modify.delete.quads.len() + modify.insert.quads.len(), 1, "parameters are bound");
    }
    let error = parse_update("INSERT { ?p :x 1 } WHERE { }", &options).expect_err("?q is missing");
    assert!(error.message().contains("does not mention the parameter ?q"));
}

/// A million triples with more blank nodes than the limit of variables, and a list of a million members:
/// neither needs recursion or a variable for each element, and time is linear.
#[test]
fn large_data_is_read_in_linear_time() {
    let triples = |count: usize| {
        let mut text = String::from("INSERT DATA {\n");
        for i in 0..count {
            text += &format!(":s{} :p{} _:b{} .\n", i / 4, i % 7, i / 2);
        }
        text + "}"
    };
    let time = |text: &str, expected: usize| {
        let start = std::time::Instant::now();
        let update = update(text);
        let Some(Operation::InsertData(quads)) = update.operations.first() else { panic!("no data") };
        assert_eq!(quads.quads.len(), expected);
        start.elapsed().as_secs_f64()
    };
    let (small, large) = (triples(125_000), triples(1_000_000));
    let small = (0..3).map(|_| time(&small, 125_000)).fold(f64::MAX, f64::min);
    let large = (0..2).map(|_| time(&large, 1_000_000)).fold(f64::MAX, f64::min);
    println!("a million triples: {large:.2} s, an eighth of them: {small:.3} s");
    // Linear is 8; quadratic would be 64.
    assert!(large < 30.0 * small, "{small} s and {large} s");
    let list = format!("INSERT DATA {{ :a :p ({}) }}", "1 ".repeat(200_000));
    time(&list, 400_001);
    let objects = format!("INSERT DATA {{ :a :p {} 1 }}", "[], ".repeat(200_000));
    time(&objects, 200_001);
    assert_eq!(update(&"INSERT { ?x :p [] } WHERE { ?x :p ?y } ; ".repeat(50_000)).operations.len(), 50_000);
}

#[test]
fn depth_has_limits() {
    for depth in [limits::NESTING_MAX - 5, limits::NESTING_MAX + 5, 1_000_000] {
        for (open, close) in [("[ :p ", " ]"), ("(", ")")] {
            let text = format!("INSERT DATA {{ :a :p {} 1 {} }}", open.repeat(depth), close.repeat(depth));
            match parse_update(&text, &options()) {
                Ok(_) => assert!(depth < limits::NESTING_MAX),
                Err(error) => {
                    assert!(depth > limits::NESTING_MAX, "{error}");
                    assert!(error.message().contains("nested more than"), "{error}");
                }
            }
        }
    }
    let text = format!("INSERT {{ }} WHERE {{ {} }}", "{ ".repeat(1000));
    assert!(parse_update(&text, &options()).is_err());
}

fn corpus() -> Vec<(PathBuf, String)> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let root = std::env::var_os("VERVET_TEST_DATA").map_or(beside, PathBuf::from);
    let mut folders = vec![root.join("conformance/w3c-sparql/sparql")];
    let mut all = Vec::new();
    if !folders[0].is_dir() {
        println!("skipped: there is no test data at {}", folders[0].display());
        return all;
    }
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "ru") {
                let text = std::fs::read_to_string(&path).expect("the suites are UTF-8");
                all.push((path, text));
            }
        }
    }
    all.sort();
    assert!(all.len() > 100);
    all
}

#[test]
fn a_second_parser_accepts_the_same_updates() {
    let options = ParseOptions { base_iri: Some("http://example.org/"), ..ParseOptions::default() };
    let (mut accepted, mut unsupported, mut refused) = (0, 0, 0);
    for (path, text) in corpus() {
        let theirs = spargebra::SparqlParser::new().with_base_iri("http://example.org/").expect("an IRI");
        let theirs = theirs.parse_update(&text).is_ok();
        match parse_update(&text, &options) {
            Ok(_) => {
                assert!(theirs, "{}: only we accept it", path.display());
                accepted += 1;
            }
            Err(error) if error.kind() == QueryErrorKind::Unsupported => unsupported += 1,
            Err(error) => {
                assert!(!theirs, "{}: only we refuse it: {error}", path.display());
                refused += 1;
            }
        }
    }
    println!("{accepted} accepted, {unsupported} unsupported, {refused} refused");
}

/// Truncated, duplicated and mutated texts yield an update or an error that can be displayed.
#[test]
fn damaged_updates_are_errors() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut texts: Vec<String> = corpus().into_iter().map(|(_, text)| text).collect();
    texts.retain(|text| text.len() < 10_000);
    texts.push(
        "WITH :g DELETE { ?s ?p ?o ~ ?e } INSERT { _:b :p ( 1 [] ) } USING NAMED :n WHERE { }".to_owned(),
    );
    for _ in 0..20_000 {
        let mut text: Vec<char> = texts[random.usize(..texts.len())].chars().collect();
        for _ in 0..random.usize(1..4) {
            let (from, to) = (random.usize(..=text.len()), random.usize(..=text.len()));
            let range = from.min(to)..from.max(to).min(from.min(to) + 12);
            match random.u8(..4) {
                0 => drop(text.drain(range)),
                1 => {
                    let again = text[range].to_vec();
                    text.splice(from..from, again);
                }
                2 => {
                    let other: Vec<char> = texts[random.usize(..texts.len())].chars().collect();
                    let start = random.usize(..=other.len());
                    let piece = other[start..(start + 8).min(other.len())].to_vec();
                    text.splice(from..from, piece);
                }
                _ => text.insert(
                    from,
                    random.choice(b"{}[]();.?_:<>\"~|@ \xE9").map_or(' ', |byte| char::from(*byte)),
                ),
            }
        }
        let text: String = text.into_iter().collect();
        if let Err(error) = parse_update(&text, &options()) {
            assert_eq!(error.to_string().lines().count(), 3, "seed {seed}");
        }
    }
}

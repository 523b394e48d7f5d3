//! Texts of Apache TinkerPop: values and traversals that its grammar accepts or rejects, and all traversals
//! of its scenarios, which also make a round trip through the printer.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use vervet_gremlin::text::{ParseOptions, Statement, parse, parse_value};
use vervet_gremlin::{Map, Value, Vertex, VertexDetail};

fn folder(name: &str) -> Option<PathBuf> {
    let shared = std::env::var_os("VERVET_TEST_DATA").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    );
    let found = shared.join("conformance/tinkerpop").join(name);
    if found.exists() {
        return Some(found);
    }
    eprintln!("skipped: no test data; set VERVET_TEST_DATA to the folder with conformance/tinkerpop/{name}");
    None
}

fn lines(name: &str) -> Vec<String> {
    let Some(folder) = folder("grammar-corpora") else { return Vec::new() };
    let text = std::fs::read_to_string(folder.join(name)).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// Accepted by the grammar; the reference and this parser reject the values: a byte out of range, strings
/// that are no times.
const NO_VALUES: &[&str] = &[
    "-789b",
    "datetime(\"\")",
    "datetime('')",
    "datetime(\"1682424645000\")",
    "datetime(\"2023-W15-3\")",
    "datetime(\"20230415T103045\")",
    "datetime(\"2023-04-15 10:30:45\")",
    "datetime(\"10:30:45\")",
    "datetime(\"2023-Apr-15\")",
];

#[test]
fn values_of_the_grammar_are_read_and_printed() {
    let mut refused = Vec::new();
    for line in lines("gremlin-values.txt").iter().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        match parse_value(line, &ParseOptions::default()) {
            Ok(value) => {
                let printed = value.to_string();
                assert_eq!(
                    parse_value(&printed, &ParseOptions::default()).unwrap(),
                    value,
                    "{line}: {printed}"
                );
            }
            Err(error) => {
                if !NO_VALUES.contains(&line.as_str()) {
                    refused.push(format!("{line}\n{error}"));
                }
            }
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

#[test]
fn other_values_are_refused() {
    for line in lines("incorrect-gremlin-values.txt") {
        let found = parse_value(&line, &ParseOptions::default());
        assert!(found.is_err(), "{line}: {found:?}");
    }
}

#[test]
fn other_traversals_are_refused() {
    for line in lines("incorrect-traversals.txt") {
        let found = parse(&line, &ParseOptions::default());
        assert!(found.is_err(), "{line}: {found:?}");
    }
}

/// The parts of a scenario that this test needs.
#[derive(Default)]
struct Scenario {
    name: String,
    bindings: HashMap<String, Value>,
    texts: Vec<String>,
    fails: bool,
}

fn scenarios(path: &Path, found: &mut Vec<Scenario>) {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    let mut is_traversal = false;
    while let Some(line) = lines.next().map(str::trim) {
        if let Some(name) = line.strip_prefix("Scenario: ") {
            found.push(Scenario { name: name.to_owned(), ..Scenario::default() });
            continue;
        }
        let Some(scenario) = found.last_mut() else { continue };
        if line == "\"\"\"" {
            let body: Vec<_> = lines.by_ref().take_while(|line| line.trim() != "\"\"\"").collect();
            if is_traversal {
                scenario.texts.push(body.join("\n"));
            }
        } else if let Some((_, rest)) = line.split_once("using the parameter ") {
            let (name, value) = rest.split_once(" defined as ").unwrap();
            scenario.bindings.insert(name.to_owned(), parameter(value.trim_matches('"')));
        } else if let Some((_, rest)) = line.split_once("for count of \"") {
            scenario.texts.push(rest.trim_end_matches('"').replace("\\\"", "\""));
        }
        is_traversal = line.ends_with("traversal of") || line.ends_with("graph initializer of");
        scenario.fails |= line.contains("will raise an error");
    }
}

/// A value of the type of the parameter.
fn parameter(text: &str) -> Value {
    let inside = |start: &str| text.strip_prefix(start).and_then(|rest| rest.split(']').next());
    if let Some(number) = inside("d[") {
        let whole = number.parse::<i32>().map(Value::Int);
        return whole.unwrap_or_else(|_| Value::Double(number.parse().unwrap()));
    }
    match text {
        "null" => Value::Null,
        "true" => Value::Boolean(true),
        "false" => Value::Boolean(false),
        _ if text.starts_with("m[") => Value::map(Map::default()),
        _ if text.starts_with("l[") => Value::list(vec![Value::Int(1)]),
        _ if text.starts_with("v[") && text.ends_with(']') => {
            let detail = VertexDetail { id: Value::Int(1), ..VertexDetail::default() };
            Vertex { key: 0, detail: Some(detail.into()) }.into()
        }
        _ => Value::text(text),
    }
}

#[test]
fn traversals_of_all_scenarios_are_read_and_printed() {
    let Some(folder) = folder("features") else { return };
    let mut found = Vec::new();
    for topic in std::fs::read_dir(folder).unwrap() {
        for feature in std::fs::read_dir(topic.unwrap().path()).unwrap() {
            scenarios(&feature.unwrap().path(), &mut found);
        }
    }
    let (mut texts, mut wrong, mut unreadable) = (0, Vec::new(), Vec::new());
    for scenario in &found {
        let options = ParseOptions { bindings: Cow::Borrowed(&scenario.bindings), ..ParseOptions::default() };
        let has_elements = scenario.bindings.values().any(|value| matches!(value, Value::Vertex(_)));
        for text in &scenario.texts {
            texts += 1;
            match parse(text, &options) {
                Ok(statements) => {
                    for statement in statements {
                        let Statement::Traversal { bytecode, terminal, .. } = &statement else { continue };
                        assert_eq!(*terminal, None, "{}", scenario.name);
                        if has_elements {
                            continue;
                        }
                        let printed = bytecode.to_string();
                        match parse(&printed, &options) {
                            Ok(again) => assert_eq!(again, [statement], "{}: {printed}", scenario.name),
                            Err(error) => wrong.push(format!("{}\n{printed}\n{error}", scenario.name)),
                        }
                    }
                }
                Err(error) if scenario.fails => {
                    unreadable.push(format!(
                        "{}: {}",
                        scenario.name,
                        error.message().lines().next().unwrap()
                    ));
                }
                Err(error) => wrong.push(format!("{}\n{text}\n{error} {:?}", scenario.name, error.hint())),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(found.len() > 2_000 && texts > 2_000, "{} scenarios, {texts} texts", found.len());
    println!(
        "{texts} texts of {} scenarios; not read, and meant to fail:\n{}",
        found.len(),
        unreadable.join("\n")
    );
    assert!(unreadable.len() < 20, "{unreadable:?}");
}

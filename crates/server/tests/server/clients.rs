//! Clients that others have written: curl, Python's SPARQLWrapper and rdflib, and YASGUI in a browser. Where one is not
//! installed, its test says so and does nothing; `tests/clients/README.md` has the commands that install them.

use crate::common::{Running, people};
use std::path::Path;
use std::process::Command;

fn run(command: &mut Command) -> String {
    let output = command.output().expect("it can be started");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

#[test]
fn curl() {
    if !Command::new("curl").arg("--version").output().is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: there is no curl");
        return;
    }
    let server = Running::start(&people(), |_| ());
    let address = |path: &str| format!("http://{}{path}", server.address);
    let curl =
        |arguments: &[&str]| run(Command::new("curl").args(["-sS", "--fail-with-body"]).args(arguments));
    let query = "query=SELECT ?n { ?p <http://example.org/name> ?n } ORDER BY ?n";
    let names = curl(&["-H", "Accept: text/csv", "--data-urlencode", query, &address("/query")]);
    assert_eq!(names, "n\r\nAnn\r\nBob\r\n");
    let names = curl(&["-G", "-H", "Accept: text/csv", "--data-urlencode", query, &address("/query")]);
    assert_eq!(names, "n\r\nAnn\r\nBob\r\n");
    assert!(curl(&["--compressed", "--data-urlencode", query, &address("/sparql")]).contains("bindings"));
    curl(&["--data-urlencode", "update=INSERT DATA { <urn:a> <urn:b> 1 }", &address("/update")]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("g.ttl");
    std::fs::write(&file, "<urn:c> <urn:d> \"e\" .").unwrap();
    let file = file.display().to_string();
    let graph = address("/store?graph=urn:g");
    curl(&["-T", &file, "-H", "Content-Type: text/turtle", &graph]);
    curl(&["-F", &format!("file=@{file}"), &graph]);
    assert!(curl(&[&graph]).contains("<urn:c> <urn:d> \"e\" ."));
    curl(&["-X", "DELETE", &graph]);
    curl(&["-I", &address("/health")]);
}

#[test]
fn python() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/clients.py");
    let python = std::env::var("VERVET_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let there = Command::new(&python).args(["-c", "import SPARQLWrapper, rdflib"]).output();
    if !there.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: {python} has no SPARQLWrapper and rdflib (see tests/clients/README.md)");
        return;
    }
    let server = Running::start(&people(), |_| ());
    let text = run(Command::new(&python).arg(script).arg(format!("http://{}", server.address)));
    assert!(text.contains("SPARQLWrapper: ok") && text.contains("SPARQLStore: ok"), "{text}");
}

#[test]
fn yasgui() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/yasgui");
    if !Command::new("node").arg("--version").output().is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: there is no node");
        return;
    }
    if !folder.join("node_modules/playwright-core").exists() {
        eprintln!("skipped: YASGUI is not installed (see tests/clients/README.md)");
        return;
    }
    let server = Running::start(&people(), |_| ());
    let address = format!("http://{}", server.address);
    let text = run(Command::new("node").arg(folder.join("yasgui.mjs")).arg(address));
    // Without a browser it says so itself.
    if text.starts_with("skipped") {
        eprint!("{text}");
        return;
    }
    assert!(text.ends_with("YASGUI: ok\n"), "{text}");
}

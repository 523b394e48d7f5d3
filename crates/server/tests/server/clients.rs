//! Third-party clients: curl, Python's SPARQLWrapper and rdflib, YASGUI in a browser, and TinkerPop's drivers
//! for Python, JavaScript and Java. The test of a missing client prints so and passes;
//! `tests/clients/README.md` has the commands that install them.

use crate::common::{Running, people};
use crate::users::users;
use std::path::{Path, PathBuf};
use std::process::Command;
use vervet::Database;

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
    // Without a browser the script itself prints so.
    if text.starts_with("skipped") {
        eprint!("{text}");
        return;
    }
    assert!(text.ends_with("YASGUI: ok\n"), "{text}");
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients")
}

/// Runs a Gremlin client with the addresses of two servers: an empty one, and one with users.
fn drive(command: &mut Command, last: &str) {
    let open = Running::start(&Database::in_memory(), |_| ());
    let guarded = Running::start(&Database::in_memory(), |options| options.users = users());
    let text = run(command.arg(open.address.to_string()).arg(guarded.address.to_string()));
    print!("{text}");
    assert!(text.ends_with(last), "{text}");
    // The end of a client ends all its requests and sessions.
    open.wait_for("vervet_gremlin_sessions", 0.0);
    open.wait_for("vervet_requests_running", 0.0);
}

/// Runs the retry pattern of docs/guides/conflicts.md with the address of an empty server.
fn retry(command: &mut Command, last: &str) {
    let open = Running::start(&Database::in_memory(), |_| ());
    let text = run(command.arg(open.address.to_string()));
    assert!(text.ends_with(last), "{text}");
    open.wait_for("vervet_gremlin_sessions", 0.0);
}

#[test]
fn gremlin_python() {
    let python = std::env::var("VERVET_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let there = Command::new(&python).args(["-c", "import gremlin_python"]).output();
    if !there.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: {python} has no gremlinpython (see tests/clients/README.md)");
        return;
    }
    drive(Command::new(&python).arg(folder().join("gremlin_client.py")), "gremlinpython: ok\n");
    retry(Command::new(&python).arg(folder().join("conflicts.py")), "conflicts.py: ok\n");
}

#[test]
fn gremlin_javascript() {
    let folder = folder().join("gremlin-javascript");
    let node = Command::new("node").arg("--version").output().is_ok_and(|output| output.status.success());
    if !node || !folder.join("node_modules/gremlin").exists() {
        eprintln!("skipped: there is no node, or no gremlin for it (see tests/clients/README.md)");
        return;
    }
    drive(Command::new("node").arg(folder.join("client.mjs")), "gremlin-javascript: ok\n");
    retry(Command::new("node").arg(folder.join("conflicts.mjs")), "conflicts.mjs: ok\n");
}

#[test]
fn gremlin_java() {
    let target = folder().join("gremlin-java/target");
    let java = Command::new("java").arg("-version").output().is_ok_and(|output| output.status.success());
    if !java || !target.join("classes/Client.class").exists() {
        eprintln!("skipped: there is no java, or its driver is not installed (see tests/clients/README.md)");
        return;
    }
    let classes = format!("{}:{}/*", target.join("classes").display(), target.join("dependency").display());
    drive(Command::new("java").args(["-cp", &classes, "Client"]), "gremlin-driver: ok\n");
    retry(Command::new("java").args(["-cp", &classes, "Conflicts"]), "Conflicts: ok\n");
}

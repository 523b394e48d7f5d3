//! Transactions in the shell, durability levels, and recovery of a damaged log: through the built binary.
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::common::{Done, Place, people};
use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;

fn shell(place: &Place, script: &str) -> Done {
    place.run_with_input(&["shell", "db"], script)
}

fn count(place: &Place, pattern: &str) -> u64 {
    let query = format!("SELECT (COUNT(*) AS ?n) {{ {pattern} }}");
    let rows = place.ok(&["query", "db", &query, "--format", "csv"]);
    rows.lines().nth(1).unwrap().trim().parse().unwrap()
}

#[test]
fn a_script_commits_and_rolls_back() {
    let place = people();
    let all = "SELECT (COUNT(*) AS ?n) { ?s <urn:p> ?o };\n";
    let script = format!(
        ".format csv\n\
         INSERT DATA {{ <urn:a> <urn:p> 1 }};\n\
         begin\n\
         PREFIX u: <urn:>\nINSERT DATA {{ u:a u:p 2, 3 }};\n{all}\
         savepoint here\n\
         DELETE WHERE {{ ?s <urn:p> ?o }};\n{all}\
         ROLLBACK TO here;\n{all}\
         .commit\n\
         begin snapshot\n\
         INSERT DATA {{ <urn:a> <urn:p> 4 }}\n\n{all}\
         CONSTRUCT {{ ?s <urn:q> ?o }} WHERE {{ ?s <urn:p> ?o . FILTER(?o = 4) }};\n\
         ASK {{ ?s <urn:p> 4 }};\n\
         rollback\n{all}"
    );
    let done = shell(&place, &script);
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
    let numbers: Vec<&str> = done.out.lines().filter(|line| line.parse::<u32>().is_ok()).collect();
    assert_eq!(numbers, ["3", "0", "3", "4", "3"], "{}", done.out);
    assert!(done.out.contains("<urn:a> <urn:q>") && done.out.contains("true"), "{}", done.out);
    assert_eq!(count(&place, "?s <urn:p> ?o"), 3);
}

/// Gremlin lines often begin with a dot: such a line continues a traversal and is not a command, and the
/// lines before it do not run on their own.
#[test]
fn a_traversal_of_several_lines_is_one_input() {
    let place = people();
    let gremlin = |script: &str| place.run_with_input(&["shell", "db", "--language", "gremlin"], script);
    let all = || {
        place.ok(&[
            "query",
            "db",
            "--language",
            "gremlin",
            "--format",
            "json",
            "g.V().hasLabel('half').count()",
        ])
    };
    let whole = "g.addV(\"half\")\n.property(\"a\",1);\n";
    let done = gremlin(whole);
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
    let done = shell(&place, "g.addV('half')\n\n  \ng.V()\n  .hasLabel('half')\n  .values('a')\n");
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
    assert!(done.out.lines().any(|line| line.trim() == "1"), "{}", done.out);
    assert_eq!(all().trim(), "2");
    // A second line that is not a step is an error, even if it is the name of a command, and has no effect.
    for script in
        ["g.addV('half')\n.info\n;\n", "g.addV('half')\n.quit\n", "g.addV('half')\n.propperty('a',1);\n"]
    {
        let done = gremlin(script);
        assert_eq!(done.code, 1, "{script}: {done:?}");
        assert_eq!(all().trim(), "2", "{script}");
    }
    // A first line that begins with a dot is a command or an error.
    let done = gremlin(".property('a',1);\n");
    assert!(done.code == 1 && done.err.contains("unknown: \".property('a',1);\""), "{done:?}");
    assert_eq!(gremlin(&format!(".prefixes\n{whole}.quit\n")).code, 0);
    assert_eq!(all().trim(), "3");
}

#[test]
fn plans_and_formats_follow_the_language() {
    let place = people();
    let count = "g.V().hasLabel('http://example.org/Person').count();\n";
    for (language, query) in [("gremlin", ""), ("sparql", "ASK { ?s ?p ?o };\n")] {
        let run = |script: &str| place.run_with_input(&["shell", "db", "--language", language], script);
        let done = run(&format!(".explain {count}"));
        let asked = ["query", "db", "--language", "gremlin", "--explain", count.trim()];
        assert_eq!((done.code, done.out.as_str()), (0, place.ok(&asked).as_str()), "{done:?}");
        let done = run(&format!(
            ".format json\n{count}{query}.format graphson;\n{count}{query}.format table\n{count}"
        ));
        assert_eq!(done.code, 0, "{done:?}");
        let (json, rest) = done.out.split_once('\n').unwrap();
        assert_eq!(json, "3", "{}", done.out);
        assert!(rest.contains(r#"{"@type":"g:Int64","@value":3}"#) && rest.contains("result"), "{rest}");
        // `graphson` does not change the format of SPARQL.
        assert_eq!(rest.matches(r#""boolean""#).count(), if query.is_empty() { 0 } else { 2 }, "{rest}");
    }
    for (language, name) in [("gremlin", "xml"), ("gremlin", "yaml"), ("sparql", "yaml")] {
        let script = format!(".format {name}\n");
        let done = place.run_with_input(&["shell", "db", "--language", language], &script);
        assert!(done.code == 1 && done.err.contains("known"), "{done:?}");
        assert!(done.err.contains("graphson"), "{}", done.err);
    }
}

#[test]
fn transaction_commands_out_of_place_have_hints() {
    let place = people();
    let cases = [
        ("commit\n", "there is no open transaction"),
        ("rollback\n", "begin opens one"),
        ("savepoint a\n", "there is no open transaction"),
        ("begin\nbegin\n", "a transaction is open already"),
        ("begin\nsavepoint a\nrollback to b\n", "there are a"),
        ("begin\nrollback to b\n", "savepoint NAME makes one"),
        ("begin now\n", "begin [serializable|snapshot]"),
        ("begin\nINSERT DATA { <urn:a> <urn:p> 1 };\n", "the input ended inside of a transaction"),
        ("begin\nINSERT DATA { <urn:a> <urn:p> 1 };\n.quit\n", "the input ended inside of a transaction"),
        ("begin\nINSERT DATA { <urn:a> <urn:p> };\n", "line 1"),
        (
            "begin\nINSERT DATA { <urn:a> <urn:p> 1 };\nsavepoint a\nsavepoint b\nrollback to a\nrollback to b\n",
            "there are a",
        ),
    ];
    for (script, says) in cases {
        let done = shell(&place, script);
        assert_eq!(done.code, 1, "{script}: {done:?}");
        assert!(done.err.contains(says) && done.err.contains("error:"), "{script}: {}", done.err);
    }
    assert_eq!(count(&place, "?s <urn:p> ?o"), 0);
}

/// A process with an open transaction owns the directory; others read committed data.
#[test]
fn an_open_transaction_keeps_other_writers_out_and_lets_readers_in() {
    let place = people();
    let mut holder = place.command(&["shell", "db"]);
    holder.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut holder = holder.spawn().unwrap();
    let mut input = holder.stdin.take().unwrap();
    let script = "begin\nINSERT DATA { <urn:a> <urn:p> 1 };\n.format csv\nASK { <urn:a> <urn:p> 1 };\n";
    input.write_all(script.as_bytes()).unwrap();
    input.flush().unwrap();
    let mut seen = String::new();
    let mut out = std::io::BufReader::new(holder.stdout.take().unwrap());
    while !seen.contains("true") {
        assert!(std::io::BufRead::read_line(&mut out, &mut seen).unwrap() > 0, "{seen}");
    }
    let done = place.run(&["update", "db", "INSERT DATA { <urn:b> <urn:p> 1 }"]);
    assert_eq!(done.code, 1);
    assert!(done.err.contains("could not write to"), "{}", done.err);
    assert_eq!(count(&place, "?s <urn:p> ?o"), 0);
    input.write_all(b"commit\n").unwrap();
    drop(input);
    assert!(holder.wait().unwrap().success());
    assert_eq!(count(&place, "?s <urn:p> ?o"), 1);
    place.ok(&["update", "db", "INSERT DATA { <urn:b> <urn:p> 1 }"]);
}

#[test]
fn levels_of_durability_are_chosen_and_shown() {
    let place = people();
    for level in ["none", "interval", "interval:0.01", "sync"] {
        let before = count(&place, "?s <urn:p> ?o");
        let insert = format!("INSERT DATA {{ <urn:{before}> <urn:p> 1 }}");
        place.ok(&["update", "db", &insert, "--durability", level]);
        let script = format!("INSERT DATA {{ <urn:{before}> <urn:p> 2 }};\n.info\n");
        let done = place.run_with_input(&["shell", "db", "--durability", level], &script);
        let shown = level.replace("interval:", "interval ");
        assert!(done.out.contains(&format!("at the level {shown}")), "{done:?}");
        assert_eq!(count(&place, "?s <urn:p> ?o"), before + 2);
    }
    place.fails(&["update", "db", "CLEAR ALL", "--durability", "often"], 2, &["interval:SECONDS"]);
    assert!(place.ok(&["info", "db"]).contains("at the level sync"));
    assert!(place.ok(&["info", "db", "--json"]).contains("\"durability\":\"sync\""));
}

fn logs(place: &Place) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(place.path("db")).unwrap().map(|entry| entry.unwrap().path());
    let mut logs: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|e| e == "log")).collect();
    logs.sort();
    logs
}

#[test]
fn a_damaged_log_is_explained_and_cut() {
    let place = people();
    let before = count(&place, "?s ?p ?o");
    let inserts: String = (0..10).map(|i| format!("INSERT DATA {{ <urn:s{i}> <urn:p> {i} }};\n")).collect();
    assert_eq!(shell(&place, &inserts).code, 0);
    place.ok(&["update", "db", "INSERT DATA { <urn:last> <urn:p> 1 }"]);
    assert!(place.ok(&["recover", "db"]).contains("sound"));
    assert_eq!(count(&place, "?s ?p ?o"), before + 11);

    // Damage a commit in the middle.
    let logs = logs(&place);
    let path = logs.iter().max_by_key(|path| std::fs::metadata(path).unwrap().len()).unwrap();
    let mut bytes = std::fs::read(path).unwrap();
    let at = bytes.windows(6).position(|window| window == b"urn:s5").unwrap();
    bytes[at] ^= 1;
    std::fs::write(path, &bytes).unwrap();
    place.fails(&["query", "db", "ASK { ?s ?p ?o }"], 1, &["error:", "vervet recover db"]);

    let done = place.run(&["recover", "db"]);
    assert_eq!(done.code, 1);
    for part in
        ["is damaged at byte", "kept: the database as it was after commit", "records are still readable"]
    {
        assert!(done.out.contains(part), "{}", done.out);
    }
    assert!(done.out.contains("vervet recover db --cut-at-damage"), "{}", done.out);
    assert!(done.err.contains("the log is damaged"), "{}", done.err);
    assert_eq!(std::fs::read(path).unwrap(), bytes, "looking changes nothing");
    place.fails(&["recover", "db", "--yes"], 2, &["--cut-at-damage"]);

    let done = place.run(&["recover", "db", "--cut-at-damage"]);
    assert_eq!(done.code, 2, "no terminal to ask on: {done:?}");
    assert!(done.err.contains("nothing was changed") && done.err.contains("--yes"), "{}", done.err);
    let done = place.run_with_input(&["recover", "db", "--cut-at-damage"], "y\n");
    assert_eq!(done.code, 2, "an answer from a pipe is none: {done:?}");
    assert_eq!(std::fs::read(path).unwrap(), bytes, "refusing changes nothing");

    let text = place.ok(&["recover", "db", "--cut-at-damage", "--yes"]);
    assert!(text.contains("the log was cut"), "{text}");
    // A prefix of the commits, as the command reported.
    assert_eq!(count(&place, "?s ?p ?o"), before + 5);
    assert!(place.ok(&["recover", "db"]).contains("sound"));
    place.ok(&["update", "db", "INSERT DATA { <urn:new> <urn:p> 1 }"]);
    assert_eq!(count(&place, "?s ?p ?o"), before + 6);
    assert!(place.ok(&["check", "db"]).contains("sound"));
    place.fails(&["recover", "nothing"], 1, &["error:"]);
    assert!(!place.path("nothing").exists());
}

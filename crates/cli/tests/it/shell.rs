//! The shell: inputs of scripts, commands, and the pager on a terminal.
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::common::{Done, Place, people};

fn shell(place: &Place, script: &str) -> Done {
    place.run_with_input(&["shell", "db"], script)
}

/// users 19: a blank line in the prologue, in brackets or before a solution modifier ended the input.
#[test]
fn users_19_blank_lines_in_a_script_do_not_end_a_query() {
    let place = people();
    let script = ".format csv\n\n# names\nPREFIX : <http://example.org/>\n\nSELECT ?n {\n\n  ?p :name ?n\n\n}\n\n\
                  ORDER BY ?n\n\nLIMIT 1\n\nPREFIX : <http://example.org/>\nASK { :ann :knows :bob }\n\n\
                  # the end\n\ng.V()\n\n.count()\n";
    let done = shell(&place, script);
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
    let lines: Vec<&str> = done.out.lines().collect();
    assert_eq!(lines[..3], ["n", "Ann", "true"], "{}", done.out);
    assert!(lines[3] == "result" && lines[4].parse::<u64>().is_ok(), "{}", done.out);
}

/// users 20: `exit` and `help` were taken as the first line of a query.
#[test]
fn users_20_exit_and_help_work_without_a_dot() {
    let place = people();
    for word in ["exit", "quit;", "\\q", "EXIT"] {
        let done = shell(&place, &format!("{word}\nnonsense;\n"));
        assert_eq!((done.code, done.out.as_str(), done.err.as_str()), (0, "", ""), "{word}");
    }
    let done = shell(&place, "help\n");
    assert!(done.code == 0 && done.out.contains(".explain QUERY"), "{done:?}");
}

/// users 22: `.read`, `.output` and `.schema`.
#[test]
fn users_22_files_are_read_and_written_and_the_schema_is_shown() {
    let place = people();
    place.file("names.rq", "SELECT ?n {\n  ?p <http://example.org/name> ?n\n\n} ORDER BY ?n\n");
    place.file("both.rq", ".read names.rq\nbegin\nINSERT DATA { <urn:a> <urn:p> 1 }\n");
    let done = shell(
        &place,
        ".format csv\n.output names.csv\n.read both.rq\n.output\nASK { <urn:a> <urn:p> 1 };\nrollback\n",
    );
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
    let names = std::fs::read_to_string(place.path("names.csv")).unwrap();
    assert!(names.starts_with("n\r\nAnn\r\nBob\r\n"), "{names}");
    assert_eq!(done.out.trim(), "true", "the transaction of the file is open behind it");
    // The extension of the file names the format, of Gremlin too, until `.format` names another one.
    let done = shell(
        &place,
        "CONSTRUCT { ?p <urn:n> ?n } { ?p <http://example.org/name> ?n };\n.output out.csv\n\
         SELECT ?n { ?p <http://example.org/name> ?n } ORDER BY ?n LIMIT 1;\n\
         g.inject(['a': 'x, \"y\"', 'b': 1], ['b': 2, 'c': true]);\ng.inject('t');\n.format json\ng.inject(1);\n\
         .output out.ttl\nCONSTRUCT { ?p <urn:n> 1 } { ?p <http://example.org/name> 'Ann' };\n\
         .output out.tsv\ng.inject(['a': 'tab\\there']);\n.output out.txt\ng.inject(['a': 1]);\n\
         .output other.csv\nCONSTRUCT { ?p <urn:n> 1 } { ?p <http://example.org/name> 'Ann' };\n",
    );
    assert!(done.code == 1 && done.err.contains("cannot be written as csv"), "{done:?}");
    let text = |name: &str| std::fs::read_to_string(place.path(name)).unwrap();
    assert_eq!(text("out.csv"), "n\r\nAnn\r\na,b,c\r\n\"x, \"\"y\"\"\",1,\r\n,2,true\r\nresult\r\nt\r\n1\n");
    assert!(text("out.ttl").trim_end().ends_with("1 ."), "{}", text("out.ttl"));
    assert_eq!(text("out.tsv"), "a\ntab\\there\n");
    assert!(text("out.txt").ends_with("1 row\n"), "{}", text("out.txt"));
    let done = place.run(&["query", "db", "--language", "gremlin", "--format", "csv", "g.inject(1, 1)"]);
    assert_eq!(done.out, "result\r\n1\r\n1\r\n");
    // Equal queries fill one table, unless there is something between them; another extension is an error.
    let select = "SELECT ?n { ?p <http://example.org/name> ?n } ORDER BY ?n LIMIT 1;\n";
    let ask = "ASK { ?s <http://example.org/name> ?n };\n";
    let input = format!(
        ".output all.csv\n{select}{select}{ask}{ask}{select}.output g.csv\ng.inject(1);\ng.inject(2);\n.output x.foo\n"
    );
    let done = shell(&place, &input);
    assert_eq!(text("all.csv"), "n\r\nAnn\r\nAnn\r\ntrue\ntrue\nn\r\nAnn\r\n");
    assert_eq!(text("g.csv"), "result\r\n1\r\n2\r\n");
    assert!(done.code == 1 && done.err.contains("the extension of x.foo does not name a format"), "{done:?}");
    assert!(done.err.contains("hint: known are .txt") && !place.path("x.foo").exists(), "{done:?}");
    // A traversal that returns nothing by its form has no table; one that finds nothing has an empty one.
    let done = shell(&place, "g.inject(1).iterate();\n");
    assert_eq!((done.code, done.out.as_str()), (0, ""), "{done:?}");
    let done = shell(&place, "g.inject(1).is(2);\n");
    assert!(done.out.contains("0 rows"), "{done:?}");
    let done = shell(&place, ".read nowhere.rq\n");
    assert!(done.code == 1 && done.err.contains("could not open nowhere.rq"), "{done:?}");
    place.file("itself.rq", ".read itself.rq\n");
    let done = shell(&place, ".read itself.rq\n");
    assert!(done.code == 1 && done.err.contains("read each other"), "{done:?}");
    let done = shell(&place, ".schema\n");
    for part in ["class", "<http://example.org/Person>", "predicate", "rdf:type", "<http://example.org/name>"]
    {
        assert!(done.out.contains(part), "no {part} in {}", done.out);
    }
}

/// users 22: results longer than the screen flew past, and tables were wider than the terminal.
#[cfg(unix)]
#[test]
fn users_22_a_terminal_has_a_pager_and_tables_that_fit() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::{Winsize, tcsetwinsize};
    use std::fs::File;
    use std::io::{Read, Write};

    let place = people();
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    tcsetwinsize(&terminal, Winsize { ws_row: 12, ws_col: 40, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let inside = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let mut command = place.command(&["shell", "db"]);
    command.env("PAGER", "/bin/cat > paged.txt").env("TERM", "xterm");
    command.stdin(inside.try_clone().unwrap());
    command.stdout(inside.try_clone().unwrap()).stderr(inside.try_clone().unwrap());
    let mut child = command.spawn().unwrap();
    drop((command, inside));
    let mut terminal = File::from(terminal);
    let mut shown = Vec::new();
    let values: String = (0..20).map(|i| format!("(\"a very long text that does not fit {i}\")")).collect();
    let inputs = [
        ("]> ", format!("SELECT ?x {{ VALUES (?x) {{ {values} }} }};")),
        ("\nin ", "ASK { <urn:short> <urn:a> <urn:b> };".to_owned()),
        ("\nin ", "exit".to_owned()),
    ];
    for (mark, input) in inputs {
        let start = shown.len();
        while !String::from_utf8_lossy(&shown[start..]).contains(mark) {
            let mut bytes = [0; 1024];
            let count = terminal.read(&mut bytes).unwrap();
            assert!(count > 0, "{}", String::from_utf8_lossy(&shown));
            shown.extend_from_slice(&bytes[..count]);
        }
        terminal.write_all(input.as_bytes()).unwrap();
        terminal.write_all(b"\r").unwrap();
    }
    // All other ends of the terminal are closed: reading ends, on Linux with an error.
    let _ = terminal.read_to_end(&mut shown);
    assert!(child.wait().unwrap().success());
    let shown = String::from_utf8_lossy(&shown);
    let paged = std::fs::read_to_string(place.path("paged.txt")).unwrap();
    assert!(paged.contains("20 rows") && paged.contains('…'), "{paged}");
    assert!(paged.lines().all(|line| line.chars().count() <= 40), "{paged}");
    assert!(!shown.contains("20 rows") && shown.contains("false"), "{shown}");
}

//! The snippets of the README, of docs/tutorial and of docs/guides, run with the built binary: the blocks of
//! a page in order, in a folder of its own. The test fails on a block that it can neither run nor skip.
//!
//! | block | what the test does |
//! | --- | --- |
//! | `sh` | runs it with bash; `vervet` is the built binary, and port 7878 is a free one |
//! | `sparql`, `gremlin` | inputs of `vervet shell` on the database of the last `<!-- shell: DB -->` |
//! | `rust` | nothing: a doc test of the crate `vervet` runs it |
//! | `python` | nothing: `python/tests/test_docs.py` runs it |
//! | `{{#include …}}` | nothing: the included file is code of another test |
//!
//! A comment before a block changes this:
//!
//! | comment | |
//! | --- | --- |
//! | `<!-- file: NAME -->` | the block is the content of a file |
//! | `<!-- output -->` | the block is the output of the block before it; `…` matches any characters, and alone on a line any lines |
//! | `<!-- output: shape -->` | the same, but numbers with their units, and the width of columns, may differ |
//! | `<!-- fails -->` | the command must fail; its output includes standard error |
//! | `<!-- serve -->` | the command runs until the next one of these, `<!-- stop -->`, or the end of the page |
//! | `<!-- no-test: REASON -->` | the block is not run |
//! | `<!-- needs MODULE -->` | for `python/tests/test_docs.py` |
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::common::Place;
use rustix::process::{Pid, Signal, kill_process_group};
use std::fmt::Write;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn snippets_of_the_pages_run() {
    for program in ["bash", "curl"] {
        if Command::new(program).arg("--version").output().is_err() {
            eprintln!("skipped: there is no {program}");
            return;
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let mut pages = vec![root.join("README.md")];
    for folder in ["docs/tutorial", "docs/guides"] {
        pages.extend(fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path()));
    }
    pages.sort();
    let read = |file: &str| fs::read_to_string(root.join(file)).unwrap();
    let doc_tests = read("crates/vervet/src/lib.rs") + &read("python/tests/test_docs.py");
    let mut problems = String::new();
    for page in &pages {
        let name = page.strip_prefix(&root).unwrap().display().to_string();
        let text = fs::read_to_string(page).unwrap();
        let mut session = Session::new(&name);
        for block in blocks(&text) {
            if let Err(problem) = session.take(&block, &doc_tests) {
                let _ = writeln!(problems, "{name}:{}: {problem}", block.line);
                break;
            }
        }
        println!("{name}: {} blocks run", session.run_count);
    }
    assert!(problems.is_empty(), "{problems}");
}

/// A code block with the comments before it, or comments without a block.
#[derive(Default)]
struct Block {
    /// From 1; of the first line of the text.
    line: usize,
    language: String,
    text: String,
    /// Name and value of each comment between the previous block and this one.
    comments: Vec<(String, String)>,
}

impl Block {
    fn comment(&self, name: &str) -> Option<&str> {
        self.comments.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }
}

fn blocks(text: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut block = Block::default();
    let mut is_open = false;
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(language) = line.strip_prefix("```") {
            if is_open {
                found.push(std::mem::take(&mut block));
            } else {
                language.clone_into(&mut block.language);
                block.line = number + 1;
            }
            is_open = !is_open;
        } else if is_open {
            block.text.push_str(line);
            block.text.push('\n');
        } else if let Some(comment) = line.strip_prefix("<!-- ").and_then(|line| line.strip_suffix(" -->")) {
            let (name, value) = comment.split_once(": ").unwrap_or((comment, ""));
            block.comments.push((name.to_owned(), value.to_owned()));
            block.line = number;
        }
    }
    assert!(!is_open, "a block is not closed");
    if !block.comments.is_empty() {
        found.push(block);
    }
    found
}

/// The state of a page.
struct Session {
    page: String,
    place: Place,
    port: u16,
    database: Option<String>,
    output: Option<String>,
    server: Option<Child>,
    run_count: usize,
}

impl Session {
    fn new(page: &str) -> Self {
        let place = Place::new();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        // Output that goes to the page is formatted as on a terminal.
        let script = format!(
            "#!/bin/bash\nargs=(\"$@\")\n\
             case \" $* \" in\n\
             *' --bind '*|*' --config '*) ;;\n\
             ' serve '*|' demo --serve '*) args+=(--bind 127.0.0.1:{port}) ;;\n\
             *' --format '*|*' --explain '*|*' --profile '*) ;;\n\
             ' query '*) if [ /dev/stdout -ef \"$PAGE_OUTPUT\" ]; then args=(query --format table \"${{@:2}}\"); fi ;;\n\
             esac\nexec {} \"${{args[@]}}\"\n",
            env!("CARGO_BIN_EXE_vervet")
        );
        let bin = place.root().with_extension("bin");
        fs::create_dir_all(&bin).unwrap();
        fs::write(bin.join("vervet"), script).unwrap();
        fs::set_permissions(bin.join("vervet"), fs::Permissions::from_mode(0o755)).unwrap();
        let page = page.to_owned();
        Self { page, place, port, database: None, output: None, server: None, run_count: 0 }
    }

    fn bin(&self) -> PathBuf {
        self.place.root().with_extension("bin")
    }

    fn take(&mut self, block: &Block, doc_tests: &str) -> Result<(), String> {
        for (name, value) in &block.comments {
            match name.as_str() {
                "shell" => self.database = Some(value.clone()),
                "stop" => self.stop(),
                "file" | "output" | "fails" | "serve" => {}
                "no-test" if value.len() > 5 => {}
                other if other.starts_with("needs ") => {}
                other => return Err(format!("unknown comment {other:?}, or one without its value")),
            }
        }
        if block.comment("no-test").is_some() || block.language.is_empty() && block.text.is_empty() {
            return Ok(());
        }
        let text = block.text.replace("7878", &self.port.to_string());
        if let Some(name) = block.comment("file") {
            fs::write(self.place.path(name), text).unwrap();
            return Ok(());
        }
        if let Some(kind) = block.comment("output") {
            let output = self.output.take().ok_or("no block before it has output")?;
            let is_same = match kind {
                "shape" => shape(&text) == shape(&output),
                _ => matches(&lines(&text), &lines(&output)),
            };
            return if is_same { Ok(()) } else { Err(format!("the output is\n{output}")) };
        }
        match block.language.as_str() {
            "sh" if block.comment("serve").is_some() => self.serve(&text),
            "sh" => {
                let mut command = self.bash();
                command.arg("-c").arg(&text);
                self.run(command, "", block.comment("fails").is_some())
            }
            "sparql" | "gremlin" => {
                let database = self.database.clone().ok_or("no <!-- shell: DB --> before it")?;
                let mut command = self.bash();
                command.arg("-c").arg(format!("vervet shell {database}"));
                let end = if text.trim_end().ends_with(';') { "" } else { ";" };
                let input = format!("{}{end}\n", text.trim_end());
                self.run(command, &input, block.comment("fails").is_some())
            }
            _ if block.text.starts_with("{{#include ") => Ok(()),
            "rust" if doc_tests.contains(&format!("\"../../../{}\"", self.page)) => Ok(()),
            "python" if doc_tests.contains(&format!("\"{}\"", self.page)) => Ok(()),
            "rust" => Err("crates/vervet/src/lib.rs does not include this page".to_owned()),
            "python" => Err("python/tests/test_docs.py does not name this page".to_owned()),
            other => Err(format!("do not know how to run the language {other:?}")),
        }
    }

    fn bash(&self) -> Command {
        let mut command = Command::new("bash");
        let path = format!("{}:{}", self.bin().display(), std::env::var("PATH").unwrap());
        command.args(["-e", "-o", "pipefail"]).current_dir(self.place.root()).env("PATH", path);
        command.env("XDG_STATE_HOME", self.bin()).env("NO_COLOR", "1").env("LC_ALL", "C.UTF-8");
        command.env("PAGE_OUTPUT", self.bin().join("output"));
        command
    }

    fn run(&mut self, mut command: Command, input: &str, must_fail: bool) -> Result<(), String> {
        let [input_file, output_file, error_file] =
            ["input", "output", "errors"].map(|name| self.bin().join(name));
        fs::write(&input_file, input).unwrap();
        let output = fs::File::create(&output_file).unwrap();
        if must_fail {
            command.stderr(output.try_clone().unwrap());
        } else {
            command.stderr(fs::File::create(&error_file).unwrap());
        }
        let status = command.stdin(fs::File::open(&input_file).unwrap()).stdout(output).status().unwrap();
        let text = fs::read_to_string(&output_file).unwrap();
        if status.success() == must_fail {
            let errors = fs::read_to_string(&error_file).unwrap_or_default();
            return Err(format!("{status}\n{text}{errors}"));
        }
        self.output = Some(text);
        self.run_count += 1;
        Ok(())
    }

    fn serve(&mut self, text: &str) -> Result<(), String> {
        self.stop();
        let mut command = self.bash();
        command.arg("-c").arg(text).process_group(0).stdin(Stdio::null());
        let errors = self.bin().join("errors");
        command.stdout(Stdio::null()).stderr(fs::File::create(&errors).unwrap());
        let started = Instant::now();
        let child = self.server.insert(command.spawn().unwrap());
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let is_running = child.try_wait().unwrap().is_none();
            if !is_running || started.elapsed() > Duration::from_secs(60) {
                return Err(format!("the server did not start\n{}", fs::read_to_string(errors).unwrap()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.run_count += 1;
        Ok(())
    }

    fn stop(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ = kill_process_group(Pid::from_child(&server), Signal::TERM);
            let _ = server.wait();
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.stop();
        let _ = fs::remove_dir_all(self.bin());
    }
}

fn lines(text: &str) -> Vec<&str> {
    text.trim_end().lines().map(|line| line.trim_end().trim_end_matches('\r')).collect()
}

/// The text with each number and its unit replaced by `0`, and runs of blanks and of `─` by one of them.
fn shape(text: &str) -> String {
    let mut shape = String::new();
    for line in lines(text) {
        for word in line.split_whitespace() {
            let inner = word.trim_matches(|c: char| !c.is_alphanumeric());
            let is_unit = matches!(inner, "ns" | "µs" | "ms" | "s" | "bytes" | "kB" | "MB");
            let is_number =
                !inner.is_empty() && inner.chars().all(|c| c.is_ascii_digit() || matches!(c, ',' | '.'));
            if word.chars().all(|c| c == '─') {
                shape.push('─');
            } else if is_number {
                shape.push_str(&word.replace(inner, "0"));
            } else if !is_unit {
                shape.push_str(word);
            }
            shape.push(' ');
        }
        shape.push('\n');
    }
    shape
}

/// Whether the lines match; see `<!-- output -->` above.
fn matches(expected: &[&str], actual: &[&str]) -> bool {
    match (expected, actual) {
        ([], actual) => actual.is_empty(),
        (["…", rest @ ..], actual) => (0..=actual.len()).any(|skipped| matches(rest, &actual[skipped..])),
        ([line, rest @ ..], [first, after @ ..]) => line_matches(line, first) && matches(rest, after),
        ([_, ..], []) => false,
    }
}

fn line_matches(expected: &str, actual: &str) -> bool {
    let Some((start, rest)) = expected.split_once('…') else { return expected == actual };
    let Some(after) = actual.strip_prefix(start) else { return false };
    let mut ends = after.char_indices().map(|(at, _)| at).chain([after.len()]);
    ends.any(|at| line_matches(rest, &after[at..]))
}

#[test]
fn expected_output_may_have_gaps() {
    let check = |expected: &str, actual: &str| matches(&lines(expected), &lines(actual));
    assert!(check("a\n…\nb …s\n", "a\n1\n2\nb 2 ms"));
    assert!(check("a\n…\nb", "a\nb"));
    assert!(!check("a\nb", "a\nb\nc"));
    assert!(!check("a … c", "a b d"));
}

#[test]
fn shapes_have_no_numbers() {
    assert_eq!(shape("a  1,204 rows  3.5 µs\n─────  (12 kB)"), shape("a  7 rows 12 ns\n──── (3.1 MB)"));
    assert_ne!(shape("a 1 b"), shape("a 1 c"));
    assert_ne!(shape("a1"), shape("a2"));
}

#[test]
fn blocks_have_their_comments() {
    let page =
        "text\n<!-- file: a.csv -->\n```csv\nid\n```\n<!-- stop -->\n\n```sh\nls\n```\n<!-- stop -->\n";
    let found = blocks(page);
    let shown: Vec<_> = found.iter().map(|b| (b.line, b.language.as_str(), b.text.as_str())).collect();
    assert_eq!(shown, [(4, "csv", "id\n"), (9, "sh", "ls\n"), (11, "", "")]);
    assert_eq!(found[0].comment("file"), Some("a.csv"));
    assert_eq!(found[1].comment("stop"), Some(""));
}

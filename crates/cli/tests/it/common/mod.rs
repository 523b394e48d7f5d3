//! Runs the built binary in a temporary directory.
#![allow(dead_code, reason = "every test file uses a part of it")]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A temporary directory in which commands run.
pub(crate) struct Place {
    directory: tempfile::TempDir,
}

/// The result of a command.
#[derive(Debug)]
pub(crate) struct Done {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn root(&self) -> &Path {
        self.directory.path()
    }

    /// Writes a file and returns its name.
    pub(crate) fn file<'n>(&self, name: &'n str, text: &str) -> &'n str {
        std::fs::write(self.path(name), text).unwrap();
        name
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vervet"));
        command.args(arguments).current_dir(self.root()).stdin(Stdio::null());
        command.env("XDG_STATE_HOME", self.path("state")).env("NO_COLOR", "1");
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Done {
        Done::from(self.command(arguments).output().unwrap())
    }

    pub(crate) fn run_with_input(&self, arguments: &[&str], input: &str) -> Done {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // The command may end before it has read everything; its output shows whether it did.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        Done::from(child.wait_with_output().unwrap())
    }

    /// Runs a command that must succeed; returns its output.
    #[track_caller]
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let done = self.run(arguments);
        assert_eq!(done.code, 0, "{arguments:?}: {}", done.err);
        done.out
    }

    /// Runs a command that must fail with this code and print all of these.
    #[track_caller]
    pub(crate) fn fails(&self, arguments: &[&str], code: i32, says: &[&str]) {
        let done = self.run(arguments);
        assert_eq!(done.code, code, "{arguments:?}: {done:?}");
        assert_eq!(done.out, "", "{arguments:?}");
        for part in says {
            assert!(done.err.contains(part), "{arguments:?} should say {part:?}: {}", done.err);
        }
    }
}

impl From<Output> for Done {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Three people who know each other.
pub(crate) const PEOPLE: &str = "\
@prefix : <http://example.org/> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:ann a :Person ; :name \"Ann\" ; :age 31 ; :knows :bob , :eve .
:bob a :Person ; :name \"Bob\"@en ; :age 27 ; :knows :eve .
:eve a :Person ; :name \"Eve, \\\"the\\\" <3rd>\\tline\\nbreak\" .
";

/// A database with [`PEOPLE`] in `db`.
pub(crate) fn people() -> Place {
    let place = Place::new();
    place.file("people.ttl", PEOPLE);
    place.ok(&["load", "db", "people.ttl"]);
    place
}

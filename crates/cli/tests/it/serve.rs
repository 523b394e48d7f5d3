//! `vervet serve` as a process, and `vervet password` on a terminal.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::common::Place;
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Stdio};

/// A server process; killed on drop.
pub(crate) struct Serving {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStderr>>,
    pub(crate) address: String,
}

impl Serving {
    pub(crate) fn start(place: &Place, arguments: &[&str]) -> Self {
        let mut command =
            place.command(&[&["serve", "db", "--create", "--bind", "127.0.0.1:0"], arguments].concat());
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut serving = Self { child, lines, address: String::new() };
        let line = serving.line_with("http://");
        serving.address = line.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
        serving
    }

    /// The next line of standard error that contains `part`.
    fn line_with(&mut self, part: &str) -> String {
        self.lines.find(|line| line.as_ref().unwrap().contains(part)).unwrap().unwrap()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn status(&self, token: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let head = "GET /query?query=ASK%7B%7D HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
        write!(stream, "{head}Authorization: Bearer {token}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer[9..12].to_owned()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// security S10, users 25: SIGHUP reloads the configuration without ending the server; an invalid one changes
/// nothing.
#[test]
fn s10_a_hangup_reloads() {
    // SHA-256 of `one` and `two`.
    const ONE: &str = "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed";
    const TWO: &str = "3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3";
    let user = |hash: &str| format!("[[users]]\nname = 'robot'\ntoken_sha256 = '{hash}'\nrole = 'read'\n");
    let place = Place::new();
    place.file("server.toml", &user(ONE));
    let mut server = Serving::start(&place, &["--config", "server.toml"]);
    assert_eq!((server.status("one"), server.status("two")), ("200".to_owned(), "401".to_owned()));
    place.file("server.toml", "[[users]]\nname = 'robot'\nrole = 'king'\n");
    server.signal(Signal::HUP);
    assert!(
        server.line_with("could not reload").contains("king") || server.line_with("king").contains("king")
    );
    assert_eq!((server.status("one"), server.status("two")), ("200".to_owned(), "401".to_owned()));
    place.file("server.toml", &user(TWO));
    server.signal(Signal::HUP);
    server.line_with("reloaded");
    assert_eq!((server.status("one"), server.status("two")), ("401".to_owned(), "200".to_owned()));
    server.signal(Signal::TERM);
    server.line_with("ended");
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

/// Errors of the address say what to do; while a server holds the database, a load names its address.
#[test]
fn errors_of_the_address_have_a_remedy() {
    let place = Place::new();
    let server = Serving::start(&place, &[]);
    let used = ["serve", "other", "--create", "--bind", &server.address];
    place.fails(&used, 1, &["could not listen on", "hint: another process listens there", "--bind"]);
    for (address, parts) in [
        (server.address.as_str(), ["could not listen on", "--bind ADDRESS:PORT"]),
        ("0.0.0.0:0", ["TLS is not configured", "hint: the demo has neither TLS nor users"]),
    ] {
        let done = place.run(&["demo", "--serve", "--bind", address]);
        assert!(done.code == 1 && parts.iter().all(|part| done.err.contains(part)), "{done:?}");
    }
    let file = place.file("a.nt", "<urn:a> <urn:b> <urn:c> .\n");
    let hint = format!("hint: send the files to the server: curl -F f=@FILE http://{}/load", server.address);
    place.fails(&["load", "db", file], 1, &["holds the lock", &hint]);
}

/// The files of a database, the log included, are private to its user (security S9).
#[test]
fn s9_a_database_is_private() {
    use std::os::unix::fs::MetadataExt;
    let place = Place::new();
    place.file("a.nt", "<urn:a> <urn:b> <urn:c> .\n");
    place.ok(&["load", "db", "a.nt"]);
    place.ok(&["update", "db", "INSERT DATA { <urn:a> <urn:b> <urn:d> }"]);
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(&place.path("db")), 0o700);
    let mut files = 0;
    for entry in std::fs::read_dir(place.path("db")).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
        files += 1;
    }
    assert!(files >= 4, "manifest, dictionary, segments, log: {files}");
}

/// users 26: on a terminal the password is hidden and typed twice.
#[test]
fn users_26_a_password_is_not_shown_and_typed_twice() {
    let place = Place::new();
    let typed = |first: &str, second: &str| {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap();
        let inside = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let mut command = place.command(&["password"]);
        command.stdin(inside.try_clone().unwrap()).stderr(inside.try_clone().unwrap()).stdout(Stdio::piped());
        let child = command.spawn().unwrap();
        drop((command, inside));
        let mut terminal = File::from(terminal);
        let mut shown = Vec::new();
        'typing: for (prompt, answer) in [("password: ", first), ("again: ", second)] {
            while !shown.ends_with(prompt.as_bytes()) {
                let mut byte = [0];
                if terminal.read_exact(&mut byte).is_err() {
                    // It has ended without a second prompt.
                    break 'typing;
                }
                shown.push(byte[0]);
            }
            writeln!(terminal, "{answer}").unwrap();
        }
        let done = child.wait_with_output().unwrap();
        // All other ends of the terminal are closed: reading ends, on Linux with an error.
        let _ = terminal.read_to_end(&mut shown);
        (String::from_utf8(shown).unwrap(), String::from_utf8(done.stdout).unwrap(), done.status.success())
    };
    let (shown, hash, is_right) = typed("secret", "secret");
    assert!(is_right && hash.starts_with("$argon2id$"), "{shown}");
    assert!(!shown.contains("secret"), "{shown}");
    let (shown, hash, is_right) = typed("secret", "secrets");
    assert!(!is_right && hash.is_empty() && shown.contains("differ") && !shown.contains("secret"), "{shown}");
    let (shown, _, is_right) = typed("sec\u{3}", "");
    assert!(!is_right, "{shown}");
}

//! The commands in `packaging/` run with the built binary, and `vervet health` sees the server.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::common::Place;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

fn packaging(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(file)
}

/// The rest of the only line that starts with `start`.
fn line(file: &str, start: &str) -> String {
    let text = fs::read_to_string(packaging(file)).unwrap();
    let mut lines = text.lines().filter_map(|line| line.trim().strip_prefix(start));
    let line = lines.next().unwrap().to_owned();
    assert_eq!(lines.next(), None, "{file}: {start}");
    line
}

/// Runs a command of `packaging/` on a free port until its health has been asked; killed on a panic.
fn served(arguments: Vec<String>) {
    struct Killed(Child);
    impl Drop for Killed {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
    let place = Place::new();
    let arguments = arguments.iter().map(|argument| match argument.as_str() {
        "/var/lib/vervet" | "/data" => "db".to_owned(),
        "/etc/vervet.toml" => packaging("vervet.toml").display().to_string(),
        "0.0.0.0:7878" => "127.0.0.1:0".to_owned(),
        other => other.to_owned(),
    });
    let mut arguments: Vec<String> = arguments.collect();
    if !arguments.contains(&"--bind".to_owned()) {
        arguments.extend(["--bind", "127.0.0.1:0"].map(str::to_owned));
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut command = place.command(&arguments);
    let mut server = Killed(command.stderr(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(server.0.stderr.take().unwrap()).lines();
    let mut line_with =
        |part: &str| lines.find(|line| line.as_ref().unwrap().contains(part)).unwrap().unwrap();
    let started = line_with("http://");
    let address = format!("http://{}/", started.split("http://").nth(1).unwrap().split('/').next().unwrap());
    assert_eq!(place.ok(&["health", &address]), "ok\n");
    assert_eq!(place.ok(&["health", "--ready", address.trim_end_matches('/')]), "ready\n");
    let signal = |signal| kill_process(Pid::from_child(&server.0), signal).unwrap();
    signal(Signal::HUP);
    line_with("reloaded");
    // Not the address of a server.
    place.fails(&["health", &format!("{address}gremlin")], 1, &["gremlin/health", "404"]);
    signal(Signal::TERM);
    line_with("ended");
    assert_eq!(server.0.wait().unwrap().code(), Some(0));
    place.fails(&["health", &address], 1, &[&address]);
    place.fails(&["health", "127.0.0.1"], 2, &["HOST:PORT"]);
}

/// Another program that answers every request with success is not a healthy server, and its bytes do not
/// reach the terminal.
#[test]
fn health_recognizes_another_program() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let bodies: [&[u8]; 3] = [b"<html>\x1b[31m\x00\xff</html>\n<p>", b"", b"ready\n"];
    let answers = std::thread::spawn(move || {
        for body in bodies {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 1024];
            assert!(stream.read(&mut request).unwrap() > 0);
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
            stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
        }
    });
    let place = Place::new();
    let done = place.run(&["health", &address]);
    assert!(done.code == 1 && done.out.is_empty(), "{done:?}");
    assert!(done.err.contains("not that of a Vervet server, which answers ok: <html>"), "{done:?}");
    assert!(!done.err.trim_end().contains(char::is_control), "{done:?}");
    place.fails(&["health", &address], 1, &["the response is empty"]);
    place.fails(&["health", &address], 1, &["not that of a Vervet server", "ready"]);
    answers.join().unwrap();
}

#[test]
fn the_command_of_the_unit_runs() {
    let command = line("vervet.service", "ExecStart=");
    let mut words = command.split(' ').map(str::to_owned);
    assert_eq!(words.next().unwrap(), "/usr/local/bin/vervet");
    served(words.collect());
}

#[test]
fn the_command_of_the_image_runs() {
    served(serde_json::from_str(&line("Dockerfile", "CMD ")).unwrap());
    let check = line("Dockerfile", "HEALTHCHECK ");
    let check: Vec<String> = serde_json::from_str(check.split("CMD ").nth(1).unwrap()).unwrap();
    assert_eq!(check, ["/vervet", "health"]);
}

//! The log and the service notifications of `vervet serve`: the built binary over its real protocol.
#![cfg(unix)]

use rustix::process::{Pid, Signal};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::Duration;

/// users 23 and 25: standard error had only two lines, even when requests failed; systemd was not notified.
#[test]
fn users_23_serve_logs_what_happens_and_notifies() {
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("notify");
    let notified = UnixDatagram::bind(&socket).expect("a socket");
    notified.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    let config = directory.path().join("vervet.toml");
    let user = "[[users]]\nname = \"ann\"\ntoken_sha256 = \"2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b\"\nrole = \"write\"\n";
    std::fs::write(&config, format!("slow_query_ms = 0\n{user}")).expect("a file");
    let mut server = Command::new(env!("CARGO_BIN_EXE_vervet"))
        .args(["serve", "--create", "--bind", "127.0.0.1:0", "--log-format", "json", "--config"])
        .arg(&config)
        .arg(directory.path().join("db"))
        .env("NOTIFY_SOCKET", &socket)
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(server.stderr.take().expect("it is piped")).lines();
    let mut next = |message: &str| -> serde_json::Value {
        loop {
            let line = lines.next().expect("it goes on").expect("UTF-8");
            let event: serde_json::Value = serde_json::from_str(&line).expect("every line is JSON");
            if event["message"] == message {
                return event;
            }
        }
    };
    let receive = || {
        let mut bytes = [0; 64];
        let count = notified.recv(&mut bytes).expect("a datagram");
        String::from_utf8_lossy(&bytes[..count]).into_owned()
    };
    assert_eq!(next("opened")["level"], "INFO");
    let address = next("started")["address"].as_str().expect("a text").to_owned();
    let address = address.trim_start_matches("http://").trim_end_matches('/').to_owned();
    assert_eq!(receive(), "READY=1");
    let send = |token: &str, body: &str| {
        let mut stream = TcpStream::connect(&address).expect("it listens");
        let request = format!(
            "POST /query HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/sparql-query\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).expect("it is sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    };
    assert!(send("secret", "SELECT ?x { ?x ?y \"a\\nb\" }").starts_with("HTTP/1.1 200"));
    let slow = next("slow request");
    assert_eq!((&slow["kind"], &slow["user"]), (&"query".into(), &"ann".into()), "{slow}");
    assert_eq!(slow["text"], "SELECT ?x { ?x ?y \"a\\nb\" }", "the text itself, not quoted twice");
    assert!(slow["plan"].as_str().is_some_and(|plan| plan.len() == 16), "{slow}");
    assert!(slow["seconds"].as_f64().is_some() && slow["rows"] == 0, "{slow}");
    assert!(send("wrong secret", "ASK {}").starts_with("HTTP/1.1 401"));
    let failed = next("login failed");
    assert!(failed["level"] == "WARN" && !failed.to_string().contains("secret"), "{failed}");
    rustix::process::kill_process(Pid::from_child(&server), Signal::TERM).expect("it runs");
    next("stopping");
    assert_eq!(receive(), "STOPPING=1");
    next("ended");
    assert!(server.wait().expect("it ends").success());
}

/// users 23: a failure at startup is a log event too, with its hint, even if the log itself cannot start as
/// configured.
#[test]
fn users_23_failures_at_the_start_are_json() {
    let directory = tempfile::tempdir().expect("a directory");
    let wrong = directory.path().join("wrong.toml");
    std::fs::write(&wrong, "no such option = 1\n").expect("a file");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let taken = taken.local_addr().expect("an address").to_string();
    let (wrong, db) = (wrong.to_str().expect("UTF-8"), directory.path().join("db"));
    for (arguments, level, code) in [
        (&[][..], "", 1),
        (&["--create", "--config", wrong], "", 1),
        (&["--create", "--bind", &taken], "", 1),
        (&["--create", "--bind", "127.0.0.1:0"], "loud", 2),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_vervet"))
            .args(["serve", "--log-format", "json"])
            .args(arguments)
            .arg(&db)
            .env("VERVET_LOG", level)
            .output()
            .expect("it runs");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?} {level}: {text}");
        let events: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("every line is JSON")).collect();
        let last = events.last().expect("an event");
        assert_eq!(last["level"], "ERROR", "{arguments:?}: {text}");
        assert!(last["message"].as_str().is_some_and(|message| !message.is_empty()), "{text}");
        let is_hinted = !arguments.contains(&wrong) && !arguments.contains(&taken.as_str());
        if is_hinted {
            assert!(last["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{arguments:?}: {text}");
        }
    }
    // Without events, the failure is plain text.
    let output = Command::new(env!("CARGO_BIN_EXE_vervet"))
        .args(["serve", "--log-format", "json", "--log-level", "off", "/nowhere/at/all"])
        .output()
        .expect("it runs");
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("error: "), "{output:?}");
}

#[test]
fn levels_come_from_the_option_and_the_environment() {
    let run = |arguments: &[&str], level: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_vervet"))
            .args(arguments)
            .env("VERVET_LOG", level)
            .output()
            .expect("it runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let directory = tempfile::tempdir().expect("a directory");
    let (db, data) = (directory.path().join("db"), directory.path().join("a.nt"));
    std::fs::write(&data, "<urn:a> <urn:b> <urn:c> .\n").expect("a file");
    let (db, data) = (db.to_str().expect("UTF-8"), data.to_str().expect("UTF-8"));
    assert!(!run(&["load", db, data], "").1.contains("INFO"));
    assert!(run(&["load", db, data], "info").1.contains("INFO vervet::database: loaded"));
    assert!(!run(&["load", "--log-level", "error", db, data], "info").1.contains("INFO"));
    let (code, text) = run(&["info", db], "loud");
    assert!(code == Some(2) && text.contains("loud") && text.contains("debug"), "{text}");
}

//! Everything that is too large, too slow, too long or too numerous hits its limit and gets a clear error,
//! and the server continues.

use crate::common::{ENDLESS_COUNT, Reply, Running, people, request, thousand};
use std::io::{Read, Write};
use std::time::Duration;
use vervet::{Database, Format};
use vervet_server::ServerOptions;

const CSV: &str = "Accept: text/csv";

#[test]
fn bodies_have_a_size() {
    let server = Running::start(&people(), |options| {
        options.limits.text_bytes = 1000;
        options.limits.document_bytes = 2000;
    });
    let long = format!("ASK {{}} #{}", "x".repeat(1000));
    let reply = server.query(&long, &[]).expect(413);
    assert!(reply.text().contains("1000 bytes"), "{}", reply.text());
    // A body of undeclared length.
    let mut stream = server.connect();
    let head = "POST /query HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/sparql-query\r\n\
                Transfer-Encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(format!("{:x}\r\n{long}\r\n0\r\n\r\n", long.len()).as_bytes()).unwrap();
    assert_eq!(Reply::read(stream, false).status, 413);
    let document = format!("<urn:a> <urn:b> \"{}\" .", "x".repeat(1500));
    server.send("PUT", "/store?default", &["Content-Type: text/turtle"], document.as_bytes()).expect(204);
    let document = document.replace('x', "xx");
    server.send("PUT", "/store?default", &["Content-Type: text/turtle"], document.as_bytes()).expect(413);
}

#[test]
fn heads_have_a_size_limit() {
    let server = Running::start(&people(), |options| {
        options.limits.head_bytes = 8192;
        options.limits.headers = 20;
    });
    let long = format!("X-Long: {}", "x".repeat(10_000));
    assert_eq!(server.get("/health", &[&long]).status, 431);
    let many: Vec<String> = (0..30).map(|n| format!("X-{n}: x")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(server.get("/health", &many).status, 431);
    server.get("/health", &[]).expect(200);
}

#[test]
fn nesting_has_a_depth_limit() {
    let server = Running::start(&people(), |options| options.limits.timeout = Duration::from_secs(1));
    for (open, close) in [("{", "}"), ("{ OPTIONAL ", "}"), ("{ ?s ?p ?o FILTER(", ")}")] {
        let text = format!("SELECT * {{ {} {} }}", open.repeat(20_000), close.repeat(20_000));
        assert_eq!(server.query(&text, &[]).status, 400, "{open}");
    }
    let text = format!("SELECT * {{ FILTER({}1{}) }}", "(".repeat(100_000), ")".repeat(100_000));
    server.query(&text, &[]).expect(400);
    let text = format!("ASK {{ FILTER({}1) }}", "!".repeat(100_000));
    server.query(&text, &[]).expect(400);
    let deep = 50_000;
    let xml = "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns:e=\"urn:e:\">";
    for (kind, document) in [
        ("text/turtle", format!("<urn:a> <urn:b> {}{} .", "(".repeat(deep), ")".repeat(deep))),
        ("text/turtle", format!("<urn:a> <urn:b> {}{} .", "[ <urn:c> ".repeat(deep), "]".repeat(deep))),
        ("application/n-triples", format!("<urn:a> <urn:b> {}", "<<( <urn:a> <urn:b> ".repeat(deep))),
        (
            "text/turtle",
            format!("<urn:a> <urn:b> {}1{}.", "<<(<urn:a> <urn:b> ".repeat(deep), ")>>".repeat(deep)),
        ),
        ("application/ld+json", "[".repeat(deep) + &"]".repeat(deep)),
        ("application/ld+json", "{\"urn:a\":".repeat(deep) + "1" + &"}".repeat(deep)),
        (
            "application/rdf+xml",
            format!("{xml}{}{}</rdf:RDF>", "<e:a><e:b>".repeat(deep), "</e:b></e:a>".repeat(deep)),
        ),
    ] {
        let kind = format!("Content-Type: {kind}");
        let reply = server.send("PUT", "/store?default", &[&kind], document.as_bytes());
        assert!(matches!(reply.status, 204 | 400 | 504), "{kind}: {}", reply.status);
        if kind.ends_with("ld+json") || kind.ends_with("rdf+xml") {
            assert!(reply.expect(400).text().contains("DEPTH_MAX"), "{kind}");
        }
    }
    server.get("/health", &[]).expect(200);
}

#[test]
fn a_query_has_a_time_limit() {
    let server = Running::start(&thousand(), |options| options.limits.timeout = Duration::from_millis(200));
    let reply = server.query(ENDLESS_COUNT, &[]).expect(504);
    assert!(reply.text().contains("0.2 s"), "{}", reply.text());
    // A request may ask for less time, but not for more.
    let path = |timeout| format!("/query?timeout={timeout}");
    let headers = ["Content-Type: application/sparql-query"];
    for timeout in ["0.01", "100"] {
        server.send("POST", &path(timeout), &headers, ENDLESS_COUNT.as_bytes()).expect(504);
    }
    let update = format!("INSERT {{ <urn:n> <urn:n> ?n }} WHERE {{ {{ {ENDLESS_COUNT} }} }}");
    server.update(&update, &[]).expect(504);
    server.wait_for("vervet_requests_running", 0.0);
}

#[test]
fn a_query_has_a_memory_limit() {
    let server = Running::start(&thousand(), |options| options.limits.memory_bytes = 1 << 20);
    let text = "SELECT * { ?a <urn:p> ?b . ?c <urn:p> ?d } ORDER BY DESC(?b) ?d";
    let reply = server.query(text, &[]).expect(507);
    assert!(reply.text().contains("--memory"), "{}", reply.text());
    server.query("ASK {}", &[]).expect(200);
}

/// If a limit is exceeded after the first bytes were sent, the response must not look complete.
#[test]
fn a_failed_response_is_aborted() {
    let server = Running::start(&thousand(), |_| {});
    for encoding in ["identity", "gzip", "zstd"] {
        let headers =
            [CSV, &format!("Accept-Encoding: {encoding}"), "Content-Type: application/sparql-query"];
        let query = |seconds| {
            let path = format!("/query?timeout={seconds}");
            server.send("POST", &path, &headers, crate::common::ENDLESS.as_bytes())
        };
        // A busy machine may send nothing within a second, and then the status says what has failed.
        let mut replies = [1, 4, 16, 60].into_iter().map(query);
        let reply = replies.find(|reply| reply.status != 504).expect("something is sent within a minute");
        assert_eq!(reply.status, 200);
        assert!(!reply.body.is_empty() && !reply.whole, "{encoding}: {} bytes", reply.body.len());
    }
    server.wait_for("vervet_answers_broken_total", 3.0);
}

#[test]
fn slow_heads_and_bodies_time_out() {
    let server = Running::start(&people(), |options| {
        options.limits.head_timeout = Duration::from_millis(100);
        options.limits.body_timeout = Duration::from_millis(100);
    });
    // Half a head, and then nothing; nothing at all; half a body.
    for begin in ["GET /health HTTP/1.1\r\nHost:", ""] {
        let mut stream = server.connect();
        stream.write_all(begin.as_bytes()).unwrap();
        if begin.is_empty() {
            // An unused connection just ends.
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).unwrap();
            assert!(answer.is_empty(), "{:?}", String::from_utf8_lossy(&answer));
        } else {
            assert!(Reply::read(stream, false).expect(408).text().contains("head"));
        }
    }
    let mut stream = server.connect();
    let whole = request("POST", "/query", &["Content-Type: application/sparql-query"], b"ASK { }");
    stream.write_all(&whole[..whole.len() - 3]).unwrap();
    assert_eq!(Reply::read(stream, false).status, 408);
    server.wait_for("vervet_connections", 1.0);
}

/// A client that requests much and reads nothing holds a thread only for a limited time.
#[test]
fn slow_readers_end_their_request() {
    let server =
        Running::start(&thousand(), |options| options.limits.write_timeout = Duration::from_millis(200));
    let mut stream = server.connect();
    let headers = ["Content-Type: application/sparql-query", CSV];
    stream.write_all(&request("POST", "/query", &headers, crate::common::ENDLESS.as_bytes())).unwrap();
    let mut byte = [0];
    stream.read_exact(&mut byte).unwrap();
    server.wait_for("vervet_requests_running", 0.0);
    // Data in flight still arrives, but no end.
    assert!(!Reply::read((&byte[..]).chain(stream), false).whole);
}

#[test]
fn running_requests_have_a_limit() {
    let server = Running::start(&thousand(), |options| {
        options.limits.heavy_requests = 1;
        options.limits.queue_timeout = Duration::from_millis(50);
        options.limits.shutdown_timeout = Duration::from_millis(10);
    });
    let mut stream = server.connect();
    let headers = ["Content-Type: application/sparql-query"];
    stream.write_all(&request("POST", "/query", &headers, ENDLESS_COUNT.as_bytes())).unwrap();
    server.wait_for("vervet_heavy_requests_running", 1.0);
    let reply = server.query(ENDLESS_COUNT, &[]).expect(503);
    assert!(reply.header("retry-after").is_some());
    // Light requests do not wait for heavy ones.
    server.query("ASK { ?s <urn:p> ?o }", &[]).expect(200);
    drop(stream);
    server.wait_for("vervet_requests_running", 0.0);
}

/// The thread of a heavy query has a higher nice value than the process, so light queries get the processor
/// first.
#[cfg(target_os = "linux")]
#[test]
fn heavy_queries_have_lower_priority() {
    // Threads of concurrent tests share the process: take the highest nice value of that thread name.
    let niceness = |folder: &std::path::Path| -> Option<i64> {
        let stat = std::fs::read_to_string(folder.join("stat")).ok()?;
        // Behind the name, which may contain anything, it is the 17th field (proc_pid_stat(5)).
        stat.rsplit_once(") ")?.1.split(' ').nth(16)?.parse().ok()
    };
    let of_heavy = || {
        let tasks = std::fs::read_dir("/proc/self/task").expect("a process has tasks");
        let folders = tasks.filter_map(|task| Some(task.ok()?.path()));
        folders
            .filter(|folder| {
                std::fs::read_to_string(folder.join("comm")).is_ok_and(|name| name == "vervet-heavy\n")
            })
            .filter_map(|folder| niceness(&folder))
            .max()
    };
    let own = niceness(std::path::Path::new("/proc/self")).expect("the system tells");
    let server = Running::start(&thousand(), |options| {
        options.limits.shutdown_timeout = Duration::from_millis(10);
    });
    let mut stream = server.connect();
    let headers = ["Content-Type: application/sparql-query"];
    stream.write_all(&request("POST", "/query", &headers, ENDLESS_COUNT.as_bytes())).unwrap();
    server.wait_for("vervet_requests_running", 1.0);
    let begin = std::time::Instant::now();
    while of_heavy() != Some((own + 10).min(19)) {
        assert!(begin.elapsed() < Duration::from_secs(30), "{:?} in a process of {own}", of_heavy());
        std::thread::yield_now();
    }
}

/// `limits.threads` of a configuration file sets the number of threads of a heavy query and a heavy
/// traversal: helpers are numbered threads, and no other test of this process asks for so many.
#[cfg(target_os = "linux")]
#[test]
fn heavy_queries_use_the_configured_threads() {
    let has_helper = |number: usize| {
        let tasks = std::fs::read_dir("/proc/self/task").expect("a process has tasks");
        let mut names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
        names.any(|name| name == format!("vervet-query-{number}\n"))
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let text: String = (0..10_000)
        .map(|n| format!("<urn:s:{}> <urn:vervet:key:to> <urn:s:{}> .\n", n / 100, n % 100))
        .collect();
    let query = "SELECT (COUNT(*) AS ?n) { ?a <urn:vervet:key:to> ?b . ?b <urn:vervet:key:to> ?c FILTER(STR(?a) < STR(?c)) }";
    let traversal =
        "g.V().as('a').out('to').as('b').out('to').as('c').select('a', 'b', 'c').limit(1).count()";
    let traversal = format!("{{\"gremlin\": \"{traversal}\"}}");
    for (threads, gremlin) in [(1, false), (1, true), (cores + 3, false), (cores + 5, true)] {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), format!("[limits]\nthreads = {threads}\n")).expect("it is written");
        let options = ServerOptions::from_file(file.path()).expect("options");
        let database = Database::in_memory();
        database.load_text(Format::NTriples, &text).expect("loads");
        let server = Running::start(&database, |running| running.limits = options.limits);
        let headers = ["Content-Type: application/sparql-query"];
        let plan = server.send("POST", "/api/plan", &headers, query.as_bytes()).expect(200).text();
        let shown = plan.split("\"threads\":").skip(1).filter_map(|rest| rest.split([',', '}']).next());
        let shown = shown.filter_map(|number| number.trim().parse::<usize>().ok()).max();
        assert_eq!(shown, Some(threads), "{plan}");
        // Helpers exist from their first query to the end of their database; the calling thread is the first
        // of the threads.
        let helpers = [threads.saturating_sub(2), threads - 1];
        assert!(threads == 1 || !helpers.iter().any(|helper| has_helper(*helper)), "{threads}");
        let reply = if gremlin {
            server.send("POST", "/gremlin", &["Content-Type: application/json"], traversal.as_bytes())
        } else {
            server.query(query, &[CSV])
        };
        reply.expect(200);
        assert!(threads == 1 || helpers.map(has_helper) == [true, false], "{threads}");
    }
}

#[test]
fn connections_have_a_limit() {
    let server = Running::start(&people(), |options| options.limits.connections = 2);
    let (first, second) = (server.connect(), server.connect());
    // The third connection gets an error; the accept loop handles them in order.
    let refused = Reply::read(server.connect(), false);
    assert_eq!(refused.status, 503);
    drop((first, second));
    server_is_back(&server);
}

fn server_is_back(server: &Running) {
    let begin = std::time::Instant::now();
    while server.get("/health", &[]).status != 200 {
        assert!(begin.elapsed() < Duration::from_secs(30), "the places never came back");
        std::thread::yield_now();
    }
}

/// security S5: a client that reads an export slowly holds its permit only until the deadline; an export of
/// the whole database counts as heavy.
#[test]
fn s5_an_export_has_a_deadline_and_a_heavy_place() {
    let database = Database::in_memory();
    let value = "x".repeat(200);
    let text: String = (0..60_000).map(|n| format!("<urn:s:{n}> <urn:p> \"{value} {n}\" .\n")).collect();
    database.load_text(Format::NTriples, &text).expect("it loads");
    let server = Running::start(&database, |options| {
        options.limits.export_timeout = Duration::from_millis(400);
        options.limits.write_timeout = Duration::from_secs(600);
    });
    for (number, path) in ["/store", "/store?default"].into_iter().enumerate() {
        let mut stream = server.connect();
        stream
            .write_all(&request("GET", path, &["Accept: application/n-quads, application/n-triples"], b""))
            .unwrap();
        server.wait_for("vervet_heavy_requests_running", 1.0);
        server.wait_for("vervet_heavy_requests_running", 0.0);
        server.wait_for("vervet_answers_broken_total", number as f64 + 1.0);
    }
}

/// security S7: one address cannot take all connections.
#[cfg(target_os = "linux")]
#[test]
fn s7_connections_have_a_number_for_each_address() {
    let server = Running::start(&people(), |options| options.limits.connections_per_address = 3);
    let from = |address: &str| crate::users::connect_from(address, server.address);
    let idle: Vec<_> = (0..3).map(|_| from("127.0.0.2")).collect();
    let mut more = from("127.0.0.2");
    more.write_all(&request("GET", "/health", &[], b"")).unwrap();
    assert!(Reply::read(more, false).expect(503).text().contains("this address"));
    let mut other = from("127.0.0.3");
    other.write_all(&request("GET", "/health", &[], b"")).unwrap();
    Reply::read(other, false).expect(200);
    drop(idle);
    // Once the server has noticed the disconnects, there is room again.
    loop {
        let mut again = from("127.0.0.2");
        let _ = again.write_all(&request("GET", "/health", &[], b""));
        let mut answer = Vec::new();
        let _ = again.read_to_end(&mut answer);
        if answer.starts_with(b"HTTP/1.1 200") {
            break;
        }
        assert!(
            answer.is_empty() || answer.starts_with(b"HTTP/1.1 503"),
            "{}",
            String::from_utf8_lossy(&answer)
        );
    }
}

/// security S7: bodies of all clients share a memory limit; announced bytes do not count, received ones do,
/// and messages of WebSockets count too.
#[test]
fn s7_bodies_have_a_size_together() {
    let server = Running::start(&people(), |options| {
        options.limits.bodies_bytes = 1;
        options.limits.text_bytes = 500 << 10;
        options.limits.document_bytes = 500 << 10;
        options.limits.queue_timeout = Duration::from_millis(50);
    });
    let document = format!("<urn:a> <urn:b> \"{}\" .", "x".repeat(400 << 10));
    let put = request("PUT", "/store?graph=urn:g", &["Content-Type: text/turtle"], document.as_bytes());
    let (announced, come) = (put.len() - document.len(), put.len() - 10);
    let start = |length: usize| {
        let mut stream = server.connect();
        stream.write_all(&put[..length]).unwrap();
        stream
    };
    let announcing: Vec<_> = (0..5).map(|_| start(announced)).collect();
    server.send("PUT", "/store?graph=urn:g", &["Content-Type: text/turtle"], document.as_bytes()).expect(201);
    let before = server.metric("vervet_bytes_in_total");
    let mut holding = start(come);
    while server.metric("vervet_bytes_in_total") - before < (come - announced) as f64 {
        std::thread::yield_now();
    }
    let reply = server.send("PUT", "/store?graph=urn:g", &["Content-Type: text/turtle"], document.as_bytes());
    assert!(reply.status == 503 && reply.text().contains("bodies"), "{}", reply.text());
    let mut socket = tungstenite::client(format!("ws://{}/gremlin", server.address), server.connect())
        .expect("a socket")
        .0;
    let _ = socket.send(tungstenite::Message::text("x".repeat(300 << 10)));
    let close = loop {
        match socket.read() {
            Ok(tungstenite::Message::Close(frame)) => break frame.expect("it says why").reason.to_string(),
            Ok(_) => {}
            Err(error) => panic!("{error}"),
        }
    };
    assert!(close.contains("memory"), "{close}");
    holding.write_all(&put[come..]).unwrap();
    Reply::read(holding, false).expect(204);
    drop(announcing);
    server.send("PUT", "/store?graph=urn:g", &["Content-Type: text/turtle"], document.as_bytes()).expect(204);
}

/// users 27: HTTP errors are worded for HTTP: no files, no command-line options, the name of the limit,
/// positions as fields.
#[test]
fn users_27_errors_speak_of_requests() {
    let server = Running::start(&people(), |options| options.limits.document_bytes = 1000);
    let broken = b"<urn:a> <urn:b> 1 .\n<urn:a> <urn:b> x .";
    let types = ["Content-Type: text/turtle", "Accept: application/json"];
    let error = server.send("PUT", "/store?default", &types, broken).expect(400).json();
    let error = &error["error"];
    let hint = error["hint"].as_str().unwrap_or_default();
    assert!(hint.contains("document") && !hint.contains("--") && !hint.contains("file"), "{error}");
    assert_eq!(error["line"], 2, "{error}");
    let error = server.query("ASK {\n ?s ?p }", &["Accept: application/json"]).expect(400).json();
    assert_eq!((&error["error"]["line"], &error["error"]["column"]), (&2.into(), &8.into()), "{error}");
    let gremlin = ["Content-Type: application/json", "Accept: application/json"];
    let error =
        server.send("POST", "/gremlin", &gremlin, br#"{"gremlin": "g.V().\n  owt()"}"#).expect(400).json();
    assert_eq!((&error["error"]["line"], &error["error"]["column"]), (&2.into(), &3.into()), "{error}");
    let reply =
        server.send("PUT", "/store?default", &["Content-Type: text/turtle"], &[b' '; 1001]).expect(413);
    assert!(reply.text().contains("document_bytes"), "{}", reply.text());
}

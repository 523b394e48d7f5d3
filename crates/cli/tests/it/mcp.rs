//! `vervet mcp` through its pipes: a client of each era of the protocol, limits, and hostile input.
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::common::{Place, people};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// A client with a server of its own.
struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Client {
    /// Starts a server without opening a session.
    fn start(place: &Place, options: &[&str]) -> Self {
        let mut command = place.command(&[&["mcp", "db"], options].concat());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, input, output }
    }

    /// A server with a session of the revision 2025-11-25.
    fn open(place: &Place, options: &[&str]) -> Self {
        let mut client = Self::start(place, options);
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
        });
        let result = client.request(0, "initialize", params);
        assert_eq!(result["result"]["protocolVersion"], "2025-11-25", "{result}");
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    fn send_bytes(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(bytes).unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    fn send(&mut self, message: &Value) {
        self.send_bytes(message.to_string().as_bytes());
    }

    fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    fn request(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        let answer = self.receive();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// The texts of the result of a call, and whether it is an error.
    fn call(&mut self, tool: &str, arguments: Value) -> (Vec<String>, bool) {
        let answer = self.request(7, "tools/call", json!({ "name": tool, "arguments": arguments }));
        let result = &answer["result"];
        let content = result["content"].as_array().unwrap_or_else(|| panic!("{answer}"));
        let texts = content.iter().map(|part| part["text"].as_str().unwrap().to_owned()).collect();
        (texts, result["isError"].as_bool().unwrap())
    }

    /// The text of a call that succeeds without remarks.
    #[track_caller]
    fn text(&mut self, tool: &str, arguments: Value) -> String {
        let (mut texts, is_error) = self.call(tool, arguments);
        assert!(!is_error && texts.len() == 1, "{texts:?}");
        texts.remove(0)
    }

    /// The text of a call that fails.
    #[track_caller]
    fn error(&mut self, tool: &str, arguments: Value) -> String {
        let (texts, is_error) = self.call(tool, arguments);
        assert!(is_error, "{texts:?}");
        texts.join("\n")
    }

    /// Ends the input; the server must end with 0, and must have written nothing more.
    #[track_caller]
    fn end(mut self) {
        drop(self.input.take());
        let mut rest = String::new();
        self.output.read_line(&mut rest).unwrap();
        assert_eq!(rest, "");
        let done = self.child.wait_with_output().unwrap();
        assert_eq!((done.status.code(), String::from_utf8_lossy(&done.stderr).as_ref()), (Some(0), ""));
    }
}

const NAMES: &str = "SELECT ?name { ?p <http://example.org/name> ?name } ORDER BY STR(?name)";

#[test]
fn a_client_lists_and_calls_the_tools() {
    let place = people();
    let mut client = Client::open(&place, &[]);
    let answer = client.request(1, "tools/list", json!({}));
    let tools = answer["result"]["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["schema", "query", "explain"]);
    for tool in tools {
        assert_eq!(tool["annotations"]["readOnlyHint"], true);
        assert_eq!(tool["inputSchema"]["type"], "object");
    }
    assert_eq!(answer["result"].get("resultType"), None, "2025-11-25 does not have it");
    assert_eq!(client.request(2, "ping", Value::Null)["result"], json!({}));

    let schema = client.text("schema", json!({}));
    for part in ["<http://example.org/Person>  ", "<http://example.org/knows>", "<http://example.org/bob>"] {
        assert!(schema.contains(part), "{schema}");
    }
    let rows = client.text("query", json!({ "text": NAMES }));
    assert_eq!(rows, "?name\n\"Ann\"\n\"Bob\"@en\n\"Eve, \\\"the\\\" <3rd>\\tline\\nbreak\"");
    let text = "SELECT ?age { ?p <http://example.org/name> ?name ; <http://example.org/age> ?age }";
    assert_eq!(client.text("query", json!({ "text": text, "parameters": { "name": "Ann" } })), "?age\n31");
    let person = json!({ "class": { "iri": "http://example.org/Person" } });
    let text = "SELECT (COUNT(*) AS ?n) { ?p a ?class }";
    assert_eq!(client.text("query", json!({ "text": text, "parameters": person })), "?n\n3");
    assert_eq!(client.text("query", json!({ "text": "ASK { ?p <http://example.org/age> 31 }" })), "true");
    let text = "CONSTRUCT { ?p a <urn:old> } WHERE { ?p <http://example.org/age> 31 }";
    let statement = "<http://example.org/ann> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <urn:old> .";
    assert_eq!(client.text("query", json!({ "text": text })), statement);
    assert_eq!(client.text("query", json!({ "text": "g.V().count()" })), "3");
    let counted = json!({ "text": "g.inject(1, 2).map(__.constant(n))", "parameters": { "n": 5 } });
    assert_eq!(client.text("query", counted), "5\n5");
    let (texts, _) = client.call("query", json!({ "text": "SELECT * { ?p <http://example.org/nam> ?n }" }));
    assert!(texts[1].contains("did you mean <http://example.org/name>?"), "{texts:?}");

    assert!(client.text("explain", json!({ "text": NAMES })).contains("est. rows"));
    assert!(client.text("explain", json!({ "text": NAMES, "run": true })).contains("time"));
    assert!(!client.text("explain", json!({ "text": "g.V().out()" })).is_empty());
    assert!(client.text("explain", json!({ "text": "g.V().out()", "run": true })).contains("traversers"));
    client.end();
}

#[test]
fn a_client_without_a_session_names_the_revision_in_each_request() {
    let place = people();
    let mut client = Client::start(&place, &[]);
    let meta = |revision: &str| {
        json!({
            "io.modelcontextprotocol/protocolVersion": revision,
            "io.modelcontextprotocol/clientCapabilities": {},
        })
    };
    let answer = client.request(1, "tools/list", json!({}));
    assert_eq!(answer["error"]["code"], -32600, "neither a session nor a revision: {answer}");
    let answer = client.request(2, "server/discover", json!({ "_meta": meta("2026-07-28") }));
    let result = &answer["result"];
    assert_eq!(
        (&result["resultType"], &result["supportedVersions"][0]),
        (&json!("complete"), &json!("2026-07-28"))
    );
    let answer = client.request(3, "tools/list", json!({ "_meta": meta("2026-07-28") }));
    let result = &answer["result"];
    assert!(result["ttlMs"].is_u64() && result["cacheScope"] == "private", "{answer}");
    let params =
        json!({ "name": "query", "arguments": { "text": "g.V().count()" }, "_meta": meta("2026-07-28") });
    let answer = client.request(4, "tools/call", params);
    assert_eq!(answer["result"]["content"][0]["text"], "3");
    assert_eq!(answer["result"]["resultType"], "complete");
    let answer = client.request(5, "tools/list", json!({ "_meta": meta("2031-01-01") }));
    assert_eq!(
        (&answer["error"]["code"], &answer["error"]["data"]["requested"]),
        (&json!(-32022), &json!("2031-01-01"))
    );
    client.end();
}

#[test]
fn only_a_server_for_writing_changes_the_graph() {
    let place = people();
    let insert = "INSERT DATA { <urn:a> <urn:p> 1 }";
    let mut reader = Client::open(&place, &[]);
    assert!(
        reader.error("query", json!({ "text": insert })).contains("hint: the server was started without")
    );
    for text in ["g.addV('x')", "g.V().drop()", "g.addV('x').iterate(); g.V().count()"] {
        assert!(reader.error("query", json!({ "text": text })).contains("can change the graph"), "{text}");
        assert!(
            reader.error("explain", json!({ "text": text, "run": true })).contains("can change the graph")
        );
    }
    assert!(reader.error("explain", json!({ "text": insert, "run": true })).contains("error"));
    let answer =
        reader.request(3, "tools/call", json!({ "name": "update", "arguments": { "text": insert } }));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    // Files and other servers are out of reach.
    assert!(reader.error("query", json!({ "text": "g.io('/etc/passwd').read()" })).contains("error"));
    let service = "SELECT * { SERVICE <http://127.0.0.1:1/> { ?s ?p ?o } }";
    assert!(reader.error("query", json!({ "text": service })).contains("SERVICE"));

    let mut writer = Client::open(&place, &["--write"]);
    let count = json!({ "text": "SELECT (COUNT(*) AS ?n) { ?s <urn:p> ?o }" });
    assert_eq!(reader.call("query", count.clone()).0[0], "?n\n0");
    assert_eq!(writer.text("update", json!({ "text": insert })), "1 statement added, 0 removed");
    assert!(writer.error("query", json!({ "text": insert })).contains("hint: use the tool update"));
    assert!(writer.error("update", json!({ "text": "LOAD <file:///etc/passwd>" })).contains("LOAD"));
    let text = "g.addV('robot').property('name', n).values('name')";
    assert_eq!(writer.text("update", json!({ "text": text, "parameters": { "n": "R2" } })), "\"R2\"");
    // The reader sees what another process has committed.
    assert_eq!(reader.text("query", count), "?n\n1");
    assert_eq!(reader.text("query", json!({ "text": "g.V().hasLabel('robot').count()" })), "1");
    place.fails(&["mcp", "db", "--write"], 1, &["vervet mcp"]);
    writer.end();
    reader.end();
}

/// Each result ends at a maximum, and says so. A query without an end has a deadline.
#[test]
fn results_rows_and_times_have_maxima() {
    let place = people();
    let mut client = Client::open(&place, &["--max-rows", "5", "--max-bytes", "2K", "--timeout", "0.2"]);
    let product = "SELECT ?a { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l . ?m ?n ?o . ?p ?q ?r }";
    let (texts, is_error) = client.call("query", json!({ "text": product }));
    assert!(!is_error && texts[0].lines().count() == 6, "{texts:?}");
    assert!(texts[1].contains("cut off") && texts[1].contains("5 rows"), "{texts:?}");
    let (texts, _) = client.call("query", json!({ "text": product, "max_rows": 2 }));
    assert_eq!(texts[0].lines().count(), 3);
    let (texts, _) = client.call("query", json!({ "text": product, "max_rows": 1_000_000 }));
    assert_eq!(texts[0].lines().count(), 6, "not more than --max-rows");
    let five = "SELECT ?a { ?a ?b ?c } LIMIT 5";
    assert_eq!(client.text("query", json!({ "text": five })).lines().count(), 6, "it fits");
    let long = "SELECT ?x { BIND(CONCAT('a', STRLEN('a')) AS ?y) VALUES ?x { 'ä' } }"
        .replace('ä', &"ä".repeat(3000));
    let (texts, _) = client.call("query", json!({ "text": long }));
    assert!(texts[0].len() <= 2048 && texts[1].contains("2,048 bytes"), "{texts:?}");
    // One value 2^60 times: nothing counts them one by one.
    let many = format!("g.inject(1){}", ".union(identity(), identity())".repeat(40));
    let (texts, _) = client.call("query", json!({ "text": many }));
    assert!(texts[0] == "1\n1\n1\n1\n1" && texts[1].contains("cut off"), "{texts:?}");
    let count =
        "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l . ?m ?v ?o . ?p ?q ?r . ?s ?t ?u
                 FILTER(CONCAT(STR(?c), STR(?f), STR(?i), STR(?l), STR(?o), STR(?r), STR(?u)) = 'x') }";
    assert!(client.error("query", json!({ "text": count })).contains("timeout of 200ms"));
    let forever = "g.inject(1).repeat(identity()).until(constant(1).is(2))";
    assert!(client.error("query", json!({ "text": forever })).contains("error"));
    assert_eq!(client.text("query", json!({ "text": "g.V().count()" })), "3", "the server lives");
    client.end();
}

/// A query that runs until a client cancels it.
fn endless(id: u64) -> Value {
    let text = "g.inject(1).repeat(identity()).until(constant(1).is(2))";
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": { "name": "query", "arguments": { "text": text } } })
}

fn cancelled(id: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } })
}

/// Cancelled calls have no answer, others are not disturbed, and the number of calls at a time is limited.
#[test]
fn calls_can_be_cancelled() {
    let place = people();
    let mut client = Client::open(&place, &["--timeout", "1000000"]);
    for id in 100..108 {
        client.send(&endless(id));
    }
    let answer = client.request(1, "tools/call", json!({ "name": "schema" }));
    assert_eq!(answer["error"]["code"], -32000, "eight calls are running: {answer}");
    assert_eq!(client.request(2, "ping", json!({}))["result"], json!({}));
    client.send(&endless(101));
    let answer = client.receive();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(101), &json!(-32600)), "the id is in use");
    for id in [json!("100"), json!(55), json!(null), json!({ "a": 1 }), json!(100), json!(101)] {
        client.send(&cancelled(&id));
    }
    assert_eq!(client.text("query", json!({ "text": "g.V().count()" })), "3");
    client.send(&endless(100));
    for id in (100..108).filter(|id| *id != 101) {
        client.send(&cancelled(&json!(id)));
    }
    // The next line is the answer to this, not to a cancelled call; the server ends, so no call is running.
    assert_eq!(client.request(3, "ping", json!({}))["result"], json!({}));
    client.end();
}

#[test]
fn hostile_lines_have_an_error_each_and_the_server_lives() {
    let place = people();
    let mut client = Client::open(&place, &[]);
    let deep = "[".repeat(1_000_000);
    let long = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{}\"}}", "x".repeat(5 << 20));
    for (line, code) in [
        (&b"{"[..], -32700),
        (b"\xff\xfe{}", -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":\"\\ud800\",\"method\":\"ping\"}", -32700),
        (deep.as_bytes(), -32700),
        (long.as_bytes(), -32600),
        (b"[]", -32600),
        (b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", -32600),
        (b"null", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1}", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"nothing\"}", -32601),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/list\"}", -32601),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\"}", -32602),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":[1]}", -32602),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":{}}}", -32602),
    ] {
        client.send_bytes(line);
        let answer = client.receive();
        assert_eq!(answer["error"]["code"], code, "{:.80}: {answer}", String::from_utf8_lossy(line));
    }
    // These have no answer.
    for line in [
        "",
        "  \t",
        "{\"jsonrpc\":\"2.0\",\"method\":\"nothing\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}",
    ] {
        client.send_bytes(line.as_bytes());
    }
    let nested = format!("SELECT * {{ {}{} }}", "{".repeat(100_000), "}".repeat(100_000));
    for (tool, arguments) in [
        ("query", json!({})),
        ("query", json!([1])),
        ("query", json!("SELECT * {}")),
        ("query", json!({ "text": 5 })),
        ("query", json!({ "text": "" })),
        ("query", json!({ "text": NAMES, "limit": 3 })),
        ("query", json!({ "text": NAMES, "max_rows": 0 })),
        ("query", json!({ "text": NAMES, "max_rows": -1 })),
        ("query", json!({ "text": NAMES, "language": "cypher" })),
        ("query", json!({ "text": NAMES, "parameters": { "name": [1] } })),
        ("query", json!({ "text": NAMES, "parameters": { "name": { "iri": "no iri" } } })),
        ("schema", json!({ "text": "x" })),
        ("query", json!({ "text": nested })),
        ("query", json!({ "text": "SELECT * {\u{0}" })),
        ("query", json!({ "text": format!("g.V(){}", ".out()".repeat(100_000)) })),
    ] {
        let text = client.error(tool, arguments.clone());
        assert!(text.starts_with("error: "), "{:.80}: {text:.200}", arguments.to_string());
    }
    let text = client.error("query", json!({ "text": "SELECT ?x { ?x fof:name ?n }" }));
    assert!(text.contains("^^^") && text.contains("did you mean foaf:?"), "{text}");
    assert_eq!(client.text("query", json!({ "text": "g.V().count()" })), "3", "the server lives");
    client.end();
}

#[test]
fn a_server_needs_a_database() {
    let place = people();
    place.fails(&["mcp", "nothing"], 1, &["nothing"]);
    place.fails(&["mcp", "db", "--max-rows", "0"], 2, &["--max-rows"]);
    place.fails(&["mcp", "db", "--max-bytes", "1G"], 2, &["between 1K and 64M"]);
    // Input that ends in the middle of a line, and calls that are still running at its end.
    let line = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"name":"query","arguments":{"text":"g.V().count()"}}}"#;
    let done = place.run_with_input(&["mcp", "db"], line);
    assert_eq!((done.code, done.out.matches("\"text\":\"3\"").count()), (0, 1), "{done:?}");
}

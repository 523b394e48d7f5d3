//! The HTTP form of Gremlin.

use super::client::{args, bytecode, bytecode_args, modern};
use crate::common::{Reply, Running};
use crate::users::{basic, users};
use uuid::Uuid;
use vervet::gremlin::Value;
use vervet_tinkerpop::{Data, Format, Limits, Request, Response};

const JSON: &str = "Content-Type: application/json";

fn post(server: &Running, body: &str, headers: &[&str]) -> Reply {
    let headers: Vec<&str> = headers.iter().copied().chain([JSON]).collect();
    server.send("POST", "/gremlin", &headers, body.as_bytes())
}

#[track_caller]
fn values(reply: &Reply, format: Format) -> Vec<Value> {
    assert_eq!(reply.content_type(), format.mime());
    let response = Response::read(&reply.body, format, Limits::default()).expect("a response");
    match response.data {
        Data::Value(Value::List(values)) => values.as_ref().clone(),
        Data::Traversers(traversers) => traversers.into_iter().map(|traverser| traverser.value).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn accept_selects_the_format_of_results() {
    let server = Running::start(&modern(), |_| ());
    let body = r#"{"gremlin": "g.V(x).values('age')", "bindings": {"x": 1}, "language": "gremlin-lang"}"#;
    for format in Format::ALL {
        let accept = format!("Accept: {}", format.mime());
        let reply = post(&server, body, &[&accept]).expect(200);
        let expected = if format == Format::GraphBinary1Strings { "29".into() } else { Value::from(29) };
        assert_eq!(values(&reply, format), [expected], "{format:?}");
    }
    for (accept, format) in [
        ("*/*", Format::Json),
        ("application/vnd.gremlin-v3.0+json;q=0.5, application/vnd.graphbinary-v1.0", Format::GraphBinary1),
        ("text/html, application/*;q=0.2", Format::Json),
    ] {
        let reply = post(&server, body, &[&format!("Accept: {accept}")]).expect(200);
        assert_eq!(values(&reply, format).len(), 1, "{accept}");
    }
    let json = post(&server, body, &[]).expect(200).json();
    assert_eq!(json["status"]["code"], 200);
    assert_eq!(json["result"]["data"][0], 29);
    assert!(json["requestId"].as_str().is_some_and(|id| Uuid::try_parse(id).is_ok()));
    post(&server, body, &["Accept: text/html"]).expect(406);
    let none = post(&server, r#"{"gremlin": "g.V(77)"}"#, &[]).expect(200).json();
    assert_eq!(
        (none["status"]["code"].as_i64(), none["result"]["data"].as_array().map(Vec::len)),
        (Some(204), Some(0))
    );
}

#[test]
fn a_script_may_be_in_the_url() {
    let server = Running::start(&modern(), |_| ());
    let get = |query: &str| server.get(&format!("/gremlin?{query}"), &[]);
    let reply = get("gremlin=g.V(x).values(what)&bindings.x=1&bindings.what=name&batchSize=1").expect(200);
    assert_eq!(values(&reply, Format::Json), [Value::text("marko")]);
    // As curl -G --data-urlencode sends the example of docs/server.md.
    let reply = get("gremlin=g.V%28x%29.values%28%22name%22%29&bindings.x=1").expect(200);
    assert_eq!(values(&reply, Format::Json), [Value::text("marko")]);
    get("gremlin=g.addV()").expect(405);
    get("gremlin=g.vv()").expect(400);
    get("gremlin=g.V()&gremlin=g.E()").expect(400);
    get("gremlin=g.inject(1).repeat(identity())&evaluationTimeout=50").expect(504);
    get("gremlin=g.V()&evaluationTimeout=soon").expect(400);
    get("").expect(400);
}

/// As gremlinpython sends it when its URL begins with `http`.
#[test]
fn websocket_messages_work_over_http() {
    let server = Running::start(&modern(), |_| ());
    for format in [Format::GraphBinary1, Format::GraphSon3] {
        for (op, processor, args) in [
            ("eval", "", args([("gremlin", "g.V(1).values('age')".into())])),
            ("bytecode", "traversal", bytecode_args(bytecode("g.V(1).values('age')"))),
        ] {
            let id = Uuid::from_u128(7);
            let request = Request { id, op: op.to_owned(), processor: processor.to_owned(), args };
            let mut frame = Vec::new();
            format.begin_frame(&mut frame);
            request.write(format, &mut frame).expect("it is written");
            let headers = [format!("Content-Type: {}", format.mime()), format!("Accept: {}", format.mime())];
            let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
            let reply = server.send("POST", "/gremlin", &headers, &frame).expect(200);
            assert_eq!(values(&reply, format), [Value::from(29)]);
            let response = Response::read(&reply.body, format, Limits::default()).expect("a response");
            assert_eq!(response.id, Some(id));
        }
    }
    let body = format!(
        r#"{{"requestId":"{}","op":"eval","processor":"session","args":{{"gremlin":"g","session":"s"}}}}"#,
        Uuid::nil()
    );
    assert!(post(&server, &body, &[]).expect(400).text().contains("WebSocket"));
}

#[test]
fn errors_have_http_statuses() {
    let server = Running::start(&modern(), |options| options.limits.memory_bytes = 1 << 20);
    for (body, status, words) in [
        ("", 400, "the body is empty"),
        ("g.V().count()", 400, "the body is plain text"),
        ("g.V().has('a', \"b\")", 400, r#"send {"gremlin":"g.V().has('a', \"b\")"}"#),
        ("gremlin=g.V()", 400, r#"send {"gremlin":"g.V().count()"}"#),
        ("{", 400, "send JSON"),
        ("[]", 400, "send JSON"),
        ("{}", 400, "no argument gremlin"),
        (r#"{"gremlin": 1}"#, 400, "a string"),
        (r#"{"gremlin": "g.vv()"}"#, 400, "column 3"),
        (r#"{"gremlin": "g.V()", "language": "cobol"}"#, 400, "gremlin-lang"),
        (
            r#"{"gremlin": "g.inject(1).repeat(identity())", "evaluationTimeout": 50}"#,
            504,
            "evaluationTimeout",
        ),
        (r#"{"gremlin": "g.inject(1).repeat(identity()).emit()"}"#, 507, "--memory"),
        (r#"{"gremlin": "g.addV().property(T.id, 1)"}"#, 400, "already exists"),
        (r#"{"gremlin": "g.tx().commit()"}"#, 400, "session"),
    ] {
        let reply = post(&server, body, &[]).expect(status);
        assert!(reply.text().contains(words), "{body}: {}", reply.text());
    }
    let reply = post(&server, r#"{"gremlin": "g.vv()"}"#, &["Accept: application/json"]).expect(400);
    assert_eq!(reply.json()["error"]["kind"], "query");
    server.send("PUT", "/gremlin", &[JSON], b"{}").expect(405);
    server.wait_for("vervet_requests_running", 0.0);
}

#[test]
fn http_has_the_same_users_and_roles() {
    let write = r#"{"gremlin": "g.addV('new')"}"#;
    let server = Running::start(&modern(), |options| options.users = users());
    let (reader, root) = (basic("reader", "let me in"), basic("root", "root"));
    let read = r#"{"gremlin": "g.V().count()"}"#;
    assert!(post(&server, read, &[]).expect(401).header("www-authenticate").is_some());
    post(&server, read, &[&reader]).expect(200);
    post(&server, write, &[&reader]).expect(403);
    post(&server, write, &[&root]).expect(200);
    let server = Running::start(&modern(), |options| options.read_only = true);
    post(&server, write, &[]).expect(403);
}

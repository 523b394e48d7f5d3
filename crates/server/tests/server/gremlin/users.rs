//! Authentication and permissions.

use super::client::{Client, args, modern};
use crate::common::Running;
use crate::users::{basic, users};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::time::Duration;
use tungstenite::Message;
use uuid::Uuid;
use vervet::gremlin::{Extended, Map, Value};
use vervet_server::Role;
use vervet_tinkerpop::Format;

const WRITE: &str = "g.addV('new')";

fn sasl(name: &str, password: &str) -> Map {
    let text = STANDARD.encode(format!("\0{name}\0{password}"));
    args([("sasl", text.into()), ("saslMechanism", "PLAIN".into())])
}

/// Sends a request, and authenticates when challenged, under the id of the request.
fn ask_as(client: &mut Client, text: &str, credentials: Map) -> super::client::Answer {
    let id = client.send("eval", "", args([("gremlin", text.into())]));
    let challenge = client.answer(id);
    assert_eq!(challenge.code(), 407);
    client.send_as(id, "authentication", "", credentials);
    client.answer(id)
}

#[test]
fn a_client_authenticates_after_a_challenge() {
    let server = Running::start(&modern(), |options| options.users = users());
    for format in [None, Some(Format::GraphBinary1), Some(Format::GraphSon3)] {
        let mut client = Client::new(&server, format);
        ask_as(&mut client, "g.V(1).values('age')", sasl("reader", "wrong")).refused(401, "password");
        let answer = ask_as(&mut client, "g.V(1).values('age')", sasl("reader", "let me in"));
        assert_eq!(answer.values(), [Value::from(29)]);
        // From now on the connection is authenticated.
        assert_eq!(client.eval("g.V(2).values('age')").values(), [Value::from(27)]);
        client.eval(WRITE).refused(403, "the role read");
        client.in_session("s", WRITE).refused(403, "the role read");
    }
    let mut client = Client::new(&server, Format::GraphBinary1);
    assert_eq!(ask_as(&mut client, WRITE, sasl("writer", "pässword: with colon")).values().len(), 1);
    assert_eq!(client.in_session("s", WRITE).values().len(), 1);
    // Bytes instead of base64, as GraphBinary allows.
    let mut client = Client::new(&server, Format::GraphBinary1);
    let bytes = Value::Extended(Extended::Bytes(b"\0root\0root".to_vec()).into());
    assert_eq!(ask_as(&mut client, "g.V().count()", args([("sasl", bytes)])).code(), 200);
}

#[test]
fn requests_awaiting_a_login_are_answered() {
    let server = Running::start(&modern(), |options| options.users = users());
    for (password, code) in [("let me in", 200), ("wrong", 401)] {
        let mut client = Client::new(&server, Format::GraphSon3);
        let ids: Vec<Uuid> =
            (0..5).map(|_| client.send("eval", "", args([("gremlin", "g.V(1)".into())]))).collect();
        assert_eq!(client.answer(ids[0]).code(), 407);
        client.send_as(ids[0], "authentication", "", sasl("reader", password));
        for id in ids {
            assert_eq!(client.answer(id).code(), code);
        }
    }
}

#[test]
fn wrong_credentials_are_refused() {
    let server = Running::start(&modern(), |options| options.users = users());
    let mut client = Client::new(&server, Format::GraphSon3);
    for (credentials, words) in [
        (sasl("nobody", "let me in"), "wrong"),
        (sasl("reader:let", "me in"), "wrong"),
        (sasl("robot", "s3cret"), "wrong"),
        (args([("sasl", "!!".into())]), "RFC 4616"),
        (args([("sasl", STANDARD.encode("root\0reader\0let me in").into())]), "RFC 4616"),
        (args([("sasl", 1.into())]), "RFC 4616"),
        (Map::default(), "RFC 4616"),
        (args([("sasl", "".into()), ("saslMechanism", "GSSAPI".into())]), "PLAIN"),
    ] {
        ask_as(&mut client, "g.V()", credentials).refused(401, words);
    }
    // Without a challenge.
    assert_eq!(client.ask("authentication", "", sasl("root", "root")).code(), 204);
    client.eval(WRITE).values();
}

#[test]
fn basic_authentication_of_the_upgrade_is_enough() {
    let server = Running::start(&modern(), |options| options.users = users());
    let header = |name, password| {
        let header = basic(name, password);
        header.split_once(": ").expect("a header").1.to_owned()
    };
    let right = header("reader", "let me in");
    let mut client =
        Client::with_headers(&server, Format::GraphSon3, &[("authorization", &right)]).expect("a reader");
    assert_eq!(client.eval("g.V().count()").code(), 200);
    client.eval(WRITE).refused(403, "the role read");
    let wrong = header("reader", "wrong");
    let refused = Client::with_headers(&server, Format::GraphSon3, &[("authorization", &wrong)]).err();
    assert_eq!(refused.expect("it is refused").0, 401);
}

#[test]
fn anonymous_clients_are_challenged_for_writes() {
    let server = Running::start(&modern(), |options| {
        options.users = users();
        options.anonymous = Some(Role::Read);
    });
    let mut client = Client::new(&server, Format::GraphBinary1);
    assert_eq!(client.eval("g.V().count()").code(), 200);
    ask_as(&mut client, WRITE, sasl("reader", "let me in")).refused(403, "the role read");
    let mut client = Client::new(&server, Format::GraphBinary1);
    assert_eq!(ask_as(&mut client, WRITE, sasl("root", "root")).code(), 200);
    let mut client = Client::new(&server, Format::GraphBinary1);
    let session = args([("gremlin", WRITE.into()), ("session", "s".into())]);
    let id = client.send("eval", "session", session);
    assert_eq!(client.answer(id).code(), 407);
    client.send_as(id, "authentication", "session", sasl("root", "root"));
    assert_eq!(client.answer(id).code(), 200);
    assert_eq!(client.transaction("s", "commit").code(), 204);
    assert_eq!(client.eval("g.V().hasLabel('new').count()").values(), [Value::from(2_i64)]);
}

#[test]
fn a_read_only_server_refuses_gremlin_writes() {
    let server = Running::start(&modern(), |options| options.read_only = true);
    let mut client = Client::new(&server, Format::GraphBinary1);
    client.eval(WRITE).refused(403, "--read-only");
    client.bytecode("g.V(1).property('a', 1)").refused(403, "read-only");
    client.in_session("s", WRITE).refused(403, "read-only");
    client.in_session("s", "g.V().drop()").refused(403, "read-only");
    assert_eq!(client.in_session("s", "g.V().count()").values(), [Value::from(6_i64)]);
    assert_eq!(client.transaction("s", "commit").code(), 204);
}

/// security S4: before the login a connection has limited time and limited bytes.
#[test]
fn s4_a_login_has_a_time_and_a_size() {
    let server = Running::start(&modern(), |options| {
        options.users = users();
        options.limits.login_timeout = Duration::from_secs(2);
    });
    let reason = |client: &mut Client| loop {
        match client.socket.read() {
            Ok(Message::Close(Some(frame))) => return frame.reason.to_string(),
            Ok(_) => {}
            Err(error) => panic!("the connection ends without a word: {error}"),
        }
    };
    // A client that sends nothing, one that does not authenticate, and one with wrong credentials.
    let mut silent = Client::new(&server, None);
    let mut asking = Client::new(&server, None);
    let id = asking.send("eval", "", args([("gremlin", "g.V()".into())]));
    assert_eq!(asking.answer(id).code(), 407);
    let mut wrong = Client::new(&server, None);
    assert_eq!(wrong.ask("authentication", "", sasl("reader", "wrong")).code(), 401);
    for client in [&mut silent, &mut asking, &mut wrong] {
        assert!(reason(client).contains("login"));
    }
    // A client that sends more than credentials need, in one message and in many.
    let server = Running::start(&modern(), |options| options.users = users());
    let padded = |bytes| format!("g.V().limit(1).hasNot('{}')", "x".repeat(bytes));
    let long = padded(100 << 10);
    let mut client = Client::new(&server, None);
    let _ = client.try_send("eval", args([("gremlin", long.as_str().into())]));
    assert!(reason(&mut client).contains("too much"));
    let mut client = Client::new(&server, None);
    for _ in 0..40 {
        // The server closes the connection while the client still sends.
        if client.try_send("eval", args([("gremlin", padded(2000).into())])).is_err() {
            break;
        }
    }
    assert!(reason(&mut client).contains("too much"));
    // After the login the usual limits apply.
    let mut client = Client::new(&server, None);
    assert_eq!(client.ask("authentication", "", sasl("reader", "let me in")).code(), 204);
    client.eval(&long).values();
}

/// security S4: a client that may read without a login, but was challenged for a write, has the same time
/// limit.
#[test]
fn s4_what_is_held_for_a_login_is_held_for_a_time() {
    let server = Running::start(&modern(), |options| {
        options.users = users();
        options.anonymous = Some(Role::Read);
        options.limits.login_timeout = Duration::from_millis(100);
    });
    let mut client = Client::new(&server, None);
    assert_eq!(client.eval("g.V().count()").code(), 200);
    let id = client.send("eval", "", args([("gremlin", WRITE.into())]));
    assert_eq!(client.answer(id).code(), 407);
    let last = loop {
        if let Message::Close(frame) = client.socket.read().expect("a last frame") {
            break frame.expect("it says why").reason.to_string();
        }
    };
    assert!(last.contains("login"), "{last}");
}

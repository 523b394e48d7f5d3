//! Light and heavy traversals: which ones take a heavy permit, and that a retried one has no duplicate
//! effects or results.

use super::client::{Client, ENDLESS, args, modern};
use crate::common::Running;
use std::time::Duration;
use vervet::gremlin::Value;
use vervet_server::ServerOptions;
use vervet_tinkerpop::Format;

const COUNT: &str = "g.V().hasLabel('new').count()";
/// Takes a while, has one result and contains no query.
const LONG: &str = "g.inject(7).repeat(identity()).times(100000)";

fn one_heavy(options: &mut ServerOptions) {
    options.limits.heavy_requests = 1;
    options.limits.queue_timeout = Duration::from_millis(50);
    options.limits.shutdown_timeout = Duration::from_millis(10);
}

fn post(server: &Running, text: &str) -> u16 {
    let body = format!("{{\"gremlin\": \"{text}\"}}");
    server.send("POST", "/gremlin", &["Content-Type: application/json"], body.as_bytes()).status
}

/// A heavy traversal occupies the only heavy permit, however it is sent; light ones are answered in every
/// form, before and after their fingerprints are known.
#[test]
fn light_requests_do_not_wait_for_heavy_ones() {
    let server = Running::start(&modern(), one_heavy);
    let light = "g.V(1).values('age')";
    for session in [None, Some("heavy")] {
        let mut heavy = Client::new(&server, Format::GraphBinary1);
        let mut asked = args([("gremlin", ENDLESS.into())]);
        if let Some(session) = session {
            asked.insert("session".into(), session.into());
        }
        heavy.send("eval", if session.is_some() { "session" } else { "" }, asked);
        server.wait_for("vervet_heavy_requests_running", 1.0);
        server.wait_for("vervet_requests_running", 1.0);

        let mut client = Client::new(&server, Format::GraphSon3);
        for _ in 0..10 {
            assert_eq!(client.eval(light).values(), [Value::from(29)]);
            assert_eq!(client.bytecode(light).values(), [Value::from(29)]);
            assert_eq!(client.in_session("s", light).values(), [Value::from(29)]);
            assert_eq!(post(&server, light), 200);
        }
        // There are no other permits for heavy ones.
        client.eval(ENDLESS).refused(596, "try again later");
        client.bytecode(ENDLESS).refused(596, "try again later");
        client.in_session("s", ENDLESS).refused(596, "try again later");
        assert_eq!(post(&server, ENDLESS), 503);
        // The session continues.
        assert_eq!(client.in_session("s", light).values(), [Value::from(29)]);
        drop(heavy);
        server.wait_for("vervet_requests_running", 0.0);
        server.wait_for("vervet_heavy_requests_running", 0.0);
        // The permit is free again, also for a fingerprint known to be heavy.
        let asked = args([("gremlin", ENDLESS.into()), ("evaluationTimeout", 30.into())]);
        client.ask("eval", "", asked).refused(598, "30ms");
        server.wait_for("vervet_heavy_requests_running", 0.0);
    }
}

/// A traversal that begins with a query of many rows is heavy, before and after its fingerprint is known.
#[test]
fn a_query_with_many_rows_takes_a_heavy_permit() {
    let database = modern();
    let mut text = String::new();
    for n in 0..60 * 60 {
        text += &format!("<urn:s:{}> <urn:vervet:key:to> <urn:s:{}> .\n", n / 60, n % 60);
    }
    database.load_text(vervet::Format::NTriples, &text).expect("it loads");
    let server = Running::start(&database, one_heavy);
    let mut heavy = Client::new(&server, Format::GraphBinary1);
    let mut client = Client::new(&server, Format::GraphBinary1);
    let text = "g.V().as('a').out('to').as('b').out('to').as('c').select('a', 'b', 'c').dedup().count()";
    let walks = client.eval(text).values();
    assert_eq!(walks, [Value::from(60 * 60 * 60_i64)]);
    // The response arrives before the permit is released.
    server.wait_for("vervet_heavy_requests_running", 0.0);
    heavy.send("eval", "", args([("gremlin", ENDLESS.into())]));
    server.wait_for("vervet_heavy_requests_running", 1.0);
    client.eval(text).refused(596, "try again later");
    client.in_session("s", text).refused(596, "try again later");
    drop(heavy);
    server.wait_for("vervet_heavy_requests_running", 0.0);
    assert_eq!(client.eval(text).values(), walks);
    server.wait_for("vervet_heavy_requests_running", 0.0);
    assert_eq!(client.in_session("s", text).values(), walks);
}

#[test]
fn a_request_rerun_in_the_heavy_tier_takes_effect_once() {
    let server = Running::start(&modern(), |_| ());
    let mut client = Client::new(&server, Format::GraphBinary1);
    let write = format!("{LONG}.addV('new')");
    for n in 1..=2_i64 {
        assert_eq!(client.eval(&write).values().len(), 1);
        assert_eq!(client.eval(COUNT).values(), [Value::from(n)]);
    }
    // In a session: statements before a commit are not repeated when those after it are heavy.
    let text = format!("g.addV('new').iterate(); g.tx().commit(); g.addV('new').iterate(); {LONG}");
    assert_eq!(client.in_session("s", &text).values(), [Value::from(7)]);
    assert_eq!(client.in_session("s", COUNT).values(), [Value::from(4_i64)]);
    assert_eq!(client.transaction("s", "rollback").code(), 204);
    assert_eq!(client.in_session("s", COUNT).values(), [Value::from(3_i64)]);
    // It sees what its transaction has written, and is rolled back with it.
    client.in_session("s", &write).values();
    assert_eq!(client.in_session("s", COUNT).values(), [Value::from(4_i64)]);
    let managed = args([
        ("gremlin", write.as_str().into()),
        ("session", "s".into()),
        ("manageTransaction", true.into()),
    ]);
    client.ask("eval", "session", managed).values();
    assert_eq!(client.eval(COUNT).values(), [Value::from(5_i64)]);
    let body = format!("{{\"gremlin\": \"{write}\"}}");
    server.send("POST", "/gremlin", &[], body.as_bytes()).expect(200);
    assert_eq!(client.eval(COUNT).values(), [Value::from(6_i64)]);
}

/// A result longer than the buffer of light ones: no results are duplicated or lost.
#[test]
fn long_responses_are_sent_once() {
    let server = Running::start(&modern(), |_| ());
    let mut client = Client::new(&server, Format::GraphSon3);
    let numbers = "g.inject(0).repeat(math('_ + 1')).emit().limit(30000)";
    let expected: Vec<Value> = (1..=30_000).map(|n| Value::from(f64::from(n))).collect();
    for _ in 0..2 {
        assert_eq!(client.eval(numbers).values(), expected);
        assert_eq!(client.in_session("s", numbers).values(), expected);
    }
    let text = "g.inject(1).repeat(identity()).emit().limit(5000).addV('new')";
    assert_eq!(client.eval(text).values().len(), 5000);
    assert_eq!(client.eval(COUNT).values(), [Value::from(5000_i64)]);
    let body = format!("{{\"gremlin\": \"{numbers}\"}}");
    let reply = server.send("POST", "/gremlin", &["Accept: application/json"], body.as_bytes()).expect(200);
    assert!(reply.text().contains("30000.0"), "{} bytes", reply.body.len());
}

/// Requests known to be short keep their order among others of the session.
#[test]
fn short_requests_of_a_session_stay_in_order() {
    let server = Running::start(&modern(), |_| ());
    let mut client = Client::new(&server, Format::GraphBinary1);
    let ask = |text: &str| args([("gremlin", text.into()), ("session", "s".into())]);
    let add = "g.addV('new').property('n', 1).values('n')";
    // Until the fingerprint is known.
    for _ in 0..20 {
        client.in_session("s", add).values();
    }
    let mut asked = Vec::new();
    let mut expected = 20_i64;
    for n in 0..300 {
        asked.push((client.send("eval", "session", ask(add)), None));
        expected += 1;
        if n % 50 == 17 {
            asked.push((client.send("eval", "session", ask(LONG)), Some(Value::from(7))));
        }
        if n % 20 == 3 {
            asked.push((client.send("eval", "session", ask(COUNT)), Some(Value::from(expected))));
        }
        if n % 90 == 40 {
            client.send("eval", "session", ask("g.tx().commit()"));
        }
    }
    for (id, value) in asked {
        let values = client.answer(id).values();
        assert_eq!(values, [value.unwrap_or_else(|| Value::from(1))]);
    }
    client.in_session("s", "g.tx().commit()");
    assert_eq!(client.eval(COUNT).values(), [Value::from(expected)]);
}

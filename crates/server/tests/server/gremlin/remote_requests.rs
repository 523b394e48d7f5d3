//! Requests that the leader of a cluster executes for clients of other servers: how they end, where they are
//! listed, which graph they see, and what they occupy.

use super::client::{Client, ENDLESS, ENDLESS_RESULTS, args};
use super::servers::{COUNT, PATIENCE, Servers, count, cut, number, shows, wait_until};
use crate::cluster::cluster;
use crate::common::{Reply, Running, request};
use std::fmt::Debug;
use std::io::Write;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use uuid::Uuid;
use vervet::Database;
use vervet_cluster::InitOptions;
use vervet_peer::FaultPlan;
use vervet_server::ServerOptions;
use vervet_tinkerpop::Format;

/// An endless change.
fn endless_change() -> String {
    format!("{ENDLESS}.addV('new')")
}

/// Only disconnections and stops end endless requests.
fn patient(_: bool, options: &mut ServerOptions) {
    options.limits.timeout = Duration::from_secs(600);
}

/// The number of the only request in the list of a server, once it is an endless one.
#[track_caller]
fn wait_for_listed(server: &Running) -> u64 {
    let is_endless = |text: &str| text.contains("g.inject(1).repeat(");
    let mut number = None;
    wait_until(|| {
        let list = server.get("/api/queries", &[]).expect(200).json();
        let queries = list["queries"].as_array().expect("a list");
        number = match &queries[..] {
            [one] if one["kind"] == "gremlin" && one["text"].as_str().is_some_and(is_endless) => {
                one["id"].as_u64()
            }
            _ => None,
        };
        number.is_some()
    });
    number.expect("it is listed")
}

fn stop(server: &Running, number: u64) {
    server.send("DELETE", &format!("/api/queries/{number}"), &[], b"").expect(204);
}

/// Sends a request to `client` of `server`, and stops it there once it runs at the leader.
fn send_and_stop(
    servers: &Servers,
    at: usize,
    client: &mut Client,
    text: &str,
    session: Option<&str>,
) -> Uuid {
    let id = match session {
        Some(name) => {
            client.send("eval", "session", args([("gremlin", text.into()), ("session", name.into())]))
        }
        None => client.send("eval", "", args([("gremlin", text.into())])),
    };
    servers.running[0].wait_for("vervet_requests_running", 1.0);
    stop(&servers.running[at], wait_for_listed(&servers.running[at]));
    servers.running[0].wait_for("vervet_requests_running", 0.0);
    servers.running[at].wait_for("vervet_requests_running", 0.0);
    id
}

/// The disconnection of a client cancels its request at the leader also where a voter is on the way.
#[test]
fn requests_that_are_sent_on_twice_end_with_their_client() {
    let servers = Servers::with_voters_and(4, patient);
    servers.send_through_a_voter(3);
    let leader = &servers.running[0];
    let endless = endless_change();
    let mut client = servers.client(3);
    client.send("eval", "", args([("gremlin", endless.clone().into())]));
    leader.wait_for("vervet_requests_running", 1.0);
    drop(client);
    leader.wait_for("vervet_requests_running", 0.0);
    let mut client = servers.client(3);
    client.in_session("s", "g.addV('new')").values();
    client.send("eval", "session", args([("gremlin", ENDLESS.into()), ("session", "s".into())]));
    leader.wait_for("vervet_requests_running", 1.0);
    drop(client);
    leader.wait_for("vervet_requests_running", 0.0);
    leader.wait_for("vervet_gremlin_sessions", 0.0);
    // Over HTTP, directly to the leader as well.
    let body = format!("{{\"gremlin\": \"{endless}\"}}");
    for at in [1, 3] {
        let mut stream = servers.running[at].connect();
        stream.write_all(&request("POST", "/gremlin", &[], body.as_bytes())).expect("it is sent");
        leader.wait_for("vervet_requests_running", 1.0);
        drop(stream);
        leader.wait_for("vervet_requests_running", 0.0);
    }
    assert_eq!(count(&mut servers.client(0)), number(0));
}

/// Requests at the leader are in the list of the server of their client, too, and are stopped there.
#[test]
fn remote_requests_are_listed_and_stopped() {
    let servers = Servers::with_voters_and(4, patient);
    servers.send_through_a_voter(3);
    let unknown = "and then the request was stopped by DELETE /api/queries";
    let rolled_back = "was rolled back: the request was stopped by DELETE /api/queries";
    for at in [1, 3] {
        let mut client = servers.client(at);
        let id = send_and_stop(&servers, at, &mut client, &endless_change(), None);
        client.answer(id).refused(596, unknown);
        // In a session: the leader rolls its transaction back.
        client.in_session("s", "g.addV('new')").values();
        let id = send_and_stop(&servers, at, &mut client, ENDLESS, Some("s"));
        client.answer(id).refused(596, rolled_back);
        servers.running[0].wait_for("vervet_gremlin_sessions", 0.0);
        client.in_session("s", COUNT).refused(596, rolled_back);
        client.transaction("s", "rollback").values();
        // One that begins a transaction.
        let id = send_and_stop(&servers, at, &mut client, &endless_change(), Some("s"));
        client.answer(id).refused(596, rolled_back);
        client.transaction("s", "rollback").values();
        // One whose client does not read.
        let many = format!("{ENDLESS_RESULTS}.sideEffect(addV('new'))");
        let id = send_and_stop(&servers, at, &mut client, &many, None);
        client.answer(id).refused(596, unknown);
        // Over HTTP.
        let body = format!("{{\"gremlin\": \"{}\"}}", endless_change());
        let mut stream = servers.running[at].connect();
        stream.write_all(&request("POST", "/gremlin", &[], body.as_bytes())).expect("it is sent");
        servers.running[0].wait_for("vervet_requests_running", 1.0);
        stop(&servers.running[at], wait_for_listed(&servers.running[at]));
        let reply = Reply::read(stream, false).expect(503);
        assert!(reply.text().contains(unknown), "{}", reply.text());
        servers.running[0].wait_for("vervet_requests_running", 0.0);
        // The session goes on.
        client.in_session("s", "g.addV('new')").values();
        client.transaction("s", "rollback").values();
        assert_eq!(count(&mut client), number(0));
    }
}

/// A server that ends cancels its requests at the leader as those here, and their clients get an answer.
#[test]
fn remote_requests_end_with_the_server_of_their_client() {
    let servers = Servers::with_writer(|writes, options| {
        patient(writes, options);
        options.limits.shutdown_timeout = Duration::ZERO;
    });
    let mut client = servers.client(1);
    client.in_session("s", "g.addV('new')").values();
    let in_session = args([("gremlin", ENDLESS.into()), ("session", "s".into())]);
    let session = client.send("eval", "session", in_session);
    let single = client.send("eval", "", args([("gremlin", endless_change().into())]));
    servers.running[0].wait_for("vervet_requests_running", 2.0);
    servers.running[1].stopper.stop();
    client.answer(session).refused(596, "was rolled back: this server is ending");
    client.answer(single).refused(596, "outcome of this change is unknown");
    servers.running[0].wait_for("vervet_requests_running", 0.0);
    servers.running[0].wait_for("vervet_gremlin_sessions", 0.0);
    shows(&mut servers.client(2), number(0));
}

/// A request of another server for the leader, of which it executes this script. `more`: further headers.
fn forwarded(action: &str, script: &str, more: &str) -> Vec<u8> {
    let message = format!(
        "{{\"requestId\":\"{}\",\"op\":\"eval\",\"processor\":\"\",\"args\":{{\"gremlin\":\"{script}\"}}}}",
        Uuid::from_u128(1)
    );
    let length = u32::try_from(message.len()).expect("it is short");
    let body = [&[1][..], &length.to_le_bytes(), message.as_bytes()].concat();
    let head = format!(
        "127.0.0.1 false\nPOST /gremlin/forwarded HTTP/1.0\r\nvervet-action: {action}\r\nvervet-hops: 1\r\n\
         vervet-transaction: {:032x}\r\n{more}content-length: {}\r\n\r\n",
        1,
        body.len()
    );
    [head.as_bytes(), &body].concat()
}

/// Sends a request to the leader as another server does; its answer.
fn forward(servers: &Servers, request: &[u8]) -> String {
    let leader = servers.clusters[0].map().server.clone();
    let answer = servers.clusters[1].forward(&leader, request).expect("it is sent").expect("an answer");
    String::from_utf8_lossy(&answer).into_owned()
}

/// A server names the newest commit that it shows in requests that begin a transaction.
#[test]
fn requests_name_the_newest_commit_of_their_server() {
    let database = Database::in_memory();
    let mut made = InitOptions::on_host(2, 4, "127.0.0.1", (0, 0));
    made.writer = Some("a".to_owned());
    let (clusters, _folder) = cluster(&database, made);
    let (sender, requests) = std::sync::mpsc::channel();
    clusters[0].on_forwarded(Box::new(move |request| {
        sender.send(String::from_utf8_lossy(request).into_owned()).expect("the test waits");
        let answer = "HTTP/1.0 200 OK\r\nvervet-progress: open\r\ncontent-length: 0\r\n\r\n";
        Ok(answer.as_bytes().to_vec())
    }));
    let server = Running::start(clusters[1].database(), |options| {
        options.cluster = Some(Arc::clone(&clusters[1]));
    });
    for _ in 0..3 {
        clusters[0].database().gremlin("g.addV('new')").expect("a change");
    }
    let newest = clusters[0].database().newest_commit();
    wait_until(|| clusters[1].database().newest_commit() == newest);
    let named = format!("vervet-shown: {newest}\r\n");
    let mut client = Client::new(&server, Format::GraphBinary1);
    let in_session = || args([("gremlin", "g.addV('new')".into()), ("session", "s".into())]);
    for action in ["begin", "run"] {
        client.send("eval", "session", in_session());
        let request = requests.recv_timeout(PATIENCE).expect("it is sent on");
        assert!(request.contains(&format!("vervet-action: {action}\r\n")), "{request}");
        assert_eq!(request.contains(&named), action == "begin", "{request}");
    }
    client.send("eval", "", args([("gremlin", "g.addV('new')".into())]));
    let request = requests.recv_timeout(PATIENCE).expect("it is sent on");
    assert!(request.contains("vervet-action: single\r\n") && request.contains(&named), "{request}");
    // Over HTTP the header of a client is not sent on.
    server.update("INSERT DATA { <urn:a> <urn:b> 1 }", &["vervet-shown: 99"]).expect(200);
    let request = std::iter::from_fn(|| requests.recv_timeout(PATIENCE).ok())
        .find(|request| request.contains("/update"));
    let request = request.expect("it is sent on");
    assert!(request.contains(&named) && request.matches("vervet-shown").count() == 1, "{request}");
}

/// The leader executes a request once it shows what the client has seen at its own server.
#[test]
fn the_leader_waits_for_what_the_client_has_seen() {
    let servers = Servers::with_writer(|_, _| ());
    let leading = servers.clusters[0].database();
    let next = format!("vervet-shown: {}\r\n", leading.newest_commit().0 + 1);
    // It does not come.
    for action in ["begin", "single"] {
        let answer = forward(&servers, &forwarded(action, "g.addV('new')", &next));
        assert!(answer.starts_with("HTTP/1.0 503"), "{answer}");
        assert!(
            answer.contains("vervet-progress: refused") && answer.contains("does not show commit"),
            "{answer}"
        );
    }
    let update = format!(
        "127.0.0.1 false\nPOST /update HTTP/1.0\r\nvervet-hops: 1\r\n{next}\
         content-type: application/sparql-update\r\ncontent-length: 30\r\n\r\nINSERT DATA {{ <urn:a> a <urn:b> }}"
    );
    let answer = forward(&servers, update.as_bytes());
    assert!(answer.starts_with("HTTP/1.0 503") && answer.contains("does not show commit"), "{answer}");
    servers.running[0].wait_for("vervet_gremlin_sessions", 0.0);
    // It comes meanwhile.
    let answer = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| forward(&servers, &forwarded("single", COUNT, &next)));
        leading.gremlin("g.addV('new')").expect("a change");
        waiting.join().expect("no panic")
    });
    assert!(answer.contains("vervet-progress: closed") && answer.contains("[1]"), "{answer}");
}

/// A request that waits for a permit while its server is deposed is sent on with its body.
#[test]
fn a_request_that_waits_at_a_deposed_leader_is_sent_on_whole() {
    let servers = Servers::with_voters_and(3, |_, options| {
        options.limits.requests = 1;
        options.limits.queue_timeout = PATIENCE;
    });
    let leader = &servers.running[0];
    let json = ["content-type: application/json"];
    servers.disturb_leader(&cut());
    let made = std::thread::scope(|scope| {
        // Its commit waits for a majority, with the only permit.
        let update = scope.spawn(|| leader.update("INSERT DATA { <urn:a> <urn:b> 1 }", &[]));
        wait_until(|| leader.metric("vervet_requests_running") == 1.0 || update.is_finished());
        let reply = leader.send("POST", "/gremlin", &json, br#"{"gremlin": "g.addV('new').count()"}"#);
        update.join().expect("no panic");
        let text = reply.text();
        // It may begin here in the moment in which the server is deposed.
        let refusals = ["this server does not lead any more", "changes of this graph go to server"];
        let is_refused = refusals.iter().any(|refusal| text.contains(refusal));
        assert!(is_refused || reply.status == 200 && text.contains("\"data\":[1]"), "{text}");
        usize::from(!is_refused)
    });
    servers.disturb_leader(&FaultPlan::default());
    shows(&mut servers.client(1), number(made));
}

/// A sender that asks for a part of a response, and then for no more, leaves nothing behind at the leader.
/// Only the idle time ends these requests: no other one comes, and nothing else is as short.
#[test]
fn abandoned_responses_end_after_the_idle_time() {
    let servers = Servers::with_writer(|writes, options| {
        patient(writes, options);
        if writes {
            options.limits.session_timeout = Duration::from_secs(1);
            options.limits.write_timeout = Duration::from_secs(600);
        }
    });
    let leader = &servers.running[0];
    for action in ["single", "begin"] {
        let answer = forward(&servers, &forwarded(action, ENDLESS_RESULTS, ""));
        assert!(answer.contains("vervet-progress: unfinished"), "{answer}");
        leader.wait_for("vervet_requests_running", 0.0);
        leader.wait_for("vervet_gremlin_sessions", 0.0);
        let answer = forward(&servers, &forwarded("continue", "", ""));
        assert!(answer.contains("vervet-progress: lost"), "{answer}");
    }
}

/// Messages that wait for their sender count against the memory for messages.
#[test]
fn waiting_responses_have_a_share_of_the_memory_for_messages() {
    let servers = Servers::with_writer(|writes, options| {
        patient(writes, options);
        let limits = &mut options.limits;
        if writes {
            (limits.text_bytes, limits.document_bytes, limits.bodies_bytes) = (1 << 20, 1 << 20, 1 << 20);
            limits.queue_timeout = Duration::from_millis(100);
            limits.write_timeout = Duration::from_secs(600);
        }
    });
    // Messages of 256 KiB and more: three of them leave no room for a request of this length.
    let endless = format!("g.inject('{}').repeat(identity()).emit()", "x".repeat(60_000));
    let long = format!("g.inject('{}').addV('new')", "x".repeat(400_000));
    let mut client = servers.client(1);
    client.eval(&long).values();
    let answer = forward(&servers, &forwarded("single", &endless, ""));
    assert!(answer.contains("vervet-progress: unfinished"), "{}", answer.len());
    wait_until(|| client.eval(&long).message().contains("the memory for request bodies is exhausted"));
    let answer = forward(&servers, &forwarded("close", "", ""));
    assert!(answer.contains("vervet-progress: closed"), "{answer}");
    wait_until(|| client.eval(&long).code() == 200);
}

/// Sends the names of the threads that log a text.
struct LoggingThreads {
    text: &'static str,
    names: Mutex<Sender<Option<String>>>,
}

/// Whether a field has the text.
struct HasText(&'static str, bool);

impl Visit for HasText {
    fn record_debug(&mut self, _: &Field, value: &dyn Debug) {
        self.1 |= format!("{value:?}").contains(self.0);
    }
}

impl Subscriber for LoggingThreads {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("vervet_server::gremlin")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut found = HasText(self.text, false);
        event.record(&mut found);
        if found.1 {
            let name = std::thread::current().name().map(str::to_owned);
            self.names.lock().expect("no panic").send(name).expect("the test waits");
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The thread that accepts connections executes no part of a session.
#[test]
fn sessions_for_other_servers_run_on_io_threads() {
    let servers = Servers::with_writer(|_, _| ());
    let (names, threads) = std::sync::mpsc::channel();
    let text = "unknown_step_that_is_logged";
    let subscriber = LoggingThreads { text, names: Mutex::new(names) };
    // No other test has one.
    tracing::subscriber::set_global_default(subscriber).expect("the only one");
    for action in ["single", "begin"] {
        let answer = forward(&servers, &forwarded(action, &format!("g.{text}()"), ""));
        assert!(answer.contains("vervet-code: 597"), "{answer}");
        let thread = threads.recv_timeout(PATIENCE).expect("it is logged");
        assert_eq!(thread.as_deref(), Some("vervet-server"), "{action}");
    }
}

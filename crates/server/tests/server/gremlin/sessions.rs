//! Sessions: requests that share a transaction.

use super::client::{Client, args, bytecode, bytecode_args, modern, texts};
use crate::cluster::cluster;
use crate::common::Running;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vervet::Database;
use vervet::gremlin::Value;
use vervet_cluster::{Cluster, InitOptions};
use vervet_tinkerpop::Format;

const COUNT: &str = "g.V().hasLabel('new').count()";

fn count(client: &mut Client) -> Value {
    client.eval(COUNT).values().remove(0)
}

#[test]
fn a_session_sees_its_writes_and_others_do_after_the_commit() {
    let server = Running::start(&modern(), |_| ());
    for (n, format) in [Format::GraphBinary1, Format::GraphSon3, Format::GraphSon2].into_iter().enumerate() {
        let before = i64::try_from(n).expect("small");
        let (mut client, mut other) = (Client::new(&server, format), Client::new(&server, format));
        client.in_session("s", "g.addV('new')").values();
        assert_eq!(client.in_session("s", COUNT).values(), [Value::from(before + 1)]);
        assert_eq!(count(&mut client), Value::from(before), "outside of the session");
        assert_eq!(count(&mut other), Value::from(before));
        assert_eq!(client.transaction("s", "commit").code(), 204);
        assert_eq!(count(&mut other), Value::from(before + 1));
        client.in_session("s", "g.addV('new')").values();
        assert_eq!(client.transaction("s", "rollback").code(), 204);
        assert_eq!(client.in_session("s", COUNT).values(), [Value::from(before + 1)]);
        // Bytecode in a session, as drivers send in transactions.
        let mut args = bytecode_args(bytecode("g.addV('new')"));
        args.insert("session".into(), "t".into());
        assert_eq!(client.ask("bytecode", "session", args).values().len(), 1);
        assert_eq!(
            client.ask("close", "session", super::client::args([("session", "t".into())])).code(),
            204
        );
        assert_eq!(count(&mut other), Value::from(before + 1), "what is closed is rolled back");
    }
    server.wait_for("vervet_gremlin_sessions", 0.0);
}

#[test]
fn scripts_commit_and_roll_back() {
    let server = Running::start(&modern(), |_| ());
    let mut client = Client::new(&server, None);
    for text in ["g.tx().begin()", "g.addV('new').iterate()", "g.tx().commit()"] {
        assert_eq!(client.in_session("s", text).code(), 204, "{text}");
    }
    assert_eq!(count(&mut client), Value::from(1));
    let all = "g.addV('new').iterate(); g.tx().rollback(); g.addV('new').iterate(); g.tx().commit(); g.V().hasLabel('new').count()";
    assert_eq!(client.in_session("s", all).values(), [Value::from(2)]);
    assert_eq!(count(&mut client), Value::from(2));
}

#[test]
fn managed_transactions_end_with_their_request() {
    let server = Running::start(&modern(), |_| ());
    let mut client = Client::new(&server, Format::GraphBinary1);
    let managed = |text: &str| {
        args([("gremlin", text.into()), ("session", "s".into()), ("manageTransaction", true.into())])
    };
    client.ask("eval", "session", managed("g.addV('new')")).values();
    assert_eq!(count(&mut client), Value::from(1_i64));
    client.in_session("s", "g.addV('new')").values();
    // It ends the open transaction, even if it fails.
    client.ask("eval", "session", managed("g.addV('new').fail()")).refused(595, "fail");
    assert_eq!(client.in_session("s", COUNT).values(), [Value::from(1_i64)]);
}

#[test]
fn an_error_rolls_back_only_its_request() {
    let server = Running::start(&modern(), |_| ());
    let mut client = Client::new(&server, Format::GraphBinary1);
    client.in_session("s", "g.addV('new')").values();
    client.in_session("s", "g.addV('new').fail()").refused(595, "fail");
    client.in_session("s", "g.oops()").refused(597, "oops");
    assert_eq!(client.transaction("s", "commit").code(), 204);
    assert_eq!(count(&mut client), Value::from(1_i64));
}

#[test]
fn conflicting_sessions_get_an_error() {
    let server = Running::start(&modern(), |_| ());
    let (mut a, mut b) =
        (Client::new(&server, Format::GraphBinary1), Client::new(&server, Format::GraphSon3));
    for client in [&mut a, &mut b] {
        client.in_session("s", "g.V(1).property('age', values('age').math('_ + 1'))").values();
    }
    assert_eq!(a.transaction("s", "commit").code(), 204);
    let refused = b.transaction("s", "commit").refused(596, "hint");
    let exceptions = refused.0[0].status.attributes.get(&Value::text("exceptions")).cloned();
    assert_eq!(exceptions, Some(Value::list(texts(["vervet.conflict"]))));
    // The session can retry.
    b.in_session("s", "g.V(1).property('age', values('age').math('_ + 1'))").values();
    assert_eq!(b.transaction("s", "commit").code(), 204);
    assert_eq!(a.eval("g.V(1).values('age')").values(), [Value::from(31.0)]);
}

#[test]
fn requests_of_a_session_run_in_order() {
    let server = Running::start(&modern(), |_| ());
    let mut client = Client::new(&server, Format::GraphBinary1);
    client.in_session("s", "g.addV('counter').property('n', 0)").values();
    let ask = |text: &str| args([("gremlin", text.into()), ("session", "s".into())]);
    let mut ids = Vec::new();
    for n in 1..=600 {
        ids.push(client.send(
            "eval",
            "session",
            ask(&format!("g.V().hasLabel('counter').property('n', {n}).iterate()")),
        ));
    }
    let read = client.send("eval", "session", ask("g.V().hasLabel('counter').values('n')"));
    let close = client.send("close", "session", args([("session", "s".into())]));
    // Another session of that name begins after the end of the first.
    let again = client.send("eval", "session", ask("g.V().hasLabel('counter').count()"));
    for id in ids {
        assert_eq!(client.answer(id).code(), 204);
    }
    assert_eq!(client.answer(read).values(), [Value::from(600)]);
    assert_eq!(client.answer(close).code(), 204);
    assert_eq!(client.answer(again).values(), [Value::from(0_i64)]);
}

#[test]
fn an_expired_transaction_is_not_restarted() {
    let server = Running::start(&modern(), |options| {
        options.limits.session_timeout = Duration::from_secs(1);
    });
    let mut client = Client::new(&server, Format::GraphBinary1);
    // A session that was idle for too long releases its slot.
    let wait = || server.wait_for("vervet_gremlin_sessions", 0.0);
    client.in_session("s", "g.addV('new')").values();
    wait();
    client.in_session("s", "g.addV('new')").refused(596, "for 1 s");
    client.transaction("s", "commit").refused(596, "for 1 s");
    assert_eq!(client.in_session("s", "g.addV('new')").values().len(), 1, "a response has been sent");
    wait();
    assert_eq!(client.transaction("s", "rollback").code(), 204);
    client.in_session("s", "g.addV('new')").values();
    assert_eq!(client.transaction("s", "commit").code(), 204);
    assert_eq!(count(&mut client), Value::from(1_i64));
    // A session without a transaction just ends.
    server.wait_for("vervet_gremlin_sessions", 0.0);
}

#[test]
fn sessions_have_a_limit() {
    let server = Running::start(&modern(), |options| options.limits.sessions = 2);
    let mut client = Client::new(&server, Format::GraphBinary1);
    client.in_session("a", "g.V(1)").values();
    client.in_session("b", "g.V(1)").values();
    client.in_session("c", "g.V(1)").refused(596, "2 sessions");
    client.in_session("a", "g.V(1)").values();
    client.ask("close", "session", args([("session", "b".into())])).values();
    // Closing a session that never existed succeeds.
    client.ask("close", "session", args([("session", "x".into())])).values();
    server.wait_for("vervet_gremlin_sessions", 1.0);
    client.in_session("c", "g.V(1)").values();
    drop(client);
    server.wait_for("vervet_gremlin_sessions", 0.0);
}

/// Session names are local to a connection: knowing a name gives no access to the transaction of another
/// connection.
#[test]
fn sessions_end_with_their_connection_and_belong_to_it() {
    let server = Running::start(&modern(), |_| ());
    let (mut a, mut b) =
        (Client::new(&server, Format::GraphBinary1), Client::new(&server, Format::GraphBinary1));
    a.in_session("s", "g.addV('new')").values();
    assert_eq!(b.in_session("s", COUNT).values(), [Value::from(0_i64)]);
    drop(a);
    server.wait_for("vervet_gremlin_sessions", 1.0);
    assert_eq!(b.transaction("s", "commit").code(), 204);
    assert_eq!(count(&mut b), Value::from(0_i64));
}

/// Also at voters that do not lead, all reads of a transaction are of one graph.
#[test]
fn sessions_are_transactions_at_every_voter() {
    let mut made = InitOptions::on_host(3, 1, "127.0.0.1", (0, 0));
    made.voters = made.servers.iter().map(|server| server.name.clone()).collect();
    made.replicas = 3;
    let (clusters, _folder) = cluster(&Database::in_memory(), made);
    let start = |cluster: &Arc<Cluster>| {
        Running::start(cluster.database(), |options| options.cluster = Some(Arc::clone(cluster)))
    };
    let servers: Vec<Running> = clusters.iter().map(start).collect();
    // Connections from before a server knows whether it leads.
    let mut clients: Vec<Client> =
        servers.iter().map(|server| Client::new(server, Format::GraphBinary1)).collect();
    let begun = Instant::now();
    let leading = loop {
        assert!(begun.elapsed() < Duration::from_secs(60), "no leader");
        match clusters.iter().position(|cluster| cluster.takes_changes()) {
            Some(leading) => break leading,
            // It waits for a leader.
            None => drop(clusters[0].catch_up(Duration::from_secs(1))),
        }
    };
    let strict = |at: usize| clusters[at].catch_up(Duration::from_secs(30)).expect("it catches up");
    for (at, client) in clients.iter_mut().enumerate() {
        strict(at);
        let before = client.in_session("s", "g.V().count()").values();
        let add = format!("INSERT DATA {{ <urn:m{at}> a <urn:vervet:label:other> }}");
        servers[leading].update(&add, &[]).expect(204);
        strict(at);
        let again = client.in_session("s", "g.V().count()").values();
        assert_eq!(before, again, "server {at}");
        assert_eq!(client.transaction("s", "commit").code(), 204);
        let after = client.in_session("s", "g.V().count()").values();
        assert_ne!(before, after, "server {at}");
        client.transaction("s", "rollback");
        let added = client.in_session("s", "g.addV('mine')");
        assert_eq!(added.code(), 200, "{}", added.message());
        assert_eq!(client.transaction("s", "commit").code(), 204);
    }
}

//! Sessions, and changes over WebSockets, at servers of a cluster that do not take changes.

use super::client::{Client, ENDLESS, args, bytecode, bytecode_args};
use super::servers::{COUNT, Servers, count, cut, number, shows, wait_until};
use crate::cluster::cluster;
use crate::common::Running;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vervet::gremlin::Value;
use vervet::{Database, ErrorKind};
use vervet_cluster::{Cluster, InitOptions};
use vervet_peer::{ALWAYS, FaultPlan};
use vervet_server::{Role, User};
use vervet_tinkerpop::Format;

/// Transactions of several requests, and single requests, at every server, in every form.
#[test]
fn every_server_changes_the_graph() {
    let servers = Servers::with_voters(4);
    let mut made = 0;
    for at in 0..4 {
        let (mut client, mut other) = (servers.client(at), servers.client(0));
        let shows = |client: &mut Client, expected: usize| match at {
            3 => shows(client, number(expected)),
            _ => assert_eq!(count(client), number(expected), "server {at}"),
        };
        assert_eq!(client.in_session("s", COUNT).values(), [number(made)], "server {at}");
        assert_eq!(client.in_session("s", "g.addV('new')").values().len(), 1);
        client.in_session("s", "g.addV('new').iterate()").values();
        assert_eq!(client.in_session("s", COUNT).values(), [number(made + 2)], "its own");
        assert_eq!(count(&mut client), number(made), "outside of the session");
        assert_eq!(count(&mut other), number(made));
        client.transaction("s", "commit").values();
        made += 2;
        shows(&mut client, made);
        assert_eq!(count(&mut other), number(made));
        // An error takes its request back, a rollback all.
        client.in_session("s", "g.addV('new')").values();
        client.in_session("s", "g.addV('new').fail('no more')").refused(595, "no more");
        client.in_session("s", "g.oops()").refused(597, "oops");
        assert_eq!(client.in_session("s", COUNT).values(), [number(made + 1)]);
        client.transaction("s", "rollback").values();
        assert_eq!(client.in_session("s", COUNT).values(), [number(made)]);
        // Bytecode, as drivers send it; what is closed is rolled back.
        let mut asked = bytecode_args(bytecode("g.addV('new')"));
        asked.insert("session".into(), "t".into());
        assert_eq!(client.ask("bytecode", "session", asked).values().len(), 1);
        client.ask("close", "session", args([("session", "t".into())])).values();
        // Scripts with several transactions, and transactions of one request.
        let script = "g.addV('new').iterate(); g.tx().commit(); g.addV('new').iterate(); g.tx().rollback(); \
                      g.V().hasLabel('new').count()";
        assert_eq!(client.in_session("u", script).values(), [number(made + 1)], "server {at}");
        made += 1;
        client.ask("close", "session", args([("session", "u".into())])).values();
        let managed = args([
            ("gremlin", "g.addV('new')".into()),
            ("session", "m".into()),
            ("manageTransaction", true.into()),
        ]);
        client.ask("eval", "session", managed).values();
        made += 1;
        shows(&mut client, made);
        // Requests without a session.
        client.eval("g.addV('new')").values();
        client.bytecode("g.addV('new')").values();
        made += 2;
        shows(&mut client, made);
        let mut text = Client::new(&servers.running[at], None);
        text.in_session("s", "g.addV('new')").values();
        assert_eq!(text.in_session("s", "g.tx().commit()").code(), 204);
        made += 1;
        shows(&mut client, made);
        client.eval("g.addV('new').fail('no more')").refused(595, "no more");
        shows(&mut client, made);
    }
    for server in &servers.running {
        server.wait_for("vervet_gremlin_sessions", 0.0);
    }
}

/// What a script with a rollback has read is not read again elsewhere, so its first change is a conflict. The
/// next attempt begins where changes are made, also if it begins with a rollback.
#[test]
fn an_attempt_may_begin_with_a_rollback() {
    let servers = Servers::with_writer(|_, _| ());
    let mut client = servers.client(1);
    let read = format!("g.tx().rollback(); {COUNT}");
    assert_eq!(client.in_session("s", &read).values(), [number(0)]);
    client.in_session("s", "g.addV('new')").refused(596, "cannot read again");
    assert_eq!(client.in_session("s", &read).values(), [number(0)]);
    assert_eq!(client.in_session("s", "g.addV('new')").values().len(), 1);
    client.transaction("s", "commit").values();
    shows(&mut client, number(1));
}

/// A transaction that has only read moves with its first change. What it has read counts at its commit.
#[test]
fn what_was_read_before_the_first_change_counts() {
    let servers = Servers::with_writer(|_, _| ());
    let (mut reader, mut writer) = (servers.client(1), servers.client(2));
    let read = "g.V().hasLabel('old').values('n')";
    let set = |value: i32| format!("g.V().hasLabel('old').property('n', {value}).iterate()");
    let add = "g.addV('new').property('n', 1).iterate()";
    // Unchanged: it goes on at the leader.
    assert_eq!(reader.in_session("s", read).values(), [Value::from(0)]);
    reader.in_session("s", add).values();
    assert_eq!(reader.in_session("s", read).values(), [Value::from(0)]);
    // Changed since it has moved: its commit is a conflict.
    writer.eval(&set(1)).values();
    assert_eq!(reader.in_session("s", read).values(), [Value::from(0)], "one graph");
    reader.transaction("s", "commit").refused(596, "hint");
    shows(&mut reader, number(0));
    // Changed before it moves: a conflict at once, and until the client knows it.
    let mut reader = servers.client(1);
    wait_until(|| reader.eval(read).values() == [Value::from(1)]);
    assert_eq!(reader.in_session("s", read).values(), [Value::from(1)]);
    writer.eval(&set(2)).values();
    let refused = reader.in_session("s", add).refused(596, "differs");
    let kind = refused.0[0].status.attributes.get(&Value::text("exceptions")).cloned();
    assert_eq!(kind, Some(Value::list(vec!["vervet.conflict".into()])));
    reader.in_session("s", add).refused(596, "differs");
    reader.in_session("s", read).refused(596, "differs");
    assert_eq!(reader.transaction("s", "rollback").code(), 204);
    // The session runs it again, from now on where its changes are made.
    assert_eq!(reader.in_session("s", read).values(), [Value::from(2)]);
    servers.running[0].wait_for("vervet_gremlin_sessions", 1.0);
    reader.in_session("s", add).values();
    assert_eq!(reader.transaction("s", "commit").code(), 204);
    shows(&mut reader, number(1));
    // The order of results counts where it was asked for, and results that were many are compared, too.
    writer
        .eval("g.inject(1).repeat(union(identity(), identity())).times(6).addV('many').property('n', 5)")
        .values();
    let mut reader = servers.client(1);
    wait_until(|| reader.eval("g.V().hasLabel('many').count()").values() == [number(64)]);
    for text in ["g.V().hasLabel('many')", "g.V().values('n').order()", "g.V().valueMap()"] {
        reader.in_session("s", text).values();
    }
    reader.in_session("s", add).values();
    assert_eq!(reader.transaction("s", "commit").code(), 204);
    // A read that has failed says something, too, which cannot be compared.
    reader.in_session("t", "g.V().hasLabel('many').fail('there are some')").refused(595, "there are");
    reader.in_session("t", add).refused(596, "cannot read again");
    assert_eq!(reader.transaction("t", "commit").refused(596, "cannot read again").0.len(), 1);
    assert_eq!(reader.transaction("t", "commit").code(), 204, "nothing is open");
    shows(&mut reader, number(2));
}

/// Two transactions at different servers change the same: one is a conflict, and runs again.
#[test]
fn conflicts_are_found_between_servers() {
    let servers = Servers::with_writer(|_, _| ());
    let (mut one, mut two) = (servers.client(1), servers.client(2));
    let add = "g.V().hasLabel('old').property('n', values('n').math('_ + 1')).iterate()";
    for client in [&mut one, &mut two] {
        client.in_session("s", add).values();
    }
    assert_eq!(one.transaction("s", "commit").code(), 204);
    two.transaction("s", "commit").refused(596, "hint");
    two.in_session("s", add).values();
    assert_eq!(two.transaction("s", "commit").code(), 204);
    wait_until(|| two.eval("g.V().hasLabel('old').values('n')").values() == [Value::from(2.0)]);
}

/// Many reads before the first change: the transaction moves while they can still be compared.
#[test]
fn long_transactions_move_before_their_first_change() {
    let servers = Servers::with_writer(|_, _| ());
    let mut client = servers.client(1);
    for _ in 0..70 {
        assert_eq!(client.in_session("s", COUNT).values(), [number(0)]);
    }
    servers.running[0].wait_for("vervet_gremlin_sessions", 1.0);
    client.in_session("s", "g.addV('new')").values();
    client.transaction("s", "commit").values();
    shows(&mut client, number(1));
    servers.running[0].wait_for("vervet_gremlin_sessions", 0.0);
    // Many at a time, which run one behind the other.
    let ask = |text: &str| args([("gremlin", text.into()), ("session", "s".into())]);
    let reads: Vec<_> = (0..300).map(|_| client.send("eval", "session", ask(COUNT))).collect();
    let change = client.send("eval", "session", ask("g.addV('new').iterate()"));
    let commit = client.send("eval", "session", ask("g.tx().commit()"));
    for read in reads {
        assert_eq!(client.answer(read).values(), [number(1)]);
    }
    assert_eq!(client.answer(change).code(), 204);
    assert_eq!(client.answer(commit).code(), 204);
    shows(&mut client, number(2));
}

/// Responses of many parts arrive whole. Those of a client that is gone end at the leader.
#[test]
fn long_responses_arrive_whole_and_end_with_their_client() {
    let servers = Servers::with_writer(|_, _| ());
    let mut client = servers.client(1);
    client.in_session("s", "g.addV('new')").values();
    let many = "g.inject('a text that is not so very short').repeat(union(identity(), identity())).times(16).map(identity())";
    let mut asked = args([("gremlin", many.into()), ("session", "s".into())]);
    asked.insert("batchSize".into(), 100.into());
    let answer = client.ask("eval", "session", asked);
    assert_eq!(answer.values().len(), 1 << 16);
    assert!(answer.0.len() > 600, "{}", answer.0.len());
    assert_eq!(client.in_session("s", COUNT).values(), [number(1)]);
    let leader = &servers.running[0];
    let running = || leader.wait_for("vervet_requests_running", 1.0);
    // The requests of `/metrics` are none.
    client.send("eval", "session", args([("gremlin", ENDLESS.into()), ("session", "s".into())]));
    running();
    drop(client);
    leader.wait_for("vervet_requests_running", 0.0);
    leader.wait_for("vervet_gremlin_sessions", 0.0);
    let mut client = servers.client(2);
    client.send("eval", "", args([("gremlin", format!("{ENDLESS}.addV('new')").into())]));
    running();
    drop(client);
    leader.wait_for("vervet_requests_running", 0.0);
    assert_eq!(count(&mut servers.client(1)), number(0));
}

/// The leader loses its place while it holds a transaction: the client is told that it was rolled back, and
/// runs it again at the next leader.
#[test]
fn a_transaction_ends_with_its_leader() {
    let servers = Servers::with_voters(3);
    let (mut client, mut idle) = (servers.client(1), servers.client(2));
    for client in [&mut client, &mut idle] {
        client.in_session("s", "g.addV('new')").values();
    }
    assert_eq!(idle.in_session("r", COUNT).values(), [number(0)]);
    servers.disturb_leader(&cut());
    wait_until(|| servers.clusters[1..].iter().any(|cluster| cluster.takes_changes()));
    wait_until(|| !servers.clusters[0].takes_changes());
    // Transactions that only read go on.
    assert_eq!(idle.in_session("r", COUNT).values(), [number(0)]);
    let words = format!("{} does not hold it any more", servers.name(0));
    client.in_session("s", "g.addV('new')").refused(596, &words);
    client.in_session("s", COUNT).refused(596, "rolled back");
    client.transaction("s", "commit").refused(596, "rolled back");
    idle.transaction("s", "commit").refused(596, &words);
    servers.disturb_leader(&FaultPlan::default());
    for client in [&mut client, &mut idle] {
        let again = "g.addV('new').property('again', true).iterate()";
        client.in_session("s", again).values();
        client.transaction("s", "commit").values();
    }
    assert_eq!(count(&mut idle), number(2));
    servers.running[0].wait_for("vervet_gremlin_sessions", 0.0);
}

/// The leader is gone while it holds a transaction: nothing of it is done, and the next leader takes it.
#[test]
fn a_transaction_ends_with_the_process_of_its_leader() {
    let mut servers = Servers::with_voters(3);
    let (mut client, mut other) = (servers.client(1), servers.client(2));
    for client in [&mut client, &mut other] {
        assert_eq!(client.in_session("s", COUNT).values(), [number(0)]);
        client.in_session("s", "g.addV('new')").values();
        assert_eq!(client.in_session("s", COUNT).values(), [number(1)]);
    }
    assert_eq!(client.in_session("r", COUNT).values(), [number(0)]);
    drop(servers.running.remove(0));
    drop(servers.clusters.remove(0));
    client.transaction("s", "commit").refused(596, "rolled back");
    other.in_session("s", "g.addV('new')").refused(596, "rolled back");
    assert_eq!(other.transaction("s", "rollback").code(), 204);
    assert_eq!(client.in_session("r", COUNT).values(), [number(0)], "it only reads");
    // It waits for the next leader.
    for client in [&mut client, &mut other] {
        client.in_session("s", "g.addV('new')").values();
        client.transaction("s", "commit").values();
    }
    wait_until(|| count(&mut client) == number(2));
}

/// The connection to the leader breaks: before a request arrives, or before its answer does.
#[test]
fn the_outcome_is_unknown_only_for_a_commit() {
    let servers = Servers::with_writer(|_, _| ());
    let mut client = servers.client(1);
    let add = "g.addV('new').iterate()";
    // Nothing arrives.
    client.in_session("s", add).values();
    servers.disturb(1, 0, cut());
    client.in_session("s", add).refused(596, "rolled back");
    client.transaction("s", "rollback").values();
    // Until there is no connection from before.
    wait_until(|| {
        let refused = client.in_session("s", add);
        client.transaction("s", "rollback").values();
        refused.code() == 596
            && refused.message().contains("cannot be reached from here; nothing was changed")
    });
    client.eval(add).refused(596, "cannot be reached from here; nothing was changed");
    // Reads need no leader.
    assert_eq!(client.in_session("s", COUNT).values(), [number(0)]);
    servers.disturb(1, 0, FaultPlan::default());
    // A session that could not begin begins now.
    client.transaction("s", "commit").values();
    client.in_session("s", add).values();
    client.transaction("s", "commit").values();
    shows(&mut client, number(1));
    // The answer of a commit does not arrive; it has taken effect.
    client.in_session("s", add).values();
    servers.disturb(1, 0, FaultPlan { cut_answers: ALWAYS, ..FaultPlan::default() });
    client.transaction("s", "commit").refused(596, "outcome of this change is unknown");
    client.eval(add).refused(596, "look before you repeat it");
    // No commit without its request.
    client.in_session("t", add).refused(596, "nothing was changed");
    client.transaction("t", "commit").values();
    servers.disturb(1, 0, FaultPlan::default());
    wait_until(|| count(&mut client) == number(3));
    servers.running[0].wait_for("vervet_gremlin_sessions", 0.0);
    shows(&mut client, number(3));
}

/// The idle time and the number of sessions are those of the leader, too.
#[test]
fn limits_are_those_of_the_leader() {
    let servers = Servers::with_writer(|writes, options| {
        if writes {
            options.limits.session_timeout = Duration::from_secs(1);
            options.limits.sessions = 1;
        }
    });
    let (mut client, mut other) = (servers.client(1), servers.client(2));
    client.in_session("s", "g.addV('new')").values();
    let begun = Instant::now();
    other.in_session("s", "g.addV('new')").refused(596, "1 sessions");
    assert!(begun.elapsed() < Duration::from_secs(30));
    // A session that only reads is not one of the leader.
    assert_eq!(other.in_session("s", COUNT).values(), [number(0)]);
    servers.running[0].wait_for("vervet_gremlin_sessions", 0.0);
    client.in_session("s", COUNT).refused(596, "idle for too long");
    client.transaction("s", "commit").refused(596, "rolled back");
    client.in_session("s", "g.addV('new')").values();
    client.transaction("s", "commit").values();
    shows(&mut client, number(1));
}

/// The time of the server of the client counts as well, and the end of its connection.
#[test]
fn sessions_end_at_the_leader_with_those_of_the_client() {
    let servers = Servers::with_writer(|writes, options| {
        if !writes {
            options.limits.session_timeout = Duration::from_secs(1);
        }
    });
    let mut client = servers.client(1);
    client.in_session("s", "g.addV('new')").values();
    servers.running[0].wait_for("vervet_gremlin_sessions", 0.0);
    client.in_session("s", "g.addV('new')").refused(596, "idle for 1 s");
    client.transaction("s", "rollback").values();
    client.in_session("s", "g.addV('new')").values();
    servers.running[0].wait_for("vervet_gremlin_sessions", 1.0);
    drop(client);
    servers.running[0].wait_for("vervet_gremlin_sessions", 0.0);
    assert_eq!(count(&mut servers.client(0)), number(0));
}

fn user(name: &str, role: Role) -> User {
    let hash = vervet_server::hash_password("secret").expect("a hash");
    User { name: name.to_owned(), password: Some(hash), token_sha256: None, role }
}

/// Roles and credentials are checked at both servers.
#[test]
fn credentials_are_checked_at_both_servers() {
    let servers = Servers::with_writer(|writes, options| {
        options.anonymous = Some(Role::Read);
        options.users = vec![user("ann", Role::Write), user("rea", Role::Read)];
        if writes {
            options.users.push(user("lea", Role::Write));
            options.users.push(user("ben", Role::Read));
        } else {
            options.users.push(user("bob", Role::Write));
            options.users.push(user("ben", Role::Write));
        }
    });
    let sasl = |name: &str, password: &str| {
        let text = STANDARD.encode(format!("\0{name}\0{password}"));
        args([("sasl", text.into()), ("saslMechanism", "PLAIN".into())])
    };
    let login = |name: &str| {
        let mut client = servers.client(1);
        assert_eq!(client.ask("authentication", "", sasl(name, "secret")).code(), 204);
        client
    };
    let add = "g.addV('new').iterate()";
    let mut ann = login("ann");
    ann.in_session("s", add).values();
    assert_eq!(ann.transaction("s", "commit").code(), 204);
    ann.eval(add).values();
    let header = format!("Basic {}", STANDARD.encode("ann:secret"));
    let mut by_header =
        Client::with_headers(&servers.running[1], Format::GraphSon3, &[("authorization", &header)])
            .expect("a client");
    by_header.in_session("s", add).values();
    assert_eq!(by_header.transaction("s", "commit").code(), 204);
    shows(&mut ann, number(3));
    let mut rea = login("rea");
    rea.in_session("s", add).refused(403, "the role read");
    rea.eval(add).refused(403, "the role read");
    assert_eq!(rea.in_session("s", COUNT).values(), [number(3)]);
    // Users of this server alone, or with more rights than at the leader.
    let mut bob = login("bob");
    bob.in_session("s", add).refused(403, "the name, the password or the token is wrong");
    bob.eval(add).refused(403, "the name, the password or the token is wrong");
    let mut ben = login("ben");
    ben.in_session("s", add).refused(403, "the role read");
    ben.eval(add).refused(403, "the role read");
    let mut lea = servers.client(1);
    lea.ask("authentication", "", sasl("lea", "secret")).refused(401, "wrong");
    // A client cannot use the address that servers use.
    let headers = ["vervet-transaction: 0123456789abcdef0123456789abcdef", "vervet-action: begin"];
    servers.running[0].send("POST", "/gremlin/forwarded", &headers, b"").expect(404);
    servers.running[1].send("POST", "/gremlin/forwarded", &headers, b"").expect(404);
    shows(&mut ann, number(3));
}

/// Where one server is named as the writer, the others send on to it.
#[test]
fn sessions_go_to_the_writer() {
    let database = Database::in_memory();
    database.gremlin("g.addV('old').property('n', 0)").expect("a graph");
    let mut made = InitOptions::on_host(2, 4, "127.0.0.1", (0, 0));
    made.writer = Some("a".to_owned());
    let (clusters, _folder) = cluster(&database, made);
    let start = |cluster: &Arc<Cluster>| {
        Running::start(cluster.database(), |options| options.cluster = Some(Arc::clone(cluster)))
    };
    let servers: Vec<Running> = clusters.iter().map(start).collect();
    servers.iter().for_each(|server| wait_until(|| server.get("/ready", &[]).status == 200));
    let mut client = Client::new(&servers[1], Format::GraphBinary1);
    assert_eq!(client.in_session("s", "g.V().count()").values(), [number(1)]);
    client.in_session("s", "g.addV('new')").values();
    assert_eq!(client.in_session("s", "g.V().count()").values(), [number(2)]);
    client.transaction("s", "commit").values();
    client.eval("g.addV('new')").values();
    // A server that does not vote shows changes a little later.
    wait_until(|| count(&mut client) == number(2));
}

/// A server that is started to read only takes no changes for others.
#[test]
fn read_only_servers_send_nothing_on() {
    let servers = Servers::with_writer(|writes, options| options.read_only = !writes);
    let mut client = servers.client(1);
    client.in_session("s", "g.addV('new')").refused(403, "changes of this graph go to");
    client.eval("g.addV('new')").refused(403, "changes of this graph go to");
    assert_eq!(client.in_session("s", COUNT).values(), [number(0)]);
}

/// What another server sends is checked as bytes of a client are.
#[test]
fn damaged_requests_of_servers_are_refused() {
    let servers = Servers::with_writer(|_, _| ());
    let (from, to) = (&servers.clusters[1], servers.clusters[0].map().server.clone());
    let name = "0123456789abcdef0123456789abcdef";
    let send = |action: &str, body: &[u8]| {
        let head = format!(
            "127.0.0.1 false\nPOST /gremlin/forwarded HTTP/1.0\r\nvervet-transaction: {name}\r\n\
             vervet-action: {action}\r\nvervet-hops: 1\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let answer = from.forward(&to, &[head.as_bytes(), body].concat()).expect("it is sent");
        String::from_utf8_lossy(&answer.expect("an answer")).into_owned()
    };
    for (action, body, words) in [
        ("begin", &b""[..], "damaged"),
        ("begin", b"\x00\xff\xff\xff\xff", "damaged"),
        ("begin", b"\x02abc", "damaged"),
        ("run", b"\x00\x01\x00\x00\x00{", "vervet-progress: lost"),
        ("continue", b"", "vervet-progress: lost"),
        ("close", b"", "vervet-progress: closed"),
        ("walk", b"", "names no transaction"),
        // A message that is no request.
        ("begin", b"\x01\x01\x00\x00\x00{", "vervet-code: 498"),
        ("single", b"\x00\x01\x00\x00\x00!", "vervet-code: 49"),
    ] {
        let answer = send(action, body);
        assert!(answer.contains(words), "{action} {body:?}: {answer}");
    }
    assert!(
        from.forward(&to, b"garbage").expect("it is sent").is_err_and(|e| e.kind() == ErrorKind::Corrupt)
    );
    servers.running[0].wait_for("vervet_gremlin_sessions", 0.0);
}

//! Servers of a cluster: readiness and metrics know the other servers; changes are sent on to the one that
//! takes them.

use crate::common::Running;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vervet::{Database, DatabaseOptions, Format};
use vervet_cluster::{Cluster, InitOptions, init};
use vervet_model::Watch;
use vervet_peer::{ALWAYS, FaultPlan};
use vervet_server::{Role, ServerOptions, User};

fn open(directory: &Path) -> Arc<Cluster> {
    Arc::new(Cluster::open(directory, &DatabaseOptions::default()).expect("a server"))
}

/// Asks `/ready` until it has this status; the body.
fn wait_for(server: &Running, status: u16) -> String {
    let begin = Instant::now();
    loop {
        let reply = server.get("/ready", &[]);
        if reply.status == status {
            return reply.text();
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "{}", reply.text());
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Servers of a cluster, made with these options but for their addresses.
pub(crate) fn cluster(database: &Database, mut made: InitOptions) -> (Vec<Arc<Cluster>>, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let ports: Vec<_> =
        made.servers.iter().map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
    for (server, port) in made.servers.iter_mut().zip(&ports) {
        server.address = port.local_addr().expect("an address").to_string();
    }
    drop(ports);
    let watch = Watch::new("test");
    let directories = init(database, &made, &folder.path().join("servers"), &watch).expect("made");
    (directories.iter().map(|directory| open(directory)).collect(), folder)
}

/// Every server takes changes over all HTTP interfaces, shows them, and gives the errors of the one that
/// makes them.
#[test]
fn changes_are_sent_on_to_the_leader() {
    let database = Database::in_memory();
    database.load_text(Format::TriG, "<urn:a> a <urn:C> ; <urn:p> 1 .").expect("a graph");
    database.add_constraint(&"unique <urn:C> <urn:p>".parse().expect("a rule")).expect("kept");
    let mut made = InitOptions::on_host(4, 1, "127.0.0.1", (0, 0));
    made.voters = made.servers[..3].iter().map(|server| server.name.clone()).collect();
    made.replicas = 4;
    let (clusters, _folder) = cluster(&database, made);
    let hash = vervet_server::hash_password("secret").expect("a hash");
    let start = |cluster: &Arc<Cluster>| {
        Running::start(cluster.database(), |options| {
            options.cluster = Some(Arc::clone(cluster));
            options.anonymous = Some(Role::Read);
            options.users = vec![User {
                name: "ann".to_owned(),
                password: Some(hash.clone()),
                token_sha256: None,
                role: Role::Write,
            }];
        })
    };
    let servers: Vec<Running> = clusters.iter().map(start).collect();
    let ann = "authorization: Basic YW5uOnNlY3JldA==";
    let begin = Instant::now();
    // Until there is a leader, and all know it.
    for (server, cluster) in servers.iter().zip(&clusters) {
        let text = "INSERT DATA { <urn:begin> <urn:of> <urn:test> }";
        while server.update(text, &[ann]).status != 204 {
            assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", cluster.changes());
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let shows = |server: &Running, at: usize, query: &str, expected: &str| {
        // A server that does not vote shows changes a little later.
        let begin = Instant::now();
        loop {
            let found = server.query(query, &["accept: text/csv"]).text();
            if found.contains(expected) {
                return;
            }
            assert!(at == 3 && begin.elapsed() < Duration::from_secs(60), "server {at}: {query}: {found}");
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    for (at, server) in servers.iter().enumerate() {
        let update = format!("INSERT DATA {{ <urn:s{at}> <urn:q> \"é {at}\" }}");
        let reply = server.update(&update, &[ann]).expect(204);
        assert!(reply.header("vervet-changes").is_some_and(|changes| changes.contains("\"inserted\":1")));
        shows(server, at, &format!("SELECT ?o {{ <urn:s{at}> <urn:q> ?o }}"), &format!("é {at}"));
        // A relative name is resolved at the address that the client has used.
        let form = ["content-type: application/x-www-form-urlencoded", ann];
        server.send("POST", "/sparql", &form, b"update=INSERT+DATA+{+%3Crel%3E+%3Curn:r%3E+1+}").expect(204);
        shows(server, at, "SELECT ?s { ?s <urn:r> 1 }", "http://localhost/rel");
        let path = format!("/store?graph=urn:g{at}");
        let turtle = ["content-type: text/turtle", ann];
        server.send("PUT", &path, &turtle, b"<urn:x> <urn:y> <urn:z> .").expect(201);
        shows(server, at, &format!("SELECT ?o {{ GRAPH <urn:g{at}> {{ ?s ?p ?o }} }}"), "urn:z");
        server.send("DELETE", &path, &[ann], b"").expect(204);
        server.send("DELETE", &path, &[ann], b"").expect(404);
        let json = ["content-type: application/json", ann];
        let add = format!("{{\"gremlin\": \"g.addV('made').property('n', {at}).count()\"}}");
        let reply = server.send("POST", "/gremlin", &json, add.as_bytes()).expect(200);
        assert!(reply.text().contains("\"data\":[1]"), "{}", reply.text());
        shows(server, at, "SELECT ?n { ?s <urn:vervet:key:n> ?n }", &at.to_string());
        // Errors are those of the server that takes the change.
        let reply = server.update("INSERT DATA { <urn:s> }", &[ann]).expect(400);
        assert!(reply.text().contains("expected"), "{}", reply.text());
        let twice = server.update("INSERT DATA { <urn:b> a <urn:C> ; <urn:p> 1 }", &[ann]).expect(409);
        assert!(twice.text().contains("unique"), "{}", twice.text());
        assert_eq!(server.update(&update, &[]).status, 401);
        assert_eq!(server.update(&update, &["authorization: Basic YW5uOndyb25n"]).status, 401);
        // A client cannot make a server answer for another one.
        let reply = server.update(&update, &[ann, "vervet-hops: 99"]);
        assert!(matches!(reply.status, 204 | 403), "{} {}", reply.status, reply.text());
    }
    // Files, and the log of each voter.
    for (at, server) in servers.iter().enumerate() {
        let votes = at < 3;
        let metrics =
            ["vervet_log_bytes", "vervet_log_files", "vervet_recovery_bytes", "vervet_log_syncs_total"];
        for name in metrics {
            assert_eq!(server.metric(name) > 0.0, votes, "{name} of server {at}: {}", server.metric(name));
        }
        assert!(server.metric("vervet_disk_bytes") > server.metric("vervet_log_bytes"));
        assert_eq!(server.metric("vervet_log_sync_seconds_total") > 0.0, votes, "server {at}");
    }
    // A strict read at any voter sees each change at once; elsewhere it says that it cannot.
    let strict = ["accept: text/csv", "vervet-consistency: strict"];
    let leading = clusters.iter().position(|cluster| cluster.takes_changes()).expect("a leader");
    for number in 0..50 {
        let text = format!("INSERT DATA {{ <urn:strict> <urn:n> {number} }}");
        servers[leading].update(&text, &[ann]).expect(204);
        let found = servers[number % 3].query("SELECT (MAX(?n) AS ?m) { <urn:strict> <urn:n> ?n }", &strict);
        assert!(found.expect(200).text().contains(&format!("\n{number}\r")), "{number}");
    }
    assert!(servers[3].query("ASK {}", &strict).expect(400).text().contains("does not vote"));
    servers[0].query("ASK {}", &["vervet-consistency: eventual"]).expect(400);
    servers[3].query("ASK {}", &["vervet-consistency: session"]).expect(200);
    // The connection is cut before the answer of the leader arrives: the outcome is unknown.
    let leader = clusters.iter().position(|cluster| cluster.takes_changes()).expect("a leader");
    let at = (0..3).find(|at| *at != leader).expect("three");
    let faults = clusters[at].faults(&clusters[leader].map().server).expect("a peer");
    faults.set(FaultPlan { cut_answers: ALWAYS, ..FaultPlan::default() });
    let reply = servers[at].update("INSERT DATA { <urn:n> <urn:n> <urn:n> }", &[ann]).expect(503);
    assert!(reply.text().contains("the outcome of this change is unknown"), "{}", reply.text());
    assert!(reply.text().contains("look before you repeat it"), "{}", reply.text());
    // It is not sent at all: nothing has changed.
    faults.set(FaultPlan { cut_requests: ALWAYS, refused_connections: ALWAYS, ..FaultPlan::default() });
    let begin = Instant::now();
    loop {
        let reply = servers[at].update("INSERT DATA { <urn:m> <urn:m> <urn:m> }", &[ann]).expect(503);
        if reply.text().contains("cannot be reached from here; nothing was changed") {
            break;
        }
        // A ping at the same time as a request has left a second connection, which is cut first.
        assert!(begin.elapsed() < Duration::from_secs(60), "{}", reply.text());
    }
    shows(&servers[leader], leader, "SELECT (COUNT(*) AS ?n) { <urn:m> ?p ?o }", "\n0\r");
}

/// A page of another site, which may read, changes nothing through a server that sends changes on either.
#[test]
fn pages_of_other_sites_change_nothing_elsewhere() {
    let database = Database::in_memory();
    database.load_text(Format::TriG, "<urn:a> <urn:b> <urn:c> .").expect("a graph");
    let mut made = InitOptions::on_host(2, 4, "127.0.0.1", (0, 0));
    made.writer = Some("a".to_owned());
    let (clusters, _folder) = cluster(&database, made);
    let start = |cluster: &Arc<Cluster>| {
        Running::start(cluster.database(), |options| {
            options.cluster = Some(Arc::clone(cluster));
            options.cors = vec!["*".to_owned()];
        })
    };
    let servers: Vec<Running> = clusters.iter().map(start).collect();
    wait_for(&servers[1], 200);
    let page = "origin: https://elsewhere.example";
    for server in &servers {
        server.update("INSERT DATA { <urn:x> <urn:y> <urn:z> }", &[page]).expect(403);
        let json = ["content-type: application/json", page];
        server.send("POST", "/gremlin", &json, b"{\"gremlin\": \"g.addV('x')\"}").expect(403);
        server.query("ASK {}", &[page]).expect(200);
    }
    assert_eq!(clusters[0].database().snapshot().statement_count(), 1);
    servers[1].update("INSERT DATA { <urn:x> <urn:y> <urn:z> }", &[]).expect(204);
    assert_eq!(clusters[0].database().snapshot().statement_count(), 2);
}

#[test]
fn a_server_is_ready_while_it_reaches_the_others() {
    let database = Database::in_memory();
    database.load_text(Format::TriG, "<urn:a> <urn:b> <urn:c>, <urn:d> .").expect("a graph");
    let folder = tempfile::tempdir().expect("a folder");
    let mut made = InitOptions::on_host(2, 4, "127.0.0.1", (0, 0));
    let ports = [0, 1].map(|_| TcpListener::bind("127.0.0.1:0").expect("a port"));
    for (server, port) in made.servers.iter_mut().zip(&ports) {
        server.address = port.local_addr().expect("an address").to_string();
    }
    drop(ports);
    let watch = Watch::new("test");
    let directories = init(&database, &made, &folder.path().join("servers"), &watch).expect("made");
    let own = open(&directories[0]);
    let change = |options: &mut ServerOptions| {
        options.read_only = true;
        options.cluster = Some(Arc::clone(&own));
    };
    let server = Running::start(own.database(), change);
    let reason = "server b cannot be reached, so queries that need their partitions fail";
    assert!(wait_for(&server, 503).contains(reason));
    let other = open(&directories[1]);
    assert_eq!(wait_for(&server, 200), "ready\n");
    let metrics = server.get("/metrics", &[]).text();
    let protocol = format!("vervet_peer_protocol{{server=\"b\"}} {}\n", vervet_peer::Protocol::NEWEST);
    for line in ["vervet_peer_reachable{server=\"b\"} 1\n", &protocol] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    drop(other);
    assert!(wait_for(&server, 503).contains(reason));
    let metrics = server.get("/metrics", &[]).text();
    for line in [
        "vervet_peer_reachable{server=\"b\"} 0\n",
        "vervet_peer_requests_total{server=\"b\"} 0\n",
        "vervet_peer_bytes_sent_total{server=\"b\"} 0\n",
        "vervet_peer_bytes_received_total{server=\"b\"} 0\n",
        // Pings are no requests.
        "vervet_peer_failures_total{server=\"b\"} 0\n",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    // The configuration does not name the cluster, and a reload keeps it.
    let mut options = ServerOptions::default();
    options.bind = vec![([127, 0, 0, 1], 0).into()];
    options.read_only = true;
    server.reloader.reload(options).expect("reloaded");
    assert!(server.get("/ready", &[]).text().contains(reason));
}

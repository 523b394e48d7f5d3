//! Servers of a cluster: readiness and metrics know the other servers.

use crate::common::Running;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vervet::{Database, DatabaseOptions, Format};
use vervet_cluster::{Cluster, InitOptions, init};
use vervet_model::Watch;
use vervet_server::ServerOptions;

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
        std::thread::yield_now();
    }
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
    assert!(server.get("/metrics", &[]).text().contains("vervet_peer_reachable{server=\"b\"} 1\n"));
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

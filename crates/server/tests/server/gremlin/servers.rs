//! Servers of a cluster, for tests of Gremlin at several of them.

use super::client::Client;
use crate::cluster::cluster;
use crate::common::Running;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vervet::Database;
use vervet::gremlin::Value;
use vervet_cluster::{Cluster, InitOptions};
use vervet_peer::{ALWAYS, FaultPlan};
use vervet_server::ServerOptions;
use vervet_tinkerpop::Format;

pub(super) const COUNT: &str = "g.V().hasLabel('new').count()";
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Servers of a cluster. The first one takes changes.
pub(super) struct Servers {
    pub(super) running: Vec<Running>,
    pub(super) clusters: Vec<Arc<Cluster>>,
    _folder: tempfile::TempDir,
}

impl Servers {
    /// Three voters, and others that do not vote.
    pub(super) fn with_voters(count: usize) -> Self {
        Self::with_voters_and(count, |_, _| ())
    }

    /// [`Servers::with_voters`] with options, as [`Servers::with_writer`] changes them.
    pub(super) fn with_voters_and(count: usize, change: impl Fn(bool, &mut ServerOptions)) -> Self {
        let made = |made: &mut InitOptions| {
            made.voters = made.servers[..3].iter().map(|server| server.name.clone()).collect();
        };
        let (mut clusters, folder) = Self::make(count, made);
        let mut leading = None;
        wait_until(|| {
            leading = clusters[..3].iter().position(|cluster| cluster.takes_changes());
            let is_known = |cluster: &Arc<Cluster>| cluster.taker().is_some();
            leading.is_some() && clusters.iter().all(is_known)
        });
        clusters.swap(0, leading.expect("a leader"));
        clusters[..3].iter().for_each(|cluster| cluster.catch_up(PATIENCE).expect("it catches up"));
        Self::start((clusters, folder), change)
    }

    /// A writer, which no election replaces, and two others. `change`: options of each; whether it writes.
    pub(super) fn with_writer(change: impl Fn(bool, &mut ServerOptions)) -> Self {
        Self::start(Self::make(3, |made| made.writer = Some(made.servers[0].name.clone())), change)
    }

    fn make(count: usize, change: impl Fn(&mut InitOptions)) -> (Vec<Arc<Cluster>>, tempfile::TempDir) {
        let database = Database::in_memory();
        database.gremlin("g.addV('old').property('n', 0)").expect("a graph");
        let mut made = InitOptions::on_host(count, 1, "127.0.0.1", (0, 0));
        made.replicas = count;
        change(&mut made);
        cluster(&database, made)
    }

    fn start(
        (clusters, folder): (Vec<Arc<Cluster>>, tempfile::TempDir),
        change: impl Fn(bool, &mut ServerOptions),
    ) -> Self {
        let start = |(at, cluster): (usize, &Arc<Cluster>)| {
            Running::start(cluster.database(), |options| {
                options.cluster = Some(Arc::clone(cluster));
                change(at == 0, options);
            })
        };
        let running = clusters.iter().enumerate().map(start).collect();
        let servers = Self { running, clusters, _folder: folder };
        for server in &servers.running {
            wait_until(|| server.get("/ready", &[]).status == 200);
        }
        servers
    }

    pub(super) fn client(&self, at: usize) -> Client {
        Client::new(&self.running[at], Format::GraphBinary1)
    }

    /// The name of a server, in messages.
    pub(super) fn name(&self, at: usize) -> String {
        format!("server {}", self.clusters[at].map().server)
    }

    /// Waits until a server that does not vote sends changes to a voter that does not lead.
    pub(super) fn send_through_a_voter(&self, from: usize) {
        self.disturb(from, 0, cut());
        let leader = self.clusters[0].map().server.clone();
        wait_until(|| self.clusters[from].taker().is_some_and(|taker| taker != leader));
    }

    /// Does this to the messages of the first server to the other voters of three.
    pub(super) fn disturb_leader(&self, plan: &FaultPlan) {
        for other in [1, 2] {
            let name = &self.clusters[other].map().server;
            self.clusters[0].voting_faults(name).expect("a voter").set(plan.clone());
        }
    }

    /// Does this to the requests of one server to another.
    pub(super) fn disturb(&self, from: usize, to: usize, plan: FaultPlan) {
        let faults = self.clusters[from].faults(&self.clusters[to].map().server).expect("a peer");
        faults.set(plan);
    }
}

/// Waits until the test is true.
#[track_caller]
pub(super) fn wait_until(mut is_it: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_it() {
        assert!(begun.elapsed() < PATIENCE, "it does not come");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

pub(super) fn count(client: &mut Client) -> Value {
    client.eval(COUNT).values().remove(0)
}

/// Waits until a server shows so many: one that does not vote shows changes a little later.
#[track_caller]
pub(super) fn shows(client: &mut Client, expected: Value) {
    wait_until(|| count(client) == expected);
}

pub(super) fn number(number: usize) -> Value {
    Value::from(i64::try_from(number).expect("small"))
}

/// No connection from here to there works.
pub(super) fn cut() -> FaultPlan {
    FaultPlan { cut_requests: ALWAYS, refused_connections: ALWAYS, ..FaultPlan::default() }
}

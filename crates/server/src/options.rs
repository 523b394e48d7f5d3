//! Options of the server: addresses, limits, users, TLS. Every limit has a name here, and a default with a
//! reason.

use crate::http::reply::Failure;
use crate::saved_queries::SavedQueries;
use hyper::StatusCode;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use vervet_cluster::Cluster;

/// The default address to listen on.
pub const BIND_DEFAULT: &str = "127.0.0.1:7878";

/// The default threshold of the slow-query log: an interactive service rarely intends to take longer.
pub const SLOW_QUERY_DEFAULT: Duration = Duration::from_secs(1);

/// Options of a server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerOptions {
    /// Addresses to listen on; the first that can be bound is used. Port 0: any free port.
    pub bind: Vec<SocketAddr>,
    /// Refuse all writes.
    pub read_only: bool,
    /// Listen on addresses other than loopback without TLS.
    pub allow_plain_http: bool,
    /// Shut down gracefully on SIGINT and SIGTERM.
    pub signals: bool,
    /// Origins whose pages may read and write the database, besides the server's own; `*`: pages of all other
    /// origins may read.
    pub cors: Vec<String>,
    /// Host names of the server, besides addresses and `localhost`. Requests without a user are refused under
    /// any other name, since an attacker can make the name of a page's own site resolve to this server (DNS
    /// rebinding).
    pub hosts: Vec<String>,
    /// Users and their roles; empty: unrestricted access.
    pub users: Vec<User>,
    /// The role of unauthenticated clients, if there are users.
    pub anonymous: Option<Role>,
    /// Certificate and key; `None`: plain HTTP.
    pub tls: Option<Tls>,
    /// Requests that work on the database for longer are logged with their text; `None`: never.
    pub slow_query: Option<Duration>,
    /// Queries that the console offers.
    pub queries: SavedQueries,
    /// The cluster of which the server is a part, for `/cluster`.
    pub cluster: Option<Arc<Cluster>>,
    /// Resource limits.
    pub limits: Limits,
}

impl ServerOptions {
    /// Whether this server refuses changes at present: as it was started, or another server takes them.
    pub(crate) fn refuses_changes(&self) -> bool {
        self.read_only || self.cluster.as_ref().is_some_and(|cluster| !cluster.takes_changes())
    }

    /// Whether the graph stays as it is while this server runs.
    pub(crate) fn never_changes(&self) -> bool {
        match &self.cluster {
            None => self.read_only,
            Some(cluster) => {
                let map = cluster.map();
                map.writer.is_none() && map.voters.is_empty()
            }
        }
    }

    /// Whether changes may have to be sent on to another server: at present, or soon.
    pub(crate) fn may_forward(&self) -> bool {
        let may_forward = |cluster: &Arc<Cluster>| {
            let map = cluster.map();
            !map.voters.is_empty() || map.writer.is_some() && !map.is_writer()
        };
        !self.read_only && self.cluster.as_ref().is_some_and(may_forward)
    }

    /// Whether changes are sent on to another server at present.
    pub(crate) fn forwards(&self) -> bool {
        let elsewhere = |cluster: &Arc<Cluster>| {
            let has_leader = || !cluster.map().voters.is_empty() || cluster.taker().is_some();
            !cluster.takes_changes() && !cluster.has_left() && has_leader()
        };
        !self.read_only && self.cluster.as_ref().is_some_and(elsewhere)
    }

    /// The refusal of changes by a server that only reads.
    pub(crate) fn refuse_changes(&self) -> Failure {
        let refused = |reason| Failure::new(StatusCode::FORBIDDEN, reason);
        match self.cluster.as_ref().and_then(|cluster| cluster.refusal()) {
            Some(error) => {
                let failure = match error.kind() {
                    // Soon there is a leader.
                    vervet::ErrorKind::Unavailable => {
                        Failure::new(StatusCode::SERVICE_UNAVAILABLE, error.message())
                    }
                    _ => refused(error.message()),
                };
                let failure = match error.hint() {
                    Some(hint) => failure.hint(hint),
                    None => failure,
                };
                if self.forwards() { failure.elsewhere() } else { failure }
            }
            None => refused("this server is read-only").hint("it was started with --read-only"),
        }
    }
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            bind: vec![SocketAddr::from(([127, 0, 0, 1], 7878))],
            read_only: false,
            allow_plain_http: false,
            signals: false,
            cors: Vec::new(),
            hosts: Vec::new(),
            users: Vec::new(),
            anonymous: None,
            tls: None,
            slow_query: Some(SLOW_QUERY_DEFAULT),
            queries: SavedQueries::default(),
            cluster: None,
            limits: Limits::default(),
        }
    }
}

/// Certificate chain and key, as PEM files.
#[derive(Clone, Debug)]
pub struct Tls {
    /// The certificate of the server, then its chain of issuers.
    pub cert: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// Permissions of a user; each role includes those before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Query, read graphs, look at plans and metrics.
    Read,
    /// Change the data.
    Write,
    /// See and stop requests of other users.
    Admin,
}

/// A user of the server.
#[derive(Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// User name for Basic authentication.
    pub name: String,
    /// The password as a PHC string of Argon2: see [`crate::hash_password`].
    pub password: Option<String>,
    /// SHA-256 of a bearer token, in hexadecimal.
    pub token_sha256: Option<String>,
    /// The role.
    pub role: Role,
}

impl std::fmt::Debug for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Hashes must not appear in logs.
        f.debug_struct("User").field("name", &self.name).field("role", &self.role).finish_non_exhaustive()
    }
}

/// Resource limits. The names are those of the configuration file.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// The maximum time of a query or an update; a request may ask for less. An interactive service has no
    /// use for longer.
    pub timeout: Duration,
    /// The maximum bytes of the tables of one query.
    pub memory_bytes: u64,
    /// The maximum threads of one heavy query; `None`: the number of cores.
    pub threads: Option<usize>,
    /// The maximum bytes of the body of a query, an update or a form.
    pub text_bytes: usize,
    /// The maximum bytes of a document sent to the graph store.
    pub document_bytes: usize,
    /// The maximum bytes of all bodies and messages held at a time, from their first byte until the end of
    /// their request, and of results that another server of a cluster has not fetched yet; a single one
    /// always fits.
    pub bodies_bytes: usize,
    /// The maximum time of an export from the graph store.
    pub export_timeout: Duration,
    /// The maximum bytes of the head of a request.
    pub head_bytes: usize,
    /// The maximum header lines of a request.
    pub headers: usize,
    /// The time for the head of a request to arrive; also how long an idle connection stays open.
    pub head_timeout: Duration,
    /// The time for a WebSocket client to log in, where a login is required.
    pub login_timeout: Duration,
    /// How long a body may stall, or arrive at less than [`BODY_BYTES_PER_SECOND_MIN`] on average.
    pub body_timeout: Duration,
    /// How long a client may leave sent data unread.
    pub write_timeout: Duration,
    /// The maximum number of open connections; further ones get an error and are closed.
    pub connections: usize,
    /// The maximum number of open connections per address (of IPv6 its first 64 bits).
    pub connections_per_address: usize,
    /// The maximum number of concurrent requests on the database.
    pub requests: usize,
    /// The maximum number of heavy ones among them, estimated at 1 ms or more.
    pub heavy_requests: usize,
    /// The maximum number of waiting requests; further ones get 503 at once.
    pub queue: usize,
    /// How long a request waits for a permit before it gets 503.
    pub queue_timeout: Duration,
    /// The maximum number of Gremlin sessions; each may hold a transaction.
    pub sessions: usize,
    /// The maximum number of streams of the change feed; further ones get 503.
    pub change_streams: usize,
    /// Idle time after which the transaction of a Gremlin session is rolled back.
    pub session_timeout: Duration,
    /// Idle time after which a WebSocket is closed.
    pub idle_timeout: Duration,
    /// The time for running requests to finish at shutdown; then they are cancelled.
    pub shutdown_timeout: Duration,
}

/// The maximum of [`Limits::requests`]: each may take a thread.
pub(crate) const REQUESTS_MAX: usize = 10_000;

/// The minimum average rate of a body, beyond the time of [`Limits::body_timeout`].
pub const BODY_BYTES_PER_SECOND_MIN: u64 = 16 << 10;

impl Default for Limits {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(60),
            memory_bytes: 1 << 30,
            threads: None,
            text_bytes: 16 << 20,
            document_bytes: 256 << 20,
            bodies_bytes: 1 << 30,
            export_timeout: Duration::from_secs(600),
            head_bytes: 64 << 10,
            headers: 100,
            head_timeout: Duration::from_secs(30),
            login_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(30),
            connections: 1024,
            connections_per_address: 512,
            requests: 128,
            heavy_requests: 8,
            queue: 256,
            queue_timeout: Duration::from_secs(5),
            sessions: 256,
            change_streams: 256,
            session_timeout: Duration::from_secs(600),
            idle_timeout: Duration::from_secs(3600),
            shutdown_timeout: Duration::from_secs(10),
        }
    }
}

//! What a server may do: address, limits, users, TLS. Every limit has a name here, and a default with a
//! reason.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Where a server listens if nobody says otherwise.
pub const BIND_DEFAULT: &str = "127.0.0.1:7878";

/// From which time on a request is logged as slow by default: an interactive service rarely
/// means to take longer.
pub const SLOW_QUERY_DEFAULT: Duration = Duration::from_secs(1);

/// How a server behaves.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerOptions {
    /// Addresses to listen on; the first that can be had is taken. Port 0: any free one.
    pub bind: Vec<SocketAddr>,
    /// Refuse everything that changes the database.
    pub read_only: bool,
    /// Listen on addresses other than loopback without TLS.
    pub allow_plain_http: bool,
    /// End gracefully at SIGINT and SIGTERM.
    pub signals: bool,
    /// Origins whose pages may read and change the database, besides the server's own; `*`: those of all
    /// others may read.
    pub cors: Vec<String>,
    /// Names by which the server is reached, besides addresses and `localhost`. Requests without a user are
    /// answered under no others, since the name of a page's own site can be made to resolve to this server
    /// (DNS rebinding).
    pub hosts: Vec<String>,
    /// Who may do what; nobody listed: everyone may do everything.
    pub users: Vec<User>,
    /// What those may do who do not say who they are, if there are users.
    pub anonymous: Option<Role>,
    /// Certificate and key; `None`: plain HTTP.
    pub tls: Option<Tls>,
    /// Requests that work on the database for longer are logged, with their text; `None`: none are.
    pub slow_query: Option<Duration>,
    /// How much of everything.
    pub limits: Limits,
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
            limits: Limits::default(),
        }
    }
}

/// Certificate chain and key, as PEM files.
#[derive(Clone, Debug)]
pub struct Tls {
    /// The certificate of the server, then those that vouch for it.
    pub cert: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// What somebody may do; each may do what those before may.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Query, read graphs, look at plans and metrics.
    Read,
    /// Change the data.
    Write,
    /// See and stop the requests of others.
    Admin,
}

/// Somebody who may use the server.
#[derive(Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// As given to Basic authentication.
    pub name: String,
    /// The password as a PHC string of Argon2: see [`crate::hash_password`].
    pub password: Option<String>,
    /// SHA-256 of a bearer token, in hexadecimal.
    pub token_sha256: Option<String>,
    /// What they may do.
    pub role: Role,
}

impl std::fmt::Debug for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Hashes do not belong into logs.
        f.debug_struct("User").field("name", &self.name).field("role", &self.role).finish_non_exhaustive()
    }
}

/// How much of everything. The names are those of the configuration file.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// How long a query or an update may run; a request may ask for less. An interactive service has no use
    /// for longer.
    pub timeout: Duration,
    /// Bytes that the tables of one query may take.
    pub memory_bytes: u64,
    /// Threads of one heavy query; `None`: as many as there are cores.
    pub threads: Option<usize>,
    /// Bytes of the body of a query, an update or a form.
    pub text_bytes: usize,
    /// Bytes of a document that comes to the graph store.
    pub document_bytes: usize,
    /// Bytes of all bodies and messages that are there at a time, from their first byte until their request
    /// is over; one always fits.
    pub bodies_bytes: usize,
    /// How long it may take to get a graph, or all of them, from the graph store.
    pub export_timeout: Duration,
    /// Bytes of the head of a request.
    pub head_bytes: usize,
    /// Header lines of a request.
    pub headers: usize,
    /// How long the head of a request may take to come; also how long an idle connection stays open.
    pub head_timeout: Duration,
    /// How long a client of a WebSocket may take to say who it is, where it has to.
    pub login_timeout: Duration,
    /// How long a body may bring nothing, or less than [`BODY_BYTES_PER_SECOND_MIN`] on average.
    pub body_timeout: Duration,
    /// How long a client may take nothing of what is sent to it.
    pub write_timeout: Duration,
    /// Open connections; further ones are told so and closed.
    pub connections: usize,
    /// Open connections of one address (of IPv6 its first 64 bits).
    pub connections_per_address: usize,
    /// Requests that work on the database at a time.
    pub requests: usize,
    /// Heavy ones among them, by estimate from 1 ms on.
    pub heavy_requests: usize,
    /// Requests that wait for their turn; further ones get 503 at once.
    pub queue: usize,
    /// How long a request waits for its turn before it gets 503.
    pub queue_timeout: Duration,
    /// Sessions of Gremlin at a time; each may hold a transaction.
    pub sessions: usize,
    /// How long a session of Gremlin may do nothing before its transaction is rolled back.
    pub session_timeout: Duration,
    /// How long a WebSocket may bring nothing before it is closed.
    pub idle_timeout: Duration,
    /// How long running requests have to end when the server is to end; then they are cancelled.
    pub shutdown_timeout: Duration,
}

/// The most that [`Limits::requests`] may be: each may take a thread.
pub(crate) const REQUESTS_MAX: usize = 10_000;

/// The slowest average at which a body may come, beyond the time of [`Limits::body_timeout`].
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
            session_timeout: Duration::from_secs(600),
            idle_timeout: Duration::from_secs(3600),
            shutdown_timeout: Duration::from_secs(10),
        }
    }
}

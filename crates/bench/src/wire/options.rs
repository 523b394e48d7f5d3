//! Options of a run, the requests, and the names of servers in tables.

use std::path::PathBuf;
use std::time::Duration;

/// Light requests: a lookup, hops and the short query of a person.
pub(super) const LIGHT: [&str; 3] = ["point look-up", "1 hop", "IS1"];
/// The request without work.
pub(super) const NOTHING: &str = "g.inject(1)";
/// The name of our server in tables.
pub(super) const OURS: &str = "ours";
pub(super) const FLOOR: &str = "floor";
pub(super) const PEER: &str = "Gremlin Server";
/// The write request.
pub(super) const ADD: &str = "g.addV('person').property('name', x)";

/// Options of a run.
#[derive(Clone, Debug)]
pub struct WireOptions {
    /// The script that starts Java programs (`peers/gremlin/run.sh`); without it only the bare client runs.
    pub script: Option<PathBuf>,
    /// Also measure TinkerPop's own server.
    pub against_gremlin_server: bool,
    /// A file with persons for parameters.
    pub parameters: Option<PathBuf>,
    /// The number of parameters of each text.
    pub count: usize,
    /// Time for each figure.
    pub time: Duration,
    /// The number of vertices added for each figure.
    pub vertices: u32,
    /// Requests in flight, in pipelined measurements.
    pub in_flight: u32,
    /// Vertices per transaction of a session.
    pub commit_each: u32,
}

//! TinkerGraph: a Java process that loads the same files and runs the same texts (`peers/tinkergraph`).
//!
//! # Protocol
//! The process gets a folder of CSV files, writes a line `{"loaded": …}`, then answers each line with a line.
//!
//! | line in | line out |
//! | --- | --- |
//! | `{"name", "text", "seconds", "parameters": [{name: value}]}` | `{"runs": [[ms]], "rows": [n], "hashes": ["hex"]}`; a cancelled parameter has no runs and `null` rows; `{"trouble": "…"}` |
//! | end of input | `{"heap": bytes}` |
//!
//! Hashes are sums of the hashes of canonical texts (`run::canonical`), so the order of results does not
//! matter.

use super::network::Network;
use super::run::{Found, PeerOutcome, Times};
use super::workload::Operation;
use serde_json::{Value as Json, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use vervet_conformance::ldbc::{Parameter, Parameters};
use vervet_model::{Error, Result};

/// Options of the peer.
#[derive(Clone, Debug)]
pub struct PeerOptions {
    /// The script that starts it with a folder (`peers/tinkergraph/run.sh`).
    pub script: PathBuf,
    /// An operation with a run longer than this is cancelled.
    pub limit: Duration,
}

/// A process that has loaded the network.
pub(super) struct Peer {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    limit: Duration,
    load_cpu_seconds: f64,
    _folder: TempDir,
}

/// Its figures at the end.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeerEnd {
    pub(super) load_cpu_seconds: f64,
    pub(super) heap_bytes: u64,
}

impl Peer {
    pub(super) fn start(options: &PeerOptions, network: &Network, _beside: &Path) -> Result<Self> {
        let folder = temporary()?;
        network.write_to(folder.path())?;
        let failed =
            |error: std::io::Error| Error::io(format_args!("start {}", options.script.display()), &error);
        let mut process = Command::new(&options.script)
            .arg(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let (Some(to), Some(from)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(Error::internal("the peer has no pipes"));
        };
        let mut peer = Self {
            process,
            to,
            from: BufReader::new(from),
            limit: options.limit,
            load_cpu_seconds: 0.0,
            _folder: folder,
        };
        let loaded = peer.read()?;
        peer.load_cpu_seconds = loaded["loaded"]["cpu"].as_f64().unwrap_or(f64::NAN);
        Ok(peer)
    }

    /// Runs an operation in the peer.
    pub(super) fn run(&mut self, operation: &Operation, time: Duration) -> Result<PeerOutcome> {
        let parameters: Vec<Json> = operation.parameters.iter().map(parameters_as_json).collect();
        let line = json!({
            "name": operation.name,
            "text": operation.gremlin,
            "seconds": time.as_secs_f64(),
            "limit": self.limit.as_secs_f64(),
            "parameters": parameters,
        });
        let failed = |error: std::io::Error| Error::io("write to the peer", &error);
        writeln!(self.to, "{line}").and_then(|()| self.to.flush()).map_err(failed)?;
        let answer = self.read()?;
        if let Some(failure) = answer["trouble"].as_str() {
            return Ok(PeerOutcome { failure: Some(failure.to_owned()), ..PeerOutcome::default() });
        }
        let list = |name: &str| answer[name].as_array().cloned().unwrap_or_default();
        let runs = list("runs");
        let runs =
            runs.iter().map(|runs| runs.as_array().into_iter().flatten().filter_map(Json::as_f64).collect());
        let found = list("rows").into_iter().zip(list("hashes")).map(|(rows, hash)| {
            let hash = hash.as_str().and_then(|hash| u64::from_str_radix(hash, 16).ok());
            rows.as_u64().zip(hash).map(|(rows, hash)| Found { rows, hash })
        });
        Ok(PeerOutcome { found: found.collect(), times: Times { runs: runs.collect() }, failure: None })
    }

    /// Ends the process.
    pub(super) fn end(self) -> Result<PeerEnd> {
        let Self { mut process, to, from, load_cpu_seconds, .. } = self;
        drop(to);
        let last = from.lines().last().and_then(std::result::Result::ok).unwrap_or_default();
        let heap_bytes = serde_json::from_str::<Json>(&last).ok().and_then(|json| json["heap"].as_u64());
        process.wait().map_err(|error| Error::io("wait for the peer", &error))?;
        Ok(PeerEnd { load_cpu_seconds, heap_bytes: heap_bytes.unwrap_or(0) })
    }

    fn read(&mut self) -> Result<Json> {
        let mut line = String::new();
        self.from.read_line(&mut line).map_err(|error| Error::io("read from the peer", &error))?;
        serde_json::from_str(&line)
            .map_err(|error| Error::internal(format!("the peer said {line:?}: {error}")))
    }
}

/// Parameters as JSON for Java programs.
pub(crate) fn parameters_as_json(parameters: &Parameters) -> Json {
    let value = |parameter: &Parameter| match parameter {
        Parameter::Vertex(text) | Parameter::Text(text) => json!(text),
        Parameter::Vertices(names) => json!(names),
        Parameter::Number(number) => json!(number),
    };
    parameters.iter().map(|(name, parameter)| (name.to_owned(), value(parameter))).collect()
}

/// A temporary folder, removed on drop.
fn temporary() -> Result<TempDir> {
    let made = tempfile::Builder::new().prefix("vervet-bench-").tempdir();
    made.map_err(|error| Error::io("make a temporary folder", &error))
}

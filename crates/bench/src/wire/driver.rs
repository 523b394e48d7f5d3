//! Java programs: TinkerPop's driver as a client, and TinkerPop's server as a peer (`peers/gremlin`).
//!
//! # Protocol
//! The driver answers each line with a line, and ends with its input.
//!
//! | line in | line out |
//! | --- | --- |
//! | `{"do": "connect", "host", "port", "format"}` | `{"connected": true}` |
//! | `{"do": "look", "text", "parameters": [{name: value}]}` | `{"rows": [n], "hashes": ["hex"]}` |
//! | `{"do": "one", "text", "parameters", "seconds"}` | `{"micros": [µs], "all": n}` |
//! | `{"do": "many", "text", "parameters", "seconds", "in_flight"}` | `{"requests": n, "seconds": s, "all": n}` |
//! | `{"do": "write", "vertices", "in_flight", "session", "commit_each", "name"}` | `{"seconds": s}` |
//!
//! `{"trouble": "…"}` is the error response to all of them. The server gets a folder of CSV files and prints
//! `{"port": n}`.

use super::clients::{Client, Format, PipelinedRequests, Single, Writes};
use crate::snb::{Found, parameters_as_json};
use serde_json::{Value as Json, json};
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;
use vervet_conformance::ldbc::Parameters;
use vervet_model::{Error, Result};

/// A process with a line protocol; ends when this value is dropped.
struct Process {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
}

impl Process {
    fn start(script: &Path, arguments: &[&std::ffi::OsStr]) -> Result<Self> {
        let mut child = Command::new(script)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| Error::io(format_args!("start {}", script.display()), &error))?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::internal("the program has no pipes"));
        };
        Ok(Self { child, to: Some(to), from: BufReader::new(from) })
    }

    fn read(&mut self) -> Result<Json> {
        let mut line = String::new();
        self.from.read_line(&mut line).map_err(|error| Error::io("read from a program of Java", &error))?;
        let answer: Json = serde_json::from_str(&line)
            .map_err(|error| Error::internal(format!("a program of Java said {line:?}: {error}")))?;
        match answer["trouble"].as_str() {
            Some(trouble) => Err(Error::internal(format!("a program of Java has trouble: {trouble}"))),
            None => Ok(answer),
        }
    }

    fn ask(&mut self, line: &Json) -> Result<Json> {
        let failed = |error: std::io::Error| Error::io("write to a program of Java", &error);
        if let Some(to) = &mut self.to {
            writeln!(to, "{line}").and_then(|()| to.flush()).map_err(failed)?;
        }
        self.read()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.to = None;
        // The process ends with its input; a failure to wait has no remedy.
        let _ = self.child.wait();
    }
}

/// TinkerPop's driver.
pub(super) struct Driver(Process);

impl Driver {
    pub(super) fn start(script: &Path) -> Result<Self> {
        Ok(Self(Process::start(script, &["Driver".as_ref()])?))
    }

    /// Connects for all further requests.
    pub(super) fn connect(&mut self, address: SocketAddr, format: Format) -> Result<()> {
        let (host, port) = (address.ip().to_string(), address.port());
        self.0.ask(&json!({"do": "connect", "host": host, "port": port, "format": format.name()}))?;
        Ok(())
    }
}

impl Client for Driver {
    fn name(&self) -> &'static str {
        "gremlin-driver"
    }

    fn own_cpu(&self) -> Duration {
        Duration::ZERO
    }

    fn look(&mut self, text: &str, parameters: &[Parameters]) -> Result<Vec<Found>> {
        let answer = self.0.ask(&json!({"do": "look", "text": text, "parameters": as_json(parameters)}))?;
        let list = |name: &str| answer[name].as_array().cloned().unwrap_or_default();
        let found = list("rows").into_iter().zip(list("hashes")).map(|(rows, hash)| {
            let hash = hash.as_str().and_then(|hash| u64::from_str_radix(hash, 16).ok());
            let found = rows.as_u64().zip(hash).map(|(rows, hash)| Found { rows, hash });
            found.ok_or_else(|| Error::internal("the driver found what is no number"))
        });
        found.collect()
    }

    fn one(&mut self, text: &str, parameters: &[Parameters], time: Duration) -> Result<Single> {
        let answer = self.0.ask(&json!({
            "do": "one", "text": text, "parameters": as_json(parameters), "seconds": time.as_secs_f64(),
        }))?;
        let times = answer["micros"].as_array().into_iter().flatten().filter_map(Json::as_f64).collect();
        Ok(Single { times, requests: answer["all"].as_u64().unwrap_or(0) })
    }

    fn many(
        &mut self,
        text: &str,
        parameters: &[Parameters],
        in_flight: u32,
        time: Duration,
    ) -> Result<PipelinedRequests> {
        let answer = self.0.ask(&json!({
            "do": "many", "text": text, "parameters": as_json(parameters), "seconds": time.as_secs_f64(),
            "in_flight": in_flight,
        }))?;
        let number = |name: &str| answer[name].as_u64().unwrap_or(0);
        let seconds = answer["seconds"].as_f64().unwrap_or(f64::NAN);
        Ok(PipelinedRequests { requests: number("requests"), seconds, all: number("all") })
    }

    fn write(&mut self, writes: &Writes) -> Result<f64> {
        let Writes { vertices, in_flight, session, commit_each, name } = writes;
        let answer = self.0.ask(&json!({
            "do": "write", "vertices": vertices, "in_flight": in_flight, "session": session,
            "commit_each": commit_each, "name": name,
        }))?;
        Ok(answer["seconds"].as_f64().unwrap_or(f64::NAN))
    }
}

fn as_json(parameters: &[Parameters]) -> Vec<Json> {
    parameters.iter().map(parameters_as_json).collect()
}

/// TinkerPop's server with a TinkerGraph.
pub(super) struct GremlinServer {
    pub(super) address: SocketAddr,
    _process: Process,
}

impl GremlinServer {
    pub(super) fn start(script: &Path, files: &Path) -> Result<Self> {
        let mut process = Process::start(script, &["Server".as_ref(), files.as_os_str()])?;
        let answer = process.read()?;
        let port = answer["port"].as_u64().and_then(|port| u16::try_from(port).ok());
        let port = port.ok_or_else(|| Error::internal("the peer has no port"))?;
        Ok(Self { address: SocketAddr::from(([127, 0, 0, 1], port)), _process: process })
    }
}

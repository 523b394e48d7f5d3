//! TinkerGraph: a Java process that creates the same graphs and runs the same texts
//! (`crates/bench/peers/tinkergraph`).
//!
//! # Protocol
//! The process answers each line with a line.
//!
//! | line in | line out |
//! | --- | --- |
//! | `{"graph": ["text"]}`: texts that create the graph of the following requests | `{"loaded": n}` |
//! | `{"text", "bags", "milliseconds", "most"}` | `{"results": ["text"]}`, see `canonical`; `{"error": "…"}`; `{"late": true}`: limit of time or results exceeded |

use super::answer::{Answer, RESULTS_MAX, TIMEOUT};
use serde_json::{Value as Json, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The process; it ends when this value is dropped.
pub(super) struct Peer {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Peer {
    pub(super) fn start(script: &Path) -> Result<Self, String> {
        let mut process = Command::new(script)
            .arg("--answers")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("could not start {}: {error}", script.display()))?;
        match (process.stdin.take(), process.stdout.take()) {
            (Some(to), Some(from)) => Ok(Self { process, to, from: BufReader::new(from) }),
            _ => Err("the peer has no pipes".to_owned()),
        }
    }

    /// Creates the graph for the following traversals.
    pub(super) fn make(&mut self, statements: &[String]) -> Result<(), String> {
        let answer = self.ask(&json!({ "graph": statements }))?;
        match answer["loaded"].as_u64() {
            Some(_) => Ok(()),
            None => Err(format!("the peer did not make the graph: {answer}")),
        }
    }

    /// Its answer; `ordered`: results have an order; `bags`: lists have none.
    pub(super) fn answer(&mut self, text: &str, ordered: bool, bags: bool) -> Result<Answer, String> {
        let milliseconds = u64::try_from(TIMEOUT.as_millis()).unwrap_or(u64::MAX);
        let asked = json!({ "text": text, "bags": bags, "milliseconds": milliseconds, "most": RESULTS_MAX });
        let answer = self.ask(&asked)?;
        if let Some(error) = answer["error"].as_str() {
            return Ok(Answer::Refused(error.to_owned()));
        }
        let Some(results) = answer["results"].as_array() else { return Ok(Answer::TooLong) };
        let mut results: Vec<String> = results.iter().filter_map(Json::as_str).map(str::to_owned).collect();
        if !ordered {
            results.sort_unstable();
        }
        Ok(Answer::Results(results))
    }

    fn ask(&mut self, line: &Json) -> Result<Json, String> {
        writeln!(self.to, "{line}")
            .and_then(|()| self.to.flush())
            .map_err(|error| format!("could not write to the peer: {error}"))?;
        let mut answer = String::new();
        self.from.read_line(&mut answer).map_err(|error| format!("could not read from the peer: {error}"))?;
        serde_json::from_str(&answer).map_err(|error| format!("the peer said {answer:?}: {error}"))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

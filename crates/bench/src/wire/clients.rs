//! The interface of a measuring client.

use crate::snb::{Found, canonical, hash};
use std::time::Duration;
use vervet::gremlin::Value;
use vervet_conformance::ldbc::Parameters;
use vervet_model::Result;

/// The protocol of a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Format {
    GraphBinary,
    GraphSon,
}

impl Format {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::GraphBinary => "GraphBinary",
            Self::GraphSon => "GraphSON 3",
        }
    }
}

/// Sequential requests.
#[derive(Clone, Debug)]
pub(super) struct Single {
    /// Times of the requests, in µs.
    pub(super) times: Vec<f64>,
    /// The number of requests, warm-up included.
    pub(super) requests: u64,
}

/// Pipelined requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct PipelinedRequests {
    pub(super) requests: u64,
    pub(super) seconds: f64,
    /// The number of requests, warm-up included.
    pub(super) all: u64,
}

/// Vertices to add one by one.
#[derive(Clone, Debug)]
pub(super) struct Writes {
    pub(super) vertices: u32,
    pub(super) in_flight: u32,
    /// In one session, with a commit after every [`Self::commit_each`] of them and at the end; otherwise each
    /// is a transaction.
    pub(super) session: bool,
    pub(super) commit_each: u32,
    /// Prefix of the names of the vertices.
    pub(super) name: String,
}

/// A client with one connection.
pub(super) trait Client {
    fn name(&self) -> &'static str;

    /// Processor time of the client in this process.
    fn own_cpu(&self) -> Duration;

    /// The results of a text for each of its parameters.
    fn look(&mut self, text: &str, parameters: &[Parameters]) -> Result<Vec<Found>>;

    /// Sends sequential requests for `time`, after an equally long warm-up.
    fn one(&mut self, text: &str, parameters: &[Parameters], time: Duration) -> Result<Single>;

    /// Sends pipelined requests, with `in_flight` at a time.
    fn many(
        &mut self,
        text: &str,
        parameters: &[Parameters],
        in_flight: u32,
        time: Duration,
    ) -> Result<PipelinedRequests>;

    /// Adds vertices; returns the seconds until all were committed.
    fn write(&mut self, writes: &Writes) -> Result<f64>;
}

/// The results of a client.
pub(super) fn found(values: &[Value]) -> Found {
    Found {
        rows: values.len() as u64,
        hash: values.iter().map(|value| hash(&canonical(value))).fold(0, u64::wrapping_add),
    }
}

//! What is asked of a client that measures.

use crate::snb::Found;
use std::time::Duration;
use vervet_conformance::ldbc::Parameters;
use vervet_model::Result;

/// How a client speaks.
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

/// Requests one after the other.
#[derive(Clone, Debug)]
pub(super) struct Single {
    /// What each took, in µs.
    pub(super) times: Vec<f64>,
    /// How many there were, unmeasured ones included.
    pub(super) requests: u64,
}

/// Many requests at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow {
    pub(super) requests: u64,
    pub(super) seconds: f64,
    /// How many there were, unmeasured ones included.
    pub(super) all: u64,
}

/// Vertices to add one by one.
#[derive(Clone, Debug)]
pub(super) struct Writes {
    pub(super) vertices: u32,
    pub(super) in_flight: u32,
    /// In one session, with a commit behind [`Self::commit_each`] of them and at the end; else each is a
    /// transaction.
    pub(super) session: bool,
    pub(super) commit_each: u32,
    /// What the names of the vertices begin with.
    pub(super) name: String,
}

/// A client with one connection.
pub(super) trait Client {
    fn name(&self) -> &'static str;

    /// Processor time of the client in this process.
    fn own_cpu(&self) -> Duration;

    /// What a text gives with each of its parameters.
    fn look(&mut self, text: &str, parameters: &[Parameters]) -> Result<Vec<Found>>;

    /// Asks again and again for `time`, after as long unmeasured.
    fn one(&mut self, text: &str, parameters: &[Parameters], time: Duration) -> Result<Single>;

    /// The same with so many requests on their way.
    fn many(&mut self, text: &str, parameters: &[Parameters], in_flight: u32, time: Duration)
    -> Result<Flow>;

    /// Adds vertices; how many seconds it took until all was committed.
    fn write(&mut self, writes: &Writes) -> Result<f64>;
}

//! Requests and responses of the wire protocol.
//!
//! # Shape
//! A request has an operation (`eval`, `bytecode`, `authentication`, `close`) of a processor (empty,
//! `traversal`, `session`), and named arguments. The server sends any number of responses with status 206 and
//! one final response with another status.

use crate::ReadError;
use crate::traverser::{Item, Traverser};
use std::fmt;
use uuid::Uuid;
use vervet_gremlin::{Map, Value};

/// A request of a client.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Request {
    /// Request id, repeated in the responses.
    pub id: Uuid,
    /// `eval`, `bytecode`, `authentication`, `close`.
    pub op: String,
    /// Empty, `traversal`, `session`.
    pub processor: String,
    /// Arguments by name: `gremlin`, `bindings`, `aliases`, …
    pub args: Map,
}

/// An unreadable request.
#[derive(Clone, PartialEq, Debug)]
pub struct BadRequest {
    /// The request id for the error response, if it could be read.
    pub id: Option<Uuid>,
    /// The read error.
    pub error: ReadError,
}

impl fmt::Display for BadRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for BadRequest {}

impl Request {
    /// The argument `name`.
    #[must_use]
    pub fn argument(&self, name: &str) -> Option<&Value> {
        self.args.get(&Value::text(name))
    }
}

/// The results of a response.
#[derive(Clone, PartialEq, Debug)]
pub enum Data {
    /// Any value; results of `eval` are a list, no content is null.
    Value(Value),
    /// Results of `bytecode`. An empty list is read as [`Data::Value`].
    Traversers(Vec<Traverser>),
}

impl Default for Data {
    fn default() -> Self {
        Self::Value(Value::Null)
    }
}

/// The status of a response.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Status {
    /// 200: final; 206: more responses follow; see the protocol.
    pub code: i32,
    /// A readable message.
    pub message: String,
    /// `exceptions`, `stackTrace`, `warnings`, `host`, …
    pub attributes: Map,
}

/// A response of the server.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Response {
    /// The request id; none if it could not be read.
    pub id: Option<Uuid>,
    /// The status.
    pub status: Status,
    /// Results.
    pub data: Data,
    /// Metadata of the results.
    pub meta: Map,
}

/// The results from the items of a list: all values or all traversers.
pub(crate) fn data(items: Vec<Item>, at: usize) -> Result<Data, ReadError> {
    let mixed = || ReadError::malformed(at, "expected values or traversers, found both");
    let mut values = Vec::new();
    let mut traversers = Vec::new();
    for item in items {
        match item {
            Item::Value(value) => values.push(value),
            Item::Traverser(traverser) => traversers.push(traverser),
        }
    }
    match (values.is_empty(), traversers.is_empty()) {
        (_, true) => Ok(Data::Value(Value::list(values))),
        (true, false) => Ok(Data::Traversers(traversers)),
        (false, false) => Err(mixed()),
    }
}

//! What goes over the wire: a request of a client, the answers to it.
//!
//! # Shape
//! A request names an operation (`eval`, `bytecode`, `authentication`, `close`) of a processor (empty,
//! `traversal`, `session`) with arguments by name. It is answered by any number of responses with status 206
//! and one with another.

use crate::{Format, Limits, ReadError, WriteError, graphbinary, graphson};
use std::fmt;
use uuid::Uuid;
use vervet_gremlin::{Map, Value};

/// What a client asks.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Request {
    /// Its answers say it again.
    pub id: Uuid,
    /// `eval`, `bytecode`, `authentication`, `close`.
    pub op: String,
    /// Empty, `traversal`, `session`.
    pub processor: String,
    /// By name: `gremlin`, `bindings`, `aliases`, …
    pub args: Map,
}

/// Bytes that are no request.
#[derive(Clone, PartialEq, Debug)]
pub struct BadRequest {
    /// Whose answer says so, if it could be read.
    pub id: Option<Uuid>,
    /// What is wrong.
    pub error: ReadError,
}

impl fmt::Display for BadRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for BadRequest {}

impl Request {
    /// Reads a request without a frame: a text frame, the body of an HTTP request, what
    /// [`Format::split_frame`] leaves.
    ///
    /// # Errors
    /// It is no request in this format, or over a limit.
    pub fn read(bytes: &[u8], format: Format, limits: Limits) -> Result<Self, BadRequest> {
        match format.dialect() {
            None => graphbinary::read_request(bytes, limits),
            Some(_) => graphson::read_request(bytes, limits),
        }
    }

    /// Reads a binary WebSocket frame: a MIME type and a request.
    ///
    /// # Errors
    /// As [`read`](Self::read); or the MIME type is unknown.
    pub fn read_frame(frame: &[u8], limits: Limits) -> Result<(Format, Self), BadRequest> {
        let (format, bytes) = Format::split_frame(frame).map_err(|error| BadRequest { id: None, error })?;
        let before = (frame.len() - bytes.len()) as u64;
        let request = Self::read(bytes, format, limits)
            .map_err(|bad| BadRequest { error: bad.error.moved(before), ..bad })?;
        Ok((format, request))
    }

    /// Appends it to `out`, without a frame.
    ///
    /// # Errors
    /// An argument cannot be written; `out` is then as it was.
    pub fn write(&self, format: Format, out: &mut Vec<u8>) -> Result<(), WriteError> {
        match format.dialect() {
            None => graphbinary::write_request(self, out),
            Some(dialect) => graphson::write_request(self, dialect, out),
        }
    }

    /// The argument `name`.
    #[must_use]
    pub fn argument(&self, name: &str) -> Option<&Value> {
        self.args.get(&Value::text(name))
    }
}

/// A result of bytecode: a value, and how often it is one.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Traverser {
    /// How often the value is a result.
    pub bulk: i64,
    /// The value.
    pub value: Value,
}

/// The results in a response.
#[derive(Clone, PartialEq, Debug)]
pub enum Data {
    /// Any value; results of `eval` are a list, no content is null.
    Value(Value),
    /// Results of `bytecode`. None of them is an empty list, which reads as [`Data::Value`].
    Traversers(Vec<Traverser>),
}

impl Default for Data {
    fn default() -> Self {
        Self::Value(Value::Null)
    }
}

/// How it went.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Status {
    /// 200: done; 206: more follows; see the protocol.
    pub code: i32,
    /// For people.
    pub message: String,
    /// `exceptions`, `stackTrace`, `warnings`, `host`, …
    pub attributes: Map,
}

/// An answer.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Response {
    /// The id of the request; none if that could not be read.
    pub id: Option<Uuid>,
    /// How it went.
    pub status: Status,
    /// Results.
    pub data: Data,
    /// About the results.
    pub meta: Map,
}

impl Response {
    /// Reads a response, which never has a frame.
    ///
    /// # Errors
    /// It is no response in this format, or over a limit.
    pub fn read(bytes: &[u8], format: Format, limits: Limits) -> Result<Self, ReadError> {
        match format.dialect() {
            None => graphbinary::read_response(bytes, limits),
            Some(_) => graphson::read_response(bytes, limits),
        }
    }

    /// Appends it to `out`.
    ///
    /// # Errors
    /// A result cannot be written; `out` is then as it was.
    pub fn write(&self, format: Format, out: &mut Vec<u8>) -> Result<(), WriteError> {
        match format.dialect() {
            None => graphbinary::write_response(self, out),
            Some(dialect) => graphson::write_response(self, dialect, out),
        }
    }
}

/// The results among what a list holds: values or traversers, never both.
pub(crate) fn data(items: Vec<graphson::Item>, at: usize) -> Result<Data, ReadError> {
    let mixed = || ReadError::malformed(at, "expected values or traversers, found both");
    let mut values = Vec::new();
    let mut traversers = Vec::new();
    for item in items {
        match item {
            graphson::Item::Value(value) => values.push(value),
            graphson::Item::Traverser(traverser) => traversers.push(traverser),
        }
    }
    match (values.is_empty(), traversers.is_empty()) {
        (_, true) => Ok(Data::Value(Value::list(values))),
        (true, false) => Ok(Data::Traversers(traversers)),
        (false, false) => Err(mixed()),
    }
}

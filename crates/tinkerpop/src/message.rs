//! Requests and responses of the wire protocol.
//!
//! # Shape
//! A request has an operation (`eval`, `bytecode`, `authentication`, `close`) of a processor (empty,
//! `traversal`, `session`), and named arguments. The server sends any number of responses with status 206 and
//! one final response with another status.

use crate::{Format, Limits, ReadError, WriteError, graphbinary, graphson};
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
    /// Reads a request without a frame: a text frame, the body of an HTTP request, or the rest from
    /// [`Format::split_frame`].
    ///
    /// # Errors
    /// Not a request in this format, or an exceeded limit.
    pub fn read(bytes: &[u8], format: Format, limits: Limits) -> Result<Self, BadRequest> {
        match format.dialect() {
            None => graphbinary::read_request(bytes, limits),
            Some(_) => graphson::read_request(bytes, limits),
        }
    }

    /// Reads a binary WebSocket frame: a MIME type and a request.
    ///
    /// # Errors
    /// As for [`read`](Self::read); or an unknown MIME type.
    pub fn read_frame(frame: &[u8], limits: Limits) -> Result<(Format, Self), BadRequest> {
        let (format, bytes) = Format::split_frame(frame).map_err(|error| BadRequest { id: None, error })?;
        let before = (frame.len() - bytes.len()) as u64;
        let request = Self::read(bytes, format, limits)
            .map_err(|bad| BadRequest { error: bad.error.moved(before), ..bad })?;
        Ok((format, request))
    }

    /// Appends the request to `out`, without a frame.
    ///
    /// # Errors
    /// An argument cannot be represented; `out` is unchanged.
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

/// A result of bytecode: a value with its multiplicity.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Traverser {
    /// The multiplicity of the value.
    pub bulk: i64,
    /// The value.
    pub value: Value,
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

impl Response {
    /// Reads a response, which never has a frame.
    ///
    /// # Errors
    /// Not a response in this format, or an exceeded limit.
    pub fn read(bytes: &[u8], format: Format, limits: Limits) -> Result<Self, ReadError> {
        match format.dialect() {
            None => graphbinary::read_response(bytes, limits),
            Some(_) => graphson::read_response(bytes, limits),
        }
    }

    /// Appends the response to `out`.
    ///
    /// # Errors
    /// A result cannot be represented; `out` is unchanged.
    pub fn write(&self, format: Format, out: &mut Vec<u8>) -> Result<(), WriteError> {
        match format.dialect() {
            None => graphbinary::write_response(self, out),
            Some(dialect) => graphson::write_response(self, dialect, out),
        }
    }
}

/// The results from the items of a list: all values or all traversers.
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

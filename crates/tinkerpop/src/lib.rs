//! TinkerPop's formats, as bytes in and values out: GraphSON 2 and 3, GraphBinary 1, the messages of the wire
//! protocol, and graph files.
//!
//! # Shape
//! * [`graphson`], [`graphbinary`]: one value as bytes. GraphSON is read in any version and with or without
//!   types by one reader; a [`Dialect`](graphson::Dialect) says how it is written.
//! * [`Request`], [`Response`]: what goes over the wire, in any [`Format`]; [`Format`] knows the MIME types,
//!   and a binary WebSocket frame is taken apart by [`Format::split_frame`].
//! * [`ResultsWriter`]: a response whose results come one by one.
//! * [`graph_file`]: the adjacency form of GraphSON, a vertex at a time.
//! * [`stored`]: values and ids as the graph of statements has them.
//!
//! ```
//! use vervet_tinkerpop::{Data, Format, Limits, Request, Response};
//!
//! let json = r#"{"requestId":"41d2e28a-20a4-4ab0-b379-d810dede3786","op":"eval","processor":"","args":{"gremlin":"g.V()"}}"#;
//! let request = Request::read(json.as_bytes(), Format::Json, Limits::default())?;
//! assert_eq!(request.argument("gremlin").and_then(|text| text.as_text()), Some("g.V()"));
//!
//! let mut response = Response { id: Some(request.id), ..Response::default() };
//! response.status.code = 204;
//! let mut bytes = Vec::new();
//! response.write(Format::GraphBinary1, &mut bytes)?;
//! assert_eq!(Response::read(&bytes, Format::GraphBinary1, Limits::default())?.data, Data::default());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//! # Invariants
//! * No input makes anything here panic, and memory is bounded by [`Limits`]: a length that the input
//!   declares is a claim, never an allocation.
//! * A failed write leaves the output as it was.
//! * `read(write(v)) == v` for all that a format can hold; `write(read(b)) == b` for canonical `b`
//!   (tests/samples.rs names the exceptions).
//! # Cost
//! One pass in both directions, with no tree between bytes and values. In GraphSON an `@value` that stands
//! before its `@type` is passed over once more.
//! # Not here
//! Sockets, sessions, authentication, what a request means (`vervet-server`); looking elements up: what is
//! written must have its details.
//! # Source
//! Apache TinkerPop 3.8, developer documentation, "IO Reference": GraphSON, GraphBinary; "Provider
//! Documentation".
#![forbid(unsafe_code)]

mod error;
pub mod graph_file;
pub mod graphbinary;
pub mod graphson;
mod iso;
mod json;
mod limits;
mod message;
mod mime;
mod number;
mod parts;
mod results;
pub mod stored;

pub use error::{ReadError, ReadErrorKind, WriteError, WriteErrorKind};
pub use limits::{
    BULK_WRITTEN_BYTES_MAX, BULK_WRITTEN_MAX, DEPTH_MAX, DIGITS_MAX, INTEGER_BYTES_MAX, Limits,
    MESSAGE_BYTES_MAX, SCALE_MAX, VALUES_MAX,
};
pub use message::{BadRequest, Data, Request, Response, Status, Traverser};
pub use mime::Format;
pub use results::ResultsWriter;

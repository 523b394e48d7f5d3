//! TinkerPop's formats: GraphSON 2 and 3, GraphBinary 1, the messages of the wire protocol, and graph files.
//!
//! # Shape
//! * [`graphson`], [`graphbinary`]: serialization of one value. One reader accepts GraphSON in any version
//!   with or without types; a [`Dialect`](graphson::Dialect) selects the form of the output.
//! * [`Request`], [`Response`]: messages of the wire protocol, in any [`Format`]; [`Format`] maps MIME types,
//!   and [`Format::split_frame`] parses a binary WebSocket frame.
//! * [`ResultsWriter`]: a writer of responses with streamed results.
//! * [`graph_file`]: GraphSON's adjacency-list form, one vertex at a time.
//! * [`rdf_values`]: mapping of values and ids to literals and vertex names.
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
//! * No input causes a panic, and memory is bounded by [`Limits`]: a declared length is checked before an
//!   allocation.
//! * A failed write leaves the output unchanged.
//! * `read(write(v)) == v` for all values that a format can represent; `write(read(b)) == b` for canonical
//!   `b` (tests/samples.rs lists the exceptions).
//! # Cost
//! One pass in both directions, without an intermediate tree. In GraphSON an `@value` before its `@type` is
//! skipped once before it is read.
//! # Not here
//! Sockets, sessions, authentication, execution of requests (`vervet-server`); look-up of element details,
//! which the writer requires.
//! # Source
//! Apache TinkerPop 3.8, developer documentation, "IO Reference": GraphSON, GraphBinary; "Provider
//! Documentation".
#![forbid(unsafe_code)]

mod error;
pub mod graph_file;
pub mod graphbinary;
pub mod graphson;
mod iso8601;
mod json;
mod limits;
mod message;
mod message_codec;
mod mime;
mod number;
pub mod rdf_values;
mod results;
mod traverser;
mod wire_names;

pub use error::{ReadError, ReadErrorKind, WriteError, WriteErrorKind};
pub use limits::{
    BULK_WRITTEN_BYTES_MAX, BULK_WRITTEN_MAX, DEPTH_MAX, DIGITS_MAX, INTEGER_BYTES_MAX, Limits,
    MESSAGE_BYTES_MAX, SCALE_MAX, VALUES_MAX,
};
pub use message::{BadRequest, Data, Request, Response, Status};
pub use mime::Format;
pub use results::ResultsWriter;
pub use traverser::Traverser;

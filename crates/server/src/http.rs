//! HTTP: requests, responses, content negotiation.
//!
//! # Shape
//! ```text
//! request  body, media type, parameters      content_negotiation, encoding   format and compression of a response
//! reply    responses and failures            stream -> chunks                results from a worker thread
//! ```

pub(crate) mod chunks;
pub(crate) mod content_negotiation;
pub(crate) mod encoding;
pub(crate) mod multipart;
pub(crate) mod reply;
pub(crate) mod request;
pub(crate) mod stream;
pub(crate) mod warnings;

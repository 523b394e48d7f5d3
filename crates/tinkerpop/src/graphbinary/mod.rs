//! GraphBinary 1: type code, flag (0: a value, 1: null), value; big-endian; length-prefixed.
//!
//! # Shape
//! `code.rs` lists the types, `read.rs` and `write.rs` are symmetric, `message.rs` has requests and
//! responses.
//! # Output
//! A vertex or an edge without properties has null properties. A vertex property without properties has an
//! empty list inside a vertex, and null on its own. TinkerPop does the same for references and elements.

mod code;
mod message;
mod read;
mod write;

use crate::traverser::{Item, Traverser};
use crate::{Limits, ReadError, WriteError};
use vervet_gremlin::Value;

pub(crate) use message::{read_request, read_response, write_request, write_response};

/// Reads a single value from `bytes`: type code, flag, value.
///
/// # Errors
/// Malformed input, an exceeded limit, or a type without a value.
pub fn read(bytes: &[u8], limits: Limits) -> Result<Value, ReadError> {
    let mut reader = read::Reader::new(bytes, limits)?;
    let value = reader.value()?;
    reader.end()?;
    Ok(value)
}

/// Reads a single traverser from `bytes`.
///
/// # Errors
/// As for [`read`]; or another type.
pub fn read_traverser(bytes: &[u8], limits: Limits) -> Result<Traverser, ReadError> {
    let mut reader = read::Reader::new(bytes, limits)?;
    let item = reader.item()?;
    reader.end()?;
    match item {
        Item::Traverser(traverser) => Ok(traverser),
        Item::Value(value) => Err(ReadError::malformed(
            0,
            format!("expected a traverser, found a value of type {}", value.type_name()),
        )),
    }
}

/// Appends `value` to `out` in one pass.
///
/// # Errors
/// An element without details, a number or length beyond a limit, or too deep nesting; `out` is unchanged on
/// an error.
pub fn write(value: &Value, out: &mut Vec<u8>) -> Result<(), WriteError> {
    write::whole(out, |writer| writer.value(value))
}

/// Appends `traverser` to `out`.
///
/// # Errors
/// As for [`write()`].
pub fn write_traverser(traverser: &Traverser, out: &mut Vec<u8>) -> Result<(), WriteError> {
    write::whole(out, |writer| writer.traverser(traverser))
}

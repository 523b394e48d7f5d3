//! GraphBinary 1: type code, flag (0: a value, 1: null), value; big-endian; lengths first.
//!
//! # Shape
//! `code.rs` lists the types, `read.rs` and `write.rs` are symmetric, `message.rs` has requests and
//! responses.
//! # What is written
//! A vertex or an edge without properties has null for them; a property of a vertex says that it has none by
//! an empty list inside a vertex, by null on its own. This is what TinkerPop does with references and with
//! elements.

mod code;
mod message;
mod read;
mod write;

use crate::graphson::Item;
use crate::{Limits, ReadError, Traverser, WriteError};
use vervet_gremlin::Value;

pub(crate) use message::{read_request, read_response, write_request, write_response};

/// Reads the one value that `bytes` are: type code, flag, value.
///
/// # Errors
/// They are no GraphBinary, over a limit, or of a type that there is no value for.
pub fn read(bytes: &[u8], limits: Limits) -> Result<Value, ReadError> {
    let mut reader = read::Reader::new(bytes, limits)?;
    let value = reader.value()?;
    reader.end()?;
    Ok(value)
}

/// Reads the one traverser that `bytes` are.
///
/// # Errors
/// As [`read`]; or it is another value.
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

/// Appends `value` to `out`, in one pass.
///
/// # Errors
/// An element has no details, a number or a length is over a limit, or values are too deep inside one
/// another; `out` is then as it was.
pub fn write(value: &Value, out: &mut Vec<u8>) -> Result<(), WriteError> {
    write::whole(out, |writer| writer.value(value))
}

/// Appends `traverser` to `out`.
///
/// # Errors
/// As [`write()`].
pub fn write_traverser(traverser: &Traverser, out: &mut Vec<u8>) -> Result<(), WriteError> {
    write::whole(out, |writer| writer.traverser(traverser))
}

//! GraphSON: JSON with type annotations, `{"@type": "g:Int32", "@value": 1}`.
//!
//! # Shape
//! `read.rs` and `element.rs` are the reader, `write.rs`, `write_element.rs` and `key.rs` the writer,
//! `message.rs` has requests and responses.
//! # Input
//! One reader accepts all of GraphSON 2 and 3, with and without types, since no text is ambiguous: an array
//! without a type is a list, an object without a type is a map with string keys, a number without a type is
//! the first of `Int`, `Long`, `BigInteger` that it fits, or a `Double` if it has a point or an exponent.
//! `g:Binding` yields its value. A lone `g:Metrics` yields metrics of one step.

mod dialect;
mod element;
mod key;
mod message;
mod read;
mod write;
mod write_element;

use crate::json::Cursor;
use crate::traverser::{Item, Traverser};
use crate::{Limits, ReadError, WriteError};
use vervet_gremlin::Value;

pub use dialect::Dialect;

pub(crate) use element::{EDGE_LABEL, VERTEX_LABEL, vertex_of};
pub(crate) use message::{read_request, read_response, write_request, write_response};
pub(crate) use read::add;
pub(crate) use write::{Writer, whole};

/// Reads a single value from `text`, in any version.
///
/// # Errors
/// Malformed input, an exceeded limit, or a type without a value.
pub fn read(text: &[u8], limits: Limits) -> Result<Value, ReadError> {
    let mut cursor = Cursor::new(text, limits)?;
    let value = cursor.value()?;
    cursor.end()?;
    Ok(value)
}

/// Reads a single traverser from `text`.
///
/// # Errors
/// As for [`read`]; or another type.
pub fn read_traverser(text: &[u8], limits: Limits) -> Result<Traverser, ReadError> {
    let mut cursor = Cursor::new(text, limits)?;
    let item = cursor.item()?;
    cursor.end()?;
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
/// An element without details, a number beyond a limit, or too deep nesting; `out` is unchanged on an error.
pub fn write(value: &Value, dialect: Dialect, out: &mut Vec<u8>) -> Result<(), WriteError> {
    write::whole(dialect, out, |writer| writer.value(value))
}

/// Appends `traverser` to `out`.
///
/// # Errors
/// As for [`write()`].
pub fn write_traverser(traverser: &Traverser, dialect: Dialect, out: &mut Vec<u8>) -> Result<(), WriteError> {
    write::whole(dialect, out, |writer| writer.traverser(traverser))
}

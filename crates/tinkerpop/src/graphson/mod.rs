//! GraphSON: JSON whose objects may say which type they are, `{"@type": "g:Int32", "@value": 1}`.
//!
//! # Shape
//! `read.rs` and `element.rs` read, `write.rs`, `write_element.rs` and `key.rs` write, `message.rs` has
//! requests and responses.
//! # What is read
//! All of GraphSON 2 and 3, with and without types, by one reader, since no text means two things: an array
//! without a type is a list, an object without a type is a map with texts as keys, a number without a type is
//! the first of `Int`, `Long`, `BigInteger` that it fits, or a `Double` if it has a point or an exponent.
//! `g:Binding` is its value. A lone `g:Metrics` is metrics of one step.

mod element;
mod key;
mod message;
mod read;
mod write;
mod write_element;

use crate::json::Cursor;
use crate::{Limits, ReadError, Traverser, WriteError};
use vervet_gremlin::Value;

pub(crate) use element::{EDGE_LABEL, VERTEX_LABEL, vertex_of};
pub(crate) use message::{read_request, read_response, write_request, write_response};
pub(crate) use read::{Item, add};
pub(crate) use write::{Writer, whole};

/// How GraphSON is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dialect {
    /// 2 or 3.
    version: u8,
    typed: bool,
}

impl Dialect {
    /// GraphSON 3: everything has its type.
    pub const V3: Self = Self { version: 3, typed: true };
    /// GraphSON 3 without types.
    pub const V3_UNTYPED: Self = Self { version: 3, typed: false };
    /// GraphSON 2: lists, sets and maps are plain JSON, bags are written out.
    pub const V2: Self = Self { version: 2, typed: true };
    /// GraphSON 2 without types.
    pub const V2_UNTYPED: Self = Self { version: 2, typed: false };
}

/// Reads the one value that `text` is, in whatever version.
///
/// # Errors
/// It is no GraphSON, it is over a limit, or it has a type that there is no value for.
pub fn read(text: &[u8], limits: Limits) -> Result<Value, ReadError> {
    let mut cursor = Cursor::new(text, limits)?;
    let value = cursor.value()?;
    cursor.end()?;
    Ok(value)
}

/// Reads the one traverser that `text` is.
///
/// # Errors
/// As [`read`]; or it is another value.
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

/// Appends `value` to `out`, in one pass.
///
/// # Errors
/// An element has no details, a number is over a limit, or values are too deep inside one another; `out` is
/// then as it was.
pub fn write(value: &Value, dialect: Dialect, out: &mut Vec<u8>) -> Result<(), WriteError> {
    write::whole(dialect, out, |writer| writer.value(value))
}

/// Appends `traverser` to `out`.
///
/// # Errors
/// As [`write()`].
pub fn write_traverser(traverser: &Traverser, dialect: Dialect, out: &mut Vec<u8>) -> Result<(), WriteError> {
    write::whole(dialect, out, |writer| writer.traverser(traverser))
}

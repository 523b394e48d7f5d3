//! Writer of responses with streamed results.
//!
//! # Shape
//! Each result is serialized on arrival, so a pending message holds bytes and not values. The status and the
//! number of results are known at the end of the message: in GraphSON they are written last (object members
//! are unordered), in GraphBinary they are patched in place.

use crate::traverser::Traverser;
use crate::{Format, Response, WriteError, graphbinary, graphson};
use std::sync::Arc;
use uuid::Uuid;
use vervet_gremlin::{Map, Value};

/// Offset of the status code in GraphBinary: after the version, a flag and the id.
const CODE_AT: usize = 18;
/// GraphBinary null, the end of a response without results.
const NULL: [u8; 2] = [0xfe, 0x01];
/// GraphBinary list header, before its length.
const LIST: [u8; 2] = [0x09, 0x00];

/// See the header of this file.
#[derive(Debug)]
pub struct ResultsWriter {
    format: Format,
    id: Uuid,
    attributes: Map,
    /// The constant prefix and suffix of each message; the status code is between the two parts of `end`.
    begin: Vec<u8>,
    end: (Vec<u8>, Vec<u8>),
    out: Vec<u8>,
    count: usize,
}

impl ResultsWriter {
    /// A writer of responses to the request `id`, with constant status attributes.
    ///
    /// # Errors
    /// The attributes cannot be represented.
    pub fn new(format: Format, id: Uuid, attributes: Map) -> Result<Self, WriteError> {
        let (mut begin, mut end) = (Vec::new(), (Vec::new(), Vec::new()));
        let attributes = match format.dialect() {
            None => {
                let mut empty = Response { id: Some(id), ..Response::default() };
                empty.status.attributes = attributes;
                empty.write(format, &mut begin)?;
                debug_assert!(begin.ends_with(&NULL), "a response without results ends in null");
                begin.truncate(begin.len() - NULL.len());
                begin.extend_from_slice(&LIST);
                begin.extend_from_slice(&[0; 4]);
                empty.status.attributes
            }
            Some(dialect) => {
                // An empty list and an empty map show their form in this dialect.
                let mut list = Vec::new();
                graphson::write(&Value::list(Vec::new()), dialect, &mut list)?;
                let inside = list.iter().rposition(|byte| *byte == b'[').map_or(list.len(), |at| at + 1);
                begin
                    .extend_from_slice(format!("{{\"requestId\":\"{id}\",\"result\":{{\"data\":").as_bytes());
                begin.extend_from_slice(&list[..inside]);
                end.0.extend_from_slice(&list[inside..]);
                end.0.extend_from_slice(b",\"meta\":");
                graphson::write(&Value::map(Map::default()), dialect, &mut end.0)?;
                end.0.extend_from_slice(b"},\"status\":{\"message\":\"\",\"code\":");
                end.1.extend_from_slice(b",\"attributes\":");
                let attributes = Value::map(attributes);
                graphson::write(&attributes, dialect, &mut end.1)?;
                end.1.extend_from_slice(b"}}");
                match attributes {
                    Value::Map(attributes) => Arc::unwrap_or_clone(attributes),
                    _ => Map::default(),
                }
            }
        };
        let out = begin.clone();
        Ok(Self { format, id, attributes, begin, end, out, count: 0 })
    }

    /// Adds a status attribute to this message and later ones.
    ///
    /// # Errors
    /// The attribute cannot be represented; the message is unchanged.
    pub fn set_attribute(&mut self, name: &str, value: Value) -> Result<(), WriteError> {
        let mut attributes = self.attributes.clone();
        attributes.insert(Value::text(name), value);
        let mut changed = Self::new(self.format, self.id, attributes)?;
        changed.out.extend_from_slice(&self.out[self.begin.len()..]);
        changed.count = self.count;
        *self = changed;
        Ok(())
    }

    /// Adds a value.
    ///
    /// # Errors
    /// The value cannot be represented; the message is unchanged.
    pub fn add(&mut self, value: &Value) -> Result<(), WriteError> {
        self.item(|format, out| match format.dialect() {
            None => graphbinary::write(value, out),
            Some(dialect) => graphson::write(value, dialect, out),
        })
    }

    /// Adds a traverser: a value with its multiplicity.
    ///
    /// # Errors
    /// As for [`add`](Self::add).
    pub fn add_traverser(&mut self, traverser: &Traverser) -> Result<(), WriteError> {
        self.item(|format, out| match format.dialect() {
            None => graphbinary::write_traverser(traverser, out),
            Some(dialect) => graphson::write_traverser(traverser, dialect, out),
        })
    }

    fn item(
        &mut self,
        write: impl FnOnce(Format, &mut Vec<u8>) -> Result<(), WriteError>,
    ) -> Result<(), WriteError> {
        let before = self.out.len();
        if self.count > 0 && self.format.dialect().is_some() {
            self.out.push(b',');
        }
        write(self.format, &mut self.out).inspect_err(|_| self.out.truncate(before))?;
        self.count += 1;
        Ok(())
    }

    /// Number of results in the pending message.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Size of the pending message in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.out.len()
    }

    /// The bytes of the results that were added since the pending message had `size_bytes` bytes.
    #[must_use]
    pub fn added_since(&self, size_bytes: usize) -> &[u8] {
        let added = self.out.get(size_bytes..).unwrap_or_default();
        match added {
            [b',', added @ ..] if self.format.dialect().is_some() => added,
            _ => added,
        }
    }

    /// Completes the message with this status code, and starts the next one.
    pub fn take(&mut self, code: i32) -> Vec<u8> {
        let mut message = std::mem::replace(&mut self.out, self.begin.clone());
        if self.format.dialect().is_some() {
            message.extend_from_slice(&self.end.0);
            message.extend_from_slice(code.to_string().as_bytes());
            message.extend_from_slice(&self.end.1);
        } else {
            let count = i32::try_from(self.count).unwrap_or(i32::MAX);
            let count_at = self.begin.len() - 4;
            message[CODE_AT..CODE_AT + 4].copy_from_slice(&code.to_be_bytes());
            message[count_at..count_at + 4].copy_from_slice(&count.to_be_bytes());
        }
        self.count = 0;
        message
    }
}

//! A response whose results come one by one, as a traversal finds them.
//!
//! # Shape
//! Each result is written when it comes, so a message in the making is held as bytes and not as values. Its
//! status and the number of its results are known at its end: in GraphSON they are written last (objects have
//! no order), in GraphBinary they are put into their places.

use crate::{Format, Response, Traverser, WriteError, graphbinary, graphson};
use std::sync::Arc;
use uuid::Uuid;
use vervet_gremlin::{Map, Value};

/// Where the status code stands in GraphBinary: behind the version, a flag and the id.
const CODE_AT: usize = 18;
/// What null is in GraphBinary, at the end of a response without results.
const NULL: [u8; 2] = [0xfe, 0x01];
/// What a list is in GraphBinary; its length follows.
const LIST: [u8; 2] = [0x09, 0x00];

/// See the header of this file.
#[derive(Debug)]
pub struct ResultsWriter {
    format: Format,
    id: Uuid,
    attributes: Map,
    /// What every message begins and ends with; the status code stands between the two parts of `end`.
    begin: Vec<u8>,
    end: (Vec<u8>, Vec<u8>),
    out: Vec<u8>,
    count: usize,
}

impl ResultsWriter {
    /// A writer of messages that answer the request `id`, all with the same attributes of their status.
    ///
    /// # Errors
    /// The attributes cannot be written.
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
                // An empty list and an empty map show how this dialect has them.
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

    /// Adds an attribute to the status of this message and of those after it.
    ///
    /// # Errors
    /// It cannot be written; the message is then as it was.
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
    /// It cannot be written; the message is then as it was.
    pub fn add(&mut self, value: &Value) -> Result<(), WriteError> {
        self.item(|format, out| match format.dialect() {
            None => graphbinary::write(value, out),
            Some(dialect) => graphson::write(value, dialect, out),
        })
    }

    /// Adds a traverser: a value, and how often it is a result.
    ///
    /// # Errors
    /// As [`add`](Self::add).
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

    /// How many results the message has.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// How long the message is so far.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.out.len()
    }

    /// The message with this status code; the next one begins.
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

//! Requests and responses in GraphBinary 1. Both start with the version byte 0x81.

use super::code;
use super::read::{Reader, Result};
use super::write::{self, Writer, whole};
use crate::message::data;
use crate::{BadRequest, Data, Limits, ReadError, Request, Response, Status, WriteError};
use uuid::Uuid;

/// Version 1, with the highest bit set.
const VERSION: u8 = 0x81;

pub(crate) fn read_request(bytes: &[u8], limits: Limits) -> std::result::Result<Request, BadRequest> {
    let mut id = None;
    let request = request(bytes, limits, &mut id);
    request.map_err(|error| BadRequest { id, error })
}

fn request(bytes: &[u8], limits: Limits, id: &mut Option<Uuid>) -> Result<Request> {
    let mut reader = Reader::new(bytes, limits)?;
    reader.version()?;
    let uuid = *id.insert(reader.uuid()?);
    let (op, processor) = (reader.string()?.to_owned(), reader.string()?.to_owned());
    let args = reader.map()?;
    reader.end()?;
    Ok(Request { id: uuid, op, processor, args })
}

pub(crate) fn read_response(bytes: &[u8], limits: Limits) -> Result<Response> {
    let mut reader = Reader::new(bytes, limits)?;
    reader.version()?;
    let id = if reader.flag()? { Some(reader.uuid()?) } else { None };
    let code = reader.int()?;
    let message = if reader.flag()? { reader.string()?.to_owned() } else { String::new() };
    let attributes = reader.map()?;
    let meta = reader.map()?;
    let data = reader.data()?;
    reader.end()?;
    Ok(Response { id, status: Status { code, message, attributes }, data, meta })
}

impl Reader<'_> {
    fn version(&mut self) -> Result<()> {
        match self.byte("a version")? {
            VERSION => Ok(()),
            other => {
                let message = format!("expected version {VERSION:#04x}, found {other:#04x}");
                Err(ReadError::unsupported(0, message))
            }
        }
    }

    /// Reads a list, whose items may be traversers, or another value.
    fn data(&mut self) -> Result<Data> {
        let at = self.at();
        if !self.next_is(&[code::LIST, 0]) {
            return self.value().map(Data::Value);
        }
        self.take(2, "a list")?;
        data(self.items()?, at)
    }
}

pub(crate) fn write_request(request: &Request, out: &mut Vec<u8>) -> std::result::Result<(), WriteError> {
    whole(out, |writer| {
        writer.byte(VERSION);
        writer.bytes(request.id.as_bytes());
        writer.string(&request.op)?;
        writer.string(&request.processor)?;
        writer.map(&request.args)
    })
}

pub(crate) fn write_response(response: &Response, out: &mut Vec<u8>) -> std::result::Result<(), WriteError> {
    whole(out, |writer| {
        writer.byte(VERSION);
        match response.id {
            Some(id) => {
                writer.byte(0);
                writer.bytes(id.as_bytes());
            }
            None => writer.byte(1),
        }
        writer.int(response.status.code);
        writer.byte(0);
        writer.string(&response.status.message)?;
        writer.map(&response.status.attributes)?;
        writer.map(&response.meta)?;
        write_data(writer, &response.data)
    })
}

fn write_data(writer: &mut Writer<'_>, data: &Data) -> write::Result {
    match data {
        Data::Value(value) => writer.value(value),
        Data::Traversers(traversers) => writer.traversers(traversers),
    }
}

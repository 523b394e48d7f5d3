//! Requests and responses in GraphSON.
//!
//! A request id is a string or a `g:UUID`, the arguments are an object or a `g:Map`: drivers differ. Members
//! may be in any order; unknown ones are skipped.

use super::dialect::Dialect;
use super::read::{Result, required};
use super::write::{self, Writer, whole};
use crate::json::Cursor;
use crate::message::data;
use crate::traverser::Item;
use crate::{BadRequest, Data, Limits, ReadError, Request, Response, Status, WriteError, number};
use uuid::Uuid;
use vervet_gremlin::Value;

pub(crate) fn read_request(bytes: &[u8], limits: Limits) -> std::result::Result<Request, BadRequest> {
    let mut id = None;
    let request = request(bytes, limits, &mut id);
    request.map_err(|error| BadRequest { id, error })
}

fn request(bytes: &[u8], limits: Limits, id: &mut Option<Uuid>) -> Result<Request> {
    let mut cursor = Cursor::new(bytes, limits)?;
    let (mut op, mut processor, mut args) = (None, String::new(), None);
    let mut first_error = None;
    cursor.peek();
    let at = cursor.at();
    cursor.object(|cursor, key| {
        match &*key {
            "requestId" => *id = Some(cursor.uuid()?),
            "op" => op = Some(cursor.string()?.into_owned()),
            "processor" => processor = cursor.string()?.into_owned(),
            "args" => {
                // The request id may follow the malformed part.
                cursor.peek();
                let at = cursor.at();
                match cursor.of_type("g:Map", Cursor::map_inside) {
                    Ok(map) => args = Some(map),
                    Err(error) if id.is_some() => return Err(error),
                    Err(error) => {
                        let mut behind = Cursor::new(bytes, limits)?;
                        behind.go(at);
                        behind.skip()?;
                        cursor.clone_from(&behind);
                        first_error = Some(error);
                    }
                }
            }
            _ => cursor.skip()?,
        }
        Ok(())
    })?;
    cursor.end()?;
    if let Some(error) = first_error {
        return Err(error);
    }
    Ok(Request {
        id: required(*id, "requestId", at)?,
        op: required(op, "op", at)?,
        processor,
        args: args.unwrap_or_default(),
    })
}

pub(crate) fn read_response(bytes: &[u8], limits: Limits) -> Result<Response> {
    let mut cursor = Cursor::new(bytes, limits)?;
    let mut response = Response::default();
    let mut status = false;
    cursor.peek();
    let at = cursor.at();
    cursor.object(|cursor, key| {
        match &*key {
            "requestId" if cursor.word("null") => {}
            "requestId" => response.id = Some(cursor.uuid()?),
            "status" => {
                status = true;
                response.status = cursor.status()?;
            }
            "result" => cursor.object(|cursor, key| {
                match &*key {
                    "data" => response.data = cursor.data()?,
                    "meta" => response.meta = cursor.of_type("g:Map", Cursor::map_inside)?,
                    _ => cursor.skip()?,
                }
                Ok(())
            })?,
            _ => cursor.skip()?,
        }
        Ok(())
    })?;
    cursor.end()?;
    required(status.then_some(()), "status", at)?;
    Ok(response)
}

impl Cursor<'_> {
    fn uuid(&mut self) -> Result<Uuid> {
        self.of_type("g:UUID", |cursor| {
            cursor.peek();
            let at = cursor.at();
            let text = cursor.string()?;
            Uuid::try_parse(&text).map_err(|_| {
                ReadError::malformed(at, format!("expected a UUID, found {}", number::shortened(&text)))
            })
        })
    }

    fn status(&mut self) -> Result<Status> {
        let mut status = Status::default();
        let mut code = None;
        self.peek();
        let at = self.at();
        self.object(|cursor, key| {
            match &*key {
                "message" if cursor.word("null") => {}
                "message" => status.message = cursor.string()?.into_owned(),
                "code" => code = Some(cursor.of_type("g:Int32", Cursor::integer)?),
                "attributes" => status.attributes = cursor.of_type("g:Map", Cursor::map_inside)?,
                _ => cursor.skip()?,
            }
            Ok(())
        })?;
        status.code = required(code, "code", at)?;
        Ok(status)
    }

    /// Reads a list, whose items may be traversers, or another value.
    fn data(&mut self) -> Result<Data> {
        self.peek();
        let at = self.at();
        let is_list = match self.peek() {
            Some(b'[') => true,
            Some(b'{') => self.type_of()?.is_some_and(|(kind, _)| kind == "g:List"),
            _ => false,
        };
        self.go(at);
        if !is_list {
            return self.value().map(Data::Value);
        }
        let mut items: Vec<Item> = Vec::new();
        self.of_type("g:List", |cursor| {
            cursor.array(|cursor| {
                items.push(cursor.item()?);
                Ok(())
            })
        })?;
        data(items, at)
    }
}

pub(crate) fn write_request(
    request: &Request,
    dialect: Dialect,
    out: &mut Vec<u8>,
) -> std::result::Result<(), WriteError> {
    whole(dialect, out, |writer| {
        writer.raw("{\"requestId\":");
        writer.text(&request.id.to_string());
        writer.raw(",\"op\":");
        writer.text(&request.op);
        writer.raw(",\"processor\":");
        writer.text(&request.processor);
        writer.raw(",\"args\":");
        writer.map(&request.args)?;
        writer.raw("}");
        Ok(())
    })
}

pub(crate) fn write_response(
    response: &Response,
    dialect: Dialect,
    out: &mut Vec<u8>,
) -> std::result::Result<(), WriteError> {
    whole(dialect, out, |writer| {
        writer.raw("{\"requestId\":");
        match response.id {
            Some(id) => writer.text(&id.to_string()),
            None => writer.raw("null"),
        }
        writer.raw(",\"status\":{\"message\":");
        writer.text(&response.status.message);
        writer.raw(",\"code\":");
        writer.display(response.status.code);
        writer.raw(",\"attributes\":");
        writer.map(&response.status.attributes)?;
        writer.raw("},\"result\":{\"data\":");
        write_data(writer, &response.data)?;
        writer.raw(",\"meta\":");
        writer.map(&response.meta)?;
        writer.raw("}}");
        Ok(())
    })
}

fn write_data(writer: &mut Writer<'_>, data: &Data) -> write::Result {
    match data {
        Data::Value(Value::Null) => {
            writer.raw("null");
            Ok(())
        }
        Data::Value(value) => writer.value(value),
        Data::Traversers(traversers) => writer.list(traversers, Writer::traverser),
    }
}

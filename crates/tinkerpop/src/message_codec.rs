//! Reading and writing of requests and responses in each message format.

use crate::{BadRequest, Format, Limits, ReadError, Request, Response, WriteError, graphbinary, graphson};

impl Request {
    /// Reads a request without a frame: a text frame, the body of an HTTP request, or the rest from
    /// [`Format::split_frame`].
    ///
    /// # Errors
    /// Not a request in this format, or an exceeded limit.
    pub fn read(bytes: &[u8], format: Format, limits: Limits) -> Result<Self, BadRequest> {
        match format.dialect() {
            None => graphbinary::read_request(bytes, limits),
            Some(_) => graphson::read_request(bytes, limits),
        }
    }

    /// Reads a binary WebSocket frame: a MIME type and a request.
    ///
    /// # Errors
    /// As for [`read`](Self::read); or an unknown MIME type.
    pub fn read_frame(frame: &[u8], limits: Limits) -> Result<(Format, Self), BadRequest> {
        let (format, bytes) = Format::split_frame(frame).map_err(|error| BadRequest { id: None, error })?;
        let before = (frame.len() - bytes.len()) as u64;
        let request = Self::read(bytes, format, limits)
            .map_err(|bad| BadRequest { error: bad.error.moved(before), ..bad })?;
        Ok((format, request))
    }

    /// Appends the request to `out`, without a frame.
    ///
    /// # Errors
    /// An argument cannot be represented; `out` is unchanged.
    pub fn write(&self, format: Format, out: &mut Vec<u8>) -> Result<(), WriteError> {
        match format.dialect() {
            None => graphbinary::write_request(self, out),
            Some(dialect) => graphson::write_request(self, dialect, out),
        }
    }
}

impl Response {
    /// Reads a response, which never has a frame.
    ///
    /// # Errors
    /// Not a response in this format, or an exceeded limit.
    pub fn read(bytes: &[u8], format: Format, limits: Limits) -> Result<Self, ReadError> {
        match format.dialect() {
            None => graphbinary::read_response(bytes, limits),
            Some(_) => graphson::read_response(bytes, limits),
        }
    }

    /// Appends the response to `out`.
    ///
    /// # Errors
    /// A result cannot be represented; `out` is unchanged.
    pub fn write(&self, format: Format, out: &mut Vec<u8>) -> Result<(), WriteError> {
        match format.dialect() {
            None => graphbinary::write_response(self, out),
            Some(dialect) => graphson::write_response(self, dialect, out),
        }
    }
}

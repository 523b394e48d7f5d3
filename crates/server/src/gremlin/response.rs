//! Gremlin responses: errors as status codes of the protocol, and results on their way to the socket.

use super::digest::SharedDigest;
use super::error::{AUTHENTICATE, GremlinError, NO_CONTENT, PARTIAL_CONTENT, SUCCESS, TEMPORARY};
use crate::http::stream::{self, SendError};
use crate::network::body_memory::BodyReservation;
use crate::operations::metrics::{RequestKind, RequestTimer};
use crate::state::State;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::{Bytes, Message, Utf8Bytes};
use uuid::Uuid;
use vervet::gremlin::{Map, Value};
use vervet::{CancelToken, Warning};
use vervet_gremlin::semantics::{NoDetails, string};
use vervet_model::{Error, ErrorKind};
use vervet_tinkerpop::{Format, Response, ResultsWriter, Status, Traverser, WriteError};

/// Time between two attempts to get memory for a message.
const MEMORY_INTERVAL: Duration = Duration::from_millis(10);

/// The state of a client that its pending responses share.
#[derive(Debug)]
pub(super) struct ClientState {
    /// The address of the client, in the notation of the protocol.
    host: Arc<str>,
    /// Whether the connection has ended. Responses are then discarded.
    has_disconnected: AtomicBool,
    /// Status of the response that has ended last.
    last_code: AtomicI32,
}

impl ClientState {
    pub(super) fn new(host: Arc<str>) -> Self {
        Self { host, has_disconnected: AtomicBool::new(false), last_code: AtomicI32::new(0) }
    }

    /// Status of the response that has ended last; of a client with one request at a time.
    pub(super) fn last_code(&self) -> i32 {
        self.last_code.load(Ordering::Acquire)
    }

    pub(super) fn set_disconnected(&self) {
        self.has_disconnected.store(true, Ordering::Release);
    }

    fn has_disconnected(&self) -> bool {
        self.has_disconnected.load(Ordering::Acquire)
    }
}

/// The response to one WebSocket request. Dropping an unfinished response sends an internal error, unless the
/// client has disconnected.
#[derive(Debug)]
pub(super) struct PendingResponse {
    state: Arc<State>,
    out: mpsc::Sender<Message>,
    client: Arc<ClientState>,
    /// Ends the wait for a client that does not read.
    cancel: CancelToken,
    format: Format,
    /// Whether the request was a text frame.
    is_text: bool,
    /// Whether its results count as messages of clients do until they are sent.
    is_counted: bool,
    id: Option<Uuid>,
    begin: Instant,
    ended: bool,
}

impl PendingResponse {
    pub(super) fn new(
        state: &Arc<State>,
        out: mpsc::Sender<Message>,
        client: &Arc<ClientState>,
        is_text: bool,
    ) -> Self {
        let (state, client) = (Arc::clone(state), Arc::clone(client));
        // For requests whose format could not be determined.
        let format = if is_text { Format::Json } else { Format::GraphSon3 };
        let cancel = CancelToken::new();
        Self {
            state,
            out,
            client,
            cancel,
            format,
            is_text,
            is_counted: false,
            id: None,
            begin: Instant::now(),
            ended: false,
        }
    }

    /// Its results count against [`crate::Limits::bodies_bytes`] until they are sent: they may wait for long.
    pub(super) fn counted(mut self) -> Self {
        self.is_counted = true;
        self
    }

    /// Sets the format and the id of the request.
    pub(super) fn set_format_and_id(&mut self, format: Format, id: Option<Uuid>) {
        self.format = format;
        self.id = id;
    }

    fn attributes(&self) -> Map {
        [(Value::text("host"), Value::text(&self.client.host))].into_iter().collect()
    }

    /// Bytes as a message of the same frame type as the request.
    fn message(&self, bytes: impl Into<Bytes>) -> Message {
        let bytes = bytes.into();
        match Utf8Bytes::try_from(bytes.clone()) {
            Ok(text) if self.is_text => Message::Text(text),
            _ => Message::Binary(bytes),
        }
    }

    /// A message of results. If they are counted and there is no memory for them: the bytes.
    fn results_message(&self, bytes: Vec<u8>) -> Result<Message, Vec<u8>> {
        if !self.is_counted {
            return Ok(self.message(bytes));
        }
        let mut memory = self.state.body_memory.reserve();
        match memory.grow(bytes.len()) {
            true => Ok(self.message(Bytes::from_owner(CountedBytes { bytes, _memory: memory }))),
            false => Err(bytes),
        }
    }

    fn status(&self, status: Status) -> Message {
        let response = Response { id: self.id, status, ..Response::default() };
        let mut bytes = Vec::new();
        // Attributes are strings, which every format can write.
        let _ = response.write(self.format, &mut bytes);
        self.message(bytes)
    }

    fn end(&mut self, code: i32) {
        self.ended = true;
        self.client.last_code.store(code, Ordering::Release);
        let code = u16::try_from(code).unwrap_or(0);
        drop(RequestTimer::new(&self.state.metrics, RequestKind::Gremlin, code, self.begin));
    }

    /// Sends an empty response.
    pub(super) async fn send_empty(mut self) {
        self.end(NO_CONTENT);
        let status = Status { code: NO_CONTENT, attributes: self.attributes(), ..Status::default() };
        // An error means that the client has disconnected, which needs no handling, here and below.
        let _ = self.out.send(self.status(status)).await;
    }

    /// Sends the failure of the request.
    pub(super) async fn fail(mut self, error: GremlinError) {
        error.log();
        self.end(error.code);
        let _ = self.out.send(self.status(error.status(self.attributes()))).await;
    }

    /// [`PendingResponse::fail`], on a thread that may block. Does not wait for a client that does not read.
    pub(super) fn fail_blocking(mut self, error: &GremlinError) {
        if !self.client.has_disconnected() {
            error.log();
        }
        self.end(error.code);
        let status = self.status(error.status(self.attributes()));
        if let Err(mpsc::error::TrySendError::Full(status)) = self.out.try_send(status) {
            let out = self.out.clone();
            // Ends with the connection, whose write timeout bounds it.
            Handle::current().spawn(async move { drop(out.send(status).await) });
        }
    }

    /// Sends the response of a finished run.
    pub(super) async fn send(mut self, messages: Vec<Vec<u8>>, code: i32) {
        self.end(code);
        for bytes in messages {
            self.state.metrics.add_bytes_out(bytes.len());
            let message = self.results_message(bytes).unwrap_or_else(|bytes| self.message(bytes));
            if self.out.send(message).await.is_err() {
                self.state.metrics.broken.inc();
                return;
            }
        }
    }

    /// [`PendingResponse::send`], on a thread that may block.
    pub(super) fn send_blocking(mut self, messages: Vec<Vec<u8>>, code: i32) {
        self.end(code);
        for bytes in messages {
            // It was buffered, so it is short.
            if self.write_message(bytes, true).is_err() {
                return;
            }
        }
    }

    /// The address of the client, in the notation of the protocol.
    pub(super) fn client_host(&self) -> &Arc<str> {
        &self.client.host
    }

    /// Whether the request was a text frame.
    pub(super) fn is_text(&self) -> bool {
        self.is_text
    }

    /// Sends messages of another server that has executed the request. The last ones follow.
    ///
    /// # Errors
    /// The client has disconnected.
    pub(super) async fn send_part(&self, messages: Vec<Vec<u8>>) -> Result<(), Disconnected> {
        for bytes in messages {
            self.state.metrics.add_bytes_out(bytes.len());
            self.out.send(self.message(bytes)).await.map_err(|_| Disconnected)?;
        }
        Ok(())
    }

    /// Sends an authentication challenge. The request stays open.
    pub(super) fn challenge(&self) -> impl Future<Output = ()> + Send + use<> {
        let status = Status { code: AUTHENTICATE, attributes: self.attributes(), ..Status::default() };
        let (out, message) = (self.out.clone(), self.status(status));
        async move { drop(out.send(message).await) }
    }

    /// Ends without a response: the response to another request covers this one.
    pub(super) fn discard(mut self) {
        self.ended = true;
    }
}

impl Drop for PendingResponse {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        if self.client.has_disconnected() {
            return self.end(TEMPORARY);
        }
        let error = GremlinError::from(Error::internal("a request ended without an answer"));
        error.log();
        self.end(error.code);
        let _ = self.out.try_send(self.status(error.status(self.attributes())));
    }
}

/// Bytes of a message, and their share of the memory for messages.
struct CountedBytes {
    bytes: Vec<u8>,
    _memory: BodyReservation,
}

impl AsRef<[u8]> for CountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The connection of a client has ended.
#[derive(Debug)]
pub(super) struct Disconnected;

/// Parameters of a result stream.
#[derive(Clone, Debug)]
pub(super) struct ResultOptions {
    /// The maximum number of results in a message.
    pub(super) batch: usize,
    /// A message with this many bytes is sent, however few results it has.
    pub(super) message_bytes: usize,
    /// Results are traversers: the response to bytecode.
    pub(super) as_traversers: bool,
    /// A collection is sent as its items.
    pub(super) unrolls: bool,
    /// The deadline for repeating a result with a large count.
    pub(super) deadline: Option<Instant>,
    /// Cancellation by the client or by an operator.
    pub(super) cancel: Option<CancelToken>,
    /// Describes the results, for a transaction that may move to another server.
    pub(super) digest: Option<SharedDigest>,
}

/// Results between two checks of the limits: some 100 µs.
const CHECK_RESULTS: usize = 4096;

/// The maximum bytes of a response that is buffered until its end.
pub(super) const BUFFERED_BYTES_MAX: usize = 256 << 10;

/// A receiver of result messages.
pub(super) trait MessageSink {
    /// Takes a message.
    ///
    /// # Errors
    /// The receiver is gone; more data than the receiver holds, before the last message.
    fn write_message(&mut self, message: Vec<u8>, is_last: bool) -> vervet::Result<()>;
}

impl MessageSink for PendingResponse {
    /// The last message is sent without memory for it rather than not at all: the request has ended.
    fn write_message(&mut self, bytes: Vec<u8>, is_last: bool) -> vervet::Result<()> {
        self.state.metrics.add_bytes_out(bytes.len());
        let (begin, timeout) = (Instant::now(), self.state.options.limits.write_timeout);
        let mut message = self.results_message(bytes);
        let sent = loop {
            match message {
                Ok(message) => {
                    let left = timeout.saturating_sub(begin.elapsed());
                    break stream::send(&self.out, message, left, &self.cancel);
                }
                Err(bytes) if is_last => message = Ok(self.message(bytes)),
                Err(_) if self.out.is_closed() => break Err(SendError::Disconnected),
                Err(_) if self.cancel.is_cancelled() => break Err(SendError::Cancelled),
                Err(_) if begin.elapsed() >= timeout => break Err(SendError::Timeout),
                Err(bytes) => {
                    std::thread::sleep(MEMORY_INTERVAL);
                    message = self.results_message(bytes);
                }
            }
        };
        let Err(error) = sent else { return Ok(()) };
        self.state.metrics.broken.inc();
        let message = match error {
            SendError::Disconnected => "the client is gone",
            SendError::Timeout => "the client reads too slowly",
            SendError::Cancelled => "the request was cancelled",
        };
        Err(Error::new(ErrorKind::Cancelled, message))
    }
}

/// Buffers the messages of a response until it is complete.
#[derive(Debug, Default)]
pub(super) struct BufferedMessages {
    pub(super) messages: Vec<Vec<u8>>,
    bytes: usize,
}

impl MessageSink for BufferedMessages {
    fn write_message(&mut self, message: Vec<u8>, is_last: bool) -> vervet::Result<()> {
        self.bytes += message.len();
        if self.bytes > BUFFERED_BYTES_MAX && !is_last {
            return Err(Error::new(ErrorKind::Deadline, "the response is too long to be held"));
        }
        self.messages.push(message);
        Ok(())
    }
}

/// A result stream in progress.
pub(super) struct Results<'o> {
    sink: &'o mut dyn MessageSink,
    result_options: ResultOptions,
    writer: ResultsWriter,
    as_strings: bool,
    rows: u64,
    /// Results written since the last check of the limits.
    unchecked: usize,
    /// Whether all results so far are zeros, or there are none.
    found_nothing: bool,
    /// The error to report instead of the one that ended the traversal.
    unwritable: Option<WriteError>,
}

impl<'o> Results<'o> {
    /// # Errors
    /// Never in practice: attributes are strings.
    pub(super) fn new(
        sink: &'o mut dyn MessageSink,
        format: Format,
        id: Uuid,
        attributes: Map,
        result_options: ResultOptions,
    ) -> Result<Self, GremlinError> {
        let writer = ResultsWriter::new(format, id, attributes)?;
        if let Some(digest) = &result_options.digest {
            digest.begin();
        }
        let as_strings = format == Format::GraphBinary1Strings;
        Ok(Self {
            sink,
            result_options,
            writer,
            as_strings,
            rows: 0,
            unchecked: 0,
            found_nothing: true,
            unwritable: None,
        })
    }

    /// Whether any message has been sent.
    pub(super) fn has_sent_messages(&self) -> bool {
        self.rows > 0
    }

    /// If nothing was found, adds the warnings that `find` returns to the status, under the attribute name
    /// that TinkerPop's drivers know.
    ///
    /// # Errors
    /// Errors of `find`; the texts cannot be written.
    pub(super) fn warn(
        &mut self,
        find: impl FnOnce() -> vervet::Result<Vec<Warning>>,
    ) -> Result<Vec<Warning>, GremlinError> {
        let warnings = if self.found_nothing { find()? } else { Vec::new() };
        if !warnings.is_empty() {
            let texts = warnings.iter().map(|warning| Value::from(warning.to_string())).collect();
            self.writer.set_attribute("warnings", Value::list(texts))?;
        }
        Ok(warnings)
    }

    /// Writes a result `count` times.
    ///
    /// # Errors
    /// The client is gone; the value cannot be written; the deadline.
    pub(super) fn add(&mut self, value: Value, count: u64) -> vervet::Result<()> {
        self.found_nothing &= matches!(value, Value::Int(0) | Value::Long(0));
        if self.result_options.unrolls {
            match value {
                Value::List(items) => return items.iter().try_for_each(|item| self.add_one(item, 1)),
                Value::Set(items) => return items.iter().try_for_each(|item| self.add_one(item, 1)),
                Value::Map(map) => {
                    return map.iter().try_for_each(|(key, value)| {
                        let entry: Map = [(key.clone(), value.clone())].into_iter().collect();
                        self.add_one(&Value::map(entry), 1)
                    });
                }
                value => return self.add_one(&value, count),
            }
        }
        self.add_one(&value, count)
    }

    fn add_one(&mut self, value: &Value, count: u64) -> vervet::Result<()> {
        let text;
        let value = if self.as_strings {
            let written = string::to_text(value, &NoDetails);
            text = Value::from(written.map_err(|error| Error::new(ErrorKind::Query, error.to_string()))?);
            &text
        } else {
            value
        };
        // For the metrics only.
        self.rows = self.rows.saturating_add(count);
        if self.result_options.as_traversers {
            // A bulk has 64 bits here and 63 in the protocol.
            let mut left = count;
            while left > 0 {
                let bulk = i64::try_from(left).unwrap_or(i64::MAX);
                left -= bulk.cast_unsigned();
                self.write_with_limits(|writer| {
                    writer.add_traverser(&Traverser { bulk, value: value.clone() })
                })?;
            }
            return Ok(());
        }
        for _ in 0..count {
            self.write_with_limits(|writer| writer.add(value))?;
        }
        Ok(())
    }

    fn write_with_limits(
        &mut self,
        put: impl FnOnce(&mut ResultsWriter) -> Result<(), WriteError>,
    ) -> vervet::Result<()> {
        let result_options = &self.result_options;
        if self.writer.count() >= result_options.batch
            || self.writer.size_bytes() >= result_options.message_bytes
        {
            let message = self.writer.take(PARTIAL_CONTENT);
            self.sink.write_message(message, false)?;
            self.unchecked = CHECK_RESULTS;
        }
        self.unchecked += 1;
        if self.unchecked >= CHECK_RESULTS {
            self.unchecked = 0;
            self.check()?;
        }
        let before = self.writer.size_bytes();
        put(&mut self.writer).map_err(|error| {
            let message = error.to_string();
            self.unwritable = Some(error);
            Error::new(ErrorKind::Internal, message)
        })?;
        if let Some(digest) = &self.result_options.digest {
            digest.add(self.writer.added_since(before));
        }
        Ok(())
    }

    /// Checks the limits: one result may be repeated 2^63 times, which no step of the traversal notices.
    fn check(&self) -> vervet::Result<()> {
        if self.result_options.cancel.as_ref().is_some_and(CancelToken::is_cancelled) {
            return Err(Error::new(ErrorKind::Cancelled, "the request was cancelled"));
        }
        if self.result_options.deadline.is_some_and(|deadline| Instant::now() > deadline) {
            return Err(Error::new(ErrorKind::Deadline, "the results took too long to send"));
        }
        Ok(())
    }

    /// The failure of a traversal that ended with `error`.
    pub(super) fn map_error(&mut self, error: Error, fails: &[String]) -> GremlinError {
        match self.unwritable.take() {
            Some(error) => error.into(),
            None => GremlinError::of_script(error, fails),
        }
    }

    /// Sends the last message; returns its status.
    pub(super) fn finish(mut self, state: &State) -> i32 {
        state.metrics.rows_out.inc_by(self.rows);
        if let Some(digest) = &self.result_options.digest {
            digest.end();
        }
        let code = if self.rows == 0 { NO_CONTENT } else { SUCCESS };
        let message = self.writer.take(code);
        // An error means that the client has disconnected, which needs no handling.
        let _ = self.sink.write_message(message, true);
        code
    }
}

impl PendingResponse {
    /// A result stream to the client of this request.
    ///
    /// # Errors
    /// As [`Results::new`].
    pub(super) fn results(&mut self, result_options: ResultOptions) -> Result<Results<'_>, GremlinError> {
        if let Some(cancel) = &result_options.cancel {
            self.cancel.clone_from(cancel);
        }
        let (format, id, attributes) = (self.format, self.id.unwrap_or_default(), self.attributes());
        Results::new(self, format, id, attributes, result_options)
    }

    /// A result stream of this request, buffered in `held`.
    ///
    /// # Errors
    /// As [`Results::new`].
    pub(super) fn buffered_results<'h>(
        &mut self,
        buffer: &'h mut BufferedMessages,
        result_options: ResultOptions,
    ) -> Result<Results<'h>, GremlinError> {
        self.cancel = result_options.cancel.clone().unwrap_or_default();
        let (format, id, attributes) = (self.format, self.id.unwrap_or_default(), self.attributes());
        Results::new(buffer, format, id, attributes, result_options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// query B1: a result repeated 2^62 times, in one message without a limit.
    #[test]
    fn b1_repeating_a_result_sees_limits() {
        let cancelled = CancelToken::new();
        cancelled.cancel();
        for (deadline, cancel, kind) in
            [(Some(Instant::now()), None, ErrorKind::Deadline), (None, Some(cancelled), ErrorKind::Cancelled)]
        {
            let result_options = ResultOptions {
                batch: usize::MAX,
                message_bytes: usize::MAX,
                as_traversers: false,
                unrolls: false,
                deadline,
                cancel,
                digest: None,
            };
            let mut buffer = BufferedMessages::default();
            let results =
                Results::new(&mut buffer, Format::Json, Uuid::nil(), Map::default(), result_options);
            let mut results = results.unwrap_or_else(|_| panic!("attributes are texts"));
            let error = results.add(Value::from(1_i64), 1 << 62).unwrap_err();
            assert_eq!(error.kind(), kind);
        }
    }
}

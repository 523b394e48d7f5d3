//! Answers: what went wrong as a status of the protocol, and results on their way to the socket.

use super::tier::HELD_BYTES;
use crate::metrics::{Finish, Kind};
use crate::reply::Failure;
use crate::state::State;
use hyper::StatusCode;
use std::sync::Arc;
use std::time::Instant;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::{Bytes, Message, Utf8Bytes};
use uuid::Uuid;
use vervet::gremlin::{Map, Value};
use vervet::{CancelToken, Warning};
use vervet_gremlin::semantics::{NoDetails, string};
use vervet_model::{Error, ErrorKind};
use vervet_tinkerpop::{Format, Response, ResultsWriter, Status, Traverser, WriteError};

pub(super) const SUCCESS: i32 = 200;
pub(super) const NO_CONTENT: i32 = 204;
pub(super) const PARTIAL_CONTENT: i32 = 206;
pub(super) const UNAUTHORIZED: i32 = 401;
pub(super) const FORBIDDEN: i32 = 403;
pub(super) const AUTHENTICATE: i32 = 407;
pub(super) const UNREADABLE: i32 = 497;
pub(super) const MALFORMED: i32 = 498;
pub(super) const BAD_ARGUMENTS: i32 = 499;
const SERVER_ERROR: i32 = 500;
const FAIL_STEP: i32 = 595;
const TEMPORARY: i32 = 596;
const EVALUATION: i32 = 597;
const TIMEOUT: i32 = 598;
const UNWRITABLE: i32 = 599;

/// Why a request was not done.
#[derive(Debug)]
pub(super) struct Trouble {
    pub(super) code: i32,
    pub(super) failure: Box<Failure>,
    /// What `fail()` says, if it was that.
    failed: Option<String>,
}

impl Trouble {
    pub(super) fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, failure: Box::new(Failure::bad(message)), failed: None }
    }

    /// A mistake in the arguments of a request.
    pub(super) fn argument(message: impl Into<String>) -> Self {
        Self::new(BAD_ARGUMENTS, message)
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.failure = Box::new(self.failure.hint(hint));
        self
    }

    /// An error of a script in which `fail()` may say one of these.
    pub(super) fn of_script(error: Error, fails: &[String]) -> Self {
        let message = error.message().to_owned();
        let mut trouble = Self::from(error);
        if trouble.code == EVALUATION && fails.contains(&message) {
            trouble.code = FAIL_STEP;
            trouble.failed = Some(message);
        }
        trouble
    }

    /// Whether the client may do it once it has said who it is.
    pub(super) fn is_challenge(&self) -> bool {
        self.code == AUTHENTICATE
    }

    /// Whether it has run for too long.
    pub(super) fn is_deadline(&self) -> bool {
        self.code == TIMEOUT
    }

    /// Logs it, as loud as it matters to who runs the server.
    fn log(&self) {
        let (status, kind, message) = (self.code, Kind::Gremlin.name(), self.failure.text());
        match self.code {
            SERVER_ERROR | UNWRITABLE => tracing::error!(kind, status, ?message, "request failed"),
            TIMEOUT => tracing::warn!(kind, status, ?message, "request failed"),
            TEMPORARY if self.failure.kind() == "conflict" => {
                tracing::info!(kind, status, ?message, "transaction refused");
            }
            TEMPORARY => tracing::warn!(kind, status, ?message, "request failed"),
            _ => tracing::debug!(kind, status, ?message, "request refused"),
        }
    }

    fn status(&self, mut attributes: Map) -> Status {
        let message = self.failure.text();
        let kind = Value::text(format!("vervet.{}", self.failure.kind()));
        attributes.insert(Value::text("exceptions"), Value::list(vec![kind]));
        attributes.insert(Value::text("stackTrace"), Value::text(&message));
        if let Some(failed) = &self.failed {
            attributes.insert(Value::text("failStepMessage"), Value::text(failed));
        }
        Status { code: self.code, message, attributes }
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        let code = match error.kind() {
            ErrorKind::Query | ErrorKind::Unsupported => EVALUATION,
            ErrorKind::Deadline => TIMEOUT,
            ErrorKind::Conflict | ErrorKind::Cancelled | ErrorKind::Unavailable => TEMPORARY,
            _ => SERVER_ERROR,
        };
        Self { code, failure: Box::new(error.into()), failed: None }
    }
}

impl From<WriteError> for Trouble {
    fn from(error: WriteError) -> Self {
        let failure = Failure::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string());
        Self { code: UNWRITABLE, failure: Box::new(failure), failed: None }
    }
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        let code = match failure.status {
            StatusCode::UNAUTHORIZED => AUTHENTICATE,
            StatusCode::FORBIDDEN => FORBIDDEN,
            StatusCode::SERVICE_UNAVAILABLE => TEMPORARY,
            status if status.is_client_error() => BAD_ARGUMENTS,
            _ => SERVER_ERROR,
        };
        Self { code, failure: Box::new(failure), failed: None }
    }
}

/// The answer to one request of a WebSocket. Dropped before its end, it says that this was a defect.
#[derive(Debug)]
pub(super) struct Reply {
    state: Arc<State>,
    out: mpsc::Sender<Message>,
    /// The address of the client, as the protocol tells it.
    host: Arc<str>,
    format: Format,
    /// As the request was.
    is_text: bool,
    id: Option<Uuid>,
    begin: Instant,
    ended: bool,
}

impl Reply {
    pub(super) fn new(
        state: &Arc<State>,
        out: mpsc::Sender<Message>,
        host: &Arc<str>,
        is_text: bool,
    ) -> Self {
        let (state, host) = (Arc::clone(state), Arc::clone(host));
        // For those of whom not even the format is known.
        let format = if is_text { Format::Json } else { Format::GraphSon3 };
        Self { state, out, host, format, is_text, id: None, begin: Instant::now(), ended: false }
    }

    /// What is known of the request.
    pub(super) fn to(&mut self, format: Format, id: Option<Uuid>) {
        self.format = format;
        self.id = id;
    }

    fn attributes(&self) -> Map {
        [(Value::text("host"), Value::text(&self.host))].into_iter().collect()
    }

    /// Bytes as a message like that of the request.
    fn message(&self, bytes: Vec<u8>) -> Message {
        let bytes = Bytes::from(bytes);
        match Utf8Bytes::try_from(bytes.clone()) {
            Ok(text) if self.is_text => Message::Text(text),
            _ => Message::Binary(bytes),
        }
    }

    fn status(&self, status: Status) -> Message {
        let response = Response { id: self.id, status, ..Response::default() };
        let mut bytes = Vec::new();
        // Texts alone: no format refuses them.
        let _ = response.write(self.format, &mut bytes);
        self.message(bytes)
    }

    fn end(&mut self, code: i32) {
        self.ended = true;
        let code = u16::try_from(code).unwrap_or(0);
        drop(Finish::new(&self.state.metrics, Kind::Gremlin, code, self.begin));
    }

    /// Says that there is nothing to say.
    pub(super) async fn done(mut self) {
        self.end(NO_CONTENT);
        let status = Status { code: NO_CONTENT, attributes: self.attributes(), ..Status::default() };
        // A client that is gone needs to know nothing; as below.
        let _ = self.out.send(self.status(status)).await;
    }

    /// Says that the request was not done.
    pub(super) async fn fail(mut self, trouble: Trouble) {
        trouble.log();
        self.end(trouble.code);
        let _ = self.out.send(self.status(trouble.status(self.attributes()))).await;
    }

    /// [`Reply::fail`], on a thread that may wait.
    pub(super) fn fail_here(mut self, trouble: &Trouble) {
        trouble.log();
        self.end(trouble.code);
        let _ = self.send(self.status(trouble.status(self.attributes())));
    }

    /// Tells what came of it.
    pub(super) async fn tell(mut self, messages: Vec<Vec<u8>>, code: i32) {
        self.end(code);
        for bytes in messages {
            self.state.metrics.sent(bytes.len());
            if self.out.send(self.message(bytes)).await.is_err() {
                self.state.metrics.broken.inc();
                return;
            }
        }
    }

    /// [`Reply::tell`], on a thread that may wait.
    pub(super) fn tell_here(mut self, messages: Vec<Vec<u8>>, code: i32) {
        self.end(code);
        for bytes in messages {
            if self.take(bytes, false).is_err() {
                return;
            }
        }
    }

    /// Asks the client to say who it is. The request is not answered yet.
    pub(super) fn challenge(&self) -> impl Future<Output = ()> + Send + use<> {
        let status = Status { code: AUTHENTICATE, attributes: self.attributes(), ..Status::default() };
        let (out, message) = (self.out.clone(), self.status(status));
        async move { drop(out.send(message).await) }
    }

    /// Another request has its answer.
    pub(super) fn forget(mut self) {
        self.ended = true;
    }

    /// Sends a message from a thread that may wait. `false`: the client is gone, or takes nothing.
    fn send(&self, message: Message) -> bool {
        let message = match self.out.try_send(message) {
            Ok(()) => return true,
            Err(mpsc::error::TrySendError::Full(message)) => message,
            Err(mpsc::error::TrySendError::Closed(_)) => return false,
        };
        let patience = self.state.options.limits.write_timeout;
        let sent = Handle::current()
            .block_on(async { tokio::time::timeout(patience, self.out.send(message)).await });
        matches!(sent, Ok(Ok(())))
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if !self.ended {
            let trouble = Trouble::from(Error::internal("a request ended without an answer"));
            trouble.log();
            self.end(trouble.code);
            let _ = self.out.try_send(self.status(trouble.status(self.attributes())));
        }
    }
}

/// How results are told.
#[derive(Clone, Debug)]
pub(super) struct Telling {
    /// Results in a message, at most.
    pub(super) batch: usize,
    /// A message goes when it has so many bytes, however few results it has.
    pub(super) message_bytes: usize,
    /// As traversers: the answer to bytecode.
    pub(super) as_traversers: bool,
    /// A result that is a collection is told as its items.
    pub(super) unrolls: bool,
    /// When to stop repeating a result that comes very often.
    pub(super) deadline: Option<Instant>,
    /// The same, by the client or by an operator.
    pub(super) cancel: Option<CancelToken>,
}

/// Results between two looks at limits: some 100 µs.
const CHECK_RESULTS: usize = 4096;

/// Where messages with results go.
pub(super) trait Outlet {
    /// Takes a message.
    ///
    /// # Errors
    /// Nobody wants it any more; another one than the last is too much.
    fn take(&mut self, message: Vec<u8>, is_last: bool) -> vervet::Result<()>;
}

impl Outlet for Reply {
    fn take(&mut self, bytes: Vec<u8>, _is_last: bool) -> vervet::Result<()> {
        self.state.metrics.sent(bytes.len());
        if self.send(self.message(bytes)) {
            return Ok(());
        }
        self.state.metrics.broken.inc();
        Err(Error::new(ErrorKind::Cancelled, "the client is gone"))
    }
}

/// Keeps the messages of an answer until all of it is known.
#[derive(Debug, Default)]
pub(super) struct Held {
    pub(super) messages: Vec<Vec<u8>>,
    bytes: usize,
}

impl Outlet for Held {
    fn take(&mut self, message: Vec<u8>, is_last: bool) -> vervet::Result<()> {
        self.bytes += message.len();
        if self.bytes > HELD_BYTES && !is_last {
            return Err(Error::new(ErrorKind::Deadline, "the answer is too long to be held"));
        }
        self.messages.push(message);
        Ok(())
    }
}

/// Results on their way.
pub(super) struct Results<'o> {
    outlet: &'o mut dyn Outlet,
    telling: Telling,
    writer: ResultsWriter,
    texts: bool,
    rows: u64,
    /// Results written since the last look at limits.
    unchecked: usize,
    /// Whether no result was there, but for numbers that are 0.
    found_nothing: bool,
    /// What to tell instead of the error that ended the traversal.
    unwritable: Option<WriteError>,
}

impl<'o> Results<'o> {
    /// # Errors
    /// None that happens: attributes are texts.
    pub(super) fn new(
        outlet: &'o mut dyn Outlet,
        format: Format,
        id: Uuid,
        attributes: Map,
        telling: Telling,
    ) -> Result<Self, Trouble> {
        let writer = ResultsWriter::new(format, id, attributes)?;
        let texts = format == Format::GraphBinary1Strings;
        Ok(Self {
            outlet,
            telling,
            writer,
            texts,
            rows: 0,
            unchecked: 0,
            found_nothing: true,
            unwritable: None,
        })
    }

    /// Whether there was one.
    pub(super) fn have_begun(&self) -> bool {
        self.rows > 0
    }

    /// Adds the warnings that `find` gives to the status if nothing was found, under the name that drivers of
    /// TinkerPop know.
    ///
    /// # Errors
    /// Those of `find`; the texts cannot be written.
    pub(super) fn warn(
        &mut self,
        find: impl FnOnce() -> vervet::Result<Vec<Warning>>,
    ) -> Result<Vec<Warning>, Trouble> {
        let warnings = if self.found_nothing { find()? } else { Vec::new() };
        if !warnings.is_empty() {
            let texts = warnings.iter().map(|warning| Value::from(warning.to_string())).collect();
            self.writer.set_attribute("warnings", Value::list(texts))?;
        }
        Ok(warnings)
    }

    /// Takes a result that comes `count` times.
    ///
    /// # Errors
    /// The client is gone; it cannot be written; the deadline.
    pub(super) fn add(&mut self, value: Value, count: u64) -> vervet::Result<()> {
        self.found_nothing &= matches!(value, Value::Int(0) | Value::Long(0));
        if self.telling.unrolls {
            match value {
                Value::List(items) => return items.iter().try_for_each(|item| self.one(item, 1)),
                Value::Set(items) => return items.iter().try_for_each(|item| self.one(item, 1)),
                Value::Map(map) => {
                    return map.iter().try_for_each(|(key, value)| {
                        let entry: Map = [(key.clone(), value.clone())].into_iter().collect();
                        self.one(&Value::map(entry), 1)
                    });
                }
                value => return self.one(&value, count),
            }
        }
        self.one(&value, count)
    }

    fn one(&mut self, value: &Value, count: u64) -> vervet::Result<()> {
        let text;
        let value = if self.texts {
            let written = string::to_text(value, &NoDetails);
            text = Value::from(written.map_err(|error| Error::new(ErrorKind::Query, error.to_string()))?);
            &text
        } else {
            value
        };
        // For the metrics alone.
        self.rows = self.rows.saturating_add(count);
        if self.telling.as_traversers {
            // A bulk has 64 bits here and 63 in the protocol.
            let mut left = count;
            while left > 0 {
                let bulk = i64::try_from(left).unwrap_or(i64::MAX);
                left -= bulk.cast_unsigned();
                self.put(|writer| writer.add_traverser(&Traverser { bulk, value: value.clone() }))?;
            }
            return Ok(());
        }
        for _ in 0..count {
            self.put(|writer| writer.add(value))?;
        }
        Ok(())
    }

    fn put(&mut self, put: impl FnOnce(&mut ResultsWriter) -> Result<(), WriteError>) -> vervet::Result<()> {
        let telling = &self.telling;
        if self.writer.count() >= telling.batch || self.writer.size_bytes() >= telling.message_bytes {
            let message = self.writer.take(PARTIAL_CONTENT);
            self.outlet.take(message, false)?;
            self.unchecked = CHECK_RESULTS;
        }
        self.unchecked += 1;
        if self.unchecked >= CHECK_RESULTS {
            self.unchecked = 0;
            self.check()?;
        }
        put(&mut self.writer).map_err(|error| {
            let message = error.to_string();
            self.unwritable = Some(error);
            Error::new(ErrorKind::Internal, message)
        })
    }

    /// Whether to go on: one result may come as often as 2^63 times, which no step of the traversal sees.
    fn check(&self) -> vervet::Result<()> {
        if self.telling.cancel.as_ref().is_some_and(CancelToken::is_cancelled) {
            return Err(Error::new(ErrorKind::Cancelled, "the request was cancelled"));
        }
        if self.telling.deadline.is_some_and(|deadline| Instant::now() > deadline) {
            return Err(Error::new(ErrorKind::Deadline, "the results took too long to tell"));
        }
        Ok(())
    }

    /// What went wrong, when the traversal ended with `error`.
    pub(super) fn trouble(&mut self, error: Error, fails: &[String]) -> Trouble {
        match self.unwritable.take() {
            Some(error) => error.into(),
            None => Trouble::of_script(error, fails),
        }
    }

    /// Sends the last message; its status.
    pub(super) fn finish(mut self, state: &State) -> i32 {
        state.metrics.rows_out.inc_by(self.rows);
        let code = if self.rows == 0 { NO_CONTENT } else { SUCCESS };
        let message = self.writer.take(code);
        // A client that is gone needs to know nothing.
        let _ = self.outlet.take(message, true);
        code
    }
}

impl Reply {
    /// Where the results of this request go.
    ///
    /// # Errors
    /// As [`Results::new`].
    pub(super) fn results(&mut self, telling: Telling) -> Result<Results<'_>, Trouble> {
        let (format, id, attributes) = (self.format, self.id.unwrap_or_default(), self.attributes());
        Results::new(self, format, id, attributes, telling)
    }

    /// The results of this request, put into `held` first.
    ///
    /// # Errors
    /// As [`Results::new`].
    pub(super) fn held_results<'h>(
        &self,
        held: &'h mut Held,
        telling: Telling,
    ) -> Result<Results<'h>, Trouble> {
        let (format, id, attributes) = (self.format, self.id.unwrap_or_default(), self.attributes());
        Results::new(held, format, id, attributes, telling)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// query B1: a result that comes 2^62 times, in one message without a limit.
    #[test]
    fn b1_repeating_a_result_sees_limits() {
        let cancelled = CancelToken::new();
        cancelled.cancel();
        for (deadline, cancel, kind) in
            [(Some(Instant::now()), None, ErrorKind::Deadline), (None, Some(cancelled), ErrorKind::Cancelled)]
        {
            let telling = Telling {
                batch: usize::MAX,
                message_bytes: usize::MAX,
                as_traversers: false,
                unrolls: false,
                deadline,
                cancel,
            };
            let mut held = Held::default();
            let results = Results::new(&mut held, Format::Json, Uuid::nil(), Map::default(), telling);
            let mut results = results.unwrap_or_else(|_| panic!("attributes are texts"));
            let error = results.add(Value::from(1_i64), 1 << 62).unwrap_err();
            assert_eq!(error.kind(), kind);
        }
    }
}

//! The life of a WebSocket.
//!
//! # Shape
//! ```text
//! frames -> read: one message after the other -> connection -> tasks, threads
//!                                                                 │ a channel of messages
//! frames <- write: a ping when idle <─────────────────────────────┘
//! ```
//! Both halves run independently: while a client does not read, its messages and its close are still noticed.
//! # Invariants
//! A client has at most [`REQUESTS_IN_PROGRESS_MAX`] requests in progress, and as many bytes in them as one
//! message may have; beyond that, reading stops (back-pressure). A message has to arrive in time, like a
//! request body. A client that must log in has [`crate::Limits::login_timeout`] and [`LOGIN_BYTES_MAX`] for
//! it.

use super::access::Access;
use super::connection::Connection;
use super::error::{GremlinError, MALFORMED, UNREADABLE};
use super::job::RequestResources;
use super::response::{ClientState, PendingResponse};
use crate::network::timed_stream::{ReceivedBytes, TimedStream};
use crate::options::BODY_BYTES_PER_SECOND_MIN;
use crate::settings::Settings;
use crate::state::State;
use futures_util::{SinkExt, Stream, StreamExt};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::Instant;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Bytes, Error, Message};
use vervet_tinkerpop::{BadRequest, Format, Limits, ReadErrorKind, Request};

/// The maximum number of requests in progress on a connection.
const REQUESTS_IN_PROGRESS_MAX: u32 = 256;
/// Queued messages to a client.
const OUTGOING_MESSAGES_MAX: usize = 16;
/// Idle time before a ping. A ping to a dead peer reveals that it is dead.
const PING_AFTER: Duration = Duration::from_secs(30);
/// How often an idle connection is checked.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// Longer messages are parsed on a blocking thread.
const PARSE_ON_IO_THREAD_BYTES_MAX: usize = 64 << 10;
/// Initial size of the buffers of a connection.
const BUFFER_BYTES: usize = 16 << 10;
/// The maximum bytes before a login, where a login is required.
const LOGIN_BYTES_MAX: u64 = 64 << 10;
/// The header of a short frame with its mask.
const FRAME_HEAD_BYTES: u64 = 6;

/// Serves a client until either side closes the connection.
pub(crate) async fn serve(
    mut settings: watch::Receiver<Settings>,
    stream: TimedStream,
    begin: &[u8],
    access: Access,
    host: Arc<str>,
    shutdown: watch::Receiver<bool>,
) {
    let state = Arc::clone(&settings.borrow_and_update().state);
    let received = stream.received();
    let most = state.options.limits.text_bytes;
    let config = WebSocketConfig::default()
        .read_buffer_size(BUFFER_BYTES)
        .write_buffer_size(BUFFER_BYTES)
        .max_message_size(Some(most))
        .max_frame_size(Some(most));
    let socket =
        WebSocketStream::from_partially_read(stream, begin.to_vec(), Role::Server, Some(config)).await;
    let (mut sink, stream) = socket.split();
    let (out, mut outgoing) = mpsc::channel::<Message>(OUTGOING_MESSAGES_MAX);
    let write = async move {
        loop {
            let message = match tokio::time::timeout(PING_AFTER, outgoing.recv()).await {
                Ok(Some(message)) => message,
                Ok(None) => break,
                Err(_) => Message::Ping(Bytes::new()),
            };
            let mut written = sink.feed(message).await;
            while let (Ok(()), Ok(message)) = (&written, outgoing.try_recv()) {
                written = sink.feed(message).await;
            }
            if written.is_err() || sink.flush().await.is_err() {
                return;
            }
        }
        // Answers the client's close frame, if there was one, and closes the connection.
        let _ = sink.close().await;
    };
    let complete = received.bytes().saturating_sub(begin.len() as u64);
    if access.needs_login() {
        received.limit(Some(complete + LOGIN_BYTES_MAX));
    }
    received.begin(complete, state.body_memory.reserve());
    let client = Arc::new(ClientState::new(host));
    let connection = Connection::new(Arc::clone(&state), access, Arc::clone(&received), Arc::clone(&client));
    let reader = MessageReader {
        connection: Arc::clone(&connection),
        request_permits: Arc::new(Semaphore::new(REQUESTS_IN_PROGRESS_MAX as usize)),
        client,
        received,
        shutdown,
        state,
    };
    let _end = EndConnectionOnDrop(Arc::clone(&connection));
    let read = async move {
        let reason = tokio::select! {
            reason = reader.run(stream, &out) => reason,
            () = users_changed(&connection.state, &mut settings) => {
                Some((CloseCode::Restart, "the users of the server have changed: connect again"))
            }
            () = connection.login_overdue() => Some((CloseCode::Policy, "the login takes too long")),
        };
        if let Some((code, reason)) = reason {
            let frame = CloseFrame { code, reason: reason.into() };
            let _ = out.send(Message::Close(Some(frame))).await;
        }
    };
    tokio::pin!(write);
    tokio::select! {
        () = &mut write => {}
        () = read => {
            // Tasks hold senders of the channel.
            _end.0.end();
            write.await;
        }
    }
}

/// Ends the requests of a connection, however it ends.
struct EndConnectionOnDrop(Arc<Connection>);

impl Drop for EndConnectionOnDrop {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The reading half.
struct MessageReader {
    state: Arc<State>,
    connection: Arc<Connection>,
    request_permits: Arc<Semaphore>,
    client: Arc<ClientState>,
    /// Counts received bytes.
    received: Arc<ReceivedBytes>,
    shutdown: watch::Receiver<bool>,
}

/// The server's reason for closing a connection, in its close frame.
type CloseReason = (CloseCode, &'static str);

const OUT_OF_MEMORY: CloseReason = (CloseCode::Again, "the memory for messages is exhausted");
const TOO_MUCH_BEFORE_LOGIN: CloseReason = (CloseCode::Policy, "too much data before the login");

impl MessageReader {
    /// Reads messages until the end; returns the close reason, if the client has not closed the connection.
    async fn run(
        mut self,
        mut stream: impl Stream<Item = Result<Message, Error>> + Unpin,
        out: &mpsc::Sender<Message>,
    ) -> Option<CloseReason> {
        loop {
            let message = match self.next(&mut stream).await {
                Ok(message) => message,
                Err(None) if self.received.exceeds_limit() => return Some(TOO_MUCH_BEFORE_LOGIN),
                Err(None) if self.received.is_out_of_memory() => return Some(OUT_OF_MEMORY),
                Err(reason) => return reason,
            };
            if self.received.exceeds_limit() {
                return Some(TOO_MUCH_BEFORE_LOGIN);
            }
            let (bytes, is_text) = match message {
                Message::Text(text) => (Bytes::from(text), true),
                Message::Binary(bytes) => (bytes, false),
                Message::Ping(bytes) | Message::Pong(bytes) => {
                    self.received.skip(bytes.len() as u64 + FRAME_HEAD_BYTES);
                    continue;
                }
                Message::Close(_) => return None,
                Message::Frame(_) => continue,
            };
            let reservation = self.received.completed(self.state.body_memory.reserve());
            self.state.metrics.bytes_in.inc_by(bytes.len() as u64);
            let Some(permits) = self.acquire_request_permits(bytes.len()).await else {
                return self.wait_for_requests().await;
            };
            let mut reservation = reservation.unwrap_or_else(|| self.state.body_memory.reserve());
            if !reservation.grow(bytes.len()) {
                return Some(OUT_OF_MEMORY);
            }
            let resources = RequestResources { _request_permits: Some(permits), _memory: reservation };
            let message = self.state.options.may_forward().then(|| bytes.clone());
            let mut response = PendingResponse::new(&self.state, out.clone(), &self.client, is_text);
            match read_request(&self.state, bytes, is_text, &mut response).await {
                Ok(request) => self.connection.handle(request, message, response, resources).await,
                Err(error) => response.fail(error).await,
            }
        }
    }

    /// The next message, or the reason for the end.
    async fn next(
        &mut self,
        stream: &mut (impl Stream<Item = Result<Message, Error>> + Unpin),
    ) -> Result<Message, Option<CloseReason>> {
        let limits = self.state.options.limits.clone();
        let begin = Instant::now();
        // When an incomplete message began to arrive.
        let mut partial_since = None;
        loop {
            let poll = tokio::time::sleep(POLL_INTERVAL.min(limits.body_timeout));
            let next = tokio::select! {
                next = stream.next() => Some(next),
                () = shutdown_requested(&mut self.shutdown) => return Err(self.wait_for_requests().await),
                () = poll => None,
            };
            let Some(next) = next else {
                let partial = self.received.partial();
                if partial == 0 {
                    if begin.elapsed() > limits.idle_timeout && self.is_idle() {
                        return Err(Some((CloseCode::Away, "the connection was idle for too long")));
                    }
                    continue;
                }
                let since = *partial_since.get_or_insert_with(Instant::now);
                let earned = Duration::from_secs(partial / BODY_BYTES_PER_SECOND_MIN);
                if since.elapsed() > limits.body_timeout + earned {
                    return Err(Some((CloseCode::Policy, "a message arrived too slowly")));
                }
                continue;
            };
            return match next {
                Some(Ok(message)) => Ok(message),
                Some(Err(Error::Capacity(_))) => Err(Some((CloseCode::Size, "the message is too long"))),
                Some(Err(Error::Protocol(_))) => {
                    Err(Some((CloseCode::Protocol, "this is not a valid frame")))
                }
                Some(Err(Error::Utf8(_))) => Err(Some((CloseCode::Invalid, "the text is not UTF-8"))),
                Some(Err(_)) | None => Err(None),
            };
        }
    }

    fn is_idle(&self) -> bool {
        self.request_permits.available_permits() == REQUESTS_IN_PROGRESS_MAX as usize
    }

    /// The permits of a request; `None`: the server is shutting down.
    async fn acquire_request_permits(&mut self, length: usize) -> Option<OwnedSemaphorePermit> {
        let most = self.state.options.limits.text_bytes.max(1);
        let part = length.saturating_mul(REQUESTS_IN_PROGRESS_MAX as usize) / most;
        let permits =
            u32::try_from(part).unwrap_or(REQUESTS_IN_PROGRESS_MAX).clamp(1, REQUESTS_IN_PROGRESS_MAX);
        tokio::select! {
            permits = Arc::clone(&self.request_permits).acquire_many_owned(permits) => permits.ok(),
            () = shutdown_requested(&mut self.shutdown) => None,
        }
    }

    /// Shutdown: waits for running requests, within the shutdown timeout.
    async fn wait_for_requests(&mut self) -> Option<CloseReason> {
        self.connection.drop_jobs_awaiting_login();
        let _ = self.request_permits.acquire_many(REQUESTS_IN_PROGRESS_MAX).await;
        Some((CloseCode::Away, "the server is ending"))
    }
}

/// Parses a request; sets the format of its response.
///
/// # Errors
/// It is no request.
pub(super) async fn read_request(
    state: &State,
    bytes: Bytes,
    is_text: bool,
    response: &mut PendingResponse,
) -> Result<Request, GremlinError> {
    let limits = Limits { bytes: state.options.limits.text_bytes, ..Limits::default() };
    let (format, request) = if bytes.len() <= PARSE_ON_IO_THREAD_BYTES_MAX {
        read(&bytes, is_text, limits)
    } else {
        let read = tokio::task::spawn_blocking(move || read(&bytes, is_text, limits)).await;
        read.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))
    };
    response
        .set_format_and_id(format, request.as_ref().map_or_else(|bad| bad.id, |request| Some(request.id)));
    request.map_err(|bad| {
        let code = match bad.error.kind() {
            ReadErrorKind::Unsupported => UNREADABLE,
            _ => MALFORMED,
        };
        GremlinError::new(code, bad.to_string())
    })
}

fn read(bytes: &[u8], is_text: bool, limits: Limits) -> (Format, Result<Request, BadRequest>) {
    if is_text {
        return (Format::Json, Request::read(bytes, Format::Json, limits));
    }
    // An unrecognizable message is answered in a human-readable format.
    let format = Format::split_frame(bytes).map_or(Format::GraphSon3, |(format, _)| format);
    (format, Request::read_frame(bytes, limits).map(|(_, request)| request))
}

/// Waits until the configured users change: the roles of the old users are no longer verified.
async fn users_changed(state: &State, settings: &mut watch::Receiver<Settings>) {
    let has_ended = settings
        .wait_for(|settings| !state.users.have_same_credentials(&settings.state.users))
        .await
        .is_err();
    if has_ended {
        // The server is shutting down, which other tasks report.
        std::future::pending::<()>().await;
    }
}

/// Waits until the server shuts down.
async fn shutdown_requested(shutdown: &mut watch::Receiver<bool>) {
    let _ = shutdown.wait_for(|shutdown| *shutdown).await;
}

//! The life of a WebSocket.
//!
//! # Shape
//! ```text
//! frames -> read: one message after the other -> connection -> tasks, threads
//!                                                                 │ a channel of OUTGOING messages
//! frames <- write: a ping when idle <─────────────────────────────┘
//! ```
//! Both halves run independently: while a client does not read, its messages and its close are still noticed.
//! # Invariants
//! A client has at most [`OUTSTANDING`] requests in progress, and as many bytes in them as one message may
//! have; beyond that, reading stops (back-pressure). A message has to arrive in time, like a request body. A
//! client that must log in has [`crate::Limits::login_timeout`] and [`LOGIN_BYTES_MAX`] for it.

use super::access::Access;
use super::answer::{Client, MALFORMED, Reply, Trouble, UNREADABLE};
use super::connection::{Connection, Share};
use crate::options::BODY_BYTES_PER_SECOND_MIN;
use crate::server::Settings;
use crate::state::State;
use crate::wire::{Received, Wire};
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
const OUTSTANDING: u32 = 256;
/// Queued messages to a client.
const OUTGOING: usize = 16;
/// Idle time before a ping. A ping to a dead peer reveals that it is dead.
const PING_AFTER: Duration = Duration::from_secs(30);
/// How often an idle connection is checked.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Longer messages are parsed on a blocking thread.
const READ_HERE_BYTES_MAX: usize = 64 << 10;
/// Initial size of the buffers of a connection.
const BUFFER_BYTES: usize = 16 << 10;
/// The maximum bytes before a login, where a login is required.
const LOGIN_BYTES_MAX: u64 = 64 << 10;
/// The header of a short frame with its mask.
const FRAME_HEAD_BYTES: u64 = 6;

/// Serves a client until either side closes the connection.
pub(crate) async fn serve(
    mut settings: watch::Receiver<Settings>,
    wire: Wire,
    begin: &[u8],
    access: Access,
    host: Arc<str>,
    stopped: watch::Receiver<bool>,
) {
    let state = Arc::clone(&settings.borrow_and_update().state);
    let received = wire.received();
    let most = state.options.limits.text_bytes;
    let config = WebSocketConfig::default()
        .read_buffer_size(BUFFER_BYTES)
        .write_buffer_size(BUFFER_BYTES)
        .max_message_size(Some(most))
        .max_frame_size(Some(most));
    let socket = WebSocketStream::from_partially_read(wire, begin.to_vec(), Role::Server, Some(config)).await;
    let (mut sink, stream) = socket.split();
    let (out, mut outgoing) = mpsc::channel::<Message>(OUTGOING);
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
    received.begin(complete, state.bodies.hold());
    let client = Arc::new(Client::new(host));
    let connection = Connection::new(Arc::clone(&state), access, Arc::clone(&received), Arc::clone(&client));
    let reading = Reading {
        connection: Arc::clone(&connection),
        room: Arc::new(Semaphore::new(OUTSTANDING as usize)),
        client,
        received,
        stopped,
        state,
    };
    let _end = EndOnDrop(Arc::clone(&connection));
    let read = async move {
        let last = tokio::select! {
            last = reading.run(stream, &out) => last,
            () = other_users(&connection.state, &mut settings) => {
                Some((CloseCode::Restart, "the users of the server have changed: connect again"))
            }
            () = connection.no_login() => Some((CloseCode::Policy, "the login takes too long")),
        };
        if let Some((code, reason)) = last {
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
struct EndOnDrop(Arc<Connection>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The reading half.
struct Reading {
    state: Arc<State>,
    connection: Arc<Connection>,
    room: Arc<Semaphore>,
    client: Arc<Client>,
    /// Counts received bytes.
    received: Arc<Received>,
    stopped: watch::Receiver<bool>,
}

/// The server's reason for closing a connection, in its close frame.
type Last = (CloseCode, &'static str);

const FULL: Last = (CloseCode::Again, "the memory for messages is exhausted");
const TOO_MUCH: Last = (CloseCode::Policy, "too much data before the login");

impl Reading {
    /// Reads messages until the end; returns the close reason, if the client has not closed the connection.
    async fn run(
        mut self,
        mut stream: impl Stream<Item = Result<Message, Error>> + Unpin,
        out: &mpsc::Sender<Message>,
    ) -> Option<Last> {
        loop {
            let message = match self.next(&mut stream).await {
                Ok(message) => message,
                Err(None) if self.received.is_too_much() => return Some(TOO_MUCH),
                Err(None) if self.received.is_full() => return Some(FULL),
                Err(last) => return last,
            };
            if self.received.is_too_much() {
                return Some(TOO_MUCH);
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
            let held = self.received.completed(self.state.bodies.hold());
            self.state.metrics.bytes_in.inc_by(bytes.len() as u64);
            let Some(share) = self.share(bytes.len()).await else { return self.away().await };
            let mut held = held.unwrap_or_else(|| self.state.bodies.hold());
            if !held.grow(bytes.len()) {
                return Some(FULL);
            }
            let share = Share { _room: share, _memory: held };
            let mut reply = Reply::new(&self.state, out.clone(), &self.client, is_text);
            match self.request(bytes, is_text).await {
                (format, Ok(request)) => {
                    reply.to(format, Some(request.id));
                    self.connection.take(request, reply, share).await;
                }
                (format, Err(bad)) => {
                    reply.to(format, bad.id);
                    let code = match bad.error.kind() {
                        ReadErrorKind::Unsupported => UNREADABLE,
                        _ => MALFORMED,
                    };
                    reply.fail(Trouble::new(code, bad.to_string())).await;
                }
            }
        }
    }

    /// The next message, or the reason for the end.
    async fn next(
        &mut self,
        stream: &mut (impl Stream<Item = Result<Message, Error>> + Unpin),
    ) -> Result<Message, Option<Last>> {
        let limits = self.state.options.limits.clone();
        let begin = Instant::now();
        // When an incomplete message began to arrive.
        let mut partial_since = None;
        loop {
            let look = tokio::time::sleep(LOOK_EVERY.min(limits.body_timeout));
            let next = tokio::select! {
                next = stream.next() => Some(next),
                () = stop(&mut self.stopped) => return Err(self.away().await),
                () = look => None,
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
        self.room.available_permits() == OUTSTANDING as usize
    }

    /// The permits of a request; `None`: the server is shutting down.
    async fn share(&mut self, length: usize) -> Option<OwnedSemaphorePermit> {
        let most = self.state.options.limits.text_bytes.max(1);
        let part = length.saturating_mul(OUTSTANDING as usize) / most;
        let share = u32::try_from(part).unwrap_or(OUTSTANDING).clamp(1, OUTSTANDING);
        tokio::select! {
            share = Arc::clone(&self.room).acquire_many_owned(share) => share.ok(),
            () = stop(&mut self.stopped) => None,
        }
    }

    /// Shutdown: waits for running requests, within the shutdown timeout.
    async fn away(&mut self) -> Option<Last> {
        self.connection.let_go();
        let _ = self.room.acquire_many(OUTSTANDING).await;
        Some((CloseCode::Away, "the server is ending"))
    }

    /// Parses a request; returns the format of its response.
    async fn request(&self, bytes: Bytes, is_text: bool) -> (Format, Result<Request, BadRequest>) {
        let limits = Limits { bytes: self.state.options.limits.text_bytes, ..Limits::default() };
        if bytes.len() <= READ_HERE_BYTES_MAX {
            return read(&bytes, is_text, limits);
        }
        let read = tokio::task::spawn_blocking(move || read(&bytes, is_text, limits)).await;
        read.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))
    }
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
async fn other_users(state: &State, settings: &mut watch::Receiver<Settings>) {
    let has_ended = settings.wait_for(|settings| !state.users.are_same(&settings.state.users)).await.is_err();
    if has_ended {
        // The server is shutting down, which other tasks report.
        std::future::pending::<()>().await;
    }
}

/// Waits until the server shuts down.
async fn stop(stopped: &mut watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

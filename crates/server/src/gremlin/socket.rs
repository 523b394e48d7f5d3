//! A WebSocket from its first frame to its last.
//!
//! # Shape
//! ```text
//! frames -> read: one message after the other -> connection -> tasks, threads
//!                                                                 │ a channel of OUTGOING messages
//! frames <- write: a ping when there is nothing to say <──────────┘
//! ```
//! Both halves go on by themselves: while a client takes nothing, what it sends and its end are still seen.
//! # Invariants
//! A client has [`OUTSTANDING`] requests going on at most, and as many bytes in them as one message may have;
//! then nothing more is read. A message has to come in time, as bodies of requests do. A client that may do
//! nothing before it has said who it is has [`crate::Limits::login_timeout`] and [`LOGIN_BYTES_MAX`] for
//! that.

use super::access::Access;
use super::answer::{MALFORMED, Reply, Trouble, UNREADABLE};
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

/// Requests of a connection that are going on at a time.
const OUTSTANDING: u32 = 256;
/// Messages on their way to a client.
const OUTGOING: usize = 16;
/// How long there is nothing to say before a ping. One to a machine that is gone shows that it is.
const PING_AFTER: Duration = Duration::from_secs(30);
/// How often a connection is looked at that brings nothing.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Longer messages are read on a thread that may take its time.
const READ_HERE_BYTES_MAX: usize = 64 << 10;
/// What buffers of a connection begin with.
const BUFFER_BYTES: usize = 16 << 10;
/// What a client may send before it has said who it is, where it may do nothing without.
const LOGIN_BYTES_MAX: u64 = 64 << 10;
/// The head of a short frame with its mask.
const FRAME_HEAD_BYTES: u64 = 6;

/// Talks to a client until one of both ends it.
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
        // The answer to the client's last frame, if that was it; the end of the connection.
        let _ = sink.close().await;
    };
    let complete = received.bytes().saturating_sub(begin.len() as u64);
    if access.needs_login() {
        received.limit(Some(complete + LOGIN_BYTES_MAX));
    }
    received.begin(complete, state.bodies.hold());
    let connection = Connection::new(Arc::clone(&state), access, Arc::clone(&received));
    let reading = Reading {
        connection: Arc::clone(&connection),
        room: Arc::new(Semaphore::new(OUTSTANDING as usize)),
        host,
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
            // Tasks hold ends of the channel.
            _end.0.end();
            write.await;
        }
    }
}

/// Ends what a connection has going on, however it ends.
struct EndOnDrop(Arc<Connection>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The half that reads.
struct Reading {
    state: Arc<State>,
    connection: Arc<Connection>,
    room: Arc<Semaphore>,
    host: Arc<str>,
    /// Bytes that have come.
    received: Arc<Received>,
    stopped: watch::Receiver<bool>,
}

/// Why the server ends a connection, in its last frame.
type Last = (CloseCode, &'static str);

const FULL: Last = (CloseCode::Again, "the messages of others take all the memory for them");
const TOO_MUCH: Last = (CloseCode::Policy, "too much has come before the login");

impl Reading {
    /// Reads messages until the end; what to say there, if the client has not ended it.
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
            let mut reply = Reply::new(&self.state, out.clone(), &self.host, is_text);
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

    /// The next message; else how it ends.
    async fn next(
        &mut self,
        stream: &mut (impl Stream<Item = Result<Message, Error>> + Unpin),
    ) -> Result<Message, Option<Last>> {
        let limits = self.state.options.limits.clone();
        let begin = Instant::now();
        // Since when bytes have come that are no message yet.
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
                        return Err(Some((CloseCode::Away, "nothing has come for too long")));
                    }
                    continue;
                }
                let since = *partial_since.get_or_insert_with(Instant::now);
                let earned = Duration::from_secs(partial / BODY_BYTES_PER_SECOND_MIN);
                if since.elapsed() > limits.body_timeout + earned {
                    return Err(Some((CloseCode::Policy, "a message came too slowly")));
                }
                continue;
            };
            return match next {
                Some(Ok(message)) => Ok(message),
                Some(Err(Error::Capacity(_))) => Err(Some((CloseCode::Size, "the message is too long"))),
                Some(Err(Error::Protocol(_))) => Err(Some((CloseCode::Protocol, "this is no frame"))),
                Some(Err(Error::Utf8(_))) => Err(Some((CloseCode::Invalid, "the text is not UTF-8"))),
                Some(Err(_)) | None => Err(None),
            };
        }
    }

    fn is_idle(&self) -> bool {
        self.room.available_permits() == OUTSTANDING as usize
    }

    /// The share of a request in what may be going on; `None`: the server ends.
    async fn share(&mut self, length: usize) -> Option<OwnedSemaphorePermit> {
        let most = self.state.options.limits.text_bytes.max(1);
        let part = length.saturating_mul(OUTSTANDING as usize) / most;
        let share = u32::try_from(part).unwrap_or(OUTSTANDING).clamp(1, OUTSTANDING);
        tokio::select! {
            share = Arc::clone(&self.room).acquire_many_owned(share) => share.ok(),
            () = stop(&mut self.stopped) => None,
        }
    }

    /// The server ends: what is going on is finished first, if the server has the patience.
    async fn away(&mut self) -> Option<Last> {
        self.connection.let_go();
        let _ = self.room.acquire_many(OUTSTANDING).await;
        Some((CloseCode::Away, "the server is ending"))
    }

    /// Reads a request; the format to answer in.
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
    // What cannot be told apart is answered in a format that people read.
    let format = Format::split_frame(bytes).map_or(Format::GraphSon3, |(format, _)| format);
    (format, Request::read_frame(bytes, limits).map(|(_, request)| request))
}

/// Waits until the server has other users: the role of one of before is unchecked now.
async fn other_users(state: &State, settings: &mut watch::Receiver<Settings>) {
    let has_ended = settings.wait_for(|settings| !state.users.are_same(&settings.state.users)).await.is_err();
    if has_ended {
        // The server ends, of which others tell.
        std::future::pending::<()>().await;
    }
}

/// Waits until the server is to end.
async fn stop(stopped: &mut watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

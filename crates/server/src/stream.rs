//! Result streaming from the worker thread to the connection.
//!
//! # Shape
//! ```text
//! thread of the query                                       task of the connection
//! result writer -> Sink: the first HELD_BYTES ─ all of it ─> a response with Content-Length
//!                        └ more: encoder -> Channel ─ CHUNKS ─> Chunks, a chunked body
//! ```
//! The channel is short, so a slow client slows the query down (back-pressure). A client that reads nothing
//! for the write timeout ends the query, and so does a client that has not read the result by the deadline
//! ([`Patience`]): until then the producer occupies its permit, its thread and its memory.
//! # Invariants
//! [`Chunks`] only ends successfully after [`Chunk::End`], which is sent after everything else has succeeded.

use crate::encoding::Encoding;
use crate::reply::Broken;
use crate::state::CancelOnDrop;
use bytes::Bytes;
use std::io::{self, Write};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use vervet::CancelToken;

/// The number of bytes held before a result counts as long.
pub(crate) const HELD_BYTES: usize = 64 << 10;

/// Chunks in the channel.
const CHUNKS: usize = 4;

/// The minimum bytes of a chunk, except the last.
const CHUNK_BYTES: usize = 32 << 10;

/// Shorter responses are not worth compressing.
const COMPRESSED_FROM_BYTES: usize = 1 << 10;

/// A message of the channel.
pub(crate) enum Chunk {
    Data(Bytes),
    End,
}

/// The beginning of a result, as sent to the connection.
pub(crate) enum Start {
    /// The complete result and its encoding.
    Whole(Vec<u8>, Encoding),
    /// A result too long to be held.
    Stream(mpsc::Receiver<Chunk>, Encoding),
}

/// How often a blocked sender looks at its cancellation.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Time limits for a client to read a response.
#[derive(Clone, Debug)]
pub(crate) struct Patience {
    /// The longest time without reading anything.
    pub(crate) write_timeout: Duration,
    /// When the client must have read all but the contents of fixed-size buffers.
    pub(crate) deadline: Instant,
    /// Cancellation by the client or by an operator.
    pub(crate) cancel: CancelToken,
}

/// Why a message was not sent.
#[derive(Debug)]
pub(crate) enum Unsent {
    /// The client is gone.
    Gone,
    /// The client does not read.
    Slow,
    Cancelled,
}

/// Sends a message from a thread that may block, while there is no room for `timeout` at most.
///
/// # Errors
/// See [`Unsent`]. Cancellation is noticed within [`LOOK_EVERY`].
pub(crate) fn send<T>(
    sender: &mpsc::Sender<T>,
    message: T,
    timeout: Duration,
    cancel: &CancelToken,
) -> Result<(), Unsent> {
    let message = match sender.try_send(message) {
        Ok(()) => return Ok(()),
        Err(mpsc::error::TrySendError::Full(message)) => message,
        Err(mpsc::error::TrySendError::Closed(_)) => return Err(Unsent::Gone),
    };
    let begin = Instant::now();
    Handle::current().block_on(async {
        loop {
            let left = timeout.saturating_sub(begin.elapsed());
            match tokio::time::timeout(left.min(LOOK_EVERY), sender.reserve()).await {
                Ok(Ok(room)) => {
                    room.send(message);
                    return Ok(());
                }
                Ok(Err(_)) => return Err(Unsent::Gone),
                Err(_) if cancel.is_cancelled() => return Err(Unsent::Cancelled),
                Err(_) if left.is_zero() => return Err(Unsent::Slow),
                Err(_) => {}
            }
        }
    })
}

/// Builds the message to the connection from the beginning of a result.
type Teller<T> = Box<dyn FnOnce(Start) -> T + Send>;

/// Receives the bytes of a result.
pub(crate) struct Sink<T> {
    held: Vec<u8>,
    encoding: Encoding,
    patience: Patience,
    /// Set until the beginning is known; builds and sends the message to the connection.
    start: Option<(oneshot::Sender<T>, Teller<T>)>,
    out: Option<Encoder>,
}

impl<T> Sink<T> {
    /// `tell` builds the message that is sent to `start`.
    pub(crate) fn new(
        start: oneshot::Sender<T>,
        tell: impl FnOnce(Start) -> T + Send + 'static,
        encoding: Encoding,
        patience: Patience,
    ) -> Self {
        let start = Some((start, Box::new(tell) as Teller<T>));
        Self { held: Vec::new(), encoding, patience, start, out: None }
    }

    fn tell(&mut self, start: Start) {
        if let Some((sender, tell)) = self.start.take() {
            // If the receiver is gone, sending the next chunk fails.
            let _ = sender.send(tell(start));
        }
    }

    /// Ends the result; returns whether it was sent as a whole.
    pub(crate) fn finish(mut self) -> io::Result<bool> {
        if let Some(out) = self.out.take() {
            let mut channel = out.finish()?;
            channel.hand_on()?;
            channel.send(Chunk::End)?;
            return Ok(false);
        }
        let held = std::mem::take(&mut self.held);
        if held.len() < COMPRESSED_FROM_BYTES || self.encoding == Encoding::Identity {
            self.tell(Start::Whole(held, Encoding::Identity));
        } else {
            let compressed = self.encoding.compress(&held)?;
            let encoding = self.encoding;
            self.tell(Start::Whole(compressed, encoding));
        }
        Ok(true)
    }

    /// Abandons a failed result; returns the sender for the error, if nothing has been sent.
    pub(crate) fn fail(mut self) -> Option<oneshot::Sender<T>> {
        self.start.take().map(|(sender, _)| sender)
    }
}

impl<T> Write for Sink<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(out) = &mut self.out {
            out.write_all(bytes)?;
            return Ok(bytes.len());
        }
        self.held.extend_from_slice(bytes);
        if self.held.len() > HELD_BYTES {
            let (sender, receiver) = mpsc::channel(CHUNKS);
            let channel = Channel { sender, held: Vec::new(), patience: self.patience.clone() };
            let mut out = Encoder::new(self.encoding, channel)?;
            let encoding = self.encoding;
            self.tell(Start::Stream(receiver, encoding));
            out.write_all(&std::mem::take(&mut self.held))?;
            self.out = Some(out);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

enum Encoder {
    Identity(Channel),
    Gzip(Box<flate2::write::GzEncoder<Channel>>),
    Zstd(Box<zstd::stream::write::Encoder<'static, Channel>>),
}

impl Encoder {
    fn new(encoding: Encoding, channel: Channel) -> io::Result<Self> {
        Ok(match encoding {
            Encoding::Identity => Self::Identity(channel),
            Encoding::Gzip => Self::Gzip(Box::new(crate::encoding::gzip(channel))),
            Encoding::Zstd => Self::Zstd(Box::new(crate::encoding::zstd(channel)?)),
        })
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Identity(channel) => channel.write_all(bytes),
            Self::Gzip(encoder) => encoder.write_all(bytes),
            Self::Zstd(encoder) => encoder.write_all(bytes),
        }
    }

    fn finish(self) -> io::Result<Channel> {
        match self {
            Self::Identity(channel) => Ok(channel),
            Self::Gzip(encoder) => encoder.finish(),
            Self::Zstd(encoder) => encoder.finish(),
        }
    }
}

struct Channel {
    sender: mpsc::Sender<Chunk>,
    held: Vec<u8>,
    patience: Patience,
}

impl Channel {
    fn hand_on(&mut self) -> io::Result<()> {
        if self.held.is_empty() {
            return Ok(());
        }
        let held = std::mem::replace(&mut self.held, Vec::with_capacity(CHUNK_BYTES));
        self.send(Chunk::Data(held.into()))
    }

    fn send(&self, chunk: Chunk) -> io::Result<()> {
        let Patience { write_timeout, deadline, cancel } = &self.patience;
        let timeout = deadline.saturating_duration_since(Instant::now()).min(*write_timeout);
        send(&self.sender, chunk, timeout, cancel).map_err(|unsent| match unsent {
            Unsent::Gone => io::Error::new(io::ErrorKind::BrokenPipe, "the client is gone"),
            Unsent::Slow => io::Error::new(io::ErrorKind::TimedOut, "the client reads too slowly"),
            Unsent::Cancelled => io::Error::new(io::ErrorKind::BrokenPipe, "the request was cancelled"),
        })
    }
}

impl Write for Channel {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.held.extend_from_slice(bytes);
        if self.held.len() >= CHUNK_BYTES {
            self.hand_on()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The rest of a result, as a body; dropping it cancels the query.
pub(crate) struct Chunks {
    pub(crate) receiver: mpsc::Receiver<Chunk>,
    pub(crate) ended: bool,
    pub(crate) cancel: CancelOnDrop,
}

impl Chunks {
    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let next = match ready!(self.receiver.poll_recv(context)) {
            Some(Chunk::Data(bytes)) => Some(Ok(bytes)),
            Some(Chunk::End) => None,
            None => Some(Err(Broken)),
        };
        self.ended = !matches!(next, Some(Ok(_)));
        if self.ended {
            self.cancel.disarm();
        }
        Poll::Ready(next)
    }
}

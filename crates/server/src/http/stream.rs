//! Result streaming from the worker thread to the connection.
//!
//! # Shape
//! ```text
//! thread of the query                                       task of the connection
//! result writer -> ResponseWriter: complete result ────────> a response with Content-Length
//!                        └ longer: encoder -> ChunkWriter ─> ChunkStream, a chunked body
//! ```
//! The channel is short, so a slow client slows the query down (back-pressure). A client that reads nothing
//! for the write timeout ends the query, and so does a client that has not read the result by the deadline
//! ([`SendLimits`]): until then the producer occupies its permit, its thread and its memory.
//! # Invariants
//! A body only ends successfully after [`Chunk::End`], which is sent after everything else has succeeded.

use crate::http::chunks::Chunk;
use crate::http::encoding::Encoding;
use std::io::{self, Write};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use vervet::CancelToken;

/// The number of bytes held before a result counts as long.
pub(crate) const BUFFERED_BYTES_MAX: usize = 64 << 10;

/// ChunkStream in the channel.
pub(crate) const CHUNKS: usize = 4;

/// The minimum bytes of a chunk, except the last.
const CHUNK_BYTES: usize = 32 << 10;

/// Shorter responses are not worth compressing.
const COMPRESSED_FROM_BYTES: usize = 1 << 10;

/// The beginning of a result, as sent to the connection.
pub(crate) enum ResultStart {
    /// The complete result and its encoding.
    Full(Vec<u8>, Encoding),
    /// A result too long to be held.
    Stream(mpsc::Receiver<Chunk>, Encoding),
}

/// How often a blocked sender looks at its cancellation.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Time limits for a client to read a response.
#[derive(Clone, Debug)]
pub(crate) struct SendLimits {
    /// The longest time without reading anything.
    pub(crate) write_timeout: Duration,
    /// When the client must have read all but the contents of fixed-size buffers.
    pub(crate) deadline: Instant,
    /// Cancellation by the client or by an operator.
    pub(crate) cancel: CancelToken,
}

/// Why a message was not sent.
#[derive(Debug)]
pub(crate) enum SendError {
    /// The client is gone.
    Disconnected,
    /// The client does not read.
    Timeout,
    Cancelled,
}

/// Sends a message from a thread that may block, while there is no room for `timeout` at most.
///
/// # Errors
/// See [`SendError`]. Cancellation is noticed within [`POLL_INTERVAL`].
pub(crate) fn send<T>(
    sender: &mpsc::Sender<T>,
    message: T,
    timeout: Duration,
    cancel: &CancelToken,
) -> Result<(), SendError> {
    let message = match sender.try_send(message) {
        Ok(()) => return Ok(()),
        Err(mpsc::error::TrySendError::Full(message)) => message,
        Err(mpsc::error::TrySendError::Closed(_)) => return Err(SendError::Disconnected),
    };
    let begin = Instant::now();
    Handle::current().block_on(async {
        loop {
            let left = timeout.saturating_sub(begin.elapsed());
            match tokio::time::timeout(left.min(POLL_INTERVAL), sender.reserve()).await {
                Ok(Ok(room)) => {
                    room.send(message);
                    return Ok(());
                }
                Ok(Err(_)) => return Err(SendError::Disconnected),
                Err(_) if cancel.is_cancelled() => return Err(SendError::Cancelled),
                Err(_) if left.is_zero() => return Err(SendError::Timeout),
                Err(_) => {}
            }
        }
    })
}

/// Builds the message to the connection from the beginning of a result.
type MessageBuilder<T> = Box<dyn FnOnce(ResultStart) -> T + Send>;

/// Receives the bytes of a result.
pub(crate) struct ResponseWriter<T> {
    buffer: Vec<u8>,
    encoding: Encoding,
    limits: SendLimits,
    /// Set until the beginning is known; builds and sends the message to the connection.
    start: Option<(oneshot::Sender<T>, MessageBuilder<T>)>,
    out: Option<Encoder>,
}

impl<T> ResponseWriter<T> {
    /// `tell` builds the message that is sent to `start`.
    pub(crate) fn new(
        start: oneshot::Sender<T>,
        send_start: impl FnOnce(ResultStart) -> T + Send + 'static,
        encoding: Encoding,
        limits: SendLimits,
    ) -> Self {
        let start = Some((start, Box::new(send_start) as MessageBuilder<T>));
        Self { buffer: Vec::new(), encoding, limits, start, out: None }
    }

    fn send_start(&mut self, start: ResultStart) {
        if let Some((sender, send_start)) = self.start.take() {
            // If the receiver is gone, sending the next chunk fails.
            let _ = sender.send(send_start(start));
        }
    }

    /// Ends the result; returns whether it was sent as a whole.
    pub(crate) fn finish(mut self) -> io::Result<bool> {
        if let Some(out) = self.out.take() {
            let mut writer = out.finish()?;
            writer.send_buffer()?;
            writer.send(Chunk::End)?;
            return Ok(false);
        }
        let buffer = std::mem::take(&mut self.buffer);
        if buffer.len() < COMPRESSED_FROM_BYTES || self.encoding == Encoding::Identity {
            self.send_start(ResultStart::Full(buffer, Encoding::Identity));
        } else {
            let compressed = self.encoding.compress(&buffer)?;
            let encoding = self.encoding;
            self.send_start(ResultStart::Full(compressed, encoding));
        }
        Ok(true)
    }

    /// Abandons a failed result; returns the sender for the error, if nothing has been sent.
    pub(crate) fn fail(mut self) -> Option<oneshot::Sender<T>> {
        self.start.take().map(|(sender, _)| sender)
    }
}

impl<T> Write for ResponseWriter<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(out) = &mut self.out {
            out.write_all(bytes)?;
            return Ok(bytes.len());
        }
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() > BUFFERED_BYTES_MAX {
            let (sender, receiver) = mpsc::channel(CHUNKS);
            let writer = ChunkWriter::new(sender, self.limits.clone());
            let mut out = Encoder::new(self.encoding, writer)?;
            let encoding = self.encoding;
            self.send_start(ResultStart::Stream(receiver, encoding));
            out.write_all(&std::mem::take(&mut self.buffer))?;
            self.out = Some(out);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

enum Encoder {
    Identity(ChunkWriter),
    Gzip(Box<flate2::write::GzEncoder<ChunkWriter>>),
    Zstd(Box<zstd::stream::write::Encoder<'static, ChunkWriter>>),
}

impl Encoder {
    fn new(encoding: Encoding, writer: ChunkWriter) -> io::Result<Self> {
        Ok(match encoding {
            Encoding::Identity => Self::Identity(writer),
            Encoding::Gzip => Self::Gzip(Box::new(crate::http::encoding::gzip(writer))),
            Encoding::Zstd => Self::Zstd(Box::new(crate::http::encoding::zstd(writer)?)),
        })
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Identity(writer) => writer.write_all(bytes),
            Self::Gzip(encoder) => encoder.write_all(bytes),
            Self::Zstd(encoder) => encoder.write_all(bytes),
        }
    }

    fn finish(self) -> io::Result<ChunkWriter> {
        match self {
            Self::Identity(writer) => Ok(writer),
            Self::Gzip(encoder) => encoder.finish(),
            Self::Zstd(encoder) => encoder.finish(),
        }
    }
}

/// Sends bytes in chunks.
pub(crate) struct ChunkWriter {
    sender: mpsc::Sender<Chunk>,
    buffer: Vec<u8>,
    limits: SendLimits,
}

impl ChunkWriter {
    pub(crate) fn new(sender: mpsc::Sender<Chunk>, limits: SendLimits) -> Self {
        Self { sender, buffer: Vec::new(), limits }
    }

    fn send_buffer(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let buffer = std::mem::replace(&mut self.buffer, Vec::with_capacity(CHUNK_BYTES));
        self.send(Chunk::Data(buffer.into()))
    }

    fn send(&self, chunk: Chunk) -> io::Result<()> {
        let SendLimits { write_timeout, deadline, cancel } = &self.limits;
        let timeout = deadline.saturating_duration_since(Instant::now()).min(*write_timeout);
        send(&self.sender, chunk, timeout, cancel).map_err(|error| match error {
            SendError::Disconnected => io::Error::new(io::ErrorKind::BrokenPipe, "the client is gone"),
            SendError::Timeout => io::Error::new(io::ErrorKind::TimedOut, "the client reads too slowly"),
            SendError::Cancelled => io::Error::new(io::ErrorKind::BrokenPipe, "the request was cancelled"),
        })
    }
}

impl Write for ChunkWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= CHUNK_BYTES {
            self.send_buffer()?;
        }
        Ok(bytes.len())
    }

    /// Sends what is left. Encoders call it only at their end.
    fn flush(&mut self) -> io::Result<()> {
        self.send_buffer()
    }
}

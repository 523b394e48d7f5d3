//! A connection, plain or with TLS, with a write timeout.

use crate::network::body_memory::BodyReservation;
use crate::options::BODY_BYTES_PER_SECOND_MIN;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};
use tokio_rustls::server::TlsStream;

/// See the header of this file.
pub(crate) struct TimedStream {
    stream: Transport,
    write_timeout: Duration,
    received: Arc<ReceivedBytes>,
    /// When the client first left data unread, and how many bytes it has read since.
    unread_since: Option<(Instant, u64)>,
    /// The timer of a blocked write.
    write_timer: Option<Pin<Box<Sleep>>>,
}

/// The number of bytes that a connection has received, also accessible after the connection was moved.
#[derive(Debug)]
pub(crate) struct ReceivedBytes {
    bytes: AtomicU64,
    /// Reading fails beyond this count.
    bytes_max: AtomicU64,
    /// The number of bytes in complete messages.
    complete: AtomicU64,
    /// The memory of the incomplete message of a WebSocket.
    partial_reservation: Mutex<Option<BodyReservation>>,
    /// Set when there was no memory for more.
    is_out_of_memory: AtomicBool,
}

/// An incomplete message up to this length is not charged to [`crate::Limits::bodies_bytes`].
const PARTIAL_BYTES_FREE: u64 = 64 << 10;

// Relaxed everywhere: the values are polled, and carry no other data.
impl ReceivedBytes {
    fn new() -> Self {
        Self {
            bytes: AtomicU64::new(0),
            bytes_max: AtomicU64::new(u64::MAX),
            complete: AtomicU64::new(0),
            partial_reservation: Mutex::default(),
            is_out_of_memory: AtomicBool::new(false),
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Sets the maximum number of bytes to receive; `None`: unlimited.
    pub(crate) fn limit(&self, bytes_max: Option<u64>) {
        self.bytes_max.store(bytes_max.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(crate) fn exceeds_limit(&self) -> bool {
        self.bytes() > self.bytes_max.load(Ordering::Relaxed)
    }

    /// Whether reading failed for lack of memory.
    pub(crate) fn is_out_of_memory(&self) -> bool {
        self.is_out_of_memory.load(Ordering::Relaxed)
    }

    /// Charges incomplete messages to `next` from now on; `complete` bytes are already complete.
    pub(crate) fn begin(&self, complete: u64, next: BodyReservation) {
        self.complete.store(complete, Ordering::Relaxed);
        *self.partial_reservation() = Some(next);
    }

    /// Counts further bytes as complete that are not part of a message.
    pub(crate) fn skip(&self, bytes: u64) {
        self.complete.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The bytes of the incomplete message.
    pub(crate) fn partial(&self) -> u64 {
        self.bytes().saturating_sub(self.complete.load(Ordering::Relaxed))
    }

    /// Marks all received bytes as complete; returns their memory, and charges the rest to `next`.
    pub(crate) fn completed(&self, next: BodyReservation) -> Option<BodyReservation> {
        self.complete.store(self.bytes(), Ordering::Relaxed);
        self.partial_reservation().replace(next)
    }

    fn partial_reservation(&self) -> MutexGuard<'_, Option<BodyReservation>> {
        self.partial_reservation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// # Errors
    /// More bytes than allowed.
    fn add(&self, bytes: usize) -> io::Result<()> {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        if self.exceeds_limit() {
            return Err(io::Error::other("more bytes than allowed so far"));
        }
        let partial = self.partial();
        if partial > PARTIAL_BYTES_FREE
            && let Some(partial_reservation) = &mut *self.partial_reservation()
            && !partial_reservation.grow(usize::try_from(partial).unwrap_or(usize::MAX))
        {
            self.is_out_of_memory.store(true, Ordering::Relaxed);
            return Err(io::Error::other("the memory for messages is exhausted"));
        }
        Ok(())
    }
}

enum Transport {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl TimedStream {
    pub(crate) fn plain(stream: TcpStream, write_timeout: Duration) -> Self {
        Self::new(Transport::Plain(stream), write_timeout)
    }

    pub(crate) fn tls(stream: TlsStream<TcpStream>, write_timeout: Duration) -> Self {
        Self::new(Transport::Tls(Box::new(stream)), write_timeout)
    }

    fn new(stream: Transport, write_timeout: Duration) -> Self {
        Self {
            stream,
            write_timeout,
            received: Arc::new(ReceivedBytes::new()),
            unread_since: None,
            write_timer: None,
        }
    }

    /// Resets the connection when it is dropped: the client sees that it did not end in order.
    pub(crate) fn reset_on_close(&self) {
        let stream = match &self.stream {
            Transport::Plain(stream) => stream,
            Transport::Tls(stream) => stream.get_ref().0,
        };
        let _ = stream.set_zero_linger();
    }

    /// Its received-byte counters.
    pub(crate) fn received(&self) -> Arc<ReceivedBytes> {
        Arc::clone(&self.received)
    }

    /// The outcome of a write attempt, or a timeout.
    fn with_write_timeout<T>(
        &mut self,
        context: &mut Context<'_>,
        attempt: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if attempt.is_ready() {
            self.write_timer = None;
            return if self.reads_too_slowly() { Poll::Ready(Err(write_timeout_error())) } else { attempt };
        }
        let deadline = Instant::now() + self.write_timeout;
        let write_timer =
            self.write_timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        match write_timer.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(write_timeout_error())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl TimedStream {
    /// Counts the bytes that a write has accepted.
    fn record_write(&mut self, attempt: &Poll<io::Result<usize>>) {
        let (_, bytes) = self.unread_since.get_or_insert_with(|| (Instant::now(), 0));
        if let Poll::Ready(Ok(written)) = attempt {
            *bytes += *written as u64;
        }
    }

    /// Whether the client reads more slowly than the minimum rate of bodies.
    fn reads_too_slowly(&self) -> bool {
        let Some((since, bytes)) = self.unread_since else { return false };
        since.elapsed() > self.write_timeout + Duration::from_secs(bytes / BODY_BYTES_PER_SECOND_MIN)
    }
}

fn write_timeout_error() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the client reads too slowly")
}

impl AsyncRead for TimedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let attempt = match &mut self.stream {
            Transport::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Transport::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        };
        if let Err(error) = self.received.add(buffer.filled().len() - before) {
            return Poll::Ready(Err(error));
        }
        attempt
    }
}

impl AsyncWrite for TimedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let attempt = match &mut self.stream {
            Transport::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Transport::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        };
        self.record_write(&attempt);
        self.with_write_timeout(context, attempt)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let attempt = match &mut self.stream {
            Transport::Plain(stream) => Pin::new(stream).poll_write_vectored(context, bytes),
            Transport::Tls(stream) => Pin::new(stream).poll_write_vectored(context, bytes),
        };
        self.record_write(&attempt);
        self.with_write_timeout(context, attempt)
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            Transport::Plain(stream) => stream.is_write_vectored(),
            Transport::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let attempt = match &mut self.stream {
            Transport::Plain(stream) => Pin::new(stream).poll_flush(context),
            Transport::Tls(stream) => Pin::new(stream).poll_flush(context),
        };
        if attempt.is_ready() {
            self.unread_since = None;
        }
        self.with_write_timeout(context, attempt)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let attempt = match &mut self.stream {
            Transport::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Transport::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        };
        self.with_write_timeout(context, attempt)
    }
}

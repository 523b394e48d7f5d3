//! A connection, plain or with TLS, that gives up on a client which takes nothing.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};
use tokio_rustls::server::TlsStream;

/// See the header of this file.
pub(crate) struct Wire {
    stream: Stream,
    write_timeout: Duration,
    received: Arc<Received>,
    /// Runs while a write waits.
    stuck: Option<Pin<Box<Sleep>>>,
}

/// The bytes that a connection has received, counted also where the connection has gone elsewhere.
#[derive(Debug)]
pub(crate) struct Received {
    bytes: AtomicU64,
    /// Reading fails from this count on.
    bytes_max: AtomicU64,
}

// Relaxed everywhere: both are looked at now and then, and carry no other data.
impl Received {
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Lets the connection receive so many bytes in all; `None`: without an end.
    pub(crate) fn limit(&self, bytes_max: Option<u64>) {
        self.bytes_max.store(bytes_max.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(crate) fn is_too_much(&self) -> bool {
        self.bytes() > self.bytes_max.load(Ordering::Relaxed)
    }
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Wire {
    pub(crate) fn plain(stream: TcpStream, write_timeout: Duration) -> Self {
        Self::new(Stream::Plain(stream), write_timeout)
    }

    pub(crate) fn tls(stream: TlsStream<TcpStream>, write_timeout: Duration) -> Self {
        Self::new(Stream::Tls(Box::new(stream)), write_timeout)
    }

    fn new(stream: Stream, write_timeout: Duration) -> Self {
        let received = Arc::new(Received { bytes: AtomicU64::new(0), bytes_max: AtomicU64::new(u64::MAX) });
        Self { stream, write_timeout, received, stuck: None }
    }

    /// What it has received.
    pub(crate) fn received(&self) -> Arc<Received> {
        Arc::clone(&self.received)
    }

    /// The outcome of an attempt to write, or the end of patience.
    fn patiently<T>(
        &mut self,
        context: &mut Context<'_>,
        attempt: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if attempt.is_ready() {
            self.stuck = None;
            return attempt;
        }
        let deadline = Instant::now() + self.write_timeout;
        let stuck = self.stuck.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        match stuck.as_mut().poll(context) {
            Poll::Ready(()) => {
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client takes nothing")))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let attempt = match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Stream::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        };
        self.received.bytes.fetch_add((buffer.filled().len() - before) as u64, Ordering::Relaxed);
        if self.received.is_too_much() {
            return Poll::Ready(Err(io::Error::other("more has come than may come by now")));
        }
        attempt
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let attempt = match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Stream::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        };
        self.patiently(context, attempt)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let attempt = match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write_vectored(context, bytes),
            Stream::Tls(stream) => Pin::new(stream).poll_write_vectored(context, bytes),
        };
        self.patiently(context, attempt)
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            Stream::Plain(stream) => stream.is_write_vectored(),
            Stream::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let attempt = match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(context),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(context),
        };
        self.patiently(context, attempt)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let attempt = match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        };
        self.patiently(context, attempt)
    }
}

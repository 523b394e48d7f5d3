//! Frames over a TLS connection on a blocking socket.
//!
//! # Waiting
//! Before each wait for the socket the caller is asked whether and how long to wait; a read or write that
//! ends without bytes keeps its partial state in the TLS connection, so it continues where it was.

use crate::frame::{FRAME_TIMEOUT, FrameKind, HEADER_BYTES, header, parse_header};
use rustls::Connection;
use std::io::{self, BufRead, ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};
use vervet_model::Error;

/// Bytes that one read of the socket takes. rustls alone reads 4 KiB at a time.
const INPUT_BYTES: usize = 32 << 10;

/// Memory for the body of a frame grows by doubling from here, as bytes arrive.
const BODY_BYTES_FIRST: usize = 64 << 10;

/// Why a connection cannot be used any more.
pub(crate) enum StreamError {
    /// The other end closed it.
    Closed,
    /// The other end sent bytes that are not of this protocol.
    Malformed(String),
    /// The other end's, or our own, refusal within TLS.
    Tls(rustls::Error),
    Io(io::Error),
    /// The caller does not wait longer.
    Ended(Error),
}

/// What the caller is asked before a wait.
pub(crate) struct Silence {
    /// How long no byte has come or gone.
    pub(crate) lasted: Duration,
    /// Part of a frame has been read or written.
    pub(crate) is_inside_frame: bool,
}

/// How long the next wait may take, or the error that ends it.
pub(crate) type Wait<'a> = &'a mut dyn FnMut(&Silence) -> Result<Duration, Error>;

pub(crate) struct FrameStream {
    socket: Arc<TcpStream>,
    tls: Connection,
    input: Input,
    /// The timeouts of the socket as they are set.
    read_timeout: Option<Duration>,
    write_timeout: Option<Duration>,
}

/// Bytes from the socket that TLS has not taken.
struct Input {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
}

/// [`Input`] as a reader.
struct InputReader<'a> {
    input: &'a mut Input,
    socket: &'a TcpStream,
}

impl Read for InputReader<'_> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let input = &mut *self.input;
        if input.start == input.end {
            (input.start, input.end) = (0, 0);
            input.end = self.socket.read(&mut input.bytes)?;
        }
        let count = target.len().min(input.end - input.start);
        target[..count].copy_from_slice(&input.bytes[input.start..input.start + count]);
        input.start += count;
        Ok(count)
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// The time since the last byte, for the caller. It reads the clock only from the second wait on.
struct Waiting {
    since: Option<Instant>,
    is_inside_frame: bool,
}

impl Waiting {
    fn new(is_inside_frame: bool) -> Self {
        Self { since: None, is_inside_frame }
    }

    fn ask(&mut self, wait: Wait<'_>) -> Result<Duration, StreamError> {
        let lasted = self.since.map_or(Duration::ZERO, |since| since.elapsed());
        let slice = wait(&Silence { lasted, is_inside_frame: self.is_inside_frame });
        self.since.get_or_insert_with(Instant::now);
        slice.map_err(StreamError::Ended)
    }
}

impl FrameStream {
    pub(crate) fn new(socket: Arc<TcpStream>, tls: Connection) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        let input = Input { bytes: vec![0; INPUT_BYTES].into_boxed_slice(), start: 0, end: 0 };
        Ok(Self { socket, tls, input, read_timeout: None, write_timeout: None })
    }

    /// The certificate of the other end.
    pub(crate) fn certificate(&self) -> Option<&rustls::pki_types::CertificateDer<'static>> {
        self.tls.peer_certificates()?.first()
    }

    /// The handshake of TLS. Between TLS 1.3 ends the client has then not seen whether it was accepted.
    pub(crate) fn handshake(&mut self, wait: Wait<'_>) -> Result<(), StreamError> {
        while self.tls.is_handshaking() {
            self.flush(true, wait)?;
            if self.tls.is_handshaking() {
                self.receive(true, wait)?;
            }
        }
        self.flush(true, wait)
    }

    /// Writes a frame of a body in two parts.
    pub(crate) fn write_frame(
        &mut self,
        kind: FrameKind,
        body: [&[u8]; 2],
        wait: Wait<'_>,
    ) -> Result<(), StreamError> {
        let header = header(kind, body[0].len() + body[1].len());
        let mut prefix = [0; HEADER_BYTES + 8];
        let parts: [&[u8]; 2] = match prefix.get_mut(..HEADER_BYTES + body[0].len()) {
            Some(prefix) => {
                prefix[..HEADER_BYTES].copy_from_slice(&header);
                prefix[HEADER_BYTES..].copy_from_slice(body[0]);
                [prefix, body[1]]
            }
            None => {
                self.write_all([&header, body[0]], wait)?;
                [body[1], &[]]
            }
        };
        self.write_all(parts, wait)
    }

    /// Writes bytes that need not be a frame.
    pub(crate) fn write_all(&mut self, mut parts: [&[u8]; 2], wait: Wait<'_>) -> Result<(), StreamError> {
        while !(parts[0].is_empty() && parts[1].is_empty()) {
            let slices = [IoSlice::new(parts[0]), IoSlice::new(parts[1])];
            let count = self.tls.writer().write_vectored(&slices).map_err(StreamError::Io)?;
            if count == 0 {
                return Err(StreamError::Closed);
            }
            let first = count.min(parts[0].len());
            parts[0] = &parts[0][first..];
            parts[1] = &parts[1][count - first..];
            self.flush(true, wait)?;
        }
        Ok(())
    }

    fn flush(&mut self, is_inside_frame: bool, wait: Wait<'_>) -> Result<(), StreamError> {
        let mut waiting = Waiting::new(is_inside_frame);
        while self.tls.wants_write() {
            let slice = waiting.ask(wait)?;
            if self.write_timeout != Some(slice) {
                self.socket.set_write_timeout(Some(slice)).map_err(StreamError::Io)?;
                self.write_timeout = Some(slice);
            }
            match self.tls.write_tls(&mut &*self.socket) {
                Ok(0) => return Err(StreamError::Closed),
                Ok(_) => waiting.since = None,
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(StreamError::Io(error)),
            }
        }
        Ok(())
    }

    /// Reads a frame; `body` has room for it only as far as bytes have come.
    pub(crate) fn read_frame(
        &mut self,
        body: &mut Vec<u8>,
        wait: Wait<'_>,
    ) -> Result<FrameKind, StreamError> {
        body.clear();
        let mut header = [0; HEADER_BYTES];
        let mut header_filled = 0;
        let mut expected: Option<(FrameKind, usize)> = None;
        let mut begun: Option<Instant> = None;
        loop {
            loop {
                let mut reader = self.tls.reader();
                let chunk = match reader.fill_buf() {
                    Ok([]) => return Err(StreamError::Closed),
                    Ok(chunk) => chunk,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                        return Err(StreamError::Closed);
                    }
                    Err(error) => return Err(StreamError::Io(error)),
                };
                let used = match expected {
                    None => {
                        let used = chunk.len().min(HEADER_BYTES - header_filled);
                        header[header_filled..header_filled + used].copy_from_slice(&chunk[..used]);
                        header_filled += used;
                        if header_filled == HEADER_BYTES {
                            expected = Some(parse_header(header).map_err(StreamError::Malformed)?);
                        }
                        used
                    }
                    Some((_, length)) => {
                        let used = chunk.len().min(length - body.len());
                        grow(body, used, length);
                        body.extend_from_slice(&chunk[..used]);
                        used
                    }
                };
                reader.consume(used);
                if let Some((kind, length)) = expected
                    && body.len() == length
                {
                    return Ok(kind);
                }
            }
            let is_inside_frame = header_filled > 0;
            if is_inside_frame {
                let begun = begun.get_or_insert_with(Instant::now);
                if begun.elapsed() > FRAME_TIMEOUT {
                    return Err(StreamError::Malformed(format!("a frame took more than {FRAME_TIMEOUT:?}")));
                }
            }
            self.receive(is_inside_frame, wait)?;
        }
    }

    /// Waits for bytes and passes them to TLS.
    fn receive(&mut self, is_inside_frame: bool, wait: Wait<'_>) -> Result<(), StreamError> {
        let mut waiting = Waiting::new(is_inside_frame);
        loop {
            if self.input.start == self.input.end {
                let slice = waiting.ask(wait)?;
                if self.read_timeout != Some(slice) {
                    self.socket.set_read_timeout(Some(slice)).map_err(StreamError::Io)?;
                    self.read_timeout = Some(slice);
                }
            }
            let mut reader = InputReader { input: &mut self.input, socket: &self.socket };
            match self.tls.read_tls(&mut reader) {
                Ok(0) => return Err(StreamError::Closed),
                Ok(_) => break,
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(StreamError::Io(error)),
            }
        }
        if let Err(error) = self.tls.process_new_packets() {
            // The alert that says why.
            let _ = self.flush(true, wait);
            return Err(StreamError::Tls(error));
        }
        Ok(())
    }

    /// Whether the other end has sent bytes or closed the connection. It does neither between requests, nor
    /// while it waits for an answer, unless it gives the connection up.
    pub(crate) fn has_ended(&self) -> bool {
        if self.input.start != self.input.end || self.socket.set_nonblocking(true).is_err() {
            return true;
        }
        let peeked = self.socket.peek(&mut [0]);
        let is_silent = matches!(peeked, Err(error) if error.kind() == ErrorKind::WouldBlock);
        self.socket.set_nonblocking(false).is_err() || !is_silent
    }

    /// Ends the connection in order, after a refusal: the other end reads it, and then the end of the stream.
    /// A socket that is closed with bytes unread would destroy what was sent last.
    pub(crate) fn close_after_refusal(&mut self, wait: Wait<'_>) {
        self.tls.send_close_notify();
        let _ = self.flush(true, wait);
        let _ = self.socket.shutdown(Shutdown::Write);
        let mut waiting = Waiting::new(true);
        let mut left = 4 << 20;
        while left > 0 {
            let Ok(slice) = waiting.ask(wait) else { return };
            if self.socket.set_read_timeout(Some(slice)).is_err() {
                return;
            }
            match (&*self.socket).read(&mut self.input.bytes) {
                Ok(0) => return,
                Ok(count) => left -= count.min(left),
                Err(error) if is_timeout(&error) => {}
                Err(_) => return,
            }
        }
    }

    /// Cuts the connection.
    pub(crate) fn cut(&self) {
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

/// Room for `more` bytes, in steps that double, never more than `length`.
fn grow(body: &mut Vec<u8>, more: usize, length: usize) {
    let needed = body.len() + more;
    if needed > body.capacity() {
        let room = (2 * needed).max(BODY_BYTES_FIRST).min(length);
        body.reserve_exact(room.max(needed) - body.len());
    }
}

//! Requests to one other server.
//!
//! A request may be sent on a connection that the server has closed meanwhile: connections of the pool are
//! checked before use, and a write that fails on one is repeated on a new connection, which is safe because a
//! server answers whole requests only. Nothing is repeated once a request was written.
//!
//! A connection is made with one attempt, or with two if the server has protocol 7 alone (`agreement`).

use crate::addresses::Addresses;
use crate::agreement::Agreement;
use crate::error_bytes;
use crate::faults::{Fault, Faults, garbage};
use crate::frame::{
    ANSWER_BYTES_MAX, FrameKind, HEADER_BYTES, PEER_TIMEOUT, REQUEST_BYTES_MAX, TIME_LEFT_BYTES, header,
    parse_header,
};
use crate::hello::{Hello, is_refusal_without_range};
use crate::identity::Identity;
use crate::pool::{PeerConnection, Pool};
use crate::protocol::{Protocol, ProtocolRange};
use crate::stream::{FrameStream, Silence, StreamError};
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError, ClientConnection};
use std::borrow::Cow;
use std::fmt;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use vervet_model::{Error, ErrorKind, Result, ThreadLimits, deadline_error};

/// The limits of the query are checked at least this often.
const SLICE: Duration = Duration::from_millis(20);

/// For the connection of TCP alone, which cannot be cancelled.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// A connection that offered protocol 7 alone, because of an earlier refusal, is used for this time: the
/// server may have started again as another version meanwhile.
const REDUCED_OFFER_TIME: Duration = Duration::from_secs(30);

const HINT: &str =
    "try again once it answers; vervet cluster status, or /cluster, says the state of the servers";

/// One other server. Threads share it.
pub struct Peer {
    server: String,
    addresses: Addresses,
    identity: Arc<Identity>,
    hello: Hello,
    timeout: Duration,
    pool: Pool,
    agreement: Agreement,
    faults: Arc<Faults>,
    counters: Counters,
}

#[derive(Default)]
struct Counters {
    requests: AtomicU64,
    bytes_sent: AtomicU64,
    bytes_received: AtomicU64,
    connects: AtomicU64,
    failures: AtomicU64,
}

/// What has been sent to a peer and received from it since it was made.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Requests sent, without pings.
    pub requests: u64,
    /// Bytes of the frames of requests, before TLS.
    pub bytes_sent: u64,
    /// Bytes of the frames of answers and errors, before TLS.
    pub bytes_received: u64,
    /// Connections made.
    pub connects: u64,
    /// Requests and their connections that failed because of the peer or the network. Errors that the peer
    /// sent, deadlines, cancellations and pings are none.
    pub failures: u64,
}

/// A request that was sent. Without [`Pending::receive`] its connection is closed.
#[must_use = "the answer is not read"]
pub struct Pending<'p> {
    peer: &'p Peer,
    connection: PeerConnection,
    fault: Option<Fault>,
    /// Of delayed frames: the answer arrives no earlier.
    arrival: Option<Instant>,
    /// Whether the frames count.
    is_ping: bool,
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer")
            .field("server", &self.server)
            .field("address", &self.address())
            .field("idle_connections", &self.pool.len())
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Pending<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").field("peer", self.peer).finish_non_exhaustive()
    }
}

impl Peer {
    /// Server `server` at `address` (`host:port`). The first request connects.
    #[must_use]
    pub fn new(server: &str, address: &str, identity: Arc<Identity>, hello: Hello) -> Self {
        Self {
            server: server.to_owned(),
            addresses: Addresses::new(address),
            identity,
            hello,
            timeout: PEER_TIMEOUT,
            pool: Pool::default(),
            agreement: Agreement::default(),
            faults: Arc::default(),
            counters: Counters::default(),
        }
    }

    /// The same peer with another time than [`PEER_TIMEOUT`]. Servers that work send a byte each second.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The name of the server.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.server
    }

    /// Its host and port.
    #[must_use]
    pub fn address(&self) -> &str {
        self.addresses.text()
    }

    /// Faults for tests.
    #[must_use]
    pub fn faults(&self) -> Arc<Faults> {
        Arc::clone(&self.faults)
    }

    /// What has been sent and received.
    #[must_use]
    pub fn counts(&self) -> Counts {
        // Relaxed: each is exact, they need not fit each other.
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            requests: read(&self.counters.requests),
            bytes_sent: read(&self.counters.bytes_sent),
            bytes_received: read(&self.counters.bytes_received),
            connects: read(&self.counters.connects),
            failures: read(&self.counters.failures),
        }
    }

    /// The protocol of the newest connection to the server: the newest one that both ends have. `None`: no
    /// connection was made yet, or one has failed since.
    ///
    /// It says what the server was when it was last reached, and waits for nothing. The server may start
    /// again as another version, newer or older, at any time. So use it to decide whether to do something at
    /// all, such as to write entries of a new kind once all voters read them, and never to choose the form of
    /// a request: [`Peer::send_with`] does that.
    #[must_use]
    pub fn protocol(&self) -> Option<Protocol> {
        self.agreement.agreed()
    }

    /// Sends a request that has one form in all protocols, on an idle connection or a new one.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`]: the server cannot be reached, does not answer, or refuses this one;
    /// [`ErrorKind::Unsupported`]: more than [`REQUEST_BYTES_MAX`]; errors of [`ThreadLimits::check`].
    pub fn send(&self, request: &[u8]) -> Result<Pending<'_>> {
        self.check_size(request)?;
        self.send_with(&|_| Ok(Cow::Borrowed(request)))
    }

    /// Sends the request that `encode` makes for the protocol of the connection on which it goes: for a
    /// request whose form depends on it. A server gets only what `encode` makes for the protocol on which it
    /// has agreed. Its answer has the form of the same protocol ([`Pending::protocol`]).
    ///
    /// `encode` is called before each attempt to write the request. There is a second one, on a new
    /// connection and perhaps with another protocol, if an idle connection turns out to be closed.
    ///
    /// # Errors
    /// As [`Peer::send`]; errors of `encode`, such as [`ErrorKind::Unsupported`] where the protocol has no
    /// form for the request. The connection stays usable after these.
    pub fn send_with<'r>(&self, encode: &dyn Fn(Protocol) -> Result<Cow<'r, [u8]>>) -> Result<Pending<'_>> {
        let (pending, request_bytes) = self.write(FrameKind::Request, encode)?;
        let bytes = HEADER_BYTES + TIME_LEFT_BYTES + request_bytes;
        self.counters.requests.fetch_add(1, Ordering::Relaxed);
        self.counters.bytes_sent.fetch_add(u64::try_from(bytes).unwrap_or(u64::MAX), Ordering::Relaxed);
        Ok(pending)
    }

    fn check_size(&self, request: &[u8]) -> Result<()> {
        if request.len() <= REQUEST_BYTES_MAX {
            return Ok(());
        }
        let message = format!(
            "a request of {} bytes to server {} is larger than {REQUEST_BYTES_MAX}",
            request.len(),
            self.server
        );
        Err(Error::new(ErrorKind::Unsupported, message).with_hint("divide the query"))
    }

    /// Whether the server answers: the time that it takes.
    ///
    /// # Errors
    /// As [`Peer::send`] and [`Pending::receive`].
    pub fn ping(&self) -> Result<Duration> {
        let start = Instant::now();
        self.write(FrameKind::Ping, &|_| Ok(Cow::Borrowed(&[])))?.0.receive()?;
        Ok(start.elapsed())
    }

    /// Writes a frame on an idle connection or a new one. Returns the length of its content as well.
    fn write<'r>(
        &self,
        kind: FrameKind,
        encode: &dyn Fn(Protocol) -> Result<Cow<'r, [u8]>>,
    ) -> Result<(Pending<'_>, usize)> {
        let (delay, fault) = self.faults.next_request();
        let arrival = (!delay.is_zero()).then(|| Instant::now() + 2 * delay);
        let is_ping = kind == FrameKind::Ping;
        let mut idle = self.pool.take(|| self.agreement.forget());
        loop {
            let is_reused = idle.is_some();
            let mut connection = match idle.take() {
                Some(connection) => connection,
                None => self.connect().map_err(|error| self.failed(error, is_ping))?,
            };
            let encoded = encode(connection.protocol);
            let checked = encoded.and_then(|request| self.check_size(&request).map(|()| request));
            let request = match checked {
                Ok(request) => request,
                Err(error) => {
                    self.pool.put(connection);
                    return Err(error);
                }
            };
            match self.write_on(&mut connection.stream, kind, &request, fault) {
                Ok(()) => {
                    return Ok((Pending { peer: self, connection, fault, arrival, is_ping }, request.len()));
                }
                Err(StreamError::Closed | StreamError::Io(_)) if is_reused => {
                    self.pool.clear();
                    self.agreement.forget();
                }
                Err(error) => return Err(self.failed(error, is_ping)),
            }
        }
    }

    fn write_on(
        &self,
        stream: &mut FrameStream,
        kind: FrameKind,
        request: &[u8],
        fault: Option<Fault>,
    ) -> Result<(), StreamError> {
        let mut wait = |silence: &Silence| self.wait(silence, None);
        let time_left = time_left().to_le_bytes();
        let prefix: &[u8] = if kind == FrameKind::Request { &time_left } else { &[] };
        match fault {
            Some(Fault::DroppedRequest) => Ok(()),
            Some(Fault::CutRequest) => {
                let all = [&header(kind, prefix.len() + request.len())[..], prefix, request].concat();
                stream.write_all([&all[..all.len() / 2], &[]], &mut wait)?;
                stream.cut();
                Ok(())
            }
            Some(Fault::GarbageRequest(seed)) => stream.write_all([&garbage(seed), &[]], &mut wait),
            _ => stream.write_frame(kind, [prefix, request], &mut wait),
        }
    }

    /// Whether and how long to wait for the socket.
    fn wait(&self, silence: &Silence, begun: Option<Instant>) -> Result<Duration> {
        ThreadLimits::check()?;
        let lasted = begun.map_or(silence.lasted, |begun| begun.elapsed());
        if lasted >= self.timeout {
            return Err(self.unavailable("does not answer"));
        }
        let remaining = ThreadLimits::remaining().unwrap_or(SLICE);
        Ok(SLICE.min(self.timeout - lasted).min(remaining).max(Duration::from_millis(1)))
    }

    /// Makes a connection, with a second attempt if the server has protocol 7 alone.
    fn connect(&self) -> Result<PeerConnection, StreamError> {
        // One time limit for both attempts.
        let mut begun = None;
        let own = self.hello.protocols;
        let offered = self.agreement.offer(own);
        if let Some(mut connection) = self.connect_with(offered, &mut begun)? {
            connection.expires_at = (offered != own).then(|| Instant::now() + REDUCED_OFFER_TIME);
            return Ok(connection);
        }
        self.agreement.note_refusal();
        let last = ProtocolRange::only(Protocol::LAST_WITHOUT_RANGE);
        let connection = self.connect_with(last, &mut begun)?;
        connection.ok_or_else(|| StreamError::Malformed("two refusals that contradict each other".to_owned()))
    }

    /// Makes a connection that offers these protocols; `None`: the server has protocol 7 alone.
    fn connect_with(
        &self,
        offered: ProtocolRange,
        begun: &mut Option<Instant>,
    ) -> Result<Option<PeerConnection>, StreamError> {
        ThreadLimits::check().map_err(StreamError::Ended)?;
        let socket = self.connect_tcp().map_err(StreamError::Ended)?;
        let begun = *begun.get_or_insert_with(Instant::now);
        let mut wait = |silence: &Silence| self.wait(silence, Some(begun));
        let name = ServerName::try_from(self.server.clone()).map_err(|_| {
            StreamError::Ended(self.unavailable("cannot be reached: its name is not that of a host"))
        })?;
        let tls = ClientConnection::new(self.identity.client(), name).map_err(StreamError::Tls)?;
        let mut stream = FrameStream::new(Arc::new(socket), tls.into()).map_err(StreamError::Io)?;
        stream.handshake(&mut wait)?;
        // A server that refuses the certificate may have closed already: what it said is still to be read.
        let hello = self.hello.encode(&self.server, offered);
        let written = stream.write_frame(FrameKind::Hello, [&hello, &[]], &mut wait);
        let mut body = Vec::new();
        let kind = match (stream.read_frame(&mut body, &mut wait), written) {
            (Ok(kind), _) => kind,
            (Err(StreamError::Closed | StreamError::Io(_)), Err(error)) => return Err(error),
            (Err(error), _) => return Err(error),
        };
        match kind {
            FrameKind::Hello => {
                let protocol = self
                    .hello
                    .confirm(&body, &self.server, offered)
                    .map_err(|error| StreamError::Ended(self.refused(&error, "cannot be used")))?;
                self.counters.connects.fetch_add(1, Ordering::Relaxed);
                self.agreement.note_agreed(protocol);
                Ok(Some(PeerConnection { stream, protocol, expires_at: None }))
            }
            FrameKind::Refusal => {
                let error = error_bytes::decode(&body)
                    .ok_or_else(|| StreamError::Malformed("a damaged refusal".to_owned()))?;
                if is_refusal_without_range(&error, offered) {
                    return Ok(None);
                }
                Err(StreamError::Ended(self.refused(&error, "refused the connection")))
            }
            other => Err(StreamError::Malformed(format!("{other:?} in place of a hello"))),
        }
    }

    fn connect_tcp(&self) -> Result<TcpStream> {
        let unreachable = |error: &dyn fmt::Display| self.unavailable(&format!("cannot be reached: {error}"));
        if self.faults.refuses_connection() {
            return Err(unreachable(&"connection refused"));
        }
        let begun = Instant::now();
        let wait = || match begun.elapsed() < CONNECT_TIMEOUT {
            true => self.wait(&Silence { lasted: Duration::ZERO, is_inside_frame: false }, Some(begun)),
            false => Err(unreachable(&"its name is still being looked up")),
        };
        let addresses = self.addresses.get(wait)?.map_err(|error| unreachable(&error))?;
        let mut last = None;
        for address in addresses {
            ThreadLimits::check()?;
            let remaining =
                ThreadLimits::remaining().unwrap_or(CONNECT_TIMEOUT).max(Duration::from_millis(1));
            match TcpStream::connect_timeout(&address, remaining.min(CONNECT_TIMEOUT).min(self.timeout)) {
                Ok(socket) => return Ok(socket),
                Err(error) => last = Some(error),
            }
        }
        ThreadLimits::check()?;
        self.addresses.distrust();
        Err(last.map_or_else(|| unreachable(&"its name has no address"), |error| unreachable(&error)))
    }

    /// The error of a connection that has failed, which also counts, unless it was made for a ping.
    fn failed(&self, error: StreamError, is_ping: bool) -> Error {
        let error = match error {
            StreamError::Ended(error) if error.kind() != ErrorKind::Unavailable => return error,
            StreamError::Ended(error) => error,
            StreamError::Closed => self.unavailable("closed the connection"),
            StreamError::Io(error) => self.unavailable(&format!("ended the connection: {error}")),
            StreamError::Malformed(what) => {
                self.unavailable(&format!("sent bytes that are no answer: {what}"))
            }
            StreamError::Tls(error) => self.tls_failed(&error),
        };
        // The others are as old as this one, or the server is gone.
        self.pool.clear();
        self.agreement.forget();
        if !is_ping {
            self.counters.failures.fetch_add(1, Ordering::Relaxed);
        }
        error
    }

    fn tls_failed(&self, error: &rustls::Error) -> Error {
        use rustls::Error as Tls;
        let what = match error {
            Tls::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            ) => "has the certificate of another server".to_owned(),
            Tls::InvalidCertificate(reason) => {
                format!("has a certificate that is not of this cluster ({reason:?})")
            }
            Tls::AlertReceived(
                alert @ (AlertDescription::UnknownCA
                | AlertDescription::BadCertificate
                | AlertDescription::DecryptError
                | AlertDescription::CertificateUnknown
                | AlertDescription::CertificateRequired
                | AlertDescription::CertificateExpired
                | AlertDescription::AccessDenied),
            ) => format!("refused the certificate of this server ({alert:?})"),
            other => format!("could not make a TLS connection: {other}"),
        };
        self.unavailable(&what).with_hint("give each server the files that were made for it with the cluster")
    }

    fn refused(&self, error: &Error, what: &str) -> Error {
        let refused = self.unavailable(&format!("{what}: {}", error.message()));
        match error.hint() {
            Some(hint) => refused.with_hint(hint),
            None => refused,
        }
    }

    fn unavailable(&self, what: &str) -> Error {
        let message = format!("server {} ({}) {what}", self.server, self.address());
        Error::new(ErrorKind::Unavailable, message).with_hint(HINT)
    }
}

/// The milliseconds that are left to the query of this thread, rounded up; 0: no deadline.
fn time_left() -> u32 {
    let Some(remaining) = ThreadLimits::remaining() else { return 0 };
    u32::try_from(remaining.as_millis().saturating_add(1)).unwrap_or(u32::MAX)
}

fn decode_error(body: &[u8]) -> Result<Error, StreamError> {
    error_bytes::decode(body).ok_or_else(|| StreamError::Malformed("a damaged error".to_owned()))
}

impl Pending<'_> {
    /// The protocol of the connection: that of the form of the request and of its answer.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        self.connection.protocol
    }

    /// The answer.
    ///
    /// # Errors
    /// The error that the server sent; [`ErrorKind::Unavailable`]: it does not answer, or the connection has
    /// failed; errors of [`ThreadLimits::check`].
    pub fn receive(mut self) -> Result<Vec<u8>> {
        let (peer, is_ping) = (self.peer, self.is_ping);
        let answer = self.read().map_err(|error| peer.failed(error, is_ping))?;
        peer.pool.put(self.connection);
        answer
    }

    /// The answer, or the error that the server sent; the connection can then be used again.
    fn read(&mut self) -> Result<Result<Vec<u8>>, StreamError> {
        let peer = self.peer;
        let mut wait = |silence: &Silence| peer.wait(silence, None);
        let mut body = Vec::new();
        let kind = loop {
            match self.connection.stream.read_frame(&mut body, &mut wait)? {
                FrameKind::Working => {}
                kind => break kind,
            }
        };
        if self.fault.is_some() || self.arrival.is_some() {
            self.disturb(&mut wait)?;
        }
        if !self.is_ping {
            let bytes = u64::try_from(HEADER_BYTES + body.len()).unwrap_or(u64::MAX);
            peer.counters.bytes_received.fetch_add(bytes, Ordering::Relaxed);
        }
        match kind {
            FrameKind::Answer => {
                debug_assert!(body.len() <= ANSWER_BYTES_MAX, "checked before the body was read");
                Ok(Ok(body))
            }
            FrameKind::Error => {
                let error = decode_error(&body)?;
                // The server counts with the time that was left; the query knows its whole timeout.
                let limits = ThreadLimits::current();
                ThreadLimits::check().map_err(StreamError::Ended)?;
                match error.kind() {
                    ErrorKind::Deadline => Ok(Err(match limits.deadline {
                        Some((_, timeout)) => deadline_error(timeout),
                        None => error,
                    })),
                    // The server has cancelled it, this end has not.
                    ErrorKind::Cancelled => Err(StreamError::Ended(peer.unavailable("is shutting down"))),
                    _ => Ok(Err(error)),
                }
            }
            FrameKind::Refusal => {
                Err(StreamError::Ended(peer.refused(&decode_error(&body)?, "refused the request")))
            }
            other => Err(StreamError::Malformed(format!("{other:?} in place of an answer"))),
        }
    }

    /// Does to the answer, which has come, what the faults say.
    fn disturb(&self, wait: &mut dyn FnMut(&Silence) -> Result<Duration>) -> Result<(), StreamError> {
        let arrival = match self.fault {
            Some(Fault::DroppedAnswer) => None,
            _ => Some(self.arrival.unwrap_or_else(Instant::now)),
        };
        let begun = Instant::now();
        while arrival.is_none_or(|arrival| Instant::now() < arrival) {
            let silence = Silence { lasted: begun.elapsed(), is_inside_frame: false };
            let slice = wait(&silence).map_err(StreamError::Ended)?;
            let left = arrival.map_or(slice, |arrival| arrival.saturating_duration_since(Instant::now()));
            std::thread::sleep(slice.min(left));
        }
        match self.fault {
            Some(Fault::CutAnswer) => {
                self.connection.stream.cut();
                Err(StreamError::Closed)
            }
            Some(Fault::GarbageAnswer(seed)) => {
                let bytes = garbage(seed);
                let first = *bytes.first_chunk().expect("garbage is longer than a header");
                let reason = parse_header(first).err().unwrap_or_else(|| "a frame without an end".to_owned());
                Err(StreamError::Malformed(reason))
            }
            _ => Ok(()),
        }
    }
}

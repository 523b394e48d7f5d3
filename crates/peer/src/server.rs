//! Answers to the other servers of the cluster.
//!
//! # Threads
//! One accepts connections, one for each connection reads requests and answers them inline, one looks at
//! handlers that take long (`watch`). All end with the server.

use crate::error_bytes;
use crate::frame::{ANSWER_BYTES_MAX, FrameKind, PEER_TIMEOUT, TIME_LEFT_BYTES};
use crate::hello::Hello;
use crate::identity::Identity;
use crate::protocol::{Protocol, ProtocolRange};
use crate::stream::{FrameStream, Silence, StreamError};
use crate::watch::{Connection, Connections};
use rustls::ServerConnection;
use rustls::client::verify_server_name;
use rustls::pki_types::ServerName;
use rustls::server::ParsedCertificate;
use std::any::Any;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use vervet_model::{Error, ErrorKind, Result, ThreadLimits};

/// Connections beyond are refused with a reason.
pub const CONNECTIONS_MAX: usize = 1024;

/// Further connections that are told so; those beyond are closed at once.
const REFUSED_CONNECTIONS_MAX: usize = 16;

/// For TLS and hello together.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection without a request for so long is closed; clients close earlier.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);

/// A client reads the answers of other servers first, and may work on them.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// The stack of a thread that answers: a handler may run the steps of a query, one within the other.
const STACK_BYTES: usize = 8 << 20;

/// A buffer that has grown beyond is not kept for the next request.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// What answers the requests of other servers.
pub trait Handler: Send + Sync {
    /// Appends the answer to `out`, which is empty. `protocol` is that of the connection: the client reads
    /// the forms of answers that this protocol has, and no others. It checks [`ThreadLimits::check`] in its
    /// loops: the deadline of the query, and the end of the connection. If it asks other servers itself, such
    /// requests must come to an end: none asks back for what it is part of.
    ///
    /// # Errors
    /// They become the error of the request; so does a panic.
    fn answer(&self, request: &[u8], protocol: Protocol, out: &mut Vec<u8>) -> Result<()>;
}

/// Connections that were refused.
#[derive(Clone, Default, Debug)]
pub struct Refusals {
    /// How many.
    pub count: u64,
    /// The last one: address and reason.
    pub last: Option<String>,
}

/// Listens for other servers. It ends, with all its connections and threads, when it is dropped.
pub struct PeerServer {
    shared: Arc<Shared>,
    address: SocketAddr,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    identity: Arc<Identity>,
    hello: Hello,
    handler: Arc<dyn Handler>,
    connections: Connections,
    connections_max: usize,
    refusals: Mutex<Refusals>,
    /// The listener is open.
    is_listening: AtomicBool,
}

impl fmt::Debug for PeerServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerServer")
            .field("server", &self.shared.hello.server)
            .field("address", &self.address)
            .field("connections", &self.shared.connections.len())
            .finish_non_exhaustive()
    }
}

impl PeerServer {
    /// Listens at `address` (`host:port`; port 0 is any free one).
    ///
    /// # Errors
    /// [`ErrorKind::Io`]: the address is in use or not of this machine; no threads.
    pub fn bind(
        address: &str,
        identity: Arc<Identity>,
        hello: Hello,
        handler: Arc<dyn Handler>,
    ) -> Result<Self> {
        Self::bind_with_limit(address, identity, hello, handler, CONNECTIONS_MAX)
    }

    /// As [`PeerServer::bind`], with another limit than [`CONNECTIONS_MAX`].
    ///
    /// # Errors
    /// As [`PeerServer::bind`].
    pub fn bind_with_limit(
        address: &str,
        identity: Arc<Identity>,
        hello: Hello,
        handler: Arc<dyn Handler>,
        connections_max: usize,
    ) -> Result<Self> {
        let listener = TcpListener::bind(address)
            .map_err(|error| Error::io(format!("listen for other servers on {address}"), &error))?;
        let address = listener.local_addr().map_err(|error| Error::io("listen for other servers", &error))?;
        let shared = Arc::new(Shared {
            identity,
            hello,
            handler,
            connections: Connections::new(),
            connections_max,
            refusals: Mutex::default(),
            is_listening: AtomicBool::new(true),
        });
        let mut server = Self { shared: Arc::clone(&shared), address, threads: Vec::new() };
        let watched = Arc::clone(&shared);
        server.threads.push(spawn("peer-watch", move || watched.connections.watch())?);
        match spawn("peer-accept", move || accept(listener, &shared)) {
            Ok(thread) => server.threads.push(thread),
            Err(error) => {
                server.shared.is_listening.store(false, Ordering::Release);
                return Err(error);
            }
        }
        Ok(server)
    }

    /// Where it listens.
    #[must_use]
    pub fn local_address(&self) -> SocketAddr {
        self.address
    }

    /// Connections that are open.
    #[must_use]
    pub fn connection_count(&self) -> usize {
        self.shared.connections.len()
    }

    /// Connections that were refused, and why.
    #[must_use]
    pub fn refusals(&self) -> Refusals {
        self.shared.refusals.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends the listener and all connections, and waits for the threads. Requests that are being answered are
    /// cancelled.
    pub fn shut_down(self) {
        drop(self);
    }
}

impl Drop for PeerServer {
    fn drop(&mut self) {
        self.shared.connections.stop();
        // A connection wakes the thread that accepts them.
        let ip = match self.address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
            ip => ip,
        };
        let address = SocketAddr::new(ip, self.address.port());
        for _ in 0..100 {
            if !self.shared.is_listening.load(Ordering::Acquire) {
                break;
            }
            let _ = TcpStream::connect_timeout(&address, Duration::from_millis(100));
            std::thread::sleep(Duration::from_millis(1));
        }
        let is_listening = self.shared.is_listening.load(Ordering::Acquire);
        for thread in self.threads.drain(..) {
            // A listener that cannot be woken ends with the process.
            if !is_listening || thread.thread().name() == Some("peer-watch") {
                let _ = thread.join();
            }
        }
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .stack_size(STACK_BYTES)
        .spawn(work)
        .map_err(|error| Error::io("start a thread for other servers", &error))
}

fn accept(listener: TcpListener, shared: &Arc<Shared>) {
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    while !shared.connections.is_stopped() {
        let accepted = listener.accept();
        for thread in threads.extract_if(.., |thread| thread.is_finished()) {
            let _ = thread.join();
        }
        match accepted {
            Ok((socket, from)) => {
                if threads.len() >= shared.connections_max + REFUSED_CONNECTIONS_MAX {
                    shared.refuse(from, &too_many(shared.connections_max));
                    continue;
                }
                let shared = Arc::clone(shared);
                // Without a thread the connection is closed.
                threads.extend(spawn("peer", move || serve(&shared, socket, from)).ok());
            }
            // Too many open files, or a connection that has ended: the next one may be better.
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
    drop(listener);
    shared.is_listening.store(false, Ordering::Release);
    for thread in threads {
        let _ = thread.join();
    }
}

fn too_many(connections_max: usize) -> Error {
    Error::new(ErrorKind::Unavailable, format!("there are {connections_max} connections already"))
        .with_hint("run the query again later")
}

impl Shared {
    fn refuse(&self, from: SocketAddr, reason: &dyn fmt::Display) {
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        refusals.count += 1;
        refusals.last = Some(format!("{from}: {reason}"));
    }
}

/// Removes the connection also if its thread panics.
struct Registered<'a> {
    connections: &'a Connections,
    number: u64,
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.connections.remove(self.number);
    }
}

fn serve(shared: &Shared, socket: TcpStream, from: SocketAddr) {
    let socket = Arc::new(socket);
    let Ok(tls) = ServerConnection::new(shared.identity.server()) else { return };
    let Ok(stream) = FrameStream::new(Arc::clone(&socket), tls.into()) else { return };
    let connection = Arc::new(Connection::new(stream, socket));
    let Some((number, count)) = shared.connections.add(Arc::clone(&connection)) else { return };
    let _registered = Registered { connections: &shared.connections, number };
    let accepted = greet(shared, &mut connection.stream(), count);
    shared.connections.greeted(number);
    let ended = accepted.and_then(|protocol| answer_all(shared, &connection, protocol));
    match ended {
        Err(StreamError::Malformed(reason)) => {
            let reason = format!("bytes that are no request: {reason}");
            refuse(shared, &connection, from, &Error::new(ErrorKind::Unavailable, reason));
        }
        Err(StreamError::Ended(error)) => refuse(shared, &connection, from, &error),
        Err(StreamError::Tls(error)) => {
            shared.refuse(from, &error);
            // TLS has written an alert.
            close(&mut connection.stream());
        }
        Err(StreamError::Closed | StreamError::Io(_)) | Ok(()) => {}
    }
}

/// Says why the connection ends.
fn refuse(shared: &Shared, connection: &Connection, from: SocketAddr, error: &Error) {
    shared.refuse(from, error);
    let mut stream = connection.stream();
    let body = error_bytes::encode(error);
    let mut wait = |silence: &Silence| {
        if silence.lasted >= PEER_TIMEOUT { Err(silent()) } else { Ok(PEER_TIMEOUT) }
    };
    if stream.write_frame(FrameKind::Refusal, [&body, &[]], &mut wait).is_ok() {
        close(&mut stream);
    }
}

/// Waits until the client has read why, for a limited time.
fn close(stream: &mut FrameStream) {
    let begun = Instant::now();
    stream.close_after_refusal(&mut |_: &Silence| {
        if begun.elapsed() > PEER_TIMEOUT { Err(silent()) } else { Ok(Duration::from_millis(500)) }
    });
}

fn silent() -> Error {
    Error::new(ErrorKind::Unavailable, "no byte came in time")
}

/// TLS and hello. Returns the protocol on which both ends have agreed.
fn greet(shared: &Shared, stream: &mut FrameStream, count: usize) -> Result<Protocol, StreamError> {
    let begun = Instant::now();
    let mut wait = |_: &Silence| {
        if begun.elapsed() > HANDSHAKE_TIMEOUT { Err(silent()) } else { Ok(Duration::from_millis(500)) }
    };
    stream.handshake(&mut wait)?;
    let mut body = Vec::new();
    let kind = stream.read_frame(&mut body, &mut wait)?;
    if kind != FrameKind::Hello {
        return Err(StreamError::Malformed(format!("{kind:?} in place of a hello")));
    }
    let accepted = shared.hello.accept(&body).map_err(StreamError::Ended)?;
    let is_named = ServerName::try_from(accepted.from.as_str()).is_ok_and(|name| {
        let certificate = stream.certificate().and_then(|bytes| ParsedCertificate::try_from(bytes).ok());
        certificate.is_some_and(|certificate| verify_server_name(&certificate, &name).is_ok())
    });
    if !is_named {
        let message = format!("server {:?} has the certificate of another server", accepted.from);
        let hint = "give each server the files that were made for it with the cluster";
        return Err(StreamError::Ended(Error::new(ErrorKind::Unavailable, message).with_hint(hint)));
    }
    if count > shared.connections_max {
        return Err(StreamError::Ended(too_many(shared.connections_max)));
    }
    let hello = shared.hello.encode(&accepted.from, ProtocolRange::only(accepted.protocol));
    stream.write_frame(FrameKind::Hello, [&hello, &[]], &mut wait)?;
    Ok(accepted.protocol)
}

/// Requests and answers until the connection ends.
fn answer_all(shared: &Shared, connection: &Connection, protocol: Protocol) -> Result<(), StreamError> {
    let mut wait_for_request = |silence: &Silence| {
        let limit = if silence.is_inside_frame { PEER_TIMEOUT } else { IDLE_TIMEOUT };
        if silence.lasted >= limit { Err(silent()) } else { Ok(PEER_TIMEOUT) }
    };
    let mut wait_for_reader = |silence: &Silence| {
        if silence.lasted >= ANSWER_TIMEOUT { Err(silent()) } else { Ok(PEER_TIMEOUT) }
    };
    let (mut request, mut out) = (Vec::new(), Vec::new());
    loop {
        let kind = match connection.stream().read_frame(&mut request, &mut wait_for_request) {
            // Neither a client that has been silent for long nor one that stopped in a request reads.
            Err(StreamError::Ended(_)) => return Ok(()),
            read => read?,
        };
        out.clear();
        let answered = match kind {
            FrameKind::Ping => Ok(()),
            FrameKind::Request => {
                let Some((time_left, request)) = request.split_first_chunk::<TIME_LEFT_BYTES>() else {
                    return Err(StreamError::Malformed("a request without its time".to_owned()));
                };
                shared.connections.begin(connection);
                let request = (request, protocol);
                let answered = answer(shared, connection, u32::from_le_bytes(*time_left), request, &mut out);
                Connections::end(connection);
                answered
            }
            other => return Err(StreamError::Malformed(format!("{other:?} in place of a request"))),
        };
        let written = match answered {
            Ok(()) => connection.stream().write_frame(FrameKind::Answer, [&out, &[]], &mut wait_for_reader),
            Err(error) => {
                let body = error_bytes::encode(&error);
                connection.stream().write_frame(FrameKind::Error, [&body, &[]], &mut wait_for_reader)
            }
        };
        match written {
            Err(StreamError::Ended(_)) => return Ok(()),
            written => written?,
        }
        for buffer in [&mut request, &mut out] {
            if buffer.capacity() > KEPT_BYTES_MAX {
                *buffer = Vec::new();
            }
        }
    }
}

fn answer(
    shared: &Shared,
    connection: &Connection,
    time_left: u32,
    (request, protocol): (&[u8], Protocol),
    out: &mut Vec<u8>,
) -> Result<()> {
    let time_left = Duration::from_millis(u64::from(time_left));
    let limits = ThreadLimits {
        cancelled: Some(Arc::clone(&connection.cancelled)),
        deadline: (!time_left.is_zero()).then(|| (Instant::now() + time_left, time_left)),
        reads: None,
    };
    let entered = limits.enter();
    let answered = catch_unwind(AssertUnwindSafe(|| shared.handler.answer(request, protocol, out)));
    drop(entered);
    answered.unwrap_or_else(|panic| {
        Err(Error::internal(format!(
            "a request to server {} failed: {}",
            shared.hello.server,
            panic_message(panic.as_ref())
        )))
    })?;
    if out.len() > ANSWER_BYTES_MAX {
        let message = format!(
            "an answer of {} bytes of server {} is larger than {ANSWER_BYTES_MAX}",
            out.len(),
            shared.hello.server
        );
        return Err(Error::new(ErrorKind::Unsupported, message).with_hint("restrict the query"));
    }
    Ok(())
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("it panicked")
}

//! The life of a server: bind, run, reload, shut down.
//!
//! # Shape
//! `bind` binds the address and validates the options, so that mistakes are reported before the server runs.
//! `run` owns the threads: a few I/O threads for connections, and worker threads for requests, as many as
//! there are permits.
//! # Shutdown
//! After a signal or [`Stopper::stop`] the server accepts no connections, and each connection ends after its
//! current request. Requests that still run after [`crate::Limits::shutdown_timeout`] are cancelled; their
//! clients receive an incomplete response.
//! # Reload
//! New options produce another `State`, which shares running requests and counters with the previous one.
//! Connections use the newest state for each request.

use crate::context::Client;
use crate::forwarding;
use crate::gremlin;
use crate::gremlin::access::UpgradeCell;
use crate::network::io_threads::IoThreads;
use crate::network::timed_stream::TimedStream;
use crate::operations::metrics::{GaugeGuard, Metrics};
use crate::operations::notify::{READY, STOPPING, notify};
use crate::operations::storage_monitor::monitor_storage;
use crate::options::{Limits, ServerOptions};
use crate::route;
use crate::security::auth::Users;
use crate::security::origin;
use crate::settings::Settings;
use crate::state::State;
use crate::worker_threads::STACK_BYTES;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Version};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::future::poll_fn;
use std::io::Write;
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use vervet::Database;
use vervet_model::{Error, ErrorKind, Result};

/// The backlog of connections to accept.
#[cfg(unix)]
const BACKLOG: i32 = 1024;

/// Open files other than connections: those of the database and of the process.
#[cfg(unix)]
const OTHER_FILES_MAX: u64 = 512;

/// Blocking threads of each I/O thread, for work that is not a request: passwords, long messages, reloads.
const BLOCKING_MAX: usize = 64;

/// The time for cancelled requests to end.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// The time for clients to read the responses of cancelled requests.
const FINAL_READ_TIMEOUT: Duration = Duration::from_millis(500);

/// The time for a client to complete the head of a request during shutdown.
const FINAL_HEAD_TIMEOUT: Duration = Duration::from_secs(1);

/// The pause after a failed accept, usually for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A bound server. It answers requests once it runs.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    settings: watch::Sender<Settings>,
    stopper: Stopper,
    reloads: (mpsc::UnboundedSender<PendingReload>, mpsc::UnboundedReceiver<PendingReload>),
    reload: Option<ReloadHook>,
}

/// Called with the result of a reload.
type ReloadDone = Box<dyn Fn(&Result<()>) + Send>;

/// The action on SIGHUP.
struct ReloadHook {
    options: Box<dyn Fn() -> Result<ServerOptions> + Send>,
    done: ReloadDone,
}

impl std::fmt::Debug for ReloadHook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReloadHook").finish_non_exhaustive()
    }
}

/// Reloads users, certificates, origins, names and limits of a running server.
#[derive(Clone, Debug)]
pub struct Reloader {
    settings: watch::Receiver<Settings>,
    reloads: mpsc::UnboundedSender<PendingReload>,
}

/// Validated options, and the channel that reports their activation.
struct PendingReload {
    options: ServerOptions,
    users: Users,
    tls: Option<Arc<ServerConfig>>,
    done: std::sync::mpsc::Sender<()>,
}

impl Reloader {
    /// Applies these options to all requests that start after it returns. Limits of open connections do not
    /// change, and WebSockets are closed if the users have changed.
    ///
    /// # Errors
    /// The previous options stay in effect. As [`Server::bind`]; [`ErrorKind::Input`] for changes that need a
    /// restart: another address, `read_only`, TLS on or off; [`ErrorKind::Unavailable`]: the server has
    /// ended.
    pub fn reload(&self, options: ServerOptions) -> Result<()> {
        let before = self.settings.borrow().clone();
        let old = &before.state.options;
        for (name, is_same) in [
            ("bind", old.bind == options.bind),
            ("read_only", old.read_only == options.read_only),
            ("the presence of [tls]", old.tls.is_some() == options.tls.is_some()),
        ] {
            if !is_same {
                let message = format!("{name} cannot change while the server runs");
                return Err(
                    Error::new(ErrorKind::Input, message).with_hint("restart the server to change it")
                );
            }
        }
        let (users, tls) = check(&options, &before.state.metrics)?;
        let (done, wait) = std::sync::mpsc::channel();
        let ended = || Error::new(ErrorKind::Unavailable, "the server has ended");
        self.reloads.send(PendingReload { options, users, tls, done }).map_err(|_| ended())?;
        wait.recv().map_err(|_| ended())
    }
}

/// Validates options; returns the users and the TLS configuration.
fn check(options: &ServerOptions, metrics: &Arc<Metrics>) -> Result<(Users, Option<Arc<ServerConfig>>)> {
    let open = options.bind.iter().find(|address| !address.ip().is_loopback());
    if let Some(address) = open
        && options.tls.is_none()
        && !options.allow_plain_http
    {
        let message = format!("{address} is reachable from other machines, and TLS is not configured");
        return Err(Error::new(ErrorKind::Input, message)
            .with_hint("configure [tls], or use --allow-plain-http behind a proxy that encrypts"));
    }
    origin::check_options(&options.cors, &options.hosts)?;
    Ok((Users::new(options, metrics)?, options.tls.as_ref().map(tls).transpose()?))
}

/// Shuts a running server down from another thread.
#[derive(Clone, Debug)]
pub struct Stopper(watch::Sender<bool>);

impl Stopper {
    /// Begins the shutdown; see the header of `server.rs`. Returns at once.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Server {
    /// Binds the address and validates the options. Connections wait until [`Server::run`].
    ///
    /// # Errors
    /// [`ErrorKind::Input`]: an address reachable from other machines without TLS, unless allowed; invalid
    /// certificates, keys or users. [`ErrorKind::Io`]: the address is in use. [`ErrorKind::Unavailable`]:
    /// another process writes to the database, and the server is not read-only.
    pub fn bind(database: Database, options: ServerOptions) -> Result<Self> {
        let metrics = Arc::default();
        let (users, tls) = check(&options, &metrics)?;
        let listener = TcpListener::bind(options.bind.as_slice())
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
            .map_err(|error| bind_error(&options.bind, &error))?;
        // After binding: if the address is in use, no directory is created.
        if !options.read_only {
            // Locks the directory for this process, or reports the error now.
            database.begin()?.roll_back();
        }
        // The library uses 128; with more simultaneous connections some would wait for a second.
        #[cfg(unix)]
        let _ = rustix::net::listen(&listener, BACKLOG);
        let state = Arc::new(State::new(database, options, users, metrics));
        let settings = watch::Sender::new(Settings { state, tls });
        let stopper = Stopper(watch::Sender::new(false));
        Ok(Self { listener, settings, stopper, reloads: mpsc::unbounded_channel(), reload: None })
    }

    /// A handle that reloads options while the server runs.
    #[must_use]
    pub fn reloader(&self) -> Reloader {
        Reloader { settings: self.settings.subscribe(), reloads: self.reloads.0.clone() }
    }

    /// On SIGHUP, calls `options`, then [`Reloader::reload`], then `done` with the result. Without this, or
    /// unless [`ServerOptions::signals`] is set, SIGHUP is not handled.
    pub fn reload_at_hangup(
        &mut self,
        options: impl Fn() -> Result<ServerOptions> + Send + 'static,
        done: impl Fn(&Result<()>) + Send + 'static,
    ) {
        self.reload = Some(ReloadHook { options: Box::new(options), done: Box::new(done) });
    }

    /// The bound address.
    ///
    /// # Errors
    /// [`ErrorKind::Io`].
    pub fn address(&self) -> Result<SocketAddr> {
        self.listener.local_addr().map_err(|error| Error::io("read the local address", &error))
    }

    /// Whether clients use `https`.
    #[must_use]
    pub fn has_tls(&self) -> bool {
        self.settings.borrow().tls.is_some()
    }

    /// A handle that shuts the server down.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Answers requests until it is stopped.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]: the system cannot create the threads.
    pub fn run(self) -> Result<()> {
        let settings = self.settings.clone();
        let limits = settings.borrow().state.options.limits.clone();
        let io_threads = IoThreads::start(BLOCKING_MAX, STACK_BYTES)
            .map_err(|error| Error::io("start the server", &error))?;
        raise_file_limit(limits.connections);
        // A server runs once.
        _ = settings.borrow().state.tasks.set(io_threads.spawner());
        let done = io_threads.block_on(self.serve(&io_threads));
        let state = Arc::clone(&settings.borrow().state);
        state.forwarded.end_all();
        state.cancel_all();
        io_threads.block_on(async {
            let _ = tokio::time::timeout(CANCEL_TIMEOUT, state.wait_until_idle()).await;
        });
        io_threads.end(CANCEL_TIMEOUT);
        // A worker thread may still have the database, and would lose its buffers at the end of the process.
        if let Err(error) = state.database.sync() {
            tracing::error!(%error, "the last commits could not be made durable");
        }
        done
    }

    async fn serve(self, io_threads: &IoThreads) -> Result<()> {
        let listener =
            tokio::net::TcpListener::from_std(self.listener).map_err(|error| Error::io("listen", &error))?;
        let mut shutdown = self.stopper.0.subscribe();
        if self.settings.borrow().state.options.signals {
            stop_at_signals(self.stopper.clone())?;
            if let Some(reload) = self.reload {
                let settings = self.settings.subscribe();
                reload_at_signals(reload, Reloader { settings, reloads: self.reloads.0.clone() })?;
            }
        }
        let settings = Arc::new(self.settings);
        let (_reload_sender, mut reloads) = self.reloads;
        let watching = tokio::spawn(monitor_storage(settings.borrow().state.database.clone()));
        let notifies = settings.borrow().state.options.signals;
        if notifies {
            notify(READY);
        }
        if let Some(cluster) = &settings.borrow().state.options.cluster {
            let end_idle = gremlin::end_idle_transactions(settings.subscribe());
            drop(settings.borrow().state.spawn(end_idle));
            // The cluster may outlive this server, whose state refers to it.
            let (settings, runtime) = (Arc::downgrade(&settings), tokio::runtime::Handle::current());
            cluster.on_forwarded(Box::new(move |request| {
                let Some(settings) = settings.upgrade() else { return Ok(Vec::new()) };
                let state = Arc::clone(&settings.borrow().state);
                drop(settings);
                let upgrade = UpgradeCell::default();
                let answer = async |client, request| route::answer(&state, client, &upgrade, request).await;
                runtime.block_on(forwarding::receive(&state.options.limits, request, answer))
            }));
        }
        // Closed when the last connection has ended.
        let (alive, mut ended) = mpsc::channel::<Infallible>(1);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                Some(reload) = reloads.recv() => {
                    apply(reload, &settings);
                    continue;
                }
                _ = shutdown.wait_for(|shutdown| *shutdown) => break,
            };
            let Ok((stream, peer)) =
                accepted.inspect_err(|error| tracing::warn!(%error, "could not accept a connection"))
            else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            let Settings { state, tls } = settings.borrow().clone();
            let open = state.metrics.connections.get();
            let is_full = usize::try_from(open).is_ok_and(|open| open >= state.options.limits.connections);
            let permit = if is_full { None } else { state.acquire_connection_permit(peer.ip()) };
            let Some(permit) = permit else {
                state.metrics.refused_connections.inc();
                let message =
                    if is_full { "too many connections" } else { "too many connections of this address" };
                tracing::debug!(open, %peer, "connection refused: {message}");
                refuse(stream, tls.is_some(), message);
                continue;
            };
            let counted = GaugeGuard::new(&state.metrics.connections);
            let (tls, shutdown) = (tls.map(TlsAcceptor::from), shutdown.clone());
            let settings = settings.subscribe();
            let alive = alive.clone();
            let Ok(stream) = stream.into_std() else { continue };
            io_threads.spawn_connection(stream, async move |stream| {
                connection(settings, stream, tls, shutdown).await;
                drop((counted, permit, alive));
            });
        }
        if notifies {
            notify(STOPPING);
        }
        watching.abort();
        let state = Arc::clone(&settings.borrow().state);
        let cluster = state.options.cluster.clone();
        cluster.iter().for_each(|cluster| cluster.resign());
        state.feed_streams.end();
        tracing::info!(running = state.metrics.running.get(), "stopping");
        drop((listener, alive));
        let timeout = state.options.limits.shutdown_timeout;
        if tokio::time::timeout(timeout, ended.recv()).await.is_err() {
            tracing::warn!(running = state.metrics.running.get(), "cancelling running requests");
            state.cancel_all();
            // Cancelled requests end on their own; clients that do not read are not waited for.
            let final_reads = async {
                state.wait_until_idle().await;
                tokio::time::sleep(FINAL_READ_TIMEOUT).await;
            };
            tokio::select! {
                _ = ended.recv() => {}
                () = final_reads => {}
                () = tokio::time::sleep(CANCEL_TIMEOUT) => {}
            }
        }
        if let Some(cluster) = cluster {
            // Those that were cancelled have ended.
            _ = tokio::task::spawn_blocking(move || cluster.wait_for_forwarded(timeout)).await;
        }
        Ok(())
    }
}

/// Activates reloaded options for subsequent requests.
fn apply(reload: PendingReload, settings: &watch::Sender<Settings>) {
    let PendingReload { options, users, tls, done } = reload;
    raise_file_limit(options.limits.connections);
    settings.send_modify(|settings| {
        let state = Arc::new(settings.state.with_options(options, users));
        *settings = Settings { state, tls };
    });
    // The caller may have stopped waiting.
    let _ = done.send(());
}

/// Serves one connection.
async fn connection(
    settings: watch::Receiver<Settings>,
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    mut shutdown: watch::Receiver<bool>,
) {
    let limits = settings.borrow().state.options.limits.clone();
    // Responses are written in one piece, so Nagle's algorithm would only delay them.
    let _ = stream.set_nodelay(true);
    let has_tls = tls.is_some();
    let Ok(peer) = stream.peer_addr() else { return };
    let host: Arc<str> = format!("/{peer}").into();
    let stream = match tls {
        None => TimedStream::plain(stream, limits.write_timeout),
        Some(tls) => match tokio::time::timeout(limits.head_timeout, tls.accept(stream)).await {
            Ok(Ok(stream)) => TimedStream::tls(stream, limits.write_timeout),
            _ => return,
        },
    };
    let upgrade = Arc::new(UpgradeCell::default());
    let service_upgrade = Arc::clone(&upgrade);
    let request_settings = settings.clone();
    let in_progress = Arc::new(());
    let request_in_progress = Arc::clone(&in_progress);
    let old_client = Arc::new(AtomicBool::new(false));
    let has_old_client = Arc::clone(&old_client);
    let service = service_fn(move |request: Request<Incoming>| {
        has_old_client.store(request.version() < Version::HTTP_11, Ordering::Relaxed);
        let (state, upgrade) = (Arc::clone(&request_settings.borrow().state), Arc::clone(&service_upgrade));
        let in_progress = Arc::clone(&request_in_progress);
        // Boxed, so that the connection is movable and can be split into its parts at the end.
        let caller = Client { peer: peer.ip().to_canonical(), tls: has_tls, is_forwarded: false };
        Box::pin(async move {
            let mut reply = route::answer(&state, caller, &upgrade, request).await;
            reply.body_mut().in_progress = Some(in_progress);
            Ok::<_, Infallible>(reply)
        })
    });
    // One reference is here, one in the service.
    let is_idle = || Arc::strong_count(&in_progress) <= 2;
    let mut connection = http_builder(&limits).serve_connection(TokioIo::new(stream), service);
    let ended = tokio::select! {
        ended = poll_fn(|context| connection.poll_without_shutdown(context)) => Some(ended),
        _ = shutdown.wait_for(|shutdown| *shutdown) => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            Pin::new(&mut connection).graceful_shutdown();
            loop {
                let ended = poll_fn(|context| connection.poll_without_shutdown(context));
                match tokio::time::timeout(FINAL_HEAD_TIMEOUT, ended).await {
                    Ok(ended) => break ended,
                    // The head of the next request has not arrived.
                    Err(_) if is_idle() => return,
                    Err(_) => {}
                }
            }
        }
    };
    let parts = connection.into_parts();
    let mut stream = parts.io.into_inner();
    if let (Ok(()), Some(access)) = (&ended, upgrade.take()) {
        return gremlin::serve(settings, stream, &parts.read_buf, access, host, shutdown).await;
    }
    match ended {
        Ok(()) => {}
        // An idle connection that sends nothing is closed without a response.
        Err(error) if error.is_timeout() && !parts.read_buf.is_empty() => {
            let text =
                minimal_response(408, "Request Timeout", "the head of the request arrived too slowly", "");
            let _ = stream.write_all(text.as_bytes()).await;
        }
        // The client disconnected or does not speak HTTP, or the response was aborted. Without chunks, which
        // came with HTTP/1.1, a body ends with the connection; a reset tells that it was not the end.
        Err(_) => {
            if old_client.load(Ordering::Relaxed) {
                stream.reset_on_close();
            }
            return;
        }
    }
    let _ = stream.shutdown().await;
}

/// A response without a parsed request.
fn minimal_response(status: u16, reason: &str, message: &str, header: &str) -> String {
    let body = format!("error: {message}\n");
    format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n{header}\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
}

fn http_builder(limits: &Limits) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_timeout)
        .max_headers(limits.headers)
        .max_header_size(limits.head_bytes)
        .max_buf_size(limits.head_bytes.max(128 << 10));
    builder
}

/// Refuses a connection with 503, if the response can be written without blocking.
fn refuse(stream: TcpStream, tls: bool, message: &str) {
    // Not through tokio, which has not yet registered that the socket is writable; the stream is
    // non-blocking.
    if let (false, Ok(mut stream)) = (tls, stream.into_std()) {
        let text = minimal_response(503, "Service Unavailable", message, "Retry-After: 1\r\n");
        let _ = stream.write(text.as_bytes());
        let _ = stream.shutdown(Shutdown::Write);
    }
}

/// Raises the limit on open files for this number of connections, as far as the system allows.
fn raise_file_limit(connections: usize) {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit, setrlimit};
        let mut limit = getrlimit(Resource::Nofile);
        let wanted = connections as u64 + OTHER_FILES_MAX;
        if limit.current.is_some_and(|current| current < wanted) {
            limit.current = Some(limit.maximum.map_or(wanted, |most| most.min(wanted)));
            let _ = setrlimit(Resource::Nofile, limit);
        }
    }
    #[cfg(not(unix))]
    let _ = connections;
}

/// Shuts down on SIGINT and SIGTERM; the second signal ends the process at once.
fn stop_at_signals(stopper: Stopper) -> Result<()> {
    #[cfg(unix)]
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
        .map_err(|error| Error::io("wait for signals", &error))?;
    tokio::spawn(async move {
        for is_first in [true, false] {
            #[cfg(unix)]
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            #[cfg(not(unix))]
            let _ = tokio::signal::ctrl_c().await;
            if !is_first {
                std::process::exit(130);
            }
            stopper.stop();
        }
    });
    Ok(())
}

/// Reloads on SIGHUP, whose default action ends the process.
fn reload_at_signals(reload: ReloadHook, reloader: Reloader) -> Result<()> {
    #[cfg(unix)]
    {
        let mut hangup = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup())
            .map_err(|error| Error::io("wait for signals", &error))?;
        tokio::spawn(async move {
            let mut reload = reload;
            while hangup.recv().await.is_some() {
                let reloader = reloader.clone();
                let work = tokio::task::spawn_blocking(move || {
                    let done = (reload.options)().and_then(|options| reloader.reload(options));
                    (reload.done)(&done);
                    reload
                });
                let Ok(again) = work.await else { return };
                reload = again;
            }
        });
    }
    #[cfg(not(unix))]
    drop((reload, reloader));
    Ok(())
}

fn tls(files: &crate::options::Tls) -> Result<Arc<ServerConfig>> {
    let wrong = |path: &std::path::Path, error: &dyn std::fmt::Display| {
        Error::new(ErrorKind::Input, format!("{}: {error}", path.display()))
    };
    let certificates = CertificateDer::pem_file_iter(&files.cert)
        .and_then(Iterator::collect::<std::result::Result<Vec<_>, _>>)
        .map_err(|error| wrong(&files.cert, &error))?;
    if certificates.is_empty() {
        return Err(wrong(&files.cert, &"the file contains no certificate"));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| wrong(&files.key, &error))?;
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(certificates, key))
        .map_err(|error| wrong(&files.key, &error))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// The error of addresses that cannot be bound, with the remedy.
fn bind_error(addresses: &[SocketAddr], error: &std::io::Error) -> Error {
    let list = addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let hint = match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            "another process listens there, perhaps another server: choose another port with --bind ADDRESS:PORT \
             (`bind` in a configuration file); port 0 is any free one"
        }
        std::io::ErrorKind::AddrNotAvailable => {
            "choose an address of this machine with --bind (`bind` in a configuration file)"
        }
        std::io::ErrorKind::PermissionDenied => {
            "ports below 1024 need a privilege: choose another port with --bind (`bind` in a configuration file)"
        }
        _ => return Error::io(format!("listen on {list}"), error),
    };
    Error::io(format!("listen on {list}"), error).with_hint(hint)
}

//! The server as a thing that is bound, runs, and ends.
//!
//! # Shape
//! `bind` takes the address and checks the options, so that mistakes show before anything runs; `run` owns the threads:
//! a few that talk to connections, and those on which queries run, which are as many as there are places for requests.
//! # The end
//! At a signal or [`Stopper::stop`] nobody is let in any more; connections end after the request that they are at;
//! what still runs after [`crate::Limits::shutdown_timeout`] is cancelled, and its clients see a broken answer.

use crate::auth::Users;
use crate::gremlin;
use crate::heavy::STACK_BYTES;
use crate::metrics::Counted;
use crate::notify::{READY, STOPPING, notify};
use crate::options::{Limits, ServerOptions};
use crate::origin;
use crate::route;
use crate::state::State;
use crate::talkers::Talkers;
use crate::wire::Wire;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::future::poll_fn;
use std::io::Write;
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::Arc;
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

/// Connections that wait to be accepted.
#[cfg(unix)]
const BACKLOG: i32 = 1024;

/// Open files besides connections: the database's, and what the process has anyway.
#[cfg(unix)]
const FILES_BESIDES: u64 = 512;

/// How long cancelled requests have to notice.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// The pause after a failure to accept, mostly for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A server that listens, and answers as soon as it runs.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    state: Arc<State>,
    tls: Option<Arc<ServerConfig>>,
    stopper: Stopper,
}

/// Ends a running server from another thread.
#[derive(Clone, Debug)]
pub struct Stopper(watch::Sender<bool>);

impl Stopper {
    /// Begins the end; see the header of `server.rs`. Returns at once.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Server {
    /// Takes an address and checks the options. Connections wait until [`Server::run`].
    ///
    /// # Errors
    /// [`ErrorKind::Input`]: an address that others can reach without TLS, unless that is allowed; certificates, keys or
    /// users that are none. [`ErrorKind::Io`]: the address is taken. [`ErrorKind::Unavailable`]: another process writes
    /// to the database, unless the server is to be read-only.
    pub fn bind(database: Database, options: ServerOptions) -> Result<Self> {
        let open = options.bind.iter().find(|address| !address.ip().is_loopback());
        if let Some(address) = open
            && options.tls.is_none()
            && !options.allow_plain_http
        {
            let message = format!("{address} can be reached from outside, and there is no TLS");
            return Err(Error::new(ErrorKind::Input, message).with_hint(
                "configure [tls], or say --allow-plain-http if something in front of it encrypts",
            ));
        }
        origin::check_options(&options.cors, &options.hosts)?;
        let metrics = Arc::default();
        let users = Users::new(&options, &metrics)?;
        let tls = options.tls.as_ref().map(tls).transpose()?;
        if !options.read_only {
            // The directory is this process's from now on, or the mistake shows now.
            database.begin()?.roll_back();
        }
        let listener = TcpListener::bind(options.bind.as_slice())
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
            .map_err(|error| Error::io(format!("listen on {}", addresses(&options.bind)), &error))?;
        // The library asks for 128; of more that come at once some would wait for a second.
        #[cfg(unix)]
        let _ = rustix::net::listen(&listener, BACKLOG);
        let state = Arc::new(State::new(database, options, users, metrics));
        Ok(Self { listener, state, tls, stopper: Stopper(watch::Sender::new(false)) })
    }

    /// The address that it listens on.
    ///
    /// # Errors
    /// [`ErrorKind::Io`].
    pub fn address(&self) -> Result<SocketAddr> {
        self.listener.local_addr().map_err(|error| Error::io("tell the address", &error))
    }

    /// Whether clients are to say `https`.
    #[must_use]
    pub fn has_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// What ends it.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Answers requests until it is stopped.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]: the system gives no threads.
    pub fn run(self) -> Result<()> {
        let limits = &self.state.options.limits;
        // Heavy requests have threads of their own; passwords and one to spare.
        let talkers = Talkers::start(limits.requests + 4, STACK_BYTES)
            .map_err(|error| Error::io("start the server", &error))?;
        raise_file_limit(limits.connections);
        let state = Arc::clone(&self.state);
        let done = talkers.block_on(self.serve(&talkers));
        state.cancel_all();
        talkers.block_on(async {
            let _ = tokio::time::timeout(CANCEL_TIMEOUT, state.no_heavy()).await;
        });
        talkers.end(CANCEL_TIMEOUT);
        done
    }

    async fn serve(self, talkers: &Talkers) -> Result<()> {
        let listener =
            tokio::net::TcpListener::from_std(self.listener).map_err(|error| Error::io("listen", &error))?;
        let state = self.state;
        let mut stopped = self.stopper.0.subscribe();
        if state.options.signals {
            stop_at_signals(self.stopper.clone())?;
        }
        let tls = self.tls.map(TlsAcceptor::from);
        let notifies = state.options.signals;
        if notifies {
            notify(READY);
        }
        // Closed when the last connection has ended.
        let (alive, mut ended) = mpsc::channel::<Infallible>(1);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = stopped.wait_for(|stopped| *stopped) => break,
            };
            let Ok((stream, _)) =
                accepted.inspect_err(|error| tracing::warn!(%error, "could not accept a connection"))
            else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            let open = state.metrics.connections.get();
            if usize::try_from(open).is_ok_and(|open| open >= state.options.limits.connections) {
                state.metrics.refused_connections.inc();
                tracing::debug!(open, "connection refused: too many");
                refuse(stream, tls.is_some());
                continue;
            }
            let counted = Counted::new(&state.metrics.connections);
            let (state, tls, stopped) = (Arc::clone(&state), tls.clone(), stopped.clone());
            let alive = alive.clone();
            let Ok(stream) = stream.into_std() else { continue };
            talkers.talk(stream, async move |stream| {
                connection(state, stream, tls, stopped).await;
                drop((counted, alive));
            });
        }
        if notifies {
            notify(STOPPING);
        }
        tracing::info!(running = state.metrics.running.get(), "stopping");
        drop((listener, alive));
        let patience = state.options.limits.shutdown_timeout;
        if tokio::time::timeout(patience, ended.recv()).await.is_err() {
            tracing::warn!(running = state.metrics.running.get(), "cancelling what still runs");
            state.cancel_all();
            // Cancelled requests break off on their own.
            let _ = tokio::time::timeout(CANCEL_TIMEOUT, ended.recv()).await;
        }
        Ok(())
    }
}

/// Talks to one client.
async fn connection(
    state: Arc<State>,
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    mut stopped: watch::Receiver<bool>,
) {
    let limits = state.options.limits.clone();
    // Answers are written in one piece; waiting for more would only delay them.
    let _ = stream.set_nodelay(true);
    let has_tls = tls.is_some();
    let Ok(peer) = stream.peer_addr() else { return };
    let host: Arc<str> = format!("/{peer}").into();
    let wire = match tls {
        None => Wire::plain(stream, limits.write_timeout),
        Some(tls) => match tokio::time::timeout(limits.head_timeout, tls.accept(stream)).await {
            Ok(Ok(stream)) => Wire::tls(stream, limits.write_timeout),
            _ => return,
        },
    };
    let upgrade = Arc::new(gremlin::Slot::default());
    let service_upgrade = Arc::clone(&upgrade);
    let service_state = Arc::clone(&state);
    let service = service_fn(move |request| {
        let (state, upgrade) = (Arc::clone(&service_state), Arc::clone(&service_upgrade));
        // In a box, so that the connection can be moved, and taken apart at its end.
        let caller = (peer.ip().to_canonical(), has_tls);
        Box::pin(async move { Ok::<_, Infallible>(route::answer(&state, caller, &upgrade, request).await) })
    });
    let mut connection = builder(&limits).serve_connection(TokioIo::new(wire), service);
    let ended = tokio::select! {
        ended = poll_fn(|context| connection.poll_without_shutdown(context)) => Some(ended),
        _ = stopped.wait_for(|stopped| *stopped) => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            Pin::new(&mut connection).graceful_shutdown();
            poll_fn(|context| connection.poll_without_shutdown(context)).await
        }
    };
    let parts = connection.into_parts();
    let mut wire = parts.io.into_inner();
    if let (Ok(()), Some(access)) = (&ended, upgrade.take()) {
        return gremlin::serve(state, wire, &parts.read_buf, access, host, stopped).await;
    }
    match ended {
        Ok(()) => {}
        // One that says nothing at all is a connection that is not used any more: it ends without a word.
        Err(error) if error.is_timeout() && !parts.read_buf.is_empty() => {
            let text = bare(408, "Request Timeout", "the head of the request came too slowly", "");
            let _ = wire.write_all(text.as_bytes()).await;
        }
        // The client's: gone, no HTTP. It has been told what can be told. Or an answer that is broken off.
        Err(_) => return,
    }
    let _ = wire.shutdown().await;
}

/// An answer where no request has been understood.
fn bare(status: u16, reason: &str, message: &str, header: &str) -> String {
    let body = format!("error: {message}\n");
    format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n{header}\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
}

fn builder(limits: &Limits) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_timeout)
        .max_headers(limits.headers)
        .max_header_size(limits.head_bytes)
        .max_buf_size(limits.head_bytes.max(128 << 10));
    builder
}

/// Tells a client that there is no room, as far as that can be done at once.
fn refuse(stream: TcpStream, tls: bool) {
    // Past tokio, which does not know yet that there is room to write; the stream does not block.
    if let (false, Ok(mut stream)) = (tls, stream.into_std()) {
        let text = bare(503, "Service Unavailable", "too many connections", "Retry-After: 1\r\n");
        let _ = stream.write(text.as_bytes());
        let _ = stream.shutdown(Shutdown::Write);
    }
}

/// Sees to it that there can be as many connections as there may be, as far as the system lets us.
fn raise_file_limit(connections: usize) {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit, setrlimit};
        let mut limit = getrlimit(Resource::Nofile);
        let wanted = connections as u64 + FILES_BESIDES;
        if limit.current.is_some_and(|current| current < wanted) {
            limit.current = Some(limit.maximum.map_or(wanted, |most| most.min(wanted)));
            let _ = setrlimit(Resource::Nofile, limit);
        }
    }
    #[cfg(not(unix))]
    let _ = connections;
}

/// Stops at SIGINT and SIGTERM; at the second one the process ends at once.
fn stop_at_signals(stopper: Stopper) -> Result<()> {
    #[cfg(unix)]
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
        .map_err(|error| Error::io("wait for signals", &error))?;
    tokio::spawn(async move {
        for patience in [true, false] {
            #[cfg(unix)]
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            #[cfg(not(unix))]
            let _ = tokio::signal::ctrl_c().await;
            if !patience {
                std::process::exit(130);
            }
            stopper.stop();
        }
    });
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
        return Err(wrong(&files.cert, &"there is no certificate in it"));
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

fn addresses(list: &[SocketAddr]) -> String {
    list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

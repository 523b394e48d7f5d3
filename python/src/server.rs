//! The native part of `vervet.Server`: an open database over HTTP, on threads of its own.

use crate::call::check_process;
use crate::error::raised;
use pyo3::prelude::*;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use vervet::{Database, Error, ErrorKind, Result};
use vervet_model::lock;
use vervet_server::{ServerOptions, Stopper};

/// Where to listen, and for what.
pub(crate) struct Listening<'a> {
    pub host: &'a str,
    /// In order; the first that is free is used. 0: any free one.
    pub ports: &'a [u16],
    pub read_only: bool,
    pub allow_plain_http: bool,
}

/// A running server.
#[derive(Debug)]
pub(crate) struct Serving {
    address: SocketAddr,
    stopper: Stopper,
    /// `None`: ended.
    thread: Mutex<Option<JoinHandle<Result<()>>>>,
}

impl Serving {
    /// Binds an address and starts the server.
    ///
    /// # Errors
    /// An address that cannot be bound or is not permitted.
    pub(crate) fn start(database: Database, how: &Listening<'_>, threads: Option<usize>) -> Result<Self> {
        let mut options = ServerOptions::default();
        options.bind.clear();
        for port in how.ports {
            let found = (how.host, *port).to_socket_addrs();
            let found = found.map_err(|error| Error::io(format!("look up {}", how.host), &error))?;
            options.bind.extend(found);
        }
        options.read_only = how.read_only;
        options.allow_plain_http = how.allow_plain_http;
        if how.host.parse::<std::net::IpAddr>().is_err() && how.host != "localhost" {
            options.hosts.push(how.host.to_owned());
        }
        options.limits.threads = threads;
        let server = vervet_server::Server::bind(database, options).map_err(|error| match error.kind() {
            // The hint of the command line names its options.
            ErrorKind::Io => Error::new(error.kind(), error.message().to_owned())
                .with_hint("choose another port; without `port`, a free one is chosen if 7878 is taken"),
            ErrorKind::Input if !how.allow_plain_http => Error::new(error.kind(), error.message().to_owned())
                .with_hint(
                    "pass allow_plain_http=True behind a proxy that encrypts, or in a trusted network",
                ),
            _ => error,
        })?;
        let (address, stopper) = (server.address()?, server.stopper());
        let thread = std::thread::Builder::new().name("vervet-serve".to_owned()).spawn(move || server.run());
        let thread = thread.map_err(|error| Error::io("start a thread", &error))?;
        Ok(Self { address, stopper, thread: Mutex::new(Some(thread)) })
    }

    /// Begins the shutdown.
    pub(crate) fn begin_stop(&self) {
        self.stopper.stop();
    }

    /// Shuts it down and waits until it has ended.
    ///
    /// # Errors
    /// Those of the server.
    pub(crate) fn stop(&self) -> Result<()> {
        self.begin_stop();
        match lock(&self.thread).take() {
            None => Ok(()),
            Some(thread) => {
                thread.join().unwrap_or_else(|_| Err(Error::internal("the thread of the server panicked")))
            }
        }
    }
}

/// A server of an open database.
#[pyclass(frozen, name = "Server", module = "vervet._vervet")]
#[derive(Debug)]
pub(crate) struct Server {
    serving: Arc<Serving>,
    process: u32,
}

impl Server {
    pub(crate) fn new(serving: Arc<Serving>, process: u32) -> Self {
        Self { serving, process }
    }
}

#[pymethods]
impl Server {
    /// The address as text, and the port.
    #[getter]
    fn address(&self) -> (String, u16) {
        (self.serving.address.ip().to_string(), self.serving.address.port())
    }

    /// Whether it has not ended.
    #[getter]
    fn is_running(&self, py: Python<'_>) -> bool {
        let is_running = || match &*lock(&self.serving.thread) {
            Some(thread) => !thread.is_finished(),
            None => false,
        };
        std::process::id() == self.process && py.detach(is_running)
    }

    /// Shuts it down: requests under way have ten seconds.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {
            check_process(self.process)?;
            self.serving.stop()
        })
        .map_err(|error| raised(&error))
    }
}

//! The server under test: a child process that runs this program with `--serve`.
//!
//! It loads the data into memory, prints its address, and shuts down gracefully at the end of its standard
//! input, hence also when the parent process dies.

use crate::Error;
use crate::client::Connection;
use clap::ValueEnum;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use vervet::{Database, Format};
use vervet_server::{Server, ServerOptions};

/// Memory cap of one query, in all parts. Small, so that eight queries at the cap are visible in the memory
/// of the process.
pub(crate) const MEMORY_BYTES: u64 = 256 << 20;

/// Head, body and write timeouts of [`LimitProfile::Short`].
pub(crate) const WIRE_TIMEOUT: Duration = Duration::from_secs(2);

/// Query timeout of all profiles except [`LimitProfile::Normal`].
pub(crate) const QUERY_TIMEOUT: Duration = Duration::from_secs(5);

/// Limits of the server, and its additional data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum LimitProfile {
    /// Default timeouts.
    Normal,
    /// Timeouts of a few seconds, which shorten the attacks that run into them.
    Short,
    /// [`QUERY_TIMEOUT`], and the statements that [`crate::siege`] queries.
    Siege,
}

/// Runs the server.
pub(crate) fn serve(data: &Path, profile: LimitProfile) -> Result<(), Error> {
    let database = Database::in_memory();
    database.load_file(data)?;
    let mut options = ServerOptions::default();
    options.bind = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
    options.limits.memory_bytes = MEMORY_BYTES;
    if profile != LimitProfile::Normal {
        options.limits.timeout = QUERY_TIMEOUT;
    }
    if profile == LimitProfile::Siege {
        database.load_text(Format::Turtle, &crate::siege::statements())?;
    }
    if profile == LimitProfile::Short {
        options.limits.head_timeout = WIRE_TIMEOUT;
        options.limits.body_timeout = WIRE_TIMEOUT;
        options.limits.write_timeout = WIRE_TIMEOUT;
    }
    let server = Server::bind(database, options)?;
    let (address, stopper) = (server.address()?, server.stopper());
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        stopper.stop();
    });
    println!("{address}");
    std::io::stdout().flush()?;
    Ok(server.run()?)
}

/// A running server.
pub(crate) struct ServerProcess {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl ServerProcess {
    /// Starts a server and waits until it has loaded `data`.
    pub(crate) fn start(data: &Path, profile: LimitProfile) -> Result<Self, Error> {
        let profile = profile.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned());
        let mut child = Command::new(std::env::current_exe()?)
            .args(["--serve", &profile, "--data"])
            .arg(data)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("the server has no standard output")?)
            .read_line(&mut line)?;
        let address = line.trim().parse().map_err(|_| "the server did not start")?;
        Ok(Self { child, address })
    }

    /// Shuts the server down and waits for it.
    ///
    /// # Errors
    /// An exit status other than success.
    pub(crate) fn end(mut self) -> Result<(), Error> {
        drop(self.child.stdin.take());
        let status = self.child.wait()?;
        if status.success() { Ok(()) } else { Err(format!("the server ended with {status}").into()) }
    }

    /// Requests `/metrics`.
    pub(crate) fn metrics(&self) -> Result<Metrics, Error> {
        let response = Connection::open(self.address)?.get("/metrics")?;
        Ok(Metrics(response.beginning))
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // No effect after `end`.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The text of `/metrics`.
pub(crate) struct Metrics(String);

impl Metrics {
    /// The value of the metric `name`; 0 if it is missing.
    pub(crate) fn number(&self, name: &str) -> f64 {
        let line = self.0.lines().find(|line| line.split(' ').next() == Some(name));
        line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(0.0)
    }

    /// Resident memory of the server in MiB.
    pub(crate) fn memory(&self) -> f64 {
        self.number("process_resident_memory_bytes") / f64::from(1 << 20)
    }
}

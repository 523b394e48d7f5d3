//! The server: this program once more, as a process of its own.
//!
//! It loads the data into memory, prints its address, and ends gracefully when its standard input ends, which
//! it does also if the parent dies.

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

/// What the tables of one query may take, in both parts: little enough for eight of them to show in the
/// process.
pub(crate) const MEMORY_BYTES: u64 = 256 << 20;

/// How long the impatient server waits for heads, bodies, and clients that take nothing.
pub(crate) const WIRE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a query of the impatient server may run.
pub(crate) const QUERY_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the server waits for its clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Patience {
    /// The defaults.
    Normal,
    /// Seconds instead of half minutes, so that attacks on them do not take as long.
    Short,
    /// Seconds for queries alone, and the statements that [`crate::siege`] asks about.
    Siege,
}

/// Is the server.
pub(crate) fn serve(data: &Path, patience: Patience) -> Result<(), Error> {
    let database = Database::in_memory();
    database.load_file(data)?;
    let mut options = ServerOptions::default();
    options.bind = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
    options.limits.memory_bytes = MEMORY_BYTES;
    if patience != Patience::Normal {
        options.limits.timeout = QUERY_TIMEOUT;
    }
    if patience == Patience::Siege {
        database.load_text(Format::Turtle, &crate::siege::statements())?;
    }
    if patience == Patience::Short {
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
pub(crate) struct Served {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Served {
    /// Starts one and waits until it has loaded `data`.
    pub(crate) fn start(data: &Path, patience: Patience) -> Result<Self, Error> {
        let patience =
            patience.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned());
        let mut child = Command::new(std::env::current_exe()?)
            .args(["--serve", &patience, "--data"])
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

    /// Has it end, which it must do in order.
    pub(crate) fn end(mut self) -> Result<(), Error> {
        drop(self.child.stdin.take());
        let status = self.child.wait()?;
        if status.success() { Ok(()) } else { Err(format!("the server ended with {status}").into()) }
    }

    /// What it tells about itself.
    pub(crate) fn metrics(&self) -> Result<Metrics, Error> {
        let answer = Connection::open(self.address)?.get("/metrics")?;
        Ok(Metrics(answer.beginning))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Does nothing to one that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The text of `/metrics`.
pub(crate) struct Metrics(String);

impl Metrics {
    /// One number; 0 if it is not there.
    pub(crate) fn number(&self, name: &str) -> f64 {
        let line = self.0.lines().find(|line| line.split(' ').next() == Some(name));
        line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(0.0)
    }

    /// MiB of memory that the server holds.
    pub(crate) fn memory(&self) -> f64 {
        self.number("process_resident_memory_bytes") / f64::from(1 << 20)
    }
}

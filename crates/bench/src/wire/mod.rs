//! `vervet-bench wire`: the overhead of the Gremlin Server over the embedded interface.
//!
//! # Shape
//! * `clients`: the client interface. `raw_client`: a WebSocket without a driver, in this process. `driver`:
//!   TinkerPop's driver for Java, a process (`peers/gremlin`), to our server and optionally to TinkerPop's
//!   own with TinkerGraph.
//! * `replay_server`: a server that replays our server's responses.
//! * `figures`: tables and targets. `options`: options, requests and names.
//! * The server runs in this process on a database in a directory, so its processor time is that of this
//!   process while the driver works.
//! * Each text first runs once with each of its parameters, and must return what the embedded interface
//!   returns.
//!
//! # Comparison
//! All times are wall times of one call, since waiting is what a server adds. The request `g.inject(1)` shows
//! the cost of the transport itself, the bare client the driver's share of it, and the same requests to the
//! floor server the part that no server can avoid.

mod clients;
mod driver;
mod figures;
mod options;
mod raw_client;
mod replay_server;

pub use options::WireOptions;

use crate::measure::{process_cpu, quantile};
use crate::sections::SectionReport;
use crate::snb::{Found, Network, Operation, SubstitutionParameters, once, operations};
use clients::{Client, Format, PipelinedRequests, Writes};
use driver::Driver;
use figures::{ClientSetup, PipelinedFigures, SequentialFigures, WriteFigures};
use options::{ADD, FLOOR, LIGHT, NOTHING, OURS, PEER};
use replay_server::{RecordedResponses, ReplayServer};
use std::hint::black_box;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use vervet::Database;
use vervet::gremlin::{GremlinOptions, Value};
use vervet_conformance::ldbc::Parameters;
use vervet_model::{Error, Result};
use vervet_server::{Server, ServerOptions};

/// Runs the benchmark.
///
/// # Errors
/// A failure; a client gets other results than the embedded interface returns.
pub fn run(network: &Network, options: &WireOptions) -> Result<SectionReport> {
    let folder = tempfile::Builder::new()
        .prefix("vervet-bench-")
        .tempdir()
        .map_err(|error| Error::io("make a temporary folder", &error))?;
    let database = Database::open_or_create(folder.path().join("db"))?;
    network.load(&database)?;
    let substitution = SubstitutionParameters::new(&database, options.parameters.as_deref(), options.count)?;
    let mut light = vec![nothing()];
    light.extend(operations(&substitution, &LIGHT.map(str::to_owned))?);
    for operation in &mut light[1..] {
        // No parameters that the text does not use.
        let person =
            |i| Parameters::default().person("person", *SubstitutionParameters::of(&substitution.persons, i));
        operation.parameters = (0..options.count).map(person).collect();
    }
    let mut figures = figures::Figures::new(network, options);
    let mut found = Vec::new();
    for operation in &light {
        found.push(once(&database, operation)?);
        figures.embedded.push(embedded(&database, operation, options.time)?);
    }
    figures.embedded_writes = embedded_writes(&database, options)?;

    let running = Running::start(&database)?;
    let mut measure = Measure { options, light: &light, found: &found, database: Some(&database), number: 0 };
    let mut raw_client = raw_client::RawClient::new(running.address);
    let replay_server = ReplayServer::start(RecordedResponses::record(&mut raw_client, &light)?)?;
    let format = Format::GraphBinary;
    measure.light(OURS, &mut raw_client, format, &mut figures)?;
    measure.light(FLOOR, &mut raw_client::RawClient::new(replay_server.address), format, &mut figures)?;
    measure.heavy(OURS, &mut raw_client, format, &mut figures)?;
    if let Some(script) = &options.script {
        let mut driver = Driver::start(script)?;
        for format in [Format::GraphBinary, Format::GraphSon] {
            driver.connect(running.address, format)?;
            measure.light(OURS, &mut driver, format, &mut figures)?;
            driver.connect(replay_server.address, format)?;
            measure.light(FLOOR, &mut driver, format, &mut figures)?;
            driver.connect(running.address, format)?;
            measure.heavy(OURS, &mut driver, format, &mut figures)?;
        }
        if options.against_gremlin_server {
            let files = folder.path().join("csv");
            std::fs::create_dir(&files).map_err(|error| Error::io("make a temporary folder", &error))?;
            network.write_to(&files)?;
            let peer = driver::GremlinServer::start(script, &files)?;
            measure.database = None;
            for format in [Format::GraphBinary, Format::GraphSon] {
                driver.connect(peer.address, format)?;
                measure.light(PEER, &mut driver, format, &mut figures)?;
                measure.heavy(PEER, &mut driver, format, &mut figures)?;
            }
        }
    }
    running.end()?;
    Ok(figures.report())
}

/// Runs a small version with the bare client on a generated network.
///
/// # Errors
/// As [`run`].
pub fn self_check() -> Result<SectionReport> {
    let options = WireOptions {
        script: None,
        against_gremlin_server: false,
        parameters: None,
        count: 4,
        time: Duration::from_millis(10),
        vertices: 500,
        in_flight: 64,
        commit_each: 200,
    };
    run(&Network::made(60), &options)
}

/// The request without work, as an operation.
fn nothing() -> Operation {
    Operation::plain("g.inject(1)", NOTHING, vec![Parameters::default()])
}

/// A server in this process.
struct Running {
    address: SocketAddr,
    stopper: vervet_server::Stopper,
    thread: std::thread::JoinHandle<Result<()>>,
}

impl Running {
    fn start(database: &Database) -> Result<Self> {
        let mut options = ServerOptions::default();
        options.bind = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
        let server = Server::bind(database.clone(), options)?;
        let (address, stopper) = (server.address()?, server.stopper());
        Ok(Self { address, stopper, thread: std::thread::spawn(move || server.run()) })
    }

    fn end(self) -> Result<()> {
        self.stopper.stop();
        self.thread.join().map_err(|_| Error::internal("the server panicked"))?
    }
}

/// Wall times of the embedded interface, from the text to values, in µs.
fn embedded(database: &Database, operation: &Operation, time: Duration) -> Result<Vec<f64>> {
    let all: Vec<GremlinOptions> = operation.parameters.iter().map(gremlin_options).collect();
    let mut times = Vec::new();
    for counted in [false, true] {
        let begin = Instant::now();
        while begin.elapsed() < time || times.is_empty() && counted {
            for options in &all {
                let start = Instant::now();
                black_box(database.gremlin_with(&operation.gremlin, options)?);
                if counted {
                    times.push(start.elapsed().as_secs_f64() * 1e6);
                }
            }
        }
    }
    Ok(times)
}

fn gremlin_options(parameters: &Parameters) -> GremlinOptions {
    GremlinOptions { bindings: parameters.bindings(), ..GremlinOptions::default() }
}

/// Vertices per second that an embedded program adds one by one, in transactions as large as a session's.
fn embedded_writes(database: &Database, options: &WireOptions) -> Result<f64> {
    let begin = Instant::now();
    let mut transaction = database.begin()?;
    for number in 0..options.vertices {
        let bound = GremlinOptions::default().with_binding("x", format!("embedded {number}"));
        black_box(transaction.gremlin_with(ADD, &bound)?);
        if (number + 1) % options.commit_each == 0 {
            transaction.commit()?;
            transaction = database.begin()?;
        }
    }
    transaction.commit()?;
    Ok(f64::from(options.vertices) / begin.elapsed().as_secs_f64())
}

/// Measures all requests with a client.
struct Measure<'m> {
    options: &'m WireOptions,
    light: &'m [Operation],
    found: &'m [Vec<Found>],
    /// The database of our server.
    database: Option<&'m Database>,
    /// The number of the next vertex name.
    number: usize,
}

impl Measure<'_> {
    /// Sequential requests.
    fn light(
        &self,
        server: &'static str,
        client: &mut dyn Client,
        format: Format,
        figures: &mut figures::Figures,
    ) -> Result<()> {
        let setup = ClientSetup::new(server, client.name(), format);
        for (at, operation) in self.light.iter().enumerate() {
            let seen = client.look(&operation.gremlin, &operation.parameters)?;
            if seen != self.found[at] {
                let message = format!("{}: {setup} has {seen:?}, not {:?}", operation.name, self.found[at]);
                return Err(Error::internal(message));
            }
            let (begin, own) = (process_cpu(), client.own_cpu());
            let micros = client.one(&operation.gremlin, &operation.parameters, self.options.time)?;
            let cpu = (process_cpu() - begin).saturating_sub(client.own_cpu().saturating_sub(own));
            let requests = micros.requests.max(1) as f64;
            figures.light.push(SequentialFigures {
                setup: setup.clone(),
                at,
                median: quantile(&micros.times, 0.5),
                p99: quantile(&micros.times, 0.99),
                server_cpu: cpu.as_secs_f64() * 1e6 / requests,
            });
        }
        Ok(())
    }

    /// Pipelined requests, and writes.
    fn heavy(
        &mut self,
        server: &'static str,
        client: &mut dyn Client,
        format: Format,
        figures: &mut figures::Figures,
    ) -> Result<()> {
        let setup = ClientSetup::new(server, client.name(), format);
        for (at, operation) in self.light.iter().enumerate() {
            let (begin, own) = (process_cpu(), client.own_cpu());
            let pipelined = client.many(
                &operation.gremlin,
                &operation.parameters,
                self.options.in_flight,
                self.options.time,
            )?;
            let cpu = (process_cpu() - begin).saturating_sub(client.own_cpu().saturating_sub(own));
            let PipelinedRequests { requests, seconds, all } = pipelined;
            figures.many.push(PipelinedFigures {
                setup: setup.clone(),
                at,
                rate: requests as f64 / seconds,
                server_cpu: cpu.as_secs_f64() * 1e6 / all.max(1) as f64,
            });
        }
        // TinkerGraph has no transactions.
        let kinds: &[(bool, u32)] = match self.database {
            Some(_) => &[(true, 0), (true, 1), (false, 0), (false, 1)],
            None => &[(false, 0), (false, 1)],
        };
        for &(session, one) in kinds {
            // A sync for each vertex, or a round trip.
            let fewer = if session && one == 0 { 1 } else { 10 };
            let writes = Writes {
                vertices: (self.options.vertices / fewer).max(1),
                in_flight: if one == 1 { 1 } else { self.options.in_flight },
                session,
                commit_each: self.options.commit_each,
                name: String::new(),
            };
            // One warm-up run.
            for counted in [false, true] {
                self.number += 1;
                let writes = Writes { name: format!("{} {} ", client.name(), self.number), ..writes.clone() };
                let before = self.vertices()?;
                let (begin, own) = (process_cpu(), client.own_cpu());
                let seconds = client.write(&writes)?;
                let cpu = (process_cpu() - begin).saturating_sub(client.own_cpu().saturating_sub(own));
                if let (Some(before), Some(after)) = (before, self.vertices()?)
                    && after - before != i64::from(writes.vertices)
                {
                    let message = format!("{} vertices were added, not {}", after - before, writes.vertices);
                    return Err(Error::internal(message));
                }
                if counted {
                    figures.written.push(WriteFigures {
                        setup: setup.clone(),
                        rate: f64::from(writes.vertices) / seconds,
                        server_cpu: cpu.as_secs_f64() * 1e6 / f64::from(writes.vertices),
                        writes,
                    });
                }
            }
        }
        Ok(())
    }

    /// The number of vertices in our database.
    fn vertices(&self) -> Result<Option<i64>> {
        let Some(database) = self.database else { return Ok(None) };
        let count = database.gremlin("g.V().hasLabel('person').count()")?;
        Ok(count.values().next().and_then(Value::as_integer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_raw_client_and_the_embedded_interface_have_equal_results() {
        let report = self_check().unwrap().to_string();
        for part in ["IS1", "1 hop", "bare", "in one session", "each by itself", "vertices/s"] {
            assert!(report.contains(part), "{part} is missing in:\n{report}");
        }
    }
}

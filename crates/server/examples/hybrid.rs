//! Benchmark of light queries beside heavy ones: the latency of light queries under heavy load, and the
//! throughput of heavy queries under light load; embedded and through the server, with the gate of the driver
//! and without.
//!
//! `cargo run --release -p vervet-server --example hybrid -- [--seconds 10] [--rounds 3] [--universities
//! 10]`. Takes about `rounds * 7 * seconds` and prints a table in Markdown. For publishable figures: a quiet
//! machine, and `nice -n -5`.
//!
//! # Shape
//! The data are `--universities` of LUBM, in memory. Sixteen threads send light queries, `--rate` a second in
//! total, in open loop (exponential pauses, seeded); latency counts from the scheduled time of a query.
//! `--heavy` threads each send heavy queries in closed loop. Each round measures: light alone, heavy alone,
//! both with the gate, both without. The share of heavy throughput is the work done in the same time, in
//! seconds of a query alone, so the queries cut off at the end do not distort it. The processor time of light
//! queries is unavoidable and is listed separately.

use clap::Parser;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use vervet::{Database, DatabaseOptions, Format, OutputFormat, QueryOptions};
use vervet_server::{Server, ServerOptions};

/// The allocator of the program `vervet`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const PREFIX: &str = "PREFIX ub: <http://swat.cse.lehigh.edu/onto/univ-bench.owl#>\n";

/// Members of a department; `{}`: its number.
const LIGHT: &str =
    "SELECT ?x { ?x a ub:FullProfessor . ?x ub:worksFor <http://www.Department{}.University0.edu> }";

/// A join, a group, an order, a long result: 20 to 300 ms each with 10 universities.
const HEAVY: [&str; 4] = [
    "SELECT (COUNT(*) AS ?n) { ?s ub:takesCourse ?c . ?o ub:takesCourse ?c . ?s ub:memberOf ?d . ?o ub:memberOf ?d }",
    "SELECT ?c (COUNT(?s) AS ?n) (MIN(?s) AS ?m) { ?s ub:takesCourse ?c . ?s ub:name ?m2 } GROUP BY ?c ORDER BY DESC(?n) LIMIT 50",
    "SELECT ?s ?n { ?s ub:name ?n ; ub:memberOf ?d } ORDER BY ?n ?s LIMIT 1000",
    "SELECT ?s ?o { ?s ub:emailAddress ?o }",
];

/// Threads that send light queries.
const LIGHT_THREADS: u64 = 16;

/// Benchmark of light queries beside heavy ones.
#[derive(Parser, Clone, Debug)]
struct Arguments {
    /// Duration of each measurement, in seconds
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// Number of rounds
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// LUBM universities in the data
    #[arg(long, default_value_t = 10)]
    universities: u32,
    /// Light queries a second
    #[arg(long, default_value_t = 1000.0)]
    rate: f64,
    /// Threads that send heavy queries
    #[arg(long, default_value_t = 8)]
    heavy: usize,
    /// Only this setting: embedded or server
    #[arg(long)]
    only: Option<String>,
}

type Error = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Error> {
    let arguments = Arguments::parse();
    let mut text = Vec::new();
    vervet_generate::generate_lubm(arguments.universities, 1, &mut text)?;
    let text = String::from_utf8(text)?;
    let open = |gate: bool| -> Result<Database, Error> {
        let database = Database::in_memory_with(DatabaseOptions { gate, ..DatabaseOptions::default() });
        database.load_text(Format::NTriples, &text)?;
        Ok(database)
    };
    let (with, without) = (open(true)?, open(false)?);
    drop(text);
    println!(
        "| where | gate | light a second | median ms | 99 % ms | 99.9 % ms | longest ms | heavy work | processor s |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for place in ["embedded", "server"] {
        if arguments.only.as_deref().is_some_and(|only| only != place) {
            continue;
        }
        let servers =
            if place == "server" { Some((Running::start(&with)?, Running::start(&without)?)) } else { None };
        let client = |gate: bool| -> Client<'_> {
            match &servers {
                None => Client::Embedded(if gate { &with } else { &without }),
                Some((a, b)) => Client::Server(if gate { a.address } else { b.address }),
            }
        };
        let weights = weights(&client(true))?;
        for _ in 0..arguments.rounds {
            for (gate, light, heavy) in [
                (true, true, false),
                (true, false, true),
                (true, true, true),
                (false, false, true),
                (false, true, true),
            ] {
                let figures = measure(&arguments, &client(gate), light, heavy, &weights)?;
                figures.print(place, gate, heavy);
            }
        }
        if let Some((a, b)) = servers {
            a.stop()?;
            b.stop()?;
        }
    }
    Ok(())
}

/// The time of each heavy query alone, in seconds.
fn weights(client: &Client<'_>) -> Result<Vec<f64>, Error> {
    HEAVY
        .iter()
        .map(|text| {
            let text = format!("{PREFIX}{text}");
            let mut session = client.session()?;
            session.run(&text)?;
            let begin = Instant::now();
            session.run(&text)?;
            Ok(begin.elapsed().as_secs_f64())
        })
        .collect()
}

#[derive(Clone, Copy)]
enum Client<'d> {
    Embedded(&'d Database),
    Server(SocketAddr),
}

impl<'d> Client<'d> {
    fn session(&self) -> Result<Session<'d>, Error> {
        Ok(match *self {
            Self::Embedded(database) => Session::Embedded(database),
            Self::Server(address) => {
                let stream = TcpStream::connect(address)?;
                stream.set_nodelay(true)?;
                Session::Server(stream, vec![0; 1 << 16])
            }
        })
    }
}

enum Session<'d> {
    Embedded(&'d Database),
    Server(TcpStream, Vec<u8>),
}

impl Session<'_> {
    fn run(&mut self, text: &str) -> Result<(), Error> {
        match self {
            Self::Embedded(database) => {
                database.write(text, &QueryOptions::default(), OutputFormat::Json, &mut std::io::sink())?;
            }
            Self::Server(stream, buffer) => {
                write!(
                    stream,
                    "POST /query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/sparql-query\r\n\
                     Content-Length: {}\r\n\r\n{text}",
                    text.len()
                )?;
                read_response(stream, buffer)?;
            }
        }
        Ok(())
    }
}

/// Reads one complete response, with a length or in chunks.
fn read_response(stream: &mut TcpStream, buffer: &mut [u8]) -> Result<(), Error> {
    let mut length = 0;
    let head_end = loop {
        let read = stream.read(&mut buffer[length..])?;
        if read == 0 {
            return Err("the server closed the connection".into());
        }
        length += read;
        if let Some(end) = buffer[..length].windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let head = std::str::from_utf8(&buffer[..head_end])?.to_ascii_lowercase();
    if !head.starts_with("http/1.1 200") {
        return Err(format!("the server responded {head}").into());
    }
    let declared = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    if let Some(declared) = declared {
        let mut left = (head_end + declared).saturating_sub(length);
        while left > 0 {
            let read = stream.read(buffer)?;
            if read == 0 {
                return Err("the response is truncated".into());
            }
            left = left.saturating_sub(read);
        }
        return Ok(());
    }
    // Only the last chunk ends with this, since no row of JSON is a line of 0 alone.
    let mut tail: Vec<u8> = buffer[head_end..length].to_vec();
    while !tail.ends_with(b"\r\n0\r\n\r\n") {
        let read = stream.read(buffer)?;
        if read == 0 {
            return Err("the response is truncated".into());
        }
        tail.extend_from_slice(&buffer[..read]);
        tail.drain(..tail.len().saturating_sub(16));
    }
    Ok(())
}

/// A server in this process.
struct Running {
    address: SocketAddr,
    stopper: vervet_server::Stopper,
    thread: std::thread::JoinHandle<vervet::Result<()>>,
}

impl Running {
    fn start(database: &Database) -> Result<Self, Error> {
        let mut options = ServerOptions::default();
        options.bind = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
        let server = Server::bind(database.clone(), options)?;
        let (address, stopper) = (server.address()?, server.stopper());
        Ok(Self { address, stopper, thread: std::thread::spawn(move || server.run()) })
    }

    fn stop(self) -> Result<(), Error> {
        self.stopper.stop();
        self.thread.join().map_err(|_| "the server panicked")??;
        Ok(())
    }
}

#[derive(Default)]
struct Figures {
    seconds: f64,
    light: Vec<Duration>,
    /// Heavy work done, in seconds of queries alone.
    work: f64,
    processor: f64,
}

fn measure(
    arguments: &Arguments,
    client: &Client<'_>,
    light: bool,
    heavy: bool,
    weights: &[f64],
) -> Result<Figures, Error> {
    let time = Duration::from_secs_f64(arguments.seconds);
    let (begin, processor) = (Instant::now(), processor_seconds());
    std::thread::scope(|scope| {
        let mut lights = Vec::new();
        let mut heavies = Vec::new();
        for thread in 0..if light { LIGHT_THREADS } else { 0 } {
            let session = client.session()?;
            let pause = LIGHT_THREADS as f64 / arguments.rate;
            lights.push(scope.spawn(move || send_light(session, thread, pause, begin + time)));
        }
        for thread in 0..if heavy { arguments.heavy } else { 0 } {
            let session = client.session()?;
            heavies.push(scope.spawn(move || send_heavy(session, thread, weights, begin + time)));
        }
        let mut figures = Figures::default();
        for light in lights {
            figures.light.extend(light.join().map_err(|_| "a thread panicked")??);
        }
        for heavy in heavies {
            figures.work += heavy.join().map_err(|_| "a thread panicked")??;
        }
        figures.seconds = time.as_secs_f64();
        figures.processor = processor_seconds() - processor;
        figures.light.sort_unstable();
        Ok(figures)
    })
}

fn send_light(
    mut session: Session<'_>,
    thread: u64,
    pause: f64,
    until: Instant,
) -> Result<Vec<Duration>, Error> {
    let mut random = fastrand::Rng::with_seed(thread);
    let (mut times, mut due) = (Vec::new(), Instant::now());
    loop {
        due += Duration::from_secs_f64(-pause * (1.0 - random.f64()).ln());
        if due >= until {
            return Ok(times);
        }
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let text = format!("{PREFIX}{}", LIGHT.replace("{}", &random.u32(0..15).to_string()));
        session.run(&text)?;
        times.push(due.elapsed());
    }
}

/// Returns the seconds of work done; the query cut off at the end counts in part.
fn send_heavy(
    mut session: Session<'_>,
    thread: usize,
    weights: &[f64],
    until: Instant,
) -> Result<f64, Error> {
    let mut work = 0.0;
    for at in thread.. {
        let begin = Instant::now();
        if begin >= until {
            break;
        }
        let at = at % HEAVY.len();
        session.run(&format!("{PREFIX}{}", HEAVY[at]))?;
        let took = begin.elapsed().as_secs_f64();
        let inside = until.saturating_duration_since(begin).as_secs_f64().min(took);
        work += weights[at] * inside / took;
    }
    Ok(work)
}

impl Figures {
    fn print(&self, place: &str, gate: bool, heavy: bool) {
        let at = |thousandths: usize| {
            let at = self.light.len().saturating_sub(1) * thousandths / 1000;
            self.light.get(at).map_or_else(String::new, |time| format!("{:.2}", time.as_secs_f64() * 1e3))
        };
        println!(
            "| {place} | {} | {:.0} | {} | {} | {} | {} | {} | {:.1} |",
            if gate { "on" } else { "off" },
            self.light.len() as f64 / self.seconds,
            at(500),
            at(990),
            at(999),
            at(1000),
            if heavy { format!("{:.2}", self.work / self.seconds) } else { String::new() },
            self.processor,
        );
    }
}

/// Processor time of this process, where the system reports it.
fn processor_seconds() -> f64 {
    #[cfg(unix)]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    }
    #[cfg(not(unix))]
    0.0
}

//! Benchmark of the server's overhead for a light query: the same prepared text embedded, and over loopback
//! with keep-alive from one and from two connections, and from one that requests compression.
//!
//! `cargo run --release -p vervet-server --example latency [SECONDS]`. The query has the form of LUBM Q5: the
//! members of one department that are persons. Server and clients share the machine; the processor time of
//! each is listed separately where the system reports it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use vervet::{Database, Format, OutputFormat, QueryOptions};
use vervet_server::{Server, ServerOptions};

const QUERY: &str = "SELECT ?x { ?x a <urn:Person> . ?x <urn:memberOf> <urn:department:7> }";

/// The allocator of the program `vervet`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seconds: u64 = std::env::args().nth(1).map_or(Ok(3), |seconds| seconds.parse())?;
    let time = Duration::from_secs(seconds);
    let database = Database::in_memory();
    let mut text = String::new();
    for person in 0..100_000 {
        text += &format!(
            "<urn:person:{person}> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <urn:Person> .\n\
             <urn:person:{person}> <urn:memberOf> <urn:department:{}> .\n",
            person % 5000
        );
    }
    database.load_text(Format::NTriples, &text)?;

    let mut times = Vec::new();
    let (begin, cpu) = (Instant::now(), cpu_time(Of::Thread));
    while begin.elapsed() < time {
        let start = Instant::now();
        database.write(QUERY, &QueryOptions::default(), OutputFormat::Json, &mut std::io::sink())?;
        times.push(start.elapsed());
    }
    let embedded = report("embedded, from text", times, time);
    println!("    processor {:.1} µs a query", (cpu_time(Of::Thread) - cpu) / embedded.queries);

    let mut options = ServerOptions::default();
    options.bind = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
    let server = Server::bind(database, options)?;
    let (address, stopper) = (server.address()?, server.stopper());
    let running = std::thread::spawn(move || server.run());
    for (connections, header) in [(1, ""), (2, ""), (2, "Accept-Encoding: gzip\r\n")] {
        let cpu = cpu_time(Of::Process);
        let clients: Vec<_> =
            (0..connections).map(|_| std::thread::spawn(move || client(address, header, time))).collect();
        let (mut times, mut clients_cpu) = (Vec::new(), 0.0);
        for client in clients {
            let (of_client, cpu) = client.join().expect("no panic")?;
            times.extend(of_client);
            clients_cpu += cpu;
        }
        let what =
            format!("HTTP, {connections} connections{}", if header.is_empty() { "" } else { ", gzip" });
        let figures = report(&what, times, time);
        println!(
            "    adds {:.1} µs to the median; processor {:.1} µs a query in the server, {:.1} in the client",
            figures.median - embedded.median,
            (cpu_time(Of::Process) - cpu - clients_cpu) / figures.queries,
            clients_cpu / figures.queries
        );
    }
    stopper.stop();
    running.join().expect("no panic")?;
    Ok(())
}

/// Sends the query repeatedly on one connection; returns the time of each, and this thread's processor time
/// in µs.
fn client(address: SocketAddr, header: &str, time: Duration) -> std::io::Result<(Vec<Duration>, f64)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let request = format!(
        "POST /query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/sparql-query\r\n{header}\
         Content-Length: {}\r\n\r\n{QUERY}",
        QUERY.len()
    );
    let (mut buffer, mut times) = (vec![0; 1 << 16], Vec::new());
    let (begin, cpu) = (Instant::now(), cpu_time(Of::Thread));
    while begin.elapsed() < time {
        let start = Instant::now();
        stream.write_all(request.as_bytes())?;
        let mut length = 0;
        while !is_whole(&buffer[..length]) {
            match stream.read(&mut buffer[length..])? {
                0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
                read => length += read,
            }
        }
        times.push(start.elapsed());
    }
    Ok((times, cpu_time(Of::Thread) - cpu))
}

/// Whether the head and the announced length of the body have arrived.
fn is_whole(bytes: &[u8]) -> bool {
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { return false };
    let head = std::str::from_utf8(&bytes[..end]).unwrap_or_default();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    length.is_some_and(|length| bytes.len() == end + 4 + length)
}

/// Times in µs.
struct Figures {
    queries: f64,
    median: f64,
}

fn report(what: &str, mut times: Vec<Duration>, time: Duration) -> Figures {
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_nanos() as f64 / 1000.0;
    println!(
        "{what}: {:.0} queries/s, median {:.1} µs, 99th percentile {:.1} µs",
        times.len() as f64 / time.as_secs_f64(),
        at(50),
        at(99)
    );
    Figures { queries: times.len() as f64, median: at(50) }
}

enum Of {
    Thread,
    Process,
}

/// Processor time in µs, where the system reports it.
fn cpu_time(of: Of) -> f64 {
    #[cfg(unix)]
    {
        use rustix::time::{ClockId, clock_gettime};
        let time = clock_gettime(match of {
            Of::Thread => ClockId::ThreadCPUTime,
            Of::Process => ClockId::ProcessCPUTime,
        });
        time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
    }
    #[cfg(not(unix))]
    {
        let _ = of;
        0.0
    }
}

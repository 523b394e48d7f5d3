//! What the server adds to a light query: the same prepared text embedded, and over loopback with keep-alive from one and
//! from two connections.
//!
//! `cargo run --release -p vervet-server --example latency [SECONDS]`. The query is shaped as LUBM Q5: the members of one
//! department that are persons.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use vervet::{Database, Format, OutputFormat, QueryOptions};
use vervet_server::{Server, ServerOptions};

const QUERY: &str = "SELECT ?x { ?x a <urn:Person> . ?x <urn:memberOf> <urn:department:7> }";

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
    let begin = Instant::now();
    while begin.elapsed() < time {
        let start = Instant::now();
        database.write(QUERY, &QueryOptions::default(), OutputFormat::Json, &mut std::io::sink())?;
        times.push(start.elapsed());
    }
    report("embedded, from text", times, time);

    let mut options = ServerOptions::default();
    options.bind = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
    let server = Server::bind(database, options)?;
    let (address, stopper) = (server.address()?, server.stopper());
    let running = std::thread::spawn(move || server.run());
    for connections in [1, 2] {
        let clients: Vec<_> =
            (0..connections).map(|_| std::thread::spawn(move || client(address, time))).collect();
        let mut times = Vec::new();
        for client in clients {
            times.extend(client.join().expect("no panic")?);
        }
        report(&format!("HTTP, {connections} connections"), times, time);
    }
    stopper.stop();
    running.join().expect("no panic")?;
    Ok(())
}

/// Sends the query again and again on one connection.
fn client(address: SocketAddr, time: Duration) -> std::io::Result<Vec<Duration>> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let request = format!(
        "POST /query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/sparql-query\r\n\
         Content-Length: {}\r\n\r\n{QUERY}",
        QUERY.len()
    );
    let (mut buffer, mut times) = (vec![0; 1 << 16], Vec::new());
    let begin = Instant::now();
    while begin.elapsed() < time {
        let start = Instant::now();
        stream.write_all(request.as_bytes())?;
        let mut length = 0;
        while !buffer[..length].ends_with(b"}}\n") && !buffer[..length].ends_with(b"}}") {
            match stream.read(&mut buffer[length..])? {
                0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
                read => length += read,
            }
        }
        times.push(start.elapsed());
    }
    Ok(times)
}

fn report(what: &str, mut times: Vec<Duration>, time: Duration) {
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_nanos() as f64 / 1000.0;
    println!(
        "{what}: {:.0} queries/s, median {:.1} µs, 99th percentile {:.1} µs",
        times.len() as f64 / time.as_secs_f64(),
        at(50),
        at(99)
    );
}

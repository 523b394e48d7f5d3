//! Load test and hostile clients: sustained load on a server, and its responses to attacks.
//!
//! `cargo run --release -p vervet-server --example load -- --data lubm-10.nt.zst` takes some 25 minutes.
//! `--minutes 0.5` makes a short run; `--only load`, `--only hostile` and `--only siege` run one part. The
//! exit code is 1 if any response is neither the correct result nor a limit that docs/limits.md names.
//!
//! # Shape
//! ```text
//! this process                                          child process (this program with --serve)
//! embedded: expected number of rows of each query
//! load: 180 connections with light queries, at a rate ─> server on a free loopback port
//!       20 connections with heavy queries, in sequence
//! hostile: attacks, beside a well-behaved client      ─> the same with short timeouts
//! siege: all hostile requests, beside light queries   ─> the same with the statements that they query
//! ```
//! The server is a separate process, so its memory and processor time can be measured. Both processes share
//! the machine: at a high rate the clients use as much processor time as the server.

mod client;
mod hostile;
mod mix;
mod queries;
mod report;
mod server_process;
mod siege;

use clap::Parser;
use server_process::{LimitProfile, ServerProcess};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// The allocator of the program `vervet`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Load and hostile clients for a server on loopback.
#[derive(Parser, Clone, Debug)]
struct Arguments {
    /// LUBM as N-Triples, plain or .zst
    #[arg(long, value_name = "FILE")]
    data: PathBuf,
    /// More heavy queries: all *.rq below this directory except *.template.rq
    #[arg(long, value_name = "DIR")]
    queries: Option<PathBuf>,
    /// Duration of light and heavy queries together
    #[arg(long, default_value_t = 10.0, value_name = "MINUTES")]
    minutes: f64,
    /// Total number of connections
    #[arg(long, default_value_t = 200, value_name = "NUMBER")]
    connections: usize,
    /// Connections among these that send heavy queries
    #[arg(long, default_value_t = 20, value_name = "NUMBER")]
    heavy: usize,
    /// Light queries a second, over all connections; 0: no pauses
    #[arg(long, default_value_t = 1000.0, value_name = "NUMBER")]
    rate: f64,
    /// Only this part: load, hostile or siege
    #[arg(long, value_name = "PART")]
    only: Option<String>,
    /// Also write the report to this file, as Markdown
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Run the server until the end of standard input
    #[arg(long, hide = true)]
    serve: Option<LimitProfile>,
}

type Error = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match arguments.serve {
        Some(profile) => server_process::serve(&arguments.data, profile).map(|()| true),
        None => run(&arguments),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// Runs the selected parts; returns whether all of them passed.
fn run(arguments: &Arguments) -> Result<bool, Error> {
    let wants = |part: &str| arguments.only.as_deref().is_none_or(|only| only == part);
    if !["load", "hostile", "siege"].into_iter().any(wants) {
        return Err("--only takes load, hostile or siege".into());
    }
    if arguments.heavy >= arguments.connections {
        return Err("--heavy must leave connections for light queries".into());
    }
    let mut report = report::Report::default();
    report.head()?;
    let mut passed = true;
    let options = mix::Options {
        time: Duration::try_from_secs_f64(60.0 * arguments.minutes)?,
        light: arguments.connections - arguments.heavy,
        heavy: arguments.heavy,
        rate: arguments.rate,
    };
    if wants("load") {
        let queries = queries::Queries::of(&arguments.data, arguments.queries.as_deref())?;
        let server = ServerProcess::start(&arguments.data, LimitProfile::Normal)?;
        passed &= mix::run(&server, &queries, &options, &mut report)?;
        server.end()?;
    }
    if wants("hostile") {
        let server = ServerProcess::start(&arguments.data, LimitProfile::Short)?;
        passed &= hostile::run(&server, &mut report)?;
        server.end()?;
    }
    if wants("siege") {
        let queries = queries::Queries::of(&arguments.data, None)?;
        let server = ServerProcess::start(&arguments.data, LimitProfile::Siege)?;
        passed &= siege::run(&server, &queries, &options, &mut report)?;
        server.end()?;
    }
    if passed {
        report.line("All checks passed.");
    } else {
        report.line("**A check failed: see above.**");
    }
    if let Some(file) = &arguments.output {
        std::fs::write(file, report.text())?;
    }
    Ok(passed)
}

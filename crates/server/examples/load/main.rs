//! Load and hostile clients: what a server bears for minutes, and what it says to those who would break it.
//!
//! `cargo run --release -p vervet-server --example load -- --data lubm-10.nt.zst`. Takes some eleven minutes;
//! `--minutes 0.5` is enough for a look; `--only load`, `--only hostile` and `--only siege` do one part. It
//! fails (exit code 1) if anything comes back that is neither the right answer nor a limit that
//! docs/limits.md names.
//!
//! # Shape
//! ```text
//! this process                                            a process of its own (this program again, --serve)
//! embedded: right number of rows for each question        the server, on a free port of loopback
//! mix: 180 connections with light questions, at a rate ─> answers
//!      20 connections with heavy ones, one after another
//! hostile: attacks, beside a client that means no harm ─> the same with short time limits
//! siege: all reproducers at once, beside light questions ─> the same, with the statements they are about
//! ```
//! The server is another process so that its memory and its processor time are its own. Both share the
//! machine: at a high rate the clients take as much of the processor as the server does.

mod client;
mod hostile;
mod mix;
mod questions;
mod report;
mod served;
mod siege;

use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// As the program `vervet` has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Load and hostile clients for a server on loopback.
#[derive(Parser, Clone, Debug)]
struct Arguments {
    /// LUBM as N-Triples, plain or .zst
    #[arg(long, value_name = "FILE")]
    data: PathBuf,
    /// More heavy questions: all *.rq below it but *.template.rq
    #[arg(long, value_name = "DIR")]
    queries: Option<PathBuf>,
    /// How long light and heavy ones come together
    #[arg(long, default_value_t = 10.0, value_name = "MINUTES")]
    minutes: f64,
    /// Connections in all
    #[arg(long, default_value_t = 200, value_name = "NUMBER")]
    connections: usize,
    /// Those among them that send heavy questions
    #[arg(long, default_value_t = 20, value_name = "NUMBER")]
    heavy: usize,
    /// Light questions a second, of all connections together; 0: as fast as they are answered
    #[arg(long, default_value_t = 1000.0, value_name = "NUMBER")]
    rate: f64,
    /// Only this part: load, hostile or siege
    #[arg(long, value_name = "PART")]
    only: Option<String>,
    /// Write the report here too, as Markdown
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Be the server; ends with its standard input
    #[arg(long, hide = true)]
    serve: Option<served::Patience>,
}

type Error = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match arguments.serve {
        Some(patience) => served::serve(&arguments.data, patience).map(|()| true),
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

/// Does both parts; whether all went as it should.
fn run(arguments: &Arguments) -> Result<bool, Error> {
    let wants = |part: &str| arguments.only.as_deref().is_none_or(|only| only == part);
    if !["load", "hostile", "siege"].into_iter().any(wants) {
        return Err("--only takes load, hostile or siege".into());
    }
    if arguments.heavy >= arguments.connections {
        return Err("--heavy must leave connections for light questions".into());
    }
    let mut report = report::Report::default();
    report.head()?;
    let mut good = true;
    let options = mix::Options {
        time: Duration::try_from_secs_f64(60.0 * arguments.minutes)?,
        light: arguments.connections - arguments.heavy,
        heavy: arguments.heavy,
        rate: arguments.rate,
    };
    if wants("load") {
        let questions = questions::Questions::of(&arguments.data, arguments.queries.as_deref())?;
        let server = served::Served::start(&arguments.data, served::Patience::Normal)?;
        good &= mix::run(&server, &questions, &options, &mut report)?;
        server.end()?;
    }
    if wants("hostile") {
        let server = served::Served::start(&arguments.data, served::Patience::Short)?;
        good &= hostile::run(&server, &mut report)?;
        server.end()?;
    }
    if wants("siege") {
        let questions = questions::Questions::of(&arguments.data, None)?;
        let server = served::Served::start(&arguments.data, served::Patience::Siege)?;
        good &= siege::run(&server, &questions, &options, &mut report)?;
        server.end()?;
    }
    if good {
        report.line("Nothing went wrong.");
    } else {
        report.line("**Something went wrong: see above.**");
    }
    if let Some(file) = &arguments.output {
        std::fs::write(file, report.text())?;
    }
    Ok(good)
}

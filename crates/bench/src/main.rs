//! `vervet-bench`: compares engines, and generates data.
#![forbid(unsafe_code)]

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use vervet_bench::all::AllOptions;
use vervet_bench::cluster_mixes::{self, MixOptions};
use vervet_bench::cluster_sheet::{self, SheetOptions};
use vervet_bench::cluster_transactions::{self, ClusterTransactionOptions};
use vervet_bench::compare::Contest;
use vervet_bench::data::PlainFile;
use vervet_bench::engine::Engine;
use vervet_bench::estimates::EstimateOptions;
use vervet_bench::features::{FeatureOptions, FeatureReport};
use vervet_bench::gpu::{self, GpuArguments};
use vervet_bench::lubm::{self, LubmOptions, Processes};
use vervet_bench::measure::Budget;
use vervet_bench::outside::gmark::CountedPath;
use vervet_bench::outside::{self, Benchmark, ContestOptions, DataOptions, Endpoint, OutsideReport};
use vervet_bench::patterns::{self, EdgeList};
use vervet_bench::peer::Oxigraph;
use vervet_bench::report::Report;
use vervet_bench::snb::{self, Network, PeerOptions, SnbOptions};
use vervet_bench::transactions::{self, TransactionOptions};
use vervet_bench::wire::{self, WireOptions};
use vervet_bench::{all, data, estimates, features, light, processes, self_check};
use vervet_generate::{PowerLaw, generate_lubm, write_edges};
use vervet_model::{Error, ErrorKind, Result};

/// The allocator of the program `vervet`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Compares Vervet with its peers and with hand-written loops.
#[derive(Parser)]
#[command(name = "vervet-bench", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The queries of LUBM on a file of N-Triples
    Lubm {
        /// N-Triples, plain or .zst; queries and expected results are in the same folder
        #[arg(long, value_name = "FILE")]
        data: PathBuf,
        /// The folder of the queries
        #[arg(long, value_name = "DIR")]
        queries: Option<PathBuf>,
        /// Only these queries, such as q1,q7
        #[arg(long, value_delimiter = ',', value_name = "NAMES")]
        only: Vec<String>,
        /// Also run the queries in the folder "features"
        #[arg(long)]
        features: bool,
        /// Skip the hand-written loops
        #[arg(long)]
        without_loops: bool,
        /// Skip loads and starts in subprocesses
        #[arg(long)]
        without_processes: bool,
        /// Repetitions of each load in a subprocess; the fastest counts
        #[arg(long, default_value_t = 1, value_name = "NUMBER")]
        repeats: usize,
        #[command(flatten)]
        contest: ContestArguments,
    },
    /// Throughput of Q4, Q5 and Q6 of LUBM with random constants, on one thread
    Light {
        /// N-Triples, plain or .zst
        #[arg(long, value_name = "FILE")]
        data: PathBuf,
        #[command(flatten)]
        contest: ContestArguments,
    },
    /// The cost of transactions, for writers and for readers
    Transactions {
        /// Universities (N-Triples, plain or .zst) or the social network (.tar.zst)
        #[arg(long, value_name = "FILE")]
        data: PathBuf,
        /// Only these parts, such as inserts,lbv
        #[arg(long, value_delimiter = ',', value_name = "PARTS")]
        only: Vec<String>,
        /// Seconds for each figure
        #[arg(long, default_value_t = 2.0, value_name = "SECONDS")]
        seconds: f64,
        /// Numbers of client threads
        #[arg(long, value_delimiter = ',', default_values_t = [1, 2], value_name = "NUMBERS")]
        clients: Vec<usize>,
        /// Number of updates of the steady load
        #[arg(long, default_value_t = 10_000_000, value_name = "NUMBER")]
        updates: u64,
        /// Run the steady load for this many minutes instead
        #[arg(long, value_name = "MINUTES")]
        minutes: Option<f64>,
        /// Maximum rate of updates, and of reads, of the steady load, per second
        #[arg(long, value_name = "NUMBER")]
        rate: Option<f64>,
        /// Statements of one large transaction
        #[arg(long, default_value_t = 1_000_000, value_name = "NUMBER")]
        bulk: u64,
        /// Also write the report to this file, as JSON
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
        /// Also write the report to this file, as Markdown
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// The social network in Gremlin and in SPARQL
    Snb {
        /// An archive (.tar.zst) of CSV files
        #[arg(long, value_name = "FILE")]
        data: PathBuf,
        /// File with persons, messages and dates for parameters (default: NAME-params.json beside the data,
        /// if it exists)
        #[arg(long, value_name = "FILE")]
        parameters: Option<PathBuf>,
        /// Only these operations, such as IS1,IC3
        #[arg(long, value_delimiter = ',', value_name = "NAMES")]
        only: Vec<String>,
        /// Number of parameters of each operation
        #[arg(long, default_value_t = 30, value_name = "NUMBER")]
        count: usize,
        /// Seconds for each operation in each language
        #[arg(long, default_value_t = 1.0, value_name = "SECONDS")]
        seconds: f64,
        /// Peer to compare with
        #[arg(long, value_name = "PEER")]
        against: Option<GraphPeer>,
        /// Script that starts the peer
        #[arg(long, value_name = "FILE", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/tinkergraph/run.sh"))]
        peer_script: PathBuf,
        /// Time limit of an operation in the peer, in seconds
        #[arg(long, default_value_t = 10.0, value_name = "SECONDS")]
        limit: f64,
        /// Also write the report to this file, as JSON
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
        /// Also write the report to this file, as Markdown
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Gremlin through the server: overhead, requests per second and vertices per second
    Wire {
        /// An archive (.tar.zst) of CSV files of the social network
        #[arg(long, value_name = "FILE")]
        data: PathBuf,
        /// File with persons for parameters (default: NAME-params.json beside the data, if it exists)
        #[arg(long, value_name = "FILE")]
        parameters: Option<PathBuf>,
        /// Number of parameters of each request
        #[arg(long, default_value_t = 30, value_name = "NUMBER")]
        count: usize,
        /// Seconds for each figure
        #[arg(long, default_value_t = 3.0, value_name = "SECONDS")]
        seconds: f64,
        /// Vertices that a session adds for a figure; a tenth where each waits for its response
        #[arg(long, default_value_t = 50_000, value_name = "NUMBER")]
        vertices: u32,
        /// Requests in flight, in pipelined measurements
        #[arg(long, default_value_t = 64, value_name = "NUMBER")]
        in_flight: u32,
        /// Vertices per transaction of a session
        #[arg(long, default_value_t = 10_000, value_name = "NUMBER")]
        commit_each: u32,
        /// Peer to compare with
        #[arg(long, value_name = "PEER")]
        against: Option<ServerPeer>,
        /// Skip TinkerPop's driver, which needs Java
        #[arg(long, conflicts_with = "against")]
        without_driver: bool,
        /// Script that starts Java programs
        #[arg(long, value_name = "FILE", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/gremlin/run.sh"))]
        peer_script: PathBuf,
        /// Also write the report to this file, as JSON
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
        /// Also write the report to this file, as Markdown
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Everything in docs/benchmarks
    All {
        /// Folder with lubm/ and snap/
        #[arg(long, value_name = "DIR")]
        data_dir: PathBuf,
        /// Output folder of lubm-10, lubm-40 and patterns, each as .md and .json
        #[arg(long, value_name = "DIR")]
        output_dir: PathBuf,
        /// Only these parts, such as lubm-10,patterns
        #[arg(long, value_delimiter = ',', value_name = "PARTS")]
        only: Vec<String>,
        /// Number of edges of the generated graph
        #[arg(long, default_value_t = 1_000_000, value_name = "NUMBER")]
        edges: u32,
        /// Peer to compare with
        #[arg(long, value_name = "PEER")]
        against: Option<Peer>,
        /// Seconds for measuring one query in one engine
        #[arg(long, default_value_t = 1.0, value_name = "SECONDS")]
        seconds: f64,
        /// Time limit of the first run of a query, in seconds
        #[arg(long, default_value_t = 60.0, value_name = "SECONDS")]
        limit: f64,
    },
    /// The task of a subprocess
    #[command(hide = true, name = processes::COMMAND)]
    Task {
        /// The task as JSON
        task: String,
    },
    /// Triangles, cliques, paths and reachability in real and generated graphs
    Patterns {
        /// An archive (.tar.zst) of edge lists NAME/edges.csv
        #[arg(long, value_name = "FILE")]
        data: Option<PathBuf>,
        /// Only these graphs of the archive, or "power-law"
        #[arg(long, value_delimiter = ',', value_name = "NAMES")]
        only: Vec<String>,
        /// Number of edges of the generated graph
        #[arg(long, default_value_t = 1_000_000, value_name = "NUMBER")]
        edges: u32,
        #[command(flatten)]
        contest: ContestArguments,
    },
    /// At least forty queries, each about one feature of SPARQL
    Features {
        /// N-Triples, plain or .zst, of universities or of a graph of <urn:e>; or "power-law", which is
        /// generated
        #[arg(long, required = true, num_args = 1.., value_name = "FILE")]
        data: Vec<PathBuf>,
        /// Number of edges of the generated graph
        #[arg(long, default_value_t = 1_000_000, value_name = "NUMBER")]
        edges: u32,
        /// Only these queries, such as minus,path-join
        #[arg(long, value_delimiter = ',', value_name = "NAMES")]
        only: Vec<String>,
        /// Peer to compare with
        #[arg(long, value_name = "PEER")]
        against: Option<Peer>,
        /// Number of rounds
        #[arg(long, default_value_t = 5, value_name = "NUMBER")]
        rounds: usize,
        /// Time limit of an answer, in seconds
        #[arg(long, default_value_t = 10.0, value_name = "SECONDS")]
        limit: f64,
        /// Seconds for each mode in the light mix
        #[arg(long, default_value_t = 1.0, value_name = "SECONDS")]
        seconds: f64,
        /// Also write the report to this file, as JSON
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
        /// Also write the report to this file, as Markdown
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Benchmarks designed by others: WatDiv, SP2Bench, BSBM, Sparqloscope, gMark; shapes that were slow
    Outside {
        /// Only these benchmarks
        #[arg(long, value_delimiter = ',', value_name = "BENCHMARKS")]
        only: Vec<OutsideBenchmark>,
        /// Peers to compare with: "oxigraph", or NAME=URL of a SPARQL endpoint that has the data; with the id
        /// of its process, NAME=URL#ID, its CPU time counts
        #[arg(long, value_delimiter = ',', value_name = "PEERS")]
        against: Vec<OutsidePeer>,
        /// Only these queries, such as g01,g15
        #[arg(long, value_delimiter = ',', value_name = "NAMES")]
        queries: Vec<String>,
        /// Only the data set of this name, such as social
        #[arg(long, value_name = "NAME")]
        data: Option<String>,
        /// Factor of the size of generated data; 1 is about a million statements
        #[arg(long, default_value_t = 1.0, value_name = "FACTOR")]
        scale: f64,
        /// Seed of data and parameters
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// The meaning of (path){,3} in gMark: (path)* or (path)?/(path)?/(path)?
        #[arg(long, default_value = "star", value_name = "MEANING")]
        counted: Counted,
        /// Time limit of an answer, in seconds
        #[arg(long, default_value_t = 10.0, value_name = "SECONDS")]
        timeout: f64,
        /// Seconds for the warm runs of a query in an engine; 0 only compares values
        #[arg(long, default_value_t = 0.2, value_name = "SECONDS")]
        seconds: f64,
        /// Also print the plans of queries over the time limit
        #[arg(long)]
        plans: bool,
        /// Also write the report to this file, as JSON
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
        /// Also write the report to this file, as Markdown
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// The queries of LUBM over several servers: time, requests, bytes, rows moved
    ClusterSheet(SheetOptions),
    /// Reads and writes of a social network over several servers beside one database: LBV, and IS1 to IS7
    ClusterMixes(MixOptions),
    /// Small transactions at three voters beside one database: commits, latency, processor time
    ClusterTransactions(ClusterTransactionOptions),
    /// Heavy queries on a GPU beside the CPU, and beside the figures of Wukong+G
    Gpu(GpuArguments),
    /// Estimated and actual rows of every step of the plans of all benchmark queries
    Estimates {
        /// The folder of test data, with data/ and conformance/
        #[arg(long, value_name = "DIR")]
        data_dir: Option<PathBuf>,
        /// Only these parts, such as lubm,gmark
        #[arg(long, value_delimiter = ',', value_name = "PARTS")]
        only: Vec<String>,
        /// Number of edges of the generated graph
        #[arg(long, default_value_t = 1_000_000, value_name = "NUMBER")]
        edges: u32,
        /// Number of parameters of each operation of the social network
        #[arg(long, default_value_t = 5, value_name = "NUMBER")]
        count: usize,
        /// Time limit of a query, in seconds
        #[arg(long, default_value_t = 10.0, value_name = "SECONDS")]
        limit: f64,
        /// Number of the worst steps listed for each benchmark
        #[arg(long, default_value_t = 10, value_name = "NUMBER")]
        worst: usize,
        /// Also write all plans, with estimated and actual rows, to this file
        #[arg(long, value_name = "FILE")]
        plans: Option<PathBuf>,
        /// Also write the report to this file, as JSON
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
        /// Also write the report to this file, as Markdown
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Run small versions of everything on generated data, and check that all values agree
    SelfCheck,
    /// Generate data
    #[command(subcommand)]
    Generate(Generate),
}

#[derive(Subcommand)]
enum Generate {
    /// LUBM universities, as N-Triples
    Lubm {
        /// Number of universities
        #[arg(long, value_name = "NUMBER")]
        universities: u32,
        /// Seed; the same seed generates the same data
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// Output file (default: standard output)
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// The data and the queries of outside benchmarks, for engines in other processes
    Outside {
        /// Only these benchmarks
        #[arg(long, value_delimiter = ',', value_name = "BENCHMARKS")]
        only: Vec<OutsideBenchmark>,
        /// Factor of the size; 1 is about a million statements
        #[arg(long, default_value_t = 1.0, value_name = "FACTOR")]
        scale: f64,
        /// Seed; the same seed generates the same data
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// The meaning of (path){,3} in gMark
        #[arg(long, default_value = "star", value_name = "MEANING")]
        counted: Counted,
        /// Output folder
        #[arg(long, value_name = "DIR")]
        output: PathBuf,
    },
    /// A power-law graph, as N-Triples
    PowerLaw {
        /// Number of vertices
        #[arg(long, default_value_t = 100_000, value_name = "NUMBER")]
        vertices: u32,
        /// Number of edges
        #[arg(long, default_value_t = 1_000_000, value_name = "NUMBER")]
        edges: u32,
        /// Exponent of the power law
        #[arg(long, default_value_t = 2.3)]
        exponent: f64,
        /// Seed; the same seed generates the same data
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// Output file (default: standard output)
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

#[derive(Args)]
struct ContestArguments {
    /// Peer to compare with
    #[arg(long, value_name = "PEER")]
    against: Option<Peer>,
    /// Threads for loading, in every engine that supports the option (default: its own choice)
    #[arg(long, value_name = "NUMBER")]
    threads: Option<usize>,
    /// Threads for each query, in Vervet only; comparisons use one
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    query_threads: usize,
    /// Seconds for measuring one query in one engine
    #[arg(long, default_value_t = 2.0, value_name = "SECONDS")]
    seconds: f64,
    /// Time limit of the first run of a query, in seconds
    #[arg(long, value_name = "SECONDS")]
    limit: Option<f64>,
    /// Also write the report to this file, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Also write the report to this file, as Markdown
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Peer {
    /// Oxigraph, in memory
    Oxigraph,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OutsideBenchmark {
    /// Shop data, basic graph patterns
    Watdiv,
    /// Publications
    Sp2bench,
    /// Products, offers and reviews: explore, and business intelligence
    Bsbm,
    /// One query for each feature of SPARQL
    Sparqloscope,
    /// Regular paths
    Gmark,
    /// Shapes that reviews found slow
    Shapes,
}

impl From<OutsideBenchmark> for Benchmark {
    fn from(name: OutsideBenchmark) -> Self {
        match name {
            OutsideBenchmark::Watdiv => Self::WatDiv,
            OutsideBenchmark::Sp2bench => Self::Sp2Bench,
            OutsideBenchmark::Bsbm => Self::Bsbm,
            OutsideBenchmark::Sparqloscope => Self::Sparqloscope,
            OutsideBenchmark::Gmark => Self::GMark,
            OutsideBenchmark::Shapes => Self::Shapes,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Counted {
    /// (path)*, as in gMark's neutral form of the queries
    Star,
    /// (path)?/(path)?/(path)?
    Three,
}

impl From<Counted> for CountedPath {
    fn from(name: Counted) -> Self {
        match name {
            Counted::Star => Self::Star,
            Counted::Three => Self::Three,
        }
    }
}

/// A peer of the outside benchmarks.
#[derive(Clone, Debug)]
enum OutsidePeer {
    Oxigraph,
    Endpoint { name: String, url: String },
}

impl std::str::FromStr for OutsidePeer {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text.split_once('=') {
            Some((name, url)) if url.starts_with("http://") => {
                Ok(Self::Endpoint { name: name.to_owned(), url: url.to_owned() })
            }
            None if text == "oxigraph" => Ok(Self::Oxigraph),
            _ => Err(format!("{text} is neither oxigraph nor NAME=http://HOST:PORT/PATH[#PROCESS]")),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ServerPeer {
    /// TinkerPop's Gremlin Server with TinkerGraph, as a Java process
    GremlinServer,
}

#[derive(Clone, Copy, ValueEnum)]
enum GraphPeer {
    /// TinkerGraph, as a Java process
    Tinkergraph,
}

impl ContestArguments {
    fn contest(&self) -> Result<Contest> {
        let limit = self.limit.map(seconds).transpose()?;
        contest(self.against, (self.threads, self.query_threads), seconds(self.seconds)?, limit)
    }

    /// Writes the requested reports; returns whether all values were right.
    fn finish(&self, reports: &[Report]) -> Result<bool> {
        if let Some(file) = &self.json {
            Report::write_json(reports, file)?;
        }
        if let Some(file) = &self.output {
            Report::write_markdown(reports, file)?;
        }
        Ok(reports.iter().all(Report::is_right))
    }
}

fn contest(
    against: Option<Peer>,
    (threads, query_threads): (Option<usize>, usize),
    time: Duration,
    time_limit: Option<Duration>,
) -> Result<Contest> {
    let peer = match against {
        Some(Peer::Oxigraph) => Some(Box::new(Oxigraph::new(threads)?) as Box<dyn Engine>),
        None => None,
    };
    let ours = vervet_bench::ours(threads.unwrap_or(2), query_threads);
    Ok(Contest { ours, peer, budget: Budget { time, ..Budget::default() }, time_limit })
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            if let Some(hint) = error.hint() {
                eprintln!("hint: {hint}");
            }
            ExitCode::from(2)
        }
    }
}

/// Runs the command; false if values differ.
fn run(arguments: &Arguments) -> Result<bool> {
    match &arguments.command {
        Command::SelfCheck => {
            for report in self_check::run(self_check::all_engines, Some(program()?))? {
                println!("{report}");
            }
            for report in self_check::features(self_check::all_engines)? {
                println!("{report}");
            }
            for report in outside::self_check(self_check::engine_list)? {
                println!("{report}");
            }
            for report in transactions::self_check()? {
                println!("{report}");
            }
            println!("{}", snb::self_check()?);
            println!("{}", wire::self_check()?);
            println!("{}", estimates::self_check()?.sections());
            Ok(true)
        }
        Command::Lubm {
            data,
            queries,
            only,
            features,
            without_loops,
            without_processes,
            repeats,
            contest,
        } => {
            let processes = if *without_processes {
                None
            } else {
                Some(Processes { program: program()?, repeats: *repeats })
            };
            let options = LubmOptions {
                data: data.clone(),
                queries: queries.clone(),
                only: only.clone(),
                features: *features,
                without_loops: *without_loops,
                processes,
                light: None,
            };
            let report = lubm::run(&options, &mut contest.contest()?)?;
            println!("{report}");
            contest.finish(&[report])
        }
        Command::Light { data, contest } => {
            let report = light::run_on(data, &mut contest.contest()?, seconds(contest.seconds)?)?;
            println!("{report}");
            contest.finish(&[report])
        }
        Command::Transactions {
            data,
            only,
            seconds: time,
            clients,
            updates,
            minutes,
            rate,
            bulk,
            json,
            output,
        } => {
            let options = TransactionOptions {
                only: only.clone(),
                time: seconds(*time)?,
                updates: *updates,
                steady_time: minutes.map(|minutes| seconds(60.0 * minutes)).transpose()?,
                rate: *rate,
                bulk: *bulk,
                clients: clients.clone(),
            };
            let report = transactions::run(&transactions::Data::open(data)?, &options)?;
            println!("{report}");
            json.iter().try_for_each(|file| report.write_json(file))?;
            output.iter().try_for_each(|file| report.write_markdown(file))?;
            Ok(true)
        }
        Command::Snb {
            data,
            parameters,
            only,
            count,
            seconds: time,
            against,
            peer_script,
            limit,
            json,
            output,
        } => {
            let limit = seconds(*limit)?;
            let options = SnbOptions {
                only: only.clone(),
                parameters: parameters.clone().or_else(|| snb_parameters(data)),
                count: (*count).max(1),
                time: seconds(*time)?,
                peer: against
                    .map(|GraphPeer::Tinkergraph| PeerOptions { script: peer_script.clone(), limit }),
                program: Some(program()?),
            };
            let report = snb::run(&Network::open(data)?, &options)?;
            println!("{report}");
            json.iter().try_for_each(|file| report.write_json(file))?;
            output.iter().try_for_each(|file| report.write_markdown(file))?;
            Ok(true)
        }
        Command::Wire {
            data,
            parameters,
            count,
            seconds: time,
            vertices,
            in_flight,
            commit_each,
            against,
            without_driver,
            peer_script,
            json,
            output,
        } => {
            let options = WireOptions {
                script: (!without_driver).then(|| peer_script.clone()),
                against_gremlin_server: *against == Some(ServerPeer::GremlinServer),
                parameters: parameters.clone().or_else(|| snb_parameters(data)),
                count: (*count).max(1),
                time: seconds(*time)?,
                vertices: (*vertices).max(1),
                in_flight: (*in_flight).max(1),
                commit_each: (*commit_each).max(1),
            };
            let report = wire::run(&Network::open(data)?, &options)?;
            println!("{report}");
            json.iter().try_for_each(|file| report.write_json(file))?;
            output.iter().try_for_each(|file| report.write_markdown(file))?;
            Ok(true)
        }
        Command::All { data_dir, output_dir, only, edges, against, seconds: time, limit } => {
            let options = AllOptions {
                data: data_dir.clone(),
                output: output_dir.clone(),
                program: program()?,
                light: seconds(*time)?,
                edges: *edges,
                only: only.clone(),
            };
            let (time, limit) = (seconds(*time)?, seconds(*limit)?);
            all::run(&options, || contest(*against, (None, 1), time, Some(limit)))
        }
        Command::Task { task } => {
            println!("{}", processes::perform(task)?);
            Ok(true)
        }
        Command::Gpu(arguments) => gpu::command(arguments),
        Command::Patterns { data, only, edges, contest } => {
            let graphs = graphs(data.as_deref(), only, *edges)?;
            let mut print = |report: &Report| println!("{report}");
            let reports = patterns::run_all(graphs, || contest.contest(), &mut print)?;
            contest.finish(&reports)
        }
        Command::Features { data, edges, only, against, rounds, limit, seconds: time, json, output } => {
            let options = FeatureOptions { only: only.clone(), rounds: *rounds, light: seconds(*time)? };
            let (time, limit) = (seconds(*time)?, seconds(*limit)?);
            let mut reports = Vec::new();
            for file in data {
                let contest = &mut contest(*against, (None, 1), time, Some(limit))?;
                let report = features_of(file, *edges, &options, contest)?;
                println!("{report}");
                reports.push(report);
            }
            json.iter().try_for_each(|file| FeatureReport::write_json(&reports, file))?;
            output.iter().try_for_each(|file| FeatureReport::write_markdown(&reports, file))?;
            Ok(reports.iter().all(FeatureReport::is_right))
        }
        Command::Outside {
            only,
            against,
            queries,
            data: name,
            scale,
            seed,
            counted,
            timeout,
            seconds: time,
            plans,
            json,
            output,
        } => {
            let data = DataOptions { scale: *scale, seed: *seed, counted: (*counted).into() };
            let options = ContestOptions {
                data: name.clone(),
                queries: queries.clone(),
                timeout: seconds(*timeout)?,
                time: seconds(*time)?,
            };
            let reports = run_outside(only, against, &data, &options)?;
            if *plans {
                reports.iter().for_each(|report| print!("{}", report.plans()));
            }
            json.iter().try_for_each(|file| OutsideReport::write_json(&reports, file))?;
            output.iter().try_for_each(|file| OutsideReport::write_markdown(&reports, file))?;
            Ok(reports.iter().all(OutsideReport::is_right))
        }
        Command::Estimates { data_dir, only, edges, count, limit, worst, plans, json, output } => {
            let missing = || {
                Error::new(
                    ErrorKind::Input,
                    "there is no test data beside the project nor at VERVET_TEST_DATA",
                )
            };
            let options = EstimateOptions {
                data: data_dir.clone().or_else(data::test_data).ok_or_else(missing)?,
                only: only.clone(),
                edges: *edges,
                count: (*count).max(1),
                limit: seconds(*limit)?,
                worst: *worst,
                plans: plans.clone(),
            };
            let report = estimates::run(&options)?.sections();
            println!("{report}");
            json.iter().try_for_each(|file| report.write_json(file))?;
            output.iter().try_for_each(|file| report.write_markdown(file))?;
            Ok(true)
        }
        Command::ClusterMixes(options) => cluster_mixes::run(options),
        Command::ClusterSheet(options) => cluster_sheet::run(options),
        Command::ClusterTransactions(options) => cluster_transactions::run(options),
        Command::Generate(what) => generate(what).map(|()| true),
    }
}

/// The benchmarks with these names; for no names all of them.
fn chosen(only: &[OutsideBenchmark]) -> Vec<Benchmark> {
    let all = Benchmark::ALL.iter().copied();
    all.filter(|one| only.is_empty() || only.iter().any(|&name| Benchmark::from(name) == *one)).collect()
}

/// Runs outside benchmarks and prints each report as soon as it is complete.
fn run_outside(
    only: &[OutsideBenchmark],
    against: &[OutsidePeer],
    data: &DataOptions,
    options: &ContestOptions,
) -> Result<Vec<OutsideReport>> {
    let mut reports = Vec::new();
    for benchmark in chosen(only) {
        outside::data_sets(benchmark, data, &mut |set| {
            if options.data.as_ref().is_some_and(|name| *name != set.name) {
                return Ok(());
            }
            let mut engines: Vec<Box<dyn Engine>> = Vec::new();
            engines.extend(vervet_bench::ours(2, 1));
            for peer in against {
                engines.push(match peer {
                    OutsidePeer::Oxigraph => Box::new(Oxigraph::new(None)?),
                    OutsidePeer::Endpoint { name, url } => Box::new(Endpoint::new(name, url)?),
                });
            }
            let report = outside::run(&set, &mut engines, options)?;
            println!("{report}");
            reports.push(report);
            Ok(())
        })?;
    }
    Ok(reports)
}

/// Features on a file, or on a generated graph.
fn features_of(
    file: &Path,
    edges: u32,
    options: &FeatureOptions,
    contest: &mut Contest,
) -> Result<FeatureReport> {
    if file != Path::new(all::MADE) {
        let name = file.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        return features::run(&name, file, options, contest);
    }
    let made = PlainFile::write(|out| write_edges(&all::made(edges).edges, out))?;
    features::run(&format!("power law, {edges} edges"), made.path(), options, contest)
}

/// The parameter file beside an archive, if it exists.
fn snb_parameters(data: &Path) -> Option<PathBuf> {
    let name = data.file_name()?.to_str()?.strip_suffix(".tar.zst")?;
    let file = data.with_file_name(format!("{name}-params.json"));
    file.is_file().then_some(file)
}

/// The path of this program, to start it as a subprocess.
fn program() -> Result<PathBuf> {
    std::env::current_exe().map_err(|error| Error::io("find this program", &error))
}

fn graphs(archive: Option<&Path>, only: &[String], edges: u32) -> Result<Vec<EdgeList>> {
    let mut graphs = all::edge_lists(archive, edges)?;
    graphs.retain(|graph| only.is_empty() || only.contains(&graph.name));
    if graphs.is_empty() {
        return Err(Error::new(ErrorKind::Input, "there is no graph of that name"));
    }
    Ok(graphs)
}

fn generate(what: &Generate) -> Result<()> {
    let failed = |error: io::Error| Error::io("write made data", &error);
    match what {
        Generate::Lubm { universities, seed, output } => {
            let mut out = open(output.as_ref())?;
            let statistics = generate_lubm(*universities, *seed, &mut out).map_err(failed)?;
            out.flush().map_err(failed)?;
            eprintln!("{} statements, {} bytes", statistics.statements, statistics.bytes);
        }
        Generate::Outside { only, scale, seed, counted, output } => {
            let data = DataOptions { scale: *scale, seed: *seed, counted: (*counted).into() };
            for benchmark in chosen(only) {
                outside::data_sets(benchmark, &data, &mut |set| outside::write(&set, output))?;
            }
        }
        Generate::PowerLaw { vertices, edges, exponent, seed, output } => {
            let graph = PowerLaw { vertices: *vertices, edges: *edges, exponent: *exponent, seed: *seed };
            let mut out = io::BufWriter::new(open(output.as_ref())?);
            write_edges(&graph.generate(), &mut out).map_err(failed)?;
            out.flush().map_err(failed)?;
        }
    }
    Ok(())
}

fn open(file: Option<&PathBuf>) -> Result<Box<dyn Write>> {
    Ok(match file {
        Some(file) => Box::new(
            File::create(file)
                .map_err(|error| Error::io(format_args!("create {}", file.display()), &error))?,
        ),
        None => Box::new(io::stdout().lock()),
    })
}

fn seconds(number: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(number)
        .map_err(|_| Error::new(ErrorKind::Input, format!("{number} is not a number of seconds")))
}

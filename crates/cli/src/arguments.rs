//! Command-line definition: commands, options, help texts and value parsers.

mod changes;
mod cluster;
mod mcp;
mod reading;
mod units;

pub(crate) use changes::{ChangesArguments, ChangesFormat};
pub(crate) use cluster::{
    ClusterArguments, ClusterBackupArguments, ClusterCommand, ClusterDemoArguments, ClusterInitArguments,
    ClusterInviteArguments, ClusterLoadArguments, ClusterMoveArguments, ClusterRebalanceArguments,
    ClusterRestoreArguments, ClusterShapeArguments, ClusterStatusArguments,
};
pub(crate) use mcp::McpArguments;
pub(crate) use reading::ReadingArguments;

use crate::gpu::DeviceChoice;
use crate::parameter::{Parameter, parameter};
use crate::server_address::server_address;
use clap::{Args, Parser, Subcommand, ValueEnum};
use oxrdf::NamedNode;
use reading::iri;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;
use units::{count, positive, seconds, size};
use vervet::{ConstraintKind, Durability, Format, OutputFormat, THREADS_MAX};

const EXIT_CODES: &str = "\
Exit codes:
  0    success; also if the reader of the output closed it (… | head)
  1    an error in a query, an input file or the database
  2    wrong usage
  130  cancelled with Ctrl-C (a second Ctrl-C ends the command at once)

Results go to standard output, errors (error: …, hint: …) to standard error.
NO_COLOR=1 turns colours off.";

const QUERY_EXAMPLES: &str = "\
Examples:
  vervet query ./db 'SELECT * { ?s ?p ?o } LIMIT 10'
  vervet query ./db --file query.rq --format json > answer.json
  vervet query ./db 'SELECT ?age { ?p <http://a/name> ?name ; <http://a/age> ?age }' --param 'name=\"Ann\"'
  vervet query --data people.ttl 'SELECT * { ?s ?p ?o }'
  vervet query ./db --profile --file query.rq
  vervet query ./db --language gremlin 'g.V().hasLabel(\"person\").out(\"knows\").values(\"name\")'";

const UPDATE_EXAMPLES: &str = "\
All operations of a request become visible and durable together, or none of them.

Examples:
  vervet update ./db 'INSERT DATA { <urn:ann> <urn:knows> <urn:bob> }'
  vervet update ./db 'DELETE WHERE { ?a <urn:knows> ?b }'
  vervet update ./db --file changes.ru";

const INFO_EXAMPLES: &str = "\
Examples:
  vervet info ./db
  vervet info --plan --statements 100000000 --replicas 3
  vervet info ./db --plan --times 10";

const RECOVER_HELP: &str = "\
Without --cut-at-damage nothing is changed: the command reports where the log is damaged, the last commit
before that, and how much follows. The exit code is 1 if the log is damaged.

A torn tail after a loss of power is not damage and needs no recovery: nothing in it was acknowledged.

Examples:
  vervet recover ./db
  cp -r ./db ./copy; vervet recover ./db --cut-at-damage";

const CONSTRAINT_EXAMPLES: &str = "\
Without add or remove, the constraints are listed. Names are those of labels and keys, or IRIs in angle brackets.
  unique    no two vertices of the class have the same value (or the same values of several properties)
  required  every vertex of the class has a value
  single    no vertex of the class has two values

Examples:
  vervet constraint ./db
  vervet constraint ./db add unique Person email
  vervet constraint ./db add required '<http://xmlns.com/foaf/0.1/Person>' '<http://xmlns.com/foaf/0.1/name>'
  vervet constraint ./db remove unique Person email";

const SERVE_HELP: &str = "\
Addresses: /query, /update, /sparql (both), /store (graphs), /gremlin, /health, /ready, /metrics, and a web console at /.
Ctrl-C or SIGTERM shuts down after the running requests; a second one at once.

Examples:
  vervet serve ./db
  vervet serve ./db --bind 127.0.0.1:8080 --read-only
  curl localhost:7878/query --data-urlencode 'query=SELECT * { ?s ?p ?o } LIMIT 10'
  curl localhost:7878/update --data-urlencode 'update=INSERT DATA { <urn:a> <urn:b> 1 }'";

const LOAD_EXAMPLES: &str = "\
Formats, by file extension or --format, optionally followed by .gz or .zst:
  nt nq ttl trig rdf jsonld   RDF
  graphml graphson            property graphs; .json is GraphSON, and .xml may be GraphML
  csv parquet                 the same as tables of vertices or edges (Parquet has no .gz or .zst)

The load is atomic: either all files are loaded, or the database is unchanged.

Examples:
  vervet load ./db people.ttl
  vervet load ./db nodes.csv edges.csv
  vervet load ./db person.parquet knows.parquet
  vervet load ./db exported-from-kuzu/
  vervet load ./db *.csv --show-schema
  vervet load ./db *.csv --print-mapping > mapping.toml; vervet load ./db *.csv --mapping mapping.toml
  zcat dump.nt.gz | vervet load ./db - --format nt --memory 2G";

const COMPLETIONS_HELP: &str = "\
Examples:
  vervet completions bash > ~/.local/share/bash-completion/completions/vervet
  vervet completions zsh > \"${fpath[1]}/_vervet\"
  vervet completions fish > ~/.config/fish/completions/vervet.fish";

/// Version and commit, from `build.rs`.
const VERSION: &str = env!("VERVET_VERSION");

/// What `--version` prints; `-V` prints the first line only.
static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    let has = |part: bool| if part { "yes" } else { "no" };
    format!(
        "{VERSION}\nweb console: {}\nParquet: {}\nkernels for GPUs: {}\ntarget: {}",
        has(vervet_server::has_console()),
        has(cfg!(feature = "parquet")),
        has(crate::gpu::has_kernels()),
        env!("VERVET_TARGET")
    )
});

/// Vervet: a graph database that answers SPARQL and Gremlin over the same data.
#[derive(Parser, Debug)]
#[command(name = "vervet", version = VERSION, long_version = LONG_VERSION.as_str(), after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub log: LogOptions,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Args, Debug)]
pub(crate) struct LogOptions {
    /// Log events of this level and above on standard error (default: info for serve, warn otherwise; or
    /// VERVET_LOG)
    #[arg(long, global = true, value_name = "LEVEL")]
    pub log_level: Option<LogLevel>,
    /// Format of log events
    #[arg(long, global = true, value_name = "FORMAT", default_value = "text")]
    pub log_format: LogFormat,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LogLevel {
    Off,
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LogFormat {
    /// Human-readable text
    Text,
    /// One JSON object per line
    Json,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Load files into a database directory, creating it if missing
    Load(LoadArguments),
    /// Run a query in SPARQL or Gremlin on a database, or on files in memory
    Query(QueryArguments),
    /// Change a database with a SPARQL update request, in one transaction
    Update(UpdateArguments),
    /// List, add or remove constraints on the vertices of a class
    Constraint(ConstraintArguments),
    /// Query and change a database interactively
    Shell(ShellArguments),
    /// Show the contents of a database and the size of each part
    Info(InfoArguments),
    /// Read every byte of a database and verify it
    Check(CheckArguments),
    /// Write a database as statements or as a property graph
    Export(ExportArguments),
    /// Write what the commits after a position have changed, of a database or of a server
    Changes(ChangesArguments),
    /// Copy the current state of a database, concurrently with writers
    Backup(BackupArguments),
    /// Create a database from a backup, in a directory without one
    Restore(RestoreArguments),
    /// Report damage to the log of a database, and optionally cut the log there
    Recover(RecoverArguments),
    /// Generate data for tests and measurements
    Generate(GenerateArguments),
    /// Serve a database over HTTP: SPARQL, graph store, Gremlin, and a web console
    Serve(ServeArguments),
    /// A graph over several servers: make their directories, look at them, or try it on this machine
    Cluster(ClusterArguments),
    /// Ask a server whether it responds, or accepts writes; exit code 1 if not
    Health(HealthArguments),
    /// Offer a database to language models: a server of the Model Context Protocol on its standard streams
    Mcp(McpArguments),
    /// Read a password from standard input and print its hash, for the configuration of serve
    Password,
    /// A tour on the world's air routes: queries, updates and a plan, in SPARQL and Gremlin
    Demo(DemoArguments),
    /// Print the completion script of a shell
    Completions(CompletionsArguments),
    /// Write man pages of all commands to a directory
    ManPages(ManPagesArguments),
}

#[derive(Args, Debug)]
#[command(after_help = COMPLETIONS_HELP)]
pub(crate) struct CompletionsArguments {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

#[derive(Args, Debug)]
pub(crate) struct HealthArguments {
    /// Address of the server (default: 127.0.0.1:7878); http:// and https:// may be left out
    #[arg(value_name = "HOST:PORT or URL", value_parser = server_address)]
    pub address: Option<String>,
    /// Ask /ready, which fails while the server refuses writes, cannot reach another server of its cluster,
    /// or shuts down, instead of /health
    #[arg(long)]
    pub ready: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ManPagesArguments {
    /// Directory of the pages, created if missing
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct DemoArguments {
    /// Serve the data over HTTP with the web console, instead of the tour
    #[arg(long)]
    pub serve: bool,
    /// Address and port of the server (default: 127.0.0.1:7878)
    #[arg(long, value_name = "ADDRESS", requires = "serve")]
    pub bind: Option<String>,
}

#[derive(Args, Debug)]
#[command(after_help = LOAD_EXAMPLES)]
pub(crate) struct LoadArguments {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub database: PathBuf,
    /// Files or folders to load; `-` is standard input and needs --format
    #[arg(value_name = "FILE", required_unless_present_any = ["text_index", "orders"])]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub reading: ReadingArguments,
    /// Number of threads (default: all cores)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// Maximum memory for terms and statements, such as 512M or 4G; beyond it, statements are sorted on disk
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub memory: Option<u64>,
    /// Load nothing: show the schema of the files as a load would interpret it
    #[arg(long)]
    pub show_schema: bool,
    /// Load nothing: print the schema of the files as a mapping file, for editing
    #[arg(long, conflicts_with = "show_schema")]
    pub print_mapping: bool,
    /// Keep the entries of a predicate ordered by a property of its edges, or else of its neighbours, such as
    /// knows=since; names of keys, or IRIs in angle brackets. May be given several times
    #[arg(long = "order", value_name = "PREDICATE=PROPERTY", value_parser = order)]
    pub orders: Vec<(String, String)>,
    /// If another process writes to the database, wait for it up to this time (default: 0)
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub wait: Option<Duration>,
    /// Build a word index of texts, for full-text search; later loads keep the index
    #[arg(long)]
    pub text_index: bool,
}

#[derive(Args, Debug)]
#[command(
    after_help = QUERY_EXAMPLES,
    override_usage = "vervet query DB [TEXT | --file FILE] [OPTIONS]\n       \
                      vervet query --data FILE... [--file FILE] [OPTIONS] [-- TEXT]"
)]
pub(crate) struct QueryArguments {
    /// Directory of the database (not with --data)
    #[arg(value_name = "DB")]
    pub first: Option<OsString>,
    /// Text of the query; `-` or omitted: standard input
    #[arg(value_name = "TEXT")]
    pub second: Option<String>,
    /// Read the query from this file
    #[arg(long, short, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Query these files in memory instead of a database
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub data: Vec<PathBuf>,
    /// Query language: sparql or gremlin
    #[arg(long, value_name = "LANGUAGE", default_value = "sparql")]
    pub language: Language,
    /// table, tsv, csv, json, xml, arrow; for graphs nt, turtle, nq, trig, rdf, jsonld
    /// (default: table and turtle on a terminal, else tsv and nt);
    /// for gremlin table, graphson, json (default: table on a terminal, else graphson)
    #[arg(long, value_parser = query_format, verbatim_doc_comment)]
    pub format: Option<QueryFormat>,
    /// Show the plan instead of running the query
    #[arg(long, conflicts_with = "profile")]
    pub explain: bool,
    /// Run the query and show the plan with measured rows and times instead of the result
    #[arg(long)]
    pub profile: bool,
    /// Timeout in seconds (default: 3600; 0: none)
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// Maximum memory for tables of the query, such as 512M (default: 4G; 0: no cap)
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub memory: Option<u64>,
    /// Maximum threads of a heavy query (default: all cores)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=THREADS_MAX as i64))]
    pub threads: Option<u16>,
    /// Where parts of heavy queries run: auto, cpu or gpu (docs/gpu.md)
    #[arg(
        long,
        value_name = "DEVICE",
        default_value = "auto",
        hide_default_value = true,
        hide_possible_values = true
    )]
    pub device: DeviceChoice,
    /// Value of a variable: <iri>, vertex:3, "text", "text"@en, "1"^^<iri>, 5, 1.5, true
    #[arg(long = "param", value_name = "NAME=TERM", value_parser = parameter)]
    pub parameters: Vec<Parameter>,
    /// Endpoint that SERVICE may query; may be given several times (default: none)
    #[arg(long = "service", value_name = "IRI", value_parser = iri)]
    pub services: Vec<NamedNode>,
    /// Base IRI of relative IRIs in the query
    #[arg(long, value_name = "IRI", value_parser = iri)]
    pub base: Option<NamedNode>,
}

#[derive(Args, Debug)]
#[command(after_help = UPDATE_EXAMPLES)]
pub(crate) struct UpdateArguments {
    /// Directory of the database, created if missing
    #[arg(value_name = "DB")]
    pub database: PathBuf,
    /// Text of the request; `-` or omitted: standard input
    #[arg(value_name = "TEXT", conflicts_with = "file")]
    pub text: Option<String>,
    /// Read the request from this file
    #[arg(long, short, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Timeout in seconds (default: 3600; 0: none)
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// Maximum memory for tables of the request, such as 512M (default: 4G; 0: no cap)
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub memory: Option<u64>,
    /// Value of a variable: <iri>, vertex:3, "text", "text"@en, "1"^^<iri>, 5, 1.5, true
    #[arg(long = "param", value_name = "NAME=TERM", value_parser = parameter)]
    pub parameters: Vec<Parameter>,
    /// Base IRI of relative IRIs in the request
    #[arg(long, value_name = "IRI", value_parser = iri)]
    pub base: Option<NamedNode>,
    /// If another process writes to the database, wait for it up to this time (default: 0)
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub wait: Option<Duration>,
    /// Durability of commits: sync (default), interval[:SECONDS] (default 0.1) or none
    #[arg(long, value_name = "LEVEL", value_parser = durability, default_value = "sync", hide_default_value = true)]
    pub durability: Durability,
}

#[derive(Args, Debug)]
#[command(after_help = RECOVER_HELP)]
pub(crate) struct RecoverArguments {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub database: PathBuf,
    /// Cut the log at the damage; all later commits are lost
    #[arg(long)]
    pub cut_at_damage: bool,
    /// Do not ask for confirmation
    #[arg(long, short, requires = "cut_at_damage")]
    pub yes: bool,
}

#[derive(Args, Debug)]
#[command(after_help = CONSTRAINT_EXAMPLES)]
pub(crate) struct ConstraintArguments {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub database: PathBuf,
    #[command(subcommand)]
    pub change: Option<ConstraintChange>,
}

#[derive(Subcommand, Debug)]
pub(crate) enum ConstraintChange {
    /// Add a constraint, if the data satisfy it
    Add(ConstraintWords),
    /// Remove a constraint
    Remove(ConstraintWords),
}

/// A constraint in words.
#[derive(Args, Debug)]
pub(crate) struct ConstraintWords {
    /// unique, required or single
    #[arg(value_name = "KIND", value_parser = kind)]
    pub kind: ConstraintKind,
    /// A label, or the IRI of a class
    #[arg(value_name = "CLASS")]
    pub class: String,
    /// A key, or the IRI of a property; unique accepts several, which are compared together
    #[arg(value_name = "PROPERTY", required = true)]
    pub properties: Vec<String>,
}

#[derive(Args, Debug)]
pub(crate) struct BackupArguments {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub database: PathBuf,
    /// Directory of the copy, which must not contain a database
    #[arg(value_name = "TO")]
    pub to: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct RestoreArguments {
    /// Directory of a backup made by `vervet backup`
    #[arg(value_name = "BACKUP")]
    pub backup: PathBuf,
    /// Directory of the new database, which must not contain one
    #[arg(value_name = "DB")]
    pub database: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct ShellArguments {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub database: PathBuf,
    /// Durability of commits: sync (default), interval[:SECONDS] (default 0.1) or none
    #[arg(long, value_name = "LEVEL", value_parser = durability, default_value = "sync", hide_default_value = true)]
    pub durability: Durability,
    /// Language of inputs that are ambiguous: sparql or gremlin (an input that begins with g. is gremlin)
    #[arg(long, value_name = "LANGUAGE", default_value = "sparql")]
    pub language: Language,
}

#[derive(Args, Debug)]
#[command(after_help = INFO_EXAMPLES)]
pub(crate) struct InfoArguments {
    /// Directory of the database
    #[arg(value_name = "DB", required_unless_present_any = ["gpu", "statements"])]
    pub database: Option<PathBuf>,
    /// Say which GPU queries use, or why none, instead of describing a database
    #[arg(long, conflicts_with_all = ["all", "database"])]
    pub gpu: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// List all predicates and segments, not only the largest
    #[arg(long)]
    pub all: bool,
    /// Compute machines, memory and disk that a graph needs: one like the database, or like LUBM without one
    #[arg(long, conflicts_with_all = ["all", "gpu"])]
    pub plan: bool,
    /// Statements of the graph (default: those of the database)
    #[arg(long, value_name = "N", requires = "plan", value_parser = count)]
    pub statements: Option<u64>,
    /// Terms of the graph: IRIs, blank nodes and literals (default: as many for each statement as measured)
    #[arg(long, value_name = "N", requires = "plan", value_parser = count)]
    pub terms: Option<u64>,
    /// How many times the database, such as 10 or 2.5 (default: 1)
    #[arg(
        long,
        value_name = "X",
        requires_all = ["plan", "database"],
        conflicts_with = "statements",
        value_parser = positive
    )]
    pub times: Option<f64>,
    /// Copies of the graph: 1, or the number of servers (default: 1)
    #[arg(long, value_name = "R", requires = "plan", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub replicas: Option<u16>,
    /// Servers (default: as many as replicas)
    #[arg(long, value_name = "S", requires = "plan", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub servers: Option<u16>,
}

#[derive(Args, Debug)]
pub(crate) struct CheckArguments {
    /// Directory of the database, or of a backup of a cluster, which may be s3://BUCKET/PREFIX
    #[arg(value_name = "DB")]
    pub database: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct ExportArguments {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub database: PathBuf,
    /// nt, nq, ttl or trig; as a property graph graphson (version 3), graphson2 or graphml
    /// (default: by the name of --output, else nq)
    #[arg(long, value_parser = export_format)]
    pub format: Option<Format>,
    /// Write to this file, which appears once it is complete (default: standard output)
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Args, Clone, Debug)]
#[command(after_help = SERVE_HELP)]
pub(crate) struct ServeArguments {
    /// Directory of the database
    #[arg(value_name = "DB", required_unless_present = "cluster", conflicts_with = "cluster")]
    pub database: Option<PathBuf>,
    /// Serve as a part of a cluster: the directory that `vervet cluster init` made for this server
    #[arg(long, value_name = "DIR", conflicts_with = "create")]
    pub cluster: Option<PathBuf>,
    /// Create an empty database if there is none (otherwise a missing database is an error)
    #[arg(long, conflicts_with = "read_only")]
    pub create: bool,
    /// Address to listen on (default: 127.0.0.1:7878, or `http` of the server in cluster.toml); port 0: any
    /// free port
    #[arg(long, value_name = "HOST:PORT")]
    pub bind: Option<String>,
    /// Additional host name of the server, besides addresses and localhost; may be given several times
    #[arg(long = "host", value_name = "NAME")]
    pub hosts: Vec<String>,
    /// Refuse all writes
    #[arg(long)]
    pub read_only: bool,
    /// Users, TLS, limits: see docs/server.md. Command-line options override the file
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Timeout of queries and updates in seconds (default: 60)
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// Maximum memory for tables of one query, such as 512M (default: 1G)
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub memory: Option<u64>,
    /// Maximum threads of a heavy query (default: all cores)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=THREADS_MAX as i64))]
    pub threads: Option<u16>,
    /// Where parts of heavy queries run: auto, cpu or gpu (docs/gpu.md)
    #[arg(
        long,
        value_name = "DEVICE",
        default_value = "auto",
        hide_default_value = true,
        hide_possible_values = true
    )]
    pub device: DeviceChoice,
    /// Durability of commits: sync (default), interval[:SECONDS] (default 0.1) or none
    #[arg(long, value_name = "LEVEL", value_parser = durability, default_value = "sync", hide_default_value = true)]
    pub durability: Durability,
    /// Listen on non-loopback addresses without TLS
    #[arg(long)]
    pub allow_plain_http: bool,
    /// Queries that the console offers: JSON that it has exported, or TOML (docs/server.md)
    #[arg(long, value_name = "FILE")]
    pub queries: Option<PathBuf>,
    /// End when standard input ends: with the process that started this one
    #[arg(long, hide = true)]
    pub until_input_ends: bool,
    /// Log requests that run for longer, with their text (default: 1000)
    #[arg(long, value_name = "MILLISECONDS")]
    pub slow_query_ms: Option<u64>,
}

#[derive(Args, Debug)]
pub(crate) struct GenerateArguments {
    #[command(subcommand)]
    pub kind: GenerateKind,
}

#[derive(Subcommand, Debug)]
pub(crate) enum GenerateKind {
    /// Universities with departments, people, courses and publications, as N-Triples
    Lubm {
        /// Number of universities; each has about 100,000 statements
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        universities: u32,
        /// Seed; the same seed generates the same data
        #[arg(long, value_name = "S", default_value_t = 0)]
        seed: u64,
        /// Write to this file (default: standard output)
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// A social network in the format and with the distributions of LDBC's, as CSV files for load
    /// --names-from-files
    SnbLike {
        /// Number of persons; each has about 30 kB of files
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=10_000_000))]
        persons: u32,
        /// Seed; the same seed generates the same data
        #[arg(long, value_name = "S", default_value_t = 0)]
        seed: u64,
        /// Directory of the files, created if missing
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// A directed graph whose degrees follow a power law, as N-Triples
    PowerLaw {
        /// Number of vertices
        #[arg(long, value_name = "N", default_value_t = 100_000)]
        vertices: u32,
        /// Number of edges
        #[arg(long, value_name = "N", default_value_t = 1_000_000)]
        edges: u32,
        /// Exponent of the power law; above 2
        #[arg(long, value_name = "X", default_value_t = 2.2, value_parser = exponent)]
        exponent: f64,
        /// Seed; the same seed generates the same data
        #[arg(long, value_name = "S", default_value_t = 0)]
        seed: u64,
        /// Write to this file (default: standard output)
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

fn export_format(name: &str) -> Result<Format, String> {
    Format::from_name(name)
        .filter(|format| exported(*format))
        .ok_or_else(|| "known are nt, nq, ttl, trig, graphson, graphson2, graphml".to_owned())
}

/// Whether a graph can be exported in this format.
pub(crate) fn exported(format: Format) -> bool {
    use Format::{GraphMl, GraphSon, GraphSon2, NQuads, NTriples, TriG, Turtle};
    matches!(format, NTriples | NQuads | Turtle | TriG | GraphSon | GraphSon2 | GraphMl)
}

/// The language of a query.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum Language {
    /// SPARQL 1.1
    Sparql,
    /// Gremlin 3.8
    Gremlin,
}

/// An output format by name, in either language.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct QueryFormat {
    pub sparql: Option<OutputFormat>,
    pub gremlin: Option<crate::gremlin_format::GremlinFormat>,
}

fn query_format(name: &str) -> Result<QueryFormat, String> {
    let format = QueryFormat {
        sparql: name.parse().ok(),
        gremlin: crate::gremlin_format::GremlinFormat::from_name(name),
    };
    match format {
        QueryFormat { sparql: None, gremlin: None } => Err(crate::gremlin_format::FORMATS.to_owned()),
        known => Ok(known),
    }
}

fn kind(text: &str) -> Result<ConstraintKind, String> {
    text.parse().map_err(|_| "known are unique, required, single".to_owned())
}

fn order(text: &str) -> Result<(String, String), String> {
    // An IRI may contain `=`.
    let cut = if text.starts_with('<') { text.find(">=").map(|at| at + 1) } else { text.find('=') };
    let (predicate, property) =
        cut.map(|at| (&text[..at], &text[at + 1..])).ok_or("not of the form PREDICATE=PROPERTY")?;
    let name = |text: &str| match text.starts_with('<') {
        true => iri(text).map(NamedNode::into_string),
        false if text.is_empty() => Err("a name is empty".to_owned()),
        false => Ok(text.to_owned()),
    };
    Ok((name(predicate)?, name(property)?))
}

/// How often a log is synced at the level `interval`, if nothing else is said.
const INTERVAL_DEFAULT: Duration = Duration::from_millis(100);

fn durability(text: &str) -> Result<Durability, String> {
    match text.split_once(':') {
        None if text == "sync" => Ok(Durability::Sync),
        None if text == "none" => Ok(Durability::None),
        None if text == "interval" => Ok(Durability::Interval(INTERVAL_DEFAULT)),
        Some(("interval", time)) => Ok(Durability::Interval(seconds(time)?)),
        _ => Err("known are sync, interval, interval:SECONDS, none".to_owned()),
    }
}

fn exponent(text: &str) -> Result<f64, String> {
    let exponent: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if exponent > 2.0 && exponent <= 10.0 {
        Ok(exponent)
    } else {
        Err("must be above 2 and at most 10".to_owned())
    }
}

#[cfg(test)]
mod tests;

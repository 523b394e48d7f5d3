//! The command `vervet`: a thin shell over the crate of the same name.
//!
//! docs/command-line.md is the manual; `arguments` has every option with its help text, and each command has
//! a file of its own.
//!
//! # Invariants
//! 1. Results go to standard output, everything else to standard error.
//! 2. Exit codes: 0 ok, 1 error in a query, an input or the data, 2 wrong usage, 130 cancelled.
//! 3. If the reader closes the pipe (`vervet query … | head`), the command ends quietly with 0.
#![forbid(unsafe_code)]

mod arguments;
mod backup;
mod bucket_store;
mod changes;
mod check;
mod cluster;
mod cluster_backup;
mod cluster_directory;
mod cluster_load;
mod cluster_rebalance;
mod cluster_shape;
mod cluster_status;
mod completions;
mod constraint;
mod demo;
mod export;
mod generate;
mod gpu;
mod gremlin;
mod gremlin_format;
mod health;
mod highlight;
mod http_client;
mod info;
mod input;
mod interrupt;
mod keywords;
mod line_editor;
mod load;
mod logging;
mod mcp;
mod open_transaction;
mod output;
mod pager;
mod parameter;
mod password;
mod plan;
mod progress;
mod query;
mod recover;
mod repeated_header;
mod request;
mod restore;
mod schema;
mod serve;
mod server_address;
mod service;
mod shell;
mod table;
mod temporary_folder;
mod update;
mod writer_lock;

use arguments::{Arguments, Command, LogLevel};
use clap::Parser;
use std::process::ExitCode;

/// Queries allocate and free many small and some large blocks, which the system allocator returns to the
/// system in between: a fifth of the time of short queries. The library leaves the choice of the allocator to
/// the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if !matches!(arguments.command, Command::Serve(_)) {
        // The server has its own shutdown.
        interrupt::install();
    }
    let level = if matches!(arguments.command, Command::Serve(_)) { LogLevel::Info } else { LogLevel::Warn };
    if let Err(failure) = logging::begin(&arguments.log, level) {
        return output::finish(Err(failure));
    }
    if let Err(failure) = cluster_directory::refuse(&arguments.command) {
        return output::finish(Err(failure));
    }
    let outcome = match arguments.command {
        Command::Load(arguments) => load::run(&arguments),
        Command::Query(arguments) => query::run(&arguments),
        Command::Update(arguments) => update::run(&arguments),
        Command::Shell(arguments) => shell::run(&arguments),
        Command::Info(arguments) if arguments.plan => plan::run(&arguments),
        Command::Info(arguments) => info::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Export(arguments) => export::run(&arguments),
        Command::Changes(arguments) => changes::run(&arguments),
        Command::Constraint(arguments) => constraint::run(&arguments),
        Command::Backup(arguments) => backup::run(&arguments),
        Command::Restore(arguments) => restore::run(&arguments),
        Command::Recover(arguments) => recover::run(&arguments),
        Command::Generate(arguments) => generate::run(&arguments),
        Command::Serve(options) => serve::run(&options, arguments.log.log_format),
        Command::Cluster(arguments) => cluster::run(&arguments),
        Command::Health(arguments) => health::run(&arguments),
        Command::Mcp(arguments) => mcp::run(&arguments),
        Command::Password => password::run(),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::ManPages(arguments) => completions::man_pages(&arguments),
    };
    output::finish(outcome)
}

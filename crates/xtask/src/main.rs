//! Development tasks of the project.
//!
//! * `cargo xtask ci` runs all checks of CI, in the order of the time that they take to fail.
//! * `cargo xtask conformance SUITE` runs a test suite and prints its report: `lubm`, `sparql`, `rdf`,
//!   `protocol`, `random`, `random-update`, `random-gremlin` (`--against tinkergraph`), `tinkerpop`, `ldbc`
//!   (queries of the social network), `acid` (`acid --full` with long sleeps) or `history`
//!   (docs/histories.md).
//! * `cargo xtask cluster-chaos` kills, stops and cuts off servers of a cluster in the middle of queries;
//!   `cluster-chaos --voters` kills and stops voters under a load of updates;
//! * `cargo xtask cluster-day` does what an operator does, from the first server on, under a load; with
//!   `--from PROGRAM`, the program of an earlier version, it upgrades the servers meanwhile;
//! * `cargo xtask simulate` runs a cluster on a virtual machine, with faults, from a seed
//!   (docs/simulation.md); `simulate --fault NAME` plants a mistake that it must find, `simulate --mutants`
//!   does so in the sources.
//! * `cargo xtask tidy` runs source checks beyond lints.
//! * `cargo xtask page` builds and tests the web console if npm is available. `ci` does the same.
//! * `cargo xtask python` builds the module of the Python package and runs its tests, if there is a Python
//!   with pytest. `ci` does the same.
//! * `cargo xtask book` checks the links of the documentation and builds it as a book. With `--check` it only
//!   checks, as `ci` does.
//! * `cargo xtask chart` draws the chart of the README.
//! * `cargo xtask gpu check` compiles the device kernels for GPUs, and fails on warnings, stack frames and
//!   spills; `gpu build FOLDER` also writes the results. Both need Python; NVRTC is downloaded once. `ci`
//!   checks, too.
//! * `cargo xtask gpu mutate` removes each barrier of the device kernels in turn: a test must fail. `gpu
//!   sanitize` runs their tests under sanitizers; `gpu random [COUNT]` compares random queries on the
//!   simulated device (default: 50,000 of each kind).
//! * `cargo xtask dist` builds the program for distribution (`--target TRIPLE`).
#![forbid(unsafe_code)]

mod book;
mod bundle;
mod chart;
mod circles;
mod command;
mod dist;
mod features;
mod gpu;
mod licences;
mod page;
mod python;
mod simulate;
mod tidy;

use std::process::{Command, ExitCode};
use std::time::Instant;

const USAGE: &str = "usage: cargo xtask ci | tidy | page | python | book [--check] | chart | dist [--target TRIPLE] | gpu check | gpu build FOLDER | gpu mutate | gpu sanitize | gpu random [COUNT] | conformance lubm | sparql | rdf | protocol | random | random-update | random-flow | random-gremlin | tinkerpop | ldbc | acid | history | cluster-chaos [--minutes N] [--seed S] | cluster-chaos --voters [--kills N] [--restarts N] [--stops N] [--seed S] [--clients N] | cluster-day [--seed S] [--rate N] [--pause SECONDS] [--from PROGRAM] | simulate [--transactions N] [--seed S] [--fault NAME] [--jobs N] | simulate --mutants [NAME...]\n";

/// A step of CI: its name, its command, and its environment variables.
struct Step {
    name: &'static str,
    arguments: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
}

const fn step(name: &'static str, arguments: &'static [&'static str]) -> Step {
    Step { name, arguments, environment: &[] }
}

const CI: [Step; 9] = [
    step("format", &["fmt", "--all", "--", "--check"]),
    step("lints", &["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"]),
    step(
        "lints of the schedules",
        &[
            "clippy",
            "-p",
            "vervet-txn",
            "--features",
            "shuttle",
            "--lib",
            "--tests",
            "--quiet",
            "--",
            "-D",
            "warnings",
        ],
    ),
    // The README's test command.
    step("tests", &["test"]),
    // Deterministic scheduling of locks: a feature that no other step enables.
    step("schedules", &["test", "--quiet", "-p", "vervet-txn", "--features", "shuttle", "--lib", "explore"]),
    step(
        "simulation",
        &["run", "--release", "--quiet", "-p", "vervet-simulation", "--", "--transactions", "1000000"],
    ),
    step(
        "planted faults",
        &["run", "--release", "--quiet", "-p", "vervet-simulation", "--", "--fault", "all"],
    ),
    Step {
        name: "documentation",
        arguments: &["doc", "--workspace", "--no-deps", "--quiet"],
        environment: &[("RUSTDOCFLAGS", "-D warnings")],
    },
    // Of the whole workspace: for the benchmarks alone, packages have fewer features and are built anew.
    step("benchmarks' self-checks", &["test", "--quiet", "--workspace", "--test", "self_check"]),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        ["ci"] => ci(),
        ["tidy"] => tidy::tidy(),
        ["page"] => page::page(false),
        ["python"] => python::python(),
        ["book"] => book::book(false),
        ["book", "--check"] => book::book(true),
        ["chart"] => chart::chart(),
        ["gpu", arguments @ ..] => gpu::run(arguments).unwrap_or_else(|| Err(USAGE.to_owned())),
        ["dist"] => dist::dist(None),
        ["dist", "--target", triple] => dist::dist(Some(triple)),
        ["conformance", "protocol"] => {
            // This suite is a test of the server.
            let run =
                ["test", "--quiet", "-p", "vervet-server", "--test", "server", "w3c", "--", "--nocapture"];
            cargo(&run, &[])
        }
        ["cluster-day", options @ ..] => {
            let run = ["run", "--release", "--quiet", "-p", "vervet-conformance", "--", "cluster-day"];
            let built = cargo(&["build", "--release", "--quiet", "-p", "vervet-cli"], &[]);
            built.and_then(|()| cargo(&[&run, options].concat(), &[]))
        }
        ["cluster-chaos", options @ ..] => {
            // Its servers are processes of the program beside it.
            let program = ["build", "--release", "--quiet", "-p", "vervet-cli"];
            let built = if options.contains(&"--voters") { cargo(&program, &[]) } else { Ok(()) };
            let run = ["run", "--release", "--quiet", "-p", "vervet-conformance", "--", "cluster-chaos"];
            built.and_then(|()| cargo(&[&run, options].concat(), &[]))
        }
        ["simulate", options @ ..] => simulate::simulate(options),
        ["conformance", suite @ ..] => {
            // Over servers, these are processes of the program beside it.
            let over_servers = match suite {
                ["history", options @ ..] => options.contains(&"--cluster"),
                ["acid", options @ ..] => options.contains(&"--faults"),
                ["cluster-day", ..] => true,
                _ => false,
            };
            let program = ["build", "--release", "--quiet", "-p", "vervet-cli"];
            let built = if over_servers { cargo(&program, &[]) } else { Ok(()) };
            let run = ["run", "--release", "--quiet", "-p", "vervet-conformance", "--"];
            built.and_then(|()| cargo(&[&run, suite].concat(), &[]))
        }
        _ => Err(USAGE.to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn ci() -> Result<(), String> {
    let mut costs = Vec::new();
    let mut measured = |name: &'static str, work: &mut dyn FnMut() -> Result<(), String>| {
        let start = Instant::now();
        work()?;
        costs.push((name, start.elapsed().as_secs_f64()));
        Ok::<_, String>(())
    };
    println!("== tidy");
    measured("tidy", &mut tidy::tidy)?;
    println!("== dependencies");
    measured("dependencies", &mut dependencies)?;
    println!("== book");
    measured("book", &mut || book::book(true))?;
    // Before the build of the server, which embeds the page's files.
    println!("== page");
    measured("page", &mut || page::page(true))?;
    for step in &CI {
        println!("== {}: cargo {}", step.name, step.arguments.join(" "));
        measured(step.name, &mut || cargo(step.arguments, step.environment))?;
    }
    println!("== device kernels");
    measured("device kernels", &mut || gpu::compile(&["check"]))?;
    println!("== python");
    measured("python", &mut python::python)?;
    println!("== seconds of each step");
    for (name, seconds) in &costs {
        println!("{seconds:8.0}  {name}");
    }
    println!("{:8.0}  in all", costs.iter().map(|(_, seconds)| seconds).sum::<f64>());
    Ok(())
}

/// Checks licences, sources and duplicates of the dependencies by `deny.toml`, if cargo-deny is installed.
/// Advisories need the network: `cargo deny check` has them.
fn dependencies() -> Result<(), String> {
    if !Command::new("cargo-deny").arg("--version").output().is_ok_and(|output| output.status.success()) {
        println!("skipped: there is no cargo-deny; install it with `cargo install cargo-deny`");
        return Ok(());
    }
    cargo(&["deny", "--offline", "check", "licenses", "bans", "sources"], &[])
}

fn cargo(arguments: &[&str], environment: &[(&str, &str)]) -> Result<(), String> {
    let status = command::cargo()
        .args(arguments)
        .envs(environment.iter().copied())
        .status()
        .map_err(|error| format!("could not start cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("failed: cargo {}", arguments.join(" "))) }
}

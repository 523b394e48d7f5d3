//! `vervet info --plan`: machines, memory and disk that a graph needs.
//!
//! # Shape
//! The bytes of a statement and of a term are those of a database, or measured ones of LUBM-40. What a server
//! needs beside its files is measured as well, or a limit. Each constant names its source.
//! # Not here
//! The memory of a load, which depends on the texts of the terms (docs/loading.md).

use crate::arguments::InfoArguments;
use crate::info::Facts;
use crate::output::{self, Failure, Outcome, Output};
use crate::table::Table;
use std::io::{self, Write};
use std::path::Path;
use vervet::Database;

/// What the bytes are those of, and where they were measured.
const LUBM: &str = "LUBM-40, docs/benchmarks/info.md";

/// Statements of LUBM-40 (docs/benchmarks/info.md), …
const LUBM_STATEMENTS: u64 = 5_307_458;

/// … its terms: vertices and literals, …
const LUBM_TERMS: u64 = 864_253 + 444_025;

/// … bytes of its adjacency, in both directions, …
const LUBM_ADJACENCY_BYTES: u64 = 17_471_881 + 19_041_935;

/// … and bytes of its dictionary.
const LUBM_DICTIONARY_BYTES: u64 = 14_696_606;

/// A graph in 16 partitions has more bytes a statement: 6.03 in place of 5.41 (docs/benchmarks/cluster.md).
const PARTITIONS_FACTOR: f64 = 6.03 / 5.41;

/// Memory of a server at its start: 62 to 68 MiB (docs/benchmarks/cluster.md).
const START_BYTES: u64 = 68 << 20;

/// Memory of the changes and the merge at the leader, in bytes a statement of the graph: 888 MiB, of which
/// 119 MiB before the updates, with 6.2 million statements (docs/benchmarks/cluster.md).
const MERGE_BYTES: f64 = ((888 - 119) << 20) as f64 / 6.2e6;

/// Memory of a statement that is not merged (docs/benchmarks/cluster.md).
const CHANGE_BYTES: f64 = 84.0;

/// Changes are merged when they are this part of the statements (docs/cluster.md, docs/transactions.md).
const CHANGES_PART: f64 = 0.125;

/// Limit of the memory of changes (docs/limits.md).
const CHANGES_BYTES_MAX: u64 = 2 << 30;

/// Log of a database: a checkpoint begins at 256 MiB (docs/transactions.md), and the log grows meanwhile.
const LOG_BYTES: u64 = 512 << 20;

/// Log of a voter: that since the merge before the last one, twice 128 MiB (docs/cluster.md).
const VOTER_LOG_BYTES: u64 = 256 << 20;

/// Limit of the log of a writer, whose changes are not merged (docs/limits.md).
const WRITER_LOG_BYTES: u64 = 1 << 30;

/// Limits of queries of a server: `heavy_requests` at a time, with `memory_bytes` each (docs/limits.md).
const HEAVY_REQUESTS: u64 = 8;
const QUERY_BYTES: u64 = 1 << 30;

/// Most vertices of a database, and most literals (docs/limits.md).
const TERMS_MAX: u64 = (1 << 32) - (1 << 20);

pub(crate) fn run(arguments: &InfoArguments) -> Outcome {
    let measured = match &arguments.database {
        Some(database) => Measured::of_database(database)?,
        None => Measured::lubm(),
    };
    let plan = Plan::new(measured, arguments)?;
    let mut out = Output::standard();
    match arguments.json {
        true => writeln!(out, "{}", plan.json())?,
        false => plan.write_text(&mut out)?,
    }
    out.finish()
}

/// Bytes of a graph.
struct Measured {
    /// What was measured.
    source: String,
    statements: u64,
    terms: u64,
    /// Bytes of the adjacency and the edge table.
    statement_bytes: u64,
    /// Bytes of the dictionary.
    term_bytes: u64,
}

impl Measured {
    fn lubm() -> Self {
        Self {
            source: LUBM.to_owned(),
            statements: LUBM_STATEMENTS,
            terms: LUBM_TERMS,
            statement_bytes: LUBM_ADJACENCY_BYTES,
            term_bytes: LUBM_DICTIONARY_BYTES,
        }
    }

    fn of_database(path: &Path) -> Outcome<Self> {
        let facts = Facts::collect(&Database::open(path)?)?;
        if facts.statements() == 0 {
            let message = format!("{} has no statements to measure", path.display());
            let hint =
                "without a database, the bytes are those of LUBM-40: vervet info --plan --statements N";
            return Err(Failure::Usage(message, hint.to_owned()));
        }
        let term_bytes = facts.dictionary_bytes();
        Ok(Self {
            source: path.display().to_string(),
            statements: facts.statements(),
            terms: facts.terms(),
            statement_bytes: facts.size_bytes().saturating_sub(term_bytes),
            term_bytes,
        })
    }

    fn bytes_per_statement(&self) -> f64 {
        self.statement_bytes as f64 / self.statements.max(1) as f64
    }

    fn bytes_per_term(&self) -> f64 {
        self.term_bytes as f64 / self.terms.max(1) as f64
    }
}

/// How the graph is spread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shape {
    /// One database.
    Single,
    /// Each server has the whole graph, and voters take changes.
    Replicated,
    /// Each server has a part of the statements.
    Partitioned,
}

/// A need of each machine.
struct Need {
    what: &'static str,
    name: &'static str,
    size_bytes: u64,
    source: String,
}

/// The needs of a graph.
struct Plan {
    measured: Measured,
    shape: Shape,
    statements: u64,
    terms: u64,
    servers: u64,
    replicas: u64,
    disk: Vec<Need>,
    memory: Vec<Need>,
}

/// A product of a count, of which parts of a unit do not matter.
fn times(count: u64, factor: f64) -> u64 {
    let product = (count as f64 * factor).round();
    // Sums of some of these fit.
    if product < 9e18 { format!("{product:.0}").parse().unwrap_or(0) } else { 9_000_000_000_000_000_000 }
}

impl Plan {
    fn new(measured: Measured, arguments: &InfoArguments) -> Outcome<Self> {
        let factor = arguments.times.unwrap_or(1.0);
        let statements = arguments.statements.unwrap_or_else(|| times(measured.statements, factor));
        let scale = statements as f64 / measured.statements.max(1) as f64;
        let terms = arguments.terms.unwrap_or_else(|| times(measured.terms, scale));
        let replicas = u64::from(arguments.replicas.unwrap_or(1));
        let servers = arguments.servers.map_or(replicas, u64::from);
        let shape = match (servers, replicas) {
            (1, 1) => Shape::Single,
            (_, 1) => Shape::Partitioned,
            _ if servers == replicas => Shape::Replicated,
            _ if replicas < servers => Shape::Partitioned,
            _ => {
                let message = format!("{replicas} replicas at {servers} servers: there are no such clusters");
                let hint = "--replicas is at most the number of servers: each has the whole graph then";
                return Err(Failure::Usage(message, hint.to_owned()));
            }
        };
        let mut plan = Self {
            measured,
            shape,
            statements,
            terms,
            servers,
            replicas,
            disk: Vec::new(),
            memory: Vec::new(),
        };
        plan.collect();
        Ok(plan)
    }

    fn collect(&mut self) {
        let (per_statement, per_term) = (self.measured.bytes_per_statement(), self.measured.bytes_per_term());
        let own_statements = match self.shape {
            Shape::Partitioned => {
                let own = self.statements.saturating_mul(self.replicas).div_ceil(self.servers);
                times(own, PARTITIONS_FACTOR)
            }
            _ => self.statements,
        };
        let files = times(own_statements, per_statement).saturating_add(times(self.terms, per_term));
        let need =
            |what, name, size_bytes, source: &str| Need { what, name, size_bytes, source: source.to_owned() };
        let bytes =
            format!("{per_statement:.2} bytes a statement, {per_term:.2} a term ({})", self.measured.source);
        self.disk.push(need("files of the graph", "files", files, &bytes));
        self.memory = vec![
            need("a server at its start", "start", START_BYTES, "68 MiB (docs/benchmarks/cluster.md)"),
            need("the files, which are mapped, all in use", "files", files, "the size of the files"),
        ];
        let changes = match self.shape {
            Shape::Partitioned => {
                let log = "limit of the log of the writer (docs/limits.md)";
                self.disk.push(need("log of changes", "log", WRITER_LOG_BYTES, log));
                let changes = times(self.statements, CHANGES_PART * CHANGE_BYTES).min(CHANGES_BYTES_MAX);
                let source = "84 bytes a statement, an eighth of the graph, at most 2 GiB (docs/limits.md)";
                need("changes, which are not merged", "changes", changes, source)
            }
            shape => {
                let merged = "the size of the files (docs/transactions.md)";
                self.disk.push(need("the next files, during a merge", "merge", files, merged));
                let (log, source) = match shape {
                    Shape::Single => (LOG_BYTES, "twice 256 MiB (docs/transactions.md)"),
                    _ => (VOTER_LOG_BYTES, "twice 128 MiB (docs/cluster.md)"),
                };
                self.disk.push(need("log of changes", "log", log, source));
                let source = "130 bytes a statement (docs/benchmarks/cluster.md)";
                need(
                    "changes and a merge, while clients write",
                    "changes",
                    times(self.statements, MERGE_BYTES),
                    source,
                )
            }
        };
        self.memory.push(changes);
        let queries = "limits: heavy_requests (8) with memory_bytes (1 GiB) each (docs/limits.md)";
        self.memory.push(need("heavy queries", "queries", HEAVY_REQUESTS * QUERY_BYTES, queries));
    }

    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let machines = match (self.shape, self.servers) {
            (Shape::Single, _) => "on one machine".to_owned(),
            (Shape::Replicated, servers) => format!("on {servers} machines, each with the whole graph"),
            (Shape::Partitioned, servers) => {
                format!("on {servers} machines, each with a part of the statements and all terms")
            }
        };
        let (statements, terms) = (output::statements(self.statements), output::count(self.terms));
        writeln!(out, "{statements} and {terms} terms {machines}\n")?;
        for (title, name, needs) in
            [("disk of each machine", "disk", &self.disk), ("memory of each machine", "memory", &self.memory)]
        {
            let mut table = Table::new(&[title, ">size", "computed from"]);
            for need in needs {
                table.row([need.what.to_owned(), output::bytes(need.size_bytes), need.source.clone()]);
            }
            let all = format!("{name} in all");
            table.row([all, output::bytes(sum(needs)), self.scaling()]);
            table.write("", out)?;
            writeln!(out)?;
        }
        writeln!(
            out,
            "A graph that is only read needs its files alone: {} of disk, {} of memory and that of queries.",
            output::bytes(self.files()),
            output::bytes(self.files().saturating_add(START_BYTES))
        )?;
        if self.terms > TERMS_MAX {
            let most = output::count(TERMS_MAX);
            writeln!(out, "A database has at most {most} vertices, and as many literals (docs/limits.md).")?;
        }
        Ok(())
    }

    /// How far the figures are from those that were measured.
    fn scaling(&self) -> String {
        let scale = self.statements as f64 / self.measured.statements.max(1) as f64;
        match scale {
            _ if (0.99..1.01).contains(&scale) => "as measured".to_owned(),
            _ if scale < 0.01 => "far less than was measured".to_owned(),
            _ => format!("scaled, {scale:.2} times what was measured"),
        }
    }

    fn files(&self) -> u64 {
        self.disk.first().map_or(0, |need| need.size_bytes)
    }

    fn json(&self) -> serde_json::Value {
        let needs = |needs: &[Need]| -> serde_json::Map<String, serde_json::Value> {
            let all = ("all".to_owned(), sum(needs).into());
            needs.iter().map(|need| (need.name.to_owned(), need.size_bytes.into())).chain([all]).collect()
        };
        serde_json::json!({
            "statements": self.statements,
            "terms": self.terms,
            "machines": self.servers,
            "replicas": self.replicas,
            "measured": self.measured.source,
            "bytes_per_statement": self.measured.bytes_per_statement(),
            "bytes_per_term": self.measured.bytes_per_term(),
            "disk_bytes": needs(&self.disk),
            "memory_bytes": needs(&self.memory),
        })
    }
}

fn sum(needs: &[Need]) -> u64 {
    needs.iter().fold(0, |all: u64, need| all.saturating_add(need.size_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::{Arguments, Command};
    use clap::Parser;

    fn plan(arguments: &[&str]) -> Outcome<Plan> {
        let all = ["vervet", "info", "--plan"].iter().chain(arguments);
        let Command::Info(arguments) = Arguments::parse_from(all).command else { panic!("another command") };
        Plan::new(Measured::lubm(), &arguments)
    }

    #[test]
    fn what_was_measured_is_planned() {
        let found = plan(&["--statements", "5307458"]).expect("a plan");
        assert_eq!(found.terms, LUBM_TERMS);
        // All bytes of docs/benchmarks/info.md.
        assert_eq!(found.files(), 51_210_422);
        assert_eq!(sum(&found.disk), 2 * 51_210_422 + LOG_BYTES);
        assert_eq!(found.scaling(), "as measured");
    }

    /// docs/guides/operate.md: 1 GB of files, a disk of 4 GB, memory of 10 to 15 GB beside that of queries.
    #[test]
    fn a_hundred_million_statements_need_what_the_guide_says() {
        let found = plan(&["--statements", "100,000,000", "--replicas", "3"]).expect("a plan");
        let giga = |size_bytes: u64| size_bytes as f64 / 1e9;
        assert_eq!((found.shape, found.servers), (Shape::Replicated, 3));
        assert!((0.9..1.1).contains(&giga(found.files())), "{}", found.files());
        assert!(giga(sum(&found.disk)) < 4.0);
        let memory = giga(sum(&found.memory) - HEAVY_REQUESTS * QUERY_BYTES);
        assert!((10.0..15.0).contains(&memory), "{memory}");
    }

    #[test]
    fn servers_share_statements_and_have_all_terms() {
        let one = plan(&["--statements", "1000000000", "--terms", "1000"]).expect("a plan");
        let four =
            plan(&["--statements", "1000000000", "--terms", "1000", "--servers", "4"]).expect("a plan");
        assert_eq!((one.shape, four.shape), (Shape::Single, Shape::Partitioned));
        assert!(one.files() / 4 < four.files() && four.files() < one.files() / 3);
        assert!(plan(&["--statements", "9", "--servers", "2", "--replicas", "4"]).is_err());
        // Twice the share of each server.
        let shares = [["8", "2"], ["4", "1"]].map(|[servers, replicas]| {
            let options = ["--statements", "1,000,000,000", "--servers", servers, "--replicas", replicas];
            plan(&options).expect("a plan").files()
        });
        assert_eq!(shares[0], shares[1]);
    }
}

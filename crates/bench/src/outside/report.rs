//! Reports of outside benchmarks: a table of each data set, a summary, and JSON.

use crate::measure::{Timing, geometric_mean};
use crate::report::{LoadFigures, machine, today};
use crate::sections::write;
use crate::table::{Table, count, figure, figure_or_dash};
use serde::Serialize;
use std::fmt;
use std::path::Path;
use std::time::Duration;
use vervet_model::{Error, Result};

/// No query may take longer than this.
const TARGET_MS: f64 = 2_000.0;

/// The measurement of one engine.
#[derive(Clone, Default, Serialize, Debug)]
pub struct Side {
    /// The first run, cold.
    pub first: Option<Timing>,
    /// Warm runs; the first run if it is the only one.
    pub timing: Option<Timing>,
    /// The query was cancelled after this time, in ms.
    pub over_limit: Option<f64>,
}

/// The measurements of one query.
#[derive(Clone, Default, Serialize, Debug)]
pub struct OutsideFigures {
    /// Its name.
    pub query: String,
    /// The number of rows.
    pub rows: Option<u64>,
    /// Our engine, then the peers.
    pub sides: Vec<Side>,
    /// The time of the independent reference.
    pub reference: Option<Timing>,
    /// Whether our rows equal the reference.
    pub equal_reference: bool,
    /// The number of peers whose answer could be compared.
    pub compared: usize,
    /// The number of peers with an equal answer.
    pub equal_peers: usize,
    /// Discrepancies and failures.
    pub remarks: Vec<String>,
    /// Our plan, if the query went over the limit.
    pub plan: Option<String>,
    /// Whether our value differs from the reference, or from a peer without a reference.
    pub wrong: bool,
}

impl OutsideFigures {
    pub(super) fn new(query: &str, engines: usize) -> Self {
        Self { query: query.to_owned(), sides: vec![Side::default(); engines], ..Self::default() }
    }

    /// Whether our engine has answered.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        self.sides.first().is_some_and(|ours| ours.timing.is_some())
    }

    fn value(&self) -> &'static str {
        if self.wrong {
            "WRONG"
        } else if self.equal_reference || self.equal_peers > 0 {
            "equal"
        } else {
            "-"
        }
    }
}

/// The queries of one data set.
#[derive(Serialize, Debug)]
pub struct OutsideReport {
    /// The heading.
    pub title: String,
    /// The command-line arguments.
    pub command: String,
    /// The day (UTC).
    pub date: String,
    /// Processor, number of cores, load.
    pub machine: String,
    /// Whether the program is a release build.
    pub optimized: bool,
    /// The names of the engines, ours first.
    pub engines: Vec<String>,
    /// Engines in other processes whose CPU time is not known: their time is that of the wall clock.
    pub timed_by_wall: Vec<bool>,
    /// The time limit of an answer.
    pub limit: Duration,
    /// The measurements of loads.
    pub loads: Vec<LoadFigures>,
    /// The measurements of queries.
    pub queries: Vec<OutsideFigures>,
}

impl OutsideReport {
    pub(super) fn new(
        title: String,
        engines: Vec<String>,
        timed_by_wall: Vec<bool>,
        limit: Duration,
    ) -> Self {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        Self {
            title,
            command: format!("vervet-bench {}", arguments.join(" ")),
            date: today(),
            machine: machine(),
            optimized: !cfg!(debug_assertions),
            engines,
            timed_by_wall,
            limit,
            loads: Vec::new(),
            queries: Vec::new(),
        }
    }

    /// Whether no value of ours is wrong. A query over the time limit is not wrong.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.queries.iter().all(|query| !query.wrong)
    }

    /// Writes reports as a JSON array.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_json(reports: &[Self], file: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(reports)
            .map_err(|error| Error::internal(format!("a report has no JSON form: {error}")))?;
        write(file, &(text + "\n"))
    }

    /// Writes reports as Markdown.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_markdown(reports: &[Self], file: &Path) -> Result<()> {
        let sections: Vec<String> = reports.iter().map(Self::to_string).collect();
        write(file, &format!("# Benchmark\n\n{}", sections.join("\n")))
    }

    /// The compared time of an engine: CPU, or the wall clock where that is not known.
    fn ms(&self, query: &OutsideFigures, engine: usize) -> Option<f64> {
        let timing = query.sides.get(engine)?.timing?;
        Some(if self.timed_by_wall.get(engine) == Some(&true) {
            timing.median_ms
        } else {
            timing.cpu_median_ms
        })
    }

    /// The speed-up over a peer. Against the wall clock our time is that of the wall clock, too.
    fn ratio(&self, query: &OutsideFigures, peer: usize) -> Option<f64> {
        let ours = query.sides.first()?.timing?;
        let ours =
            if self.timed_by_wall.get(peer) == Some(&true) { ours.median_ms } else { ours.cpu_median_ms };
        Some(self.ms(query, peer)? / ours)
    }

    fn peers(&self) -> std::ops::Range<usize> {
        1..self.engines.len()
    }

    fn table(&self) -> Table {
        let mut headings = vec!["query".to_owned(), "rows".to_owned(), "value".to_owned()];
        headings.extend(["vervet CPU ms", "first run"].map(str::to_owned));
        let has_reference = self.queries.iter().any(|query| query.reference.is_some());
        if has_reference {
            headings.push("reference ms".to_owned());
        }
        for peer in self.peers() {
            let name = &self.engines[peer];
            let clock = if self.timed_by_wall.get(peer) == Some(&true) { "" } else { " CPU" };
            headings.extend([format!("{name}{clock} ms"), "ratio".to_owned()]);
        }
        let mut table = Table::new(&headings.iter().map(String::as_str).collect::<Vec<_>>());
        for query in &self.queries {
            let mut row = vec![
                query.query.clone(),
                query.rows.map_or_else(|| "-".to_owned(), count),
                query.value().to_owned(),
                self.cell(query, 0),
                figure_or_dash(query.sides[0].first.map(|first| first.cpu_median_ms)),
            ];
            if has_reference {
                row.push(figure_or_dash(query.reference.map(|timing| timing.cpu_median_ms)));
            }
            for peer in self.peers() {
                row.extend([self.cell(query, peer), figure_or_dash(self.ratio(query, peer))]);
            }
            table.row(row);
        }
        table
    }

    fn cell(&self, query: &OutsideFigures, engine: usize) -> String {
        match (self.ms(query, engine), query.sides[engine].over_limit) {
            (Some(ms), _) => figure(ms),
            (None, Some(_)) => format!("over {} s", self.limit.as_secs_f64()),
            (None, None) => "-".to_owned(),
        }
    }

    /// The names of the queries for which `wanted` holds.
    fn names(&self, wanted: impl Fn(&OutsideFigures) -> bool) -> Vec<&str> {
        self.queries.iter().filter(|query| wanted(query)).map(|query| query.query.as_str()).collect()
    }

    /// The plans of the queries that our engine did not finish, as Markdown.
    #[must_use]
    pub fn plans(&self) -> String {
        let plan = |query: &OutsideFigures| {
            Some(format!(
                "### {}, {}\n\n```\n{}\n```\n",
                self.title,
                query.query,
                query.plan.as_ref()?.trim_end()
            ))
        };
        self.queries.iter().filter_map(plan).collect()
    }

    fn write_summary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let over = self.names(|query| query.sides[0].over_limit.is_some());
        let finished = self.names(|query| query.sides[0].timing.is_some()).len();
        let slow = self.names(|query| self.ms(query, 0).is_some_and(|ms| ms > TARGET_MS));
        let equal = self.names(|query| query.value() == "equal").len();
        let wrong = self.names(|query| query.wrong);
        writeln!(
            f,
            "* Vervet finished {finished} of {} queries{}",
            self.queries.len(),
            list(&over, "over the limit")
        )?;
        writeln!(f, "* {} of them took more than {} s{}", slow.len(), TARGET_MS / 1e3, list(&slow, "these"))?;
        writeln!(f, "* {equal} values are equal{}", list(&wrong, "WRONG"))?;
        let times: Vec<f64> = self.queries.iter().filter_map(|query| self.ms(query, 0)).collect();
        if let Some(mean) = geometric_mean(&times) {
            writeln!(f, "* geometric mean of Vervet's CPU times: {} ms", figure(mean))?;
        }
        for peer in self.peers() {
            let ratios: Vec<f64> = self.queries.iter().filter_map(|query| self.ratio(query, peer)).collect();
            let least = ratios.iter().copied().reduce(f64::min);
            let (Some(mean), Some(least)) = (geometric_mean(&ratios), least) else { continue };
            let slower = self.names(|query| self.ratio(query, peer).is_some_and(|ratio| ratio < 1.0));
            let peer_over = self.names(|query| query.sides[peer].over_limit.is_some()).len();
            writeln!(
                f,
                "* {}: geometric mean of {} ratios {}, least {}; {peer_over} over the limit{}",
                self.engines[peer],
                ratios.len(),
                figure(mean),
                figure(least),
                list(&slower, "Vervet is slower in")
            )?;
        }
        Ok(())
    }
}

/// `; WHAT: a, b`, or nothing for no names.
fn list(names: &[&str], what: &str) -> String {
    if names.is_empty() { String::new() } else { format!("; {what}: {}", names.join(", ")) }
}

impl fmt::Display for OutsideReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "## {}\n", self.title)?;
        let build = if self.optimized { "release" } else { "debug" };
        writeln!(f, "`{}`, {}, {}, {build} build\n", self.command, self.date, self.machine)?;
        for load in &self.loads {
            let (statements, seconds) = (count(load.statements), figure(load.cpu_seconds));
            writeln!(f, "* {}: {statements} statements loaded, {seconds} s of CPU", load.engine)?;
        }
        writeln!(f, "\n{}", self.table())?;
        writeln!(
            f,
            "Times are medians of warm runs on one thread in ms of CPU (of the wall clock where a column does not \
             say CPU; of the whole process, HTTP included, for endpoints). Each run parses and plans the text and \
             writes the whole result as TSV into a sink. A query of more than a second ran once. `ratio`: the time \
             of the peer divided by that of Vervet.\n"
        )?;
        self.write_summary(f)?;
        for query in &self.queries {
            for remark in &query.remarks {
                let mark = if query.wrong { "WRONG: " } else { "" };
                writeln!(f, "* {mark}{}: {remark}", query.query)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_name_what_falls_short() {
        let timing = |ms| Timing { repeats: 1, median_ms: ms, p95_ms: ms, cpu_median_ms: ms };
        let side = |ms| Side { first: Some(timing(ms)), timing: Some(timing(ms)), over_limit: None };
        let engines = vec!["vervet".to_owned(), "peer".to_owned()];
        let mut report =
            OutsideReport::new("title".to_owned(), engines, vec![false; 2], Duration::from_secs(10));
        for (name, sides) in [
            ("fast", [side(1.0), side(8.0)]),
            ("slow", [side(4_000.0), side(2_000.0)]),
            ("cut", [Side { over_limit: Some(1e4), ..Side::default() }, side(1.0)]),
        ] {
            report.queries.push(OutsideFigures {
                sides: sides.to_vec(),
                equal_peers: 1,
                ..OutsideFigures::new(name, 2)
            });
        }
        let text = report.to_string();
        for part in [
            "finished 2 of 3 queries; over the limit: cut",
            "1 of them took more than 2 s; these: slow",
            "geometric mean of 2 ratios 2.00, least 0.500; 0 over the limit; Vervet is slower in: slow",
            "over 10 s",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(report.is_right());
        report.queries[0].wrong = true;
        assert!(!report.is_right() && report.to_string().contains("WRONG: fast"));
    }
}

//! What a comparison found: as tables for people and as JSON for keeping.

use crate::compare::OurTimings;
use crate::measure::{Timing, geometric_mean};
use crate::table::{Table, count, figure, figure_or_dash};
use serde::Serialize;
use std::fmt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use vervet_model::{Error, Result};

/// One comparison on one set of data.
#[derive(Serialize, Debug)]
pub struct Report {
    /// What was measured, as a heading.
    pub title: String,
    /// The arguments it was called with.
    pub command: String,
    /// The day, as `2026-11-20` (UTC).
    pub date: String,
    /// Processor and number of cores.
    pub machine: String,
    /// Whether the program is a release build.
    pub optimized: bool,
    /// Name of our engine, if it took part.
    pub ours: Option<String>,
    /// Name of the peer, if there is one.
    pub peer: Option<String>,
    /// What loading took.
    pub loads: Vec<LoadFigures>,
    /// What queries took.
    pub queries: Vec<QueryFigures>,
}

/// What one engine needed to load one file.
#[derive(Clone, Serialize, Debug)]
pub struct LoadFigures {
    /// The engine.
    pub engine: String,
    /// Number of statements there afterwards.
    pub statements: u64,
    /// By the wall clock.
    pub seconds: f64,
    /// CPU time of all threads.
    pub cpu_seconds: f64,
    /// Growth of the resident set, in bytes; `None` where it was not measured.
    pub resident_bytes: Option<u64>,
}

impl LoadFigures {
    fn rate(&self) -> f64 {
        self.statements as f64 / self.seconds
    }

    fn bytes_a_statement(&self) -> Option<f64> {
        self.resident_bytes.map(|bytes| bytes as f64 / self.statements.max(1) as f64)
    }
}

/// What one query took in each engine.
#[derive(Serialize, Debug, Default)]
pub struct QueryFigures {
    /// Its name.
    pub query: String,
    /// Number of rows, or the count that the query asks for.
    pub rows: Option<u64>,
    /// Our engine, fully serialised.
    pub ours: Option<Timing>,
    /// Our engine without serialisation.
    pub ours_rows_only: Option<Timing>,
    /// Our engine without serialisation, parsed and planned beforehand.
    pub ours_prepared: Option<Timing>,
    /// Our engine without serialisation, from a text that is in the plan cache; only of short queries.
    pub ours_cached: Option<Timing>,
    /// Our engine was not asked in SPARQL but through its typed interface.
    pub ours_by_typed_interface: bool,
    /// The peer, fully serialised.
    pub peer: Option<Timing>,
    /// The peer was given up after this time.
    pub peer_cut_ms: Option<f64>,
    /// The loop written by hand.
    pub by_hand: Option<Timing>,
    /// What does not fit: values that differ, an engine that gave up.
    pub remarks: Vec<String>,
    /// Whether two of our engine, the peer, the loop and the expected values differ.
    pub wrong: bool,
}

impl QueryFigures {
    /// How many times faster our engine is than the peer, both serialised.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        Some(self.peer?.median_ms / self.ours?.median_ms)
    }

    /// The same in CPU time, which is the steadier one where other work is going on.
    #[must_use]
    pub fn cpu_ratio(&self) -> Option<f64> {
        Some(self.peer?.cpu_median_ms / self.ours?.cpu_median_ms)
    }

    /// How many times slower our engine is than the loop, without serialisation.
    #[must_use]
    pub fn times_the_loop(&self) -> Option<f64> {
        Some(self.ours_rows_only?.median_ms / self.by_hand?.median_ms)
    }

    /// At least how many times faster our engine is, where the peer was given up.
    #[must_use]
    pub fn ratio_at_least(&self) -> Option<f64> {
        Some(self.peer_cut_ms? / self.ours?.median_ms)
    }

    /// Takes over what our engine took.
    pub(crate) fn take_ours(&mut self, engine: &str, measured: Result<OurTimings>) {
        match measured {
            Ok(timings) => {
                self.ours = timings.serialised;
                self.ours_rows_only = timings.rows_only;
                self.ours_cached = timings.cached;
                self.ours_prepared = timings.prepared;
                self.ours_by_typed_interface = timings.by_reach;
            }
            Err(error) => self.failed(engine, &error),
        }
    }

    /// Notes that an engine gave no answer.
    pub(crate) fn failed(&mut self, engine: &str, error: &Error) {
        self.remarks.push(format!("{engine}: {error}"));
    }

    /// Notes that the values are wrong.
    pub fn wrong(&mut self, remark: String) {
        self.wrong = true;
        self.remarks.push(remark);
    }
}

impl Report {
    /// An empty report of now and here.
    #[must_use]
    pub fn new(title: String, ours: Option<String>, peer: Option<String>) -> Self {
        // The program is named without its folder: where it was built is nobody's business.
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        Self {
            title,
            command: format!("vervet-bench {}", arguments.join(" ")),
            date: today(),
            machine: machine(),
            optimized: !cfg!(debug_assertions),
            ours,
            peer,
            loads: Vec::new(),
            queries: Vec::new(),
        }
    }

    /// Whether every value was right.
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
        std::fs::write(file, text + "\n")
            .map_err(|error| Error::io(format_args!("write {}", file.display()), &error))
    }

    fn load_table(&self) -> Table {
        let mut table =
            Table::new(&["load", "statements", "s", "CPU s", "1,000 statements/s", "bytes/statement"]);
        for load in &self.loads {
            table.row(vec![
                load.engine.clone(),
                count(load.statements),
                figure(load.seconds),
                figure(load.cpu_seconds),
                figure(load.rate() / 1e3),
                figure_or_dash(load.bytes_a_statement()),
            ]);
        }
        table
    }

    fn query_table(&self) -> Table {
        let (ours, peer) = (self.ours.as_deref().unwrap_or("-"), self.peer.as_deref().unwrap_or("-"));
        let mut table = Table::new(&[
            "query",
            "rows",
            &format!("{ours} ms"),
            "p95",
            "CPU",
            "unserialised",
            "prepared",
            "by hand",
            &format!("{peer} ms"),
            "p95",
            "CPU",
            "ratio",
            "CPU ratio",
            "of hand",
        ]);
        let median = |timing: Option<Timing>| figure_or_dash(timing.map(|timing| timing.median_ms));
        let cpu = |timing: Option<Timing>| figure_or_dash(timing.map(|timing| timing.cpu_median_ms));
        let p95 = |timing: Option<Timing>| figure_or_dash(timing.map(|timing| timing.p95_ms));
        for query in &self.queries {
            table.row(vec![
                query.query.clone(),
                query.rows.map_or_else(|| "-".to_owned(), count),
                median(query.ours),
                p95(query.ours),
                cpu(query.ours),
                median(query.ours_rows_only),
                median(query.ours_prepared),
                median(query.by_hand),
                match query.peer_cut_ms {
                    Some(cut) => format!("> {}", figure(cut)),
                    None => median(query.peer),
                },
                p95(query.peer),
                cpu(query.peer),
                match query.ratio_at_least() {
                    Some(ratio) => format!("> {}", figure(ratio)),
                    None => figure_or_dash(query.ratio()),
                },
                figure_or_dash(query.cpu_ratio()),
                figure_or_dash(query.times_the_loop()),
            ]);
        }
        table
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "## {}\n", self.title)?;
        let build = if self.optimized { "release" } else { "debug" };
        writeln!(f, "`{}`, {}, {}, {build} build\n", self.command, self.date, self.machine)?;
        writeln!(f, "{}", self.load_table())?;
        if self.queries.is_empty() {
            return Ok(());
        }
        writeln!(f, "{}", self.query_table())?;
        let ratios: Vec<f64> = self.queries.iter().filter_map(QueryFigures::ratio).collect();
        if let Some(mean) = geometric_mean(&ratios) {
            writeln!(f, "Geometric mean of {} ratios: {}", ratios.len(), figure(mean))?;
        }
        for query in &self.queries {
            for remark in &query.remarks {
                let mark = if query.wrong { "WRONG: " } else { "" };
                writeln!(f, "{mark}{}: {remark}", query.query)?;
            }
        }
        for query in self.queries.iter().filter(|query| query.ours_by_typed_interface) {
            writeln!(f, "{}: asked in SPARQL of the peer, through the typed interface of ours", query.query)?;
        }
        let wrong = self.queries.iter().filter(|query| query.wrong).count();
        writeln!(f, "{} of {} queries with values that agree", self.queries.len() - wrong, self.queries.len())
    }
}

fn machine() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{}, {cores} cores", model.map_or("unknown processor", |(_, model)| model.trim()))
}

fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let (year, month, day) = civil(seconds / 86_400);
    format!("{year}-{month:02}-{day:02}")
}

/// The date of a day since 1970-01-01. Years are counted from March, so that a leap day comes last
/// (Hinnant, "chrono-Compatible Low-Level Date Algorithms", 2013).
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(20_777), (2026, 11, 20));
    }

    #[test]
    fn ratios_need_both_sides() {
        let timing =
            |median_ms| Timing { repeats: 1, median_ms, p95_ms: median_ms, cpu_median_ms: median_ms };
        let mut query = QueryFigures { peer: Some(timing(8.0)), ..QueryFigures::default() };
        assert_eq!(query.ratio(), None);
        query.ours = Some(timing(2.0));
        assert_eq!(query.ratio(), Some(4.0));
        let mut report = Report::new("title".into(), None, Some("peer".into()));
        report.queries.push(query);
        assert!(report.to_string().contains("Geometric mean of 1 ratios: 4.00"));
        assert!(report.is_right());
        report.queries[0].wrong("differs".into());
        assert!(!report.is_right() && report.to_string().contains("WRONG"));
    }
}

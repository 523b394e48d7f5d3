//! Reports of comparisons: readable tables, and JSON for archiving.

use crate::measure::{Timing, geometric_mean};
use crate::table::{Table, count, figure, figure_or_dash};
use crate::target::{self, Target};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use vervet_model::{Error, Result, civil_from_days};

/// One comparison on one set of data.
#[derive(Serialize, Debug)]
pub struct Report {
    /// The heading.
    pub title: String,
    /// The command-line arguments.
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
    /// The measurements of loads.
    pub loads: Vec<LoadFigures>,
    /// The measurements of loads in subprocesses.
    pub process_loads: Vec<ProcessLoad>,
    /// The sizes of our database on disk.
    pub sizes: Vec<SizeFigures>,
    /// The cost of a start.
    pub cold: Option<ColdFigures>,
    /// The measurements of queries.
    pub queries: Vec<QueryFigures>,
    /// Throughput of the light mix.
    pub light: Vec<LightFigures>,
    /// The targets, with the figures reached.
    pub targets: Vec<Target>,
}

/// One load in a subprocess.
#[derive(Serialize, Debug)]
pub struct ProcessLoad {
    /// Its measurements.
    pub figures: LoadFigures,
    /// The requested number of threads; `None`: its own choice.
    pub threads: Option<usize>,
    /// Into a directory, synced, rather than into memory.
    pub durable: bool,
}

impl ProcessLoad {
    /// Whether the load is of that engine.
    #[must_use]
    pub fn is_of(&self, engine: Option<&str>) -> bool {
        engine == Some(self.figures.engine.as_str())
    }
}

/// The size of a component of a database on disk.
#[derive(Serialize, Debug)]
pub struct SizeFigures {
    /// The component.
    pub part: String,
    /// Its size.
    pub bytes: u64,
}

/// The cost of opening a stored database and answering a query in a fresh process.
#[derive(Serialize, Debug)]
pub struct ColdFigures {
    /// CPU time of the process; median.
    pub cpu_ms: f64,
    /// From its start to its end, measured by its parent; median.
    pub wall_ms: f64,
    /// Rows of the answer.
    pub rows: u64,
}

/// The speed of one engine in the light mix.
#[derive(Serialize, Debug)]
pub struct LightFigures {
    /// The engine.
    pub engine: String,
    /// Whether it is ours.
    pub ours: bool,
    /// The mode: from text or prepared.
    pub way: String,
    /// The number of queries run.
    pub queries: u64,
    /// Throughput by the wall clock.
    pub queries_a_second: f64,
    /// Throughput by the CPU clock of the thread.
    pub queries_a_cpu_second: f64,
    /// Mean number of rows.
    pub rows_a_query: f64,
}

/// The cost of loading one file into one engine.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct LoadFigures {
    /// The engine.
    pub engine: String,
    /// The number of statements afterwards.
    pub statements: u64,
    /// By the wall clock.
    pub seconds: f64,
    /// CPU time of all threads.
    pub cpu_seconds: f64,
    /// Growth of the resident set, in bytes; `None` if not measured.
    pub resident_bytes: Option<u64>,
}

impl LoadFigures {
    /// Statements per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.statements as f64 / self.seconds
    }

    /// Memory per statement.
    #[must_use]
    pub fn bytes_a_statement(&self) -> Option<f64> {
        self.resident_bytes.map(|bytes| bytes as f64 / self.statements.max(1) as f64)
    }
}

/// The times of our engine, in all its modes.
#[derive(Default)]
pub(crate) struct OurTimings {
    pub serialised: Option<Timing>,
    pub rows_only: Option<Timing>,
    pub cached: Option<Timing>,
    pub cached_serialised: Option<Timing>,
    pub prepared: Option<Timing>,
    pub by_reach: bool,
}

/// The measurements of one query in each engine.
#[derive(Serialize, Debug, Default)]
pub struct QueryFigures {
    /// Its name.
    pub query: String,
    /// The number of rows, or the result of a counting query.
    pub rows: Option<u64>,
    /// Our engine, with serialization.
    pub ours: Option<Timing>,
    /// Our engine without serialization.
    pub ours_rows_only: Option<Timing>,
    /// Our engine without serialization, parsed and planned beforehand.
    pub ours_prepared: Option<Timing>,
    /// Our engine without serialization, from a text in the plan cache; only for short queries.
    pub ours_cached: Option<Timing>,
    /// [`Self::ours_cached`] with serialization.
    pub ours_cached_serialised: Option<Timing>,
    /// Our engine answered through its typed interface rather than SPARQL.
    pub ours_by_typed_interface: bool,
    /// The peer, with serialization.
    pub peer: Option<Timing>,
    /// The peer was cancelled after this time.
    pub peer_cut_ms: Option<f64>,
    /// The hand-written loop.
    pub by_hand: Option<Timing>,
    /// Discrepancies: differing values, an engine that failed.
    pub remarks: Vec<String>,
    /// Whether two of our engine, the peer, the loop and the expected values differ.
    pub wrong: bool,
}

impl QueryFigures {
    /// The speed-up of our engine over the peer, both with serialization.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        Some(self.peer?.median_ms / self.ours?.median_ms)
    }

    /// [`Self::ratio`] in CPU time, which is more stable under other load.
    #[must_use]
    pub fn cpu_ratio(&self) -> Option<f64> {
        Some(self.peer?.cpu_median_ms / self.ours?.cpu_median_ms)
    }

    /// The slow-down of our engine relative to the loop, without serialization.
    #[must_use]
    pub fn times_the_loop(&self) -> Option<f64> {
        Some(self.ours_rows_only?.median_ms / self.by_hand?.median_ms)
    }

    /// A lower bound of the speed-up, if the peer was cancelled.
    #[must_use]
    pub fn ratio_at_least(&self) -> Option<f64> {
        Some(self.peer_cut_ms? / self.ours?.median_ms)
    }

    /// The speed-up of our engine with its plan cache over the peer, both with serialization.
    #[must_use]
    pub fn ratio_with_plan_cache(&self) -> Option<f64> {
        Some(self.peer?.median_ms / self.ours_cached_serialised?.median_ms)
    }

    /// Stores the measurements of our engine.
    pub(crate) fn take_ours(&mut self, engine: &str, measured: Result<OurTimings>) {
        match measured {
            Ok(timings) => {
                self.ours = timings.serialised;
                self.ours_rows_only = timings.rows_only;
                self.ours_cached = timings.cached;
                self.ours_cached_serialised = timings.cached_serialised;
                self.ours_prepared = timings.prepared;
                self.ours_by_typed_interface = timings.by_reach;
            }
            Err(error) => self.failed(engine, &error),
        }
    }

    /// Records that an engine gave no answer.
    pub(crate) fn failed(&mut self, engine: &str, error: &Error) {
        self.remarks.push(format!("{engine}: {error}"));
    }

    /// Records that the values are wrong.
    pub fn wrong(&mut self, remark: String) {
        self.wrong = true;
        self.remarks.push(remark);
    }
}

impl Report {
    /// An empty report with the current date and machine.
    #[must_use]
    pub fn new(title: String, ours: Option<String>, peer: Option<String>) -> Self {
        // Without the folder of the program, which is private.
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
            process_loads: Vec::new(),
            sizes: Vec::new(),
            cold: None,
            queries: Vec::new(),
            light: Vec::new(),
            targets: Vec::new(),
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

    /// Writes reports as Markdown.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_markdown(reports: &[Self], file: &Path) -> Result<()> {
        let sections: Vec<String> = reports.iter().map(Self::to_string).collect();
        std::fs::write(file, format!("# Benchmark\n\n{}", sections.join("\n")))
            .map_err(|error| Error::io(format_args!("write {}", file.display()), &error))
    }

    fn process_load_table(&self) -> Table {
        let peer = self.process_loads.iter().find(|load| load.is_of(self.peer.as_deref()));
        let mut table = Table::new(&[
            "load in its own process",
            "into",
            "threads",
            "s",
            "CPU s",
            "1,000 statements/s",
            "bytes/statement",
            "times faster than the peer",
        ]);
        for load in &self.process_loads {
            let ours = !load.is_of(self.peer.as_deref());
            table.row(vec![
                load.figures.engine.clone(),
                if load.durable { "directory, synced" } else { "memory" }.to_owned(),
                load.threads.map_or_else(|| "its choice".to_owned(), |threads| threads.to_string()),
                figure(load.figures.seconds),
                figure(load.figures.cpu_seconds),
                figure(load.figures.rate() / 1e3),
                figure_or_dash(load.figures.bytes_a_statement()),
                figure_or_dash(peer.filter(|_| ours).map(|peer| peer.figures.seconds / load.figures.seconds)),
            ]);
        }
        table
    }

    fn size_table(&self) -> Table {
        let statements = self.loads.first().map_or(1, |load| load.statements.max(1));
        let mut table = Table::new(&["on disk", "bytes", "bytes/statement"]);
        for size in &self.sizes {
            let by_statement = size.bytes as f64 / statements as f64;
            table.row(vec![size.part.clone(), count(size.bytes), figure(by_statement)]);
        }
        table
    }

    fn plan_table(&self) -> Option<Table> {
        let mut table = Table::new(&[
            "plan, µs",
            "from text, no cache",
            "from text, plan cache",
            "prepared",
            "TSV, no cache",
            "TSV, plan cache",
            "ratio with plan cache",
        ]);
        let micros = |timing: Option<Timing>| figure_or_dash(timing.map(|timing| timing.median_ms * 1e3));
        let mut any = false;
        for query in self.queries.iter().filter(|query| query.ours_cached.is_some()) {
            any = true;
            table.row(vec![
                query.query.clone(),
                micros(query.ours_rows_only),
                micros(query.ours_cached),
                micros(query.ours_prepared),
                micros(query.ours),
                micros(query.ours_cached_serialised),
                figure_or_dash(query.ratio_with_plan_cache()),
            ]);
        }
        any.then_some(table)
    }

    fn light_table(&self) -> Table {
        let peer = self.light.iter().filter(|light| !light.ours).map(|light| light.queries_a_second);
        let peer = peer.reduce(f64::max);
        let mut table = Table::new(&[
            "light mix, one thread",
            "way",
            "queries/s",
            "queries/CPU s",
            "rows/query",
            "times the best of the peer",
        ]);
        for light in &self.light {
            table.row(vec![
                light.engine.clone(),
                light.way.clone(),
                figure(light.queries_a_second),
                figure(light.queries_a_cpu_second),
                figure(light.rows_a_query),
                figure_or_dash(peer.filter(|_| light.ours).map(|peer| light.queries_a_second / peer)),
            ]);
        }
        table
    }

    /// Writes the load tables.
    fn write_loads(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.load_table())?;
        if !self.process_loads.is_empty() {
            writeln!(f, "{}", self.process_load_table())?;
            writeln!(
                f,
                "Each engine runs alone in a new process. bytes/statement is the growth of the resident set, in \
                 which mapped files count as far as they were read. The peer has no durable storage in this build, \
                 so a load into a directory is compared with its bulk loader in memory.\n"
            )?;
        }
        if !self.sizes.is_empty() {
            writeln!(f, "{}", self.size_table())?;
        }
        if let Some(cold) = &self.cold {
            writeln!(
                f,
                "Opening the stored database and answering q4 ({} rows) in a fresh process: {} ms of CPU, {} ms \
                 from start to end (files in the page cache).\n",
                cold.rows,
                figure(cold.cpu_ms),
                figure(cold.wall_ms)
            )?;
        }
        Ok(())
    }

    /// Writes the query table.
    fn write_queries(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.queries.is_empty() {
            return Ok(());
        }
        writeln!(f, "{}", self.query_table())?;
        writeln!(
            f,
            "Times are medians in ms. Vervet and the peer parse and plan the text each time and serialise the \
             result as TSV into a sink. `unserialised`: Vervet without serialisation; `prepared`: also planned \
             beforehand; `of hand`: `unserialised` divided by `by hand`. No engine caches results.\n"
        )?;
        let ratios: Vec<f64> = self.queries.iter().filter_map(QueryFigures::ratio).collect();
        if let Some(mean) = geometric_mean(&ratios) {
            writeln!(f, "Geometric mean of {} ratios: {}\n", ratios.len(), figure(mean))?;
        }
        if let Some(table) = self.plan_table() {
            writeln!(f, "{table}")?;
        }
        for query in &self.queries {
            for remark in &query.remarks {
                let mark = if query.wrong { "WRONG: " } else { "" };
                writeln!(f, "* {mark}{}: {remark}", query.query)?;
            }
            if query.peer_cut_ms.is_some() {
                writeln!(
                    f,
                    "* {}: the peer was stopped at the time limit, or at half of the free memory; its time and the \
                     ratio are lower bounds",
                    query.query
                )?;
            }
            if query.ours_by_typed_interface {
                let name = &query.query;
                writeln!(f, "* {name}: SPARQL in the peer, the typed interface in Vervet")?;
            }
        }
        let wrong = self.queries.iter().filter(|query| query.wrong).count();
        writeln!(f, "* {} of {} queries have equal values", self.queries.len() - wrong, self.queries.len())
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
        self.write_loads(f)?;
        self.write_queries(f)?;
        if !self.light.is_empty() {
            writeln!(f, "\n{}", self.light_table())?;
        }
        if !self.targets.is_empty() {
            writeln!(f, "\n{}", target::table(&self.targets))?;
        }
        Ok(())
    }
}

pub(crate) fn machine() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let model = model.map_or("unknown processor", |(_, model)| model.trim());
    // Other load is the first suspect when figures differ.
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    match load.split(' ').next() {
        Some(load) if !load.is_empty() => format!("{model}, {cores} cores, load average {load} at the end"),
        _ => format!("{model}, {cores} cores"),
    }
}

pub(crate) fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let (year, month, day) = civil_from_days(i64::try_from(seconds / 86_400).unwrap_or(i64::MAX));
    format!("{year}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

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

//! The queries of LUBM on one file, in every engine and as hand-written loops.

use crate::compare::{BenchmarkQuery, Contest, has_limit};
use crate::data::{self, PlainFile};
use crate::engine::ResultTable;
use crate::loops::LubmLoops;
use crate::measure::{measure, thread_cpu};
use crate::processes::{self, Found, Plan};
use crate::report::{LoadFigures, Report};
use crate::{light, targets};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use vervet_model::{Error, ErrorKind, Result};

/// Options of a run.
#[derive(Clone, Default, Debug)]
pub struct LubmOptions {
    /// N-Triples, plain or `.zst`.
    pub data: PathBuf,
    /// The folder of the queries; `None`: `queries` beside the data.
    pub queries: Option<PathBuf>,
    /// Only queries with these names; empty: all.
    pub only: Vec<String>,
    /// Also run the queries in the folder `features`.
    pub features: bool,
    /// Skip the hand-written loops.
    pub without_loops: bool,
    /// Also measure loads, and openings of a stored database, in subprocesses.
    pub processes: Option<Processes>,
    /// Also run the light mix, for this time each.
    pub light: Option<Duration>,
}

/// Options of measurements in subprocesses.
#[derive(Clone, Debug)]
pub struct Processes {
    /// The path of this program.
    pub program: PathBuf,
    /// The number of repetitions of each load; the fastest counts.
    pub repeats: usize,
}

/// Loads the data into the engines of `contest` and runs the queries.
///
/// # Errors
/// A file is missing or damaged, or an engine cannot load the data. An engine that fails in a query gets a
/// remark in the report.
pub fn run(options: &LubmOptions, contest: &mut Contest) -> Result<Report> {
    let folder = options.data.parent().unwrap_or_else(|| Path::new("."));
    let queries = queries(options, &folder.join("queries"))?;
    let expected = Expected::beside(&options.data)?;
    let file = PlainFile::open(&options.data)?;

    let (ours, peer) = contest.names();
    let mut report = Report::new(format!("LUBM, {}", file_name(&options.data)), ours, peer);
    if let Some(found) = in_processes(options, &queries, &expected, file.path(), report.peer.is_some())? {
        report.process_loads = found.loads;
        report.sizes = found.sizes;
        report.cold = found.cold;
    }
    report.loads = contest.load(file.path())?;
    if !report.process_loads.is_empty() {
        // The subprocess figures are the fair ones: here, an engine reuses memory freed by another.
        report.loads.iter_mut().for_each(|load| load.resident_bytes = None);
    }
    let text = if options.without_loops { String::new() } else { data::read(file.path())? };
    let (begin, cpu) = (Instant::now(), thread_cpu());
    let loops = LubmLoops::load(&text)?;
    if !options.without_loops {
        report.loads.push(LoadFigures {
            engine: "by hand (text in memory, one thread)".to_owned(),
            statements: loops.arrays().statements(),
            seconds: begin.elapsed().as_secs_f64(),
            cpu_seconds: thread_cpu().saturating_sub(cpu).as_secs_f64(),
            resident_bytes: None,
        });
    }
    compare_statements(&report.loads)?;

    for (name, text) in queries {
        let check = expected.check(&name, &text);
        let mut figures = contest.query(BenchmarkQuery { name: &name, text: &text, reach: None }, |table| {
            check.first_difference(table)
        });
        let mut rows = Vec::new();
        if !options.without_loops
            && let Some(count) = loops.run(&name, &mut rows)
        {
            if *figures.rows.get_or_insert(count) != count || check.rows.is_some_and(|rows| rows != count) {
                figures.wrong(format!("the loop finds {count} rows"));
            }
            let timing = measure(&contest.budget, || Ok(loops.run(&name, &mut rows)));
            figures.by_hand = Some(timing?);
        }
        report.queries.push(figures);
    }
    if let Some(time) = options.light {
        report.light = light::run(contest, time)?;
    }
    report.targets = targets::targets(&data_name(&options.data), &report);
    Ok(report)
}

/// Loads in subprocesses, and Q4 on the stored database if it is among the queries.
fn in_processes(
    options: &LubmOptions,
    queries: &[(String, String)],
    expected: &Expected,
    file: &Path,
    peer: bool,
) -> Result<Option<Found>> {
    let Some(Processes { program, repeats }) = &options.processes else { return Ok(None) };
    let query = queries.iter().find(|(name, _)| name == "q4");
    let query = query.map(|(name, text)| (text.as_str(), expected.check(name, text).rows));
    processes::run(&Plan { program, file, peer, repeats: *repeats, query }).map(Some)
}

fn queries(options: &LubmOptions, beside: &Path) -> Result<Vec<(String, String)>> {
    let folder = options.queries.as_deref().unwrap_or(beside);
    let mut queries: Vec<_> = data::queries(folder)?.into_iter().collect();
    // q1 … q12 in the order of their numbers, then the others.
    queries.sort_by_key(|(name, _)| {
        let number = name.strip_prefix('q').and_then(|number| number.parse::<u32>().ok());
        (number.unwrap_or(u32::MAX), name.clone())
    });
    let features = folder.join("features");
    if options.features && features.is_dir() {
        let found = data::queries(&features)?.into_iter();
        queries.extend(found.map(|(name, text)| (format!("features/{name}"), text)));
    }
    queries.retain(|(name, _)| options.only.is_empty() || options.only.contains(name));
    if queries.is_empty() {
        return Err(Error::new(ErrorKind::Input, "there is no query of that name")
            .with_hint(format!("the queries are in {}", folder.display())));
    }
    Ok(queries)
}

/// Checks that all engines have loaded the same number of statements.
fn compare_statements(loads: &[LoadFigures]) -> Result<()> {
    for pair in loads.windows(2) {
        if pair[0].statements != pair[1].statements {
            let [one, other] =
                [&pair[0], &pair[1]].map(|load| format!("{} {}", load.statements, load.engine));
            return Err(Error::internal(format!("numbers of statements differ: {one}, {other}")));
        }
    }
    Ok(())
}

/// `expected/NAME.json` beside the data.
struct Expected(BTreeMap<String, ExpectedResult>);

#[derive(Clone, Deserialize)]
struct ExpectedResult {
    rows: u64,
    sha256: String,
    header: String,
}

/// The expectation of a result.
struct Check {
    rows: Option<u64>,
    /// LIMIT leaves the choice of rows to the engine.
    rows_only: bool,
    expected: Option<ExpectedResult>,
}

impl Expected {
    fn beside(data: &Path) -> Result<Self> {
        let name = data_name(data);
        let folder = data.parent().unwrap_or_else(|| Path::new("."));
        let file = folder.join("expected").join(format!("{name}.json"));
        if !file.is_file() {
            return Ok(Self(BTreeMap::new()));
        }
        let parsed = serde_json::from_str(&data::read(&file)?);
        parsed.map(Self).map_err(|error| {
            Error::new(ErrorKind::Input, format!("could not read {}: {error}", file.display()))
        })
    }

    fn check(&self, query: &str, text: &str) -> Check {
        let expected = self.0.get(&format!("{query}.rq")).cloned();
        let rows_only = has_limit(text);
        Check { rows: expected.as_ref().map(|expected| expected.rows), rows_only, expected }
    }
}

impl Check {
    fn first_difference(&self, table: &ResultTable) -> Option<String> {
        let expected = self.expected.as_ref()?;
        if table.rows.len() as u64 != expected.rows {
            return Some(format!("{} rows, expected {}", table.rows.len(), expected.rows));
        }
        if table.header != expected.header {
            return Some(format!("header {:?}, expected {:?}", table.header, expected.header));
        }
        if !self.rows_only && table.sha256() != expected.sha256 {
            return Some(format!("SHA-256 {}, expected {}", table.sha256(), expected.sha256));
        }
        None
    }
}

/// `lubm-10` of `lubm-10.nt.zst`.
fn data_name(path: &Path) -> String {
    file_name(path).split(".nt").next().unwrap_or_default().to_owned()
}

fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

//! Measures the queries of a data set in our engine and in peers.
//!
//! # Shape
//! Each engine first answers a query once, under the time limit, into a digest of its rows; the digests must
//! agree with each other and with the reference of the data set. Then come warm runs from text, planned anew,
//! serialized as TSV into a sink, first ours and then each peer, as long as the budget lasts. An answer that
//! took longer than [`LONG`] is not repeated.

use super::data_set::{Compared, DataSet, OutsideQuery};
use super::report::{OutsideFigures, OutsideReport, Side};
use crate::compare::load;
use crate::digest::{RowsDigest, rows_differ};
use crate::engine::{Engine, Sink};
use crate::measure::{Budget, CpuClock, measure_with, once, once_with};
use std::time::{Duration, Instant};
use vervet_model::{Error, ErrorKind, Result};

/// A slower answer is its own measurement.
const LONG: Duration = Duration::from_secs(1);

/// The relative difference of sums of floating-point numbers that counts as equal: engines add in any order,
/// and `xsd:float` has 24 bits.
const TOLERANCE: f64 = 3e-6;

/// A result of at most this many rows is kept to show how it differs.
const KEPT_ROWS_MAX: u64 = 5_000_000;

/// Options of a run.
#[derive(Clone, Debug)]
pub struct ContestOptions {
    /// Only the data set of this name.
    pub data: Option<String>,
    /// Only queries with these names; empty: all.
    pub queries: Vec<String>,
    /// The time limit of an answer.
    pub timeout: Duration,
    /// Time for the warm runs of one query in one engine; zero: values only.
    pub time: Duration,
}

impl Default for ContestOptions {
    fn default() -> Self {
        Self {
            data: None,
            queries: Vec::new(),
            timeout: Duration::from_secs(10),
            time: Duration::from_millis(200),
        }
    }
}

/// Loads `data` into our engine (the first) and the peers, and runs its queries.
///
/// # Errors
/// An engine cannot load the data.
pub fn run(
    data: &DataSet,
    engines: &mut [Box<dyn Engine>],
    options: &ContestOptions,
) -> Result<OutsideReport> {
    let names = engines.iter().map(|engine| engine.name().to_owned()).collect();
    let timed_by_wall = engines.iter().map(|engine| engine.cpu_clock().is_none()).collect();
    let title = format!("{}, {}", data.benchmark.name(), data.name);
    let mut report = OutsideReport::new(title, names, timed_by_wall, options.timeout);
    for engine in engines.iter_mut() {
        report.loads.push(load(engine.as_mut(), data.file.path())?);
    }
    let statements = report.loads.first().map(|load| load.statements);
    if let Some(other) = report.loads.iter().find(|load| Some(load.statements) != statements) {
        let what = format!("{} has {} statements", other.engine, other.statements);
        return Err(
            Error::new(ErrorKind::Input, what).with_hint("load the same data: `vervet-bench generate`")
        );
    }
    for (index, query) in data.queries.iter().enumerate() {
        if options.queries.is_empty() || options.queries.contains(&query.name) {
            report.queries.push(run_query(data, index, query, engines, options));
        }
    }
    Ok(report)
}

fn run_query(
    data: &DataSet,
    index: usize,
    query: &OutsideQuery,
    engines: &mut [Box<dyn Engine>],
    options: &ContestOptions,
) -> OutsideFigures {
    let mut figures = OutsideFigures::new(&query.name, engines.len());
    let mut digests = vec![None; engines.len()];
    for (at, engine) in engines.iter_mut().enumerate() {
        let (digest, side) = first_run(engine.as_mut(), query, options.timeout, &mut figures.remarks);
        (digests[at], figures.sides[at]) = (digest, side);
    }
    if figures.sides[0].over_limit.is_some() {
        figures.plan = engines[0].explain(&query.text);
    }
    let reference = data.reference.as_ref().map(|reference| once(|| reference.digest(index)));
    match reference {
        Some(Ok((digest, timing))) => {
            figures.reference = Some(timing);
            figures.rows = Some(digest.rows);
            check_reference(&mut figures, engines, &digests, digest);
        }
        Some(Err(error)) => figures.remarks.push(format!("reference: {error}")),
        None => {}
    }
    figures.rows = figures.rows.or_else(|| digests.iter().flatten().next().map(|digest| digest.rows));
    compare_engines(&mut figures, query, engines, &digests, options.timeout);
    if !options.time.is_zero() {
        time(&mut figures, query, engines, options);
    }
    figures
}

/// One answer into a digest.
fn first_run(
    engine: &mut dyn Engine,
    query: &OutsideQuery,
    timeout: Duration,
    remarks: &mut Vec<String>,
) -> (Option<RowsDigest>, Side) {
    engine.set_time_limit(Some(timeout));
    let mut sink = Sink::digesting();
    let begin = Instant::now();
    let clock = engine.cpu_clock().unwrap_or(CpuClock::Thread);
    let answer = once_with(clock, || engine.query_tsv(&query.text, &mut sink));
    let after = begin.elapsed();
    engine.set_time_limit(None);
    match answer {
        Ok((rows, timing)) => {
            let mut digest = sink.digest();
            if !engine.writes_terms() {
                digest.rows = rows;
            }
            (Some(digest), Side { first: Some(timing), timing: Some(timing), over_limit: None })
        }
        Err(error) if error.kind() == ErrorKind::Deadline => {
            (None, Side { over_limit: Some(after.as_secs_f64() * 1e3), ..Side::default() })
        }
        Err(error) => {
            let message = error.to_string();
            remarks.push(format!("{}: {}", engine.name(), message.lines().next().unwrap_or_default()));
            (None, Side::default())
        }
    }
}

/// Compares every answer with the reference.
fn check_reference(
    figures: &mut OutsideFigures,
    engines: &[Box<dyn Engine>],
    digests: &[Option<RowsDigest>],
    expected: RowsDigest,
) {
    for ((index, engine), digest) in engines.iter().enumerate().zip(digests) {
        let Some(digest) = digest else { continue };
        let is_equal = match engine.writes_terms() {
            true => *digest == expected,
            false => digest.rows == expected.rows,
        };
        figures.equal_reference |= is_equal && index == 0;
        if !is_equal {
            // A peer may be wrong; that is a remark, and not our failure.
            figures.wrong |= index == 0;
            let what = if digest.rows == expected.rows { "other values".to_owned() } else { String::new() };
            let (rows, right) = (digest.rows, expected.rows);
            figures.remarks.push(format!("{}: {rows} rows, {right} in the reference {what}", engine.name()));
        }
    }
}

/// Compares our answer with that of every peer.
fn compare_engines(
    figures: &mut OutsideFigures,
    query: &OutsideQuery,
    engines: &mut [Box<dyn Engine>],
    digests: &[Option<RowsDigest>],
    timeout: Duration,
) {
    let Some(ours) = digests.first().copied().flatten() else { return };
    for (index, digest) in digests.iter().enumerate().skip(1) {
        let Some(digest) = *digest else { continue };
        let is_equal = match query.compare {
            Compared::Rows if engines[index].writes_terms() => ours == digest,
            Compared::Rows | Compared::Number => ours.rows == digest.rows,
            Compared::Nothing => continue,
        };
        figures.compared += 1;
        let name = engines[index].name().to_owned();
        if is_equal {
            figures.equal_peers += 1;
            continue;
        }
        if ours.rows != digest.rows && !engines[index].writes_terms() {
            // Nor are its numbers of rows a judgement: it cuts long results.
            figures.remarks.push(format!("{name}: {} rows, Vervet {}", digest.rows, ours.rows));
            continue;
        }
        let what = if ours.rows != digest.rows {
            Some(format!("{} rows and {} rows", ours.rows, digest.rows))
        } else if ours.rows > KEPT_ROWS_MAX {
            Some("other values".to_owned())
        } else {
            let mut text = |at: usize| kept(engines[at].as_mut(), query, timeout);
            match (text(0), text(index)) {
                (Ok(one), Ok(other)) => rows_differ(&one, &other, TOLERANCE),
                (Err(error), _) | (_, Err(error)) => Some(error.to_string()),
            }
        };
        match what {
            None => figures.equal_peers += 1,
            Some(what) if figures.equal_reference => {
                figures.remarks.push(format!("{name} differs from Vervet and the reference: {what}"));
            }
            Some(what) => {
                figures.wrong = true;
                figures.remarks.push(format!("{name} differs: {what}"));
            }
        }
    }
}

fn kept(engine: &mut dyn Engine, query: &OutsideQuery, timeout: Duration) -> Result<String> {
    engine.set_time_limit(Some(timeout));
    let mut sink = Sink::keeping();
    let answer = engine.query_tsv(&query.text, &mut sink);
    engine.set_time_limit(None);
    answer.map(|_| sink.into_text())
}

/// Warm runs of every engine that has answered.
fn time(
    figures: &mut OutsideFigures,
    query: &OutsideQuery,
    engines: &[Box<dyn Engine>],
    options: &ContestOptions,
) {
    let budget = Budget { time: options.time, repeats_min: 3, repeats_max: 2_000 };
    for (index, engine) in engines.iter().enumerate() {
        let Some(first) = figures.sides[index].first else { continue };
        if first.median_ms > LONG.as_secs_f64() * 1e3 {
            continue;
        }
        let run = || engine.query_tsv(&query.text, &mut Sink::counting());
        match measure_with(engine.cpu_clock().unwrap_or(CpuClock::Thread), &budget, run) {
            Ok(timing) => figures.sides[index].timing = Some(timing),
            Err(error) => figures.remarks.push(format!("{}: {error}", engine.name())),
        }
    }
}

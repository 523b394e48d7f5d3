//! Compares one query or one load in every engine: equality of values, then time.

use crate::engine::{Engine, ResultTable, Sink};
use crate::measure::{Budget, Timing, measure, once, process_cpu, resident_bytes};
use crate::report::{LoadFigures, OurTimings, QueryFigures};
use std::path::Path;
use std::time::{Duration, Instant};
use vervet_model::{ErrorKind, Result};

/// Our engine and a peer; either may be missing.
#[derive(Default)]
pub struct Contest {
    /// Vervet.
    pub ours: Option<Box<dyn Engine>>,
    /// The engine it is compared with.
    pub peer: Option<Box<dyn Engine>>,
    /// The measurement budget.
    pub budget: Budget,
    /// A query that takes longer than this is cancelled.
    pub time_limit: Option<Duration>,
}

/// A query for every engine.
#[derive(Clone, Copy, Debug)]
pub struct BenchmarkQuery<'a> {
    /// Its name in the report.
    pub name: &'a str,
    /// SPARQL text.
    pub text: &'a str,
    /// For an engine without this part of SPARQL: the IRIs of a start and of a predicate, for
    /// [`Engine::reach`].
    pub reach: Option<(&'a str, &'a str)>,
}

impl Contest {
    /// Loads `file` into every engine, one after the other.
    ///
    /// # Errors
    /// The first error of an engine: without data there is nothing to compare.
    pub fn load(&mut self, file: &Path) -> Result<Vec<LoadFigures>> {
        [&mut self.ours, &mut self.peer]
            .into_iter()
            .flatten()
            .map(|engine| load(engine.as_mut(), file))
            .collect()
    }

    /// Names of our engine and of the peer.
    #[must_use]
    pub fn names(&self) -> (Option<String>, Option<String>) {
        let name = |engine: &Option<Box<dyn Engine>>| Some(engine.as_ref()?.name().to_owned());
        (name(&self.ours), name(&self.peer))
    }

    /// Runs a query in every engine, first for its values, then for its times.
    ///
    /// `check` gets each result and returns what is wrong with it; results must also agree with each other.
    /// An engine that fails gets a remark and is not timed. The time limit applies to the first run only, so
    /// that the timed runs have no overhead from it.
    pub fn query(
        &mut self,
        query: BenchmarkQuery<'_>,
        mut check: impl FnMut(&ResultTable) -> Option<String>,
    ) -> QueryFigures {
        let BenchmarkQuery { name, text, .. } = query;
        let mut figures = QueryFigures { query: name.to_owned(), ..QueryFigures::default() };
        let mut agreed: Option<ResultTable> = None;
        let mut compare = |table: ResultTable, engine: &str, figures: &mut QueryFigures| {
            if let Some(what) = check(&table) {
                figures.wrong(format!("{engine}: {what}"));
            }
            if let Some(what) = agreed.as_ref().and_then(|agreed| difference(agreed, &table, text)) {
                figures.wrong(format!("{engine} differs: {what}"));
            }
            figures.rows = figures.rows.or(Some(table.rows.len() as u64));
            agreed.get_or_insert(table);
        };
        if let Some(ours) = self.ours.as_deref_mut() {
            match first_run(ours, query, self.time_limit) {
                Ok(first) => {
                    compare(first.table, ours.name(), &mut figures);
                    let measured = time_ours(ours, query, first.interface, first.timing, &self.budget);
                    figures.take_ours(ours.name(), measured);
                }
                Err((error, _)) => figures.failed(ours.name(), &error),
            }
        }
        if let Some(peer) = self.peer.as_deref_mut() {
            match first_run(peer, query, self.time_limit) {
                Ok(first) => {
                    compare(first.table, peer.name(), &mut figures);
                    let timing = time(&self.budget, first.timing, || first.interface.run(peer, query));
                    match timing {
                        Ok(timing) => figures.peer = Some(timing),
                        Err(error) => figures.failed(peer.name(), &error),
                    }
                }
                Err((error, after)) if error.kind() == ErrorKind::Deadline => {
                    figures.peer_cut_ms = Some(after.as_secs_f64() * 1e3);
                }
                Err((error, _)) => figures.failed(peer.name(), &error),
            }
        }
        figures
    }
}

/// The interface through which an engine answered.
#[derive(Clone, Copy)]
enum QueryInterface {
    Sparql,
    /// By [`Engine::reach`].
    Reach,
}

impl QueryInterface {
    fn run(self, engine: &dyn Engine, query: BenchmarkQuery<'_>) -> Result<u64> {
        match (self, query.reach) {
            (QueryInterface::Reach, Some((start, predicate))) => {
                engine.reach(start, predicate).unwrap_or(Ok(0)) // It has answered before.
            }
            _ => serialised(engine, query.text),
        }
    }
}

struct FirstRun {
    table: ResultTable,
    timing: Timing,
    interface: QueryInterface,
}

/// Runs a query for its values; an error includes the elapsed time.
fn first_run(
    engine: &mut dyn Engine,
    query: BenchmarkQuery<'_>,
    limit: Option<Duration>,
) -> std::result::Result<FirstRun, (vervet_model::Error, Duration)> {
    engine.set_time_limit(limit);
    let begin = Instant::now();
    let answer = values(engine, query.text);
    let after = begin.elapsed();
    engine.set_time_limit(None);
    let error = match answer {
        Ok((table, timing)) => return Ok(FirstRun { table, timing, interface: QueryInterface::Sparql }),
        Err(error) => error,
    };
    if error.kind() != ErrorKind::Deadline
        && let Some((start, predicate)) = query.reach
        && let Ok((Some(count), timing)) = once(|| engine.reach(start, predicate).transpose())
    {
        return Ok(FirstRun {
            table: ResultTable::of_number(count),
            timing,
            interface: QueryInterface::Reach,
        });
    }
    Err((error, after))
}

/// Planning time is only reported for queries below this time.
const PLANNING_MATTERS_MS: f64 = 1.0;

fn time_ours(
    ours: &dyn Engine,
    query: BenchmarkQuery<'_>,
    interface: QueryInterface,
    first: Timing,
    budget: &Budget,
) -> Result<OurTimings> {
    let text = query.text;
    let serialised = Some(time(budget, first, || interface.run(ours, query))?);
    if let QueryInterface::Reach = interface {
        return Ok(OurTimings { serialised, rows_only: serialised, by_reach: true, ..OurTimings::default() });
    }
    let rows_only = time(budget, first, || ours.query_rows(text))?;
    let mut timings = OurTimings { serialised, rows_only: Some(rows_only), ..OurTimings::default() };
    if budget.is_exceeded_by(&first) {
        return Ok(timings);
    }
    if let Some(mut prepared) = ours.prepare(text)? {
        timings.prepared = Some(measure(budget, || prepared.rows())?);
    }
    if rows_only.median_ms < PLANNING_MATTERS_MS && ours.query_rows_cached(text).transpose()?.is_some() {
        timings.cached = Some(measure(budget, || ours.query_rows_cached(text).transpose())?);
        let run = || ours.query_tsv_cached(text, &mut Sink::counting()).transpose();
        timings.cached_serialised = Some(measure(budget, run)?);
    }
    Ok(timings)
}

/// Measures `run`; if its first run exceeds the budget, that run is the measurement.
fn time(budget: &Budget, first: Timing, run: impl FnMut() -> Result<u64>) -> Result<Timing> {
    if budget.is_exceeded_by(&first) { Ok(first) } else { measure(budget, run) }
}

/// The difference between two results of the same query.
///
/// LIMIT leaves the choice of rows to the engine: then only their number is compared.
pub(crate) fn difference(one: &ResultTable, other: &ResultTable, text: &str) -> Option<String> {
    if one.header != other.header {
        return Some(format!("headers {:?} and {:?}", one.header, other.header));
    }
    if one.rows.len() != other.rows.len() {
        return Some(format!("{} rows and {} rows", one.rows.len(), other.rows.len()));
    }
    if has_limit(text) {
        return None;
    }
    let (one, other) = one.rows.iter().zip(&other.rows).find(|(one, other)| one != other)?;
    Some(format!("rows {one:?} and {other:?}"))
}

/// Whether a query has a LIMIT.
#[must_use]
pub fn has_limit(text: &str) -> bool {
    text.to_ascii_uppercase().contains("LIMIT")
}

/// Loads `file` and measures it.
///
/// # Errors
/// Errors of the engine.
pub fn load(engine: &mut dyn Engine, file: &Path) -> Result<LoadFigures> {
    let (resident, cpu, begin) = (resident_bytes()?, process_cpu(), Instant::now());
    let statements = engine.load(file)?;
    Ok(LoadFigures {
        engine: engine.name().to_owned(),
        statements,
        seconds: begin.elapsed().as_secs_f64(),
        cpu_seconds: process_cpu().saturating_sub(cpu).as_secs_f64(),
        resident_bytes: Some(resident_bytes()?.saturating_sub(resident)),
    })
}

/// The result of a query as a table, and the time of the first run.
fn values(engine: &dyn Engine, text: &str) -> Result<(ResultTable, Timing)> {
    let mut sink = Sink::keeping();
    let (_, timing) = once(|| engine.query_tsv(text, &mut sink))?;
    Ok((sink.table()?, timing))
}

fn serialised(engine: &dyn Engine, text: &str) -> Result<u64> {
    let mut sink = Sink::counting();
    engine.query_tsv(text, &mut sink)?;
    Ok(sink.bytes())
}

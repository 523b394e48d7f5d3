//! Feature benchmark: one query for each feature, in our engine and in a peer, interleaved.
//!
//! # Shape
//! Each engine first answers a query once for its values, under the time limit; values must agree before any
//! timing. Then come rounds: in each, one engine after the other answers from text, planned anew, serialized
//! as TSV into a sink, repeatedly for `SLICE`, but at least once. So both experience the same other load of
//! the machine. The median of all answers counts; an answer that took longer than `LONG` is not repeated.
//! # Not here
//! The cost of planning or serialization, and hand-written loops: see [`crate::lubm`], [`crate::patterns`].

mod feature_queries;
mod report;

pub use feature_queries::{Compare, FeatureQuery, GRAPH, UNIVERSITIES};
pub use report::{FeatureFigures, FeatureReport};

use crate::compare::Contest;
use crate::data::PlainFile;
use crate::engine::{Engine, ResultTable, Sink};
use crate::light;
use crate::measure::{Timing, median, once, thread_cpu};
use feature_queries::PREFIXES;
use std::path::Path;
use std::time::{Duration, Instant};
use vervet_model::{Error, ErrorKind, Result};

/// The time of an engine in one round.
const SLICE: Duration = Duration::from_millis(20);

/// A slower answer is its own measurement.
const LONG: Duration = Duration::from_secs(2);

/// Vertices by out-degree; `$HUB` is the first, `$OTHER` the one at [`OTHER`].
const BY_DEGREE: &str =
    "SELECT ?a (COUNT(*) AS ?n) { ?a <urn:e> ?b } GROUP BY ?a ORDER BY DESC(?n) ?a LIMIT 1000";

/// A medium position in the vertices by degree: such a vertex has some edges, and is not a neighbour of all.
const OTHER: usize = 500;

const HAS_UNIVERSITIES: &str =
    "SELECT ?x { ?x a <http://swat.cse.lehigh.edu/onto/univ-bench.owl#Department> } LIMIT 1";

/// Options of a run.
#[derive(Clone, Debug)]
pub struct FeatureOptions {
    /// Only queries with these names; empty: all.
    pub only: Vec<String>,
    /// The number of rounds.
    pub rounds: usize,
    /// Time for each mode in the light mix; zero: none.
    pub light: Duration,
}

/// Loads one file into the engines of `contest`, and runs the queries for its kind of data.
///
/// # Errors
/// The file cannot be read, or holds neither kind of data; no query has a requested name. An engine that
/// fails in a query gets a remark in the report.
pub fn run(
    title: &str,
    file: &Path,
    options: &FeatureOptions,
    contest: &mut Contest,
) -> Result<FeatureReport> {
    let plain = PlainFile::open(file)?;
    let mut report = FeatureReport::new(title.to_owned(), contest.names(), contest.time_limit);
    report.loads = contest.load(plain.path())?;
    let first = contest.ours.as_deref().or(contest.peer.as_deref());
    let Some(first) = first else { return Err(Error::internal("there is no engine")) };
    let are_universities = !table(first, HAS_UNIVERSITIES)?.rows.is_empty();
    let (set, constants) =
        if are_universities { (UNIVERSITIES, Vec::new()) } else { (GRAPH, vertices(first)?) };
    let wanted: Vec<_> = set
        .iter()
        .filter(|one| options.only.is_empty() || options.only.iter().any(|n| n == one.name))
        .collect();
    if wanted.is_empty() {
        let names: Vec<_> = set.iter().map(|query| query.name).collect();
        return Err(Error::new(ErrorKind::Input, "there is no question of that name")
            .with_hint(format!("the questions are {}", names.join(", "))));
    }
    for query in wanted {
        let text = text_of(query, &constants);
        report.features.push(compare_engines(query, &text, options.rounds, contest));
    }
    if are_universities && options.only.is_empty() && !options.light.is_zero() {
        report.light = light::run(contest, options.light)?;
    }
    report.set_targets();
    Ok(report)
}

/// The text of a query with prefixes and these values of constants.
fn text_of(query: &FeatureQuery, constants: &[(&'static str, String)]) -> String {
    let text = format!("{PREFIXES}{}", query.text);
    constants.iter().fold(text, |text, (constant, iri)| text.replace(constant, iri))
}

/// Name and text of each query.
pub(crate) fn texts(queries: &[FeatureQuery], constants: &[(&'static str, String)]) -> Vec<(String, String)> {
    queries.iter().map(|query| (query.name.to_owned(), text_of(query, constants))).collect()
}

/// The values of the constants in queries about a graph.
pub(crate) fn vertices(engine: &dyn Engine) -> Result<Vec<(&'static str, String)>> {
    let mut sink = Sink::keeping();
    engine.query_tsv(BY_DEGREE, &mut sink)?;
    let rows = sink.table_in_order()?.rows;
    let vertex = |rank: usize| {
        let row = rows.get(rank.min(rows.len().saturating_sub(1)))?;
        row.split('\t').next().map(str::to_owned)
    };
    match (vertex(0), vertex(OTHER)) {
        (Some(hub), Some(other)) => Ok(vec![("$HUB", hub), ("$OTHER", other)]),
        _ => Err(Error::new(ErrorKind::Input, "the data holds no departments and no <urn:e>")
            .with_hint("see `vervet-bench generate` for both kinds of data")),
    }
}

/// One answer, for its values.
struct First {
    table: ResultTable,
    timing: Timing,
}

/// The outcome in one engine.
enum Outcome {
    Answered(First),
    /// Cancelled after this time.
    Cut(Duration),
    Failed(Error),
}

/// Runs one query in the engines of `contest`.
fn compare_engines(query: &FeatureQuery, text: &str, rounds: usize, contest: &mut Contest) -> FeatureFigures {
    let mut figures = FeatureFigures { feature: query.name.to_owned(), ..FeatureFigures::default() };
    let limit = contest.time_limit;
    let mut tables: Vec<ResultTable> = Vec::new();
    let mut firsts = [None, None];
    for (index, engine) in [&mut contest.ours, &mut contest.peer].into_iter().enumerate() {
        let Some(engine) = engine.as_deref_mut() else { continue };
        match first(engine, query, text, limit) {
            Outcome::Answered(First { table, timing }) => {
                firsts[index] = Some(timing);
                tables.push(table);
            }
            Outcome::Cut(after) => figures.side(index).cut_ms = Some(after.as_secs_f64() * 1e3),
            Outcome::Failed(error) => figures.remarks.push(format!("{}: {error}", engine.name())),
        }
    }
    figures.rows = tables.first().map(|table| table.rows.len() as u64);
    if let [one, other] = tables.as_slice()
        && let Some(what) = difference(query.compare, one, other)
    {
        figures.wrong = true;
        figures.remarks.push(what);
    }
    // Before timing: large results must not occupy the caches and the memory of the engines.
    drop(tables);
    let mut times = [Times::default(), Times::default()];
    for _ in 0..rounds {
        for (index, engine) in [&contest.ours, &contest.peer].into_iter().enumerate() {
            let Some((engine, once)) = engine.as_deref().zip(firsts[index]) else { continue };
            if once.median_ms > LONG.as_secs_f64() * 1e3 {
                continue;
            }
            if let Err(error) = times[index].take(engine, text) {
                figures.remarks.push(format!("{}: {error}", engine.name()));
                firsts[index] = None;
            }
        }
    }
    for (index, times) in times.into_iter().enumerate() {
        figures.side(index).timing = firsts[index].map(|first| times.timing().unwrap_or(first));
    }
    figures
}

/// One answer for its values, within the limit.
fn first(engine: &mut dyn Engine, query: &FeatureQuery, text: &str, limit: Option<Duration>) -> Outcome {
    engine.set_time_limit(limit);
    let begin = Instant::now();
    let mut sink = Sink::keeping();
    let answer = once(|| engine.query_tsv(text, &mut sink));
    let after = begin.elapsed();
    engine.set_time_limit(None);
    let table = |sink: &Sink| match query.compare {
        Compare::Order => sink.table_in_order(),
        Compare::Rows | Compare::Number => sink.table(),
    };
    match answer.and_then(|(_, timing)| Ok(First { table: table(&sink)?, timing })) {
        Ok(first) => Outcome::Answered(first),
        Err(error) if error.kind() == ErrorKind::Deadline => Outcome::Cut(after),
        Err(error) => Outcome::Failed(error),
    }
}

/// The times of all answers of one engine.
#[derive(Default)]
struct Times {
    wall: Vec<Duration>,
    cpu: Vec<Duration>,
}

impl Times {
    /// Answers for [`SLICE`], at least once.
    fn take(&mut self, engine: &dyn Engine, text: &str) -> Result<()> {
        let slice = Instant::now();
        loop {
            let mut sink = Sink::counting();
            let (cpu, begin) = (thread_cpu(), Instant::now());
            engine.query_tsv(text, &mut sink)?;
            self.wall.push(begin.elapsed());
            self.cpu.push(thread_cpu().saturating_sub(cpu));
            if slice.elapsed() >= SLICE {
                return Ok(());
            }
        }
    }

    fn timing(self) -> Option<Timing> {
        median(self.wall, self.cpu)
    }
}

fn table(engine: &dyn Engine, text: &str) -> Result<ResultTable> {
    let mut sink = Sink::keeping();
    engine.query_tsv(text, &mut sink)?;
    sink.table()
}

/// The difference of two results in the compared aspect.
fn difference(compare: Compare, one: &ResultTable, other: &ResultTable) -> Option<String> {
    if one.header != other.header {
        return Some(format!("headers {:?} and {:?}", one.header, other.header));
    }
    if one.rows.len() != other.rows.len() {
        return Some(format!("{} rows and {} rows", one.rows.len(), other.rows.len()));
    }
    if compare == Compare::Number {
        return None;
    }
    let (one, other) = one.rows.iter().zip(&other.rows).find(|(one, other)| one != other)?;
    Some(format!("rows {one:?} and {other:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_compared_by_the_kind_of_query() {
        let table = |rows: &[&str]| ResultTable {
            header: "?x".to_owned(),
            rows: rows.iter().map(|&row| row.to_owned()).collect(),
        };
        let (one, other) = (table(&["1", "2"]), table(&["2", "1"]));
        assert!(difference(Compare::Order, &one, &other).is_some());
        assert!(difference(Compare::Number, &one, &other).is_none());
        assert!(difference(Compare::Number, &one, &table(&["1"])).is_some());
        assert!(difference(Compare::Rows, &one, &one).is_none());
    }
}

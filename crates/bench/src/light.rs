//! The light mix: Q4, Q5 and Q6 with random constants, sequentially on one thread.
//!
//! # Shape
//! Constants are drawn from the data: departments for Q4 and Q5, universities with departments for Q6 (for a
//! university that only occurs as a person's former one, the result would be trivially empty). Every engine
//! runs the same draws in the same order, a third of them for each query, and writes its results as TSV.

use crate::compare::{Contest, difference};
use crate::data::PlainFile;
use crate::engine::{Engine, Sink};
use crate::measure::thread_cpu;
use crate::report::{LightFigures, Report};
use std::path::Path;
use std::time::{Duration, Instant};
use vervet_model::{Error, ErrorKind, Result};

/// The constants in the query texts.
const DEPARTMENT: &str = "<http://www.Department0.University0.edu>";
const UNIVERSITY: &str = "<http://www.University0.edu>";

const DEPARTMENTS: &str = "PREFIX ub: <http://swat.cse.lehigh.edu/onto/univ-bench.owl#> \
                           SELECT ?x { ?x a ub:Department }";
const UNIVERSITIES: &str = "PREFIX ub: <http://swat.cse.lehigh.edu/onto/univ-bench.owl#> \
                            SELECT DISTINCT ?x { ?d a ub:Department . ?d ub:subOrganizationOf ?x }";

/// Each query, its constant, and the query that finds other constants.
const MIX: [(&str, &str, &str); 3] = [
    (include_str!("queries/q4.rq"), DEPARTMENT, DEPARTMENTS),
    (include_str!("queries/q5.rq"), DEPARTMENT, DEPARTMENTS),
    (include_str!("queries/q6.rq"), UNIVERSITY, UNIVERSITIES),
];

/// The number of draws; then they repeat.
const DRAWS: usize = 3_000;

/// The number of draws whose results are compared before timing.
const COMPARED: usize = 150;

/// One query of the mix.
struct Draw {
    query: usize,
    iri: String,
    text: String,
}

/// Loads a file into the engines of `contest` and measures the mix.
///
/// # Errors
/// The file cannot be read; as [`run`].
pub fn run_on(file: &Path, contest: &mut Contest, time: Duration) -> Result<Report> {
    let plain = PlainFile::open(file)?;
    let (ours, peer) = contest.names();
    let name = file.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let mut report = Report::new(format!("Light mix, {name}"), ours, peer);
    report.loads = contest.load(plain.path())?;
    report.light = run(contest, time)?;
    Ok(report)
}

/// Measures the throughput of every engine of `contest`, which has loaded the data, for `time` each.
///
/// # Errors
/// An engine fails, results differ, or the data holds no departments.
pub fn run(contest: &Contest, time: Duration) -> Result<Vec<LightFigures>> {
    let engines: Vec<&dyn Engine> =
        [contest.ours.as_deref(), contest.peer.as_deref()].into_iter().flatten().collect();
    let Some(first) = engines.first() else { return Ok(Vec::new()) };
    let draws = draws(*first)?;
    compare(&engines, &draws[..COMPARED])?;
    let mut figures = Vec::new();
    for (index, engine) in engines.into_iter().enumerate() {
        let mut note = |way: &str, measured: Measured| {
            figures.push(LightFigures {
                engine: engine.name().to_owned(),
                ours: index == 0 && contest.ours.is_some(),
                way: way.to_owned(),
                queries: measured.queries,
                queries_a_second: measured.queries as f64 / measured.seconds,
                queries_a_cpu_second: measured.queries as f64 / measured.cpu_seconds,
                rows_a_query: measured.rows as f64 / measured.queries as f64,
            });
        };
        note("from text", throughput(&draws, time, |draw, sink| engine.query_tsv(&draw.text, sink))?);
        let templates = MIX.map(|(text, constant, _)| text.replace(constant, "?constant"));
        let prepared = templates.iter().map(|text| engine.prepare_for_constants(text));
        let prepared: Option<Vec<_>> = prepared.collect::<Result<Vec<_>>>()?.into_iter().collect();
        if let Some(mut prepared) = prepared {
            for draw in &draws[..COMPARED] {
                let mut sink = Sink::counting();
                let rows = prepared[draw.query].query_tsv(&draw.iri, &mut sink)?;
                if rows != engine.query_tsv(&draw.text, &mut sink)? {
                    let what = format!("{} differs from itself on {}", engine.name(), draw.iri);
                    return Err(Error::internal(what));
                }
            }
            let measured = throughput(&draws, time, |draw, sink| {
                prepared[draw.query].query_tsv(&draw.iri, sink) // One for each query of the mix.
            })?;
            note("prepared, constant given", measured);
        }
    }
    Ok(figures)
}

/// Draws that are the same for every engine and run.
fn draws(engine: &dyn Engine) -> Result<Vec<Draw>> {
    let mut constants = Vec::new();
    for (_, _, text) in MIX {
        let mut sink = Sink::keeping();
        engine.query_tsv(text, &mut sink)?;
        let rows = sink.table()?.rows;
        if rows.is_empty() {
            return Err(Error::new(ErrorKind::Input, "the data holds no departments of universities"));
        }
        constants.push(rows);
    }
    let mut random = fastrand::Rng::with_seed(0);
    let draw = |index: usize| {
        let query = index % MIX.len();
        let (text, constant, _) = MIX[query];
        let iri = &constants[query][random.usize(..constants[query].len())];
        Draw { query, iri: iri.trim_matches(['<', '>']).to_owned(), text: text.replace(constant, iri) }
    };
    Ok((0..DRAWS).map(draw).collect())
}

/// Compares the complete results of the first draws in all engines.
fn compare(engines: &[&dyn Engine], draws: &[Draw]) -> Result<()> {
    for draw in draws {
        let mut agreed = None;
        for engine in engines {
            let mut sink = Sink::keeping();
            engine.query_tsv(&draw.text, &mut sink)?;
            let table = sink.table()?;
            if let Some(what) = agreed.as_ref().and_then(|agreed| difference(agreed, &table, &draw.text)) {
                let what = format!("{} differs in a light query on {}: {what}", engine.name(), draw.iri);
                return Err(Error::internal(what));
            }
            agreed.get_or_insert(table);
        }
    }
    Ok(())
}

struct Measured {
    queries: u64,
    rows: u64,
    seconds: f64,
    cpu_seconds: f64,
}

fn throughput(
    draws: &[Draw],
    time: Duration,
    mut run: impl FnMut(&Draw, &mut Sink) -> Result<u64>,
) -> Result<Measured> {
    let mut sink = Sink::counting();
    for draw in &draws[..COMPARED] {
        run(draw, &mut sink)?;
    }
    let (cpu, begin) = (thread_cpu(), Instant::now());
    let (mut queries, mut rows) = (0, 0);
    for draw in draws.iter().cycle() {
        rows += run(draw, &mut sink)?;
        queries += 1;
        if begin.elapsed() >= time {
            break;
        }
    }
    Ok(Measured {
        queries,
        rows,
        seconds: begin.elapsed().as_secs_f64(),
        cpu_seconds: thread_cpu().saturating_sub(cpu).as_secs_f64(),
    })
}

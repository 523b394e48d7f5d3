//! `profile DATA QUERY-FILE... [--runs N] [--explain]`: a time breakdown of warm queries.
//!
//! DATA is a file to load or the directory of a database. For each query: the minimum and the median time of
//! parsing, planning, and running the plan (compiling it to kernels included), each alone, and of the whole
//! path from the text to TSV without the plan cache (last column). `--explain` also prints the profile of the
//! last run.

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};
use vervet::{Answer, Database, OutputFormat, QueryOptions};
use vervet_kernel::Control;
use vervet_planner::{PlanOptions, plan};
use vervet_sparql::ParseOptions;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let (mut files, mut runs, mut explain) = (Vec::new(), 50, false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--runs" => runs = arguments.next().ok_or("--runs needs a number")?.parse()?,
            "--explain" => explain = true,
            _ => files.push(argument),
        }
    }
    let Some((data, queries)) = files.split_first() else {
        return Err("usage: profile DATA QUERY-FILE... [--runs N] [--explain]".into());
    };
    let database = if Path::new(data).is_dir() {
        Database::open(data)?
    } else {
        let database = Database::in_memory();
        database.load_file(data)?;
        database
    };
    println!(
        "{:24} {:>17} {:>17} {:>19} {:>19} {:>19}",
        "µs, least/median", "parse", "plan", "run", "from text", "to TSV"
    );
    for query in queries {
        measure(&database, query, runs, explain)?;
    }
    Ok(())
}

fn measure(database: &Database, file: &str, runs: usize, explain: bool) -> Result<(), Failure> {
    let text = std::fs::read_to_string(file)?;
    let snapshot = database.snapshot();
    let options = PlanOptions::default();
    let parse = times(runs, || Ok(vervet_sparql::parse(&text, &ParseOptions::default())?))?;
    let query = vervet_sparql::parse(&text, &ParseOptions::default())?;
    let planning =
        times(runs, || Ok(plan(black_box(&query), snapshot.as_snapshot(), &options, &Control::default())?))?;
    let prepared = database.prepare(&text)?;
    let run = times(runs, || Ok(prepared.run()?))?;
    let whole = times(runs, || {
        database.clear_plan_cache();
        Ok(database.query(&text)?)
    })?;
    let written = times(runs, || {
        database.clear_plan_cache();
        let options = QueryOptions::default().with_threads(1);
        Ok(database.write(&text, &options, OutputFormat::Tsv, &mut std::io::sink())?.rows)
    })?;
    let name = Path::new(file).file_stem().unwrap_or_default().to_string_lossy();
    println!("{name:24} {parse:>17} {planning:>17} {run:>19} {whole:>19} {written:>19}");
    if explain {
        let options = QueryOptions { profile: true, ..QueryOptions::default() };
        if let Answer::Solutions(solutions) = prepared.run_with(&options)? {
            println!("{}", solutions.profile().unwrap_or("no profile"));
        }
    }
    Ok(())
}

/// The minimum and the median time of `runs` calls, after one warm-up call.
fn times<T>(runs: usize, mut call: impl FnMut() -> Result<T, Failure>) -> Result<String, Failure> {
    black_box(call()?);
    let mut all: Vec<Duration> = Vec::with_capacity(runs.max(1));
    for _ in 0..runs.max(1) {
        let start = Instant::now();
        let result = black_box(call()?);
        all.push(start.elapsed());
        drop(result);
    }
    all.sort();
    let microseconds = |time: Duration| time.as_secs_f64() * 1e6;
    Ok(format!("{:.1}/{:.1}", microseconds(all[0]), microseconds(all[all.len() / 2])))
}

//! Benchmark of parallel speed-up: the best and the median time of a prepared query, without serialization.
//!
//! `cargo run --release -p vervet --example threads -- DB RUNS QUERY.rq... [-- THREADS...]`

use std::time::{Duration, Instant};
use vervet::{Answer, Database, QueryOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [database, runs, files @ ..] = arguments.as_slice() else {
        return Err("name a database, a number of runs, and files with queries".into());
    };
    let (files, threads) = match files.iter().position(|word| word == "--") {
        Some(at) => {
            (&files[..at], files[at + 1..].iter().map(|word| word.parse()).collect::<Result<_, _>>()?)
        }
        None => (files, vec![1, 2]),
    };
    let (database, runs) = (Database::open(database)?, runs.parse::<usize>()?.max(1));
    for file in files {
        let prepared = database.prepare(&std::fs::read_to_string(file)?)?;
        let mut times: Vec<Vec<Duration>> = vec![Vec::new(); threads.len()];
        let mut rows = Vec::new();
        // Interleaved, so that other load of the machine affects all thread counts alike.
        for _ in 0..runs {
            for (&threads, times) in threads.iter().zip(&mut times) {
                let options = QueryOptions::default().with_threads(threads);
                let start = Instant::now();
                let answer = prepared.run_with(&options)?;
                times.push(start.elapsed());
                rows.push(match answer {
                    Answer::Solutions(solutions) => solutions.len(),
                    Answer::Boolean(value) => usize::from(value),
                    Answer::Graph(triples) => triples.len(),
                });
            }
        }
        assert!(rows.iter().all(|count| *count == rows[0]), "{file}: {rows:?}");
        for (threads, times) in threads.iter().zip(&mut times) {
            times.sort();
            println!("{file}: {threads} threads: best {:?}, median {:?}", times[0], times[times.len() / 2]);
        }
    }
    Ok(())
}

//! Bytes of the statements of a graph in 1 to 64 partitions, and the times of a load and of queries over
//! them.
//!
//! `cargo run --release -p vervet --example partitions -- lubm-40.nt.zst [QUERY-FILE…]`
#![allow(clippy::print_stdout, reason = "this program prints a table")]

use std::collections::BTreeMap;
use std::time::Instant;
use vervet::{Answer, Database, DatabaseOptions, LoadOptions, Partitioning, Source};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("usage: partitions FILE [QUERY-FILE…]")?;
    let queries: Vec<String> = arguments.map(std::fs::read_to_string).collect::<Result<_, _>>()?;
    for count in [1, 4, 16, 64] {
        let partitioning =
            Partitioning::new(count).and_then(|one| one.with_runs(12)).ok_or("a power of two")?;
        let database =
            Database::in_memory_with(DatabaseOptions { partitioning, ..DatabaseOptions::default() });
        let started = Instant::now();
        database.load(vec![Source::path(&file)], &LoadOptions { threads: 2, ..LoadOptions::default() })?;
        let seconds = started.elapsed().as_secs_f64();
        let statements = database.snapshot().statement_count();
        let mut bytes: BTreeMap<&str, u64> = BTreeMap::new();
        for size in database.component_sizes()? {
            if size.segment.is_some() || size.name == "edge table" {
                *bytes.entry(size.name).or_default() += size.size_bytes;
            }
        }
        let of_statement = |bytes: u64| bytes as f64 / statements.max(1) as f64;
        let all = of_statement(bytes.values().sum());
        println!(
            "{count} partitions: {statements} statements, load {seconds:.2} s, {all:.3} bytes a statement"
        );
        for (name, bytes) in bytes {
            println!("    {name}: {:.3}", of_statement(bytes));
        }
        for (number, query) in queries.iter().enumerate() {
            let mut times = Vec::new();
            let mut rows = 0;
            for _ in 0..9 {
                let started = Instant::now();
                if let Answer::Solutions(solutions) = database.query(query)? {
                    rows = solutions.len();
                }
                times.push(started.elapsed().as_secs_f64() * 1e3);
            }
            times.sort_by(f64::total_cmp);
            println!("    query {}: {rows} rows, {:.3} ms", number + 1, times[times.len() / 2]);
        }
    }
    Ok(())
}

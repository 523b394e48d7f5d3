//! Benchmark of prefix and range lookups of values: `cargo run --release -p vervet --example ranges`.
//!
//! The texts of several properties interleave, so a range of texts of one property contains texts of the
//! others. Loaded (in the base), and inserted by transactions (in the delta). Times are the best of many
//! runs, on one thread.

use std::fmt::Write;
use std::time::{Duration, Instant};
use vervet::{Database, Format, QueryOptions, Result};

const TEXTS: u32 = 50_000;
const RUNS: u32 = 60;

fn main() -> Result<()> {
    for loaded in [true, false] {
        for properties in [1, 2, 10] {
            println!(
                "{properties} properties with {TEXTS} texts each, {}",
                if loaded { "loaded" } else { "inserted" }
            );
            let database = Database::in_memory();
            for property in 0..properties {
                fill(&database, property, loaded)?;
            }
            for (name, condition) in [
                ("equal", "?o = \"a text with the number 012345 0\""),
                ("prefix, 10 of 50,000", "STRSTARTS(?o, \"a text with the number 01234\")"),
                ("prefix, 1,000 of 50,000", "STRSTARTS(?o, \"a text with the number 012\")"),
                ("range of numbers, 1,000 of 50,000", "?o >= 12000 && ?o < 13000"),
                ("scan of texts", "CONTAINS(?o, \"01234\")"),
            ] {
                let key = if name.contains("numbers") { "number0" } else { "text0" };
                measure(&database, name, &format!("SELECT ?s {{ ?s <urn:{key}> ?o FILTER({condition}) }}"))?;
            }
        }
    }
    Ok(())
}

fn fill(database: &Database, property: u32, loaded: bool) -> Result<()> {
    let mut text = String::new();
    let numbers: Vec<u32> = (0..TEXTS).collect();
    for numbers in numbers.chunks(if loaded { TEXTS as usize } else { 1000 }) {
        text.clear();
        for number in numbers {
            // Between two texts of one property lies a text of each other property.
            let value = format!("a text with the number {number:06} {property}");
            writeln!(
                text,
                "<urn:v{number}> <urn:text{property}> \"{value}\" ; <urn:number{property}> {number} ."
            )
            .unwrap_or_default();
        }
        if loaded {
            database.load_text(Format::Turtle, &text)?;
        } else {
            database.update(&format!("INSERT DATA {{ {text} }}"))?;
        }
    }
    Ok(())
}

fn measure(database: &Database, name: &str, query: &str) -> Result<()> {
    let started = Instant::now();
    let plan = database.explain(query, &QueryOptions::default())?;
    // Planning sorts new texts when the first range of them is queried.
    let planned = started.elapsed();
    let among = plan.split("among ").nth(1).and_then(|rest| rest.split(" values").next()).unwrap_or("all");
    let prepared = database.prepare(query)?;
    let (mut best, mut rows) = (Duration::MAX, 0);
    for _ in 0..RUNS {
        let started = Instant::now();
        rows = prepared.run()?.into_solutions().map_or(0, |solutions| solutions.len());
        best = best.min(started.elapsed());
    }
    println!(
        "  {name:<36} {rows:>6} rows, looks at {among:>7}, best {best:>9.1?}, planned in {planned:>9.1?}"
    );
    Ok(())
}

//! Measures the parse time of queries: `cargo run --release -p vervet-sparql --example parse_speed --
//! FILE...`.

use std::hint::black_box;
use std::time::Instant;
use vervet_sparql::{ParseOptions, parse};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for file in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&file)?;
        let mut times = Vec::new();
        for _ in 0..5_000 {
            let start = Instant::now();
            black_box(parse(black_box(&text), &ParseOptions::default())?);
            times.push(start.elapsed().as_nanos());
        }
        times.sort_unstable();
        println!("{file}: median {} ns, 95th percentile {} ns", times[2_500], times[4_750]);
    }
    Ok(())
}

//! Measures planning time: stars, chains, cycles and cliques over the statistics of a small graph, and Q1, Q5
//! and Q7 over those of LUBM-1 if the test data is present.
//!
//! `cargo run --release -p vervet-planner --example planning_time`
#![allow(missing_docs, reason = "a measurement, not a library")]

#[path = "../tests/it/common/mod.rs"]
mod common;

use common::{Names, graph, lubm, lubm_query};
use std::fmt::Write;
use std::hint::black_box;
use std::time::Instant;
use vervet_algebra::Query;
use vervet_kernel::Control;
use vervet_planner::{PlanOptions, plan};
use vervet_testkit::MemorySnapshot;

fn measure(name: &str, query: &Query, snapshot: &MemorySnapshot) {
    let options = PlanOptions::default();
    let mut times: Vec<_> = (0..400)
        .map(|_| {
            let start = Instant::now();
            black_box(plan(black_box(query), snapshot, &options, &Control::default()))
                .map(|plan| plan.variables.len())
                .unwrap_or(0);
            start.elapsed()
        })
        .collect();
    times.sort();
    println!("{name:12} median {:>8.1} µs", times[times.len() / 2].as_secs_f64() * 1e6);
}

fn shape(count: usize, edge: impl Fn(usize) -> (usize, usize)) -> Query {
    let mut text = String::new();
    for at in 0..count {
        let (from, to) = edge(at);
        let _ = write!(text, "?v{from} p{} ?v{to} . ", at % 4);
    }
    let mut names = Names::default();
    let root = names.node(&text);
    names.select(&["v0", "v1"], root)
}

fn main() {
    let mut text = String::new();
    for at in 0..400 {
        let _ = write!(text, "v{} p{} v{} . v{} a T{} . ", at % 97, at % 4, at * 7 % 89, at % 97, at % 11);
    }
    let small = graph(&text);
    for count in [6, 12, 24, 48] {
        measure(&format!("star {count}"), &shape(count, |at| (0, at + 1)), &small);
        measure(&format!("chain {count}"), &shape(count, |at| (at, at + 1)), &small);
        measure(&format!("cycle {count}"), &shape(count, |at| (at, (at + 1) % count)), &small);
    }
    let pairs: Vec<_> = (0..5).flat_map(|a| (a + 1..5).map(move |b| (a, b))).collect();
    measure("clique 5", &shape(pairs.len(), |at| pairs[at]), &small);
    if let Some(lubm) = lubm() {
        for name in ["q1", "q2", "q3", "q4", "q5", "q6", "q7"] {
            measure(name, &lubm_query(name), &lubm);
        }
    }
}

//! Benchmark of typed writes at a vertex with many edges: adding edges in one transaction or one each, a
//! property for each edge, and removing the vertex with everything that belongs to it.
//!
//! `cargo run --release -p vervet --example hub -- [EDGES]`

use std::time::Instant;
use vervet::{Database, Direction, Result};

fn main() -> Result<()> {
    let edges: u32 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(100_000);
    let database = Database::in_memory();
    let hub = database.transact(|t| t.add_vertex_named("hub", &["hub"]))?;
    let tell = |what: &str, started: Instant, count: u32| {
        let time = started.elapsed();
        println!("{what:42} {:8.2} µs each", time.as_secs_f64() * 1e6 / f64::from(count));
    };
    let started = Instant::now();
    database.transact(|t| {
        for number in 0..edges {
            let leaf = t.add_vertex(&["leaf"])?;
            let edge = t.add_edge(hub, "has", leaf)?;
            t.set_property(edge, "weight", i64::from(number))?;
        }
        Ok(())
    })?;
    tell("vertex, edge and property, one transaction", started, edges);
    let few = edges.min(20_000);
    let started = Instant::now();
    for number in 0..few {
        database.transact(|t| {
            let leaf = t.add_vertex(&["leaf"])?;
            let edge = t.add_edge(hub, "has", leaf)?;
            t.set_property(edge, "weight", i64::from(number))
        })?;
    }
    tell("the same, a transaction for each", started, few);
    let degree = database.snapshot().graph().degree(hub, "has", Direction::Out)?;
    assert_eq!(degree, u64::from(edges) + u64::from(few));
    let started = Instant::now();
    let removed = database.transact(|t| t.remove_vertex(hub))?;
    tell("removing the hub, for each edge", started, edges + few);
    assert_eq!(removed, 1 + 2 * degree);
    Ok(())
}

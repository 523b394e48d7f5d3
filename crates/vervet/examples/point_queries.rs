//! The time of a point query: the name of one vertex, with the vertex as a parameter. The same queries as in
//! `python/benchmarks/run.py`, which runs this program with `--rust` and compares.
//!
//! `point_queries FILE.nt COUNT REPEAT` prints the least time of a query in microseconds.

use oxrdf::NamedNode;
use std::time::Instant;
use vervet::{Database, QueryOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, count, repeat] = arguments.as_slice() else {
        return Err("usage: point_queries FILE.nt COUNT REPEAT".into());
    };
    let (count, repeat): (u64, u64) = (count.parse()?, repeat.parse()?);
    let database = Database::in_memory();
    database.load_file(file)?;
    let vertices = database.snapshot().vertex_count()?.max(1);
    // Spread over all vertices; the order is not that of memory.
    let names: Vec<NamedNode> = (0..count)
        .map(|number| NamedNode::new(format!("urn:vervet:vertex:{}", number * 7_919_003 % vertices)))
        .collect::<Result<_, _>>()?;
    let text = "SELECT ?name { ?who <urn:vervet:key:name> ?name }";
    let mut best = f64::INFINITY;
    for _ in 0..repeat {
        let begin = Instant::now();
        let mut bytes = 0;
        for name in &names {
            let options = QueryOptions::default().with_parameter("who", name.clone());
            let solutions = database.query_with(text, &options)?.into_solutions().ok_or("no solutions")?;
            for row in solutions.rows() {
                bytes += row.text("name")?.map_or(0, |name| name.len());
            }
        }
        assert!(bytes > 0, "the vertices have names");
        best = best.min(begin.elapsed().as_secs_f64() / count as f64);
    }
    println!("{:.3}", best * 1e6);
    Ok(())
}

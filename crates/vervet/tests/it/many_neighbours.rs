//! More than 65,536 edges between vertices of one label, whose neighbours are therefore stored in frames
//! (docs/format.md): loaded, changed, merged and reopened, against a set of pairs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use vervet::{Database, Direction, Environment, LoadOptions, Result, Source, Vertex};
use vervet_testkit::Random;

const VERTICES: u64 = 3000;
const EDGES: usize = 70_000;
/// A vertex with more neighbours than fit into a batch.
const HUB: u64 = 7;

/// Pairs of source and target vertex numbers.
type Model = BTreeSet<(u64, u64)>;

fn name(vertex: u64) -> String {
    format!("v{vertex}")
}

/// Compares the edges of the graph with the model, through every kind of traversal.
fn compare(database: &Database, model: &Model, context: &str) -> Result<()> {
    let snapshot = database.snapshot();
    let graph = snapshot.graph();
    let mut numbers: BTreeMap<Vertex, u64> = BTreeMap::new();
    for vertex in 0..VERTICES {
        numbers.extend(graph.vertex(&name(vertex))?.map(|id| (id, vertex)));
    }
    let mut lists: [BTreeMap<u64, Vec<u64>>; 2] = Default::default();
    for &(source, target) in model {
        lists[0].entry(source).or_default().push(target);
        lists[1].entry(target).or_default().push(source);
    }
    for (direction, lists) in Direction::BOTH.into_iter().zip(&lists) {
        for (id, vertex) in &numbers {
            let mut found: Vec<u64> = Vec::new();
            for other in graph.neighbours(*id, "knows", direction)? {
                found.push(numbers[&other]);
            }
            found.sort_unstable();
            let expected = lists.get(vertex).cloned().unwrap_or_default();
            assert_eq!(found, expected, "{context}: {direction:?} of {vertex}");
            let degree = graph.degree(*id, "knows", direction)?;
            assert_eq!(degree, expected.len() as u64, "{context}: {direction:?} of {vertex}");
        }
    }
    let mut all = Model::new();
    graph.for_each_edge("knows", &mut |edge| {
        all.insert((numbers[&edge.source], numbers[&edge.target]));
    })?;
    assert_eq!(&all, model, "{context}");
    for vertex in [HUB, 0, 1, VERTICES - 1] {
        let out = |vertex: &u64| lists[0].get(vertex).map_or(&[][..], Vec::as_slice);
        let hops = out(&vertex).iter().map(|next| out(next).len()).sum::<usize>();
        let back = out(&vertex).iter().filter(|next| model.contains(&(**next, vertex))).count();
        let text = format!(
            "PREFIX v: <urn:vervet:vertex:> PREFIX : <urn:vervet:key:>
             SELECT (COUNT(*) AS ?n) (SUM(IF(?b = v:v{vertex}, 1, 0)) AS ?back) {{ v:v{vertex} :knows ?a . ?a :knows ?b }}"
        );
        let solutions = database.select(&text)?;
        let row = solutions.rows().next().expect("one row");
        let number = |name| row.integer(name).map(|number| number.unwrap_or(0));
        assert_eq!(number("n")?, hops as i64, "{context}: two hops from {vertex}");
        assert_eq!(number("back")?, back as i64, "{context}: back to {vertex}");
    }
    Ok(())
}

#[test]
fn many_neighbours_are_those_of_the_model() -> Result<()> {
    let seed = vervet_testkit::seed();
    eprintln!("seed {seed}");
    let mut random = Random(seed);
    let mut model = Model::new();
    while model.len() < EDGES {
        let source = if random.below(30) == 0 { HUB } else { random.below(VERTICES) };
        let target = if random.below(30) == 0 { HUB } else { random.below(VERTICES) };
        model.insert((source, target));
    }
    let mut edges: Vec<(u64, u64)> = model.iter().copied().collect();
    for place in 0..edges.len() {
        let other = random.below(EDGES as u64);
        edges.swap(place, usize::try_from(other).expect("small"));
    }
    let mut text = String::from("from,to,label\n");
    for (source, target) in &edges {
        writeln!(text, "{},{},knows", name(*source), name(*target)).expect("a string");
    }
    let environment = Environment::simulated(seed);
    let open = || Database::open_or_create_in(environment.clone(), Path::new("/db"));
    let database = open()?;
    database.load(vec![Source::bytes("edges.csv", text.into_bytes())], &LoadOptions::default())?;
    compare(&database, &model, "loaded")?;
    drop(database);
    let database = open()?;
    compare(&database, &model, "loaded and opened")?;

    database.transact(|t| {
        let mut vertices = BTreeMap::new();
        t.read(|graph| {
            for vertex in 0..VERTICES {
                vertices.extend(graph.vertex(&name(vertex))?.map(|id| (vertex, id)));
            }
            Ok(())
        })?;
        for (source, target) in edges.iter().step_by(97) {
            for edge in t.edges_between(vertices[source], "knows", vertices[target])? {
                t.remove_edge(edge)?;
            }
            model.remove(&(*source, *target));
        }
        for _ in 0..700 {
            let pair = (random.below(VERTICES), if random.one_in(4) { HUB } else { random.below(VERTICES) });
            if let (Some(source), Some(target)) = (vertices.get(&pair.0), vertices.get(&pair.1))
                && model.insert(pair)
            {
                t.add_edge(*source, "knows", *target)?;
            }
        }
        Ok(())
    })?;
    compare(&database, &model, "changed")?;
    drop(database);
    let database = open()?;
    compare(&database, &model, "changed and opened")?;
    assert!(database.checkpoint()?, "there is something to merge");
    compare(&database, &model, "merged")?;
    database.check()?;
    drop(database);
    compare(&open()?, &model, "merged and opened")
}

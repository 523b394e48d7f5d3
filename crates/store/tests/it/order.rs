//! Order columns against a sort of the statements, for random graphs with edges, named graphs and values of
//! several kinds; in memory, in files, and built with temporary files. A failure prints its seed.

use crate::common::{Graph, GraphParameters, ORDERED, Random, options, seed};
use std::path::PathBuf;
use vervet_env::Environment;
use vervet_model::{Direction, ErrorKind, Id, Tag, order_key};
use vervet_snapshot::{GraphFilter, OrderRange, OrderedEntry, Snapshot};
use vervet_store::{Base, BuildOptions, Statement, Store, Target};

fn predicate(store: &Store, name: &str) -> Option<Id> {
    store.dictionary().lookup_iri(&format!("http://e/{name}")).expect("whole")
}

/// The entries of each key in order, by definition.
fn expected(statements: &[Statement], property: Id, of: Id, direction: Direction) -> Vec<(Id, OrderedEntry)> {
    let key_of = |subject: Id| {
        let values = statements.iter().filter(|s| s.predicate == property && s.subject == subject);
        values.map(|s| order_key(s.object)).filter(|key| key.is_bound()).min().unwrap_or(Id::UNBOUND)
    };
    let mut entries: Vec<(Id, OrderedEntry)> = statements
        .iter()
        .filter(|s| s.predicate == of)
        .map(|s| {
            let (key, neighbour) = match direction {
                Direction::Out => (s.subject, s.object),
                Direction::In => (s.object, s.subject),
            };
            let order_key = if s.edge.is_bound() { key_of(s.edge) } else { Id::UNBOUND };
            (key, OrderedEntry { neighbour, graph: s.graph, edge: s.edge, order_key })
        })
        .collect();
    if entries.iter().all(|(_, entry)| !entry.order_key.is_bound()) {
        entries.iter_mut().for_each(|(_, entry)| entry.order_key = key_of(entry.neighbour));
    }
    entries.sort_by_key(|(key, e)| (*key, e.order_key, e.neighbour, e.graph, e.edge));
    entries
}

fn compare(store: &Store, graph: &Graph, random: &mut Random, context: &str) -> usize {
    let statements: Vec<Statement> = graph.set().into_iter().collect();
    let mut listed = 0;
    let Some(property) = predicate(store, "p0").filter(|p| statements.iter().any(|s| s.predicate == *p))
    else {
        assert_eq!(store.orders().len(), 0, "{context}");
        return 0;
    };
    for of in ORDERED.iter().filter_map(|name| predicate(store, name)) {
        for direction in Direction::BOTH {
            let Some(segment) = store.segment(of, direction).expect("whole") else { continue };
            assert_eq!(segment.order(), Some(property), "{context}");
            let all = expected(&statements, property, of, direction);
            let mut keys: Vec<Id> = all.iter().map(|(key, _)| *key).collect();
            keys.dedup();
            keys.push(Id::vertex(1 << 40));
            for key in keys {
                let bound = |random: &mut Random| match random.below(4) {
                    0 => Id::UNBOUND,
                    1 => Id::new(random.pick(&[Tag::ShortString, Tag::Integer, Tag::Date]), random.next()),
                    _ => match all.get(usize::try_from(random.below(all.len() as u64)).expect("small")) {
                        Some((_, entry)) => {
                            Id::from_bits(entry.order_key.bits().saturating_add(random.below(3)))
                        }
                        None => Id::UNBOUND,
                    },
                };
                let (from, before) = (bound(random), bound(random));
                let descending = random.one_in(2);
                let limit = if random.one_in(2) {
                    usize::MAX
                } else {
                    usize::try_from(random.below(5)).expect("small")
                };
                let filter = random.pick(&[
                    GraphFilter::Any,
                    GraphFilter::Default,
                    GraphFilter::AnyNamed,
                    GraphFilter::Named(graph.graphs[0]),
                ]);
                let bounded = from.is_bound() || before.is_bound();
                let inside = |entry: &OrderedEntry| {
                    let key = entry.order_key;
                    filter.matches(entry.graph)
                        && (!bounded || key.is_bound() && key >= from && (!before.is_bound() || key < before))
                };
                let of_key =
                    all.iter().filter(|(of, entry)| *of == key && inside(entry)).map(|(_, entry)| *entry);
                let mut expected: Vec<OrderedEntry> = of_key.collect();
                if descending {
                    expected.reverse();
                }
                expected.truncate(limit);
                let mut found = Vec::new();
                let range = OrderRange { from, before, descending, limit };
                segment.ordered(key, &range, filter, &mut found).expect("whole");
                assert_eq!(found, expected, "{context}: {key:?} {range:?} {filter:?}");
                listed += found.iter().filter(|entry| entry.order_key.is_bound()).count();
            }
        }
    }
    listed
}

#[test]
fn entries_are_ordered_by_a_property() {
    let seed = seed();
    let mut listed = 0;
    for round in 0..300 {
        let mut random = Random(seed.wrapping_add(round).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let shape =
            GraphParameters { predicates: 1 + random.below(5), ..GraphParameters::random(&mut random) };
        let graph = Graph::random(shape, &mut random);
        let context = format!("seed {seed}, round {round}, {shape:?}");
        let environment = Environment::simulated(seed);
        let memory = graph.build(options(&environment), &Target::Memory);
        memory.validate().unwrap_or_else(|error| panic!("{context}: {error}"));
        listed += compare(&memory, &graph, &mut random, &context);
        let dir = PathBuf::from("/db");
        let spilling = BuildOptions {
            threads: 3,
            memory_bytes: random.below(4000),
            temp_dir: Some(dir.clone()),
            ..options(&environment)
        };
        let mapped = graph.build(spilling, &Target::Directory(dir));
        mapped.validate().unwrap_or_else(|error| panic!("{context}: {error}"));
        compare(&mapped, &graph, &mut random, &context);
    }
    println!("{listed} entries with an order key");
    assert!(listed > 500, "only {listed} entries with an order key were listed");
}

#[test]
fn a_missing_order_is_an_error() {
    let mut random = Random(7);
    let shape = GraphParameters {
        vertices: 9,
        statements: 60,
        predicates: 3,
        types: 2,
        edges: false,
        named_graphs: false,
    };
    let graph = Graph::random(shape, &mut random);
    let plain = BuildOptions { orders: Vec::new(), ..options(&Environment::simulated(1)) };
    let store = graph.build(plain, &Target::Memory);
    let segment = store.segment(graph.predicates[0], Direction::Out).expect("whole").expect("it is there");
    let range = OrderRange { limit: 1, ..OrderRange::default() };
    let error = segment.ordered(graph.vertices[0], &range, GraphFilter::Any, &mut Vec::new());
    assert_eq!(error.expect_err("no order").kind(), ErrorKind::Unsupported);
}

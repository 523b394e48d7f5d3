//! Model test of a store against a list of statements.
//!
//! A store agrees with a naive implementation over a list of statements, for random graphs with parallel
//! edges, named graphs, literals and edges as neighbours, and self-loops; in memory and in files, on one
//! thread and several, with and without temporary files.

use crate::common::{Graph, GraphParameters, Random, compare, options, seed};
use std::path::PathBuf;
use vervet_env::Environment;
use vervet_model::Direction;
use vervet_snapshot::Snapshot;
use vervet_store::{Base, BuildOptions, Store, StoreBuilder, Target};

#[test]
fn random_graphs() {
    let seed = seed();
    for round in 0..150 {
        let mut random = Random(seed.wrapping_add(round).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let shape = GraphParameters::random(&mut random);
        let graph = Graph::random(shape, &mut random);
        let context = format!("seed {seed}, round {round}, {shape:?}");
        let environment = Environment::simulated(seed);
        let memory = graph.build(options(&environment), &Target::Memory);
        memory.validate().unwrap_or_else(|error| panic!("{context}: {error}"));
        compare(&memory, &graph, &mut random, &context);

        let dir = PathBuf::from("/db");
        let spilling = BuildOptions {
            threads: 3,
            memory_bytes: random.below(4000),
            temp_dir: Some(dir.clone()),
            log: None,
            ..options(&environment)
        };
        let mapped = graph.build(spilling, &Target::Directory(dir.clone()));
        mapped.validate().unwrap_or_else(|error| panic!("{context}: {error}"));
        compare(&mapped, &graph, &mut random, &context);
        let names: Vec<PathBuf> = environment.files.list(&dir).expect("it is there");
        assert_eq!(names.len(), 3, "{context}: {names:?}");
        assert_eq!(memory.parts().ok(), mapped.parts().ok(), "{context}");
        let plain = PathBuf::from("/plain");
        graph.build(options(&environment), &Target::Directory(plain.clone()));
        let bytes = |dir: &PathBuf| environment.files.read(&dir.join("segments-1.vvs")).expect("it is there");
        assert!(bytes(&dir) == bytes(&plain), "{context}: sorting in files gives other bytes");
    }
}

#[test]
fn many_keys_and_hubs() {
    let seed = seed();
    let mut random = Random(seed | 1);
    let shape = GraphParameters {
        vertices: 3000,
        statements: 12_000,
        predicates: 4,
        types: 400,
        edges: false,
        named_graphs: false,
    };
    let graph = Graph::random(shape, &mut random);
    let environment = Environment::simulated(seed);
    let store = graph.build(options(&environment), &Target::Memory);
    store.validate().expect("whole");
    compare(&store, &graph, &mut random, &format!("seed {seed}"));
}

/// Columns in the order of the input are framed, with the same results.
#[test]
fn a_social_network_is_small() {
    let seed = seed();
    let mut random = Random(seed | 1);
    let graph = Graph::network(4000, &mut random);
    let environment = Environment::simulated(seed);
    let dir = PathBuf::from("/db");
    let store = graph.build(options(&environment), &Target::Directory(dir.clone()));
    store.validate().expect("whole");
    compare(&store, &graph, &mut random, &format!("seed {seed}"));
    let bytes = |of: usize, direction, part: &str| {
        let segment = Some((graph.predicates[of], direction));
        let parts = store.parts().expect("whole");
        parts.iter().find(|size| size.segment == segment && size.part == part).map_or(0, |size| size.bytes)
    };
    // Two bytes each without frames; edge numbers ascend with the messages.
    assert!(bytes(0, Direction::Out, "edges") < 1000, "seed {seed}");
    assert!(bytes(0, Direction::Out, "neighbours") == 4000, "path queries follow these: a byte each");
    assert!(
        bytes(2, Direction::In, "neighbours") < 6000 && bytes(1, Direction::In, "keys") < 20_000,
        "seed {seed}"
    );
}

#[test]
fn a_store_rebuilds_from_its_statements() {
    let seed = seed();
    let mut random = Random(seed | 1);
    let graph =
        Graph::random(GraphParameters { edges: true, ..GraphParameters::random(&mut random) }, &mut random);
    let environment = Environment::simulated(seed);
    let store = graph.build(options(&environment), &Target::Memory);
    let mut builder = StoreBuilder::new(options(&environment));
    for statement in store.statements() {
        builder.add(&[statement.expect("whole")]).expect("room");
    }
    let copy = builder.finish(graph.dictionary.clone(), &Target::Memory).expect("a good graph");
    compare(&copy, &graph, &mut random, "copy");
}

#[test]
fn an_empty_store_is_valid() {
    let store = Store::empty().expect("cannot fail");
    store.validate().expect("whole");
    assert_eq!((store.statement_count(), store.vertex_count()), (0, 0));
    assert_eq!(store.statements().count(), 0);
    let environment = Environment::simulated(1);
    let dictionary = vervet_dictionary::DictionaryBuilder::new().finish().expect("small");
    let target = Target::Directory(PathBuf::from("/deep/down/db"));
    let store = StoreBuilder::new(options(&environment)).finish(dictionary, &target).expect("room");
    store.validate().expect("whole");
}

#[test]
fn invalid_statements_are_refused() {
    let environment = Environment::simulated(1);
    let mut dictionary = vervet_dictionary::DictionaryBuilder::new();
    let v = dictionary.intern_iri("http://e/v").expect("short");
    let image = dictionary.finish().expect("small");
    use vervet_model::Id;
    let none = Id::UNBOUND;
    let plain = vervet_store::Statement { subject: v, predicate: v, object: v, graph: none, edge: none };
    let one = vervet_store::Statement { edge: Id::edge(1), ..plain };
    for (statements, message) in [
        (
            vec![one, vervet_store::Statement { object: Id::new(vervet_model::Tag::Boolean, 1), ..one }],
            "two statements",
        ),
        (vec![vervet_store::Statement { subject: Id::edge(3), ..plain }], "edge 3, which does not exist"),
        (vec![vervet_store::Statement { object: Id::vertex(1), ..plain }], "cannot be the object"),
        (vec![vervet_store::Statement { subject: Id::literal(0), ..plain }], "cannot be the subject"),
        (vec![vervet_store::Statement { predicate: Id::vertex(9), ..plain }], "cannot be the predicate"),
        (vec![vervet_store::Statement { graph: Id::literal(0), ..plain }], "cannot be the graph"),
        (vec![vervet_store::Statement { object: none, ..plain }], "cannot be the object"),
    ] {
        let mut builder = StoreBuilder::new(options(&environment));
        builder.add(&statements).expect("room");
        let error = builder.finish(image.clone(), &Target::Memory).map(drop).expect_err(message);
        assert!(error.message().contains(message), "{error}");
    }
}

#[test]
fn statements_can_be_rewritten_before_finishing() {
    let seed = seed();
    for round in 0..20 {
        let mut random = Random(seed.wrapping_add(round).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let shape = GraphParameters { edges: true, ..GraphParameters::random(&mut random) };
        let graph = Graph::random(shape, &mut random);
        let environment = Environment::simulated(seed);
        let dir = PathBuf::from("/db");
        for memory_bytes in [1 << 30, random.below(4000)] {
            let options = BuildOptions { memory_bytes, temp_dir: Some(dir.clone()), ..options(&environment) };
            let mut builder = StoreBuilder::new(options);
            builder.add(&graph.statements).expect("room");
            let mut seen = Vec::new();
            let keep = |statement: &vervet_store::Statement| statement.object.payload() % 5 != 3;
            builder
                .rewrite(&mut |statement| {
                    seen.push(*statement);
                    statement.graph = vervet_model::Id::UNBOUND;
                    keep(statement)
                })
                .expect("room");
            let mut expected = graph.statements.clone();
            assert_same(seen, expected.clone(), &format!("seed {seed}, round {round}"));
            let mut found = Vec::new();
            builder
                .rewrite(&mut |statement| {
                    found.push(*statement);
                    true
                })
                .expect("room");
            expected.iter_mut().for_each(|statement| statement.graph = vervet_model::Id::UNBOUND);
            expected.retain(keep);
            assert_same(found, expected, &format!("seed {seed}, round {round}"));
        }
    }
}

/// Compares the statements as sets; one without an edge may be missing where the same has one: spilled files
/// are sorted and deduplicated.
fn assert_same(found: Vec<vervet_store::Statement>, expected: Vec<vervet_store::Statement>, what: &str) {
    let found: std::collections::BTreeSet<_> = found.into_iter().collect();
    let expected: std::collections::BTreeSet<_> = expected.into_iter().collect();
    assert!(found.is_subset(&expected), "{what}");
    for missing in expected.difference(&found) {
        let twin = |other: &&vervet_store::Statement| {
            other.edge.is_bound() && vervet_store::Statement { edge: missing.edge, ..**other } == *missing
        };
        assert!(!missing.edge.is_bound() && found.iter().any(|other| twin(&other)), "{what}: {missing:?}");
    }
}

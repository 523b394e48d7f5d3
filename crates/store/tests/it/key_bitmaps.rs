//! Repeated checks for one type give the same results: the bitmap built after a while changes none.

use crate::common::{Graph, GraphParameters, Random, options, seed};
use std::collections::BTreeSet;
use vervet_env::Environment;
use vervet_model::{Direction, Id};
use vervet_snapshot::{EntryFilter, GraphFilter, Snapshot};
use vervet_store::Target;

#[test]
fn checks_do_not_depend_on_repetition() {
    let seed = seed();
    for named_graphs in [false, true] {
        let mut random = Random(seed | 1);
        let shape = GraphParameters {
            vertices: 2000,
            statements: 9000,
            predicates: 3,
            types: 6,
            edges: false,
            named_graphs,
        };
        let graph = Graph::random(shape, &mut random);
        let store = graph.build(options(&Environment::simulated(seed)), &Target::Memory);
        let keys: Vec<Id> = (0..store.vertex_count() + 70).map(Id::vertex).chain([Id::literal(3)]).collect();
        let mut hits = 0;
        for (predicate, direction) in graph.predicates.iter().flat_map(|p| Direction::BOTH.map(|d| (*p, d))) {
            let Some(segment) = store.segment(predicate, direction).expect("whole") else { continue };
            let of_predicate = graph.statements.iter().filter(|one| one.predicate == predicate);
            let neighbours: BTreeSet<Id> = of_predicate
                .map(|one| if direction == Direction::Out { one.object } else { one.subject })
                .take(5)
                .collect();
            for neighbour in neighbours {
                for graph in [GraphFilter::Default, GraphFilter::Any] {
                    let filter = EntryFilter { graph, ..EntryFilter::default() };
                    for part in keys.chunks(700).cycle().take(24) {
                        let (mut found, mut expected) = (vec![5], vec![5]);
                        segment.check_constant(part, neighbour, filter, &mut found).expect("whole");
                        let wanted = vec![neighbour; part.len()];
                        segment.check(part, &wanted, filter, &mut expected).expect("whole");
                        assert_eq!(found, expected, "seed {seed}: {predicate:?} {direction:?} {neighbour:?}");
                        hits += found.len() - 1;
                    }
                }
            }
        }
        assert!(hits > 1000, "seed {seed}: {hits} hits");
    }
}

//! Algorithms against reference implementations of a few lines, on random networks with printed seeds, and
//! against the results for the graph "modern" in TinkerPop's documentation and feature files.

use std::collections::{BTreeMap, BTreeSet};
use vervet_graph::algorithm::{
    ArcSource, Follow, Network, PageRank, PathOptions, PeerPressure, ResourceLimits, SegmentArcs,
    ShortestPaths, WeightedArc, components, name_order, page_rank, peer_pressure,
};
use vervet_graph::{Edge, Graph, Vertex};
use vervet_kernel::{Control, Limits};
use vervet_model::vocab::{KEY_NAMESPACE, LABEL_NAMESPACE, RDF_TYPE, VERTEX_NAMESPACE, name_iri};
use vervet_model::{ErrorKind, Id, Result};
use vervet_testkit::{MemorySnapshot, Random, Statement, seed};

const ANY: [&str; 0] = [];

/// TinkerPop's toy graph: people 1, 2, 4, 6, software 3, 5.
fn modern() -> MemorySnapshot {
    let mut graph = MemorySnapshot::default();
    let node = |iri: String| oxrdf::Term::from(oxrdf::NamedNode::new_unchecked(iri));
    let kind = graph.intern(&node(RDF_TYPE.to_owned()));
    let thing = graph.intern(&node(name_iri(LABEL_NAMESPACE, "thing")));
    let [weight, knows, created] =
        ["weight", "knows", "created"].map(|key| graph.intern(&node(name_iri(KEY_NAMESPACE, key))));
    let vertices =
        ["1", "2", "3", "4", "5", "6"].map(|id| graph.intern(&node(name_iri(VERTEX_NAMESPACE, id))));
    let plain = |subject, predicate, object| Statement {
        subject,
        predicate,
        object,
        graph: Id::UNBOUND,
        edge: Id::UNBOUND,
    };
    for vertex in vertices {
        graph.add(plain(vertex, kind, thing));
    }
    for (source, label, target, strength) in [
        (1, knows, 2, 0.5),
        (1, knows, 4, 1.0),
        (1, created, 3, 0.4),
        (4, created, 5, 1.0),
        (4, created, 3, 0.4),
        (6, created, 3, 0.2),
    ] {
        let edge = graph.add_edge(vertices[source - 1], label, vertices[target - 1], Id::UNBOUND);
        let value = graph.intern(&oxrdf::Literal::from(strength).into());
        graph.add(plain(edge, weight, value));
    }
    graph.finish()
}

/// Random vertices and arcs, including loops and parallel arcs.
fn network(random: &mut Random, control: &Control<'_>, vertices_max: u64) -> (Network, Vec<[u32; 2]>) {
    let count = 1 + random.below(vertices_max);
    let arcs: Vec<[u32; 2]> = (0..random.below(3 * count))
        .map(|_| [(); 2].map(|()| u32::try_from(random.below(count)).expect("there are few")))
        .collect();
    let limits = ResourceLimits { control, threads: 1 };
    let network = Network::new((0..count).map(Id::vertex).collect(), &arcs, &limits).expect("it is small");
    (network, arcs)
}

/// Names whose order is not that of the numbers.
fn names(network: &Network, limits: &ResourceLimits<'_>) -> (Vec<String>, Vec<u32>) {
    let name = |id: Id| format!("{}", (id.payload() * 7919) % 10_007);
    let order = name_order(network.vertices(), &mut |id| Ok(name(id)), limits).expect("nothing fails");
    (network.vertices().iter().map(|id| name(*id)).collect(), order)
}

#[test]
fn ranks_are_those_of_messages_passed_by_hand() -> Result<()> {
    let mut random = Random(seed());
    for _ in 0..300 {
        let control = Control::new(Limits::default());
        let (network, arcs) = network(&mut random, &control, 30);
        let count = network.len();
        let options = PageRank { alpha: 0.1 * random.below(11) as f64, times: 7, epsilon: 0.0 };
        let first: Option<Vec<f64>> =
            (!random.one_in(2)).then(|| (0..count).map(|_| random.below(3) as f64).collect());
        let ranks = page_rank(
            &network,
            &options,
            first.as_deref(),
            &ResourceLimits { control: &control, threads: 1 },
        )?;

        let (mut model, mut teleport) = (first.clone().unwrap_or(vec![0.0; count]), 0.0);
        if first.is_none() {
            teleport = 1.0;
        }
        for round in 0..=7 {
            let mut next = if round == 0 { model.clone() } else { vec![0.0; count] };
            let leaving =
                |vertex: usize| arcs.iter().filter(|[source, _]| *source as usize == vertex).count();
            if round > 0 {
                for [source, target] in &arcs {
                    let source = *source as usize;
                    next[*target as usize] += options.alpha * model[source] / leaving(source) as f64;
                }
            }
            next.iter_mut().for_each(|rank| *rank += teleport / count as f64);
            teleport = (0..count)
                .map(|v| next[v] * (1.0 - options.alpha * f64::from(u8::from(leaving(v) > 0))))
                .sum();
            model = next;
        }
        for (rank, expected) in ranks.iter().zip(&model) {
            assert!((rank - expected).abs() < 1e-9, "{rank} is not {expected}: {arcs:?} {options:?}");
        }
        let total = first.map_or(1.0, |first| first.iter().sum());
        assert!(
            (ranks.iter().sum::<f64>() - total).abs() < 1e-9 * (1.0 + total),
            "the sum of ranks is preserved"
        );
    }
    Ok(())
}

#[test]
fn components_have_the_least_name_that_reaches_them() -> Result<()> {
    let mut random = Random(seed());
    for _ in 0..300 {
        let control = Control::new(Limits::default());
        let limits = ResourceLimits { control: &control, threads: 1 };
        let (network, arcs) = network(&mut random, &control, 40);
        let (names, order) = names(&network, &limits);
        let found = components(&network, &order, &limits)?;
        let mut model = names.clone();
        loop {
            let before = model.clone();
            for [source, target] in &arcs {
                let name = model[*source as usize].clone();
                let known = &mut model[*target as usize];
                *known = name.min(known.clone());
            }
            if model == before {
                break;
            }
        }
        let found: Vec<&String> = found.iter().map(|vertex| &names[*vertex as usize]).collect();
        assert_eq!(found, model.iter().collect::<Vec<_>>(), "{arcs:?}");
    }
    Ok(())
}

#[test]
fn clusters_are_those_of_votes_counted_by_hand() -> Result<()> {
    let mut random = Random(seed());
    for _ in 0..300 {
        let control = Control::new(Limits::default());
        let limits = ResourceLimits { control: &control, threads: 1 };
        let (network, arcs) = network(&mut random, &control, 20);
        let (names, order) = names(&network, &limits);
        let strengths: Vec<f64> = (0..network.len()).map(|_| random.below(3) as f64).collect();
        let found = peer_pressure(&network, &PeerPressure { times: 5 }, Some(&strengths), &order, &limits)?;
        let mut model = names.clone();
        for _ in 0..5 {
            let votes_of = |vertex: usize| {
                let mut votes = BTreeMap::from([(model[vertex].clone(), strengths[vertex])]);
                for [source, _] in arcs.iter().filter(|[_, target]| *target as usize == vertex) {
                    let source = *source as usize;
                    *votes.entry(model[source].clone()).or_default() += strengths[source];
                }
                votes
            };
            model = (0..network.len())
                .map(|vertex| {
                    let votes = votes_of(vertex);
                    let most = votes.values().copied().fold(0.0, f64::max);
                    let best = votes.iter().find(|(_, count)| **count == most && most > 0.0);
                    best.map_or(names[vertex].clone(), |(name, _)| name.clone())
                })
                .collect();
        }
        let found: Vec<&String> = found.iter().map(|vertex| &names[*vertex as usize]).collect();
        assert_eq!(found, model.iter().collect::<Vec<_>>(), "{arcs:?} {strengths:?}");
    }
    Ok(())
}

#[test]
fn results_are_identical_for_any_threads() -> Result<()> {
    let mut random = Random(seed());
    let control = Control::new(Limits::default());
    let count = 100_000;
    let mut arcs = Vec::new();
    for _ in 0..300_000 {
        arcs.push([(); 2].map(|()| u32::try_from(random.below(count)).expect("it is small")));
    }
    let one = ResourceLimits { control: &control, threads: 1 };
    let network = Network::new((0..count).map(Id::vertex).collect(), &arcs, &one)?;
    let order: Vec<u32> = (0..100_000).collect();
    let ranks = page_rank(&network, &PageRank::default(), None, &one)?;
    let clusters = peer_pressure(&network, &PeerPressure { times: 3 }, None, &order, &one)?;
    for threads in [2, 5] {
        let limits = ResourceLimits { control: &control, threads };
        let again = page_rank(&network, &PageRank::default(), None, &limits)?;
        assert!(ranks.iter().zip(&again).all(|(a, b)| a.to_bits() == b.to_bits()));
        assert_eq!(peer_pressure(&network, &PeerPressure { times: 3 }, None, &order, &limits)?, clusters);
    }
    Ok(())
}

/// Arcs in a list, with distances.
struct List(Vec<(u64, u64, f64)>);

impl ArcSource for List {
    fn arcs(&mut self, vertices: &[Id], add: &mut dyn FnMut(usize, WeightedArc)) -> Result<()> {
        for (number, (source, target, distance)) in (0..).zip(&self.0) {
            let [from, to] = [source, target].map(|v| Vertex::from_id(Id::vertex(*v)).expect("it is one"));
            let edge = Edge::from_ids(from, Id::vertex(99), to, Id::edge(number));
            for row in (0..vertices.len()).filter(|row| vertices[*row] == from.id()) {
                add(row, WeightedArc { to: to.id(), edge, distance: *distance });
            }
        }
        Ok(())
    }
}

/// Every simple path from a vertex, as vertices and numbers of arcs, with its length.
fn all_paths(
    arcs: &[(u64, u64, f64)],
    path: &[u64],
    edges: &[u64],
    length: f64,
    all: &mut Vec<(Vec<u64>, Vec<u64>, f64)>,
) {
    all.push((path.to_vec(), edges.to_vec(), length));
    for (number, (_, to, distance)) in
        (0..).zip(arcs).filter(|(_, (from, to, _))| path.last() == Some(from) && !path.contains(to))
    {
        all_paths(arcs, &[path, &[*to]].concat(), &[edges, &[number]].concat(), length + distance, all);
    }
}

#[test]
fn shortest_paths_are_the_shortest_of_all_paths() -> Result<()> {
    let mut random = Random(seed());
    for _ in 0..400 {
        let count = 1 + random.below(6);
        let weighted = random.one_in(2);
        let options = PathOptions {
            weighted,
            distance_max: if random.one_in(2) { f64::INFINITY } else { random.below(4) as f64 },
            edges: random.one_in(2),
        };
        // Small whole distances: many are equal, some are 0.
        let distance = |random: &mut Random| if weighted { random.below(3) as f64 } else { 1.0 };
        let arcs: Vec<(u64, u64, f64)> = (0..random.below(12))
            .map(|_| (random.below(count), random.below(count), distance(&mut random)))
            .collect();
        let control = Control::new(Limits::default());
        let mut search =
            ShortestPaths::new(List(arcs.clone()), options, ResourceLimits { control: &control, threads: 1 });
        // The second search of a vertex uses the arcs cached by the first.
        for source in (0..count).chain(0..count) {
            let mut found = Vec::new();
            search.from(Id::vertex(source), &mut |_, _| Ok(true), &mut |_, path| {
                let vertices: Vec<u64> = path.vertices.iter().map(|id| id.payload()).collect();
                let edges = path.edges.iter().filter_map(|edge| edge.id()).map(Id::payload).collect();
                found.push((vertices, if options.edges { edges } else { Vec::new() }));
                Ok(())
            })?;
            let mut all = Vec::new();
            all_paths(&arcs, &[source], &[], 0.0, &mut all);
            let mut expected = BTreeSet::new();
            for (vertices, edges, length) in &all {
                let same_end = |other: &&(Vec<u64>, Vec<u64>, f64)| other.0.last() == vertices.last();
                let least =
                    all.iter().filter(same_end).map(|(.., length)| *length).fold(f64::INFINITY, f64::min);
                if *length <= least && *length <= options.distance_max {
                    expected
                        .insert((vertices.clone(), if options.edges { edges.clone() } else { Vec::new() }));
                }
            }
            let distinct: BTreeSet<_> = found.iter().cloned().collect();
            assert_eq!(distinct.len(), found.len(), "a repeated path: {found:?} {arcs:?} {options:?}");
            assert_eq!(distinct, expected, "from {source}: {arcs:?} {options:?}");
        }
        drop(search);
        assert_eq!(control.memory_bytes(), 0);
    }
    Ok(())
}

#[test]
fn negative_distances_limits_and_bad_numbers_are_errors() -> Result<()> {
    let control = Control::new(Limits { memory_bytes: Some(1000), ..Limits::default() });
    let limits = ResourceLimits { control: &control, threads: 2 };
    let weighted = PathOptions { weighted: true, ..PathOptions::default() };
    let mut search = ShortestPaths::new(List(vec![(0, 1, -1.0)]), weighted, limits);
    let error =
        search.from(Id::vertex(0), &mut |_, _| Ok(true), &mut |_, _| Ok(())).expect_err("it is negative");
    assert_eq!(error.kind(), ErrorKind::Query);
    let many: Vec<Id> = (0..10_000).map(Id::vertex).collect();
    let error = Network::new(many, &[], &limits).expect_err("it is too large");
    assert_eq!(error.kind(), ErrorKind::MemoryLimit);
    let control = Control::new(Limits::default());
    let limits = ResourceLimits { control: &control, threads: 1 };
    let network = Network::new(vec![Id::vertex(0)], &[[0, 0]], &limits)?;
    for alpha in [-0.1, 1.1, f64::NAN] {
        let options = PageRank { alpha, ..PageRank::default() };
        assert_eq!(
            page_rank(&network, &options, None, &limits).expect_err("no share").kind(),
            ErrorKind::Input
        );
    }
    assert!(page_rank(&network, &PageRank::default(), Some(&[]), &limits).is_err());
    assert!(Network::new(vec![Id::vertex(0)], &[[0, 1]], &limits).is_err());
    Ok(())
}

#[test]
fn the_modern_graph_has_the_results_of_tinkerpop() -> Result<()> {
    let snapshot = modern();
    let graph = Graph::new(&snapshot);
    let control = Control::new(Limits::default());
    let limits = ResourceLimits { control: &control, threads: 2 };
    let network = Network::read(&snapshot, &ANY, Follow::Out, &limits)?;
    assert_eq!((network.len(), network.arc_count()), (6, 6));
    let name = |id: Id| graph.external_id(Vertex::from_id(id).expect("it is a vertex"));
    let ranks = page_rank(&network, &PageRank::default(), None, &limits)?;
    // Release notes of TinkerPop 3.3, in which rounds ended a little earlier.
    let known = [
        ("1", 0.113_754_858_280_405_75),
        ("2", 0.145_985_401_459_854_06),
        ("3", 0.304_720_826_618_636_86),
        ("4", 0.145_985_401_459_854_06),
        ("5", 0.175_798_653_900_843_7),
        ("6", 0.113_754_858_280_405_75),
    ];
    for ((id, rank), (known_name, known_rank)) in network.vertices().iter().zip(ranks).zip(known) {
        assert_eq!(name(*id)?, known_name);
        assert!((rank - known_rank).abs() < 1e-6, "{known_name} has {rank}");
    }
    let order = name_order(network.vertices(), &mut |id| name(id), &limits)?;
    let named = |found: Vec<u32>| -> Result<Vec<String>> {
        found.into_iter().map(|vertex| name(network.vertices()[vertex as usize])).collect()
    };
    let both = Network::read(&snapshot, &ANY, Follow::Both, &limits)?;
    assert_eq!(named(components(&both, &order, &limits)?)?, ["1"; 6]);
    let knows = Network::read(&snapshot, &["knows"], Follow::Both, &limits)?;
    assert_eq!(named(components(&knows, &order, &limits)?)?, ["1", "1", "3", "1", "5", "6"]);
    let clusters = peer_pressure(&network, &PeerPressure::default(), None, &order, &limits)?;
    assert_eq!(named(clusters)?, ["1", "1", "1", "1", "1", "6"]);

    let marko = graph.vertex("1")?.expect("it is there").id();
    let josh = graph.vertex("4")?.expect("it is there").id();
    let weighted = PathOptions { weighted: true, ..PathOptions::default() };
    for (distance, options, expected) in [
        (None, PathOptions::default(), "1 4: 1"),
        (Some("weight"), weighted, "1 3 4: 0.8"),
        (Some("height"), weighted, "1 4: 0|1 3 4: 0"),
    ] {
        let arcs = SegmentArcs::new(&snapshot, &ANY, Follow::Both, distance, options.edges)?;
        let mut search = ShortestPaths::new(arcs, options, limits);
        let mut found = BTreeSet::new();
        search.from(marko, &mut |_, id| Ok(id == josh), &mut |_, path| {
            let names: Result<Vec<String>> = path.vertices.iter().map(|id| name(*id)).collect();
            found.insert(format!("{}: {}", names?.join(" "), path.distance));
            Ok(())
        })?;
        let expected: BTreeSet<String> = expected.split('|').map(str::to_owned).collect();
        assert_eq!(found, expected, "{distance:?}");
    }
    Ok(())
}

//! The algorithms of simple graphs against definitions of a few lines, on random graphs, with one and with
//! three threads. NetworkX judges them too (python/tests/test_networkx.py).

#![allow(clippy::cast_possible_truncation, reason = "the graphs are small")]

use std::collections::{BTreeSet, VecDeque};
use vervet_graph::algorithm::{
    Adjacency, BreadthFirst, Louvain, PowerIteration, ResourceLimits, betweenness, core_numbers,
    label_propagation, louvain, power_iteration, strong_components, triangles, weak_components,
};
use vervet_kernel::{Control, Limits};
use vervet_model::{ErrorKind, Result};

/// Arcs of a random graph; loops and parallel arcs occur.
fn arcs(count: u32, number: usize, seed: u64) -> Vec<[u32; 2]> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32 % count
    };
    (0..number).map(|_| [next(), next()]).collect()
}

/// Calls `check` with graphs of several densities, and one and three threads; results must be equal.
fn each<R: PartialEq + std::fmt::Debug>(
    check: impl Fn(&Adjacency, &ResourceLimits<'_>) -> Result<R>,
) -> Result<()> {
    let control = Control::new(Limits::default());
    for (count, number) in [(1, 0), (2, 1), (10, 12), (30, 30), (30, 90), (40, 400)] {
        for seed in 0..10 {
            let arcs = arcs(count, number, seed);
            let run = |threads| {
                let limits = ResourceLimits { control: &control, threads };
                check(&Adjacency::new(count as usize, &arcs, &limits)?, &limits)
            };
            assert_eq!(run(1)?, run(3)?, "{count} vertices, {number} arcs, seed {seed}");
        }
    }
    Ok(())
}

/// For each vertex the steps to all others.
fn distances(graph: &Adjacency) -> Vec<Vec<Option<u32>>> {
    let from = |source: usize| {
        let mut steps = vec![None; graph.len()];
        steps[source] = Some(0);
        let mut queue = VecDeque::from([source]);
        while let Some(vertex) = queue.pop_front() {
            for &next in graph.neighbours(vertex) {
                if steps[next as usize].is_none() {
                    steps[next as usize] = steps[vertex].map(|steps: u32| steps + 1);
                    queue.push_back(next as usize);
                }
            }
        }
        steps
    };
    (0..graph.len()).map(from).collect()
}

#[test]
fn components_are_those_of_reachability() -> Result<()> {
    each(|graph, limits| {
        let reach = distances(graph);
        let strong = strong_components(graph, limits)?;
        let both = graph.symmetric(limits)?;
        let weak = weak_components(&both, limits)?;
        let connected = distances(&both);
        for a in 0..graph.len() {
            for b in 0..graph.len() {
                assert_eq!(strong[a] == strong[b], reach[a][b].is_some() && reach[b][a].is_some());
                assert_eq!(weak[a] == weak[b], connected[a][b].is_some());
                assert!(reach[a][b].is_none() || strong[b] <= strong[a]);
            }
        }
        Ok((strong, weak))
    })
}

#[test]
fn searches_find_shortest_paths() -> Result<()> {
    each(|graph, limits| {
        let expected = distances(graph);
        let mut search = BreadthFirst::new(graph, limits)?;
        for (source, expected) in expected.iter().enumerate() {
            let reached = search.from(source as u32, None, u32::MAX, limits)?;
            let mut steps = vec![None; graph.len()];
            for ((vertex, step), parent) in reached.vertices.iter().zip(&reached.steps).zip(&reached.parents)
            {
                steps[*vertex as usize] = Some(*step);
                let before = expected[*parent as usize];
                assert!(*step == 0 || before == Some(*step - 1));
            }
            assert_eq!(&steps, expected);
            let near = search.from(source as u32, None, 1, limits)?;
            assert_eq!(near.vertices.len(), expected.iter().flatten().filter(|s| **s <= 1).count());
            for (target, expected) in expected.iter().enumerate() {
                let found = search.from(source as u32, Some(target as u32), u32::MAX, limits)?;
                let last = found.vertices.iter().position(|vertex| *vertex as usize == target);
                assert_eq!(last.map(|at| found.steps[at]), *expected);
            }
        }
        Ok(())
    })
}

#[test]
fn cores_are_what_remains_of_small_degrees() -> Result<()> {
    each(|graph, limits| {
        let graph = graph.symmetric(limits)?;
        let found = core_numbers(&graph, limits)?;
        for k in 1..=graph.len() as u32 {
            let mut members: BTreeSet<u32> = (0..graph.len() as u32).collect();
            loop {
                let degree = |vertex: u32| {
                    let all = graph.neighbours(vertex as usize).iter();
                    all.filter(|other| **other != vertex && members.contains(other)).count() as u32
                };
                let kept: BTreeSet<u32> = members.iter().copied().filter(|v| degree(*v) >= k).collect();
                if kept.len() == members.len() {
                    break;
                }
                members = kept;
            }
            for (vertex, core) in (0..).zip(&found) {
                assert_eq!(*core >= k, members.contains(&vertex));
            }
        }
        Ok(found)
    })
}

#[test]
fn triangles_are_triples_of_neighbours() -> Result<()> {
    each(|graph, limits| {
        let graph = graph.symmetric(limits)?;
        let has = |a: usize, b: usize| graph.neighbours(a).contains(&(b as u32));
        let mut expected = vec![0_u64; graph.len()];
        for a in 0..graph.len() {
            for b in 0..a {
                for c in 0..b {
                    if has(a, b) && has(b, c) && has(a, c) {
                        [a, b, c].iter().for_each(|vertex| expected[*vertex] += 1);
                    }
                }
            }
        }
        assert_eq!(triangles(&graph, limits)?, expected);
        Ok(())
    })
}

/// By the definition: the share of shortest paths through each vertex, from numbers of paths.
#[test]
fn betweenness_is_the_share_of_paths() -> Result<()> {
    each(|graph, limits| {
        let steps = distances(graph);
        let count = graph.len();
        let mut paths = vec![vec![0.0_f64; count]; count];
        for source in 0..count {
            let mut order: Vec<usize> = (0..count).filter(|v| steps[source][*v].is_some()).collect();
            order.sort_by_key(|vertex| steps[source][*vertex]);
            paths[source][source] = 1.0;
            for vertex in order {
                for &next in graph.neighbours(vertex) {
                    if steps[source][next as usize] == steps[source][vertex].map(|steps| steps + 1) {
                        paths[source][next as usize] += paths[source][vertex];
                    }
                }
            }
        }
        let mut expected = vec![0.0_f64; count];
        for source in 0..count {
            for target in (0..count).filter(|target| *target != source) {
                let Some(total) = steps[source][target] else { continue };
                for through in (0..count).filter(|through| *through != source && *through != target) {
                    if let (Some(a), Some(b)) = (steps[source][through], steps[through][target])
                        && a + b == total
                    {
                        let share = paths[source][through] * paths[through][target];
                        expected[through] += share / paths[source][target];
                    }
                }
            }
        }
        let sources: Vec<u32> = (0..count as u32).collect();
        let found = betweenness(graph, &sources, false, limits)?;
        for (found, expected) in found.iter().zip(&expected) {
            assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        }
        Ok(found)
    })
}

#[test]
fn ranks_are_a_fixed_point() -> Result<()> {
    each(|graph, limits| {
        let incoming = graph.reversed(limits)?;
        let count = graph.len();
        let jumps: Vec<f64> =
            (0..count).map(|v| 2.0 * (v + 1) as f64 / (count * (count + 1)) as f64).collect();
        let options = PowerIteration {
            alpha: 0.85,
            rounds_max: 500,
            tolerance: 1e-14,
            first: None,
            jumps: Some(&jumps),
            dangling: None,
        };
        let ranks = power_iteration(graph, &incoming, &options, limits)?.expect("it converges");
        assert!((ranks.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        let lost: f64 = (0..count).filter(|v| graph.neighbours(*v).is_empty()).map(|v| ranks[v]).sum();
        for vertex in 0..count {
            let share =
                |source: &u32| ranks[*source as usize] / graph.neighbours(*source as usize).len() as f64;
            let arrived: f64 = incoming.neighbours(vertex).iter().map(share).sum();
            let expected = 0.85 * (arrived + lost * jumps[vertex]) + 0.15 * jumps[vertex];
            assert!((ranks[vertex] - expected).abs() < 1e-9);
        }
        let few = PowerIteration { rounds_max: 0, ..options };
        assert_eq!(power_iteration(graph, &incoming, &few, limits)?, None);
        Ok(ranks)
    })
}

fn modularity(graph: &Adjacency, community: &[u32]) -> f64 {
    let has_loop = |vertex: usize| graph.neighbours(vertex).contains(&(vertex as u32));
    let degree = |vertex: usize| (graph.neighbours(vertex).len() + usize::from(has_loop(vertex))) as f64;
    let twice: f64 = (0..graph.len()).map(degree).sum();
    let mut sum = 0.0;
    for a in 0..graph.len() {
        for b in (0..graph.len()).filter(|b| community[*b] == community[a]) {
            let arcs = match a == b {
                true => 2.0 * f64::from(has_loop(a)),
                false => f64::from(graph.neighbours(a).contains(&(b as u32))),
            };
            sum += arcs - degree(a) * degree(b) / twice;
        }
    }
    sum / twice
}

#[test]
fn louvain_raises_the_modularity() -> Result<()> {
    each(|graph, limits| {
        let graph = graph.symmetric(limits)?;
        if graph.arc_count() == 0 {
            return Ok(Vec::new());
        }
        let alone: Vec<u32> = (0..graph.len() as u32).collect();
        let mut all = Vec::new();
        for seed in [None, Some(7)] {
            let levels = louvain(&graph, &Louvain { seed, ..Louvain::default() }, limits)?;
            let mut before = modularity(&graph, &alone);
            for level in &levels {
                let after = modularity(&graph, level);
                assert!(after >= before - 1e-9, "{after} after {before}");
                before = after;
            }
            all.push(levels);
        }
        Ok(all)
    })
}

#[test]
fn louvain_finds_two_cliques() -> Result<()> {
    let control = Control::new(Limits::default());
    let limits = ResourceLimits { control: &control, threads: 1 };
    let clique = |from: u32| (0..6).flat_map(move |a| (0..a).map(move |b| [from + a, from + b]));
    let arcs: Vec<[u32; 2]> = clique(0).chain(clique(6)).chain([[0, 6]]).collect();
    let graph = Adjacency::new(12, &arcs, &limits)?.symmetric(&limits)?;
    let levels = louvain(&graph, &Louvain::default(), &limits)?;
    assert_eq!(levels.last(), Some(&vec![0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]));
    Ok(())
}

#[test]
fn labels_are_most_frequent_among_neighbours() -> Result<()> {
    each(|graph, limits| {
        let graph = graph.symmetric(limits)?;
        let labels = label_propagation(&graph, limits)?;
        for vertex in 0..graph.len() {
            let count = |label: u32| {
                let neighbours = graph.neighbours(vertex).iter();
                neighbours.filter(|other| labels[**other as usize] == label).count()
            };
            assert!((0..graph.len() as u32).all(|label| count(label) <= count(labels[vertex])));
        }
        Ok(labels)
    })
}

#[test]
fn limits_end_every_algorithm() -> Result<()> {
    let free = Control::new(Limits::default());
    let limits = ResourceLimits { control: &free, threads: 1 };
    let graph = Adjacency::new(5000, &arcs(5000, 200_000, 1), &limits)?.symmetric(&limits)?;
    let cancelled = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let stopped = Control::new(Limits { cancelled: Some(cancelled), ..Limits::default() });
    let limits = ResourceLimits { control: &stopped, threads: 2 };
    let rank = PowerIteration {
        alpha: 0.85,
        rounds_max: 100,
        tolerance: 1e-9,
        first: None,
        jumps: None,
        dangling: None,
    };
    let failures = [
        strong_components(&graph, &limits).err(),
        weak_components(&graph, &limits).err(),
        core_numbers(&graph, &limits).err(),
        triangles(&graph, &limits).err(),
        betweenness(&graph, &[0, 1, 2], false, &limits).err(),
        power_iteration(&graph, &graph, &rank, &limits).err(),
        louvain(&graph, &Louvain::default(), &limits).err(),
        label_propagation(&graph, &limits).err(),
        BreadthFirst::new(&graph, &limits).and_then(|mut s| s.from(0, None, u32::MAX, &limits)).err(),
        graph.reversed(&limits).err(),
        graph.symmetric(&limits).err(),
    ];
    for failure in failures {
        assert_eq!(failure.map(|error| error.kind()), Some(ErrorKind::Cancelled));
    }
    Ok(())
}

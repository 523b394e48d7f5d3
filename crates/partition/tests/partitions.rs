//! A graph in several partitions against the list of its statements, and against one store with them.
//!
//! Random graphs with parallel edges, named graphs, literals and edges as neighbours, statements about edges,
//! types, orders by a property; 2 to 64 partitions; in memory, sorted in memory or in temporary files.

#[path = "../../store/tests/it/common/mod.rs"]
mod common;

use common::{Graph, GraphParameters, Random, compare_snapshot, options, seed};
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use vervet_env::Environment;
use vervet_model::Result;
use vervet_model::{Direction, Id, Partitioning};
use vervet_partition::{Answer, PartitionDirectory, PartitionedBase, Remote};
use vervet_snapshot::{ClassId, Cursor, EntryFilter, Expansion, GraphFilter, OrderRange, Snapshot};
use vervet_store::{Base, BuildOptions, Statement, Store, Target};

fn partitioned(graph: &Graph, options: BuildOptions, partitioning: Partitioning) -> PartitionedBase {
    let builder = graph.builder(options).expect("a good graph");
    let stores = builder.finish_parts(graph.dictionary.clone(), partitioning).expect("a good graph");
    PartitionedBase::new(partitioning, stores).expect("one store for each partition")
}

/// Compares what the list of statements does not have: statistics, classes, orders.
fn compare_with_store(base: &PartitionedBase, whole: &Store, random: &mut Random, context: &str) -> usize {
    assert_eq!(base.orders(), whole.orders(), "{context}");
    assert_eq!(base.edge_count(), whole.edge_count(), "{context}");
    for class in (0..20).map(ClassId) {
        assert_eq!(base.class_size(class), whole.class_size(class), "{context}");
    }
    compare_entries_together(base, whole, random, context);
    let mut listed = 0;
    for (predicate, _) in whole.predicates() {
        for direction in Direction::BOTH {
            let context = format!("{context}, {predicate:?} {direction:?}");
            let segment = |base: &dyn Base| base.segment_arc(*predicate, direction).expect("whole");
            let (ours, theirs) = (segment(base).expect("entries"), segment(whole).expect("entries"));
            assert_eq!(ours.statistics(), theirs.statistics(), "{context}");
            assert_eq!(ours.order(), theirs.order(), "{context}");
            let (mut keys, mut points) = (Vec::new(), Vec::new());
            theirs.keys(Id::UNBOUND, usize::MAX, &mut keys).expect("whole");
            ours.split(random.pick(&keys), 4, 2, &mut points).expect("whole");
            assert!(points.is_sorted_by(|a, b| a < b) && points.len() <= 4, "{context}: {points:?}");
            if ours.order().is_none() {
                continue;
            }
            for _ in 0..6 {
                let key = random.pick(&keys);
                let bound = |random: &mut Random| random.one_in(2).then(|| Id::vertex(random.below(90)));
                let range = OrderRange {
                    from: bound(random).unwrap_or_default(),
                    before: Id::UNBOUND,
                    descending: random.one_in(2),
                    limit: match random.below(10) {
                        9 => usize::MAX,
                        limit => usize::try_from(limit).expect("small"),
                    },
                };
                let (mut found, mut expected) = (Vec::new(), Vec::new());
                ours.ordered(key, &range, GraphFilter::Any, &mut found).expect("ordered");
                theirs.ordered(key, &range, GraphFilter::Any, &mut expected).expect("ordered");
                assert_eq!(found, expected, "{context}: {key:?} {range:?}");
                listed += expected.len();
            }
        }
    }
    listed
}

/// Compares the entries of random keys in random segments, with limits that they exceed or not.
fn compare_entries_together(base: &PartitionedBase, whole: &Store, random: &mut Random, context: &str) {
    let mut segments: Vec<(Id, Direction)> = Vec::new();
    let mut keys: Vec<Id> = (0..random.below(40)).map(|_| Id::vertex(random.below(90))).collect();
    for (predicate, _) in whole.predicates() {
        for direction in Direction::BOTH {
            if random.one_in(2) {
                segments.push((*predicate, direction));
            }
            let segment = whole.segment(*predicate, direction).expect("whole").expect("entries");
            segment.keys(Id::UNBOUND, 5, &mut keys).expect("whole");
        }
    }
    // A predicate without entries.
    segments.push((Id::vertex(1 << 40), Direction::Out));
    for limit in [1, 3, 50, 100_000] {
        let found =
            base.entries_together(&segments, &keys, limit).expect("an answer").expect("several parts");
        assert_eq!(found.len(), segments.len(), "{context}");
        for (found, (predicate, direction)) in found.iter().zip(&segments) {
            let context = format!("{context}, {predicate:?} {direction:?}, limit {limit}");
            let segment = whole.segment(*predicate, *direction).expect("whole");
            let of = |key: Id| {
                let mut entries = Vec::new();
                if let Some(segment) = segment {
                    segment.entries(key, [Id::UNBOUND; 3], usize::MAX, &mut entries).expect("whole");
                }
                entries
            };
            for (row, key) in keys.iter().enumerate().take(found.ends.len()) {
                assert_eq!(found.of(row).expect("a key"), of(*key), "{context}: {key:?}");
            }
            // The list ends only where entries do not fit.
            if let Some(next) = keys.get(found.ends.len()) {
                assert!(found.entries.len() + of(*next).len() > limit, "{context}");
            }
        }
    }
}

#[test]
fn partitions_are_the_whole_graph() {
    let seed = seed();
    let mut listed = 0;
    for round in 0..150 {
        let mut random = Random(seed.wrapping_add(round).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let shape = GraphParameters::random(&mut random);
        let graph = Graph::random(shape, &mut random);
        let runs = u32::try_from(random.below(4)).expect("small");
        let partitioning = Partitioning::new(2 << random.below(6))
            .and_then(|one| one.with_runs(runs))
            .expect("a power of two");
        let context = format!("seed {seed}, round {round}, {shape:?}, {partitioning:?}");
        let environment = Environment::simulated(seed);
        let whole = graph.build(options(&environment), &Target::Memory);
        let spilling = BuildOptions {
            threads: 3,
            memory_bytes: random.below(4000),
            temp_dir: Some(PathBuf::from("/db")),
            ..options(&environment)
        };
        let options = if random.one_in(2) { options(&environment) } else { spilling };
        let base = partitioned(&graph, options, partitioning);
        base.validate().unwrap_or_else(|error| panic!("{context}: {error}"));
        compare_snapshot(&base, &graph, &mut random, &context);
        listed += compare_with_store(&base, &whole, &mut random, &context);
    }
    assert!(listed > 500, "only {listed} entries were listed by an order");
}

/// Predicates of both kinds, with more entries than one batch.
#[test]
fn large_predicates_are_split_or_keyed() {
    let seed = seed();
    let mut random = Random(seed | 1);
    let shape = GraphParameters {
        vertices: 3_000,
        statements: 12_000,
        predicates: 4,
        types: 400,
        edges: false,
        named_graphs: false,
    };
    let graph = Graph::random(shape, &mut random);
    let environment = Environment::simulated(seed);
    let whole = graph.build(options(&environment), &Target::Memory);
    for count in [2, 16, 256] {
        let context = format!("seed {seed}, {count} partitions");
        let partitioning =
            Partitioning::new(count).expect("a power of two").for_vertices(graph.vertices.len() as u64);
        let builder = graph.builder(options(&environment)).expect("a good graph");
        let stores = builder.finish_parts(graph.dictionary.clone(), partitioning).expect("a good graph");
        let split = stores.split.len();
        assert!(split > 0 && split < graph.predicates.len(), "{context}: {split} split predicates");
        let base = PartitionedBase::new(partitioning, stores).expect("one store for each partition");
        base.validate().unwrap_or_else(|error| panic!("{context}: {error}"));
        compare_snapshot(&base, &graph, &mut random, &context);
        compare_with_store(&base, &whole, &mut random, &context);
    }
}

#[test]
fn stores_of_other_partitions_are_refused() {
    let mut random = Random(5);
    let shape = GraphParameters {
        vertices: 50,
        statements: 300,
        predicates: 3,
        types: 2,
        edges: true,
        named_graphs: true,
    };
    let graph = Graph::random(shape, &mut random);
    let (two, four) = (Partitioning::new(2).expect("two"), Partitioning::new(4).expect("four"));
    let parts = |partitioning| {
        let builder = graph.builder(options(&Environment::simulated(1))).expect("a good graph");
        builder.finish_parts(graph.dictionary.clone(), partitioning).expect("a good graph")
    };
    assert!(PartitionedBase::new(four, parts(two)).is_err(), "two stores for four partitions");
    let mut swapped = parts(two);
    swapped.stores.swap(0, 1);
    let base = PartitionedBase::new(two, swapped).expect("two stores");
    let error = base.validate().expect_err("entries are at the wrong partition").to_string();
    assert!(error.contains("another partition"), "{error}");
}

/// A server of this process: requests are answered at once.
#[derive(Debug)]
struct Twin {
    name: String,
    base: Arc<PartitionedBase>,
    requests: AtomicU64,
}

struct Answered(Result<Vec<u8>>);

impl Answer for Answered {
    fn receive(self: Box<Self>) -> Result<Vec<u8>> {
        self.0
    }
}

impl Remote for Twin {
    fn name(&self) -> &str {
        &self.name
    }

    fn send<'a>(&'a self, request: &[u8]) -> Result<Box<dyn Answer + 'a>> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let mut out = Vec::new();
        let answer = self.base.answer(request, &mut out).map(|()| out);
        Ok(Box::new(Answered(answer)))
    }
}

/// Writes `graph` to a directory, and opens it as `servers` servers, each with some of the partitions.
fn served(
    graph: &Graph,
    environment: &Environment,
    count: usize,
    servers: usize,
) -> Vec<(Arc<PartitionedBase>, Vec<Arc<Twin>>)> {
    served_with(graph, environment, (count, servers), false)
}

/// [`served`]; `copied`: short segments are copied from other servers when they are read a second time.
fn served_with(
    graph: &Graph,
    environment: &Environment,
    (count, servers): (usize, usize),
    copied: bool,
) -> Vec<(Arc<PartitionedBase>, Vec<Arc<Twin>>)> {
    // Each number of servers has another length of runs.
    let runs = u32::try_from(servers % 3).expect("small");
    let partitioning = Partitioning::new(count).and_then(|one| one.with_runs(runs)).expect("a power of two");
    let path = Path::new("/cluster");
    let builder = graph.builder(options(environment)).expect("a good graph");
    PartitionDirectory::write(builder, graph.dictionary.clone(), partitioning, environment, path)
        .expect("written");
    let mut directory = PartitionDirectory::open(environment, path).expect("a catalog");
    if copied {
        directory.set_copied_part(1);
    }
    assert_eq!(directory.partitioning(), partitioning);
    let own =
        |server: usize| (0..count).filter(|partition| partition % servers == server).collect::<Vec<_>>();
    directory.verify_files(&own(0)).expect("whole");
    let others = |server: usize| (0..servers).filter(move |other| *other != server);
    let empty = |server: usize| -> Vec<_> { others(server).map(|other| (refusing(), own(other))).collect() };
    let answering: Vec<Arc<PartitionedBase>> = (0..servers)
        .map(|server| directory.bases(&own(server), &empty(server)).expect("all partitions")[0].clone())
        .collect();
    let serve = |server: usize| {
        let twin = |other: usize| {
            let base = Arc::clone(&answering[other]);
            Arc::new(Twin { name: format!("server {other}"), base, requests: AtomicU64::new(0) })
        };
        let twins: Vec<Arc<Twin>> = others(server).map(twin).collect();
        let remotes: Vec<_> = others(server)
            .zip(&twins)
            .map(|(other, twin)| (Arc::clone(twin) as Arc<dyn Remote>, own(other)))
            .collect();
        let [_, reading] = directory.bases(&own(server), &remotes).expect("all partitions");
        (reading, twins)
    };
    (0..servers).map(serve).collect()
}

/// A server that answers nothing.
fn refusing() -> Arc<dyn Remote> {
    #[derive(Debug)]
    struct Refusing;
    impl Remote for Refusing {
        fn name(&self) -> &'static str {
            "refusing"
        }

        fn send<'a>(&'a self, _: &[u8]) -> Result<Box<dyn Answer + 'a>> {
            unreachable!("a server that answers asks no other")
        }
    }
    Arc::new(Refusing)
}

/// The same comparisons as with partitions in one process, from each of several servers.
#[test]
fn servers_are_the_whole_graph() {
    let seed = seed();
    let (mut listed, mut requests) = (0, 0);
    for round in 0..40 {
        let mut random = Random(seed.wrapping_add(round).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let shape = GraphParameters::random(&mut random);
        let graph = Graph::random(shape, &mut random);
        let servers = 2 + usize::try_from(random.below(4)).expect("small");
        let count = 8 << random.below(3);
        let context = format!("seed {seed}, round {round}, {shape:?}, {servers} servers, {count} partitions");
        let environment = Environment::simulated(seed);
        let whole = graph.build(options(&environment), &Target::Memory);
        for (base, twins) in served_with(&graph, &environment, (count, servers), round % 2 == 1) {
            compare_snapshot(&*base, &graph, &mut random, &context);
            listed += compare_with_store(&base, &whole, &mut random, &context);
            requests += twins.iter().map(|twin| twin.requests.load(Ordering::Relaxed)).sum::<u64>();
        }
    }
    assert!(listed > 500, "only {listed} entries were listed by an order");
    assert!(requests > 10_000, "only {requests} requests");
}

/// Lists of more rows and entries than one request may ask for.
#[test]
fn large_lists_take_several_requests() {
    let seed = seed();
    let mut random = Random(seed | 1);
    let shape = GraphParameters {
        vertices: 2_000,
        statements: 90_000,
        predicates: 2,
        types: 90_000,
        edges: false,
        named_graphs: false,
    };
    let graph = Graph::random(shape, &mut random);
    let environment = Environment::simulated(seed);
    for (base, _) in served(&graph, &environment, 4, 2) {
        compare_snapshot(&*base, &graph, &mut random, &format!("seed {seed}"));
    }
}

/// Beside a few objects with nearly all entries, those of many others come with a few requests: the mean
/// number of entries says nothing of them.
#[test]
fn entries_of_few_take_few_requests_beside_hubs() {
    const RARE: usize = 900;
    let seed = seed();
    let mut random = Random(seed | 1);
    let shape = GraphParameters {
        vertices: 30_000,
        statements: 1,
        predicates: 1,
        types: 1,
        edges: false,
        named_graphs: false,
    };
    let mut graph = Graph::random(shape, &mut random);
    let (vertices, hub) = (graph.vertices.clone(), graph.vertices[0]);
    for predicate in graph.predicates.clone() {
        let statement = |subject: Id, object: Id| Statement {
            subject,
            predicate,
            object,
            graph: Id::UNBOUND,
            edge: Id::UNBOUND,
        };
        graph.statements.extend(vertices.iter().map(|subject| statement(*subject, hub)));
        let rare = vertices[1..].iter().zip(&vertices[RARE..]).take(RARE);
        graph.statements.extend(rare.map(|(subject, object)| statement(*subject, *object)));
    }
    let environment = Environment::simulated(seed);
    for (base, twins) in served(&graph, &environment, 4, 4) {
        for (predicate, direction) in
            graph.predicates.iter().flat_map(|one| Direction::BOTH.map(|to| (one, to)))
        {
            let segment = base.segment(*predicate, direction).expect("whole").expect("entries");
            let before: u64 = twins.iter().map(|twin| twin.requests.load(Ordering::Relaxed)).sum();
            let (mut cursor, mut found) = (Cursor::default(), Expansion::new(4 * RARE));
            let keys = &vertices[RARE..2 * RARE];
            segment.expand(keys, EntryFilter::ALL, &mut cursor, &mut found).expect("whole");
            let context = format!("seed {seed}, {predicate:?} {direction:?}");
            assert!(found.len() >= RARE && cursor == Cursor::at(RARE), "{context}: {found:?}");
            let requests =
                twins.iter().map(|twin| twin.requests.load(Ordering::Relaxed)).sum::<u64>() - before;
            assert!(requests <= 5 * twins.len() as u64, "{context}: {requests} requests for {RARE} keys");
        }
    }
}

/// Hubs with more entries in their order than one request lists.
#[test]
fn long_orders_take_several_requests() {
    let seed = seed();
    let mut random = Random(seed | 1);
    let shape = GraphParameters {
        vertices: 3,
        statements: 100_000,
        predicates: 3,
        types: 2,
        edges: true,
        named_graphs: true,
    };
    let graph = Graph::random(shape, &mut random);
    let environment = Environment::simulated(seed);
    let whole = graph.build(options(&environment), &Target::Memory);
    let mut longest = 0;
    for (base, _) in served(&graph, &environment, 4, 2) {
        for (predicate, _) in whole.orders() {
            for direction in Direction::BOTH {
                let segment = |base: &dyn Base| base.segment_arc(*predicate, direction).expect("whole");
                let (Some(ours), Some(theirs)) = (segment(&*base), segment(&whole)) else { continue };
                let mut keys = Vec::new();
                theirs.keys(Id::UNBOUND, 100, &mut keys).expect("whole");
                for (key, descending) in keys.into_iter().flat_map(|key| [(key, false), (key, true)]) {
                    let range = OrderRange { limit: usize::MAX, descending, ..OrderRange::default() };
                    let (mut found, mut expected) = (Vec::new(), Vec::new());
                    ours.ordered(key, &range, GraphFilter::Any, &mut found).expect("ordered");
                    theirs.ordered(key, &range, GraphFilter::Any, &mut expected).expect("ordered");
                    assert_eq!(found, expected, "seed {seed}: {key:?} {descending}");
                    longest = longest.max(found.len());
                }
            }
        }
    }
    assert!(longest > 1 << 12, "seed {seed}: {longest} entries take few requests");
}

/// No bytes make a server panic or answer more than was asked for.
#[test]
fn arbitrary_requests_are_refused_or_answered() {
    let seed = seed();
    let mut random = Random(seed | 1);
    let graph = Graph::random(GraphParameters::random(&mut random), &mut random);
    let environment = Environment::simulated(seed);
    let partitioning = Partitioning::new(4).expect("four");
    let base = partitioned(&graph, options(&environment), partitioning);
    let mut answered = 0;
    for round in 0..20_000_u64 {
        let kind = 1 + round % 12;
        let predicate = random.pick(&graph.predicates);
        let mut request = vec![u8::try_from(kind).expect("small")];
        if random.one_in(2) {
            vervet_codec::write_varint(predicate.bits(), &mut request);
        }
        for _ in 0..random.below(30) {
            let byte = random.below(256);
            request.push(u8::try_from(if random.one_in(2) { byte % 4 } else { byte }).expect("a byte"));
        }
        let mut out = Vec::new();
        answered += u64::from(base.answer(&request, &mut out).is_ok());
    }
    assert!(answered > 100, "seed {seed}: only {answered} were requests");
}

#[test]
fn keys_of_partitions_elsewhere_are_refused() {
    let mut random = Random(7);
    let shape = GraphParameters {
        vertices: 60,
        statements: 300,
        predicates: 3,
        types: 2,
        edges: true,
        named_graphs: false,
    };
    let graph = Graph::random(shape, &mut random);
    let environment = Environment::simulated(1);
    served(&graph, &environment, 4, 2);
    let directory = PartitionDirectory::open(&environment, Path::new("/cluster")).expect("a catalog");
    let [answering, _] = directory.bases(&[0, 2], &[(refusing(), vec![1, 3])]).expect("all partitions");
    let segment = answering.segment(graph.predicates[0], Direction::Out).expect("whole").expect("entries");
    let mut degrees = Vec::new();
    // Runs of four numbers.
    let own = segment.degrees(&[Id::vertex(8)], EntryFilter::ALL, &mut degrees);
    own.expect("an own partition");
    let error = segment.degrees(&[Id::vertex(8), Id::vertex(4)], EntryFilter::ALL, &mut degrees);
    assert_eq!(error.map_err(|error| error.kind()), Err(vervet_model::ErrorKind::Unavailable));
}

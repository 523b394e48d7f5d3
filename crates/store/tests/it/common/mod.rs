//! Random graphs, and a naive implementation of a snapshot over a list of statements.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part")]

use std::collections::BTreeSet;
use vervet_dictionary::DictionaryBuilder;
use vervet_env::Environment;
use vervet_model::{Direction, Id, LiteralKind, Tag, vocab::RDF_TYPE};
use vervet_snapshot::Snapshot;
use vervet_store::{BuildOptions, OrderBy, Statement, Store, StoreBuilder, Target};
pub use vervet_testkit::{Random, seed};
use vervet_testkit::{check_segment, check_strings};

/// A graph as a list of statements, and the dictionary of its ids.
#[derive(Clone)]
pub struct Graph {
    pub statements: Vec<Statement>,
    pub dictionary: Vec<u8>,
    pub vertices: Vec<Id>,
    pub literals: Vec<Id>,
    pub predicates: Vec<Id>,
    pub type_predicate: Id,
    pub graphs: Vec<Id>,
}

/// Parameters of a random graph.
#[derive(Clone, Copy, Debug)]
pub struct GraphParameters {
    pub vertices: u64,
    pub statements: u64,
    pub predicates: u64,
    pub types: u64,
    pub edges: bool,
    pub named_graphs: bool,
}

impl GraphParameters {
    pub fn random(random: &mut Random) -> Self {
        let statement_bits = random.below(11);
        let vertex_bits = random.below(9);
        Self {
            vertices: 2 + random.below(1 << vertex_bits),
            statements: 1 + random.below(1 << statement_bits),
            predicates: 1 + random.below(5),
            types: 1 + random.below(6),
            edges: random.one_in(2),
            named_graphs: random.one_in(2),
        }
    }
}

impl Graph {
    pub fn random(shape: GraphParameters, random: &mut Random) -> Self {
        let mut dictionary = DictionaryBuilder::new();
        let mut iri = |name: String| dictionary.intern_iri(&name).expect("short");
        let type_predicate = iri(RDF_TYPE.to_owned());
        let mut predicates: Vec<Id> = (0..shape.predicates).map(|i| iri(format!("http://e/p{i}"))).collect();
        predicates.push(type_predicate);
        let graphs: Vec<Id> = (0..3).map(|i| iri(format!("http://e/g{i}"))).collect();
        let types: Vec<Id> = (0..shape.types).map(|i| iri(format!("http://e/T{i}"))).collect();
        let vertices: Vec<Id> = (0..shape.vertices).map(|i| iri(format!("http://e/v{i}"))).collect();
        let literals: Vec<Id> = (0..if shape.statements > 5000 { 2000_i64 } else { 40 })
            .map(|i| {
                let (value, kind) = match i % 4 {
                    0 => (format!("a long string number {i}"), LiteralKind::String),
                    1 => (
                        (i * 1_000_003 - 7).to_string(),
                        LiteralKind::Typed("http://www.w3.org/2001/XMLSchema#integer"),
                    ),
                    2 => (format!("s{i}"), LiteralKind::String),
                    _ => (format!("{i}"), LiteralKind::Typed("http://e/type")),
                };
                dictionary.intern_literal(&value, kind).expect("short")
            })
            .collect();
        let mut statements = Vec::new();
        let mut edges: Vec<Id> = Vec::new();
        for _ in 0..shape.statements {
            let predicate = random.pick(&predicates);
            let kind = predicate.payload() % 5;
            let subject = if !edges.is_empty() && random.one_in(6) {
                random.pick(&edges)
            } else if random.one_in(3) {
                vertices[0]
            } else {
                random.pick(&vertices)
            };
            let object = match (predicate == type_predicate, kind) {
                (true, _) => random.pick(&types),
                (_, 1) => random.pick(&literals),
                (_, 2) if random.one_in(2) => random.pick(&literals),
                (_, 3) if !edges.is_empty() && random.one_in(9) => random.pick(&edges),
                _ if random.one_in(9) && subject.is_vertex() => subject,
                _ => random.pick(&vertices),
            };
            let graph =
                if shape.named_graphs && random.one_in(3) { random.pick(&graphs) } else { Id::UNBOUND };
            let every = kind == 4;
            let edge = if shape.edges && (every || random.one_in(4)) {
                let edge = Id::edge(edges.len() as u64 + if random.one_in(30) { 1 } else { 0 });
                if edges.contains(&edge) { Id::UNBOUND } else { edge }
            } else {
                Id::UNBOUND
            };
            if edge.is_bound() {
                edges.push(edge);
            }
            statements.push(Statement { subject, predicate, object, graph, edge });
        }
        let mut seen = BTreeSet::new();
        for statement in &mut statements {
            // Two edges may have got the same number where one was left out above.
            if statement.edge.is_bound() && !seen.insert(statement.edge) {
                statement.edge = Id::UNBOUND;
            }
        }
        let known = |id: Id| id.tag() != Tag::Edge || seen.contains(&id);
        statements.retain(|statement| known(statement.subject) && known(statement.object));
        // A removed statement may have been an edge that others are about.
        loop {
            let left: BTreeSet<Id> = statements.iter().map(|s| s.edge).collect();
            let before = statements.len();
            let known = |id: Id| id.tag() != Tag::Edge || left.contains(&id);
            statements.retain(|statement| known(statement.subject) && known(statement.object));
            if statements.len() == before {
                break;
            }
        }
        let dictionary = dictionary.finish().expect("small");
        Self { statements, dictionary, vertices, literals, predicates, type_predicate, graphs }
    }

    /// Messages in the order of a file: by ascending number, each with an edge to one of a few vertices, the
    /// time of that edge, a text, a small number, and now and then several tags; large enough for framed
    /// arrays.
    pub fn network(messages: u64, random: &mut Random) -> Self {
        let mut dictionary = DictionaryBuilder::new();
        let mut iri = |name: String| dictionary.intern_iri(&name).expect("short");
        let predicates: Vec<Id> = (0..5).map(|i| iri(format!("http://e/p{i}"))).collect();
        let type_predicate = iri(RDF_TYPE.to_owned());
        let others: Vec<Id> = (0..200).map(|i| iri(format!("http://e/person{i}"))).collect();
        let all: Vec<Id> = (0..messages).map(|i| iri(format!("http://e/message{i}"))).collect();
        let integer = LiteralKind::Typed("http://www.w3.org/2001/XMLSchema#integer");
        let mut statements = Vec::new();
        let mut literals = Vec::new();
        for (number, &subject) in (0_u64..).zip(&all) {
            let edge = Id::edge(number);
            let mut literal = |text: &str, kind| dictionary.intern_literal(text, kind).expect("short");
            let time = 1_300_000_000_000 + number * 1_000_000 + random.below(5_000_000);
            let time = literal(&time.to_string(), integer);
            let text = literal(
                &format!("the text of message {}", number - random.below(number.min(3) + 1)),
                LiteralKind::String,
            );
            let small = literal(&random.below(90).to_string(), integer);
            let mut state = |subject, predicate: usize, object, edge| {
                let graph = Id::UNBOUND;
                statements.push(Statement { subject, predicate: predicates[predicate], object, graph, edge });
            };
            state(subject, 0, random.pick(&others), edge);
            state(edge, 1, time, Id::UNBOUND);
            state(subject, 2, text, Id::UNBOUND);
            state(subject, 3, small, Id::UNBOUND);
            for _ in 0..random.below(4) {
                state(subject, 4, random.pick(&others), Id::UNBOUND);
                state(subject, 3, literal(&random.below(90_000).to_string(), integer), Id::UNBOUND);
            }
            literals.extend([time, text, small]);
        }
        let dictionary = dictionary.finish().expect("small");
        let graphs = others[..1].to_vec();
        let vertices = [others, all].concat();
        Self { statements, dictionary, vertices, literals, predicates, type_predicate, graphs }
    }

    /// The statements as a set, sorted (statements with an edge differ by it, and none without an edge exists
    /// beside the same with one).
    pub fn set(&self) -> BTreeSet<Statement> {
        let plain = |s: &Statement| Statement { edge: Id::UNBOUND, ..*s };
        let with_edge = self.statements.iter().filter(|s| s.edge.is_bound());
        let twins: BTreeSet<Statement> = with_edge.map(plain).collect();
        self.statements.iter().filter(|s| s.edge.is_bound() || !twins.contains(s)).copied().collect()
    }

    pub fn build(&self, options: BuildOptions, target: &Target) -> Store {
        self.try_build(options, target).expect("a good graph")
    }

    pub fn try_build(&self, options: BuildOptions, target: &Target) -> vervet_model::Result<Store> {
        self.builder(options)?.finish(self.dictionary.clone(), target)
    }

    /// A builder with all statements.
    pub fn builder(&self, options: BuildOptions) -> vervet_model::Result<StoreBuilder<'static>> {
        let mut builder = StoreBuilder::new(options);
        for chunk in self.statements.chunks(50) {
            if chunk.iter().all(|s| !s.graph.is_bound() && !s.edge.is_bound()) {
                let triples: Vec<[Id; 3]> =
                    chunk.iter().map(|s| [s.subject, s.predicate, s.object]).collect();
                builder.add_triples(&triples)?;
            } else {
                builder.add(chunk)?;
            }
        }
        Ok(builder)
    }
}

/// Predicates ordered by `p0`: by edges that have it, by neighbours, not at all, by themselves.
pub const ORDERED: [&str; 4] = ["p3", "p1", "p77", "p0"];

pub fn options(environment: &Environment) -> BuildOptions {
    let by_p0 = |predicate: &str| OrderBy {
        predicate: format!("http://e/{predicate}"),
        property: "http://e/p0".to_owned(),
    };
    BuildOptions {
        threads: 1,
        memory_bytes: 1 << 30,
        environment: environment.clone(),
        temp_dir: None,
        log: None,
        orders: ORDERED.map(by_p0).to_vec(),
    }
}

/// Compares all results of a store with the statements.
pub fn compare(store: &Store, graph: &Graph, random: &mut Random, context: &str) {
    let set = graph.set();
    let mut all: Vec<Statement> = store.statements().collect::<Result<_, _>>().expect("whole");
    let by_predicate = |s: &Statement| (s.predicate, s.subject, s.object, s.graph, s.edge);
    assert!(all.is_sorted_by_key(by_predicate), "{context}");
    all.sort_unstable();
    assert!(all.iter().eq(set.iter()), "{context}: statements");
    compare_snapshot(store, graph, random, context);
}

/// Compares all results of a snapshot with the statements.
pub fn compare_snapshot(store: &dyn Snapshot, graph: &Graph, random: &mut Random, context: &str) {
    let set = graph.set();
    assert_eq!(store.statement_count(), set.len() as u64, "{context}");
    let count = |of: &dyn Fn(&Statement) -> Id| {
        let mut counts = std::collections::BTreeMap::new();
        set.iter().map(of).filter(|id| id.is_bound()).for_each(|id| *counts.entry(id).or_insert(0_u64) += 1);
        counts.into_iter().collect::<Vec<_>>()
    };
    assert_eq!(store.predicates(), count(&|s| s.predicate), "{context}");
    assert_eq!(store.graphs(), count(&|s| s.graph), "{context}");
    let edges: Vec<&Statement> = set.iter().filter(|s| s.edge.is_bound()).collect();
    let edge_end = edges.iter().map(|s| s.edge.payload() + 1).max().unwrap_or(0);
    assert_eq!(store.edge_count(), edge_end, "{context}");
    for number in 0..edge_end + 2 {
        let row = edges.iter().find(|s| s.edge == Id::edge(number));
        let row = row.map(|s| [s.subject, s.predicate, s.object, s.graph]);
        assert_eq!(store.edge(Id::edge(number)).ok(), row, "{context}: edge {number}");
    }
    let has_types = set.iter().any(|s| s.predicate == graph.type_predicate);
    assert_eq!(store.type_predicate(), has_types.then_some(graph.type_predicate), "{context}");
    for predicate in &graph.predicates {
        for direction in Direction::BOTH {
            let mut entries: Vec<[Id; 4]> = set
                .iter()
                .filter(|s| s.predicate == *predicate)
                .map(|s| match direction {
                    Direction::Out => [s.subject, s.object, s.graph, s.edge],
                    Direction::In => [s.object, s.subject, s.graph, s.edge],
                })
                .collect();
            entries.sort_unstable();
            let context = format!("{context}, {predicate:?} {direction:?}");
            let segment = store.segment(*predicate, direction).expect("whole");
            match segment {
                None => assert!(entries.is_empty(), "{context}"),
                Some(segment) => {
                    assert!(segment.statistics().exact, "{context}");
                    let strangers = [&graph.vertices[..], &graph.literals].concat();
                    check_segment(segment, &entries, &strangers, &graph.graphs, random, &context);
                    check_strings(store, segment, &entries, &context);
                }
            }
        }
    }
}

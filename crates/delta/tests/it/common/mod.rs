//! A model of a graph as a set of statements with the rules of a version, and comparisons with it.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part")]

use oxrdf::{BlankNode, Literal, NamedNode, Term};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vervet_delta::Version;
use vervet_dictionary::{DictionaryBuilder, MutableDictionary};
use vervet_env::Environment;
use vervet_model::vocab::RDF_TYPE;
use vervet_model::{Direction, Id, LiteralKind, Partitioning, Result, Statement, Tag, order_key};
use vervet_snapshot::{GraphFilter, OrderRange, OrderedEntry, Segment, Snapshot};
use vervet_store::{Base, BuildOptions, OrderBy, StoreBuilder, Target};
pub use vervet_testkit::{Random, check_segment, check_strings, seed};

/// A set of statements. See the rules in `Version`.
#[derive(Clone, Default)]
pub struct Model {
    pub statements: BTreeSet<Statement>,
    pub edges: BTreeMap<Id, Statement>,
}

impl Model {
    /// Adds a statement; returns whether it was new, `None` if it is refused.
    pub fn insert(&mut self, statement: Statement) -> Option<bool> {
        let known = |id: Id| id.tag() != Tag::Edge || id == statement.edge || self.edges.contains_key(&id);
        if !known(statement.subject) || !known(statement.object) {
            return None;
        }
        let plain = Statement { edge: Id::UNBOUND, ..statement };
        let mut same =
            self.statements.range(plain..).take_while(|s| Statement { edge: plain.edge, ..**s } == plain);
        if !statement.edge.is_bound() {
            return Some(same.next().is_none() && self.statements.insert(plain));
        }
        if let Some(known) = self.edges.get(&statement.edge) {
            return (*known == statement).then_some(false);
        }
        self.statements.remove(&plain);
        self.edges.insert(statement.edge, statement);
        Some(self.statements.insert(statement))
    }

    /// Removes a statement; returns whether it existed, `None` if it is refused.
    pub fn remove(&mut self, statement: Statement) -> Option<bool> {
        if !self.statements.contains(&statement) {
            return Some(false);
        }
        if statement.edge.is_bound() {
            let about = |s: &Statement| {
                *s != statement && (s.subject == statement.edge || s.object == statement.edge)
            };
            if self.statements.iter().any(about) {
                return None;
            }
            self.edges.remove(&statement.edge);
        }
        Some(self.statements.remove(&statement))
    }
}

/// A universe of ids, with the dictionaries of their terms.
pub struct World {
    pub terms: Vec<(Term, Id)>,
    pub vertices: Vec<Id>,
    pub objects: Vec<Id>,
    pub predicates: Vec<Id>,
    pub graphs: Vec<Id>,
    pub type_id: Id,
    /// Whether statements may have edges, and be in named graphs.
    pub edges: bool,
    pub named_graphs: bool,
    /// Dictionary of the store, and a dictionary with all terms.
    pub dictionary: Vec<u8>,
    pub whole: Vec<u8>,
    pub later: Arc<MutableDictionary>,
}

impl World {
    pub fn random(random: &mut Random) -> Self {
        let iri = |name: String| -> Term { NamedNode::new_unchecked(name).into() };
        let mut predicates: Vec<Term> =
            (0..1 + random.below(4)).map(|i| iri(format!("http://e/p{i}"))).collect();
        predicates.push(iri(RDF_TYPE.to_owned()));
        let graphs: Vec<Term> = (0..3).map(|i| iri(format!("http://e/g{i}"))).collect();
        let size = 1 + random.magnitude(8);
        let mut vertices: Vec<Term> = (0..size).map(|i| iri(format!("http://e/v{i}"))).collect();
        vertices.extend((0..size / 4).map(|i| Term::from(BlankNode::new_unchecked(format!("b{i}")))));
        let literals = (0..20).map(|i| match i % 3 {
            0 => Literal::new_simple_literal(format!("a long string number {i}")).into(),
            1 => Literal::new_language_tagged_literal_unchecked(format!("text {i}"), "en").into(),
            _ => Term::from(Literal::from(i)),
        });
        let literals: Vec<Term> = literals.collect();
        let mut all: Vec<Term> = [&predicates[..], &graphs, &vertices, &literals].concat();
        // Any of them may be a late term.
        for index in (1..all.len()).rev() {
            let other = usize::try_from(random.below(index as u64 + 1)).expect("small");
            all.swap(index, other);
        }
        let early = usize::try_from(random.below(all.len() as u64 + 1)).expect("small");
        let mut builder = DictionaryBuilder::new();
        let mut intern = |term: &Term| builder.intern_term(term.as_ref()).expect("short");
        let mut terms: Vec<(Term, Id)> =
            all[..early].iter().map(|term| (term.clone(), intern(term))).collect();
        let dictionary = builder.finish().expect("small");
        let opened = vervet_dictionary::Dictionary::open(dictionary.clone().into(), "test").expect("whole");
        let later = MutableDictionary::new(opened.vertex_count(), opened.literal_count());
        for term in &all[early..] {
            let id = later.intern(term.as_ref()).expect("short");
            terms.push((term.clone(), id));
        }
        let mut builder = DictionaryBuilder::new();
        for (term, id) in &terms {
            assert_eq!(builder.intern_term(term.as_ref()).expect("short"), *id);
        }
        let whole = builder.finish().expect("small");
        let ids: BTreeMap<String, Id> = terms.iter().map(|(term, id)| (term.to_string(), *id)).collect();
        let of = |terms: &[Term]| -> Vec<Id> { terms.iter().map(|term| ids[&term.to_string()]).collect() };
        Self {
            vertices: of(&vertices),
            objects: of(&[vertices, literals].concat()),
            predicates: of(&predicates),
            graphs: of(&graphs),
            type_id: ids[&format!("<{RDF_TYPE}>")],
            terms,
            edges: random.one_in(2),
            named_graphs: random.one_in(2),
            dictionary,
            whole,
            later: Arc::new(later),
        }
    }

    /// A random statement, which may exist already or be refused.
    pub fn statement(&self, model: &Model, random: &mut Random) -> Statement {
        let nth = |random: &mut Random| {
            let first = random.below(model.statements.len() as u64);
            model.statements.iter().nth(usize::try_from(first).expect("small")).copied()
        };
        let edge_number = random.below(40);
        if random.one_in(4)
            && let Some(mut statement) = nth(random)
        {
            if self.edges && random.one_in(3) {
                statement.edge = if random.one_in(2) { Id::edge(edge_number) } else { Id::UNBOUND };
            }
            return statement;
        }
        let predicate = random.pick(&self.predicates);
        let hub = random.one_in(3);
        let mut statement = Statement {
            subject: if hub { self.vertices[0] } else { random.pick(&self.vertices) },
            predicate,
            object: match predicate.payload() % 3 {
                0 => random.pick(&self.vertices),
                1 if random.one_in(2) => self.vertices[0],
                _ => random.pick(&self.objects),
            },
            graph: Id::UNBOUND,
            edge: Id::UNBOUND,
        };
        if self.named_graphs && random.one_in(3) {
            statement.graph = random.pick(&self.graphs);
        }
        if self.edges {
            if random.one_in(4) {
                statement.edge = Id::edge(edge_number);
            }
            if random.one_in(8) {
                statement.subject = Id::edge(random.below(40));
            } else if random.one_in(12) {
                statement.object = Id::edge(random.below(40));
            }
        }
        statement
    }

    /// The orders by `p0`: of all predicates, including itself.
    fn orders(&self) -> Vec<OrderBy> {
        let all = (0..5).map(|i| format!("http://e/p{i}"));
        all.map(|predicate| OrderBy { predicate, property: "http://e/p0".to_owned() }).collect()
    }

    /// A store of these statements, with the terms of the first dictionary or all terms.
    pub fn build(&self, statements: &[Statement], whole: bool) -> Arc<dyn Base> {
        let environment = Environment::simulated(1);
        let mut builder = StoreBuilder::new(BuildOptions {
            threads: 1,
            memory_bytes: 1 << 30,
            environment,
            temp_dir: None,
            log: None,
            orders: self.orders(),
        });
        builder.add(statements).expect("room");
        let image = if whole { &self.whole } else { &self.dictionary };
        // One or several partitions, of which versions must not see anything.
        let partitioning = Partitioning::new(1 << (statements.len() % 4)).expect("a power of two");
        let image = image.clone();
        let base = vervet_partition::finish(builder, image, &Target::Memory, partitioning, None);
        let base = base.expect("a good graph");
        base.validate().expect("whole");
        base
    }

    /// Whether all terms of a statement are in the dictionary of the first store.
    pub fn is_early(&self, statement: &Statement, store: &dyn Base) -> bool {
        let Statement { subject, predicate, object, graph, .. } = *statement;
        [subject, predicate, object, graph].into_iter().all(|id| match id.tag() {
            Tag::Vertex => id.payload() < store.vertex_count(),
            Tag::Literal => id.payload() < store.literal_count(),
            _ => true,
        })
    }

    /// Some statements that are valid together and use only the first dictionary.
    pub fn early_model(&self, count: u64, random: &mut Random) -> Model {
        let empty = self.build(&[], false);
        let mut model = Model::default();
        for _ in 0..count {
            let statement = self.statement(&model, random);
            if self.is_early(&statement, &*empty) {
                model.insert(statement);
            }
        }
        model
    }
}

/// Entries of a predicate in a direction, sorted.
pub fn entries(model: &Model, predicate: Id, direction: Direction) -> Vec<[Id; 4]> {
    let of = model.statements.iter().filter(|statement| statement.predicate == predicate);
    let entries: BTreeSet<[Id; 4]> = of
        .map(|s| match direction {
            Direction::Out => [s.subject, s.object, s.graph, s.edge],
            Direction::In => [s.object, s.subject, s.graph, s.edge],
        })
        .collect();
    entries.into_iter().collect()
}

/// Compares entries that are read in several segments together, of keys that the model has and others.
fn compare_together(version: &Version, model: &Model, random: &mut Random, context: &str) {
    let (mut segments, mut keys) = (BTreeSet::new(), BTreeSet::new());
    for statement in &model.statements {
        if random.one_in(3) {
            let Statement { subject, predicate, object, .. } = *statement;
            let direction = if random.one_in(2) { Direction::Out } else { Direction::In };
            segments.insert((predicate, direction == Direction::Out));
            keys.extend([subject, object]);
        }
    }
    let direction = |is_out: bool| if is_out { Direction::Out } else { Direction::In };
    let segments: Vec<(Id, Direction)> = segments.into_iter().map(|(id, out)| (id, direction(out))).collect();
    let keys: Vec<Id> = keys.into_iter().chain([Id::vertex(1 << 30)]).collect();
    for limit in [2, 1 << 20] {
        let Some(found) = version.entries_together(&segments, &keys, limit).expect("whole") else { return };
        for (list, (predicate, direction)) in found.iter().zip(&segments) {
            let all = entries(model, *predicate, *direction);
            assert!(limit == 2 || list.ends.len() == keys.len(), "{context}");
            for (row, key) in keys.iter().enumerate().take(list.ends.len()) {
                let of_key = all.iter().filter(|entry| entry[0] == *key);
                let expected: Vec<[Id; 3]> = of_key.map(|[_, a, b, c]| [*a, *b, *c]).collect();
                let found = list.of(row).expect("a key");
                assert_eq!(found, expected, "{context}: {predicate:?} {direction:?} of {key:?}");
            }
        }
    }
}

/// Asserts that a version equals the model.
pub fn compare(version: &Version, model: &Model, world: &World, random: &mut Random, context: &str) {
    compare_together(version, model, random, context);
    let all: Vec<Statement> = version.statements().collect::<Result<_>>().expect("whole");
    let by = |s: &Statement| (s.predicate, s.subject, s.object, s.graph, s.edge);
    assert!(all.is_sorted_by(|a, b| by(a) < by(b)), "{context}");
    assert_eq!(all.iter().copied().collect::<BTreeSet<_>>(), model.statements, "{context}");
    assert_eq!(version.statement_count(), model.statements.len() as u64, "{context}");
    let count = |of: &dyn Fn(&Statement) -> Id| -> Vec<(Id, u64)> {
        let mut counts: BTreeMap<Id, u64> = BTreeMap::new();
        for statement in &model.statements {
            *counts.entry(of(statement)).or_default() += 1;
        }
        counts.into_iter().filter(|(id, _)| id.is_bound()).collect()
    };
    assert_eq!(version.predicates(), count(&|s| s.predicate), "{context}");
    assert_eq!(version.graphs(), count(&|s| s.graph), "{context}");
    let has_types = model.statements.iter().any(|s| s.predicate == world.type_id);
    assert_eq!(version.type_predicate(), has_types.then_some(world.type_id), "{context}");
    for number in 0..45 {
        let edge = Id::edge(number);
        let row = model.edges.get(&edge).map(|s| [s.subject, s.predicate, s.object, s.graph]);
        assert_eq!(version.find_edge(edge).expect("whole"), row, "{context}: {edge:?}");
        assert_eq!(version.edge(edge).ok(), row, "{context}: {edge:?}");
        assert!(row.is_none() || number < version.edge_count(), "{context}");
        let iri: Term = NamedNode::new_unchecked(format!("urn:vervet:edge:{number}")).into();
        let found = version.lookup(iri.as_ref()).expect("whole");
        assert_eq!(found, row.map(|_| edge), "{context}: {edge:?}");
    }
    for _ in 0..10 {
        let statement = world.statement(model, random);
        let expected = model.statements.contains(&statement);
        assert_eq!(version.contains(&statement).expect("whole"), expected, "{context}: {statement:?}");
    }
    for predicate in &world.predicates {
        for direction in Direction::BOTH {
            let entries = entries(model, *predicate, direction);
            let context = format!("{context}, {predicate:?} {direction:?}");
            let segment = version.segment(*predicate, direction).expect("whole");
            let shared = version.segment_arc(*predicate, direction).expect("whole");
            assert_eq!(segment.is_some(), shared.is_some(), "{context}");
            match segment {
                None => assert!(entries.is_empty(), "{context}"),
                Some(segment) => {
                    assert!(!entries.is_empty(), "{context}: a segment without entries");
                    check_segment(segment, &entries, &world.objects, &world.graphs, random, &context);
                    check_strings(version, segment, &entries, &context);
                    let is_type = *predicate == world.type_id;
                    assert!(
                        !is_type || version.classes_are_exact() || !segment.statistics().exact,
                        "{context}"
                    );
                }
            }
        }
    }
    compare_orders(version, model, random, context);
    compare_terms(version, world, context);
}

/// Asserts that ordered predicates are listed in the order of the version's values.
fn compare_orders(version: &Version, model: &Model, random: &mut Random, context: &str) {
    for &(predicate, property) in version.base().orders() {
        let key_of = |subject: Id| {
            let values = model.statements.iter().filter(|s| s.predicate == property && s.subject == subject);
            values.map(|s| order_key(s.object)).filter(|key| key.is_bound()).min().unwrap_or_default()
        };
        let mut of_edges = model.edges.values().filter(|s| s.predicate == predicate);
        let by_edges = of_edges.any(|s| key_of(s.edge).is_bound());
        for direction in Direction::BOTH {
            let Some(segment) = version.segment(predicate, direction).expect("whole") else { continue };
            assert_eq!(segment.order(), Some(property), "{context}");
            let all = entries(model, predicate, direction);
            for _ in 0..4 {
                let key = random.pick(&all)[0];
                let of_key = all.iter().filter(|entry| entry[0] == key);
                let mut expected: Vec<OrderedEntry> = of_key
                    .map(|[_, neighbour, graph, edge]| {
                        let order_key = match by_edges {
                            true if edge.is_bound() => key_of(*edge),
                            true => Id::UNBOUND,
                            false => key_of(*neighbour),
                        };
                        OrderedEntry { neighbour: *neighbour, graph: *graph, edge: *edge, order_key }
                    })
                    .collect();
                expected.sort_by_key(|e| (e.order_key, e.neighbour, e.graph, e.edge));
                let bound = |random: &mut Random| match random.one_in(3) {
                    true => random.pick(&expected).order_key,
                    false => Id::UNBOUND,
                };
                let (from, before) = (bound(random), bound(random));
                let descending = random.one_in(2);
                let limit = if random.one_in(2) { usize::MAX } else { 2 };
                let graph = random.pick(&[GraphFilter::Any, GraphFilter::Default, GraphFilter::AnyNamed]);
                let bounded = from.is_bound() || before.is_bound();
                expected.retain(|e| {
                    let key = e.order_key;
                    let inside = key.is_bound() && key >= from && (!before.is_bound() || key < before);
                    graph.matches(e.graph) && (inside || !bounded)
                });
                if descending {
                    expected.reverse();
                }
                expected.truncate(limit);
                let range = OrderRange { from, before, descending, limit };
                let mut found = Vec::new();
                segment.ordered(key, &range, graph, &mut found).expect("whole");
                assert_eq!(found, expected, "{context}: {predicate:?} {direction:?} {key:?} {range:?}");
            }
        }
    }
}

/// Asserts that terms are found by the versions that know them, and are read back.
fn compare_terms(version: &Version, world: &World, context: &str) {
    let mut ids = Vec::new();
    for (term, id) in &world.terms {
        let known = match id.tag() {
            Tag::Vertex => id.payload() < version.vertex_count(),
            Tag::Literal => id.payload() < version.literal_count(),
            _ => true,
        };
        let found = version.lookup(term.as_ref()).expect("whole");
        assert_eq!(found, known.then_some(*id), "{context}: {term}");
        let mut read = None;
        let mut scratch = String::new();
        version.read_term(*id, &mut scratch, &mut |parts| read = Some(parts.to_term())).expect("known");
        assert_eq!(read.as_ref(), Some(term), "{context}");
        let is_text =
            matches!(term, Term::Literal(literal) if literal.datatype() == oxrdf::vocab::xsd::STRING);
        assert_eq!(version.is_plain_text(*id).expect("known"), is_text, "{context}: {term}");
        let (mut tag, mut is_literal) = (None, false);
        let each = &mut |kind: Option<LiteralKind<'_>>| {
            is_literal = kind.is_some_and(|kind| kind != LiteralKind::Triple);
            if let Some(LiteralKind::Language(found)) = kind {
                tag = Some(found.to_owned());
            }
        };
        version.read_literal_kind(*id, each).expect("known");
        let literal = if let Term::Literal(literal) = term { Some(literal) } else { None };
        assert_eq!(is_literal, literal.is_some(), "{context}: {term}");
        let of_term = literal.and_then(|literal| {
            let direction = literal.direction().map(|direction| format!("--{direction}"));
            Some(format!("{}{}", literal.language()?, direction.unwrap_or_default()))
        });
        assert_eq!(tag, of_term, "{context}: {term}");
        let is_blank = version.is_blank(*id).expect("known");
        assert_eq!(is_blank, matches!(term, Term::BlankNode(_)), "{context}: {term}");
        ids.push(*id);
    }
    let (mut text, mut ends) = (Vec::new(), Vec::new());
    version.write_terms(&ids, &mut text, &mut ends).expect("known");
    let mut start = 0;
    for ((term, _), end) in world.terms.iter().zip(ends) {
        assert_eq!(std::str::from_utf8(&text[start..end]).ok(), Some(term.to_string().as_str()), "{context}");
        start = end;
    }
    assert_eq!(start, text.len(), "{context}");
}

/// A segment as a trait object.
pub fn arc(segment: impl Segment + 'static) -> Arc<dyn Segment> {
    Arc::new(segment)
}

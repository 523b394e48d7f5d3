//! Model test of versions against a set of statements.
//!
//! Random graphs with parallel edges, named graphs, literals, edges as subjects and objects, and terms later
//! than the store; random parts of them are in the store, the rest is inserted, singly and in bulk, others
//! are removed again. Older versions never change; every version can be built into a store and rebased onto
//! one.

use crate::common::{Model, Random, World, arc, check_segment, compare, entries, seed};
use std::collections::BTreeSet;
use std::sync::Arc;
use vervet_delta::{Overlay, Version};
use vervet_model::{Direction, ErrorKind, Id, Statement};
use vervet_snapshot::{Segment, Snapshot};

fn random_of(seed: u64, round: u64) -> Random {
    Random(seed.wrapping_add(round).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
}

/// Applies a random operation to both, and compares the results.
fn step(version: &mut Version, model: &mut Model, world: &World, random: &mut Random, context: &str) {
    match random.below(12) {
        0..5 => {
            let statement = world.statement(model, random);
            let expected = model.insert(statement);
            let found = version.insert(&statement);
            match (expected, found) {
                (Some(expected), Ok(found)) => assert_eq!(found, expected, "{context}: insert {statement:?}"),
                (None, Err(error)) => assert_eq!(error.kind(), ErrorKind::Input, "{context}: {error}"),
                (expected, found) => panic!("{context}: {statement:?}: {found:?}, not {expected:?}"),
            }
        }
        11 => {
            let mut batch = Vec::new();
            let (mut after, mut came) = (model.clone(), BTreeSet::new());
            for _ in 0..random.magnitude(9) {
                let statement = world.statement(&after, random);
                match after.insert(statement) {
                    None => continue,
                    Some(true) => came.insert(statement),
                    Some(false) => true,
                };
                batch.push(statement);
            }
            // In random order, also an edge after statements about it.
            for index in (1..batch.len()).rev() {
                let other = usize::try_from(random.below(index as u64 + 1)).expect("small");
                batch.swap(index, other);
            }
            // A statement replaced within the batch does not exist in the end.
            came.retain(|statement| after.statements.contains(statement));
            let count = version.insert_all(&batch).unwrap_or_else(|error| panic!("{context}: {error}"));
            assert_eq!(count, came.len() as u64, "{context}: {batch:?}");
            *model = after;
        }
        _ => {
            let statement = world.statement(model, random);
            let expected = model.remove(statement);
            match (expected, version.remove(&statement)) {
                (Some(expected), Ok(found)) => assert_eq!(found, expected, "{context}: remove {statement:?}"),
                (None, Err(error)) => assert_eq!(error.kind(), ErrorKind::Input, "{context}: {error}"),
                (expected, found) => panic!("{context}: {statement:?}: {found:?}, not {expected:?}"),
            }
        }
    }
}

#[test]
fn random_changes() {
    let seed = seed();
    for round in 0..80 {
        let mut random = random_of(seed, round);
        let world = World::random(&mut random);
        let mut model = {
            let count = random.magnitude(11);
            world.early_model(count, &mut random)
        };
        let statements: Vec<Statement> = model.statements.iter().copied().collect();
        let base = world.build(&statements, false);
        let mut version = Version::new(Arc::clone(&base), Arc::clone(&world.later));
        let mut kept = vec![(version.clone(), model.clone())];
        compare(&version, &model, &world, &mut random, &format!("seed {seed}, round {round}, the store"));
        let steps = 1 + random.magnitude(10);
        for number in 0..steps {
            let context = format!("seed {seed}, round {round}, step {number}");
            step(&mut version, &mut model, &world, &mut random, &context);
            if random.one_in(steps / 3 + 1) {
                compare(&version, &model, &world, &mut random, &context);
                kept.push((version.clone(), model.clone()));
            }
            if random.one_in(steps) {
                // A rolled-back transaction.
                (version, model) = kept[kept.len() - 1].clone();
            }
        }
        kept.push((version, model));
        for (number, (version, model)) in kept.iter().enumerate() {
            let context = format!("seed {seed}, round {round}, version {number}");
            compare(version, model, &world, &mut random, &context);
        }
        // Any version built into a store, and any other rebased onto that.
        let (old, old_model) = kept[usize::try_from(random.below(kept.len() as u64)).expect("small")].clone();
        let statements: Vec<Statement> = old.statements().map(|s| s.expect("whole")).collect();
        let base = world.build(&statements, true);
        assert_eq!(base.statement_count(), old_model.statements.len() as u64);
        assert_eq!(base.predicates(), old.predicates());
        let terms =
            Arc::new(vervet_dictionary::MutableDictionary::new(base.vertex_count(), base.literal_count()));
        for (number, (version, model)) in kept.iter().enumerate() {
            let context = format!("seed {seed}, round {round}, version {number} moved");
            let moved = version.rebase(&old, Arc::clone(&base), Arc::clone(&terms));
            let mut moved = moved.unwrap_or_else(|error| panic!("{context}: {error}"));
            compare(&moved, model, &world, &mut random, &context);
            let mut model = model.clone();
            step(&mut moved, &mut model, &world, &mut random, &context);
            compare(&moved, &model, &world, &mut random, &context);
        }
    }
}

#[test]
fn layers_over_layers() {
    let seed = seed();
    for round in 0..60 {
        let mut random = random_of(seed, round);
        let world = World::random(&mut random);
        let model = {
            let count = random.magnitude(11);
            world.early_model(count, &mut random)
        };
        let statements: Vec<Statement> = model.statements.iter().copied().collect();
        let base = world.build(&statements, false);
        let predicate = random.pick(&world.predicates);
        let direction = random.pick(&Direction::BOTH);
        let mut expected: BTreeSet<[Id; 4]> = entries(&model, predicate, direction).into_iter().collect();
        let mut lower = base.segment_arc(predicate, direction).expect("whole");
        for layer in 0..4 {
            let mut overlay = Overlay::new(lower, expected.len() as u64);
            for number in 0..random.magnitude(9) {
                let context = format!("seed {seed}, round {round}, layer {layer}, step {number}");
                let known = expected.iter().nth(usize::try_from(random.below(50)).expect("small")).copied();
                let entry = match known {
                    Some(entry) if random.one_in(2) => entry,
                    _ => {
                        let Statement { subject, object, graph, edge, .. } =
                            world.statement(&model, &mut random);
                        [subject, object, graph, edge]
                    }
                };
                let [key, rest @ ..] = entry;
                let content = overlay.content_id();
                assert!(content.is_some() && overlay.clone().content_id() == content, "{context}");
                let is_changed = if random.one_in(2) {
                    let inserted = overlay.insert(key, rest).expect("whole");
                    assert_eq!(inserted, expected.insert(entry), "{context}: insert {entry:?}");
                    inserted
                } else {
                    let removed = overlay.remove(key, rest).expect("whole");
                    assert_eq!(removed, expected.remove(&entry), "{context}: remove {entry:?}");
                    removed
                };
                assert_eq!(overlay.content_id() != content, is_changed, "{context}: identity of entries");
                assert_eq!(
                    overlay.contains(key, rest).expect("whole"),
                    expected.contains(&entry),
                    "{context}"
                );
                assert_eq!(overlay.len(), expected.len() as u64, "{context}");
            }
            let context = format!("seed {seed}, round {round}, layer {layer}");
            let entries: Vec<[Id; 4]> = expected.iter().copied().collect();
            if entries.is_empty() {
                assert!(overlay.is_empty(), "{context}");
                let mut keys = Vec::new();
                assert_eq!(overlay.keys(Id::UNBOUND, 10, &mut keys).expect("whole"), None, "{context}");
                assert!(keys.is_empty(), "{context}");
            } else {
                check_segment(&overlay, &entries, &world.objects, &world.graphs, &mut random, &context);
            }
            lower = Some(arc(overlay));
        }
    }
}

#[test]
fn hubs_and_many_keys() {
    let seed = seed();
    let mut random = random_of(seed, 0);
    let none = Id::UNBOUND;
    let triple =
        |subject, predicate, object| Statement { subject, predicate, object, graph: none, edge: none };
    let terms = Arc::new(vervet_dictionary::MutableDictionary::new(0, 0));
    let id = |number: u64| {
        let iri = oxrdf::NamedNode::new_unchecked(format!("http://e/{number}"));
        terms.intern(iri.as_ref().into()).expect("short")
    };
    let predicate = id(0);
    let all: Vec<Id> = (1..6000).map(id).collect();
    let empty = Arc::new(vervet_store::Store::empty().expect("nothing"));
    let mut version = Version::new(empty, Arc::clone(&terms));
    let mut expected = BTreeSet::new();
    let mut contents = BTreeSet::new();
    for round in 0..6 {
        let mut batch = Vec::new();
        for vertex in &all {
            if random.one_in(3) {
                batch.push(triple(*vertex, predicate, all[round]));
                batch.push(triple(all[7], predicate, *vertex));
                batch.push(triple(*vertex, predicate, random.pick(&all)));
            }
        }
        let before = expected.len();
        expected.extend(batch.iter().copied());
        let came = version.insert_all(&batch).expect("known ids");
        assert_eq!(came, (expected.len() - before) as u64, "seed {seed}");
        let segment = version.segment(predicate, Direction::Out).expect("whole").expect("entries");
        assert!(contents.insert(segment.content_id()), "seed {seed}: other entries with an identity in use");
        for _ in 0..500 {
            let at = usize::try_from(random.below(expected.len() as u64)).expect("small");
            let Some(statement) = expected.iter().nth(at).copied() else { continue };
            assert!(version.remove(&statement).expect("known ids") && expected.remove(&statement));
        }
        let model = Model { statements: expected.clone(), ..Model::default() };
        for direction in Direction::BOTH {
            let entries = entries(&model, predicate, direction);
            let segment = version.segment(predicate, direction).expect("whole").expect("full");
            let context = format!("seed {seed}, round {round}, {direction:?}");
            check_segment(segment, &entries, &all, &all, &mut random, &context);
            let statistics = segment.statistics();
            let keys = entries.chunk_by(|a, b| a[0] == b[0]).count() as f64;
            let off = statistics.keys as f64 / keys;
            assert!((0.3..3.0).contains(&off), "{context}: {} keys estimated of {keys}", statistics.keys);
        }
    }
}

#[test]
fn statements_invalid_in_a_store_are_refused() {
    let mut random = random_of(1, 1);
    let world = World::random(&mut random);
    let base = world.build(&[], false);
    let mut version = Version::new(base, Arc::clone(&world.later));
    let none = Id::UNBOUND;
    let v = world.vertices[0];
    let plain = Statement { subject: v, predicate: v, object: v, graph: none, edge: none };
    let one = Statement { edge: Id::edge(1), ..plain };
    let far = Id::vertex(world.later.vertex_end());
    let inline = Id::new(vervet_model::Tag::Integer, 1);
    for (statement, kind, message) in [
        (Statement { subject: Id::edge(3), ..plain }, ErrorKind::Input, "edge 3, which does not exist"),
        (Statement { object: Id::edge(1), ..plain }, ErrorKind::Input, "edge 1, which does not exist"),
        (Statement { subject: inline, ..plain }, ErrorKind::Internal, "the subject"),
        (Statement { subject: far, ..plain }, ErrorKind::Internal, "the subject"),
        (Statement { predicate: Id::literal(0), ..plain }, ErrorKind::Internal, "the predicate"),
        (Statement { object: none, ..plain }, ErrorKind::Internal, "the object"),
        (
            Statement { object: Id::new(vervet_model::Tag::Computed, 0), ..plain },
            ErrorKind::Internal,
            "object",
        ),
        (Statement { graph: inline, ..plain }, ErrorKind::Internal, "the graph"),
        (Statement { edge: v, ..plain }, ErrorKind::Internal, "the edge"),
    ] {
        let error = version.insert(&statement).expect_err(message);
        assert!(error.kind() == kind && error.message().contains(message), "{statement:?}: {error}");
        assert!(!version.remove(&statement).expect("nothing is there"));
        assert!(version.insert_all(&[plain, statement]).is_err(), "{statement:?}");
        assert_eq!((version.statement_count(), version.delta_cells()), (0, 0), "{statement:?}");
    }
    let itself = Statement { subject: Id::edge(1), ..one };
    assert!(version.insert(&itself).expect("good") && version.remove(&itself).expect("good"));
    assert!(version.insert(&one).expect("good"));
    let other = Statement { graph: v, ..one };
    let error = version.insert(&other).expect_err("the edge is taken");
    assert!(error.message().contains("edge 1 has another statement"), "{error}");
    assert!(version.insert_all(&[other]).is_err());
    let about = Statement { subject: Id::edge(1), ..plain };
    assert!(version.insert(&about).expect("good"));
    let error = version.remove(&one).expect_err("it is in use");
    assert!(error.message().contains("edge 1 is the subject or object"), "{error}");
    assert!(version.remove(&about).expect("good") && version.remove(&one).expect("good"));
    assert_eq!((version.statement_count(), version.delta_cells()), (0, 0));
    assert!(version.predicates().is_empty() && version.type_predicate().is_none());
}

/// The flag that lets plans use checks where edges are counted (plan F3): it is set once parallel edges were
/// added, in bulk or singly, over a base or not, and not before.
#[test]
fn f3_the_first_parallel_edge_sets_the_flag() {
    let terms = Arc::new(vervet_dictionary::MutableDictionary::new(0, 0));
    let id = |name: &str| {
        let iri = oxrdf::NamedNode::new_unchecked(format!("http://e/{name}"));
        terms.intern(iri.as_ref().into()).expect("short")
    };
    let (knows, graph, a, b) = (id("knows"), id("graph"), id("a"), id("b"));
    let edge = |number| Statement {
        subject: a,
        predicate: knows,
        object: b,
        graph: Id::UNBOUND,
        edge: Id::edge(number),
    };
    let plain = Statement { edge: Id::UNBOUND, ..edge(0) };
    let flags = |version: &Version| {
        Direction::BOTH.map(|direction| {
            let segment = version.segment(knows, direction).expect("whole").expect("it has entries");
            segment.statistics().has_parallel
        })
    };
    let empty = || {
        let store = Arc::new(vervet_store::Store::empty().expect("nothing"));
        Version::new(store, Arc::clone(&terms))
    };
    // Singly: an edge replaces a statement, and itself; in another graph it is another statement.
    let mut version = empty();
    for statement in [plain, edge(1), Statement { graph, ..edge(2) }] {
        assert!(version.insert(&statement).expect("good"));
        assert_eq!(flags(&version), [false; 2], "{statement:?}");
    }
    let structure = version.structure();
    assert!(version.insert(&edge(3)).expect("good"));
    assert_eq!(flags(&version), [true; 2]);
    assert_ne!(version.structure(), structure, "plans rely on it");
    // In bulk: parallel to each other, or to existing ones.
    let many = |from: u64| -> Vec<Statement> {
        let to = |number: u64| id(&format!("{number}"));
        (from..from + 100).map(|number| Statement { object: to(number), ..edge(number) }).collect()
    };
    let mut version = empty();
    version.insert_all(&many(100)).expect("good");
    assert_eq!(flags(&version), [false; 2]);
    let again =
        many(100).into_iter().map(|one| Statement { edge: Id::edge(one.edge.payload() + 1000), ..one });
    let mut other = version.clone();
    other.insert_all(&again.collect::<Vec<_>>()).expect("good");
    assert_eq!(flags(&other), [true; 2]);
    let twins = [many(300), vec![edge(1), edge(2)]].concat();
    version.insert_all(&twins).expect("good");
    assert_eq!(flags(&version), [true; 2]);
}

/// A restored entry of the lower segment may be parallel to entries added meanwhile.
#[test]
fn f3_a_restored_edge_may_be_parallel() {
    let seed = seed();
    for round in 0..40 {
        let mut random = random_of(seed, round);
        let world = World::random(&mut random);
        let model = world.early_model(200, &mut random);
        let statements: Vec<Statement> = model.statements.iter().copied().collect();
        let base = world.build(&statements, false);
        let Some(edge) = statements.iter().find(|one| one.edge.is_bound() && !is_used(&statements, one.edge))
        else {
            continue;
        };
        let mut version = Version::new(Arc::clone(&base), Arc::clone(&world.later));
        let next = Statement { edge: Id::edge(base.edge_count() + 7), ..*edge };
        assert!(version.remove(edge).expect("good") && version.insert(&next).expect("good"));
        assert!(version.insert(edge).expect("good"), "seed {seed}, round {round}");
        for direction in Direction::BOTH {
            let segment = version.segment(edge.predicate, direction).expect("whole").expect("it has entries");
            assert!(segment.statistics().has_parallel, "seed {seed}, round {round}");
        }
    }
}

fn is_used(statements: &[Statement], edge: Id) -> bool {
    statements.iter().any(|one| one.subject == edge || one.object == edge)
}

/// The flag by which plans join strings as terms: other objects drop it, in bulk or singly, over a base or
/// not, and plans of before are not used.
#[test]
fn objects_other_than_strings_drop_the_flag() {
    let terms = Arc::new(vervet_dictionary::MutableDictionary::new(0, 0));
    let intern = |term: oxrdf::Term| terms.intern(term.as_ref()).expect("short");
    let id = |name: String| intern(oxrdf::NamedNode::new_unchecked(format!("http://e/{name}")).into());
    let literal = |literal: oxrdf::Literal| intern(literal.into());
    let name = id("name".to_owned());
    let text = |number: u32| literal(format!("a long text with the number {number}").into());
    let tagged = oxrdf::Literal::new_language_tagged_literal_unchecked("a long text with a tag", "en");
    let integer = oxrdf::vocab::xsd::INTEGER;
    let others = [
        literal(tagged),
        literal(oxrdf::Literal::new_typed_literal("000000000000000000001", integer)),
        literal(5.into()),
        id("a".to_owned()),
    ];
    let of = |number: u32, object: Id| Statement {
        subject: id(format!("s{number}")),
        predicate: name,
        object,
        graph: Id::UNBOUND,
        edge: Id::UNBOUND,
    };
    let flags = |version: &Version| {
        Direction::BOTH.map(|direction| {
            let segment = version.segment(name, direction).expect("whole").expect("it has entries");
            segment.statistics().plain_strings_only
        })
    };
    for count in [1, 100] {
        for other in others {
            let store = Arc::new(vervet_store::Store::empty().expect("nothing"));
            let mut version = Version::new(store, Arc::clone(&terms));
            let many: Vec<Statement> = (0..count).map(|number| of(number, text(number))).collect();
            version.insert_all(&many).expect("good");
            version.insert(&of(3, literal("short".into()))).expect("good");
            assert_eq!(flags(&version), [true, false], "{count}");
            let structure = version.structure();
            let with_other: Vec<Statement> = (0..count)
                .map(|number| of(number + 200, if number == 0 { other } else { text(1) }))
                .collect();
            version.insert_all(&with_other).expect("good");
            assert_eq!(flags(&version), [false; 2], "{count} with {other:?}");
            assert_ne!(version.structure(), structure, "plans rely on it");
        }
    }
}

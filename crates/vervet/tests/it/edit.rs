//! Typed writes: the effects of each method, its errors, and which transactions conflict.

use std::path::Path;
use std::sync::Barrier;
use vervet::{
    Database, Direction, Edge, Environment, ErrorKind, Format, Graph, Isolation, Literal, Result, Term,
    Transaction, TransactionOptions, Vertex,
};

const IN_GRAPH: &str = "INSERT DATA { GRAPH <urn:g> {
  <urn:vervet:vertex:x> a <urn:vervet:label:thing> ; <urn:vervet:key:size> 1, 2 ; <urn:vervet:key:part> <urn:vervet:vertex:y> .
  <urn:vervet:vertex:y> a <urn:vervet:label:thing> } }";

fn texts(graph: Graph<'_>, element: impl vervet::Element, key: &str) -> Vec<String> {
    let text = |value| match value {
        Term::Literal(value) => value.value().to_owned(),
        other => other.to_string(),
    };
    let mut texts: Vec<String> =
        graph.property_values(element, key).expect("whole").into_iter().map(text).collect();
    texts.sort();
    texts
}

fn vertex(database: &Database, name: &str) -> Vertex {
    database.snapshot().graph().vertex(name).expect("whole").expect("it is there")
}

fn out_edges(database: &Database, vertex: Vertex, label: &str) -> Vec<Edge> {
    database.snapshot().graph().edges(vertex, label, Direction::Out).expect("whole")
}

fn statements(database: &Database) -> usize {
    let all = "SELECT * { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }";
    database.select(all).expect("it runs").len()
}

/// Ann and Bob with two `knows` edges; one has a `since` of 2019.
fn two_people() -> Result<(Database, Vertex, Vertex, [Edge; 2])> {
    let database = Database::in_memory();
    let (ann, bob, edges) = database.transact(|t| {
        let ann = t.add_vertex_named("ann", &["person", "author"])?;
        let bob = t.add_vertex_named("bob", &[])?;
        let edges = [t.add_edge(ann, "knows", bob)?, t.add_edge(ann, "knows", bob)?];
        t.set_property(edges[0], "since", 2019)?;
        t.set_property(ann, "name", "Ann")?;
        Ok((ann, bob, edges))
    })?;
    Ok((database, ann, bob, edges))
}

#[test]
fn what_was_added_is_there_for_both_interfaces() -> Result<()> {
    let (database, ann, bob, edges) = two_people()?;
    let snapshot = database.snapshot();
    let graph = snapshot.graph();
    assert_eq!(graph.vertex("ann")?, Some(ann));
    let mut labels = graph.labels(ann)?;
    labels.sort();
    assert_eq!(labels, ["author", "person"]);
    assert_eq!(graph.labels(bob)?, ["vertex"]);
    let mut found = graph.edges(ann, "knows", Direction::Out)?;
    found.sort();
    assert_eq!(found, edges);
    assert_eq!(graph.edges(bob, "knows", Direction::In)?.len(), 2);
    assert_eq!(database.transact(|t| t.edges_between(ann, "knows", bob))?, edges);
    assert_eq!(texts(graph, edges[0], "since"), ["2019"]);
    assert_eq!(texts(graph, edges[1], "since"), [""; 0]);
    let query = "PREFIX key: <urn:vervet:key:> SELECT * {
      <urn:vervet:vertex:ann> key:name 'Ann' ; key:knows ?who ~ ?e . ?e key:since 2019 . ?who a <urn:vervet:label:vertex> }";
    assert_eq!(database.select(query)?.len(), 1);
    database.check()
}

#[test]
fn fresh_vertices_have_names_of_their_own() -> Result<()> {
    let database = Database::in_memory();
    let vertices =
        database.transact(|t| (0..100).map(|_| t.add_vertex(&["a"])).collect::<Result<Vec<_>>>())?;
    let snapshot = database.snapshot();
    let graph = snapshot.graph();
    let mut names = vertices.iter().map(|v| graph.external_id(*v)).collect::<Result<Vec<_>>>()?;
    for (name, vertex) in names.iter().zip(&vertices) {
        assert_eq!(graph.vertex(name)?, Some(*vertex));
    }
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 100);
    Ok(())
}

#[test]
fn properties_have_one_value_or_a_set() -> Result<()> {
    let (database, ann, _, [edge, _]) = two_people()?;
    let mut t = database.begin()?;
    assert!(t.add_property(ann, "name", "Anna")?);
    assert!(!t.add_property(ann, "name", "Anna")?);
    t.read(|graph| {
        assert_eq!(texts(graph, ann, "name"), ["Ann", "Anna"]);
        Ok(())
    })?;
    assert!(t.remove_property_value(ann, "name", "Ann")?);
    assert!(!t.remove_property_value(ann, "name", "Ann")?);
    assert!(!t.remove_property_value(ann, "name", "nobody has ever said this")?);
    t.add_property(ann, "name", "A.")?;
    t.set_property(ann, "name", "A.")?;
    t.set_property(edge, "since", Literal::new_simple_literal("2020"))?;
    t.add_property(edge, "since", 7.5)?;
    t.read(|graph| {
        assert_eq!(texts(graph, ann, "name"), ["A."]);
        assert_eq!(texts(graph, edge, "since"), ["2020", "7.5"]);
        Ok(())
    })?;
    assert_eq!(t.remove_property(edge, "since")?, 2);
    assert_eq!(t.remove_property(edge, "since")?, 0);
    assert_eq!(t.remove_property(edge, "nobody has ever said this")?, 0);
    t.commit()?;
    let snapshot = database.snapshot();
    assert_eq!(texts(snapshot.graph(), ann, "name"), ["A."]);
    assert_eq!(snapshot.graph().properties(edge)?, []);
    Ok(())
}

/// `likes` is both a property key and an edge label: setting the property keeps the edge.
#[test]
fn a_key_and_a_label_may_have_one_name() -> Result<()> {
    let (database, ann, bob, _) = two_people()?;
    let mut t = database.begin()?;
    t.set_property(ann, "likes", "tea")?;
    let edge = t.add_edge(ann, "likes", bob)?;
    t.set_property(ann, "likes", "coffee")?;
    t.commit()?;
    assert_eq!(out_edges(&database, ann, "likes"), [edge]);
    let mut t = database.begin()?;
    assert_eq!(t.remove_property(ann, "likes")?, 1);
    t.commit()?;
    assert_eq!(out_edges(&database, ann, "likes"), [edge]);
    Ok(())
}

#[test]
fn labels_come_and_go_and_one_stays() -> Result<()> {
    let (database, ann, bob, _) = two_people()?;
    let mut t = database.begin()?;
    assert!(t.add_label(ann, "editor")?);
    assert!(!t.add_label(ann, "editor")?);
    assert!(!t.remove_label(ann, "planet")?);
    for label in ["author", "editor", "person"] {
        assert!(t.remove_label(ann, label)?);
    }
    assert_eq!(t.read(|graph| graph.labels(ann))?, ["vertex"]);
    let error = t.remove_label(bob, "vertex").expect_err("it is the last one");
    assert_eq!(error.kind(), ErrorKind::Input);
    assert!(t.add_label(bob, "person")? && t.remove_label(bob, "vertex")?);
    t.commit()?;
    let snapshot = database.snapshot();
    assert_eq!(snapshot.graph().labels(bob)?, ["person"]);
    assert_eq!(snapshot.graph().vertices_with_label("vertex")?, [ann]);
    Ok(())
}

#[test]
fn what_goes_takes_everything_along() -> Result<()> {
    let (database, ann, bob, edges) = two_people()?;
    let mut t = database.begin()?;
    assert_eq!(t.remove_edge(edges[0])?, 2);
    assert_eq!(t.read(|graph| graph.edges(ann, "knows", Direction::Out))?, [edges[1]]);
    let eve = t.add_vertex_named("eve", &["person"])?;
    let itself = t.add_edge(ann, "knows", ann)?;
    let other = t.add_edge(eve, "knows", ann)?;
    for edge in [itself, other, edges[1]] {
        t.set_property(edge, "since", 3)?;
        t.add_property(edge, "since", 4)?;
    }
    // Two labels, a name, three edges with two values each.
    assert_eq!(t.remove_vertex(ann)?, 2 + 1 + 9);
    for gone in [t.remove_vertex(ann), t.remove_edge(other), t.set_property(ann, "a", 1).map(|()| 0)] {
        assert_eq!(gone.expect_err("it is gone").kind(), ErrorKind::Input);
    }
    t.commit()?;
    assert_eq!(statements(&database), 2);
    let snapshot = database.snapshot();
    assert!(snapshot.graph().labels(ann)?.is_empty());
    assert_eq!(snapshot.graph().labels(bob)?, ["vertex"]);
    // The name is free again.
    let again = database.transact(|t| t.add_vertex_named("ann", &["person"]))?;
    assert_eq!(snapshot.graph().external_id(again)?, "ann");
    Ok(())
}

#[test]
fn all_graphs_count_and_what_is_new_comes_into_that_of_its_element() -> Result<()> {
    let database = Database::in_memory();
    database.update(IN_GRAPH)?;
    let (x, y) = (vertex(&database, "x"), vertex(&database, "y"));
    let part = out_edges(&database, x, "part")[0];
    let mut t = database.begin()?;
    let error = t.set_property(part, "since", 1).expect_err("it has no identity");
    assert!(error.message().contains("no identity"), "{error}");
    let edge = t.add_edge(x, "part", y)?;
    t.set_property(edge, "since", 1)?;
    t.set_property(x, "size", 2)?;
    t.add_label(y, "other")?;
    t.commit()?;
    // The plain statement has become the edge.
    assert_eq!(out_edges(&database, x, "part"), [edge]);
    let all = database.select("SELECT * { ?s ?p ?o }")?.len();
    let named = database.select("SELECT * { GRAPH <urn:g> { ?s ?p ?o } }")?.len();
    assert_eq!((all, named), (0, 6));
    let removed = database.transact(|t| t.remove_vertex(x))?;
    assert_eq!((removed, statements(&database)), (4, 2));
    Ok(())
}

#[test]
fn plain_statements_are_edges_too() -> Result<()> {
    let database = Database::in_memory();
    let text = "<urn:a> <urn:p> <urn:b> . GRAPH <urn:g> { <urn:a> <urn:p> <urn:b>, <urn:c> }";
    database.load_text(Format::TriG, text)?;
    let a = vertex(&database, "urn:a");
    let edges = out_edges(&database, a, "urn:p");
    let mut t = database.begin()?;
    // No vertex has a label here; they exist because statements mention them.
    let edge = t.add_edge(vertex(&database, "urn:c"), "urn:q", a)?;
    assert_eq!(t.remove_edge(edges[0])?, 2);
    t.remove_edge(edges[0]).expect_err("it is gone");
    t.commit()?;
    assert_eq!(statements(&database), 2);
    database.transact(|t| t.remove_edge(edge))?;
    let b = vertex(&database, "urn:b");
    assert_eq!(database.transact(|t| t.remove_vertex(b)).expect_err("gone").kind(), ErrorKind::Input);
    Ok(())
}

/// A statement about an edge that is itself an edge with a property, and so on.
#[test]
fn edges_about_edges_go_along() -> Result<()> {
    let database = Database::in_memory();
    let text = "<urn:a> <urn:p> <urn:b> ~ <urn:e1> . <urn:e1> <urn:q> <urn:c> ~ <urn:e2> .
      <urn:e2> <urn:q> 5 . <urn:d> <urn:says> <urn:e2>, <urn:e1> .";
    database.load_text(Format::Turtle, text)?;
    let edge = out_edges(&database, vertex(&database, "urn:a"), "urn:p")[0];
    // Both edges with their names, one value, two statements about them.
    assert_eq!(database.transact(|t| t.remove_edge(edge))?, 7);
    assert_eq!(statements(&database), 0);
    database.checkpoint()?;
    database.check()
}

#[test]
fn names_that_cannot_be_are_refused() -> Result<()> {
    let (database, ann, bob, [edge, _]) = two_people()?;
    let before = statements(&database);
    let mut t = database.begin()?;
    let rdf_type = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
    let refused = [
        (t.add_vertex_named("ann", &["person"]).map(drop), "the vertex ann is there already"),
        (t.add_vertex_named("urn:a b", &[]).map(drop), "urn:a b is not an IRI"),
        (t.add_vertex_named("_:a b", &[]).map(drop), "_:a b is not a blank node"),
        (t.add_vertex_named("urn:vervet:edge:0", &[]).map(drop), "is the name of an edge"),
        (t.add_vertex(&["http://a/ b"]).map(drop), "http://a/ b is not an IRI"),
        (t.add_edge(ann, rdf_type, bob).map(drop), "cannot be a key or the label of an edge"),
        (t.set_property(ann, rdf_type, "x"), "cannot be a key or the label of an edge"),
        (t.set_property(edge, "urn:vervet:edge:77", "x"), "is the name of an edge"),
        (t.add_label(ann, "urn:vervet:edge:0").map(drop), "is the name of an edge"),
    ];
    for (done, message) in refused {
        let error = done.expect_err(message);
        assert_eq!(error.kind(), ErrorKind::Input, "{error}");
        assert!(error.message().contains(message), "{error}");
        assert!(
            error.hint().is_some() || error.message().ends_with("IRI") || error.message().ends_with("node")
        );
    }
    t.commit()?;
    assert_eq!(statements(&database), before);
    Ok(())
}

#[test]
fn a_failed_or_dropped_transaction_leaves_nothing() -> Result<()> {
    let (database, ann, bob, edges) = two_people()?;
    let before = statements(&database);
    let mut t = database.begin()?;
    let savepoint = t.savepoint();
    t.remove_vertex(ann)?;
    t.roll_back_to(&savepoint)?;
    let eve = t.add_vertex_named("eve", &[])?;
    let edge = t.add_edge(bob, "knows", eve)?;
    drop(t);
    assert_eq!(statements(&database), before);
    let mut t = database.begin()?;
    for gone in [t.add_edge(eve, "knows", bob).map(drop), t.remove_edge(edge).map(drop)] {
        assert_eq!(gone.expect_err("never committed").kind(), ErrorKind::Input);
    }
    t.set_property(edges[1], "since", 1)?;
    t.commit()?;
    Ok(())
}

/// Runs two overlapping transactions, of which the first commits first; returns whether the second may
/// commit.
fn both(
    database: &Database,
    isolation: Isolation,
    first: &dyn Fn(&mut Transaction) -> Result<()>,
    second: &dyn Fn(&mut Transaction) -> Result<()>,
) -> Result<bool> {
    let begin = || database.begin_with(TransactionOptions { isolation });
    let (mut one, mut other) = (begin()?, begin()?);
    first(&mut one)?;
    second(&mut other)?;
    one.commit()?;
    match other.commit() {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::Conflict => Ok(false),
        Err(error) => Err(error),
    }
}

#[test]
fn who_conflicts_with_whom() -> Result<()> {
    type Work = Box<dyn Fn(&mut Transaction) -> Result<()>>;
    let (_, ann, bob, edges) = two_people()?;
    // The same names and numbers in each database.
    let set = |value: i32| -> Work { Box::new(move |t| t.set_property(ann, "name", value)) };
    let set_age = || -> Work { Box::new(move |t| t.set_property(ann, "age", 1)) };
    let add = |value: i32| -> Work { Box::new(move |t| t.add_property(ann, "name", value).map(drop)) };
    let set_on_edge = || -> Work { Box::new(move |t| t.set_property(edges[0], "weight", 1)) };
    let link = || -> Work { Box::new(move |t| t.add_edge(ann, "knows", bob).map(drop)) };
    let unlink = || -> Work { Box::new(move |t| t.remove_edge(edges[0]).map(drop)) };
    let remove = || -> Work { Box::new(move |t| t.remove_vertex(bob).map(drop)) };
    let remove_other = || -> Work { Box::new(move |t| t.remove_vertex(ann).map(drop)) };
    let name = || -> Work { Box::new(|t| t.add_vertex_named("eve", &["person"]).map(drop)) };
    let label = |label: &'static str| -> Work { Box::new(move |t| t.add_label(ann, label).map(drop)) };
    let unlabel = |label: &'static str| -> Work { Box::new(move |t| t.remove_label(ann, label).map(drop)) };
    let fresh = || -> Work { Box::new(|t| t.add_vertex(&["person"]).map(drop)) };
    // Add-if-absent of an edge.
    let once = |label: &'static str| -> Work {
        Box::new(move |t| {
            if t.edges_between(ann, label, bob)?.is_empty() {
                t.add_edge(ann, label, bob)?;
            }
            Ok(())
        })
    };
    let itself = || -> Work { Box::new(move |t| t.add_edge(ann, "likes", ann).map(drop)) };
    let cases: [(Work, Work, bool, bool); 23] = [
        // A lost update.
        (set(1), set(2), false, false),
        (set(1), set_age(), true, true),
        (set_on_edge(), set_on_edge(), false, false),
        (add(1), add(2), true, false),
        (add(1), set(2), false, false),
        (link(), link(), true, true),
        (link(), set(1), true, true),
        (fresh(), fresh(), true, true),
        (link(), unlink(), true, true),
        (unlink(), unlink(), false, false),
        (unlink(), set_on_edge(), false, false),
        (set_on_edge(), unlink(), false, false),
        // Removal of an end vertex: write skew, which snapshot isolation permits.
        (remove(), link(), false, true),
        (link(), remove(), false, true),
        (remove(), set(1), true, true),
        (remove_other(), set(1), false, false),
        (set_age(), remove_other(), false, true),
        (name(), name(), false, true),
        (label("x"), label("y"), true, true),
        // Removal of the last label.
        (unlabel("person"), unlabel("author"), false, true),
        (once("likes"), once("likes"), false, true),
        (once("knows"), once("knows"), true, true),
        (itself(), once("likes"), true, true),
    ];
    for (number, (first, second, serializable, snapshot)) in cases.iter().enumerate() {
        for (isolation, allowed) in [(Isolation::Serializable, serializable), (Isolation::Snapshot, snapshot)]
        {
            let (database, ..) = two_people()?;
            let was_allowed = both(&database, isolation, first, second)?;
            assert_eq!(was_allowed, *allowed, "case {number}, {isolation:?}");
            database.checkpoint()?;
            database.check()?;
        }
    }
    Ok(())
}

/// Write skew: each of two transactions checks that the other person is on call, and takes its own off call.
#[test]
fn write_skew_is_a_conflict() -> Result<()> {
    let (database, ann, bob, _) = two_people()?;
    database.transact(|t| {
        t.set_property(ann, "on call", true)?;
        t.set_property(bob, "on call", true)
    })?;
    let leave = |who: Vertex, other: Vertex| {
        move |t: &mut Transaction| {
            let is_there = t.read(|graph| graph.property(other, "on call"))?;
            if is_there == Some(Literal::from(true).into()) {
                t.set_property(who, "on call", false)?;
            }
            Ok(())
        }
    };
    assert!(!both(&database, Isolation::Serializable, &leave(ann, bob), &leave(bob, ann))?);
    let snapshot = database.snapshot();
    assert_eq!(snapshot.graph().property(bob, "on call")?, Some(Literal::from(true).into()));
    Ok(())
}

/// Many threads concurrently add edges to one vertex; none reads the edges of the others.
#[test]
fn many_threads_add_edges_to_one_vertex_without_a_conflict() -> Result<()> {
    const THREADS: usize = 16;
    const EDGES: usize = 50;
    for isolation in [Isolation::Serializable, Isolation::Snapshot] {
        let database = Database::in_memory();
        let hub = database.transact(|t| t.add_vertex_named("hub", &["hub"]))?;
        let start = Barrier::new(THREADS);
        std::thread::scope(|scope| {
            let add = || {
                start.wait();
                for _ in 0..EDGES {
                    let mut t = database.begin_with(TransactionOptions { isolation })?;
                    let leaf = t.add_vertex(&["leaf"])?;
                    let edges = [t.add_edge(hub, "has", leaf)?, t.add_edge(hub, "has", hub)?];
                    for edge in edges {
                        t.set_property(edge, "weight", 1)?;
                    }
                    t.commit()?;
                }
                Ok(())
            };
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(add)).collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
        })
        .and_then(|()| {
            let snapshot = database.snapshot();
            let degree = snapshot.graph().degree(hub, "has", Direction::Out)?;
            assert_eq!(degree, (2 * THREADS * EDGES) as u64);
            assert_eq!(database.transaction_counts().conflicts, 0);
            // Each removed edge loses its weight too.
            let removed = database.transact(|t| t.remove_vertex(hub))?;
            assert_eq!(removed, 1 + 4 * (THREADS * EDGES) as u64);
            database.check()
        })?;
    }
    Ok(())
}

#[test]
fn what_was_written_is_there_after_opening_again() -> Result<()> {
    let environment = Environment::simulated(3);
    let directory = Path::new("/db");
    let open = || Database::open_or_create_in(environment.clone(), directory);
    let database = open()?;
    let (ann, edge) = database.transact(|t| {
        let ann = t.add_vertex_named("ann", &["person"])?;
        let bob = t.add_vertex(&[])?;
        let edge = t.add_edge(ann, "knows", bob)?;
        t.set_property(edge, "since", 2019)?;
        Ok((ann, edge))
    })?;
    drop(database);
    let database = open()?;
    assert_eq!(out_edges(&database, ann, "knows"), [edge]);
    database.transact(|t| t.set_property(edge, "since", 2020))?;
    database.checkpoint()?;
    drop(database);
    let database = open()?;
    assert_eq!(texts(database.snapshot().graph(), edge, "since"), ["2020"]);
    database.transact(|t| t.remove_vertex(edge.target))?;
    drop(database);
    assert_eq!(statements(&open()?), 1);
    Ok(())
}

/// Other ways to remove edges with properties, and edges about edges.
#[test]
fn updates_remove_edges_with_what_they_say() -> Result<()> {
    let nested = "<urn:a> <urn:p> <urn:b> ~ <urn:e1> . <urn:e1> <urn:q> <urn:c> ~ <urn:e2> .
      <urn:e2> <urn:o> <urn:f> ~ <urn:e3> . <urn:e3> <urn:q> 5 . <urn:d> <urn:a> <urn:e3>, <urn:e1> .";
    let requests = [
        ("DELETE WHERE { ?a <urn:vervet:key:knows> ?b . ?a <urn:vervet:key:knows> ?b ~ ?e }", 7),
        ("DELETE WHERE { ?s ?p ?o }", 20),
        ("DELETE WHERE { ?s <urn:p> ?o }", 11),
        ("DELETE { ?s <urn:p> ?o ~ ?e } WHERE { ?s <urn:p> ?o ~ ?e }", 11),
        ("CLEAR DEFAULT", 20),
        ("CLEAR ALL", 20),
        ("DROP ALL", 20),
    ];
    for (request, _) in requests {
        let (database, ..) = two_people()?;
        database.load_text(Format::Turtle, nested)?;
        let before = database.snapshot().statement_count();
        let report = database.update(request)?;
        let after = database.snapshot().statement_count();
        assert_eq!(report.removed, before - after, "{request}");
        if !request.contains("urn:") {
            assert_eq!(after, 0, "{request}");
        }
        database.checkpoint()?;
        database.check()?;
    }
    Ok(())
}

/// An edge number is never reused, so a stale handle cannot refer to another edge: not after a checkpoint, a
/// load, a backup or reopening.
#[test]
fn numbers_of_edges_that_are_gone_do_not_come_again() -> Result<()> {
    let environment = Environment::simulated(4);
    let open = |name: &str| Database::open_or_create_in(environment.clone(), Path::new(name));
    let mut database = open("/db")?;
    let hub = database.transact(|t| t.add_vertex_named("hub", &[]))?;
    let mut seen = Vec::new();
    for round in 0..8 {
        let edge = database.transact(|t| t.add_edge(hub, "to", hub))?;
        let id = edge.id().expect("it has one");
        assert!(!seen.contains(&id), "round {round}: {id:?} of {seen:?}");
        seen.push(id);
        database.transact(|t| t.remove_edge(edge))?;
        if round == 2 {
            database.load_text(Format::NTriples, "<urn:a> <urn:p> <urn:b> .\n")?;
        } else if round == 4 {
            database.backup("/copy")?;
            database = open("/copy")?;
        } else if round != 6 {
            database.checkpoint()?;
        }
        database.check()?;
        if round % 2 == 1 {
            let name = if round < 4 { "/db" } else { "/copy" };
            drop(database);
            database = open(name)?;
        }
    }
    Ok(())
}

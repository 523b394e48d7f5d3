//! Typed writes against a model of a few lines: in the delta, in the base, after a checkpoint, reopened; and
//! on the world's air routes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use vervet::{
    Database, Direction, Edge, Element, Environment, Graph, Literal, LoadOptions, Result, Source, Term,
    Transaction, Vertex,
};
use vervet_testkit::Random;

const LABELS: [&str; 3] = ["person", "author", "vertex"];
const KEYS: [&str; 3] = ["name", "age", "knows"];
const EDGE_LABELS: [&str; 2] = ["knows", "likes"];
/// One value inline in an id, others in the dictionary.
const VALUES: [&str; 3] = ["1", "two", "a text that is too long for an id"];

type Properties = BTreeMap<&'static str, BTreeSet<&'static str>>;

/// The model: a property graph.
#[derive(Clone, Default)]
struct Model {
    vertices: BTreeMap<Vertex, (BTreeSet<&'static str>, Properties)>,
    edges: BTreeMap<Edge, (&'static str, Properties)>,
    /// Vertices with names.
    names: BTreeMap<String, Vertex>,
}

impl Model {
    fn remove_vertex(&mut self, vertex: Vertex) -> bool {
        self.edges.retain(|edge, _| edge.source != vertex && edge.target != vertex);
        self.names.retain(|_, named| *named != vertex);
        self.vertices.remove(&vertex).is_some()
    }

    fn statements(&self) -> usize {
        let values = |properties: &Properties| properties.values().map(BTreeSet::len).sum::<usize>();
        let vertices = self.vertices.values().map(|(labels, properties)| labels.len() + values(properties));
        vertices.sum::<usize>() + self.edges.values().map(|(_, of)| 1 + values(of)).sum::<usize>()
    }
}

fn texts(graph: Graph<'_>, element: impl Element, key: &str) -> Result<BTreeSet<String>> {
    let values = graph.property_values(element, key)?.into_iter().filter_map(|value| match value {
        Term::Literal(value) => Some(value.value().to_owned()),
        _ => None,
    });
    Ok(values.collect())
}

/// Compares the graph with the model through the typed interface.
fn compare(graph: Graph<'_>, model: &Model, all: &[Vertex]) -> Result<()> {
    let owned = |set: &BTreeSet<&str>| set.iter().map(|s| (*s).to_owned()).collect::<BTreeSet<String>>();
    let none = (BTreeSet::new(), Properties::new());
    let check = |element: &dyn Fn(&str) -> Result<BTreeSet<String>>, properties: &Properties| -> Result<()> {
        for key in KEYS {
            let expected = properties.get(key).map(owned).unwrap_or_default();
            assert_eq!(element(key)?, expected, "{key}");
        }
        Ok(())
    };
    for vertex in all {
        let (labels, properties) = model.vertices.get(vertex).unwrap_or(&none);
        assert_eq!(graph.labels(*vertex)?.into_iter().collect::<BTreeSet<_>>(), owned(labels), "{vertex:?}");
        check(&|key| texts(graph, *vertex, key), properties)?;
        for label in EDGE_LABELS {
            for direction in Direction::BOTH {
                let end = |edge: &Edge| if direction == Direction::Out { edge.source } else { edge.target };
                let expected =
                    model.edges.iter().filter(|(edge, (l, _))| *l == label && end(edge) == *vertex);
                let expected: Vec<Edge> = expected.map(|(edge, _)| *edge).collect();
                let mut found = graph.edges(*vertex, label, direction)?;
                found.sort();
                assert_eq!(found, expected, "{label} of {vertex:?}");
            }
        }
    }
    for (edge, (label, properties)) in &model.edges {
        assert_eq!(graph.edge_label(*edge)?, *label);
        check(&|key| texts(graph, *edge, key), properties)?;
    }
    for label in LABELS {
        let expected = model.vertices.iter().filter(|(_, (labels, _))| labels.contains(label));
        let mut expected: Vec<Vertex> = expected.map(|(vertex, _)| *vertex).collect();
        expected.sort();
        assert_eq!(graph.vertices_with_label(label)?, expected, "{label}");
    }
    Ok(())
}

/// Applies one change to both; `all` has every vertex that ever existed.
fn change(
    t: &mut Transaction,
    model: &mut Model,
    all: &mut Vec<Vertex>,
    old: &mut Vec<Edge>,
    random: &mut Random,
) -> Result<()> {
    let pick = |random: &mut Random, from: &[&'static str]| random.pick(from);
    let vertex = |random: &mut Random| random.pick(all);
    let (key, value) = (pick(random, &KEYS), pick(random, &VALUES));
    match random.below(13) {
        0 | 1 => {
            let labels: BTreeSet<&str> = (0..random.below(3)).map(|_| pick(random, &LABELS)).collect();
            let listed: Vec<&str> = labels.iter().copied().collect();
            let vertex = if random.below(2) == 0 {
                t.add_vertex(&listed)?
            } else {
                let name = format!("n{}", random.below(10));
                match (t.add_vertex_named(&name, &listed), model.names.get(&name)) {
                    (Ok(vertex), None) => {
                        model.names.insert(name, vertex);
                        vertex
                    }
                    (Err(_), Some(_)) => return Ok(()),
                    (added, expected) => panic!("{name}: {added:?}, {expected:?}"),
                }
            };
            let labels = if labels.is_empty() { BTreeSet::from(["vertex"]) } else { labels };
            model.vertices.insert(vertex, (labels, Properties::new()));
            if !all.contains(&vertex) {
                all.push(vertex);
            }
        }
        2..5 => {
            let (from, to, label) = (vertex(random), vertex(random), pick(random, &EDGE_LABELS));
            let both = model.vertices.contains_key(&from) && model.vertices.contains_key(&to);
            let added = t.add_edge(from, label, to);
            assert_eq!(added.is_ok(), both);
            if let Ok(edge) = added {
                // Numbers of rolled-back transactions may be reused.
                if !old.contains(&edge) {
                    old.push(edge);
                }
                model.edges.insert(edge, (label, Properties::new()));
            }
        }
        5 => {
            let vertex = vertex(random);
            if random.below(3) == 0 {
                assert_eq!(t.remove_vertex(vertex).is_ok(), model.remove_vertex(vertex));
            }
        }
        6 => {
            let vertex = vertex(random);
            let label = pick(random, &LABELS);
            let labels = model.vertices.get_mut(&vertex).map(|(labels, _)| labels);
            let done = t.add_label(vertex, label).ok();
            assert_eq!(done, labels.map(|labels| labels.insert(label)));
        }
        7 => {
            let vertex = vertex(random);
            let label = pick(random, &LABELS);
            let done = t.remove_label(vertex, label).ok();
            let expected = model.vertices.get_mut(&vertex).and_then(|(labels, _)| {
                if *labels == BTreeSet::from(["vertex"]) && label == "vertex" {
                    return None;
                }
                let was = labels.remove(label);
                if labels.is_empty() {
                    labels.insert("vertex");
                }
                Some(was)
            });
            assert_eq!(done, expected);
        }
        8 if !old.is_empty() => {
            let edge = random.pick(old);
            assert_eq!(t.remove_edge(edge).is_ok(), model.edges.remove(&edge).is_some());
        }
        9 | 10 if !old.is_empty() => {
            let edge = random.pick(old);
            let properties = model.edges.get_mut(&edge).map(|(_, properties)| properties);
            property(t, edge, properties, key, value, random)?;
        }
        _ => {
            let vertex = vertex(random);
            let properties = model.vertices.get_mut(&vertex).map(|(_, properties)| properties);
            property(t, vertex, properties, key, value, random)?;
        }
    }
    Ok(())
}

fn property(
    t: &mut Transaction,
    element: impl Element,
    properties: Option<&mut Properties>,
    key: &'static str,
    value: &'static str,
    random: &mut Random,
) -> Result<()> {
    let text = Literal::new_simple_literal(value);
    let values = properties.map(|properties| properties.entry(key).or_default());
    match random.below(5) {
        0 | 1 => {
            let done = t.set_property(element, key, text);
            assert_eq!(done.ok(), values.map(|values| *values = BTreeSet::from([value])));
        }
        2 => {
            let done = t.add_property(element, key, text);
            assert_eq!(done.ok(), values.map(|values| values.insert(value)));
        }
        3 => {
            let done = t.remove_property_value(element, key, text);
            assert_eq!(done.ok(), values.map(|values| values.remove(value)));
        }
        _ => {
            let done = t.remove_property(element, key);
            assert_eq!(done.ok(), values.map(|values| std::mem::take(values).len() as u64));
        }
    }
    Ok(())
}

#[test]
fn the_graph_is_what_the_model_says() -> Result<()> {
    let seed = vervet_testkit::seed();
    eprintln!("seed {seed}");
    let mut random = Random(seed);
    for _ in 0..20 {
        let environment = Environment::simulated(random.next());
        let open = || Database::open_or_create_in(environment.clone(), Path::new("/db"));
        let mut database = open()?;
        let (mut model, mut all, mut old) = (Model::default(), Vec::new(), Vec::new());
        let first = database.transact(|t| t.add_vertex(&["person"]))?;
        model.vertices.insert(first, (BTreeSet::from(["person"]), Properties::new()));
        all.push(first);
        // Edges of commits; numbers of rolled-back edges may mean other edges after reopening.
        let mut committed = BTreeSet::from([first]);
        for _ in 0..40 {
            let mut t = database.begin()?;
            let mut inside = model.clone();
            for _ in 0..random.below(30) {
                change(&mut t, &mut inside, &mut all, &mut old, &mut random)?;
            }
            let (savepoint, marked) = (t.savepoint(), inside.clone());
            for _ in 0..random.below(10) {
                change(&mut t, &mut inside, &mut all, &mut old, &mut random)?;
            }
            if random.below(2) == 0 {
                t.roll_back_to(&savepoint)?;
                inside = marked;
            }
            t.read(|graph| compare(graph, &inside, &all))?;
            compare(database.snapshot().graph(), &model, &all)?;
            if random.below(4) == 0 {
                t.roll_back();
            } else {
                t.commit()?;
                model = inside;
                committed.extend(model.vertices.keys().copied());
            }
            match random.below(8) {
                0 => drop(database.checkpoint()?),
                1 => {
                    drop(database);
                    database = open()?;
                    all.retain(|vertex| committed.contains(vertex));
                }
                _ => {}
            }
            let snapshot = database.snapshot();
            compare(snapshot.graph(), &model, &all)?;
            assert_eq!(snapshot.statement_count(), model.statements() as u64);
        }
        database.checkpoint()?;
        database.check()?;
        compare(database.snapshot().graph(), &model, &all)?;
    }
    Ok(())
}

/// The folder of the air routes, if the test data are available.
fn air_routes() -> Option<PathBuf> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = std::env::var_os("VERVET_TEST_DATA").map_or(beside, PathBuf::from);
    let mut names = ["data/air-routes", "air-routes"].iter().map(|name| folder.join(name));
    let found = names.find(|path| path.is_dir());
    if found.is_none() {
        eprintln!("skipped: no air routes at ../shared nor in VERVET_TEST_DATA");
    }
    found
}

/// The number of routes and of their distances.
fn routes(database: &Database) -> (i64, i64) {
    let text = "PREFIX key: <urn:vervet:key:> SELECT (COUNT(*) AS ?n) (COUNT(?d) AS ?m) {
      ?a key:route ?b ~ ?e OPTIONAL { ?e key:dist ?d } }";
    let solutions = database.select(text).expect("it runs");
    let row = solutions.rows().next().expect("one row");
    let number = |name| row.integer(name).expect("whole").expect("a number");
    (number("n"), number("m"))
}

/// Removes the airport with the most routes, stored in the base, with its routes and their properties.
#[test]
fn a_hub_goes_from_the_air_routes() -> Result<()> {
    let Some(folder) = air_routes() else { return Ok(()) };
    let environment = Environment::simulated(5);
    let open = || Database::open_or_create_in(environment.clone(), Path::new("/db"));
    let database = open()?;
    let files = ["air-routes-nodes.csv", "air-routes-edges.csv"].map(|name| Source::path(folder.join(name)));
    database.load(files.into(), &LoadOptions::default())?;
    let before = routes(&database);
    let snapshot = database.snapshot();
    let graph = snapshot.graph();
    let degrees = |vertex: Vertex| -> Result<u64> {
        let degree = |direction| graph.degree(vertex, "route", direction);
        Ok(degree(Direction::Out)? + degree(Direction::In)?)
    };
    let mut airports = Vec::new();
    for vertex in graph.vertices_with_label("airport")? {
        airports.push((degrees(vertex)?, vertex));
    }
    airports.sort();
    let [.., (_, second), (routes_of_hub, hub)] = airports[..] else { panic!("there are many") };
    assert!(routes_of_hub > 400, "{routes_of_hub}");
    let removed = database.transact(|t| t.remove_vertex(hub))?;
    let gone = i64::try_from(routes_of_hub).expect("few");
    let expected = (before.0 - gone, before.1 - gone);
    assert_eq!(routes(&database), expected);
    assert_eq!(database.snapshot().statement_count(), snapshot.statement_count() - removed);
    // A new airport replaces it.
    let (new, degree) = database.transact(|t| {
        let new = t.add_vertex_named("hub", &["airport"])?;
        for (_, other) in airports.iter().filter(|(_, other)| *other != hub).take(1000) {
            let route = t.add_edge(new, "route", *other)?;
            t.set_property(route, "dist", 100)?;
        }
        let degree = t.read(|graph| graph.degree(new, "route", Direction::Out))?;
        Ok((new, degree))
    })?;
    assert_eq!(degree, 1000);
    let expected = (expected.0 + 1000, expected.1 + 1000);
    assert_eq!(routes(&database), expected);
    drop(database);
    let database = open()?;
    assert_eq!(routes(&database), expected);
    database.checkpoint()?;
    database.check()?;
    assert_eq!(routes(&database), expected);
    let both = database.transact(|t| Ok(t.remove_vertex(new)? + t.remove_vertex(second)?))?;
    assert!(both > 3000, "{both}");
    database.checkpoint()?;
    database.check()
}

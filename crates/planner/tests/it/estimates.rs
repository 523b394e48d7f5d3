//! Estimated rows of joins in graphs without types, against the numbers that the reference evaluator counts.

use crate::common::algebra::Evaluator;
use crate::common::{Names, PREFIXES, explained, term};
use oxrdf::{GraphName, Quad, Term};
use vervet_algebra::Node;
use vervet_kernel::Control;
use vervet_model::Id;
use vervet_planner::{PlanOptions, explain, plan};
use vervet_snapshot::Snapshot;
use vervet_testkit::MemorySnapshot;

/// A graph from statements, each three words.
struct Graph {
    snapshot: MemorySnapshot,
    triples: Vec<[Id; 3]>,
}

impl Graph {
    fn new(statements: impl IntoIterator<Item = [String; 3]>) -> Self {
        let mut quads = Vec::new();
        for [subject, predicate, object] in statements {
            let (Term::NamedNode(subject), Term::NamedNode(predicate)) = (term(&subject), term(&predicate))
            else {
                panic!("{subject} {predicate}")
            };
            quads.push(Quad::new(subject, predicate, term(&object), GraphName::DefaultGraph));
        }
        let snapshot = MemorySnapshot::from_quads(quads.iter().cloned());
        let id = |term: &Term| snapshot.lookup(term.as_ref()).expect("in memory").expect("of the graph");
        let mut triples: Vec<[Id; 3]> = quads
            .iter()
            .map(|quad| {
                [id(&quad.subject.clone().into()), id(&quad.predicate.clone().into()), id(&quad.object)]
            })
            .collect();
        triples.sort_unstable();
        triples.dedup();
        Self { snapshot, triples }
    }

    /// Checks that the estimated rows of all solutions of `text` are within a factor of their number.
    fn check(&self, text: &str, factor: f64) {
        let mut names = Names::default();
        let root = names.node(text);
        self.check_node(names, root, text, factor);
    }

    fn check_node(&self, names: Names, root: Node, text: &str, factor: f64) {
        let actual =
            Evaluator { snapshot: &self.snapshot, triples: &self.triples }.evaluate(&root).len() as f64;
        let columns: Vec<String> = names.0.clone();
        let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
        let query = names.select(&columns, root);
        let plan = plan(&query, &self.snapshot, &PlanOptions::default(), &Control::default())
            .expect("it has a plan");
        let estimated = plan.pipeline.steps.last().expect("it has steps").rows;
        let (least, most) =
            (estimated.max(1.0).min(actual.max(1.0)), estimated.max(1.0).max(actual.max(1.0)));
        assert!(
            most <= factor * least,
            "{text}: estimated {estimated}, real {actual}\n{}",
            explain(&plan, &self.snapshot, &PREFIXES)
        );
    }
}

fn triple(subject: impl ToString, predicate: &str, object: impl ToString) -> [String; 3] {
    let name = |what: String| if what.starts_with(['"', 'T']) { what } else { format!("n{what}") };
    [name(subject.to_string()), predicate.to_owned(), name(object.to_string())]
}

/// A graph in the shape of gMark's bibliography: 2,000 vertices in a chain by `p0`; `p2`, which only 65
/// statements have, some of them with common ends; `p1` with popular objects.
fn bibliography() -> Graph {
    let chain = (0..2_000).map(|n| triple(n, "p0", n + 1));
    let rare = (0..65).map(|n| triple(3 * n, "p2", 3_000 + n / 5));
    let popular = (0..600).map(|n| triple(n, "p1", 5_000 + n % (1 + n % 40)));
    Graph::new(chain.chain(rare).chain(popular))
}

#[test]
fn the_same_predicate_at_the_same_end_is_certain() {
    let graph = bibliography();
    graph.check("?a p2 ?c . ?a p2 ?d", 1.5);
    graph.check("?a p2 ?c . ?b p2 ?c", 1.5);
    graph.check("?a p1 ?c . ?b p1 ?c", 1.5);
    graph.check("?a p1 ?c . ?b p1 ?c . ?d p1 ?c", 4.0);
    graph.check("?a p2 ?c . ?b p2 ?c . ?b p2 ?d . ?e p2 ?d", 1.5);
}

#[test]
fn ends_that_have_keys_in_common_are_known_without_types() {
    let graph = bibliography();
    graph.check("?a p2 ?c . ?a p0 ?d", 1.2);
    graph.check("?a p2 ?c . ?a p1 ?d", 2.0);
    graph.check("?a p0 ?b . ?b p2 ?c", 1.8);
    graph.check("?a p0 ?b . ?b p0 ?c . ?c p2 ?d", 2.0);
    // The end of one edge says nothing about the start of the edge before it.
    graph.check("?a p2 ?c . ?a p0 ?d . ?d p1 ?e", 4.0);
}

#[test]
fn ends_without_common_keys_are_nearly_empty_and_not_zero() {
    let disjoint = (0..1_000).map(|n| triple(n, "p0", 10_000 + n));
    let graph = Graph::new(disjoint.chain((0..1_000).map(|n| triple(2_000 + n, "p1", 20_000 + n))));
    graph.check("?a p0 ?b . ?a p1 ?c", 20.0);
    graph.check("?a p0 ?b . ?b p1 ?c", 20.0);
    let mut names = Names::default();
    let root = names.node("?a p0 ?b . ?a p1 ?c . ?c p0 ?d . ?d p1 ?e");
    let text = explained(&names.select(&["a", "e"], root), &graph.snapshot);
    assert!(!text.contains("empty"), "samples prove nothing:\n{text}");
}

#[test]
fn popular_vertices_are_hit_more_often() {
    // Members join groups, a few of which are large; large groups have many posts.
    let mut all = Vec::new();
    for member in 0..1_000_u32 {
        let group = if member % 3 == 0 { member % 5 } else { 5 + member % 300 };
        all.push(triple(member, "member", 2_000 + group));
    }
    for post in 0..3_000_u32 {
        let group = if post % 3 > 0 { post % 5 } else { 5 + post % 300 };
        all.push(triple(2_000 + group, "contains", 3_000 + post));
    }
    let graph = Graph::new(all);
    graph.check("?m member ?g . ?g contains ?p", 1.6);
    graph.check("?m member ?g . ?n member ?g", 1.2);
}

#[test]
fn a_type_that_a_variable_binds_is_as_large_as_its_vertices_say() {
    let mut all = Vec::new();
    for vertex in 0..1_000_u32 {
        let of = if vertex < 900 { 0 } else { vertex % 50 + 1 };
        all.push(triple(vertex, "a", format!("T{of}")));
        all.push(triple(vertex, "p0", vertex + 5_000));
    }
    let graph = Graph::new(all);
    graph.check("?v0 p0 ?x . ?v0 a ?t . ?v1 a ?t", 1.2);
}

#[test]
fn joins_of_unions_know_what_has_bound_their_variables() {
    let graph = bibliography();
    let mut names = Names::default();
    let left = Node::Union(vec![names.node("?a p2 ?b . ?c p2 ?b"), names.node("?a p2 ?b . ?a p2 ?c")]);
    let right = Node::Union(vec![names.node("?c p2 ?d"), names.node("?c p2 ?e . ?f p2 ?e . ?f p2 ?d")]);
    let root = Node::Join(vec![left, right]);
    graph.check_node(names, root, "unions", 2.0);
}

/// Many rows lead to few vertices, each of which a frontier expands once; under bag semantics each row
/// counts.
#[test]
fn the_search_expects_each_value_once_after_a_frontier() {
    let mut all = Vec::new();
    for at in 0..50_u32 {
        all.push(triple(1_000 + at, "e3", 1));
        // Each of these is one of 200.
        all.extend((0..60).map(|other| triple(2_000 + (7 * at + 3 * other) % 200, "e2", 1_000 + at)));
    }
    for at in 0..200_u32 {
        all.extend((0..40).map(|other| triple(3_000 + (11 * at + other) % 300, "e1", 2_000 + at)));
    }
    let graph = Graph::new(all);
    let most = |is_set: bool| {
        let mut names = Names::default();
        let chain = names.node("?a e1 ?b . ?b e2 ?c . ?c e3 n1");
        let variables = vec![names.variable("a")];
        let root = Node::Project { input: Box::new(chain), variables };
        let root = if is_set { Node::Distinct(Box::new(root)) } else { root };
        let query = names.select(&["a"], root);
        let plan = plan(&query, &graph.snapshot, &PlanOptions::default(), &Control::default())
            .expect("it has a plan");
        let rows = plan.pipeline.steps.iter().map(|step| step.rows).fold(0.0, f64::max);
        (rows, explain(&plan, &graph.snapshot, &PREFIXES))
    };
    let (rows, text) = most(true);
    assert!(rows <= 20_000.0, "{rows}\n{text}");
    assert!(text.contains("frontier"), "{text}");
    let (_, text) = most(false);
    assert!(!text.contains("frontier"), "{text}");
}

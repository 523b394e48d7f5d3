//! Traversals of TinkerPop's "modern" graph, executed by steps only, with their results as text.

use oxrdf::{Literal, NamedNode, Term};
use vervet_gremlin::text::{ParseOptions, Statement, parse};
use vervet_gremlin::{Bytecode, Value};
use vervet_kernel::{Control, Limits};
use vervet_model::vocab::{KEY_NAMESPACE, LABEL_NAMESPACE, RDF_TYPE, VERTEX_NAMESPACE};
use vervet_model::{Id, Result};
use vervet_testkit::{MemorySnapshot, Statement as Triple};
use vervet_traversal::{Materialize, ReadOnly, Traversal};

/// The six vertices and six edges; weights are doubles.
fn modern() -> MemorySnapshot {
    let mut graph = MemorySnapshot::default();
    let iri = |graph: &mut MemorySnapshot, namespace: &str, name: &str| {
        graph.intern(&Term::from(NamedNode::new_unchecked(format!("{namespace}{name}"))))
    };
    let kind = iri(&mut graph, "", RDF_TYPE);
    let [name, age, lang, weight, knows, created] =
        ["name", "age", "lang", "weight", "knows", "created"].map(|key| iri(&mut graph, KEY_NAMESPACE, key));
    let [person, software] = ["person", "software"].map(|label| iri(&mut graph, LABEL_NAMESPACE, label));
    let vertices = ["1", "2", "3", "4", "5", "6"].map(|id| iri(&mut graph, VERTEX_NAMESPACE, id));
    let plain = |subject, predicate, object| Triple {
        subject,
        predicate,
        object,
        graph: Id::UNBOUND,
        edge: Id::UNBOUND,
    };
    let people = [(0, "marko", 29), (1, "vadas", 27), (3, "josh", 32), (5, "peter", 35)];
    for (at, called, years) in people {
        graph.add(plain(vertices[at], kind, person));
        let value = graph.intern(&Literal::from(called).into());
        graph.add(plain(vertices[at], name, value));
        let value = graph.intern(&Literal::from(years).into());
        graph.add(plain(vertices[at], age, value));
    }
    for (at, called) in [(2, "lop"), (4, "ripple")] {
        graph.add(plain(vertices[at], kind, software));
        let value = graph.intern(&Literal::from(called).into());
        graph.add(plain(vertices[at], name, value));
        let value = graph.intern(&Literal::from("java").into());
        graph.add(plain(vertices[at], lang, value));
    }
    let edges = [
        (0, knows, 1, 0.5),
        (0, knows, 3, 1.0),
        (0, created, 2, 0.4),
        (3, created, 4, 1.0),
        (3, created, 2, 0.4),
        (5, created, 2, 0.2),
    ];
    for (source, label, target, strength) in edges {
        let edge = graph.add_edge(vertices[source], label, vertices[target], Id::UNBOUND);
        let value = graph.intern(&Literal::from(strength).into());
        graph.add(plain(edge, weight, value));
    }
    graph.finish()
}

fn bytecode(text: &str) -> Bytecode {
    let statements = parse(text, &ParseOptions::default()).unwrap_or_else(|error| panic!("{text}: {error}"));
    match statements.into_iter().next() {
        Some(Statement::Traversal { bytecode, .. }) => bytecode,
        other => panic!("{text}: {other:?}"),
    }
}

/// The results as sorted texts.
fn results(graph: &MemorySnapshot, text: &str) -> Result<Vec<String>> {
    let traversal = Traversal::new(&bytecode(text))?;
    let mut host = ReadOnly(graph);
    let control = Control::new(Limits::default());
    let mut run = traversal.run(&mut host, &control);
    let mut all = Vec::new();
    while let Some((value, bulk)) = run.advance()? {
        let value = run.detailed(value, Materialize::Tokens)?;
        let value = match value {
            Value::Vertex(vertex) => format!("v[{}]", vertex.id()),
            Value::Edge(edge) => match &edge.detail {
                Some(detail) => {
                    format!("{}-{}->{}", detail.source.id(), detail.label, detail.target.id())
                }
                None => String::new(),
            },
            value => value.to_string(),
        };
        all.extend(std::iter::repeat_n(value, usize::try_from(bulk).expect("there are few")));
    }
    all.sort_unstable();
    Ok(all)
}

#[test]
fn values_have_a_size() {
    let graph = modern();
    // Deep, and wide by sharing: without limits each would overflow the stack or never end.
    let doubled = "g.inject(1)".to_owned() + &".union(identity(), identity()).fold()".repeat(64) + ".dedup()";
    for text in [
        "g.inject(1).repeat(fold()).times(100000).count()",
        &doubled,
        "g.inject(1).repeat(project('a','b').by().by()).times(100).dedup()",
    ] {
        let error = results(&graph, text).expect_err("a limit");
        assert_eq!(error.kind(), vervet_model::ErrorKind::MemoryLimit, "{error}");
    }
}

#[test]
fn algorithms_are_steps() {
    let graph = modern();
    let cases: &[(&str, &[&str])] = &[
        (
            "g.V().pageRank().order().by('gremlin.pageRankVertexProgram.pageRank', desc).limit(2).values('name')",
            &["\"lop\"", "\"ripple\""],
        ),
        // After walks, initial ranks are the numbers of traversers.
        (
            "g.V().out('created').pageRank().with(PageRank.times, 0).with(PageRank.propertyName, 'r').dedup().values('r')",
            &["1.0", "3.0"],
        ),
        // A computed property shadows a stored one, and later steps see it.
        (
            "g.V().hasLabel('person').pageRank().with(PageRank.propertyName, 'age').with(PageRank.times, 0).values('age').sum()",
            &["4.0"],
        ),
        ("g.V(1).pageRank().with(PageRank.propertyName, 'r').V().has('r').count()", &["6L"]),
        (
            "g.V(1).connectedComponent().with(ConnectedComponent.propertyName, 'c').V().has('c', '1').count()",
            &["6L"],
        ),
        (
            "g.V().connectedComponent().with(ConnectedComponent.edges, bothE('knows')).\
             with(ConnectedComponent.propertyName, 'c').groupCount().by('c')",
            &["[\"1\": 3L, \"3\": 1L, \"5\": 1L, \"6\": 1L]"],
        ),
        // Edges selected by a traversal, and edges that a strategy leaves visible.
        (
            "g.V().connectedComponent().with(ConnectedComponent.edges, bothE().has('weight', gt(0.4))).\
             with(ConnectedComponent.propertyName, 'c').groupCount().by('c')",
            &["[\"1\": 4L, \"3\": 1L, \"6\": 1L]"],
        ),
        (
            "g.withStrategies(SubgraphStrategy(vertices: hasLabel('person'))).V().connectedComponent().\
             with(ConnectedComponent.propertyName, 'c').groupCount().by('c')",
            &["[\"1\": 3L, \"6\": 1L]"],
        ),
        (
            "g.V().peerPressure().with(PeerPressure.propertyName, 'c').groupCount().by('c')",
            &["[(1L): 5L, (6L): 1L]"],
        ),
        (
            "g.V(1).shortestPath().with(ShortestPath.target, has('name', 'ripple')).unfold().values('name')",
            &["\"josh\"", "\"marko\"", "\"ripple\""],
        ),
        (
            "g.V(1).shortestPath().with(ShortestPath.target, has('name', 'josh')).with(ShortestPath.distance, 'weight').\
             unfold().values('name')",
            &["\"josh\"", "\"lop\"", "\"marko\""],
        ),
        (
            "g.V(1).shortestPath().with(ShortestPath.target, has('name', 'josh')).\
             with(ShortestPath.distance, values('weight').math('_ * 10')).with(ShortestPath.includeEdges).unfold().count()",
            &["5L"],
        ),
        (
            "g.V(1).shortestPath().with(ShortestPath.edges, OUT).with(ShortestPath.maxDistance, 1).count()",
            &["4L"],
        ),
        ("g.withComputer().V().count()", &["6L"]),
    ];
    for (text, expected) in cases {
        let found = results(&graph, text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(found, *expected, "{text}");
    }
    for (text, message) in [
        ("g.V().map(pageRank())", "pageRank() cannot be nested"),
        ("g.V().pageRank(2.0)", "alpha"),
        ("g.V().pageRank().with(PageRank.times, 'x')", "PageRank.times requires an Integer"),
        ("g.V().pageRank().with(PageRank.edges, 'x')", "PageRank.edges requires a Traversal"),
        ("g.V().pageRank().with(PageRank.edges, out())", "must be edges"),
        ("g.V().peerPressure().with('x', 1)", "no option x"),
        ("g.V().shortestPath().with(ShortestPath.distance, values('weight').math('0 - _'))", "distance -"),
        ("g.E().shortestPath()", "begins at vertices"),
        ("g.withStrategies(VertexProgramStrategy, VertexProgramRestrictionStrategy).V()", "GraphComputer"),
        ("g.io('a.json').read()", "io() is turned off"),
        ("g.io('a.kryo').read()", "Gryo is not supported"),
        ("g.io('a.json')", "IO mode was not set"),
        ("g.V().map(io('a.json'))", "io"),
    ] {
        let Ok(statements) = parse(text, &ParseOptions::default()) else { continue };
        assert!(!statements.is_empty());
        let error = results(&graph, text).err().unwrap_or_else(|| panic!("{text}: no error"));
        assert!(error.message().contains(message), "{text}: {error}");
    }
}

#[test]
fn traversals_have_expected_results() {
    let graph = modern();
    let cases: &[(&str, &[&str])] = &[
        ("g.V().count()", &["6L"]),
        ("g.E().count()", &["6L"]),
        ("g.V(1).out('knows').values('name')", &["\"josh\"", "\"vadas\""]),
        ("g.V(1).out().count()", &["3L"]),
        ("g.V().hasLabel('software').values('name')", &["\"lop\"", "\"ripple\""]),
        (
            "g.V().has('name','marko').outE('knows').has('weight', gt(0.6)).inV().values('name')",
            &["\"josh\""],
        ),
        ("g.V().has('age', gt(30)).values('name')", &["\"josh\"", "\"peter\""]),
        ("g.V(1).both('knows','created').dedup().count()", &["3L"]),
        ("g.V().repeat(out()).times(2).values('name')", &["\"lop\"", "\"ripple\""]),
        (
            "g.V(1).repeat(out()).emit().values('name')",
            &["\"josh\"", "\"lop\"", "\"lop\"", "\"ripple\"", "\"vadas\""],
        ),
        (
            "g.V(1).repeat(out()).until(outE().count().is(0)).values('name')",
            &["\"lop\"", "\"lop\"", "\"ripple\"", "\"vadas\""],
        ),
        (
            "g.V().as('a').out('created').in('created').as('b').where('a', neq('b')).select('b').by('name')",
            &["\"josh\"", "\"josh\"", "\"marko\"", "\"marko\"", "\"peter\"", "\"peter\""],
        ),
        ("g.V().group().by(label).by(count())", &["[\"person\": 4L, \"software\": 2L]"]),
        ("g.V().groupCount().by(label)", &["[\"person\": 4L, \"software\": 2L]"]),
        ("g.V().hasLabel('person').order().by('age', desc).limit(1).values('name')", &["\"peter\""]),
        ("g.V().hasLabel('person').values('age').sum()", &["123L"]),
        ("g.V().hasLabel('person').values('age').mean()", &["30.75"]),
        ("g.V().hasLabel('person').values('age').max()", &["35L"]),
        (
            "g.V(1).out('created').in('created').dedup().values('name')",
            &["\"josh\"", "\"marko\"", "\"peter\""],
        ),
        ("g.V(1).coalesce(out('likes'), out('created')).values('name')", &["\"lop\""]),
        ("g.V(1).optional(out('likes')).values('name')", &["\"marko\""]),
        (
            "g.V().hasLabel('person').choose(values('age').is(gt(30)), constant('old'), constant('young'))",
            &["\"old\"", "\"old\"", "\"young\"", "\"young\""],
        ),
        ("g.V(1).union(out('knows'), in('knows')).count()", &["2L"]),
        ("g.V(1).project('n','d').by('name').by(outE().count())", &["[\"n\": \"marko\", \"d\": 3L]"]),
        (
            "g.V().match(__.as('a').out('created').as('b'), __.as('b').in('created').as('c'), __.as('c').has('name','josh')).select('a').by('name').dedup()",
            &["\"josh\"", "\"marko\"", "\"peter\""],
        ),
        (
            "g.V(1).outE('created').otherV().path().by('name').by('weight')",
            &["Path(\"marko\", 0.4, \"lop\")"],
        ),
        ("g.V().not(out()).count()", &["3L"]),
        ("g.V().aggregate('x').by('name').cap('x').unfold().count()", &["6L"]),
        ("g.withSack(1.0).V(1).outE().sack(mult).by('weight').inV().sack().sum()", &["1.9"]),
        // Sacks that doubles cannot represent exactly; traversers with bulks.
        ("g.withSack(SACKn, assign).V(1).out('knows').barrier(normSack).sack()", &["5e-1M", "5e-1M"]),
        (
            "g.withSack(SACKn, assign).V(1).out('created').in('created').out('created').barrier().barrier(normSack).sack()",
            &["2.5e-1M", "2.5e-1M", "2.5e-1M", "2.5e-1M"],
        ),
        ("g.withSack(SACK.5m).V(1).out().barrier(normSack).sack().sum()", &["9.999999999e-1M"]),
        ("g.withSack(3).V(1).out().barrier(normSack).sack().sum()", &["1.0"]),
        ("g.inject(1,2,3).fold().count(local)", &["3L"]),
        ("g.V(1).valueMap('name')", &["[\"name\": [\"marko\"]]"]),
        ("g.V().limit(2).count()", &["2L"]),
        ("g.V().tail(1).values('name')", &["\"peter\""]),
        ("g.V().where(out('knows')).values('name')", &["\"marko\""]),
        ("g.V().both().both().count()", &["30L"]),
    ];
    let mut wrong = Vec::new();
    let sack = format!("1{}", "0".repeat(1000));
    for (text, expected) in cases {
        match results(&graph, &text.replace("SACK", &sack)) {
            Ok(found) if found == *expected => {}
            Ok(found) => wrong.push(format!("{text}\n  expected {expected:?}\n  found    {found:?}")),
            Err(error) => wrong.push(format!("{text}\n  {error}")),
        }
    }
    assert!(wrong.is_empty(), "{} of {} are wrong\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

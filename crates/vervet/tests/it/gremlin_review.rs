//! Regressions of a Gremlin review, each with the name of its finding.

use std::collections::BTreeSet;
use vervet::gremlin::{GremlinOptions, Value};
use vervet::{Database, Format, QueryOptions};

fn run(database: &Database, text: &str) -> Vec<Value> {
    database
        .gremlin(text)
        .unwrap_or_else(|error| panic!("{text}: {error}"))
        .into_values()
        .expect("there are few")
}

/// The plan of a traversal.
fn explained(database: &Database, text: &str) -> String {
    match run(database, &format!("{text}.explain()")).first() {
        Some(Value::String(text)) => text.to_string(),
        other => panic!("explain gave {other:?}"),
    }
}

/// Three places in each of some countries, named by letters in no particular order.
fn places() -> Database {
    let database = Database::in_memory();
    let mut text = String::from("PREFIX k: <urn:vervet:key:> PREFIX l: <urn:vervet:label:>\n");
    for (number, country) in "KQABZMKQABZMKQABZ".chars().enumerate() {
        text += &format!("<http://e/{number}> a l:place ; k:country \"{country}\" ; k:number {number} .\n");
    }
    database.load_text(Format::Turtle, &text).expect("loads");
    database
}

/// Keys of maps with one or several entries, in order.
fn keys(values: &[Value]) -> String {
    let key = |value: &Value| match value {
        Value::Map(map) => map.keys().filter_map(Value::as_text).collect::<String>(),
        other => panic!("{other:?} is no map"),
    };
    values.iter().map(key).collect()
}

/// users 2: `order()` of map entries did nothing.
#[test]
fn users2_entries_of_maps_are_ordered_by_key_then_by_value() {
    let base = places();
    let changed = places();
    run(&changed, "g.addV('place').property('country', 'R').property('number', 99)");
    run(&changed, "g.V().has('number', 0).property('country', 'T')");
    let count = "g.V().hasLabel('place').groupCount().by('country')";
    for (database, all) in [(&base, "ABKMQZ"), (&changed, "ABKMQRTZ")] {
        let reversed: String = all.chars().rev().collect();
        for (text, wanted) in [
            (format!("{count}.unfold().order()"), all),
            (format!("{count}.unfold().order().by(asc)"), all),
            (format!("{count}.unfold().order().by(desc)"), &reversed),
            (format!("{count}.unfold().order().by(desc).limit(3)"), &reversed[..3]),
            (format!("{count}.order(local)"), all),
            (format!("{count}.order(local).by(desc)"), &reversed),
            (format!("{count}.order(local).by(keys, desc)"), &reversed),
            (format!("{count}.unfold().min()"), &all[..1]),
            (format!("{count}.unfold().max()"), &reversed[..1]),
            (format!("{count}.unfold().fold().max(local)"), &reversed[..1]),
        ] {
            assert_eq!(keys(&run(database, &text)), wanted, "{text}");
        }
        let texts = [
            format!("{count}.unfold().dedup().count()"),
            format!("{count}.unfold().group().by().unfold().count()"),
            format!("{count}.unfold().as('a').where(eq('a')).count()"),
        ];
        for text in texts {
            let wanted = Value::Long(i64::try_from(all.len()).expect("small"));
            assert_eq!(run(database, &text), [wanted], "{text}");
        }
        // On a range of a map as well.
        let text = format!("{count}.order(local).by(desc).limit(local, 3)");
        assert_eq!(keys(&run(database, &text)), reversed[..3], "{text}");
    }
    for (text, wanted) in [
        ("g.inject(['b':1,'a':2]).unfold().order()", "ab"),
        ("g.inject(['b':1,'a':2]).unfold().order().by(desc)", "ba"),
        ("g.inject(['b':1,'a':2], ['a':1], ['a':3]).unfold().order().by(desc)", "baaa"),
    ] {
        assert_eq!(keys(&run(&base, text)), wanted, "{text}");
    }
    let text = "g.inject(['a':2], ['a':'x'], ['a':1], ['a':3]).unfold().order().select(values)";
    let wanted = [Value::Int(1), Value::Int(2), Value::Int(3), Value::text("x")];
    assert_eq!(run(&base, text), wanted);
    // Keys that are vertices are ordered by their ids.
    let text = "g.V().hasLabel('place').groupCount().unfold().order().by(desc).limit(2).select(keys).values('number')";
    assert_eq!(run(&base, text), [Value::Long(9), Value::Long(8)]);
}

/// query B11: label counts are answered without reading the vertices.
#[test]
fn b11_counts_of_labels_are_queries() {
    let database = places();
    for (text, count) in [
        ("g.V().hasLabel('place').count()", 17),
        ("g.V().hasLabel('place').has('number', gt(11)).count()", 5),
        ("g.V().hasLabel('nothing').count()", 0),
    ] {
        let plan = explained(&database, text);
        assert!(plan.lines().next().is_some_and(|line| line.trim_end().ends_with("count()")), "{plan}");
        assert!(plan.contains("kernels:"), "{plan}");
        assert_eq!(run(&database, text), [Value::Long(count)], "{text}");
    }
    // An edge with a type is not a vertex.
    database
        .update("INSERT DATA { <http://e/1> <urn:vervet:key:near> <http://e/2> {| a <urn:vervet:label:place> |} }")
        .expect("inserts");
    assert_eq!(run(&database, "g.V().hasLabel('place').count()"), [Value::Long(17)]);
    assert_eq!(run(&database, "g.E().count()"), [Value::Long(1)]);
}

/// Routes with distances, so that all have an identity; each of 40 places has routes to six others and back,
/// optionally parallel ones.
fn routes(parallel: bool) -> Database {
    let database = Database::in_memory();
    let mut text = String::from("PREFIX k: <urn:vervet:key:>\n");
    for from in 0..40_usize {
        for step in [1, 2, 3, 38, 39, 37] {
            let to = (from + step) % 40;
            let edges = if parallel && from % 5 == 0 { 2 } else { 1 };
            for edge in 0..edges {
                let (distance, number) = (from * 7 % 11 + step, from * 100 + step * 2 + edge);
                text += &format!(
                    "<http://e/{from}> k:route <http://e/{to}> ~ <http://e/r{number}> {{| k:dist {distance} |}} .\n"
                );
            }
        }
    }
    database.load_text(Format::Turtle, &text).expect("loads");
    database
}

fn without_kernels(database: &Database, text: &str) -> Vec<Value> {
    let options = GremlinOptions { kernels: false, ..GremlinOptions::default() };
    database.gremlin_with(text, &options).expect("runs").into_values().expect("there are few")
}

/// Plan F3: for edges with identities, patterns with both ends bound listed all neighbours of every row.
#[test]
fn f3_triangles_of_edges_are_checked_or_intersected() {
    const TRIANGLES: &str = "g.V().as('a').out('route').out('route').out('route').where(eq('a')).count()";
    const SPARQL: &str = "PREFIX k: <urn:vervet:key:>
        SELECT (COUNT(*) AS ?n) { ?a k:route ?b . ?b k:route ?c . ?c k:route ?a }";
    let routes_once = routes(false);
    let plans = [
        explained(&routes_once, TRIANGLES),
        routes_once.explain(SPARQL, &QueryOptions::default()).expect("plans"),
    ];
    for plan in plans {
        assert!(plan.contains("intersect") || plan.contains("check"), "{plan}");
        assert!(!plan.contains("match "), "{plan}");
    }
    let count = run(&routes_once, TRIANGLES);
    assert_eq!(count, without_kernels(&routes_once, TRIANGLES));
    let rows = routes_once.select(SPARQL).expect("runs");
    let in_sparql = rows.rows().next().and_then(|row| row.integer("n").expect("a number")).expect("one row");
    assert_eq!(count, [Value::Long(in_sparql)]);
    // A walk counts each parallel edge.
    let parallel = routes(true);
    assert_eq!(run(&parallel, TRIANGLES), without_kernels(&parallel, TRIANGLES));
    assert_ne!(run(&parallel, TRIANGLES), count);
    // The same after the first parallel edge is added.
    let text = "g.V('http://e/0').addE('route').to(__.V('http://e/1')).iterate()";
    run(&routes_once, text);
    assert_eq!(run(&routes_once, TRIANGLES), without_kernels(&routes_once, TRIANGLES));
    assert_ne!(run(&routes_once, TRIANGLES), count);
}

/// Plan F3: a pattern with an edge variable is an expansion if one end is bound.
#[test]
fn f3_patterns_with_edges_are_expansions() {
    for parallel in [false, true] {
        let database = routes(parallel);
        let text =
            "g.V('http://e/0').out('route').outE('route').has('dist', gt(5)).inV().out('route').count()";
        let plan = explained(&database, text);
        assert!(plan.contains("expand") && plan.contains(" as ?") && !plan.contains("match "), "{plan}");
        assert_eq!(run(&database, text), without_kernels(&database, text), "{text}");
        let text = "PREFIX k: <urn:vervet:key:>
            SELECT (COUNT(*) AS ?n) (SUM(?d) AS ?m) { <http://e/3> k:route ?b . ?b k:route ?c ~ ?e . ?e k:dist ?d }";
        // Plan F5: likewise if rows precede the patterns.
        let of_rows = "PREFIX k: <urn:vervet:key:>
            SELECT (COUNT(*) AS ?n) (SUM(?d) AS ?m) {
              VALUES ?b { <http://e/3> <http://e/5> } ?b k:route ?c ~ ?e . ?e k:dist ?d }";
        for text in [text, of_rows] {
            let plan = database.explain(text, &QueryOptions::default()).expect("plans");
            assert!(plan.contains(" as ?e") && !plan.contains("match "), "{plan}");
            let plain = QueryOptions { optimize: false, ..QueryOptions::default() };
            let [fast, slow] = [QueryOptions::default(), plain].map(|options| {
                let answer =
                    database.query_with(text, &options).expect("runs").into_solutions().expect("a SELECT");
                let row = answer.rows().next().expect("one row");
                (row.integer("n").expect("a number"), row.integer("m").expect("a number"))
            });
            assert_eq!(fast, slow);
        }
    }
}

/// Plan F.13: the plan of a traversal is reused only while it is valid: not after a predicate gets its first
/// parallel edge, after an unknown term is added, or on another base.
#[test]
fn plans_of_traversals_are_used_again_while_they_hold() {
    let database = routes(false);
    let count = |database: &Database, text: &str| match run(database, text).as_slice() {
        [Value::Long(count)] => *count,
        other => panic!("{text}: {other:?}"),
    };
    let texts = [
        "g.V('http://e/0').out('route').out('route').count()",
        "g.V('http://e/new').out('route').out('route').count()",
        "g.V().out('route').out('other').count()",
        "g.V().hasLabel('late').out('route').count()",
        "g.V().out('route').has('name', 'late').count()",
    ];
    let all = |database: &Database| texts.map(|text| count(database, text));
    let before = all(&database);
    assert_eq!(before[1..], [0; 4]);
    assert_eq!(all(&database), before);
    for change in [
        "g.addV('late').property(T.id, 'http://e/new').property('name', 'late').iterate()",
        "g.V('http://e/new').addE('route').to(__.V('http://e/0')).iterate()",
        "g.V('http://e/5').addE('route').to(__.V('http://e/new')).iterate()",
        "g.V('http://e/0').addE('route').to(__.V('http://e/1')).iterate()",
        "g.V('http://e/1').addE('other').to(__.V('http://e/2')).iterate()",
        "g.V('http://e/3').outE('route').drop().iterate()",
    ] {
        run(&database, change);
        for text in texts {
            let steps = without_kernels(&database, text);
            assert_eq!(run(&database, text), steps, "{text} behind {change}");
            assert_eq!(run(&database, text), steps, "{text} behind {change}, again");
        }
    }
    let found = all(&database);
    assert!(found.iter().all(|count| *count > 0), "{found:?}");
    database.checkpoint().expect("merges");
    assert_eq!(all(&database), found);
}

/// Plan F.13: the batched lookup of properties of many elements agrees with single lookups.
#[test]
fn details_of_many_elements_are_those_of_each() {
    let database = places();
    let text = "PREFIX k: <urn:vervet:key:> PREFIX l: <urn:vervet:label:>
        <http://e/1> k:name \"one\"@en, \"one\", \"uno\" ; k:near <http://e/2>, \"nowhere\" .
        <http://e/2> k:note \"a longer text, \\\"quoted\\\"\" ; k:near <http://e/3> .
        <http://e/3> k:near <http://e/4> {| k:since 7 ; k:by \"x\", \"y\" |} .
        <http://e/4> k:flag true ; k:size 1.5, 2e0 .
        GRAPH <http://e/g> { <http://e/4> k:flag true ; k:number 99 }";
    database.load_text(Format::TriG, text).expect("loads");
    for change in [
        "g.V('http://e/5').property(list, 'tag', 'b').property(list, 'tag', 'a').property(list, 'tag', 'a').iterate()",
        "g.V('http://e/6').property(single, 'tag', 'c', 'since', 3).iterate()",
        "g.V('http://e/7').properties('number').drop().iterate()",
        "g.V('http://e/8').addE('near').property('since', 8).to(__.V('http://e/9')).iterate()",
    ] {
        run(&database, change);
    }
    let check = |database: &Database| {
        for (text, one) in [("g.V()", "g.V(x)"), ("g.E()", "g.E(x)")] {
            let many = run(database, text);
            assert!(many.len() > 1, "{text}");
            for element in many {
                let id = match &element {
                    Value::Vertex(vertex) => vertex.id().clone(),
                    Value::Edge(edge) => edge.id().clone(),
                    other => panic!("{other:?} is no element"),
                };
                let options = GremlinOptions::default().with_binding("x", id);
                let alone =
                    database.gremlin_with(one, &options).expect("runs").into_values().expect("there are few");
                assert_eq!(format!("{:?}", [&element]), format!("{:?}", alone.iter().collect::<Vec<_>>()));
            }
        }
        // More than one batch, with repeated elements.
        let text = "g.V().both('near').V()";
        let formats = |text| -> BTreeSet<String> {
            run(database, text).iter().map(|element| format!("{element:?}")).collect()
        };
        assert_eq!(formats(text), formats("g.V()"));
    };
    check(&database);
    database.checkpoint().expect("merges");
    check(&database);
}

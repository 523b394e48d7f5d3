//! Chains of walks and tests fused into one step (`steps/fused.rs` in `vervet-traversal`) find the same as
//! the single steps, which run where whole paths are kept.

use vervet::gremlin::{GremlinOptions, Value};
use vervet::{Database, ErrorKind, Format};

/// Vertices `P:0` to `P:59`: each knows three others; every second one likes another; the first forty are
/// persons, every fifth is a robot, and every third has no age.
fn turtle() -> String {
    let mut random = 77_u64;
    let mut below = |bound: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % bound
    };
    let mut text = String::from("PREFIX k: <urn:vervet:key:> PREFIX l: <urn:vervet:label:>\n");
    for vertex in 0..60_usize {
        text += &format!(
            "<http://e/{vertex}> k:number {vertex} ; k:name \"{}\"",
            ["ann", "bob", "eve"][vertex % 3]
        );
        if vertex < 40 {
            text += " ; a l:person";
        }
        if vertex % 5 == 0 {
            text += " ; a l:robot";
        }
        if vertex % 3 != 0 {
            text += &format!(" ; k:age {}", vertex % 7);
        }
        for _ in 0..3 {
            text += &format!(" ; k:knows <http://e/{}>", below(60));
        }
        if vertex % 2 == 0 {
            text += &format!(" ; k:likes <http://e/{}>", below(20));
        }
        text += " .\n";
    }
    text
}

/// As loaded, except for edges with a weight; and with further changes, parallel edges among them.
fn graphs() -> Vec<(&'static str, Database)> {
    let [base, changed] = [(), ()].map(|()| {
        let database = Database::in_memory();
        database.load_text(Format::Turtle, &turtle()).expect("loads");
        database
    });
    for text in [
        "g.V('http://e/1').addE('knows').to(__.V('http://e/2')).iterate()",
        "g.V('http://e/1').addE('knows').to(__.V('http://e/2')).iterate()",
        "g.V('http://e/7').addE('knows').to(__.V('http://e/7')).iterate()",
        "g.V('http://e/3').outE('knows').drop().iterate()",
        "g.V('http://e/11').drop().iterate()",
        "g.addV('person').property(T.id, 'http://e/60').property('number', 60).addE('knows').to(__.V('http://e/1')).iterate()",
    ] {
        changed.gremlin(text).expect("it is written");
    }
    for (database, most) in [(&base, 6), (&changed, 8)] {
        for weight in 0..40 {
            let (from, to) = (weight * 7 % 60, weight * 11 % 20);
            if weight % most == 0 || from == 11 || to == 11 {
                continue;
            }
            let edge = format!(
                "g.V('http://e/{from}').addE('likes').property('weight', {}).to(__.V('http://e/{to}')).iterate()",
                weight % 7
            );
            database.gremlin(&edge).expect("an edge is written");
        }
    }
    vec![("base", base), ("changed", changed)]
}

fn run(database: &Database, text: &str) -> Vec<Value> {
    let options = GremlinOptions { kernels: false, ..GremlinOptions::default() };
    database
        .gremlin_with(text, &options)
        .unwrap_or_else(|error| panic!("{text}: {error}"))
        .into_values()
        .expect("there are few")
}

fn sorted(mut values: Vec<Value>) -> Vec<Value> {
    values.sort_by_key(|value| format!("{value:?}"));
    values
}

#[test]
fn chains_find_what_steps_find() {
    for (name, database) in graphs() {
        for text in [
            "V().out('knows').out('knows').values('number')",
            "V().out('knows').in('knows').both('knows').values('number')",
            "V().both('knows').both('knows').count()",
            "V('http://e/1', 'http://e/2', 'http://e/1').out().out().values('number')",
            "V().out('knows', 'likes').in('likes', 'knows').values('number')",
            "V().out('nothing').out('knows').count()",
            // Tests between and behind walks.
            "V().out('knows').hasLabel('person').out('knows').hasLabel('robot').values('number')",
            "V().out('knows').hasLabel('person', 'robot').hasLabel('robot').out('knows').values('number')",
            "V().out('knows').hasLabel('person::robot').out('knows').values('number')",
            "V().out('knows').has('age', gt(2)).has('name', 'bob').out('knows').has('age').values('number')",
            "V().out('knows').hasNot('age').out('knows').hasId('http://e/1', 'http://e/2', 'http://e/3').values('number')",
            "V().out('knows').hasId(neq('http://e/5')).out('knows').has('person', 'name', neq('ann')).values('number')",
            // Chains in nested traversals.
            "V().where(out('knows').out('likes')).values('number')",
            "V().where(__.in('likes').in('likes')).values('number')",
            "V().out('knows').where(out('knows').out('likes').has('age', gt(1))).values('number')",
            "V().out('knows').not(out('knows').out('likes').has('age', gt(1))).out('knows').values('number')",
            "V().out('knows').and(out('likes').hasLabel('robot'), __.in('knows').has('name', 'ann')).out('knows').values('number')",
            "V().out('knows').or(out('likes').hasLabel('robot'), __.in('likes').has('name', 'ann')).out('knows').values('number')",
            "V().out('knows').or(has('age', 1), has('age', 2), has('name', 'eve')).out('knows').values('number')",
            "V().out('knows').where(out('knows').or(has('age', 1), out('likes').has('age', 2))).out('knows').values('number')",
            "V().out('knows').not(or(has('age', 1), not(out('likes')))).out('knows').values('number')",
            "V().out('knows').filter(out('knows').not(out('likes'))).values('number')",
            "V().out('knows').where(out('knows').hasId('http://e/5')).out('knows').values('number')",
            // Step labels and side-effect names.
            "V('http://e/1').as('a').out('knows').out('knows').where(neq('a')).in('knows').where(eq('a')).count()",
            "V().as('a').out('knows').out('knows').where(neq('a')).values('number')",
            "V().as('a').out('knows').where(out('knows').where(eq('a'))).out('knows').values('number')",
            "V().has('age', gt(3)).aggregate('x').out('knows').out('knows').where(within('x')).values('number')",
            "V().has('age', gt(3)).aggregate('x').out('knows').out('knows').where(without('x')).values('number')",
            "V().has('age', gt(3)).aggregate('x').out('knows').where(out('knows').where(within('x'))).out('likes').values('number')",
            "V().has('age', gt(3)).fold().as('l').unfold().out('knows').out('knows').where(within('l')).values('number')",
            "withSideEffect('s', 5).V().out('knows').out('knows').where(neq('s')).count()",
            // Chains inside other steps, and steps that follow.
            "V().project('n', 'c').by('number').by(out('knows').out('knows').hasLabel('person').count())",
            "V().project('n', 'c').by('number').by(out('knows').where(out('likes')).values('number').order().fold())",
            "V().local(out('knows').out('knows').count())",
            "V().union(out('knows').out('likes'), __.in('likes').in('knows')).values('number')",
            "V().repeat(out('knows').out('knows')).times(2).dedup().values('number')",
            "V('http://e/1').repeat(out('knows').hasLabel('person').in('knows')).emit().times(2).groupCount().by('number')",
            "V().out('knows').out('knows').as('b').select('b').values('number')",
            "V().as('a').out('knows').out('knows').as('b').hasLabel('robot').as('c').select('a', 'b', 'c').by('number')",
            "V().out('knows').out('knows').group().by('name').by(count())",
            "V().as('a').out('knows').union(out('likes').as('b').constant(0), out('knows').as('b').constant(1)).group().by(select('b')).by(sum()).unfold().project('k', 'v').by(select(keys).values('number')).by(values)",
            "V().out('knows').as('b').values('number').group().by(select('b')).by(max()).unfold().select(values)",
            "V().out('knows').as('b').values('age').group().by(select('nothing')).by(mean()).count()",
            "V().out('knows').out('knows').dedup().out('knows').out('likes').values('number').sum()",
            "V().out('knows').out('knows').limit(17).count()",
            "V().out('knows').out('knows').hasLabel('robot').range(3, 9).count()",
            "withSack(1).V().out('knows').out('knows').sack().sum()",
            "withBulk(false).V().out('knows').out('knows').count()",
            // Edges between, some with a weight.
            "V().outE('knows').inV().out('knows').out('likes').values('number')",
            "V().outE('likes').has('weight', gt(2)).inV().values('number')",
            "V().out('knows').inE('likes').has('weight', gt(2)).has('weight', lt(6)).outV().out('knows').values('number')",
            "V().inE('likes', 'knows').has('weight', within(1, 3, 5)).outV().out('knows').values('number')",
            "V().outE().has('weight').inV().values('number')",
            "V().outE('likes').has('weight', gt(2)).outV().out('knows').values('number')",
            "V().project('n', 'l').by('number').by(__.inE('likes').has('weight', gt(2)).outV().values('number').order().fold())",
            "V().where(outE('likes').has('weight', gt(3)).inV().out('likes')).values('number')",
            "V().out('knows').out('knows').sideEffect(aggregate('x')).cap('x').unfold().values('number')",
        ] {
            let begin = if text.starts_with("with") { "g." } else { "g.withPath()." };
            let one_by_one = match text.split_once(".V(") {
                Some((source, rest)) if begin == "g." => format!("g.{source}.withPath().V({rest}"),
                _ => format!("{begin}{text}"),
            };
            let (chains, steps) = (run(&database, &format!("g.{text}")), run(&database, &one_by_one));
            assert!(!steps.is_empty(), "{name}: {text} finds nothing");
            assert_eq!(sorted(chains), sorted(steps), "{name}: {text}");
        }
    }
}

/// A test inside a chain sees the side effects of later steps for earlier traversers, one traverser at a
/// time. No edge has a null label.
#[test]
fn nothing_is_at_the_end_of_edges_without_a_label() {
    for (name, database) in graphs() {
        for text in [
            "g.V().out(null).out('knows').count()",
            "g.V().out('knows').out(null).in('knows').count()",
            "g.V().both(null).in('likes').count()",
            "g.V().out(null).where(__.in('knows')).count()",
            "g.V().where(__.out(null).in('knows')).count()",
            "g.V().map(__.out(null).in('knows').count()).sum()",
        ] {
            assert_eq!(run(&database, text), [Value::Long(0)], "{name}: {text}");
        }
    }
}

/// Twenty hubs with 2,500 neighbours each; each neighbour has an edge to the next hub; the edges have
/// weights: far more entries than one chunk.
#[test]
fn hubs_are_walked_through_in_parts() {
    let mut text = String::from("PREFIX k: <urn:vervet:key:> PREFIX l: <urn:vervet:label:>\n");
    for hub in 0..20 {
        text += &format!("<http://e/root> k:has <http://e/hub{hub}> .\n<http://e/hub{hub}> a l:hub .\n");
        for leaf in 0..2500 {
            text += &format!(
                "<http://e/hub{hub}> k:of <http://e/{hub}-{leaf}> ~ _:e{hub}x{leaf} . _:e{hub}x{leaf} k:weight {} .\n\
                 <http://e/{hub}-{leaf}> k:next <http://e/hub{}> .\n",
                leaf % 10,
                (hub + 1) % 20
            );
        }
    }
    let database = Database::in_memory();
    database.load_text(Format::Turtle, &text).expect("loads");
    for (walk, count) in [
        ("out('has').hasLabel('hub').out('of').out('next')", 50_000),
        ("out('has').hasLabel('hub').both('of', 'nothing').out('next')", 50_000),
        ("out('has').outE('of').has('weight', P.lt(3)).inV().out('next')", 15_000),
        ("out('has').where(__.out('of').out('next').out('of'))", 20),
        ("out('has').where(__.outE('of').has('weight', 11).inV().out('next'))", 0),
        ("out('has').out('of').out('next').limit(7)", 7),
    ] {
        for (text, expected) in [
            (format!("g.V('http://e/root').{walk}.count()"), count),
            (format!("g.withPath().V('http://e/root').{walk}.count()"), count),
            (format!("g.V('http://e/root').map(__.{walk}.count())"), count),
            (format!("g.V('http://e/root').map(__.{walk}.dedup().count())"), count.min(20)),
        ] {
            // The first seven results may repeat.
            if !(walk.ends_with("limit(7)") && text.contains("dedup")) {
                assert_eq!(run(&database, &text), [Value::Long(expected)], "{text}");
            }
        }
    }
}

#[test]
fn side_effects_that_grow_are_seen() {
    for (name, database) in graphs() {
        let once = "g.V().out('knows').out('knows').where(without('x')).store('x').values('number')";
        let found = run(&database, once);
        let expected = run(&database, "g.V().out('knows').out('knows').dedup().values('number')");
        assert_eq!(sorted(found), sorted(expected), "{name}");
        let inside = "V().out('knows').where(out('knows').where(without('x'))).out('likes').store('x').values('number')";
        let [found, expected] =
            ["g.", "g.withPath()."].map(|begin| run(&database, &format!("{begin}{inside}")));
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn explain_shows_what_has_become_one_step() {
    let (_, database) = graphs().remove(0);
    let plan = |text: &str| match run(&database, &format!("{text}.explain()")).first() {
        Some(Value::String(plan)) => plan.to_string(),
        other => panic!("explain gave {other:?}"),
    };
    for (text, lines) in [
        ("g.V().out('knows').hasLabel('person').out('knows').where(out('likes')).count()", 3),
        ("g.V().out('knows').as('a').out('knows').out('likes').where(neq('a')).count()", 4),
        // `path()` reads the intermediate objects.
        ("g.V().out('knows').out('knows').path().count()", 5),
        ("g.V().out('knows').where(out('likes').values('number')).out('knows').count()", 5),
        ("g.V().out('knows').out('knows').where(without('x')).store('x').count()", 5),
    ] {
        let plan = plan(text);
        assert_eq!(plan.lines().count(), lines, "{text}\n{plan}");
    }
}

/// Walking from a value that is not a vertex is an error, wherever it occurs.
#[test]
fn only_vertices_have_neighbours() {
    let (_, database) = graphs().remove(0);
    for text in
        ["g.V().values('number').out('knows').out('knows')", "g.inject(1).where(out('knows').out('likes'))"]
    {
        let error = database.gremlin(text).map(|_| ()).expect_err("there is nowhere to go");
        assert_eq!(error.kind(), ErrorKind::Query, "{text}: {error}");
    }
}

/// A transaction with a read set finds the same, including its own changes.
#[test]
fn transactions_walk_too() {
    let (_, database) = graphs().remove(1);
    let mut transaction = database.begin().expect("a transaction begins");
    transaction
        .gremlin("g.V('http://e/8').addE('knows').to(__.V('http://e/9')).iterate()")
        .expect("it is written");
    for text in [
        "V().out('knows').hasLabel('person').out('knows').where(out('likes').hasLabel('robot')).values('number')",
        "V().where(out('knows').not(out('likes').out('knows'))).values('number')",
    ] {
        let [found, expected] = ["g.", "g.withPath()."].map(|begin| {
            transaction
                .gremlin(&format!("{begin}{text}"))
                .expect("it runs")
                .into_values()
                .expect("there are few")
        });
        assert!(!expected.is_empty(), "{text} finds nothing");
        assert_eq!(sorted(found), sorted(expected), "{text}");
    }
}

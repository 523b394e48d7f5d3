//! The part of a traversal that runs on kernels gives the same results as the single steps: on a graph with
//! parallel edges, self-loops, missing values and keys of two types.

use vervet::gremlin::{GremlinOptions, Value};
use vervet::{Database, ErrorKind, Format};

/// Vertices `P:0` to `P:39` with friends, some twice or themselves; every third has no `age`, and `mixed` is
/// a number or a text.
fn graph() -> Database {
    let database = Database::in_memory();
    let mut random = 12_345_u64;
    let mut below = |bound: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % bound
    };
    let mut text = String::from("g");
    for vertex in 0..40 {
        text += &format!(".addV('person').property(T.id, 'P:{vertex}').property('number', {vertex})");
        text += &format!(".property('name', '{}')", ["ann", "bob", "eve"][vertex % 3]);
        if vertex % 3 != 0 {
            text += &format!(
                ".property('age', {}).property('mixed', {})",
                vertex % 7,
                if vertex % 2 == 0 { "1" } else { "'one'" }
            );
        }
        text += &format!(".as('v{vertex}')");
    }
    database.gremlin(&(text + ".iterate()")).expect("vertices are written");
    for from in 0..40 {
        for _ in 0..3 {
            let to = below(40);
            let edge = format!("g.V('P:{from}').addE('knows').to(__.V('P:{to}')).iterate()");
            database.gremlin(&edge).expect("an edge is written");
        }
    }
    for text in ["g.V('P:1').addE('knows').to(__.V('P:1'))", "g.V('P:1').addE('knows').to(__.V('P:2'))"] {
        database.gremlin(text).expect("an edge is written");
    }
    database
}

/// Vertices whose names are one text in several languages and types, a number that looks like another text,
/// and booleans in both of their forms; each has one `name`, and knows the next and the fourth.
fn graph_of_literals() -> Database {
    let names = [
        "\"ann\"",
        "\"ann\"@en",
        "\"ann\"@de",
        "\"ann\"^^<http://e/t>",
        "\"bob, a long name\"@en",
        "\"bob, a long name\"",
        "\"7\"",
        "7",
        "\"7\"@en",
        "\"nobody's\"@en",
        "<<( <http://e/a> <http://e/b> \"ann\" )>>",
    ];
    let mut text = "PREFIX k: <urn:vervet:key:> PREFIX e: <http://e/>\n".to_owned();
    for vertex in 0..names.len() {
        let [next, fourth] = [1, 4].map(|step| (vertex + step) % names.len());
        text += &format!(
            "e:p{vertex} a <urn:vervet:label:person> ; k:number {vertex} ; k:name {} ; k:flag \"{}\"^^\
             <http://www.w3.org/2001/XMLSchema#boolean> ; k:knows e:p{next}, e:p{fourth} .\n",
            names[vertex],
            ["true", "1", "false", "0"][vertex % 4],
        );
    }
    let database = Database::in_memory();
    database.load_text(Format::Turtle, &text).expect("loads");
    database
}

fn run(database: &Database, text: &str, kernels: bool) -> Vec<Value> {
    let options = GremlinOptions { kernels, ..GremlinOptions::default() };
    database.gremlin_with(text, &options).expect("the traversal runs").into_values().expect("there are few")
}

fn explained(database: &Database, text: &str) -> String {
    match run(database, &format!("{text}.explain()"), true).first() {
        Some(Value::String(text)) => text.to_string(),
        other => panic!("explain gave {other:?}"),
    }
}

/// Asserts that kernels and steps find the same, in any order, and that kernels run the traversal up to
/// `taken`; empty: no claim.
#[track_caller]
fn check_agree(database: &Database, text: &str, taken: &str) {
    let [mut kernels, mut steps] = [true, false].map(|kernels| run(database, text, kernels));
    for values in [&mut kernels, &mut steps] {
        values.sort_by_key(|value| format!("{value:?}"));
    }
    assert!(!steps.is_empty(), "{text} finds nothing");
    assert_eq!(kernels, steps, "{text}");
    let plan = explained(database, text);
    let first = plan.lines().next().unwrap_or_default();
    assert!(
        first.contains("kernels: ") && first.trim_end().ends_with(taken) || taken.is_empty(),
        "{text}:\n{plan}"
    );
}

#[test]
fn kernels_and_steps_agree() {
    let database = graph();
    // Each with the end of the first line of the plan, which shows how much of it is a query.
    for (text, taken) in [
        ("g.V('P:1').both('knows').both('knows').values('number')", "values(\"number\")"),
        ("g.V().both('knows').count()", "count()"),
        // Each vertex once, and no pattern.
        ("g.V().dedup().count()", ""),
        ("g.V().dedup().dedup().count()", ""),
        ("g.V().dedup().limit(2).count()", ""),
        ("g.V().dedup().groupCount().by(label)", ""),
        ("g.V().dedup().order().by('number').values('number')", ""),
        ("g.V().dedup().both('knows').dedup().count()", "count()"),
        ("g.V('P:1').both('knows').dedup().out('knows').values('number')", "values(\"number\")"),
        ("g.V('P:1').repeat(both('knows')).times(3).count()", "count()"),
        ("g.V('P:1').repeat(both('knows').dedup()).emit().times(3).values('number')", "values(\"number\")"),
        ("g.V('P:1').repeat(__.in('knows').dedup()).times(2).emit().values('number')", "values(\"number\")"),
        ("g.V('P:1', 'P:5').repeat(out('knows').dedup()).emit().times(2).in('knows').count()", "count()"),
        ("g.V('P:1').both('knows').hasId(neq('P:1')).both('knows').values('number')", "values(\"number\")"),
        (
            "g.V('P:1').both('knows').has('name', within('ann', 'eve')).both('knows').values('number')",
            "values(\"number\")",
        ),
        (
            "g.V('P:1').both('knows').not(both('knows').hasId(eq('P:2'))).out('knows').values('number')",
            "values(\"number\")",
        ),
        ("g.V().out('knows').has('age', gt(1)).has('age', lt(5)).values('number')", "values(\"number\")"),
        // Conditions on labels, which may run first: a row keeps its multiplicity.
        (
            "g.V().out('knows').where(out('knows').has('name', 'bob')).out('knows').values('number')",
            "values(\"number\")",
        ),
        (
            "g.V('P:1').repeat(both('knows').dedup()).emit().times(2).in('knows').where(out('knows').has('name', 'bob')).where(__.in('knows').has('name', 'eve')).out('knows').has('name', neq('bob')).groupCount().by('name')",
            "groupCount()",
        ),
        (
            "g.V('P:1').both('knows').where(out('knows').has('name', 'bob')).not(out('knows').has('name', 'eve')).both('knows').values('number')",
            "values(\"number\")",
        ),
        ("g.V('P:1').both('knows').both('knows').groupCount().by('number')", "groupCount()"),
        ("g.V('P:1').both('knows').both('knows').groupCount().by('age').unfold()", ""),
        ("g.V().out('knows').values('mixed').groupCount()", "groupCount()"),
        ("g.V().hasLabel('person').groupCount().by('name')", "groupCount()"),
        ("g.V().groupCount().select(values).unfold().dedup()", ""),
        ("g.V().groupCount().by('name')", ""),
        ("g.V().hasLabel('nothing').out('knows').groupCount().by('number')", "groupCount()"),
        ("g.V().out('knows').has('age', gt(1)).groupCount().by('name').order(local)", ""),
        (
            "g.V('P:1').both('knows').both('knows').values('number').as('n').select('n').group().by().by(fold()).unfold().project('k', 'v').by(keys).by(select(values).unfold().order().fold())",
            "group()",
        ),
        (
            "g.V('P:1').both('knows').as('a').both('knows').values('number').as('n').group().by(select('a')).by(select('n').fold()).unfold().project('k', 'v').by(select(keys).id()).by(select(values).unfold().order().fold())",
            "group()",
        ),
        (
            "g.V('P:1').both('knows').as('a').both('knows').values('mixed').as('n').select('a').group().by('name').by(select('n').fold()).unfold().project('k', 'v').by(keys).by(select(values).unfold().order().fold())",
            "group()",
        ),
        (
            "g.V().out('knows').values('mixed').group().unfold().project('k', 'v').by(keys).by(select(values).unfold().order().fold())",
            "group()",
        ),
        ("g.V().out('knows').group().by('name').by(count())", "group()"),
        ("g.V().out('knows').as('a').out('knows').group().by('number').by(select('a').count())", "group()"),
        ("g.V().hasLabel('nothing').out('knows').group().by('number')", "group()"),
        // Values of group entries: lists that are only counted, or reduced to their minimum and maximum.
        (
            "g.V().out('knows').as('a').values('number').as('n').select('a').group().by('name').by(select('n').fold()).unfold().where(select(values).min(local).is(lt(3))).project('k', 'v').by(keys).by(select(values).count(local))",
            "project(\"k\", \"v\")",
        ),
        (
            "g.V().out('knows').values('number').as('n').group().by().by(select('n').fold()).unfold().where(select(keys).is(lt(30))).where(select(values).count(local).is(gt(2))).project('k', 'least', 'most', 'count').by(select(keys)).by(select(values).min(local)).by(select(values).max(local)).by(select(values).count(local)).order().by('count', desc).by('k').limit(5)",
            "limit(5)",
        ),
        (
            "g.V().out('knows').groupCount().by('name').unfold().project('k', 'v').by(keys).by(values).order().by('v', desc).by('k').range(1, 3)",
            "range(1, 3)",
        ),
        ("g.V().out('knows').values('mixed').groupCount().unfold()", "unfold()"),
        (
            "g.V().out('knows').groupCount().unfold().where(select(values).is(gt(3))).order().by(keys).skip(2)",
            "skip(2)",
        ),
        (
            "g.V().out('knows').groupCount().by('number').unfold().order().by(values, desc).by(keys, asc).limit(7)",
            "limit(7)",
        ),
        (
            "g.V().out('knows').groupCount().by('number').unfold().order().by(values).by(keys).limit(0).fold()",
            "limit(0)",
        ),
        ("g.V().hasLabel('person').groupCount().by('name').unfold().select(keys)", "unfold()"),
        // Another step reads the list, or its values are not integers; an entry gets a label.
        (
            "g.V().out('knows').group().by('name').by(fold()).unfold().where(select(values).count(local).is(gt(3))).project('k', 'v').by(keys).by(select(values).unfold().values('number').order().fold())",
            "group()",
        ),
        (
            "g.V().out('knows').as('a').values('name').as('n').select('a').group().by('number').by(select('n').fold()).unfold().where(select(values).min(local).is(lt('bob'))).project('k', 'v').by(keys).by(select(values).count(local))",
            "",
        ),
        (
            "g.V().out('knows').groupCount().by('name').unfold().as('e').select('e').select(values)",
            "groupCount()",
        ),
        (
            "g.V().out('knows').groupCount().by('name').unfold().project('k').by(select(values).count(local))",
            "unfold()",
        ),
        ("g.V().out('knows').has('mixed', neq('one')).values('number')", "values(\"number\")"),
        ("g.V().out('knows').has('name', neq('ann')).groupCount().by('name')", "groupCount()"),
        // The single value of a key that has been tested.
        ("g.V().out('knows').has('number', gt(20)).values('number')", "values(\"number\")"),
        (
            "g.V().out('knows').has('number', gt(20)).as('a').values('number').as('n').select('a').values('name')",
            "values(\"name\")",
        ),
        // Groups reduced by other steps run as steps.
        ("g.V().out('knows').group().by('number').by(values('age').sum())", ""),
        ("g.V().out('knows').group('x').by('number').cap('x').unfold().select(keys)", ""),
        ("g.V().out('knows').as('a').out('knows').group().by(select('b')).by(count())", ""),
        // An order over texts and numbers; an edge; a sack; a path: only a part of these is a query.
        ("g.V().out('knows').order().by('mixed').values('number')", ""),
        ("g.V('P:1').both('knows').both('knows').path().by('number')", ""),
        ("g.withSack(1).V('P:1').repeat(both('knows').dedup()).emit().times(2).sack()", ""),
        ("g.V('P:1').as('a').repeat(both('knows').dedup()).emit().times(2).select('a').values('number')", ""),
    ] {
        check_agree(&database, text, taken);
    }
}

/// Tests, groups and deduplication compare the results of `values()`, on kernels as on steps: texts are equal
/// in any language.
#[test]
fn texts_in_languages_are_texts() {
    let database = graph_of_literals();
    let late = graph_of_literals();
    late.update(
        "PREFIX k: <urn:vervet:key:> INSERT DATA { <http://e/late> k:name \"ann\"@fr ; k:number 99 ; k:knows <http://e/p1> }",
    )
    .expect("runs");
    // With the number of vertices found, at the beginning and behind a walk.
    for (test, count) in [
        ("has('name', 'ann')", 4),
        ("has('name', eq('ann'))", 4),
        ("where(values('name').is('ann'))", 4),
        ("has('name', within('ann', 'nobody\\'s'))", 5),
        ("has('name', '7')", 2),
        ("has('name', 7)", 1),
        ("has('name', 'nobody\\'s')", 1),
        ("has('name', \"<<( <http://e/a> <http://e/b> \\\"ann\\\" )>>\")", 1),
        ("has('name', gt('b').and(lt('c')))", 2),
        ("has('name', between('a', 'b'))", 4),
        ("has('name', neq('ann'))", 7),
        ("has('name', startingWith('bob'))", 2),
        ("has('name', 'bob, a long name')", 2),
        ("has('flag', true)", 6),
        ("has('flag', false)", 5),
    ] {
        let finds_ann = (test.contains("ann") || test.contains("between"))
            && !test.contains("neq")
            && !test.contains("<<(");
        for database in [&database, &late] {
            let is_late = std::ptr::eq(database, &late);
            for begin in [
                "g.V()",
                "g.V().hasLabel('person')",
                "g.V().out('knows').dedup()",
                "g.V().in('knows').dedup()",
            ] {
                let text = format!("{begin}.{test}.values('number')");
                let [mut kernels, mut steps] = [true, false].map(|kernels| run(database, &text, kernels));
                for values in [&mut kernels, &mut steps] {
                    values.sort_by_key(|value| format!("{value:?}"));
                }
                assert_eq!(kernels, steps, "{text}");
                // The late vertex has no incoming edge and no label.
                let here = begin == "g.V()" || begin.contains("in(");
                assert_eq!(steps.len(), count + usize::from(is_late && here && finds_ann), "{text}");
            }
        }
    }
    for (text, count) in [
        ("g.V().out('knows').values('name').dedup()", 6),
        ("g.V().out('knows').values('name').dedup().count()", 1),
        ("g.V().out('knows').values('name').dedup().order().by(desc)", 6),
        ("g.V().out('knows').values('flag').dedup()", 2),
        ("g.V().out('knows').values('name').groupCount().unfold()", 6),
        ("g.V().out('knows').groupCount().by('name').unfold()", 6),
        ("g.V().out('knows').group().by('name').by(count()).unfold()", 6),
        ("g.V().out('knows').where(__.has('name', 'ann')).values('number')", 8),
        ("g.V().out('knows').not(__.has('name', 'ann')).values('number')", 14),
        ("g.V().where(__.out('knows').has('name', 'ann')).values('number')", 7),
        ("g.V().has('name', 'ann').out('knows').has('name', 'ann').path().by('number')", 3),
        ("g.V().out('knows').order().by('name').by('number').values('number')", 22),
        ("g.V().out('knows').values('name')", 22),
    ] {
        let [mut kernels, mut steps] = [true, false].map(|kernels| run(&database, text, kernels));
        for values in [&mut kernels, &mut steps] {
            values.sort_by_key(|value| format!("{value:?}"));
        }
        assert_eq!(kernels, steps, "{text}");
        assert_eq!(steps.len(), count, "{text}: {steps:?}");
    }
    // Kernels still run the cases with identical semantics.
    let plan = explained(&database, "g.V().out('knows').has('name', 'ann').values('number')");
    assert!(plan.contains("kernels: "), "{plan}");
    let writes = Database::in_memory();
    writes.load_text(Format::Turtle, "<http://e/x> <urn:vervet:key:name> \"ann\"@en .").expect("loads");
    writes.gremlin("g.mergeV([name: 'ann']).property('found', true).iterate()").expect("it runs");
    assert_eq!(run(&writes, "g.V().has('found', true).id()", true), [Value::from("http://e/x")]);
}

/// A lookup of a text conflicts with an insertion of that text in any language, and with no other insertion.
#[test]
fn a_text_in_a_language_that_comes_meanwhile_is_a_conflict() {
    for (name, conflicts) in
        [("\"a long name\"@en", true), ("\"a long name\"", true), ("\"a longer name\"@en", false)]
    {
        let database = Database::in_memory();
        database
            .load_text(Format::Turtle, "<http://e/x> <urn:vervet:key:name> \"other\"@en .")
            .expect("loads");
        let mut transaction = database.begin().expect("a transaction begins");
        transaction.gremlin("g.mergeV([name: 'a long name'])").expect("it runs");
        let insert = format!("INSERT DATA {{ <http://e/y> <urn:vervet:key:name> {name} }}");
        database.update(&insert).expect("it runs");
        match transaction.commit() {
            Ok(_) => assert!(!conflicts, "{name}"),
            Err(error) => assert!(conflicts && error.kind() == ErrorKind::Conflict, "{name}: {error}"),
        }
    }
}

/// Walks that return to a vertex, or must not: against the single steps, and against an enumeration of all
/// edges.
#[test]
fn labelled_vertices_are_compared() {
    let database = graph();
    for weight in 0..60 {
        let (from, to) = (weight % 7, weight % 11 % 7);
        let edge = format!(
            "g.V('P:{from}').addE('likes').property('weight', {weight}).to(__.V('P:{to}')).iterate()"
        );
        database.gremlin(&edge).expect("an edge is written");
    }
    let ends = "g.V().as('f').out('knows').as('t').select('f', 't').by('number').select(values).unfold()";
    let ends: Vec<i64> = run(&database, ends, false).iter().filter_map(Value::as_integer).collect();
    let out: Vec<(i64, i64)> = ends.chunks(2).map(|ends| (ends[0], ends[1])).collect();
    assert_eq!(out.len(), 122);
    let both: Vec<(i64, i64)> = out.iter().flat_map(|&(from, to)| [(from, to), (to, from)]).collect();
    // The number of walks of this length that end at their start, or do not.
    let walks = |edges: &[(i64, i64)], length: usize, closed: bool| -> i64 {
        let mut all: Vec<(i64, i64)> = edges.to_vec();
        for _ in 1..length {
            all = all
                .iter()
                .flat_map(|&(a, b)| edges.iter().filter(move |(c, _)| *c == b).map(move |(_, d)| (a, *d)))
                .collect();
        }
        all.iter().filter(|(from, to)| (from == to) == closed).count() as i64
    };
    for (walk, edges) in [("out", &out), ("in", &out), ("both", &both)] {
        for length in 1..=4 {
            for (test, closed) in [("eq", true), ("neq", false)] {
                let walk = format!(".{walk}('knows')").repeat(length);
                let expected = [Value::Long(walks(edges, length, closed))];
                for text in [
                    format!("g.V().as('a'){walk}.where({test}('a')).count()"),
                    format!("g.V().as('a'){walk}.as('b').where('a', {test}('b')).count()"),
                    format!("g.V().hasLabel('person').as('a'){walk}.as('b').where('b', {test}('a')).count()"),
                ] {
                    for kernels in [true, false] {
                        assert_eq!(run(&database, &text, kernels), expected, "{text}");
                    }
                    let plan = explained(&database, &text);
                    let first = plan.lines().next().unwrap_or_default();
                    assert!(first.contains("kernels: ") && first.ends_with("count()"), "{plan}");
                    // A cycle is closed by a join, without a test afterwards.
                    assert!(!closed || !plan.contains("sameTerm"), "{plan}");
                }
            }
        }
    }
    // With the end of the first line of the plan, as above.
    let cases: &[(&str, &str)] = &[
        (
            "g.V('P:1').as('a').both('knows').both('knows').where(eq('a')).values('number')",
            "values(\"number\")",
        ),
        (
            "g.V('P:1', 'P:5').as('a').both('knows').both('knows').where(neq('a')).values('number')",
            "values(\"number\")",
        ),
        (
            "g.V('P:1').both('knows').both('knows').as('a').out('knows').out('knows').where(eq('a')).count()",
            "count()",
        ),
        // Behind distinct vertices, from either end.
        (
            "g.V('P:1').both('knows').dedup().as('a').both('knows').both('knows').where(eq('a')).values('number')",
            "values(\"number\")",
        ),
        (
            "g.V('P:1').both('knows').dedup().as('a').out('knows').as('c').out('knows').as('b').select('a').where(eq('b')).select('c').values('number')",
            "values(\"number\")",
        ),
        (
            "g.V('P:1').as('a').both('knows').both('knows').as('b').select('a').where(eq('b')).out('knows').values('number')",
            "values(\"number\")",
        ),
        // The same position, and one label used twice: the last counts.
        ("g.V().as('a').out('knows').as('b').where(eq('b')).count()", "count()"),
        (
            "g.V().out('knows').as('a').out('knows').as('a').out('knows').where(eq('a')).values('number')",
            "values(\"number\")",
        ),
        ("g.V().as('a').out('knows').as('a').out('knows').as('b').where('a', neq('b')).count()", "count()"),
        // Later steps: labels, tests, paths, sides of a triangle that meet.
        (
            "g.V().as('a').out('knows').as('b').out('knows').as('c').out('knows').where(eq('a')).as('d').select('d').out('knows').where(neq('b')).select('c').values('number')",
            "values(\"number\")",
        ),
        (
            "g.V().as('a').out('knows').as('b').out('knows').as('c').where('a', neq('c')).select('a', 'b', 'c').by('number')",
            "P.neq(\"c\"))",
        ),
        (
            "g.V().as('a').out('knows').out('knows').out('knows').where(eq('a')).path().by('number')",
            "P.eq(\"a\"))",
        ),
        (
            "g.V().as('a').out('knows').out('knows').out('knows').where(eq('a')).as('z').path().from('a').by('number')",
            "P.eq(\"a\"))",
        ),
        ("g.V().as('a').out('knows').as('b').where(neq('a')).path().by('number')", "P.neq(\"a\"))"),
        (
            "g.V().as('a').has('age', gt(1)).out('knows').has('age', lt(6)).out('knows').has('age', gt(0)).where(eq('a')).has('age', gt(2)).values('age')",
            "values(\"age\")",
        ),
        (
            "g.V().as('a').out('knows').where(__.out('knows').has('name', 'bob')).in('knows').where(__.out('knows').has('name', 'ann')).where(eq('a')).not(__.in('knows').has('name', 'eve')).count()",
            "count()",
        ),
        (
            "g.V().as('a').out('knows').out('knows').out('knows').where(eq('a')).dedup().values('number')",
            "P.eq(\"a\"))",
        ),
        ("g.V().as('a').out('knows').out('knows').where(eq('a')).groupCount().by('name')", "groupCount()"),
        (
            "g.V().as('a').out('knows').as('b').in('knows').where(neq('a')).group().by('name').by(select('b').count())",
            "group()",
        ),
        ("g.V().as('a').out('knows').where(neq('a')).order().by('number').limit(4).values('number')", ""),
        ("g.V('P:1').as('a').repeat(both('knows').where(neq('a'))).times(3).count()", "count()"),
        (
            "g.V('P:1').as('a').repeat(both('knows').both('knows').where(eq('a'))).times(2).path().by('number')",
            "",
        ),
        ("g.withSack(2).V('P:1').as('a').both('knows').both('knows').where(eq('a')).sack()", "P.eq(\"a\"))"),
        // Edges: an edge whose ends are compared, and a self-loop.
        (
            "g.V().as('a').out('knows').as('b').outE('likes').has('weight', gt(7)).where('a', neq('b')).values('weight')",
            "P.neq(\"b\"))",
        ),
        (
            "g.V().as('a').out('knows').as('b').outE('likes').has('weight', gt(7)).where('a', eq('b')).values('weight')",
            "P.eq(\"b\"))",
        ),
        (
            "g.V().out('likes').as('a').outE('likes').has('weight', gt(7)).inV().where(eq('a')).values('number')",
            "values(\"number\")",
        ),
        (
            "g.V().as('a').out('knows').as('b').outE('likes').has('weight', gt(3)).otherV().where(eq('a')).as('c').select('b').where(neq('c')).values('number')",
            "",
        ),
        // Values, lists, edges, names of side effects, and other tests run as steps.
        (
            "g.V().as('a').values('number').as('n').select('a').out('knows').values('number').where(neq('n'))",
            "values(\"number\")",
        ),
        (
            "g.V().as('a').out('knows').values('name').as('m').select('a').values('name').where(eq('m'))",
            "values(\"name\")",
        ),
        (
            "g.V().out('knows').as('a').values('number').as('n').select('a').where('n', neq('a')).count()",
            "select(\"a\")",
        ),
        ("g.V('P:1').fold().as('a').unfold().out('knows').where(neq('a')).count()", ""),
        (
            "g.V().out('likes').as('a').outE('likes').has('weight', gt(7)).as('e').inV().where(neq('e')).count()",
            "",
        ),
        ("g.V().as('a').out('knows').out('knows').where(eq('a').or(neq('a'))).count()", "out(\"knows\")"),
        ("g.V().as('a').out('knows').out('knows').where(within('a')).count()", "out(\"knows\")"),
        ("g.V().as('a').out('knows').out('knows').where(eq('a')).by('name').count()", "out(\"knows\")"),
        ("g.withSideEffect('a', 5).V('P:1').out('knows').as('a').out('knows').where(neq('a')).count()", ""),
        ("g.withSideEffect('a', 5).V('P:1').out('knows').as('a').out('knows').select('a')", ""),
        (
            "g.withSideEffect('a', 5).V('P:1').out('knows').as('a').out('knows').group().by(select('a')).by(count())",
            "",
        ),
        (
            "g.V('P:1').out('knows').as('a').out('knows').as('b').where('a', neq('b')).aggregate('a').count()",
            "",
        ),
    ];
    for (text, taken) in cases {
        check_agree(&database, text, taken);
    }
    // An unknown label is an error either way.
    for kernels in [true, false] {
        let options = GremlinOptions { kernels, ..GremlinOptions::default() };
        let text = "g.V().as('a').out('knows').out('knows').where(eq('b')).count()";
        assert_eq!(
            database.gremlin_with(text, &options).map(|_| ()).map_err(|e| e.kind()),
            Err(ErrorKind::Query)
        );
    }
}

/// Rows can end at edges with properties.
#[test]
fn walks_end_at_edges() {
    let database = graph();
    for weight in 0..60 {
        let (from, to) = (weight % 7, weight % 11);
        let edge = format!(
            "g.V('P:{from}').addE('likes').property('weight', {weight}).to(__.V('P:{to}')).iterate()"
        );
        database.gremlin(&edge).expect("an edge is written");
    }
    for (text, taken) in [
        ("g.V('P:1').both('knows').outE('likes').has('weight', gt(7))", "P.gt(7))"),
        ("g.V('P:1').both('knows').outE('likes').has('weight', gt(7)).id()", "P.gt(7))"),
        (
            "g.V('P:1').both('knows').inE('likes').has('weight', lt(50)).where(outV().out('knows').has('name', 'bob')).values('weight')",
            "\"bob\"))",
        ),
        (
            "g.V('P:1').both('knows').as('a').outE('likes').has('weight', gt(7)).not(inV().out('likes').has('age', 5)).project('a', 'w', 'to').by(select('a').values('number')).by('weight').by(inV().values('number'))",
            "5))",
        ),
        (
            "g.V('P:1', 'P:2').repeat(both('knows').dedup()).emit().times(2).outE('likes').has('weight', gt(7)).inV().values('number')",
            "values(\"number\")",
        ),
        // Some edges have no identity; a path is kept.
        ("g.V('P:1').both('knows').both('knows').outE('knows').inV().values('number')", "values(\"number\")"),
        ("g.V('P:1').both('knows').both('knows').outE('likes').values('weight')", "both(\"knows\")"),
        (
            "g.V('P:1').both('knows').outE('likes').has('weight', gt(7)).path().by('number').by('name').by('weight')",
            "",
        ),
    ] {
        check_agree(&database, text, taken);
    }
}

/// Group keys that are one text in Gremlin and two terms in the graph: `"a"` and `"a"@en`.
#[test]
fn keys_that_are_equal_here_are_one_entry() {
    let database = Database::in_memory();
    let mut update = String::from("INSERT DATA {");
    for (at, name) in [
        "\"ann\"",
        "\"ann\"@en",
        "\"ann\"@de",
        "\"bob\"",
        "\"a longer name\"",
        "\"a longer name\"@en",
        "5",
        "\"5\"^^<http://www.w3.org/2001/XMLSchema#long>",
    ]
    .iter()
    .enumerate()
    {
        update += &format!(
            " <urn:vervet:vertex:P%3A{at}> <urn:vervet:key:name> {name} ; <urn:vervet:key:size> {at} ; \
              a <urn:vervet:label:thing> ."
        );
    }
    database.update(&(update + "}")).expect("it is written");
    for text in [
        "g.V().hasLabel('thing').groupCount().by('name').unfold().project('k', 'v').by(keys).by(values).order().by('v', desc).by('k')",
        "g.V().hasLabel('thing').groupCount().by('name').unfold().where(select(values).is(gt(1))).order().by(values).by(keys).limit(2)",
        "g.V().hasLabel('thing').as('t').values('size').as('s').select('t').group().by('name').by(select('s').fold()).unfold().where(select(values).min(local).is(gt(0))).project('k', 'most', 'n').by(keys).by(select(values).max(local)).by(select(values).count(local)).order().by('n').by('k')",
    ] {
        let [kernels, steps] = [true, false].map(|kernels| run(&database, text, kernels));
        assert!(!steps.is_empty(), "{text} finds nothing");
        assert_eq!(format!("{kernels:?}"), format!("{steps:?}"), "{text}");
        assert!(
            explained(&database, text).lines().next().is_some_and(|line| line.contains("unfold()")),
            "{text}"
        );
    }
}

#[test]
fn elements_with_a_key_are_all_that_are_looked_at() {
    let database = graph();
    for weight in 0..30 {
        let (from, to) = (weight % 7, weight % 11 + 7);
        let edge = format!(
            "g.V('P:{from}').addE('likes').property('weight', {weight}).to(__.V('P:{to}')).iterate()"
        );
        database.gremlin(&edge).expect("an edge is written");
    }
    database
        .gremlin("g.V('P:3').property('age', 40).property('rank', 1, 'since', 7).iterate()")
        .expect("it is written");
    database.gremlin("g.V('P:4').properties('age').drop()").expect("it is dropped");
    for (keyed, all) in [
        (
            "g.E().has('weight', gte(20)).values('weight')",
            "g.E().where(values('weight').is(gte(20))).values('weight')",
        ),
        ("g.E().has('weight').count()", "g.E().where(values('weight')).count()"),
        ("g.E().has('since').count()", "g.E().where(values('since')).count()"),
        ("g.V().has('age', lt(3)).values('number')", "g.V().where(values('age').is(lt(3))).values('number')"),
        (
            "g.V().has('age').has('rank', neq(5)).values('number')",
            "g.V().where(values('rank').is(neq(5))).values('number')",
        ),
        (
            "g.V().has('mixed', neq('one')).values('number')",
            "g.V().where(values('mixed').is(neq('one'))).values('number')",
        ),
        ("g.V().has('weight').count()", "g.V().where(values('weight')).count()"),
        ("g.V().has('knows').count()", "g.V().where(values('knows')).count()"),
        ("g.V().has('nothing', gt(1)).count()", "g.V().where(values('nothing').is(gt(1))).count()"),
        ("g.V().as('a').V().has('rank').count()", "g.V().as('a').V().where(values('rank')).count()"),
    ] {
        let [found, expected] = [keyed, all].map(|text| {
            let mut found = run(&database, text, false);
            found.sort_by_key(|value| format!("{value:?}"));
            found
        });
        assert!(!expected.is_empty(), "{all} finds nothing");
        assert_eq!(found, expected, "{keyed}");
    }
}

#[test]
fn explain_shows_the_plan_below_what_kernels_run() {
    let plan = explained(&graph(), "g.V('P:1').out('knows').out('knows').dedup().values('number').fold()");
    let lines: Vec<&str> = plan.lines().collect();
    assert!(lines[0].contains("kernels: V(\"P:1\")"), "{plan}");
    assert!(
        lines.iter().filter(|line| line.contains("expand") && line.contains("key:knows")).count() == 2,
        "{plan}"
    );
    assert!(lines.last().is_some_and(|line| line.trim() == "1  fold()"), "{plan}");
}

#[test]
fn questions_about_walks_to_one_vertex_are_answered_from_its_end() {
    let database = graph();
    // The same query in a form that walks from each vertex: a test of the end by its id.
    for walk in ["both('knows')", "out('knows').out('knows')", "both('knows').in('knows').out()", "both()"] {
        for text in [
            "g.V().where(WALK).values('number')",
            "g.V().not(WALK).values('number')",
            "g.V().choose(WALK, values('name'), constant('far'))",
            "g.V().and(WALK, has('age', gt(1))).values('number')",
            "g.V().or(WALK, has('age', gt(4))).values('number')",
        ] {
            let asked = text.replace("WALK", &format!("__.{walk}.hasId('P:3')"));
            let walked = text.replace("WALK", &format!("__.{walk}.has('number', 3)"));
            let [found, expected] = [asked.as_str(), &walked].map(|text| {
                let mut found = run(&database, text, false);
                found.sort_by_key(|value| format!("{value:?}"));
                found
            });
            assert!(!expected.is_empty(), "{walked} finds nothing");
            assert_eq!(found, expected, "{asked}");
        }
    }
    // Changes by the traversal itself are visible from then on.
    let mut transaction = database.begin().expect("a transaction begins");
    let text = "g.V('P:1', 'P:2', 'P:3', 'P:4', 'P:5', 'P:6').order().by('number').local(\
                choose(__.out('new').hasId('P:9'), constant('yes'), \
                __.addE('new').to(__.V('P:9')).constant('no'))).fold()";
    let before = transaction.gremlin(text).expect("it runs").into_values().expect("there are few");
    let after = transaction.gremlin(text).expect("it runs").into_values().expect("there are few");
    let all = |text: &str| vec![Value::list(vec![Value::from(text); 6])];
    assert_eq!((before, after), (all("no"), all("yes")));
    let twice = "g.V('P:1', 'P:2', 'P:3', 'P:4', 'P:5', 'P:6').order().by('number').local(union(\
                 choose(__.out('other').hasId('P:9'), constant('yes'), __.addE('other').to(__.V('P:9')).constant('no')),\
                 choose(__.out('other').hasId('P:9'), constant('yes'), constant('no')))).fold()";
    let found = transaction.gremlin(twice).expect("it runs").into_values().expect("there are few");
    let pairs = vec![["no", "yes"].map(Value::from); 6].concat();
    assert_eq!(found, [Value::list(pairs)]);
}

#[test]
fn orders_are_kept() {
    let database = graph();
    for text in [
        "g.V('P:1').both('knows').order().by('number', desc).values('number')",
        "g.V('P:1').both('knows').both('knows').order().by('age').by('number', desc).limit(7).values('number')",
        "g.V('P:1').both('knows').both('knows').dedup().order().by('number').skip(2).limit(3).values('number')",
        "g.V('P:1').both('knows').order().by('number').limit(3).as('a').out('knows').select('a').values('number')",
    ] {
        let [kernels, steps] = [true, false].map(|kernels| run(&database, text, kernels));
        assert!(!steps.is_empty(), "{text} finds nothing");
        assert_eq!(kernels, steps, "{text}");
        assert!(explained(&database, text).contains("order()"), "{text}");
        let plan = explained(&database, text);
        assert!(
            plan.lines().next().is_some_and(|line| line.contains("kernels: ") && line.contains("order()")),
            "{plan}"
        );
    }
}

/// With `refuse_heavy`, a heavy query fails before it starts, however much time is left; light queries and
/// traversals without a query run.
#[test]
fn heavy_queries_are_refused_where_they_are_to_be() {
    let database = Database::in_memory();
    let edges: String = (0..10_000)
        .map(|n| format!("<urn:s:{}> <urn:vervet:key:to> <urn:s:{}> .\n", n / 100, n % 100))
        .collect();
    database.load_text(Format::NTriples, &edges).expect("loads");
    let heavy = "g.V().as('a').out('to').as('b').out('to').as('c').select('a', 'b', 'c').limit(1).count()";
    let light = "g.V('urn:s:1').out('to').out('to').hasId('urn:s:2').count()";
    for (text, refuse_heavy, kernels, runs) in [
        (heavy, false, true, true),
        (heavy, true, true, false),
        (heavy, true, false, true),
        (light, true, true, true),
    ] {
        for threads in [None, Some(1), Some(2)] {
            let options =
                GremlinOptions { refuse_heavy, kernels, threads, timeout: None, ..GremlinOptions::default() };
            match database.gremlin_with(text, &options) {
                Ok(results) => {
                    assert!(runs, "{text} ran, refuse_heavy: {refuse_heavy}");
                    let count = if text == heavy { 1 } else { 100 };
                    assert_eq!(results.into_values().expect("there are few"), [Value::Long(count)], "{text}");
                }
                Err(error) => {
                    assert!(!runs, "{text}: {error}");
                    assert_eq!(error.kind(), ErrorKind::Deadline);
                    assert!(error.message().contains("heavy"), "{error}");
                }
            }
        }
    }
}

/// A label test fused with the walk before it, against the separate test.
#[test]
fn labels_of_neighbours_are_tested_together() {
    let database = Database::in_memory();
    let mut update = String::from("INSERT DATA {");
    for at in 0..60 {
        update += &format!(" <urn:vervet:vertex:P:0> <urn:vervet:key:to> <urn:vervet:vertex:P:{at}> .");
        update += &format!(" <urn:vervet:vertex:P:{at}> <urn:vervet:key:number> {at} .");
        for (label, of) in [("two", 2), ("three", 3), ("seven", 7)] {
            if at % of == 0 {
                update += &format!(" <urn:vervet:vertex:P:{at}> a <urn:vervet:label:{label}> .");
            }
        }
    }
    database.update(&(update + "}")).expect("it is written");
    let sorted = |text: &str| {
        let mut found = run(&database, text, false);
        found.sort_by_key(|value| format!("{value:?}"));
        found
    };
    for (labels, count) in [
        ("'two'", 30),
        ("'three', 'seven'", 26),
        ("'nothing'", 0),
        ("'three', 'nothing', 'three'", 20),
        ("'vertex'", 17),
        ("'two::three'", 0),
        ("'three::two'", 8),
        ("'seven', 'vertex'", 26),
    ] {
        let found = sorted(&format!("g.V('P:0').out('to').hasLabel({labels}).values('number')"));
        assert_eq!(found.len(), count, "{labels}");
        for other in ["out('to').identity()", "outE('to').inV()"] {
            let apart = sorted(&format!("g.V('P:0').{other}.hasLabel({labels}).values('number')"));
            assert_eq!(found, apart, "{labels}");
        }
    }
    let both = "g.V('P:0').out('to').hasLabel('two').hasLabel('three').as('a').in('to').select('a').count()";
    assert_eq!(run(&database, both, false), [Value::Long(10)]);
    let mut transaction = database.begin().expect("a transaction begins");
    let within = transaction.gremlin("g.V('P:0').out('to').hasLabel('two').hasLabel('seven').count()");
    assert_eq!(within.expect("it runs").into_values().expect("there are few"), [Value::Long(5)]);
}

#[test]
fn collections_are_looked_up() {
    let database = graph();
    for test in ["without", "within"] {
        let text = format!(
            "g.V('P:1').aggregate('seen').both('knows').aggregate('seen').both('knows').dedup().where({test}('seen')).values('number')"
        );
        let by_list = format!(
            "g.V('P:1').union(identity(), both('knows')).fold().as('seen').unfold().both('knows').dedup().where({test}('seen')).values('number')"
        );
        let sorted = |text: &str| {
            let mut found = run(&database, text, true);
            found.sort_by_key(|value| format!("{value:?}"));
            found
        };
        let (first, friends) =
            (sorted(&text), run(&database, "g.V('P:1').both('knows').hasId('P:1').count()", true));
        assert!(!first.is_empty(), "{text}");
        // P:1 is its own friend, so both walks begin at the same vertices.
        assert_ne!(friends, [Value::Long(0)]);
        assert_eq!(first, sorted(&by_list), "{text}");
    }
}

/// Values that only one of the two languages treats as numbers or as edges, and numbers in several forms.
#[test]
fn graphs_of_rdf_are_what_steps_take_them_for() {
    let database = Database::in_memory();
    let text = "@prefix k: <urn:vervet:key:> . @prefix e: <http://e/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
        e:a k:knows e:b ~ e:r1 . e:r1 k:knows e:c . e:c k:knows e:r1 . e:a k:likes e:b . e:b k:likes e:a, e:c, e:d .
        e:a k:big -99999999999999999999999 . e:b k:big 3 . e:c k:big 0.10000000000000000555 . e:d k:big 0.5 .
        e:a k:unsigned 7 . e:b k:unsigned \"5\"^^xsd:unsignedLong . e:c k:unsigned \"5\"^^xsd:positiveInteger .
        e:a k:odd 5 . e:b k:odd 5.0 . e:c k:odd \"5.0\"^^xsd:double . e:d k:odd 5e0, 5.000, \"05\"^^xsd:int, \"+5\"^^xsd:float, \"05\" .
        e:a k:zero 0 . e:b k:zero \"-0.0E0\"^^xsd:double . e:c k:zero \"-0.0\"^^xsd:decimal . e:d k:zero \"-0\"^^xsd:float .";
    database.load_text(Format::Turtle, text).expect("loads");
    for (text, count) in [
        ("g.V().in('knows').id()", 1),
        ("g.V().out('knows').id()", 1),
        ("g.V().outE('knows').inV().id()", 1),
        ("g.V().both('knows').both('likes').id()", 6),
        ("g.V().in('knows').dedup().values('odd')", 1),
        ("g.V().out('likes').has('big', lt(1)).id()", 3),
        ("g.V().out('likes').has('big', gt(0)).id()", 3),
        ("g.V().out('likes').has('big', between(0, 1)).id()", 2),
        ("g.V().both('likes').has('unsigned', 5).id()", 0),
        ("g.V().both('likes').has('unsigned', gt(5)).id()", 2),
        ("g.V().out('likes').has('odd', 5).id()", 4),
        ("g.V().has('odd', 5).id()", 4),
        ("g.V().has('odd', 5.0).id()", 4),
        ("g.V().has('odd', 5.0m).id()", 4),
        ("g.V().has('odd', '05').id()", 1),
        ("g.V().has('zero', 0).id()", 4),
    ] {
        let [mut kernels, mut steps] = [text.to_owned(), text.replacen("g.V()", "g.V().barrier()", 1)]
            .map(|text| run(&database, &text, true));
        let mut indexed = run(&database, text, false);
        for values in [&mut kernels, &mut steps, &mut indexed] {
            values.sort_by_key(|value| format!("{value:?}"));
        }
        assert_eq!(kernels, steps, "{text}");
        assert_eq!(indexed, steps, "{text}");
        assert_eq!(steps.len(), count, "{text}: {steps:?}");
    }
    let writes = Database::in_memory();
    writes.gremlin("g.addV('x').property('d', 5.0m).iterate()").expect("it runs");
    writes.gremlin("g.mergeV([d: 5]).iterate()").expect("it runs");
    assert_eq!(run(&writes, "g.V().count()", true), [Value::Long(1)]);
}

//! Regressions found by random traversals (`cargo xtask conformance random-gremlin`): kernels and steps, or
//! Vervet and TinkerGraph, gave different results.

use vervet::gremlin::{Map, Value};
use vervet::{Database, GremlinOptions};

/// `a` and `b` like each other, `b` also likes `c`; both know `c`; `a` has an age and the name `bob`.
fn graph() -> Database {
    let database = Database::in_memory();
    let text = "g.addV('person').property(T.id, 'a').property('name', 'bob').property('age', 1).as('a')
        .addV('person').property(T.id, 'b').property('name', 'ann').as('b')
        .addV('place').property(T.id, 'c').as('c')
        .addE('likes').from('a').to('b').addE('likes').from('b').to('a').addE('likes').from('b').to('c')
        .addE('knows').from('a').to('c').addE('knows').from('b').to('c').addE('knows').from('c').to('c').iterate()";
    database.gremlin(text).expect("it is written");
    database
}

/// Results as texts, sorted; asserts that kernels and steps agree.
#[track_caller]
fn run(text: &str) -> Vec<Value> {
    let database = graph();
    let [kernels, steps] = [true, false].map(|kernels| {
        let options = GremlinOptions { kernels, ..GremlinOptions::default() };
        let mut values =
            database.gremlin_with(text, &options).expect("it runs").into_values().expect("there are few");
        values.sort_by_key(|value| format!("{value:?}"));
        values
    });
    assert_eq!(kernels, steps, "{text}");
    steps
}

/// A walk behind `dedup` does not change the vertices to which an earlier condition applies.
#[test]
fn conditions_before_dedup_are_about_the_vertices_there() {
    for (text, count) in [
        ("g.V().where(__.out('likes')).dedup().in('likes')", 2),
        ("g.V().where(__.in('likes')).dedup().out('likes')", 3),
        ("g.V().not(__.out('likes')).dedup().in('knows')", 3),
        ("g.V().hasId(P.neq('c')).dedup().in('knows')", 0),
        ("g.V().hasId(P.neq('c')).dedup().in('likes').count()", 1),
        ("g.V().where(__.out('likes')).repeat(__.out('likes').dedup()).emit().times(2)", 3),
        ("g.V().hasLabel('person').where(__.out('likes')).dedup().in('likes')", 2),
    ] {
        assert_eq!(run(text).len(), count, "{text}");
    }
}

/// A loop has one `until` and one `emit`; further modulators belong to the next loop.
#[test]
fn modulators_that_a_loop_has_are_of_the_next() {
    let count = |text: &str| run(&format!("{text}.count()"));
    for (text, same) in [
        (
            "g.V().repeat(__.out()).emit().times(1).emit().repeat(__.in()).times(1)",
            "g.V().repeat(__.out()).emit().times(1).identity().emit().repeat(__.in()).times(1)",
        ),
        (
            "g.V().repeat(__.out()).times(1).emit().until(__.or(__.loops().is(2), __.has('age'))).repeat(__.in())",
            "g.V().repeat(__.out()).times(1).emit().identity().until(__.or(__.loops().is(2), __.has('age'))).repeat(__.in())",
        ),
        (
            "g.V().repeat(__.out()).times(1).emit().times(2).repeat(__.in())",
            "g.V().repeat(__.out()).times(1).emit().identity().times(2).repeat(__.in())",
        ),
    ] {
        assert_eq!(count(text), count(same), "{text}");
    }
    assert!(graph().gremlin("g.V().repeat(__.out()).times(1).times(2)").is_err());
}

/// A map has an entry for every key: null for a missing one.
#[test]
fn maps_have_null_for_keys_that_are_not_there() {
    let null: Map = [(Value::text("n"), Value::Null)].into_iter().collect();
    let missing = "g.V('c').project('age').by('age').project('n').by('age')";
    assert_eq!(run(missing), [Value::map(null)]);
    let counts: Map = [(Value::Int(1), Value::Long(1)), (Value::Null, Value::Long(2))].into_iter().collect();
    assert_eq!(run("g.V().project('age').by('age').groupCount().by('age')"), [Value::map(counts)]);
    assert_eq!(run("g.V().project('age').by('age').order().by('age').count()"), [Value::Long(3)]);
}

#[test]
fn a_separator_at_the_end_separates() {
    let list = |parts: &[&str]| Value::list(parts.iter().map(Value::text).collect());
    for (text, parts) in [
        ("bob", &["o", ""][..]),
        ("bobby", &["o", "y"]),
        ("aab", &["aa", ""]),
        ("b", &[""]),
        ("bb", &[""]),
        ("", &[]),
        ("xy", &["xy"]),
    ] {
        assert_eq!(run(&format!("g.inject('{text}').split('b')")), [list(parts)], "{text}");
    }
    assert_eq!(run("g.inject('a, b, ').split(', ')"), [list(&["a", "b", ""])]);
}

#[test]
fn what_is_no_collection_is_a_set_of_itself() {
    assert_eq!(run("g.inject('x').dedup(local)"), [Value::set([Value::text("x")])]);
}

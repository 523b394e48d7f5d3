//! Traversals that would exhaust time or memory: each gives the right answer, or ends with a limit error.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use vervet::gremlin::Value;
use vervet::{CancelToken, Database, ErrorKind, GremlinOptions, LoadOptions, Source};

/// A traversal that runs longer than this counts as hanging.
const PATIENCE: Duration = Duration::from_secs(60);
/// A bulk of 2^50 equal traversers.
const BULK: &str = "g.inject(1).repeat(union(identity(),identity())).times(50)";
/// 1, 2, 3, …
const ENDLESS: &str = "g.inject(0).repeat(math('_ + 1')).emit()";

/// The results of a script: each value with its count.
fn run(database: &Database, text: &str, options: &GremlinOptions) -> Result<Vec<(Value, u64)>, ErrorKind> {
    let (done, watch) = mpsc::channel::<()>();
    let name = text.to_owned();
    let watcher = std::thread::spawn(move || {
        if let Err(RecvTimeoutError::Timeout) = watch.recv_timeout(PATIENCE) {
            eprintln!("it goes on and on: {name}");
            std::process::exit(1);
        }
    });
    let result = database.gremlin_with(text, options);
    drop(done);
    watcher.join().expect("it only waits");
    match result {
        Ok(results) => Ok(results.counted().to_vec()),
        Err(error) => match error.kind() {
            ErrorKind::Internal | ErrorKind::Corrupt | ErrorKind::Io => panic!("{text}: {error}"),
            kind => Err(kind),
        },
    }
}

fn capped(bytes: u64) -> GremlinOptions {
    GremlinOptions {
        memory_limit_bytes: Some(bytes),
        timeout: Some(Duration::from_secs(30)),
        ..GremlinOptions::default()
    }
}

fn small() -> GremlinOptions {
    capped(8 << 20)
}

fn one(text: &str) -> Value {
    match run(&Database::in_memory(), text, &small())
        .unwrap_or_else(|kind| panic!("{text}: {kind:?}"))
        .as_slice()
    {
        [(value, 1)] => value.clone(),
        other => panic!("{text}: {other:?}"),
    }
}

/// `2^exponent` as a number of arbitrary precision.
fn power_of_two(exponent: u32) -> Value {
    one(&format!("g.inject({}n)", 1_u128 << exponent))
}

/// query B1: expanding a bulk of 2^50 is an error of the memory cap, in every step that once did so.
#[test]
fn b1_a_bulk_is_repeated_only_within_the_memory_cap() {
    let database = Database::in_memory();
    let grows = [
        format!("{BULK}.group()"),
        format!("{BULK}.group('x').cap('x')"),
        format!("{BULK}.fold()"),
        format!("{BULK}.aggregate('x').cap('x').index()"),
        format!("{BULK}.aggregate('x').cap('x').order(local)"),
        format!("{BULK}.aggregate('x').cap('x').sample(local, 2)"),
        "g.withSideEffect('x', []).inject(1).repeat(union(identity(),identity())).times(50).aggregate('x')".to_owned(),
        "g.withSideEffect('x', [], Operator.addAll).inject([1]).repeat(union(identity(),identity())).times(50)
             .aggregate('x')"
            .to_owned(),
        "g.withSideEffect('x', [1], Operator.assign).inject(1).repeat(union(identity(),identity())).times(50)
             .aggregate('x')"
            .to_owned(),
        format!("{BULK}.constant([1]).fold([], Operator.addAll)"),
        format!("{BULK}.aggregate('x').cap('x').asString(local)"),
        format!("{BULK}.aggregate('x').cap('x').combine([1])"),
        format!("{BULK}.aggregate('x').cap('x').product([1])"),
        format!("{BULK}.aggregate('x').cap('x').reverse()"),
        // Many values that share one text of 64 KiB.
        "g.inject('aaaaaaaaaaaaaaaa').repeat(concat(identity())).times(12).repeat(union(identity(),identity())).times(12)
             .fold().toUpper(local)"
            .to_owned(),
    ];
    for text in grows {
        let ended = run(&database, &text, &small());
        assert!(matches!(ended, Err(ErrorKind::MemoryLimit | ErrorKind::Query)), "{text}: {ended:?}");
    }
    // These need no copies.
    for text in [
        format!("{BULK}.aggregate('x').cap('x').unfold()"),
        "g.inject(0).flatMap(constant(1).repeat(union(identity(),identity())).times(50))".to_owned(),
        "g.inject(0).coalesce(constant(1).repeat(union(identity(),identity())).times(50))".to_owned(),
    ] {
        let found = run(&database, &text, &small()).expect(&text);
        assert!(found.iter().all(|(value, _)| *value == Value::Int(1)), "{text}");
        assert_eq!(found.iter().map(|(_, count)| count).sum::<u64>(), 1 << 50, "{text}");
    }
    assert_eq!(one(&format!("{BULK}.aggregate('x').cap('x').count(local)")), Value::Long(1 << 50));
    assert_eq!(one(&format!("{BULK}.aggregate('x').cap('x').sum(local)")), Value::Long(1 << 50));
    assert_eq!(one(&format!("{BULK}.aggregate('x').cap('x').dedup(local).count(local)")), Value::Long(1));
    let all = run(&database, &format!("{BULK}.aggregate('x').cap('x').all(eq(1)).count()"), &small());
    assert_eq!(all, Ok(vec![(Value::Long(1), 1)]));
}

/// query B1: the API does not return more values than fit into memory.
#[test]
fn b1_results_are_not_repeated_without_limit() {
    let database = Database::in_memory();
    let results = database.gremlin(BULK).expect("it is one traverser");
    assert_eq!(results.len(), 1 << 50);
    assert_eq!(results.values().take(3).count(), 3);
    assert_eq!(results.into_values().expect_err("there are too many").kind(), ErrorKind::MemoryLimit);
}

/// query B2: a path of any length is dropped without recursion.
#[test]
fn b2_a_long_path_is_dropped() {
    let text = "g.inject(0).repeat(constant(0).as('a')).times(200000).count()";
    let options = GremlinOptions { memory_limit_bytes: None, ..GremlinOptions::default() };
    assert_eq!(run(&Database::in_memory(), text, &options), Ok(vec![(Value::Long(1), 1)]));
}

/// query B2: path objects count against the memory cap, and trees obey the depth limit of values.
#[test]
fn b2_paths_are_counted() {
    let database = Database::in_memory();
    for text in [
        "g.inject(0).repeat(constant(0).as('a')).times(200000).count()",
        "g.inject(0).repeat(constant(0)).times(200000).path().count()",
        "g.inject(0).repeat(constant(0)).times(2000).tree()",
        "g.inject(0).repeat(constant(0)).times(2000).tree('x')",
    ] {
        assert_eq!(run(&database, text, &capped(1 << 20)), Err(ErrorKind::MemoryLimit), "{text}");
    }
    // Dropped objects return their memory.
    let text = "g.inject(0).repeat(constant(0)).times(500).local(path().constant(1))";
    for times in ["inject(0)", "inject(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)"] {
        let text = text.replace("inject(0)", times);
        assert!(run(&database, &text, &capped(256 << 10)).is_ok(), "{text}");
    }
}

/// query B6: steps that once looped over a bulk now compute with it.
#[test]
fn b6_steps_compute_with_bulks() {
    let database = Database::in_memory();
    let half = run(&database, &format!("{BULK}.coin(0.5)"), &small()).expect("it ends");
    let kept: u64 = half.iter().map(|(_, count)| count).sum();
    // 2^49, with a standard deviation of 2^24.
    assert!(kept.abs_diff(1 << 49) < 8 << 24, "{kept}");
    assert_eq!(run(&database, &format!("{BULK}.coin(0.0)"), &small()), Ok(Vec::new()));
    assert_eq!(one(&format!("{BULK}.fold(0, Operator.sum)")), Value::Long(1 << 50));
    assert_eq!(one(&format!("{BULK}.fold(7, Operator.minus)")), Value::Long(7 - (1 << 50)));
    assert_eq!(one(&format!("{BULK}.fold(7, Operator.mult)")), Value::Int(7));
    assert_eq!(one(&format!("{BULK}.fold(7, Operator.max)")), Value::Int(7));
    assert_eq!(one(&format!("{BULK}.constant(2).fold(7, Operator.div)")), Value::Int(0));
    assert_eq!(one(&format!("{BULK}.constant(-1).fold(7, Operator.div)")), Value::Int(7));
    assert_eq!(one(&format!("{BULK}.fold(0, Operator.sumLong)")), Value::Long(1 << 50));
    let aggregated =
        "g.withSideEffect('x', 0, Operator.sum).inject(1).repeat(union(identity(),identity())).times(50)
        .aggregate('x').cap('x')";
    assert_eq!(one(aggregated), Value::Long(1 << 50));
    let sampled = run(&database, &format!("{BULK}.sample(3)"), &small());
    assert_eq!(sampled.expect("it ends").iter().map(|(_, count)| count).sum::<u64>(), 3);
    let empty = format!("{BULK}.constant('').aggregate('x').cap('x').conjoin('')");
    assert_eq!(one(&empty), Value::text(""));
    let long = run(&database, &format!("{BULK}.constant('a').aggregate('x').cap('x').conjoin('')"), &small());
    assert!(long.is_err(), "{long:?}");
}

/// query B6: a sample over bulks selects each value in proportion to its bulk.
#[test]
fn b6_a_sample_has_each_with_its_share() {
    let text = "g.withStrategies(new SeedStrategy(seed: 16)).inject(1, 2, 2, 2)
        .repeat(union(identity(),identity())).times(20).sample(1000).groupCount()";
    let Value::Map(counts) = one(text) else { panic!("a map") };
    let count = |value: i32| counts.get(&Value::Int(value)).and_then(Value::as_integer).unwrap_or(0);
    assert_eq!(count(1) + count(2), 1000);
    // A quarter, with a standard deviation of 14.
    assert!((count(1) - 250).abs() < 90, "{counts:?}");
}

/// query B10: counts are exact to the last digit, or an error.
#[test]
fn b10_counts_are_exact() {
    let twice = "g.inject(1,2).repeat(union(identity(),identity()))";
    assert_eq!(one(&format!("{twice}.times(62).tail(2).count()")), Value::Long(2));
    assert_eq!(one(&format!("{twice}.times(63).tail(3).count()")), Value::Long(3));
    assert_eq!(one(&format!("{twice}.times(61).count()")), Value::Long(1 << 62));
    assert_eq!(one(&format!("{twice}.times(63).count()")), power_of_two(64));
    assert_eq!(
        one(&format!("{twice}.times(63).skip(9223372036854775807).count()")),
        power_of_two(63).plus_one()
    );
    assert_eq!(one(&format!("{twice}.times(63).limit(9).count()")), Value::Long(9));
    let Value::Map(counts) = one(&format!("{twice}.times(63).constant('x').groupCount()")) else {
        panic!("a map")
    };
    assert_eq!(counts.get(&Value::text("x")), Some(&power_of_two(64)));
    let Value::Map(counts) = one(&format!("{twice}.times(63).constant('x').groupCount('y').cap('y')")) else {
        panic!("a map")
    };
    assert_eq!(counts.get(&Value::text("x")), Some(&power_of_two(64)));
    assert_eq!(one(&format!("{twice}.times(60).constant(1).sum()")), Value::Long(1 << 61));
    assert_eq!(one(&format!("{twice}.times(63).constant(1.0).sum()")), Value::Double(2_f64.powi(64)));
    assert_eq!(one(&format!("{twice}.times(63).constant(1n).sum()")), power_of_two(64));
    assert_eq!(one(&format!("{twice}.times(60).constant(3).mean()")), Value::Double(3.0));
    // One more round, and a bulk would need 65 bits.
    let database = Database::in_memory();
    for text in [
        format!("{twice}.times(66).count()"),
        format!("{twice}.times(63).constant(1).sum()"),
        format!("{twice}.times(80).tail(2).count()"),
        format!("{twice}.times(63).constant('x').barrier()"),
        format!("{twice}.times(63).constant('x').aggregate('y')"),
        format!(
            "{twice}.times(40).flatMap(union(identity(),identity()).repeat(union(identity(),identity())).times(40))"
        ),
        format!("{twice}.times(63)"),
    ] {
        assert_eq!(run(&database, &text, &small()), Err(ErrorKind::Query), "{text}");
    }
}

trait PlusOne {
    fn plus_one(self) -> Self;
}

impl PlusOne for Value {
    fn plus_one(self) -> Self {
        let Value::BigInteger(number) = self else { panic!("a big integer") };
        Value::BigInteger(std::sync::Arc::new(number.as_ref() + 1_u8))
    }
}

/// A graph of `vertices` vertices with an edge from each to each.
fn complete(vertices: u32) -> Database {
    let database = Database::in_memory();
    let mut text = String::new();
    for from in 0..vertices {
        for to in 0..vertices {
            text += &format!("<urn:v{from}> <urn:e> <urn:v{to}> .\n");
        }
    }
    let source = Source::bytes("edges.nt", text.into_bytes());
    database.load(vec![source], &LoadOptions::default()).expect("it is well-formed");
    database
}

/// query B7: barriers that merge equal values terminate, count what they hold, and give the right answer.
#[test]
fn b7_barriers_do_not_search_all_that_they_hold() {
    let database = complete(60);
    let edges = run(&database, "g.E().subgraph('s').cap('s')", &capped(16 << 20)).expect("it ends");
    let [(Value::Subgraph(graph), 1)] = edges.as_slice() else { panic!("{edges:?}") };
    assert_eq!((graph.vertices.len(), graph.edges.len()), (60, 3600));
    let twice =
        run(&database, "g.E().subgraph('s').subgraph('s').cap('s')", &capped(16 << 20)).expect("it ends");
    assert_eq!(twice, edges);
    assert_eq!(
        run(&database, "g.E().subgraph('s').cap('s')", &capped(64 << 10)),
        Err(ErrorKind::MemoryLimit)
    );
    let sacks =
        run(&database, "g.withSack(1, Operator.sum).V().both().barrier().sack().groupCount()", &small());
    let Ok([(Value::Map(counts), 1)]) = sacks.as_deref() else { panic!("{sacks:?}") };
    assert_eq!(
        counts.get(&Value::Long(120)).or(counts.get(&Value::Int(120))),
        Some(&Value::Long(7200)),
        "{counts:?}"
    );
    let tree = run(&database, "g.V().out().tree().count(local)", &capped(16 << 20));
    assert_eq!(tree, Ok(vec![(Value::Long(60), 1)]));
    let trees = "g.V().out().tree('x').tree('x').cap('x').count(local)";
    assert_eq!(run(&database, trees, &capped(16 << 20)), Ok(vec![(Value::Long(60), 1)]));
    // A linear search for each of these would take 10^10 comparisons.
    let many = "inject(0).flatMap(repeat(math('_ + 1')).emit().limit(131072))";
    let large = &capped(256 << 20);
    let sacks = run(&database, &format!("g.withSack(1, Operator.sum).{many}.barrier().count()"), large);
    assert_eq!(sacks, Ok(vec![(Value::Long(131_072), 1)]));
    let tree = run(&database, &format!("g.{many}.tree().count(local)"), large);
    assert_eq!(tree, Ok(vec![(Value::Long(1), 1)]));
    let same = "g.V().limit(1).union(V().out().path().tree(), V().out().path().tree()).dedup().count()";
    assert_eq!(run(&database, same, &capped(64 << 20)), Ok(vec![(Value::Long(1), 1)]));
}

/// query B8: a decimal with a large exponent is not an id, and is rejected without computing its digits.
#[test]
fn b8_a_decimal_with_many_places_is_no_id() {
    let database = Database::in_memory();
    for (number, refused) in
        [("1e-999999999", true), ("1e999999999", true), ("-7e-40000", true), ("1e-300", true)]
    {
        let text = format!("g.inject('{number}').asNumber().as('n').addV('x').property(T.id, select('n'))");
        let ended = run(&database, &text, &small());
        assert_eq!(ended.is_err(), refused, "{text}: {ended:?}");
    }
    // Equality as well.
    let text = "g.inject('1e-999999999','1e-999999998','1').asNumber().dedup().count()";
    assert_eq!(one(text), Value::Long(3));
    let text = "g.inject('1e-999999999').asNumber().as('a').constant(1.0m).where(eq('a')).count()";
    assert_eq!(one(text), Value::Long(0));
}

/// query B14: nested traversals return their memory when they restart.
#[test]
fn b14_nested_traversals_give_memory_back() {
    let database = complete(100);
    for text in [
        "g.V().local(out().fold()).count()",
        "g.V().local(out().order()).count()",
        "g.V().local(out().dedup()).count()",
        "g.V().map(out().group().by('x')).count()",
        "g.V().filter(both().barrier()).count()",
        "g.V().map(out().groupCount()).count()",
        "g.V().local(out().path().tree()).count()",
        "g.V().local(repeat(out()).times(2).tail(3)).count()",
    ] {
        let ended = run(&database, text, &capped(256 << 10));
        assert!(ended.is_ok(), "{text}: {ended:?}");
    }
}

/// query B15: buffers of `match`, `flatMap`, walks and reads count against the cap.
#[test]
fn b15_buffers_count_against_the_memory_cap() {
    let database = complete(100);
    for text in [
        "g.V().match(__.as('a').both().as('b'), __.as('b').both().as('c')).select('c').count()",
        "g.inject(0).flatMap(repeat(math('_ + 1')).emit())",
        "g.inject(0).coalesce(repeat(math('_ + 1')).emit())",
        "g.V().union(out().out().path(), count())",
        "g.V().out().out().path()",
        "g.V().out().out().path().toList()",
        "g.V().out().path().toBulkSet()",
        "g.inject(0).repeat(math('_ + 1')).emit()",
        "g.V().store('x').select('x').fold()",
        "g.inject(1).repeat(union(identity(),identity())).times(50).addV('x')",
    ] {
        assert_eq!(run(&database, text, &capped(96 << 10)), Err(ErrorKind::MemoryLimit), "{text}");
    }
}

/// Steps by name, with their forms, applied to the sources of this file. `_`: a traverser.
const STEPS: &[(&str, &[&str])] = &[
    ("E", &["E()"]),
    ("V", &["V()"]),
    ("addE", &["addV('x').addE('e').to(V().limit(1))"]),
    ("addV", &["addV('x')"]),
    ("aggregate", &["aggregate('x')", "aggregate('x').cap('x')"]),
    ("all", &["fold().all(gt(0))", "aggregate('x').cap('x').all(gt(0))"]),
    ("and", &["and(is(gt(0)), is(lt(0)))"]),
    ("any", &["fold().any(lt(0))", "aggregate('x').cap('x').any(lt(0))"]),
    ("as", &["as('a')", "repeat(math('_ + 1').as('a'))"]),
    ("asBool", &["asBool()"]),
    ("asDate", &["asDate()"]),
    ("asNumber", &["asNumber()"]),
    ("asString", &["asString()", "fold().asString(local)"]),
    ("barrier", &["barrier()", "barrier(normSack)"]),
    ("both", &["V().both()", "V().repeat(both()).emit()"]),
    ("bothE", &["V().bothE()"]),
    ("bothV", &["E().bothV()"]),
    ("branch", &["branch(math('_ % 2')).option(0.0, fold()).option(any, count())"]),
    ("by", &["group().by()", "order().by(math('_ % 7'))"]),
    ("call", &["V().call('tinker.search').with('search', 'a')"]),
    ("cap", &["store('x').cap('x')"]),
    ("choose", &["choose(is(gt(0)), fold(), identity())"]),
    ("coalesce", &["coalesce(fold(), identity())"]),
    ("coin", &["coin(0.5)"]),
    ("combine", &["fold().combine([1])", "aggregate('x').cap('x').combine([1])"]),
    ("concat", &["asString().concat('x')"]),
    ("conjoin", &["fold().conjoin(',')", "aggregate('x').cap('x').conjoin(',')"]),
    ("connectedComponent", &["V().connectedComponent()"]),
    ("constant", &["constant(1)", "repeat(constant(1)).emit()"]),
    ("count", &["count()", "fold().count(local)"]),
    ("cyclicPath", &["cyclicPath()"]),
    ("dateAdd", &["constant(datetime('2020-01-01')).dateAdd(DT.day, 1)"]),
    ("dateDiff", &["constant(datetime('2020-01-01')).dateDiff(datetime('2021-01-01'))"]),
    ("dedup", &["dedup()", "fold().dedup(local)"]),
    ("difference", &["fold().difference([1])"]),
    ("discard", &["discard()"]),
    ("disjunct", &["fold().disjunct([1])"]),
    ("drop", &["V().drop()"]),
    ("element", &["V().properties().element()"]),
    ("elementMap", &["V().elementMap()"]),
    ("emit", &["repeat(identity()).emit()"]),
    ("fail", &["fail()"]),
    ("filter", &["filter(is(lt(0)))"]),
    ("flatMap", &["flatMap(repeat(math('_ + 1')).emit())"]),
    ("fold", &["fold()", "fold(0, sum)", "fold(1, mult)"]),
    ("format", &["format('%{_}').by()"]),
    ("from", &["addV('x').as('x').addE('e').from('x')"]),
    ("group", &["group()", "group('x')", "group().by().by(count())"]),
    ("groupCount", &["groupCount()", "groupCount('x')"]),
    ("has", &["V().has('name', 'x')"]),
    ("hasId", &["V().hasId(1)"]),
    ("hasKey", &["V().properties().hasKey('x')"]),
    ("hasLabel", &["V().hasLabel('x')"]),
    ("hasNot", &["V().hasNot('x')"]),
    ("hasValue", &["V().properties().hasValue('x')"]),
    ("id", &["V().id()"]),
    ("identity", &["identity()"]),
    ("in", &["V().in()"]),
    ("inE", &["V().inE()"]),
    ("inV", &["E().inV()"]),
    ("index", &["fold().index()", "aggregate('x').cap('x').index()"]),
    ("inject", &["inject(1)"]),
    ("intersect", &["fold().intersect([1])"]),
    ("is", &["is(lt(0))"]),
    ("key", &["V().properties().key()"]),
    ("lTrim", &["asString().lTrim()"]),
    ("label", &["V().label()"]),
    ("length", &["asString().length()"]),
    ("limit", &["limit(1000000)", "fold().limit(local, 1)"]),
    ("local", &["local(fold())"]),
    ("loops", &["repeat(math('_ + 1').where(loops().is(lt(9)))).emit()"]),
    ("map", &["map(math('_ * 2'))"]),
    ("match", &["V().match(__.as('a').both().as('b'), __.as('b').both().as('c'))"]),
    ("math", &["math('_ + 1')"]),
    ("max", &["max()", "fold().max(local)"]),
    ("mean", &["mean()", "fold().mean(local)"]),
    ("merge", &["fold().merge([1])"]),
    ("mergeE", &["mergeE([(T.label): 'e', (from): 'urn:v0', (to): 'urn:v1'])"]),
    ("mergeV", &["mergeV([(T.label): 'x'])"]),
    ("min", &["min()", "fold().min(local)"]),
    ("none", &["fold().none(lt(0))"]),
    ("not", &["not(is(gt(0)))"]),
    ("option", &["choose(math('_ % 2')).option(0.0, fold())"]),
    ("optional", &["optional(is(lt(0)))", "optional(repeat(math('_ + 1')).emit())"]),
    ("or", &["or(is(lt(0)), is(eq(0)))"]),
    ("order", &["order()", "fold().order(local)", "order().by(shuffle)"]),
    ("otherV", &["V().bothE().otherV()"]),
    ("out", &["V().out()", "V().repeat(out()).times(60)"]),
    ("outE", &["V().outE()"]),
    ("outV", &["E().outV()"]),
    ("pageRank", &["V().pageRank()"]),
    ("path", &["path()", "repeat(math('_ + 1')).emit().path()"]),
    ("peerPressure", &["V().peerPressure()"]),
    ("product", &["fold().product([1, 2])", "aggregate('x').cap('x').product([1])"]),
    ("profile", &["profile()"]),
    ("project", &["project('a', 'b').by(fold()).by()"]),
    ("properties", &["V().properties()"]),
    ("property", &["addV('x').property(list, 'k', 1)", "V().property(list, 'k', 1)"]),
    ("propertyMap", &["V().propertyMap()"]),
    ("rTrim", &["asString().rTrim()"]),
    ("range", &["range(5, 1000000)", "fold().range(local, 1, 2)"]),
    ("read", &[]),
    (
        "repeat",
        &["repeat(union(identity(), math('_ + 1')))", "repeat(repeat(math('_ + 1')).times(9)).times(99)"],
    ),
    ("replace", &["asString().replace('1', '11')"]),
    ("reverse", &["fold().reverse()"]),
    ("sack", &["sack()", "sack(assign)", "sack(sum)"]),
    ("sample", &["sample(1000)", "sample(1000).by()", "fold().sample(local, 9)"]),
    ("select", &["as('a').as('b').select('a', 'b')", "store('x').select('x')"]),
    ("shortestPath", &["V().shortestPath()"]),
    ("sideEffect", &["sideEffect(store('x'))", "sideEffect(repeat(math('_ + 1')).emit())"]),
    ("simplePath", &["simplePath()", "repeat(math('_ + 1')).emit().simplePath()"]),
    ("skip", &["skip(1000000)", "fold().skip(local, 1)"]),
    ("split", &["asString().split('')"]),
    ("store", &["store('x')"]),
    ("subgraph", &["E().subgraph('x')"]),
    ("substring", &["asString().substring(0, 1)"]),
    ("sum", &["sum()", "fold().sum(local)"]),
    ("tail", &["tail(1000000)", "fold().tail(local, 2)"]),
    ("timeLimit", &["timeLimit(100000)"]),
    ("times", &["repeat(math('_ + 1')).times(1000000)"]),
    ("to", &["V().to(OUT)", "addV('x').as('x').addE('e').to('x')"]),
    ("toE", &["V().toE(OUT)"]),
    ("toLower", &["asString().toLower()"]),
    ("toUpper", &["asString().toUpper()"]),
    ("toV", &["E().toV(OUT)"]),
    ("tree", &["tree()", "tree('x')"]),
    ("trim", &["asString().trim()"]),
    ("unfold", &["fold().unfold()", "aggregate('x').cap('x').unfold()"]),
    ("union", &["union(identity(), count())", "union(fold(), fold())"]),
    ("until", &["repeat(math('_ + 1')).until(is(lt(0)))"]),
    ("value", &["V().properties().value()"]),
    ("valueMap", &["V().valueMap()"]),
    ("values", &["V().values()"]),
    ("where", &["as('a').math('_ + 1').where(eq('a'))", "where(repeat(math('_ + 1')).until(is(lt(0))))"]),
    ("with", &["V().valueMap().with('~tinkerpop.valueMap.tokens')"]),
    ("write", &[]),
];

/// Steps that hold all their input, or a part for each traverser.
const KEEP: &[&str] = &[
    "aggregate('x')",
    "barrier()",
    "dedup()",
    "fold()",
    "group()",
    "group('x')",
    "groupCount()",
    "groupCount('x')",
    "order()",
    "sample(1000)",
    "store('x')",
    "tail(1000000)",
    "tree()",
    "union(fold(), fold())",
    "repeat(math('_ + 1')).emit().path()",
    "flatMap(repeat(math('_ + 1')).emit())",
    "local(fold())",
    "inject(1)",
];

/// All steps applied to each source.
fn texts(database: &Database) -> Vec<String> {
    let behind = |step: &&str| [BULK, ENDLESS].map(|source| format!("{source}.{step}"));
    let texts: Vec<String> = STEPS.iter().flat_map(|(_, steps)| steps.iter().flat_map(behind)).collect();
    for text in &texts {
        let read = database.gremlin_script(text, &GremlinOptions::default());
        read.unwrap_or_else(|error| panic!("{error}"));
    }
    texts
}

/// The table contains every step.
#[test]
fn every_step_is_looked_at() {
    let listed: Vec<&str> = STEPS.iter().map(|(name, _)| *name).collect();
    let known: Vec<&str> = vervet::gremlin::text::step_names().collect();
    assert_eq!(listed, known);
}

/// queries B1, B6, B7, B14, B15: every step ends when its traversal is cancelled, over a bulk of 2^50 and
/// over an endless stream of traversers.
#[test]
fn every_step_ends_when_it_is_cancelled() {
    let database = complete(10);
    for text in texts(&database) {
        let cancel = CancelToken::new();
        let options =
            GremlinOptions { cancel: Some(cancel.clone()), timeout: None, ..GremlinOptions::default() };
        let canceller = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(2));
            cancel.cancel();
        });
        // Any result will do: the traversal ends.
        let _ = run(&database, &text, &options);
        canceller.join().expect("it only cancels");
    }
}

/// queries B1, B6, B7, B14, B15: every step ends under a small memory cap, and steps that hold their input
/// fail because of it.
#[test]
fn every_step_ends_within_a_memory_cap() {
    let database = complete(10);
    for text in texts(&database) {
        let options = GremlinOptions { timeout: Some(Duration::from_millis(2)), ..capped(64 << 10) };
        let _ = run(&database, &text, &options);
    }
    for step in KEEP {
        let text = format!("{ENDLESS}.{step}");
        assert_eq!(run(&database, &text, &capped(64 << 10)), Err(ErrorKind::MemoryLimit), "{text}");
    }
}

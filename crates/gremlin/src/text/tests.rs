//! Round trip of random traversals over every form in the table; messages; limits.

use super::steps::{self, Entry, OLD};
use super::{DEPTH_MAX, ParseOptions, Statement, Terminal, Transaction, parse, parse_value};
use crate::{
    Bytecode, Cardinality, Comparison, Instruction, Map, Operator, P, Strategy, T, TextTest, Token, Value,
};
use std::sync::Arc;
use vervet_testkit::{Random, seed};

fn read(text: &str) -> vervet_model::Result<Vec<Statement>> {
    parse(text, &ParseOptions::default())
}

// Random traversals.

const TEXTS: &[&str] = &["", "marko", "a \"b\" 'c' \\", "new\nline\t\r", "größe 日本 😀", "\0\u{7F}\u{85}"];

fn member(random: &mut Random, kinds: &[&str]) -> Value {
    const MEMBERS: &[(&str, &[&str])] = &[
        ("Barrier", &["normSack"]),
        ("Cardinality", &["single", "set", "list"]),
        ("Column", &["keys", "values"]),
        ("Direction", &["OUT", "IN", "BOTH"]),
        ("GType", &["INT", "UUID", "BIGDECIMAL", "VPROPERTY", "LIST", "SET", "PATH"]),
        ("Merge", &["onCreate", "onMatch", "outV", "inV"]),
        ("Operator", &["sum", "minus", "and", "or", "addAll", "sumLong", "min"]),
        ("Order", &["asc", "desc", "shuffle"]),
        ("Pick", &["any", "none", "unproductive"]),
        ("Pop", &["first", "last", "all", "mixed"]),
        ("Scope", &["global", "local"]),
        ("T", &["id", "label", "key", "value"]),
        ("TimeUnit", &["second", "day"]),
    ];
    let kind = random.pick(kinds);
    let (_, names) = MEMBERS.iter().find(|(name, _)| *name == kind).unwrap();
    Value::Token(Token::from_names(kind, random.pick(names)).unwrap())
}

fn number(random: &mut Random) -> Value {
    let bits = random.next();
    let magnitude = i64::from_le_bytes(random.magnitude(63).to_le_bytes());
    let float = if f64::from_bits(bits).is_nan() { 0.5 } else { f64::from_bits(bits) };
    match random.below(8) {
        0 => Value::Byte(bits.to_le_bytes()[0].cast_signed()),
        1 => Value::Short(i16::from_le_bytes([bits.to_le_bytes()[0], bits.to_le_bytes()[1]])),
        2 => Value::Int(i32::try_from(magnitude % 2_147_483_647).unwrap()),
        3 => Value::Long(-magnitude),
        4 => Value::Float(finite(bits)),
        5 => Value::Double(float),
        6 => Value::BigInteger(Arc::new(
            num_bigint::BigInt::from(magnitude) * num_bigint::BigInt::from(-magnitude),
        )),
        _ => {
            let scale = i64::try_from(random.below(60)).unwrap() - 30;
            Value::BigDecimal(Arc::new(bigdecimal::BigDecimal::new(magnitude.into(), scale)))
        }
    }
}

/// Infinity and `NaN` are doubles in text form.
fn finite(bits: u64) -> f32 {
    let [a, b, c, d, ..] = bits.to_le_bytes();
    let float = f32::from_le_bytes([a, b, c, d]);
    if float.is_finite() { float } else { -0.0 }
}

fn any(random: &mut Random, depth: u64) -> Value {
    let kinds = &["T", "Cardinality", "Direction", "Merge", "Pick", "TimeUnit", "GType"];
    match random.below(if depth == 0 { 7 } else { 12 }) {
        0 => Value::Null,
        1 => Value::Boolean(random.one_in(2)),
        2 => Value::text(random.pick(TEXTS)),
        3 => member(random, kinds),
        4 => uuid::Uuid::from_u128(u128::from(random.next()) << 64 | u128::from(random.next())).into(),
        5 => {
            let seconds = i64::try_from(random.below(200_000_000_000)).unwrap() - 50_000_000_000;
            let nanoseconds = i64::try_from(random.below(1_000_000_000)).unwrap();
            let offset =
                time::UtcOffset::from_whole_seconds(i32::try_from(random.below(100_000)).unwrap() - 50_000);
            let at = time::OffsetDateTime::from_unix_timestamp(seconds).unwrap()
                + time::Duration::nanoseconds(nanoseconds);
            at.to_offset(offset.unwrap()).into()
        }
        6 => number(random),
        7 => values(random, depth).into(),
        8 => Value::set(values(random, depth)),
        9 => map(random, depth),
        10 => Value::WithCardinality(Arc::new((Cardinality::Set, any(random, depth - 1)))),
        _ => anonymous(random, depth - 1),
    }
}

fn values(random: &mut Random, depth: u64) -> Vec<Value> {
    (0..random.below(4)).map(|_| any(random, depth - 1)).collect()
}

fn map(random: &mut Random, depth: u64) -> Value {
    let depth = depth.max(1);
    let entries = (0..random.below(4)).map(|_| (any(random, depth - 1), any(random, depth - 1)));
    Value::map(entries.collect::<Map>())
}

fn predicate(random: &mut Random, depth: u64) -> P {
    let value = |random: &mut Random| any(random, depth.min(1));
    match random.below(if depth == 0 { 7 } else { 10 }) {
        0 => P::Compare(random.pick(&[Comparison::Eq, Comparison::Neq, Comparison::Gte]), value(random)),
        1 => P::Inside(value(random), value(random)),
        2 => P::Between(value(random), value(random)),
        3 => P::Within((0..random.below(3)).map(|_| value(random)).collect()),
        4 => P::Without((0..random.below(3)).map(|_| value(random)).collect()),
        5 => {
            P::Text(random.pick(&[TextTest::Regex, TextTest::NotEndingWith]), Value::text(random.pick(TEXTS)))
        }
        6 => P::TypeOf(member(random, &["GType"])),
        7 => P::Not(Box::new(predicate(random, depth - 1))),
        and => {
            let flat = |p: &P| !matches!((p, and), (P::And(_), 8) | (P::Or(_), 9));
            let mut all: Vec<_> = (0..4).map(|_| predicate(random, depth - 1)).filter(flat).collect();
            all.push(P::Compare(Comparison::Lt, Value::Int(1)));
            all.push(P::Compare(Comparison::Gt, Value::Int(2)));
            if and == 8 { P::And(all) } else { P::Or(all) }
        }
    }
}

fn strategy(random: &mut Random, depth: u64) -> Value {
    let options =
        (0..random.below(3)).map(|_| (random.pick(&["vertices", "list", "from"]).into(), any(random, depth)));
    Strategy { name: "SubgraphStrategy".into(), options: options.collect() }.into()
}

fn anonymous(random: &mut Random, depth: u64) -> Value {
    let steps = (0..=random.below(3)).map(|_| call(random, steps::STEPS, depth)).collect();
    Bytecode { source: Vec::new(), steps }.into()
}

fn argument(random: &mut Random, words: &str, depth: u64) -> Value {
    let choices: Vec<_> = words.split(" | ").collect();
    let word = random.pick(&choices);
    let (word, nullable) = word.strip_suffix('?').map_or((word, false), |word| (word, true));
    if nullable && random.one_in(4) {
        return Value::Null;
    }
    match word {
        "any" => any(random, depth.min(2)),
        "boolean" => Value::Boolean(random.one_in(2)),
        "date" => time::OffsetDateTime::UNIX_EPOCH.into(),
        "integer" => Value::Long(i64::try_from(random.magnitude(62)).unwrap()),
        "map" => map(random, depth.min(2)),
        "number" => number(random),
        "predicate" => predicate(random, depth.min(3)).into(),
        "strategy" => strategy(random, depth.min(2)),
        "text" => Value::text(random.pick(TEXTS)),
        "traversal" if depth == 0 => {
            Bytecode { source: Vec::new(), steps: vec![Instruction::new("id", vec![])] }.into()
        }
        "traversal" => anonymous(random, depth - 1),
        "barrier" => member(random, &["Barrier"]),
        "cardinality" => member(random, &["Cardinality"]),
        "column" => member(random, &["Column"]),
        "direction" => member(random, &["Direction"]),
        "merge" => member(random, &["Merge"]),
        "operator" => member(random, &["Operator"]),
        "order" => member(random, &["Order"]),
        "pop" => member(random, &["Pop"]),
        "scope" => member(random, &["Scope"]),
        "token" => member(random, &["T"]),
        "type" => member(random, &["GType"]),
        "unit" => member(random, &["TimeUnit"]),
        other => panic!("the table has a word that this test does not know: {other}"),
    }
}

fn call(random: &mut Random, table: &[Entry], depth: u64) -> Instruction {
    let (name, forms) = random.pick(table);
    let forms: Vec<_> = forms.iter().filter(|form| **form != OLD && **form != "vertex").collect();
    let form = random.pick(&forms);
    let mut arguments = Vec::new();
    for words in form.split(", ").filter(|words| !words.is_empty()) {
        match words.strip_suffix("...") {
            Some(words) => arguments.extend((0..random.below(3)).map(|_| argument(random, words, depth))),
            None => arguments.push(argument(random, words, depth)),
        }
    }
    Instruction::new(name, arguments)
}

#[test]
fn random_traversals_round_trip_as_text() {
    let seed = seed();
    let mut random = Random(seed);
    for _ in 0..3_000 {
        let depth = random.below(5);
        let source = (0..random.below(3)).map(|_| call(&mut random, steps::SOURCE, depth.min(2))).collect();
        let mut steps = vec![call(&mut random, steps::SPAWN, depth)];
        steps.extend((0..random.below(4)).map(|_| call(&mut random, steps::STEPS, depth)));
        let bytecode = Bytecode { source, steps };
        let printed = bytecode.to_string();
        match read(&printed) {
            Ok(again) => {
                assert_eq!(
                    again,
                    [Statement::Traversal { source: 0, bytecode, terminal: None }],
                    "{printed}"
                );
            }
            Err(error) => panic!("seed {seed}: {printed}\n{error} {:?}", error.hint()),
        }
    }
}

#[test]
fn mutated_texts_parse_or_fail_without_panic() {
    let seed = seed();
    let mut random = Random(seed);
    let pieces: Vec<char> = "g.V()[]{}:,;'\"\\ \n1e5.0x_lb+-P__ngt(not(\u{300}日".chars().collect();
    for _ in 0..3_000 {
        let text = call(&mut random, steps::STEPS, 3).to_string();
        let mut letters: Vec<char> = format!("g.V().{text}").chars().collect();
        for _ in 0..random.below(4) {
            let at = usize::try_from(random.below(letters.len() as u64)).unwrap();
            match random.below(3) {
                0 => letters[at] = random.pick(&pieces),
                1 => letters.insert(at, random.pick(&pieces)),
                _ => letters.truncate(at + 1),
            }
        }
        let text: String = letters.into_iter().collect();
        if let Err(error) = read(&text) {
            assert_eq!(error.message().lines().count(), 3, "{text}: {error}");
        }
    }
}

// Bytecode of sample texts.

fn steps_of(text: &str) -> Vec<Instruction> {
    match read(text).as_deref() {
        Ok([Statement::Traversal { bytecode, .. }]) => bytecode.steps.clone(),
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn forms_of_older_versions_are_kept() {
    for text in [
        "g.V().store('x')",
        "g.V().aggregate(local, 'x')",
        "g.V().none()",
        "g.V().has('name', __.is('x'))",
        "g.V().has(T.label, is('x'))",
        "g.V().in_('knows')",
        "g.V().as_('a').not_(out())",
        "g.V().order().by('age', incr)",
        "g.V().property(VertexProperty.Cardinality.list, 'a', 1)",
        "g.withComputer().V()",
    ] {
        read(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    }
    assert_eq!(&*steps_of("g.V().in_('knows')")[1].name, "in");
}

#[test]
fn statements_and_terminals() {
    let text = "g.tx().begin(); g.addV('a').iterate()\n g.V().next(3) // three\n\"\" g.V().toString();g.tx().commit()";
    let found = read(text).unwrap();
    let terminal = |at: usize| match &found[at] {
        Statement::Traversal { terminal, .. } => *terminal,
        other => panic!("{other:?}"),
    };
    assert_eq!(found.len(), 6);
    assert_eq!(found[0], Statement::Transaction { source: 0, action: Transaction::Begin });
    assert_eq!(terminal(1), Some(Terminal::Iterate));
    assert_eq!(terminal(2), Some(Terminal::NextMany(3)));
    assert_eq!(found[3], Statement::Nothing);
    assert_eq!(terminal(4), Some(Terminal::ToText));
    assert_eq!(found[5], Statement::Transaction { source: 0, action: Transaction::Commit });
}

#[test]
fn sources_and_variables() {
    let mut options =
        ParseOptions { sources: vec!["g".into(), "social".into()].into(), ..ParseOptions::default() };
    options.bindings.to_mut().insert("x".into(), Value::Int(7));
    options.bindings.to_mut().insert("path".into(), Value::text("p"));
    let found = parse("social.V(x, [x], [(x): x]).has(path, gt(x))", &options).unwrap();
    let expected = parse("g.V(7, [7], [(7): 7]).has('p', gt(7))", &options).unwrap();
    match (&found[..], &expected[..]) {
        (
            [Statement::Traversal { source: 1, bytecode: a, .. }],
            [Statement::Traversal { source: 0, bytecode: b, .. }],
        ) => {
            assert_eq!(a, b);
        }
        other => panic!("{other:?}"),
    }
    let both = parse_value("[UUID(), UUID()]", &ParseOptions { seed: 1, ..ParseOptions::default() }).unwrap();
    assert!(matches!(&both, Value::List(both) if both[0] != both[1]), "{both}");
}

#[test]
fn ambiguous_words_are_resolved_by_the_next_token() {
    let first = |text: &str| steps_of(text)[1].arguments[0].clone();
    assert!(matches!(first("g.V().where(not(out()))"), Value::Traversal(_)));
    assert!(matches!(first("g.V().is(not(eq(1)).and(gt(2)))"), Value::P(_)));
    assert!(matches!(first("g.V().union(id(), label())"), Value::Traversal(_)));
    assert_eq!(first("g.V().by(id)"), Value::Token(Token::T(T::Id)));
    assert_eq!(first("g.V().sack(sum)"), Value::Token(Token::Operator(Operator::Sum)));
    assert!(matches!(first("g.V().is(typeOf(set))"), Value::P(p) if p.to_string() == "P.typeOf(GType.SET)"));
    assert_eq!(first("g.V().property(set, 'a', 1)"), Value::Token(Token::Cardinality(Cardinality::Set)));
    assert_eq!(first("g.V().is(within([1, 2]))"), first("g.V().is(within(1, 2))"));
    assert_eq!(
        first("g.V().is(lt(3).and(gt(1)).and(neq(2)))").to_string(),
        "P.lt(3).and(P.gt(1)).and(P.neq(2))"
    );
}

#[test]
fn spans_are_those_of_the_calls() {
    let text = "g.V() .out('größe')";
    let at = steps_of(text)[1].at;
    assert_eq!(&text[at.start as usize..at.end as usize], "out('größe')");
}

#[test]
fn error_messages_have_position_and_hint() {
    for (text, message, hint) in [
        (
            "g.V().bye('code')",
            "there is no step bye (line 1, column 7)\n1 | g.V().bye('code')\n  |       ^^^",
            "did you mean by()?",
        ),
        (
            "g.addVertex()",
            "no traversal starts with addVertex, which is no step (line 1, column 3)",
            "did you mean addV()?",
        ),
        ("g.out()", "no traversal starts with out()", "put V() or E() before it: g.V().out(…)"),
        (
            "g.V().limit('a')",
            "limit() does not take String",
            "limit() takes limit(integer) or limit(scope, integer)",
        ),
        (
            "g.V().map{it.get()}",
            "expected ( after the name of a step, found {",
            "lambdas are not part of gremlin-lang",
        ),
        ("g.V().filter({it.get()})", "the variable it has no value", "lambdas are not part of gremlin-lang"),
        ("g.V().filter({ x -> x })", "unexpected ->", "lambdas are not part of gremlin-lang"),
        ("g.V(x)", "the variable x has no value", "bind it as a parameter"),
        ("g.V().by(ordr)", "the variable ordr has no value", "a step needs"),
        ("g.V().order().by(Order.dezc)", "Order has no member dezc", "did you mean Order.desc?"),
        ("g.V().has('a', getting(1))", "there is no step getting", ""),
        ("g.addE('a').from(g.V(1))", "g starts a traversal of its own", "begin with __"),
        ("g.V().out().next().V()", "no step can follow next()", "put next() at the end"),
        ("g.V().distinct()", "there is no step distinct", "did you mean dedup()?"),
        ("g.V().sort()", "there is no step sort", "did you mean order()"),
        ("g.V().first()", "there is no step first", "did you mean limit(1) or next()?"),
        ("g.V().order().by('a', descending)", "the variable descending has no value", "did you mean desc?"),
        ("g.V().value('a')", "value() does not take String", "did you mean values(\"a\")?"),
        ("g.V().name", "there is no step name", "did you mean values(\"name\")?"),
        ("g.V().limit", "expected ( after the name of a step", "a step needs its parentheses: limit()"),
        ("g.V().limit()", "limit() needs an argument", "limit() takes"),
        ("g.vertices()", "no traversal starts with vertices", "did you mean V()?"),
        ("g.V().has('a' == 1)", "unexpected '='", "a comparison is a predicate"),
        ("g.V().has(“a”)", "unexpected '“'", "write straight quotation marks"),
        ("MATCH (n) RETURN n", "expected a traversal source (g), found MATCH", "this looks like Cypher"),
        ("SELECT * {}", "expected a traversal source (g), found SELECT", "this looks like SPARQL"),
        ("h.V()", "expected a traversal source (g), found h", "start with a source, such as g.V()"),
        ("g.V('a", "this string is not terminated (line 1, column 5)", ""),
        ("g.V('\\d')", "unknown escape", ""),
        ("", "expected a traversal source (g), found the end of the text", ""),
    ] {
        let error = read(text).expect_err(text);
        assert!(error.message().starts_with(message), "{text}: {error}");
        if text != "g.V().by(ordr)" {
            assert!(error.hint().unwrap_or_default().starts_with(hint), "{text}: {:?}", error.hint());
        }
    }
}

// Limits.

#[test]
fn depth_is_limited_and_the_limit_fits_the_stack() {
    for (open, middle, close) in [
        ("[", "", "]"),
        ("{", "", "}"),
        ("[a:", "1", "]"),
        ("__.not(", "out()", ")"),
        ("not(", "eq(1)", ")"),
        ("eq(1).and(", "eq(1)", ")"),
        ("single(", "1", ")"),
        ("union(id(),", "id()", ")"),
    ] {
        let text =
            |levels: usize| format!("g.V().is({}{middle}{})", open.repeat(levels), close.repeat(levels));
        let deep = |levels| read(&text(levels).replace("is(union", "map(union").replace("is(__", "map(__"));
        deep(DEPTH_MAX - 3).unwrap_or_else(|error| panic!("{open}: {error}"));
        let error = deep(DEPTH_MAX + 1).expect_err(open);
        assert!(error.message().starts_with("more than 128 levels"), "{error}");
        deep(200_000).expect_err(open);
    }
}

#[test]
fn predicates_that_grow_at_their_root_are_limited_too() {
    let grown = |times: usize, by: &str| read(&format!("g.V().is(eq(1){})", by.repeat(times)));
    grown(100, ".negate()").unwrap();
    grown(200_000, ".negate()").unwrap_err();
    grown(60, ".and(eq(2)).or(eq(3))").unwrap();
    grown(200_000, ".and(eq(2)).or(eq(3))").unwrap_err();
    grown(200_000, ".or(eq(2))").unwrap();
}

#[test]
fn ranges_are_limited() {
    assert_eq!(parse_value("3..1", &ParseOptions::default()).unwrap().to_string(), "[3, 2, 1]");
    assert_eq!(
        parse_value("'aa'..'ac'", &ParseOptions::default()).unwrap().to_string(),
        "[\"aa\", \"ab\", \"ac\"]"
    );
    for text in
        ["1..100000000", "-2147483648..2147483647", "[1..999999, 1..999999]", "'a'..'bb'", "1..'a'", "1..2l"]
    {
        parse_value(text, &ParseOptions::default()).expect_err(text);
    }
}

#[test]
fn long_texts_are_read() {
    let text = format!("g.V(){}", ".out().has('name', within(1, 2))".repeat(50_000));
    assert_eq!(steps_of(&text).len(), 100_001);
    read(&"g.V(".repeat(100_000)).unwrap_err();
}

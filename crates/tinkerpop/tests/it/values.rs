//! Values of every type in every format, and sample texts and bytes of the formats.

use std::sync::Arc;
use vervet_gremlin::{
    Barrier, Bulk, Bytecode, Cardinality, Column, Comparison, Direction, Duration, Extended, GType,
    Instruction, Lambda, Map, Merge, Operator, Order, P, Path, Pick, Pop, Property, PropertyDetail, Scope,
    Strategy, Subgraph, T, TextTest, TimeUnit, Token, Tree, Value, Vertex, VertexDetail, VertexProperty,
};
use vervet_tinkerpop::graphson::Dialect;
use vervet_tinkerpop::{Limits, ReadErrorKind, WriteErrorKind, graphbinary, graphson};

fn read(text: &str) -> Value {
    graphson::read(text.as_bytes(), Limits::default()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn write(value: &Value, dialect: Dialect) -> String {
    let mut out = Vec::new();
    graphson::write(value, dialect, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn binary(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    graphbinary::write(value, &mut out).unwrap();
    out
}

fn vertex(id: i32, properties: Vec<Arc<VertexProperty>>) -> Vertex {
    let detail = VertexDetail { id: Value::Int(id), label: "person".into(), properties };
    Vertex { key: 0, detail: Some(Arc::new(detail)) }
}

fn name(id: i64, value: &str) -> Arc<VertexProperty> {
    let since = Property { key: "since".into(), value: Value::Short(7), ..Property::default() };
    Arc::new(VertexProperty {
        label: "name".into(),
        value: Value::text(value),
        detail: Some(PropertyDetail { id: Value::Long(id), properties: vec![Arc::new(since)] }),
        ..VertexProperty::default()
    })
}

/// Values of each type, with extremes.
fn values() -> Vec<Value> {
    let extended = |extended| Value::Extended(Arc::new(extended));
    let mut values = vec![
        Value::Null,
        Value::Boolean(true),
        Value::Boolean(false),
        Value::Byte(i8::MIN),
        Value::Short(i16::MAX),
        Value::Int(i32::MIN),
        Value::Long(i64::MIN),
        Value::Float(f32::MIN_POSITIVE),
        Value::Float(f32::NAN),
        Value::Double(1e300),
        Value::Double(-0.0),
        Value::Double(f64::INFINITY),
        Value::Double(f64::NEG_INFINITY),
        Value::BigInteger(Arc::new("-12345678901234567890123".parse().unwrap())),
        Value::BigInteger(Arc::new(128.into())),
        Value::BigDecimal(Arc::new("-1.230".parse().unwrap())),
        Value::BigDecimal(Arc::new("1E+30".parse().unwrap())),
        Value::Char('é'),
        Value::Char('😀'),
        Value::text(""),
        Value::text("a \"b\" \\ \u{1} ü \u{7f} 😀 \u{2028}"),
        Value::Uuid(uuid::Uuid::from_u128(0x1234)),
        Value::Duration(Duration { seconds: -1, nanoseconds: 500_000_000 }),
        Value::Duration(Duration { seconds: i64::MIN, nanoseconds: 0 }),
        read(r#"{"@type":"gx:OffsetDateTime","@value":"-0001-12-31T23:59:59.000001-18:00"}"#),
        read(r#"{"@type":"gx:OffsetDateTime","@value":"+123456-12-31T23:59Z"}"#),
        extended(Extended::Bytes(vec![0, 255, 7])),
        extended(Extended::InetAddress("::1".parse().unwrap())),
        extended(Extended::ZonedDateTime(2020, 2, 29, 1, 3600, None)),
        extended(Extended::Period(-1, 0, 3)),
        Value::list(vec![Value::Int(1), Value::Null, Value::list(vec![])]),
        Value::set([Value::Int(1), Value::Long(1), Value::Null]),
        Value::from(Map::from_iter([
            (Value::Null, Value::Null),
            (Value::list(vec![Value::Int(1)]), Value::text("x")),
            (Value::Token(Token::T(T::Id)), Value::map(Map::default())),
        ])),
        Value::from(Bulk::from_iter([(Value::text("a"), 3), (Value::Int(1), 1_000)])),
        Value::Vertex(vertex(1, vec![name(3, "a"), name(4, "b")])),
        Value::VertexProperty(name(5, "x")),
        Value::from(Path {
            objects: vec![Value::Int(1), Value::Vertex(vertex(1, vec![]))],
            labels: vec![vec!["a".into(), "b".into()], vec![]],
        }),
        Value::from(Tree {
            children: vec![
                (Value::Int(1), Tree { children: vec![(Value::Int(2), Tree::default())] }),
                (Value::text("x"), Tree::default()),
            ],
        }),
        Value::Subgraph(Arc::new(Subgraph { vertices: vec![vertex(1, vec![name(3, "a")])], edges: vec![] })),
        Value::WithCardinality(Arc::new((Cardinality::Set, Value::text("x")))),
        Value::Lambda(Arc::new(Lambda { language: "gremlin-groovy".into(), script: "{}".into(), arity: -1 })),
        Value::from(Bytecode {
            source: vec![Instruction::new("with", vec![Value::text("x")])],
            steps: vec![Instruction::new("where", vec![Value::from(Bytecode::default())])],
        }),
        Value::from(Strategy {
            name: "SubgraphStrategy".into(),
            options: vec![("vertices".into(), Value::from(Bytecode::default())), ("x".into(), Value::Null)],
        }),
    ];
    values.extend(predicates().into_iter().map(Value::from));
    values.extend(tokens().into_iter().map(Value::Token));
    values
}

fn predicates() -> Vec<P> {
    let one = || Value::Int(1);
    vec![
        P::Compare(Comparison::Eq, Value::list(vec![one(), one()])),
        P::Compare(Comparison::Neq, Value::Null),
        P::Within(vec![]),
        P::Without(vec![one(), Value::list(vec![one()])]),
        P::Text(TextTest::NotRegex, Value::text("^a")),
        P::TypeOf(Value::Token(Token::GType(GType::Int))),
        P::TypeOf(Value::text("Integer")),
        P::Not(Box::new(P::Text(TextTest::Containing, Value::text("x")))),
        P::And(vec![P::Compare(Comparison::Lt, one()), P::Or(vec![P::Compare(Comparison::Gte, one())])]),
    ]
}

fn tokens() -> Vec<Token> {
    let mut all = Vec::new();
    all.extend(Barrier::ALL.iter().map(|token| Token::Barrier(*token)));
    all.extend(Cardinality::ALL.iter().map(|token| Token::Cardinality(*token)));
    all.extend(Column::ALL.iter().map(|token| Token::Column(*token)));
    all.extend(Direction::ALL.iter().map(|token| Token::Direction(*token)));
    all.extend(GType::ALL.iter().map(|token| Token::GType(*token)));
    all.extend(Merge::ALL.iter().map(|token| Token::Merge(*token)));
    all.extend(Operator::ALL.iter().map(|token| Token::Operator(*token)));
    all.extend(Order::ALL.iter().map(|token| Token::Order(*token)));
    all.extend(Pick::ALL.iter().map(|token| Token::Pick(*token)));
    all.extend(Pop::ALL.iter().map(|token| Token::Pop(*token)));
    all.extend(Scope::ALL.iter().map(|token| Token::Scope(*token)));
    all.extend(T::ALL.iter().map(|token| Token::T(*token)));
    all.extend(TimeUnit::ALL.iter().map(|token| Token::TimeUnit(*token)));
    all
}

#[test]
fn all_values_round_trip() {
    for value in values() {
        let bytes = binary(&value);
        let again = graphbinary::read(&bytes, Limits::default()).unwrap();
        assert_eq!(again, value);
        assert_eq!(binary(&again), bytes, "{value:?}");
        let text = write(&value, Dialect::V3);
        assert_eq!(read(&text), value, "{text}");
        assert_eq!(write(&read(&text), Dialect::V3), text);
        for dialect in [Dialect::V3, Dialect::V2, Dialect::V3_UNTYPED, Dialect::V2_UNTYPED] {
            let text = write(&value, dialect);
            serde_json::from_str::<serde_json::Value>(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
            read(&text);
        }
    }
}

#[test]
fn many_values_are_written_as_one_list() {
    let vertices: Vec<_> =
        (0..1_000).map(|id| Value::Vertex(vertex(id, vec![name(id.into(), "x")]))).collect();
    let list = Value::list(vertices);
    for dialect in [Dialect::V3, Dialect::V2] {
        assert_eq!(read(&write(&list, dialect)), list);
    }
    assert_eq!(graphbinary::read(&binary(&list), Limits::default()).unwrap(), list);
}

#[test]
fn values_without_types() {
    for (value, v3, v2) in [
        (read("[1,[2.5,null]]"), "[1,[2.5,null]]", "[1,[2.5,null]]"),
        (Value::Double(f64::NAN), "\"NaN\"", "\"NaN\""),
        (Value::Token(Token::T(T::Id)), "\"id\"", "\"id\""),
        (
            Value::Vertex(vertex(1, vec![name(3, "a")])),
            r#"{"id":1,"label":"person","type":"vertex","properties":{"name":[{"id":3,"value":"a","properties":{"since":7}}]}}"#,
            r#"{"id":1,"label":"person","properties":{"name":[{"id":3,"value":"a","label":"name","properties":{"since":7}}]}}"#,
        ),
        (
            Value::from(Map::from_iter([
                (Value::Token(Token::T(T::Label)), Value::Int(1)),
                (Value::Vertex(vertex(1, vec![])), Value::Int(2)),
                (Value::list(vec![Value::Int(1), Value::text("a")]), Value::Null),
                (Value::Null, Value::Null),
            ])),
            r#"{"label":1,"v[1]":2,"[1, a]":null,"null":null}"#,
            r#"{"label":1,"1":2,"[1, a]":null,"null":null}"#,
        ),
        (Value::from(Bulk::from_iter([(Value::text("a"), 3)])), r#"["a","a","a"]"#, r#"["a","a","a"]"#),
    ] {
        assert_eq!(write(&value, Dialect::V3_UNTYPED), v3);
        assert_eq!(write(&value, Dialect::V2_UNTYPED), v2);
    }
}

#[test]
fn properties_with_one_key_stand_together() {
    let other = VertexProperty { label: "x".into(), ..name(2, "b").as_ref().clone() };
    let value = Value::Vertex(vertex(1, vec![name(1, "a"), Arc::new(other), name(3, "c")]));
    let text = write(&value, Dialect::V3_UNTYPED);
    assert_eq!(text.matches("\"name\":").count(), 1, "{text}");
    assert_eq!(text.matches("\"x\":").count(), 1, "{text}");
    let many = (0..100).map(|id| name(id, "a")).collect();
    assert_eq!(write(&Value::Vertex(vertex(1, many)), Dialect::V3_UNTYPED).matches("\"name\":").count(), 1);
}

#[test]
fn numbers_take_the_first_type_that_fits() {
    for (text, value) in [
        ("2147483647", Value::Int(i32::MAX)),
        ("2147483648", Value::Long(2_147_483_648)),
        ("9223372036854775808", Value::BigInteger(Arc::new((u64::MAX / 2 + 1).into()))),
        ("1.0", Value::Double(1.0)),
        ("1e2", Value::Double(100.0)),
        (r#"{"@type":"g:Int64","@value":"9007199254740993"}"#, Value::Long(9_007_199_254_740_993)),
        (r#"{"@type":"g:Int32","@value":1.0}"#, Value::Int(1)),
        (r#"{"@type":"g:Double","@value":1}"#, Value::Double(1.0)),
        (r#"{"@type":"g:Float","@value":"-Infinity"}"#, Value::Float(f32::NEG_INFINITY)),
        (
            r#"{"@type":"gx:BigDecimal","@value":"1.50"}"#,
            Value::BigDecimal(Arc::new("1.50".parse().unwrap())),
        ),
        (r#"{"@type":"gx:Year","@value":2016}"#, Value::Extended(Arc::new(Extended::Year(2016)))),
    ] {
        assert_eq!(read(text), value, "{text}");
    }
}

#[test]
fn predicates_by_name_or_as_comparisons() {
    let p = |text: &str| match read(&format!(r#"{{"@type":"g:P","@value":{text}}}"#)) {
        Value::P(p) => p.as_ref().clone(),
        other => panic!("{other:?}"),
    };
    let (one, two) = (Value::Int(1), Value::Int(2));
    for (text, wanted) in [
        (r#"{"predicate":"inside","value":[1,2]}"#, P::Inside(one.clone(), two.clone())),
        (
            r#"{"predicate":"between","value":{"@type":"g:List","@value":[1,2]}}"#,
            P::Between(one.clone(), two.clone()),
        ),
        (r#"{"value":[1,2],"predicate":"outside"}"#, P::Outside(one.clone(), two.clone())),
        (r#"{"predicate":"within","value":1}"#, P::Within(vec![one.clone()])),
        (
            r#"{"predicate":"eq","value":[1,2]}"#,
            P::Compare(Comparison::Eq, Value::list(vec![one.clone(), two.clone()])),
        ),
        (r#"{"predicate":"startingWith","value":"x"}"#, P::Text(TextTest::StartingWith, Value::text("x"))),
    ] {
        assert_eq!(p(text), wanted, "{text}");
    }
    // Ranges are written as comparisons, which all drivers can read.
    let text = write(&Value::from(P::Inside(one.clone(), two)), Dialect::V3_UNTYPED);
    assert_eq!(
        text,
        r#"{"predicate":"and","value":[{"predicate":"gt","value":1},{"predicate":"lt","value":2}]}"#
    );
    let inside = b"\x1e\0\0\0\0\x06inside\0\0\0\x02\x01\0\0\0\0\x01\x01\0\0\0\0\x02";
    assert_eq!(
        graphbinary::read(inside, Limits::default()).unwrap(),
        Value::from(P::Inside(one, Value::Int(2)))
    );
}

#[test]
fn names_that_drivers_use() {
    for (text, value) in [
        (r#"{"@type":"g:T","@value":"id_"}"#, Value::Token(Token::T(T::Id))),
        (r#"{"@type":"g:Direction","@value":"from"}"#, Value::Token(Token::Direction(Direction::Out))),
        (r#"{"@type":"g:Order","@value":"decr"}"#, Value::Token(Token::Order(Order::Desc))),
        (r#"{"@type":"g:DT","@value":"hour"}"#, Value::Token(Token::TimeUnit(TimeUnit::Hour))),
        (r#"{"@type":"g:Merge","@value":"onCreate"}"#, Value::Token(Token::Merge(Merge::OnCreate))),
    ] {
        assert_eq!(read(text), value, "{text}");
    }
    let strategy = |text: &str| match read(text) {
        Value::Strategy(strategy) => strategy.as_ref().clone(),
        other => panic!("{other:?}"),
    };
    let wanted = Strategy {
        name: "OptionsStrategy".into(),
        options: vec![("evaluationTimeout".into(), Value::Int(5))],
    };
    for text in [
        r#"{"@type":"g:OptionsStrategy","@value":{"fqcn":"a.b.OptionsStrategy","conf":{"evaluationTimeout":5}}}"#,
        r#"{"@type":"g:OptionsStrategy","@value":{"conf":{"@type":"g:Map","@value":["evaluationTimeout",5]}}}"#,
        r#"{"@type":"g:OptionsStrategy","@value":{"evaluationTimeout":5}}"#,
        r#"{"@type":"g:TraversalStrategyProxy","@value":{"fqcn":"a.b.OptionsStrategy","conf":{"evaluationTimeout":5}}}"#,
    ] {
        assert_eq!(strategy(text), wanted, "{text}");
    }
}

#[test]
fn a_map_may_have_any_keys() {
    // Keys that resemble type annotations.
    for text in [r#"{"@value":1}"#, r#"{"@value":1,"x":2}"#, r#"{"x":1,"@type":"g:Int32"}"#, "{}"] {
        assert_eq!(
            write(&read(text), Dialect::V2),
            text.replace(":1", r#":{"@type":"g:Int32","@value":1}"#)
                .replace(":2", r#":{"@type":"g:Int32","@value":2}"#)
        );
    }
}

#[test]
fn json_errors_have_position_and_message() {
    for (text, kind, message) in [
        (
            r#"{"@type":"g:Int32","@value":3000000000}"#,
            ReadErrorKind::Malformed,
            "expected an integer of 32 bits, found \"3000000000\" at byte 28",
        ),
        (
            r#"{"@type":"g:Int32","@value":1.5}"#,
            ReadErrorKind::Malformed,
            "expected an integer of 32 bits, found \"1.5\" at byte 28",
        ),
        (
            r#"{"@type":"g:Nothing","@value":1}"#,
            ReadErrorKind::Unsupported,
            "expected a type of GraphSON, found \"g:Nothing\" at byte 30",
        ),
        (
            r#"{"@type":"g:Map","@value":[1]}"#,
            ReadErrorKind::Malformed,
            "expected a value for each key, found a key more at byte 26",
        ),
        (
            r#"{"@type":"g:T","@value":"x"}"#,
            ReadErrorKind::Malformed,
            "expected a member of T, found \"x\" at byte 24",
        ),
        (
            r#"{"@type":"g:UUID","@value":7}"#,
            ReadErrorKind::Malformed,
            "expected a string, found \"7}\" at byte 27",
        ),
        (
            r#"{"@type":"gx:Char","@value":"ab"}"#,
            ReadErrorKind::Malformed,
            "expected one character, found \"ab\" at byte 28",
        ),
        (
            r#"{"@type":"gx:InetAddress","@value":"a.b"}"#,
            ReadErrorKind::Malformed,
            "expected an address in numbers, found \"a.b\" at byte 35",
        ),
        (
            r#"{"@type":"g:Double","@value":"nan"}"#,
            ReadErrorKind::Malformed,
            "expected a number, found \"nan\" at byte 29",
        ),
        (
            r#"{"@type":"gx:BigDecimal","@value":1E999999999}"#,
            ReadErrorKind::Malformed,
            "expected a decimal number with a scale up to 100000, found -999999999 at byte 34",
        ),
        (
            r#"{"@type":"g:P","@value":{"predicate":"near","value":1}}"#,
            ReadErrorKind::Malformed,
            "expected a predicate such as eq or within, found \"near\" at byte 24",
        ),
        (
            r#"{"@type":"g:P","@value":{"predicate":"and","value":[1]}}"#,
            ReadErrorKind::Malformed,
            "expected a predicate in and, found a value of type Integer at byte 24",
        ),
        (
            r#"{"@type":"g:Vertex","@value":{"label":"x"}}"#,
            ReadErrorKind::Malformed,
            "expected a member \"id\" at byte 29",
        ),
        (
            r#"{"@type":"g:BulkSet","@value":["a",-1]}"#,
            ReadErrorKind::Malformed,
            "expected a count, found -1 at byte 35",
        ),
        ("[1,]", ReadErrorKind::Malformed, "expected a value, found \"]\" at byte 3"),
        ("1 2", ReadErrorKind::Malformed, "expected the end, found \"2\" at byte 2"),
        ("nul", ReadErrorKind::Malformed, "expected a value, found \"nul\" at byte 0"),
    ] {
        let error = graphson::read(text.as_bytes(), Limits::default()).unwrap_err();
        assert_eq!((error.kind(), error.to_string().as_str()), (kind, message), "{text}");
    }
    assert_eq!(
        graphson::read(b"\"\xff\"", Limits::default()).unwrap_err().to_string(),
        "expected UTF-8 at byte 1"
    );
}

#[test]
fn binary_errors_have_position_and_message() {
    for (bytes, message) in [
        (&b""[..], "expected the code of a type of 1 bytes, found 0 bytes at byte 0"),
        (b"\x01", "expected a flag of 1 bytes, found 0 bytes at byte 1"),
        (b"\x01\x07", "expected a flag of 0 (a value) or 1 (null), found 7 at byte 1"),
        (b"\x01\0\0", "expected an integer of 4 bytes, found 1 bytes at byte 2"),
        (b"\x77\0\0", "expected the code of a type of GraphBinary, found 0x77 at byte 0"),
        (b"\0\0", "expected a type of GraphBinary, found a custom one at byte 0"),
        (b"\xfe\0", "expected a flag of 1 (null) at byte 1"),
        (b"\x03\0\0\0\0\x05abc", "expected 5 bytes of text, found 3 bytes for them at byte 2"),
        (b"\x03\0\xff\xff\xff\xff", "expected a number of bytes of text, found -1 at byte 2"),
        (b"\x03\0\0\0\0\x02a\xff", "expected UTF-8 at byte 7"),
        (b"\x27\0\x02", "expected a truth value, found 2 at byte 2"),
        (b"\x23\0\0\0\0\0", "expected an integer of 1 to 4160 bytes, found 0 at byte 2"),
        (b"\x82\0\0\0\0\x01\x7f", "expected an address of 4 or 16 bytes, found 1 at byte 2"),
        (b"\x80\0\xff\xff\xff\xff", "expected a character in UTF-8 at byte 2"),
        (b"\x20\0\x03\0\0\0\0\x01x", "expected a member of T, found \"x\" at byte 4"),
        (b"\xfe\x01\x01", "expected the end, found 1 bytes more at byte 2"),
    ] {
        let error = graphbinary::read(bytes, Limits::default()).unwrap_err();
        assert_eq!(error.to_string(), message, "{bytes:02x?}");
    }
    // Null may have any type.
    assert_eq!(graphbinary::read(b"\x11\x01", Limits::default()).unwrap(), Value::Null);
}

#[test]
fn values_beyond_limits_are_not_written() {
    let mut deep = Value::Null;
    for _ in 0..1_000 {
        deep = Value::list(vec![deep]);
    }
    let huge = Value::from(Bulk::from_iter([(Value::Null, u64::MAX)]));
    let digits = Value::BigInteger(Arc::new(num_bigint::BigInt::from(1) << 100_000));
    for value in [&deep, &digits] {
        let mut out = vec![7];
        assert_eq!(graphbinary::write(value, &mut out).unwrap_err().kind(), WriteErrorKind::TooLarge);
        assert_eq!(
            graphson::write(value, Dialect::V3, &mut out).unwrap_err().kind(),
            WriteErrorKind::TooLarge
        );
        assert_eq!(out, [7]);
    }
    let mut out = Vec::new();
    assert_eq!(graphson::write(&huge, Dialect::V2, &mut out).unwrap_err().kind(), WriteErrorKind::TooLarge);
    // Multiplicities have 63 bits on the wire: a larger one is an error, never changed (query B10).
    assert_eq!(graphson::write(&huge, Dialect::V3, &mut out).unwrap_err().kind(), WriteErrorKind::TooLarge);
    assert_eq!(graphbinary::write(&huge, &mut out).unwrap_err().kind(), WriteErrorKind::TooLarge);
    assert!(out.is_empty());
    let large = Value::from(Bulk::from_iter([(Value::Null, i64::MAX.cast_unsigned())]));
    graphson::write(&large, Dialect::V3, &mut out).unwrap();
    graphbinary::write(&large, &mut out).unwrap();
}

#[test]
fn a_map_that_looks_like_a_typed_value_stays_a_map() {
    let map = Value::map(Map::from_iter([
        (Value::from("@type"), Value::from("g:Int32")),
        (Value::from("@value"), Value::Int(1)),
    ]));
    let text = write(&map, Dialect::V3);
    assert_eq!(graphson::read(text.as_bytes(), Limits::default()).unwrap(), map);
    let mut out = Vec::new();
    assert_eq!(graphson::write(&map, Dialect::V2, &mut out).unwrap_err().kind(), WriteErrorKind::Unsupported);
    assert!(out.is_empty());
}

#[test]
fn values_have_a_limit() {
    let limits = Limits { values: 100, ..Limits::default() };
    let many = Value::list(vec![Value::Null; 200]);
    assert_eq!(graphbinary::read(&binary(&many), limits).unwrap_err().kind(), ReadErrorKind::TooLarge);
    let text = write(&many, Dialect::V3);
    assert_eq!(graphson::read(text.as_bytes(), limits).unwrap_err().kind(), ReadErrorKind::TooLarge);
}

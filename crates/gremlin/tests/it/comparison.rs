//! Equality, comparability, orderability and predicates: cases of the feature files, and algebraic laws on
//! random values.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use crate::random::{Random, value};
use std::cmp::Ordering;
use std::sync::Arc;
use vervet_gremlin::semantics::compare::{compare, equal, order, order_with};
use vervet_gremlin::semantics::predicate::{Compiled, negate, test};
use vervet_gremlin::semantics::{Details, NoDetails};
use vervet_gremlin::{
    Bulk, Comparison, Edge, EdgeDetail, Extended, GType, Map, P, PropertyDetail, TextTest, Token, Value,
    Vertex, VertexDetail, VertexProperty,
};

const NAN: Value = Value::Double(f64::NAN);

fn is(predicate: P, value: &Value) -> bool {
    let compiled = Compiled::new(&predicate).unwrap().test(value);
    assert_eq!(test(&predicate, value).unwrap(), compiled, "{predicate:?} {value:?}");
    compiled
}

fn ones() -> Vec<Value> {
    vec![
        Value::Byte(1),
        Value::Short(1),
        Value::Int(1),
        Value::Long(1),
        Value::Float(1.0),
        Value::Double(1.0),
        Value::BigInteger(Arc::new(1.into())),
        Value::BigDecimal(Arc::new(1.into())),
    ]
}

#[test]
fn numbers_are_equal_by_value() {
    for a in ones() {
        for b in ones() {
            assert!(equal(&a, &b), "{a:?} {b:?}");
            assert_eq!(order(&a, &b), Ordering::Equal);
        }
        assert!(!equal(&a, &Value::Int(1000)));
        assert!(!equal(&a, &Value::text("1")));
    }
    assert!(equal(&Value::Double(-0.0), &Value::Double(0.0)));
    assert!(equal(&Value::Double(0.1), &Value::BigDecimal(Arc::new("0.1".parse().unwrap()))));
    assert!(!equal(&Value::Double(0.1), &Value::Float(0.1)));
}

#[test]
fn comparisons_without_an_answer_do_not_hold() {
    use Comparison::{Eq, Gt, Gte, Lt, Lte, Neq};
    let (null, one, foo) = (Value::Null, Value::Double(1.0), Value::text("foo"));
    let (more, less) = (Value::Double(f64::INFINITY), Value::Double(f64::NEG_INFINITY));
    for (a, b, holding) in [
        (&null, &null, vec![Eq, Lte, Gte]),
        (&NAN, &NAN, vec![Neq]),
        (&one, &NAN, vec![Neq]),
        (&NAN, &null, vec![Neq]),
        (&foo, &one, vec![Neq]),
        (&one, &foo, vec![Neq]),
        (&more, &more, vec![Eq, Lte, Gte]),
        (&more, &less, vec![Neq, Gt, Gte]),
        (&less, &more, vec![Neq, Lt, Lte]),
    ] {
        for comparison in [Eq, Neq, Lt, Lte, Gt, Gte] {
            let predicate = P::Compare(comparison, b.clone());
            assert_eq!(is(predicate.clone(), a), holding.contains(&comparison), "{a:?} {comparison:?} {b:?}");
            assert_eq!(is(negate(&predicate), a), !holding.contains(&comparison));
        }
    }
    let error = || P::Compare(Lt, NAN);
    assert!(!is(P::Or(vec![error(), P::Compare(Gt, Value::Int(2))]), &one));
    assert!(is(P::Or(vec![error(), P::Compare(Gt, Value::Int(0))]), &one));
    assert!(is(negate(&P::And(vec![error(), P::Compare(Gt, Value::Int(0))])), &one));
}

#[test]
fn order_crosses_types() {
    let text = Value::text;
    let list = |texts: &[&str]| Value::list(texts.iter().map(Value::text).collect());
    let uuid = |text: &str| Value::Uuid(text.parse().unwrap());
    let date = |seconds| Value::from(time::OffsetDateTime::from_unix_timestamp(seconds).unwrap());
    let map = |entries: &[(&str, Value)]| {
        Value::map(entries.iter().map(|(key, value)| (Value::text(key), value.clone())).collect::<Map>())
    };
    let sorted = vec![
        Value::Null,
        Value::Boolean(false),
        Value::Boolean(true),
        Value::Double(f64::NEG_INFINITY),
        Value::Int(1),
        Value::Double(2.0),
        Value::Double(f64::INFINITY),
        NAN,
        date(1_672_531_200),
        date(1_690_848_000),
        text("bar"),
        text("foo"),
        text("zzz"),
        uuid("5100808b-62f9-42b7-957e-ed66c30f40d1"),
        uuid("6100808b-62f9-42b7-957e-ed66c30f40d1"),
        Value::set([text("z"), text("x"), text("y")]),
        list(&["a", "b", "c"]),
        list(&["a", "b", "c", "d"]),
        map(&[("c", text("c")), ("b", Value::Boolean(false)), ("a", text("a"))]),
        map(&[("a", text("a")), ("b", text("b"))]),
        entry(text("a"), Value::Int(2)),
        entry(text("a"), text("a")),
        entry(text("b"), Value::Int(1)),
        Value::Char('x'),
    ];
    for (i, a) in sorted.iter().enumerate() {
        for (j, b) in sorted.iter().enumerate() {
            assert_eq!(order(a, b), i.cmp(&j), "{a:?} {b:?}");
        }
    }
}

fn entry(key: Value, value: Value) -> Value {
    Value::Entry(Arc::new((key, value)))
}

/// users 2: map entries had no kind of their own, so all of them were equal.
#[test]
fn users2_entries_of_maps_compare_by_key_then_by_value() {
    let a1 = entry(Value::text("a"), Value::Int(1));
    assert!(equal(&a1, &entry(Value::text("a"), Value::Long(1))));
    for (other, expected) in [
        (entry(Value::text("a"), Value::Int(2)), Some(Ordering::Less)),
        (entry(Value::text("b"), Value::Int(0)), Some(Ordering::Less)),
        (entry(Value::text("A"), Value::Int(3)), Some(Ordering::Greater)),
        (entry(Value::Int(1), Value::Int(1)), None),
        (entry(Value::text("a"), NAN), None),
        (Value::map([(Value::text("a"), Value::Int(1))].into_iter().collect()), None),
    ] {
        assert_eq!(compare(&a1, &other), expected, "{other:?}");
        assert!(!equal(&a1, &other) && order(&a1, &other) != Ordering::Equal, "{other:?}");
    }
}

#[test]
fn collections_compare_item_by_item() {
    let ints = |numbers: &[i32]| Value::list(numbers.iter().map(|n| Value::Int(*n)).collect());
    let doubles = Value::list(vec![Value::Double(1.0), Value::Double(2.0)]);
    for (a, b, expected) in [
        (ints(&[]), ints(&[]), Some(Ordering::Equal)),
        (ints(&[]), ints(&[1]), Some(Ordering::Less)),
        (ints(&[1, 2, 3]), ints(&[1, 2, 4]), Some(Ordering::Less)),
        (ints(&[1, 2, 3, 4]), ints(&[1, 2, 3]), Some(Ordering::Greater)),
        (ints(&[1, 2]), doubles, Some(Ordering::Equal)),
        (ints(&[1]), Value::list(vec![Value::text("a")]), None),
        (ints(&[1]), Value::set([Value::Int(1)]), None),
        (
            Value::set([Value::Int(1), Value::text("foo")]),
            Value::set([Value::text("foo"), Value::Double(1.0)]),
            Some(Ordering::Equal),
        ),
    ] {
        assert_eq!(compare(&a, &b), expected, "{a:?} {b:?}");
        assert_eq!(equal(&a, &b), expected == Some(Ordering::Equal));
    }
    let bag = |count| Value::from([(Value::Int(1), count)].into_iter().collect::<Bulk>());
    assert!(equal(&bag(1), &Value::set([Value::Int(1)])));
    assert_eq!(compare(&bag(u64::MAX), &bag(2)), Some(Ordering::Greater));
}

fn vertex(key: u64, id: Option<Value>) -> Value {
    let detail = id.map(|id| Arc::new(VertexDetail { id, label: "v".into(), properties: vec![] }));
    Value::Vertex(Vertex { key, detail })
}

/// Ids in the reverse order of keys.
struct Backwards;

impl Details for Backwards {
    fn vertex(&self, vertex: &Vertex) -> Option<Arc<VertexDetail>> {
        let id = Value::Long(-i64::try_from(vertex.key).ok()?);
        Some(Arc::new(VertexDetail { id, label: "v".into(), properties: vec![] }))
    }

    fn edge(&self, edge: &Edge) -> Option<EdgeDetail> {
        NoDetails.edge(edge)
    }

    fn vertex_property(&self, property: &VertexProperty) -> Option<PropertyDetail> {
        NoDetails.vertex_property(property)
    }
}

#[test]
fn elements_compare_by_id() {
    assert!(equal(&vertex(7, None), &vertex(7, Some(Value::Int(1)))));
    assert!(!equal(&vertex(7, None), &vertex(8, None)));
    assert!(equal(&vertex(0, Some(Value::Int(1))), &vertex(0, Some(Value::Long(1)))));
    assert!(!equal(&vertex(0, Some(Value::Int(1))), &vertex(7, None)));
    assert_eq!(order(&vertex(7, None), &vertex(8, None)), Ordering::Less);
    assert_eq!(order_with(&vertex(7, None), &vertex(8, None), &Backwards), Ordering::Greater);
    assert_eq!(compare(&vertex(0, Some(Value::Int(1))), &vertex(0, Some(Value::text("a")))), None);
}

#[test]
fn predicates() {
    let text = |kind, text: &str| P::Text(kind, Value::text(text));
    let marko = Value::text("marko");
    for (predicate, expected) in [
        (text(TextTest::StartingWith, "mar"), true),
        (text(TextTest::NotStartingWith, "mar"), false),
        (text(TextTest::EndingWith, "as"), false),
        (text(TextTest::NotEndingWith, "as"), true),
        (text(TextTest::Containing, "ark"), true),
        (text(TextTest::NotContaining, "ark"), false),
        (text(TextTest::Regex, "^mar"), true),
        (text(TextTest::Regex, "ark"), true),
        (text(TextTest::NotRegex, "^ark"), true),
        (P::Within(vec![Value::text("a"), marko.clone()]), true),
        (P::Without(vec![Value::text("a"), marko.clone()]), false),
        (P::Within(vec![]), false),
        (P::Between(Value::text("m"), Value::text("marko")), false),
        (P::TypeOf(Value::Token(Token::GType(GType::String))), true),
        (P::TypeOf(Value::text("String")), true),
        (P::TypeOf(Value::from(Vertex::default()).type_name().into()), false),
        (P::TypeOf(Value::Extended(Arc::new(Extended::Class("java.lang.String".into())))), true),
    ] {
        assert_eq!(is(predicate.clone(), &marko), expected, "{predicate:?}");
        assert_eq!(is(negate(&predicate), &marko), !expected, "{predicate:?}");
    }
    for value in [Value::Null, Value::Int(1)] {
        assert!(!is(text(TextTest::StartingWith, "a"), &value));
        assert!(is(text(TextTest::NotRegex, "a"), &value));
    }
    for (low, inside, outside, between) in
        [(1, false, false, true), (2, true, false, true), (3, false, false, false)]
    {
        let (value, from, to) = (Value::Int(low), Value::Int(1), Value::Int(3));
        assert_eq!(is(P::Inside(from.clone(), to.clone()), &value), inside);
        assert_eq!(is(P::Outside(from.clone(), to.clone()), &value), outside);
        assert_eq!(is(P::Between(from, to), &value), between);
    }
    let error = Compiled::new(&P::TypeOf(Value::text("non-registered-Name"))).unwrap_err();
    assert_eq!(error.message().split(';').next(), Some("non-registered-Name is not a registered type"));
    for pattern in ["(", "a{1000}{1000}{1000}"] {
        assert!(Compiled::new(&text(TextTest::Regex, pattern)).is_err());
    }
    assert!(Compiled::new(&P::Text(TextTest::Containing, Value::Int(1))).is_err());
}

#[test]
fn types_know_their_kinds() {
    let of = |gtype| P::TypeOf(Value::Token(Token::GType(gtype)));
    for value in ones() {
        assert!(is(of(GType::Number), &value));
        assert!(is(P::TypeOf(Value::text("Number")), &value));
        assert!(!is(of(GType::Null), &value));
    }
    assert!(is(of(GType::Int), &Value::Int(1)) && !is(of(GType::Long), &Value::Int(1)));
    assert!(is(of(GType::Set), &Value::from(Bulk::default())));
    assert!(is(of(GType::Map), &Value::from(vervet_gremlin::Tree::default())));
    assert!(is(of(GType::Property), &Value::from(VertexProperty::default())));
    assert!(!is(of(GType::VertexProperty), &Value::from(vervet_gremlin::Property::default())));
    assert!(is(of(GType::Null), &Value::Null) && is(P::TypeOf(Value::Null), &Value::Null));
}

#[test]
fn random_values_satisfy_equality_and_order_laws() {
    let mut random = Random::new();
    for _ in 0..300 {
        let values: Vec<Value> = (0..12).map(|_| value(&mut random, 3)).collect();
        for a in &values {
            assert_eq!(order(a, a), Ordering::Equal, "seed {}: {a:?}", random.seed);
            for b in &values {
                let context = || format!("seed {}: {a:?} and {b:?}", random.seed);
                assert_eq!(order(a, b), order(b, a).reverse(), "{}", context());
                assert_eq!(equal(a, b), equal(b, a), "{}", context());
                assert_eq!(equal(a, b), compare(a, b) == Some(Ordering::Equal), "{}", context());
                assert_eq!(compare(a, b), compare(b, a).map(Ordering::reverse), "{}", context());
                for c in &values {
                    if order(a, b).is_le() && order(b, c).is_le() {
                        assert!(order(a, c).is_le(), "{} and {c:?}", context());
                    }
                }
            }
            let many = Compiled::new(&P::Within(values.clone())).unwrap();
            assert_eq!(many.test(a), values.iter().any(|b| equal(a, b)), "seed {}: {a:?}", random.seed);
        }
    }
}

//! Functions on texts, dates and collections: cases of the feature files, and no panic on random values.

#![allow(clippy::unwrap_used, reason = "tests")]

use crate::random::{Random, value};
use std::sync::Arc;
use vervet_gremlin::semantics::list::{self, Origin};
use vervet_gremlin::semantics::math::{Expression, constant};
use vervet_gremlin::semantics::predicate::Compiled;
use vervet_gremlin::semantics::string::{as_string, as_string_local, to_text};
use vervet_gremlin::semantics::text::{Template, TemplatePart, TextFunction, as_bool, concat};
use vervet_gremlin::semantics::{NoDetails, Result, date, number, operator};
use vervet_gremlin::{
    Bulk, Comparison, Duration, Edge, EdgeDetail, Extended, GType, Map, Operator, P, Path, Scope, T,
    TimeUnit, Token, Value, Vertex, VertexDetail, VertexProperty,
};

fn texts(items: &[&str]) -> Value {
    Value::list(items.iter().map(Value::text).collect())
}

fn error(result: Result<Value>) -> String {
    result.unwrap_err().message().to_owned()
}

#[test]
fn text_functions() {
    let some = |text: &str| Some(Arc::from(text));
    let replace = |old: Option<Arc<str>>, new| TextFunction::Replace { old, new };
    let cut = |start, end| TextFunction::Substring { start, end };
    for (function, text, expected) in [
        (TextFunction::Length, "feature", Value::Int(7)),
        (TextFunction::Length, "😀", Value::Int(1)),
        (TextFunction::ToUpper, "tESt", Value::text("TEST")),
        (TextFunction::ToLower, "tESt", Value::text("test")),
        (TextFunction::Trim, "\u{3000}abc\u{3000}", Value::text("abc")),
        (TextFunction::Trim, "\u{a0}a ", Value::text("\u{a0}a")),
        (TextFunction::LTrim, "  feature  ", Value::text("feature  ")),
        (TextFunction::RTrim, "  feature  ", Value::text("  feature")),
        (replace(some("h"), some("j")), "that", Value::text("tjat")),
        (replace(None, some("g")), "lop", Value::text("lop")),
        (replace(some(""), some("g")), "lop", Value::text("lop")),
        (TextFunction::Split(some("h")), "that", texts(&["t", "at"])),
        (TextFunction::Split(some("a")), "vadas", texts(&["v", "d", "s"])),
        (TextFunction::Split(some("")), "that", texts(&["t", "h", "a", "t"])),
        (TextFunction::Split(None), "hello  world", texts(&["hello", "world"])),
        (cut(1, Some(8)), "test", Value::text("est")),
        (cut(1, Some(8)), "hello world", Value::text("ello wo")),
        (cut(2, None), "lop", Value::text("p")),
        (cut(1, Some(0)), "lop", Value::text("")),
        (cut(-3, None), "marko", Value::text("rko")),
        (cut(1, Some(-1)), "ripple", Value::text("ippl")),
        (cut(-4, Some(2)), "lop", Value::text("lo")),
        (cut(-4, Some(2)), "ripple", Value::text("")),
        (cut(-3, Some(-1)), "ripple", Value::text("pl")),
        (cut(i64::MIN, Some(i64::MAX)), "äö😀", Value::text("äö😀")),
    ] {
        assert_eq!(
            function.apply(&Value::text(text), Scope::Global).unwrap(),
            expected,
            "{function:?} {text}"
        );
        let local = function.apply(&Value::list(vec![Value::text(text), Value::Null]), Scope::Local).unwrap();
        assert_eq!(local, Value::list(vec![expected, Value::Null]));
        assert_eq!(function.apply(&Value::Null, Scope::Global).unwrap(), Value::Null);
        let name = function.name();
        let wrong = error(function.apply(&texts(&["a"]), Scope::Global));
        assert_eq!(wrong, format!("The {name}() step can only take string as argument, encountered List"));
        let wrong = error(function.apply(&Value::list(vec![Value::Int(1)]), Scope::Local));
        assert!(
            wrong.starts_with(&format!("The {name}(local) step can only take string or list of strings"))
        );
    }
    let long = Value::text("a".repeat(1 << 20));
    let grow = replace(some("a"), some(&"b".repeat(1000)));
    assert!(error(grow.apply(&long, Scope::Global)).contains("longer than the limit"));
}

#[test]
fn concat_skips_nulls() {
    let (a, b) = (Value::text("a"), Value::text("b"));
    assert_eq!(concat(&a, []).unwrap(), a);
    assert_eq!(concat(&a, [&Value::Null, &b]).unwrap(), Value::text("ab"));
    assert_eq!(concat(&Value::Null, [&Value::Null]).unwrap(), Value::Null);
    assert!(
        error(concat(&texts(&["a"]), [&b])).starts_with("String concat() can only take string as argument")
    );
}

#[test]
fn booleans() {
    for (value, expected) in [
        (Value::Int(1), true),
        (Value::Double(3.5), true),
        (Value::Int(0), false),
        (Value::Double(-0.0), false),
        (Value::Double(f64::NAN), false),
        (Value::text(" tRUe "), true),
        (Value::text("false"), false),
        (Value::Boolean(true), true),
    ] {
        assert_eq!(as_bool(&value).unwrap(), Value::Boolean(expected), "{value:?}");
    }
    assert_eq!(error(as_bool(&Value::Null)), "Can't parse null as Boolean.");
    assert_eq!(error(as_bool(&Value::text("hello"))), "Can't parse hello as Boolean.");
    assert!(error(as_bool(&texts(&[]))).starts_with("Can't parse"));
}

#[test]
fn templates() {
    let template = Template::parse("%{name} is %{_}%% %%{x} %{");
    let variable = |name: &str| TemplatePart::Variable(name.into());
    let text = |text: &str| TemplatePart::Text(text.into());
    assert_eq!(template.parts(), [variable("name"), text(" is "), variable("_"), text("%% %%{x} %{")]);
    let find =
        |name: &str| Ok::<_, vervet_gremlin::semantics::Error>((name != "gone").then(|| Value::text(name)));
    assert_eq!(template.render(&NoDetails, find).unwrap(), Some(Value::text("name is _%% %%{x} %{")));
    assert_eq!(Template::parse("a %{gone}").render(&NoDetails, find).unwrap(), None);
    assert_eq!(Template::parse("").render(&NoDetails, find).unwrap(), Some(Value::text("")));
}

#[test]
fn strings() {
    let vertex = |id: i32| Vertex {
        key: 0,
        detail: Some(Arc::new(VertexDetail { id: Value::Int(id), label: "v".into(), properties: vec![] })),
    };
    let edge = EdgeDetail {
        id: Value::Int(7),
        label: "knows".into(),
        source: vertex(1),
        target: vertex(2),
        properties: vec![],
    };
    let property = |value: &str| {
        Value::from(VertexProperty {
            label: "name".into(),
            value: Value::text(value),
            ..VertexProperty::default()
        })
    };
    for (value, expected) in [
        (Value::Double(1e10), "1.0E10"),
        (Value::Int(1), "1"),
        (texts(&["a", "b"]), "[a, b]"),
        (Value::set([Value::Int(1), Value::Null]), "[1, null]"),
        (Value::map(Map::from_iter([(Value::text("name"), texts(&["marko"]))])), "{name=[marko]}"),
        (Value::from(Bulk::from_iter([(Value::text("a"), 2)])), "{a=2}"),
        (Value::from(vertex(1)), "v[1]"),
        (Value::from(Vertex::from_key(1)), "v[?]"),
        (Value::from(Edge { detail: Some(edge), ..Edge::default() }), "e[7][1-knows->2]"),
        (property("marko"), "vp[name->marko]"),
        (property("123456789012345678901"), "vp[name->12345678901234567...]"),
        (Value::from(Path { objects: vec![Value::Int(1), Value::Int(2)], labels: vec![] }), "path[1, 2]"),
        (Value::Token(Token::T(T::Id)), "id"),
        (Value::from(P::Between(Value::Int(1), Value::Int(2))), "and(gte(1), lt(2))"),
        (Value::Extended(Arc::new(Extended::Date(1_690_934_400_000))), "2023-08-02T00:00:00Z"),
        (
            Value::Extended(Arc::new(Extended::LocalDateTime(2023, 8, 2, 36_000_000_000_000))),
            "2023-08-02T10:00",
        ),
        (Value::Extended(Arc::new(Extended::Period(1, 0, -3))), "P1Y-3D"),
    ] {
        assert_eq!(as_string(&value, &NoDetails).unwrap(), Value::text(expected));
    }
    assert_eq!(as_string_local(&Value::list(vec![Value::Int(1)]), &NoDetails).unwrap(), texts(&["1"]));
    assert!(error(as_string(&Value::Null, &NoDetails)).starts_with("Can't parse"));
    assert!(error(as_string_local(&Value::list(vec![Value::Null]), &NoDetails)).starts_with("Can't parse"));
    // Small to hold, 2^60 items to write.
    let mut shared = texts(&["a"]);
    for _ in 0..60 {
        shared = Value::list(vec![shared.clone(), shared]);
    }
    assert!(error(as_string(&shared, &NoDetails)).contains("longer than the limit"));
}

#[test]
fn dates() {
    for (text, expected) in [
        ("2023-08-02T00:00:00Z", "2023-08-02T00:00Z"),
        ("2023-08-02T00:00:00-07:00", "2023-08-02T00:00-07:00"),
        ("2018-03-22T00:35:44.741Z", "2018-03-22T00:35:44.741Z"),
        ("2018-03-22T00:35:44.741+1600", "2018-03-22T00:35:44.741+16:00"),
        ("2018-03-22t00:35:44.000000001z", "2018-03-22T00:35:44.000000001Z"),
        ("2018-03-22T00:35", "2018-03-22T00:35Z"),
        ("2018-03-22T00:35+01:02:03", "2018-03-22T00:35+01:02:03"),
        ("2018-03-22", "2018-03-22T00:00Z"),
        ("2018-03", "2018-03-01T00:00Z"),
        ("-0044-03-15", "-0044-03-15T00:00Z"),
    ] {
        assert_eq!(date::format(&date::parse(text).unwrap()), expected, "{text}");
        assert_eq!(date::as_date(&Value::text(text)).unwrap(), Value::from(date::parse(expected).unwrap()));
    }
    for text in [
        "",
        "This String is not an ISO 8601 Date",
        "2018",
        "2018-13",
        "2018-02-30",
        "2018-03-22T",
        "2018-03-22T25:00",
        "2018-03-22T00:35:44.",
        "2018-03-22T00:35+19:00",
        "2018-03-22T00:35+1:00",
        "2018-03-22T00:35Zx",
        "2018-03-22é",
        "99999-01-01",
    ] {
        assert_eq!(
            error(date::as_date(&Value::text(text))),
            format!("Can't parse {text} as OffsetDateTime.")
        );
    }
    let date = |text| Value::from(date::parse(text).unwrap());
    assert_eq!(date::as_date(&Value::Long(1_694_017_708_000)).unwrap(), date("2023-09-06T16:28:28Z"));
    for value in [Value::Null, Value::Double(1.5), texts(&[]), Value::Long(i64::MAX)] {
        assert!(error(date::as_date(&value)).starts_with("Can't parse"), "{value:?}");
    }
    let day = date("2023-08-02T00:00:00Z");
    for (unit, count, expected) in [
        (TimeUnit::Hour, 2, "2023-08-02T02:00Z"),
        (TimeUnit::Hour, -1, "2023-08-01T23:00Z"),
        (TimeUnit::Minute, 10, "2023-08-02T00:10Z"),
        (TimeUnit::Second, 20, "2023-08-02T00:00:20Z"),
        (TimeUnit::Day, 11, "2023-08-13T00:00Z"),
    ] {
        assert_eq!(date::date_add(&day, unit, count).unwrap(), date(expected));
    }
    assert!(date::date_add(&day, TimeUnit::Day, i64::MAX).is_err());
    assert!(date::date_add(&day, TimeUnit::Second, i64::MAX / 2).is_err());
    assert!(
        error(date::date_add(&Value::Int(1), TimeUnit::Day, 1))
            .contains("accept only OffsetDateTime or Date")
    );
    let later = date("2023-08-09T00:00:00Z");
    assert_eq!(date::date_diff(&day, &later).unwrap(), Value::Long(-604_800_000));
    assert_eq!(date::date_diff(&day, &Value::Null).unwrap(), Value::Long(1_690_934_400_000));
    assert!(date::date_diff(&Value::Int(1), &day).is_err() && date::date_diff(&day, &Value::Int(1)).is_err());
    assert_eq!(number::as_number(&day, None).unwrap(), Value::Long(1_690_934_400_000));
}

#[test]
fn durations() {
    for (text, seconds, nanoseconds, printed) in [
        ("PT0S", 0, 0, "PT0S"),
        ("PT8H6M12.345S", 29_172, 345_000_000, "PT8H6M12.345S"),
        ("P2DT3H", 183_600, 0, "PT51H"),
        ("PT-0.5S", -1, 500_000_000, "PT-0.5S"),
        ("-PT1M30S", -90, 0, "PT-1M-30S"),
        ("pt-6h+3m", -21_420, 0, "PT-5H-57M"),
        ("PT9223372036854775807S", i64::MAX, 0, "PT2562047788015215H30M7S"),
    ] {
        let duration = Duration { seconds, nanoseconds };
        assert_eq!(date::parse_duration(text).unwrap(), duration, "{text}");
        assert_eq!(date::format_duration(duration), printed);
        assert_eq!(date::parse_duration(printed).unwrap(), duration);
    }
    for text in [
        "",
        "P",
        "PT",
        "P1",
        "PT1",
        "PT1S1H",
        "P1DT",
        "PT.5S",
        "PT9223372036854775808S",
        "é",
        "PT1.0000000000S",
    ] {
        assert!(date::parse_duration(text).is_err(), "{text}");
    }
}

#[test]
fn collections() {
    let ab = Value::list(vec![Value::text("a"), Value::Null, Value::text("b")]);
    let ac = texts(&["a", "c"]);
    let (text, null) = (Value::text, Value::Null);
    let argument = Origin::Argument;
    assert_eq!(
        list::combine(&ab, &ac, argument).unwrap(),
        Value::list(vec![text("a"), null.clone(), text("b"), text("a"), text("c")])
    );
    assert_eq!(list::difference(&ab, &ac, argument).unwrap(), Value::set([null.clone(), text("b")]));
    assert_eq!(list::disjunct(&ab, &ac, argument).unwrap(), Value::set([null.clone(), text("b"), text("c")]));
    assert_eq!(list::intersect(&ab, &ac, argument).unwrap(), Value::set([text("a")]));
    assert_eq!(
        list::merge(&ab, &ac, argument).unwrap(),
        Value::set([text("a"), null.clone(), text("b"), text("c")])
    );
    let map = |key: &str, value: &str| Value::map(Map::from_iter([(Value::text(key), Value::text(value))]));
    let merged = list::merge(&map("k", "v"), &map("k", "w"), argument).unwrap();
    assert_eq!(merged, map("k", "w"));
    let pairs = list::product(&texts(&["a", "b"]), &texts(&["c"]), argument).unwrap();
    assert_eq!(pairs, Value::list(vec![texts(&["a", "c"]), texts(&["b", "c"])]));
    assert_eq!(list::reverse(&texts(&["a", "b"])).unwrap(), texts(&["b", "a"]));
    assert_eq!(list::reverse(&Value::text("ab😀")).unwrap(), Value::text("😀ba"));
    assert_eq!(list::reverse(&Value::Int(29)).unwrap(), Value::Int(29));
    for (value, delimiter, expected) in [
        (texts(&[]), ";", text("")),
        (ab.clone(), "xyz", text("axyzb")),
        (Value::list(vec![Value::Int(3), text("three")]), ";", text("3;three")),
        (Value::list(vec![null.clone()]), ";", null.clone()),
    ] {
        assert_eq!(list::conjoin(&value, delimiter, &NoDetails).unwrap(), expected);
    }
    assert!(
        error(list::conjoin(&null, "", &NoDetails))
            .contains("Incoming traverser for conjoin step can't be null")
    );

    type Function = fn(&Value, &Value, Origin) -> Result<Value>;
    let functions: [(&str, Function); 6] = [
        ("combine", list::combine),
        ("difference", list::difference),
        ("disjunct", list::disjunct),
        ("intersect", list::intersect),
        ("merge", list::merge),
        ("product", list::product),
    ];
    for (step, function) in functions {
        for (a, b, origin, message) in [
            (&null, &ac, argument, format!("Incoming traverser for {step} step can't be null")),
            (
                &text("x"),
                &ac,
                argument,
                format!(
                    "{step} step can only take an array or an Iterable type for incoming traversers, encountered"
                ),
            ),
            (&ab, &null, argument, format!("Argument provided for {step} step can't be null")),
            (
                &ab,
                &Value::Int(2),
                argument,
                format!("{step} step can only take an array or an Iterable as an argument, encountered"),
            ),
            (
                &ab,
                &null,
                Origin::Traversal,
                format!("traversal argument for {step} step must yield an iterable type, not null"),
            ),
            (
                &ab,
                &map("a", "b"),
                Origin::Traversal,
                format!("traversal argument for {step} step must yield an iterable type, encountered"),
            ),
        ] {
            let found = error(function(a, b, origin));
            assert!(found.contains(&message), "{found}");
        }
        assert_eq!(
            function(&texts(&[]), &texts(&[]), argument).map(|value| list::items(&value).unwrap().count()),
            Ok(0)
        );
    }
    assert!(
        error(list::merge(&map("a", "b"), &text("a"), argument))
            .contains("merge step expected provided argument to evaluate to a Map, encountered")
    );
    assert!(
        error(list::merge(&ab, &map("a", "b"), argument))
            .contains("step type mismatch: expected argument to be Iterable but got Map")
    );

    let huge = Value::from(Bulk::from_iter([(text("a"), u64::MAX), (text("b"), 0)]));
    assert!(error(list::combine(&huge, &ac, argument)).contains("more than the limit"));
    assert!(error(list::conjoin(&huge, "", &NoDetails)).contains("longer than the limit"));
    assert_eq!(list::difference(&huge, &ac, argument).unwrap(), Value::set([]));
}

#[test]
fn all_any_none() {
    let eq = |value: Value| Compiled::new(&P::Compare(Comparison::Eq, value)).unwrap();
    let three = Value::list(vec![Value::Int(3), Value::text("three")]);
    let check = |value: &Value, predicate: &Compiled| {
        (list::all(value, predicate), list::any(value, predicate), list::none(value, predicate))
    };
    assert_eq!(check(&three, &eq(Value::Long(3))), (false, true, false));
    assert_eq!(check(&three, &eq(Value::Int(4))), (false, false, true));
    assert_eq!(check(&Value::list(vec![Value::Null; 2]), &eq(Value::Null)), (true, true, false));
    assert_eq!(check(&texts(&[]), &eq(Value::Null)), (true, false, true));
    assert_eq!(check(&Value::Int(7), &eq(Value::Int(7))), (false, false, false));
    assert_eq!(check(&Value::Null, &eq(Value::Null)), (false, false, false));
}

#[test]
fn expressions() {
    for (text, values, expected) in [
        ("0-_", vec![0.4], -0.4),
        ("_+_", vec![32.0], 64.0),
        ("a + b", vec![29.0, 27.0], 56.0),
        ("b + a", vec![3.0, 29.0], 32.0),
        ("9 - 12", vec![], -3.0),
        ("sin _", vec![2.0], 0.909_297_426_825_681_7),
        ("ceil _", vec![2.7], 3.0),
        ("abs _ - 5", vec![3.0], 2.0),
        ("abs(_) - 5", vec![-3.0], -2.0),
        ("-2 ^ 2", vec![], -4.0),
        ("2 ^ -1", vec![], 0.5),
        ("2 ^ 3 ^ 2", vec![], 512.0),
        ("2 ^ -1 * 8", vec![], 4.0),
        ("10 - 4 - 3", vec![], 3.0),
        ("2 + 3 * 4 % 5", vec![], 4.0),
        ("-7 % 4", vec![], -3.0),
        ("--2", vec![], 2.0),
        ("2 * (1.5e1 + .5)", vec![], 31.0),
        ("[1 + 1] * {2}", vec![], 4.0),
        ("signum(0 - 3) + cbrt(27)", vec![], 2.0),
        ("sqrt abs -16", vec![], 4.0),
    ] {
        assert_eq!(Expression::parse(text).unwrap().evaluate(&values).unwrap(), expected, "{text}");
    }
    let names = |text: &str| -> Vec<String> {
        Expression::parse(text).unwrap().variables().iter().map(ToString::to_string).collect()
    };
    assert_eq!(names("_ + x * sin(y2) / x - pi"), ["_", "x", "y2", "pi"]);
    assert_eq!(constant("pi"), Some(std::f64::consts::PI));
    for (text, column) in
        [("", 0), ("a + * b", 4), ("(a", 2), ("a)", 1), ("2a", 1), ("pow(2, 3)", 3), ("é $", 2), ("1 +", 3)]
    {
        let error = Expression::parse(text).unwrap_err();
        assert_eq!(error.message().lines().last().unwrap().find('^'), Some(column + 2), "{error}");
    }
    let zero = Expression::parse("_ / 0").unwrap();
    assert!(zero.evaluate(&[1.0]).unwrap_err().message().contains("Division by zero"));
    assert!(zero.evaluate(&[]).is_err());
    for text in ["(".repeat(100_000), "-".repeat(100_000), "1^".repeat(100_000), "sin ".repeat(100_000)] {
        assert!(Expression::parse(&text).is_err());
    }
    let long = format!("1{}", " + 1".repeat(100_000));
    assert_eq!(Expression::parse(&long).unwrap().evaluate(&[]).unwrap(), 100_001.0);
}

#[test]
fn operators() {
    let apply = |operator, a: &Value, b: &Value| operator::apply(operator, a.clone(), b);
    let (yes, no) = (Value::Boolean(true), Value::Boolean(false));
    assert_eq!(apply(Operator::Sum, &Value::Byte(127), &Value::Byte(1)).unwrap(), Value::Short(128));
    assert_eq!(apply(Operator::And, &yes, &no).unwrap(), no);
    assert_eq!(apply(Operator::Or, &no, &yes).unwrap(), yes);
    assert_eq!(apply(Operator::Or, &Value::Null, &yes).unwrap(), yes);
    assert_eq!(apply(Operator::Assign, &no, &yes).unwrap(), yes);
    assert_eq!(apply(Operator::SumLong, &Value::Int(1), &Value::Long(2)).unwrap(), Value::Long(3));
    assert_eq!(
        apply(Operator::AddAll, &texts(&["a"]), &Value::set([Value::text("b")])).unwrap(),
        texts(&["a", "b"])
    );
    assert!(
        error(apply(Operator::AddAll, &texts(&[]), &Value::Int(1))).contains("both of Map or Collection")
    );
    assert!(apply(Operator::And, &Value::Int(1), &yes).is_err());
}

#[test]
fn nothing_panics() {
    let mut random = Random::new();
    for _ in 0..3000 {
        let (a, b) = (value(&mut random, 3), value(&mut random, 3));
        let _ = to_text(&a, &NoDetails);
        let _ = as_bool(&a);
        let _ = date::as_date(&a);
        let _ = date::date_add(&a, TimeUnit::Day, 1 << random.below(60));
        let _ = date::date_diff(&a, &b);
        let _ = list::conjoin(&a, ", ", &NoDetails);
        let _ = list::reverse(&a);
        let _ = list::unfold(&a);
        let _ = number::to_double(&a);
        for function in
            [list::combine, list::difference, list::disjunct, list::intersect, list::merge, list::product]
        {
            let _ = function(&a, &b, Origin::Argument);
        }
        let (x, y) = (crate::random::number(&mut random), crate::random::number(&mut random));
        for operator in Operator::ALL {
            let _ = operator::apply(*operator, a.clone(), &b);
            let _ = operator::apply(*operator, x.clone(), &y);
        }
        let _ = to_text(&x, &NoDetails);
        let _ = number::to_double(&x);
        for wanted in GType::ALL {
            let _ = number::as_number(&x, Some(*wanted));
            let _ = number::as_number(&a, Some(*wanted));
            let _ = Compiled::new(&P::TypeOf(Value::Token(Token::GType(*wanted)))).unwrap().test(&a);
        }
        if let (Some(x), Some(y)) = (number::to_double(&x), number::to_double(&y)) {
            let _ = Expression::parse("_ % x ^ -x / (_ - x)").unwrap().evaluate(&[x, y]);
        }
        let characters: Vec<char> = "0123456789+-.:TZeExPDHMS%{}()_^/ é".chars().collect();
        let text: String = (0..random.below(12)).map(|_| random.pick(&characters)).collect();
        let _ = Expression::parse(&text);
        let _ = Template::parse(&text);
        let _ = date::parse(&text);
        let _ = date::parse_duration(&text);
        let _ = number::as_number(&Value::text(&text), None);
    }
}

//! Arithmetic with promotion: cases of `Sum`, `Mean`, `Min`, `Max`, `Sack` and `AsNumber` of the feature
//! files, limits.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use bigdecimal::BigDecimal;
use num_bigint::BigInt;
use std::cmp::Ordering;
use std::sync::Arc;
use vervet_gremlin::semantics::number::{self, Extreme, Mean, Sum, as_number};
use vervet_gremlin::{Extended, GType, Value};

fn big(text: &str) -> Value {
    Value::BigInteger(Arc::new(text.parse::<BigInt>().unwrap()))
}

fn decimal(text: &str) -> Value {
    Value::BigDecimal(Arc::new(text.parse::<BigDecimal>().unwrap()))
}

fn sum(values: &[Value]) -> Option<Value> {
    let mut sum = Sum::default();
    for value in values {
        sum.push(value, 1).unwrap();
    }
    sum.finish()
}

#[test]
fn overflow_widens() {
    let (byte, short, int, long) = (Value::Byte, Value::Short, Value::Int, Value::Long);
    for (a, b, expected) in [
        (byte(127), byte(1), short(128)),
        (byte(-128), byte(-1), short(-129)),
        (short(32_767), short(1), int(32_768)),
        (int(i32::MAX), int(1), long(2_147_483_648)),
        (int(i32::MIN), int(-1), long(-2_147_483_649)),
        (byte(1), byte(2), byte(3)),
        (byte(1), short(2), short(3)),
        (int(1), big("1000"), big("1001")),
        (Value::Float(1.0), int(2), Value::Float(3.0)),
        (Value::Float(1.0), long(2), Value::Double(3.0)),
        (Value::Float(f32::MAX), Value::Float(f32::MAX), Value::Double(f64::from(f32::MAX) * 2.0)),
        (Value::Double(f64::MAX), Value::Double(f64::MAX), Value::Double(f64::INFINITY)),
        (Value::Double(0.1), decimal("0.2"), decimal("0.3")),
        (Value::Null, int(1), Value::Null),
        (int(1), Value::Null, int(1)),
    ] {
        assert_eq!(number::add(&a, &b).unwrap(), expected, "{a:?} + {b:?}");
    }
    assert_eq!(number::multiply(&byte(127), &byte(2)).unwrap(), short(254));
    assert_eq!(number::multiply(&int(i32::MAX), &int(2)).unwrap(), long(4_294_967_294));
    assert_eq!(number::subtract(&byte(-128), &byte(1)).unwrap(), short(-129));
    let error = number::add(&long(i64::MAX), &byte(1)).unwrap_err();
    assert!(error.message().contains("long overflow"), "{error}");
    assert!(number::add(&Value::text("1"), &byte(1)).is_err());
}

#[test]
fn division() {
    let div = |a: &Value, b: &Value| number::divide(a, b);
    assert_eq!(div(&Value::Byte(-128), &Value::Byte(-1)).unwrap(), Value::Short(128));
    assert_eq!(div(&Value::Int(i32::MIN), &Value::Int(-1)).unwrap(), Value::Long(2_147_483_648));
    assert_eq!(div(&Value::Int(7), &Value::Int(-2)).unwrap(), Value::Int(-3));
    assert_eq!(div(&Value::Int(2), &Value::Double(4.0)).unwrap(), Value::Double(0.5));
    assert_eq!(div(&Value::Byte(127), &Value::Float(0.5)).unwrap(), Value::Float(254.0));
    assert_eq!(div(&Value::Float(1.0), &Value::Float(0.0)).unwrap(), Value::Double(f64::INFINITY));
    assert!(div(&Value::Int(1), &Value::Int(0)).unwrap_err().message().contains("/ by zero"));
    assert!(div(&big("1"), &Value::Int(0)).unwrap_err().message().contains("/ by zero"));
    assert!(div(&decimal("0"), &Value::Int(0)).unwrap_err().message().contains("/ by zero"));
    for (a, b, expected) in [
        ("1", "8", "0.125"),
        ("10", "4", "2.5"),
        ("100", "5", "20"),
        ("-1", "3", "-0.3333333333"),
        ("2", "3", "0.6666666667"),
        ("1.00", "3", "0.3333333333"),
        ("5e-20", "3", "2e-20"),
        ("123456", "7", "17636.5714285714"),
        ("0", "3", "0"),
    ] {
        let quotient = div(&decimal(a), &decimal(b)).unwrap();
        assert_eq!(quotient, decimal(expected), "{a} / {b}: {quotient:?}");
    }
    let halves = number::divide_exactly(
        &big(&format!("1{}", "0".repeat(999))),
        &big(&format!("2{}", "0".repeat(999))),
    );
    assert_eq!(halves.unwrap(), decimal("0.5"));
}

#[test]
fn folds() {
    assert_eq!(sum(&[]), None);
    assert_eq!(sum(&[Value::Null]), Some(Value::Null));
    assert_eq!(sum(&[Value::Null, Value::Int(10), Value::Int(5), Value::Null]), Some(Value::Int(15)));
    assert_eq!(sum(&[Value::Byte(127), Value::Byte(1)]), Some(Value::Short(128)));
    assert_eq!(sum(&[Value::Float(1.0), Value::Float(2.0), Value::Float(3.0)]), Some(Value::Float(6.0)));
    let mut bulk = Sum::default();
    bulk.push(&Value::Byte(2), 3).unwrap();
    assert_eq!(bulk.clone().finish(), Some(Value::Byte(6)));
    bulk.push(&Value::Byte(1), 300).unwrap();
    assert_eq!(bulk.finish(), Some(Value::Long(306)));
    assert!(Sum::default().push(&Value::text("a"), 1).is_err());
    assert!(Sum::default().push(&Value::text("a"), 2).is_err());

    let mut mean = Mean::default();
    for (value, count) in [(Value::Null, 1), (Value::Int(10), 2), (Value::Int(25), 1)] {
        mean.push(&value, count).unwrap();
    }
    assert_eq!(mean.finish().unwrap(), Some(Value::Double(15.0)));
    assert_eq!(Mean::default().finish().unwrap(), None);
    let mut nulls = Mean::default();
    nulls.push(&Value::Null, 2).unwrap();
    assert_eq!(nulls.finish().unwrap(), Some(Value::Null));

    for (values, least, greatest) in [
        (vec![Value::Int(29), Value::Double(0.4)], Value::Double(0.4), Value::Double(29.0)),
        (vec![Value::Null, Value::Int(2), Value::Int(1)], Value::Int(1), Value::Int(2)),
        (vec![Value::Double(f64::NAN), Value::Int(2)], Value::Int(2), Value::Int(2)),
        (vec![Value::text("b"), Value::text("a")], Value::text("a"), Value::text("b")),
        (vec![Value::Null], Value::Null, Value::Null),
    ] {
        let (mut low, mut high) = (Extreme::least(), Extreme::greatest());
        for value in &values {
            low.push(value).unwrap();
            high.push(value).unwrap();
        }
        assert_eq!((low.finish(), high.finish()), (Some(least), Some(greatest)), "{values:?}");
    }
    assert!(number::min(&Value::Int(1), &Value::text("a")).is_err());
}

#[test]
fn as_number_parses_and_casts() {
    for (value, wanted, expected) in [
        (Value::Byte(5), None, Value::Byte(5)),
        (Value::text("5"), None, Value::Int(5)),
        (Value::text(" 42\n"), None, Value::Int(42)),
        (Value::text("+42"), None, Value::Int(42)),
        (Value::text("0x5"), None, Value::Int(5)),
        (Value::text("-0x123"), None, Value::Int(-291)),
        (Value::text("0123"), None, Value::Int(83)),
        (Value::text("123."), None, Value::Float(123.0)),
        (Value::text("5.75"), None, Value::Float(5.75)),
        (Value::text("3.141592653589793"), None, Value::Double(std::f64::consts::PI)),
        (Value::text("1.5d"), None, Value::Double(1.5)),
        (Value::text("7l"), None, Value::Long(7)),
        (Value::text("1e400"), None, decimal("1e400")),
        (Value::text("9999999999"), None, Value::Long(9_999_999_999)),
        (Value::text("99999999999999999999"), None, big("99999999999999999999")),
        (Value::text("3.25"), Some(GType::Double), Value::Double(3.25)),
        (Value::text("29"), Some(GType::Double), Value::Double(29.0)),
        (Value::text("0.0"), Some(GType::BigDecimal), decimal("0.0")),
        (Value::Float(3.25), Some(GType::Double), Value::Double(3.25)),
        (Value::Double(5.67), Some(GType::Int), Value::Int(5)),
        (Value::Double(-5.67), Some(GType::Int), Value::Int(-5)),
        (Value::Double(1e21), Some(GType::BigInt), big("1000000000000000000000")),
        (decimal("-3.25"), Some(GType::Long), Value::Long(-3)),
        (decimal("1e-999999999"), Some(GType::Long), Value::Long(0)),
        (Value::Int(12), Some(GType::Byte), Value::Byte(12)),
        (Value::Double(f64::INFINITY), Some(GType::Float), Value::Float(f32::INFINITY)),
        (Value::Null, Some(GType::Int), Value::Null),
        (Value::Extended(Arc::new(Extended::Date(7))), None, Value::Long(7)),
    ] {
        assert_eq!(as_number(&value, wanted).unwrap(), expected, "{value:?} {wanted:?}");
    }
    for (value, wanted, message) in [
        (Value::text("test"), None, "Can't parse string 'test' as number."),
        (Value::text("1,000"), Some(GType::BigInt), "Can't parse string '1,000' as number."),
        (Value::text(""), None, "Can't parse string '' as number."),
        (Value::text("09"), None, "Can't parse string '09' as number."),
        (Value::text("1.5l"), None, "Can't parse string '1.5l' as number."),
        (Value::text("."), None, "Can't parse string '.' as number."),
        (Value::text("1e"), None, "Can't parse string '1e' as number."),
        (Value::text("0x"), None, "Can't parse string '0x' as number."),
        (Value::text("--1"), None, "Can't parse string '--1' as number."),
        (Value::text("0x-1"), None, "Can't parse string '0x-1' as number."),
        (Value::text("NaN"), None, "Can't parse string 'NaN' as number."),
        (Value::list(vec![]), None, "Can't parse type ArrayList as number."),
        (
            Value::Int(32_768),
            Some(GType::Short),
            "Can't convert number of type Integer to Short due to overflow.",
        ),
        (Value::Int(300), Some(GType::Byte), "Can't convert number of type Integer to Byte due to overflow."),
        (
            Value::Double(1e300),
            Some(GType::Float),
            "Can't convert number of type Double to Float due to overflow.",
        ),
        (
            Value::Double(1e300),
            Some(GType::Long),
            "Can't convert number of type Double to Long due to overflow.",
        ),
        (
            decimal("1e400"),
            Some(GType::Double),
            "Can't convert number of type BigDecimal to Double due to overflow.",
        ),
        (decimal("1e1000000000"), Some(GType::Long), "BigDecimal to Long due to overflow."),
        (decimal("1e1000000000"), Some(GType::BigInt), "number overflow"),
        (Value::Double(f64::NAN), Some(GType::Int), "Can't convert NaN to Integer."),
        (Value::Int(1), Some(GType::Vertex), "asNumber() requires a numeric type token, got VERTEX"),
    ] {
        let error = as_number(&value, wanted).unwrap_err();
        assert!(error.message().contains(message), "{value:?} {wanted:?}: {error}");
    }
}

#[test]
fn huge_numbers_are_errors_or_quick() {
    let huge = decimal("1e1000000000");
    for result in [
        number::add(&huge, &Value::Int(1)),
        number::subtract(&Value::Int(1), &huge),
        number::add(&decimal("1e-1000000000"), &Value::Int(1)),
        number::multiply(&big(&"9".repeat(15_000)), &big(&"9".repeat(15_000))),
    ] {
        assert!(result.unwrap_err().message().contains("number overflow"));
    }
    assert_eq!(number::multiply(&huge, &huge).unwrap(), decimal("1e2000000000"));
    let third = number::divide(&huge, &Value::Int(3)).unwrap();
    assert_eq!(number::compare_exactly(&third, &huge), Some(Ordering::Less));
    let edge = Value::BigDecimal(Arc::new(BigDecimal::new(1.into(), i64::MIN)));
    assert_eq!(number::compare_exactly(&edge, &huge), Some(Ordering::Greater));
    assert_eq!(number::compare_promoted(&Value::Double(f64::INFINITY), &edge), Some(Ordering::Greater));
    assert_eq!(number::to_double(&huge), Some(f64::INFINITY));
    assert_eq!(number::to_double(&decimal("-1e-1000000000")), Some(-0.0));
    assert!(number::add(&edge, &huge).is_err());
    assert!(number::multiply(&edge, &edge).is_err());
    assert!(number::divide(&edge, &decimal("1e-10")).is_err());
    let long = format!("0.{}1", "0".repeat(40_000));
    assert_eq!(number::to_double(&decimal(&long)), Some(0.0));
    // 30,000 fraction digits.
    let near = BigDecimal::new(format!("15{}", "0".repeat(30_000)).parse().unwrap(), 30_001);
    assert_eq!(number::to_double(&Value::BigDecimal(Arc::new(near))), Some(1.5));
}

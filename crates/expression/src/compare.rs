//! Comparison of values: `=` and `<` (SPARQL 1.1 §17.3 and §17.4.1.7).
//!
//! Two different literals cannot be compared, which is an error, if the datatype of one is unknown or its
//! lexical form is invalid: they may have the same value. Values of two different known types are unequal
//! unless both are numbers.
//!
//! A float or double and another number are compared as floats or doubles: the other number is rounded (F&O
//! 4.3; §17.3). Integers and decimals of any length are compared exactly.
//!
//! A date or time with a time zone and one without are incomparable if they are within 14 hours of each other
//! (XML Schema 1.1 part 2, §3.3.7): `=`, `!=` and `<` are errors.

use crate::arithmetic::{Pair, promote};
use crate::value::{Gregorian, Span, Value};
use std::cmp::Ordering;
use std::mem::discriminant;
use vervet_algebra::Comparator;
use vervet_model::{triple_parts, with_nt};

/// `a = b`; `None` is a type error.
pub(crate) fn equals(a: &Value<'_>, b: &Value<'_>) -> Option<bool> {
    if let Some(order) = order_of_numbers(a, b) {
        return Some(order == Some(Ordering::Equal));
    }
    Some(match (a, b) {
        (Value::Typed(a, a_type), Value::Typed(b, b_type)) => {
            return (a == b && a_type == b_type).then_some(true);
        }
        // None of these can equal a value of an unknown type.
        (Value::Typed(..), Value::Iri(_) | Value::Blank(_) | Value::Language(..) | Value::Triple(_)) => false,
        (Value::Iri(_) | Value::Blank(_) | Value::Language(..) | Value::Triple(_), Value::Typed(..)) => false,
        (Value::Triple(a), Value::Triple(b)) => return equal_triples(a, b),
        (Value::Typed(..), _) | (_, Value::Typed(..)) => return None,
        (Value::Iri(a), Value::Iri(b))
        | (Value::Blank(a), Value::Blank(b))
        | (Value::String(a), Value::String(b)) => a == b,
        (Value::Language(a, a_tag), Value::Language(b, b_tag)) => a == b && a_tag == b_tag,
        (Value::Boolean(a), Value::Boolean(b)) => a == b,
        (Value::DateTime(_), Value::DateTime(_))
        | (Value::Date(_), Value::Date(_))
        | (Value::Time(_), Value::Time(_)) => return literal_order(a, b).map(Ordering::is_eq),
        (Value::Duration(a), Value::Duration(b)) => a.duration() == b.duration(),
        (Value::Gregorian(of_a), Value::Gregorian(of_b)) => {
            if discriminant(of_a) != discriminant(of_b) {
                return Some(false);
            }
            return literal_order(a, b).map(Ordering::is_eq);
        }
        _ => false,
    })
}

/// `a = b` of the texts of triple terms, part by part.
fn equal_triples(a: &str, b: &str) -> Option<bool> {
    let (mut a, mut b) = (a, b);
    while let (Some([subject, predicate, object]), Some(other)) = (triple_parts(a), triple_parts(b)) {
        // IRIs and blank nodes compare by identity.
        if [subject, predicate] != other[..2] {
            return Some(false);
        }
        (a, b) = (object, other[2]);
    }
    let value = |text| with_nt(text, &mut String::new(), |parts| Value::from_parts(parts, String::new()));
    equals(&value(a)?, &value(b)?)
}

/// `a comparator b`; `None` is a type error.
pub(crate) fn compare(comparator: Comparator, a: &Value<'_>, b: &Value<'_>) -> Option<bool> {
    if let Some(order) = order_of_numbers(a, b) {
        // Any comparison with NaN is false.
        return Some(order.is_some_and(|order| holds(comparator, order)));
    }
    literal_order(a, b)
        .or_else(|| same_term(a, b).then_some(Ordering::Equal))
        .map(|order| holds(comparator, order))
}

/// The order of two numbers (`None`: one is NaN); `None` if one is not a number.
fn order_of_numbers(a: &Value<'_>, b: &Value<'_>) -> Option<Option<Ordering>> {
    if let Some(pair) = promote(a, b) {
        let order = numeric_order(pair);
        return Some(match order {
            Some(Ordering::Equal) if is_wide(a) || is_wide(b) => Some(order_of_equal_doubles(a, pair)),
            order => order,
        });
    }
    Some(Some(a.to_wide()?.cmp(&b.to_wide()?)))
}

fn is_wide(value: &Value<'_>) -> bool {
    matches!(value, Value::Wide(_))
}

/// The order of a wide number and a float or double that it rounds to: a number is never infinite.
#[cold]
fn order_of_equal_doubles(a: &Value<'_>, rounded: Pair) -> Ordering {
    let rounded = match rounded {
        Pair::Float(a, _) => f64::from(a),
        Pair::Double(a, _) => f64::from(a),
        Pair::Integer(..) | Pair::Decimal(..) => return Ordering::Equal,
    };
    match rounded.is_infinite() {
        // The wide number is nearer to zero.
        true if is_wide(a) == (rounded > 0.0) => Ordering::Less,
        true => Ordering::Greater,
        false => Ordering::Equal,
    }
}

/// Whether `comparator` holds for two values in this order.
#[inline]
pub(crate) fn holds(comparator: Comparator, order: Ordering) -> bool {
    match comparator {
        Comparator::Less => order.is_lt(),
        Comparator::LessOrEqual => order.is_le(),
        Comparator::Greater => order.is_gt(),
        Comparator::GreaterOrEqual => order.is_ge(),
    }
}

pub(crate) fn numeric_order(pair: Pair) -> Option<Ordering> {
    match pair {
        Pair::Integer(a, b) => Some(a.cmp(&b)),
        Pair::Decimal(a, b) => a.partial_cmp(&b),
        Pair::Float(a, b) => a.partial_cmp(&b),
        Pair::Double(a, b) => a.partial_cmp(&b),
    }
}

/// The order of two non-numeric literals of the same type.
fn literal_order(a: &Value<'_>, b: &Value<'_>) -> Option<Ordering> {
    match (a, b) {
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Language(a, a_tag), Value::Language(b, b_tag)) if a_tag == b_tag => Some(a.cmp(b)),
        (Value::Boolean(a), Value::Boolean(b)) => Some(a.cmp(b)),
        (Value::DateTime(a), Value::DateTime(b)) => a.partial_cmp(b),
        (Value::Date(a), Value::Date(b)) => a.partial_cmp(b),
        (Value::Time(a), Value::Time(b)) => a.partial_cmp(b),
        (Value::Duration(a), Value::Duration(b)) => match (a, b) {
            (Span::YearMonth(a), Span::YearMonth(b)) => a.partial_cmp(b),
            (Span::DayTime(a), Span::DayTime(b)) => a.partial_cmp(b),
            (a, b) => a.duration().partial_cmp(&b.duration()),
        },
        (Value::Gregorian(a), Value::Gregorian(b)) => match (a, b) {
            (Gregorian::Year(a), Gregorian::Year(b)) => a.partial_cmp(b),
            (Gregorian::YearMonth(a), Gregorian::YearMonth(b)) => a.partial_cmp(b),
            (Gregorian::Month(a), Gregorian::Month(b)) => a.partial_cmp(b),
            (Gregorian::MonthDay(a), Gregorian::MonthDay(b)) => a.partial_cmp(b),
            (Gregorian::Day(a), Gregorian::Day(b)) => a.partial_cmp(b),
            _ => None,
        },
        _ => None,
    }
}

fn same_term(a: &Value<'_>, b: &Value<'_>) -> bool {
    match (a, b) {
        (Value::Iri(a), Value::Iri(b))
        | (Value::Blank(a), Value::Blank(b))
        | (Value::Triple(a), Value::Triple(b)) => a == b,
        (Value::Typed(a, a_type), Value::Typed(b, b_type)) => a == b && a_type == b_type,
        _ => false,
    }
}

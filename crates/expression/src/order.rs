//! Sort keys: the order of `ORDER BY`, `MIN` and `MAX` (SPARQL 1.1 §15.1), extended to a total order.
//!
//! Unbound, blank nodes (by label), IRIs, then literals: numbers by value (NaN last), booleans, dates and
//! times (those without time zone as if in UTC), times, durations, and last all texts and all other literals
//! by lexical form, datatype, language; then triple terms by subject, predicate and object. Values equal
//! under `=` are equal in this order, so that the next sort key decides.
//!
//! # Source
//! §15.1 leaves the order of literals of different types undefined. Comparing those by lexical form, as
//! Oxigraph does, is not transitive (2 < 10 as numbers, 10 < "15" < 2 as texts); hence the groups.

use crate::context::Context;
use crate::dates::{SECONDS_PER_DAY, seconds_of_date, seconds_of_date_time, seconds_of_time};
use crate::evaluator::Evaluator;
use crate::operands::compare_ids;
use crate::value::{RDF_LANG_STRING, Span, Value};
use crate::wide::{OrderedDigits, Wide, double_of_decimal};
use oxsdatatypes::Decimal;
use std::borrow::Cow;
use std::cmp::Ordering;
use vervet_algebra::Comparator;
use vervet_model::{Id, Inline, Result, Tag, triple_parts, with_nt};

const XSD_STRING: &str = "http://www.w3.org/2001/XMLSchema#string";
/// 2^53: doubles below are exact integers if they are whole.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// Sort key of a term, decoded once. Keys compare as the terms do in `ORDER BY`.
///
/// The default is the key of an unbound value.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct SortKey(Key);

/// The variants are in the order of the groups.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
enum Key {
    #[default]
    Unbound,
    Blank(Box<str>),
    Iri(Box<str>),
    Number(Number),
    Boolean(bool),
    /// Seconds since 1970-01-01T00:00:00Z.
    DateTime(Decimal),
    /// Seconds since 1970-01-01T00:00:00Z at the start of the day.
    Date(Decimal),
    /// Seconds since 00:00:00Z.
    Time(Decimal),
    /// Seconds.
    DayTime(Decimal),
    /// Months.
    YearMonth(i64),
    /// Lexical form, datatype, language tag.
    Text(Box<str>, Cow<'static, str>, Box<str>),
    /// Subject, predicate, object.
    Triple(Box<[Key; 3]>),
}

#[derive(Clone, Debug)]
enum Number {
    Exact(Decimal),
    /// An integer or decimal outside the range of [`Decimal`].
    Wide(Box<WideKey>),
    Double(f64),
}

/// A wide number in a form that compares fast.
#[derive(Clone, Debug)]
struct WideKey {
    digits: OrderedDigits,
    /// The nearest double.
    rounded: f64,
}

impl WideKey {
    fn new(number: &Wide) -> Box<Self> {
        Box::new(Self { digits: OrderedDigits::new(number), rounded: number.to_double() })
    }
}

impl SortKey {
    /// The key of a term.
    ///
    /// # Errors
    /// Damaged dictionary.
    pub fn new(evaluator: &Evaluator<'_>, id: Id) -> Result<Self> {
        Ok(Self(match Inline::from_id(id) {
            None if !id.is_bound() => Key::Unbound,
            Some(Inline::Integer(value) | Inline::Long(value)) => Key::Number(Number::Exact(value.into())),
            Some(Inline::Int(value)) => Key::Number(Number::Exact(value.into())),
            Some(Inline::Double(value)) => Key::Number(Number::Double(value)),
            Some(Inline::DateTime(ms)) => match Decimal::new(i128::from(ms), 3) {
                Ok(seconds) => Key::DateTime(seconds),
                Err(_) => Key::Unbound,
            },
            Some(Inline::Date(days)) => Key::Date(Decimal::from(days.saturating_mul(SECONDS_PER_DAY))),
            _ => return Ok(Self::of_value(&Context::new(evaluator, &[]).decode_id(id)?)),
        }))
    }

    pub(crate) fn of_value(value: &Value<'_>) -> Self {
        let timed = match value {
            Value::DateTime(value) => seconds_of_date_time(*value).map(Key::DateTime),
            Value::Date(value) => seconds_of_date(*value).map(Key::Date),
            Value::Time(value) => seconds_of_time(*value).map(Key::Time),
            Value::Duration(Span::DayTime(value)) => Some(Key::DayTime(value.as_seconds())),
            Value::Duration(Span::YearMonth(value)) => value
                .years()
                .checked_mul(12)
                .and_then(|years| years.checked_add(value.months()))
                .map(Key::YearMonth),
            _ => None,
        };
        if let Some(key) = timed {
            return Self(key);
        }
        Self(match value {
            Value::Blank(label) => Key::Blank(label.as_ref().into()),
            Value::Iri(iri) => Key::Iri(iri.as_ref().into()),
            Value::Integer(value) => {
                // Of 64 bits any decimal holds; the check for 128 bits is a call of a division.
                Key::Number(match i64::try_from(*value) {
                    Ok(small) => Number::Exact(small.into()),
                    Err(_) => Decimal::try_from(*value)
                        .map_or_else(|_| Number::Wide(WideKey::new(&(*value).into())), Number::Exact),
                })
            }
            Value::Decimal(value) => Key::Number(Number::Exact(*value)),
            Value::Wide(value) => Key::Number(Number::Wide(WideKey::new(value))),
            Value::Float(value) => Key::Number(Number::Double((*value).into())),
            Value::Double(value) => Key::Number(Number::Double((*value).into())),
            Value::Boolean(value) => Key::Boolean(*value),
            Value::String(text) => Key::Text(text.as_ref().into(), Cow::Borrowed(XSD_STRING), "".into()),
            Value::Language(text, tag) => {
                Key::Text(text.as_ref().into(), Cow::Borrowed(RDF_LANG_STRING), tag.as_ref().into())
            }
            Value::Triple(text) => Key::of_triple(text),
            other => {
                let mut text = String::new();
                other.write_lexical(&mut text);
                let datatype = other.datatype().unwrap_or_default().to_owned();
                Key::Text(text.into(), Cow::Owned(datatype), "".into())
            }
        })
    }

    /// Memory held besides the key itself, in bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.0.heap_bytes()
    }
}

impl Key {
    /// The key of the text of a triple term, nested at most [`vervet_model::TRIPLE_DEPTH_MAX`] deep.
    fn of_triple(text: &str) -> Self {
        let key = |text| {
            let value = with_nt(text, &mut String::new(), |parts| Value::from_parts(parts, String::new()));
            value.map_or(Self::Unbound, |value| SortKey::of_value(&value).0)
        };
        triple_parts(text).map_or(Self::Unbound, |parts| Self::Triple(Box::new(parts.map(key))))
    }

    fn heap_bytes(&self) -> usize {
        match self {
            Key::Number(Number::Wide(value)) => size_of::<WideKey>() + value.digits.heap_bytes(),
            Key::Blank(text) | Key::Iri(text) => text.len(),
            Key::Triple(parts) => parts.iter().map(|part| size_of::<Self>() + part.heap_bytes()).sum(),
            Key::Text(text, datatype, tag) => {
                let owned = if let Cow::Owned(datatype) = datatype { datatype.len() } else { 0 };
                text.len() + tag.len() + owned
            }
            _ => 0,
        }
    }
}

impl Evaluator<'_> {
    /// The order of two terms in `ORDER BY`, if both are strings whose ranks are known.
    ///
    /// # Errors
    /// Damaged dictionary.
    #[inline]
    pub fn order_of_ranks(&self, a: Id, b: Id) -> Result<Option<Ordering>> {
        if a.tag() != Tag::Literal || b.tag() != Tag::Literal {
            return Ok(None);
        }
        let snapshot = self.snapshot();
        let (Some(a), Some(b)) = (snapshot.text_rank(a)?, snapshot.text_rank(b)?) else { return Ok(None) };
        Ok(Some(a.cmp(&b)))
    }

    /// The order of two terms in `ORDER BY`. To sort many terms, compute a [`SortKey`] of each once.
    ///
    /// # Errors
    /// Damaged dictionary.
    pub fn compare(&self, a: Id, b: Id) -> Result<Ordering> {
        if let Some(order) = order_of_ids(a, b) {
            return Ok(order);
        }
        Ok(SortKey::new(self, a)?.cmp(&SortKey::new(self, b)?))
    }
}

/// The order of two terms in `ORDER BY`, if their ids alone decide it; `None`: decode them.
#[inline]
#[must_use]
pub fn order_of_ids(a: Id, b: Id) -> Option<Ordering> {
    if a == b {
        return Some(Ordering::Equal);
    }
    if !a.is_bound() || !b.is_bound() {
        return Some(a.is_bound().cmp(&b.is_bound()));
    }
    // Ids of short strings preserve the order of their texts, and all have the same datatype.
    if a.tag() == b.tag() && a.tag() != Tag::Computed {
        compare_ids(Comparator::Less, a, b).map(|less| if less { Ordering::Less } else { Ordering::Greater })
    } else {
        None
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Exact(a), Self::Exact(b)) => a.cmp(b),
            (Self::Double(a), Self::Double(b)) => {
                a.partial_cmp(b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
            }
            (Self::Wide(a), Self::Wide(b)) => a.digits.cmp(&b.digits),
            (Self::Wide(a), Self::Exact(b)) => a.digits.cmp(&OrderedDigits::new(&(*b).into())),
            (Self::Exact(a), Self::Wide(b)) => OrderedDigits::new(&(*a).into()).cmp(&b.digits),
            (Self::Wide(a), Self::Double(b)) => wide_to_double(a, *b),
            (Self::Double(a), Self::Wide(b)) => wide_to_double(b, *a).reverse(),
            (Self::Exact(a), Self::Double(b)) => exact_to_double(*a, *b),
            (Self::Double(a), Self::Exact(b)) => exact_to_double(*b, *a).reverse(),
        }
    }
}

/// Compares as doubles, and as decimals if those are equal: the conversion to doubles maps many decimals to
/// one, so that alone it is no order.
fn exact_to_double(a: Decimal, b: f64) -> Ordering {
    match double_of_decimal(a).partial_cmp(&b) {
        None => Ordering::Less,
        #[expect(clippy::cast_possible_truncation, reason = "it is whole and below 2^53")]
        Some(Ordering::Equal) if b.fract() == 0.0 && b.abs() < WHOLE_MAX => a.cmp(&Decimal::from(b as i64)),
        Some(Ordering::Equal) => Wide::of_double(b).map_or(Ordering::Equal, |b| Wide::from(a).cmp(&b)),
        Some(order) => order,
    }
}

/// As [`exact_to_double`]. A number that is too large for a double is beyond all but infinity.
fn wide_to_double(a: &WideKey, b: f64) -> Ordering {
    match a.rounded.partial_cmp(&b) {
        None => Ordering::Less,
        Some(Ordering::Equal) => match Wide::of_double(b) {
            Some(b) => a.digits.cmp(&OrderedDigits::new(&b)),
            None if b > 0.0 => Ordering::Less,
            None => Ordering::Greater,
        },
        Some(order) => order,
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Number {}

//! Decoded terms: the values on which operators and functions compute.
//!
//! A literal of a known datatype with a valid lexical form becomes its value; every other typed literal
//! remains a term ([`Value::Typed`]). Decoding loses the lexical form, so an operand is decoded only where a
//! value is needed, not where the term is passed on.

use crate::computed::ComputedKind;
use crate::evaluator::Evaluator;
use crate::wide::{Exact, Kind, Wide};
use crate::work::of_text;
use oxsdatatypes::{
    Boolean, Date, DateTime, DayTimeDuration, Decimal, Double, Duration, Float, GDay, GMonth, GMonthDay,
    GYear, GYearMonth, Time, YearMonthDuration,
};
use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;
use vervet_model::{Id, Inline, LiteralKind, Result, TermParts};

pub(crate) const XSD: &str = "http://www.w3.org/2001/XMLSchema#";
pub(crate) const RDF_LANG_STRING: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString";
pub(crate) const RDF_DIR_LANG_STRING: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#dirLangString";

/// A decoded term.
#[derive(Clone, Debug)]
pub(crate) enum Value<'e> {
    Iri(Cow<'e, str>),
    Blank(Cow<'e, str>),
    String(Cow<'e, str>),
    /// Text and language tag (with a base direction after `--`).
    Language(Cow<'e, str>, Cow<'e, str>),
    /// Lexical form and datatype of an unknown type, or an invalid form of a known one.
    Typed(Cow<'e, str>, Cow<'e, str>),
    /// The text of a triple term.
    Triple(Cow<'e, str>),
    Boolean(bool),
    /// A value of `xsd:integer` or a derived type, within 128 bits.
    Integer(i128),
    Decimal(Decimal),
    /// A larger integer, or a decimal with more digits.
    Wide(Arc<Wide>),
    Float(Float),
    Double(Double),
    DateTime(DateTime),
    Date(Date),
    Time(Time),
    Duration(Span),
    Gregorian(Gregorian),
}

/// One of the three duration types.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Span {
    Any(Duration),
    YearMonth(YearMonthDuration),
    DayTime(DayTimeDuration),
}

impl Span {
    pub(crate) fn duration(self) -> Duration {
        match self {
            Self::Any(value) => value,
            Self::YearMonth(value) => value.into(),
            Self::DayTime(value) => value.into(),
        }
    }
}

/// One of the types of recurring or truncated dates.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Gregorian {
    Year(GYear),
    YearMonth(GYearMonth),
    Month(GMonth),
    MonthDay(GMonthDay),
    Day(GDay),
}

impl<'e> Value<'e> {
    /// The same value, borrowed.
    pub(crate) fn borrow(&'e self) -> Self {
        match self {
            Self::Iri(text) => Self::Iri(Cow::Borrowed(text)),
            Self::Blank(text) => Self::Blank(Cow::Borrowed(text)),
            Self::String(text) => Self::String(Cow::Borrowed(text)),
            Self::Language(text, tag) => Self::Language(Cow::Borrowed(text), Cow::Borrowed(tag)),
            Self::Typed(text, datatype) => Self::Typed(Cow::Borrowed(text), Cow::Borrowed(datatype)),
            Self::Triple(text) => Self::Triple(Cow::Borrowed(text)),
            // The other variants own no memory, or share it.
            other => other.clone(),
        }
    }

    /// The same value, owned.
    pub(crate) fn into_owned(self) -> Value<'static> {
        let own = |text: Cow<'e, str>| Cow::Owned(text.into_owned());
        match self {
            Self::Iri(text) => Value::Iri(own(text)),
            Self::Blank(text) => Value::Blank(own(text)),
            Self::String(text) => Value::String(own(text)),
            Self::Language(text, tag) => Value::Language(own(text), own(tag)),
            Self::Typed(text, datatype) => Value::Typed(own(text), own(datatype)),
            Self::Triple(text) => Value::Triple(own(text)),
            Self::Boolean(value) => Value::Boolean(value),
            Self::Integer(value) => Value::Integer(value),
            Self::Decimal(value) => Value::Decimal(value),
            Self::Wide(value) => Value::Wide(value),
            Self::Float(value) => Value::Float(value),
            Self::Double(value) => Value::Double(value),
            Self::DateTime(value) => Value::DateTime(value),
            Self::Date(value) => Value::Date(value),
            Self::Time(value) => Value::Time(value),
            Self::Duration(value) => Value::Duration(value),
            Self::Gregorian(value) => Value::Gregorian(value),
        }
    }

    /// The value of an integer or decimal; `None` if its integer part has too many digits.
    pub(crate) fn of_exact(number: Wide) -> Option<Value<'static>> {
        Some(match number.narrowed()? {
            Exact::Integer(value) => Value::Integer(value),
            Exact::Decimal(value) => Value::Decimal(value),
            Exact::Wide(value) => Value::Wide(Arc::new(value)),
        })
    }

    /// An integer or decimal as a wide number; `None` for other values, and for floats and doubles.
    pub(crate) fn to_wide(&self) -> Option<Wide> {
        match self {
            Self::Integer(value) => Some((*value).into()),
            Self::Decimal(value) => Some((*value).into()),
            Self::Wide(value) => Some(value.as_ref().clone()),
            _ => None,
        }
    }

    /// Units of work of reading, comparing or computing with this value; see [`crate::work`].
    #[inline]
    pub(crate) fn work(&self) -> usize {
        match self {
            Self::Iri(text)
            | Self::Blank(text)
            | Self::String(text)
            | Self::Language(text, _)
            | Self::Typed(text, _)
            | Self::Triple(text) => of_text(text.len()),
            Self::Wide(value) => value.work(),
            _ => 0,
        }
    }

    pub(crate) fn is_numeric(&self) -> bool {
        matches!(self, Self::Integer(_) | Self::Decimal(_) | Self::Wide(_) | Self::Float(_) | Self::Double(_))
    }

    /// The effective boolean value (SPARQL 1.1 §17.2.2); `None` is a type error.
    pub(crate) fn effective_boolean(&self) -> Option<bool> {
        Some(match self {
            Self::Boolean(value) => *value,
            Self::String(text) => !text.is_empty(),
            Self::Integer(value) => *value != 0,
            Self::Decimal(value) => Boolean::from(*value).into(),
            // Zero is narrow.
            Self::Wide(_) => true,
            Self::Float(value) => Boolean::from(*value).into(),
            Self::Double(value) => Boolean::from(*value).into(),
            // An invalid form of a type that has an effective boolean value.
            Self::Typed(_, datatype) if has_effective_boolean(datatype) => false,
            _ => return None,
        })
    }

    /// The IRI of the datatype of a literal.
    pub(crate) fn datatype(&self) -> Option<&str> {
        let name = match self {
            Self::Iri(_) | Self::Blank(_) | Self::Triple(_) => return None,
            Self::Language(_, tag) => {
                return Some(if tag.contains("--") { RDF_DIR_LANG_STRING } else { RDF_LANG_STRING });
            }
            Self::Typed(_, datatype) => return Some(datatype),
            Self::String(_) => "http://www.w3.org/2001/XMLSchema#string",
            Self::Boolean(_) => "http://www.w3.org/2001/XMLSchema#boolean",
            Self::Integer(_) => "http://www.w3.org/2001/XMLSchema#integer",
            Self::Decimal(_) => "http://www.w3.org/2001/XMLSchema#decimal",
            Self::Wide(value) => match value.kind() {
                Kind::Integer => "http://www.w3.org/2001/XMLSchema#integer",
                Kind::Decimal => "http://www.w3.org/2001/XMLSchema#decimal",
            },
            Self::Float(_) => "http://www.w3.org/2001/XMLSchema#float",
            Self::Double(_) => "http://www.w3.org/2001/XMLSchema#double",
            Self::DateTime(_) => "http://www.w3.org/2001/XMLSchema#dateTime",
            Self::Date(_) => "http://www.w3.org/2001/XMLSchema#date",
            Self::Time(_) => "http://www.w3.org/2001/XMLSchema#time",
            Self::Duration(Span::Any(_)) => "http://www.w3.org/2001/XMLSchema#duration",
            Self::Duration(Span::YearMonth(_)) => "http://www.w3.org/2001/XMLSchema#yearMonthDuration",
            Self::Duration(Span::DayTime(_)) => "http://www.w3.org/2001/XMLSchema#dayTimeDuration",
            Self::Gregorian(Gregorian::Year(_)) => "http://www.w3.org/2001/XMLSchema#gYear",
            Self::Gregorian(Gregorian::YearMonth(_)) => "http://www.w3.org/2001/XMLSchema#gYearMonth",
            Self::Gregorian(Gregorian::Month(_)) => "http://www.w3.org/2001/XMLSchema#gMonth",
            Self::Gregorian(Gregorian::MonthDay(_)) => "http://www.w3.org/2001/XMLSchema#gMonthDay",
            Self::Gregorian(Gregorian::Day(_)) => "http://www.w3.org/2001/XMLSchema#gDay",
        };
        Some(name)
    }

    /// Appends the lexical form, as by `STR()`.
    pub(crate) fn write_lexical(&self, out: &mut String) {
        // Writing to a `String` cannot fail.
        let _ = match self {
            Self::Iri(text)
            | Self::Blank(text)
            | Self::String(text)
            | Self::Language(text, _)
            | Self::Typed(text, _)
            | Self::Triple(text) => out.write_str(text),
            Self::Boolean(value) => write!(out, "{value}"),
            Self::Integer(value) => write!(out, "{value}"),
            Self::Decimal(value) => write!(out, "{value}"),
            Self::Wide(value) => {
                value.write_lexical(out);
                Ok(())
            }
            Self::Float(value) => write!(out, "{value}"),
            Self::Double(value) => write!(out, "{value}"),
            Self::DateTime(value) => write!(out, "{value}"),
            Self::Date(value) => write!(out, "{value}"),
            Self::Time(value) => write!(out, "{value}"),
            Self::Duration(Span::Any(value)) => write!(out, "{value}"),
            Self::Duration(Span::YearMonth(value)) => write!(out, "{value}"),
            Self::Duration(Span::DayTime(value)) => write!(out, "{value}"),
            Self::Gregorian(Gregorian::Year(value)) => write!(out, "{value}"),
            Self::Gregorian(Gregorian::YearMonth(value)) => write!(out, "{value}"),
            Self::Gregorian(Gregorian::Month(value)) => write!(out, "{value}"),
            Self::Gregorian(Gregorian::MonthDay(value)) => write!(out, "{value}"),
            Self::Gregorian(Gregorian::Day(value)) => write!(out, "{value}"),
        };
    }

    /// The id of the term with the canonical form of this value. `scratch` is a reusable buffer.
    pub(crate) fn intern(&self, evaluator: &Evaluator<'_>, scratch: &mut String) -> Result<Id> {
        let inline = match self {
            Self::Boolean(value) => Inline::Boolean(*value).to_id(),
            Self::Integer(value) => {
                i64::try_from(*value).ok().and_then(|value| Inline::Integer(value).to_id())
            }
            _ => None,
        };
        if let Some(id) = inline {
            return Ok(id);
        }
        match self {
            Self::Iri(text) => evaluator.intern_parts(ComputedKind::Iri, text, ""),
            Self::Blank(text) => evaluator.intern_parts(ComputedKind::Blank, text, ""),
            Self::String(text) => evaluator.intern_parts(ComputedKind::String, text, ""),
            Self::Language(text, tag) => evaluator.intern_parts(ComputedKind::Language, text, tag),
            Self::Typed(text, datatype) => evaluator.intern_parts(ComputedKind::Typed, text, datatype),
            Self::Triple(text) => evaluator.intern_parts(ComputedKind::Triple, text, ""),
            _ => {
                scratch.clear();
                self.write_lexical(scratch);
                evaluator.intern_parts(ComputedKind::Typed, scratch, self.datatype().unwrap_or_default())
            }
        }
    }

    /// The value of a term given by its parts; texts are built in `buffer`.
    pub(crate) fn from_parts(parts: TermParts<'_>, mut buffer: String) -> Value<'static> {
        match parts {
            TermParts::Literal { head, tail, kind: LiteralKind::Typed(datatype) } => {
                let lexical = match (head, tail) {
                    (whole, "") | ("", whole) => whole,
                    (head, tail) => {
                        buffer.clear();
                        buffer.push_str(head);
                        buffer.push_str(tail);
                        &buffer
                    }
                };
                parse(lexical, datatype).unwrap_or_else(|| {
                    Value::Typed(Cow::Owned(lexical.to_owned()), Cow::Owned(datatype.to_owned()))
                })
            }
            _ => {
                buffer.clear();
                parts.write_str(&mut buffer);
                let text = Cow::Owned(buffer);
                match parts {
                    TermParts::Iri { .. } | TermParts::Edge(_) => Value::Iri(text),
                    TermParts::Blank(_) => Value::Blank(text),
                    TermParts::Literal { kind: LiteralKind::Language(tag), .. } => {
                        Value::Language(text, Cow::Owned(tag.to_owned()))
                    }
                    TermParts::Literal { kind: LiteralKind::Triple, .. } => Value::Triple(text),
                    TermParts::Literal { .. } => Value::String(text),
                }
            }
        }
    }

    /// The inline value of an id; `None` if the id has none. A short string is built in `buffer`.
    pub(crate) fn from_inline(id: Id, buffer: &mut String) -> Option<Value<'static>> {
        let inline = Inline::from_id(id)?;
        Some(match inline {
            Inline::ShortString { .. } => {
                let mut text = std::mem::take(buffer);
                text.clear();
                text.push_str(inline.as_str()?);
                Value::String(Cow::Owned(text))
            }
            Inline::Integer(value) | Inline::Long(value) => Value::Integer(value.into()),
            Inline::Int(value) => Value::Integer(value.into()),
            Inline::Decimal { mantissa, scale } => {
                Value::Decimal(Decimal::new(i128::from(mantissa), u32::from(scale)).ok()?)
            }
            Inline::Double(value) => Value::Double(value.into()),
            Inline::Boolean(value) => Value::Boolean(value),
            Inline::DateTime(_) | Inline::Date(_) => {
                let mut lexical = String::with_capacity(32);
                inline.write_lexical(&mut lexical);
                parse(&lexical, inline.datatype())?
            }
        })
    }
}

fn has_effective_boolean(datatype: &str) -> bool {
    datatype.strip_prefix(XSD).is_some_and(|name| {
        is_integer_type(name) || matches!(name, "boolean" | "decimal" | "float" | "double")
    })
}

/// Whether the datatype is `xsd:integer` or derived from it.
fn is_integer_type(name: &str) -> bool {
    matches!(
        name,
        "integer"
            | "byte"
            | "short"
            | "int"
            | "long"
            | "unsignedByte"
            | "unsignedShort"
            | "unsignedInt"
            | "unsignedLong"
            | "positiveInteger"
            | "negativeInteger"
            | "nonPositiveInteger"
            | "nonNegativeInteger"
    )
}

/// Parses a literal of `xsd:integer` or a type derived from it; `None` if the value is not in the range of
/// the type (XML Schema 1.1 part 2, §3.4.13 to §3.4.25).
fn parse_integer(lexical: &str, name: &str) -> Option<Value<'static>> {
    let value = integer(lexical)?;
    let (least, greatest): (Option<i128>, Option<i128>) = match name {
        "byte" => (Some(i8::MIN.into()), Some(i8::MAX.into())),
        "short" => (Some(i16::MIN.into()), Some(i16::MAX.into())),
        "int" => (Some(i32::MIN.into()), Some(i32::MAX.into())),
        "long" => (Some(i64::MIN.into()), Some(i64::MAX.into())),
        "unsignedByte" => (Some(0), Some(u8::MAX.into())),
        "unsignedShort" => (Some(0), Some(u16::MAX.into())),
        "unsignedInt" => (Some(0), Some(u32::MAX.into())),
        "unsignedLong" => (Some(0), Some(u64::MAX.into())),
        "positiveInteger" => (Some(1), None),
        "nonNegativeInteger" => (Some(0), None),
        "negativeInteger" => (None, Some(-1)),
        "nonPositiveInteger" => (None, Some(0)),
        _ => (None, None),
    };
    let is_in_range = match &value {
        Value::Integer(value) => {
            least.is_none_or(|least| least <= *value) && greatest.is_none_or(|greatest| *value <= greatest)
        }
        // Beyond 128 bits, so beyond every bound.
        Value::Wide(value) => if value.is_negative() { least } else { greatest }.is_none(),
        _ => true,
    };
    is_in_range.then_some(value)
}

/// The value of an `xsd:integer` of any length.
pub(crate) fn integer(lexical: &str) -> Option<Value<'static>> {
    match lexical.parse() {
        Ok(value) => Some(Value::Integer(value)),
        Err(_) => Value::of_exact(Wide::parse(lexical, Kind::Integer)?),
    }
}

/// The value of an `xsd:decimal` of any length.
pub(crate) fn decimal(lexical: &str) -> Option<Value<'static>> {
    match lexical.parse() {
        Ok(value) => Some(Value::Decimal(value)),
        Err(_) => Value::of_exact(Wide::parse(lexical, Kind::Decimal)?),
    }
}

/// Parses a literal of a known datatype; `None` if its form is invalid.
fn parse(lexical: &str, datatype: &str) -> Option<Value<'static>> {
    Some(match datatype.strip_prefix(XSD)? {
        "boolean" => Value::Boolean(lexical.parse::<Boolean>().ok()?.into()),
        "decimal" => decimal(lexical)?,
        "float" => Value::Float(lexical.parse().ok()?),
        "double" => Value::Double(lexical.parse().ok()?),
        "dateTime" | "dateTimeStamp" => Value::DateTime(lexical.parse().ok()?),
        "date" => Value::Date(lexical.parse().ok()?),
        "time" => Value::Time(lexical.parse().ok()?),
        "duration" => Value::Duration(Span::Any(lexical.parse().ok()?)),
        "yearMonthDuration" => Value::Duration(Span::YearMonth(lexical.parse().ok()?)),
        "dayTimeDuration" => Value::Duration(Span::DayTime(lexical.parse().ok()?)),
        "gYear" => Value::Gregorian(Gregorian::Year(lexical.parse().ok()?)),
        "gYearMonth" => Value::Gregorian(Gregorian::YearMonth(lexical.parse().ok()?)),
        "gMonth" => Value::Gregorian(Gregorian::Month(lexical.parse().ok()?)),
        "gMonthDay" => Value::Gregorian(Gregorian::MonthDay(lexical.parse().ok()?)),
        "gDay" => Value::Gregorian(Gregorian::Day(lexical.parse().ok()?)),
        name if is_integer_type(name) => parse_integer(lexical, name)?,
        _ => return None,
    })
}

//! Inline values: short strings, numbers, booleans and dates encoded in ids.
//!
//! # Shape
//! The payload keeps the order of the values within one tag: numbers are biased, strings are left aligned,
//! the sign of doubles is folded in. A range of values is therefore a range of ids.
//! # Invariants
//! A literal is encoded in an id exactly if decoding restores its exact lexical form; [`inline_id`] checks
//! this by decoding. Hence `"01"^^xsd:integer` is a dictionary entry.
//! # Cost
//! About 10 to 40 ns and no allocation in either direction.

use crate::civil::{civil_from_days, days_from_civil};
use crate::{Id, Tag};
use std::fmt::Write;

const BIAS: i64 = 1 << 59;
const DECIMAL_SCALE_BITS: u32 = 4;
const DECIMAL_BIAS: i64 = 1 << 55;
const STRING_BYTES: usize = 7;
const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

/// A value encoded in an id.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Inline {
    /// `xsd:string`: the first `length` of these bytes, valid UTF-8.
    ShortString {
        /// The text, padded with zeros.
        bytes: [u8; STRING_BYTES],
        /// Length of the text in bytes.
        length: u8,
    },
    /// `xsd:integer`.
    Integer(i64),
    /// `xsd:int`.
    Int(i32),
    /// `xsd:long`.
    Long(i64),
    /// `xsd:decimal`: `mantissa / 10^scale`, with `scale` digits after the point.
    Decimal {
        /// The digits without the point.
        mantissa: i64,
        /// Number of digits after the point; 0 means that there is no point.
        scale: u8,
    },
    /// `xsd:double`.
    Double(f64),
    /// `xsd:boolean`.
    Boolean(bool),
    /// `xsd:dateTime`: milliseconds since 1970-01-01T00:00:00Z.
    DateTime(i64),
    /// `xsd:date`: days since 1970-01-01, no time zone.
    Date(i64),
}

impl Inline {
    /// The value encoded in `id`; `None` if there is none.
    #[must_use]
    pub fn from_id(id: Id) -> Option<Self> {
        let payload = id.payload();
        let biased = payload.cast_signed() - BIAS;
        Some(match id.tag() {
            Tag::ShortString => {
                let all = payload.to_be_bytes();
                // The 60 bits are 7 bytes of text and then 4 bits of length.
                let text = (payload >> 4).to_be_bytes();
                let mut bytes = [0; STRING_BYTES];
                bytes.copy_from_slice(&text[1..]);
                let length = (all[7] & 15).min(7);
                std::str::from_utf8(&bytes[..usize::from(length)]).ok()?;
                Self::ShortString { bytes, length }
            }
            Tag::Integer => Self::Integer(biased),
            Tag::Int => Self::Int(i32::try_from(biased).ok()?),
            Tag::Long => Self::Long(biased),
            Tag::Decimal => Self::Decimal {
                mantissa: (payload >> DECIMAL_SCALE_BITS).cast_signed() - DECIMAL_BIAS,
                scale: (payload & 15).to_le_bytes()[0],
            },
            Tag::Double => {
                let ordered = payload << 4;
                let bits = if ordered >> 63 == 1 { ordered & !(1 << 63) } else { !ordered & !15 };
                Self::Double(f64::from_bits(bits))
            }
            Tag::Boolean => Self::Boolean(payload == 1),
            Tag::DateTime => Self::DateTime(biased),
            Tag::Date => Self::Date(biased),
            _ => return None,
        })
    }

    /// The id that encodes this value, if it fits.
    #[must_use]
    pub fn to_id(self) -> Option<Id> {
        let biased = |tag, value: i64| {
            (-BIAS..BIAS).contains(&value).then(|| Id::new(tag, (value + BIAS).cast_unsigned()))
        };
        match self {
            Self::ShortString { bytes, length } => {
                let mut text = [0; 8];
                text[1..].copy_from_slice(&bytes);
                Some(Id::new(Tag::ShortString, u64::from_be_bytes(text) << 4 | u64::from(length)))
            }
            Self::Integer(value) => biased(Tag::Integer, value),
            Self::Int(value) => biased(Tag::Int, i64::from(value)),
            Self::Long(value) => biased(Tag::Long, value),
            Self::Decimal { mantissa, scale } => {
                let fits = (-DECIMAL_BIAS..DECIMAL_BIAS).contains(&mantissa) && scale < 16;
                fits.then(|| {
                    let high = (mantissa + DECIMAL_BIAS).cast_unsigned() << DECIMAL_SCALE_BITS;
                    Id::new(Tag::Decimal, high | u64::from(scale))
                })
            }
            Self::Double(value) => {
                let bits = value.to_bits();
                if bits & 15 != 0 {
                    return None;
                }
                let ordered = if bits >> 63 == 0 { bits | 1 << 63 } else { !bits & !15 };
                Some(Id::new(Tag::Double, ordered >> 4))
            }
            Self::Boolean(value) => Some(Id::new(Tag::Boolean, u64::from(value))),
            Self::DateTime(value) => biased(Tag::DateTime, value),
            Self::Date(value) => biased(Tag::Date, value),
        }
    }

    /// The IRI of the datatype.
    #[must_use]
    pub fn datatype(&self) -> &'static str {
        match self {
            Self::ShortString { .. } => "http://www.w3.org/2001/XMLSchema#string",
            Self::Integer(_) => "http://www.w3.org/2001/XMLSchema#integer",
            Self::Int(_) => "http://www.w3.org/2001/XMLSchema#int",
            Self::Long(_) => "http://www.w3.org/2001/XMLSchema#long",
            Self::Decimal { .. } => "http://www.w3.org/2001/XMLSchema#decimal",
            Self::Double(_) => "http://www.w3.org/2001/XMLSchema#double",
            Self::Boolean(_) => "http://www.w3.org/2001/XMLSchema#boolean",
            Self::DateTime(_) => "http://www.w3.org/2001/XMLSchema#dateTime",
            Self::Date(_) => "http://www.w3.org/2001/XMLSchema#date",
        }
    }

    /// The text of a short string.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::ShortString { bytes, length } => std::str::from_utf8(&bytes[..usize::from(*length)]).ok(),
            _ => None,
        }
    }

    /// Appends the lexical form to `out`.
    pub fn write_lexical(&self, out: &mut String) {
        // Writing to a `String` cannot fail.
        let _ = match *self {
            Self::ShortString { .. } => {
                out.push_str(self.as_str().unwrap_or_default());
                Ok(())
            }
            Self::Integer(value) | Self::Long(value) => write!(out, "{value}"),
            Self::Int(value) => write!(out, "{value}"),
            Self::Decimal { mantissa, scale: 0 } => write!(out, "{mantissa}"),
            Self::Decimal { mantissa, scale } => {
                let unit = 10_u64.pow(u32::from(scale));
                let digits = mantissa.unsigned_abs();
                let sign = if mantissa < 0 { "-" } else { "" };
                write!(out, "{sign}{}.{:0width$}", digits / unit, digits % unit, width = usize::from(scale))
            }
            Self::Double(value) => write_double(value, out),
            Self::Boolean(value) => write!(out, "{value}"),
            Self::DateTime(ms) => {
                let (days, ms) = (ms.div_euclid(86_400_000), ms.rem_euclid(86_400_000));
                let (year, month, day) = civil_from_days(days);
                let (seconds, ms) = (ms / 1000, ms % 1000);
                let (h, m, s) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
                let start = write!(out, "{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}");
                start.and_then(|()| match ms {
                    0 => write!(out, "Z"),
                    ms if ms % 100 == 0 => write!(out, ".{}Z", ms / 100),
                    ms if ms % 10 == 0 => write!(out, ".{:02}Z", ms / 10),
                    ms => write!(out, ".{ms:03}Z"),
                })
            }
            Self::Date(days) => {
                let (year, month, day) = civil_from_days(days);
                write!(out, "{year:04}-{month:02}-{day:02}")
            }
        };
    }
}

/// The id of the literal with this lexical form and datatype IRI, if it fits inside an id.
///
/// Language-tagged strings never fit and must not be passed.
#[must_use]
pub fn inline_id(lexical: &str, datatype: &str) -> Option<Id> {
    let value = match datatype.strip_prefix(XSD)? {
        "string" => {
            let mut bytes = [0; STRING_BYTES];
            bytes.get_mut(..lexical.len())?.copy_from_slice(lexical.as_bytes());
            // No check needed: every string of this length is restored exactly.
            return Inline::ShortString { bytes, length: lexical.len().to_le_bytes()[0] }.to_id();
        }
        "integer" => Inline::Integer(lexical.parse().ok()?),
        "int" => Inline::Int(lexical.parse().ok()?),
        "long" => Inline::Long(lexical.parse().ok()?),
        "decimal" => parse_decimal(lexical)?,
        "double" => Inline::Double(match lexical {
            "INF" => f64::INFINITY,
            "-INF" => f64::NEG_INFINITY,
            "NaN" => f64::NAN,
            _ if lexical.bytes().all(|b| b.is_ascii_digit() || b".E-".contains(&b)) => {
                lexical.parse().ok()?
            }
            _ => return None,
        }),
        "boolean" => Inline::Boolean(lexical.parse().ok()?),
        "dateTime" => parse_date_time(lexical)?,
        "date" => Inline::Date(parse_date(lexical.as_bytes())?),
        _ => return None,
    };
    let id = value.to_id()?;
    let mut back = String::with_capacity(lexical.len());
    Inline::from_id(id)?.write_lexical(&mut back);
    (back == lexical).then_some(id)
}

/// The sort key of a value: numbers and times inside ids by value, the three kinds of integers as one
/// (`xsd:integer`), short strings by code points; different kinds by kind. [`Id::UNBOUND`] for everything
/// else: ids of decimals and of values outside ids have no such order.
#[must_use]
pub const fn order_key(id: Id) -> Id {
    match id.tag() {
        Tag::Integer | Tag::Int | Tag::Long => Id::new(Tag::Integer, id.payload()),
        Tag::ShortString | Tag::Double | Tag::Boolean | Tag::DateTime | Tag::Date => id,
        _ => Id::UNBOUND,
    }
}

/// The first id, in the order of code points, that a short string not below `text` (UTF-8, or a prefix of
/// UTF-8) can have. The results for two texts bound the ids of the texts between.
#[must_use]
pub fn short_string_bound(text: &[u8]) -> Id {
    let mut bytes = [0; 8];
    let front = &text[..text.len().min(STRING_BYTES)];
    bytes[1..=front.len()].copy_from_slice(front);
    // A string equal to the front of a longer text is below that text.
    let length = text.len().min(STRING_BYTES + 1) as u64;
    Id::new(Tag::ShortString, u64::from_be_bytes(bytes) << 4 | length)
}

/// The first and the last id of doubles between `low` and `high`; `None` if no double is between them.
#[must_use]
pub fn double_bounds(low: f64, high: f64) -> Option<(Id, Id)> {
    // The two zeros are equal, but have two ids.
    let low = if low == 0.0 { -0.0 } else { low };
    let high = if high == 0.0 { 0.0 } else { high };
    let ordered = |value: f64| {
        let bits = value.to_bits();
        if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
    };
    let id = |value| Id::new(Tag::Double, ordered(value) >> 4);
    (low <= high).then(|| (id(low), id(high)))
}

/// The first and the last id with this tag (one whose payload is a number or a time) for values between `low`
/// and `high`; `None` if no value between them fits an id.
#[must_use]
pub fn integer_bounds(tag: Tag, low: i64, high: i64) -> Option<(Id, Id)> {
    let (low, high) = (low.max(-BIAS), high.min(BIAS - 1));
    let id = |value: i64| Id::new(tag, (value + BIAS).cast_unsigned());
    (low <= high).then(|| (id(low), id(high)))
}

fn parse_decimal(lexical: &str) -> Option<Inline> {
    if lexical.len() > 18 {
        return None;
    }
    let scale = lexical.find('.').map_or(0, |point| lexical.len() - point - 1);
    let mut mantissa: i64 = 0;
    for byte in lexical.bytes() {
        match byte {
            b'0'..=b'9' => mantissa = mantissa.checked_mul(10)?.checked_add(i64::from(byte - b'0'))?,
            b'.' | b'-' => {}
            _ => return None,
        }
    }
    if lexical.starts_with('-') {
        mantissa = -mantissa;
    }
    (scale < 16).then_some(Inline::Decimal { mantissa, scale: scale.to_le_bytes()[0] })
}

fn parse_date_time(lexical: &str) -> Option<Inline> {
    let text = lexical.as_bytes();
    let (date, time) = (text.get(..10)?, text.get(10..)?);
    let days = parse_date(date)?;
    let two = |at: usize| match (time.get(at)?, time.get(at + 1)?) {
        (high @ b'0'..=b'9', low @ b'0'..=b'9') => Some(i64::from(high - b'0') * 10 + i64::from(low - b'0')),
        _ => None,
    };
    let fraction = time.get(9..time.len().checked_sub(1)?)?;
    let ms = match fraction {
        [] => 0,
        [b'.', digits @ ..] if digits.len() <= 3 && digits.iter().all(u8::is_ascii_digit) => {
            let value = digits.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
            value * [1000, 100, 10, 1][digits.len()]
        }
        _ => return None,
    };
    let seconds = (two(1)? * 60 + two(4)?) * 60 + two(7)?;
    (two(1)? < 24 && two(4)? < 60 && two(7)? < 60)
        .then_some(Inline::DateTime((days * 86_400 + seconds) * 1000 + ms))
}

fn parse_date(text: &[u8]) -> Option<i64> {
    let number = |range: std::ops::Range<usize>| {
        text.get(range)?
            .iter()
            .try_fold(0_i64, |value, byte| byte.is_ascii_digit().then(|| value * 10 + i64::from(byte - b'0')))
    };
    if text.len() != 10 {
        return None;
    }
    // An invalid day is converted to another one, so the caller's comparison refuses it.
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    (year > 0 && (1..=12).contains(&month) && (1..=31).contains(&day))
        .then(|| days_from_civil(year, month, day))
}

/// The canonical form of XSD: one digit, a point, at least one digit, `E`, the exponent.
fn write_double(value: f64, out: &mut String) -> std::fmt::Result {
    if value.is_nan() {
        return out.write_str("NaN");
    }
    if value.is_infinite() {
        return out.write_str(if value > 0.0 { "INF" } else { "-INF" });
    }
    let start = out.len();
    write!(out, "{value:E}")?;
    if !out[start..].contains('.')
        && let Some(exponent) = out[start..].find('E')
    {
        out.insert_str(start + exponent, ".0");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lexical: &str, datatype: &str, inside: bool) {
        let id = inline_id(lexical, &format!("{XSD}{datatype}"));
        assert_eq!(id.is_some(), inside, "{lexical} {datatype}");
        if let Some(id) = id {
            let value = Inline::from_id(id).expect("an inline id holds a value");
            let mut back = String::new();
            value.write_lexical(&mut back);
            assert_eq!((back.as_str(), value.datatype()), (lexical, format!("{XSD}{datatype}").as_str()));
        }
    }

    #[test]
    fn canonical_forms_round_trip_in_ids() {
        for (lexical, datatype) in [
            ("", "string"),
            ("AUS", "string"),
            ("größe", "string"),
            ("1234567", "string"),
            ("0", "integer"),
            ("-42", "integer"),
            ("288230376151711744", "integer"),
            ("7", "int"),
            ("-9", "long"),
            ("1.5", "decimal"),
            ("-0.50", "decimal"),
            ("12", "decimal"),
            ("1.0E0", "double"),
            ("-2.5E-1", "double"),
            ("INF", "double"),
            ("NaN", "double"),
            ("0.0E0", "double"),
            ("-0.0E0", "double"),
            ("true", "boolean"),
            ("2010-02-28T23:59:59Z", "dateTime"),
            ("2010-02-28T23:59:59.5Z", "dateTime"),
            ("2010-02-28T23:59:59.123Z", "dateTime"),
            ("1969-12-31", "date"),
            ("2000-02-29", "date"),
        ] {
            check(lexical, datatype, true);
        }
    }

    #[test]
    fn noncanonical_forms_are_dictionary_entries() {
        for (lexical, datatype) in [
            ("12345678", "string"),
            ("01", "integer"),
            ("+1", "integer"),
            ("x", "integer"),
            ("-0", "integer"),
            ("99999999999999999999", "integer"),
            ("2147483648", "int"),
            ("-0.0", "decimal"),
            (".5", "decimal"),
            ("1.", "decimal"),
            ("1-2", "decimal"),
            ("1", "double"),
            ("1.0E+0", "double"),
            ("0.1E0", "double"),
            ("1.1E0", "double"),
            ("1", "boolean"),
            ("2010-02-30T00:00:00Z", "dateTime"),
            ("2010-02-28T24:00:00Z", "dateTime"),
            ("2010-02-28T23:59:59", "dateTime"),
            ("2010-02-28T23:59:59.10Z", "dateTime"),
            ("2001-02-29", "date"),
            ("2001-1-29", "date"),
            ("x", "gYear"),
        ] {
            check(lexical, datatype, false);
        }
        assert_eq!(inline_id("x", "http://example.org/t"), None);
    }

    #[test]
    fn ids_have_the_order_of_values() {
        let sorted = [
            vec![
                ("-10", "integer"),
                ("-9", "integer"),
                ("0", "integer"),
                ("5", "integer"),
                ("50", "integer"),
            ],
            vec![
                ("-INF", "double"),
                ("-2.0E0", "double"),
                ("-1.0E0", "double"),
                ("0.0E0", "double"),
                ("1.5E0", "double"),
            ],
            vec![("", "string"), ("a", "string"), ("aa", "string"), ("b", "string"), ("ba", "string")],
            vec![("1969-12-31", "date"), ("1970-01-01", "date"), ("2024-02-29", "date")],
        ];
        for values in sorted {
            let ids: Vec<_> = values.iter().map(|(l, d)| inline_id(l, &format!("{XSD}{d}"))).collect();
            assert!(ids.is_sorted() && ids.iter().all(Option::is_some), "{values:?}");
        }
    }

    #[test]
    fn bounds_enclose_the_ids_of_values_in_range() {
        let texts = [
            "",
            "\0",
            "\0\0",
            "a",
            "a\0",
            "a\0b",
            "ab",
            "abcdef",
            "abcdefg",
            "abcdefgh",
            "abcdefgz",
            "é",
            "\u{10FFFF}",
        ];
        for text in texts {
            let bound = short_string_bound(text.as_bytes());
            for other in texts.iter().filter(|other| other.len() <= STRING_BYTES) {
                let id = inline_id(other, &format!("{XSD}string")).expect("short");
                assert_eq!(id < bound, *other < text, "{other:?} {text:?}");
            }
        }
        let doubles = [f64::NEG_INFINITY, -1e300, -1.1, -1.0, -0.0, 0.0, 1.0, 1.1, 2.5, f64::INFINITY];
        for (low, high) in doubles.iter().flat_map(|low| doubles.map(|high| (*low, high))) {
            let bounds = double_bounds(low, high);
            for value in doubles {
                let Some(id) = Inline::Double(value).to_id() else { continue };
                let inside = bounds.is_some_and(|(first, last)| (first..=last).contains(&id));
                assert_eq!(inside, (low..=high).contains(&value), "{value} in {low}..={high}");
            }
        }
        assert_eq!(double_bounds(f64::NAN, 1.0), None);
        let integers = [i64::MIN, -BIAS, -3, 0, 7, BIAS - 1, i64::MAX];
        for (low, high) in integers.iter().flat_map(|low| integers.map(|high| (*low, high))) {
            let bounds = integer_bounds(Tag::Long, low, high);
            for value in integers {
                let Some(id) = Inline::Long(value).to_id() else { continue };
                let inside = bounds.is_some_and(|(first, last)| (first..=last).contains(&id));
                assert_eq!(inside, (low..=high).contains(&value), "{value} in {low}..={high}");
            }
        }
    }
}

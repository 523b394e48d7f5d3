//! Lexical forms of the datatypes of XML Schema that data frames have types for.

const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

/// `xsd:integer` and the datatypes derived from it.
#[must_use]
pub fn is_integer_type(datatype: &str) -> bool {
    let Some(name) = datatype.strip_prefix(XSD) else { return false };
    matches!(
        name,
        "integer"
            | "int"
            | "long"
            | "short"
            | "byte"
            | "nonNegativeInteger"
            | "positiveInteger"
            | "nonPositiveInteger"
            | "negativeInteger"
            | "unsignedLong"
            | "unsignedInt"
            | "unsignedShort"
            | "unsignedByte"
    )
}

/// The number of a lexical form of `xsd:double` or `xsd:float`.
#[must_use]
pub fn double(text: &str) -> Option<f64> {
    match text {
        "INF" | "+INF" => Some(f64::INFINITY),
        "-INF" => Some(f64::NEG_INFINITY),
        "NaN" => Some(f64::NAN),
        // The library also reads `inf` and `nan`.
        _ if text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte)) => text.parse().ok(),
        _ => None,
    }
}

/// Whether a text is a lexical form of `xsd:decimal`; with `point` false, of `xsd:integer`.
#[must_use]
pub fn is_number(text: &str, point: bool) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, fraction) = match digits.split_once('.') {
        Some((whole, fraction)) if point => (whole, fraction),
        Some(_) => return false,
        None => (digits, ""),
    };
    (!whole.is_empty() || !fraction.is_empty())
        && whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit())
}

/// The truth value of a lexical form of `xsd:boolean`.
#[must_use]
pub fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

/// Whether a text has the shape `YYYY-MM-DD`.
#[must_use]
pub fn is_date(text: &str) -> bool {
    has_shape(text, "0000-00-00")
}

/// Splits `HH:MM:SS` with an optional fraction of at most six digits from an optional time zone.
fn time_and_zone(text: &str) -> Option<(&str, &str)> {
    let start = text.find(['Z', '+', '-']).unwrap_or(text.len());
    let (time, zone) = text.split_at(start);
    let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let is_fraction = (1..=6).contains(&fraction.len()) && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let is_zone = zone.is_empty() || zone == "Z" || has_shape(zone.get(1..)?, "00:00");
    (has_shape(clock, "00:00:00") && is_fraction && is_zone).then_some((time, zone))
}

/// Whether a text has the shape of `xsd:time` with at most six digits of a fraction.
#[must_use]
pub fn is_time(text: &str) -> bool {
    time_and_zone(text).is_some()
}

/// The time zone of a text with the shape of `xsd:dateTime` with at most six digits of a fraction.
#[must_use]
pub fn zone_of_date_time(text: &str) -> Option<&str> {
    let (date, time) = text.split_once('T')?;
    let (_, zone) = time_and_zone(time)?;
    is_date(date).then_some(zone)
}

fn has_shape(text: &str, shape: &str) -> bool {
    text.len() == shape.len()
        && text.bytes().zip(shape.bytes()).all(|(byte, like)| match like {
            b'0' => byte.is_ascii_digit(),
            like => byte == like,
        })
}

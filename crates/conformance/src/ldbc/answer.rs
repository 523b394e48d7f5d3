//! Rows of answers from any source: ours in two languages, and the expected ones.
//!
//! A boolean becomes 0 or 1, a number without fraction an integer, an unordered list a set, so that the three
//! sources may represent them differently.

use oxrdf::{Literal, Term};
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::fmt;
use time::{Date, Month};
use vervet::gremlin::Value;

/// Separates the values of a set that is written as a string, and the parts of such a value.
const BETWEEN_VALUES: char = ';';
const BETWEEN_PARTS: &str = "|";
/// The maximum integer that a double represents exactly.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// The content of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ColumnKind {
    /// A number or a string.
    Plain,
    /// Milliseconds since 1970; one of the files expects a date.
    Day,
    /// Whole minutes; one of the files expects a fraction, because its engine divides integers that way.
    Minutes,
    /// A set of strings.
    Set,
    /// A list with an order.
    List,
}

/// A row.
pub type Row = Vec<Cell>;

/// A value of a row.
#[derive(Clone, PartialEq, PartialOrd, Debug)]
pub enum Cell {
    /// No value.
    Missing,
    /// A number without fraction, or a boolean.
    Integer(i64),
    /// Any other number.
    Double(f64),
    /// A string.
    Text(String),
    /// A list with an order.
    List(Vec<Cell>),
    /// A set of strings.
    Set(BTreeSet<String>),
}

impl Cell {
    fn double(number: f64) -> Self {
        if number.fract() == 0.0 && number.abs() < EXACT_MAX {
            #[expect(clippy::cast_possible_truncation, reason = "it has no fraction and is small")]
            return Self::Integer(number as i64);
        }
        Self::Double(number)
    }

    /// The values of a Gremlin map; `None`: not a map.
    pub(super) fn of_columns(value: &Value) -> Option<Vec<Self>> {
        let Value::Map(map) = value else { return None };
        Some(map.values().map(Self::of_value).collect())
    }

    /// Its numeric value; `None`: not a number.
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Self::Integer(number) => Some(*number as f64),
            Self::Double(number) => Some(*number),
            _ => None,
        }
    }

    fn of_value(value: &Value) -> Self {
        match value {
            Value::Null => Self::Missing,
            Value::Boolean(value) => Self::Integer(i64::from(*value)),
            Value::Double(number) => Self::double(*number),
            Value::String(text) => Self::Text(text.to_string()),
            Value::List(values) => Self::List(values.iter().map(Self::of_value).collect()),
            // One of several attributes of a person, such as a job.
            Value::Map(map) => {
                let parts: Vec<String> =
                    map.values().map(|value| Self::of_value(value).to_string()).collect();
                Self::Text(parts.join(BETWEEN_PARTS))
            }
            other => match other.as_integer() {
                Some(number) => Self::Integer(number),
                None => Self::Text(format!("{other:?}")),
            },
        }
    }

    pub(super) fn of_term(term: Option<&Term>) -> Self {
        let Some(term) = term else { return Self::Missing };
        let Term::Literal(literal) = term else { return Self::Text(term.to_string()) };
        Self::of_literal(literal)
    }

    fn of_literal(literal: &Literal) -> Self {
        let text = literal.value();
        let datatype = literal.datatype().as_str();
        match datatype.strip_prefix("http://www.w3.org/2001/XMLSchema#") {
            Some("boolean") => Self::Integer(i64::from(text == "true" || text == "1")),
            Some("int" | "long" | "integer" | "decimal" | "double") => match (text.parse(), text.parse()) {
                (Ok(number), _) => Self::Integer(number),
                (_, Ok(number)) => Self::double(number),
                _ => Self::Text(text.to_owned()),
            },
            _ => Self::Text(text.to_owned()),
        }
    }

    pub(super) fn of_json(json: &Json) -> Self {
        match json {
            Json::Null => Self::Missing,
            Json::Bool(value) => Self::Integer(i64::from(*value)),
            Json::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(number), _) => Self::Integer(number),
                (None, number) => Self::double(number.unwrap_or(f64::NAN)),
            },
            Json::String(text) => Self::Text(text.clone()),
            Json::Array(values) => Self::List(values.iter().map(Self::of_json).collect()),
            // Name, year and place, in the key order of the map.
            Json::Object(map) => {
                let part = |name: &str| map.get(name).map(|part| Self::of_json(part).to_string());
                let parts: Vec<String> =
                    ["organizationName", "year", "placeName"].into_iter().filter_map(part).collect();
                Self::Text(parts.join(BETWEEN_PARTS))
            }
        }
    }

    /// The value converted to the kind of its column.
    pub(super) fn settled(self, kind: ColumnKind) -> Self {
        match (kind, self) {
            (ColumnKind::Set, Self::Missing) => Self::Set(BTreeSet::new()),
            (ColumnKind::Set, Self::Text(text)) => {
                Self::Set(text.split(BETWEEN_VALUES).map(str::to_owned).collect())
            }
            (ColumnKind::Set, Self::List(values)) => {
                Self::Set(values.iter().map(ToString::to_string).collect())
            }
            (ColumnKind::Day, Self::Text(text)) => match day_ms(&text) {
                Some(time) => Self::Integer(time),
                None => Self::Text(text),
            },
            (ColumnKind::Minutes, Self::Double(number)) => Self::double(number.floor()),
            (_, cell) => cell,
        }
    }
}

/// Milliseconds from 1970 to a day, such as `1984-05-25`.
fn day_ms(text: &str) -> Option<i64> {
    let mut parts = text.splitn(3, '-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let month = Month::try_from(month.parse::<u8>().ok()?).ok()?;
    let date = Date::from_calendar_date(year.parse().ok()?, month, day.parse().ok()?).ok()?;
    Some(date.midnight().assume_utc().unix_timestamp() * 1000)
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = |f: &mut fmt::Formatter<'_>, texts: Vec<String>| write!(f, "[{}]", texts.join(", "));
        match self {
            Self::Missing => write!(f, "-"),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Double(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
            Self::List(values) => all(f, values.iter().map(ToString::to_string).collect()),
            Self::Set(values) => all(f, values.iter().cloned().collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_have_one_representation() {
        assert_eq!(Cell::Text("1970-01-02".into()).settled(ColumnKind::Day), Cell::Integer(86_400_000));
        assert_eq!(Cell::double(3.0), Cell::Integer(3));
        assert_eq!(Cell::Double(3.7).settled(ColumnKind::Minutes), Cell::Integer(3));
        let list = Cell::List(vec![Cell::Text("b".into()), Cell::Text("a".into())]);
        assert_eq!(list.settled(ColumnKind::Set), Cell::Text("a;b".into()).settled(ColumnKind::Set));
        let literal = Literal::new_typed_literal("4.0", oxrdf::vocab::xsd::DECIMAL);
        assert_eq!(Cell::of_literal(&literal), Cell::Integer(4));
    }
}

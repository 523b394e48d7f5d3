//! Table dialects: syntax of rows and cells, and formats of values.

use crate::value::{Canonical, Type};
use std::borrow::Cow;
use std::fmt::Write;

/// See the header of this file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Dialect {
    /// `None`: the most frequent of comma, bar and tab in the first line.
    pub(crate) separator: Option<u8>,
    /// `None`: quotes have no special meaning.
    pub(crate) quote: Option<u8>,
    /// The character before a quote in a quoted field; `None`: a quote is written twice.
    pub(crate) escape: Option<u8>,
    pub(crate) has_header: bool,
    /// Texts of absent cells.
    pub(crate) nulls: Vec<String>,
    pub(crate) list: ListForm,
    /// Whether an untyped column of lists in JSON holds lists (CSV of APOC).
    pub(crate) has_json_lists: bool,
    /// Patterns of dates and of times; `None`: XSD format, or milliseconds since 1970.
    pub(crate) date: Option<String>,
    pub(crate) datetime: Option<String>,
}

impl Default for Dialect {
    fn default() -> Self {
        Self {
            separator: None,
            quote: Some(b'"'),
            escape: None,
            has_header: true,
            nulls: vec![String::new()],
            list: ListForm { open: None, separator: ';', close: None },
            has_json_lists: false,
            date: None,
            datetime: None,
        }
    }
}

/// Format of lists in a cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ListForm {
    pub(crate) open: Option<char>,
    pub(crate) separator: char,
    pub(crate) close: Option<char>,
}

impl ListForm {
    /// `;` or `[,]`.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        let characters: Vec<char> = text.chars().collect();
        match characters[..] {
            [separator] => Some(Self { open: None, separator, close: None }),
            [open, separator, close] => Some(Self { open: Some(open), separator, close: Some(close) }),
            _ => None,
        }
    }

    /// The list items of a cell.
    pub(crate) fn values(self, cell: &str) -> impl Iterator<Item = &str> {
        let inner = match (self.open, self.close) {
            (Some(open), Some(close)) => {
                let trimmed = cell.trim();
                trimmed.strip_prefix(open).and_then(|rest| rest.strip_suffix(close)).unwrap_or(cell)
            }
            _ => cell,
        };
        let is_bracketed = self.open.is_some();
        let empty = is_bracketed && inner.trim().is_empty();
        inner
            .split(self.separator)
            .filter(move |_| !empty)
            .map(move |value| if is_bracketed { value.trim() } else { value })
    }
}

impl Dialect {
    pub(crate) fn is_null(&self, cell: &str) -> bool {
        self.nulls.iter().any(|null| null == cell)
    }

    /// The canonical form of a cell; `None`: not a value of this type.
    pub(crate) fn value<'c>(&self, kind: Type, text: &'c str) -> Option<Canonical<'c>> {
        let pattern = match kind {
            Type::Date => &self.date,
            Type::DateTime => &self.datetime,
            _ => &None,
        };
        match pattern {
            None => kind.value(text),
            Some(pattern) => {
                let written = DateTimeFields::read(text.trim(), pattern)?.written(kind);
                kind.canonical(&written).map(|text| Canonical::Text(Cow::Owned(text.into_owned())))
            }
        }
    }
}

/// Fields of a parsed date and time.
#[derive(Default)]
struct DateTimeFields {
    year: u32,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
    fraction: String,
    zone: String,
}

/// Valid pattern letters after a percent sign.
const FIELDS: [char; 9] = ['Y', 'm', 'd', 'H', 'M', 'S', 'f', 'z', '%'];

/// Whether a pattern is valid: all letters after percent signs are known.
pub(crate) fn is_pattern(pattern: &str) -> bool {
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        if character == '%' && !characters.next().is_some_and(|field| FIELDS.contains(&field)) {
            return false;
        }
    }
    true
}

impl DateTimeFields {
    fn read(text: &str, pattern: &str) -> Option<Self> {
        let mut moment = Self { month: 1, day: 1, ..Self::default() };
        let mut rest = text;
        let mut pattern = pattern.chars();
        while let Some(expected) = pattern.next() {
            if expected != '%' {
                rest = rest.strip_prefix(expected)?;
                continue;
            }
            match pattern.next()? {
                'Y' => moment.year = number(&mut rest, 4)?,
                'm' => moment.month = number(&mut rest, 2)?,
                'd' => moment.day = number(&mut rest, 2)?,
                'H' => moment.hour = number(&mut rest, 2)?,
                'M' => moment.minute = number(&mut rest, 2)?,
                'S' => moment.second = number(&mut rest, 2)?,
                'f' => {
                    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
                    rest[..end].clone_into(&mut moment.fraction);
                    rest = &rest[end..];
                }
                'z' => {
                    let length = if rest.starts_with('Z') {
                        1
                    } else {
                        rest.find(|c: char| !c.is_ascii_digit() && !"+-:".contains(c)).unwrap_or(rest.len())
                    };
                    rest[..length].clone_into(&mut moment.zone);
                    rest = &rest[length..];
                }
                '%' => rest = rest.strip_prefix('%')?,
                _ => return None,
            }
        }
        rest.is_empty().then_some(moment)
    }

    /// The XSD form.
    fn written(&self, kind: Type) -> String {
        let mut text = format!("{:04}-{:02}-{:02}", self.year, self.month, self.day);
        if kind == Type::DateTime {
            let _ = write!(text, "T{:02}:{:02}:{:02}", self.hour, self.minute, self.second);
            if !self.fraction.is_empty() {
                let _ = write!(text, ".{}", self.fraction);
            }
            text.push_str(&self.zone);
        }
        text
    }
}

/// Consumes a number of at most `digits_max` digits.
fn number(rest: &mut &str, digits_max: usize) -> Option<u32> {
    let digits = rest.bytes().take(digits_max).take_while(u8::is_ascii_digit).count();
    let number = rest[..digits].parse().ok()?;
    *rest = &rest[digits..];
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_by_patterns() {
        let dialect = Dialect {
            date: Some("%d.%m.%Y".to_owned()),
            datetime: Some("%Y/%m/%d %H:%M:%S.%f%z".to_owned()),
            ..Dialect::default()
        };
        let check = |kind, text, expected: Option<&str>| {
            assert_eq!(dialect.value(kind, text).map(Canonical::into_text).as_deref(), expected, "{text}");
        };
        check(Type::Date, "3.12.2020", Some("2020-12-03"));
        check(Type::Date, "30.02.2020", None);
        check(Type::Date, "3.12.2020 ", Some("2020-12-03"));
        check(Type::Date, "3.12.2020x", None);
        check(Type::Date, "ä.12.2020", None);
        check(Type::DateTime, "2020/1/2 3:04:05.60+0100", Some("2020-01-02T03:04:05.60+01:00"));
        check(Type::DateTime, "2020/1/2 3:04:05.60Z", Some("2020-01-02T03:04:05.6Z"));
        check(Type::DateTime, "2020-01-02T03:04:05Z", None);
        check(Type::Int, "7", Some("7"));
        assert!(is_pattern("%Y%%") && !is_pattern("%y") && !is_pattern("%"));
    }

    #[test]
    fn lists_are_cut() {
        let check = |form: &str, cell, expected: &[&str]| {
            let form = ListForm::from_text(form).expect("a form");
            assert_eq!(form.values(cell).collect::<Vec<_>>(), expected, "{cell}");
        };
        check(";", "a;b", &["a", "b"]);
        check(";", " a", &[" a"]);
        check("[,]", "[a, b ]", &["a", "b"]);
        check("[,]", "[]", &[]);
        check("[,]", "a", &["a"]);
        assert_eq!(ListForm::from_text("ab"), None);
    }
}

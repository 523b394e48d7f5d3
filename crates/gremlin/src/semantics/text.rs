//! String functions: `concat`, `length`, `toUpper`, …, `substring`; templates of `format()`; `asBool`.
//!
//! # Shape
//! A [`TextFunction`] is a step with its arguments. With global scope it takes a string; with local scope
//! also a collection of strings, which it maps to a list. Null stays null in both.
//! # Invariants
//! Positions and lengths count characters (Unicode scalar values; TinkerPop counts UTF-16 units, of which
//! some characters take two). White space is defined as in Java: without non-breaking spaces. No result is
//! longer than [`super::string::MAX_TEXT_BYTES`].
//! # Cost
//! Linear in the lengths of the text and the result.

mod template;

pub use template::{Template, TemplatePart};

use super::string::{MAX_TEXT_BYTES, too_long};
use super::{Error, Result, list, number};
use crate::{Scope, Value};
use std::sync::Arc;

/// A function on a string.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TextFunction {
    /// The number of characters.
    Length,
    /// Conversion to upper case.
    ToUpper,
    /// Conversion to lower case.
    ToLower,
    /// Removal of leading and trailing white space.
    Trim,
    /// Removal of leading white space.
    LTrim,
    /// Removal of trailing white space.
    RTrim,
    /// Replacement of `old` by `new`; identity if one is null or `old` is empty.
    Replace {
        /// The replaced substring.
        old: Option<Arc<str>>,
        /// The replacement.
        new: Option<Arc<str>>,
    },
    /// The nonempty parts between separators; null: white space; empty: between all characters.
    Split(Option<Arc<str>>),
    /// The characters `start..end`; negative positions count from the end.
    Substring {
        /// Position of the first character.
        start: i64,
        /// One past the last character.
        end: Option<i64>,
    },
}

impl TextFunction {
    /// The name of the step.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Length => "length",
            Self::ToUpper => "toUpper",
            Self::ToLower => "toLower",
            Self::Trim => "trim",
            Self::LTrim => "lTrim",
            Self::RTrim => "rTrim",
            Self::Replace { .. } => "replace",
            Self::Split(_) => "split",
            Self::Substring { .. } => "substring",
        }
    }

    /// Applies the function to `value`.
    ///
    /// # Errors
    /// `value` is neither a string nor null nor, with local scope, a collection of those; or the result is
    /// too long.
    pub fn apply(&self, value: &Value, scope: Scope) -> Result<Value> {
        let name = self.name();
        match (value, scope) {
            (Value::Null, _) => Ok(Value::Null),
            (Value::String(text), _) => self.text(text),
            (_, Scope::Global) => Err(Error::new(format!(
                "The {name}() step can only take string as argument, encountered {}",
                value.type_name()
            ))),
            (_, Scope::Local) => {
                let wrong = |value: &Value, place: &str| {
                    Error::new(format!(
                        "The {name}(local) step can only take string or list of strings, encountered {}{place}",
                        value.type_name()
                    ))
                };
                let items = list::expanded(list::items(value).ok_or_else(|| wrong(value, ""))?)?;
                let each = |item: &Value| match item {
                    Value::Null => Ok(Value::Null),
                    Value::String(text) => self.text(text),
                    _ => Err(wrong(item, " in list")),
                };
                items.iter().map(each).collect::<Result<_>>().map(Value::list)
            }
        }
    }

    fn text(&self, text: &Arc<str>) -> Result<Value> {
        let same = || Value::String(text.clone());
        Ok(match self {
            Self::Length => Value::Int(i32::try_from(text.chars().count()).unwrap_or(i32::MAX)),
            Self::ToUpper => Value::from(text.to_uppercase()),
            Self::ToLower => Value::from(text.to_lowercase()),
            Self::Trim => Value::text(text.trim_matches(is_white_space)),
            Self::LTrim => Value::text(text.trim_start_matches(is_white_space)),
            Self::RTrim => Value::text(text.trim_end_matches(is_white_space)),
            Self::Replace { old: Some(old), new: Some(new) } if !old.is_empty() => replace(text, old, new)?,
            Self::Replace { .. } => same(),
            Self::Split(separator) => split(text, separator.as_deref()),
            Self::Substring { start, end } => substring(text, *start, *end),
        })
    }
}

/// `Character.isWhitespace` of Java.
fn is_white_space(c: char) -> bool {
    match c {
        '\u{1c}'..='\u{1f}' => true,
        '\u{85}' | '\u{a0}' | '\u{2007}' | '\u{202f}' => false,
        _ => c.is_whitespace(),
    }
}

fn replace(text: &str, old: &str, new: &str) -> Result<Value> {
    let grown = text.matches(old).count().saturating_mul(new.len()).saturating_add(text.len());
    if grown > MAX_TEXT_BYTES && new.len() > old.len() {
        return Err(too_long());
    }
    Ok(Value::from(text.replace(old, new)))
}

fn split(text: &str, separator: Option<&str>) -> Value {
    let parts: Vec<Value> = match separator {
        Some("") if text.is_empty() => vec![Value::text("")],
        Some("") => text.chars().map(|c| Value::text(c.encode_utf8(&mut [0; 4]))).collect(),
        // Adjacent separators count as one, and a leading one is ignored; a trailing one is followed by an
        // empty string.
        Some(separator) => {
            let mut parts: Vec<&str> = text.split(separator).collect();
            let last = parts.pop().filter(|last| !last.is_empty() || !parts.is_empty());
            parts.into_iter().filter(|part| !part.is_empty()).chain(last).map(Value::text).collect()
        }
        None => text.split(is_white_space).filter(|part| !part.is_empty()).map(Value::text).collect(),
    };
    Value::list(parts)
}

fn substring(text: &str, start: i64, end: Option<i64>) -> Value {
    let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    let place = |index: i64| {
        let index = if index < 0 { length.saturating_add(index).max(0) } else { index.min(length) };
        let index = usize::try_from(index).unwrap_or(0);
        text.char_indices().nth(index).map_or(text.len(), |(at, _)| at)
    };
    let (from, to) = (place(start), end.map_or(text.len(), place));
    Value::text(text.get(from..to).unwrap_or_default())
}

/// `concat(…)`: concatenation of all strings. Nulls are ignored; if all are null, so is the result.
///
/// # Errors
/// An argument is neither a string nor null, or the result is too long.
pub fn concat<'v>(value: &Value, arguments: impl IntoIterator<Item = &'v Value>) -> Result<Value> {
    let mut out: Option<String> = None;
    let mut push = |part: &Value| match part {
        Value::Null => Ok(()),
        Value::String(text) => {
            let out = out.get_or_insert_default();
            if out.len().saturating_add(text.len()) > MAX_TEXT_BYTES {
                return Err(too_long());
            }
            out.push_str(text);
            Ok(())
        }
        _ => Err(Error::new(format!(
            "String concat() can only take string as argument, encountered {}",
            part.type_name()
        ))),
    };
    push(value)?;
    for argument in arguments {
        push(argument)?;
    }
    Ok(out.map_or(Value::Null, Value::from))
}

/// `asBool()`: booleans, numbers (0 and `NaN` are false), `true` and `false` in any case.
///
/// # Errors
/// Any other value.
pub fn as_bool(value: &Value) -> Result<Value> {
    let unreadable = |what: &str| Err(Error::new(format!("Can't parse {what} as Boolean.")));
    match value {
        Value::Boolean(_) => Ok(value.clone()),
        Value::Null => unreadable("null"),
        Value::String(text) => match text.trim_matches(|c| c <= ' ') {
            word if word.eq_ignore_ascii_case("true") => Ok(Value::Boolean(true)),
            word if word.eq_ignore_ascii_case("false") => Ok(Value::Boolean(false)),
            _ => unreadable(text),
        },
        _ if value.is_number() => {
            let zero = number::compare_exactly(value, &Value::Int(0)).is_some_and(std::cmp::Ordering::is_eq);
            Ok(Value::Boolean(!zero && !number::is_nan(value)))
        }
        _ => unreadable(value.type_name()),
    }
}

//! The value notation of the feature files: `d[1].i`, `v[marko]`, `m[{"a": "l[x,y]"}]`.
//!
//! # Shape
//! A code is a word, brackets, and an optional type. Anything else is a string. Elements are named by the
//! property `name` and looked up in [`Elements`].

use super::elements::Elements;
use bigdecimal::BigDecimal;
use num_bigint::BigInt;
use std::str::FromStr;
use std::sync::Arc;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use vervet::gremlin::{Direction, Map, Merge, Path, T, Token, Value};

/// The value of `text`.
///
/// # Errors
/// A missing element; a code with invalid content.
pub(super) fn value(text: &str, elements: &Elements) -> Result<Value, String> {
    let text = text.trim();
    let refuse = || format!("{text} is not a value");
    match text {
        "null" => return Ok(Value::Null),
        "true" => return Ok(Value::Boolean(true)),
        "false" => return Ok(Value::Boolean(false)),
        _ => {}
    }
    let Some((word, content, kind)) = code(text) else { return Ok(Value::text(text)) };
    Ok(match (word, kind) {
        ("m", "") => {
            let json = serde_json::from_str(content).map_err(|error| format!("{text}: {error}"))?;
            from_json(&json, elements)?
        }
        ("l", "") => Value::list(items(content, elements)?),
        ("s", "") => Value::set(items(content, elements)?),
        ("p", "") => {
            let objects = items(content, elements)?;
            let labels = vec![Vec::new(); objects.len()];
            Path { objects, labels }.into()
        }
        ("str", "") => Value::text(content),
        ("uuid", "") => uuid::Uuid::parse_str(content).map_err(|error| format!("{text}: {error}"))?.into(),
        ("dt", "") => {
            OffsetDateTime::parse(content, &Rfc3339).map_err(|error| format!("{text}: {error}"))?.into()
        }
        ("d", "") => match content {
            "NaN" => f64::NAN.into(),
            "Infinity" => f64::INFINITY.into(),
            "-Infinity" => f64::NEG_INFINITY.into(),
            _ => return Err(refuse()),
        },
        ("d", kind) => number(content, kind).ok_or_else(refuse)?,
        ("v", "") => elements.vertex(content)?.clone().into(),
        ("v", ".id") => elements.vertex(content)?.id().clone(),
        ("v", ".sid") => Value::text(plain(elements.vertex(content)?.id())),
        ("e", "") => Value::Edge(elements.edge(content)?.clone()),
        ("e", ".id") => elements.edge(content)?.id().clone(),
        ("e", ".sid") => Value::text(plain(elements.edge(content)?.id())),
        ("vp", "") => {
            Value::VertexProperty(elements.vertex_property(content, &|text| value(text, elements))?)
        }
        ("t", "") => Token::T(T::from_name(content).ok_or_else(refuse)?).into(),
        ("D", "") => {
            let name = match content {
                "from" => "OUT",
                "to" => "IN",
                name => name,
            };
            Token::Direction(Direction::from_name(name).ok_or_else(refuse)?).into()
        }
        ("M", "") => Token::Merge(Merge::from_name(content).ok_or_else(refuse)?).into(),
        _ => Value::text(text),
    })
}

/// `word[content]kind`, if it has the form of a code.
fn code(text: &str) -> Option<(&str, &str, &str)> {
    let (word, rest) = text.split_once('[')?;
    if word.is_empty() || !word.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return None;
    }
    let (content, kind) = rest.rsplit_once(']')?;
    Some((word, content, kind))
}

/// The values between commas. Commas inside brackets do not separate.
fn items(content: &str, elements: &Elements) -> Result<Vec<Value>, String> {
    if content.is_empty() {
        return Ok(Vec::new());
    }
    let (mut all, mut start, mut depth) = (Vec::new(), 0, 0_i32);
    for (at, character) in content.char_indices() {
        match character {
            '[' => depth += 1,
            ']' => depth -= 1,
            ',' if depth == 0 => {
                all.push(value(&content[start..at], elements)?);
                start = at + 1;
            }
            _ => {}
        }
    }
    all.push(value(&content[start..], elements)?);
    Ok(all)
}

fn number(digits: &str, kind: &str) -> Option<Value> {
    Some(match kind {
        ".b" => Value::Byte(digits.parse().ok()?),
        ".s" => Value::Short(digits.parse().ok()?),
        ".i" => Value::Int(digits.parse().ok()?),
        ".l" => Value::Long(digits.parse().ok()?),
        ".f" => Value::Float(digits.parse().ok()?),
        ".d" => Value::Double(digits.parse().ok()?),
        ".n" => Value::BigInteger(Arc::new(BigInt::from_str(digits).ok()?)),
        ".m" => Value::BigDecimal(Arc::new(BigDecimal::from_str(digits).ok()?)),
        _ => return None,
    })
}

/// Strings in it are codes again; numbers get the smallest type.
fn from_json(json: &serde_json::Value, elements: &Elements) -> Result<Value, String> {
    use serde_json::Value as Json;
    Ok(match json {
        Json::Null => Value::Null,
        Json::Bool(flag) => (*flag).into(),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => i32::try_from(whole).map_or(Value::Long(whole), Value::Int),
            None => number.as_f64().ok_or_else(|| format!("{number} is not a number"))?.into(),
        },
        Json::String(text) => value(text, elements)?,
        Json::Array(items) => {
            Value::list(items.iter().map(|item| from_json(item, elements)).collect::<Result<_, _>>()?)
        }
        Json::Object(entries) => {
            let mut map = Map::default();
            for (key, entry) in entries {
                map.insert(value(key, elements)?, from_json(entry, elements)?);
            }
            map.into()
        }
    })
}

/// An id without its type.
pub(super) fn plain(id: &Value) -> String {
    match (id, id.as_integer()) {
        (_, Some(number)) => number.to_string(),
        (Value::String(text), _) => text.to_string(),
        (Value::Uuid(uuid), _) => uuid.to_string(),
        _ => format!("{id:?}"),
    }
}

/// A value in the notation of the feature files, as far as possible.
pub(super) fn show(value: &Value) -> String {
    let all = |values: &mut dyn Iterator<Item = &Value>| values.map(show).collect::<Vec<_>>().join(",");
    match value {
        Value::Null => "null".to_owned(),
        Value::Boolean(flag) => flag.to_string(),
        Value::Byte(number) => format!("d[{number}].b"),
        Value::Short(number) => format!("d[{number}].s"),
        Value::Int(number) => format!("d[{number}].i"),
        Value::Long(number) => format!("d[{number}].l"),
        Value::Float(number) => format!("d[{number:?}].f"),
        Value::Double(number) => format!("d[{number:?}].d"),
        Value::BigInteger(number) => format!("d[{number}].n"),
        Value::BigDecimal(number) => format!("d[{number}].m"),
        Value::String(text) => text.to_string(),
        Value::Uuid(uuid) => format!("uuid[{uuid}]"),
        Value::DateTime(time) => format!("dt[{time}]"),
        Value::List(values) => format!("l[{}]", all(&mut values.iter())),
        Value::Set(values) => format!("s[{}]", all(&mut values.iter())),
        Value::Path(path) => format!("p[{}]", all(&mut path.objects.iter())),
        Value::Map(map) => {
            let entries: Vec<String> =
                map.iter().map(|(key, value)| format!("{}: {}", show(key), show(value))).collect();
            format!("m[{{{}}}]", entries.join(", "))
        }
        Value::Bulk(bulk) => {
            let counts: Vec<String> =
                bulk.iter().map(|(value, count)| format!("{} x{count}", show(value))).collect();
            format!("bulk[{}]", counts.join(","))
        }
        Value::Vertex(vertex) => format!("v[{}]", vertex_name(vertex)),
        Value::Edge(edge) => match &edge.detail {
            Some(detail) => format!(
                "e[{}-{}->{}]",
                vertex_name(&detail.source),
                detail.label,
                vertex_name(&detail.target)
            ),
            None => format!("e[{:?}]", edge.key),
        },
        Value::VertexProperty(property) => format!("vp[{}->{}]", property.label, show(&property.value)),
        Value::Property(property) => format!("property[{}->{}]", property.key, show(&property.value)),
        Value::Token(token) => format!("{}.{}", token.kind(), token.name()),
        other => format!("{other:?}"),
    }
}

/// Its `name`, or else its id.
fn vertex_name(vertex: &vervet::gremlin::Vertex) -> String {
    let named = vertex.detail.as_ref().and_then(|detail| {
        detail.properties.iter().find(|property| &*property.label == "name").map(|name| show(&name.value))
    });
    named.unwrap_or_else(|| plain(vertex.id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &Value) {
        assert_eq!(value(text, &Elements::default()).as_ref(), Ok(expected), "{text}");
    }

    #[test]
    fn codes_are_values_and_all_else_is_text() {
        check("d[1].i", &1_i32.into());
        check("d[-0.5].d", &(-0.5_f64).into());
        check("d[NaN]", &f64::NAN.into());
        check("marko", &"marko".into());
        check("str[d[1].i]", &"d[1].i".into());
        check("null", &Value::Null);
        check("l[]", &Value::list(vec![]));
        check(
            "l[a,l[b,d[2].l]]",
            &Value::list(vec!["a".into(), Value::list(vec!["b".into(), 2_i64.into()])]),
        );
        check("s[a,a]", &Value::set(["a".into()]));
        check("t[label]", &Token::T(T::Label).into());
        check("D[from]", &Token::Direction(Direction::Out).into());
        let map: Map =
            [(Token::T(T::Id).into(), Value::from(7_i32)), ("a".into(), "x".into())].into_iter().collect();
        check("m[{\"t[id]\": 7, \"a\": \"x\"}]", &map.into());
        assert!(value("v[nobody]", &Elements::default()).is_err());
        assert!(value("d[x].i", &Elements::default()).is_err());
    }
}

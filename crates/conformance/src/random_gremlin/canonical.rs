//! Canonical texts of results, for comparison between engines.
//!
//! # Invariants
//! Number types are visible; fractions have ten digits, since rounding of sums depends on their order. Maps,
//! sets and bags are sorted; lists too, where the traversal does not define their order. Elements are
//! represented by their ids, properties by key and value (ids of properties are engine-specific).
//! `Answers.java` writes the same form.

use vervet::gremlin::Value;

/// The text of a value; `bags`: lists are sorted.
pub(super) fn show(value: &Value, bags: bool) -> String {
    let all = |values: &mut dyn Iterator<Item = &Value>, sorted: bool| {
        let mut shown: Vec<String> = values.map(|value| show(value, bags)).collect();
        if sorted {
            shown.sort_unstable();
        }
        shown.join(", ")
    };
    match value {
        Value::Null => "null".to_owned(),
        Value::Boolean(flag) => flag.to_string(),
        Value::Byte(number) => format!("{number}b"),
        Value::Short(number) => format!("{number}s"),
        Value::Int(number) => format!("{number}i"),
        Value::Long(number) => format!("{number}l"),
        Value::Float(number) => format!("{number:.9e}f"),
        Value::Double(number) => format!("{number:.9e}d"),
        Value::BigInteger(number) => format!("{number}n"),
        Value::BigDecimal(number) => {
            format!("{:.9e}m", number.to_string().parse::<f64>().unwrap_or(f64::NAN))
        }
        Value::String(text) => format!("\"{text}\""),
        Value::Vertex(vertex) => format!("v[{}]", show(vertex.id(), bags)),
        Value::Edge(edge) => format!("e[{}]", show(edge.id(), bags)),
        Value::VertexProperty(property) => format!("vp[{}={}]", property.label, show(&property.value, bags)),
        Value::Property(property) => format!("p[{}={}]", property.key, show(&property.value, bags)),
        Value::Path(path) => {
            let objects: Vec<String> = (path.objects.iter().zip(&path.labels))
                .map(|(object, labels)| {
                    let mut labels: Vec<&str> = labels.iter().map(AsRef::as_ref).collect();
                    labels.sort_unstable();
                    labels.dedup();
                    let at = if labels.is_empty() { "" } else { "@" };
                    format!("{}{at}{}", show(object, bags), labels.join(","))
                })
                .collect();
            format!("path[{}]", objects.join(" "))
        }
        Value::Entry(entry) => format!("{{{}: {}}}", show(&entry.0, bags), show(&entry.1, bags)),
        Value::Map(map) => {
            let mut entries: Vec<String> = map
                .iter()
                .map(|(key, value)| format!("{}: {}", show(key, bags), show(value, bags)))
                .collect();
            entries.sort_unstable();
            format!("{{{}}}", entries.join(", "))
        }
        Value::Bulk(bag) => {
            let mut items = bag.iter().flat_map(|(value, count)| {
                std::iter::repeat_n(value, usize::try_from(*count).unwrap_or(usize::MAX))
            });
            format!("bag({})", all(&mut items, true))
        }
        Value::Set(set) => format!("set({})", all(&mut set.iter(), true)),
        Value::List(list) => format!("[{}]", all(&mut list.iter(), bags)),
        Value::Token(token) => format!("{}.{}", token.kind(), token.name()),
        other => format!("{other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_show_and_order_shows_where_there_is_one() {
        let list = Value::list(vec![Value::Int(2), Value::Long(1), Value::Double(0.1 + 0.2)]);
        assert_eq!(show(&list, false), "[2i, 1l, 3.000000000e-1d]");
        assert_eq!(show(&list, true), "[1l, 2i, 3.000000000e-1d]");
    }
}

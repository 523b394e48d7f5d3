//! The keys of a history as texts of Gremlin and SPARQL, for clients of a server.
//!
//! # Shape
//! The statements are those of `storage.rs`. A transaction of several requests is a session of Gremlin, so
//! each read and write of a key has a text of Gremlin here; an update of SPARQL writes several keys in one
//! request, and a query of SPARQL reads several. Keys are subjects of a statement of their own from the start
//! ([`keys_exist`]), so that Gremlin finds them.

use super::record::Kind;
use super::storage::{Storage, StorageForm, vertex};
use std::collections::BTreeMap;
use std::ops::Range;
use vervet::gremlin::Value;

/// An update after which these keys exist. Its repetition changes nothing.
pub(super) fn keys_exist(keys: Range<u64>) -> String {
    let statements: String =
        keys.map(|key| format!("<{}> a <urn:history:Key> . ", vertex("key", key))).collect();
    format!("INSERT DATA {{ {statements} }}")
}

fn tag(key: u64) -> String {
    format!("the tag of key {key}")
}

impl Storage {
    fn is_positioned(self) -> bool {
        self.kind == Kind::List && self.shape != StorageForm::Property
    }

    /// The elements of a key as vertices, or as values in the layout *property*.
    fn traversal(self, key: u64) -> String {
        let name = vertex("key", key);
        match self.shape {
            StorageForm::Property => format!("g.V('{name}').values('urn:history:value')"),
            StorageForm::Edge => format!("g.V('{name}').out('urn:history:has')"),
            StorageForm::Inverse => format!("g.V('{name}').in('urn:history:of')"),
            StorageForm::Type => format!("g.V().hasLabel('{name}')"),
            StorageForm::Tag => format!("g.V().has('urn:history:tag', '{}')", tag(key)),
        }
    }

    pub(super) fn gremlin_read(self, key: u64) -> String {
        let results = match self.shape {
            StorageForm::Property => "",
            _ if self.is_positioned() => ".project('e', 'p').by(T.id).by('urn:history:position')",
            _ => ".id()",
        };
        self.traversal(key) + results
    }

    pub(super) fn gremlin_count(self, key: u64) -> String {
        self.traversal(key) + ".count()"
    }

    /// The elements in the results of [`Storage::gremlin_read`], in order.
    pub(super) fn elements_of_values(self, values: &[Value]) -> Result<Vec<u64>, String> {
        let wrong = |value: &Value| format!("not an element of a history: {value:?}");
        let mut pairs = Vec::with_capacity(values.len());
        for value in values {
            let pair = match value {
                Value::Map(map) => {
                    let position = map.get(&Value::text("p")).and_then(Value::as_integer);
                    let element = map.get(&Value::text("e")).and_then(Value::as_text);
                    position
                        .zip(element)
                        .and_then(|(position, element)| self.pair(element, &position.to_string()))
                }
                value => match value.as_integer() {
                    Some(number) => self.pair(&number.to_string(), "0"),
                    None => value.as_text().and_then(|text| self.pair(text, "0")),
                },
            };
            pairs.push(pair.ok_or_else(|| wrong(value))?);
        }
        pairs.sort_unstable();
        Ok(pairs.into_iter().map(|(_, element)| element).collect())
    }

    /// Position and element, from the texts of both.
    fn pair(self, element: &str, position: &str) -> Option<(u64, u64)> {
        match self.shape {
            StorageForm::Property if self.kind == Kind::List => {
                let (position, element) = element.split_once(' ')?;
                Some((position.parse().ok()?, element.parse().ok()?))
            }
            StorageForm::Property => Some((0, element.parse().ok()?)),
            _ => {
                let element = element.strip_prefix("urn:history:element:")?;
                Some((position.parse().ok()?, element.parse().ok()?))
            }
        }
    }

    /// Replaces the element of a register, or appends to a list at this position.
    pub(super) fn gremlin_write(self, key: u64, element: u64, position: u64) -> String {
        let (name, new) = (vertex("key", key), vertex("element", element));
        let is_list = self.kind == Kind::List;
        if self.shape == StorageForm::Property {
            return if is_list {
                format!("g.V('{name}').property(set, 'urn:history:value', '{position} {element}').iterate()")
            } else {
                format!("g.V('{name}').property(single, 'urn:history:value', {element}).iterate()")
            };
        }
        let label = if self.shape == StorageForm::Type { &name } else { "urn:history:Element" };
        let position =
            if is_list { format!(".property('urn:history:position', {position})") } else { String::new() };
        let added = format!("addV('{label}').property(T.id, '{new}'){position}");
        let (removal, addition) = match self.shape {
            StorageForm::Edge => (
                format!("g.V('{name}').outE('urn:history:has').drop()"),
                format!(
                    "g.V('{name}').as('k').{added}.as('e').addE('urn:history:has').from('k').to('e').iterate()"
                ),
            ),
            StorageForm::Inverse => (
                format!("g.V('{name}').inE('urn:history:of').drop()"),
                format!(
                    "g.V('{name}').as('k').{added}.as('e').addE('urn:history:of').from('e').to('k').iterate()"
                ),
            ),
            StorageForm::Tag => (
                format!("{}.properties('urn:history:tag').drop()", self.traversal(key)),
                format!("g.{added}.property('urn:history:tag', '{}').iterate()", tag(key)),
            ),
            _ => (format!("{}.drop()", self.traversal(key)), format!("g.{added}.iterate()")),
        };
        if is_list { addition } else { format!("{removal}\n{addition}") }
    }

    /// A query for the elements of several keys.
    pub(super) fn sparql_read(self, keys: impl Iterator<Item = u64>) -> String {
        let position = if self.is_positioned() { " . ?element <urn:history:position> ?position" } else { "" };
        let part =
            |key| format!("{{ {}{position} BIND({key} AS ?key) }}", self.shape.pattern(key, "?element"));
        let parts: Vec<String> = keys.map(part).collect();
        format!("SELECT ?key ?element ?position {{ {} }}", parts.join(" UNION "))
    }

    /// The elements in the answer to [`Storage::sparql_read`], which is CSV, by key and in order.
    pub(super) fn elements_of_csv(self, csv: &str) -> Result<BTreeMap<u64, Vec<u64>>, String> {
        let mut keys: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
        for line in csv.lines().skip(1) {
            let mut columns = line.trim_end().split(',');
            let pair = |element, position: &str| {
                self.pair(element, if position.is_empty() { "0" } else { position })
            };
            let read = match (columns.next(), columns.next(), columns.next()) {
                (Some(key), Some(element), Some(position)) => key.parse().ok().zip(pair(element, position)),
                _ => None,
            };
            let (key, pair) = read.ok_or_else(|| format!("not an element of a history: {line}"))?;
            keys.entry(key).or_default().push(pair);
        }
        let sorted = |(key, mut pairs): (u64, Vec<(u64, u64)>)| {
            pairs.sort_unstable();
            (key, pairs.into_iter().map(|(_, element)| element).collect())
        };
        Ok(keys.into_iter().map(sorted).collect())
    }

    /// An update that writes these pairs of key and element.
    pub(super) fn sparql_update(self, writes: impl Iterator<Item = (u64, u64)>) -> String {
        let one = |(key, element)| {
            let new = match self.shape {
                StorageForm::Property => format!("{element}"),
                _ => format!("<{}>", vertex("element", element)),
            };
            let count = format!("{{ SELECT (COUNT(*) AS ?n) {{ {} }} }}", self.shape.pattern(key, "?other"));
            match (self.kind, self.shape) {
                (Kind::Register, _) => {
                    let (old, new) = (self.shape.pattern(key, "?old"), self.shape.pattern(key, &new));
                    format!("DELETE WHERE {{ {old} }} ; INSERT DATA {{ {new} }}")
                }
                (Kind::List, StorageForm::Property) => format!(
                    "INSERT {{ {} }} WHERE {{ {count} BIND(CONCAT(STR(?n), \" {element}\") AS ?new) }}",
                    self.shape.pattern(key, "?new")
                ),
                (Kind::List, _) => format!(
                    "INSERT {{ {} . {new} <urn:history:position> ?n }} WHERE {{ {count} }}",
                    self.shape.pattern(key, &new)
                ),
            }
        };
        writes.map(one).collect::<Vec<_>>().join(" ;\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vervet::{Database, Isolation, OutputFormat, QueryOptions};

    /// Both languages write and read the same elements, in every layout.
    #[test]
    fn gremlin_and_sparql_have_the_same_elements() {
        for kind in Kind::ALL {
            for shape in StorageForm::ALL {
                let storage = Storage { kind, shape, isolation: Isolation::Serializable };
                let database = Database::in_memory();
                database.update(&keys_exist(1..3)).expect("it is written");
                database.gremlin(&storage.gremlin_write(1, 10, 0)).expect("it is written");
                database
                    .update(&storage.sparql_update([(1, 11), (2, 20)].into_iter()))
                    .expect("it is written");
                database.gremlin(&storage.gremlin_write(1, 12, 2)).expect("it is written");
                let expected = if kind == Kind::List { vec![10, 11, 12] } else { vec![12] };
                let run = |text: &str| -> Vec<Value> {
                    database.gremlin(text).expect("it is read").into_values().expect("few")
                };
                let values = run(&storage.gremlin_read(1));
                assert_eq!(storage.elements_of_values(&values), Ok(expected.clone()), "{kind:?} {shape:?}");
                let count = run(&storage.gremlin_count(1));
                assert_eq!(count.first().and_then(Value::as_integer), Some(expected.len() as i64));
                let mut csv = Vec::new();
                let query = storage.sparql_read([1, 2, 3].into_iter());
                database
                    .write(&query, &QueryOptions::default(), OutputFormat::Csv, &mut csv)
                    .expect("it is read");
                let read = storage.elements_of_csv(&String::from_utf8_lossy(&csv));
                assert_eq!(read, Ok(BTreeMap::from([(1, expected), (2, vec![20])])), "{kind:?} {shape:?}");
            }
        }
    }
}

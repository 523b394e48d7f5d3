//! JSON that APOC exports from Neo4j (`apoc.export.json.*`): an element per line, a list of elements, or an
//! object with `nodes` and `rels`, each a list or a map by id.
//!
//! Integers are 64-bit, as in Neo4j. Each item of a list is a value of its key. Objects (points, maps) and
//! lists of lists are texts in JSON.
//! # Cost
//! One element in memory at a time.

use crate::block::Malformed;
use crate::merge::Merger;
use crate::positioned::Positioned;
use crate::property::{PropertyWriter, Rejected, VERTEX_LABEL};
use crate::source::read_error;
use crate::target::Target;
use crate::value::Type;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Number, Value};
use std::fmt;
use std::io::{BufRead, Cursor, Read};
use vervet_model::{Error, ErrorKind, Id, Result};

/// Maximum length of a line.
const LINE_BYTES_MAX: u64 = 256 << 20;

/// A node or a relationship.
#[derive(Deserialize)]
struct ApocElement {
    #[serde(rename = "type")]
    kind: String,
    id: Option<NodeId>,
    #[serde(default)]
    labels: Vec<String>,
    label: Option<String>,
    #[serde(default)]
    properties: Map<String, Value>,
    start: Option<Endpoint>,
    end: Option<Endpoint>,
}

/// An endpoint of a relationship. Its labels are those of the node and are ignored.
#[derive(Deserialize)]
struct Endpoint {
    id: NodeId,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum NodeId {
    Text(String),
    Number(Number),
}

impl NodeId {
    fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Number(number) => number.to_string(),
        }
    }
}

/// Whether a JSON document is an export of APOC rather than GraphSON; `head` is its start. An element has a
/// member `type`, whose value is a text.
pub(crate) fn is_apoc(head: &[u8]) -> bool {
    const MEMBER: &[u8] = b"\"type\"";
    memchr::memmem::find_iter(head, MEMBER).any(|at| {
        let rest = head[at + MEMBER.len()..].trim_ascii_start();
        let value = rest.strip_prefix(b":").map(<[u8]>::trim_ascii_start).unwrap_or_default();
        [&b"\"node\""[..], b"\"relationship\""].iter().any(|kind| value.starts_with(kind))
    })
}

/// Loads all of `input`.
pub(crate) fn load_apoc<T: Target + ?Sized>(
    name: &str,
    input: Box<dyn Read + Send>,
    merger: &mut Merger<'_, T>,
) -> Result<()> {
    let mut reader = Positioned::new(input);
    let mut writer = PropertyWriter::new(merger)?;
    let mut line = Vec::new();
    let mut is_first = true;
    loop {
        line.clear();
        let number = reader.line();
        let read = (&mut reader).take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
        let read = read.map_err(|error| read_error(name, &error))?;
        if read as u64 == LINE_BYTES_MAX {
            let message = format!("the line has more than {} MiB", LINE_BYTES_MAX >> 20);
            let malformed = Malformed { line: number, column: None, message, kind: ErrorKind::Input };
            return Err(writer.merger.fatal(&malformed));
        }
        if read == 0 {
            return writer.finish();
        }
        let start = line.trim_ascii_start();
        if start.is_empty() {
            continue;
        }
        if std::mem::take(&mut is_first) && is_document(start) {
            return load_document(name, line, number, reader, writer);
        }
        let malformed =
            |message: String, column| Malformed { line: number, column, message, kind: ErrorKind::Input };
        let added = match serde_json::from_slice::<ApocElement>(&line) {
            Ok(element) => match add(element, &mut writer) {
                Ok(()) => continue,
                Err(Rejected::Name(message)) => malformed(message, None),
                Err(Rejected::Other(error)) => return Err(error),
            },
            Err(error) => malformed(plain(&error), Some(error.column().saturating_sub(1) as u64)),
        };
        writer.merger.malformed(&added)?;
    }
}

/// Whether the text begins a list, or an object with `nodes` and `rels`.
fn is_document(start: &[u8]) -> bool {
    let members = start.strip_prefix(b"{").map(<[u8]>::trim_ascii_start).unwrap_or_default();
    let is_object = [&b"\"nodes\""[..], b"\"rels\""].iter().any(|member| members.starts_with(member));
    // An object over several lines may have its first member on the second.
    start.starts_with(b"[") || is_object || (start.starts_with(b"{") && members.is_empty())
}

/// The message of an error without its position, which is that of the line.
fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_owned()
}

/// Loads a document whose first line with text is `line`.
fn load_document<T: Target + ?Sized>(
    name: &str,
    line: Vec<u8>,
    before: u64,
    mut reader: Positioned,
    mut writer: PropertyWriter<'_, '_, T>,
) -> Result<()> {
    let mut failure = None;
    let input = Cursor::new(line).chain(&mut reader);
    let mut parser = serde_json::Deserializer::from_reader(input);
    let elements = ElementVisitor { writer: &mut writer, failure: &mut failure, level: 0 };
    let done = elements.deserialize(&mut parser).and_then(|()| parser.end());
    if let Some(error) = reader.failure() {
        return Err(read_error(name, error));
    }
    match (failure, done) {
        (None, Ok(())) => writer.finish(),
        (Some(error), _) => Err(error),
        (None, Err(error)) => Err(writer.merger.fatal(&Malformed {
            line: before + (error.line() as u64).saturating_sub(1),
            column: Some(error.column().saturating_sub(1) as u64),
            message: plain(&error),
            kind: ErrorKind::Input,
        })),
    }
}

/// Visitor that adds each element of a document as it is parsed.
struct ElementVisitor<'e, 'm, 'a, T: Target + ?Sized> {
    writer: &'e mut PropertyWriter<'m, 'a, T>,
    /// An error other than that of an element.
    failure: &'e mut Option<Error>,
    /// 0: the document; 1: the value of `nodes` or `rels`.
    level: u8,
}

impl<T: Target + ?Sized> ElementVisitor<'_, '_, '_, T> {
    fn add<E: serde::de::Error>(&mut self, element: ApocElement) -> std::result::Result<(), E> {
        add(element, self.writer).map_err(|rejected| match rejected {
            Rejected::Name(message) => E::custom(message),
            Rejected::Other(error) => {
                let message = error.to_string();
                *self.failure = Some(error);
                E::custom(message)
            }
        })
    }
}

impl<'de, T: Target + ?Sized> DeserializeSeed<'de> for ElementVisitor<'_, '_, '_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: Target + ?Sized> Visitor<'de> for ElementVisitor<'_, '_, '_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nodes and relationships as APOC exports them")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> std::result::Result<(), A::Error> {
        while let Some(element) = list.next_element()? {
            self.add(element)?;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> std::result::Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if self.level > 0 {
                let element = map.next_value()?;
                self.add(element)?;
            } else if key == "nodes" || key == "rels" {
                let inner =
                    ElementVisitor { writer: &mut *self.writer, failure: &mut *self.failure, level: 1 };
                map.next_value_seed(inner)?;
            } else {
                let key: String = key.chars().take(40).collect();
                let message = format!("expected the member \"nodes\" or \"rels\", found {key:?}");
                return Err(serde::de::Error::custom(message));
            }
        }
        Ok(())
    }
}

/// Adds an element. A malformed one adds no statements.
fn add<T: Target + ?Sized>(
    element: ApocElement,
    writer: &mut PropertyWriter<'_, '_, T>,
) -> std::result::Result<(), Rejected> {
    let missing = |what: &str| Rejected::Name(format!("the {what}"));
    let id = element.id.map(NodeId::into_text).filter(|id| !id.is_empty());
    let subject = match element.kind.as_str() {
        "node" => {
            let vertex = writer.vertex("", &id.ok_or_else(|| missing("node has no id"))?)?;
            let labels = element.labels.iter().filter(|label| !label.is_empty());
            let mut labels: Vec<Id> =
                labels.map(|label| writer.label_id(label)).collect::<std::result::Result<_, _>>()?;
            if labels.is_empty() {
                labels.push(writer.label_id(VERTEX_LABEL)?);
            }
            let values = values(&element.properties, writer)?;
            writer.declare(vertex);
            for label in labels {
                writer.label(vertex, label)?;
            }
            (vertex, values)
        }
        "relationship" => {
            let label = element.label.filter(|label| !label.is_empty());
            let label = writer.key(&label.ok_or_else(|| missing("relationship has no label"))?)?;
            let mut end = |end: Option<Endpoint>, what: &str| {
                let id = end.map(|end| end.id.into_text()).filter(|id| !id.is_empty());
                writer.vertex("", &id.ok_or_else(|| missing(&format!("relationship has no {what}")))?)
            };
            let (source, target) = (end(element.start, "start")?, end(element.end, "end")?);
            let values = values(&element.properties, writer)?;
            (writer.edge(source, label, target, id.as_deref())?, values)
        }
        other => {
            let other: String = other.chars().take(40).collect();
            return Err(Rejected::Name(format!("the type {other:?} is neither node nor relationship")));
        }
    };
    let (subject, values) = subject;
    for (key, value) in values {
        writer.add(subject, key, value, Id::UNBOUND)?;
    }
    Ok(())
}

/// Keys and values of an element.
fn values<T: Target + ?Sized>(
    properties: &Map<String, Value>,
    writer: &mut PropertyWriter<'_, '_, T>,
) -> std::result::Result<Vec<(Id, Id)>, Rejected> {
    let mut all = Vec::with_capacity(properties.len());
    for (key, value) in properties {
        let items = match value {
            Value::Array(items) => items.as_slice(),
            value => std::slice::from_ref(value),
        };
        for (kind, text) in items.iter().filter_map(literal) {
            let key = writer.key(key)?;
            let lexical = kind
                .canonical(&text)
                .ok_or_else(|| Rejected::Name(format!("{text} is not a value of type {}", kind.name())))?;
            all.push((key, writer.value(kind, &lexical)?));
        }
    }
    Ok(all)
}

/// The types and texts of the values of a list in JSON; `None`: not a list.
pub(crate) fn list(text: &str) -> Option<Vec<(Type, String)>> {
    let items: Vec<Value> = serde_json::from_str(text).ok()?;
    Some(items.iter().filter_map(literal).collect())
}

/// The type and text of a value; `None` for null.
fn literal(value: &Value) -> Option<(Type, String)> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(value) => (Type::Boolean, value.to_string()),
        Value::Number(number) if number.is_i64() => (Type::Long, number.to_string()),
        Value::Number(number) if number.is_u64() => (Type::BigInteger, number.to_string()),
        Value::Number(number) => (Type::Double, number.to_string()),
        Value::String(text) => (Type::String, text.clone()),
        Value::Array(_) | Value::Object(_) => (Type::String, value.to_string()),
    })
}

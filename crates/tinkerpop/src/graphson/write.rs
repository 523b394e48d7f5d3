//! GraphSON, written: one pass over the value, straight into the bytes.
//!
//! Without types an element of GraphSON 3 says what it is in a member `type`, and what has no form of its own in JSON is a
//! text. Where keys must be texts, a key that is none is written as TinkerPop prints it; an element as key is its id in
//! GraphSON 2.

use super::{Dialect, read};
use crate::json::write_string;
use crate::limits::DEPTH_MAX;
use crate::parts::{self, PredicateParts};
use crate::{Traverser, WriteError, iso, number};
use base64::Engine;
use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;
use std::io::Write;
use std::sync::Arc;
use vervet_gremlin::{
    Bulk, Bytecode, Edge, Extended, Instruction, Map, Metric, Metrics, P, Path, Property, Strategy, Subgraph,
    Tree, Value, Vertex, VertexProperty,
};

pub(super) type Result<T = ()> = std::result::Result<T, WriteError>;

/// Up to how many properties of a vertex are looked through instead of put into a table.
const PROPERTIES_FEW: usize = 32;

pub(crate) struct Writer<'a> {
    out: &'a mut Vec<u8>,
    dialect: Dialect,
    depth: usize,
}

/// Writes all of something, or nothing.
pub(crate) fn whole(
    dialect: Dialect,
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Writer<'_>) -> Result,
) -> Result {
    let start = out.len();
    let result = write(&mut Writer { out, dialect, depth: DEPTH_MAX });
    if result.is_err() {
        out.truncate(start);
    }
    result
}

impl Writer<'_> {
    /// Appends text that is JSON.
    pub(crate) fn raw(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    pub(crate) fn text(&mut self, text: &str) {
        write_string(text, self.out);
    }

    /// A key with its colon, and a comma before it if it is not the first.
    pub(crate) fn key(&mut self, first: bool, key: &str) {
        if !first {
            self.out.push(b',');
        }
        self.text(key);
        self.out.push(b':');
    }

    pub(crate) fn display(&mut self, number: impl std::fmt::Display) {
        write!(self.out, "{number}").expect("a vector takes all bytes");
    }

    /// `inside`, under a type if there are types.
    pub(super) fn typed(&mut self, kind: &str, inside: impl FnOnce(&mut Self) -> Result) -> Result {
        if !self.dialect.typed {
            return inside(self);
        }
        self.raw("{\"@type\":\"");
        self.raw(kind);
        self.raw("\",\"@value\":");
        inside(self)?;
        self.out.push(b'}');
        Ok(())
    }

    /// A text under a type.
    fn typed_text(&mut self, kind: &str, text: &str) -> Result {
        self.typed(kind, |writer| {
            writer.text(text);
            Ok(())
        })
    }

    /// A number under a type.
    fn typed_number(&mut self, kind: &str, number: impl std::fmt::Display) -> Result {
        self.typed(kind, |writer| {
            writer.display(number);
            Ok(())
        })
    }

    /// Elements between brackets.
    pub(crate) fn array<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut item: impl FnMut(&mut Self, T) -> Result,
    ) -> Result {
        self.out.push(b'[');
        for (index, each) in items.into_iter().enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            item(self, each)?;
        }
        self.out.push(b']');
        Ok(())
    }

    fn values<'v>(&mut self, values: impl IntoIterator<Item = &'v Value>) -> Result {
        self.array(values, Self::value)
    }

    /// Whether a list, a set, a map says its type.
    fn typed_collections(&self) -> bool {
        self.dialect.typed && self.dialect.version >= 3
    }

    /// A list of values, as this dialect has lists.
    pub(super) fn list<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        item: impl FnMut(&mut Self, T) -> Result,
    ) -> Result {
        if self.typed_collections() {
            self.typed("g:List", |writer| writer.array(items, item))
        } else {
            self.array(items, item)
        }
    }

    pub(crate) fn value(&mut self, value: &Value) -> Result {
        self.depth = self.depth.checked_sub(1).ok_or_else(|| {
            WriteError::too_large(format!("could not write values more than {DEPTH_MAX} inside one another"))
        })?;
        self.any(value)?;
        self.depth += 1;
        Ok(())
    }

    fn any(&mut self, value: &Value) -> Result {
        match value {
            Value::Null => self.raw("null"),
            Value::Boolean(true) => self.raw("true"),
            Value::Boolean(false) => self.raw("false"),
            Value::String(text) => self.text(text),
            Value::Int(number) => return self.typed_number("g:Int32", number),
            Value::Long(number) => return self.typed_number("g:Int64", number),
            Value::Byte(number) => return self.typed_number("gx:Byte", number),
            Value::Short(number) => return self.typed_number("gx:Int16", number),
            Value::Float(number) => {
                let number = *number;
                return self.typed("g:Float", |writer| {
                    writer.floating(number.into(), format_args!("{number:?}"));
                    Ok(())
                });
            }
            Value::Double(number) => return self.double(*number),
            Value::BigInteger(number) => {
                checked_bits(number.bits())?;
                return self.typed_number("gx:BigInteger", number);
            }
            Value::BigDecimal(number) => {
                let (unscaled, scale) = number.as_bigint_and_scale();
                checked_bits(unscaled.bits())?;
                number::checked_scale(scale).map_err(WriteError::too_large)?;
                return self.typed_number("gx:BigDecimal", number::decimal_text(number));
            }
            Value::Char(character) => {
                return self.typed_text("gx:Char", character.encode_utf8(&mut [0; 4]));
            }
            Value::Uuid(uuid) => return self.typed_text("g:UUID", &uuid.to_string()),
            Value::DateTime(time) => {
                let (y, m, d, t, o) = iso::date_time_parts(time);
                return self.typed_text("gx:OffsetDateTime", &iso::date_time_text(y, m, d, t, o));
            }
            Value::Duration(duration) => {
                return self.typed_text("gx:Duration", &iso::duration_text(*duration));
            }
            Value::Extended(extended) => return self.extended(extended),
            Value::List(values) => return self.list(values.iter(), Self::value),
            Value::Set(values) if self.typed_collections() => {
                return self.typed("g:Set", |writer| writer.values(values.iter()));
            }
            Value::Set(values) => return self.values(values.iter()),
            Value::Map(map) => return self.map(map),
            Value::Bulk(bulk) => return self.bulk(bulk),
            Value::Vertex(vertex) => return self.vertex(vertex),
            Value::Edge(edge) => return self.edge(edge),
            Value::VertexProperty(property) => {
                return self.typed("g:VertexProperty", |writer| writer.vertex_property(property, true));
            }
            Value::Property(property) => return self.property(property),
            Value::Path(path) => return self.path(path),
            Value::Tree(tree) => return self.tree(tree),
            Value::Subgraph(subgraph) => return self.subgraph(subgraph),
            Value::Metrics(metrics) => return self.metrics(metrics),
            Value::Token(token) => {
                let token = *token;
                return self.typed(&format!("g:{}", parts::token_kind(token)), |writer| {
                    writer.text(token.name());
                    Ok(())
                });
            }
            Value::WithCardinality(pair) => {
                return self.bytecode(&parts::cardinality_value(pair.0, &pair.1));
            }
            Value::P(p) => return self.predicate(p),
            Value::Traversal(bytecode) => return self.bytecode(bytecode),
            Value::Strategy(strategy) => return self.strategy(strategy),
            Value::Lambda(lambda) => {
                return self.typed("g:Lambda", |writer| {
                    writer.raw("{\"script\":");
                    writer.text(&lambda.script);
                    writer.raw(",\"language\":");
                    writer.text(&lambda.language);
                    writer.raw(",\"arguments\":");
                    writer.display(lambda.arity);
                    writer.raw("}");
                    Ok(())
                });
            }
        }
        Ok(())
    }

    fn double(&mut self, number: f64) -> Result {
        self.typed("g:Double", |writer| {
            writer.floating(number, format_args!("{number:?}"));
            Ok(())
        })
    }

    /// `digits`, or a string where JSON has no digits.
    fn floating(&mut self, number: f64, digits: std::fmt::Arguments<'_>) {
        if number.is_nan() {
            self.raw("\"NaN\"");
        } else if number.is_infinite() {
            self.raw(if number > 0.0 { "\"Infinity\"" } else { "\"-Infinity\"" });
        } else {
            self.display(digits);
        }
    }

    fn extended(&mut self, extended: &Extended) -> Result {
        match extended {
            Extended::Date(milliseconds) => self.typed_number("g:Date", milliseconds),
            Extended::Timestamp(milliseconds) => self.typed_number("g:Timestamp", milliseconds),
            Extended::Class(name) => self.typed_text("g:Class", name),
            Extended::Bytes(bytes) => {
                self.typed_text("gx:ByteBuffer", &base64::engine::general_purpose::STANDARD.encode(bytes))
            }
            Extended::InetAddress(address) => self.typed_text("gx:InetAddress", &address.to_string()),
            other => {
                let text = iso::text(other).unwrap_or_default();
                self.typed_text(&format!("gx:{}", other.type_name()), &text)
            }
        }
    }

    /// A map, as this dialect has maps.
    pub(crate) fn map(&mut self, map: &Map) -> Result {
        if self.typed_collections() {
            return self
                .typed("g:Map", |writer| writer.values(map.iter().flat_map(|(key, value)| [key, value])));
        }
        self.raw("{");
        for (index, (key, value)) in map.iter().enumerate() {
            match key {
                Value::String(text) => self.key(index == 0, text),
                key => {
                    let text = key_text(key, self.dialect.version, self.depth)?;
                    self.key(index == 0, &text);
                }
            }
            self.value(value)?;
        }
        self.raw("}");
        Ok(())
    }

    fn bulk(&mut self, bulk: &Bulk) -> Result {
        if self.typed_collections() {
            return self.typed("g:BulkSet", |writer| {
                writer.array(bulk, |writer, (value, count)| {
                    writer.value(value)?;
                    writer.raw(",");
                    writer.typed_number("g:Int64", count)
                })
            });
        }
        let total = bulk.values().fold(0, |sum: u64, count| sum.saturating_add(*count));
        if !read::written_out(total) {
            let message = format!("could not write {total} values out: the format has no bags");
            return Err(WriteError::too_large(message));
        }
        let each = bulk.iter().flat_map(|(value, count)| (0..*count).map(move |_| value));
        self.values(each)
    }

    fn vertex(&mut self, vertex: &Vertex) -> Result {
        let detail = vertex.detail.as_ref().ok_or_else(|| WriteError::no_details("a vertex"))?;
        self.typed("g:Vertex", |writer| {
            writer.raw("{\"id\":");
            writer.value(&detail.id)?;
            writer.raw(",\"label\":");
            writer.text(&detail.label);
            writer.kind_if_untyped("vertex");
            if !detail.properties.is_empty() {
                writer.raw(",\"properties\":");
                let label = writer.dialect != Dialect::V3_UNTYPED;
                writer.vertex_properties(&detail.properties, |writer, property| {
                    writer.typed("g:VertexProperty", |writer| writer.vertex_property(property, label))
                })?;
            }
            writer.raw("}");
            Ok(())
        })
    }

    /// What an element is, where no type says so.
    fn kind_if_untyped(&mut self, kind: &str) {
        if self.dialect == Dialect::V3_UNTYPED {
            self.raw(",\"type\":\"");
            self.raw(kind);
            self.raw("\"");
        }
    }

    /// `{"key": [property, …], …}`: the properties by their keys.
    pub(crate) fn vertex_properties(
        &mut self,
        properties: &[Arc<VertexProperty>],
        mut write: impl FnMut(&mut Self, &VertexProperty) -> Result,
    ) -> Result {
        if !are_grouped(properties) {
            let mut groups: IndexMap<&str, Vec<Arc<VertexProperty>>, FxBuildHasher> = IndexMap::default();
            for property in properties {
                groups.entry(&property.label).or_default().push(property.clone());
            }
            let sorted: Vec<_> = groups.into_values().flatten().collect();
            return self.grouped(&sorted, write);
        }
        self.grouped(properties, &mut write)
    }

    fn grouped(
        &mut self,
        properties: &[Arc<VertexProperty>],
        mut write: impl FnMut(&mut Self, &VertexProperty) -> Result,
    ) -> Result {
        self.raw("{");
        for (index, group) in properties.chunk_by(|a, b| a.label == b.label).enumerate() {
            self.key(index == 0, &group[0].label);
            self.array(group, |writer, property| write(writer, property))?;
        }
        self.raw("}");
        Ok(())
    }

    /// The inside of a property of a vertex; without its label where the key says it.
    pub(crate) fn vertex_property(&mut self, property: &VertexProperty, label: bool) -> Result {
        let detail =
            property.detail.as_ref().ok_or_else(|| WriteError::no_details("a property of a vertex"))?;
        self.raw("{\"id\":");
        self.value(&detail.id)?;
        self.raw(",\"value\":");
        self.value(&property.value)?;
        if label {
            self.raw(",\"label\":");
            self.text(&property.label);
        }
        if !detail.properties.is_empty() {
            self.raw(",\"properties\":");
            self.plain_properties(&detail.properties)?;
        }
        self.raw("}");
        Ok(())
    }

    /// `{"key": value, …}`
    pub(crate) fn plain_properties(&mut self, properties: &[Arc<Property>]) -> Result {
        self.raw("{");
        for (index, property) in properties.iter().enumerate() {
            self.key(index == 0, &property.key);
            self.value(&property.value)?;
        }
        self.raw("}");
        Ok(())
    }

    fn property(&mut self, property: &Property) -> Result {
        self.typed("g:Property", |writer| {
            writer.raw("{\"key\":");
            writer.text(&property.key);
            writer.raw(",\"value\":");
            writer.value(&property.value)?;
            writer.raw("}");
            Ok(())
        })
    }

    fn edge(&mut self, edge: &Edge) -> Result {
        let detail = edge.detail.as_ref().ok_or_else(|| WriteError::no_details("an edge"))?;
        let end = |vertex: &Vertex| {
            vertex.detail.clone().ok_or_else(|| WriteError::no_details("the end of an edge"))
        };
        let (source, target) = (end(&detail.source)?, end(&detail.target)?);
        self.typed("g:Edge", |writer| {
            writer.raw("{\"id\":");
            writer.value(&detail.id)?;
            writer.raw(",\"label\":");
            writer.text(&detail.label);
            writer.kind_if_untyped("edge");
            writer.raw(",\"inVLabel\":");
            writer.text(&target.label);
            writer.raw(",\"outVLabel\":");
            writer.text(&source.label);
            writer.raw(",\"inV\":");
            writer.value(&target.id)?;
            writer.raw(",\"outV\":");
            writer.value(&source.id)?;
            if !detail.properties.is_empty() {
                writer.raw(",\"properties\":");
                if writer.dialect == Dialect::V3_UNTYPED {
                    writer.plain_properties(&detail.properties)?;
                } else {
                    writer.raw("{");
                    for (index, property) in detail.properties.iter().enumerate() {
                        writer.key(index == 0, &property.key);
                        writer.property(property)?;
                    }
                    writer.raw("}");
                }
            }
            writer.raw("}");
            Ok(())
        })
    }

    fn path(&mut self, path: &Path) -> Result {
        self.typed("g:Path", |writer| {
            writer.raw("{\"labels\":");
            writer.list(&path.labels, |writer, labels| {
                let text = |writer: &mut Self, label: &Arc<str>| {
                    writer.text(label);
                    Ok(())
                };
                if writer.typed_collections() {
                    writer.typed("g:Set", |writer| writer.array(labels, text))
                } else {
                    writer.array(labels, text)
                }
            })?;
            writer.raw(",\"objects\":");
            writer.list(&path.objects, Self::value)?;
            writer.raw("}");
            Ok(())
        })
    }

    fn tree(&mut self, tree: &Tree) -> Result {
        self.depth = self.depth.checked_sub(1).ok_or_else(|| {
            WriteError::too_large(format!("could not write a tree deeper than {DEPTH_MAX}"))
        })?;
        self.typed("g:Tree", |writer| {
            writer.array(&tree.children, |writer, (value, below)| {
                writer.raw("{\"key\":");
                writer.value(value)?;
                writer.raw(",\"value\":");
                writer.tree(below)?;
                writer.raw("}");
                Ok(())
            })
        })?;
        self.depth += 1;
        Ok(())
    }

    fn subgraph(&mut self, subgraph: &Subgraph) -> Result {
        self.typed("tinker:graph", |writer| {
            writer.raw("{\"vertices\":");
            writer.array(&subgraph.vertices, Self::vertex)?;
            writer.raw(",\"edges\":");
            writer.array(&subgraph.edges, |writer, edge| writer.edge(edge))?;
            writer.raw("}");
            Ok(())
        })
    }

    /// A map with texts as keys, written member by member.
    fn members(&mut self, write: impl FnOnce(&mut Members<'_, '_>) -> Result) -> Result {
        let typed = self.typed_collections();
        self.raw(if typed { "{\"@type\":\"g:Map\",\"@value\":[" } else { "{" });
        write(&mut Members { writer: self, typed, first: true })?;
        self.raw(if typed { "]}" } else { "}" });
        Ok(())
    }

    fn metrics(&mut self, metrics: &Metrics) -> Result {
        self.typed("g:TraversalMetrics", |writer| {
            writer.members(|members| {
                members.member("dur", |writer| writer.double(milliseconds(metrics.nanoseconds)))?;
                members.member("metrics", |writer| {
                    writer.list(&metrics.steps, |writer, metric| writer.metric(metric))
                })
            })
        })
    }

    fn metric(&mut self, metric: &Metric) -> Result {
        self.depth = self.depth.checked_sub(1).ok_or_else(|| {
            WriteError::too_large(format!("could not write metrics deeper than {DEPTH_MAX}"))
        })?;
        self.typed("g:Metrics", |writer| {
            writer.members(|members| {
                members.member("dur", |writer| writer.double(milliseconds(metric.nanoseconds)))?;
                if !metric.counts.is_empty() {
                    members.member("counts", |writer| {
                        writer.members(|members| {
                            metric.counts.iter().try_for_each(|(name, count)| {
                                members.member(name, |writer| writer.typed_number("g:Int64", count))
                            })
                        })
                    })?;
                }
                members.member("name", |writer| {
                    writer.text(&metric.name);
                    Ok(())
                })?;
                if !metric.annotations.is_empty() {
                    members.member("annotations", |writer| {
                        writer.members(|members| {
                            metric.annotations.iter().try_for_each(|(name, value)| {
                                members.member(name, |writer| writer.value(value))
                            })
                        })
                    })?;
                }
                members.member("id", |writer| {
                    writer.text(&metric.id);
                    Ok(())
                })?;
                if !metric.nested.is_empty() {
                    members.member("metrics", |writer| {
                        writer.list(&metric.nested, |writer, metric| writer.metric(metric))
                    })?;
                }
                Ok(())
            })
        })?;
        self.depth += 1;
        Ok(())
    }

    fn predicate(&mut self, p: &P) -> Result {
        self.depth = self.depth.checked_sub(1).ok_or_else(|| {
            WriteError::too_large(format!(
                "could not write predicates more than {DEPTH_MAX} inside one another"
            ))
        })?;
        let parts = parts::predicate_parts(p);
        let kind = if matches!(parts, PredicateParts::Text(..)) { "g:TextP" } else { "g:P" };
        self.typed(kind, |writer| {
            writer.raw("{\"predicate\":\"");
            let (PredicateParts::One(name, _)
            | PredicateParts::Many(name, _)
            | PredicateParts::Nested(name, _)
            | PredicateParts::Text(name, _)) = &parts;
            writer.raw(name);
            writer.raw("\",\"value\":");
            match &parts {
                PredicateParts::One(_, value) | PredicateParts::Text(_, value) => writer.value(value)?,
                PredicateParts::Many(_, values) => writer.list(values, Self::value)?,
                PredicateParts::Nested(_, all) => writer.array(all, Self::predicate)?,
            }
            writer.raw("}");
            Ok(())
        })?;
        self.depth += 1;
        Ok(())
    }

    fn bytecode(&mut self, bytecode: &Bytecode) -> Result {
        self.typed("g:Bytecode", |writer| {
            writer.raw("{");
            let mut first = true;
            for (name, instructions) in [("source", &bytecode.source), ("step", &bytecode.steps)] {
                if !instructions.is_empty() {
                    writer.key(first, name);
                    writer.array(instructions, Self::instruction)?;
                    first = false;
                }
            }
            writer.raw("}");
            Ok(())
        })
    }

    fn instruction(&mut self, instruction: &Instruction) -> Result {
        self.raw("[");
        self.text(&instruction.name);
        for argument in &instruction.arguments {
            self.raw(",");
            self.value(argument)?;
        }
        self.raw("]");
        Ok(())
    }

    fn strategy(&mut self, strategy: &Strategy) -> Result {
        self.typed(&format!("g:{}", parts::simple_name(&strategy.name)), |writer| {
            writer.raw("{\"fqcn\":");
            writer.text(&parts::strategy_class(&strategy.name));
            writer.raw(",\"conf\":{");
            for (index, (name, value)) in strategy.options.iter().enumerate() {
                writer.key(index == 0, name);
                writer.value(value)?;
            }
            writer.raw("}}");
            Ok(())
        })
    }

    pub(crate) fn traverser(&mut self, traverser: &Traverser) -> Result {
        self.typed("g:Traverser", |writer| {
            writer.raw("{\"bulk\":");
            writer.typed_number("g:Int64", traverser.bulk)?;
            writer.raw(",\"value\":");
            writer.value(&traverser.value)?;
            writer.raw("}");
            Ok(())
        })
    }
}

/// A map with texts as keys that is being written.
struct Members<'w, 'o> {
    writer: &'w mut Writer<'o>,
    typed: bool,
    first: bool,
}

impl<'o> Members<'_, 'o> {
    fn member(&mut self, key: &str, value: impl FnOnce(&mut Writer<'o>) -> Result) -> Result {
        if !self.first {
            self.writer.raw(",");
        }
        self.first = false;
        self.writer.text(key);
        self.writer.raw(if self.typed { "," } else { ":" });
        value(self.writer)
    }
}

fn milliseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e6
}

/// Digits take quadratic time, and no reader would take more.
fn checked_bits(bits: u64) -> Result {
    if bits <= 8 * crate::limits::INTEGER_BYTES_MAX as u64 {
        Ok(())
    } else {
        Err(WriteError::too_large(format!("could not write a number of {bits} bits")))
    }
}

/// Whether properties with one key stand side by side.
fn are_grouped(properties: &[Arc<VertexProperty>]) -> bool {
    if properties.len() > PROPERTIES_FEW {
        return false;
    }
    (1..properties.len()).all(|at| {
        let label = &properties[at].label;
        *label == properties[at - 1].label || properties[..at - 1].iter().all(|other| other.label != *label)
    })
}

/// What a key is where keys are texts: as TinkerPop prints it.
fn key_text(key: &Value, version: u8, depth: usize) -> Result<String> {
    let depth = depth.checked_sub(1).ok_or_else(|| {
        WriteError::too_large(format!("could not write keys more than {DEPTH_MAX} inside one another"))
    })?;
    let text = |value: &Value| key_text(value, version, depth);
    let all = |values: &mut dyn Iterator<Item = &Value>| -> Result<String> {
        Ok(values.map(text).collect::<Result<Vec<_>>>()?.join(", "))
    };
    let details = || WriteError::no_details("an element as a key");
    Ok(match key {
        Value::Null => "null".to_owned(),
        Value::Boolean(value) => value.to_string(),
        Value::Byte(number) => number.to_string(),
        Value::Short(number) => number.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Long(number) => number.to_string(),
        Value::Float(number) => format!("{number:?}"),
        Value::Double(number) => format!("{number:?}"),
        Value::BigInteger(number) => {
            checked_bits(number.bits())?;
            number.to_string()
        }
        Value::BigDecimal(number) => {
            let (unscaled, scale) = number.as_bigint_and_scale();
            checked_bits(unscaled.bits())?;
            number::checked_scale(scale).map_err(WriteError::too_large)?;
            number::decimal_text(number)
        }
        Value::Char(character) => character.to_string(),
        Value::String(text) => text.to_string(),
        Value::Uuid(uuid) => uuid.to_string(),
        Value::DateTime(time) => {
            let (y, m, d, t, o) = iso::date_time_parts(time);
            iso::date_time_text(y, m, d, t, o)
        }
        Value::Duration(duration) => iso::duration_text(*duration),
        Value::Token(token) => token.name().to_owned(),
        Value::List(values) => format!("[{}]", all(&mut values.iter())?),
        Value::Set(values) => format!("[{}]", all(&mut values.iter())?),
        Value::Map(map) => {
            let pairs = map.iter().map(|(key, value)| Ok(format!("{}={}", text(key)?, text(value)?)));
            format!("{{{}}}", pairs.collect::<Result<Vec<_>>>()?.join(", "))
        }
        Value::Vertex(vertex) => {
            let id = text(&vertex.detail.as_ref().ok_or_else(details)?.id)?;
            if version == 2 { id } else { format!("v[{id}]") }
        }
        Value::Edge(edge) => {
            let detail = edge.detail.as_ref().ok_or_else(details)?;
            let id = text(&detail.id)?;
            if version == 2 {
                id
            } else {
                let (source, target) = (text(detail.source.id())?, text(detail.target.id())?);
                format!("e[{id}][{source}-{}->{target}]", detail.label)
            }
        }
        Value::VertexProperty(property) if version == 2 => {
            text(&property.detail.as_ref().ok_or_else(details)?.id)?
        }
        Value::VertexProperty(property) => format!("vp[{}->{}]", property.label, text(&property.value)?),
        Value::Property(property) => format!("p[{}->{}]", property.key, text(&property.value)?),
        Value::Path(path) => format!("path[{}]", all(&mut path.objects.iter())?),
        Value::Extended(extended) => match extended.as_ref() {
            Extended::Date(number) | Extended::Timestamp(number) => number.to_string(),
            Extended::Class(name) => name.to_string(),
            Extended::InetAddress(address) => address.to_string(),
            Extended::Bytes(bytes) => base64::engine::general_purpose::STANDARD.encode(bytes),
            other => iso::text(other).unwrap_or_default(),
        },
        other => {
            let message = format!("could not write a value of type {} as a key of JSON", other.type_name());
            return Err(WriteError::unsupported(message));
        }
    })
}

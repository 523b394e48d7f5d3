//! GraphSON writer: one pass over the value into the output buffer.
//!
//! Without types, elements of GraphSON 3 have a member `type`, and values without a JSON form are strings.
//! Where JSON requires string keys, other keys are written as TinkerPop prints them; an element as a key is
//! its id in GraphSON 2.

use super::dialect::Dialect;
use super::key::key_text;
use super::read;
use crate::json::write_string;
use crate::limits::{BULK_WRITTEN_BYTES_MAX, DEPTH_MAX};
use crate::traverser::Traverser;
use crate::wire_names::{self, WirePredicate};
use crate::{WriteError, iso8601, number};
use base64::Engine;
use std::io::Write;
use vervet_gremlin::{Bulk, Bytecode, Extended, Instruction, Map, P, Strategy, Value};

pub(super) type Result<T = ()> = std::result::Result<T, WriteError>;

pub(crate) struct Writer<'a> {
    pub(super) out: &'a mut Vec<u8>,
    pub(super) dialect: Dialect,
    pub(super) depth: usize,
}

/// Maximum multiplicity in a bag.
const COUNT_MAX: u64 = i64::MAX as u64;

/// Runs `write`; truncates the output to its old length on an error.
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
    /// Appends JSON text.
    pub(crate) fn raw(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    pub(crate) fn text(&mut self, text: &str) {
        write_string(text, self.out);
    }

    /// Writes a key with its colon, preceded by a comma unless it is the first.
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

    /// Writes an inner value, with a type annotation in typed dialects.
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

    /// Writes a string with a type annotation.
    pub(super) fn typed_text(&mut self, kind: &str, text: &str) -> Result {
        self.typed(kind, |writer| {
            writer.text(text);
            Ok(())
        })
    }

    /// Writes a number with a type annotation.
    pub(super) fn typed_number(&mut self, kind: &str, number: impl std::fmt::Display) -> Result {
        self.typed(kind, |writer| {
            writer.display(number);
            Ok(())
        })
    }

    /// Writes an array.
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

    pub(super) fn values<'v>(&mut self, values: impl IntoIterator<Item = &'v Value>) -> Result {
        self.array(values, Self::value)
    }

    /// Whether lists, sets and maps have type annotations.
    pub(super) fn typed_collections(&self) -> bool {
        self.dialect.typed && self.dialect.version >= 3
    }

    /// Writes a list of values in the form of the dialect.
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
            WriteError::too_large(format!("cannot write values with a nesting depth over {DEPTH_MAX}"))
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
                number::checked_bits(number.bits())?;
                return self.typed_number("gx:BigInteger", number);
            }
            Value::BigDecimal(number) => {
                let (unscaled, scale) = number.as_bigint_and_scale();
                number::checked_bits(unscaled.bits())?;
                number::checked_scale(scale).map_err(WriteError::too_large)?;
                return self.typed_number("gx:BigDecimal", number::decimal_text(number));
            }
            Value::Char(character) => {
                return self.typed_text("gx:Char", character.encode_utf8(&mut [0; 4]));
            }
            Value::Uuid(uuid) => return self.typed_text("g:UUID", &uuid.to_string()),
            Value::DateTime(time) => {
                let (y, m, d, t, o) = iso8601::date_time_parts(time);
                return self.typed_text("gx:OffsetDateTime", &iso8601::date_time_text(y, m, d, t, o));
            }
            Value::Duration(duration) => {
                return self.typed_text("gx:Duration", &iso8601::duration_text(*duration));
            }
            Value::Extended(extended) => return self.extended(extended),
            Value::List(values) => return self.list(values.iter(), Self::value),
            Value::Set(values) if self.typed_collections() => {
                return self.typed("g:Set", |writer| writer.values(values.iter()));
            }
            Value::Set(values) => return self.values(values.iter()),
            Value::Map(map) => return self.map(map),
            Value::Entry(entry) => return self.map(&Map::from_iter([(entry.0.clone(), entry.1.clone())])),
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
                return self.typed(&format!("g:{}", wire_names::token_kind(token)), |writer| {
                    writer.text(token.name());
                    Ok(())
                });
            }
            Value::WithCardinality(pair) => {
                return self.bytecode(&wire_names::cardinality_value(pair.0, &pair.1));
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

    pub(super) fn double(&mut self, number: f64) -> Result {
        self.typed("g:Double", |writer| {
            writer.floating(number, format_args!("{number:?}"));
            Ok(())
        })
    }

    /// Writes `digits`, or a string for numbers without a JSON form.
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
                let text = iso8601::text(other).unwrap_or_default();
                self.typed_text(&format!("gx:{}", other.type_name()), &text)
            }
        }
    }

    /// Writes a map in the form of the dialect.
    pub(crate) fn map(&mut self, map: &Map) -> Result {
        if self.typed_collections() {
            return self
                .typed("g:Map", |writer| writer.values(map.iter().flat_map(|(key, value)| [key, value])));
        }
        if self.dialect.typed && looks_typed(map) {
            let message =
                "could not write a map that begins with the key @type: it would be read as a typed value";
            return Err(WriteError::unsupported(message));
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
                    if *count > COUNT_MAX {
                        return Err(WriteError::too_large(format!(
                            "could not write a value of a bag {count} times"
                        )));
                    }
                    writer.typed_number("g:Int64", count)
                })
            });
        }
        let total: u128 = bulk.values().map(|count| u128::from(*count)).sum();
        if !u64::try_from(total).is_ok_and(read::may_expand_bulk) {
            let message = format!("could not write {total} values out: the format has no bags");
            return Err(WriteError::too_large(message));
        }
        let each = bulk.iter().flat_map(|(value, count)| (0..*count).map(move |_| value));
        let start = self.out.len();
        self.array(each, |writer, value| {
            writer.value(value)?;
            if writer.out.len() - start > BULK_WRITTEN_BYTES_MAX {
                let message =
                    format!("could not write a bag out to more than {BULK_WRITTEN_BYTES_MAX} bytes");
                return Err(WriteError::too_large(message));
            }
            Ok(())
        })
    }

    fn predicate(&mut self, p: &P) -> Result {
        self.depth = self.depth.checked_sub(1).ok_or_else(|| {
            WriteError::too_large(format!("cannot write predicates with a nesting depth over {DEPTH_MAX}"))
        })?;
        let parts = wire_names::wire_predicate(p);
        let kind = if matches!(parts, WirePredicate::Text(..)) { "g:TextP" } else { "g:P" };
        self.typed(kind, |writer| {
            writer.raw("{\"predicate\":\"");
            let (WirePredicate::One(name, _)
            | WirePredicate::Many(name, _)
            | WirePredicate::Nested(name, _)
            | WirePredicate::Text(name, _)) = &parts;
            writer.raw(name);
            writer.raw("\",\"value\":");
            match &parts {
                WirePredicate::One(_, value) | WirePredicate::Text(_, value) => writer.value(value)?,
                WirePredicate::Many(_, values) => writer.list(values, Self::value)?,
                WirePredicate::Nested(_, all) => writer.array(all, Self::predicate)?,
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
        self.typed(&format!("g:{}", wire_names::simple_name(&strategy.name)), |writer| {
            writer.raw("{\"fqcn\":");
            writer.text(&wire_names::strategy_class(&strategy.name));
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

/// Whether a map written as an object would be read as a typed value.
fn looks_typed(map: &Map) -> bool {
    let mut keys = map.iter().map(|(key, _)| match key {
        Value::String(key) => &**key,
        _ => "",
    });
    match keys.next() {
        Some("@type") => true,
        Some("@value") => keys.next() == Some("@type"),
        _ => false,
    }
}

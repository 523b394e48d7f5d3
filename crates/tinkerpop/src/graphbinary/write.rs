//! GraphBinary 1 writer: one pass over the value into the output buffer.

use super::code;
use crate::limits::{DEPTH_MAX, INTEGER_BYTES_MAX};
use crate::traverser::Traverser;
use crate::wire_names::{self, WirePredicate};
use crate::{WriteError, iso8601, number};
use num_bigint::BigInt;
use std::net::IpAddr;
use std::sync::Arc;
use vervet_gremlin::{
    Bytecode, Edge, Extended, Instruction, Map, Metric, P, Path, Property, Strategy, Subgraph, Token, Tree,
    Value, Vertex, VertexProperty,
};

pub(super) type Result<T = ()> = std::result::Result<T, WriteError>;

pub(super) struct Writer<'a> {
    out: &'a mut Vec<u8>,
    depth: usize,
}

/// Runs `write`; truncates `out` to its old length on an error.
pub(super) fn whole(out: &mut Vec<u8>, write: impl FnOnce(&mut Writer<'_>) -> Result) -> Result {
    let start = out.len();
    let result = write(&mut Writer { out, depth: DEPTH_MAX });
    if result.is_err() {
        out.truncate(start);
    }
    result
}

impl Writer<'_> {
    pub(super) fn byte(&mut self, byte: u8) {
        self.out.push(byte);
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    pub(super) fn int(&mut self, number: i32) {
        self.bytes(&number.to_be_bytes());
    }

    fn long(&mut self, number: i64) {
        self.bytes(&number.to_be_bytes());
    }

    /// Writes code and flag of a non-null value.
    fn head(&mut self, code: u8) {
        self.bytes(&[code, 0]);
    }

    fn null(&mut self) {
        self.bytes(&[code::NULL, 1]);
    }

    fn count(&mut self, count: usize) -> Result {
        let count = i32::try_from(count)
            .map_err(|_| WriteError::too_large(format!("could not write {count} values or bytes in one")))?;
        self.int(count);
        Ok(())
    }

    pub(super) fn string(&mut self, text: &str) -> Result {
        self.count(text.len())?;
        self.bytes(text.as_bytes());
        Ok(())
    }

    fn enter(&mut self) -> Result {
        self.depth = self.depth.checked_sub(1).ok_or_else(|| {
            WriteError::too_large(format!("cannot write values with a nesting depth over {DEPTH_MAX}"))
        })?;
        Ok(())
    }

    fn leave(&mut self) {
        self.depth += 1;
    }

    /// Writes code, flag, value.
    pub(super) fn value(&mut self, value: &Value) -> Result {
        self.enter()?;
        self.any(value)?;
        self.leave();
        Ok(())
    }

    fn any(&mut self, value: &Value) -> Result {
        match value {
            Value::Null => self.null(),
            Value::Boolean(value) => self.bytes(&[code::BOOLEAN, 0, u8::from(*value)]),
            Value::Byte(number) => {
                self.head(code::BYTE);
                self.bytes(&number.to_be_bytes());
            }
            Value::Short(number) => {
                self.head(code::SHORT);
                self.bytes(&number.to_be_bytes());
            }
            Value::Int(number) => {
                self.head(code::INT);
                self.int(*number);
            }
            Value::Long(number) => {
                self.head(code::LONG);
                self.long(*number);
            }
            Value::Float(number) => {
                self.head(code::FLOAT);
                self.bytes(&number.to_be_bytes());
            }
            Value::Double(number) => {
                self.head(code::DOUBLE);
                self.bytes(&number.to_be_bytes());
            }
            Value::BigInteger(number) => {
                self.head(code::BIG_INTEGER);
                return self.big_integer(number);
            }
            Value::BigDecimal(number) => {
                let (unscaled, scale) = number.as_bigint_and_scale();
                number::checked_scale(scale).map_err(WriteError::too_large)?;
                self.head(code::BIG_DECIMAL);
                self.int(i32::try_from(scale).unwrap_or_default());
                return self.big_integer(&unscaled);
            }
            Value::Char(character) => {
                self.head(code::CHAR);
                self.bytes(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            Value::String(text) => {
                self.head(code::STRING);
                return self.string(text);
            }
            Value::Uuid(uuid) => {
                self.head(code::UUID);
                self.bytes(uuid.as_bytes());
            }
            Value::DateTime(time) => {
                let (year, month, day, time, offset) = iso8601::date_time_parts(time);
                return self.extended(&Extended::OffsetDateTime(year, month, day, time, offset));
            }
            Value::Duration(duration) => {
                self.head(code::DURATION);
                self.long(duration.seconds);
                self.int(i32::try_from(duration.nanoseconds).unwrap_or_default());
            }
            Value::Extended(extended) => return self.extended(extended),
            Value::List(values) => {
                self.head(code::LIST);
                return self.values(values.len(), values.iter());
            }
            Value::Set(values) => {
                self.head(code::SET);
                return self.values(values.len(), values.iter());
            }
            Value::Map(map) => {
                self.head(code::MAP);
                return self.map(map);
            }
            Value::Entry(entry) => {
                self.head(code::MAP);
                return self.map(&Map::from_iter([(entry.0.clone(), entry.1.clone())]));
            }
            Value::Bulk(bulk) => {
                self.head(code::BULK_SET);
                self.count(bulk.len())?;
                for (value, count) in bulk.iter() {
                    self.value(value)?;
                    let times = i64::try_from(*count).map_err(|_| {
                        WriteError::too_large(format!("could not write a value of a bag {count} times"))
                    })?;
                    self.long(times);
                }
            }
            Value::Vertex(vertex) => return self.vertex(vertex),
            Value::Edge(edge) => return self.edge(edge),
            Value::VertexProperty(property) => return self.vertex_property(property, false),
            Value::Property(property) => return self.property(property),
            Value::Path(path) => return self.path(path),
            Value::Tree(tree) => {
                self.head(code::TREE);
                return self.tree(tree);
            }
            Value::Subgraph(subgraph) => return self.subgraph(subgraph),
            Value::Metrics(metrics) => {
                self.head(code::TRAVERSAL_METRICS);
                self.nanoseconds(metrics.nanoseconds);
                return self.metrics(&metrics.steps);
            }
            Value::Token(token) => return self.token(*token),
            Value::WithCardinality(pair) => {
                return self.bytecode(&wire_names::cardinality_value(pair.0, &pair.1));
            }
            Value::P(p) => return self.predicate(p),
            Value::Traversal(bytecode) => return self.bytecode(bytecode),
            Value::Strategy(strategy) => return self.strategy(strategy),
            Value::Lambda(lambda) => {
                self.head(code::LAMBDA);
                self.string(&lambda.language)?;
                self.string(&lambda.script)?;
                self.int(lambda.arity);
            }
        }
        Ok(())
    }

    fn big_integer(&mut self, number: &BigInt) -> Result {
        if number.bits() > 8 * INTEGER_BYTES_MAX as u64 - 1 {
            return Err(WriteError::too_large(format!("could not write a number of {} bits", number.bits())));
        }
        let bytes = number.to_signed_bytes_be();
        self.count(bytes.len())?;
        self.bytes(&bytes);
        Ok(())
    }

    fn extended(&mut self, extended: &Extended) -> Result {
        match extended {
            Extended::Date(milliseconds) => {
                self.head(code::DATE);
                self.long(*milliseconds);
            }
            Extended::Timestamp(milliseconds) => {
                self.head(code::TIMESTAMP);
                self.long(*milliseconds);
            }
            Extended::Instant(seconds, nanoseconds) => {
                self.head(code::INSTANT);
                self.long(*seconds);
                self.int(*nanoseconds);
            }
            Extended::LocalDate(year, month, day) => {
                self.head(code::LOCAL_DATE);
                self.date(*year, *month, *day);
            }
            Extended::LocalDateTime(year, month, day, time) => {
                self.head(code::LOCAL_DATE_TIME);
                self.date(*year, *month, *day);
                self.long(*time);
            }
            Extended::LocalTime(time) => {
                self.head(code::LOCAL_TIME);
                self.long(*time);
            }
            Extended::MonthDay(month, day) => {
                self.head(code::MONTH_DAY);
                self.bytes(&[*month, *day]);
            }
            Extended::OffsetDateTime(year, month, day, time, offset) => {
                self.head(code::OFFSET_DATE_TIME);
                self.date(*year, *month, *day);
                self.long(*time);
                self.int(*offset);
            }
            Extended::OffsetTime(time, offset) => {
                self.head(code::OFFSET_TIME);
                self.long(*time);
                self.int(*offset);
            }
            Extended::Period(years, months, days) => {
                self.head(code::PERIOD);
                self.int(*years);
                self.int(*months);
                self.int(*days);
            }
            Extended::Year(year) => {
                self.head(code::YEAR);
                self.int(*year);
            }
            Extended::YearMonth(year, month) => {
                self.head(code::YEAR_MONTH);
                self.int(*year);
                self.byte(*month);
            }
            // The format has no field for the name of the zone.
            Extended::ZonedDateTime(year, month, day, time, offset, _) => {
                self.head(code::ZONED_DATE_TIME);
                self.date(*year, *month, *day);
                self.long(*time);
                self.int(*offset);
            }
            Extended::ZoneOffset(offset) => {
                self.head(code::ZONE_OFFSET);
                self.int(*offset);
            }
            Extended::InetAddress(address) => {
                self.head(code::INET_ADDRESS);
                match address {
                    IpAddr::V4(address) => {
                        self.int(4);
                        self.bytes(&address.octets());
                    }
                    IpAddr::V6(address) => {
                        self.int(16);
                        self.bytes(&address.octets());
                    }
                }
            }
            Extended::Bytes(bytes) => {
                self.head(code::BYTES);
                self.count(bytes.len())?;
                self.bytes(bytes);
            }
            Extended::Class(name) => {
                self.head(code::CLASS);
                return self.string(name);
            }
        }
        Ok(())
    }

    fn date(&mut self, year: i32, month: u8, day: u8) {
        self.int(year);
        self.bytes(&[month, day]);
    }

    /// Writes a list without code and flag.
    fn values<'v>(&mut self, count: usize, values: impl Iterator<Item = &'v Value>) -> Result {
        self.count(count)?;
        for value in values {
            self.value(value)?;
        }
        Ok(())
    }

    /// Writes a map without code and flag.
    pub(super) fn map(&mut self, map: &Map) -> Result {
        self.count(map.len())?;
        for (key, value) in map {
            self.value(key)?;
            self.value(value)?;
        }
        Ok(())
    }

    fn vertex(&mut self, vertex: &Vertex) -> Result {
        let detail = vertex.detail.as_ref().ok_or_else(|| WriteError::no_details("a vertex"))?;
        self.head(code::VERTEX);
        self.value(&detail.id)?;
        self.string(&detail.label)?;
        if detail.properties.is_empty() {
            self.null();
            return Ok(());
        }
        self.head(code::LIST);
        self.count(detail.properties.len())?;
        for property in &detail.properties {
            self.vertex_property(property, true)?;
        }
        Ok(())
    }

    fn edge(&mut self, edge: &Edge) -> Result {
        let detail = edge.detail.as_ref().ok_or_else(|| WriteError::no_details("an edge"))?;
        self.head(code::EDGE);
        self.value(&detail.id)?;
        self.string(&detail.label)?;
        for end in [&detail.target, &detail.source] {
            let end = end.detail.as_ref().ok_or_else(|| WriteError::no_details("the end of an edge"))?;
            self.value(&end.id)?;
            self.string(&end.label)?;
        }
        self.null();
        if detail.properties.is_empty() {
            self.null();
            return Ok(());
        }
        self.head(code::LIST);
        self.properties(&detail.properties)
    }

    /// Writes a list of properties without code and flag.
    fn properties(&mut self, properties: &[Arc<Property>]) -> Result {
        self.count(properties.len())?;
        properties.iter().try_for_each(|property| self.property(property))
    }

    fn vertex_property(&mut self, property: &VertexProperty, inside_vertex: bool) -> Result {
        let detail =
            property.detail.as_ref().ok_or_else(|| WriteError::no_details("a property of a vertex"))?;
        self.head(code::VERTEX_PROPERTY);
        self.value(&detail.id)?;
        self.string(&property.label)?;
        self.value(&property.value)?;
        self.null();
        if detail.properties.is_empty() && !inside_vertex {
            self.null();
            return Ok(());
        }
        self.head(code::LIST);
        self.properties(&detail.properties)
    }

    fn property(&mut self, property: &Property) -> Result {
        self.head(code::PROPERTY);
        self.string(&property.key)?;
        self.value(&property.value)?;
        self.null();
        Ok(())
    }

    fn path(&mut self, path: &Path) -> Result {
        self.head(code::PATH);
        self.head(code::LIST);
        self.count(path.labels.len())?;
        for labels in &path.labels {
            self.head(code::SET);
            self.count(labels.len())?;
            for label in labels {
                self.head(code::STRING);
                self.string(label)?;
            }
        }
        self.head(code::LIST);
        self.values(path.objects.len(), path.objects.iter())
    }

    fn tree(&mut self, tree: &Tree) -> Result {
        self.enter()?;
        self.count(tree.children.len())?;
        for (value, below) in &tree.children {
            self.value(value)?;
            self.tree(below)?;
        }
        self.leave();
        Ok(())
    }

    fn subgraph(&mut self, subgraph: &Subgraph) -> Result {
        self.head(code::GRAPH);
        self.count(subgraph.vertices.len())?;
        for vertex in &subgraph.vertices {
            let detail = vertex.detail.as_ref().ok_or_else(|| WriteError::no_details("a vertex"))?;
            self.value(&detail.id)?;
            self.string(&detail.label)?;
            self.count(detail.properties.len())?;
            for property in &detail.properties {
                let detail = property
                    .detail
                    .as_ref()
                    .ok_or_else(|| WriteError::no_details("a property of a vertex"))?;
                self.value(&detail.id)?;
                self.string(&property.label)?;
                self.value(&property.value)?;
                self.null();
                self.properties(&detail.properties)?;
            }
        }
        self.count(subgraph.edges.len())?;
        for edge in &subgraph.edges {
            let detail = edge.detail.as_ref().ok_or_else(|| WriteError::no_details("an edge"))?;
            self.value(&detail.id)?;
            self.string(&detail.label)?;
            for end in [&detail.target, &detail.source] {
                let end = end.detail.as_ref().ok_or_else(|| WriteError::no_details("the end of an edge"))?;
                self.value(&end.id)?;
                self.null();
            }
            self.null();
            self.properties(&detail.properties)?;
        }
        Ok(())
    }

    fn token(&mut self, token: Token) -> Result {
        let kind = wire_names::token_kind(token);
        let code = code::of_enumeration(kind)
            .ok_or_else(|| WriteError::unsupported(format!("could not write a member of {kind}")))?;
        self.head(code);
        self.head(code::STRING);
        self.string(token.name())
    }

    fn predicate(&mut self, p: &P) -> Result {
        self.enter()?;
        let parts = wire_names::wire_predicate(p);
        self.head(if matches!(parts, WirePredicate::Text(..)) { code::TEXT_P } else { code::P });
        match &parts {
            WirePredicate::One(name, value) | WirePredicate::Text(name, value) => {
                self.string(name)?;
                self.int(1);
                self.value(value)?;
            }
            WirePredicate::Many(name, values) => {
                self.string(name)?;
                self.values(values.len(), values.iter())?;
            }
            WirePredicate::Nested(name, all) => {
                self.string(name)?;
                self.count(all.len())?;
                all.iter().try_for_each(|p| self.predicate(p))?;
            }
        }
        self.leave();
        Ok(())
    }

    fn bytecode(&mut self, bytecode: &Bytecode) -> Result {
        self.head(code::BYTECODE);
        self.instructions(&bytecode.steps)?;
        self.instructions(&bytecode.source)
    }

    fn instructions(&mut self, instructions: &[Instruction]) -> Result {
        self.count(instructions.len())?;
        for instruction in instructions {
            self.string(&instruction.name)?;
            self.values(instruction.arguments.len(), instruction.arguments.iter())?;
        }
        Ok(())
    }

    fn strategy(&mut self, strategy: &Strategy) -> Result {
        self.head(code::STRATEGY);
        self.string(&wire_names::strategy_class(&strategy.name))?;
        self.count(strategy.options.len())?;
        for (name, value) in &strategy.options {
            self.head(code::STRING);
            self.string(name)?;
            self.value(value)?;
        }
        Ok(())
    }

    fn nanoseconds(&mut self, nanoseconds: u64) {
        self.long(i64::try_from(nanoseconds).unwrap_or(i64::MAX));
    }

    /// Writes a list of metrics without code and flag.
    fn metrics(&mut self, metrics: &[Metric]) -> Result {
        self.enter()?;
        self.count(metrics.len())?;
        for metric in metrics {
            self.head(code::METRICS);
            self.string(&metric.id)?;
            self.string(&metric.name)?;
            self.nanoseconds(metric.nanoseconds);
            self.count(metric.counts.len())?;
            for (name, count) in &metric.counts {
                self.head(code::STRING);
                self.string(name)?;
                self.head(code::LONG);
                self.long(*count);
            }
            self.count(metric.annotations.len())?;
            for (name, value) in &metric.annotations {
                self.head(code::STRING);
                self.string(name)?;
                self.value(value)?;
            }
            self.metrics(&metric.nested)?;
        }
        self.leave();
        Ok(())
    }

    pub(super) fn traverser(&mut self, traverser: &Traverser) -> Result {
        self.head(code::TRAVERSER);
        self.long(traverser.bulk);
        self.value(&traverser.value)
    }

    /// Writes results of bytecode: a list with code and flag.
    pub(super) fn traversers(&mut self, traversers: &[Traverser]) -> Result {
        self.head(code::LIST);
        self.count(traversers.len())?;
        traversers.iter().try_for_each(|traverser| self.traverser(traverser))
    }
}

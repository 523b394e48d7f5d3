//! GraphBinary 1 reader. Every length is checked against the remaining input before an allocation.

use super::code;
use crate::limits::{DEPTH_MAX, INTEGER_BYTES_MAX, RESERVED_MAX};
use crate::traverser::{Item, Traverser};
use crate::{Limits, ReadError, iso8601, number, wire_names};
use bigdecimal::BigDecimal;
use indexmap::IndexMap;
use num_bigint::BigInt;
use std::sync::Arc;
use uuid::Uuid;
use vervet_gremlin::{
    Bulk, Bytecode, Edge, EdgeDetail, Extended, Instruction, Lambda, Map, Metric, Metrics, P, Path, Property,
    PropertyDetail, Set, Strategy, Subgraph, Tree, Value, Vertex, VertexDetail, VertexProperty,
};

pub(super) type Result<T> = std::result::Result<T, ReadError>;

pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: usize,
    values: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8], limits: Limits) -> Result<Self> {
        if bytes.len() > limits.bytes {
            let message = format!("expected at most {} bytes, found {}", limits.bytes, bytes.len());
            return Err(ReadError::too_large(limits.bytes, message));
        }
        Ok(Self { bytes, at: 0, depth: limits.depth.min(DEPTH_MAX), values: limits.values })
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn end(&self) -> Result<()> {
        match self.bytes.len() - self.at {
            0 => Ok(()),
            more => Err(ReadError::malformed(self.at, format!("expected the end, found {more} bytes more"))),
        }
    }

    /// Whether `bytes` are next; consumes nothing.
    pub(super) fn next_is(&self, bytes: &[u8]) -> bool {
        self.bytes[self.at..].starts_with(bytes)
    }

    /// Consumes the next `length` bytes.
    pub(super) fn take(&mut self, length: usize, what: &str) -> Result<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let Some(taken) = rest.get(..length) else {
            let message = format!("expected {what} of {length} bytes, found {} bytes", rest.len());
            return Err(ReadError::malformed(self.at, message));
        };
        self.at += length;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N]> {
        let bytes = self.take(N, what)?;
        Ok(bytes.try_into().expect("as many bytes were taken"))
    }

    pub(super) fn byte(&mut self, what: &str) -> Result<u8> {
        self.array::<1>(what).map(|[byte]| byte)
    }

    pub(super) fn int(&mut self) -> Result<i32> {
        self.array("an integer").map(i32::from_be_bytes)
    }

    fn long(&mut self) -> Result<i64> {
        self.array("an integer").map(i64::from_be_bytes)
    }

    /// Reads a number of items, each of at least one byte.
    fn count(&mut self, what: &str) -> Result<usize> {
        let at = self.at;
        let count = self.int()?;
        let left = self.bytes.len() - self.at;
        match usize::try_from(count) {
            Ok(count) if count <= left => Ok(count),
            Ok(count) => {
                Err(ReadError::malformed(at, format!("expected {count} {what}, found {left} bytes for them")))
            }
            Err(_) => Err(ReadError::malformed(at, format!("expected a number of {what}, found {count}"))),
        }
    }

    pub(super) fn string(&mut self) -> Result<&'a str> {
        let length = self.count("bytes of text")?;
        let at = self.at;
        let bytes = self.take(length, "text")?;
        std::str::from_utf8(bytes)
            .map_err(|error| ReadError::malformed(at + error.valid_up_to(), "expected UTF-8"))
    }

    /// Reads a flag; true if a value follows.
    pub(super) fn flag(&mut self) -> Result<bool> {
        let at = self.at;
        match self.byte("a flag")? {
            0 => Ok(true),
            1 => Ok(false),
            other => Err(ReadError::malformed(
                at,
                format!("expected a flag of 0 (a value) or 1 (null), found {other}"),
            )),
        }
    }

    pub(super) fn uuid(&mut self) -> Result<Uuid> {
        self.array("a UUID").map(Uuid::from_bytes)
    }

    /// Reads a value: code, flag, value.
    pub(super) fn value(&mut self) -> Result<Value> {
        let at = self.at;
        match self.item()? {
            Item::Value(value) => Ok(value),
            Item::Traverser(_) => Err(ReadError::malformed(
                at,
                "expected a value, found a traverser, which only stands in results",
            )),
        }
    }

    fn enter(&mut self) -> Result<()> {
        let Some(depth) = self.depth.checked_sub(1) else {
            return Err(ReadError::too_large(self.at, "expected a smaller nesting depth of values"));
        };
        let Some(values) = self.values.checked_sub(1) else {
            return Err(ReadError::too_large(self.at, "expected fewer values"));
        };
        (self.depth, self.values) = (depth, values);
        Ok(())
    }

    fn leave(&mut self) {
        self.depth += 1;
    }

    /// Reads a value or a traverser.
    pub(super) fn item(&mut self) -> Result<Item> {
        self.enter()?;
        let at = self.at;
        let code = self.byte("the code of a type")?;
        if code == code::CUSTOM {
            return Err(ReadError::unsupported(at, "expected a type of GraphBinary, found a custom one"));
        }
        let item = match (self.flag()?, code) {
            (false, _) => Item::Value(Value::Null),
            (true, code::NULL) => return Err(ReadError::malformed(at + 1, "expected a flag of 1 (null)")),
            (true, code::TRAVERSER) => {
                Item::Traverser(Traverser { bulk: self.long()?, value: self.value()? })
            }
            (true, code) => Item::Value(self.of_code(code, at)?),
        };
        self.leave();
        Ok(item)
    }

    /// Reads the value after code and flag.
    fn of_code(&mut self, code: u8, at: usize) -> Result<Value> {
        let problem = |message| ReadError::malformed(at, message);
        Ok(match code {
            code::INT => Value::Int(self.int()?),
            code::LONG => Value::Long(self.long()?),
            code::STRING => Value::text(self.string()?),
            code::DOUBLE => Value::Double(self.array("a number").map(f64::from_be_bytes)?),
            code::FLOAT => Value::Float(self.array("a number").map(f32::from_be_bytes)?),
            code::BYTE => Value::Byte(self.array("an integer").map(i8::from_be_bytes)?),
            code::SHORT => Value::Short(self.array("an integer").map(i16::from_be_bytes)?),
            code::BOOLEAN => match self.byte("a truth value")? {
                0 => Value::Boolean(false),
                1 => Value::Boolean(true),
                other => {
                    return Err(ReadError::malformed(
                        at + 2,
                        format!("expected a truth value, found {other}"),
                    ));
                }
            },
            code::LIST => Value::list(self.list()?),
            code::SET => Value::Set(Arc::new(self.set()?)),
            code::MAP => Value::map(self.map()?),
            code::BULK_SET => Value::Bulk(Arc::new(self.bulk()?)),
            code::UUID => Value::Uuid(self.uuid()?),
            code::VERTEX => Value::Vertex(self.vertex()?),
            code::EDGE => Value::Edge(Arc::new(self.edge()?)),
            code::VERTEX_PROPERTY => Value::VertexProperty(Arc::new(self.vertex_property()?)),
            code::PROPERTY => Value::Property(Arc::new(self.property()?)),
            code::PATH => Value::Path(Arc::new(self.path()?)),
            code::TREE => Value::Tree(Arc::new(self.tree()?)),
            code::GRAPH => Value::Subgraph(Arc::new(self.subgraph()?)),
            code::BINDING => {
                self.string()?;
                self.value()?
            }
            code::BYTECODE => wire_names::traversal(self.bytecode()?),
            code::LAMBDA => {
                let (language, script) = (self.string()?.into(), self.string()?.into());
                Value::Lambda(Arc::new(Lambda { language, script, arity: self.int()? }))
            }
            code::P | code::TEXT_P => Value::P(Arc::new(self.predicate()?)),
            code::STRATEGY => Value::Strategy(Arc::new(self.strategy()?)),
            code::METRICS => {
                let metric = self.metric()?;
                Value::Metrics(Arc::new(Metrics { nanoseconds: metric.nanoseconds, steps: vec![metric] }))
            }
            code::TRAVERSAL_METRICS => {
                let nanoseconds = self.nanoseconds()?;
                Value::Metrics(Arc::new(Metrics { nanoseconds, steps: self.metrics()? }))
            }
            code::BIG_INTEGER => Value::BigInteger(Arc::new(self.big_integer()?)),
            code::BIG_DECIMAL => {
                let scale = self.int()?.into();
                number::checked_scale(scale).map_err(problem)?;
                Value::BigDecimal(Arc::new(BigDecimal::new(self.big_integer()?, scale)))
            }
            code::CHAR => Value::Char(self.character()?),
            code::DURATION => {
                let (seconds, nanoseconds) = (self.long()?, self.int()?);
                Value::Duration(iso8601::duration(seconds, nanoseconds.into()).map_err(problem)?)
            }
            code::OFFSET_DATE_TIME => {
                let ((year, month, day), time, offset) = (self.date()?, self.long()?, self.int()?);
                iso8601::date_time(year, month, day, time, offset).map_err(problem)?
            }
            _ => match code::enumeration(code) {
                Some(kind) => self.token(kind)?,
                None => {
                    let extended = self.extended(code, at)?;
                    Value::Extended(Arc::new(iso8601::checked(extended).map_err(problem)?))
                }
            },
        })
    }

    fn extended(&mut self, code: u8, at: usize) -> Result<Extended> {
        Ok(match code {
            code::DATE => Extended::Date(self.long()?),
            code::TIMESTAMP => Extended::Timestamp(self.long()?),
            code::CLASS => Extended::Class(self.string()?.into()),
            code::BYTES => {
                let length = self.count("bytes")?;
                Extended::Bytes(self.take(length, "a buffer")?.to_vec())
            }
            code::INET_ADDRESS => {
                let length = self.count("bytes of an address")?;
                match length {
                    4 => Extended::InetAddress(self.array::<4>("an address")?.into()),
                    16 => Extended::InetAddress(self.array::<16>("an address")?.into()),
                    _ => {
                        let message = format!("expected an address of 4 or 16 bytes, found {length}");
                        return Err(ReadError::malformed(at + 2, message));
                    }
                }
            }
            code::INSTANT => Extended::Instant(self.long()?, self.int()?),
            code::LOCAL_DATE => {
                let (year, month, day) = self.date()?;
                Extended::LocalDate(year, month, day)
            }
            code::LOCAL_DATE_TIME => {
                let (year, month, day) = self.date()?;
                Extended::LocalDateTime(year, month, day, self.long()?)
            }
            code::LOCAL_TIME => Extended::LocalTime(self.long()?),
            code::MONTH_DAY => Extended::MonthDay(self.byte("a month")?, self.byte("a day")?),
            code::OFFSET_TIME => Extended::OffsetTime(self.long()?, self.int()?),
            code::PERIOD => Extended::Period(self.int()?, self.int()?, self.int()?),
            code::YEAR => Extended::Year(self.int()?),
            code::YEAR_MONTH => Extended::YearMonth(self.int()?, self.byte("a month")?),
            code::ZONED_DATE_TIME => {
                let (year, month, day) = self.date()?;
                Extended::ZonedDateTime(year, month, day, self.long()?, self.int()?, None)
            }
            code::ZONE_OFFSET => Extended::ZoneOffset(self.int()?),
            _ => {
                let message = format!("expected the code of a type of GraphBinary, found {code:#04x}");
                return Err(ReadError::unsupported(at, message));
            }
        })
    }

    fn date(&mut self) -> Result<(i32, u8, u8)> {
        Ok((self.int()?, self.byte("a month")?, self.byte("a day")?))
    }

    fn character(&mut self) -> Result<char> {
        let at = self.at;
        let length = match self.bytes.get(at) {
            Some(0xf0..) => 4,
            Some(0xe0..) => 3,
            Some(0xc0..) => 2,
            _ => 1,
        };
        let text = std::str::from_utf8(self.take(length, "a character")?).ok();
        text.and_then(|text| text.chars().next())
            .ok_or_else(|| ReadError::malformed(at, "expected a character in UTF-8"))
    }

    fn big_integer(&mut self) -> Result<BigInt> {
        let at = self.at;
        let length = self.count("bytes of an integer")?;
        if length == 0 || length > INTEGER_BYTES_MAX {
            let message = format!("expected an integer of 1 to {INTEGER_BYTES_MAX} bytes, found {length}");
            return Err(ReadError::malformed(at, message));
        }
        Ok(BigInt::from_signed_bytes_be(self.take(length, "an integer")?))
    }

    /// Reads the name of an enumeration member, a string with code and flag, which some drivers omit.
    fn token(&mut self, kind: &str) -> Result<Value> {
        if self.bytes.get(self.at) == Some(&code::STRING) {
            self.at += 1;
            let at = self.at;
            if !self.flag()? {
                return Err(ReadError::malformed(at, format!("expected a member of {kind}, found null")));
            }
        }
        let at = self.at;
        let name = self.string()?;
        match wire_names::token(kind, name) {
            Some(token) => token.map(Value::Token).map_err(|message| ReadError::malformed(at, message)),
            None => Err(ReadError::unsupported(at, format!("expected an enumeration, found {kind}"))),
        }
    }

    /// Reads a list without code and flag.
    pub(super) fn list(&mut self) -> Result<Vec<Value>> {
        let count = self.count("values")?;
        let mut values = Vec::with_capacity(count.min(RESERVED_MAX));
        for _ in 0..count {
            values.push(self.value()?);
        }
        Ok(values)
    }

    /// Reads a list, whose items may be traversers, without code and flag.
    pub(super) fn items(&mut self) -> Result<Vec<Item>> {
        let count = self.count("values")?;
        let mut items = Vec::with_capacity(count.min(RESERVED_MAX));
        for _ in 0..count {
            items.push(self.item()?);
        }
        Ok(items)
    }

    fn set(&mut self) -> Result<Set> {
        let count = self.count("values")?;
        let mut set = Set::default();
        for _ in 0..count {
            set.insert(self.value()?);
        }
        Ok(set)
    }

    /// Reads a map without code and flag.
    pub(super) fn map(&mut self) -> Result<Map> {
        let count = self.count("entries")?;
        let mut map = Map::default();
        for _ in 0..count {
            let key = self.value()?;
            map.insert(key, self.value()?);
        }
        Ok(map)
    }

    fn bulk(&mut self) -> Result<Bulk> {
        let count = self.count("values")?;
        let mut bulk = Bulk::default();
        for _ in 0..count {
            let value = self.value()?;
            let at = self.at;
            let times = self.long()?;
            crate::graphson::add(&mut bulk, value, times)
                .map_err(|message| ReadError::malformed(at, message))?;
        }
        Ok(bulk)
    }

    /// Reads a list with code and flag, or null; `of` converts its values.
    fn properties<T>(&mut self, of: impl Fn(Value) -> Option<T>) -> Result<Vec<T>> {
        let at = self.at;
        let properties = match self.value()? {
            Value::Null => Some(Vec::new()),
            Value::List(values) => Arc::unwrap_or_clone(values).into_iter().map(of).collect(),
            _ => None,
        };
        properties.ok_or_else(|| ReadError::malformed(at, "expected a list of properties"))
    }

    fn vertex(&mut self) -> Result<Vertex> {
        let (id, label) = (self.value()?, self.string()?.into());
        let properties = self.properties(|value| match value {
            Value::VertexProperty(property) => Some(property),
            _ => None,
        })?;
        Ok(Vertex { key: 0, detail: Some(Arc::new(VertexDetail { id, label, properties })) })
    }

    fn plain_properties(&mut self) -> Result<Vec<Arc<Property>>> {
        self.properties(property)
    }

    fn edge(&mut self) -> Result<Edge> {
        let (id, label) = (self.value()?, self.string()?.into());
        let mut end = || {
            let (id, label) = (self.value()?, self.string()?.into());
            Ok(crate::graphson::vertex_of(id, label, Vec::new()))
        };
        let (target, source) = (end()?, end()?);
        self.parent()?;
        let properties = self.plain_properties()?;
        Ok(Edge { detail: Some(EdgeDetail { id, label, source, target, properties }), ..Edge::default() })
    }

    /// Reads the owner field, which is always null.
    fn parent(&mut self) -> Result<()> {
        self.value().map(drop)
    }

    fn vertex_property(&mut self) -> Result<VertexProperty> {
        let (id, label, value) = (self.value()?, self.string()?.into(), self.value()?);
        self.parent()?;
        let properties = self.plain_properties()?;
        let detail = Some(PropertyDetail { id, properties });
        Ok(VertexProperty { label, value, detail, ..VertexProperty::default() })
    }

    fn property(&mut self) -> Result<Property> {
        let (key, value) = (self.string()?.into(), self.value()?);
        self.parent()?;
        Ok(Property { element: Value::Null, key, value })
    }

    fn path(&mut self) -> Result<Path> {
        let at = self.at;
        let (labels, objects) = (self.value()?, self.value()?);
        let labels = match &labels {
            Value::List(labels) => labels
                .iter()
                .map(|labels| match labels {
                    Value::Set(labels) => wire_names::labels(labels.iter()),
                    Value::List(labels) => wire_names::labels(labels.iter()),
                    _ => None,
                })
                .collect::<Option<Vec<Vec<Arc<str>>>>>(),
            _ => None,
        };
        match (labels, objects) {
            (Some(labels), Value::List(objects)) if labels.len() == objects.len() => {
                Ok(Path { objects: Arc::unwrap_or_clone(objects), labels })
            }
            _ => Err(ReadError::malformed(at, "expected a path: a list of sets of texts, a list as long")),
        }
    }

    fn tree(&mut self) -> Result<Tree> {
        self.enter()?;
        let count = self.count("branches")?;
        let mut children = Vec::with_capacity(count.min(RESERVED_MAX));
        for _ in 0..count {
            children.push((self.value()?, self.tree()?));
        }
        self.leave();
        Ok(Tree { children })
    }

    /// Elements of a graph differ from standalone ones: edges lack the labels of their ends.
    fn subgraph(&mut self) -> Result<Subgraph> {
        let mut subgraph = Subgraph::default();
        let mut labels: IndexMap<Value, Arc<str>, vervet_gremlin::Hashing> = IndexMap::default();
        for _ in 0..self.count("vertices")? {
            let (id, label): (Value, Arc<str>) = (self.value()?, self.string()?.into());
            let count = self.count("properties")?;
            let mut properties = Vec::with_capacity(count.min(RESERVED_MAX));
            for _ in 0..count {
                let (id, label, value) = (self.value()?, self.string()?.into(), self.value()?);
                self.parent()?;
                let detail = Some(PropertyDetail { id, properties: self.bare_properties()? });
                properties.push(Arc::new(VertexProperty {
                    label,
                    value,
                    detail,
                    ..VertexProperty::default()
                }));
            }
            labels.insert(id.clone(), label.clone());
            subgraph.vertices.push(crate::graphson::vertex_of(id, label, properties));
        }
        for _ in 0..self.count("edges")? {
            let (id, label) = (self.value()?, self.string()?.into());
            let mut end = || {
                let id = self.value()?;
                self.value()?;
                let label = labels.get(&id).cloned().unwrap_or_else(|| crate::graphson::VERTEX_LABEL.into());
                Ok(crate::graphson::vertex_of(id, label, Vec::new()))
            };
            let (target, source) = (end()?, end()?);
            self.parent()?;
            let properties = self.bare_properties()?;
            let detail = EdgeDetail { id, label, source, target, properties };
            subgraph.edges.push(Arc::new(Edge { detail: Some(detail), ..Edge::default() }));
        }
        Ok(subgraph)
    }

    /// Reads a list of properties without code and flag.
    fn bare_properties(&mut self) -> Result<Vec<Arc<Property>>> {
        let at = self.at;
        let properties = self.list()?.into_iter().map(property).collect::<Option<_>>();
        properties.ok_or_else(|| ReadError::malformed(at, "expected a list of properties"))
    }

    fn bytecode(&mut self) -> Result<Bytecode> {
        Ok(Bytecode { steps: self.instructions()?, source: self.instructions()? })
    }

    fn instructions(&mut self) -> Result<Vec<Instruction>> {
        let count = self.count("steps")?;
        let mut instructions = Vec::with_capacity(count.min(RESERVED_MAX));
        for _ in 0..count {
            let name = self.string()?;
            instructions.push(Instruction::new(name, self.list()?));
        }
        Ok(instructions)
    }

    fn predicate(&mut self) -> Result<P> {
        let at = self.at;
        let name = self.string()?;
        wire_names::predicate(name, self.list()?).map_err(|message| ReadError::malformed(at, message))
    }

    fn strategy(&mut self) -> Result<Strategy> {
        let name = wire_names::simple_name(self.string()?).into();
        let at = self.at;
        let options = self.map()?.into_iter().map(|(key, value)| Some((Arc::from(key.as_text()?), value)));
        let options = options.collect::<Option<_>>();
        let options =
            options.ok_or_else(|| ReadError::malformed(at, "expected texts as names of the options"))?;
        Ok(Strategy { name, options })
    }

    fn nanoseconds(&mut self) -> Result<u64> {
        let at = self.at;
        let number = self.long()?;
        u64::try_from(number)
            .map_err(|_| ReadError::malformed(at, format!("expected a length of time, found {number}")))
    }

    fn metric(&mut self) -> Result<Metric> {
        let (id, name) = (self.string()?.into(), self.string()?.into());
        let nanoseconds = self.nanoseconds()?;
        let at = self.at;
        let text = |key: &Value| key.as_text().map(Arc::from);
        let counts = self.map()?;
        let counts = counts.iter().map(|(key, value)| Some((text(key)?, value.as_integer()?)));
        let counts = counts.collect::<Option<_>>();
        let annotations = self.map()?;
        let annotations = annotations.into_iter().map(|(key, value)| Some((text(&key)?, value)));
        let annotations = annotations.collect::<Option<_>>();
        let nested = self.metrics()?;
        match (counts, annotations) {
            (Some(counts), Some(annotations)) => {
                Ok(Metric { id, name, nanoseconds, counts, annotations, nested })
            }
            _ => Err(ReadError::malformed(at, "expected texts as names of metrics, and integers as counts")),
        }
    }

    /// Reads a list of metrics without code and flag.
    fn metrics(&mut self) -> Result<Vec<Metric>> {
        let count = self.count("metrics")?;
        let mut metrics = Vec::with_capacity(count.min(RESERVED_MAX));
        for _ in 0..count {
            self.enter()?;
            let at = self.at;
            if self.byte("the code of metrics")? != code::METRICS || !self.flag()? {
                return Err(ReadError::malformed(at, "expected metrics"));
            }
            metrics.push(self.metric()?);
            self.leave();
        }
        Ok(metrics)
    }
}

fn property(value: Value) -> Option<Arc<Property>> {
    match value {
        Value::Property(property) => Some(property),
        _ => None,
    }
}

//! GraphSON reader: types and values.

use crate::json::Cursor;
use crate::limits::BULK_WRITTEN_MAX;
use crate::traverser::{Item, Traverser};
use crate::{ReadError, iso8601, number, wire_names};
use base64::Engine;
use std::net::IpAddr;
use std::sync::Arc;
use vervet_gremlin::{Bulk, Bytecode, Extended, Instruction, Lambda, Map, P, Set, Strategy, Value};

pub(super) type Result<T> = std::result::Result<T, ReadError>;

/// Unwraps a required member of an object.
pub(super) fn required<T>(member: Option<T>, name: &str, at: usize) -> Result<T> {
    member.ok_or_else(|| ReadError::malformed(at, format!("expected a member {name:?}")))
}

impl<'a> Cursor<'a> {
    /// Reads a value.
    pub(crate) fn value(&mut self) -> Result<Value> {
        self.peek();
        let at = self.at();
        match self.item()? {
            Item::Value(value) => Ok(value),
            Item::Traverser(_) => Err(ReadError::malformed(
                at,
                "expected a value, found a traverser, which only stands in results",
            )),
        }
    }

    /// Reads a value or a traverser.
    pub(crate) fn item(&mut self) -> Result<Item> {
        self.enter()?;
        let item = match self.peek() {
            Some(b'{') => self.typed_or_map()?,
            Some(b'[') => Item::Value(Value::list(self.values()?)),
            Some(b'"') => Item::Value(Value::text(self.string()?)),
            Some(b'-' | b'0'..=b'9') => Item::Value(self.untyped_number()?),
            _ if self.word("null") => Item::Value(Value::Null),
            _ if self.word("true") => Item::Value(Value::Boolean(true)),
            _ if self.word("false") => Item::Value(Value::Boolean(false)),
            _ => return Err(self.expected("a value")),
        };
        self.leave();
        Ok(item)
    }

    /// Reads an array of values, with or without a type.
    pub(super) fn values(&mut self) -> Result<Vec<Value>> {
        let mut values = Vec::new();
        self.array(|cursor| {
            values.push(cursor.value()?);
            Ok(())
        })?;
        Ok(values)
    }

    fn untyped_number(&mut self) -> Result<Value> {
        let at = self.at();
        let text = self.number()?;
        if text.contains(['.', 'e', 'E']) {
            return text
                .parse()
                .map(Value::Double)
                .map_err(|_| ReadError::malformed(at, "expected a number"));
        }
        if let Ok(number) = text.parse() {
            return Ok(Value::Int(number));
        }
        if let Ok(number) = text.parse() {
            return Ok(Value::Long(number));
        }
        number::integer(text)
            .map(|number| Value::BigInteger(Arc::new(number)))
            .map_err(|message| ReadError::malformed(at, message))
    }

    /// Reads an object: a typed value if it starts as one, else a map.
    fn typed_or_map(&mut self) -> Result<Item> {
        let start = self.at();
        if let Some((kind, end)) = self.type_of()? {
            let item = self.typed(&kind)?;
            match end {
                // The value preceded the type: continue after both.
                Some(end) => self.go(end),
                None => self.need(b'}', "\"}\"")?,
            }
            return Ok(item);
        }
        self.go(start);
        Ok(Item::Value(Value::map(self.map()?)))
    }

    /// Moves to the value of a typed object, and returns its type. If the value precedes the type, also
    /// returns the end of the object, since the value is read out of order. None: the object is untyped.
    pub(super) fn type_of(&mut self) -> Result<Option<(String, Option<usize>)>> {
        self.need(b'{', "an object")?;
        if self.peek() != Some(b'"') {
            return Ok(None);
        }
        match &*self.key()? {
            "@type" => {
                let kind = self.string()?.into_owned();
                self.need(b',', "\",\" and \"@value\"")?;
                self.peek();
                let at = self.at();
                if self.key()? != "@value" {
                    return Err(ReadError::malformed(at, "expected \"@value\""));
                }
                Ok(Some((kind, None)))
            }
            "@value" => {
                self.peek();
                let value = self.at();
                self.skip_for_now()?;
                if !self.take(b',') || self.key()? != "@type" {
                    return Ok(None);
                }
                let kind = self.string()?.into_owned();
                self.need(b'}', "\"}\"")?;
                let end = self.at();
                self.go(value);
                Ok(Some((kind, Some(end))))
            }
            _ => Ok(None),
        }
    }

    /// Reads a typed object of the type `kind`, or a value without a type; `read` reads the inner value.
    pub(super) fn of_type<T>(&mut self, kind: &str, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.peek();
        let start = self.at();
        if self.peek() == Some(b'{') {
            if let Some((found, end)) = self.type_of()? {
                if found != kind {
                    return Err(ReadError::malformed(start, format!("expected a {kind}, found a {found}")));
                }
                let value = read(self)?;
                match end {
                    Some(end) => self.go(end),
                    None => self.need(b'}', "\"}\"")?,
                }
                return Ok(value);
            }
            self.go(start);
        }
        read(self)
    }

    /// Reads an object as a map with string keys.
    pub(super) fn map(&mut self) -> Result<Map> {
        let mut map = Map::default();
        self.object(|cursor, key| {
            map.insert(Value::text(key), cursor.value()?);
            Ok(())
        })?;
        Ok(map)
    }

    /// Reads the inner value of a `g:Map`: alternating keys and values, or an object.
    pub(super) fn map_inside(&mut self) -> Result<Map> {
        if self.peek() == Some(b'{') {
            return self.map();
        }
        let at = self.at();
        let mut map = Map::default();
        let mut key = None;
        self.array(|cursor| {
            let value = cursor.value()?;
            match key.take() {
                None => key = Some(value),
                Some(key) => drop(map.insert(key, value)),
            }
            Ok(())
        })?;
        if key.is_some() {
            return Err(ReadError::malformed(at, "expected a value for each key, found a key more"));
        }
        Ok(map)
    }

    /// Reads the inner value of a typed object.
    fn typed(&mut self, kind: &str) -> Result<Item> {
        self.peek();
        let at = self.at();
        let value = match kind {
            "g:Int32" => Value::Int(self.integer()?),
            "g:Int64" => Value::Long(self.integer()?),
            "gx:Int16" => Value::Short(self.integer()?),
            "gx:Byte" => Value::Byte(self.integer()?),
            "g:Float" => Value::Float(self.floating()?),
            "g:Double" => Value::Double(self.floating()?),
            "gx:BigInteger" => {
                let text = self.digits_or_string()?;
                Value::BigInteger(Arc::new(number::integer(&text).map_err(|m| ReadError::malformed(at, m))?))
            }
            "gx:BigDecimal" => {
                let text = self.digits_or_string()?;
                Value::BigDecimal(Arc::new(number::decimal(&text).map_err(|m| ReadError::malformed(at, m))?))
            }
            "g:List" => Value::list(self.values()?),
            "g:Set" => Value::Set(Arc::new(self.set()?)),
            "g:Map" => Value::map(self.map_inside()?),
            "g:BulkSet" => Value::Bulk(Arc::new(self.bulk()?)),
            "g:Vertex" => Value::Vertex(self.vertex()?),
            "g:Edge" => Value::Edge(Arc::new(self.edge()?)),
            "g:VertexProperty" => Value::VertexProperty(Arc::new(self.vertex_property("")?)),
            "g:Property" => Value::Property(Arc::new(self.property("")?)),
            "g:Path" => Value::Path(Arc::new(self.path()?)),
            "g:Tree" => Value::Tree(Arc::new(self.tree()?)),
            "tinker:graph" => Value::Subgraph(Arc::new(self.subgraph()?)),
            "g:Metrics" => {
                let metric = self.metric()?;
                let nanoseconds = metric.nanoseconds;
                Value::Metrics(Arc::new(vervet_gremlin::Metrics { nanoseconds, steps: vec![metric] }))
            }
            "g:TraversalMetrics" => Value::Metrics(Arc::new(self.metrics()?)),
            "g:Bytecode" => wire_names::traversal(self.bytecode()?),
            "g:P" | "g:TextP" => Value::P(Arc::new(self.predicate()?)),
            "g:Lambda" => Value::Lambda(Arc::new(self.lambda()?)),
            "g:Binding" => self.binding()?,
            "g:Traverser" => return self.traverser().map(Item::Traverser),
            _ if kind.ends_with("Strategy") || kind == "g:TraversalStrategyProxy" => {
                Value::Strategy(Arc::new(self.strategy(kind)?))
            }
            _ => self.simple(kind)?,
        };
        Ok(Item::Value(value))
    }

    /// Reads a value that is a single string or number.
    fn simple(&mut self, kind: &str) -> Result<Value> {
        let at = self.at();
        let problem = |message| ReadError::malformed(at, message);
        let extended = |extended| Ok(Value::Extended(Arc::new(extended)));
        match kind {
            "g:Date" => return extended(Extended::Date(self.integer()?)),
            "g:Timestamp" => return extended(Extended::Timestamp(self.integer()?)),
            "gx:Year" if self.peek() != Some(b'"') => {
                let year = iso8601::checked(Extended::Year(self.integer()?)).map_err(problem)?;
                return extended(year);
            }
            _ => {}
        }
        let Some((space, name)) = kind.split_once(':').filter(|(space, _)| matches!(*space, "g" | "gx"))
        else {
            return Err(unknown(kind, at));
        };
        if self.peek() != Some(b'"') {
            // All remaining types have string values.
            return Err(if is_text(space, name) { self.expected("a string") } else { unknown(kind, at) });
        }
        let text = self.string()?;
        match (space, name) {
            ("g", "UUID") => {
                return uuid::Uuid::try_parse(&text)
                    .map(Value::Uuid)
                    .map_err(|_| problem(format!("expected a UUID, found {}", number::shortened(&text))));
            }
            ("g", "Class") => return extended(Extended::Class(text.into())),
            ("gx", "Char") => {
                let mut characters = text.chars();
                return match (characters.next(), characters.next()) {
                    (Some(character), None) => Ok(Value::Char(character)),
                    _ => Err(problem(format!("expected one character, found {}", number::shortened(&text)))),
                };
            }
            ("gx", "ByteBuffer") => {
                let bytes = base64::engine::general_purpose::STANDARD
                    .decode(text.as_bytes())
                    .map_err(|error| problem(format!("expected base 64: {error}")))?;
                return extended(Extended::Bytes(bytes));
            }
            ("gx", "InetAddress") => return extended(Extended::InetAddress(address(&text, at)?)),
            _ => {}
        }
        if space == "g"
            && let Some(token) = wire_names::token(name, &text)
        {
            return token.map(Value::Token).map_err(problem);
        }
        match iso8601::parse(name, &text) {
            Some(value) => value.map_err(problem),
            None => Err(unknown(kind, at)),
        }
    }

    /// Reads an integer in range, as a number or as a string of digits.
    pub(super) fn integer<T: TryFrom<i64>>(&mut self) -> Result<T> {
        self.peek();
        let at = self.at();
        let text = self.digits_or_string()?;
        let number = text.parse::<i64>().ok().or_else(|| {
            // Some writers emit `1.0`.
            let (whole, part) = text.split_once('.')?;
            whole.parse().ok().filter(|_| !part.is_empty() && part.bytes().all(|digit| digit == b'0'))
        });
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| {
            let bits = 8 * size_of::<T>();
            ReadError::malformed(
                at,
                format!("expected an integer of {bits} bits, found {}", number::shortened(&text)),
            )
        })
    }

    /// Reads a floating point number, including those without a JSON number form.
    pub(super) fn floating<T: std::str::FromStr + From<f32>>(&mut self) -> Result<T> {
        self.peek();
        let at = self.at();
        let text = self.digits_or_string()?;
        match &*text {
            "NaN" => return Ok(f32::NAN.into()),
            "Infinity" | "INF" => return Ok(f32::INFINITY.into()),
            "-Infinity" | "-INF" => return Ok(f32::NEG_INFINITY.into()),
            _ => {}
        }
        // JSON excludes words such as "nan".
        let digits = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'));
        text.parse().ok().filter(|_| digits).ok_or_else(|| {
            ReadError::malformed(at, format!("expected a number, found {}", number::shortened(&text)))
        })
    }

    fn digits_or_string(&mut self) -> Result<std::borrow::Cow<'a, str>> {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'-' | b'0'..=b'9') => Ok(std::borrow::Cow::Borrowed(self.number()?)),
            _ => Err(self.expected("a number")),
        }
    }

    fn set(&mut self) -> Result<Set> {
        let mut set = Set::default();
        self.array(|cursor| {
            set.insert(cursor.value()?);
            Ok(())
        })?;
        Ok(set)
    }

    fn bulk(&mut self) -> Result<Bulk> {
        let mut bulk = Bulk::default();
        let mut value = None;
        let start = self.at();
        self.array(|cursor| {
            match value.take() {
                None => value = Some(cursor.value()?),
                Some(value) => {
                    let at = cursor.at();
                    let count: i64 = cursor.of_type("g:Int64", Self::integer)?;
                    add(&mut bulk, value, count).map_err(|message| ReadError::malformed(at, message))?;
                }
            }
            Ok(())
        })?;
        if value.is_some() {
            return Err(ReadError::malformed(start, "expected a count for each value, found a value more"));
        }
        Ok(bulk)
    }

    fn bytecode(&mut self) -> Result<Bytecode> {
        let mut bytecode = Bytecode::default();
        self.object(|cursor, key| {
            let instructions = match &*key {
                "source" => &mut bytecode.source,
                "step" => &mut bytecode.steps,
                _ => return cursor.skip(),
            };
            cursor.array(|cursor| {
                instructions.push(cursor.instruction()?);
                Ok(())
            })
        })?;
        Ok(bytecode)
    }

    fn instruction(&mut self) -> Result<Instruction> {
        self.enter()?;
        let mut name = None;
        let mut arguments = Vec::new();
        self.peek();
        let at = self.at();
        self.array(|cursor| {
            match name {
                None => name = Some(cursor.string()?),
                Some(_) => arguments.push(cursor.value()?),
            }
            Ok(())
        })?;
        self.leave();
        let name = name.ok_or_else(|| ReadError::malformed(at, "expected the name of a step"))?;
        Ok(Instruction::new(&name, arguments))
    }

    fn predicate(&mut self) -> Result<P> {
        let at = self.at();
        let (mut name, mut value) = (None, Value::Null);
        self.object(|cursor, key| match &*key {
            "predicate" => {
                name = Some(cursor.string()?);
                Ok(())
            }
            "value" => {
                value = cursor.value()?;
                Ok(())
            }
            _ => cursor.skip(),
        })?;
        let name = required(name, "predicate", at)?;
        let values = match value {
            Value::List(values) if wire_names::takes_many(&name) => Arc::unwrap_or_clone(values),
            Value::Set(values) if wire_names::takes_many(&name) => {
                Arc::unwrap_or_clone(values).into_iter().collect()
            }
            Value::Bulk(values) if wire_names::takes_many(&name) => values.keys().cloned().collect(),
            value => vec![value],
        };
        wire_names::predicate(&name, values).map_err(|message| ReadError::malformed(at, message))
    }

    fn lambda(&mut self) -> Result<Lambda> {
        let at = self.at();
        let (mut script, mut language, mut arity) = (None, None, -1);
        self.object(|cursor, key| {
            match &*key {
                "script" => script = Some(cursor.string()?),
                "language" => language = Some(cursor.string()?),
                "arguments" => arity = cursor.of_type("g:Int32", Self::integer)?,
                _ => cursor.skip()?,
            }
            Ok(())
        })?;
        let script = required(script, "script", at)?.into();
        Ok(Lambda { script, language: language.unwrap_or_default().into(), arity })
    }

    /// A bound variable yields its value.
    fn binding(&mut self) -> Result<Value> {
        let at = self.at();
        let mut value = None;
        self.object(|cursor, key| {
            if key == "value" {
                value = Some(cursor.value()?);
                Ok(())
            } else {
                cursor.skip()
            }
        })?;
        required(value, "value", at)
    }

    fn traverser(&mut self) -> Result<Traverser> {
        let at = self.at();
        let (mut bulk, mut value) = (1, None);
        self.object(|cursor, key| {
            match &*key {
                "bulk" => bulk = cursor.of_type("g:Int64", Self::integer)?,
                "value" => value = Some(cursor.value()?),
                _ => cursor.skip()?,
            }
            Ok(())
        })?;
        Ok(Traverser { bulk, value: required(value, "value", at)? })
    }

    /// `{"fqcn": class, "conf": {…}}`, or only the options.
    fn strategy(&mut self, kind: &str) -> Result<Strategy> {
        let at = self.at();
        let (mut class, mut options) = (None, None);
        let mut others = Vec::new();
        self.object(|cursor, key| {
            match &*key {
                "fqcn" => class = Some(cursor.string()?),
                "conf" => options = Some(cursor.of_type("g:Map", Self::map_inside)?),
                _ => others.push((Arc::from(key), cursor.value()?)),
            }
            Ok(())
        })?;
        let name = kind.strip_prefix("g:").unwrap_or(kind);
        let name = match (name, &class) {
            ("TraversalStrategy" | "TraversalStrategyProxy", Some(class)) => wire_names::simple_name(class),
            ("TraversalStrategy" | "TraversalStrategyProxy", None) => {
                return Err(ReadError::malformed(at, "expected a member \"fqcn\""));
            }
            (name, _) => name,
        };
        if let Some(options) = options {
            for (key, value) in options {
                let key = key.as_text().ok_or_else(|| {
                    ReadError::malformed(at, "expected texts as names of the options of a strategy")
                })?;
                others.push((Arc::from(key), value));
            }
        }
        Ok(Strategy { name: name.into(), options: others })
    }
}

/// Adds `count` occurrences of `value`.
pub(crate) fn add(bulk: &mut Bulk, value: Value, count: i64) -> std::result::Result<(), String> {
    let count = u64::try_from(count).map_err(|_| format!("expected a count, found {count}"))?;
    let sum = bulk.entry(value).or_insert(0);
    *sum = sum.checked_add(count).ok_or("expected a smaller count")?;
    Ok(())
}

fn is_text(space: &str, name: &str) -> bool {
    matches!((space, name), ("g", "UUID" | "Class") | ("gx", "Char" | "ByteBuffer" | "InetAddress"))
        || wire_names::token(name, "").is_some()
        || iso8601::parse(name, "").is_some()
}

fn unknown(kind: &str, at: usize) -> ReadError {
    ReadError::unsupported(at, format!("expected a type of GraphSON, found {}", number::shortened(kind)))
}

/// Parses a numeric address. Host names are not resolved, except `localhost`.
fn address(text: &str, at: usize) -> Result<IpAddr> {
    if text == "localhost" {
        return Ok(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));
    }
    text.parse().map_err(|_| {
        let message = format!("expected an address in numbers, found {}", number::shortened(text));
        ReadError::malformed(at, message)
    })
}

/// Whether a bag with this many items may be expanded in a format without bags.
pub(super) fn may_expand_bulk(total: u64) -> bool {
    total <= BULK_WRITTEN_MAX
}

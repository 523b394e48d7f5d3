//! Printer of traversals and values in one canonical form: `g.V(1).has("age", P.gt(29))`.
//!
//! # Invariants
//! The printed form parses to the same value, except for values without literals: elements, paths, trees,
//! characters, durations, lambdas, `NaN` as a float, empty anonymous traversals, Java class names, types that
//! only the wire formats have. Those have a readable form only.

use super::forms::is_terminal;
use super::{datetime, strings, words};
use crate::{Bytecode, Comparison, Instruction, P, Strategy, TextTest, Token, Value};
use std::fmt::{self, Display, Formatter, Write};

/// Prints a traversal of the source `g`.
impl Display for Bytecode {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_char('g')?;
        calls(f, self.source.iter().chain(&self.steps))
    }
}

fn calls<'a>(f: &mut Formatter<'_>, calls: impl Iterator<Item = &'a Instruction>) -> fmt::Result {
    for call in calls {
        write!(f, ".{call}")?;
    }
    Ok(())
}

impl Display for Instruction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let ("tx", [Value::String(action)]) = (&*self.name, self.arguments.as_slice()) {
            return write!(f, "tx().{action}()");
        }
        write!(f, "{}(", self.name)?;
        list(f, &self.arguments)?;
        f.write_char(')')
    }
}

fn list<'a>(f: &mut Formatter<'_>, values: impl IntoIterator<Item = &'a Value>) -> fmt::Result {
    for (at, value) in values.into_iter().enumerate() {
        let between = if at == 0 { "" } else { ", " };
        write!(f, "{between}{value}")?;
    }
    Ok(())
}

impl Display for Value {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Boolean(value) => write!(f, "{value}"),
            Self::Byte(number) => write!(f, "{number}B"),
            Self::Short(number) => write!(f, "{number}S"),
            Self::Int(number) => write!(f, "{number}"),
            Self::Long(number) => write!(f, "{number}L"),
            Self::Float(number) => decimal(f, f64::from(*number), &format!("{number:?}"), "F"),
            Self::Double(number) => decimal(f, *number, &format!("{number:?}"), ""),
            Self::BigInteger(number) => write!(f, "{number}N"),
            Self::BigDecimal(number) => write!(f, "{}M", number.to_scientific_notation()),
            Self::Char(c) => strings::quote(f, c.encode_utf8(&mut [0; 4])),
            Self::String(text) => strings::quote(f, text),
            Self::Uuid(uuid) => write!(f, "UUID(\"{uuid}\")"),
            Self::DateTime(at) => {
                f.write_str("datetime(\"")?;
                datetime::print(f, at)?;
                f.write_str("\")")
            }
            Self::List(values) => {
                f.write_char('[')?;
                list(f, values.iter())?;
                f.write_char(']')
            }
            Self::Set(values) => {
                f.write_char('{')?;
                list(f, values.iter())?;
                f.write_char('}')
            }
            Self::Map(map) => entries(f, map.iter()),
            Self::Token(token) => write!(f, "{}.{}", words::class(*token), token.name()),
            Self::WithCardinality(both) => write!(f, "Cardinality.{}({})", both.0.name(), both.1),
            Self::P(predicate) => write!(f, "{predicate}"),
            Self::Traversal(traversal) => nested(f, traversal),
            Self::Strategy(strategy) => write!(f, "{strategy}"),
            other => unreadable(f, other),
        }
    }
}

fn nested(f: &mut Formatter<'_>, traversal: &Bytecode) -> fmt::Result {
    let of_source = traversal.steps.last().is_some_and(|last| is_terminal(&last.name));
    if of_source || !traversal.source.is_empty() {
        return write!(f, "{traversal}");
    }
    f.write_str("__")?;
    calls(f, traversal.steps.iter())
}

fn decimal(f: &mut Formatter<'_>, number: f64, digits: &str, suffix: &str) -> fmt::Result {
    if number.is_nan() {
        f.write_str("NaN")
    } else if number.is_infinite() {
        f.write_str(if number > 0.0 { "Infinity" } else { "-Infinity" })
    } else {
        write!(f, "{digits}{suffix}")
    }
}

fn entries<'a>(
    f: &mut Formatter<'_>,
    entries: impl ExactSizeIterator<Item = (&'a Value, &'a Value)>,
) -> fmt::Result {
    f.write_char('[')?;
    if entries.len() == 0 {
        f.write_char(':')?;
    }
    for (at, (key, value)) in entries.enumerate() {
        let between = if at == 0 { "" } else { ", " };
        match key {
            Value::String(_) => write!(f, "{between}{key}: {value}")?,
            _ => write!(f, "{between}({key}): {value}")?,
        }
    }
    f.write_char(']')
}

impl Display for Strategy {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let name = self.name.rsplit('.').next().unwrap_or(&self.name);
        if self.options.is_empty() {
            return f.write_str(name);
        }
        write!(f, "new {name}(")?;
        for (at, (key, value)) in self.options.iter().enumerate() {
            let between = if at == 0 { "" } else { ", " };
            write!(f, "{between}{key}: {value}")?;
        }
        f.write_char(')')
    }
}

impl Display for P {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compare(comparison, value) => write!(f, "P.{}({value})", comparison.name()),
            Self::Inside(low, high) => write!(f, "P.inside({low}, {high})"),
            Self::Outside(low, high) => write!(f, "P.outside({low}, {high})"),
            Self::Between(low, high) => write!(f, "P.between({low}, {high})"),
            Self::Within(values) => members(f, "within", values),
            Self::Without(values) => members(f, "without", values),
            Self::Text(test, value) => write!(f, "TextP.{}({value})", test.name()),
            Self::TypeOf(value) => write!(f, "P.typeOf({value})"),
            Self::Not(inner) => write!(f, "P.not({inner})"),
            Self::And(all) => chain(f, "and", all),
            Self::Or(all) => chain(f, "or", all),
        }
    }
}

/// Wraps a single collection in a list, because the parser expands a single collection argument.
fn members(f: &mut Formatter<'_>, name: &str, values: &[Value]) -> fmt::Result {
    write!(f, "P.{name}(")?;
    match values {
        [one @ (Value::List(_) | Value::Set(_))] => write!(f, "[{one}]")?,
        _ => list(f, values)?,
    }
    f.write_char(')')
}

/// The language has no parentheses around predicates and needs none here: chains associate to the left, so
/// `a.and(b).or(c)` is the `or` of `a.and(b)` and `c`. An `and` as first operand of an `and` is parsed as one
/// longer `and`, which is equal in value.
fn chain(f: &mut Formatter<'_>, name: &str, all: &[P]) -> fmt::Result {
    for (at, predicate) in all.iter().enumerate() {
        if at == 0 { write!(f, "{predicate}")? } else { write!(f, ".{name}({predicate})")? }
    }
    Ok(())
}

impl Comparison {
    /// The name in gremlin-lang.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Eq => "eq",
            Self::Neq => "neq",
            Self::Lt => "lt",
            Self::Lte => "lte",
            Self::Gt => "gt",
            Self::Gte => "gte",
        }
    }
}

impl TextTest {
    /// The name in gremlin-lang.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::StartingWith => "startingWith",
            Self::NotStartingWith => "notStartingWith",
            Self::EndingWith => "endingWith",
            Self::NotEndingWith => "notEndingWith",
            Self::Containing => "containing",
            Self::NotContaining => "notContaining",
            Self::Regex => "regex",
            Self::NotRegex => "notRegex",
        }
    }
}

/// The readable form of a value without a literal: its type and main part.
fn unreadable(f: &mut Formatter<'_>, value: &Value) -> fmt::Result {
    write!(f, "{}(", value.type_name())?;
    match value {
        Value::Vertex(vertex) => write!(f, "{}", vertex.id())?,
        Value::Edge(edge) => write!(f, "{}", edge.id())?,
        Value::VertexProperty(property) => {
            strings::quote(f, &property.label)?;
            write!(f, ", {}", property.value)?;
        }
        Value::Property(property) => {
            strings::quote(f, &property.key)?;
            write!(f, ", {}", property.value)?;
        }
        Value::Path(path) => list(f, &path.objects)?,
        Value::Bulk(bag) => list(f, bag.keys())?,
        Value::Duration(duration) => write!(f, "{}.{:09}", duration.seconds, duration.nanoseconds)?,
        Value::Lambda(lambda) => strings::quote(f, &lambda.script)?,
        Value::Extended(extended) => write!(f, "{extended:?}")?,
        _ => {}
    }
    f.write_char(')')
}

impl Display for Token {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", words::class(*self), self.name())
    }
}

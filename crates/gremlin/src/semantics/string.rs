//! `asString()`: the text form of all values, as printed by Java.
//!
//! `[a, b]`, `{a=b}`, `1.0E10`, `2023-08-02T00:00Z`, `v[1]`, `e[7][1-knows->2]`, `vp[name->marko]`, `path[a,
//! b]`. Elements need their details ([`Details`]); an unknown part prints as `?`. Types without an
//! established form print as their parts. Different from Java: a `Date` prints as its instant, because Java
//! prints it in the local time zone.

mod extended;

use super::items::{expanded, items};
use super::{Details, Error, Result, date, details, java, number};
use crate::{Bytecode, Comparison, P, TextTest, Tree, Value, Vertex};
use bigdecimal::BigDecimal;
use num_bigint::BigInt;
use std::fmt::{self, Write};

/// Maximum length of a text that a value function creates, in bytes.
pub const MAX_TEXT_BYTES: usize = 1 << 24;

/// Maximum number of characters of a value in the text of its property.
const PROPERTY_CHARS: usize = 20;

/// `asString()` of a value.
///
/// # Errors
/// Null, a text longer than [`MAX_TEXT_BYTES`], or a number beyond [`number::MAX_BITS`].
pub fn as_string(value: &Value, details: &dyn Details) -> Result<Value> {
    match value {
        Value::Null => Err(Error::new("Can't parse null as String.")),
        Value::String(_) => Ok(value.clone()),
        _ => to_text(value, details).map(Value::from),
    }
}

/// `asString(local)`: maps a collection to a list of the texts of its items.
///
/// # Errors
/// As for [`as_string`], of the value or an item.
pub fn as_string_local(value: &Value, details: &dyn Details) -> Result<Value> {
    let Some(items) = items(value) else { return as_string(value, details) };
    let items = expanded(items)?;
    items.iter().map(|item| as_string(item, details)).collect::<Result<_>>().map(Value::list)
}

/// The text of any value; `null` for null.
///
/// # Errors
/// A text longer than [`MAX_TEXT_BYTES`], or a number beyond [`number::MAX_BITS`].
pub fn to_text(value: &Value, details: &dyn Details) -> Result<String> {
    let mut writer = Writer::new(details);
    writer.value(value)?;
    Ok(writer.finish())
}

/// A text buffer with a length limit.
pub(crate) struct Writer<'d> {
    out: String,
    details: &'d dyn Details,
}

impl<'d> Writer<'d> {
    pub(crate) fn new(details: &'d dyn Details) -> Self {
        Self { out: String::new(), details }
    }

    pub(crate) fn finish(self) -> String {
        self.out
    }

    pub(crate) fn len(&self) -> usize {
        self.out.len()
    }

    pub(crate) fn push(&mut self, text: &str) -> Result<()> {
        if self.out.len().saturating_add(text.len()) > MAX_TEXT_BYTES {
            return Err(too_long());
        }
        self.out.push_str(text);
        Ok(())
    }

    fn format(&mut self, text: fmt::Arguments<'_>) -> Result<()> {
        // Writing to a string cannot fail.
        let _ = self.out.write_fmt(text);
        if self.out.len() > MAX_TEXT_BYTES { Err(too_long()) } else { Ok(()) }
    }

    pub(crate) fn value(&mut self, value: &Value) -> Result<()> {
        match value {
            Value::Null => self.push("null"),
            Value::Boolean(value) => self.format(format_args!("{value}")),
            Value::Byte(number) => self.format(format_args!("{number}")),
            Value::Short(number) => self.format(format_args!("{number}")),
            Value::Int(number) => self.format(format_args!("{number}")),
            Value::Long(number) => self.format(format_args!("{number}")),
            Value::Float(number) => self.push(&java::float(*number)),
            Value::Double(number) => self.push(&java::double(*number)),
            Value::BigInteger(number) => self.big_integer(number),
            Value::BigDecimal(number) => self.big_decimal(number),
            Value::Char(value) => self.format(format_args!("{value}")),
            Value::String(text) => self.push(text),
            Value::Uuid(uuid) => self.format(format_args!("{uuid}")),
            Value::DateTime(date) => self.push(&date::format(date)),
            Value::Duration(duration) => self.push(&date::format_duration(*duration)),
            Value::Extended(value) => self.push(&extended::text(value)),
            Value::List(list) => self.items("[", list.iter(), "]"),
            Value::Set(set) => self.items("[", set.iter(), "]"),
            Value::Path(path) => self.items("path[", path.objects.iter(), "]"),
            Value::Map(map) => self.entries(map.iter(), |writer, value| writer.value(value)),
            Value::Entry(entry) => {
                self.value(&entry.0)?;
                self.push("=")?;
                self.value(&entry.1)
            }
            Value::Bulk(bag) => {
                self.entries(bag.iter(), |writer, count| writer.format(format_args!("{count}")))
            }
            Value::Tree(tree) => self.tree(tree),
            Value::Vertex(_) => {
                self.push("v[")?;
                self.id(value)?;
                self.push("]")
            }
            Value::Edge(edge) => {
                let detail = edge.detail.clone().or_else(|| self.details.edge(edge));
                let Some(detail) = detail else { return self.push("e[?]") };
                self.push("e[")?;
                self.value(&detail.id)?;
                self.push("][")?;
                self.end(&detail.source)?;
                self.format(format_args!("-{}->", detail.label))?;
                self.end(&detail.target)?;
                self.push("]")
            }
            Value::VertexProperty(property) => self.property("vp", &property.label, &property.value),
            Value::Property(property) => self.property("p", &property.key, &property.value),
            Value::Subgraph(graph) => self.format(format_args!(
                "graph[vertices:{} edges:{}]",
                graph.vertices.len(),
                graph.edges.len()
            )),
            Value::Metrics(metrics) => self.format(format_args!(
                "metrics[steps:{} nanoseconds:{}]",
                metrics.steps.len(),
                metrics.nanoseconds
            )),
            Value::Token(token) => self.push(token.name()),
            Value::WithCardinality(pair) => {
                self.format(format_args!("{}(", pair.0.name()))?;
                self.value(&pair.1)?;
                self.push(")")
            }
            Value::P(predicate) => self.predicate(predicate),
            Value::Traversal(traversal) => self.traversal(traversal),
            Value::Strategy(strategy) => self.push(&strategy.name),
            Value::Lambda(lambda) => self.format(format_args!("lambda[{}]", lambda.script)),
        }
    }

    fn big_integer(&mut self, number: &BigInt) -> Result<()> {
        number::limited(number.bits())?;
        self.format(format_args!("{number}"))
    }

    fn big_decimal(&mut self, number: &BigDecimal) -> Result<()> {
        number::limited(number.as_bigint_and_scale().0.bits())?;
        self.push(&java::decimal(number))
    }

    fn items<'v>(&mut self, open: &str, items: impl Iterator<Item = &'v Value>, close: &str) -> Result<()> {
        self.push(open)?;
        for (index, item) in items.enumerate() {
            if index > 0 {
                self.push(", ")?;
            }
            self.value(item)?;
        }
        self.push(close)
    }

    fn entries<'v, T: 'v>(
        &mut self,
        entries: impl Iterator<Item = (&'v Value, &'v T)>,
        write: impl Fn(&mut Self, &T) -> Result<()>,
    ) -> Result<()> {
        self.push("{")?;
        for (index, (key, value)) in entries.enumerate() {
            if index > 0 {
                self.push(", ")?;
            }
            self.value(key)?;
            self.push("=")?;
            write(self, value)?;
        }
        self.push("}")
    }

    fn tree(&mut self, tree: &Tree) -> Result<()> {
        self.entries(tree.children.iter().map(|(key, below)| (key, below)), Self::tree)
    }

    fn id(&mut self, element: &Value) -> Result<()> {
        match details::id(element, self.details) {
            Some(id) => self.value(&id),
            None => self.push("?"),
        }
    }

    fn end(&mut self, vertex: &Vertex) -> Result<()> {
        self.id(&Value::Vertex(vertex.clone()))
    }

    fn property(&mut self, prefix: &str, key: &str, value: &Value) -> Result<()> {
        let text = to_text(value, self.details)?;
        match text.char_indices().nth(PROPERTY_CHARS) {
            None => self.format(format_args!("{prefix}[{key}->{text}]")),
            Some(_) => {
                let short: String = text.chars().take(PROPERTY_CHARS - 3).collect();
                self.format(format_args!("{prefix}[{key}->{short}...]"))
            }
        }
    }

    fn predicate(&mut self, predicate: &P) -> Result<()> {
        match predicate {
            P::Compare(comparison, value) => self.call(comparison_name(*comparison), value),
            P::Inside(low, high) => self.calls("and", &[("gt", low), ("lt", high)]),
            P::Outside(low, high) => self.calls("or", &[("lt", low), ("gt", high)]),
            P::Between(low, high) => self.calls("and", &[("gte", low), ("lt", high)]),
            P::Within(values) => self.items("within([", values.iter(), "])"),
            P::Without(values) => self.items("without([", values.iter(), "])"),
            P::Text(test, value) => self.call(text_name(*test), value),
            P::TypeOf(wanted) => self.call("typeOf", wanted),
            P::Not(inner) => {
                self.push("not(")?;
                self.predicate(inner)?;
                self.push(")")
            }
            P::And(parts) => self.predicates("and(", parts),
            P::Or(parts) => self.predicates("or(", parts),
        }
    }

    fn predicates(&mut self, open: &str, parts: &[P]) -> Result<()> {
        self.push(open)?;
        for (index, part) in parts.iter().enumerate() {
            if index > 0 {
                self.push(", ")?;
            }
            self.predicate(part)?;
        }
        self.push(")")
    }

    fn calls(&mut self, name: &str, calls: &[(&str, &Value)]) -> Result<()> {
        self.push(name)?;
        self.push("(")?;
        for (index, (name, value)) in calls.iter().enumerate() {
            if index > 0 {
                self.push(", ")?;
            }
            self.call(name, value)?;
        }
        self.push(")")
    }

    fn call(&mut self, name: &str, value: &Value) -> Result<()> {
        self.push(name)?;
        self.push("(")?;
        self.value(value)?;
        self.push(")")
    }

    fn traversal(&mut self, traversal: &Bytecode) -> Result<()> {
        self.push("[")?;
        for (index, step) in traversal.source.iter().chain(&traversal.steps).enumerate() {
            if index > 0 {
                self.push(", ")?;
            }
            self.push(&step.name)?;
            self.items("(", step.arguments.iter(), ")")?;
        }
        self.push("]")
    }
}

pub(crate) fn too_long() -> Error {
    Error::new(format!("the text is longer than the limit of {MAX_TEXT_BYTES} bytes"))
}

fn comparison_name(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Eq => "eq",
        Comparison::Neq => "neq",
        Comparison::Lt => "lt",
        Comparison::Lte => "lte",
        Comparison::Gt => "gt",
        Comparison::Gte => "gte",
    }
}

fn text_name(test: TextTest) -> &'static str {
    match test {
        TextTest::StartingWith => "startingWith",
        TextTest::NotStartingWith => "notStartingWith",
        TextTest::EndingWith => "endingWith",
        TextTest::NotEndingWith => "notEndingWith",
        TextTest::Containing => "containing",
        TextTest::NotContaining => "notContaining",
        TextTest::Regex => "regex",
        TextTest::NotRegex => "notRegex",
    }
}

//! Gremlin's values as Python objects, and Python objects as Gremlin's values (bindings).
//!
//! Elements are classes of `vervet.elements`. Python's date-times have microseconds: nanoseconds of a result
//! are cut off. A date-time without a time zone is a binding in UTC.

use crate::literals::{date, date_time, decimal, types};
use crate::terms::{Iri, PyLiteral};
use bigdecimal::BigDecimal;
use num_bigint::BigInt;
use oxrdf::NamedNode;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PySet, PyString, PyTuple};
use std::str::FromStr;
use std::sync::Arc;
use time::{Date, Month, OffsetDateTime, UtcOffset};
use uuid::Uuid;
use vervet::gremlin::{
    Direction, Duration, Edge, EdgeDetail, Extended, Map, Metric, Metrics, Path, Property, Set, T, Token,
    Tree, Value, Vertex, VertexDetail, VertexProperty,
};

/// Maximum nesting of a binding.
const DEPTH_MAX: usize = 100;

/// Classes of `vervet.elements`.
struct Classes {
    vertex: Py<PyAny>,
    edge: Py<PyAny>,
    vertex_property: Py<PyAny>,
    property: Py<PyAny>,
    path: Py<PyAny>,
    token: Py<PyAny>,
    direction: Py<PyAny>,
    counter: Py<PyAny>,
}

fn classes(py: Python<'_>) -> PyResult<&Classes> {
    static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();
    CLASSES.get_or_try_init(py, || {
        let elements = py.import("vervet.elements")?;
        let class = |name: &str| elements.getattr(name).map(Bound::unbind);
        Ok(Classes {
            vertex: class("Vertex")?,
            edge: class("Edge")?,
            vertex_property: class("VertexProperty")?,
            property: class("Property")?,
            path: class("Path")?,
            token: class("T")?,
            direction: class("Direction")?,
            counter: py.import("collections")?.getattr("Counter")?.unbind(),
        })
    })
}

/// The Python object of a value.
pub(crate) fn object<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Boolean(truth) => PyBool::new(py, *truth).to_owned().into_any(),
        Value::Byte(number) => number.into_pyobject(py)?.into_any(),
        Value::Short(number) => number.into_pyobject(py)?.into_any(),
        Value::Int(number) => number.into_pyobject(py)?.into_any(),
        Value::Long(number) => number.into_pyobject(py)?.into_any(),
        Value::Float(number) => PyFloat::new(py, f64::from(*number)).into_any(),
        Value::Double(number) => PyFloat::new(py, *number).into_any(),
        // Python limits the digits of decimal texts.
        Value::BigInteger(number) => py.get_type::<PyInt>().call1((number.to_str_radix(16), 16))?,
        Value::BigDecimal(number) => decimal(py, &number.to_scientific_notation())?,
        Value::Char(c) => PyString::new(py, c.encode_utf8(&mut [0; 4])).into_any(),
        Value::String(text) => PyString::new(py, text).into_any(),
        Value::Uuid(uuid) => types(py)?.uuid.bind(py).call1((uuid.to_string(),))?,
        Value::DateTime(at) => match date_time_text(at) {
            Some(text) => date_time(py, &text)?,
            None => text(py, value),
        },
        Value::Duration(duration) => match delta(py, *duration) {
            Ok(delta) => delta,
            // Beyond Python's range.
            Err(_) => text(py, value),
        },
        Value::Extended(extended) => extended_object(py, value, extended)?,
        Value::List(values) => list(py, values.iter())?.into_any(),
        Value::Set(values) => {
            let members = values.iter().map(|value| hashable(py, value)).collect::<PyResult<Vec<_>>>()?;
            PySet::new(py, members)?.into_any()
        }
        Value::Map(map) => dict(py, map.iter())?.into_any(),
        Value::Entry(entry) => dict(py, [(&entry.0, &entry.1)].into_iter())?.into_any(),
        Value::Bulk(bulk) => {
            let counter = classes(py)?.counter.bind(py).call0()?;
            for (value, count) in &**bulk {
                counter.set_item(hashable(py, value)?, count)?;
            }
            counter
        }
        Value::Vertex(vertex) => vertex_object(py, vertex)?,
        Value::Edge(edge) => edge_object(py, edge)?,
        Value::VertexProperty(property) => vertex_property_object(py, property)?,
        Value::Property(property) => {
            let value = object(py, &property.value)?;
            classes(py)?.property.bind(py).call1((&*property.key, value))?
        }
        Value::Path(path) => path_object(py, path)?,
        Value::Tree(tree) => tree_object(py, tree)?.into_any(),
        Value::Subgraph(graph) => {
            let all = PyDict::new(py);
            let vertices = graph.vertices.iter().map(|vertex| vertex_object(py, vertex));
            all.set_item("vertices", PyList::new(py, vertices.collect::<PyResult<Vec<_>>>()?)?)?;
            let edges = graph.edges.iter().map(|edge| edge_object(py, edge));
            all.set_item("edges", PyList::new(py, edges.collect::<PyResult<Vec<_>>>()?)?)?;
            all.into_any()
        }
        Value::Metrics(metrics) => PyString::new(py, &metrics_text(metrics)).into_any(),
        Value::Token(Token::T(token)) => classes(py)?.token.bind(py).getattr(token.name())?,
        Value::Token(Token::Direction(direction)) => {
            classes(py)?.direction.bind(py).getattr(direction.name())?
        }
        Value::Token(_)
        | Value::WithCardinality(_)
        | Value::P(_)
        | Value::Traversal(_)
        | Value::Strategy(_)
        | Value::Lambda(_) => text(py, value),
    })
}

/// The value as Gremlin writes it.
fn text<'py>(py: Python<'py>, value: &Value) -> Bound<'py, PyAny> {
    PyString::new(py, &value.to_string()).into_any()
}

fn list<'py, 'v>(py: Python<'py>, values: impl Iterator<Item = &'v Value>) -> PyResult<Bound<'py, PyList>> {
    PyList::new(py, values.map(|value| object(py, value)).collect::<PyResult<Vec<_>>>()?)
}

fn dict<'py, 'v>(
    py: Python<'py>,
    entries: impl Iterator<Item = (&'v Value, &'v Value)>,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (key, value) in entries {
        dict.set_item(hashable(py, key)?, object(py, value)?)?;
    }
    Ok(dict)
}

/// The object of a key or of a member of a set: lists are tuples, sets are frozen, maps are tuples of pairs.
fn hashable<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    let all = |values: &mut dyn Iterator<Item = &Value>| {
        values.map(|value| hashable(py, value)).collect::<PyResult<Vec<_>>>()
    };
    let pair = |key: &Value, value: &Value| PyTuple::new(py, [hashable(py, key)?, hashable(py, value)?]);
    Ok(match value {
        Value::List(values) => PyTuple::new(py, all(&mut values.iter())?)?.into_any(),
        Value::Set(values) => PyFrozenSet::new(py, all(&mut values.iter())?)?.into_any(),
        Value::Map(map) => {
            let pairs = map.iter().map(|(key, value)| pair(key, value)).collect::<PyResult<Vec<_>>>()?;
            PyTuple::new(py, pairs)?.into_any()
        }
        Value::Entry(entry) => PyTuple::new(py, [pair(&entry.0, &entry.1)?])?.into_any(),
        Value::Bulk(bulk) => {
            let pairs = bulk.iter().map(|(value, count)| {
                let count = count.into_pyobject(py)?.into_any();
                PyTuple::new(py, [hashable(py, value)?, count])
            });
            PyTuple::new(py, pairs.collect::<PyResult<Vec<_>>>()?)?.into_any()
        }
        Value::Tree(_) | Value::Subgraph(_) => text(py, value),
        value => object(py, value)?,
    })
}

fn vertex_object<'py>(py: Python<'py>, vertex: &Vertex) -> PyResult<Bound<'py, PyAny>> {
    let properties = PyDict::new(py);
    let label = vertex.detail.as_ref().map_or("", |detail| &*detail.label);
    for property in vertex.detail.iter().flat_map(|detail| &detail.properties) {
        let value = object(py, &property.value)?;
        match properties.get_item(&*property.label)? {
            Some(values) => values.cast_into::<PyList>()?.append(value)?,
            None => properties.set_item(&*property.label, PyList::new(py, [value])?)?,
        }
    }
    classes(py)?.vertex.bind(py).call1((object(py, vertex.id())?, label, properties))
}

fn properties<'py>(py: Python<'py>, properties: &[Arc<Property>]) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for property in properties {
        dict.set_item(&*property.key, object(py, &property.value)?)?;
    }
    Ok(dict)
}

fn edge_object<'py>(py: Python<'py>, edge: &Edge) -> PyResult<Bound<'py, PyAny>> {
    let class = classes(py)?.edge.bind(py);
    let Some(EdgeDetail { id, label, source, target, properties: all }) = &edge.detail else {
        return Err(PyValueError::new_err("an edge without details"));
    };
    let [source, target] = [vertex_object(py, source)?, vertex_object(py, target)?];
    class.call1((object(py, id)?, &**label, source, target, properties(py, all)?))
}

fn vertex_property_object<'py>(py: Python<'py>, property: &VertexProperty) -> PyResult<Bound<'py, PyAny>> {
    let class = classes(py)?.vertex_property.bind(py);
    let id = property.detail.as_ref().map_or(&Value::Null, |detail| &detail.id);
    let meta = property.detail.as_ref().map_or(&[][..], |detail| &detail.properties);
    class.call1((object(py, id)?, &*property.label, object(py, &property.value)?, properties(py, meta)?))
}

fn path_object<'py>(py: Python<'py>, path: &Path) -> PyResult<Bound<'py, PyAny>> {
    let labels = path.labels.iter().map(|labels| PyTuple::new(py, labels.iter().map(|label| &**label)));
    let labels = PyList::new(py, labels.collect::<PyResult<Vec<_>>>()?)?;
    classes(py)?.path.bind(py).call1((list(py, path.objects.iter())?, labels))
}

fn tree_object<'py>(py: Python<'py>, tree: &Tree) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (value, below) in &tree.children {
        dict.set_item(hashable(py, value)?, tree_object(py, below)?)?;
    }
    Ok(dict)
}

/// The metrics as lines of text.
pub(crate) fn metrics_text(metrics: &Metrics) -> String {
    fn lines(steps: &[Metric], indent: usize, out: &mut String) {
        for step in steps {
            let counts = step.counts.iter().map(|(name, count)| format!("  {name} {count}"));
            let milliseconds = step.nanoseconds as f64 / 1e6;
            let name = format!("{:indent$}{}", "", step.name);
            out.push_str(&format!("{name:<60} {milliseconds:>10.3} ms{}\n", counts.collect::<String>()));
            lines(&step.nested, indent + 2, out);
        }
    }
    let mut out = String::new();
    lines(&metrics.steps, 0, &mut out);
    out.push_str(&format!("{:<60} {:>10.3} ms\n", "total", metrics.nanoseconds as f64 / 1e6));
    out
}

/// The ISO text of a date-time, if Python has its year.
fn date_time_text(at: &OffsetDateTime) -> Option<String> {
    let (hours, minutes, seconds) = at.offset().as_hms();
    let sign = if at.offset().is_negative() { '-' } else { '+' };
    let mut text = format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}{sign}{:02}:{:02}",
        at.year(),
        u8::from(at.month()),
        at.day(),
        at.hour(),
        at.minute(),
        at.second(),
        at.microsecond(),
        hours.unsigned_abs(),
        minutes.unsigned_abs()
    );
    if seconds != 0 {
        text.push_str(&format!(":{:02}", seconds.unsigned_abs()));
    }
    (1..=9999).contains(&at.year()).then_some(text)
}

fn delta(py: Python<'_>, duration: Duration) -> PyResult<Bound<'_, PyAny>> {
    let class = types(py)?.delta.bind(py);
    class.call1((0, duration.seconds, duration.nanoseconds / 1000))
}

fn extended_object<'py>(py: Python<'py>, value: &Value, extended: &Extended) -> PyResult<Bound<'py, PyAny>> {
    let at = |nanoseconds: i128| {
        let at = OffsetDateTime::from_unix_timestamp_nanos(nanoseconds).ok();
        match at.as_ref().and_then(date_time_text) {
            Some(text) => date_time(py, &text),
            None => Ok(text(py, value)),
        }
    };
    match extended {
        Extended::Date(milliseconds) | Extended::Timestamp(milliseconds) => {
            at(i128::from(*milliseconds) * 1_000_000)
        }
        Extended::Instant(seconds, nanoseconds) => {
            at(i128::from(*seconds) * 1_000_000_000 + i128::from(*nanoseconds))
        }
        Extended::LocalDate(year, month, day) if (1..=9999).contains(year) => {
            date(py, &format!("{year:04}-{month:02}-{day:02}"))
        }
        Extended::Bytes(bytes) => Ok(PyBytes::new(py, bytes).into_any()),
        Extended::InetAddress(address) => Ok(PyString::new(py, &address.to_string()).into_any()),
        _ => Ok(text(py, value)),
    }
}

/// The value of a Python object.
///
/// # Errors
/// `TypeError` for other types; `ValueError` for values beyond the types of Gremlin, or nested too deeply.
pub(crate) fn value(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    value_at(object, 0)
}

fn value_at(object: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    if depth > DEPTH_MAX {
        return Err(PyValueError::new_err(format!("a value is nested more than {DEPTH_MAX} times")));
    }
    if object.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(Value::text(text.to_cow()?));
    }
    if let Ok(truth) = object.cast::<PyBool>() {
        return Ok(Value::Boolean(truth.is_true()));
    }
    if object.is_instance_of::<PyInt>() {
        return integer(object);
    }
    if let Ok(number) = object.cast::<PyFloat>() {
        return Ok(Value::Double(number.value()));
    }
    if let Some(value) = collection(object, depth)? {
        return Ok(value);
    }
    if let Ok(iri) = object.cast::<Iri>() {
        return Ok(Value::text(NamedNode::as_str(&iri.get().0)));
    }
    if let Ok(literal) = object.cast::<PyLiteral>() {
        return value_at(&literal.getattr("value")?, depth + 1);
    }
    if let Some(value) = of_library(object)? {
        return Ok(value);
    }
    if let Some(value) = element(object, depth)? {
        return Ok(value);
    }
    // Numbers of other libraries, such as numpy.
    if let Ok(number) = object.extract::<i64>() {
        return Ok(small_integer(number));
    }
    if object.hasattr("__float__")? {
        return Ok(Value::Double(object.extract()?));
    }
    let message =
        format!("a value of type {} cannot be a binding", object.get_type().fully_qualified_name()?);
    Err(PyTypeError::new_err(message))
}

/// Int if it fits, as the literals of the language.
fn small_integer(number: i64) -> Value {
    i32::try_from(number).map_or(Value::Long(number), Value::Int)
}

fn integer(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Ok(number) = object.extract::<i64>() {
        return Ok(small_integer(number));
    }
    let digits: String = object.call_method1("__format__", ("x",))?.extract()?;
    let number = BigInt::parse_bytes(digits.as_bytes(), 16);
    number.map(|number| Value::BigInteger(Arc::new(number))).ok_or_else(|| PyValueError::new_err(digits))
}

fn collection(object: &Bound<'_, PyAny>, depth: usize) -> PyResult<Option<Value>> {
    let all = || -> PyResult<Vec<Value>> {
        object.try_iter()?.map(|member| value_at(&member?, depth + 1)).collect()
    };
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        return Ok(Some(Value::list(all()?)));
    }
    if object.is_instance_of::<PySet>() || object.is_instance_of::<PyFrozenSet>() {
        return Ok(Some(Value::from(all()?.into_iter().collect::<Set>())));
    }
    let Ok(dict) = object.cast::<PyDict>() else { return Ok(None) };
    let mut map = Map::default();
    for (key, value) in dict {
        map.insert(value_at(&key, depth + 1)?, value_at(&value, depth + 1)?);
    }
    Ok(Some(Value::map(map)))
}

/// The value of an object of the standard library.
fn of_library(object: &Bound<'_, PyAny>) -> PyResult<Option<Value>> {
    let (py, types) = (object.py(), types(object.py())?);
    let is = |class: &Py<PyAny>| object.is_instance(class.bind(py));
    let out_of_range = |_| PyValueError::new_err("a date out of range");
    if is(&types.decimal)? {
        let text: String = object.str()?.extract()?;
        let number = BigDecimal::from_str(&text)
            .map_err(|_| PyValueError::new_err(format!("{text} is not a decimal number")))?;
        return Ok(Some(Value::BigDecimal(Arc::new(number))));
    }
    if is(&types.uuid)? {
        let text: String = object.str()?.extract()?;
        let uuid = Uuid::parse_str(&text).map_err(|error| PyValueError::new_err(error.to_string()))?;
        return Ok(Some(Value::Uuid(uuid)));
    }
    if is(&types.delta)? {
        let part = |name: &str| object.getattr(name)?.extract::<i64>();
        let seconds = part("days")? * 86_400 + part("seconds")?;
        let nanoseconds = object.getattr("microseconds")?.extract::<u32>()? * 1000;
        return Ok(Some(Value::Duration(Duration { seconds, nanoseconds })));
    }
    if !is(&types.date)? {
        return Ok(None);
    }
    let part = |name: &str| object.getattr(name)?.extract::<u8>();
    let (year, month, day) = (object.getattr("year")?.extract::<i32>()?, part("month")?, part("day")?);
    if !is(&types.date_time)? {
        return Ok(Some(Value::Extended(Arc::new(Extended::LocalDate(year, month, day)))));
    }
    let date = Date::from_calendar_date(year, Month::try_from(month).map_err(out_of_range)?, day);
    let microsecond = object.getattr("microsecond")?.extract::<u32>()?;
    let at = date
        .and_then(|date| date.with_hms_micro(0, 0, 0, microsecond))
        .map_err(out_of_range)?
        .replace_hour(part("hour")?)
        .and_then(|at| at.replace_minute(part("minute").unwrap_or(0)))
        .and_then(|at| at.replace_second(part("second").unwrap_or(0)))
        .map_err(out_of_range)?;
    let offset = object.call_method0("utcoffset")?;
    let offset = match offset.is_none() {
        true => UtcOffset::UTC,
        false => {
            let seconds: f64 = offset.call_method0("total_seconds")?.extract()?;
            #[allow(clippy::cast_possible_truncation, reason = "an offset is less than a day")]
            UtcOffset::from_whole_seconds(seconds as i32).map_err(out_of_range)?
        }
    };
    Ok(Some(Value::from(at.assume_offset(offset))))
}

/// The value of an object of `vervet.elements`.
fn element(object: &Bound<'_, PyAny>, depth: usize) -> PyResult<Option<Value>> {
    let (py, classes) = (object.py(), classes(object.py())?);
    let part = |name: &str| value_at(&object.getattr(name)?, depth + 1);
    let label = || -> PyResult<Arc<str>> { Ok(object.getattr("label")?.extract::<String>()?.into()) };
    let is = |class: &Py<PyAny>| object.is_instance(class.bind(py));
    if is(&classes.vertex)? {
        let detail = VertexDetail { id: part("id")?, label: label()?, properties: Vec::new() };
        return Ok(Some(Value::from(Vertex { key: 0, detail: Some(Arc::new(detail)) })));
    }
    if is(&classes.edge)? {
        let (Value::Vertex(source), Value::Vertex(target)) = (part("source")?, part("target")?) else {
            return Err(PyTypeError::new_err("the ends of an edge are vertices"));
        };
        let detail = EdgeDetail { id: part("id")?, label: label()?, source, target, properties: Vec::new() };
        return Ok(Some(Value::from(Edge { key: Default::default(), detail: Some(detail) })));
    }
    let name = || object.getattr("name")?.extract::<String>();
    if is(&classes.token)? {
        return Ok(T::from_name(&name()?).map(|token| Value::from(Token::T(token))));
    }
    if is(&classes.direction)? {
        return Ok(Direction::from_name(&name()?).map(|direction| Value::from(Token::Direction(direction))));
    }
    Ok(None)
}

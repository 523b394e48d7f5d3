//! Literals as Python values, and Python values as literals.
//!
//! A literal has a Python value if that value determines it up to its lexical form: numbers, booleans,
//! `xsd:string`, dates and times within Python's ranges. All others (language-tagged strings, other
//! datatypes, invalid lexical forms) stay literals.

use oxrdf::vocab::xsd;
use oxrdf::{Literal, NamedNodeRef};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString};
use vervet_results::lexical::{
    boolean, double, is_date, is_integer_type, is_number, is_time, zone_of_date_time,
};

/// The Python value of a literal, if it has one.
///
/// # Errors
/// Exceptions of Python other than for a value beyond its ranges.
pub(crate) fn native<'py>(
    py: Python<'py>,
    lexical: &str,
    datatype: &str,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if is_integer_type(datatype) {
        return match lexical.parse::<i64>() {
            Ok(number) => Ok(Some(number.into_pyobject(py)?.into_any())),
            Err(_) if is_number(lexical, false) => in_range(py, call(py, &INT, "builtins", "int", lexical)),
            Err(_) => Ok(None),
        };
    }
    Ok(match NamedNodeRef::new_unchecked(datatype) {
        xsd::STRING => Some(PyString::new(py, lexical).into_any()),
        xsd::BOOLEAN => boolean(lexical).map(|value| PyBool::new(py, value).to_owned().into_any()),
        xsd::DOUBLE | xsd::FLOAT => double(lexical).map(|value| PyFloat::new(py, value).into_any()),
        xsd::DECIMAL if is_number(lexical, true) => Some(call(py, &DECIMAL, "decimal", "Decimal", lexical)?),
        xsd::DATE if is_date(lexical) => in_range(py, date(py, lexical))?,
        xsd::DATE_TIME if zone_of_date_time(lexical).is_some() => in_range(py, date_time(py, lexical))?,
        xsd::TIME if is_time(lexical) => {
            in_range(py, call(py, &TIME, "datetime", "time.fromisoformat", lexical))?
        }
        _ => None,
    })
}

/// `datetime.date` of an ISO text.
pub(crate) fn date<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    call(py, &DATE, "datetime", "date.fromisoformat", text)
}

/// `datetime.datetime` of an ISO text.
pub(crate) fn date_time<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    call(py, &DATE_TIME, "datetime", "datetime.fromisoformat", text)
}

/// `decimal.Decimal` of a text.
pub(crate) fn decimal<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    call(py, &DECIMAL, "decimal", "Decimal", text)
}

static INT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static DECIMAL: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static DATE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static DATE_TIME: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static TIME: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Calls a function of a module, found once, with a text.
fn call<'py>(
    py: Python<'py>,
    cell: &PyOnceLock<Py<PyAny>>,
    module: &str,
    path: &str,
    text: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let found = cell.get_or_try_init(py, || {
        let module = py.import(module)?.into_any();
        path.split('.').try_fold(module, |object, name| object.getattr(name)).map(Bound::unbind)
    })?;
    found.bind(py).call1((text,))
}

/// `None` for the `ValueError` of a value that Python cannot represent.
fn in_range<'py>(py: Python<'py>, done: PyResult<Bound<'py, PyAny>>) -> PyResult<Option<Bound<'py, PyAny>>> {
    match done {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_instance_of::<PyValueError>(py) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Types of the standard library that are not in the stable ABI.
pub(crate) struct Types {
    pub decimal: Py<PyAny>,
    pub date: Py<PyAny>,
    pub date_time: Py<PyAny>,
    pub time: Py<PyAny>,
    pub delta: Py<PyAny>,
    pub uuid: Py<PyAny>,
}

/// See [`Types`].
pub(crate) fn types(py: Python<'_>) -> PyResult<&Types> {
    static TYPES: PyOnceLock<Types> = PyOnceLock::new();
    TYPES.get_or_try_init(py, || {
        let dates = py.import("datetime")?;
        Ok(Types {
            decimal: py.import("decimal")?.getattr("Decimal")?.unbind(),
            date: dates.getattr("date")?.unbind(),
            date_time: dates.getattr("datetime")?.unbind(),
            time: dates.getattr("time")?.unbind(),
            delta: dates.getattr("timedelta")?.unbind(),
            uuid: py.import("uuid")?.getattr("UUID")?.unbind(),
        })
    })
}

/// The literal of a Python value.
///
/// # Errors
/// `TypeError` for other types; `ValueError` for a decimal that is not a number.
pub(crate) fn literal(value: &Bound<'_, PyAny>) -> PyResult<Literal> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Literal::new_simple_literal(text.to_cow()?.into_owned()));
    }
    if let Ok(truth) = value.cast::<PyBool>() {
        return Ok(Literal::from(truth.is_true()));
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(match value.extract::<i64>() {
            Ok(number) => Literal::from(number),
            Err(_) => Literal::new_typed_literal(value.str()?.to_cow()?, xsd::INTEGER),
        });
    }
    if let Ok(number) = value.cast::<PyFloat>() {
        return Ok(Literal::from(number.value()));
    }
    let (py, types) = (value.py(), types(value.py())?);
    if value.is_instance(types.decimal.bind(py))? {
        let text: String = value.call_method1("__format__", ("f",))?.extract()?;
        if !is_number(&text, true) {
            return Err(PyValueError::new_err(format!("{text} is not a value of xsd:decimal")));
        }
        return Ok(Literal::new_typed_literal(text, xsd::DECIMAL));
    }
    // A date-time is also a date.
    for (class, datatype) in
        [(&types.date_time, xsd::DATE_TIME), (&types.date, xsd::DATE), (&types.time, xsd::TIME)]
    {
        if value.is_instance(class.bind(py))? {
            return date_literal(value, datatype);
        }
    }
    // Numbers of other libraries, such as numpy.
    if let Ok(number) = value.extract::<i64>() {
        return Ok(Literal::from(number));
    }
    if value.hasattr("__float__")? {
        return Ok(Literal::from(value.extract::<f64>()?));
    }
    let message = format!("a value of type {} has no RDF term", value.get_type().fully_qualified_name()?);
    Err(PyTypeError::new_err(message))
}

fn date_literal(value: &Bound<'_, PyAny>, datatype: NamedNodeRef<'_>) -> PyResult<Literal> {
    let mut text: String = value.call_method0("isoformat")?.extract()?;
    if text.contains('.') && datatype != xsd::DATE {
        // Canonical forms have no trailing zeros.
        let end = text.rfind(['Z', '+', '-']).filter(|&end| text[..end].contains('.')).unwrap_or(text.len());
        let zone = text.split_off(end);
        text.truncate(text.trim_end_matches('0').len());
        text.push_str(&zone);
    }
    if let Some(rest) = text.strip_suffix("+00:00") {
        text = format!("{rest}Z");
    }
    Ok(Literal::new_typed_literal(text, datatype))
}

//! RDF terms as immutable Python objects, and the conversion of cells.

use crate::literals;
use oxrdf::{BaseDirection, BlankNode, Literal, NamedNode, NamedOrBlankNode, Term, Triple};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

/// An IRI.
#[pyclass(frozen, eq, ord, hash, name = "IRI", module = "vervet")]
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Iri(pub(crate) NamedNode);

#[pymethods]
impl Iri {
    #[new]
    fn new(value: &str) -> PyResult<Self> {
        NamedNode::new(value)
            .map(Self)
            .map_err(|error| PyValueError::new_err(format!("{value:?} is not an IRI: {error}")))
    }

    /// The IRI as text.
    #[getter]
    fn value(&self) -> &str {
        self.0.as_str()
    }

    /// The term in the syntax of N-Triples.
    fn n3(&self) -> String {
        self.0.to_string()
    }

    fn __str__(&self) -> &str {
        self.0.as_str()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("IRI({})", quoted(py, self.0.as_str())?))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        reduced(slf.as_any(), (slf.get().0.as_str(),))
    }
}

/// A blank node.
#[pyclass(frozen, eq, hash, name = "BlankNode", module = "vervet")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Blank(pub(crate) BlankNode);

#[pymethods]
impl Blank {
    #[new]
    fn new(label: &str) -> PyResult<Self> {
        BlankNode::new(label)
            .map(Self)
            .map_err(|error| PyValueError::new_err(format!("{label:?} is not a blank-node label: {error}")))
    }

    /// The label, without `_:`.
    #[getter]
    fn value(&self) -> &str {
        self.0.as_str()
    }

    /// The term in the syntax of N-Triples.
    fn n3(&self) -> String {
        self.0.to_string()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("BlankNode({})", quoted(py, self.0.as_str())?))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        reduced(slf.as_any(), (slf.get().0.as_str(),))
    }
}

/// A literal: a lexical form with a datatype or a language.
#[pyclass(frozen, eq, hash, name = "Literal", module = "vervet")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PyLiteral(pub(crate) Literal);

#[pymethods]
impl PyLiteral {
    #[new]
    #[pyo3(signature = (value, datatype=None, language=None))]
    fn new(
        value: &Bound<'_, PyAny>,
        datatype: Option<&Bound<'_, PyAny>>,
        language: Option<&str>,
    ) -> PyResult<Self> {
        if datatype.is_none() && language.is_none() {
            return literals::literal(value).map(Self);
        }
        let Ok(text) = value.cast::<PyString>() else {
            return Err(PyTypeError::new_err(
                "with a datatype or a language, the value is a lexical form: a str",
            ));
        };
        let text = text.to_cow()?.into_owned();
        match (datatype, language) {
            (Some(_), Some(_)) => {
                Err(PyValueError::new_err("a literal has a datatype or a language, not both"))
            }
            (_, Some(language)) => tagged(text, language).map(Self),
            (Some(datatype), None) => {
                let datatype = match datatype.cast::<Iri>() {
                    Ok(iri) => iri.get().0.clone(),
                    Err(_) => Iri::new(&datatype.extract::<String>()?)?.0,
                };
                Ok(Self(Literal::new_typed_literal(text, datatype)))
            }
            (None, None) => literals::literal(value).map(Self),
        }
    }

    /// The number, truth value, date or text; the lexical form if Python has no such value.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let lexical = self.0.value();
        match literals::native(py, lexical, self.0.datatype().as_str())? {
            Some(value) => Ok(value),
            None => Ok(PyString::new(py, lexical).into_any()),
        }
    }

    /// The lexical form.
    #[getter]
    fn lexical(&self) -> &str {
        self.0.value()
    }

    /// The IRI of the datatype.
    #[getter]
    fn datatype(&self) -> Iri {
        Iri(self.0.datatype().into_owned())
    }

    /// The language tag in lower case, or `None`. A base direction follows it: `ar--rtl`.
    #[getter]
    fn language(&self) -> Option<String> {
        let language = self.0.language()?;
        Some(match self.0.direction() {
            None => language.to_owned(),
            Some(BaseDirection::Ltr) => format!("{language}--ltr"),
            Some(BaseDirection::Rtl) => format!("{language}--rtl"),
        })
    }

    /// The term in the syntax of N-Triples.
    fn n3(&self) -> String {
        self.0.to_string()
    }

    fn __str__(&self) -> &str {
        self.0.value()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let text = quoted(py, self.0.value())?;
        Ok(match self.language() {
            Some(language) => format!("Literal({text}, language={})", quoted(py, &language)?),
            None if self.0.datatype() == oxrdf::vocab::xsd::STRING => format!("Literal({text})"),
            None => format!("Literal({text}, datatype={})", quoted(py, self.0.datatype().as_str())?),
        })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let literal = &slf.get().0;
        match slf.get().language() {
            Some(language) => reduced(slf.as_any(), (literal.value(), None::<&str>, language)),
            None => reduced(slf.as_any(), (literal.value(), literal.datatype().as_str())),
        }
    }
}

/// A triple term of RDF 1.2.
#[pyclass(frozen, eq, hash, name = "Triple", module = "vervet")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PyTriple(pub(crate) Triple);

#[pymethods]
impl PyTriple {
    #[new]
    fn new(
        subject: &Bound<'_, PyAny>,
        predicate: &Bound<'_, PyAny>,
        object: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let subject = match term(subject)? {
            Term::NamedNode(node) => NamedOrBlankNode::NamedNode(node),
            Term::BlankNode(node) => NamedOrBlankNode::BlankNode(node),
            _ => return Err(PyTypeError::new_err("the subject of a triple is an IRI or a blank node")),
        };
        let Term::NamedNode(predicate) = term(predicate)? else {
            return Err(PyTypeError::new_err("the predicate of a triple is an IRI"));
        };
        Ok(Self(Triple { subject, predicate, object: term(object)? }))
    }

    /// The subject.
    #[getter]
    fn subject<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        object(py, self.0.subject.clone().into())
    }

    /// The predicate.
    #[getter]
    fn predicate(&self) -> Iri {
        Iri(self.0.predicate.clone())
    }

    /// The object.
    #[getter]
    fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        object(py, self.0.object.clone())
    }

    /// The term in the syntax of N-Triples.
    fn n3(&self) -> String {
        Term::from(self.0.clone()).to_string()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let [subject, object] = [self.subject(py)?, self.object(py)?].map(|term| term.repr());
        Ok(format!("Triple({}, {}, {})", subject?, self.predicate().__repr__(py)?, object?))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let (py, triple) = (slf.py(), slf.get());
        reduced(slf.as_any(), (triple.subject(py)?, triple.predicate(), triple.object(py)?))
    }
}

/// The literal with a language, which a base direction may follow.
fn tagged(text: String, language: &str) -> PyResult<Literal> {
    let (tag, direction) = match language.split_once("--") {
        Some((tag, "ltr")) => (tag, Some(BaseDirection::Ltr)),
        Some((tag, "rtl")) => (tag, Some(BaseDirection::Rtl)),
        _ => (language, None),
    };
    match direction {
        Some(direction) => Literal::new_directional_language_tagged_literal(text, tag, direction),
        None => Literal::new_language_tagged_literal(text, tag),
    }
    .map_err(|error| PyValueError::new_err(format!("{language:?} is not a language: {error}")))
}

/// The `__reduce__` of an object whose class is called with `arguments`.
fn reduced<'py>(
    object: &Bound<'py, PyAny>,
    arguments: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
) -> PyResult<Bound<'py, PyTuple>> {
    let py = object.py();
    PyTuple::new(py, [object.get_type().into_any(), arguments.into_pyobject(py)?.into_any()])
}

/// A text as Python writes it in source code.
fn quoted(py: Python<'_>, text: &str) -> PyResult<String> {
    PyString::new(py, text).repr()?.extract()
}

/// The term of a Python object: a term, or a value that is a literal.
///
/// # Errors
/// As [`literals::literal`].
pub(crate) fn term(value: &Bound<'_, PyAny>) -> PyResult<Term> {
    if let Ok(iri) = value.cast::<Iri>() {
        return Ok(iri.get().0.clone().into());
    }
    if let Ok(literal) = value.cast::<PyLiteral>() {
        return Ok(literal.get().0.clone().into());
    }
    if let Ok(blank) = value.cast::<Blank>() {
        return Ok(blank.get().0.clone().into());
    }
    if let Ok(triple) = value.cast::<PyTriple>() {
        return Ok(triple.get().0.clone().into());
    }
    literals::literal(value).map(Term::from)
}

/// The Python object of a term.
pub(crate) fn object(py: Python<'_>, term: Term) -> PyResult<Bound<'_, PyAny>> {
    Ok(match term {
        Term::NamedNode(node) => Bound::new(py, Iri(node))?.into_any(),
        Term::BlankNode(node) => Bound::new(py, Blank(node))?.into_any(),
        Term::Literal(literal) => Bound::new(py, PyLiteral(literal))?.into_any(),
        Term::Triple(triple) => Bound::new(py, PyTriple(*triple))?.into_any(),
    })
}

/// The Python object of a cell: a Python value where the literal has one, else the term.
pub(crate) fn cell(py: Python<'_>, term: Term) -> PyResult<Bound<'_, PyAny>> {
    if let Term::Literal(literal) = &term
        && literal.language().is_none()
        && let Some(value) = literals::native(py, literal.value(), literal.datatype().as_str())?
    {
        return Ok(value);
    }
    object(py, term)
}

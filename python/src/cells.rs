//! The cells of results: decoded in batches without the interpreter lock, then handed over at once.

use crate::{gremlin_values, terms};
use oxrdf::{Literal, Term, Triple};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyString, PyTuple};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::OnceLock;
use vervet::gremlin::Value;
use vervet::{GremlinResults, Id, Result, Solutions};
use vervet_model::{Inline, LiteralKind, TermParts};

/// The name of the column of results that are not maps.
const VALUE_COLUMN: &str = "value";

/// The rows of a result.
#[derive(Debug)]
pub(crate) enum Table {
    /// Of a `SELECT`.
    Solutions(Solutions),
    /// Of a `CONSTRUCT` or `DESCRIBE`.
    Graph(Vec<Triple>),
    /// Of a traversal.
    Values(Values),
}

/// The results of a traversal.
#[derive(Debug)]
pub(crate) struct Values {
    pub results: GremlinResults,
    /// The number of results up to and including each run.
    ends: Vec<u64>,
    /// The keys of the results if all are maps with texts as keys.
    keys: OnceLock<Option<Vec<String>>>,
}

impl Values {
    pub(crate) fn new(results: GremlinResults) -> Self {
        let sum = |sum: &mut u64, (_, count): &(Value, u64)| {
            *sum = sum.saturating_add(*count);
            Some(*sum)
        };
        let ends = results.counted().iter().scan(0, sum).collect();
        Self { results, ends, keys: OnceLock::new() }
    }

    /// The result at a position below the number of results.
    pub(crate) fn at(&self, row: usize) -> &Value {
        let run = self.ends.partition_point(|&end| end <= row as u64);
        &self.results.counted()[run].0
    }

    /// See [`Values::keys`].
    pub(crate) fn keys(&self) -> Option<&[String]> {
        self.keys.get_or_init(|| keys_of(self.results.counted())).as_deref()
    }
}

fn keys_of(results: &[(Value, u64)]) -> Option<Vec<String>> {
    let mut keys = indexed::Names::default();
    for (value, _) in results {
        let Value::Map(map) = value else { return None };
        for key in map.keys() {
            keys.add(key.as_text()?);
        }
    }
    (!results.is_empty()).then_some(keys.names)
}

mod indexed {
    use rustc_hash::FxHashSet;

    /// Distinct names in the order of their first occurrence.
    #[derive(Default)]
    pub(super) struct Names {
        pub names: Vec<String>,
        seen: FxHashSet<String>,
    }

    impl Names {
        pub(super) fn add(&mut self, name: &str) {
            if !self.seen.contains(name) {
                self.seen.insert(name.to_owned());
                self.names.push(name.to_owned());
            }
        }
    }
}

impl Table {
    /// The names of the columns.
    pub(crate) fn columns(&self) -> Vec<String> {
        match self {
            Self::Solutions(solutions) => solutions.variables().to_vec(),
            Self::Graph(_) => ["subject", "predicate", "object"].map(str::to_owned).to_vec(),
            Self::Values(values) => {
                values.keys().map_or_else(|| vec![VALUE_COLUMN.to_owned()], <[String]>::to_vec)
            }
        }
    }

    /// The number of rows.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Solutions(solutions) => solutions.len() as u64,
            Self::Graph(triples) => triples.len() as u64,
            Self::Values(values) => values.results.len(),
        }
    }

    /// These rows as tuples, up to the end of the table.
    ///
    /// # Errors
    /// Damaged data, and exceptions of Python.
    pub(crate) fn rows<'py>(
        &self,
        py: Python<'py>,
        rows: Range<usize>,
        keep_terms: bool,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let end = rows.end.min(usize::try_from(self.len()).unwrap_or(usize::MAX));
        let rows = rows.start.min(end)..end;
        match self {
            Self::Solutions(solutions) => solution_rows(py, solutions, rows, keep_terms),
            Self::Graph(triples) => {
                let row = |triple: &Triple| {
                    let object = match keep_terms {
                        true => terms::object(py, triple.object.clone())?,
                        false => terms::cell(py, triple.object.clone())?,
                    };
                    let subject = terms::object(py, triple.subject.clone().into())?;
                    let predicate = terms::object(py, triple.predicate.clone().into())?;
                    Ok(PyTuple::new(py, [subject, predicate, object])?.into_any())
                };
                triples[rows].iter().map(row).collect()
            }
            Self::Values(values) => rows.map(|row| value_row(py, values, row)).collect(),
        }
    }
}

fn value_row<'py>(py: Python<'py>, values: &Values, row: usize) -> PyResult<Bound<'py, PyAny>> {
    let value = values.at(row);
    let (Some(keys), Value::Map(map)) = (values.keys(), value) else {
        return Ok(PyTuple::new(py, [gremlin_values::object(py, value)?])?.into_any());
    };
    let cells = keys.iter().map(|key| match map.get(&Value::text(key)) {
        Some(value) => gremlin_values::object(py, value),
        None => Ok(py.None().into_bound(py)),
    });
    Ok(PyTuple::new(py, cells.collect::<PyResult<Vec<_>>>()?)?.into_any())
}

/// A decoded term.
enum Cell {
    Unbound,
    Boolean(bool),
    Integer(i64),
    Double(f64),
    /// An `xsd:string`.
    Text(String),
    Term(Term),
}

/// The distinct cells of a batch, and for each column the positions of its cells.
struct Batch {
    cells: Vec<Cell>,
    columns: Vec<Vec<usize>>,
}

fn solution_rows<'py>(
    py: Python<'py>,
    solutions: &Solutions,
    rows: Range<usize>,
    keep_terms: bool,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let length = rows.len();
    let batch =
        py.detach(|| decoded(solutions, rows, keep_terms)).map_err(|error| crate::error::raised(&error))?;
    let objects = batch.cells.into_iter().map(|cell| match cell {
        Cell::Unbound => Ok(py.None().into_bound(py)),
        Cell::Boolean(truth) => Ok(PyBool::new(py, truth).to_owned().into_any()),
        Cell::Integer(number) => Ok(number.into_pyobject(py)?.into_any()),
        Cell::Double(number) => Ok(PyFloat::new(py, number).into_any()),
        Cell::Text(text) => Ok(PyString::new(py, &text).into_any()),
        Cell::Term(term) if keep_terms => terms::object(py, term),
        Cell::Term(term) => terms::cell(py, term),
    });
    let objects = objects.collect::<PyResult<Vec<_>>>()?;
    (0..length)
        .map(|row| {
            let cells = batch.columns.iter().map(|column| &objects[column[row]]);
            Ok(PyTuple::new(py, cells)?.into_any())
        })
        .collect()
}

fn decoded(solutions: &Solutions, rows: Range<usize>, keep_terms: bool) -> Result<Batch> {
    let mut batch = Batch { cells: Vec::new(), columns: Vec::new() };
    let mut seen: FxHashMap<Id, usize> = FxHashMap::default();
    let mut scratch = String::new();
    for name in solutions.variables() {
        let ids = solutions.column(name).unwrap_or_default();
        let mut column = Vec::with_capacity(rows.len());
        for &id in ids.get(rows.clone()).unwrap_or_default() {
            if let Some(&position) = seen.get(&id) {
                column.push(position);
                continue;
            }
            seen.insert(id, batch.cells.len());
            column.push(batch.cells.len());
            batch.cells.push(cell(solutions, id, &mut scratch, keep_terms)?);
        }
        batch.columns.push(column);
    }
    Ok(batch)
}

fn cell(solutions: &Solutions, id: Id, scratch: &mut String, keep_terms: bool) -> Result<Cell> {
    if !keep_terms && let Some(inline) = Inline::from_id(id) {
        match inline {
            Inline::ShortString { .. } => {
                return Ok(Cell::Text(inline.as_str().unwrap_or_default().to_owned()));
            }
            Inline::Integer(number) | Inline::Long(number) => return Ok(Cell::Integer(number)),
            Inline::Int(number) => return Ok(Cell::Integer(number.into())),
            Inline::Double(number) => return Ok(Cell::Double(number)),
            Inline::Boolean(truth) => return Ok(Cell::Boolean(truth)),
            Inline::Decimal { .. } | Inline::DateTime(_) | Inline::Date(_) => {}
        }
    }
    let mut cell = Cell::Unbound;
    solutions.read(id, scratch, &mut |parts| {
        cell = match parts {
            TermParts::Literal { head, tail, kind: LiteralKind::String } => {
                let text = [head, tail].concat();
                match keep_terms {
                    true => Cell::Term(Literal::new_simple_literal(text).into()),
                    false => Cell::Text(text),
                }
            }
            parts => Cell::Term(parts.to_term()),
        };
    })?;
    Ok(cell)
}

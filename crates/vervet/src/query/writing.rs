//! Result serialization: a query runs, and its batches are written directly to the output.

use crate::query::execute::{Execution, MaterializedSolutions};
use crate::query::graph_sink::{EvaluatorTerms, GraphOutput};
use crate::query::prepared;
use crate::{Answer, Database, QueryOptions};
use oxrdf::NamedNode;
use std::io::Write;
use vervet_algebra::{Form, Query, Variable};
use vervet_expression::Evaluator;
use vervet_kernel::{Batch, Flow};
use vervet_model::{Error, ErrorKind, Id, Result, TermParts};
pub use vervet_results::Format as OutputFormat;
use vervet_results::{ArrowWriter, ColumnType, GraphWriter, RowWriter};

/// Counts of a written result.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Written {
    /// Rows of a `SELECT`, triples of a graph, 1 for `ASK`.
    pub rows: u64,
}

impl Database {
    /// Runs a query of any form and streams its result batch by batch; only the query's own state is held in
    /// memory.
    ///
    /// `SELECT` and `ASK` accept [`OutputFormat::Table`], `Tsv`, `Csv`, `Json`, `Xml`, and `Arrow`, which
    /// also holds the ids of the result. `CONSTRUCT` and `DESCRIBE` accept graph formats (a table format
    /// writes N-Triples).
    ///
    /// # Errors
    /// As [`Database::query`]; a format that does not fit the query form; `out` fails.
    pub fn write(
        &self,
        text: &str,
        options: &QueryOptions,
        format: OutputFormat,
        out: &mut dyn Write,
    ) -> Result<Written> {
        let prepared = self.prepare_with(text, options)?;
        prepared.write_with(options, format, out)
    }

    /// Streams the statements of one graph (`None`: the default graph) in a graph format, batch by batch.
    ///
    /// # Errors
    /// Limits; a format for rows; `out` fails; damaged data.
    pub fn write_graph(
        &self,
        graph: Option<&NamedNode>,
        options: &QueryOptions,
        format: OutputFormat,
        out: &mut dyn Write,
    ) -> Result<Written> {
        let text = match graph {
            Some(graph) => format!("SELECT ?s ?p ?o {{ GRAPH {graph} {{ ?s ?p ?o }} }}"),
            None => "SELECT ?s ?p ?o { ?s ?p ?o }".to_owned(),
        };
        let prepared = self.prepare_with(&text, options)?;
        let Form::Select(columns) = &prepared.query().form else {
            return Err(Error::internal("the query of a graph is not a SELECT"));
        };
        let &[subject, predicate, object] = columns.as_slice() else {
            return Err(Error::internal("a graph has three columns"));
        };
        let mut writer = GraphWriter::new(format, vervet_sparql::well_known_prefixes(), out)?;
        let mut rows = 0;
        let mut sink = |evaluator: &Evaluator<'_>, batch: &Batch| {
            let columns = [subject, predicate, object].map(|column| batch.columns[column.index()].as_slice());
            rows += writer.batch(columns, &EvaluatorTerms(evaluator))?;
            Ok(Flow::More)
        };
        prepared.execute(options, |execution| execution.run(&mut sink).map(drop))?;
        writer.finish()?;
        Ok(Written { rows })
    }
}

impl crate::Prepared {
    /// Runs the query and writes its result; see [`Database::write`].
    ///
    /// # Errors
    /// As [`Database::write`].
    pub fn write_with(
        &self,
        options: &QueryOptions,
        format: OutputFormat,
        out: &mut dyn Write,
    ) -> Result<Written> {
        self.execute(options, |execution| write(execution, self.query(), format, out))
    }
}

impl crate::Transaction {
    /// Runs a prepared query on what this transaction sees and streams its result like [`Database::write`].
    ///
    /// # Errors
    /// As [`Database::write`].
    pub fn write(
        &self,
        prepared: &crate::Prepared,
        options: &QueryOptions,
        format: OutputFormat,
        out: &mut dyn Write,
    ) -> Result<Written> {
        self.execute(prepared, options, |execution| write(execution, prepared.query(), format, out))
    }
}

fn write(
    execution: &Execution<'_>,
    query: &Query,
    format: OutputFormat,
    out: &mut dyn Write,
) -> Result<Written> {
    match &query.form {
        Form::Select(columns) => write_rows(execution, query, columns, format, out),
        Form::Ask => {
            let Answer::Boolean(value) = prepared::answer(execution, query)?.0 else {
                return Err(Error::internal("an ASK has no truth value"));
            };
            let format = if format.is_for_graphs() { OutputFormat::Tsv } else { format };
            vervet_results::write_boolean(format, value, out)?;
            Ok(Written { rows: 1 })
        }
        Form::Construct { .. } | Form::Describe(_) => {
            let format = if format.is_for_graphs() { format } else { OutputFormat::NTriples };
            let mut output = GraphOutput::new(format, out)?;
            prepared::graph(execution, query, &execution.control(), &mut output)?;
            Ok(Written { rows: output.finish()? })
        }
    }
}

fn write_rows(
    execution: &Execution<'_>,
    query: &Query,
    columns: &[Variable],
    format: OutputFormat,
    out: &mut dyn Write,
) -> Result<Written> {
    if format.is_for_graphs() {
        let message = format!("the rows of a SELECT cannot be written as {format}");
        return Err(
            Error::new(ErrorKind::Input, message).with_hint("choose table, tsv, csv, json, xml or arrow")
        );
    }
    let names: Vec<&str> = columns.iter().map(|column| query.variables[column.index()].as_str()).collect();
    if format == OutputFormat::Arrow {
        return write_arrow(execution, columns, &names, out);
    }
    let mut writer = match format {
        OutputFormat::Table => RowWriter::table(execution.options.table.clone(), &names, out)?,
        _ => RowWriter::new(format, &names, out)?,
    };
    let mut unbound = Vec::new();
    let mut rows = 0;
    execution.run(&mut |evaluator: &Evaluator<'_>, batch: &Batch| {
        unbound.resize(unbound.len().max(batch.rows), Id::UNBOUND);
        let ids: Vec<&[Id]> = columns
            .iter()
            .map(|column| match batch.columns[column.index()].as_slice() {
                // A column that no row of the batch binds is empty.
                [] => &unbound[..batch.rows],
                ids => ids,
            })
            .collect();
        writer.batch(&ids, batch.rows, &EvaluatorTerms(evaluator))?;
        rows += batch.rows as u64;
        Ok(Flow::More)
    })?;
    writer.finish()?;
    Ok(Written { rows })
}

/// The rows between two looks at the limits of a query.
const CHECK_ROWS: usize = 1 << 12;

/// Writes the rows as an Arrow stream. Its beginning has the types of the columns, which depend on all rows,
/// so the ids of the result are collected first: 8 bytes for each cell, which count against the memory cap.
fn write_arrow(
    execution: &Execution<'_>,
    columns: &[Variable],
    names: &[&str],
    out: &mut dyn Write,
) -> Result<Written> {
    let owned = names.iter().map(|name| (*name).to_owned()).collect();
    let solutions = MaterializedSolutions::collect(execution, columns, owned)?;
    let control = execution.control();
    let read =
        |id: Id, scratch: &mut String, read: &mut dyn FnMut(TermParts<'_>)| solutions.read(id, scratch, read);
    let mut typed = Vec::with_capacity(names.len());
    for (name, ids) in names.iter().zip(&solutions.columns) {
        let mut kind = ColumnType::Unknown;
        for ids in ids.chunks(CHECK_ROWS) {
            control.check()?;
            kind = vervet_results::column_type(kind, ids, &read)?;
        }
        typed.push((*name, kind));
    }
    let rows = solutions.rows;
    let mut writer = ArrowWriter::new(&typed, rows as u64, out)?;
    for start in (0..rows).step_by(CHECK_ROWS) {
        control.check()?;
        let range = start..(start + CHECK_ROWS).min(rows);
        let count = range.len();
        let ids: Vec<&[Id]> = solutions.columns.iter().map(|ids| &ids[range.clone()]).collect();
        writer.rows(&ids, count, &read)?;
    }
    writer.finish()?;
    Ok(Written { rows: rows as u64 })
}

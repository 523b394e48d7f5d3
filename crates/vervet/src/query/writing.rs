//! Result serialization: a query runs, and its batches are written directly to the output.

use crate::query::execute::Execution;
use crate::query::graph_sink::{EvaluatorTerms, GraphOutput};
use crate::query::prepared;
use crate::{Answer, Database, QueryOptions};
use oxrdf::NamedNode;
use std::io::Write;
use vervet_algebra::{Form, Query, Variable};
use vervet_expression::Evaluator;
use vervet_kernel::{Batch, Flow};
use vervet_model::{Error, ErrorKind, Id, Result};
pub use vervet_results::Format as OutputFormat;
use vervet_results::{GraphWriter, RowWriter};

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
    /// `SELECT` and `ASK` accept [`OutputFormat::Table`], `Tsv`, `Csv`, `Json`, `Xml`; `CONSTRUCT` and
    /// `DESCRIBE` accept graph formats (a table format writes N-Triples).
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
        return Err(Error::new(ErrorKind::Input, message).with_hint("choose table, tsv, csv, json or xml"));
    }
    let names: Vec<&str> = columns.iter().map(|column| query.variables[column.index()].as_str()).collect();
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

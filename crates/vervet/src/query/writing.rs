//! Result serialization: a query runs, and its batches are written directly to the output.

use crate::query::execute::Execution;
use crate::query::prepared;
use crate::{Answer, Database, QueryOptions};
use oxrdf::{NamedNode, TermRef, Triple};
use std::io::Write;
use vervet_algebra::{Form, Query, Variable};
use vervet_expression::Evaluator;
use vervet_kernel::{Batch, Flow};
use vervet_model::{Error, ErrorKind, Id, Result, TermParts};
pub use vervet_results::Format as OutputFormat;
use vervet_results::{GraphWriter, RowWriter, TermSource};

/// Counts of a written result.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Written {
    /// Rows of a `SELECT`, triples of a graph, 1 for `ASK`.
    pub rows: u64,
}

/// Resolves the ids of one running query.
struct EvaluatorTerms<'a, 'e>(&'a Evaluator<'e>);

impl TermSource for EvaluatorTerms<'_, '_> {
    fn write_terms(&self, ids: &[Id], out: &mut Vec<u8>, ends: &mut Vec<usize>) -> Result<()> {
        self.0.write_terms(ids, out, ends)
    }

    fn read_term(&self, id: Id, scratch: &mut String, read: &mut dyn FnMut(TermParts<'_>)) -> Result<()> {
        self.0.read_term(id, scratch, read)
    }
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
            writer.batch(columns, &EvaluatorTerms(evaluator))?;
            rows += batch.rows as u64;
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
        _ => match prepared::answer(execution, query)?.0 {
            Answer::Boolean(value) => {
                let format = if format.is_for_graphs() { OutputFormat::Tsv } else { format };
                vervet_results::write_boolean(format, value, out)?;
                Ok(Written { rows: 1 })
            }
            Answer::Graph(triples) => {
                let format = if format.is_for_graphs() { format } else { OutputFormat::NTriples };
                let mut writer = GraphWriter::new(format, &used_prefixes(&triples), out)?;
                for triple in &triples {
                    writer.triple(triple.as_ref())?;
                }
                writer.finish()?;
                Ok(Written { rows: triples.len() as u64 })
            }
            Answer::Solutions(_) => Err(Error::internal("a query other than SELECT has solutions")),
        },
    }
}

/// The number of triples up to which a graph is searched for the prefixes that it uses.
const SEARCHED_TRIPLES_MAX: usize = 1000;

/// The well-known prefixes that a small graph uses; all of them for a larger one.
fn used_prefixes(triples: &[Triple]) -> Vec<(&'static str, &'static str)> {
    fn visit(term: TermRef<'_>, iri: &mut dyn FnMut(&str)) {
        match term {
            TermRef::NamedNode(node) => iri(node.as_str()),
            TermRef::Literal(literal) => iri(literal.datatype().as_str()),
            TermRef::Triple(triple) => {
                let triple = triple.as_ref();
                visit(triple.subject.into(), iri);
                iri(triple.predicate.as_str());
                visit(triple.object, iri);
            }
            TermRef::BlankNode(_) => {}
        }
    }
    let mut prefixes = vervet_sparql::well_known_prefixes().to_vec();
    if triples.len() > SEARCHED_TRIPLES_MAX {
        return prefixes;
    }
    let mut used = vec![false; prefixes.len()];
    let mut mark = |iri: &str| {
        let all = prefixes.iter().zip(&mut used);
        all.for_each(|((_, namespace), used)| *used |= iri.starts_with(namespace));
    };
    for triple in triples {
        visit(triple.subject.as_ref().into(), &mut mark);
        mark(triple.predicate.as_str());
        visit(triple.object.as_ref(), &mut mark);
    }
    let mut used = used.into_iter();
    prefixes.retain(|_| used.next().unwrap_or(true));
    prefixes
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
    execution.run(&mut |evaluator, batch| {
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

//! Gremlin on the command line: results as a table that fits the terminal, as CSV or TSV, or one GraphSON
//! value per line.

use crate::gremlin_format::GremlinFormat;
use crate::interrupt;
use crate::output::{Failure, Outcome, Output, count, time, warn};
use crate::table::Table;
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Write;
use std::time::{Duration, Instant};
use vervet::gremlin::{GremlinOptions, GremlinResults, Map, Metric, Metrics, Value};
use vervet::{Database, Error, ErrorKind, GremlinScript, Transaction};
use vervet_gremlin::semantics::{NoDetails, string};
use vervet_gremlin::text::{Statement, Terminal};
use vervet_tinkerpop::graphson::{self, Dialect};

/// Runs a script and writes its results; in the open transaction, if there is one.
pub(crate) fn run(
    database: &Database,
    transaction: Option<&mut Transaction>,
    text: &str,
    options: &GremlinOptions,
    format: GremlinFormat,
    out: &mut Output,
) -> Outcome {
    let script = database.gremlin_script(text, options)?;
    let in_transaction = transaction.is_some();
    if matches!(format, GremlinFormat::Table | GremlinFormat::Csv | GremlinFormat::Tsv) {
        let results = match transaction {
            Some(transaction) => transaction.run_gremlin(&script, options)?,
            None => database.run_gremlin(&script, options)?,
        };
        finish_if(script.mutates());
        match format {
            _ if results.is_empty() && has_no_result(&script) => {}
            GremlinFormat::Csv => write_separated(&results, &CSV, out)?,
            GremlinFormat::Tsv => write_separated(&results, &TSV, out)?,
            _ => write_table(&results, out)?,
        }
        out.flush().map_err(Failure::from)?;
        return warn_if_empty(
            database,
            &script,
            in_transaction,
            results.counted().iter().map(|(value, count)| (value, *count)),
        );
    }
    let dialect = if format == GremlinFormat::Json { Dialect::V3_UNTYPED } else { Dialect::V3 };
    let mut line = Vec::new();
    let deadline = options.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let mut first: Option<(Value, u64)> = None;
    let mut each = |value: Value, count: u64| {
        match &mut first {
            Some((_, all)) => *all = all.saturating_add(count),
            None => {
                // A write is committed by now.
                finish_if(script.mutates());
                first = Some((value.clone(), count));
            }
        }
        line.clear();
        graphson::write(&value, dialect, &mut line)
            .map_err(|error| Error::new(ErrorKind::Unsupported, error.to_string()))?;
        line.push(b'\n');
        for _ in 0..count {
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(Error::new(ErrorKind::Deadline, "the results took too long to write"));
            }
            // Fails after Ctrl-C.
            out.write_all(&line).map_err(|error| Error::io("write the results", &error))?;
        }
        Ok(())
    };
    match transaction {
        Some(transaction) => transaction.gremlin_each(&script, options, &mut each)?,
        None => database.gremlin_each(&script, options, &mut each)?,
    }
    finish_if(script.mutates() && first.is_none());
    out.flush().map_err(Failure::from)?;
    warn_if_empty(database, &script, in_transaction, first.iter().map(|(value, count)| (value, *count)))
}

/// Whether a script returns nothing by its form, as with `iterate()`: then there is no table, not even an
/// empty one.
fn has_no_result(script: &GremlinScript) -> bool {
    let iterates = |terminal: &Option<Terminal>| *terminal == Some(Terminal::Iterate);
    match script.statements().last() {
        Some(Statement::Traversal { terminal, .. }) => iterates(terminal),
        Some(Statement::Nothing) => true,
        _ => false,
    }
}

/// A script whose writes are committed can no longer be cancelled.
fn finish_if(is_done: bool) {
    if is_done {
        interrupt::finish();
    }
}

/// Prints warnings about a script on standard error if it has no results, or a single 0.
fn warn_if_empty<'v>(
    database: &Database,
    script: &GremlinScript,
    in_transaction: bool,
    mut results: impl Iterator<Item = (&'v Value, u64)>,
) -> Outcome {
    let is_empty = match (results.next(), results.next()) {
        (None, _) | (Some((Value::Int(0) | Value::Long(0), 1)), None) => true,
        (Some((Value::Map(map), 1)), None) => map.is_empty(),
        (Some((Value::List(list), 1)), None) => list.is_empty(),
        _ => false,
    };
    // A transaction may contain names that others do not see.
    if is_empty && !in_transaction {
        warn(&database.gremlin_warnings(script)?);
    }
    Ok(())
}

/// Shows the steps of a script that run on kernels, instead of running it.
pub(crate) fn explain(
    database: &Database,
    transaction: Option<&mut Transaction>,
    text: &str,
    options: &GremlinOptions,
    out: &mut dyn Write,
) -> Outcome {
    let script = database.gremlin_script(&format!("{text}.explain()"), options)?;
    let plan = match transaction {
        Some(transaction) => transaction.run_gremlin(&script, options)?,
        None => database.run_gremlin(&script, options)?,
    };
    for part in plan.values().filter_map(Value::as_text) {
        writeln!(out, "{}", part.trim_end())?;
    }
    Ok(())
}

/// The common keys of all results, if all are maps with the same string keys.
fn columns(results: &GremlinResults) -> Option<Vec<String>> {
    let keys = |map: &Map| -> Option<Vec<String>> {
        map.keys().map(|key| key.as_text().map(str::to_owned)).collect()
    };
    let mut all = results.counted().iter().map(|(value, _)| match value {
        Value::Map(map) => keys(map),
        _ => None,
    });
    let first = all.next()??;
    (!first.is_empty() && all.all(|other| other.as_ref() == Some(&first))).then_some(first)
}

/// The measurements of the steps, one line each.
pub(crate) fn write_metrics(metrics: &Metrics, out: &mut dyn Write) -> Outcome {
    let mut table = Table::new(&["step", ">traversers", ">elements", ">time", ">share, %"]);
    let is_reads = |step: &&Metric| &*step.id == "reads";
    for step in metrics.steps.iter().filter(|step| !is_reads(step)) {
        let measured = |name: &str| {
            let found = step.counts.iter().find(|(known, _)| **known == *name);
            found.map_or(String::new(), |(_, count)| count.to_string())
        };
        let share = step.nanoseconds as f64 * 100.0 / metrics.nanoseconds.max(1) as f64;
        table.row([
            step.name.to_string(),
            measured("traverserCount"),
            measured("elementCount"),
            time(Duration::from_nanos(step.nanoseconds)),
            format!("{share:.1}"),
        ]);
    }
    table.write("", out)?;
    writeln!(out, "in {}", time(Duration::from_nanos(metrics.nanoseconds)))?;
    if let Some(reads) = metrics.steps.iter().find(is_reads) {
        writeln!(out, "{}", reads.name)?;
    }
    Ok(())
}

/// Writes results as a table.
pub(crate) fn write_table(results: &GremlinResults, out: &mut Output) -> Outcome {
    if let [(Value::Metrics(metrics), _)] = results.counted() {
        return write_metrics(metrics, out);
    }
    let columns = columns(results);
    let headers: Vec<String> = columns.clone().unwrap_or_else(|| vec!["result".to_owned()]);
    // The terminal wraps the lines of a single column.
    let width = out.width().filter(|_| headers.len() > 1);
    let mut table = Table::named(headers).fit(width);
    let mut rows = 0_u64;
    for (value, times) in results.counted() {
        let cells: Vec<String> = match (value, &columns) {
            (Value::Map(map), Some(_)) => map.values().map(text).collect(),
            (value, _) => vec![text(value)],
        };
        table.rows(cells, *times);
        rows = rows.saturating_add(*times);
    }
    table.write("", out)?;
    let cut = if table.has_cut_cells("") {
        " (cells are cut at \u{2026}; the format csv has them in full)"
    } else {
        ""
    };
    writeln!(out, "{} {}{cut}", count(rows), if rows == 1 { "row" } else { "rows" })?;
    Ok(())
}

/// A value in a cell.
fn text(value: &Value) -> String {
    string::to_text(value, &NoDetails).unwrap_or_else(|error| error.to_string())
}

/// A form of separated values.
struct Separated {
    separator: &'static str,
    line_end: &'static str,
    /// Quotes or escapes a cell.
    cell: fn(&str) -> Cow<'_, str>,
}

/// As in SPARQL 1.1 and RFC 4180.
static CSV: Separated = Separated { separator: ",", line_end: "\r\n", cell: quoted };
static TSV: Separated = Separated { separator: "\t", line_end: "\n", cell: escaped };

fn quoted(cell: &str) -> Cow<'_, str> {
    match cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")).into(),
        false => cell.into(),
    }
}

fn escaped(cell: &str) -> Cow<'_, str> {
    match cell.contains(['\t', '\n', '\r', '\\']) {
        true => {
            cell.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r").into()
        }
        false => cell.into(),
    }
}

/// Writes a header and a line for each result. The columns are the keys of all results if these are maps, in
/// the order of their first occurrence; a map without the key has an empty cell.
fn write_separated(results: &GremlinResults, form: &Separated, out: &mut Output) -> Outcome {
    let are_maps = results.counted().iter().all(|(value, _)| matches!(value, Value::Map(_)));
    let (mut cells, mut columns) = (Vec::new(), HashMap::new());
    if are_maps {
        for (value, _) in results.counted() {
            if let Value::Map(map) = value {
                for key in map.keys().map(text) {
                    if !columns.contains_key(&key) {
                        columns.insert(key.clone(), cells.len());
                        cells.push(key);
                    }
                }
            }
        }
    }
    if cells.is_empty() {
        cells.push("result".to_owned());
    }
    out.expect_header(form.separator == CSV.separator);
    let mut line = String::new();
    let mut write = |cells: &[String], times: u64, out: &mut Output| -> Outcome {
        line.clear();
        for (at, cell) in cells.iter().enumerate() {
            line.push_str(if at > 0 { form.separator } else { "" });
            line.push_str(&(form.cell)(cell));
        }
        line.push_str(form.line_end);
        for _ in 0..times {
            // Fails after Ctrl-C.
            out.write_all(line.as_bytes())?;
        }
        Ok(())
    };
    write(&cells, 1, out)?;
    for (value, times) in results.counted() {
        cells.iter_mut().for_each(String::clear);
        match value {
            Value::Map(map) if are_maps && !columns.is_empty() => {
                for (key, value) in map.iter() {
                    cells[columns[&text(key)]] = text(value);
                }
            }
            value => cells[0] = text(value),
        }
        write(&cells, *times, out)?;
    }
    Ok(())
}

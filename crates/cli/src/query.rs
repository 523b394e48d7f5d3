//! `vervet query`: one query on a database or on files in memory.

use crate::arguments::{Language, QueryArguments, QueryFormat};
use crate::gpu;
use crate::gremlin;
use crate::gremlin_format::GremlinFormat;
use crate::line_editor::ends_with_semicolon;
use crate::output::{Failure, Outcome, Output, screen, warn};
use crate::request::{is_gremlin, prologue};
use crate::{input, interrupt};
use clap::{CommandFactory, error::ErrorKind};
use oxrdf::Term;
use oxrdf::vocab::xsd;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use vervet::gremlin::{GremlinOptions, Value};
use vervet::{
    CancelToken, Database, Error, LoadOptions, OutputFormat, Prepared, QueryOptions, Source, TableOptions,
    Transaction,
};
use vervet_model::vocab::{VERTEX_NAMESPACE, iri_name};
use vervet_sparql::well_known_prefixes;

pub(crate) fn run(arguments: &QueryArguments) -> Outcome {
    let request = Request::new(arguments);
    let text = request.text()?;
    let running = interrupt::start();
    let database = gpu::attach(open(&request)?, arguments.device);
    let mut out = Output::standard();
    if arguments.language == Language::Gremlin {
        run_gremlin(arguments, &database, &text, &running.token, &mut out)?;
        return out.finish();
    }
    let text = without_semicolon(&text);
    let options = options(arguments, text, &running.token);
    let format = match arguments.format {
        None => None,
        Some(QueryFormat { sparql: Some(format), .. }) => Some(format),
        Some(_) => usage(ErrorKind::InvalidValue, "this format is only for gremlin"),
    };
    if arguments.explain {
        let plan = database.explain(text, &options).map_err(|error| hinted(error, text))?;
        write_text(&mut out, &plan)?;
    } else if arguments.profile {
        let prepared = prepare(&database, text, &options)?;
        write_text(&mut out, &prepared.profile_with(&options)?)?;
    } else {
        let prepared = prepare(&database, text, &options)?;
        let format = format.unwrap_or_else(|| default_format(&prepared, io::stdout().is_terminal()));
        if format.is_for_graphs() != prepared.is_graph() {
            return Err(wrong_format(&prepared, format));
        }
        check_output(format, &out)?;
        let rows = prepared.write_with(&options, format, &mut out)?.rows;
        out.finish()?;
        warn(&prepared.warnings_after(rows)?);
        return Ok(());
    }
    out.finish()
}

/// The query without the `;` at its end, which the shell needs and SPARQL refuses. Columns and lines of
/// errors stay the same.
pub(crate) fn without_semicolon(text: &str) -> &str {
    match ends_with_semicolon(text) {
        true => text.trim_end().trim_end_matches(';'),
        false => text,
    }
}

fn prepare(database: &Database, text: &str, options: &QueryOptions) -> Outcome<Prepared> {
    Ok(database.prepare_with(text, options).map_err(|error| hinted(error, text))?)
}

/// The error of a text that is not SPARQL, with a hint if it looks like Gremlin.
fn hinted(error: Error, text: &str) -> Error {
    match is_gremlin(text) {
        true => error.with_hint("this looks like Gremlin: add --language gremlin"),
        false => error,
    }
}

fn run_gremlin(
    arguments: &QueryArguments,
    database: &Database,
    text: &str,
    cancel: &CancelToken,
    out: &mut Output,
) -> Outcome {
    let mut options = GremlinOptions { cancel: Some(cancel.clone()), ..GremlinOptions::default() };
    if let Some(timeout) = arguments.timeout {
        options.timeout = Some(timeout).filter(|timeout| !timeout.is_zero());
    }
    if let Some(memory) = arguments.memory {
        options.memory_limit_bytes = Some(memory).filter(|&bytes| bytes != 0);
    }
    for parameter in &arguments.parameters {
        options = options.with_binding(&parameter.name, gremlin_value(&parameter.value));
    }
    let format = match arguments.format {
        None if io::stdout().is_terminal() => GremlinFormat::Table,
        None => GremlinFormat::GraphSon,
        Some(QueryFormat { gremlin: Some(format), .. }) => format,
        Some(_) => usage(ErrorKind::InvalidValue, "this format is only for sparql"),
    };
    let text = text.trim_end().trim_end_matches(';');
    if arguments.explain {
        return gremlin::explain(database, None, text, &options, out);
    }
    match arguments.profile {
        true => {
            let text = format!("{text}.profile()");
            gremlin::run(database, None, &text, &options, GremlinFormat::Table, out)
        }
        false => gremlin::run(database, None, text, &options, format, out),
    }
}

/// A term as a Gremlin value: a vertex by its id, a literal by its value.
pub(crate) fn gremlin_value(term: &Term) -> Value {
    match term {
        Term::Literal(literal) => {
            let text = literal.value();
            match literal.datatype() {
                xsd::BOOLEAN => Value::Boolean(text == "true"),
                xsd::INTEGER => match (text.parse::<i32>(), text.parse::<i64>()) {
                    (Ok(number), _) => Value::Int(number),
                    (_, Ok(number)) => Value::Long(number),
                    _ => Value::text(text),
                },
                xsd::INT => text.parse().map_or_else(|_| Value::text(text), Value::Int),
                xsd::LONG => text.parse().map_or_else(|_| Value::text(text), Value::Long),
                xsd::DECIMAL | xsd::DOUBLE => text.parse().map_or_else(|_| Value::text(text), Value::Double),
                xsd::FLOAT => text.parse().map_or_else(|_| Value::text(text), Value::Float),
                _ => Value::text(text),
            }
        }
        Term::NamedNode(node) => {
            let name = iri_name(VERTEX_NAMESPACE, node.as_str());
            Value::text(name.as_deref().unwrap_or(node.as_str()))
        }
        other => Value::text(other.to_string()),
    }
}

/// The default format: a table on a terminal, a loadable format otherwise.
pub(crate) fn default_format(prepared: &Prepared, terminal: bool) -> OutputFormat {
    match (prepared.is_graph(), terminal) {
        (false, true) => OutputFormat::Table,
        (false, false) => OutputFormat::Tsv,
        (true, true) => OutputFormat::Turtle,
        (true, false) => OutputFormat::NTriples,
    }
}

/// # Errors
/// Bytes that are not text would go to a terminal.
fn check_output(format: OutputFormat, out: &Output) -> Outcome {
    if format == OutputFormat::Arrow && out.width().is_some() {
        return Err(Error::new(vervet::ErrorKind::Input, "a stream of Arrow is not text for a terminal")
            .with_hint("redirect it to a file or a pipe")
            .into());
    }
    Ok(())
}

/// The error of a format for rows that is to hold a graph, or the reverse.
fn wrong_format(prepared: &Prepared, format: OutputFormat) -> Failure {
    let (what, is_graph) = match prepared.is_graph() {
        true => ("the result is a graph (CONSTRUCT or DESCRIBE)", true),
        false => ("the result is a table or a truth value", false),
    };
    let fitting = OutputFormat::ALL.into_iter().filter(|format| format.is_for_graphs() == is_graph);
    let names: Vec<&str> = fitting.map(OutputFormat::name).collect();
    Error::new(vervet::ErrorKind::Input, format!("{what}, which cannot be written as {format}"))
        .with_hint(format!("choose {}", names.join(", ")))
        .into()
}

fn write_text(out: &mut Output, text: &str) -> io::Result<()> {
    writeln!(out, "{}", text.trim_end())
}

/// The well-known prefixes, which no request has to declare.
pub(crate) fn prefixes() -> Vec<(String, String)> {
    well_known_prefixes().iter().map(|&(name, iri)| (name.to_owned(), iri.to_owned())).collect()
}

/// Tables as wide as the terminal, with the prefixes of the query and the well-known ones.
pub(crate) fn table_options(text: &str) -> TableOptions {
    let mut options = TableOptions::default();
    options.width = screen().map_or(options.width, |(columns, _)| columns);
    options.prefixes = prologue(text).0;
    let own = options.prefixes.len();
    for (name, iri) in prefixes() {
        if !options.prefixes[..own].iter().any(|(declared, _)| *declared == name) {
            options.prefixes.push((name, iri));
        }
    }
    options
}

fn options(arguments: &QueryArguments, text: &str, cancel: &CancelToken) -> QueryOptions {
    let mut options = QueryOptions::default().with_cancel(cancel);
    options.prefixes = prefixes();
    options.table = table_options(text);
    if let Some(timeout) = arguments.timeout {
        options.timeout = Some(timeout).filter(|timeout| !timeout.is_zero());
    }
    if let Some(memory) = arguments.memory {
        options.memory_limit_bytes = Some(memory).filter(|&bytes| bytes != 0);
    }
    options.threads = arguments.threads.map(usize::from);
    options.placement = gpu::placement(arguments.device);
    options.services = crate::service::services(&arguments.services);
    options.base_iri = arguments.base.as_ref().map(|base| base.as_str().to_owned());
    for parameter in &arguments.parameters {
        options = options.with_parameter(&parameter.name, parameter.value.clone());
    }
    options
}

/// The resolved arguments: query and data.
struct Request<'a> {
    database: Option<&'a Path>,
    data: Vec<&'a PathBuf>,
    text: Option<String>,
    file: Option<&'a Path>,
}

impl<'a> Request<'a> {
    fn new(arguments: &'a QueryArguments) -> Self {
        let mut data: Vec<&PathBuf> = arguments.data.iter().collect();
        let mut request = if data.is_empty() {
            let Some(database) = &arguments.first else {
                usage(ErrorKind::MissingRequiredArgument, "name a database, or files with --data")
            };
            Self { database: Some(Path::new(database)), data, text: arguments.second.clone(), file: None }
        } else {
            if arguments.second.is_some() {
                usage(ErrorKind::ArgumentConflict, "--data replaces the database; give only one text");
            }
            let mut text = arguments.first.as_ref().map(utf8);
            // `--data a.ttl 'SELECT …'`: the option consumes all following words, the query included.
            if text.is_none()
                && arguments.file.is_none()
                && data.len() > 1
                && let Some(last) = data.last().filter(|last| is_text(last))
            {
                text = Some(utf8(&last.as_os_str().to_owned()));
                data.pop();
            }
            Self { database: None, data, text, file: None }
        };
        request.file = arguments.file.as_deref();
        if request.text.is_some() && request.file.is_some() {
            usage(ErrorKind::ArgumentConflict, "the query is given twice: as a text and with --file");
        }
        request
    }

    fn text(&self) -> Outcome<String> {
        match &self.text {
            Some(text) if text != "-" => Ok(text.clone()),
            Some(_) => input::text(Some(Path::new("-"))),
            None => input::text(self.file),
        }
    }
}

/// Whether a word behind `--data` is a query rather than a file.
fn is_text(word: &Path) -> bool {
    !word.exists() && (word.as_os_str() == "-" || word.to_string_lossy().contains(['{', ' ', '\n']))
}

fn utf8(text: &OsString) -> String {
    text.to_string_lossy().into_owned()
}

fn open(request: &Request<'_>) -> Outcome<Database> {
    if let Some(directory) = request.database {
        return Ok(Database::open(directory)?);
    }
    let database = Database::in_memory();
    let options = LoadOptions { cancelled: Some(interrupt::requested()), ..LoadOptions::default() };
    let sources: Vec<Source> = request.data.iter().map(Source::path).collect();
    database.load(sources, &options)?;
    Ok(database)
}

/// Ends the process like wrong options: message, usage, exit code 2.
fn usage(kind: ErrorKind, message: &str) -> ! {
    let mut command = crate::arguments::Arguments::command();
    command.build();
    match command.find_subcommand_mut("query") {
        Some(query) => query.error(kind, message).exit(),
        None => command.error(kind, message).exit(),
    }
}

/// The format of a result in the shell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FormatChoice {
    /// The default of the query form.
    Default,
    /// This format, if it fits the query form.
    Preferred(OutputFormat),
    /// This format, or an error if it does not fit.
    Required(OutputFormat),
}

/// Runs a query for the shell, which has its own defaults; in the open transaction, if there is one.
pub(crate) fn run_on(
    database: &Database,
    transaction: Option<&Transaction>,
    text: &str,
    options: &QueryOptions,
    format: FormatChoice,
    out: &mut Output,
) -> Outcome {
    let prepared = database.prepare_with(text, options)?;
    let graph = prepared.is_graph();
    let format = match format {
        FormatChoice::Preferred(format) | FormatChoice::Required(format)
            if format.is_for_graphs() == graph =>
        {
            format
        }
        FormatChoice::Required(format) => return Err(wrong_format(&prepared, format)),
        _ => default_format(&prepared, true),
    };
    check_output(format, out)?;
    if !prepared.is_truth_value() && matches!(format, OutputFormat::Csv | OutputFormat::Tsv) {
        out.expect_header(format == OutputFormat::Csv);
    }
    let rows = match transaction {
        Some(transaction) => transaction.write(&prepared, options, format, out)?.rows,
        None => prepared.write_with(options, format, out)?.rows,
    };
    out.flush().map_err(Failure::from)?;
    // A transaction may contain names that others do not see.
    if transaction.is_none() {
        warn(&prepared.warnings_after(rows)?);
    }
    Ok(())
}

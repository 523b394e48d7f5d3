//! `vervet update`: runs one request as one transaction.

use crate::arguments::UpdateArguments;
use crate::output::{self, Outcome};
use crate::request::is_gremlin;
use crate::{input, interrupt, query, writer_lock};
use std::io::{self, IsTerminal};
use std::path::Path;
use std::time::Instant;
use vervet::update::{UpdateOptions, UpdateReport};
use vervet::{Database, DatabaseOptions, QueryOptions};

pub(crate) fn run(arguments: &UpdateArguments) -> Outcome {
    let text = match arguments.text.as_deref() {
        Some("-") => input::text(Some(Path::new("-")))?,
        Some(text) => text.to_owned(),
        None => input::text(arguments.file.as_deref())?,
    };
    let running = interrupt::start();
    let open = DatabaseOptions { durability: arguments.durability, to_write: true, ..Default::default() };
    let database = writer_lock::open(&arguments.database, &open, arguments.wait, &running)?;
    // The wait for the lock is no part of the time of the request.
    let started = Instant::now();
    let mut options = UpdateOptions::default();
    let query_options = &mut options.query;
    *query_options = QueryOptions::default().with_cancel(&running.token);
    if let Some(timeout) = arguments.timeout {
        query_options.timeout = Some(timeout).filter(|timeout| !timeout.is_zero());
    }
    if let Some(memory) = arguments.memory {
        query_options.memory_limit_bytes = Some(memory).filter(|&bytes| bytes != 0);
    }
    query_options.prefixes = query::prefixes();
    query_options.base_iri = arguments.base.as_ref().map(|base| base.as_str().to_owned());
    for parameter in &arguments.parameters {
        query_options.parameters.push((parameter.name.clone(), parameter.value.clone()));
    }
    let report = database.update_with(&text, &mut options).map_err(|error| match is_gremlin(&text) {
        true => error.with_hint("this looks like Gremlin: vervet query DB --language gremlin TEXT runs it"),
        false => error,
    })?;
    running.finish();
    if io::stderr().is_terminal() {
        eprintln!("{} in {}", summary(report), output::time(started.elapsed()));
    }
    warn_if_unchanged(&database, &text, &options.query, report)
}

/// Prints warnings about unknown names on standard error if the request has changed nothing.
pub(crate) fn warn_if_unchanged(
    database: &Database,
    text: &str,
    options: &QueryOptions,
    report: UpdateReport,
) -> Outcome {
    if report == UpdateReport::default() {
        output::warn(&database.update_warnings(text, options)?);
    }
    Ok(())
}

/// A readable summary of a request.
pub(crate) fn summary(report: UpdateReport) -> String {
    format!("{} added, {} removed", output::statements(report.inserted), output::count(report.removed))
}

//! SPARQL queries: equal results with and without a plan, on one thread and on two; serialized results can be
//! parsed.

use crate::graph;
use crate::oracle::{self, Outcome};
use oxrdfio::{JsonLdProfileSet, RdfFormat, RdfParser};
use sparesults::{QueryResultsFormat, QueryResultsParser, ReaderQueryResultsParserOutput as Output};
use std::sync::OnceLock;
use std::time::Duration;
use vervet::{Answer, Database, OutputFormat, QueryOptions, Result};

/// One of this number of texts also runs on two threads, with the smallest morsels.
const THREADS_EVERY: usize = 8;

pub(crate) fn check(text: &str) {
    static DATABASE: OnceLock<Database> = OnceLock::new();
    let database = DATABASE.get_or_init(graph::database);
    let planned = answer(database, text, &oracle::options());
    let naive = QueryOptions { optimize: false, ..oracle::options() };
    oracle::check_same(text, &planned, &answer(database, text, &naive), "without a plan");
    if matches!(planned, Outcome::Refused) {
        return;
    }
    if text.len().is_multiple_of(THREADS_EVERY) {
        let cut = QueryOptions { threads: Some(2), heavy_from: Duration::ZERO, ..oracle::options() };
        oracle::check_same(text, &planned, &answer(database, text, &cut), "on two threads");
    }
    oracle::classify(database.explain(text, &oracle::options()));
    written(database, text, &planned);
}

/// The compared part of a result: its form and its number of rows.
fn answer(database: &Database, text: &str, options: &QueryOptions) -> Outcome<(&'static str, u64)> {
    oracle::classify(database.query_with(text, options).map(|answer| match answer {
        Answer::Solutions(solutions) => ("rows", solutions.len() as u64),
        Answer::Boolean(value) => ("truth", u64::from(value)),
        Answer::Graph(triples) => ("graph", triples.len() as u64),
    }))
}

/// Serializes the result in a format selected by the length of the text, and parses it with another library.
fn written(database: &Database, text: &str, expected: &Outcome<(&'static str, u64)>) {
    let choice = text.len() / THREADS_EVERY;
    let write = |format| -> Outcome<Vec<u8>> {
        let mut out = Vec::new();
        let done: Result<_> = database.write(text, &oracle::options(), format, &mut out);
        match oracle::classify(done) {
            Outcome::Done(_) => Outcome::Done(out),
            Outcome::Limit => Outcome::Limit,
            Outcome::Refused => Outcome::Refused,
        }
    };
    let Outcome::Done((form, rows)) = expected else { return };
    let read = if *form == "graph" {
        let (format, reader) = [
            (OutputFormat::NTriples, RdfFormat::NTriples),
            (OutputFormat::Turtle, RdfFormat::Turtle),
            (OutputFormat::RdfXml, RdfFormat::RdfXml),
            (OutputFormat::JsonLd, RdfFormat::JsonLd { profile: JsonLdProfileSet::empty() }),
        ][choice % 4];
        let Outcome::Done(bytes) = write(format) else { return };
        let mut count = 0;
        for triple in RdfParser::from_format(reader).for_slice(&bytes) {
            if let Err(error) = triple {
                panic!("{format:?} that no library reads: {error}\n{}", String::from_utf8_lossy(&bytes));
            }
            count += 1;
        }
        count
    } else {
        let (format, reader) = [
            (OutputFormat::Json, QueryResultsFormat::Json),
            (OutputFormat::Xml, QueryResultsFormat::Xml),
            (OutputFormat::Tsv, QueryResultsFormat::Tsv),
        ][choice % 3];
        let Outcome::Done(bytes) = write(format) else { return };
        match rows_of(reader, &bytes) {
            Ok(count) => count,
            Err(error) => {
                panic!("{format:?} that no library reads: {error}\n{}", String::from_utf8_lossy(&bytes))
            }
        }
    };
    if oracle::is_repeatable(text) {
        assert_eq!(read, *rows, "the serialized result has another number of rows");
    }
}

fn rows_of(format: QueryResultsFormat, bytes: &[u8]) -> std::result::Result<u64, String> {
    let parser = QueryResultsParser::from_format(format);
    match parser.for_reader(bytes).map_err(|error| error.to_string())? {
        Output::Boolean(value) => Ok(u64::from(value)),
        Output::Solutions(solutions) => {
            let mut count = 0;
            for solution in solutions {
                solution.map_err(|error| error.to_string())?;
                count += 1;
            }
            Ok(count)
        }
    }
}

//! The rows of a CSV file with their lines, and the errors of its parser.

use crate::block::Malformed;
use crate::dialect::Dialect;
use crate::quotes::{QUOTE_HINT, QuoteGuard, Quoting, Row, Rows, UnclosedQuote};
use crate::source::{Source, read_error};
use csv::{ErrorKind as CsvError, ReaderBuilder, StringRecord};
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use vervet_model::{Error, ErrorKind, Result};

/// The rows of a file with their lines.
pub(crate) struct CsvRows {
    reader: csv::Reader<Box<dyn Read + Send>>,
    rows: Rows,
    has_header: bool,
    /// The line of the last row.
    line: u64,
}

impl CsvRows {
    pub(crate) fn open(source: &mut Source, bytes: &Arc<AtomicU64>, dialect: &Dialect) -> Result<Self> {
        let quoting = Quoting {
            quote: dialect.quote,
            escape: dialect.escape,
            separator: dialect.separator.unwrap_or(b','),
        };
        let input = QuoteGuard::new(source.open(bytes)?, quoting);
        let rows = input.rows();
        let input: Box<dyn Read + Send> = Box::new(input);
        let reader = ReaderBuilder::new()
            .delimiter(quoting.separator)
            .quote(dialect.quote.unwrap_or(b'"'))
            .quoting(dialect.quote.is_some())
            .escape(dialect.escape)
            .double_quote(dialect.escape.is_none())
            .has_headers(dialect.has_header)
            .buffer_capacity(1 << 18)
            .from_reader(input);
        Ok(Self { reader, rows, has_header: dialect.has_header, line: 1 })
    }

    /// The first row and its line. If it is not a header, [`CsvRows::read`] returns it again.
    pub(crate) fn headers(&mut self, name: &str) -> Result<(StringRecord, u64)> {
        let header = match self.reader.headers() {
            Ok(header) => header.clone(),
            Err(error) => return Err(failure(name, error, self.rows.peek().map_or(1, |row| row.line))),
        };
        let row = if self.has_header { self.rows.next() } else { self.rows.peek() };
        self.line = row.map_or(1, |row| row.line);
        match row.and_then(|row| row.misquoted()).filter(|_| self.has_header) {
            Some(malformed) => {
                let message = format!("{name}:{}: {}", malformed.line + 1, malformed.message);
                Err(Error::new(malformed.kind, message).with_hint(QUOTE_HINT))
            }
            None => Ok((header, self.line)),
        }
    }

    /// Reads the next row; `None` at the end. An error has the line of its row.
    pub(crate) fn read(
        &mut self,
        record: &mut StringRecord,
    ) -> std::result::Result<Option<Row>, (csv::Error, u64)> {
        let last = Row { line: self.line, misquoted: None };
        match self.reader.read_record(record) {
            Ok(false) => Ok(None),
            Ok(true) => {
                // The guard has seen every row that the parser returns.
                let row = self.rows.next().unwrap_or(last);
                self.line = row.line;
                Ok(Some(row))
            }
            Err(error) if row_error(&error, 1).is_some() => {
                self.line = self.rows.next().unwrap_or(last).line;
                Err((error, self.line))
            }
            Err(error) => Err((error, self.line)),
        }
    }
}

impl Row {
    /// The fault of its quotes.
    pub(crate) fn misquoted(&self) -> Option<Malformed> {
        let field = self.misquoted?;
        let message = format!("field {field} has text behind its closing quote");
        Some(Malformed { line: self.line.saturating_sub(1), column: None, message, kind: ErrorKind::Input })
    }
}

/// The error of the row that starts at `line` (from 1), if reading can continue.
pub(crate) fn row_error(error: &csv::Error, line: u64) -> Option<Malformed> {
    let message = match error.kind() {
        CsvError::UnequalLengths { expected_len, len, .. } => {
            format!("the row has {len} fields, the header {expected_len}")
        }
        CsvError::Utf8 { err, .. } => format!("field {} is not UTF-8", err.field() + 1),
        _ => return None,
    };
    Some(Malformed { line: line.saturating_sub(1), column: Some(0), message, kind: ErrorKind::Input })
}

/// An error after which reading cannot continue.
pub(crate) fn failure(name: &str, error: csv::Error, line: u64) -> Error {
    if let Some(Malformed { line, message, kind, .. }) = row_error(&error, line) {
        return Error::new(kind, format!("{name}:{}:1: {message}", line + 1)).with_hint("correct the file");
    }
    match error.into_kind() {
        CsvError::Io(error) => {
            let unclosed = error.get_ref().and_then(|error| error.downcast_ref::<UnclosedQuote>());
            unclosed.map_or_else(
                || read_error(name, &error),
                |unclosed| {
                    Error::new(ErrorKind::Input, format!("{name}:{}: {unclosed}", unclosed.line))
                        .with_hint(format!("close the quote, {QUOTE_HINT}"))
                },
            )
        }
        other => Error::internal(format!("{name}:{line}: the CSV library says {other:?}")),
    }
}

//! The engine interface of a comparison, and the sink of results.
//!
//! # Shape
//! An engine loads one file, then answers queries on the calling thread. The engine's own writer serializes
//! results completely as SPARQL 1.1 TSV into a [`Sink`]; or rows are only counted, to isolate serialization.

use crate::digest::{DigestWriter, RowsDigest};
use crate::measure::CpuClock;
use sha2::{Digest, Sha256};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;
use vervet_model::{Error, ErrorKind, Result};

/// An engine under measurement.
pub trait Engine {
    /// Name and version, as printed in tables.
    fn name(&self) -> &str;

    /// Loads an N-Triples file (`.nt`) into memory; returns the number of statements then present.
    ///
    /// # Errors
    /// The file cannot be read, or has another format.
    fn load(&mut self, file: &Path) -> Result<u64>;

    /// Parses, plans and runs a query and writes its complete result to `sink`; returns the number of rows.
    ///
    /// # Errors
    /// Errors of the engine; [`ErrorKind::Deadline`] if the time limit has passed.
    fn query_tsv(&self, text: &str, sink: &mut Sink) -> Result<u64>;

    /// [`Self::query_tsv`] without serialization: rows are produced and counted.
    ///
    /// # Errors
    /// As [`Self::query_tsv`].
    fn query_rows(&self, text: &str) -> Result<u64>;

    /// A query parsed and planned ahead; `None` if the engine does not support it.
    ///
    /// # Errors
    /// As [`Self::query_tsv`].
    fn prepare(&self, text: &str) -> Result<Option<Box<dyn Prepared + '_>>> {
        let _ = text;
        Ok(None)
    }

    /// Like [`Self::query_rows`], with the engine's caches from earlier runs of this text; `None` if it has
    /// no cache.
    fn query_rows_cached(&self, text: &str) -> Option<Result<u64>> {
        let _ = text;
        None
    }

    /// Like [`Self::query_rows_cached`], serialized as in [`Self::query_tsv`].
    fn query_tsv_cached(&self, text: &str, sink: &mut Sink) -> Option<Result<u64>> {
        let _ = (text, sink);
        None
    }

    /// A prepared query in which the variable `?constant` is bound to an IRI given with each run; `None` if
    /// the engine does not support it.
    ///
    /// # Errors
    /// As [`Self::query_tsv`].
    fn prepare_for_constants(&self, text: &str) -> Result<Option<Box<dyn ForConstants + '_>>> {
        let _ = text;
        Ok(None)
    }

    /// The number of terms reachable from `start` by one or more statements with `predicate`, both IRIs,
    /// through an interface other than SPARQL; `None` if the engine has none.
    fn reach(&self, start: &str, predicate: &str) -> Option<Result<u64>> {
        let _ = (start, predicate);
        None
    }

    /// The plan of a query as text; `None` if the engine does not show it.
    fn explain(&self, text: &str) -> Option<String> {
        let _ = text;
        None
    }

    /// The clock that has the CPU time of its answers; `None`: only the wall clock does.
    fn cpu_clock(&self) -> Option<CpuClock> {
        Some(CpuClock::Thread)
    }

    /// Whether its results have terms as SPARQL 1.1 TSV writes them; otherwise only rows can be counted.
    fn writes_terms(&self) -> bool {
        true
    }

    /// Sets the time limit of the following queries.
    fn set_time_limit(&mut self, limit: Option<Duration>);
}

/// A parsed and planned query.
pub trait Prepared {
    /// Runs it without serialization; returns the number of rows.
    ///
    /// # Errors
    /// As [`Engine::query_tsv`].
    fn rows(&mut self) -> Result<u64>;
}

/// A query that is parsed and planned except for one constant.
pub trait ForConstants {
    /// Runs it with that constant and writes the complete result to `sink`; returns the number of rows.
    ///
    /// # Errors
    /// As [`Engine::query_tsv`].
    fn query_tsv(&mut self, iri: &str, sink: &mut Sink) -> Result<u64>;
}

/// Receives a serialized result: counts its bytes and optionally keeps or digests them.
#[derive(Default, Debug)]
pub struct Sink {
    bytes: u64,
    kept: Option<Vec<u8>>,
    digest: Option<DigestWriter>,
}

impl Sink {
    /// A sink that only counts.
    #[must_use]
    pub fn counting() -> Self {
        Self::default()
    }

    /// A sink that keeps the bytes.
    #[must_use]
    pub fn keeping() -> Self {
        Self { kept: Some(Vec::new()), ..Self::default() }
    }

    /// A sink that digests the rows.
    #[must_use]
    pub fn digesting() -> Self {
        Self { digest: Some(DigestWriter::default()), ..Self::default() }
    }

    /// The digest of the rows so far; that of no rows if this sink does not digest.
    #[must_use]
    pub fn digest(&self) -> RowsDigest {
        self.digest.as_ref().map(DigestWriter::digest).unwrap_or_default()
    }

    /// The kept text; empty if this sink keeps nothing.
    #[must_use]
    pub fn into_text(self) -> String {
        self.kept.map_or_else(String::new, |kept| String::from_utf8_lossy(&kept).into_owned())
    }

    /// Number of bytes written so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The table in a keeping sink, with numbers and booleans in Turtle's short form.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] if the sink does not keep bytes, or if there is no header.
    pub fn table(&self) -> Result<ResultTable> {
        let mut table = self.table_in_order()?;
        table.rows.sort_unstable();
        Ok(table)
    }

    /// [`Self::table`] with rows in order of output, for comparisons that include the order.
    ///
    /// # Errors
    /// As [`Self::table`].
    pub fn table_in_order(&self) -> Result<ResultTable> {
        let kept = self.kept.as_deref().ok_or_else(|| Error::internal("this sink keeps nothing"))?;
        let text = std::str::from_utf8(kept)
            .map_err(|error| Error::internal(format!("a result is not UTF-8: {error}")))?;
        let mut lines = text.lines();
        let header = lines.next().ok_or_else(|| Error::internal("a result has no header"))?.to_owned();
        Ok(ResultTable { header, rows: lines.map(with_short_forms).collect() })
    }
}

impl Write for Sink {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes += bytes.len() as u64;
        if let Some(kept) = &mut self.kept {
            kept.extend_from_slice(bytes);
        }
        if let Some(digest) = &mut self.digest {
            digest.write_all(bytes)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A TSV row in which numbers and booleans are bare: engines may write them in either form.
fn with_short_forms(row: &str) -> String {
    let cells: Vec<&str> = row.split('\t').map(|cell| short_form(cell).unwrap_or(cell)).collect();
    cells.join("\t")
}

fn short_form(cell: &str) -> Option<&str> {
    let (value, datatype) = cell.strip_prefix('"')?.strip_suffix('>')?.rsplit_once("\"^^<")?;
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = value.strip_prefix(['+', '-']).unwrap_or(value);
    let is_short = match datatype.strip_prefix("http://www.w3.org/2001/XMLSchema#")? {
        "integer" => !unsigned.is_empty() && digits(unsigned),
        "decimal" => unsigned
            .split_once('.')
            .is_some_and(|(whole, part)| digits(whole) && !part.is_empty() && digits(part)),
        "boolean" => matches!(value, "true" | "false"),
        _ => false,
    };
    is_short.then_some(value)
}

/// A result as a set of rows: two are equal if and only if the values are, in any order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResultTable {
    /// The variables, in TSV notation.
    pub header: String,
    /// The rows in TSV form, sorted bytewise.
    pub rows: Vec<String>,
}

impl ResultTable {
    /// The result of a count that was not returned as a table.
    #[must_use]
    pub fn of_number(number: u64) -> Self {
        Self { header: "?n".to_owned(), rows: vec![number.to_string()] }
    }

    /// SHA-256 of the rows joined by line feeds, in hexadecimal.
    #[must_use]
    pub fn sha256(&self) -> String {
        let mut hash = Sha256::new();
        for (index, row) in self.rows.iter().enumerate() {
            if index > 0 {
                hash.update(b"\n");
            }
            hash.update(row.as_bytes());
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The number in the single cell of this table.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] if there is more than one cell, or it is not a number.
    pub fn number(&self) -> Result<u64> {
        let cell = self.rows.first().filter(|_| self.rows.len() == 1).map(String::as_str).unwrap_or_default();
        cell.parse().map_err(|_| {
            Error::new(ErrorKind::Internal, format!("a count came as {} rows: {cell:?}", self.rows.len()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_does_not_depend_on_the_order_of_rows() {
        let table = |text: &str| {
            let mut sink = Sink::keeping();
            sink.write_all(text.as_bytes()).unwrap();
            sink.table().unwrap()
        };
        let (one, other) = (table("?x\n<a>\n<b>\n"), table("?x\n<b>\n<a>\n"));
        assert_eq!(one, other);
        // printf '<a>\n<b>' | sha256sum
        assert_eq!(one.sha256(), "94eca09fac74db2af0f4b179fab90e511e855a087de97e88b3f9738e01b320f9");
        assert_eq!(table("?n\n42\n").number().unwrap(), 42);
        assert!(one.number().is_err());
        let long = table("?n\t?x\n\"-42\"^^<http://www.w3.org/2001/XMLSchema#integer>\t\"1\"\n");
        assert_eq!(long, table("?n\t?x\n-42\t\"1\"\n"));
    }
}

//! Digest of a result as a multiset of rows: constant memory, independent of the order of rows.
//!
//! # Shape
//! A row is hashed cell by cell, in the order of the names of variables: `SELECT *` leaves the order of
//! columns to the engine. Numbers count by value, blank nodes are anonymous, language tags are in lower case,
//! and `xsd:string` is implied. The digest is the number of rows and the sum of their hashes modulo 2^64, so
//! equal multisets have equal digests, and others differ except with probability 2^-64.
//! # Not here
//! Tolerance for the last digits of floating-point sums: see [`rows_differ`], which needs both results.

use rustc_hash::FxHasher;
use std::hash::Hasher;
use std::io::{self, Write};

/// The digest of a multiset of rows.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RowsDigest {
    /// Number of rows.
    pub rows: u64,
    /// Sum of the hashes of all rows.
    pub sum: u64,
}

impl RowsDigest {
    /// Adds a row, given the hashes of its cells.
    #[inline]
    pub fn add(&mut self, cells: impl IntoIterator<Item = u64>) {
        let hash = cells.into_iter().fold(ROW_SEED, |hash, cell| mix(hash.rotate_left(23) ^ cell));
        self.sum = self.sum.wrapping_add(hash);
        self.rows += 1;
    }
}

const ROW_SEED: u64 = 0x9e37_79b9_7f4a_7c15;
const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

/// The hash of a cell in TSV notation.
#[must_use]
pub fn cell_hash(cell: &str) -> u64 {
    let mut hasher = FxHasher::default();
    match canonical(cell) {
        Some(form) => hasher.write(form.as_bytes()),
        None => hasher.write(cell.as_bytes()),
    }
    mix(hasher.finish())
}

fn mix(mut hash: u64) -> u64 {
    hash = (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    hash = (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    hash ^ (hash >> 32)
}

/// Digests a serialized result on the fly: TSV of a `SELECT`, `true` or `false`, or N-Triples.
#[derive(Default, Debug)]
pub struct DigestWriter {
    digest: RowsDigest,
    line: Vec<u8>,
    has_header: bool,
    /// The columns by the names of their variables; empty without a header.
    columns: Vec<usize>,
}

impl DigestWriter {
    /// The digest of the complete lines written.
    #[must_use]
    pub fn digest(&self) -> RowsDigest {
        let mut whole = self.digest;
        if !self.line.is_empty() && !is_header(&self.line, self.has_header) {
            add_line(&mut whole, &self.line, &self.columns);
        }
        whole
    }

    fn end_line(&mut self) {
        if is_header(&self.line, self.has_header) {
            self.columns = columns(&String::from_utf8_lossy(&self.line));
        } else {
            add_line(&mut self.digest, &self.line, &self.columns);
        }
        self.has_header = true;
        self.line.clear();
    }
}

/// Whether a line names the variables; only the first one can.
fn is_header(line: &[u8], has_header: bool) -> bool {
    !has_header && (line.first() == Some(&b'?') || line.is_empty())
}

/// The columns of a header by the names of their variables.
fn columns(header: &str) -> Vec<usize> {
    let names: Vec<&str> = header.trim_end_matches('\r').split('\t').collect();
    let mut columns: Vec<usize> = (0..names.len()).collect();
    columns.sort_by_key(|&column| names[column]);
    columns
}

/// The cells of a line in the order of `columns`.
fn cells<'l>(line: &'l str, columns: &[usize]) -> Vec<&'l str> {
    let cells: Vec<&str> = line.trim_end_matches('\r').split('\t').collect();
    if cells.len() == columns.len() { columns.iter().map(|&column| cells[column]).collect() } else { cells }
}

fn add_line(digest: &mut RowsDigest, line: &[u8], columns: &[usize]) {
    let text = String::from_utf8_lossy(line);
    digest.add(cells(&text, columns).into_iter().map(cell_hash));
}

impl Write for DigestWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            self.line.extend_from_slice(&rest[..end]);
            self.end_line();
            rest = &rest[end + 1..];
        }
        self.line.extend_from_slice(rest);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The canonical form of a cell; `None`: the cell is its own.
fn canonical(cell: &str) -> Option<String> {
    let first = cell.bytes().next()?;
    match first {
        b'_' => Some("_:".to_owned()),
        b'0'..=b'9' | b'+' | b'-' | b'.' => number(cell).map(Number::canonical),
        b'"' if cell.ends_with('>') => {
            let (lexical, datatype) = cell.strip_prefix('"')?.strip_suffix('>')?.rsplit_once("\"^^<")?;
            match datatype.strip_prefix(XSD)? {
                "string" => Some(format!("\"{lexical}\"")),
                "boolean" => Some(lexical.replace('1', "true").replace('0', "false")),
                local if is_numeric(local) => number(lexical).map(Number::canonical),
                _ => None,
            }
        }
        b'"' if !cell.ends_with('"') => {
            let (text, tag) = cell.rsplit_once("\"@")?;
            Some(format!("{text}\"@{}", tag.to_ascii_lowercase()))
        }
        _ => None,
    }
}

/// The datatypes of numbers; the derived ones of `xsd:integer` included.
fn is_numeric(local: &str) -> bool {
    const NAMES: [&str; 16] = [
        "integer",
        "decimal",
        "double",
        "float",
        "int",
        "long",
        "short",
        "byte",
        "unsignedInt",
        "unsignedLong",
        "unsignedShort",
        "unsignedByte",
        "nonNegativeInteger",
        "positiveInteger",
        "nonPositiveInteger",
        "negativeInteger",
    ];
    NAMES.contains(&local)
}

/// A number by its value.
#[derive(Clone, PartialEq, Debug)]
enum Number {
    /// Decimal digits without superfluous zeros and signs.
    Exact(String),
    Float(f64),
}

impl Number {
    fn canonical(self) -> String {
        match self {
            Number::Exact(digits) => digits,
            // Rounded, and without an exponent, so that it equals the same xsd:decimal.
            Number::Float(value) => {
                let rounded: f64 = format!("{value:.10e}").parse().unwrap_or(value);
                rounded.to_string()
            }
        }
    }

    fn value(&self) -> f64 {
        match self {
            Number::Exact(digits) => digits.parse().unwrap_or(f64::NAN),
            Number::Float(value) => *value,
        }
    }
}

fn number(text: &str) -> Option<Number> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return text.parse().ok().map(Number::Float);
    }
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let (whole, part) = (whole.trim_start_matches('0'), part.trim_end_matches('0'));
    let mut exact = String::new();
    if negative && !(whole.is_empty() && part.is_empty()) {
        exact.push('-');
    }
    exact.push_str(if whole.is_empty() { "0" } else { whole });
    if !part.is_empty() {
        exact.push('.');
        exact.push_str(part);
    }
    Some(Number::Exact(exact))
}

/// The first difference of two results in TSV whose digests differ, with a relative tolerance of `tolerance`
/// for numbers; `None` if they only differ within it.
#[must_use]
pub fn rows_differ(one: &str, other: &str, tolerance: f64) -> Option<String> {
    let (one, other) = (sorted_rows(one), sorted_rows(other));
    if one.len() != other.len() {
        return Some(format!("{} rows and {} rows", one.len(), other.len()));
    }
    let (one, other) = one.iter().zip(&other).find(|(one, other)| !about_equal(one, other, tolerance))?;
    Some(format!("rows {one:?} and {other:?}"))
}

/// The rows with canonical cells, sorted so that rows come first whose exact cells are smaller.
fn sorted_rows(text: &str) -> Vec<Vec<String>> {
    let (mut has_header, mut order) = (false, Vec::new());
    let mut rows: Vec<Vec<String>> = Vec::new();
    for line in text.lines() {
        if is_header(line.as_bytes(), has_header) {
            order = columns(line);
        } else {
            let form = |cell: &str| canonical(cell).unwrap_or_else(|| cell.to_owned());
            rows.push(cells(line, &order).into_iter().map(form).collect());
        }
        has_header = true;
    }
    // Inexact numbers last: the last digits of a sum must not decide which rows are compared.
    rows.sort_by_cached_key(|row| {
        let exact: Vec<String> = row.iter().filter(|cell| !cell.contains('.')).cloned().collect();
        (exact, row.clone())
    });
    rows
}

fn about_equal(one: &[String], other: &[String], tolerance: f64) -> bool {
    one.len() == other.len()
        && one.iter().zip(other).all(|(one, other)| {
            one == other
                || match (bare_number(one), bare_number(other)) {
                    (Some(one), Some(other)) => (one - other).abs() <= tolerance * one.abs().max(other.abs()),
                    _ => false,
                }
        })
}

fn bare_number(cell: &str) -> Option<f64> {
    cell.starts_with(|first: char| first.is_ascii_digit() || first == '-')
        .then(|| number(cell))?
        .map(|n| n.value())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(text: &str) -> RowsDigest {
        let mut writer = DigestWriter::default();
        // In small parts: a line may arrive in several writes.
        for part in text.as_bytes().chunks(3) {
            writer.write_all(part).unwrap();
        }
        writer.digest()
    }

    #[test]
    fn equal_multisets_have_equal_digests() {
        let of = digest("?x\t?y\n<a>\t1\n<b>\t\"2\"\n");
        assert_eq!(of.rows, 2);
        assert_eq!(of, digest("?x\t?y\n<b>\t\"2\"\n<a>\t1\n"));
        assert_eq!(of, digest("?x\t?y\n<a>\t1.00\n<b>\t\"2\"^^<http://www.w3.org/2001/XMLSchema#string>"));
        assert_eq!(of, digest("?x\t?y\n<a>\t\"+01\"^^<http://www.w3.org/2001/XMLSchema#int>\n<b>\t\"2\"\n"));
        for other in ["?x\t?y\n<a>\t1\n<b>\t2\n", "?x\t?y\n<a>\t1\n", "?x\t?y\n<a>\t1\n<a>\t1\n<b>\t\"2\"\n"]
        {
            assert_ne!(of, digest(other), "{other}");
        }
        assert_eq!(of, digest("?y\t?x\n1\t<a>\n\"2\"\t<b>\n"));
        // Values of columns do not commute.
        assert_ne!(digest("?x\t?y\n<a>\t<b>\n"), digest("?x\t?y\n<b>\t<a>\n"));
        assert_eq!(digest("true\n"), digest("true"));
        assert_eq!(digest("?x\n\n").rows, 1);
        assert_eq!(digest("?x\n").rows, 0);
    }

    #[test]
    fn cells_are_compared_by_value() {
        for (one, other) in [("_:b1", "_:x"), ("\"a\"@EN", "\"a\"@en"), ("1.5e0", "1.50"), ("3e0", "3")] {
            assert_eq!(cell_hash(one), cell_hash(other), "{one} {other}");
        }
        for (one, other) in [("\"1\"", "1"), ("<a>", "<b>"), ("\"a\"@en", "\"a\""), ("-1", "1"), ("", "0")] {
            assert_ne!(cell_hash(one), cell_hash(other), "{one} {other}");
        }
    }

    #[test]
    fn sums_may_differ_in_their_last_digits() {
        let one = "?k\t?s\n<a>\t1.00000001e0\n<b>\t5\n";
        let other = "?k\t?s\n<b>\t5\n<a>\t1.00000002e0\n";
        assert_ne!(digest(one), digest(other));
        assert_eq!(rows_differ(one, other, 1e-6), None);
        assert!(rows_differ(one, other, 1e-9).is_some());
        assert!(rows_differ(one, "?k\t?s\n<a>\t1.0e0\n", 1e-6).is_some());
    }
}

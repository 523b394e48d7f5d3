//! Table writer for terminals: aligned columns, IRIs with prefixes, a final line with the number of rows.
//!
//! The first rows determine the widths; later rows are streamed. Truncated cells end in `…`. Widths are
//! terminal columns (including wide and combining characters).

use crate::TermSource;
use crate::row_format::RowFormat;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};
use vervet_model::vocab::EDGE_NAMESPACE;
use vervet_model::{Id, LiteralKind, Result, TermParts, triple_parts, with_nt};

const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

/// Number of rows that determine the widths.
const SAMPLE_ROWS: usize = 1_000;

/// Minimum width of a column when the table is shrunk.
const COLUMN_WIDTH_MIN: usize = 6;

/// Layout options of a table.
#[derive(Clone, Debug)]
pub struct TableOptions {
    /// Maximum line width in terminal columns; very many columns may exceed it.
    pub width: usize,
    /// Prefixes (without the colon) and their IRIs, for abbreviation.
    pub prefixes: Vec<(String, String)>,
}

impl Default for TableOptions {
    /// 120 columns, so that two IRIs fit; no prefixes.
    fn default() -> Self {
        Self { width: 120, prefixes: Vec::new() }
    }
}

pub(crate) struct Table {
    options: TableOptions,
    names: Vec<String>,
    /// The first rows, until the widths are determined.
    sample: Vec<Vec<Cell>>,
    widths: Option<Vec<Column>>,
    row_count: u64,
    scratch: String,
}

#[derive(Default)]
struct Cell {
    text: String,
    width: usize,
    number: bool,
}

struct Column {
    width: usize,
    right: bool,
}

impl Table {
    pub(crate) fn new(options: TableOptions) -> Self {
        Self {
            options,
            names: Vec::new(),
            sample: Vec::new(),
            widths: None,
            row_count: 0,
            scratch: String::new(),
        }
    }

    fn cell(&mut self, id: Id, source: &dyn TermSource) -> Result<Cell> {
        let mut cell = Cell::default();
        if id.is_bound() {
            let prefixes = &self.options.prefixes;
            source.read_term(id, &mut self.scratch, &mut |parts| {
                cell.number = append_display(parts, prefixes, &mut cell.text);
            })?;
            cell.width = cell.text.width();
        }
        Ok(cell)
    }

    /// Determines the widths and writes the buffered rows.
    fn write_sample(&mut self, out: &mut Vec<u8>) {
        let mut columns: Vec<Column> = Vec::with_capacity(self.names.len());
        for (i, name) in self.names.iter().enumerate() {
            let cells = || self.sample.iter().map(|row| &row[i]);
            let width = cells().map(|cell| cell.width).max().unwrap_or(0).max(name.width());
            let bound = || cells().filter(|cell| !cell.text.is_empty());
            let right = bound().count() > 0 && bound().all(|cell| cell.number);
            columns.push(Column { width, right });
        }
        shrink(&mut columns, self.options.width);
        let header = |name: &String| Cell { text: name.clone(), width: name.width(), number: false };
        let names: Vec<Cell> = self.names.iter().map(header).collect();
        line(&names, &columns, out);
        for (i, column) in columns.iter().enumerate() {
            out.extend_from_slice(if i > 0 { "┼" } else { "" }.as_bytes());
            out.extend_from_slice("─".repeat(column.width + 2).as_bytes());
        }
        if !columns.is_empty() {
            out.push(b'\n');
        }
        self.sample.drain(..).for_each(|row| line(&row, &columns, out));
        self.widths = Some(columns);
    }
}

impl RowFormat for Table {
    fn start(&mut self, columns: &[&str], _out: &mut Vec<u8>) {
        self.names = columns.iter().map(|name| (*name).to_owned()).collect();
    }

    fn rows(
        &mut self,
        columns: &[&[Id]],
        rows: usize,
        source: &dyn TermSource,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        for row in 0..rows {
            let cells = columns.iter().map(|ids| self.cell(ids[row], source)).collect::<Result<Vec<_>>>()?;
            self.row_count += 1;
            match &self.widths {
                Some(widths) => line(&cells, widths, out),
                None => {
                    self.sample.push(cells);
                    if self.sample.len() >= SAMPLE_ROWS {
                        self.write_sample(out);
                    }
                }
            }
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        if self.widths.is_none() {
            self.write_sample(out);
        }
        let rows = if self.row_count == 1 { "row" } else { "rows" };
        out.extend_from_slice(format!("{} {rows}\n", grouped(self.row_count)).as_bytes());
    }
}

/// `1234567` as `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Shrinks the widest columns until the line fits.
fn shrink(columns: &mut [Column], width: usize) {
    let frame = columns.len() * 3;
    let available = width.saturating_sub(frame);
    let sum = |columns: &[Column], limit: usize| columns.iter().map(|c| c.width.min(limit)).sum::<usize>();
    let mut limit = columns.iter().map(|column| column.width).max().unwrap_or(0);
    while limit > COLUMN_WIDTH_MIN && sum(columns, limit) > available {
        // Bisection would need fewer steps; steps of one are fast enough for terminal widths.
        limit = (limit - 1).min(available.max(COLUMN_WIDTH_MIN));
    }
    columns.iter_mut().for_each(|column| column.width = column.width.min(limit));
}

fn line(cells: &[Cell], columns: &[Column], out: &mut Vec<u8>) {
    let start = out.len();
    for (i, (cell, column)) in cells.iter().zip(columns).enumerate() {
        out.extend_from_slice(if i > 0 { "│ " } else { " " }.as_bytes());
        let pad = column.width.saturating_sub(cell.width);
        if column.right {
            out.resize(out.len() + pad, b' ');
        }
        let width = if cell.width <= column.width {
            out.extend_from_slice(cell.text.as_bytes());
            cell.width
        } else {
            truncate_with_ellipsis(&cell.text, column.width, out)
        };
        let rest = if column.right { 0 } else { column.width.saturating_sub(width) };
        out.resize(out.len() + rest + 1, b' ');
    }
    while out.len() > start && out.last() == Some(&b' ') {
        out.pop();
    }
    if !cells.is_empty() {
        out.push(b'\n');
    }
}

/// Appends the longest prefix of `text` that fits with a trailing `…`, and returns its width.
fn truncate_with_ellipsis(text: &str, width: usize, out: &mut Vec<u8>) -> usize {
    let mut used = 0;
    let mut end = 0;
    for (at, c) in text.char_indices() {
        let w = c.width().unwrap_or(0);
        if used + w + 1 > width {
            break;
        }
        used += w;
        end = at + c.len_utf8();
    }
    out.extend_from_slice(&text.as_bytes()[..end]);
    out.extend_from_slice("…".as_bytes());
    used + 1
}

/// Appends the display form of a term; returns whether it is a number.
fn append_display(parts: TermParts<'_>, prefixes: &[(String, String)], out: &mut String) -> bool {
    match parts {
        TermParts::Iri { namespace, local } => iri(&format!("{namespace}{local}"), prefixes, out),
        TermParts::Edge(number) => iri(&format!("{EDGE_NAMESPACE}{number}"), prefixes, out),
        TermParts::Blank(label) => {
            out.push_str("_:");
            out.push_str(label);
        }
        TermParts::Literal { head, tail, kind: LiteralKind::Triple } => {
            let text = [head, tail].concat();
            out.push_str("<<(");
            for part in triple_parts(&text).into_iter().flatten() {
                out.push(' ');
                with_nt(part, &mut String::new(), |parts| append_display(parts, prefixes, out));
            }
            out.push_str(" )>>");
        }
        TermParts::Literal { head, tail, kind } => {
            if let LiteralKind::Typed(datatype) = kind
                && let Some(name) = datatype.strip_prefix(XSD)
            {
                let number = matches!(name, "integer" | "decimal" | "double" | "float" | "int" | "long");
                if number || matches!(name, "boolean" | "date" | "dateTime") {
                    append_escaped(head, out);
                    append_escaped(tail, out);
                    return number;
                }
            }
            out.push('"');
            append_escaped(head, out);
            append_escaped(tail, out);
            out.push('"');
            match kind {
                LiteralKind::String | LiteralKind::Triple => {}
                LiteralKind::Language(tag) => {
                    out.push('@');
                    out.push_str(tag);
                }
                LiteralKind::Typed(datatype) => {
                    out.push_str("^^");
                    iri(datatype, prefixes, out);
                }
            }
        }
    }
    false
}

/// Appends an IRI, abbreviated with the longest prefix that leaves a simple name, else in angle brackets.
fn iri(text: &str, prefixes: &[(String, String)], out: &mut String) {
    let simple = |name: &str| {
        !name.is_empty()
            && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
            && !name.ends_with('.')
    };
    let known = prefixes
        .iter()
        .filter_map(|(name, namespace)| Some((name, namespace, text.strip_prefix(namespace.as_str())?)))
        .filter(|(_, _, local)| simple(local))
        .max_by_key(|(_, namespace, _)| namespace.len());
    match known {
        Some((name, _, local)) => {
            out.push_str(name);
            out.push(':');
            out.push_str(local);
        }
        None => {
            out.push('<');
            append_escaped(text, out);
            out.push('>');
        }
    }
}

/// Appends `text` with control characters escaped, so that a value cannot move the cursor.
fn append_escaped(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => out.extend(c.escape_unicode()),
            // Bidirectional control characters would disorder the columns.
            '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => {
                out.extend(c.escape_unicode())
            }
            c => out.push(c),
        }
    }
}

//! Aligned text tables.

use std::borrow::Cow;
use std::io::{self, Write};

/// Rows of text under headers; columns of numbers are right-aligned.
#[derive(Debug)]
pub(crate) struct Table {
    headers: Vec<Column>,
    /// Rows of cells with their number of consecutive repetitions.
    rows: Vec<(Vec<String>, u64)>,
}

#[derive(Debug)]
struct Column {
    name: Cow<'static, str>,
    right: bool,
}

impl Table {
    /// A table with these headers; a leading `>` marks a column of numbers.
    pub(crate) fn new(headers: &[&'static str]) -> Self {
        let column = |name: &&'static str| match name.strip_prefix('>') {
            Some(name) => Column { name: Cow::Borrowed(name), right: true },
            None => Column { name: Cow::Borrowed(*name), right: false },
        };
        Self { headers: headers.iter().map(column).collect(), rows: Vec::new() }
    }

    /// A table with headers from the data.
    pub(crate) fn named(headers: Vec<String>) -> Self {
        let column = |name: String| Column { name: Cow::Owned(name), right: false };
        Self { headers: headers.into_iter().map(column).collect(), rows: Vec::new() }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push((cells.into_iter().collect(), 1));
    }

    /// Adds a repeated row, which takes no more memory than one.
    pub(crate) fn rows(&mut self, cells: Vec<String>, times: u64) {
        self.rows.push((cells, times));
    }

    /// Writes the table, with `indent` before every line.
    pub(crate) fn write(&self, indent: &str, out: &mut dyn Write) -> io::Result<()> {
        let widths: Vec<usize> = (self.headers.iter().enumerate())
            .map(|(i, column)| {
                let cells =
                    self.rows.iter().filter_map(|(row, _)| row.get(i)).map(|cell| cell.chars().count());
                cells.max().unwrap_or(0).max(column.name.chars().count())
            })
            .collect();
        let headers: Vec<String> = self.headers.iter().map(|column| column.name.to_string()).collect();
        let rules: Vec<String> = widths.iter().map(|&width| "─".repeat(width)).collect();
        let head = [(&headers, 1), (&rules, 1)];
        for (row, times) in head.into_iter().chain(self.rows.iter().map(|(row, times)| (row, *times))) {
            let mut line = String::from(indent);
            for ((cell, column), &width) in row.iter().zip(&self.headers).zip(&widths) {
                let padding = " ".repeat(width.saturating_sub(cell.chars().count()));
                if column.right {
                    line.push_str(&padding);
                    line.push_str(cell);
                } else {
                    line.push_str(cell);
                    line.push_str(&padding);
                }
                line.push_str("  ");
            }
            let line = line.trim_end();
            for _ in 0..times {
                // Standard output fails after Ctrl-C.
                writeln!(out, "{line}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() -> io::Result<()> {
        let mut table = Table::new(&["city", ">routes"]);
        table.row(["Zürich".to_owned(), "7".to_owned()]);
        table.row(["Wien".to_owned(), "1,234,567".to_owned()]);
        let mut out = Vec::new();
        table.write("  ", &mut out)?;
        let text = String::from_utf8(out).expect("tables are text");
        assert_eq!(
            text,
            "  city       routes\n  ──────  ─────────\n  Zürich          7\n  Wien    1,234,567\n"
        );
        Ok(())
    }
}

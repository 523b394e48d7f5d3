//! Aligned text tables.

use std::borrow::Cow;
use std::io::{self, Write};

/// Rows of text under headers; columns of numbers are right-aligned.
#[derive(Debug)]
pub(crate) struct Table {
    headers: Vec<Column>,
    /// Rows of cells with their number of consecutive repetitions.
    rows: Vec<(Vec<String>, u64)>,
    /// The maximum width of a line.
    width: Option<usize>,
}

/// The minimum width of a column that is cut to fit.
const COLUMN_WIDTH_MIN: usize = 6;

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
        Self { headers: headers.iter().map(column).collect(), rows: Vec::new(), width: None }
    }

    /// A table with headers from the data.
    pub(crate) fn named(headers: Vec<String>) -> Self {
        let column = |name: String| Column { name: Cow::Owned(name), right: false };
        Self { headers: headers.into_iter().map(column).collect(), rows: Vec::new(), width: None }
    }

    /// Cuts the cells of the widest columns so that a line has at most `width` characters, if there is a
    /// width.
    pub(crate) fn fit(mut self, width: Option<usize>) -> Self {
        self.width = width;
        self
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
        let widths = self.fitted(self.needed(), indent.len());
        let headers: Vec<String> = self.headers.iter().map(|column| column.name.to_string()).collect();
        let rules: Vec<String> = widths.iter().map(|&width| "─".repeat(width)).collect();
        let head = [(&headers, 1), (&rules, 1)];
        for (row, times) in head.into_iter().chain(self.rows.iter().map(|(row, times)| (row, *times))) {
            let mut line = String::from(indent);
            for ((cell, column), &width) in row.iter().zip(&self.headers).zip(&widths) {
                let length = cell.chars().count();
                let cell: Cow<'_, str> = match length > width {
                    true => cell.chars().take(width - 1).chain(['…']).collect::<String>().into(),
                    false => cell.as_str().into(),
                };
                let padding = " ".repeat(width.saturating_sub(length));
                if column.right {
                    line.push_str(&padding);
                    line.push_str(&cell);
                } else {
                    line.push_str(&cell);
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

    /// Whether [`Table::write`] cuts cells to fit.
    pub(crate) fn has_cut_cells(&self, indent: &str) -> bool {
        let needed = self.needed();
        self.fitted(needed.clone(), indent.len()) != needed
    }

    /// The widths of columns with their whole cells.
    fn needed(&self) -> Vec<usize> {
        let width = |(i, column): (usize, &Column)| {
            let cells = self.rows.iter().filter_map(|(row, _)| row.get(i)).map(|cell| cell.chars().count());
            cells.max().unwrap_or(0).max(column.name.chars().count())
        };
        self.headers.iter().enumerate().map(width).collect()
    }

    /// The widths of columns, the widest reduced until a line fits.
    fn fitted(&self, mut widths: Vec<usize>, indent: usize) -> Vec<usize> {
        let Some(width) = self.width else { return widths };
        let available = width.saturating_sub(indent + 2 * widths.len().saturating_sub(1));
        let mut limit = widths.iter().copied().max().unwrap_or(0);
        let sum = |limit: usize| widths.iter().map(|&width| width.min(limit)).sum::<usize>();
        while limit > COLUMN_WIDTH_MIN && sum(limit) > available {
            limit = (limit - 1).min(available.max(COLUMN_WIDTH_MIN));
        }
        widths.iter_mut().for_each(|width| *width = (*width).min(limit));
        widths
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// users 22: tables were wider than the terminal.
    #[test]
    fn users_22_wide_cells_are_cut_to_fit() -> io::Result<()> {
        let write = |width| -> io::Result<String> {
            let mut table = Table::named(vec!["a".to_owned(), "text".to_owned()]).fit(width);
            table.rows(vec!["b".to_owned(), "größer als der Schirm".to_owned()], 2);
            assert_eq!(table.has_cut_cells(""), width.is_some_and(|width| width < 24));
            let mut out = Vec::new();
            table.write("", &mut out)?;
            Ok(String::from_utf8(out).expect("tables are text"))
        };
        assert_eq!(write(Some(14))?, "a  text\n─  ───────────\nb  größer als…\nb  größer als…\n");
        assert_eq!(write(None)?, write(Some(80))?);
        assert!(write(Some(1))?.lines().all(|line| line.chars().count() <= 9), "{}", write(Some(1))?);
        Ok(())
    }

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

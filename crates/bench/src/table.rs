//! Text tables: aligned columns, names left, numbers right.

use std::fmt;

/// Rows of cells under headings.
#[derive(Clone, Default, Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings; the first column is left-aligned, the others right-aligned.
    #[must_use]
    pub fn new(headings: &[&str]) -> Self {
        Self { rows: vec![headings.iter().map(|heading| (*heading).to_owned()).collect()] }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }
}

impl fmt::Display for Table {
    /// Formats the table as text that is also valid Markdown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.first().map_or(0, Vec::len);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row: &Vec<String>| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0).max(4)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for (index, row) in self.rows.iter().enumerate() {
            for (column, width) in widths.iter().enumerate() {
                let cell = row.get(column).map_or("", String::as_str);
                if column == 0 {
                    write!(f, "| {cell:width$} ")?;
                } else {
                    write!(f, "| {cell:>width$} ")?;
                }
            }
            writeln!(f, "|")?;
            if index == 0 {
                for (column, width) in widths.iter().enumerate() {
                    let line = "-".repeat(width - usize::from(column > 0));
                    write!(f, "| {line}{} ", if column > 0 { ":" } else { "" })?;
                }
                writeln!(f, "|")?;
            }
        }
        Ok(())
    }
}

/// Three significant digits, down to ten millionths, without exponent.
#[must_use]
pub fn figure(value: f64) -> String {
    // Digits after the point, by the position of the first one; rounding may add one before it.
    let mut digits = 7;
    for after in (0u8..7).rev() {
        if value.abs() >= (1.0 - 0.0005) * 10f64.powi(2 - i32::from(after)) {
            digits = usize::from(after);
        }
    }
    grouped(&format!("{value:.digits$}"))
}

/// A number with thousands separators.
#[must_use]
pub fn count(number: u64) -> String {
    grouped(&number.to_string())
}

/// The figure of a value, or a dash.
#[must_use]
pub fn figure_or_dash(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), figure)
}

fn grouped(number: &str) -> String {
    let whole = number.find('.').unwrap_or(number.len());
    let mut text = String::new();
    for (index, character) in number.char_indices() {
        let left = whole.saturating_sub(index);
        let first = index == 0 || (index == 1 && number.starts_with('-'));
        if index < whole && left.is_multiple_of(3) && !first {
            text.push(',');
        }
        text.push(character);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&["query", "ms"]);
        table.row(vec!["q1".into(), figure(1234.5)]);
        table.row(vec!["longer".into(), figure(0.012_34)]);
        let expected = "| query  |     ms |\n| ------ | -----: |\n\
                        | q1     |  1,234 |\n| longer | 0.0123 |\n";
        assert_eq!(table.to_string(), expected);
    }

    #[test]
    fn figures_have_three_digits() {
        for (value, text) in [
            (0.5, "0.500"),
            (12.345, "12.3"),
            (1e6, "1,000,000"),
            (99.97, "100"),
            (1.0, "1.00"),
            (0.000_052, "0.0000520"),
            (0.0, "0.0000000"),
        ] {
            assert_eq!(figure(value), text);
        }
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count(123), "123");
        assert_eq!(figure(-1234.0), "-1,234");
    }
}

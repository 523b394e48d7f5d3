//! Report sections: readable tables with headings and targets, and JSON.

use crate::report::{machine, today};
use crate::table::Table;
use crate::target::{self, Target};
use serde::Serialize;
use std::fmt;
use std::path::Path;
use vervet_model::{Error, Result};

/// A table with a heading and an explanatory note.
#[derive(Serialize, Clone, Debug)]
pub struct Section {
    title: String,
    note: String,
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Section {
    /// A table without rows.
    #[must_use]
    pub fn new(title: impl Into<String>, note: impl Into<String>, columns: &[&str]) -> Self {
        let columns = columns.iter().map(|column| (*column).to_owned()).collect();
        Self { title: title.into(), note: note.into(), columns, rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }
}

/// All sections on one set of data.
#[derive(Serialize, Debug)]
pub struct SectionReport {
    title: String,
    command: String,
    date: String,
    machine: String,
    optimized: bool,
    sections: Vec<Section>,
    targets: Vec<Target>,
}

impl SectionReport {
    pub(crate) fn new(title: String) -> Self {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        Self {
            title,
            command: format!("vervet-bench {}", arguments.join(" ")),
            date: today(),
            machine: machine(),
            optimized: !cfg!(debug_assertions),
            sections: Vec::new(),
            targets: Vec::new(),
        }
    }

    /// The targets.
    #[must_use]
    pub fn targets(&self) -> &[Target] {
        &self.targets
    }

    pub(crate) fn push(&mut self, section: Section) {
        eprintln!("{section}");
        self.sections.push(section);
    }

    pub(crate) fn target(&mut self, what: impl Into<String>, reached: f64, target: f64, at_most: bool) {
        self.targets.push(Target { what: what.into(), target, at_most, reached, is_bound: false });
    }

    /// Writes the report as JSON.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_json(&self, file: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| Error::internal(format!("a report has no JSON form: {error}")))?;
        write(file, &(text + "\n"))
    }

    /// Writes the report as Markdown.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_markdown(&self, file: &Path) -> Result<()> {
        write(file, &format!("# Benchmark\n\n{self}"))
    }
}

/// Writes a report.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn write(file: &Path, text: &str) -> Result<()> {
    std::fs::write(file, text).map_err(|error| Error::io(format_args!("write {}", file.display()), &error))
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<&str> = self.columns.iter().map(String::as_str).collect();
        let mut table = Table::new(&columns);
        self.rows.iter().for_each(|row| table.row(row.clone()));
        writeln!(f, "### {}\n\n{table}\n{}", self.title, self.note)
    }
}

impl fmt::Display for SectionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let build = if self.optimized { "release" } else { "debug" };
        writeln!(f, "## {}\n", self.title)?;
        writeln!(f, "`{}`, {}, {}, {build} build\n", self.command, self.date, self.machine)?;
        for section in &self.sections {
            writeln!(f, "{section}")?;
        }
        if !self.targets.is_empty() {
            writeln!(f, "{}", target::table(&self.targets))?;
        }
        Ok(())
    }
}

//! The report: lines and tables in Markdown, printed at once and stored for the output file.

use std::time::{SystemTime, UNIX_EPOCH};
use vervet_model::civil_from_days;

/// See the header of this file.
#[derive(Default)]
pub(crate) struct Report(String);

impl Report {
    /// Writes the command, the date and the machine.
    pub(crate) fn head(&mut self) -> std::io::Result<()> {
        let arguments: Vec<String> = std::env::args().skip(1).map(|argument| file_name(&argument)).collect();
        self.line("# Load and hostile clients\n");
        let model = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let field = |name: &str| {
            let line = model.lines().find_map(|line| line.strip_prefix(name)?.split_once(": "));
            line.map_or("unknown", |(_, value)| value.trim())
        };
        let build = if cfg!(debug_assertions) { "debug" } else { "release" };
        self.line(&format!(
            "`cargo run --release -p vervet-server --example load -- {}`, {}, {}, {} MHz, {} cores, load average {} \
             before it, {build} build\n",
            arguments.join(" "),
            today(),
            field("model name"),
            field("cpu MHz"),
            std::thread::available_parallelism()?,
            load_average(),
        ));
        Ok(())
    }

    /// Prints and stores a line.
    pub(crate) fn line(&mut self, line: &str) {
        println!("{line}");
        self.0 += line;
        self.0.push('\n');
    }

    /// Prints and stores a table; `rows` have as many cells as `head`.
    pub(crate) fn table(&mut self, head: &[&str], rows: &[Vec<String>]) {
        let width = |column: usize| {
            rows.iter().map(|row| row[column].chars().count()).chain([head[column].len()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..head.len()).map(width).collect();
        let line = |cells: &[String]| {
            let cells: Vec<String> =
                cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
            format!("| {} |", cells.join(" | "))
        };
        self.line(&line(&head.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>()));
        self.line(&line(&widths.iter().map(|width| "-".repeat(*width)).collect::<Vec<_>>()));
        rows.iter().for_each(|row| self.line(&line(row)));
        self.line("");
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

/// The load average of the last minute. Other work on the machine is the most likely cause of figures that
/// differ.
pub(crate) fn load_average() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').next().filter(|load| !load.is_empty()).unwrap_or("unknown").to_owned()
}

/// An argument for the report: absolute paths are reduced to the file name.
fn file_name(argument: &str) -> String {
    let path = std::path::Path::new(argument);
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    if path.is_absolute() { format!("DATA/{}", name.unwrap_or_default()) } else { argument.to_owned() }
}

fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let (year, month, day) = civil_from_days(i64::try_from(seconds / 86_400).unwrap_or(i64::MAX));
    format!("{year}-{month:02}-{day:02}")
}

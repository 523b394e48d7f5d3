//! `vervet load`: files into a database, with progress on a terminal.

use crate::arguments::LoadArguments;
use crate::output::{self, Failure, Outcome};
use crate::{input, interrupt};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use vervet::{Database, Error, LoadOptions, LoadReport, Mapping, Progress, Source};

pub(crate) fn run(arguments: &LoadArguments) -> Outcome {
    let standard = arguments.files.iter().filter(|file| input::is_standard(file)).count();
    if standard > 0 && arguments.format.is_none() {
        let hint = "add for example --format nt".to_owned();
        return Err(Failure::Usage("standard input has no name that tells its format".to_owned(), hint));
    }
    if standard > 1 {
        let hint = "name `-` once".to_owned();
        return Err(Failure::Usage("standard input can be read only once".to_owned(), hint));
    }
    let _running = interrupt::start();
    let mut options = options(arguments)?;
    let sources: Vec<Source> = arguments.files.iter().map(|file| input::source(file)).collect();
    if arguments.show_schema || arguments.print_mapping {
        let schema = vervet::schema(sources, &options)?;
        let mut out = output::Output::standard();
        if arguments.print_mapping {
            write!(out, "{}", schema.to_mapping())?;
        } else {
            write!(out, "{schema}")?;
        }
        return out.finish();
    }
    let database = Database::open_or_create(&arguments.database)?;
    let bar = Bar::new();
    options.progress = Some(&bar);
    let mut skipped = Skipped::new(arguments);
    let started = Instant::now();
    let report = database.load_with_report(sources, &options, arguments.memory, &mut skipped);
    bar.bar.finish_and_clear();
    let report = report?;
    skipped.flush()?;
    let mut out = output::Output::standard();
    writeln!(out, "{}", summary(&report, started.elapsed(), &database)?)?;
    if report.skipped > 0 {
        writeln!(
            io::stderr(),
            "skipped {} malformed {}{}",
            output::count(report.skipped),
            if report.skipped == 1 { "statement" } else { "statements" },
            skipped.path.map(|path| format!(", see {}", path.display())).unwrap_or_default()
        )?;
    }
    out.finish()
}

fn options(arguments: &LoadArguments) -> Result<LoadOptions<'static>, Error> {
    let mut options = LoadOptions {
        format: arguments.format,
        graph: arguments.graph.clone(),
        base_iri: arguments.base.as_ref().map(|base| base.as_str().to_owned()),
        skip_errors: arguments.skip_errors,
        cancelled: Some(interrupt::requested()),
        names_from_files: arguments.names_from_files,
        mapping: arguments.mapping.as_deref().map(mapping).transpose()?,
        orders: arguments.orders.clone(),
        text_index: arguments.text_index,
        ..LoadOptions::default()
    };
    if let Some(threads) = arguments.threads {
        options.threads = usize::try_from(threads).unwrap_or(1);
    }
    Ok(options)
}

fn mapping(path: &Path) -> Result<Mapping, Error> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Error::io(format!("read the mapping {}", path.display()), &error))?;
    Mapping::parse(&text).map_err(|error| error.context(path.display()))
}

/// The line at the end: statements, bytes, seconds, rate, and what the database now takes.
fn summary(report: &LoadReport, elapsed: Duration, database: &Database) -> Result<String, Error> {
    let statements = database.snapshot().statement_count();
    let size: u64 = database.parts()?.iter().map(|part| part.size_bytes).sum();
    let per_statement = size as f64 / (statements.max(1)) as f64;
    Ok(format!(
        "loaded {} from {} in {:.2} s ({} statements/s); the database has {} in {} ({per_statement:.1} bytes each)",
        output::statements(report.statements),
        output::bytes(report.bytes),
        elapsed.as_secs_f64(),
        output::rate(report.statements, elapsed),
        output::count(statements),
        output::bytes(size),
    ))
}

/// A progress bar on standard error; nothing where that is no terminal.
struct Bar {
    bar: ProgressBar,
}

impl Bar {
    fn new() -> Self {
        let target = match io::stderr().is_terminal() {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(None, target);
        bar.set_style(style("{spinner} {decimal_bytes} read, {msg}"));
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar }
    }
}

impl Progress for Bar {
    fn advance(&self, bytes_read: u64, bytes_total: Option<u64>, statements: u64) {
        if let Some(total) = bytes_total
            && self.bar.length().is_none()
        {
            self.bar.set_length(total);
            self.bar.set_style(style(
                "{bar:24} {percent:>3} %  {decimal_bytes} of {decimal_total_bytes}, {msg}, {eta} left",
            ));
        }
        self.bar.set_position(bytes_read);
        let rate = output::rate(statements, self.bar.elapsed());
        self.bar.set_message(if bytes_total.is_some_and(|total| bytes_read >= total) {
            format!("{} statements, building", output::count(statements))
        } else {
            format!("{} statements, {rate}/s", output::count(statements))
        });
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// Where passed-over statements go: a file that is made when the first one comes, or standard error.
struct Skipped {
    path: Option<PathBuf>,
    file: Option<File>,
}

impl Skipped {
    fn new(arguments: &LoadArguments) -> Self {
        let path = match &arguments.report {
            Some(path) if input::is_standard(path) => None,
            Some(path) => Some(path.clone()),
            None => Some(beside(&arguments.database)),
        };
        Self { path, file: None }
    }
}

/// `DB.skipped.txt`.
fn beside(database: &Path) -> PathBuf {
    // `components` drops a slash at the end, which would put the file into the directory.
    let mut name = database.components().as_path().as_os_str().to_owned();
    name.push(".skipped.txt");
    PathBuf::from(name)
}

impl Write for Skipped {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match (&mut self.file, &self.path) {
            (Some(file), _) => file.write(bytes),
            (file @ None, Some(path)) => file.insert(File::create(path)?).write(bytes),
            (None, None) => io::stderr().write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_lies_beside_the_database() {
        for (database, report) in [("db", "db.skipped.txt"), ("a/db/", "a/db.skipped.txt")] {
            assert_eq!(beside(Path::new(database)), Path::new(report));
        }
    }
}

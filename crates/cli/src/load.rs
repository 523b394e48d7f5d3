//! `vervet load`: loads files into a database, with progress on a terminal.

use crate::arguments::{LoadArguments, ReadingArguments};
use crate::output::{self, Failure, Outcome};
use crate::progress::Bar;
use crate::{input, interrupt, writer_lock};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use vervet::{Database, DatabaseOptions, Error, LoadOptions, LoadReport, Mapping, Source};

/// Shorter loads are reported without a rate.
const RATED_MIN: Duration = Duration::from_secs(1);

pub(crate) fn run(arguments: &LoadArguments) -> Outcome {
    let standard = arguments.files.iter().filter(|file| input::is_standard(file)).count();
    if standard > 0 && arguments.reading.format.is_none() {
        let hint = "add for example --format nt".to_owned();
        return Err(Failure::Usage(
            "standard input has no file extension to determine its format".to_owned(),
            hint,
        ));
    }
    if standard > 1 {
        let hint = "name `-` once".to_owned();
        return Err(Failure::Usage("standard input can be read only once".to_owned(), hint));
    }
    let running = interrupt::start();
    let mut options = LoadOptions {
        cancelled: Some(interrupt::requested()),
        orders: arguments.orders.clone(),
        text_index: arguments.text_index,
        ..reading_options(&arguments.reading, arguments.threads)?
    };
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
    let open = DatabaseOptions { to_write: true, ..DatabaseOptions::default() };
    let database =
        writer_lock::open(&arguments.database, &open, arguments.wait, &running).map_err(|error| {
            match writer_lock::server_address(&error) {
                Some(address) => {
                    let hint = format!("send the files to the server: curl -F f=@FILE {address}load");
                    error.with_hint(hint)
                }
                None => error,
            }
        })?;
    let bar = Bar::new();
    options.progress = Some(&bar);
    let mut skipped = Skipped::new(arguments.reading.report.as_deref(), &arguments.database);
    let started = Instant::now();
    let report = database.load_with_report(sources, &options, arguments.memory, &mut skipped);
    bar.finish();
    let report = report?;
    // The load is published: it can no longer be cancelled.
    running.finish();
    skipped.flush()?;
    let mut out = output::Output::standard();
    writeln!(out, "{}", summary(arguments, &report, started.elapsed(), &database)?)?;
    for note in report.remarks(arguments.reading.both_directions, output::count) {
        writeln!(io::stderr(), "note: {note}")?;
    }
    if report.undirected_edges > 0 && !arguments.reading.both_directions {
        writeln!(io::stderr(), "note: --both-directions makes two edges of an undirected one")?;
    }
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

/// The options of a load, without cancellation.
pub(crate) fn reading_options(
    arguments: &ReadingArguments,
    threads: Option<u32>,
) -> Result<LoadOptions<'static>, Error> {
    let mut options = LoadOptions {
        format: arguments.format,
        graph: arguments.graph.clone(),
        base_iri: arguments.base.as_ref().map(|base| base.as_str().to_owned()),
        skip_errors: arguments.skip_errors,
        names_from_files: arguments.names_from_files,
        id_column: arguments.id.clone(),
        row_ids: arguments.row_ids,
        label_keys: arguments.labels.clone(),
        default_label: arguments.default_label.clone(),
        both_directions: arguments.both_directions,
        mapping: arguments.mapping.as_deref().map(mapping).transpose()?,
        ..LoadOptions::default()
    };
    if let Some(threads) = threads {
        options.threads = usize::try_from(threads).unwrap_or(1);
    }
    Ok(options)
}

fn mapping(path: &Path) -> Result<Mapping, Error> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Error::io(format!("read the mapping {}", path.display()), &error))?;
    Mapping::parse(&text).map_err(|error| error.context(path.display()))
}

/// The summary line: statements, bytes, seconds, rate, and the size of the database.
fn summary(
    arguments: &LoadArguments,
    report: &LoadReport,
    elapsed: Duration,
    database: &Database,
) -> Result<String, Error> {
    let statements = database.snapshot().statement_count();
    let size: u64 = database.component_sizes()?.iter().map(|part| part.size_bytes).sum();
    let per_statement = size as f64 / (statements.max(1)) as f64;
    let seconds = elapsed.as_secs_f64();
    let done = if arguments.files.is_empty() {
        let made = match (arguments.text_index, arguments.orders.is_empty()) {
            (true, true) => "indexed the words of all texts",
            (true, false) => "indexed the words of all texts and made the orders",
            (false, _) => "made the orders",
        };
        format!("{made} in {seconds:.2} s")
    } else {
        let (mut statements, bytes) = (output::statements(report.added), output::bytes(report.bytes));
        if report.added != report.statements {
            // Statements may occur twice, or be there already, and a reifier is a line of N-Quads.
            statements.push_str(&format!(" ({} in the files)", output::count(report.statements)));
        }
        // A short load consists mostly of fixed costs.
        let rate = match elapsed >= RATED_MIN {
            true => format!(" ({} statements/s)", output::rate(report.statements, elapsed)),
            false => String::new(),
        };
        format!("loaded {statements} from {bytes} in {seconds:.2} s{rate}")
    };
    let (statements, size) = (output::count(statements), output::bytes(size));
    Ok(format!("{done}; the database has {statements} in {size} ({per_statement:.1} bytes each)"))
}

/// The output for skipped statements: a file created with the first of them, or standard error.
pub(crate) struct Skipped {
    pub(crate) path: Option<PathBuf>,
    file: Option<File>,
}

impl Skipped {
    /// `report`: of the options; `directory`: that of the load.
    pub(crate) fn new(report: Option<&Path>, directory: &Path) -> Self {
        let path = match report {
            Some(path) if input::is_standard(path) => None,
            Some(path) => Some(path.to_owned()),
            None => Some(beside(directory)),
        };
        Self { path, file: None }
    }
}

/// `DB.skipped.txt`.
fn beside(database: &Path) -> PathBuf {
    // `components` drops a trailing slash, which would put the file into the directory.
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
    fn the_report_is_beside_the_database() {
        for (database, report) in [("db", "db.skipped.txt"), ("a/db/", "a/db.skipped.txt")] {
            assert_eq!(beside(Path::new(database)), Path::new(report));
        }
    }
}

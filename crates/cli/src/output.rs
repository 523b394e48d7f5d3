//! User-visible output: results, errors, colours, exit codes, and formatting of numbers.

use crate::interrupt;
use crate::pager::Pager;
use crate::repeated_header::{LastHeader, RepeatedHeader};
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use vervet::{Durability, Error, ErrorKind, Warning};

/// Why a command ended early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An error of the engine or the system.
    Error(Error),
    /// Inconsistent arguments: message and hint.
    Usage(String, String),
    /// A failure that the output itself has reported.
    Shown,
}

/// The result of a command.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// For output; input errors name their file.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Error(Error::io("write the output", &error))
    }
}

/// Whether a write to standard output has failed because its reader closed it. Process-wide, because the
/// error passes through layers that keep only its text.
static READER_CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether a write was refused because of Ctrl-C; process-wide for the same reason.
static WRITE_CANCELLED: AtomicBool = AtomicBool::new(false);

/// Standard output or a file; writes fail after Ctrl-C, so that no command continues to write.
pub(crate) struct Output {
    target: Target,
    /// For a file that receives several results.
    header: Option<RepeatedHeader>,
}

enum Target {
    Standard(BufWriter<io::Stdout>),
    File { file: BufWriter<File>, part: PathBuf, path: PathBuf },
    Direct(BufWriter<File>),
    Pager(BufWriter<Pager>),
}

const BUFFER_BYTES: usize = 1 << 16;

impl Output {
    /// Standard output.
    pub(crate) fn standard() -> Self {
        Self::of(Target::Standard(BufWriter::with_capacity(BUFFER_BYTES, io::stdout())))
    }

    /// A file under a temporary name until [`Output::finish`]; standard output without a path.
    pub(crate) fn file(path: Option<&Path>) -> Outcome<Self> {
        let Some(path) = path.filter(|path| path.as_os_str() != "-") else { return Ok(Self::standard()) };
        let create = |path: &Path| {
            let file = File::create(path)
                .map_err(|error| Error::io(format!("create {}", path.display()), &error))?;
            Ok::<_, Failure>(BufWriter::with_capacity(BUFFER_BYTES, file))
        };
        // Devices and pipes are written directly.
        if path.exists() && !path.is_file() {
            return Ok(Self::of(Target::Direct(create(path)?)));
        }
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        Ok(Self::of(Target::File { file: create(&part)?, part, path: path.to_owned() }))
    }

    /// An open file, which has earlier results; `last`: their last header.
    pub(crate) fn appended(file: File, last: LastHeader) -> Self {
        let target = Target::Direct(BufWriter::with_capacity(BUFFER_BYTES, file));
        Self { target, header: Some(RepeatedHeader::new(last)) }
    }

    /// The result begins with a header, which a file with the same last header does not repeat.
    pub(crate) fn expect_header(&mut self, has_quotes: bool) {
        if let Some(header) = &mut self.header {
            header.expect(has_quotes);
        }
    }

    /// The terminal, with a pager for more lines than the screen has.
    pub(crate) fn paged(screen_lines: usize) -> Self {
        let pager = Pager::new(screen_lines);
        Self::of(Target::Pager(BufWriter::with_capacity(BUFFER_BYTES, pager)))
    }

    fn of(target: Target) -> Self {
        Self { target, header: None }
    }

    /// The columns of the terminal that shows the output; `None`: not a terminal.
    pub(crate) fn width(&self) -> Option<usize> {
        match &self.target {
            Target::Standard(_) | Target::Pager(_) => screen().map(|(columns, _)| columns),
            Target::File { .. } | Target::Direct(_) => None,
        }
    }

    /// Flushes the buffer and renames the file.
    pub(crate) fn finish(mut self) -> Outcome {
        self.flush()?;
        if let Target::File { file, part, path } = &self.target {
            file.get_ref().sync_all()?;
            std::fs::rename(part, path)
                .map_err(|error| Error::io(format!("rename {}", part.display()), &error))?;
        }
        Ok(())
    }

    fn writer(&mut self) -> &mut dyn Write {
        match &mut self.target {
            Target::Standard(writer) => writer,
            Target::File { file, .. } | Target::Direct(file) => file,
            Target::Pager(pager) => pager,
        }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Target::File { part, .. } = &self.target {
            // The file was renamed if all went well; otherwise the partial output is useless.
            let _ = std::fs::remove_file(part);
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if interrupt::requested().load(Ordering::Relaxed) {
            WRITE_CANCELLED.store(true, Ordering::Relaxed);
            return Err(io::Error::other("cancelled"));
        }
        let (length, line) = self.header.as_mut().map_or((0, None), |header| header.take(bytes));
        if let Some(line) = line {
            note_reader(self.writer().write_all(&line))?;
        }
        if length > 0 {
            return Ok(length);
        }
        note_reader(self.writer().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        note_reader(self.writer().flush())
    }
}

fn note_reader<T>(result: io::Result<T>) -> io::Result<T> {
    if let Err(error) = &result
        && error.kind() == io::ErrorKind::BrokenPipe
    {
        READER_CLOSED.store(true, Ordering::Relaxed);
    }
    result
}

/// Whether the reader of standard output has closed it since the last call, as a pager that quits early does.
pub(crate) fn reader_closed() -> bool {
    READER_CLOSED.swap(false, Ordering::Relaxed)
}

/// Columns and lines of the terminal at standard output.
#[cfg(unix)]
pub(crate) fn screen() -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then(|| (usize::from(size.ws_col), usize::from(size.ws_row)))
}

/// Columns and lines of the terminal at standard output.
#[cfg(not(unix))]
pub(crate) fn screen() -> Option<(usize, usize)> {
    None
}

/// Reports a failure on standard error; returns the exit code of the process.
pub(crate) fn finish(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) if READER_CLOSED.load(Ordering::Relaxed) => ExitCode::SUCCESS,
        Err(failure) => {
            report(&failure);
            match failure {
                Failure::Usage(..) => ExitCode::from(2),
                Failure::Error(error) if is_cancelled(&error) => ExitCode::from(interrupt::CANCELLED),
                Failure::Error(_) | Failure::Shown => ExitCode::FAILURE,
            }
        }
    }
}

/// Whether Ctrl-C caused the error. Other errors are reported as they are, even after Ctrl-C.
fn is_cancelled(error: &Error) -> bool {
    error.kind() == ErrorKind::Cancelled
        || WRITE_CANCELLED.load(Ordering::Relaxed) && interrupt::requested().load(Ordering::Relaxed)
}

/// Whether failures are reported as log events.
static REPORTS_EVENTS: AtomicBool = AtomicBool::new(false);

/// Makes [`report`] emit log events, so that each line of standard error is JSON.
pub(crate) fn report_as_events() {
    REPORTS_EVENTS.store(true, Ordering::Relaxed);
}

/// Writes `error: …` and `hint: …`, or a log event with both.
pub(crate) fn report(failure: &Failure) {
    let (message, hint) = match failure {
        Failure::Error(error) if is_cancelled(error) => ("cancelled", None),
        Failure::Error(error) => (error.message(), error.hint()),
        Failure::Usage(message, hint) => (message.as_str(), Some(hint.as_str())),
        Failure::Shown => return,
    };
    // A log that is off has no events, and the failure must still be visible.
    if REPORTS_EVENTS.load(Ordering::Relaxed) && tracing::enabled!(tracing::Level::ERROR) {
        tracing::error!(hint, "{message}");
        return;
    }
    let [red, cyan, plain] =
        if colours(&io::stderr()) { ["\x1b[1;31m", "\x1b[36m", "\x1b[0m"] } else { [""; 3] };
    let mut text = format!("{red}error:{plain} {message}\n");
    if let Some(hint) = hint {
        text.push_str(&format!("{cyan}hint:{plain} {hint}\n"));
    }
    // If standard error is closed, the failure cannot be reported.
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Whether to colour output to `stream`.
pub(crate) fn colours(stream: &impl IsTerminal) -> bool {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    stream.is_terminal() && set("NO_COLOR").is_none() && set("TERM").is_none_or(|term| term != "dumb")
}

/// `1234567` as `1,234,567`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1,234 statements`, `1 statement`.
pub(crate) fn statements(number: u64) -> String {
    format!("{} {}", count(number), if number == 1 { "statement" } else { "statements" })
}

/// A size in readable form: `16.2 MB` (a kB has 1000 bytes).
pub(crate) fn bytes(number: u64) -> String {
    let mut value = number as f64;
    let mut unit = "bytes";
    for larger in ["kB", "MB", "GB", "TB"] {
        if value < 1000.0 {
            break;
        }
        value /= 1000.0;
        unit = larger;
    }
    if unit == "bytes" { format!("{number} bytes") } else { format!("{value:.1} {unit}") }
}

/// A time in readable form: `12 µs`, `1.23 ms`, `0.52 s`.
pub(crate) fn time(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    match seconds {
        _ if seconds < 1e-3 => format!("{:.0} µs", seconds * 1e6),
        _ if seconds < 0.01 => format!("{:.2} ms", seconds * 1e3),
        _ if seconds < 0.1 => format!("{:.1} ms", seconds * 1e3),
        _ if seconds < 1.0 => format!("{:.0} ms", seconds * 1e3),
        _ => format!("{seconds:.2} s"),
    }
}

/// A level of durability: `sync`, `interval 0.1`, `none`.
pub(crate) fn durability(level: Durability) -> String {
    match level {
        Durability::Interval(time) => format!("interval {}", time.as_secs_f64()),
        Durability::None => "none".to_owned(),
        _ => "sync".to_owned(),
    }
}

/// A rate per second: `1.2 million`, `478,000`.
pub(crate) fn rate(number: u64, duration: Duration) -> String {
    let rate = number as f64 / duration.as_secs_f64().max(1e-9);
    if rate >= 1e6 {
        return format!("{:.2} million", rate / 1e6);
    }
    // More than three digits of a rate are noise.
    let rounded = if rate >= 1000.0 { (rate / 1000.0).round() * 1000.0 } else { rate.round() };
    count(format!("{rounded:.0}").parse().unwrap_or(0))
}

/// Prints warnings about a query on standard error.
pub(crate) fn warn(warnings: &[Warning]) {
    for warning in warnings {
        eprintln!("warning: {warning}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_easy_to_read() {
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([0, 1, 2000].map(statements), ["0 statements", "1 statement", "2,000 statements"]);
        assert_eq!([12, 16_234_567].map(bytes), ["12 bytes", "16.2 MB"]);
        assert_eq!(time(Duration::from_micros(12)), "12 µs");
        assert_eq!(time(Duration::from_micros(1234)), "1.23 ms");
        assert_eq!(time(Duration::from_millis(520)), "520 ms");
        assert_eq!(rate(478_123, Duration::from_secs(1)), "478,000");
        assert_eq!(rate(2_500_000, Duration::from_secs(1)), "2.50 million");
        assert_eq!(rate(5, Duration::ZERO), "5000.00 million");
    }
}

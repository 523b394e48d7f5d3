//! Opens a database for writing. While another process holds the lock, `--wait` retries, and standard error
//! says which process that is and how long it has been.

use crate::interrupt;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};
use vervet::{Database, DatabaseOptions, Error, ErrorKind};

/// The time between two attempts: short beside the start of a process.
const WAIT_STEP: Duration = Duration::from_millis(20);
/// The time between two messages.
const REMINDER: Duration = Duration::from_secs(10);
/// Precedes the address of a server in the description of the lock holder.
const SERVER: &str = "vervet serve at ";

/// Opens or creates a database, and waits for another writer up to `wait`.
///
/// # Errors
/// Those of [`Database::open_or_create_with`]; [`ErrorKind::Cancelled`]: Ctrl-C during the wait.
pub(crate) fn open(
    path: &Path,
    options: &DatabaseOptions,
    wait: Option<Duration>,
    running: &interrupt::Running,
) -> vervet::Result<Database> {
    let started = Instant::now();
    let limit = wait.unwrap_or_default();
    let mut reminders = Reminders { limit, count: 0 };
    loop {
        let error = match Database::open_or_create_with(path, options.clone()) {
            Err(error) if error.kind() == ErrorKind::Unavailable => error,
            other => return other,
        };
        if running.token.is_cancelled() {
            return Err(Error::new(ErrorKind::Cancelled, "cancelled during the wait for the lock"));
        }
        let elapsed = started.elapsed();
        let left = limit.saturating_sub(elapsed);
        if left.is_zero() {
            return Err(match wait {
                // A server ends only when it is stopped.
                None if server_address(&error).is_none() => {
                    let hint = error.hint().unwrap_or("another process writes to the database");
                    let hint = format!("{hint}; --wait SECONDS waits for it");
                    error.with_hint(hint)
                }
                _ => error,
            });
        }
        if let Some(line) = reminders.line(elapsed, &error) {
            // A closed standard error is not a failure of the command.
            let _ = writeln!(std::io::stderr(), "{line}");
        }
        std::thread::sleep(left.min(WAIT_STEP));
    }
}

/// The address of the server that holds the lock, with a slash at its end.
pub(crate) fn server_address(error: &Error) -> Option<String> {
    if error.kind() != ErrorKind::Unavailable {
        return None;
    }
    let text = error.to_string();
    let (_, rest) = text.split_once(SERVER)?;
    let address = rest.split([')', ' ']).next().filter(|address| address.ends_with('/'))?;
    Some(address.to_owned())
}

/// The messages of a wait: one at its start, then one every [`REMINDER`].
struct Reminders {
    limit: Duration,
    /// Number of messages so far.
    count: u32,
}

impl Reminders {
    /// The message that is due after this part of the wait.
    fn line(&mut self, elapsed: Duration, error: &Error) -> Option<String> {
        if elapsed < REMINDER * self.count {
            return None;
        }
        self.count += 1;
        Some(match self.count {
            1 => format!("{error}; waiting up to {} s", self.limit.as_secs_f64()),
            _ => format!("still held after {} s: {error}", elapsed.as_secs()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_reports_its_reason_every_ten_seconds() {
        let error = Error::new(ErrorKind::Unavailable, "could not write to db: process 7 holds the lock");
        let mut reminders = Reminders { limit: Duration::from_secs(60), count: 0 };
        let mut lines = Vec::new();
        for milliseconds in (0..25_000).step_by(20) {
            lines.extend(reminders.line(Duration::from_millis(milliseconds), &error));
        }
        assert_eq!(
            lines,
            [
                "could not write to db: process 7 holds the lock; waiting up to 60 s",
                "still held after 10 s: could not write to db: process 7 holds the lock",
                "still held after 20 s: could not write to db: process 7 holds the lock",
            ]
        );
    }

    #[test]
    fn the_address_of_a_server_is_part_of_the_error() {
        let error = |text: &str| Error::new(ErrorKind::Unavailable, text);
        let held = "could not write to db: process 7 (vervet serve at http://127.0.0.1:7878/) holds the lock";
        assert_eq!(server_address(&error(held)).as_deref(), Some("http://127.0.0.1:7878/"));
        assert_eq!(server_address(&error("could not write to db: process 7 holds the lock")), None);
        assert_eq!(server_address(&Error::new(ErrorKind::Input, held)), None);
    }
}

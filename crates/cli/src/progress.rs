//! Progress of long commands, on standard error: a bar on a terminal, else a line every ten seconds.

use crate::output;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use vervet::Progress;

/// Seconds between two lines without a terminal; a command that finishes before the first prints none.
const LINE_SECONDS: u64 = 10;

/// See the header of this file.
pub(crate) struct Bar {
    bar: ProgressBar,
    is_terminal: bool,
    /// Whether the build phase has begun.
    is_building: AtomicBool,
    /// The time of the last line, in seconds from the start.
    line_at: AtomicU64,
    statements: AtomicU64,
}

impl Bar {
    pub(crate) fn new() -> Self {
        let is_terminal = io::stderr().is_terminal();
        let target = match is_terminal {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        Self::drawn_on(target, is_terminal)
    }

    fn drawn_on(target: ProgressDrawTarget, is_terminal: bool) -> Self {
        let bar = ProgressBar::with_draw_target(None, target);
        bar.set_style(style("{spinner} {decimal_bytes} read{msg}"));
        bar.enable_steady_tick(Duration::from_millis(200));
        Self {
            bar,
            is_terminal,
            is_building: AtomicBool::new(false),
            line_at: AtomicU64::new(0),
            statements: AtomicU64::new(0),
        }
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// Prints a line above the bar.
    pub(crate) fn say(&self, line: &str) {
        self.bar.suspend(|| say(line));
    }

    /// Shows that `done` of `total` steps are complete; `verb`: built, copied.
    pub(crate) fn built(&self, done: u64, total: u64, verb: &str) {
        if !self.is_building.swap(true, Ordering::Relaxed) {
            self.bar.set_style(style("{bar:24} {percent:>3} %  {msg}"));
        }
        let what = match self.statements.load(Ordering::Relaxed) {
            0 => String::new(),
            statements => format!(" of {}", output::statements(statements)),
        };
        if self.is_terminal {
            self.bar.set_length(total);
            self.bar.set_position(done);
            self.bar.set_message(format!("{what} {verb}").trim_start().to_owned());
        } else if self.is_time() {
            say(&format!("{} %{what} {verb}", done.saturating_mul(100) / total.max(1)));
        }
    }

    /// Whether ten seconds have passed since the last line.
    fn is_time(&self) -> bool {
        let (now, last) = (self.bar.elapsed().as_secs(), self.line_at.load(Ordering::Relaxed));
        now >= last + LINE_SECONDS
            && self.line_at.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

impl Progress for Bar {
    fn advance(&self, bytes_read: u64, bytes_total: Option<u64>, statements: u64) {
        self.statements.store(statements, Ordering::Relaxed);
        if !self.is_terminal {
            if self.is_time() {
                let of = bytes_total.map(|total| format!(" of {}", output::bytes(total))).unwrap_or_default();
                say(&format!("{}{of} read, {}", output::bytes(bytes_read), output::statements(statements)));
            }
            return;
        }
        if let Some(total) = bytes_total
            && self.bar.length().is_none()
        {
            self.bar.set_length(total);
            self.bar.set_style(style(
                "{bar:24} {percent:>3} %  {decimal_bytes} of {decimal_total_bytes} read{msg}",
            ));
        }
        self.bar.set_position(bytes_read);
        let rate = output::rate(statements, self.bar.elapsed());
        let message = format!(", {}, {rate}/s", output::statements(statements));
        self.bar.set_message(message);
    }

    fn build(&self, done: u64, total: u64) {
        self.built(done, total, "built");
    }
}

fn say(line: &str) {
    // A closed standard error is not a failure of the command.
    let _ = writeln!(io::stderr(), "{line}");
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::TermLike;
    use std::sync::{Arc, Mutex};

    /// A terminal that records what is written.
    #[derive(Clone, Debug, Default)]
    struct Screen(Arc<Mutex<String>>);

    impl Screen {
        fn push(&self, text: &str) -> io::Result<()> {
            self.0.lock().unwrap().push_str(text);
            Ok(())
        }
    }

    impl TermLike for Screen {
        fn width(&self) -> u16 {
            200
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.push(&format!("{text}\n"))
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.push(&format!("{text}\n"))
        }
        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Before the first statements there is nothing behind the bytes, a comma included.
    #[test]
    fn a_bar_without_a_message_ends_with_its_bytes() {
        let screen = Screen::default();
        let bar = Bar::drawn_on(ProgressDrawTarget::term_like(Box::new(screen.clone())), true);
        bar.bar.force_draw();
        bar.advance(1_000, Some(2_000), 7);
        bar.bar.force_draw();
        bar.finish();
        let shown = screen.0.lock().unwrap().clone();
        assert!(shown.lines().any(|line| line.trim_end().ends_with(" read")), "{shown}");
        assert!(shown.contains("2.00 kB read, 7 statements, "), "{shown}");
        assert!(!shown.lines().any(|line| line.trim_end().ends_with(',')), "{shown}");
    }
}

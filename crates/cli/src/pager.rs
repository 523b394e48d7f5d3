//! Pages results on a terminal: output longer than the screen goes to `$PAGER`, else to `less`.
//!
//! The pager starts with the first line that does not fit the screen. If no pager starts, the output goes to
//! the terminal directly. `less` quits at `q`, leaves its last page on the screen, and scrolls sideways.

use crate::interrupt::Paging;
use std::io::{self, Write};
use std::process::{Child, Command, Stdio};

/// The options of `less`, unless the environment sets some.
const LESS: &str = "FRSX";

/// A writer for a terminal.
pub(crate) struct Pager {
    /// Lines of the screen.
    screen: usize,
    /// Lines since the start, those already on the screen included.
    lines: usize,
    held: Vec<u8>,
    child: Option<Child>,
    /// There is no pager.
    is_direct: bool,
}

impl Pager {
    /// A writer for a screen of this many lines.
    pub(crate) fn new(screen: usize) -> Self {
        Self { screen, lines: 0, held: Vec::new(), child: None, is_direct: false }
    }

    fn open(&mut self) -> io::Result<()> {
        let mut command = match std::env::var_os("PAGER").filter(|pager| !pager.is_empty()) {
            Some(pager) => {
                let mut shell = Command::new("sh");
                shell.arg("-c").arg(pager);
                shell
            }
            None => Command::new("less"),
        };
        if std::env::var_os("LESS").is_none() {
            command.env("LESS", LESS);
        }
        match command.stdin(Stdio::piped()).spawn() {
            Ok(child) => self.child = Some(child),
            Err(_) => self.is_direct = true,
        }
        let held = std::mem::take(&mut self.held);
        self.write_through(&held)
    }

    fn write_through(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.child.as_mut().and_then(|child| child.stdin.as_mut()) {
            Some(pipe) => pipe.write_all(bytes),
            None => io::stdout().write_all(bytes),
        }
    }
}

impl Write for Pager {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.child.is_some() || self.is_direct {
            self.write_through(bytes)?;
            return Ok(bytes.len());
        }
        self.held.extend_from_slice(bytes);
        self.lines += bytes.iter().filter(|&&byte| byte == b'\n').count();
        if self.lines >= self.screen {
            self.open()?;
        }
        Ok(bytes.len())
    }

    /// Shows what is complete: a result is flushed at its end.
    fn flush(&mut self) -> io::Result<()> {
        let held = std::mem::take(&mut self.held);
        self.write_through(&held)?;
        match self.child.as_mut().and_then(|child| child.stdin.as_mut()) {
            Some(pipe) => pipe.flush(),
            None => io::stdout().flush(),
        }
    }
}

impl Drop for Pager {
    /// Waits for the pager, which has the terminal.
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            drop(child.stdin.take());
            let paging = Paging::start();
            // The results were shown, whatever the pager returned.
            let _ = child.wait();
            drop(paging);
        }
    }
}

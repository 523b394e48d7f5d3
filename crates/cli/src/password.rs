//! `vervet password`: the hash of a password, for the configuration of `vervet serve`.
//!
//! On a terminal, the password is hidden and typed twice; otherwise it is the first line of standard input.

use crate::output::{Outcome, Output};
use std::io::{self, IsTerminal, Read, Write};
use vervet::{Error, ErrorKind};

pub(crate) fn run() -> Outcome {
    let password = match io::stdin().is_terminal() {
        true => typed()?,
        false => line()?,
    };
    if password.is_empty() {
        let error = Error::new(ErrorKind::Input, "the password is empty");
        return Err(error.with_hint("for example: printf %s secret | vervet password").into());
    }
    let mut out = Output::standard();
    writeln!(out, "{}", vervet_server::hash_password(&password)?)?;
    out.finish()
}

/// Reads a password twice, and compares.
fn typed() -> vervet::Result<String> {
    let _hidden = Hidden::new()?;
    let first = asked("password: ")?;
    // An empty password is an error already.
    if !first.is_empty() && asked("again: ")? != first {
        return Err(Error::new(ErrorKind::Input, "the two passwords differ"));
    }
    Ok(first)
}

/// The password of a user of a server: hidden on a terminal, otherwise the first line of standard input.
pub(crate) fn existing() -> vervet::Result<String> {
    if !io::stdin().is_terminal() {
        return line();
    }
    let _hidden = Hidden::new()?;
    asked("password: ")
}

fn asked(prompt: &str) -> vervet::Result<String> {
    eprint!("{prompt}");
    let line = line();
    // The end of the line is hidden as well.
    eprintln!();
    line
}

/// The interrupt character, which ends a line while [`Hidden`] exists.
const INTERRUPT: u8 = 3;

fn line() -> vervet::Result<String> {
    let mut line = Vec::new();
    for byte in io::stdin().lock().bytes() {
        match byte.map_err(|error| Error::io("read the password", &error))? {
            b'\n' => break,
            INTERRUPT => return Err(Error::new(ErrorKind::Cancelled, "interrupted")),
            byte => line.push(byte),
        }
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    String::from_utf8(line).map_err(|_| Error::new(ErrorKind::Input, "the password is not UTF-8"))
}

/// A terminal with echo off, until this is dropped. An interrupt ends the line rather than the process, which
/// would leave echo off.
struct Hidden {
    #[cfg(unix)]
    before: rustix::termios::Termios,
}

impl Hidden {
    #[cfg(unix)]
    fn new() -> vervet::Result<Self> {
        use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, tcgetattr, tcsetattr};
        let failed = |error: rustix::io::Errno| Error::io("hide the password", &error.into());
        let before = tcgetattr(io::stdin()).map_err(failed)?;
        let mut modes = before.clone();
        modes.local_modes -= LocalModes::ECHO | LocalModes::ISIG;
        modes.special_codes[SpecialCodeIndex::VEOL] = INTERRUPT;
        // Type-ahead was echoed, and is not part of the password.
        tcsetattr(io::stdin(), OptionalActions::Flush, &modes).map_err(failed)?;
        Ok(Self { before })
    }

    #[cfg(not(unix))]
    fn new() -> vervet::Result<Self> {
        eprintln!("the input is not hidden");
        Ok(Self {})
    }
}

#[cfg(unix)]
impl Drop for Hidden {
    fn drop(&mut self) {
        let _ = rustix::termios::tcsetattr(io::stdin(), rustix::termios::OptionalActions::Now, &self.before);
    }
}

//! `vervet password`: the hash of a password, for the configuration of `vervet serve`.

use crate::output::{Outcome, Output};
use std::io::{self, IsTerminal, Write};
use vervet::{Error, ErrorKind};

pub(crate) fn run() -> Outcome {
    if io::stdin().is_terminal() {
        eprint!("password (it is shown): ");
    }
    let mut line = String::new();
    io::stdin().read_line(&mut line).map_err(|error| Error::io("read the password", &error))?;
    let password = line.trim_end_matches(['\r', '\n']);
    if password.is_empty() {
        let error = Error::new(ErrorKind::Input, "the password is empty");
        return Err(error.with_hint("for example: printf %s secret | vervet password").into());
    }
    let mut out = Output::standard();
    writeln!(out, "{}", vervet_server::hash_password(password)?)?;
    out.finish()
}

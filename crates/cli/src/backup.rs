//! `vervet backup`: a copy of a database, as a database.

use crate::arguments::BackupArguments;
use crate::output::{self, Outcome};
use std::io::{self, IsTerminal};
use std::time::Instant;
use vervet::Database;

pub(crate) fn run(arguments: &BackupArguments) -> Outcome {
    let started = Instant::now();
    let database = Database::open(&arguments.database)?;
    let statements = database.backup(&arguments.to)?;
    if io::stderr().is_terminal() {
        eprintln!("{} copied in {}", output::statements(statements), output::time(started.elapsed()));
    }
    Ok(())
}

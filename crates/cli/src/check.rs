//! `vervet check`: verifies every byte of a database.

use crate::arguments::CheckArguments;
use crate::output::{self, Outcome, Output};
use std::io::Write;
use std::time::Instant;
use vervet::Database;

pub(crate) fn run(arguments: &CheckArguments) -> Outcome {
    let started = Instant::now();
    let database = Database::open(&arguments.database)?;
    database.check()?;
    let size: u64 = database.component_sizes()?.iter().map(|part| part.size_bytes).sum();
    let mut out = Output::standard();
    writeln!(
        out,
        "{} is sound: {} statements, {} verified in {}",
        arguments.database.display(),
        output::count(database.snapshot().statement_count()),
        output::bytes(size),
        output::time(started.elapsed()),
    )?;
    out.finish()
}

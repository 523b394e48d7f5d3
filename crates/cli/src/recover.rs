//! `vervet recover`: reports damage to the log of a database, and cuts the log there on request.

use crate::arguments::RecoverArguments;
use crate::output::{self, Failure, Outcome, Output};
use std::io::{self, BufRead, IsTerminal, Write};
use vervet::{Damage, Database, Environment, Error, ErrorKind};

pub(crate) fn run(arguments: &RecoverArguments) -> Outcome {
    let environment = Environment::real();
    let mut out = Output::standard();
    let Some(damage) = Database::find_log_damage(&environment, &arguments.database)? else {
        writeln!(out, "the log is sound")?;
        return out.finish();
    };
    write!(out, "{}", explanation(&damage))?;
    if !arguments.cut_at_damage {
        let database = arguments.database.display();
        writeln!(
            out,
            "nothing was changed; to cut the log there: vervet recover {database} --cut-at-damage"
        )?;
        out.finish()?;
        return Err(Error::new(ErrorKind::Corrupt, "the log is damaged")
            .with_hint("restore a backup, or copy the directory and then cut the log")
            .into());
    }
    out.flush()?;
    if !arguments.yes && !io::stdin().is_terminal() {
        let message = "nothing was changed: confirmation needs a terminal";
        let hint = "add --yes to accept the loss of everything after the damage; copy the directory first";
        return Err(Failure::Usage(message.to_owned(), hint.to_owned()));
    }
    if !arguments.yes && !agreed()? {
        writeln!(out, "nothing was changed")?;
        return out.finish();
    }
    match Database::cut_log_at_damage(&environment, &arguments.database)? {
        Some(damage) => writeln!(out, "the log was cut; the last commit is {}", damage.last_kept)?,
        None => writeln!(out, "the log is sound by now")?,
    }
    out.finish()
}

fn explanation(damage: &Damage) -> String {
    format!(
        "{} is damaged at byte {}: {}\n\
         kept: the database as it was after commit {}\n\
         lost: later commits: {} of log, of which {} records are still readable, \
         beside the damaged ones\n",
        damage.file.display(),
        output::count(damage.offset),
        damage.reason,
        damage.last_kept,
        output::bytes(damage.bytes_lost),
        output::count(damage.records_lost),
    )
}

/// Asks for confirmation on a terminal.
fn agreed() -> Outcome<bool> {
    eprint!("Cut the log there? The loss is permanent. [y/N] ");
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(|error| Error::io("read standard input", &error))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

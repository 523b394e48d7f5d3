//! `vervet completions` and `vervet man-pages`: files that are generated from the definition of the command
//! line.

use crate::arguments::{Arguments, CompletionsArguments, ManPagesArguments};
use crate::output::{Outcome, Output};
use clap::CommandFactory;
use std::io::Write;
use vervet::Error;

/// Writes the completion script of a shell to standard output.
pub(crate) fn run(arguments: &CompletionsArguments) -> Outcome {
    // The generator panics if a write fails, as on a closed pipe.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "vervet", &mut script);
    let mut out = Output::standard();
    out.write_all(&script)?;
    out.finish()
}

/// Writes `vervet.1` and one page for each command into a directory, which is created if missing.
pub(crate) fn man_pages(arguments: &ManPagesArguments) -> Outcome {
    let problem = |error| Error::io(format!("write man pages to {}", arguments.directory.display()), &error);
    std::fs::create_dir_all(&arguments.directory).map_err(problem)?;
    // `vervet help COMMAND` would have a second page for each command.
    let command = Arguments::command().disable_help_subcommand(true);
    clap_mangen::generate_to(command, &arguments.directory).map_err(problem)?;
    Ok(())
}

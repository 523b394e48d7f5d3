//! Other programs: cargo, and the output of a command.

use std::process::Command;

/// The cargo that runs this program.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// The standard output of a command.
///
/// # Errors
/// A command that does not start or that fails; the message has its standard error.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("could not run {command:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!("failed: {command:?}\n{}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

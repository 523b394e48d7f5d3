//! `vervet export`: all that is there, in a format that loads again.

use crate::arguments::{ExportArguments, exported};
use crate::interrupt;
use crate::output::{Outcome, Output};
use vervet::{Database, Format};

pub(crate) fn run(arguments: &ExportArguments) -> Outcome {
    let by_name = || {
        let name = arguments.output.as_ref()?.to_string_lossy().into_owned();
        Format::from_file_name(&name).filter(|format| exported(*format))
    };
    // N-Quads hold everything: the default loses nothing.
    let format = arguments.format.or_else(by_name).unwrap_or(Format::NQuads);
    let _running = interrupt::start();
    let database = Database::open(&arguments.database)?;
    let mut out = Output::file(arguments.output.as_deref())?;
    database.export(format, &mut out)?;
    out.finish()
}

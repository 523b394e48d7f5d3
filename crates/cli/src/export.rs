//! `vervet export`: the whole graph in a format that loads again.

use crate::arguments::{ExportArguments, exported};
use crate::interrupt;
use crate::output::{Failure, Outcome, Output};
use std::path::Path;
use vervet::{Database, Format, QueryOptions};

pub(crate) fn run(arguments: &ExportArguments) -> Outcome {
    let format = match arguments.format {
        Some(format) => format,
        // N-Quads represent everything, so the default loses nothing.
        None => by_name(arguments.output.as_deref())?.unwrap_or(Format::NQuads),
    };
    let running = interrupt::start();
    let database = Database::open(&arguments.database)?;
    let mut out = Output::file(arguments.output.as_deref())?;
    let options = QueryOptions { timeout: None, memory_limit_bytes: None, ..QueryOptions::default() };
    database.export_with(format, &options.with_cancel(&running.token), &mut out)?;
    out.finish()
}

/// The format by the extension of the output file, if known. An extension under which the file could not be
/// loaded again is an error.
fn by_name(output: Option<&Path>) -> Outcome<Option<Format>> {
    let Some(name) = output.map(Path::to_string_lossy) else { return Ok(None) };
    let refused = |what: &str, hint: &str| Err(Failure::Usage(format!("{name} {what}"), hint.to_owned()));
    let extension = Path::new(&*name).extension().map(|end| end.to_string_lossy().to_ascii_lowercase());
    if matches!(extension.as_deref(), Some("gz" | "zst")) {
        let hint = "pipe standard output through gzip or zstd, or name the format with --format";
        return refused("names a compressed file, and exports are not compressed", hint);
    }
    match Format::from_file_name(&name) {
        Some(format) if !exported(format) => {
            let hint = "use .nt, .nq, .ttl, .trig, .graphson or .graphml, or name the format with --format";
            refused("names a format that cannot be exported", hint)
        }
        format => Ok(format),
    }
}

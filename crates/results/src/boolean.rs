//! Results of `ASK`.

use crate::Format;
use crate::xml::HEADER;
use std::io::Write;
use vervet_model::{Error, ErrorKind, Result};

/// Writes the result of `ASK`. The standards define no CSV or TSV form; there, and in a table, it is one
/// word.
///
/// # Errors
/// The format is for graphs; `out` fails.
pub fn write_boolean(format: Format, answer: bool, out: &mut dyn Write) -> Result<()> {
    let text = match format {
        Format::Arrow => return crate::arrow::write_boolean(answer, out),
        Format::Table | Format::Tsv | Format::Csv => format!("{answer}\n"),
        Format::Json => format!("{{\"head\":{{}},\"boolean\":{answer}}}\n"),
        Format::Xml => {
            let header = String::from_utf8_lossy(HEADER);
            format!("{header}<head></head><boolean>{answer}</boolean></sparql>\n")
        }
        _ => {
            let message = format!("a boolean cannot be written as {format}");
            return Err(
                Error::new(ErrorKind::Input, message).with_hint("choose table, tsv, csv, json, xml or arrow")
            );
        }
    };
    out.write_all(text.as_bytes()).map_err(|error| Error::io("write the result", &error))
}

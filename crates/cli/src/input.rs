//! Files and standard input as sources of loads and as query texts.

use crate::output::{Failure, Outcome};
use std::io::{self, IsTerminal, Read};
use std::path::Path;
use vervet::{Error, ErrorKind, Source};

/// Whether a path denotes standard input.
pub(crate) fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// A file, or standard input for `-`.
pub(crate) fn source(path: &Path) -> Source {
    if is_standard(path) { Source::reader("standard input", io::stdin()) } else { Source::path(path) }
}

/// The text of a query from a file, or from standard input for `-` or no path.
pub(crate) fn text(path: Option<&Path>) -> Outcome<String> {
    let (bytes, name) = match path.filter(|path| !is_standard(path)) {
        Some(path) => (std::fs::read(path), path.display().to_string()),
        None if path.is_none() && io::stdin().is_terminal() => {
            let hint = "give it after the database, name a file with --file, or pipe it in".to_owned();
            return Err(Failure::Usage("there is no query".to_owned(), hint));
        }
        None => {
            let mut bytes = Vec::new();
            (io::stdin().read_to_end(&mut bytes).map(|_| bytes), "standard input".to_owned())
        }
    };
    let bytes = bytes.map_err(|error| Error::io(format!("read {name}"), &error))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        Error::new(ErrorKind::Input, format!("{name} is not UTF-8: {}", error.utf8_error()))
    })?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

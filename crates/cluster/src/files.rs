//! Directories that only their owner can read, texts that are replaced, and errors that name a path.

use std::fs;
use std::io;
use std::path::Path;
use vervet_model::Error;

pub(crate) fn failed(what: &str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let what = format!("{what} {}", path.display());
    move |error| Error::io(what, &error)
}

/// Replaces the text of a file. After a crash it has the old one or the new one.
pub(crate) fn replace_text(path: &Path, text: &str) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".tmp");
    let new = path.with_file_name(name);
    let mut file = fs::File::create(&new)?;
    io::Write::write_all(&mut file, text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => fs::File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

/// Creates a directory and those above it that are missing; only their owner can read them, since they have
/// keys.
pub(crate) fn create_private(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

//! Directories that only their owner can read, and errors that name a path.

use std::fs;
use std::io;
use std::path::Path;
use vervet_model::Error;

pub(crate) fn failed(what: &str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let what = format!("{what} {}", path.display());
    move |error| Error::io(what, &error)
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

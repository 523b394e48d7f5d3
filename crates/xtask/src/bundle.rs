//! The console in the repository: `crates/server/console.tar.gz`, the files of `page/dist` as one compressed
//! archive, so that every build has the console and none needs Node.js.
//!
//! The archive is deterministic: sorted paths, no times, no owners. Two archives are compared by what they
//! hold, as compressors of different versions write different bytes.

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// Whether the archive of the repository holds the files of `dist`; if not, it is written anew.
///
/// # Errors
/// A file that could not be read or written.
pub(crate) fn update(dist: &Path) -> Result<bool, String> {
    let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join("../server/console.tar.gz");
    let fresh = tar(dist)?;
    if read(&archive).is_some_and(|before| before == fresh) {
        return Ok(true);
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let compressed = encoder.write_all(&fresh).and_then(|()| encoder.finish());
    compressed.and_then(|bytes| fs::write(&archive, bytes)).map_err(|error| problem(&archive, &error))?;
    Ok(false)
}

/// The uncompressed archive; `None`: there is none that can be read.
fn read(archive: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    GzDecoder::new(fs::File::open(archive).ok()?).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn tar(dist: &Path) -> Result<Vec<u8>, String> {
    let mut files = Vec::new();
    collect(dist, "", &mut files)?;
    files.sort();
    let mut builder = tar::Builder::new(Vec::new());
    for (name, path) in files {
        let bytes = fs::read(&path).map_err(|error| problem(&path, &error))?;
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(0);
        header.set_entry_type(tar::EntryType::Regular);
        builder.append_data(&mut header, &name, &*bytes).map_err(|error| problem(&path, &error))?;
    }
    builder.into_inner().map_err(|error| problem(dist, &error))
}

/// All files below a directory, with their paths in it.
pub(crate) fn collect(
    directory: &Path,
    prefix: &str,
    files: &mut Vec<(String, PathBuf)>,
) -> Result<(), String> {
    let entries = fs::read_dir(directory).map_err(|error| problem(directory, &error))?;
    for entry in entries {
        let entry = entry.map_err(|error| problem(directory, &error))?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            collect(&entry.path(), &format!("{name}/"), files)?;
        } else {
            files.push((name, entry.path()));
        }
    }
    Ok(())
}

fn problem(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

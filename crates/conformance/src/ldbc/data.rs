//! Reads archives of CSV files, and loads them.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use vervet::{Database, Format, LoadOptions, Source};

/// The CSV files of an archive, ordered by name.
#[derive(Clone, Debug)]
pub struct Archive {
    files: Vec<(String, Vec<u8>)>,
}

impl Archive {
    /// The files of a `.tar.zst` whose path contains `folder`.
    ///
    /// # Errors
    /// The archive cannot be read.
    pub fn open(path: &Path, folder: &str) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        let packed = File::open(path).map_err(failed)?;
        let mut archive = tar::Archive::new(zstd::Decoder::new(packed).map_err(failed)?);
        let mut files = Vec::new();
        for entry in archive.entries().map_err(failed)? {
            let mut entry = entry.map_err(failed)?;
            let inside = entry.path().map_err(failed)?.to_string_lossy().into_owned();
            let name = inside.rsplit('/').next().unwrap_or_default().to_owned();
            if name.ends_with(".csv") && inside.contains(folder) {
                let mut bytes = Vec::new();
                entry.read_to_end(&mut bytes).map_err(failed)?;
                files.push((name, bytes));
            }
        }
        files.sort();
        Ok(Self { files })
    }

    /// The files with their names.
    #[must_use]
    pub fn files(&self) -> &[(String, Vec<u8>)] {
        &self.files
    }

    /// Adds files of posts and comments that contain only ids, taken from the creator files. For an archive
    /// without files of messages.
    ///
    /// # Errors
    /// A creator file is missing.
    pub fn with_messages(mut self) -> Result<Self, String> {
        for kind in ["post", "comment"] {
            let name = format!("{kind}_hasCreator_person_0_0.csv");
            let (_, bytes) = self
                .files
                .iter()
                .find(|(other, _)| *other == name)
                .ok_or_else(|| format!("there is no file {name}"))?;
            let text = String::from_utf8_lossy(bytes);
            let numbers = text.lines().skip(1).filter_map(|line| line.split('|').next());
            let lines: Vec<&str> = std::iter::once("id").chain(numbers).collect();
            self.files.push((format!("{kind}_0_0.csv"), (lines.join("\n") + "\n").into_bytes()));
        }
        Ok(self)
    }
}

/// Loads the files of an archive as the social network; returns the number of statements.
///
/// # Errors
/// The load fails.
pub fn load(database: &Database, archive: Archive) -> Result<u64, String> {
    let sources = archive.files.into_iter().map(|(name, bytes)| Source::bytes(name, bytes)).collect();
    let options = LoadOptions { format: Some(Format::Csv), names_from_files: true, ..LoadOptions::default() };
    let report = database.load(sources, &options).map_err(|error| error.to_string())?;
    Ok(report.statements)
}

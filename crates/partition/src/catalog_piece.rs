//! The part of a catalog that one server knows: the files and the statistics of its partitions.

use crate::catalog::Catalog;
use std::path::Path;
use vervet_codec::{Damaged, Reader, write_u64};
use vervet_env::Environment;
use vervet_model::Result;
use vervet_store::{FileRecord, PartFiles, WrittenParts, open_parts};

/// See the header of this file. [`crate::PartitionDirectory::catalog_of`] makes the catalog of all.
#[derive(Debug)]
pub struct CatalogPiece {
    pub(crate) files: Vec<(usize, FileRecord)>,
    pub(crate) catalog: Catalog,
}

impl CatalogPiece {
    /// Opens the files that a build has written to `path`.
    ///
    /// # Errors
    /// Corrupt: a file is not as it was written. Io.
    pub fn of(
        environment: &Environment,
        path: &Path,
        (build, dictionary): (u64, &FileRecord),
        written: WrittenParts,
    ) -> Result<Self> {
        let WrittenParts { files, split } = written;
        let end = files.iter().map(|(part, _)| part + 1).max().unwrap_or(0);
        let absent = |part| FileRecord { name: PartFiles::name(Some(part)), length: 0, checksum: 0 };
        let mut segments: Vec<FileRecord> = (0..end).map(absent).collect();
        files.iter().for_each(|(part, record)| segments[*part] = record.clone());
        let all = PartFiles { build, dictionary: dictionary.clone(), segments };
        let parts = open_parts(environment, path, &all, files.iter().map(|(part, _)| *part), split)?;
        let stores: Vec<_> = parts.stores.iter().collect();
        Ok(Self { files, catalog: Catalog::piece(&stores, parts.split)? })
    }

    /// Appends its bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_u64(self.files.len() as u64, out);
        for (part, record) in &self.files {
            for number in [*part as u64, record.length, record.checksum] {
                write_u64(number, out);
            }
        }
        self.catalog.write(out);
    }

    /// Reads what [`CatalogPiece::write`] wrote.
    ///
    /// # Errors
    /// Damaged bytes.
    pub fn read(bytes: &[u8]) -> Result<Self, Damaged> {
        let mut reader = Reader::new(bytes);
        let mut files = Vec::new();
        for _ in 0..reader.list_length()? {
            let (part, length, checksum) = (reader.length()?, reader.u64()?, reader.u64()?);
            files.push((part, FileRecord { name: PartFiles::name(Some(part)), length, checksum }));
        }
        let catalog = Catalog::read(&mut reader)?;
        reader.finish()?;
        Ok(Self { files, catalog })
    }
}

//! Files of the partitions of a graph: one dictionary, and a segment file for each partition.
//!
//! # Shape
//! `dictionary.vvd`, and `partition-<number>.vvs` for each partition, in one directory. Their records (names,
//! lengths, checksums) are kept by the caller, in a catalog (`vervet-partition`). A server may have the files
//! of some partitions only. Bytes as in `files`; see docs/format.md.
//! # Invariants
//! All files have the number of one build, so files of two builds are never read together.

use crate::builder::{PartStores, SplitPredicates, StoreBuilder};
use crate::files::{self, FileRecord, HashedFile, SegmentFile};
use crate::new_dictionary::NewDictionary;
use crate::store::Store;
use std::path::Path;
use std::sync::Arc;
use vervet_dictionary::Dictionary;
use vervet_env::Environment;
use vervet_model::{Error, Partitioning, Result, Watch};

/// The files of a build.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartFiles {
    /// A random number, the same in all files of the build.
    pub build: u64,
    /// The dictionary.
    pub dictionary: FileRecord,
    /// The segments of each partition.
    pub segments: Vec<FileRecord>,
}

impl PartFiles {
    /// The name of the file of the segments of a partition; of the dictionary for `None`.
    #[must_use]
    pub fn name(part: Option<usize>) -> String {
        part.map_or_else(|| "dictionary.vvd".to_owned(), |part| format!("partition-{part:04}.vvs"))
    }
}

impl StoreBuilder<'_> {
    /// Writes the files of all partitions to `dir`, which exists, and returns their records and the split
    /// predicates. All files and names are durable at the end.
    ///
    /// # Errors
    /// As [`StoreBuilder::finish`]; files of an earlier build with the same names are replaced.
    pub fn write_parts<'d>(
        self,
        dictionary: impl Into<NewDictionary<'d>>,
        partitioning: Partitioning,
        dir: &Path,
    ) -> Result<(PartFiles, SplitPredicates)> {
        let environment = self.environment().clone();
        let build = environment.random.next_u64();
        let build = build.map_err(|error| Error::io("draw a random number", &error))?;
        let dictionary = dictionary.into();
        let dictionary_record = write_dictionary(dictionary, &environment, dir, self.watch())?;
        let dictionary = open_dictionary(&environment, dir, &dictionary_record)?;
        let file = |part| SegmentFile::create(&environment, dir.join(PartFiles::name(Some(part))), build);
        let mut open = (0..partitioning.count()).map(file).collect::<Result<Vec<_>>>()?;
        let (tocs, split) =
            self.build(&dictionary, partitioning, &mut |part, bytes| open[part].section(&bytes))?;
        let finished = open.into_iter().zip(&tocs).map(|(file, toc)| file.finish(toc));
        let segments = finished.collect::<Result<Vec<_>>>()?;
        let synced = environment.files.sync_dir(dir);
        synced.map_err(|error| Error::io(format_args!("sync the directory {}", dir.display()), &error))?;
        Ok((PartFiles { build, dictionary: dictionary_record, segments }, split))
    }
}

/// Writes the file of the dictionary of a build to `dir`.
///
/// # Errors
/// Io; those of `watch`.
pub fn write_dictionary(
    dictionary: NewDictionary<'_>,
    environment: &Environment,
    dir: &Path,
    watch: &Watch<'_>,
) -> Result<FileRecord> {
    let mut file = HashedFile::create(environment, dir.join(PartFiles::name(None)))?;
    dictionary.write(&mut |bytes| file.write(bytes), watch)?;
    file.finish()
}

/// Opens the dictionary of a build.
pub(crate) fn open_dictionary(
    environment: &Environment,
    dir: &Path,
    record: &FileRecord,
) -> Result<Arc<Dictionary>> {
    let name = dir.join(&record.name).display().to_string();
    Ok(Arc::new(Dictionary::open(files::map(environment, dir, record)?, &name)?))
}

/// Opens the stores of these partitions from the files in `dir`; all share one dictionary.
///
/// # Errors
/// Corrupt: a file is missing or damaged, or is of another build. Io.
pub fn open_parts(
    environment: &Environment,
    dir: &Path,
    files: &PartFiles,
    parts: impl Iterator<Item = usize>,
    split: SplitPredicates,
) -> Result<PartStores> {
    let dictionary = open_dictionary(environment, dir, &files.dictionary)?;
    let open = |part: usize| {
        let record = files.segments.get(part).ok_or_else(|| Error::internal("no such partition"))?;
        Store::open_files(
            environment,
            dir,
            (record, files.build),
            (&files.dictionary, Arc::clone(&dictionary)),
        )
    };
    Ok(PartStores { stores: parts.map(open).collect::<Result<_>>()?, split })
}

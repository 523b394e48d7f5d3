//! A graph in partitions in a directory: the files of partitions, and the catalog of all of them.
//!
//! # Shape
//! `dictionary.vvd`, `partition-<number>.vvs`, and `catalog.vvc`, which is written last: it names the other
//! files with lengths and checksums, and ends with its own checksum. The directory of one server may lack
//! the files of partitions that other servers have. See docs/format.md.
//! # Invariants
//! A catalog exists only if all files that it names were durable. Its files are never changed.

use crate::base::PartitionedBase;
use crate::catalog::Catalog;
use crate::catalog_piece::CatalogPiece;
use crate::remote::Remote;
use crate::routes::Routes;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vervet_codec::{Damaged, Reader, write_u64};
use vervet_env::Environment;
use vervet_model::{Error, ErrorKind, Partitioning, Result};
use vervet_store::{FileRecord, NewDictionary, PartFiles, StoreBuilder, open_parts};
use xxhash_rust::xxh3::xxh3_64;

const CATALOG: &str = "catalog.vvc";
const CATALOG_NEW: &str = "catalog.tmp";
const MAGIC: &[u8; 8] = b"VERVETCT";
/// Version of the catalog. Version 1, which has no length of runs, is read: they are single numbers.
const VERSION: u64 = 2;
const VERSION_WITHOUT_RUNS: u64 = 1;

/// A directory with the files of partitions. See the header of this file.
#[derive(Debug)]
pub struct PartitionDirectory {
    environment: Environment,
    path: PathBuf,
    partitioning: Partitioning,
    files: PartFiles,
    catalog: Arc<Catalog>,
    copied_part: u64,
}

/// A segment with at most this part of the statements of the graph is copied from other servers.
const COPIED_PART: u64 = 64;

/// Another server with the partitions that it has.
pub type RemotePart = (Arc<dyn Remote>, Vec<usize>);

impl PartitionDirectory {
    /// Writes a graph to `path`, which is created if it is missing.
    ///
    /// # Errors
    /// Input: the directory has a catalog already. As [`StoreBuilder::finish`]; files that were written
    /// before an error stay without a catalog.
    pub fn write<'d>(
        builder: StoreBuilder<'_>,
        dictionary: impl Into<NewDictionary<'d>>,
        partitioning: Partitioning,
        environment: &Environment,
        path: &Path,
    ) -> Result<Self> {
        let created = environment.files.create_dir_all(path);
        created
            .map_err(|error| Error::io(format_args!("create the directory {}", path.display()), &error))?;
        if environment.files.exists(&path.join(CATALOG)).unwrap_or(true) {
            return Err(Error::new(ErrorKind::Input, format!("{} has a graph already", path.display()))
                .with_hint("choose another directory"));
        }
        let (files, split) = builder.write_parts(dictionary, partitioning, path)?;
        let parts = open_parts(environment, path, &files, 0..partitioning.count(), split)?;
        let stores: Vec<_> = parts.stores.iter().collect();
        let catalog = Arc::new(Catalog::of(&stores, parts.split)?);
        let (environment, path) = (environment.clone(), path.to_owned());
        let directory = Self { environment, path, partitioning, files, catalog, copied_part: COPIED_PART };
        let bytes = catalog_bytes(&directory.catalog, &directory.files, partitioning);
        store(&directory.environment, &directory.path, &bytes)?;
        publish(&directory.environment, &directory.path)?;
        Ok(directory)
    }

    /// Opens the directory at `path`.
    ///
    /// # Errors
    /// Input: there is no catalog. Corrupt: it is damaged. Io.
    pub fn open(environment: &Environment, path: &Path) -> Result<Self> {
        let file = path.join(CATALOG);
        let bytes = environment.files.read(&file).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                Error::new(ErrorKind::Input, format!("there is no graph in partitions in {}", path.display()))
                    .with_hint("check the path")
            }
            _ => Error::io(format_args!("read {}", file.display()), &error),
        })?;
        let read = Self::read(&bytes);
        let (partitioning, files, catalog) =
            read.map_err(|damaged| Error::corrupt(file.display(), damaged.0))?;
        let (environment, path, catalog) = (environment.clone(), path.to_owned(), Arc::new(catalog));
        Ok(Self { environment, path, partitioning, files, catalog, copied_part: COPIED_PART })
    }

    /// Copies segments from other servers that have at most this part of the statements of the graph, as far
    /// as they are short. By default a 64th: of a small graph nothing. 1: all short segments, for tests.
    pub fn set_copied_part(&mut self, part: u64) {
        self.copied_part = part;
    }

    /// The number of partitions.
    #[must_use]
    pub fn partitioning(&self) -> Partitioning {
        self.partitioning
    }

    /// A random number of the build, the same at all servers that have parts of it.
    #[must_use]
    pub fn build(&self) -> u64 {
        self.files.build
    }

    /// The number of statements of the whole graph.
    #[must_use]
    pub fn statement_count(&self) -> u64 {
        self.catalog.statements
    }

    /// The names of the files that a server with these partitions needs, the catalog last.
    pub fn file_names(&self, partitions: &[usize]) -> Vec<String> {
        let segments = partitions.iter().filter_map(|partition| self.files.segments.get(*partition));
        let records = std::iter::once(&self.files.dictionary).chain(segments);
        records.map(|record| record.name.clone()).chain([CATALOG.to_owned()]).collect()
    }

    /// The graph: `own` partitions from this directory, the others from `remotes`. The first result answers
    /// other servers (it has the own partitions alone), the second reads everything; they share the files.
    ///
    /// # Errors
    /// Input: a partition is nowhere or twice, or `own` is empty. Corrupt: a file is missing or damaged.
    pub fn bases(&self, own: &[usize], remotes: &[RemotePart]) -> Result<[Arc<PartitionedBase>; 2]> {
        let mut part_of = vec![None; self.partitioning.count()];
        let lists =
            own.iter().map(std::slice::from_ref).chain(remotes.iter().map(|(_, list)| list.as_slice()));
        for (part, partitions) in lists.enumerate() {
            for partition in partitions {
                match part_of.get_mut(*partition) {
                    Some(of) if of.is_none() => *of = Some(part),
                    Some(_) => return Err(map_error(format!("partition {partition} is at two places"))),
                    None => return Err(map_error(format!("there is no partition {partition}"))),
                }
            }
        }
        if let Some(partition) = part_of.iter().position(Option::is_none) {
            return Err(map_error(format!("no server has partition {partition}")));
        }
        if own.is_empty() {
            return Err(map_error("this server has no partition".to_owned()));
        }
        let stores = open_parts(&self.environment, &self.path, &self.files, own.iter().copied(), Vec::new())?;
        let stores: Vec<_> = own.iter().copied().zip(stores.stores.into_iter().map(Arc::new)).collect();
        let own_only = part_of.iter().map(|part| part.filter(|part| *part < own.len())).collect();
        let base = |routes, remotes| {
            let routes = Routes::new(self.partitioning, routes);
            let (stores, catalog) = (stores.clone(), Arc::clone(&self.catalog));
            let known = (self.files.build, self.copied_part);
            Arc::new(PartitionedBase::with_catalog(routes, stores, remotes, catalog, known))
        };
        let remotes = remotes.iter().map(|(remote, _)| Arc::clone(remote)).collect();
        Ok([base(own_only, Vec::new()), base(part_of, remotes)])
    }

    /// Compares the lengths and checksums of the files of these partitions with the catalog.
    ///
    /// # Errors
    /// Corrupt: a file is missing or damaged. Io.
    pub fn verify_files(&self, partitions: &[usize]) -> Result<()> {
        let segments = partitions.iter().filter_map(|partition| self.files.segments.get(*partition));
        for record in std::iter::once(&self.files.dictionary).chain(segments) {
            let path = self.path.join(&record.name);
            let bytes = self.environment.files.map(&path);
            let bytes = bytes.map_err(|error| Error::io(format_args!("read {}", path.display()), &error))?;
            if bytes.len() as u64 != record.length || xxh3_64(&bytes) != record.checksum {
                return Err(Error::corrupt(path.display(), "it is not the file that the catalog names"));
            }
        }
        Ok(())
    }

    /// The bytes of the catalog of these pieces, which are those of all servers.
    ///
    /// # Errors
    /// Input: a partition is nowhere, or at two servers.
    pub fn catalog_of(
        pieces: Vec<CatalogPiece>,
        partitioning: Partitioning,
        build: u64,
        dictionary: FileRecord,
    ) -> Result<Vec<u8>> {
        let (mut records, mut catalogs) = (vec![None; partitioning.count()], Vec::new());
        for CatalogPiece { files, catalog } in pieces {
            for (part, record) in files {
                match records.get_mut(part) {
                    Some(place @ None) => *place = Some(record),
                    _ => return Err(map_error(format!("partition {part} is at two places or none"))),
                }
            }
            catalogs.push(catalog);
        }
        let missing = || map_error("a partition is at no server".to_owned());
        let segments = records.into_iter().collect::<Option<Vec<_>>>().ok_or_else(missing)?;
        Ok(catalog_bytes(
            &Catalog::merged(&catalogs),
            &PartFiles { build, dictionary, segments },
            partitioning,
        ))
    }

    /// Writes the bytes of a catalog ([`PartitionDirectory::catalog_of`]) to `path` under a temporary name:
    /// all that takes space for [`PartitionDirectory::publish`].
    ///
    /// # Errors
    /// Corrupt: they are no catalog. Io.
    pub fn store_catalog(environment: &Environment, path: &Path, bytes: &[u8]) -> Result<()> {
        Self::read(bytes).map_err(|damaged| Error::corrupt("the catalog", damaged.0))?;
        store(environment, path, bytes)
    }

    /// Gives the catalog that was stored in `path`, whose other files are durable, its name: the directory
    /// can be opened from then on.
    ///
    /// # Errors
    /// Io.
    pub fn publish(environment: &Environment, path: &Path) -> Result<()> {
        publish(environment, path)
    }

    /// Whether the directory at `path` has a catalog.
    #[must_use]
    pub fn is_published(environment: &Environment, path: &Path) -> bool {
        environment.files.exists(&path.join(CATALOG)).unwrap_or(false)
    }

    fn read(bytes: &[u8]) -> Result<(Partitioning, PartFiles, Catalog), Damaged> {
        let (content, checksum) = bytes.split_last_chunk::<8>().ok_or(Damaged("it is too short"))?;
        if u64::from_le_bytes(*checksum) != xxh3_64(content) {
            return Err(Damaged("it has a wrong checksum"));
        }
        let content = content.strip_prefix(MAGIC).ok_or(Damaged("it does not begin with VERVETCT"))?;
        let mut reader = Reader::new(content);
        let version = reader.u64()?;
        if version != VERSION && version != VERSION_WITHOUT_RUNS {
            return Err(Damaged("it has an unknown version"));
        }
        let build = reader.u64()?;
        let count = usize::try_from(reader.u64()?).ok().and_then(Partitioning::new);
        let partitioning = count.ok_or(Damaged("its number of partitions is not a power of two"))?;
        let run_bits = if version == VERSION { u32::try_from(reader.u64()?).ok() } else { Some(0) };
        let partitioning = run_bits.and_then(|run_bits| partitioning.with_runs(run_bits));
        let partitioning = partitioning.ok_or(Damaged("its runs are too long"))?;
        let mut record = |part| {
            let name = PartFiles::name(part);
            Ok(FileRecord { name, length: reader.u64()?, checksum: reader.u64()? })
        };
        let dictionary = record(None)?;
        let segments =
            (0..partitioning.count()).map(|part| record(Some(part))).collect::<Result<_, Damaged>>()?;
        let catalog = Catalog::read(&mut reader)?;
        reader.finish()?;
        Ok((partitioning, PartFiles { build, dictionary, segments }, catalog))
    }
}

/// The content of the file of a catalog.
fn catalog_bytes(catalog: &Catalog, files: &PartFiles, partitioning: Partitioning) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    for number in [VERSION, files.build, partitioning.count() as u64, partitioning.run_bits().into()] {
        write_u64(number, &mut bytes);
    }
    for record in std::iter::once(&files.dictionary).chain(&files.segments) {
        write_u64(record.length, &mut bytes);
        write_u64(record.checksum, &mut bytes);
    }
    catalog.write(&mut bytes);
    write_u64(xxh3_64(&bytes), &mut bytes);
    bytes
}

fn store(environment: &Environment, directory: &Path, bytes: &[u8]) -> Result<()> {
    let path = directory.join(CATALOG_NEW);
    let write = || {
        let mut file = environment.files.create(&path)?;
        file.write_all(bytes)?;
        file.flush()?;
        file.sync()
    };
    write().map_err(|error| Error::io(format_args!("write {}", path.display()), &error))
}

fn publish(environment: &Environment, directory: &Path) -> Result<()> {
    let path = directory.join(CATALOG);
    let renamed = environment.files.rename(&directory.join(CATALOG_NEW), &path);
    let published = renamed.and_then(|()| environment.files.sync_dir(directory));
    published.map_err(|error| Error::io(format_args!("write {}", path.display()), &error))
}

fn map_error(what: String) -> Error {
    Error::new(ErrorKind::Input, what).with_hint("correct the list of partitions of each server")
}

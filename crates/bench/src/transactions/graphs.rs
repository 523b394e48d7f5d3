//! The graphs of transaction benchmarks: universities or the social network, in memory or in a directory.

use crate::data::PlainFile;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use vervet::{Database, DatabaseOptions, Durability, Format, LoadOptions, NamedNode, Source, Term};
use vervet_generate::{Random, generate_lubm};
use vervet_model::{Error, ErrorKind, Result};

/// The location of a database, and the durability of its commits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StorageLocation {
    /// In memory.
    Memory,
    /// In a directory with a log.
    Directory(Durability),
}

impl StorageLocation {
    /// Its display name.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Memory => "memory".to_owned(),
            Self::Directory(level) => format!("log, {level}"),
        }
    }
}

/// Statements to load.
#[derive(Clone, Debug)]
pub struct Data {
    name: String,
    files: Vec<(String, Vec<u8>)>,
    /// The class from which vertices are drawn.
    class: &'static str,
}

/// A database with its temporary directory, which is removed on drop.
#[derive(Debug)]
pub struct TemporaryDatabase {
    /// The database.
    pub db: Database,
    directory: Option<TempDir>,
    options: DatabaseOptions,
}

const STUDENT: &str = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#UndergraduateStudent";
const POST: &str = "urn:vervet:label:Post";

impl Data {
    /// N-Triples of universities (plain or `.zst`), or an archive (`.tar.zst`) of the social network.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn open(path: &Path) -> Result<Self> {
        let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let failed = |error: std::io::Error| Error::io(format_args!("read {}", path.display()), &error);
        if !name.ends_with(".tar.zst") {
            let plain = PlainFile::open(path)?;
            let files = vec![("data.nt".to_owned(), std::fs::read(plain.path()).map_err(failed)?)];
            return Ok(Self { name, files, class: STUDENT });
        }
        let packed = File::open(path).map_err(failed)?;
        let mut archive = tar::Archive::new(zstd::Decoder::new(packed).map_err(failed)?);
        let mut files = Vec::new();
        for entry in archive.entries().map_err(failed)? {
            let mut entry = entry.map_err(failed)?;
            let path = entry.path().map_err(failed)?.into_owned();
            let file = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
            if file.ends_with(".csv") {
                let mut bytes = Vec::new();
                entry.read_to_end(&mut bytes).map_err(failed)?;
                files.push((file, bytes));
            }
        }
        // A file without header continues the previous one of the same name.
        files.sort();
        Ok(Self { name, files, class: POST })
    }

    /// A few generated universities, for a self-check.
    ///
    /// # Errors
    /// None in memory.
    pub fn made(universities: u32) -> Result<Self> {
        let mut bytes = Vec::new();
        generate_lubm(universities, 0, &mut bytes).map_err(|error| Error::io("make data", &error))?;
        let files = vec![("data.nt".to_owned(), bytes)];
        Ok(Self { name: format!("{universities} made universities"), files, class: STUDENT })
    }

    /// Persons who know each other, for a self-check: vertices and edges with properties.
    #[must_use]
    pub fn made_persons(persons: u32) -> Self {
        let (mut vertices, mut edges) = (
            String::from("id:ID(Person)|name:STRING|age:INT\n"),
            String::from(":START_ID(Person)|:END_ID(Person)|since:INT\n"),
        );
        let mut random = Random::new(0);
        for person in 0..persons {
            vertices += &format!("{person}|person {person}|{}\n", random.below(90));
            for _ in 0..8 {
                edges += &format!("{person}|{}|{}\n", random.below(persons), random.between(2000..=2026));
            }
        }
        let files = vec![
            ("Person.csv".to_owned(), vertices.into_bytes()),
            ("Person_knows_Person.csv".to_owned(), edges.into_bytes()),
        ];
        Self { name: format!("{persons} made persons"), files, class: "urn:vervet:label:Person" }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A new database with all of the data.
    ///
    /// # Errors
    /// The load fails.
    pub fn database(
        &self,
        place: StorageLocation,
        change: impl FnOnce(&mut DatabaseOptions),
    ) -> Result<TemporaryDatabase> {
        let made = TemporaryDatabase::empty(place, change)?;
        let is_csv = |name: &str| name.ends_with(".csv");
        let sources = self.files.iter().map(|(name, bytes)| Source::bytes(name, &bytes[..])).collect();
        let properties = self.files.iter().all(|(name, _)| is_csv(name));
        let format = if properties { Format::Csv } else { Format::NTriples };
        let options =
            LoadOptions { format: Some(format), names_from_files: properties, ..Default::default() };
        made.db.load(sources, &options)?;
        Ok(made)
    }

    /// The vertices that transactions draw from, in a fixed order.
    ///
    /// # Errors
    /// The data contains none.
    pub fn vertices(&self, db: &Database) -> Result<Vec<NamedNode>> {
        let snapshot = db.snapshot();
        let graph = snapshot.graph();
        let all = graph.vertices_with_label(self.class)?;
        let mut names = Vec::with_capacity(all.len());
        for vertex in all {
            if let Term::NamedNode(name) = graph.vertex_term(vertex)? {
                names.push(name);
            }
        }
        if names.len() < 2 {
            let message = format!("{} has no vertices of class {}", self.name, self.class);
            return Err(Error::new(ErrorKind::Input, message));
        }
        Ok(names)
    }
}

impl TemporaryDatabase {
    /// An empty database.
    ///
    /// # Errors
    /// No space for a directory.
    pub fn empty(place: StorageLocation, change: impl FnOnce(&mut DatabaseOptions)) -> Result<Self> {
        let mut options = DatabaseOptions::default();
        change(&mut options);
        let directory = match place {
            StorageLocation::Memory => None,
            StorageLocation::Directory(level) => {
                options.durability = level;
                let made = tempfile::Builder::new().prefix("vervet-bench-").tempdir();
                Some(made.map_err(|error| Error::io("make a temporary folder", &error))?)
            }
        };
        let db = match &directory {
            Some(directory) => Database::open_or_create_with(directory.path().join("db"), options.clone())?,
            None => Database::in_memory_with(options.clone()),
        };
        Ok(Self { db, directory, options })
    }

    /// The path of its files.
    #[must_use]
    pub fn path(&self) -> Option<PathBuf> {
        self.directory.as_ref().map(|directory| directory.path().join("db"))
    }

    /// Closes and reopens the database.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn reopen(self) -> Result<Self> {
        let Self { db, directory, options } = self;
        drop(db);
        let Some(directory) = directory else { return Err(Error::internal("a graph in memory is gone")) };
        let db = Database::open_with(directory.path().join("db"), options.clone())?;
        Ok(Self { db, directory: Some(directory), options })
    }

    /// The size of its files, in bytes.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn disk_bytes(&self) -> Result<u64> {
        let Some(path) = self.path() else { return Ok(0) };
        let failed = |error: std::io::Error| Error::io(format_args!("list {}", path.display()), &error);
        let mut bytes = 0;
        for entry in std::fs::read_dir(&path).map_err(failed)? {
            // A file may be removed concurrently.
            bytes += entry.map_err(failed)?.metadata().map_or(0, |data| data.len());
        }
        Ok(bytes)
    }
}

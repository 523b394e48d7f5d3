//! Bulk loads: the loader writes into the builders of dictionary and store.

use std::io::Write;
use std::path::Path;
use vervet_dictionary::{DictionaryBuilder, hash_blank, hash_iri, hash_literal};
use vervet_env::{Environment, LockGuard};
use vervet_load::{LoadOptions, LoadReport, Source, Target, TermRef};
use vervet_model::vocab::{KEY_NAMESPACE, is_iri, name_iri};
use vervet_model::{Error, ErrorKind, Id, LiteralKind, Result, Statement};
use vervet_snapshot::Snapshot;
use vervet_store::{BuildOptions, OrderBy, Store, StoreBuilder};

/// Bytes of statements that a load holds in memory if nobody says otherwise; beyond, it sorts in files.
const LOAD_MEMORY_DEFAULT_BYTES: u64 = 4 << 30;

/// How many old statements are handed over at a time.
const CHUNK: usize = 1 << 16;

/// Where a database is and what a load may use.
pub(crate) struct Place<'a> {
    pub environment: &'a Environment,
    pub directory: Option<&'a Path>,
    pub memory_bytes: Option<u64>,
}

/// Name of the file whose lock a loader holds.
const LOCK: &str = "LOCK";

/// A directory that nobody else writes to while this lives, and what is in it.
pub(crate) struct Owned {
    /// The graph that was last published there; `None`: nothing yet.
    pub store: Option<Store>,
    /// Dropped last.
    _lock: Box<dyn LockGuard>,
}

/// Makes a directory ours, for writing.
pub(crate) fn own(environment: &Environment, directory: &Path) -> Result<Owned> {
    let files = &environment.files;
    files
        .create_dir_all(directory)
        .map_err(|error| Error::io(format_args!("create {}", directory.display()), &error))?;
    let lock = files.lock(&directory.join(LOCK)).map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => {
            let message = format!("could not load into {}: {error}", directory.display());
            Error::new(ErrorKind::Unavailable, message).with_hint("try again when its load is done")
        }
        _ => Error::io(format_args!("lock {}", directory.join(LOCK).display()), &error),
    })?;
    let store = match Store::open(environment, directory) {
        Err(error) if error.kind() == ErrorKind::Input => None,
        store => Some(store?),
    };
    Ok(Owned { store, _lock: lock })
}

/// The statements of `before` and of `sources` as a new store. `before` is untouched, whatever happens.
pub(crate) fn load(
    before: &Store,
    sources: Vec<Source>,
    options: &LoadOptions<'_>,
    place: &Place<'_>,
    mut skipped: &mut dyn Write,
) -> Result<(Store, LoadReport)> {
    let threads = options.threads.max(1);
    let memory_bytes = place.memory_bytes.unwrap_or(LOAD_MEMORY_DEFAULT_BYTES);
    let mut building = Building {
        dictionary: DictionaryBuilder::from_dictionary(before.dictionary())?,
        store: StoreBuilder::new(BuildOptions {
            threads,
            memory_bytes,
            environment: place.environment.clone(),
            temp_dir: place.directory.map(Path::to_owned),
            log: before.log_place(),
            orders: orders(before, options)?,
        }),
        edges: before.edge_count(),
    };
    // Labels of blank nodes of this load never meet those of an earlier one.
    let options = LoadOptions {
        // Both numbers end visibly: the loader appends that of the file.
        blank_scope: format!("{}{}_", options.blank_scope, before.statement_count()),
        ..options.clone()
    };
    let report = vervet_load::load(sources, &options, &mut building, &mut skipped)?;
    // Behind the load, whose names of edges are not those of what was there.
    building.add_all(before)?;
    let target = match place.directory {
        Some(directory) => vervet_store::Target::Directory(directory.to_owned()),
        None => vervet_store::Target::Memory,
    };
    let store = building.store.finish(building.dictionary.finish_with(threads)?, &target)?;
    Ok((store, report))
}

/// The orders that the new version has: those of `options`, then those that `before` has.
fn orders(before: &Store, options: &LoadOptions<'_>) -> Result<Vec<OrderBy>> {
    let iri = |name: &str| match is_iri(name) {
        true => name.to_owned(),
        false => name_iri(KEY_NAMESPACE, name),
    };
    let new = options
        .orders
        .iter()
        .map(|(predicate, property)| OrderBy { predicate: iri(predicate), property: iri(property) });
    let mut orders: Vec<OrderBy> = new.collect();
    let mut scratch = String::new();
    let mut text = |id| {
        let mut text = String::new();
        before.read_term(id, &mut scratch, &mut |parts| parts.write_str(&mut text))?;
        Ok::<_, Error>(text)
    };
    for (predicate, property) in before.orders() {
        orders.push(OrderBy { predicate: text(predicate)?, property: text(property)? });
    }
    Ok(orders)
}

/// The new version in the making.
struct Building {
    dictionary: DictionaryBuilder,
    store: StoreBuilder,
    /// The next edge number.
    edges: u64,
}

impl Building {
    /// Adds the statements of a store whose dictionary this one continues.
    fn add_all(&mut self, store: &Store) -> Result<()> {
        let mut chunk = Vec::with_capacity(CHUNK);
        for statement in store.statements() {
            chunk.push(statement?);
            if chunk.len() == CHUNK {
                self.store.add(&chunk)?;
                chunk.clear();
            }
        }
        self.store.add(&chunk)
    }
}

impl Target for Building {
    fn intern_iri(&mut self, iri: &str) -> Result<Id> {
        self.dictionary.intern_iri(iri)
    }

    fn intern_blank(&mut self, label: &str) -> Result<Id> {
        self.dictionary.intern_blank(label)
    }

    fn intern_literal(&mut self, value: &str, kind: LiteralKind<'_>) -> Result<Id> {
        self.dictionary.intern_literal(value, kind)
    }

    /// Hashes a few terms and prefetches their places before it looks them up, so that cache misses
    /// overlap.
    fn intern_all(&mut self, terms: &[TermRef<'_>], ids: &mut Vec<Id>) -> Result<()> {
        let mut hashes = [0; 16];
        for terms in terms.chunks(hashes.len()) {
            for (hash, term) in hashes.iter_mut().zip(terms) {
                *hash = match *term {
                    TermRef::Iri(iri) => hash_iri(iri),
                    TermRef::Blank(label) => hash_blank(label),
                    TermRef::Literal { value, kind } => hash_literal(value, kind.into()),
                };
            }
            self.dictionary.prefetch(&hashes[..terms.len()]);
            for (&hash, term) in hashes.iter().zip(terms) {
                ids.push(match *term {
                    TermRef::Iri(iri) => self.dictionary.intern_iri_hashed(iri, hash)?,
                    TermRef::Blank(label) => self.dictionary.intern_blank_hashed(label, hash)?,
                    TermRef::Literal { value, kind } => {
                        self.dictionary.intern_literal_hashed(value, kind.into(), hash)?
                    }
                });
            }
        }
        Ok(())
    }

    fn next_edge(&mut self) -> Result<Id> {
        self.edges += 1;
        Ok(Id::edge(self.edges - 1))
    }

    fn add_triples(&mut self, triples: &[[Id; 3]]) -> Result<()> {
        self.store.add_triples(triples)
    }

    fn add(&mut self, statements: &[Statement]) -> Result<()> {
        self.store.add(statements)
    }

    fn rewrite(&mut self, each: &mut dyn FnMut(&mut Statement) -> bool) -> Result<()> {
        self.store.rewrite(each)
    }
}

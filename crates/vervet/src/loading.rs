//! Bulk loads: connects the loader to the builders of dictionary and store.

use crate::query::run::seed;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use vervet_delta::Version;
use vervet_dictionary::{DictionaryBuilder, hash_blank, hash_iri, hash_literal};
use vervet_env::Environment;
use vervet_load::{LoadOptions, LoadReport, Source, Target, TermRef};
use vervet_model::vocab::{KEY_NAMESPACE, is_iri, name_iri};
use vervet_model::{Id, Inline, LiteralKind, Result, Statement, Watch};
use vervet_snapshot::Snapshot;
use vervet_store::{Base, BuildOptions, OrderBy, StoreBuilder};
use vervet_txn::ReplacementBase;

/// The default cap on the memory of dictionary and statements in a load; beyond it, statements are sorted in
/// temporary files.
const LOAD_MEMORY_DEFAULT_BYTES: u64 = 4 << 30;

/// The minimum share of the memory for statements (1/8), whatever the size of the dictionary.
const STATEMENTS_PART_MIN: u64 = 8;

/// Steps of a [`Watch`] for each old statement: it is read, and then built like a new one.
const REBUILT_STEPS: u64 = 5;

/// Old statements passed on at a time.
const CHUNK: usize = 1 << 16;

/// The location of a database and the resources of a load.
pub(crate) struct LoadContext<'a> {
    pub environment: &'a Environment,
    pub directory: Option<&'a Path>,
    pub memory_bytes: Option<u64>,
}

/// Builds a new base from the existing statements and those of `sources`. Never changes the old store.
pub(crate) fn load(
    replacement: &ReplacementBase<'_>,
    sources: Vec<Source>,
    options: &LoadOptions<'_>,
    context: &LoadContext<'_>,
    mut skipped: &mut dyn Write,
) -> Result<(Arc<dyn Base>, LoadReport)> {
    let before = replacement.version;
    let threads = options.threads.max(1);
    let memory_bytes = context.memory_bytes.unwrap_or(LOAD_MEMORY_DEFAULT_BYTES);
    let watched = || {
        let watch = Watch::new("load");
        options.cancelled.map_or(Watch::new("load"), |flag| watch.cancelled_by(flag))
    };
    let report_building = |done, total| options.progress.map_or((), |progress| progress.build(done, total));
    let watch = watched().reporting_to(&report_building);
    let [vertices, literals] = [before.terms().vertex_end(), before.terms().literal_end()];
    let mut building = BuildTarget {
        // Not reported, since it precedes the reading of the sources.
        dictionary: vervet_txn::continued(before, vertices, literals, &watched())?,
        store: StoreBuilder::new(BuildOptions {
            threads,
            memory_bytes,
            environment: context.environment.clone(),
            temp_dir: context.directory.map(Path::to_owned),
            log: replacement.log,
            orders: orders(&**before.base(), options)?,
        })
        .watched_by(&watch),
        edges: before.edge_count(),
        memory_bytes,
    };
    building.dictionary.set_seed(seed(context.environment)?);
    if options.text_index {
        building.dictionary.index_words();
    }
    // Blank-node labels of this load never collide with those of an earlier load.
    let options = LoadOptions {
        // Both parts end with a separator: the loader appends the number of the file.
        blank_scope: format!("{}{}_", options.blank_scope, scope_letters(seed(context.environment)?)),
        ..options.clone()
    };
    let mut report = vervet_load::load(sources, &options, &mut building, &mut skipped)?;
    // After the load: `rewrite`, which resolves edge names, must not see the old statements.
    watch.expect(building.dictionary.finish_steps() + building.store.finish_steps());
    watch.expect(REBUILT_STEPS * before.statement_count());
    building.add_all(before, &watch)?;
    let target = match context.directory {
        Some(directory) => vervet_store::Target::Directory(directory.to_owned()),
        None => vervet_store::Target::Memory,
    };
    building.store.reserve_edges(building.edges);
    let dictionary = building.dictionary.finish_watched(threads, &watch)?;
    let store = replacement.finish(building.store, dictionary, &target, &watch)?;
    report.added = store.statement_count().saturating_sub(before.statement_count());
    Ok((store, report))
}

/// 64 bits as letters only: the dictionary stores text without digits once for all labels of a load, but
/// repeats runs of digits in every label.
fn scope_letters(bits: u64) -> String {
    (0..u64::BITS).step_by(4).map(|shift| char::from(b'a' + (bits >> shift & 15) as u8)).collect()
}

/// The orders of the new version: those of `options`, then those of `before`.
fn orders(before: &dyn Base, options: &LoadOptions<'_>) -> Result<Vec<OrderBy>> {
    let iri = |name: &str| match is_iri(name) {
        true => name.to_owned(),
        false => name_iri(KEY_NAMESPACE, name),
    };
    let new = options
        .orders
        .iter()
        .map(|(predicate, property)| OrderBy { predicate: iri(predicate), property: iri(property) });
    let mut orders: Vec<OrderBy> = new.collect();
    orders.extend(before.order_names()?);
    Ok(orders)
}

/// The part of a new graph that one of several servers has read; its numbers are its own.
#[derive(Debug)]
pub struct Share<'w> {
    /// The terms.
    pub dictionary: DictionaryBuilder,
    /// The statements.
    pub statements: StoreBuilder<'w>,
    /// Edges are numbered from 0 to here.
    pub edges: u64,
    /// What was read.
    pub report: LoadReport,
}

/// Reads the share of one server. Statements beyond `memory_bytes` (by default 4 GiB) go to temporary files
/// in `temp_dir`. Of the options, `orders` are ignored; `blank_scope` tells blank nodes from those of other
/// shares.
///
/// # Errors
/// As [`vervet_load::load`]. Io.
pub fn read_share<'w>(
    sources: Vec<Source>,
    options: &LoadOptions<'_>,
    (environment, temp_dir, memory_bytes): (&Environment, &Path, Option<u64>),
    watch: &'w Watch<'w>,
    mut skipped: &mut dyn Write,
) -> Result<Share<'w>> {
    let memory_bytes = memory_bytes.unwrap_or(LOAD_MEMORY_DEFAULT_BYTES);
    let mut dictionary = DictionaryBuilder::new();
    dictionary.set_seed(seed(environment)?);
    if options.text_index {
        dictionary.index_words();
    }
    let store = StoreBuilder::new(BuildOptions {
        threads: options.threads.max(1),
        memory_bytes,
        environment: environment.clone(),
        temp_dir: Some(temp_dir.to_owned()),
        log: None,
        orders: Vec::new(),
    })
    .watched_by(watch);
    let mut building = BuildTarget { dictionary, store, edges: 0, memory_bytes };
    let report = vervet_load::load(sources, options, &mut building, &mut skipped)?;
    let BuildTarget { dictionary, store: statements, edges, .. } = building;
    Ok(Share { dictionary, statements, edges, report })
}

/// The version under construction.
struct BuildTarget<'w> {
    dictionary: DictionaryBuilder,
    store: StoreBuilder<'w>,
    /// The next edge number.
    edges: u64,
    /// Memory cap for statements and dictionary together, in bytes.
    memory_bytes: u64,
}

impl BuildTarget<'_> {
    /// Gives statements the memory that the dictionary does not use, but at least a fixed share: many small
    /// runs would cost more than the memory saves.
    fn share_memory(&mut self) {
        let dictionary = u64::try_from(self.dictionary.memory_bytes()).unwrap_or(u64::MAX);
        let least = self.memory_bytes / STATEMENTS_PART_MIN;
        self.store.set_memory_bytes(self.memory_bytes.saturating_sub(dictionary).max(least));
    }

    /// Adds the statements of a version whose dictionary this one continues.
    fn add_all(&mut self, version: &Version, watch: &Watch<'_>) -> Result<()> {
        let mut chunk = Vec::with_capacity(CHUNK);
        for statement in version.statements() {
            chunk.push(statement?);
            if chunk.len() == CHUNK {
                watch.advance(CHUNK as u64)?;
                self.store.add(&chunk)?;
                chunk.clear();
            }
        }
        self.store.add(&chunk)
    }
}

impl Target for BuildTarget<'_> {
    fn vertex_count(&self) -> u64 {
        self.dictionary.vertex_count()
    }

    fn intern_iri(&mut self, iri: &str) -> Result<Id> {
        self.dictionary.intern_iri(iri)
    }

    fn intern_blank(&mut self, label: &str) -> Result<Id> {
        self.dictionary.intern_blank(label)
    }

    fn intern_literal(&mut self, value: &str, kind: LiteralKind<'_>) -> Result<Id> {
        self.dictionary.intern_literal(value, kind)
    }

    fn hash_iri(&self, iri: &str) -> u64 {
        hash_iri(iri)
    }

    fn expect(&self, hashes: &[u64]) {
        self.dictionary.prefetch(hashes);
    }

    fn intern_iri_hashed(&mut self, iri: &str, hash: u64) -> Result<Id> {
        self.dictionary.intern_iri_hashed(iri, hash)
    }

    fn intern_value(&mut self, value: Inline) -> Result<Id> {
        self.dictionary.intern_value(value)
    }

    /// Hashes a few terms and prefetches their slots before looking them up, so that cache misses overlap.
    fn intern_all(&mut self, terms: &[TermRef<'_>], ids: &mut Vec<Id>) -> Result<()> {
        let mut hashes = [0; 16];
        for terms in terms.chunks(hashes.len()) {
            for (hash, term) in hashes.iter_mut().zip(terms) {
                *hash = match *term {
                    TermRef::Iri(iri) => hash_iri(iri),
                    TermRef::Blank(label) => hash_blank(label),
                    TermRef::Literal { value, kind } => hash_literal(value, kind),
                };
            }
            self.dictionary.prefetch(&hashes[..terms.len()]);
            for (&hash, term) in hashes.iter().zip(terms) {
                ids.push(match *term {
                    TermRef::Iri(iri) => self.dictionary.intern_iri_hashed(iri, hash)?,
                    TermRef::Blank(label) => self.dictionary.intern_blank_hashed(label, hash)?,
                    TermRef::Literal { value, kind } => {
                        self.dictionary.intern_literal_hashed(value, kind, hash)?
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
        self.share_memory();
        self.store.add_triples(triples)
    }

    fn add(&mut self, statements: &[Statement]) -> Result<()> {
        self.share_memory();
        self.store.add(statements)
    }

    fn rewrite(&mut self, each: &mut dyn FnMut(&mut Statement) -> bool) -> Result<()> {
        self.store.rewrite(each)
    }
}

//! Writing a version as the base of a database: for checkpoints and backups.
//!
//! # Cost
//! The whole graph is rewritten. The dictionary is copied and the new terms are merged, which takes memory
//! for the new terms only. If at least half of its terms are new, it is built from scratch in memory.

use crate::published::Published;
use std::path::Path;
use std::sync::Arc;
use vervet_delta::Version;
use vervet_dictionary::{DictionaryBuilder, Extension};
use vervet_env::Environment;
use vervet_model::{Error, Id, Partitioning, Result, TermParts, Watch};
use vervet_partition::PartitionDirectory;
use vervet_snapshot::Snapshot;
use vervet_store::{Base, BuildOptions, CheckpointPosition, NewDictionary, StoreBuilder, Target};

/// Estimated size of one statement of the base, in bytes.
const STATEMENT_BYTES: u64 = 16;

/// Memory of a checkpoint for statements, in bytes.
const MEMORY_BYTES: u64 = 1 << 30;
/// Estimated [`Watch`] steps for a statement, which is read, sorted and encoded in both directions.
const STATEMENT_STEPS: u64 = 5;
/// Estimated [`Watch`] steps for a term.
const TERM_STEPS: u64 = 8;
/// The part of [`TERM_STEPS`] that the copy of a term does not report.
const COPIED_STEPS: u64 = 6;
/// Number of statements of one chunk.
const CHUNK: usize = 1 << 16;

/// A base with the statements of `published`, and its terms with numbers below `ends`.
pub(crate) fn build(
    environment: &Environment,
    published: &Published,
    ends: [u64; 2],
    log: Option<CheckpointPosition>,
    target: &Target,
    watch: &Watch<'_>,
) -> Result<Arc<dyn Base>> {
    let temp_dir = match target {
        Target::Directory(directory) => Some(directory.as_path()),
        Target::Memory => None,
    };
    let graph = (&published.version, published.constraints.texts(), ends);
    let (builder, dictionary) = copy(environment, graph, (log, temp_dir), watch)?;
    let partitioning = match target {
        Target::Memory => published.version.base().partitioning(),
        Target::Directory(_) => Partitioning::WHOLE,
    };
    vervet_partition::finish(builder, dictionary, target, partitioning, None)
}

/// A version, its constraints, and numbers below which its terms are.
pub(crate) type Graph<'v> = (&'v Version, Vec<String>, [u64; 2]);

/// Writes a graph in partitions to `directory`.
pub(crate) fn write_partitions(
    environment: &Environment,
    graph: Graph<'_>,
    partitioning: Partitioning,
    directory: &Path,
    watch: &Watch<'_>,
) -> Result<PartitionDirectory> {
    let created = environment.files.create_dir_all(directory);
    created
        .map_err(|error| Error::io(format_args!("create the directory {}", directory.display()), &error))?;
    let (builder, dictionary) = copy(environment, graph, (None, Some(directory)), watch)?;
    PartitionDirectory::write(builder, dictionary, partitioning, environment, directory)
}

/// A builder with the statements of a graph, and a dictionary with its terms.
fn copy<'v>(
    environment: &Environment,
    (version, constraints, ends): Graph<'v>,
    (log, temp_dir): (Option<CheckpointPosition>, Option<&Path>),
    watch: &'v Watch<'v>,
) -> Result<(StoreBuilder<'v>, NewDictionary<'v>)> {
    let mut builder = StoreBuilder::new(BuildOptions {
        threads: 1,
        memory_bytes: MEMORY_BYTES,
        environment: environment.clone(),
        temp_dir: temp_dir.map(Path::to_owned),
        log,
        orders: version.base().order_names()?,
    })
    .watched_by(watch);
    let builder_steps = STATEMENT_STEPS * version.statement_count();
    watch.expect(builder_steps + TERM_STEPS * (ends[0] + ends[1]));
    // Includes removed edges: their numbers may still be known outside and must not be reused.
    builder.reserve_edges(version.edge_count());
    let mut chunk = Vec::with_capacity(CHUNK);
    for statement in version.statements() {
        chunk.push(statement?);
        if chunk.len() == CHUNK {
            watch.advance(CHUNK as u64)?;
            builder.add(&chunk)?;
            chunk.clear();
        }
    }
    builder.add(&chunk)?;
    builder.set_constraints(constraints);
    Ok((builder, dictionary(version, ends, environment, watch)?))
}

/// Estimated size of a base in bytes, also for a base in memory.
pub(crate) fn base_bytes(base: &dyn Base) -> u64 {
    base.statement_count().saturating_mul(STATEMENT_BYTES)
}

/// Number of terms of a version that its base does not have.
pub(crate) fn new_term_count(version: &Version) -> u64 {
    let (terms, base) = (version.terms(), version.base().dictionary());
    let all = terms.vertex_end() + terms.literal_end();
    let old = base.vertex_count() + base.literal_count();
    assert!(all >= old, "terms go on where their base ends");
    all - old
}

/// Number of changed statements and new terms of a version over its base.
pub(crate) fn change_count(version: &Version) -> u64 {
    version.delta_cells() + new_term_count(version)
}

/// Ids of the terms that a version has beyond its base, in the order of their numbers.
pub(crate) fn new_terms(version: &Version, vertices: u64, literals: u64) -> impl Iterator<Item = Id> + use<> {
    let dictionary = version.base().dictionary();
    let vertices = (dictionary.vertex_count()..vertices).map(Id::vertex);
    vertices.chain((dictionary.literal_count()..literals).map(Id::literal))
}

/// Whether a version equals its base in everything that a base stores: terms have numbers below `ends`.
pub(crate) fn is_its_base(published: &Published, ends: [u64; 2]) -> bool {
    let version = &published.version;
    let base = version.base();
    version.delta_cells() == 0
        && ends == [base.vertex_count(), base.literal_count()]
        && version.edge_count() == base.edge_count()
        && published.constraints.texts() == base.constraints()
}

/// A dictionary with the terms of a version that have numbers below `ends`.
fn dictionary<'v>(
    version: &'v Version,
    [vertices, literals]: [u64; 2],
    environment: &Environment,
    watch: &Watch<'_>,
) -> Result<NewDictionary<'v>> {
    let base = version.base().dictionary();
    let (all, before) = (vertices + literals, base.vertex_count() + base.literal_count());
    if all == before {
        watch.advance(TERM_STEPS * all)?;
        return Ok(base.image().into());
    }
    let Some(mut extension) = Extension::new(base, all - before) else {
        let mut builder = continued(version, vertices, literals, watch)?;
        let seed = environment.random.next_u64();
        builder.set_seed(seed.map_err(|error| Error::io("draw a random number", &error))?);
        return Ok(builder.finish_watched(1, watch)?.into());
    };
    watch.advance(COPIED_STEPS * before)?;
    add_new(version, [vertices, literals], &mut |parts| extension.add(parts), watch)?;
    Ok(extension.into())
}

/// A builder that continues after the terms of a version.
///
/// # Errors
/// Damaged dictionary; those of `watch`, which gets a step for each term.
pub fn continued(
    version: &Version,
    vertices: u64,
    literals: u64,
    watch: &Watch<'_>,
) -> Result<DictionaryBuilder> {
    let mut builder = DictionaryBuilder::from_dictionary_watched(version.base().dictionary(), watch)?;
    add_new(version, [vertices, literals], &mut |parts| builder.intern_parts(parts), watch)?;
    Ok(builder)
}

/// Passes the terms of a version that its base lacks to `add`, which returns the id of each.
fn add_new(
    version: &Version,
    [vertices, literals]: [u64; 2],
    add: &mut dyn FnMut(TermParts<'_>) -> Result<Id>,
    watch: &Watch<'_>,
) -> Result<()> {
    let mut ticker = watch.ticker();
    let mut scratch = String::new();
    for id in new_terms(version, vertices, literals) {
        ticker.step()?;
        let mut added = Ok(Id::UNBOUND);
        version.read_term(id, &mut scratch, &mut |parts| added = add(parts))?;
        if added? != id {
            return Err(Error::internal(format!("{id:?} has the term of another id")));
        }
    }
    Ok(())
}

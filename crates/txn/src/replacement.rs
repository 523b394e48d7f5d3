//! Replacing the whole graph by a bulk load.
//!
//! # Shape
//! While the new base is built, commits and the numbering of terms wait. The new base is published as a
//! commit of its own, with which every active transaction that has read anything conflicts.
//! # Failure
//! If the load fails and its base may be the current one in the directory, later records would be lost; the
//! graph then refuses all further writes.

use crate::checkpoint::checkpoint_position;
use crate::commit_head::CommitHead;
use crate::constraints::Constraints;
use crate::published::Published;
use crate::recent_commits::CommitScope;
use crate::writer::Writer;
use std::sync::Arc;
use vervet_delta::Version;
use vervet_log::Lsn;
use vervet_model::{Error, ErrorKind, Result, Watch};
use vervet_snapshot::Snapshot;
use vervet_store::{Base, CheckpointPosition, NewDictionary, Store, StoreBuilder, Target};

/// Replacement of a graph: see [`crate::Transactions::replace_graph`].
#[derive(Debug)]
pub struct ReplacementBase<'a> {
    /// The current graph.
    pub version: &'a Version,
    /// The log position that the new manifest must state.
    pub log: Option<CheckpointPosition>,
    pub(crate) constraints: &'a Constraints,
}

impl ReplacementBase<'_> {
    /// Makes the base, which keeps the constraints of the graph.
    ///
    /// # Errors
    /// [`ErrorKind::Constraint`]: the new graph violates one; then the directory is unchanged. As
    /// [`StoreBuilder::finish`]. Those of `watch`, which should also be the one of `builder`.
    pub fn finish<'d>(
        &self,
        mut builder: StoreBuilder<'_>,
        dictionary: impl Into<NewDictionary<'d>>,
        target: &Target,
        watch: &Watch<'_>,
    ) -> Result<Arc<dyn Base>> {
        let partitioning = self.version.base().partitioning();
        if self.constraints.is_empty() {
            return vervet_partition::finish(builder, dictionary, target, partitioning, None);
        }
        builder.set_constraints(self.constraints.texts());
        let mut check = |base: &dyn Base| self.constraints.check_all(base, watch);
        vervet_partition::finish(builder, dictionary, target, partitioning, Some(&mut check))
    }
}

/// See [`crate::Transactions::replace_graph`].
pub(crate) fn replace_graph<T>(
    head: &CommitHead,
    writer: &Writer,
    build: impl FnOnce(&ReplacementBase<'_>) -> Result<(Arc<dyn Base>, T)>,
) -> Result<T> {
    let _one = writer.lock_manifest();
    writer.check_failure()?;
    writer.take_ownership()?;
    let _gate = writer.numbering().exclude();
    let loading = head.begin_load();
    let before = Arc::clone(head.lock().published());
    let timestamp = before.timestamp.next();
    let log = writer.open_log();
    let (place, lsn) = match log {
        Some(log) => {
            log.sync()?;
            let lsn = log.rotate()?;
            (Some(checkpoint_position(log, lsn, timestamp)), lsn)
        }
        None => {
            let place = writer.place_without_log(timestamp)?;
            (place, Lsn(place.map_or(0, |place| place.lsn)))
        }
    };
    let Published { version, constraints, .. } = &*before;
    let (base, result) = match build(&ReplacementBase { version, log: place, constraints }) {
        Ok(built) => built,
        Err(error) => return Err(failed_load(writer, version, error)),
    };
    let mut guard = head.lock();
    assert!(Arc::ptr_eq(guard.published(), &before), "no commit during a load");
    let dictionary = base.dictionary();
    let (vertices, literals) = (dictionary.vertex_count(), dictionary.literal_count());
    let terms = before.version.terms().seal_and_succeed(vertices, literals);
    let version = Version::new(base, terms);
    writer.numbering().reserve_edges(version.edge_count());
    let published = Arc::new(before.with(version, timestamp));
    guard.push(timestamp, CommitScope::WholeGraph);
    guard.forget();
    guard.replace(published);
    drop(guard);
    drop(loading);
    if let Some(log) = log {
        // The load is complete, even if old files remain.
        writer.cut(log, lsn);
    }
    Ok(result)
}

/// The error of a failed load; see the header.
fn failed_load(writer: &Writer, before: &Version, error: Error) -> Error {
    let Some(directory) = writer.directory() else { return error };
    let untouched = match Store::open(writer.environment(), directory) {
        Ok(store) => store.generation() == before.base().generation(),
        Err(now) => now.kind() == ErrorKind::Input && before.base().statement_count() == 0,
    };
    if untouched {
        return error;
    }
    let error = error.with_hint("the graph in the directory may be the new or the old one: open it again");
    writer.fail(error.clone());
    error
}

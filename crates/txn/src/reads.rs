//! The read set of a transaction: what its answers depended on.
//!
//! # Shape
//! Sets of what was asked for, from fine to coarse: one entry of a segment, all entries of a key, a whole
//! segment, the lists of predicates and of graphs, an edge by its id, a term that nobody had heard of.
//! # Invariants
//! 1. A read is in the set before its answer is used, and covers absence too: a key without entries, a
//!    predicate without a segment. So a commit that would have changed any answer is found (no phantoms).
//! 2. The set is bounded: beyond [`READS_MAX`] keys and entries of a predicate, the whole predicate counts as
//!    read. That can only abort more, never less.
//! # Cost
//! A hash insert for each key of a batch; validation asks four sets for each change of the others.
//! # Source
//! G-Tran (arXiv 2105.04449, §4) records the inputs of each step. Different: statements and keys in place of
//! steps, so that a change conflicts with exactly the reads that would have seen it.

use crate::change::Change;
use oxrdf::{Term, TermRef};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt;
use vervet_delta::Version;
use vervet_model::{Direction, Id};
use vervet_snapshot::Snapshot;

/// The most keys and entries of one predicate that are remembered one by one.
pub const READS_MAX: usize = 1 << 18;

/// See the header of this file.
#[derive(Debug, Default)]
pub(crate) struct ReadSet {
    predicates: FxHashMap<Id, PredicateReads>,
    /// Edges that were asked for by their ids.
    edges: FxHashSet<Id>,
    /// Edges of which it was asked whether statements are about them.
    edge_uses: FxHashSet<Id>,
    /// Terms that were not known.
    unknown: FxHashSet<Term>,
    /// Which predicates there are.
    predicate_list: bool,
    /// Which named graphs there are.
    graph_list: bool,
}

#[derive(Debug, Default)]
struct PredicateReads {
    all: bool,
    /// By [`Direction`].
    keys: [FxHashSet<Id>; 2],
    /// Subjects and objects.
    entries: FxHashSet<(Id, Id)>,
}

impl PredicateReads {
    fn shrink(&mut self) {
        if self.keys[0].len() + self.keys[1].len() + self.entries.len() > READS_MAX {
            *self = Self { all: true, ..Self::default() };
        }
    }
}

/// A read and the change by somebody else that it did not see.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Collision {
    pub(crate) what: ReadKind,
    pub(crate) change: Change,
}

/// What was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReadKind {
    Entry,
    Subject,
    Object,
    Predicate,
    Predicates,
    Graphs,
    Edge,
    EdgeUses,
    Term,
    /// Not a read: both wrote it.
    Write,
}

impl fmt::Display for ReadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Entry => "it read whether this statement is there",
            Self::Subject => "it read the statements of this subject with this predicate",
            Self::Object => "it read the statements of this object with this predicate",
            Self::Predicate => "it read all statements with this predicate",
            Self::Predicates => "it read which predicates there are",
            Self::Graphs => "it read which named graphs there are",
            Self::Edge => "it read this edge",
            Self::EdgeUses => "it read which statements are about this edge",
            Self::Term => "it found that a term of this statement did not exist",
            Self::Write => "both wrote it",
        })
    }
}

impl ReadSet {
    /// Whether nothing was read.
    pub(crate) fn is_empty(&self) -> bool {
        self.predicates.is_empty()
            && self.edges.is_empty()
            && self.edge_uses.is_empty()
            && self.unknown.is_empty()
            && !self.predicate_list
            && !self.graph_list
    }

    pub(crate) fn add_segment(&mut self, predicate: Id) {
        let reads = self.predicates.entry(predicate).or_default();
        if !reads.all {
            *reads = PredicateReads { all: true, ..PredicateReads::default() };
        }
    }

    pub(crate) fn add_keys(&mut self, predicate: Id, direction: Direction, keys: &[Id]) {
        let reads = self.predicates.entry(predicate).or_default();
        if !reads.all {
            reads.keys[direction as usize].extend(keys);
            reads.shrink();
        }
    }

    /// Entries from keys to neighbours of a segment.
    pub(crate) fn add_entries(
        &mut self,
        predicate: Id,
        direction: Direction,
        entries: impl Iterator<Item = (Id, Id)>,
    ) {
        let reads = self.predicates.entry(predicate).or_default();
        if !reads.all {
            reads.entries.extend(entries.map(|(key, neighbour)| match direction {
                Direction::Out => (key, neighbour),
                Direction::In => (neighbour, key),
            }));
            reads.shrink();
        }
    }

    pub(crate) fn add_edge(&mut self, edge: Id) {
        self.edges.insert(edge);
    }

    pub(crate) fn add_edge_uses(&mut self, edge: Id) {
        self.edge_uses.insert(edge);
    }

    pub(crate) fn add_unknown(&mut self, term: TermRef<'_>) {
        self.unknown.insert(term.into_owned());
    }

    pub(crate) fn add_predicate_list(&mut self) {
        self.predicate_list = true;
    }

    pub(crate) fn add_graph_list(&mut self) {
        self.graph_list = true;
    }

    /// What this set is validated with: `version` is the graph that was read.
    pub(crate) fn validator<'a>(&'a self, version: &'a Version) -> Validator<'a> {
        Validator { reads: self, newly_known: FxHashSet::default(), version }
    }
}

/// A read set, ready to be held against changes.
#[derive(Debug)]
pub(crate) struct Validator<'a> {
    reads: &'a ReadSet,
    /// Terms that were unknown when they were looked up, and no longer are.
    newly_known: FxHashSet<Id>,
    version: &'a Version,
}

impl Validator<'_> {
    /// Looks unknown terms up again, in the dictionary as it is now; whether there is news.
    pub(crate) fn learn(&mut self) -> bool {
        let before = self.newly_known.len();
        for term in &self.reads.unknown {
            // Not by the version, to which later terms are unknown.
            self.newly_known.extend(self.version.terms().lookup(term.as_ref()));
        }
        self.newly_known.len() > before
    }

    /// The first of `changes` that some read did not see.
    /// `newest` is a version with these changes, maybe with later ones too.
    pub(crate) fn collision(&self, changes: &[Change], newest: &Version) -> Option<Collision> {
        if self.reads.is_empty() {
            return None;
        }
        let collide =
            |change: &Change| Some(Collision { what: self.read_of(change, newest)?, change: *change });
        changes.iter().find_map(collide)
    }

    fn read_of(&self, change: &Change, newest: &Version) -> Option<ReadKind> {
        let statement = &change.statement;
        if let Some(reads) = self.reads.predicates.get(&statement.predicate) {
            if reads.all {
                return Some(ReadKind::Predicate);
            }
            if reads.keys[Direction::Out as usize].contains(&statement.subject) {
                return Some(ReadKind::Subject);
            }
            if reads.keys[Direction::In as usize].contains(&statement.object) {
                return Some(ReadKind::Object);
            }
            if reads.entries.contains(&(statement.subject, statement.object)) {
                return Some(ReadKind::Entry);
            }
        }
        if statement.edge.is_bound() && self.reads.edges.contains(&statement.edge) {
            return Some(ReadKind::Edge);
        }
        let mut about = [statement.subject, statement.object].into_iter();
        if !self.reads.edge_uses.is_empty() && about.any(|id| self.reads.edge_uses.contains(&id)) {
            return Some(ReadKind::EdgeUses);
        }
        let of_statement = [statement.subject, statement.predicate, statement.object, statement.graph];
        if !self.newly_known.is_empty() && of_statement.iter().any(|id| self.newly_known.contains(id)) {
            return Some(ReadKind::Term);
        }
        if self.reads.graph_list && statement.graph.is_bound() {
            return Some(ReadKind::Graphs);
        }
        let has = |version: &Version| has_predicate(version, statement.predicate);
        if self.reads.predicate_list && has(self.version) != has(newest) {
            return Some(ReadKind::Predicates);
        }
        None
    }
}

/// Whether a version has statements with this predicate. What cannot be read says no, and does so at once.
fn has_predicate(version: &Version, predicate: Id) -> bool {
    let segment = version.segment(predicate, Direction::Out);
    segment.is_ok_and(|segment| segment.is_some_and(|segment| segment.statistics().entries > 0))
}

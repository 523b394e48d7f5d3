//! The read set of a transaction: the reads that its results depend on.
//!
//! # Shape
//! Sets of reads, from fine to coarse: one entry of a segment; all entries of a key; those of a range of keys
//! or texts; a whole segment; the lists of predicates and of graphs. In addition: an edge by its id, and a
//! term that did not exist.
//! # Invariants
//! 1. A read is in the set before its result is used, and covers absence too: a key without entries, a
//!    predicate without a segment, a flag that excludes some statements. A commit that would have changed any
//!    result is therefore found (no phantoms).
//! 2. The set is bounded: beyond [`READS_MAX`] keys and entries of a predicate, the whole predicate counts as
//!    read. That can only cause more aborts, never fewer.
//! # Cost
//! A hash insert for each key of a batch; validation looks into four sets for each change of a concurrent
//! commit.
//! # Source
//! G-Tran (arXiv 2105.04449, §4) records the inputs of each step. Difference: statements and keys in place of
//! steps, so that a change conflicts with exactly the reads that would have returned it.

use crate::mutation::Mutation;
use foldhash::{HashMap as SeededMap, HashSet as SeededSet};
use oxrdf::{Term, TermRef};
use std::fmt;
use vervet_delta::Version;
use vervet_model::{Direction, Id, Statement, Tag, TextSearch, Words};
use vervet_snapshot::{SegmentStatistics, Snapshot};

/// Maximum number of keys and entries recorded individually for one predicate.
pub const READS_MAX: usize = 1 << 18;

/// A range of texts as bytes: lower bound (included) and optional upper bound (excluded).
type TextBounds = (Box<[u8]>, Option<Box<[u8]>>);

/// See the header of this file.
#[derive(Debug, Default)]
pub(crate) struct ReadSet {
    predicates: SeededMap<Id, PredicateReads>,
    /// Edges that were looked up by id.
    edges: SeededSet<Id>,
    /// Edges for which the statements about the edge were read.
    edge_uses: SeededSet<Id>,
    /// Text ranges and word searches of literals, and the predicates that they may concern. For a literal
    /// that existed at the begin, each match is a recorded key; these sets cover literals that were added
    /// since.
    texts: Vec<TextBounds>,
    searches: Vec<TextSearch>,
    text_filtered: SeededSet<Id>,
    /// Terms that did not exist.
    unknown: SeededSet<Term>,
    /// Whether the list of predicates was read.
    predicate_list: bool,
    /// Predicates that the list omitted although the graph at the begin has them: the transaction had removed
    /// their last statements. An added statement with such a predicate would have put it on the list.
    emptied: SeededSet<Id>,
    /// Whether the list of named graphs was read.
    graph_list: bool,
}

/// Kinds of entries that the statistics of a segment exclude ([`SegmentStatistics`]). Query engines use these
/// flags as proofs, for example to skip a read if no entry has an edge, so the use of a flag is a read.
#[derive(Clone, Copy, Debug, Default)]
struct Excluded {
    named_graphs: bool,
    edges: bool,
    /// By [`Direction`]: whether neighbours other than literals are excluded.
    but_literals: [bool; 2],
    /// By [`Direction`]: whether neighbours other than `xsd:string` are excluded.
    but_strings: [bool; 2],
    /// By [`Direction`]: whether neighbours other than vertices are excluded.
    but_vertices: [bool; 2],
}

impl Excluded {
    /// Whether an added statement contradicts an exclusion. A removed statement never does. `newest` knows
    /// the terms of the statement.
    fn covers(self, change: &Mutation, newest: &Version) -> bool {
        let Statement { subject, object, graph, edge, .. } = change.statement;
        let of_neighbours = |direction: Direction, neighbour: Id| {
            let literals = self.but_literals[direction as usize] && !neighbour.is_stored_literal();
            let vertices = self.but_vertices[direction as usize] && !neighbour.is_vertex();
            // An unreadable literal counts as another one.
            let is_string = || newest.is_plain_text(neighbour).unwrap_or(false);
            literals || vertices || self.but_strings[direction as usize] && !is_string()
        };
        change.added
            && (self.named_graphs && graph.is_bound()
                || self.edges && edge.is_bound()
                || of_neighbours(Direction::Out, object)
                || of_neighbours(Direction::In, subject))
    }
}

#[derive(Debug, Default)]
struct PredicateReads {
    all: bool,
    excluded: Excluded,
    /// By [`Direction`].
    keys: [SeededSet<Id>; 2],
    /// Ranges of keys, both ends included, ascending and disjoint; by [`Direction`].
    ranges: [Vec<(Id, Id)>; 2],
    /// Pairs of subject and object.
    entries: SeededSet<(Id, Id)>,
}

impl PredicateReads {
    fn add_range(&mut self, direction: Direction, first: Id, last: Id) {
        let ranges = &mut self.ranges[direction as usize];
        // Overlapping and adjacent ranges are merged into the new one.
        let start = ranges.partition_point(|(_, end)| end.bits().saturating_add(1) < first.bits());
        let end = ranges.partition_point(|(start, _)| start.bits() <= last.bits().saturating_add(1));
        let met = ranges.get(start..end).unwrap_or_default();
        let one = met.iter().fold((first, last), |one, met| (one.0.min(met.0), one.1.max(met.1)));
        ranges.splice(start..end.max(start), [one]);
    }

    fn is_in_range(&self, direction: Direction, key: Id) -> bool {
        let ranges = &self.ranges[direction as usize];
        let at = ranges.partition_point(|(_, last)| *last < key);
        ranges.get(at).is_some_and(|(first, _)| *first <= key)
    }

    fn shrink(&mut self) {
        let ranges = self.ranges[0].len() + self.ranges[1].len();
        if self.keys[0].len() + self.keys[1].len() + self.entries.len() + ranges > READS_MAX {
            *self = Self { all: true, ..Self::default() };
        }
    }
}

/// A read, and a concurrent change that it did not see.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conflict {
    pub(crate) what: ReadKind,
    pub(crate) change: Mutation,
}

/// Kind of a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReadKind {
    Entry,
    Subject,
    Object,
    Range,
    Predicate,
    Kind,
    Predicates,
    Graphs,
    Edge,
    EdgeUses,
    Term,
    /// Not a read: both transactions wrote the statement.
    Write,
}

impl fmt::Display for ReadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Entry => "it read whether this statement is there",
            Self::Subject => "it read the statements of this subject with this predicate",
            Self::Object => "it read the statements of this object with this predicate",
            Self::Range => "it read a range of subjects or objects with this predicate",
            Self::Predicate => "it read all statements with this predicate",
            Self::Kind => "it read that this predicate has no statements of this kind",
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
    /// Whether the set is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.predicates.is_empty()
            && self.edges.is_empty()
            && self.edge_uses.is_empty()
            && self.unknown.is_empty()
            && self.texts.is_empty()
            && self.searches.is_empty()
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
            let outside: Vec<Id>;
            let keys = match reads.ranges[direction as usize].is_empty() {
                true => keys,
                false => {
                    let is_outside = |key: &&Id| !reads.is_in_range(direction, **key);
                    outside = keys.iter().filter(is_outside).copied().collect();
                    outside.as_slice()
                }
            };
            reads.keys[direction as usize].extend(keys);
            reads.shrink();
        }
    }

    /// All keys of a segment between `first` and `last`, both included.
    pub(crate) fn add_range(&mut self, predicate: Id, direction: Direction, first: Id, last: Id) {
        let reads = self.predicates.entry(predicate).or_default();
        if !reads.all {
            reads.add_range(direction, first, last);
            reads.shrink();
        }
    }

    /// Literals with texts from `from` on, and below `to` if given.
    pub(crate) fn add_texts(&mut self, from: &[u8], to: Option<&[u8]>) {
        // The planner and the plan make the same read.
        if !self.texts.iter().any(|(one, other)| &**one == from && other.as_deref() == to) {
            self.texts.push((from.into(), to.map(Into::into)));
        }
    }

    /// Literals found by a word search.
    pub(crate) fn add_search(&mut self, search: &TextSearch) {
        if !self.searches.contains(search) {
            self.searches.push(search.clone());
        }
    }

    /// A predicate whose objects may be filtered by text.
    pub(crate) fn add_text_filtered(&mut self, predicate: Id) {
        self.text_filtered.insert(predicate);
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

    /// The list of predicates of `seen`, which is `began` with the changes of the transaction.
    pub(crate) fn add_predicate_list(&mut self, began: &Version, seen: &Version) {
        self.predicate_list = true;
        let mut listed = seen.predicates().iter().map(|(id, _)| *id).peekable();
        // Both lists ascend.
        for (id, _) in began.predicates() {
            while listed.next_if(|other| other < id).is_some() {}
            if listed.peek() != Some(id) {
                self.emptied.insert(*id);
            }
        }
    }

    /// The flags of a segment, each of which may serve as a proof.
    pub(crate) fn add_flags(&mut self, predicate: Id, direction: Direction, statistics: &SegmentStatistics) {
        // All fields by name, so that a new flag must be considered here.
        let SegmentStatistics {
            exact: _,
            keys: _,
            entries: _,
            neighbours: _,
            degree_max: _,
            degree_squares: _,
            sketch: _,
            has_named_graphs,
            has_edges,
            // Decides how often a visited entry counts; that visit is a read of its own.
            has_parallel: _,
            literals_only,
            plain_strings_only,
            vertices_only,
            class_pairs: _,
            keys_of_class: _,
            untyped_keys: _,
        } = statistics;
        let excluded = &mut self.predicates.entry(predicate).or_default().excluded;
        excluded.named_graphs |= !has_named_graphs;
        excluded.edges |= !has_edges;
        excluded.but_literals[direction as usize] |= literals_only;
        excluded.but_strings[direction as usize] |= plain_strings_only;
        excluded.but_vertices[direction as usize] |= vertices_only;
    }

    pub(crate) fn add_graph_list(&mut self) {
        self.graph_list = true;
    }

    /// The validator of this set; `version` is the graph that was read.
    pub(crate) fn validator<'a>(&'a self, version: &'a Version) -> Validator<'a> {
        Validator { reads: self, newly_known: SeededSet::default(), version }
    }
}

/// A read set, ready for validation against changes.
#[derive(Debug)]
pub(crate) struct Validator<'a> {
    reads: &'a ReadSet,
    /// Terms that were unknown when they were looked up, and exist now.
    newly_known: SeededSet<Id>,
    version: &'a Version,
}

impl Validator<'_> {
    /// Looks unknown terms up again in the current dictionary; returns whether any exists now.
    pub(crate) fn resolve_unknown_terms(&mut self) -> bool {
        let before = self.newly_known.len();
        for term in &self.reads.unknown {
            // Not through the version, which does not see later terms.
            self.newly_known.extend(self.version.terms().lookup(term.as_ref()));
        }
        self.newly_known.len() > before
    }

    /// The first of `changes` that some read did not see. `newest` is a version with these changes, possibly
    /// with later ones too.
    pub(crate) fn conflict(&self, changes: &[Mutation], newest: &Version) -> Option<Conflict> {
        if self.reads.is_empty() {
            return None;
        }
        let to_conflict =
            |change: &Mutation| Some(Conflict { what: self.read_of(change, newest)?, change: *change });
        changes.iter().find_map(to_conflict)
    }

    /// Whether this is a literal added since the begin whose text is in a recorded range or search.
    fn is_new_text(&self, id: Id) -> bool {
        if (self.reads.texts.is_empty() && self.reads.searches.is_empty())
            || id.tag() != Tag::Literal
            || id.payload() < self.version.literal_count()
        {
            return false;
        }
        let mut found = false;
        let mut text = String::new();
        let known = self.version.terms().read_term(id, &mut |parts| {
            parts.write_str(&mut text);
            let bytes = text.as_bytes();
            let mut bounds = self.reads.texts.iter();
            found = bounds.any(|(from, to)| &**from <= bytes && to.as_ref().is_none_or(|to| bytes < &**to));
            if !found && !self.reads.searches.is_empty() {
                let mut words = Words::default();
                words.take(&text);
                found = self.reads.searches.iter().any(|search| search.matches(&words));
            }
        });
        // An unreadable literal counts as a match.
        found || !known
    }

    fn read_of(&self, change: &Mutation, newest: &Version) -> Option<ReadKind> {
        let statement = &change.statement;
        if let Some(reads) = self.reads.predicates.get(&statement.predicate) {
            if reads.all {
                return Some(ReadKind::Predicate);
            }
            if reads.excluded.covers(change, newest) {
                return Some(ReadKind::Kind);
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
            if reads.is_in_range(Direction::Out, statement.subject)
                || reads.is_in_range(Direction::In, statement.object)
            {
                return Some(ReadKind::Range);
            }
        }
        if self.reads.text_filtered.contains(&statement.predicate) && self.is_new_text(statement.object) {
            return Some(ReadKind::Range);
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
        let was_added = change.added && self.reads.emptied.contains(&statement.predicate);
        if self.reads.predicate_list && (was_added || has(self.version) != has(newest)) {
            return Some(ReadKind::Predicates);
        }
        None
    }
}

/// Whether a version has statements with this predicate; `false` for unreadable data.
fn has_predicate(version: &Version, predicate: Id) -> bool {
    let segment = version.segment(predicate, Direction::Out);
    // With changes the counts are estimates; then a segment exists only if it has entries.
    segment.is_ok_and(|segment| {
        segment.is_some_and(|segment| !segment.statistics().exact || segment.statistics().entries > 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_the_sets_of_their_keys() {
        let seed = fastrand::u64(..);
        eprintln!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..300 {
            let mut reads = PredicateReads::default();
            let mut model = [false; 70];
            for _ in 0..random.usize(0..20) {
                let first = random.usize(0..64);
                let last = random.usize(first..(first + 6).min(65));
                reads.add_range(Direction::In, Id::vertex(first as u64), Id::vertex(last as u64));
                model[first..=last].fill(true);
                for (key, is_in) in (0..).zip(model) {
                    assert_eq!(reads.is_in_range(Direction::In, Id::vertex(key)), is_in, "seed {seed}");
                    assert!(!reads.is_in_range(Direction::Out, Id::vertex(key)));
                }
                let runs =
                    model.windows(2).filter(|pair| !pair[0] && pair[1]).count() + usize::from(model[0]);
                assert_eq!(
                    reads.ranges[Direction::In as usize].len(),
                    runs,
                    "seed {seed}: adjacent ranges are merged"
                );
            }
        }
    }
}

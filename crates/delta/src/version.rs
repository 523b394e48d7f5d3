//! A version of the graph: a base and the differences from it.
//!
//! # Shape
//! The base (a store, or several) and the terms, shared; persistent trees of changed predicates (each with an
//! overlay for each direction), edges and graphs; counts. `snapshot` reads it, `bulk` adds many statements at
//! once.
//! # Invariants
//! 1. Both overlays of a predicate have the same statements.
//! 2. The guarantees of a store hold: ids are known; an edge has one statement; the edge of a statement about
//!    an edge exists; a statement without an edge does not exist beside the same with one. So every version
//!    can be built into a store, with the same counts.
//! 3. Vertices and literals of this version have numbers below `vertex_end` and `literal_end`. Terms grow
//!    while the version is read; numbers at or above these bounds are unknown to it, so a look-up has a
//!    stable result.
//! # Cost
//! A clone: about ten atomic increments. Inserting a statement into 100,000 changed ones, every version kept:
//! see `examples/measure_delta.rs`. A statement takes about [`CELL_BYTES`] bytes in each direction.
//! # Not here
//! The choice of the current version, conflicts, durability.

use crate::ordered::OrderedList;
use crate::overlay::{CellTransition, change_over, first_of};
use crate::predicate::{FIRST_EDGE, PredicateDelta, entry_of, segment};
use crate::tree::{Tree, TreeItem};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};
use vervet_dictionary::MutableDictionary;
use vervet_model::vocab::RDF_TYPE;
use vervet_model::{Direction, Error, ErrorKind, Id, Result, Statement, Tag};
use vervet_snapshot::{ClassId, Segment, Snapshot};
use vervet_store::Base;

/// Memory of a cell in bytes: 32 bytes, headers of leaves, inner nodes, two to four bytes of filter. Measured
/// 40 to 41 where 100,000 statements were inserted, one by one or at once (`examples/measure_delta.rs`).
const CELL_BYTES: u64 = 42;
/// Memory of a changed edge, in bytes.
const EDGE_BYTES: u64 = 64;

/// A version of the graph. See the header of this file.
#[derive(Clone, Debug)]
pub struct Version {
    pub(crate) base: Arc<dyn Base>,
    pub(crate) terms: Arc<MutableDictionary>,
    pub(crate) predicates: Tree<PredicateDelta>,
    pub(crate) edges: Tree<EdgeChange>,
    graphs: Tree<GraphCount>,
    pub(crate) statements: u64,
    cells: u64,
    pub(crate) vertex_end: u64,
    pub(crate) literal_end: u64,
    pub(crate) edge_end: u64,
    /// The id of `rdf:type`, if a statement has ever had it.
    pub(crate) type_id: Id,
    /// Created on first use.
    predicate_list: OnceLock<Arc<[(Id, u64)]>>,
    graph_list: OnceLock<Arc<[(Id, u64)]>>,
    structure: OnceLock<u64>,
    pub(crate) ordered_list: OnceLock<OrderedList>,
}

/// The transitions of an insertion: of the same statement without its edge, if it exists, and of the
/// statement.
type Insertion = (Option<(Statement, CellTransition)>, CellTransition);

/// The current statement of an edge: subject, predicate, object, graph; or none.
#[derive(Clone, Debug)]
pub(crate) struct EdgeChange {
    edge: Id,
    row: Option<[Id; 4]>,
}

impl TreeItem for EdgeChange {
    type Key = Id;

    fn key(&self) -> Id {
        self.edge
    }
}

/// The current number of statements of a graph.
#[derive(Clone, Debug)]
struct GraphCount {
    graph: Id,
    statements: u64,
}

impl TreeItem for GraphCount {
    type Key = Id;

    fn key(&self) -> Id {
        self.graph
    }
}

impl Version {
    /// The graph of a base. `terms` continue after its dictionary.
    #[must_use]
    pub fn new(base: Arc<dyn Base>, terms: Arc<MutableDictionary>) -> Self {
        Self {
            predicates: Tree::default(),
            edges: Tree::default(),
            graphs: Tree::default(),
            statements: base.statement_count(),
            cells: 0,
            vertex_end: base.vertex_count(),
            literal_end: base.literal_count(),
            edge_end: base.edge_count(),
            type_id: base.type_predicate().unwrap_or_default(),
            predicate_list: OnceLock::new(),
            graph_list: OnceLock::new(),
            structure: OnceLock::new(),
            ordered_list: OnceLock::new(),
            base,
            terms,
        }
    }

    /// The graph below.
    #[must_use]
    pub fn base(&self) -> &Arc<dyn Base> {
        &self.base
    }

    /// The terms after those of the store's dictionary.
    #[must_use]
    pub fn terms(&self) -> &Arc<MutableDictionary> {
        &self.terms
    }

    /// Number of statements that were added to or removed from the store.
    #[must_use]
    pub fn delta_cells(&self) -> u64 {
        self.cells
    }

    /// Estimated memory of the differences from the store, in bytes; other versions may share it. Terms are
    /// not counted (see [`MutableDictionary::bytes`]).
    #[must_use]
    pub fn delta_bytes(&self) -> u64 {
        2 * CELL_BYTES * self.cells + EDGE_BYTES * self.edges.len()
    }

    /// Whether the statement exists with exactly this graph and edge.
    ///
    /// # Errors
    /// Damaged data.
    pub fn contains(&self, statement: &Statement) -> Result<bool> {
        // An existing statement cannot be added.
        Ok(self.change(statement, true)?.is_none())
    }

    /// Adds a statement; `false` if it existed. A statement without an edge also exists where the same has
    /// one; a statement with an edge replaces the same without.
    ///
    /// # Errors
    /// [`ErrorKind::Input`]: the edge has another statement; the subject or object is an edge that does not
    /// exist. [`ErrorKind::Internal`]: an id that was never assigned. Corrupt: damaged data. The version is
    /// unchanged after an error.
    pub fn insert(&mut self, statement: &Statement) -> Result<bool> {
        let Some((plain, change)) = self.insertion(statement)? else { return Ok(false) };
        self.prepare(statement.predicate)?;
        if let Some((plain, change)) = plain {
            self.apply(&plain, change);
        }
        self.apply(statement, change);
        if change == CellTransition::Restore {
            self.drop_unchanged(statement.predicate);
        }
        Ok(true)
    }

    /// The transitions of [`Version::insert`]: of the same statement without its edge, and of the statement.
    fn insertion(&self, statement: &Statement) -> Result<Option<Insertion>> {
        self.check_statement(statement)?;
        let mut plain = None;
        if statement.edge.is_bound() {
            if self.edge_is_there(statement)? {
                return Ok(None);
            }
            let twin = Statement { edge: Id::UNBOUND, ..*statement };
            plain = self.change(&twin, false)?.map(|change| (twin, change));
        } else if self.may_have_edges(statement.predicate)? && self.has_any(statement)? {
            return Ok(None);
        }
        Ok(self.change(statement, true)?.map(|change| (plain, change)))
    }

    /// Removes the statement with exactly this graph and edge; `false` if it did not exist.
    ///
    /// # Errors
    /// [`ErrorKind::Input`]: other statements are about its edge. Corrupt: damaged data.
    pub fn remove(&mut self, statement: &Statement) -> Result<bool> {
        let Some(change) = self.removal(statement)? else { return Ok(false) };
        self.prepare(statement.predicate)?;
        self.apply(statement, change);
        self.drop_unchanged(statement.predicate);
        Ok(true)
    }

    fn removal(&self, statement: &Statement) -> Result<Option<CellTransition>> {
        let change = self.change(statement, false)?;
        if change.is_some() && statement.edge.is_bound() {
            self.check_unused(statement)?;
        }
        Ok(change)
    }

    /// Whether [`Version::insert`] would add the statement.
    ///
    /// # Errors
    /// As for [`Version::insert`].
    pub fn would_insert(&self, statement: &Statement) -> Result<bool> {
        Ok(self.insertion(statement)?.is_some())
    }

    /// Whether [`Version::remove`] would remove the statement.
    ///
    /// # Errors
    /// As for [`Version::remove`].
    pub fn would_remove(&self, statement: &Statement) -> Result<bool> {
        Ok(self.removal(statement)?.is_some())
    }

    /// Subject, predicate, object and graph of an edge; `None` if there is no such edge.
    ///
    /// # Errors
    /// Damaged edge table.
    pub fn find_edge(&self, edge: Id) -> Result<Option<[Id; 4]>> {
        match self.edges.get(edge) {
            Some(change) => Ok(change.row),
            None => self.base.find_edge(edge),
        }
    }

    /// Whether the edge of this statement exists with this statement.
    pub(crate) fn edge_is_there(&self, statement: &Statement) -> Result<bool> {
        let Statement { subject, predicate, object, graph, edge } = *statement;
        match self.find_edge(edge)? {
            None => Ok(false),
            Some(row) if row == [subject, predicate, object, graph] => Ok(true),
            Some(_) => Err(two_statements(edge)),
        }
    }

    /// Whether statements of a predicate may have edges.
    fn may_have_edges(&self, predicate: Id) -> Result<bool> {
        let segment = segment(self.predicates.get(predicate), &*self.base, predicate, Direction::Out)?;
        Ok(segment.is_some_and(|segment| segment.statistics().has_edges))
    }

    /// Whether the statement exists, with any edge or without one.
    pub(crate) fn has_any(&self, statement: &Statement) -> Result<bool> {
        self.has_from(statement, Id::UNBOUND)
    }

    /// Whether the statement exists with some edge.
    pub(crate) fn has_edge(&self, statement: &Statement) -> Result<bool> {
        self.has_from(statement, FIRST_EDGE)
    }

    fn has_from(&self, statement: &Statement, first_edge: Id) -> Result<bool> {
        let (key, [neighbour, graph, _]) = entry_of(statement, Direction::Out);
        let from = [neighbour, graph, first_edge];
        let first = match self.predicates.get(statement.predicate) {
            Some(changed) => changed.side(Direction::Out).first_entry(key, from)?,
            None => first_of(self.base.segment(statement.predicate, Direction::Out)?, key, from)?,
        };
        Ok(first.is_some_and(|first| first[..2] == from[..2]))
    }

    /// The transition that makes the statement exist, or not exist; `None` if that is its state.
    pub(crate) fn change(&self, statement: &Statement, to_present: bool) -> Result<Option<CellTransition>> {
        let (key, entry) = entry_of(statement, Direction::Out);
        match self.predicates.get(statement.predicate) {
            Some(changed) => changed.side(Direction::Out).change(key, entry, to_present),
            None => {
                let segment = self.base.segment(statement.predicate, Direction::Out)?;
                change_over(segment, key, entry, to_present)
            }
        }
    }

    /// Creates the overlays of a predicate if it has none.
    pub(crate) fn prepare(&mut self, predicate: Id) -> Result<()> {
        if self.predicates.get(predicate).is_some() {
            return Ok(());
        }
        if !self.type_id.is_bound() {
            let found = match self.base.dictionary().lookup_iri(RDF_TYPE)? {
                None => self.terms.lookup(oxrdf::NamedNodeRef::new_unchecked(RDF_TYPE).into()),
                found => found,
            };
            self.type_id = found.filter(|id| *id == predicate).unwrap_or_default();
        }
        self.predicates.insert(PredicateDelta::new(predicate, &*self.base)?);
        Ok(())
    }

    /// Applies the transition that [`Version::change`] has returned, after [`Version::prepare`].
    pub(crate) fn apply(&mut self, statement: &Statement, change: CellTransition) {
        let string =
            change == CellTransition::Add && self.adds_strings(statement.predicate, [statement.object]);
        let predicate = self.predicates.get_mut(statement.predicate);
        debug_assert!(predicate.is_some(), "a change of a predicate that was not prepared");
        if let Some(predicate) = predicate {
            predicate.apply(statement, change, string);
            predicate.refresh(|| largest_classes(&*self.base));
            self.count(statement, change);
        }
    }

    /// Whether all of these objects are strings: `false` also if others of the predicate may be none, so that
    /// it does not matter.
    pub(crate) fn adds_strings(&self, predicate: Id, objects: impl IntoIterator<Item = Id>) -> bool {
        let changed = self.predicates.get(predicate);
        changed.is_some_and(|changed| changed.side(Direction::Out).statistics().plain_strings_only)
            // A damaged dictionary fails its readers; a flag that is dropped needlessly is still correct.
            && objects.into_iter().all(|object| self.is_plain_text(object).unwrap_or(false))
    }

    /// Drops the overlays of a predicate that equals the store's.
    pub(crate) fn drop_unchanged(&mut self, predicate: Id) {
        if self.predicates.get(predicate).is_some_and(|changed| changed.cells() == 0) {
            self.predicates.remove(predicate);
        }
    }

    /// Updates the counts for an applied transition.
    pub(crate) fn count(&mut self, statement: &Statement, change: CellTransition) {
        let comes = matches!(change, CellTransition::Add | CellTransition::Restore);
        self.cells = match change {
            CellTransition::Add | CellTransition::Hide => self.cells + 1,
            CellTransition::Drop | CellTransition::Restore => {
                assert!(self.cells > 0, "an undone change was not counted");
                self.cells - 1
            }
        };
        self.statements = adjust_count(self.statements, comes);
        if statement.graph.is_bound() {
            let statements = adjust_count(self.statements_in(statement.graph), comes);
            self.graphs.insert(GraphCount { graph: statement.graph, statements });
            self.graph_list.take();
        }
        let Statement { subject, predicate, object, graph, edge } = *statement;
        if edge.is_bound() {
            if change == CellTransition::Drop && edge.payload() >= self.base.edge_count() {
                self.edges.remove(edge);
            } else {
                self.edges
                    .insert(EdgeChange { edge, row: comes.then_some([subject, predicate, object, graph]) });
            }
        }
        if comes {
            [subject, predicate, object, graph, edge].into_iter().for_each(|id| self.extend_ids(id));
        }
        self.predicate_list.take();
        self.structure.take();
        self.ordered_list.take();
    }

    /// Raises the bounds of known numbers to include an id.
    fn extend_ids(&mut self, id: Id) {
        let end = match id.tag() {
            Tag::Vertex => &mut self.vertex_end,
            Tag::Literal => &mut self.literal_end,
            Tag::Edge => &mut self.edge_end,
            _ => return,
        };
        *end = (*end).max(id.payload() + 1);
    }

    fn statements_in(&self, graph: Id) -> u64 {
        if let Some(count) = self.graphs.get(graph) {
            return count.statements;
        }
        let graphs = self.base.graphs();
        let at = graphs.binary_search_by_key(&graph, |(id, _)| *id);
        at.ok().and_then(|at| graphs.get(at)).map_or(0, |(_, count)| *count)
    }

    /// Fingerprint of the structure: equal for versions over one base in which the same predicates have
    /// changes, of the same kinds (any entries, named graphs, edges, parallel edges, values), and that both
    /// have statements, and new literals, or not. Assumptions of a plan about one of them hold for the
    /// others, except those about single keys and terms.
    /// # Cost
    /// Some nanoseconds for each predicate with changes, once for each version.
    #[must_use]
    pub fn structure(&self) -> u64 {
        *self.structure.get_or_init(|| {
            let mut hasher = rustc_hash::FxHasher::default();
            (self.literal_end > self.base.literal_count()).hash(&mut hasher);
            (self.statements > 0).hash(&mut hasher);
            for predicate in self.predicates.iter_from(Id::UNBOUND) {
                (predicate.id, predicate.entries() > 0).hash(&mut hasher);
                for direction in Direction::BOTH {
                    let statistics = predicate.side(direction).statistics();
                    let flags = [
                        statistics.has_named_graphs,
                        statistics.has_edges,
                        statistics.has_parallel,
                        statistics.literals_only,
                        statistics.plain_strings_only,
                        statistics.vertices_only,
                    ];
                    flags.hash(&mut hasher);
                }
            }
            hasher.finish()
        })
    }

    /// Predicates with their numbers of statements.
    pub(crate) fn predicate_list(&self) -> &[(Id, u64)] {
        if self.predicates.is_empty() {
            return self.base.predicates();
        }
        self.predicate_list.get_or_init(|| {
            let changed = self.predicates.iter_from(Id::UNBOUND).map(|one| (one.id, one.entries()));
            overlaid(self.base.predicates(), changed)
        })
    }

    /// Graphs with their numbers of statements.
    pub(crate) fn graph_list(&self) -> &[(Id, u64)] {
        if self.graphs.is_empty() {
            return self.base.graphs();
        }
        self.graph_list.get_or_init(|| {
            let changed = self.graphs.iter_from(Id::UNBOUND).map(|one| (one.graph, one.statements));
            overlaid(self.base.graphs(), changed)
        })
    }
}

/// The largest classes of a store, with their sizes; sorted by class.
pub(crate) fn largest_classes(base: &dyn Base) -> Vec<(ClassId, u64)> {
    let all = (0..ClassId::COUNT_MAX).filter_map(|class| u16::try_from(class).ok()).map(ClassId);
    let sized = all.map(|class| (class, base.class_size(class))).filter(|(_, size)| *size > 0);
    let mut classes: Vec<(ClassId, u64)> = sized.collect();
    classes.sort_by_key(|(class, size)| (std::cmp::Reverse(*size), *class));
    classes.truncate(crate::estimates::SPREAD_CLASSES);
    classes.sort();
    classes
}

pub(crate) fn two_statements(edge: Id) -> Error {
    let number = edge.payload();
    Error::new(ErrorKind::Input, format!("edge {number} has another statement already"))
        .with_hint("an edge has one statement; use another number, or remove the other statement first")
}

/// Adds or subtracts one.
fn adjust_count(count: u64, up: bool) -> u64 {
    assert!(up || count > 0, "a removed statement was not counted");
    if up { count + 1 } else { count - 1 }
}

/// `base` with the counts of `changed` in place of its own; both ascend, and counts of 0 are omitted.
fn overlaid(base: &[(Id, u64)], changed: impl Iterator<Item = (Id, u64)>) -> Arc<[(Id, u64)]> {
    let mut all = Vec::with_capacity(base.len());
    let mut base = base.iter().copied().peekable();
    for (id, count) in changed {
        while let Some(before) = base.next_if(|(other, _)| *other < id) {
            all.push(before);
        }
        base.next_if(|(other, _)| *other == id);
        if count > 0 {
            all.push((id, count));
        }
    }
    all.extend(base);
    all.into()
}

//! Cascading removal: the entries to remove for the statements to remove.
//!
//! A statement may have several entries in a graph: a plain one, and one for each identity. Removing an
//! identity removes the statements about it (it is their subject or object), and recursively the statements
//! about the identities of those.
//!
//! # Order
//! No statement may be about an edge that does not exist, so statements about edges are removed first
//! ([`put_in_order`]).
//! # Cost
//! If a predicate has edges, the entries of each subject are read once, whatever the number of removed
//! statements. Statements about edges: one lookup in each segment of both directions for a batch of edges.

use super::rows::CHUNK;
use rustc_hash::{FxHashMap, FxHashSet};
use vervet_kernel::Control;
use vervet_model::{Direction, Id, Result, Statement, Tag};
use vervet_snapshot::{Cursor, EntryFilter, Expansion, GraphFilter, Segment, Snapshot};

/// Statements and entries to remove.
#[derive(Default)]
pub(super) struct CascadeDelete {
    /// These statements with all their entries; their `edge` is ignored.
    pub statements: Vec<Statement>,
    /// Single entries.
    pub entries: Vec<Statement>,
}

/// Entries to remove, and the identities removed with them.
#[derive(Default)]
pub(super) struct Removal {
    pub entries: Vec<Statement>,
    pub edges: FxHashSet<Id>,
}

impl CascadeDelete {
    /// The entries to remove; a plain entry among them may not exist.
    pub(super) fn resolve(mut self, snapshot: &dyn Snapshot, control: &Control) -> Result<Removal> {
        let mut removal = Removal::default();
        for entry in self.entries {
            let Statement { subject, predicate, object, graph, edge } = entry;
            if snapshot.edge(edge)? == [subject, predicate, object, graph] {
                removal.entries.push(entry);
            }
        }
        self.statements.iter_mut().for_each(|statement| statement.edge = Id::UNBOUND);
        self.statements.sort_unstable_by_key(|s| (s.predicate, s.subject, s.object, s.graph));
        self.statements.dedup();
        for run in self.statements.chunk_by(|a, b| a.predicate == b.predicate) {
            control.check()?;
            let predicate = run[0].predicate;
            let Some(segment) = snapshot.segment(predicate, Direction::Out)? else { continue };
            removal.entries.extend_from_slice(run);
            if !segment.statistics().has_edges {
                continue;
            }
            let cascade = |s: &Statement| {
                run.binary_search_by_key(&(s.subject, s.object, s.graph), |s| (s.subject, s.object, s.graph))
                    .is_ok()
            };
            let mut subjects: Vec<Id> = run.iter().map(|s| s.subject).collect();
            subjects.dedup();
            let found = &mut removal.entries;
            edge_entries(segment, predicate, &subjects, GraphFilter::Any, control, &mut |s| {
                if cascade(&s) {
                    found.push(s);
                }
            })?;
        }
        let edges = removal.entries.iter().map(|entry| entry.edge).filter(|edge| edge.is_bound());
        let edges = edges.collect();
        removal.add_edges(edges, snapshot, control)?;
        Ok(removal)
    }
}

impl Removal {
    /// Adds these identities and the statements about them.
    pub(super) fn add_edges(
        &mut self,
        edges: Vec<Id>,
        snapshot: &dyn Snapshot,
        control: &Control<'_>,
    ) -> Result<()> {
        let mut ahead: Vec<Id> = edges.into_iter().filter(|edge| self.edges.insert(*edge)).collect();
        while !ahead.is_empty() {
            ahead.sort_unstable();
            let mut about = Vec::new();
            for &(predicate, _) in snapshot.predicates() {
                for direction in Direction::BOTH {
                    let Some(segment) = snapshot.segment(predicate, direction)? else { continue };
                    let from = about.len();
                    all_entries(segment, predicate, &ahead, GraphFilter::Any, control, &mut about)?;
                    if direction == Direction::In {
                        about[from..].iter_mut().for_each(|s| std::mem::swap(&mut s.subject, &mut s.object));
                    }
                }
            }
            ahead = about.iter().map(|s| s.edge).filter(|edge| edge.is_bound()).collect();
            ahead.retain(|edge| self.edges.insert(*edge));
            self.entries.append(&mut about);
        }
        Ok(())
    }
}

/// The maximum nesting of statements about edges for which the removal order is correct.
const NESTING_MAX: usize = 64;

/// Sorts statements to remove: statements about others before them.
pub(crate) fn put_in_order(statements: &mut [Statement]) {
    let is_edge = |id: &Id| id.tag() == Tag::Edge;
    if !statements.iter().any(|s| is_edge(&s.subject) || is_edge(&s.object)) {
        return;
    }
    let edges = statements.iter().map(|statement| statement.edge).filter(is_edge);
    let mut depths: FxHashMap<Id, usize> = edges.map(|edge| (edge, 0)).collect();
    let depth = |statement: &Statement, depths: &FxHashMap<Id, usize>| {
        let of = [statement.subject, statement.object].into_iter().filter(|id| *id != statement.edge);
        of.filter_map(|id| depths.get(&id)).max().map_or(0, |depth| depth + 1)
    };
    for _ in 0..NESTING_MAX {
        let mut is_done = true;
        for statement in statements.iter().filter(|statement| is_edge(&statement.edge)) {
            let depth = depth(statement, &depths);
            is_done &= depths.insert(statement.edge, depth) == Some(depth);
        }
        if is_done {
            break;
        }
    }
    statements.sort_by_cached_key(|statement| std::cmp::Reverse(depth(statement, &depths)));
}

/// Appends all entries of a predicate in these graphs. For a statement that only has entries with an
/// identity, it also appends a plain entry, which does not exist.
pub(super) fn scan(
    snapshot: &dyn Snapshot,
    predicate: Id,
    graph: GraphFilter,
    control: &Control<'_>,
    out: &mut Vec<Statement>,
) -> Result<()> {
    let Some(segment) = snapshot.segment(predicate, Direction::Out)? else { return Ok(()) };
    let (mut next, mut counted) = (Some(Id::UNBOUND), 0);
    let mut keys = Vec::with_capacity(CHUNK);
    while let Some(from) = next {
        keys.clear();
        next = segment.keys(from, CHUNK, &mut keys)?;
        all_entries(segment, predicate, &keys, graph, control, out)?;
        control.recount(&mut counted, (out.capacity() * size_of::<Statement>()) as u64)?;
    }
    control.recount(&mut counted, 0)
}

fn all_entries(
    segment: &dyn Segment,
    predicate: Id,
    keys: &[Id],
    graph: GraphFilter,
    control: &Control<'_>,
    out: &mut Vec<Statement>,
) -> Result<()> {
    expand(segment, predicate, keys, graph, false, control, &mut |s| out.push(s))?;
    if segment.statistics().has_edges {
        edge_entries(segment, predicate, keys, graph, control, &mut |s| out.push(s))?;
    }
    Ok(())
}

/// Calls `each` with the entries of `keys` that have an identity.
fn edge_entries(
    segment: &dyn Segment,
    predicate: Id,
    keys: &[Id],
    graph: GraphFilter,
    control: &Control<'_>,
    each: &mut dyn FnMut(Statement),
) -> Result<()> {
    expand(segment, predicate, keys, graph, true, control, each)
}

fn expand(
    segment: &dyn Segment,
    predicate: Id,
    keys: &[Id],
    graph: GraphFilter,
    want_edges: bool,
    control: &Control<'_>,
    each: &mut dyn FnMut(Statement),
) -> Result<()> {
    let filter = EntryFilter { graph, parallel: false };
    let mut expansion = Expansion { want_edges, want_graphs: true, ..Expansion::new(CHUNK) };
    for keys in keys.chunks(CHUNK) {
        let mut cursor = Cursor::default();
        while cursor.row < keys.len() {
            control.check()?;
            expansion.clear();
            segment.expand(keys, filter, &mut cursor, &mut expansion)?;
            for at in 0..expansion.len() {
                each(Statement {
                    subject: keys[expansion.rows[at] as usize],
                    predicate,
                    object: expansion.neighbours[at],
                    graph: expansion.graphs[at],
                    edge: if want_edges { expansion.edges[at] } else { Id::UNBOUND },
                });
            }
        }
    }
    Ok(())
}

/// Positions, ascending, of those plain statements that already exist with an identity (or without, which
/// does not matter for them). `statements` are sorted by predicate and graph. `new`: predicates that are
/// known to have no statements, ascending.
pub(super) fn with_edges(snapshot: &dyn Snapshot, statements: &[Statement], new: &[Id]) -> Result<Vec<u32>> {
    let mut found = Vec::new();
    let (mut start, mut rows) = (0, Vec::new());
    for run in statements.chunk_by(|a, b| (a.predicate, a.graph) == (b.predicate, b.graph)) {
        let segment = match new.binary_search(&run[0].predicate) {
            Ok(_) => None,
            Err(_) => snapshot.segment(run[0].predicate, Direction::Out)?,
        };
        if let Some(segment) = segment.filter(|segment| segment.statistics().has_edges) {
            let graph =
                if run[0].graph.is_bound() { GraphFilter::Named(run[0].graph) } else { GraphFilter::Default };
            let keys: Vec<Id> = run.iter().map(|s| s.subject).collect();
            let neighbours: Vec<Id> = run.iter().map(|s| s.object).collect();
            rows.clear();
            segment.check(&keys, &neighbours, EntryFilter { graph, parallel: false }, &mut rows)?;
            found.extend(rows.iter().map(|row| start + row));
        }
        start += u32::try_from(run.len()).unwrap_or(u32::MAX);
    }
    Ok(found)
}

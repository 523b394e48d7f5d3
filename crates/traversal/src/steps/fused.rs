//! Fused pipelines: consecutive walks and filters, executed as one step over vectors of ids.
//!
//! # Shape
//! Step by step, `in("hasCreator").hasLabel("Post").in("containerOf")` creates a traverser per post only to
//! find its forum. Here these steps are the fused steps of a [`FusedPipeline`]. Each fused step has an input
//! buffer of ids, each with a number. A fused step processes a chunk of its buffer and appends the results to
//! the buffer of the next one. The last fused step with input runs first, so few unneeded results are
//! computed; chunks grow as more results are requested. `where` and `not` of a fused pipeline are fused steps
//! too: their inner fused pipeline processes a whole chunk, with the row of each id, and drops a row once it
//! has a result. Equal vertices are merged and their numbers added, as the bulk of a traverser.
//! # Invariants
//! 1. Intermediate objects are unobservable: no whole paths are kept, only the last fused step has labels,
//!    and no strategy filters the results of walks.
//! 2. Fused steps do not report that they ran, and their reads are stable: a test against a side effect is a
//!    fused step only if no later step writes to that side effect.
//! 3. Vertices are merged only where it is unobservable: no sack, no side effect that later steps write to,
//!    bulking permitted.
//! 4. With recorded reads, a fused step processes one id at a time, a vertex with all of its edges.
//! # Cost
//! Two segment calls per chunk and fused step, and about 20 ns per entry. 16 bytes per buffered id: at most
//! [`BUFFER_IDS_MAX`] before each fused step, or the neighbours of one vertex.
//! # Not here
//! Reordering of fused steps, which [`crate::translation`] does: fused pipelines are the steps that it does
//! not translate, mostly nested ones.

use crate::bulk::Bulk;
use crate::condition::Condition;
use crate::context::Context;
use crate::fusion::{Connective, EdgeWalkPart, FusedStep, Test};
use crate::graph::ids::EVERY;
use crate::graph::literal;
use crate::graph::read::{
    edge_predicates, edge_segments, is_of_one_type, labelled_rows, neighbours, vertex_value, vertex_values,
};
use crate::memory::Reservation;
use crate::semantic::passes;
use crate::step::{Input, Node, Step};
use crate::traverser::Traverser;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use vervet_gremlin::{Direction as Ends, P, Value};
use vervet_model::{Direction, Error, ErrorKind, Id, Result, Tag};
use vervet_snapshot::{Cursor, Expansion, Segment};

/// Size of the first chunk.
const CHUNK_FIRST: usize = 16;
/// Maximum size of a chunk.
const CHUNK: usize = 1024;
/// Maximum number of ids in the next buffer; a chunk ends before it would exceed this, except for a single
/// vertex.
const BUFFER_IDS_MAX: usize = 16 * CHUNK;
/// Maximum number of ids for which a search for equal ones does not pay off.
const MERGE_IDS_MIN: usize = 4;

/// See the header of this file.
#[derive(Clone)]
struct FusedPipeline {
    fused_steps: Vec<FusedStep>,
    from: Option<Traverser>,
    /// The input buffer of each fused step, and the output buffer of the last.
    buffers: Vec<IdBuffer>,
    chunk: usize,
    /// Whether equal ids are merged.
    merges: bool,
    /// Counts the buffers.
    held: Reservation,
}

/// Ids, each with a number: its multiplicity, or the row that it was reached from.
#[derive(Clone, Default)]
struct IdBuffer {
    ids: Vec<Id>,
    with: Vec<u64>,
    next: usize,
}

/// The size of the next chunk, given the size of the last one and its number of results.
fn next_chunk(chunk: usize, given: usize) -> usize {
    if given > BUFFER_IDS_MAX { (chunk / 4).max(1) } else { (2 * chunk).min(CHUNK) }
}

impl FromIterator<(Id, u64)> for IdBuffer {
    fn from_iter<I: IntoIterator<Item = (Id, u64)>>(all: I) -> Self {
        let (ids, with) = all.into_iter().unzip();
        Self { ids, with, next: 0 }
    }
}

impl IdBuffer {
    fn clear(&mut self) {
        self.ids.clear();
        self.with.clear();
        self.next = 0;
    }

    fn push(&mut self, id: Id, with: u64) {
        self.ids.push(id);
        self.with.push(with);
    }

    fn size_bytes(&self) -> u64 {
        16 * self.ids.len() as u64
    }

    fn is_done(&self) -> bool {
        self.next >= self.ids.len()
    }

    /// Merges equal ids at their first position.
    ///
    /// # Errors
    /// A sum exceeds the range of a bulk.
    fn merge(&mut self) -> Result<()> {
        if self.ids.len() <= MERGE_IDS_MIN {
            return Ok(());
        }
        let mut positions: FxHashMap<Id, usize> = FxHashMap::default();
        positions.reserve(self.ids.len());
        let mut count = 0;
        for at in 0..self.ids.len() {
            let (id, times) = (self.ids[at], self.with[at]);
            let position = *positions.entry(id).or_insert(count);
            if position == count {
                (self.ids[count], self.with[count]) = (id, times);
                count += 1;
            } else {
                if let (Some(first), Some(others)) = (Bulk::new(self.with[position]), Bulk::new(times)) {
                    self.with[position] = first.plus(others)?.get();
                }
            }
        }
        self.ids.truncate(count);
        self.with.truncate(count);
        Ok(())
    }
}

/// Fuses the last node with the nodes before it into a fused pipeline, if possible. `merges`: whether the
/// merging of equal vertices is unobservable.
pub(crate) fn fuse(nodes: &mut Vec<Node>, merges: bool) {
    fuse_edge_walk(nodes, merges);
    let Some((last, before)) = nodes.split_last() else { return };
    let Some(fused_steps) = last.step.fused_steps() else { return };
    let is_walk = fused_steps.iter().any(FusedStep::is_walk);
    let is_existence = fused_steps.iter().any(|step| matches!(step, FusedStep::Exists { .. }));
    // Search for the start of a fused pipeline. After one walk, a filter that tests ids one by one gains
    // nothing over a step.
    let mut first = before.len();
    loop {
        let Some(node) = first.checked_sub(1).and_then(|at| before.get(at)) else { return };
        if !node.labels.is_empty() {
            return;
        }
        let Some(fused_steps) = node.step.fused_steps() else { return };
        first -= 1;
        let begins_with_walk = fused_steps.first().is_some_and(FusedStep::is_walk);
        if node.step.is_fused_pipeline() || (is_walk || is_existence) && begins_with_walk {
            break;
        }
        if !is_walk {
            return;
        }
    }
    let fused_steps: Option<Vec<_>> = nodes[first..].iter().map(|node| node.step.fused_steps()).collect();
    if let Some(fused_steps) = fused_steps {
        replace(nodes, first, fused_steps.into_iter().flatten().collect(), merges);
    }
}

/// Fuses a walk to edges, filters on their properties, and the step to their other ends into one link.
fn fuse_edge_walk(nodes: &mut Vec<Node>, merges: bool) {
    let Some((last, before)) = nodes.split_last() else { return };
    let Some(EdgeWalkPart::Ends(to)) = last.step.edge_walk_part() else { return };
    let mut tests = Vec::new();
    for (first, node) in before.iter().enumerate().rev() {
        if !node.labels.is_empty() {
            return;
        }
        let (ends, labels) = match node.step.edge_walk_part() {
            Some(EdgeWalkPart::Property(key, test)) => {
                tests.push((key.clone(), test.clone()));
                continue;
            }
            Some(EdgeWalkPart::Edges { ends, labels }) => (ends, labels.to_vec()),
            _ => return,
        };
        if matches!((ends, to), (Ends::Out, Ends::In) | (Ends::In, Ends::Out)) {
            tests.reverse();
            let step = if tests.is_empty() {
                FusedStep::Walk { ends, labels }
            } else {
                FusedStep::FilteredWalk { ends, labels, tests }
            };
            replace(nodes, first, vec![step], merges);
        }
        return;
    }
}

/// Replaces the nodes from `first` on by a fused pipeline.
fn replace(nodes: &mut Vec<Node>, first: usize, fused_steps: Vec<FusedStep>, merges: bool) {
    let texts: Vec<Arc<str>> =
        nodes.drain(first..).map(|node| node.text).filter(|text| !text.is_empty()).collect();
    let step = FusedPipeline {
        fused_steps,
        from: None,
        buffers: Vec::new(),
        chunk: CHUNK_FIRST,
        merges,
        held: Reservation::default(),
    };
    let (labels, text) = (Vec::new().into(), texts.join(".").into());
    nodes.push(Node { moves: step.moves(), step: Box::new(step), labels, text, meter: None });
}

impl FusedStep {
    fn is_walk(&self) -> bool {
        matches!(self, Self::Walk { .. } | Self::FilteredWalk { .. })
    }

    /// Applies the fused step to a prefix of the ids and appends the results to `out`, each with the number
    /// of its input id. Returns the length of that prefix. `from`: the traverser whose names are in scope.
    fn apply(
        &mut self,
        ids: &[Id],
        with: &[u64],
        out: &mut IdBuffer,
        from: &Traverser,
        context: &mut Context<'_>,
    ) -> Result<usize> {
        context.control.work(32 * ids.len())?;
        context.names.ahead.found(ids.iter().copied());
        match self {
            Self::Walk { ends, labels } => return walk(*ends, labels, ids, with, out, context),
            Self::FilteredWalk { ends, labels, tests } => {
                return filtered_walk(*ends, labels, tests, ids, with, out, context);
            }
            Self::Labelled(labels) => {
                let mut rows = Vec::with_capacity(ids.len());
                context.read(|snapshot, names| {
                    rows.clear();
                    labelled_rows(snapshot, names, labels, ids, &mut rows)
                })?;
                for row in rows {
                    let row = row as usize;
                    out.push(ids[row], with[row]);
                }
            }
            Self::Exists { branches, connective } => {
                let rows: Vec<u64> = (0..ids.len() as u64).collect();
                let mut found = vec![*connective == Connective::All; ids.len()];
                for branch in branches {
                    let mut passed = vec![false; ids.len()];
                    if *connective != Connective::All {
                        passed.copy_from_slice(&found);
                    }
                    // Rows with a known answer are skipped.
                    let known = |row: &usize| found[*row] == (*connective != Connective::All);
                    let open: IdBuffer =
                        (0..ids.len()).filter(|row| !known(row)).map(|row| (ids[row], rows[row])).collect();
                    test_existence(branch, &open.ids, &open.with, &mut passed, from, context)?;
                    found = passed;
                }
                for (row, _) in
                    found.iter().enumerate().filter(|(_, found)| **found == (*connective != Connective::None))
                {
                    out.push(ids[row], with[row]);
                }
            }
            Self::Property(key, test) => {
                for row in with_property(key, test, ids, context)? {
                    let row = row as usize;
                    out.push(ids[row], with[row]);
                }
            }
            Self::Test(test) => one_by_one(test.as_mut(), ids, with, out, from, context)?,
        }
        Ok(ids.len())
    }
}

/// Appends the ids that pass a test.
fn one_by_one(
    test: &mut dyn Test,
    ids: &[Id],
    with: &[u64],
    out: &mut IdBuffer,
    from: &Traverser,
    context: &mut Context<'_>,
) -> Result<()> {
    let mut traverser = from.single();
    for (&id, &with) in ids.iter().zip(with) {
        traverser.value = vertex_value(id.bits());
        if test.test(&traverser, context)? {
            out.push(id, with);
        }
    }
    Ok(())
}

/// The length of the longest prefix of the ids with at most [`BUFFER_IDS_MAX`] entries together; at least 1.
fn prefix_within_limit(segment: &dyn Segment, ids: &[Id]) -> Result<usize> {
    if ids.len() <= 1 {
        return Ok(ids.len());
    }
    let mut degrees = Vec::with_capacity(ids.len());
    segment.degrees(ids, EVERY, &mut degrees)?;
    let mut total = 0;
    let fits = degrees.iter().take_while(|degree| {
        total += **degree;
        total <= BUFFER_IDS_MAX as u64
    });
    Ok(fits.count().max(1))
}

/// Appends neighbours of a prefix of the ids; returns its length.
fn walk(
    ends: Ends,
    labels: &[Arc<str>],
    ids: &[Id],
    with: &[u64],
    out: &mut IdBuffer,
    context: &mut Context<'_>,
) -> Result<usize> {
    let (before, direction) = (
        out.ids.len(),
        match ends {
            Ends::Out => Some(Direction::Out),
            Ends::In => Some(Direction::In),
            Ends::Both => None,
        },
    );
    // The number of neighbours of a vertex is unbounded.
    let (memory, mut held) = (context.memory.clone(), Reservation::default());
    let taken = context.read(|snapshot, names| {
        out.ids.truncate(before);
        out.with.truncate(before);
        let of_one_segment = match (labels, direction) {
            // What is read ahead is of several traversers.
            _ if names.ahead.is_on() => None,
            ([label], Some(direction)) => Some((label, direction)),
            _ => None,
        };
        let Some((label, direction)) = of_one_segment else {
            for (at, (id, &with)) in ids.iter().zip(with).enumerate() {
                if out.ids.len() - before > BUFFER_IDS_MAX {
                    return Ok(at);
                }
                neighbours(snapshot, names, id.bits(), ends, labels, &mut |key| {
                    out.push(Id::from_bits(key), with);
                    if out.ids.len().is_multiple_of(CHUNK) {
                        memory.control.work(8 * CHUNK)?;
                        held.set(out.size_bytes(), &memory)?;
                    }
                    Ok(())
                })?;
            }
            return Ok(ids.len());
        };
        let Some(predicate) = names.key(snapshot, label)? else { return Ok(ids.len()) };
        let Some(segment) = snapshot.segment(predicate, direction)? else { return Ok(ids.len()) };
        let ids = &ids[..prefix_within_limit(segment, ids)?];
        let mut found = std::mem::take(&mut names.expansion);
        found.capacity = CHUNK;
        let mut cursor = Cursor::default();
        while cursor.row < ids.len() {
            found.clear();
            segment.expand(ids, EVERY, &mut cursor, &mut found)?;
            for (row, neighbour) in found.rows.iter().zip(&found.neighbours) {
                if neighbour.tag() == Tag::Vertex {
                    out.push(*neighbour, with[*row as usize]);
                }
            }
            memory.control.work(8 * found.rows.len())?;
            held.set(out.size_bytes(), &memory)?;
        }
        names.expansion = found;
        Ok(ids.len())
    })?;
    Ok(taken)
}

/// Appends the other ends of edges whose properties pass, for a prefix of the ids; returns its length. Edges
/// without an identity have no properties.
fn filtered_walk(
    ends: Ends,
    labels: &[Arc<str>],
    tests: &[(Arc<str>, P)],
    ids: &[Id],
    with: &[u64],
    out: &mut IdBuffer,
    context: &mut Context<'_>,
) -> Result<usize> {
    let direction = if ends == Ends::Out { Direction::Out } else { Direction::In };
    let mut found = Vec::new();
    let mut edges = Vec::new();
    let (memory, mut held) = (context.memory.clone(), Reservation::default());
    let mut done = 0;
    let mut given = 0;
    while done < ids.len() && given <= BUFFER_IDS_MAX {
        let taken = context.read(|snapshot, names| {
            found.clear();
            edges.clear();
            let mut ids = &ids[done..];
            if names.ahead.is_on()
                && let Some(first) = ids.first()
            {
                let segments = edge_segments(snapshot, names, ends, labels)?;
                if let Some(entries) = names.ahead.read(snapshot, &segments, *first)? {
                    for (_, [neighbour, _, edge]) in entries {
                        if neighbour.tag() == Tag::Vertex && edge.is_bound() {
                            found.push((neighbour, with[done]));
                            edges.push(edge);
                        }
                    }
                    held.set(24 * edges.len() as u64, &memory)?;
                    return Ok(1);
                }
            }
            let mut all = Expansion { want_edges: true, ..Expansion::new(CHUNK) };
            let predicates = edge_predicates(snapshot, names, labels)?;
            // With several predicates, the edges of each vertex are read together.
            let most = if predicates.len() > 1 { 1 } else { ids.len() };
            for predicate in predicates {
                let Some(segment) = snapshot.segment(predicate, direction)? else { continue };
                ids = &ids[..prefix_within_limit(segment, &ids[..most.min(ids.len())])?];
                let mut cursor = Cursor::default();
                while cursor.row < ids.len() {
                    all.clear();
                    segment.expand(ids, EVERY, &mut cursor, &mut all)?;
                    for ((row, neighbour), edge) in all.rows.iter().zip(&all.neighbours).zip(&all.edges) {
                        if neighbour.tag() == Tag::Vertex && edge.is_bound() {
                            found.push((*neighbour, with[done + *row as usize]));
                            edges.push(*edge);
                        }
                    }
                    memory.control.work(8 * all.rows.len())?;
                    held.set(24 * edges.len() as u64, &memory)?;
                }
            }
            Ok(ids.len())
        })?;
        given += found.len();
        for (key, test) in tests {
            let rows = with_property(key, test, &edges, context)?;
            for (to, from) in rows.iter().enumerate() {
                (found[to], edges[to]) = (found[*from as usize], edges[*from as usize]);
            }
            found.truncate(rows.len());
            edges.truncate(rows.len());
        }
        found.iter().for_each(|(id, with)| out.push(*id, *with));
        done += taken;
    }
    Ok(done)
}

/// The rows of the ids (vertices or edges) with a value of `key` that passes; ascending.
fn with_property(key: &Arc<str>, test: &P, ids: &[Id], context: &mut Context<'_>) -> Result<Vec<u32>> {
    let mut rows: Vec<u32> = Vec::new();
    let control = context.control;
    context.read(|snapshot, names| {
        let keys = [key.clone()];
        if names.computed.has(key) || names.ahead.is_on() {
            for (row, id) in (0..).zip(ids) {
                let mut passed = Ok(false);
                vertex_values(snapshot, names, id.bits(), &keys, &mut |_, _, value| {
                    if let Ok(false) = passed {
                        passed = passes(test, &value, control);
                    }
                })?;
                if passed? {
                    rows.push(row);
                }
            }
            return Ok(());
        }
        let Some(predicate) = names.key(snapshot, key)? else { return Ok(()) };
        let Some(segment) = snapshot.segment(predicate, Direction::Out)? else { return Ok(()) };
        let mut found = std::mem::take(&mut names.expansion);
        found.capacity = CHUNK;
        let mut cursor = Cursor::default();
        // Consecutive ids often have the same value, whose result is cached.
        let mut last = (Id::UNBOUND, false);
        while cursor.row < ids.len() {
            found.clear();
            segment.expand(ids, EVERY, &mut cursor, &mut found)?;
            for (&row, &object) in found.rows.iter().zip(&found.neighbours) {
                if rows.last() == Some(&row) {
                    continue;
                }
                if last.0 != object {
                    let value = literal::value(snapshot, object)?;
                    last = (object, value.map_or(Ok(false), |value| passes(test, &value, control))?);
                }
                if last.1 {
                    rows.push(row);
                }
            }
        }
        names.expansion = found;
        Ok(())
    })?;
    Ok(rows)
}

/// Marks the rows for which fused steps have a result. `ids` are the ids reached so far, each with its row.
fn test_existence(
    fused_steps: &mut [FusedStep],
    ids: &[Id],
    rows: &[u64],
    found: &mut [bool],
    from: &Traverser,
    context: &mut Context<'_>,
) -> Result<()> {
    let at = |row: &u64| usize::try_from(*row).unwrap_or(usize::MAX);
    let Some((first, rest)) = fused_steps.split_first_mut() else {
        for row in rows {
            found[at(row)] = true;
        }
        return Ok(());
    };
    let tracks_read_set = context.host.tracks_read_set();
    let mut chunk = if tracks_read_set { 1 } else { CHUNK_FIRST };
    let (mut part, mut out) = (IdBuffer::default(), IdBuffer::default());
    let mut left = ids.iter().zip(rows);
    loop {
        part.clear();
        // Rows with a result are finished.
        let open = left.by_ref().filter(|(_, row)| !found[at(row)]).take(chunk);
        open.for_each(|(id, row)| part.push(*id, *row));
        if part.ids.is_empty() {
            return Ok(());
        }
        while !part.is_done() {
            out.clear();
            let (ids, rows) = (&part.ids[part.next..], &part.with[part.next..]);
            part.next += first.apply(ids, rows, &mut out, from, context)?;
            test_existence(rest, &out.ids, &out.with, found, from, context)?;
        }
        chunk = if tracks_read_set { 1 } else { next_chunk(chunk, out.ids.len()) };
    }
}

impl Step for FusedPipeline {
    fn next(&mut self, input: &mut Input<'_>, context: &mut Context<'_>) -> Result<Option<Traverser>> {
        loop {
            if let Some(from) = &self.from
                && let Some(last) = self.buffers.iter().rposition(|rows| !rows.is_done())
            {
                let (before, after) = self.buffers.split_at_mut(last + 1);
                let rows = &mut before[last];
                let (Some(step), Some(out)) = (self.fused_steps.get_mut(last), after.first_mut()) else {
                    let (id, times) = (rows.ids[rows.next], rows.with[rows.next]);
                    rows.next += 1;
                    let mut found = from.at(vertex_value(id.bits()));
                    if let Some(times) = Bulk::new(times) {
                        found.bulk = found.bulk.times(times)?;
                    }
                    return Ok(Some(found));
                };
                let chunk = if context.host.tracks_read_set() { 1 } else { self.chunk };
                let end = rows.ids.len().min(rows.next + chunk);
                out.clear();
                let (ids, with) = (&rows.ids[rows.next..end], &rows.with[rows.next..end]);
                rows.next += step.apply(ids, with, out, from, context)?;
                if self.merges && last > 0 && step.is_walk() {
                    out.merge()?;
                }
                self.chunk = next_chunk(self.chunk, out.ids.len());
                let buffered_bytes = self.buffers.iter().map(IdBuffer::size_bytes).sum();
                self.held.set(buffered_bytes, &context.memory)?;
                continue;
            }
            let Some(traverser) = input.next(context)? else { return Ok(None) };
            let Value::Vertex(vertex) = &traverser.value else {
                let what = traverser.value.type_name();
                let message = format!("a step to neighbours needs a vertex, found a {what}");
                return Err(Error::new(ErrorKind::Query, message));
            };
            self.buffers.resize_with(self.fused_steps.len() + 1, IdBuffer::default);
            self.buffers[0].clear();
            self.buffers[0].push(Id::from_bits(vertex.key), 1);
            self.from = Some(traverser);
        }
    }

    fn reset(&mut self) {
        self.from = None;
        self.buffers.iter_mut().for_each(IdBuffer::clear);
        self.held.clear();
        self.chunk = CHUNK_FIRST;
    }

    fn moves(&self) -> bool {
        true
    }

    fn absorb(&mut self, filter: Condition) -> Option<Condition> {
        match filter {
            Condition::Label(labels) if labels.iter().all(|label| is_of_one_type(label)) => {
                self.fused_steps.push(FusedStep::Labelled(labels));
                None
            }
            filter => Some(filter),
        }
    }

    fn fused_steps(&self) -> Option<Vec<FusedStep>> {
        Some(self.fused_steps.clone())
    }

    fn is_fused_pipeline(&self) -> bool {
        true
    }
}

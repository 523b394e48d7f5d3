//! Incremental scans of vertices and edges: all, or by label, key or value.
//!
//! # Shape
//! A vertex is a term with a type, a property or an edge. Vertices are returned in id order: the scan reads
//! the next keys of each key list, and ids below the smallest of their upper bounds are complete. Chunks grow
//! from a few entries to a few thousand, so the first result is cheap and no chunk takes long.
//! # Invariants
//! The graph may change between two chunks; a later chunk sees the current graph.

use super::ahead::WINDOW_MAX as WINDOW_MAX_AHEAD;
use super::ids::EVERY;
use super::names::Names;
use super::read::entries_from;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use vervet_gremlin::EdgeKey;
use vervet_model::{Direction, Id, Result, Tag};
use vervet_snapshot::Snapshot;

const WINDOW_FIRST: usize = 16;
const WINDOW_MAX: usize = 4096;

/// Cursor of a scan of all vertices.
#[derive(Clone, Debug)]
pub(crate) struct VertexScan {
    from: Option<Id>,
    window: usize,
}

impl Default for VertexScan {
    fn default() -> Self {
        Self { from: Some(Id::vertex(0)), window: WINDOW_FIRST }
    }
}

impl VertexScan {
    /// Appends the next vertices, possibly none; `false`: the scan is complete.
    pub(crate) fn next_batch(
        &mut self,
        snapshot: &dyn Snapshot,
        names: &mut Names,
        out: &mut Vec<Id>,
    ) -> Result<bool> {
        let last = Id::vertex(Id::PAYLOAD_MAX);
        let Some(from) = self.from else { return Ok(false) };
        if names.ahead.is_on() {
            // Each list costs a round trip, whatever its length; a chunk is as many as are read ahead.
            self.window = WINDOW_MAX_AHEAD;
        }
        let predicates = names.predicates(snapshot)?;
        let (start, mut end) = (out.len(), None::<Id>);
        let mut sources: Vec<(Id, Direction)> = Vec::new();
        sources.extend(predicates.types.map(|types| (types, Direction::Out)));
        for &predicate in &predicates.edges {
            sources.extend(Direction::BOTH.map(|direction| (predicate, direction)));
        }
        for &predicate in &predicates.values {
            if !predicates.edges.contains(&predicate) {
                sources.push((predicate, Direction::Out));
            }
        }
        for (predicate, direction) in sources {
            let Some(segment) = snapshot.segment(predicate, direction)? else { continue };
            // A result shorter than requested is not the end: ids below the next key are complete.
            let next = segment.keys_up_to(from, end.unwrap_or(last), self.window, out)?;
            if let Some(next) = next {
                let complete = Id::from_bits(next.bits().saturating_sub(1));
                end = Some(end.map_or(complete, |end| end.min(complete)));
            }
        }
        sort_and_dedup(out, start, end);
        names.ahead.found(out[start..].iter().copied());
        self.from = end.map(successor);
        self.window = (self.window * 4).min(WINDOW_MAX);
        Ok(self.from.is_some() || out.len() > start)
    }
}

/// Sorts and deduplicates `out` from `start` on, and drops ids above `end`.
fn sort_and_dedup(out: &mut Vec<Id>, start: usize, end: Option<Id>) {
    let mut found = out.split_off(start);
    if let Some(end) = end {
        found.retain(|id| *id <= end);
    }
    found.sort_unstable();
    found.dedup();
    out.append(&mut found);
}

fn successor(id: Id) -> Id {
    Id::from_bits(id.bits().saturating_add(1))
}

/// Cursor of a scan of the elements with one of several objects: vertices by label, elements by value.
#[derive(Clone, Debug)]
pub(crate) struct ObjectScan {
    predicate: Id,
    objects: Vec<Id>,
    from: Option<Id>,
    last: Id,
    window: usize,
}

impl ObjectScan {
    /// A scan of elements with this tag.
    pub(crate) fn new(predicate: Id, objects: Vec<Id>, tag: Tag) -> Self {
        let (from, last) = (Some(Id::new(tag, 0)), Id::new(tag, Id::PAYLOAD_MAX));
        Self { predicate, objects, from, last, window: WINDOW_FIRST }
    }

    /// Appends the next elements, ascending and distinct; `false`: the scan is complete.
    pub(crate) fn next_batch(&mut self, snapshot: &dyn Snapshot, out: &mut Vec<Id>) -> Result<bool> {
        let Some(from) = self.from.take() else { return Ok(false) };
        let Some(segment) = snapshot.segment(self.predicate, Direction::In)? else { return Ok(false) };
        let (start, mut end) = (out.len(), None::<Id>);
        let mut found = Vec::with_capacity(self.window);
        for &object in &self.objects {
            found.clear();
            segment.entries(object, [from, Id::UNBOUND, Id::UNBOUND], self.window, &mut found)?;
            if let Some(&[last, ..]) = found.last().filter(|_| found.len() >= self.window)
                && last <= self.last
            {
                end = Some(end.map_or(last, |end| end.min(last)));
            }
            out.extend(found.iter().map(|[subject, ..]| *subject).take_while(|id| *id <= self.last));
        }
        sort_and_dedup(out, start, end);
        self.from = end.map(successor);
        self.window = (self.window * 4).min(WINDOW_MAX);
        Ok(self.from.is_some() || out.len() > start)
    }
}

/// Cursor of a scan of the edges.
#[derive(Clone, Debug)]
pub(crate) struct EdgeScan {
    /// The scanned predicates; `None`: all that lead to vertices.
    only: Option<Vec<Id>>,
    /// Index of the current predicate.
    predicate: usize,
    /// The first source after the sources already read; `None`: the current predicate has no more.
    from: Option<Id>,
    sources: VecDeque<Id>,
    /// The next entry of the first source.
    entry: [Id; 3],
    window: usize,
}

impl EdgeScan {
    /// A scan of the edges of these predicates, or of all.
    pub(crate) fn new(only: Option<Vec<Id>>) -> Self {
        Self {
            only,
            predicate: 0,
            from: Some(Id::vertex(0)),
            sources: VecDeque::new(),
            entry: [Id::UNBOUND; 3],
            window: WINDOW_FIRST,
        }
    }

    /// Appends the next edges, possibly none; `false`: the scan is complete.
    pub(crate) fn next_batch(
        &mut self,
        snapshot: &dyn Snapshot,
        names: &mut Names,
        out: &mut Vec<EdgeKey>,
    ) -> Result<bool> {
        let predicates = names.predicates(snapshot)?;
        let is_wanted = |id: &&Id| self.only.as_ref().is_none_or(|only| only.contains(*id));
        let Some(&predicate) = predicates.edges.iter().filter(is_wanted).nth(self.predicate) else {
            return Ok(false);
        };
        let segment = match snapshot.segment(predicate, Direction::Out)? {
            Some(segment) if self.from.is_some() || !self.sources.is_empty() => segment,
            _ => {
                self.predicate += 1;
                self.from = Some(Id::vertex(0));
                self.sources.clear();
                self.entry = [Id::UNBOUND; 3];
                return Ok(true);
            }
        };
        if let (true, Some(from)) = (self.sources.is_empty(), self.from) {
            let mut sources = Vec::new();
            self.from = segment.keys_up_to(from, Id::vertex(Id::PAYLOAD_MAX), self.window, &mut sources)?;
            names.ahead.found(sources.iter().copied());
            self.sources.extend(sources);
        }
        let (mut found, mut room) = (Vec::new(), self.window);
        while let Some(&source) = self.sources.front().filter(|_| room > 0) {
            found.clear();
            let ahead = match self.entry == [Id::UNBOUND; 3] {
                true => names.ahead.read(snapshot, &[(predicate, Direction::Out)], source)?,
                false => None,
            };
            let is_whole = ahead.is_some();
            match ahead {
                Some(entries) => found.extend(entries.into_iter().map(|(_, entry)| entry)),
                None => segment.entries(source, self.entry, room, &mut found)?,
            }
            match found.last() {
                Some(&[target, graph, edge]) if found.len() >= room && !is_whole => {
                    self.entry = [target, graph, successor(edge)];
                }
                _ => {
                    self.sources.pop_front();
                    self.entry = [Id::UNBOUND; 3];
                }
            }
            // A source without entries counts as work, too.
            room -= found.len().max(1).min(room);
            out.extend(found.iter().filter(|[target, ..]| target.tag() == Tag::Vertex).map(
                |&[target, _, edge]| EdgeKey {
                    edge: if edge.is_bound() { edge.bits() } else { 0 },
                    source: source.bits(),
                    label: predicate.bits(),
                    target: target.bits(),
                },
            ));
        }
        self.window = (self.window * 4).min(WINDOW_MAX);
        Ok(true)
    }
}

/// The number of edges of these predicates, or of all; a sum of degrees where every entry is an edge.
pub(crate) fn edge_count(
    snapshot: &dyn Snapshot,
    names: &mut Names,
    only: Option<&[Id]>,
    tick: &mut dyn FnMut() -> Result<()>,
) -> Result<u128> {
    let mut count = 0;
    let (mut keys, mut degrees) = (Vec::new(), Vec::new());
    let predicates = names.predicates(snapshot)?;
    for &predicate in &predicates.edges {
        let is_wanted = only.is_none_or(|only| only.contains(&predicate));
        let Some(segment) = snapshot.segment(predicate, Direction::Out)?.filter(|_| is_wanted) else {
            continue;
        };
        let of_vertices = segment.statistics().vertices_only;
        let mut from = Some(Id::vertex(0));
        while let Some(first) = from {
            keys.clear();
            from = segment.keys_up_to(first, Id::vertex(Id::PAYLOAD_MAX), WINDOW_MAX, &mut keys)?;
            tick()?;
            if of_vertices {
                segment.degrees(&keys, EVERY, &mut degrees)?;
                count += degrees.iter().map(|degree| u128::from(*degree)).sum::<u128>();
                continue;
            }
            names.ahead.found(keys.iter().copied());
            for &key in &keys {
                if let Some(entries) = names.ahead.read(snapshot, &[(predicate, Direction::Out)], key)? {
                    count += entries.iter().filter(|(_, [target, ..])| target.is_vertex()).count() as u128;
                    continue;
                }
                let mut left = 0;
                entries_from(segment, key, [Id::UNBOUND; 3], &mut |[target, ..]| {
                    // Vertices sort first.
                    let is_edge = target.tag() == Tag::Vertex;
                    left += u128::from(is_edge);
                    if is_edge { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                })?;
                count += left;
                tick()?;
            }
        }
    }
    Ok(count)
}

/// Cursor of a scan of the vertices or edges with a key.
#[derive(Clone, Debug)]
pub(crate) struct KeyScan {
    predicate: Id,
    from: Option<Id>,
    last: Id,
    window: usize,
}

impl KeyScan {
    /// A scan of elements with this tag.
    pub(crate) fn new(predicate: Id, tag: Tag) -> Self {
        let (from, last) = (Some(Id::new(tag, 0)), Id::new(tag, Id::PAYLOAD_MAX));
        Self { predicate, from, last, window: WINDOW_FIRST }
    }

    /// Appends the next elements, ascending, possibly none; `false`: the scan is complete. A returned element
    /// may have lost the key since.
    pub(crate) fn next_batch(&mut self, snapshot: &dyn Snapshot, out: &mut Vec<Id>) -> Result<bool> {
        let Some(from) = self.from.take() else { return Ok(false) };
        let Some(segment) = snapshot.segment(self.predicate, Direction::Out)? else { return Ok(false) };
        let start = out.len();
        self.from = segment.keys_up_to(from, self.last, self.window, out)?;
        self.window = (self.window * 4).min(WINDOW_MAX);
        Ok(self.from.is_some() || out.len() > start)
    }
}

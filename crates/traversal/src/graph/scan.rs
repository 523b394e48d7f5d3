//! All vertices, all edges, and those that have a key, a piece at a time.
//!
//! # Shape
//! A vertex is whatever has a type, a property, or an edge. Vertices come in the order of their numbers: of each list of keys
//! the next few are read, and what lies below the least of their ends is complete.
//! # Invariants
//! Between two pieces the graph may change; what is behind the border of a piece is seen as it is then.

use super::names::Names;
use super::read::entries;
use vervet_gremlin::EdgeKey;
use vervet_model::{Direction, Id, Result, Tag};
use vervet_snapshot::Snapshot;

const WINDOW_FIRST: usize = 16;
const WINDOW_MAX: usize = 4096;

/// Where a scan of the vertices is.
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
    /// Appends some more vertices; `false`: there are no more.
    pub(crate) fn more(
        &mut self,
        snapshot: &dyn Snapshot,
        names: &mut Names,
        out: &mut Vec<Id>,
    ) -> Result<bool> {
        let last = Id::vertex(Id::PAYLOAD_MAX);
        while let Some(from) = self.from {
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
            let mut keys = Vec::new();
            for (predicate, direction) in sources {
                let Some(segment) = snapshot.segment(predicate, direction)? else { continue };
                let bound = end.unwrap_or(last);
                let mut from = Some(from);
                // Fewer keys than asked for do not mean the end.
                while let Some(first) = from.filter(|_| keys.is_empty()) {
                    from = segment.keys_up_to(first, bound, self.window, &mut keys)?;
                }
                if let (Some(_), Some(&key)) = (from, keys.last()) {
                    end = Some(end.map_or(key, |end| end.min(key)));
                }
                out.append(&mut keys);
            }
            if let Some(end) = end {
                let mut kept = start;
                for i in start..out.len() {
                    if out[i] <= end {
                        out[kept] = out[i];
                        kept += 1;
                    }
                }
                out.truncate(kept);
            }
            out[start..].sort_unstable();
            let mut unique = out.split_off(start);
            unique.dedup();
            out.append(&mut unique);
            self.from = end.map(|end| Id::from_bits(end.bits() + 1));
            self.window = (self.window * 4).min(WINDOW_MAX);
            if out.len() > start {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Where a scan of the edges is.
#[derive(Clone, Debug, Default)]
pub(crate) struct EdgeScan {
    /// The predicate, and the source to go on with.
    at: (usize, Option<Id>),
    started: bool,
}

impl EdgeScan {
    /// Appends some more edges; `false`: there are no more.
    pub(crate) fn more(
        &mut self,
        snapshot: &dyn Snapshot,
        names: &mut Names,
        out: &mut Vec<EdgeKey>,
    ) -> Result<bool> {
        let predicates = names.predicates(snapshot)?;
        if !self.started {
            self.started = true;
            self.at = (0, Some(Id::vertex(0)));
        }
        while let Some(&predicate) = predicates.edges.get(self.at.0) {
            let (Some(from), Some(segment)) = (self.at.1, snapshot.segment(predicate, Direction::Out)?)
            else {
                self.at = (self.at.0 + 1, Some(Id::vertex(0)));
                continue;
            };
            let mut sources = Vec::new();
            self.at.1 = segment.keys_up_to(from, Id::vertex(Id::PAYLOAD_MAX), 64, &mut sources)?;
            let before = out.len();
            for source in sources.into_iter().filter(|source| source.tag() == Tag::Vertex) {
                entries(segment, source, &mut |[target, _, edge]| {
                    if target.tag() == Tag::Vertex {
                        let edge = if edge.is_bound() { edge.bits() } else { 0 };
                        let (source, target) = (source.bits(), target.bits());
                        out.push(EdgeKey { edge, source, label: predicate.bits(), target });
                    }
                })?;
            }
            if out.len() > before {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Where a scan of the vertices or the edges that have a key is.
#[derive(Clone, Debug)]
pub(crate) struct KeyScan {
    predicate: Id,
    from: Option<Id>,
    last: Id,
    window: usize,
}

impl KeyScan {
    /// Of elements with this tag.
    pub(crate) fn new(predicate: Id, tag: Tag) -> Self {
        let (from, last) = (Some(Id::new(tag, 0)), Id::new(tag, Id::PAYLOAD_MAX));
        Self { predicate, from, last, window: WINDOW_FIRST }
    }

    /// Appends some more, ascending; `false`: there are no more. Some may have lost the key.
    pub(crate) fn more(&mut self, snapshot: &dyn Snapshot, out: &mut Vec<Id>) -> Result<bool> {
        let start = out.len();
        while let Some(from) = self.from {
            let Some(segment) = snapshot.segment(self.predicate, Direction::Out)? else { break };
            self.from = segment.keys_up_to(from, self.last, self.window, out)?;
            self.window = (self.window * 4).min(WINDOW_MAX);
            if out.len() > start {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

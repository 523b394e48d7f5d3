//! Reachability over edges with one label: breadth-first search with a bit map of visited vertices.
//!
//! # Cost
//! One batch expansion for each thousand vertices of the frontier; `vertices / 8` bytes for the bit map.

use crate::{Graph, Vertex};
use vervet_model::{Direction, Id, Result};
use vervet_snapshot::{Cursor, EntryFilter, Expansion};

const BATCH: usize = 1024;

impl Graph<'_> {
    /// The vertices reachable from `start` over one or more edges with this label, ascending by number;
    /// `start` itself only if it is on a cycle.
    ///
    /// # Errors
    /// Damaged data.
    pub fn reach(&self, start: Vertex, label: &str, direction: Direction) -> Result<Vec<Vertex>> {
        let Some(segment) = self.segment(label, direction)? else { return Ok(Vec::new()) };
        let filter = EntryFilter::ANY_GRAPH;
        let words = usize::try_from(self.snapshot.vertex_count().div_ceil(64)).unwrap_or(usize::MAX);
        let mut seen = vec![0_u64; words];
        let mut frontier = vec![start.0];
        let mut next = Vec::new();
        let mut expansion = Expansion::new(4 * BATCH);
        while !frontier.is_empty() {
            for keys in frontier.chunks(BATCH) {
                let mut cursor = Cursor::default();
                while cursor.row < keys.len() {
                    expansion.clear();
                    segment.expand(keys, filter, &mut cursor, &mut expansion)?;
                    for &id in expansion.neighbours.iter().filter(|id| id.is_vertex()) {
                        let word = usize::try_from(id.payload() / 64).unwrap_or(usize::MAX);
                        let bit = 1 << (id.payload() % 64);
                        if let Some(word) = seen.get_mut(word)
                            && *word & bit == 0
                        {
                            *word |= bit;
                            next.push(id);
                        }
                    }
                }
            }
            std::mem::swap(&mut frontier, &mut next);
            next.clear();
        }
        let mut reached = Vec::new();
        for (index, mut word) in (0_u64..).zip(seen) {
            while word != 0 {
                reached.push(Vertex(Id::vertex(index * 64 + u64::from(word.trailing_zeros()))));
                word &= word - 1;
            }
        }
        Ok(reached)
    }
}

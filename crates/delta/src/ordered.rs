//! Ordered access to the entries of a key where entries or order property have changed since the build.
//!
//! # Shape
//! An order column (see `vervet_store`) belongs to the store. If the predicate that it orders or the ordering
//! property has changed, the segment of a version is wrapped in an [`OrderOverlay`], which looks up order
//! keys in the version. All such segments of a version are created together, on first use.
//! # Cost
//! All entries of the key, a look-up for each, and a sort: `O(degree)`, not `O(log(degree))`, until the next
//! store is built. Creation visits at worst every edge that has the property.
//! # Not here
//! Predicates without an order in the store: an order is declared when a store is built.

use crate::Version;
use crate::merged::EVERY;
use std::sync::Arc;
use vervet_model::{Direction, Id, Result, Tag, order_key};
use vervet_snapshot::{
    Cursor, EntryFilter, Expansion, GraphFilter, OrderRange, OrderedEntry, Segment, SegmentStatistics,
};

/// Number of entries, and of keys, that are read ahead.
const AHEAD: usize = 1024;

/// A segment with its order. See the header of this file.
pub(crate) struct OrderOverlay {
    segment: Arc<dyn Segment>,
    property: Id,
    /// The segment of the property, from edges or vertices to values.
    values: Option<Arc<dyn Segment>>,
    /// Whether the property belongs to the edges, not to the neighbours.
    by_edges: bool,
}

/// The ordered segments of the predicates whose order has changed, by direction; sorted by predicate.
pub(crate) type OrderedList = Arc<[(Id, [Option<Arc<OrderOverlay>>; 2])]>;

impl Version {
    /// The segment of a predicate if it is ordered and its order differs from the store's.
    pub(crate) fn ordered(&self, predicate: Id, direction: Direction) -> Result<Option<&Arc<OrderOverlay>>> {
        if self.predicates.is_empty() || self.base.orders().next().is_none() {
            return Ok(None);
        }
        let list = match self.ordered_list.get() {
            Some(list) => list,
            None => {
                let list = self.make_ordered()?;
                self.ordered_list.get_or_init(|| list)
            }
        };
        let at = list.binary_search_by_key(&predicate, |(of, _)| *of);
        let found = at.ok().and_then(|at| list.get(at));
        Ok(found.and_then(|(_, sides)| sides[direction as usize].as_ref()))
    }

    fn make_ordered(&self) -> Result<OrderedList> {
        let has_changed = |id| self.predicates.get(id).is_some();
        let mut list = Vec::new();
        for (predicate, property) in self.base.orders() {
            if !has_changed(predicate) && !has_changed(property) {
                continue;
            }
            let values = self.plain_segment_arc(property, Direction::Out)?;
            let by_edges = match &values {
                Some(values) => self.has_edge_with(predicate, &**values)?,
                None => false,
            };
            let side = |direction| -> Result<Option<Arc<OrderOverlay>>> {
                let segment = self.plain_segment_arc(predicate, direction)?;
                let values = values.clone();
                Ok(segment.map(|segment| Arc::new(OrderOverlay { segment, property, values, by_edges })))
            };
            list.push((predicate, [side(Direction::Out)?, side(Direction::In)?]));
        }
        Ok(list.into())
    }

    /// Whether an edge of the predicate has a value of the property.
    fn has_edge_with(&self, predicate: Id, values: &dyn Segment) -> Result<bool> {
        let mut keys = Vec::new();
        let mut next = Some(Id::edge(0));
        while let Some(from) = next.filter(|from| from.tag() == Tag::Edge) {
            keys.clear();
            next = values.keys(from, AHEAD, &mut keys)?;
            for edge in keys.iter().filter(|key| key.tag() == Tag::Edge) {
                let row = self.find_edge(*edge)?;
                if row.is_some_and(|row| row[1] == predicate) && order_key_of(values, *edge)?.is_bound() {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

/// The order key of the least value of `subject`; unbound if no value has one.
fn order_key_of(values: &dyn Segment, subject: Id) -> Result<Id> {
    let mut found = Vec::new();
    values.neighbours(subject, EVERY, &mut found)?;
    let keys = found.into_iter().map(order_key).filter(|key| key.is_bound());
    Ok(keys.min().unwrap_or_default())
}

impl std::fmt::Debug for OrderOverlay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OrderOverlay").field("property", &self.property).finish_non_exhaustive()
    }
}

impl Segment for OrderOverlay {
    fn order(&self) -> Option<Id> {
        Some(self.property)
    }

    fn ordered(
        &self,
        key: Id,
        range: &OrderRange,
        graph: GraphFilter,
        out: &mut Vec<OrderedEntry>,
    ) -> Result<()> {
        let bounded = range.from.is_bound() || range.before.is_bound();
        let (mut all, mut entries) = (Vec::new(), Vec::new());
        let mut from = Some([Id::UNBOUND; 3]);
        while let Some(first) = from {
            entries.clear();
            self.segment.entries(key, first, AHEAD, &mut entries)?;
            from =
                (entries.last().filter(|_| entries.len() == AHEAD)).map(|last| crate::merged::after(*last));
            for [neighbour, of, edge] in entries.iter().copied().filter(|entry| graph.passes(entry[1])) {
                let subject = if self.by_edges { edge } else { neighbour };
                let order_key = match &self.values {
                    Some(values) if subject.is_bound() => order_key_of(&**values, subject)?,
                    _ => Id::UNBOUND,
                };
                let is_inside = order_key.is_bound()
                    && order_key >= range.from
                    && (!range.before.is_bound() || order_key < range.before);
                if is_inside || !bounded {
                    all.push(OrderedEntry { neighbour, graph: of, edge, order_key });
                }
            }
        }
        // Stable, so equal order keys stay ordered by neighbour, graph, edge.
        all.sort_by_key(|entry| entry.order_key);
        if range.descending {
            all.reverse();
        }
        out.extend(all.into_iter().take(range.limit));
        Ok(())
    }

    fn statistics(&self) -> &SegmentStatistics {
        self.segment.statistics()
    }

    fn expand(
        &self,
        keys: &[Id],
        filter: EntryFilter,
        cursor: &mut Cursor,
        out: &mut Expansion,
    ) -> Result<()> {
        self.segment.expand(keys, filter, cursor, out)
    }

    fn split(&self, key: Id, parts: usize, entries_min: usize, out: &mut Vec<Id>) -> Result<()> {
        self.segment.split(key, parts, entries_min, out)
    }

    fn degrees(&self, keys: &[Id], filter: EntryFilter, out: &mut Vec<u64>) -> Result<()> {
        self.segment.degrees(keys, filter, out)
    }

    fn check(&self, keys: &[Id], neighbours: &[Id], filter: EntryFilter, out: &mut Vec<u32>) -> Result<()> {
        self.segment.check(keys, neighbours, filter, out)
    }

    fn check_constant(
        &self,
        keys: &[Id],
        neighbour: Id,
        filter: EntryFilter,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        self.segment.check_constant(keys, neighbour, filter, out)
    }

    fn neighbours(&self, key: Id, filter: EntryFilter, out: &mut Vec<Id>) -> Result<()> {
        self.segment.neighbours(key, filter, out)
    }

    fn keys(&self, from: Id, limit: usize, out: &mut Vec<Id>) -> Result<Option<Id>> {
        self.segment.keys(from, limit, out)
    }

    fn keys_up_to(&self, from: Id, last: Id, limit: usize, out: &mut Vec<Id>) -> Result<Option<Id>> {
        self.segment.keys_up_to(from, last, limit, out)
    }

    fn keys_below(&self, key: Id) -> Result<u64> {
        self.segment.keys_below(key)
    }

    fn entries(&self, key: Id, from: [Id; 3], limit: usize, out: &mut Vec<[Id; 3]>) -> Result<()> {
        self.segment.entries(key, from, limit, out)
    }
}

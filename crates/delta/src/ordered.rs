//! Ordered access to the entries of a key where entries or order property have changed since the build.
//!
//! # Shape
//! An order column (see `vervet_store`) belongs to the store. If the predicate that it orders or the ordering
//! property has changed, the segment of a version is wrapped in an [`OrderOverlay`], which looks up order
//! keys in the version. `version_orders` creates all such segments of a version together.
//! # Cost
//! All entries of the key, a look-up for each, and a sort: `O(degree)`, not `O(log(degree))`, until the next
//! store is built. Creation visits at worst every edge that has the property.
//! # Not here
//! Predicates without an order in the store: an order is declared when a store is built.

use std::sync::Arc;
use vervet_model::{Id, Result, order_key};
use vervet_snapshot::{
    ContentId, Cursor, EntryFilter, Expansion, GraphFilter, OrderRange, OrderedEntry, Segment,
    SegmentStatistics, successor,
};

/// Number of entries that are read ahead.
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

impl OrderOverlay {
    pub(crate) fn new(
        segment: Arc<dyn Segment>,
        property: Id,
        values: Option<Arc<dyn Segment>>,
        by_edges: bool,
    ) -> Self {
        Self { segment, property, values, by_edges }
    }
}

/// The order key of the least value of `subject`; unbound if no value has one.
pub(crate) fn order_key_of(values: &dyn Segment, subject: Id) -> Result<Id> {
    let mut found = Vec::new();
    values.neighbours(subject, EntryFilter::ALL, &mut found)?;
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
            from = (entries.last().filter(|_| entries.len() == AHEAD)).map(|last| successor(*last));
            for [neighbour, of, edge] in entries.iter().copied().filter(|entry| graph.matches(entry[1])) {
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

    fn content_id(&self) -> Option<ContentId> {
        self.segment.content_id()
    }

    fn is_remote(&self, keys: Option<&[Id]>) -> bool {
        self.segment.is_remote(keys)
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

//! The ordered segments of a version, created together on first use.

use crate::Version;
use crate::ordered::{OrderOverlay, OrderedList, order_key_of};
use std::sync::Arc;
use vervet_model::{Direction, Id, Result, Tag};
use vervet_snapshot::Segment;

/// Number of keys that are read ahead.
const KEYS_AHEAD: usize = 1024;

impl Version {
    /// The segment of a predicate if it is ordered and its order differs from the store's.
    pub(crate) fn ordered(&self, predicate: Id, direction: Direction) -> Result<Option<&Arc<OrderOverlay>>> {
        if self.predicates.is_empty() || self.base.orders().is_empty() {
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
        for &(predicate, property) in self.base.orders() {
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
                Ok(segment.map(|segment| Arc::new(OrderOverlay::new(segment, property, values, by_edges))))
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
            next = values.keys(from, KEYS_AHEAD, &mut keys)?;
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

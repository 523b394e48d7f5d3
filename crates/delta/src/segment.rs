//! An overlay as a segment: each operation has a file of its own.

use crate::{Overlay, check, degrees, expand, keys, neighbours};
use vervet_model::{Id, Result};
use vervet_snapshot::{
    ContentId, Cursor, EntryFilter, Expansion, GraphFilter, OrderRange, OrderedEntry, Segment,
    SegmentStatistics,
};

impl Segment for Overlay {
    fn statistics(&self) -> &SegmentStatistics {
        &self.statistics
    }

    fn expand(
        &self,
        keys: &[Id],
        filter: EntryFilter,
        cursor: &mut Cursor,
        out: &mut Expansion,
    ) -> Result<()> {
        expand::expand(self, keys, filter, cursor, out)
    }

    fn split(&self, key: Id, parts: usize, entries_min: usize, out: &mut Vec<Id>) -> Result<()> {
        expand::split(self, key, parts, entries_min, out)
    }

    fn degrees(&self, keys: &[Id], filter: EntryFilter, out: &mut Vec<u64>) -> Result<()> {
        degrees::degrees(self, keys, filter, out)
    }

    fn check(&self, keys: &[Id], neighbours: &[Id], filter: EntryFilter, out: &mut Vec<u32>) -> Result<()> {
        check::pairs(self, keys, neighbours, filter, out)
    }

    fn check_constant(
        &self,
        keys: &[Id],
        neighbour: Id,
        filter: EntryFilter,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        check::constant(self, keys, neighbour, filter, out)
    }

    fn neighbours(&self, key: Id, filter: EntryFilter, out: &mut Vec<Id>) -> Result<()> {
        neighbours::neighbours(self, key, filter, out)
    }

    fn content_id(&self) -> Option<ContentId> {
        // A lower segment without identity must not be copied, nor what is made of it.
        let is_copyable = self.lower.as_ref().is_none_or(|lower| lower.content_id().is_some());
        is_copyable.then(|| *self.content.get_or_init(ContentId::new))
    }

    fn is_remote(&self, keys: Option<&[Id]>) -> bool {
        self.lower.as_ref().is_some_and(|lower| lower.is_remote(keys))
    }

    fn keys(&self, from: Id, limit: usize, out: &mut Vec<Id>) -> Result<Option<Id>> {
        keys::keys(self, from, limit, out)
    }

    fn keys_up_to(&self, from: Id, last: Id, limit: usize, out: &mut Vec<Id>) -> Result<Option<Id>> {
        vervet_snapshot::keys_up_to(self, from, last, limit, out)
    }

    fn order(&self) -> Option<Id> {
        None
    }

    fn ordered(
        &self,
        _key: Id,
        _range: &OrderRange,
        _graph: GraphFilter,
        _out: &mut Vec<OrderedEntry>,
    ) -> Result<()> {
        Err(vervet_snapshot::no_order_error())
    }

    fn keys_below(&self, key: Id) -> Result<u64> {
        keys::keys_below(self, key)
    }

    fn entries(&self, key: Id, from: [Id; 3], limit: usize, out: &mut Vec<[Id; 3]>) -> Result<()> {
        neighbours::entries(self, key, from, limit, out)
    }
}

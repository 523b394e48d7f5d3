//! Texts of recently compared literals, so that a join or an aggregate that compares a text with many others
//! reads it once.
//!
//! # Shape
//! A direct-mapped cache; the number of a literal determines its slot. Each thread of a query has one, which
//! the contexts of its batches pass on. It starts small, since most queries compare few texts, and grows with
//! the texts read.
//! # Cost
//! 2.5 KiB on first use, up to 160 KiB, and at most [`SLOTS_MAX`] times [`TEXT_BYTES_MAX`] for the texts.

use std::cmp::Ordering;
use vervet_model::{Id, Inline, LiteralKind, Result, Tag, TermParts};
use vervet_snapshot::Snapshot;

/// Slots on first use; a power of two, as the factor of growth.
const SLOTS_FIRST: usize = 64;
const SLOTS_MAX: usize = 4096;
const GROWTH: usize = 8;

/// Texts read for each slot before the cache grows.
const READS_A_SLOT: usize = 2;

/// Longer texts are not cached.
const TEXT_BYTES_MAX: usize = 256;

pub(crate) struct TextCache {
    slots: Vec<Slot>,
    /// Texts read since the last growth.
    reads: usize,
}

#[derive(Clone, Default)]
struct Slot {
    id: Id,
    /// The text of an `xsd:string`; empty for every other literal, and for a long text.
    text: String,
    is_text: bool,
}

impl Default for TextCache {
    fn default() -> Self {
        Self { slots: vec![Slot::default(); SLOTS_FIRST], reads: 0 }
    }
}

impl TextCache {
    fn slot(&self, id: Id) -> usize {
        // Numbers of literals in one batch are often near each other.
        usize::try_from(id.payload()).unwrap_or(usize::MAX) % self.slots.len()
    }

    /// Grows if many texts have been read.
    fn grow(&mut self) {
        if self.reads < READS_A_SLOT * self.slots.len() || self.slots.len() >= SLOTS_MAX {
            return;
        }
        self.reads = 0;
        let more = vec![Slot::default(); (self.slots.len() * GROWTH).min(SLOTS_MAX)];
        for slot in std::mem::replace(&mut self.slots, more) {
            if slot.id.is_bound() {
                let at = self.slot(slot.id);
                self.slots[at] = slot;
            }
        }
    }

    /// The order of two stored literals, if both are of type `xsd:string` and not long; and the number of
    /// bytes read.
    pub(crate) fn order(
        &mut self,
        a: Id,
        b: Id,
        snapshot: &dyn Snapshot,
        scratch: &mut String,
    ) -> Result<Option<(Ordering, usize)>> {
        let is_text = |id: Id| matches!(id.tag(), Tag::Literal | Tag::ShortString);
        self.grow();
        let (at, other) = (self.slot(a), self.slot(b));
        if !is_text(a) || !is_text(b) || at == other {
            return Ok(None);
        }
        let bytes = self.load(at, a, snapshot, scratch)? + self.load(other, b, snapshot, scratch)?;
        let (a, b) = (&self.slots[at], &self.slots[other]);
        Ok((a.is_text && b.is_text).then(|| (a.text.cmp(&b.text), bytes)))
    }

    /// Reads the text of a literal unless it is cached; returns the number of bytes read.
    fn load(&mut self, at: usize, id: Id, snapshot: &dyn Snapshot, scratch: &mut String) -> Result<usize> {
        let Slot { id: cached, text, is_text } = &mut self.slots[at];
        if *cached == id {
            return Ok(0);
        }
        self.reads += 1;
        text.clear();
        (*cached, *is_text) = (Id::UNBOUND, false);
        let mut bytes = 0;
        if let Some(inline) = Inline::from_id(id) {
            *is_text = true;
            text.push_str(inline.as_str().unwrap_or_default());
        } else {
            snapshot.read_term(id, scratch, &mut |parts| match parts {
                TermParts::Literal { head, tail, kind: LiteralKind::String }
                    if head.len() + tail.len() <= TEXT_BYTES_MAX =>
                {
                    (bytes, *is_text) = (head.len() + tail.len(), true);
                    text.push_str(head);
                    text.push_str(tail);
                }
                _ => {}
            })?;
        }
        *cached = id;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_growing_cache_keeps_its_texts() {
        let mut cache = TextCache::default();
        for number in 0..SLOTS_FIRST as u64 {
            // An odd factor: each has its own slot.
            let id = Id::new(Tag::Literal, 7 * number + 1);
            let at = cache.slot(id);
            cache.slots[at] = Slot { id, text: number.to_string(), is_text: true };
        }
        cache.grow();
        assert_eq!(cache.slots.len(), SLOTS_FIRST, "nothing has been read");
        for expected in [512, 4096, 4096] {
            cache.reads = READS_A_SLOT * cache.slots.len();
            cache.grow();
            assert_eq!(cache.slots.len(), expected);
            let kept = cache.slots.iter().enumerate().filter(|(_, slot)| slot.id.is_bound());
            assert_eq!(kept.clone().count(), SLOTS_FIRST);
            assert!(kept.clone().all(|(at, slot)| cache.slot(slot.id) == at && slot.is_text));
        }
    }
}

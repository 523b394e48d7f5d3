//! Texts of recently compared literals, so that a join or an aggregate that compares a text with many others
//! reads it once.
//!
//! # Shape
//! A direct-mapped cache; the number of a literal determines its slot. Each thread of a query has one, which
//! the contexts of its batches pass on.
//! # Cost
//! 128 KiB on first use, and at most [`SLOTS`] times [`TEXT_BYTES_MAX`] for the texts.

use std::cmp::Ordering;
use vervet_model::{Id, Inline, LiteralKind, Result, Tag, TermParts};
use vervet_snapshot::Snapshot;

const SLOTS: usize = 4096;

/// Longer texts are not cached.
const TEXT_BYTES_MAX: usize = 256;

pub(crate) struct TextCache(Vec<Slot>);

#[derive(Clone, Default)]
struct Slot {
    id: Id,
    /// The text of an `xsd:string`; empty for every other literal, and for a long text.
    text: String,
    is_text: bool,
}

impl Default for TextCache {
    fn default() -> Self {
        Self(vec![Slot::default(); SLOTS])
    }
}

impl TextCache {
    fn slot(id: Id) -> usize {
        // Numbers of literals in one batch are often near each other.
        usize::try_from(id.payload()).unwrap_or(usize::MAX) % SLOTS
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
        let (at, other) = (Self::slot(a), Self::slot(b));
        if !is_text(a) || !is_text(b) || at == other {
            return Ok(None);
        }
        let bytes = self.load(at, a, snapshot, scratch)? + self.load(other, b, snapshot, scratch)?;
        let (a, b) = (&self.0[at], &self.0[other]);
        Ok((a.is_text && b.is_text).then(|| (a.text.cmp(&b.text), bytes)))
    }

    /// Reads the text of a literal unless it is cached; returns the number of bytes read.
    fn load(&mut self, at: usize, id: Id, snapshot: &dyn Snapshot, scratch: &mut String) -> Result<usize> {
        let Slot { id: cached, text, is_text } = &mut self.0[at];
        if *cached == id {
            return Ok(0);
        }
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

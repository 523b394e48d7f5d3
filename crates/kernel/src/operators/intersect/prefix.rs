//! The intersection of all legs but the last.

use crate::operators::intersect::leg::OrderedLegs;
use crate::operators::sorted_ids::retain_common;
use crate::pipeline::chain::Run;
use crate::pipeline::control::Control;
use vervet_model::{Id, Result};

/// Maximum length of a prefix that is compared completely with each entry: a few vector comparisons,
/// branch-free.
pub(crate) const LANES: usize = 8;

/// The intersection of all legs but the last, cached while their keys are unchanged.
#[derive(Default)]
pub(crate) struct Prefix {
    /// Leg and key of each intersected adjacency.
    of: Vec<(usize, Id)>,
    list: Vec<Id>,
    scratch: Vec<Id>,
    /// Bit set of `list` over vertex numbers, if filled.
    words: Vec<u64>,
    has_bitset: bool,
    /// `list`, padded with [`Id::UNBOUND`], if it fits.
    lanes: [Id; LANES],
    /// Bytes counted for `list` and `scratch`.
    list_bytes: u64,
    scratch_bytes: u64,
}

impl Prefix {
    /// The vertices; valid after [`Prefix::load`].
    pub(crate) fn list(&self) -> &[Id] {
        &self.list
    }

    pub(crate) fn load(
        &mut self,
        input: OrderedLegs<'_, '_>,
        row: usize,
        control: &Control<'_>,
    ) -> Result<()> {
        let OrderedLegs { legs, prefix: order, .. } = input;
        let same = self.of.len() == order.len()
            && order.iter().zip(&self.of).all(|(&leg, &of)| of == (leg, legs[leg].keys[row]));
        if same {
            return Ok(());
        }
        self.clear_bitset();
        self.of.clear();
        self.list.clear();
        for (at, &leg) in order.iter().enumerate() {
            let (target, counted) = match at {
                0 => (&mut self.list, &mut self.list_bytes),
                _ => (&mut self.scratch, &mut self.scratch_bytes),
            };
            target.clear();
            legs[leg].list(row, control, counted, target)?;
            if at > 0 {
                retain_common(&mut self.list, &self.scratch);
            }
        }
        if let Some(lanes) = self.lanes.get_mut(..self.list.len()) {
            lanes.copy_from_slice(&self.list);
            self.lanes[self.list.len()..].fill(Id::UNBOUND);
        }
        self.of.extend(order.iter().map(|&leg| (leg, legs[leg].keys[row])));
        Ok(())
    }

    /// The list, if it fits, padded with [`Id::UNBOUND`], which equals no entry.
    pub(crate) fn lanes<const COUNT: usize>(&self) -> Option<&[Id; COUNT]> {
        if self.list.len() <= COUNT { self.lanes.first_chunk() } else { None }
    }

    pub(crate) fn fill_bitset(&mut self, run: &Run<'_>) -> Result<()> {
        if self.has_bitset {
            return Ok(());
        }
        if self.words.is_empty() {
            let words = run.snapshot.vertex_count().div_ceil(64);
            run.control.grow(8 * words)?;
            self.words.resize(usize::try_from(words).unwrap_or(0), 0);
        }
        for &id in &self.list {
            if let Some(word) = self.words.get_mut(word_of(id)) {
                *word |= 1 << (id.payload() % 64);
            }
        }
        self.has_bitset = true;
        Ok(())
    }

    fn clear_bitset(&mut self) {
        if self.has_bitset {
            for &id in &self.list {
                if let Some(word) = self.words.get_mut(word_of(id)) {
                    *word = 0;
                }
            }
            self.has_bitset = false;
        }
    }

    pub(crate) fn bitset_contains(&self, id: Id) -> bool {
        let word = self.words.get(word_of(id)).copied().unwrap_or(0);
        word >> (id.payload() % 64) & 1 == 1
    }
}

/// Bit-set word of a vertex; only legs whose neighbours are all vertices are marked.
fn word_of(vertex: Id) -> usize {
    usize::try_from(vertex.payload() / 64).unwrap_or(usize::MAX)
}

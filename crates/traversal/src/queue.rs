//! [`Queue`] of traversers, counted against the memory cap, and the sizes of traversers in queues and
//! buffers.

use crate::memory::{Memory, Reservation, TRAVERSER_BYTES};
use crate::size;
use crate::traverser::Traverser;
use std::collections::VecDeque;
use vervet_kernel::Control;
use vervet_model::Result;

/// A queue of traversers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    waiting: VecDeque<Traverser>,
    held: Reservation,
}

impl Queue {
    /// Puts a traverser at the end.
    ///
    /// # Errors
    /// The memory cap; cancellation.
    pub(crate) fn push(&mut self, traverser: Traverser, memory: &Memory<'_>) -> Result<()> {
        self.held.add_traverser(&traverser, memory)?;
        self.waiting.push_back(traverser);
        Ok(())
    }

    pub(crate) fn pop(&mut self) -> Option<Traverser> {
        let first = self.waiting.pop_front()?;
        self.held.release_fraction(self.waiting.len() + 1);
        Some(first)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
        self.held.clear();
    }
}

impl Traverser {
    /// Size in a queue or buffer, in bytes. The path is counted separately.
    ///
    /// # Errors
    /// Cancellation, during the walk over a large collection.
    pub(crate) fn size_bytes(&self, control: &Control<'_>) -> Result<u64> {
        let sack = match &self.sack {
            Some(sack) => size::VALUE_BYTES + size::bytes(sack, control)?,
            None => 0,
        };
        Ok(TRAVERSER_BYTES + size::bytes(&self.value, control)? + sack)
    }
}

impl Reservation {
    /// Counts a traverser that is kept.
    ///
    /// # Errors
    /// The memory cap; cancellation.
    pub(crate) fn add_traverser(&mut self, traverser: &Traverser, memory: &Memory<'_>) -> Result<()> {
        self.add(traverser.size_bytes(memory.control)?, memory)
    }
}

//! [`Outputs`]: the results of one traverser that a step has not output yet.

use crate::bulk::Bulk;
use crate::memory::{Memory, Reservation};
use crate::size;
use std::collections::VecDeque;
use vervet_gremlin::Value;
use vervet_model::Result;

/// Output queue of one traverser: values with multiplicities, counted against the memory cap.
#[derive(Clone, Default)]
pub(crate) struct Outputs {
    values: VecDeque<(Value, Bulk)>,
    /// The number of values that `held` has counted.
    counted: usize,
    held: Reservation,
}

impl Outputs {
    /// Appends a value with a multiplicity.
    ///
    /// # Errors
    /// The memory cap; cancellation.
    pub(crate) fn push(&mut self, value: Value, bulk: Bulk, memory: &Memory<'_>) -> Result<()> {
        self.values.push_back((value, bulk));
        self.count(memory)
    }

    /// Appends a value without counting it; call [`Outputs::count`] afterwards.
    pub(crate) fn push_back(&mut self, value: Value) {
        self.values.push_back((value, Bulk::ONE));
    }

    /// Appends values without counting them; call [`Outputs::count`] afterwards.
    pub(crate) fn extend(&mut self, values: impl IntoIterator<Item = Value>) {
        self.values.extend(values.into_iter().map(|value| (value, Bulk::ONE)));
    }

    /// Counts the values appended since the last call.
    ///
    /// # Errors
    /// The memory cap; cancellation.
    pub(crate) fn count(&mut self, memory: &Memory<'_>) -> Result<()> {
        let mut bytes = 0;
        for (value, _) in self.values.range(self.counted..) {
            bytes += size::VALUE_BYTES + size::bytes(value, memory.control)?;
        }
        memory.control.work(self.values.len() - self.counted)?;
        self.counted = self.values.len();
        self.held.add(bytes, memory)
    }

    /// Removes the first value.
    pub(crate) fn pop(&mut self) -> Option<(Value, Bulk)> {
        let first = self.values.pop_front()?;
        if self.counted > 0 {
            self.held.release_fraction(self.counted);
            self.counted -= 1;
        }
        Some(first)
    }

    /// Returns one copy of a value to the front.
    pub(crate) fn put_back(&mut self, value: Value, bulk: Bulk) {
        self.values.push_front((value, bulk));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.values.clear();
        self.counted = 0;
        self.held.clear();
    }
}

//! Memory that steps hold, counted against the cap of the query.
//!
//! # Shape
//! A running traversal has one [`Account`]. A step that keeps values has a [`Held`] beside them, which counts
//! their bytes in the account for as long as it lives; a copy of it counts them once more. [`Queue`] is a
//! queue with such a count.
//! # Invariants
//! 1. What the account says and what the control of the query knows differ by less than [`SETTLE_BYTES`]
//!    after each addition.
//! 2. A step that is reset or dropped counts nothing.
//! # Cost
//! An addition of two plain numbers; a call of the control for each [`SETTLE_BYTES`].

use crate::size;
use crate::traverser::Traverser;
use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;
use vervet_kernel::Control;
use vervet_model::Result;

/// What the control is told of together.
const SETTLE_BYTES: u64 = 1 << 12;
/// A traverser that waits: itself, its loops, and the room that a queue keeps.
pub(crate) const TRAVERSER_BYTES: u64 = 128;

/// What the steps of a traversal hold now, and how much of that the control knows.
#[derive(Debug, Default)]
pub(crate) struct Account {
    held_bytes: Cell<u64>,
    known_bytes: Cell<u64>,
}

impl Account {
    fn add(&self, bytes: u64) {
        self.held_bytes.set(self.held_bytes.get() + bytes);
    }

    pub(crate) fn release(&self, bytes: u64) {
        debug_assert!(self.held_bytes.get() >= bytes, "more is given back than was taken");
        self.held_bytes.set(self.held_bytes.get() - bytes);
    }
}

/// The limits of a running traversal.
#[derive(Clone)]
pub(crate) struct Memory<'a> {
    pub(crate) control: &'a Control<'a>,
    account: Rc<Account>,
}

impl<'a> Memory<'a> {
    pub(crate) fn new(control: &'a Control<'a>) -> Self {
        Self { control, account: Rc::default() }
    }

    /// Counts bytes until the end of the traversal, or until they are given back to the account, which this
    /// returns.
    ///
    /// # Errors
    /// Over the memory cap; the bytes are counted all the same.
    pub(crate) fn take(&self, bytes: u64) -> Result<&Rc<Account>> {
        self.account.add(bytes);
        let (held, mut known) = (self.account.held_bytes.get(), self.account.known_bytes.get());
        if held.abs_diff(known) >= SETTLE_BYTES {
            let settled = self.control.recount(&mut known, held);
            self.account.known_bytes.set(known);
            settled?;
        }
        Ok(&self.account)
    }

    /// Gives everything back to the control, at the end of the traversal. What the steps still hold goes with
    /// them.
    pub(crate) fn close(&self) {
        self.control.shrink(self.account.known_bytes.replace(0));
    }
}

/// Bytes that are counted as long as this lives.
#[derive(Debug, Default)]
pub(crate) struct Held {
    bytes: u64,
    account: Option<Rc<Account>>,
}

impl Held {
    /// Counts more bytes.
    ///
    /// # Errors
    /// Over the memory cap.
    pub(crate) fn add(&mut self, bytes: u64, memory: &Memory<'_>) -> Result<()> {
        if self.account.is_none() {
            self.account = Some(memory.account.clone());
        }
        self.bytes += bytes;
        memory.take(bytes).map(|_| ())
    }

    /// Counts a traverser that is kept.
    ///
    /// # Errors
    /// Over the memory cap; cancellation.
    pub(crate) fn add_traverser(&mut self, traverser: &Traverser, memory: &Memory<'_>) -> Result<()> {
        self.add(traverser.size_bytes(memory.control)?, memory)
    }

    /// Counts so many bytes and no others.
    ///
    /// # Errors
    /// Over the memory cap.
    pub(crate) fn set(&mut self, bytes: u64, memory: &Memory<'_>) -> Result<()> {
        match bytes.checked_sub(self.bytes) {
            Some(0) => Ok(()),
            Some(more) => self.add(more, memory),
            None => {
                self.release(self.bytes - bytes);
                Ok(())
            }
        }
    }

    /// Leaves the bytes counted until the traversal ends: what they are of stays as long.
    pub(crate) fn keep(mut self) {
        self.bytes = 0;
    }

    /// Gives bytes back.
    pub(crate) fn release(&mut self, bytes: u64) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        if let Some(account) = &self.account {
            account.release(bytes);
        }
    }

    /// Gives all bytes back.
    pub(crate) fn clear(&mut self) {
        self.release(self.bytes);
    }

    /// Gives the share of one of so many things back.
    pub(crate) fn release_one_of(&mut self, count: usize) {
        self.release(self.bytes / (count as u64).max(1));
    }
}

impl Clone for Held {
    fn clone(&self) -> Self {
        if let Some(account) = &self.account {
            account.add(self.bytes);
        }
        Self { bytes: self.bytes, account: self.account.clone() }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Traversers that wait.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    waiting: VecDeque<Traverser>,
    held: Held,
}

impl Queue {
    /// Puts a traverser at the end.
    ///
    /// # Errors
    /// Over the memory cap; cancellation.
    pub(crate) fn push(&mut self, traverser: Traverser, memory: &Memory<'_>) -> Result<()> {
        self.held.add_traverser(&traverser, memory)?;
        self.waiting.push_back(traverser);
        Ok(())
    }

    pub(crate) fn pop(&mut self) -> Option<Traverser> {
        let first = self.waiting.pop_front()?;
        self.held.release_one_of(self.waiting.len() + 1);
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
    /// What it counts as where it is kept. Its path counts by itself.
    ///
    /// # Errors
    /// Cancellation, while a large collection is walked through.
    pub(crate) fn size_bytes(&self, control: &Control<'_>) -> Result<u64> {
        let sack = match &self.sack {
            Some(sack) => size::VALUE_BYTES + size::bytes(sack, control)?,
            None => 0,
        };
        Ok(TRAVERSER_BYTES + size::bytes(&self.value, control)? + sack)
    }
}

//! Memory accounting: bytes held by steps, counted against the memory cap of the query.
//!
//! # Shape
//! A running traversal has one [`Account`]. A step that keeps values has a [`Reservation`] beside them, which
//! counts their bytes in the account during its lifetime; a clone of it counts them again.
//! # Invariants
//! 1. After each addition, the account and the control of the query differ by less than [`SETTLE_BYTES`].
//! 2. A step that is reset or dropped counts 0 bytes.
//! # Cost
//! An addition of two plain numbers; one call of the control per [`SETTLE_BYTES`].

use std::cell::Cell;
use std::rc::Rc;
use vervet_kernel::Control;
use vervet_model::Result;

/// Granularity of reports to the control.
const SETTLE_BYTES: u64 = 1 << 12;
/// Size of a queued traverser: the traverser, its loops, and the spare capacity of the queue.
pub(crate) const TRAVERSER_BYTES: u64 = 128;

/// Bytes that the steps of a traversal hold, and the part already reported to the control.
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
        debug_assert!(self.held_bytes.get() >= bytes, "more bytes are released than were counted");
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

    /// Counts bytes until the end of the traversal, or until the caller returns them to the account, which is
    /// the result.
    ///
    /// # Errors
    /// The memory cap; the bytes are counted nevertheless.
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

    /// Returns all bytes to the control at the end of the traversal, including those that steps still hold.
    pub(crate) fn close(&self) {
        self.control.shrink(self.account.known_bytes.replace(0));
    }
}

/// Bytes counted during the lifetime of this value.
#[derive(Debug, Default)]
pub(crate) struct Reservation {
    bytes: u64,
    account: Option<Rc<Account>>,
}

impl Reservation {
    /// Counts more bytes.
    ///
    /// # Errors
    /// The memory cap.
    pub(crate) fn add(&mut self, bytes: u64, memory: &Memory<'_>) -> Result<()> {
        if self.account.is_none() {
            self.account = Some(memory.account.clone());
        }
        self.bytes += bytes;
        memory.take(bytes).map(|_| ())
    }

    /// Replaces the number of counted bytes.
    ///
    /// # Errors
    /// The memory cap.
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

    /// Leaves the bytes counted until the traversal ends, for data that lives as long.
    pub(crate) fn keep(mut self) {
        self.bytes = 0;
    }

    /// Releases bytes.
    pub(crate) fn release(&mut self, bytes: u64) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        if let Some(account) = &self.account {
            account.release(bytes);
        }
    }

    /// Releases all bytes.
    pub(crate) fn clear(&mut self) {
        self.release(self.bytes);
    }

    /// Releases `1 / count` of the bytes.
    pub(crate) fn release_fraction(&mut self, count: usize) {
        self.release(self.bytes / (count as u64).max(1));
    }
}

impl Clone for Reservation {
    fn clone(&self) -> Self {
        if let Some(account) = &self.account {
            account.add(self.bytes);
        }
        Self { bytes: self.bytes, account: self.account.clone() }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.clear();
    }
}

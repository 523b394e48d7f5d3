//! Limits of one query: cancellation, deadline, memory cap.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use vervet_model::{Error, ErrorKind, Result};

/// What may stop a query before its end.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Set by another thread to cancel.
    pub cancelled: Option<Arc<AtomicBool>>,
    /// When to give up, and after how long that is (for the message).
    pub deadline: Option<(Instant, Duration)>,
    /// The most bytes that tables of the query may take.
    pub memory_bytes: Option<u64>,
}

/// How many rows are looked at between two looks at the clock, where no batch passes a step.
const WORK_ROWS: usize = 1 << 16;

/// Limits, and what counts against them. Checked once for each batch and each step, and by
/// [`Control::work`] where rows are looked at without any going on.
#[derive(Clone, Debug, Default)]
pub struct Control {
    limits: Limits,
    memory_bytes: Cell<u64>,
    /// Bytes of computed terms that are part of `memory_bytes`.
    computed_bytes: Cell<u64>,
    /// Rows looked at since the last look at the clock.
    work: Cell<usize>,
}

impl Control {
    /// Nothing counted yet.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Whether to go on.
    ///
    /// # Errors
    /// [`ErrorKind::Cancelled`], [`ErrorKind::Deadline`].
    pub fn check(&self) -> Result<()> {
        // Relaxed: the flag carries no data; being seen one batch later does no harm.
        if self.limits.cancelled.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed)) {
            return Err(Error::new(ErrorKind::Cancelled, "the query was cancelled"));
        }
        if let Some((deadline, timeout)) = self.limits.deadline
            && Instant::now() >= deadline
        {
            let message = format!("the query did not end within its timeout of {timeout:?}");
            return Err(Error::new(ErrorKind::Deadline, message)
                .with_hint("raise the timeout, or ask for less (more constants, LIMIT)"));
        }
        Ok(())
    }

    /// Whether to go on, asked so often that most calls only count: `rows` more have been looked at.
    ///
    /// # Errors
    /// As [`Control::check`].
    #[inline]
    pub fn work(&self, rows: usize) -> Result<()> {
        let work = self.work.get().saturating_add(rows);
        if work < WORK_ROWS {
            self.work.set(work);
            return Ok(());
        }
        self.work.set(0);
        self.check()
    }

    /// Counts bytes that a table of the query has grown by.
    ///
    /// # Errors
    /// [`ErrorKind::MemoryLimit`].
    pub fn grow(&self, bytes: u64) -> Result<()> {
        let total = self.memory_bytes.get().saturating_add(bytes);
        self.memory_bytes.set(total);
        match self.limits.memory_bytes {
            Some(limit) if total > limit => {
                let message = format!("the query needs more than its memory cap of {limit} bytes");
                Err(Error::new(ErrorKind::MemoryLimit, message)
                    .with_hint("raise the memory cap, or ask for less (more constants, LIMIT)"))
            }
            _ => Ok(()),
        }
    }

    /// Counts bytes that were freed.
    pub fn shrink(&self, bytes: u64) {
        self.memory_bytes.set(self.memory_bytes.get().saturating_sub(bytes));
    }

    /// Counts a table that took `counted` bytes at the last call and takes `bytes` now.
    ///
    /// # Errors
    /// As [`Control::grow`].
    #[inline]
    pub fn recount(&self, counted: &mut u64, bytes: u64) -> Result<()> {
        if *counted == bytes {
            return Ok(());
        }
        self.shrink(std::mem::replace(counted, bytes));
        self.grow(bytes)
    }

    /// Counts the terms that the query has made: `bytes` in all.
    ///
    /// # Errors
    /// As [`Control::grow`].
    pub fn count_computed(&self, bytes: u64) -> Result<()> {
        let mut counted = self.computed_bytes.get();
        self.computed_bytes.set(bytes);
        self.recount(&mut counted, bytes)
    }

    /// Bytes counted now.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes.get()
    }
}

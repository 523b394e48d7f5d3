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

/// Limits, and what counts against them. Checked once for each batch and each step.
#[derive(Clone, Debug, Default)]
pub struct Control {
    limits: Limits,
    memory_bytes: Cell<u64>,
}

impl Control {
    /// Nothing counted yet.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, memory_bytes: Cell::new(0) }
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

    /// Bytes counted now.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes.get()
    }
}
